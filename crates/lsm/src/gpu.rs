//! Log-structured merge trees in device memory: the same levels as on the host, made and asked by kernels.
//!
//! Methods on host slices copy them to the device first. Those that end in `_device` take memory of the device; those in
//! `_async` also a stream, and wait for nothing. What needs single keys, files or views needs a copy on the host:
//! [`Lsm::to_host`].

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use warpset_gpu::{Device, DeviceVec, Event, Stream};

use crate::builder::Settings;
use crate::cpu::{self, History};
use crate::level::{Level, LevelIndex, place_for};
use crate::run::Elements;
use crate::{CleanupPolicy, Error, Value};

mod batch;
mod derived;
mod dictionary;
mod element;
mod elements;
mod query;
mod update;

pub use crate::builder::DeviceBuilder;
pub use derived::LookupMethod;
pub use element::{DeviceKey, DeviceValue};
use elements::{DeviceElements, publish};
pub use query::DeviceRanges;

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
pub struct Lsm<K, V: DeviceValue> {
    settings: Settings,
    device: Device,
    /// The occupied ones, ascending by their index, which is from the newest elements to the oldest.
    levels: Vec<(LevelIndex, Arc<DeviceElements<K, V>>)>,
    /// The addresses of `levels`, for kernels.
    table: Arc<DeviceVec<u64>>,
    /// The same with those of filters and indexes, once they have been built.
    prepared: OnceLock<Arc<DeviceVec<u64>>>,
    /// Keys that the tree has been asked for, by calls that wait, since it was changed.
    asked: AtomicU64,
    history: History,
    live: OnceLock<u64>,
    /// What work that was queued by `_async` methods may still read, with the event after it.
    retired: Vec<(Event, Vec<Retired<K, V>>)>,
}

/// Levels and tables that are no longer part of the dictionary.
enum Retired<K, V: DeviceValue> {
    Level(#[expect(dead_code, reason = "held, not read")] Arc<DeviceElements<K, V>>),
    Table(#[expect(dead_code, reason = "held, not read")] Arc<DeviceVec<u64>>),
}

impl<K: DeviceKey, V: DeviceValue> Lsm<K, V> {
    pub(crate) fn empty(device: &Device, settings: Settings) -> Result<Self, Error> {
        let stream = device.new_stream()?;
        let table = publish::<K, V>(&stream, &[])?;
        stream.synchronize()?;
        Ok(Lsm {
            settings,
            device: device.clone(),
            levels: Vec::new(),
            table: Arc::new(table),
            prepared: OnceLock::new(),
            asked: AtomicU64::new(0),
            history: History::default(),
            live: OnceLock::from(0),
            retired: Vec::new(),
        })
    }

    /// A copy of a dictionary in host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn from_host(device: &Device, lsm: &cpu::Lsm<K, V>) -> Result<Self, Error> {
        let mut copy = Lsm::empty(device, lsm.settings())?;
        let stream = copy.ready_stream()?;
        let upload = |level: &Arc<Level<K, V>>| {
            let elements = DeviceElements::from_host(&stream, &level.elements)?;
            Ok((level.index, Arc::new(elements)))
        };
        let levels: Vec<_> = lsm.levels().iter().map(upload).collect::<Result<_, Error>>()?;
        let table = publish(&stream, &levels)?;
        stream.synchronize()?;
        (copy.levels, copy.table) = (levels, Arc::new(table));
        (copy.history, copy.live) = (lsm.history, OnceLock::new());
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
        Ok(cpu::Lsm::from_levels(self.settings, levels, self.history))
    }

    /// The dictionary as it is now, to be asked while this one changes. The levels are shared.
    pub fn snapshot(&self) -> Self {
        Lsm {
            settings: self.settings,
            device: self.device.clone(),
            levels: self.levels.clone(),
            table: self.table.clone(),
            prepared: self.prepared.clone(),
            asked: AtomicU64::new(self.asked.load(Ordering::Relaxed)),
            history: self.history,
            live: self.live.clone(),
            retired: Vec::new(),
        }
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Elements of a full batch.
    pub fn batch_size(&self) -> u64 {
        self.settings.batch_size
    }

    /// When it cleans up.
    pub fn cleanup_policy(&self) -> CleanupPolicy {
        self.settings.cleanup
    }

    /// The occupied levels with the numbers of their elements, the newest first.
    pub fn level_lens(&self) -> Vec<(LevelIndex, u64)> {
        self.levels.iter().map(|(index, elements)| (*index, elements.len as u64)).collect()
    }

    /// Elements that are stored: live ones, tombstones and stale ones.
    pub fn resident_len(&self) -> u64 {
        self.levels.iter().map(|(_, elements)| elements.len as u64).sum()
    }

    /// Bytes of device memory that the elements take, with what [`Lsm::prepare`] made.
    pub fn memory_bytes(&self) -> u64 {
        self.levels.iter().map(|(_, elements)| elements.memory_bytes()).sum()
    }

    /// A stream that starts after everything that was queued on the device.
    fn ready_stream(&self) -> Result<Stream, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        Ok(stream)
    }

    /// Runs `queue` on a stream after everything that was queued on the device, and waits.
    fn waiting<R>(&self, queue: impl FnOnce(&Stream) -> Result<R, Error>) -> Result<R, Error> {
        let stream = self.ready_stream()?;
        let queued = queue(&stream);
        stream.synchronize()?;
        queued
    }

    /// Where a batch of this length goes, and how many levels are merged with it.
    fn place_for(&self, len: usize) -> (LevelIndex, usize) {
        let lengths = self.levels.iter().map(|(index, elements)| (*index, elements.len));
        place_for(self.settings.batch_size, len, lengths)
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

impl<K: DeviceKey, V: DeviceValue + Value> fmt::Debug for Lsm<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels: Vec<(u32, u64)> = self.level_lens().into_iter().map(|(index, len)| (index.get(), len)).collect();
        f.debug_struct("gpu::Lsm").field("settings", &self.settings).field("levels", &levels).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
