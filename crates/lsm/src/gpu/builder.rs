//! Builders of dictionaries in device memory.

use std::marker::PhantomData;

use warpset_gpu::{Device, DeviceSlice};

use crate::gpu::{DeviceKey, DeviceValue, Dictionary};
use crate::policy::{ArrayPolicy, MergePolicy, TreePolicy};
use crate::{Builder, Error, SortedArrayBuilder};

/// Builder of a tree or sorted array in device memory, made by [`Builder::on`] and [`SortedArrayBuilder::on`].
///
/// ```
/// use warpset_gpu::{Device, DeviceSlice};
/// use warpset_lsm::Lsm;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let (keys, values) = (device.from_slice(&[3u32, 1, 3])?, device.from_slice(&[30u64, 10, 33])?);
/// let lsm = Lsm::<u32, u64>::builder().on(&device).build_from_device(keys.as_slice(), values.as_slice())?;
/// assert_eq!(lsm.get_bulk(&[1, 3])?, [Some(10), Some(33)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceBuilder<K, V, P = TreePolicy> {
    policy: P,
    device: Device,
    elements: PhantomData<(K, V)>,
}

impl<K: DeviceKey, V: DeviceValue> Builder<K, V> {
    /// Returns a builder of trees in device memory with these settings.
    pub fn on(&self, device: &Device) -> DeviceBuilder<K, V> {
        DeviceBuilder { policy: TreePolicy::new(self.settings), device: device.clone(), elements: PhantomData }
    }
}

impl<K: DeviceKey, V: DeviceValue> SortedArrayBuilder<K, V> {
    /// Returns a builder of arrays in device memory.
    pub fn on(&self, device: &Device) -> DeviceBuilder<K, V, ArrayPolicy> {
        DeviceBuilder { policy: ArrayPolicy, device: device.clone(), elements: PhantomData }
    }
}

impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> DeviceBuilder<K, V, P> {
    /// Checks every setting and returns an empty dictionary.
    ///
    /// # Errors
    /// [`Error::InvalidBatchSize`], [`Error::InvalidStaleShare`], [`Error::NoBatches`], [`Error::Gpu`].
    pub fn build(&self) -> Result<Dictionary<K, V, P>, Error> {
        Dictionary::empty(&self.device, self.policy.checked()?)
    }

    /// Builds a dictionary of one level from one value per key, by one sort. The last one of equal keys counts.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build`]; [`Error::LengthMismatch`].
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<Dictionary<K, V, P>, Error> {
        Dictionary::build_from_slices(&self.device, self.policy.checked()?, keys, values)
    }

    /// Builds as [`DeviceBuilder::build_from`] does, from keys and values on the device; for values `()` pass an empty
    /// slice. Waits.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from`]; [`Error::Gpu`] for memory of another device.
    pub fn build_from_device(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V::Stored>,
    ) -> Result<Dictionary<K, V, P>, Error> {
        Dictionary::build_from_device(&self.device, self.policy.checked()?, keys, values)
    }
}
