//! Sorted arrays in device memory: methods that only arrays have.

use std::sync::{Arc, OnceLock};

use warpset_gpu::Device;

use crate::gpu::device_run::{DeviceElements, upload_table};
use crate::gpu::{DeviceKey, DeviceValue, Dictionary};
use crate::policy::ArrayPolicy;
use crate::policy::rules::Rules;
use crate::{Error, cpu};

/// [`crate::SortedArray`] in device memory: the paper's GPU SA.
///
/// Updates that wait rewrite the array and leave only live elements. `_async` updates cannot know the number of live
/// elements, so they leave stale ones and tombstones in the array, without effect on answers; the next update that
/// waits, or [`cleanup`](Dictionary::cleanup), drops them.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_lsm::SortedArray;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let builder = SortedArray::<u32, u32>::builder();
/// let mut array = builder.on(&device).build_from(&[3, 1, 2], &[30, 10, 20])?;
/// array.remove_bulk(&[2])?;
/// array.insert_bulk(&[4], &[40])?;
/// assert_eq!(array.get_bulk(&[2, 4])?, [None, Some(40)]);
/// assert_eq!(array.to_host()?.keys(), [1, 3, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type SortedArray<K, V> = Dictionary<K, V, ArrayPolicy>;

impl<K: DeviceKey, V: DeviceValue> SortedArray<K, V> {
    /// Copies an array from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn from_host(device: &Device, array: &cpu::SortedArray<K, V>) -> Result<Self, Error> {
        let mut copy = Dictionary::empty(device, ArrayPolicy)?;
        if let Some(level) = array.levels().first() {
            let stream = copy.ready_stream()?;
            let elements = &level.elements;
            let levels =
                vec![(ArrayPolicy.level_for(elements.len()), Arc::new(DeviceElements::from_host(&stream, elements)?))];
            let table = upload_table(&stream, &levels)?;
            stream.synchronize()?;
            (copy.levels, copy.table) = (levels, Arc::new(table));
            copy.live = OnceLock::from(elements.len() as u64);
        }
        Ok(copy)
    }

    /// Copies the array to host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`], [`Error::OutOfMemory`].
    pub fn to_host(&self) -> Result<cpu::SortedArray<K, V>, Error> {
        let stream = self.ready_stream()?;
        Ok(cpu::Dictionary::from_live(ArrayPolicy, self.live_run()?.to_host(&stream)?))
    }
}

impl<K: DeviceKey, V: DeviceValue> cpu::SortedArray<K, V> {
    /// Copies the array to device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn to_device(&self, device: &Device) -> Result<SortedArray<K, V>, Error> {
        SortedArray::from_host(device, self)
    }
}
