//! Log-structured merge trees in device memory: the form, and what only trees have.

use std::sync::{Arc, OnceLock};

use warpset_gpu::Device;

use super::elements::{DeviceElements, publish};
use super::form::rules::Rules;
use super::{DeviceKey, DeviceValue, Form, Ordered};
use crate::builder::Settings;
use crate::cpu::{self, History};
use crate::level::{Level, LevelIndex, place_for};
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
pub type Lsm<K, V> = Ordered<K, V, Tree>;

/// The form of an [`Lsm`]: levels that double.
#[derive(Clone, Copy, Debug)]
pub struct Tree {
    settings: Settings,
    history: History,
}

impl Tree {
    /// With settings that have not been checked yet.
    pub(crate) fn new(settings: Settings) -> Self {
        Tree { settings, history: History::default() }
    }
}

impl Form for Tree {}

impl Rules for Tree {
    const ALWAYS_CLEAN: bool = false;

    fn checked(self) -> Result<Self, Error> {
        Ok(Tree { settings: self.settings.check()?, ..self })
    }

    fn place_for(&self, len: usize, levels: impl Iterator<Item = (LevelIndex, usize)>) -> (LevelIndex, usize) {
        place_for(self.settings.batch_size, len, levels)
    }

    fn level_for(&self, len: usize) -> LevelIndex {
        LevelIndex::holding(self.settings.batch_size, len)
    }

    fn note_update(&mut self) {
        self.history.updates += 1;
    }

    fn note_cleanup(&mut self, live: u64) {
        self.history = History { live_at_cleanup: live, updates: 0 };
    }

    fn is_due(&self, resident: u64) -> bool {
        let History { live_at_cleanup, updates } = self.history;
        self.settings.is_due(resident, live_at_cleanup, updates)
    }
}

impl<K: DeviceKey, V: DeviceValue> Lsm<K, V> {
    /// A copy of a dictionary in host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn from_host(device: &Device, lsm: &cpu::Lsm<K, V>) -> Result<Self, Error> {
        let form = Tree { settings: lsm.settings(), history: lsm.history };
        let mut copy = Ordered::empty(device, form)?;
        let stream = copy.ready_stream()?;
        let upload = |level: &Arc<Level<K, V>>| {
            let elements = DeviceElements::from_host(&stream, &level.elements)?;
            Ok((level.index, Arc::new(elements)))
        };
        let levels: Vec<_> = lsm.levels().iter().map(upload).collect::<Result<_, Error>>()?;
        let table = publish(&stream, &levels)?;
        stream.synchronize()?;
        (copy.levels, copy.table, copy.live) = (levels, Arc::new(table), OnceLock::new());
        Ok(copy)
    }

    /// A copy in host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`], [`Error::OutOfMemory`].
    pub fn to_host(&self) -> Result<cpu::Lsm<K, V>, Error> {
        let stream = self.ready_stream()?;
        let download = |(index, elements): &(LevelIndex, Arc<DeviceElements<K, V>>)| {
            let elements: Elements<K, V> = elements.to_host(&stream)?;
            Ok(Arc::new(Level::new(*index, elements)))
        };
        let levels = self.levels.iter().map(download).collect::<Result<_, Error>>()?;
        Ok(cpu::Lsm::from_levels(self.form.settings, levels, self.form.history))
    }

    /// Elements of a full batch.
    pub fn batch_size(&self) -> u64 {
        self.form.settings.batch_size
    }

    /// When it cleans up.
    pub fn cleanup_policy(&self) -> CleanupPolicy {
        self.form.settings.cleanup
    }

    /// The occupied levels with the numbers of their elements, the newest first.
    pub fn level_lens(&self) -> Vec<(LevelIndex, u64)> {
        self.levels.iter().map(|(index, elements)| (*index, elements.len as u64)).collect()
    }
}

impl<K: DeviceKey, V: DeviceValue> cpu::Lsm<K, V> {
    /// A copy in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn to_device(&self, device: &Device) -> Result<Lsm<K, V>, Error> {
        Lsm::from_host(device, self)
    }
}
