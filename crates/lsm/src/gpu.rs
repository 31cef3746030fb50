//! Dictionaries in device memory: the same levels as on the host, made and asked by kernels.
//!
//! [`Lsm`], [`SortedArray`] and [`Snapshot`] are one type, [`Ordered`], in three [forms](crate::form): they are asked in the same way, and
//! differ in what an update does. Methods on host slices copy them to the device first. Those that end in `_device` take memory
//! of the device; those in `_async` also a stream, and wait for nothing. What needs single keys, files or views needs a copy on
//! the host: `to_host`.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use warpset_gpu::{Device, DeviceVec, Event, Stream};

use crate::form::Frozen;
use crate::level::LevelIndex;
use crate::{Error, Value};

mod array;
mod batch;
mod build;
mod contains;
mod derived;
mod dictionary;
mod element;
mod elements;
mod kernels;
mod live;
mod lookup;
mod neighbours;
mod pieces;
pub mod published;
mod query;
mod ranges;
mod tree;
mod update;

pub use crate::builder::DeviceBuilder;
pub use array::SortedArray;
pub use derived::LookupMethod;
use derived::Prepared;
pub use element::{DeviceKey, DeviceValue};
use elements::{DeviceElements, upload_table};
pub use live::{Iter, LiveElements};
pub use neighbours::NeighboursMut;
pub use pieces::{RangePiece, RangePieces};
pub use query::DeviceRanges;
pub use tree::Lsm;

/// A dictionary in device memory, as one of its forms: a tree ([`Lsm`]), one array ([`SortedArray`]), or as one of these was at
/// some time ([`Snapshot`]).
pub struct Ordered<K, V: DeviceValue, F> {
    form: F,
    device: Device,
    /// The occupied ones, ascending by their index, which is from the newest elements to the oldest.
    levels: Vec<(LevelIndex, Arc<DeviceElements<K, V>>)>,
    /// The addresses of `levels`, for kernels.
    table: Arc<DeviceVec<u64>>,
    /// What makes queries fast, once it has been built.
    prepared: OnceLock<Arc<Prepared>>,
    /// Keys that the dictionary has been asked for, by calls that wait, since it was changed.
    asked: AtomicU64,
    live: OnceLock<u64>,
    /// What work that was queued by `_async` methods may still read, with the event after it.
    retired: VecDeque<(Event, Vec<Retired<K, V>>)>,
}

/// A dictionary in device memory as it was when `snapshot` was called: answers every query while that one goes on changing.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_lsm::Lsm;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let mut lsm = Lsm::<u32, u32>::builder().on(&device).build_from(&[1, 2], &[10, 20])?;
/// let before = lsm.snapshot();
/// lsm.remove_bulk(&[1])?;
/// assert_eq!(before.get_bulk(&[1, 2])?, [Some(10), Some(20)]);
/// assert_eq!(lsm.get_bulk(&[1, 2])?, [None, Some(20)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type Snapshot<K, V> = Ordered<K, V, Frozen>;

/// Levels and tables that are no longer part of the dictionary.
enum Retired<K, V: DeviceValue> {
    Level(#[expect(dead_code, reason = "held, not read")] Arc<DeviceElements<K, V>>),
    Table(#[expect(dead_code, reason = "held, not read")] Arc<DeviceVec<u64>>),
    Prepared(#[expect(dead_code, reason = "held, not read")] Arc<Prepared>),
}

impl<K: DeviceKey, V: DeviceValue, F> Ordered<K, V, F> {
    pub(crate) fn empty(device: &Device, form: F) -> Result<Self, Error> {
        let stream = device.new_stream()?;
        let table = upload_table::<K, V>(&stream, &[])?;
        stream.synchronize()?;
        Ok(Ordered {
            form,
            device: device.clone(),
            levels: Vec::new(),
            table: Arc::new(table),
            prepared: OnceLock::new(),
            asked: AtomicU64::new(0),
            live: OnceLock::from(0),
            retired: VecDeque::new(),
        })
    }

    /// The dictionary as it is now, to be asked while this one changes. The levels are shared.
    pub fn snapshot(&self) -> Snapshot<K, V> {
        Ordered {
            form: Frozen,
            device: self.device.clone(),
            levels: self.levels.clone(),
            table: self.table.clone(),
            prepared: self.prepared.clone(),
            asked: AtomicU64::new(self.asked.load(Ordering::Relaxed)),
            live: self.live.clone(),
            retired: VecDeque::new(),
        }
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Elements that are stored: live ones, tombstones and stale ones.
    pub fn resident_len(&self) -> u64 {
        self.levels.iter().map(|(_, elements)| elements.len as u64).sum()
    }

    /// Bytes of device memory that the elements take, with what [`prepare`](Ordered::prepare) made.
    pub fn memory_bytes(&self) -> u64 {
        let of_tree = self.prepared.get().map_or(0, |prepared| prepared.memory_bytes() as u64);
        of_tree + self.levels.iter().map(|(_, elements)| elements.memory_bytes()).sum::<u64>()
    }

    /// Whether there is at most one level, of which all elements are known to live.
    fn is_clean(&self) -> bool {
        self.levels.len() <= 1 && self.live.get() == Some(&self.resident_len())
    }

    /// A stream that starts after everything that was queued on the device.
    fn ready_stream(&self) -> Result<Stream, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        Ok(stream)
    }

    /// Runs `queue` on a stream after everything that was queued on the device, and waits.
    fn waiting<R>(&self, queue: impl FnOnce(&Stream) -> Result<R, Error>) -> Result<R, Error> {
        self.device.waiting(queue)
    }
}

impl<K: DeviceKey, V: DeviceValue + Value, F: fmt::Debug> fmt::Debug for Ordered<K, V, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels: Vec<(u32, usize)> = self.levels.iter().map(|(index, level)| (index.get(), level.len)).collect();
        f.debug_struct("gpu::Ordered").field("form", &self.form).field("levels", &levels).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(warpset_host_tests)))]
mod tests;
