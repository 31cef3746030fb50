//! Log-structured merge trees in device memory: methods that only trees have.

use std::sync::{Arc, OnceLock};

use warpset_gpu::Device;

use crate::cpu;
use crate::gpu::device_run::{DeviceElements, upload_table};
use crate::gpu::{DeviceKey, DeviceValue, Dictionary};
use crate::level::{Level, LevelIndex};
use crate::policy::TreePolicy;
use crate::run::Elements;
use crate::{CleanupPolicy, Error};

/// [`crate::Lsm`] in device memory.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_lsm::Lsm;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let builder = Lsm::<u32, u32>::builder();
/// let mut lsm = builder.on(&device).build()?;
/// lsm.insert_bulk(&[5, 3, 5], &[50, 30, 55])?;
/// lsm.remove_bulk(&[3])?;
/// assert_eq!(lsm.get_bulk(&[3, 5])?, [None, Some(55)]);
/// assert_eq!(lsm.count_range_bulk(&[0..=10])?, [1]);
///
/// let mut on_host = builder.build()?; // the same bytes as if it had been made there
/// on_host.insert_bulk(&[5, 3, 5], &[50, 30, 55])?;
/// on_host.remove_bulk(&[3])?;
/// assert!(lsm.to_host()? == on_host);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Lsm<K, V> = Dictionary<K, V, TreePolicy>;

impl<K: DeviceKey, V: DeviceValue> Lsm<K, V> {
    /// Copies a dictionary from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn from_host(device: &Device, lsm: &cpu::Lsm<K, V>) -> Result<Self, Error> {
        let mut copy = Dictionary::empty(device, lsm.policy)?;
        let stream = copy.ready_stream()?;
        let upload = |level: &Arc<Level<K, V>>| {
            let elements = DeviceElements::from_host(&stream, &level.elements)?;
            Ok((level.index, Arc::new(elements)))
        };
        let levels: Vec<_> = lsm.levels().iter().map(upload).collect::<Result<_, Error>>()?;
        let table = upload_table(&stream, &levels)?;
        stream.synchronize()?;
        (copy.levels, copy.table, copy.live) = (levels, Arc::new(table), OnceLock::new());
        Ok(copy)
    }

    /// Copies the dictionary to host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`], [`Error::OutOfMemory`].
    pub fn to_host(&self) -> Result<cpu::Lsm<K, V>, Error> {
        let stream = self.ready_stream()?;
        let download = |(index, elements): &(LevelIndex, Arc<DeviceElements<K::Stored, V>>)| {
            let elements: Elements<K, V> = elements.to_host(&stream)?;
            Ok(Arc::new(Level::new(*index, elements)))
        };
        let levels = self.levels.iter().map(download).collect::<Result<_, Error>>()?;
        Ok(cpu::Dictionary::from_levels(self.policy, levels))
    }

    /// Returns the number of elements of a full batch.
    pub fn batch_size(&self) -> u64 {
        self.policy.settings.batch_size
    }

    /// Returns the policy of automatic cleanups.
    pub fn cleanup_policy(&self) -> CleanupPolicy {
        self.policy.settings.cleanup
    }

    /// Returns the number, from 0, and the length of each occupied level, the newest first.
    pub fn level_lens(&self) -> Vec<(u32, u64)> {
        self.levels.iter().map(|(index, elements)| (index.get(), elements.len as u64)).collect()
    }
}

impl<K: DeviceKey, V: DeviceValue> cpu::Lsm<K, V> {
    /// Copies the dictionary to device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn to_device(&self, device: &Device) -> Result<Lsm<K, V>, Error> {
        Lsm::from_host(device, self)
    }
}
