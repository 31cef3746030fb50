//! Builders of sets and maps in device memory.

use std::marker::PhantomData;

use warpset_base::filter::LengthMismatch;
use warpset_gpu::{Device, DeviceSlice};

use super::build::build;
use super::element::DeviceMapValue;
use super::{DeviceStaticKey, StaticMap, StaticSet};
use crate::{Builder, Error, StaticKey, Value};

/// Settings of a set or map in device memory: made by [`Builder::on`].
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_static::StaticMap;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let (keys, values) = (device.from_slice(&[3u32, 1, 3])?, device.from_slice(&[30u64, 10, 33])?);
/// let builder = StaticMap::<u32, u64>::builder().on(&device);
/// let map = builder.build_from_device(keys.as_slice(), values.as_slice())?;
/// assert_eq!(map.get_bulk(&[1, 3])?, [Some(10), Some(33)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct DeviceBuilder<K, V> {
    seed: u64,
    device: Device,
    elements: PhantomData<fn() -> (K, V)>,
}

impl<K: StaticKey, V: Value> Builder<K, V> {
    /// Builds the set or map in device memory, with the same bytes.
    pub fn on(&self, device: &Device) -> DeviceBuilder<K, V> {
        DeviceBuilder { seed: self.seed, device: device.clone(), elements: PhantomData }
    }
}

impl<K: DeviceStaticKey> DeviceBuilder<K, ()> {
    /// Builds the set of these keys, which are copied to the device; equal keys count once.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`]; [`Error::Gpu`].
    pub fn build_from(&self, keys: &[K]) -> Result<StaticSet<K>, Error> {
        let keys = self.device.from_slice(keys)?;
        self.build_from_device(keys.as_slice())
    }

    /// Builds from keys on the device, which stay unchanged. Takes 24 bytes per key besides the set. Waits.
    ///
    /// # Errors
    /// The errors of [`build_from`](Self::build_from); [`Error::Gpu`] for memory of another device.
    pub fn build_from_device(&self, keys: DeviceSlice<'_, K>) -> Result<StaticSet<K>, Error> {
        let none = self.device.alloc_uninit(0)?;
        build(&self.device, keys, none.as_slice(), self.seed)
    }
}

impl<K: DeviceStaticKey, V: DeviceMapValue> DeviceBuilder<K, V> {
    /// Builds the map of these keys, one value per key; both are copied to the device. Of equal keys the last one
    /// counts.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`]; [`Error::Gpu`].
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<StaticMap<K, V>, Error> {
        LengthMismatch::unless_equal("values for keys", keys.len(), values.len())?;
        let (keys, values) = (self.device.from_slice(keys)?, self.device.from_slice(values)?);
        self.build_from_device(keys.as_slice(), values.as_slice())
    }

    /// Builds from keys and values on the device, which stay unchanged. Takes 24 bytes per key and three times the
    /// values besides the map. Waits.
    ///
    /// # Errors
    /// The errors of [`build_from`](Self::build_from); [`Error::Gpu`] for memory of another device.
    pub fn build_from_device(
        &self,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
    ) -> Result<StaticMap<K, V>, Error> {
        LengthMismatch::unless_equal("values for keys", keys.len(), values.len())?;
        build(&self.device, keys, values.cast()?, self.seed)
    }
}
