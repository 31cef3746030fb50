//! Sorted arrays in device memory: the form, and what only arrays have.

use std::sync::{Arc, OnceLock};

use warpset_gpu::Device;

use super::elements::{DeviceElements, publish};
use super::form::rules::Rules;
use super::{DeviceKey, DeviceValue, Form, Ordered};
use crate::level::LevelIndex;
use crate::{Error, sorted_array};

/// [`crate::SortedArray`] in device memory: the paper's GPU SA.
///
/// Updates that wait rewrite the array and leave live elements only. `_async` updates cannot know how many elements live, so they
/// leave stale ones and tombstones in the array, which answers as it should; the next update that waits drops
/// them, and so does [`cleanup`](Ordered::cleanup).
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
pub type SortedArray<K, V> = Ordered<K, V, Array>;

/// The form of a [`SortedArray`]: one level.
#[derive(Clone, Copy, Debug)]
pub struct Array;

/// The only level.
const LEVEL: LevelIndex = LevelIndex(0);

impl Form for Array {}

impl Rules for Array {
    const ALWAYS_CLEAN: bool = true;

    fn checked(self) -> Result<Self, Error> {
        Ok(self)
    }

    fn place_for(&self, _: usize, levels: impl Iterator<Item = (LevelIndex, usize)>) -> (LevelIndex, usize) {
        (LEVEL, levels.count())
    }

    fn level_for(&self, _: usize) -> LevelIndex {
        LEVEL
    }

    fn note_update(&mut self) {}

    fn note_cleanup(&mut self, _: u64) {}

    fn is_due(&self, _: u64) -> bool {
        false
    }
}

impl<K: DeviceKey, V: DeviceValue> SortedArray<K, V> {
    /// A copy of an array in host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn from_host(device: &Device, array: &sorted_array::SortedArray<K, V>) -> Result<Self, Error> {
        let mut copy = Ordered::empty(device, Array)?;
        let elements = array.elements();
        if elements.len() > 0 {
            let stream = copy.ready_stream()?;
            let levels = vec![(LEVEL, Arc::new(DeviceElements::from_host(&stream, elements)?))];
            let table = publish(&stream, &levels)?;
            stream.synchronize()?;
            (copy.levels, copy.table) = (levels, Arc::new(table));
            copy.live = OnceLock::from(elements.len() as u64);
        }
        Ok(copy)
    }

    /// A copy in host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`], [`Error::OutOfMemory`].
    pub fn to_host(&self) -> Result<sorted_array::SortedArray<K, V>, Error> {
        let stream = self.ready_stream()?;
        Ok(sorted_array::SortedArray::from_live(self.live_run()?.to_host(&stream)?))
    }
}

impl<K: DeviceKey, V: DeviceValue> sorted_array::SortedArray<K, V> {
    /// A copy in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn to_device(&self, device: &Device) -> Result<SortedArray<K, V>, Error> {
        SortedArray::from_host(device, self)
    }
}
