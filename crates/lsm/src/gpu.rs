//! Dictionaries in device memory: the same levels as on the host, built and queried by kernels.
//!
//! [`Lsm`], [`SortedArray`] and [`Snapshot`] are one type, [`Dictionary`], with three [policies](crate::MergePolicy):
//! all have the same queries; the policy determines what an update does. Methods on host slices copy them to the device
//! first. Methods that end in `_device` take device memory; methods that end in `_async` also take a stream, and do not
//! wait. Single keys, files and views require a copy on the host: `to_host`. [`ShardedLsm`] and [`ShardedSortedArray`]
//! divide one dictionary among several devices.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use warpset_gpu::{Device, DeviceVec, Event, Stream};

use crate::level::LevelIndex;
use crate::policy::ReadOnlyPolicy;
use crate::{Error, Value};

mod array;
mod build;
mod builder;
mod device_key;
mod device_run;
mod host_transfer;
mod index;
mod ordered_map;
mod query;
mod sharded;
mod tree;
mod update;
mod wide_values;

pub use array::SortedArray;
pub use builder::DeviceBuilder;
pub use device_key::{CombinedValue, DeviceKey, DeviceValue, StoredKey};
use device_run::{DeviceElements, upload_table};
pub use index::search_index::LookupMethod;
use index::search_index::TreeIndex;
pub use query::DeviceRanges;
pub use query::neighbours::NeighboursMut;
pub use query::range_chunks::{RangeChunk, RangeChunks, RangeCursor};
pub use sharded::{ShardedBuilder, ShardedDictionary, ShardedLsm, ShardedSortedArray};
pub use tree::Lsm;
pub use update::cleanup::{Iter, LiveElements};
pub use warpset_primitives::reduce::ByKeyKernels;

/// Dictionary in device memory, by its merge policy: a tree ([`Lsm`]), one array ([`SortedArray`]), or an earlier state
/// of one of these ([`Snapshot`]).
pub struct Dictionary<K: DeviceKey, V: DeviceValue, P> {
    policy: P,
    device: Device,
    /// Occupied levels by ascending index: from the newest elements to the oldest.
    levels: Vec<Placed<K::Stored, V>>,
    /// Addresses of `levels`, for kernels.
    table: Arc<DeviceVec<u64>>,
    /// Search data that make queries fast, once built.
    indexed: OnceLock<Arc<TreeIndex>>,
    /// Keys that waiting calls have looked up since the last update.
    asked: AtomicU64,
    live: OnceLock<u64>,
    /// Memory that queued work of `_async` methods may still read, each with the event after that work.
    retired: VecDeque<AfterEvent<K::Stored, V>>,
}

/// State of a dictionary in device memory when `snapshot` was called; answers every query while the dictionary changes.
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
pub type Snapshot<K, V> = Dictionary<K, V, ReadOnlyPolicy>;

/// Level with its index.
type Placed<K, V> = (LevelIndex, Arc<DeviceElements<K, V>>);
/// Memory that is freed once the event has passed.
type AfterEvent<K, V> = (Event, Retired<K, V>);

/// Levels and tables that are no longer part of the dictionary. Queued work may still read them, so the owner keeps
/// them until that work has finished.
#[expect(dead_code, reason = "held, not read")]
struct Retired<K, V: DeviceValue> {
    levels: Vec<Placed<K, V>>,
    table: Arc<DeviceVec<u64>>,
    indexed: Option<Arc<TreeIndex>>,
}

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    pub(crate) fn empty(device: &Device, policy: P) -> Result<Self, Error> {
        let stream = device.new_stream()?;
        let table = upload_table::<K::Stored, V>(&stream, &[])?;
        stream.synchronize()?;
        Ok(Dictionary {
            policy,
            device: device.clone(),
            levels: Vec::new(),
            table: Arc::new(table),
            indexed: OnceLock::new(),
            asked: AtomicU64::new(0),
            live: OnceLock::from(0),
            retired: VecDeque::new(),
        })
    }

    /// Returns the current state, which can be queried while this dictionary changes. The levels are shared.
    pub fn snapshot(&self) -> Snapshot<K, V> {
        self.with_policy(ReadOnlyPolicy(()))
    }

    /// Returns a dictionary with this policy that shares the levels.
    fn with_policy<Q>(&self, policy: Q) -> Dictionary<K, V, Q> {
        Dictionary {
            policy,
            device: self.device.clone(),
            levels: self.levels.clone(),
            table: self.table.clone(),
            indexed: self.indexed.clone(),
            asked: AtomicU64::new(self.asked.load(Ordering::Relaxed)),
            live: self.live.clone(),
            retired: VecDeque::new(),
        }
    }

    /// Returns the device that holds the dictionary.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the number of stored elements: live ones, tombstones and stale ones.
    pub fn resident_len(&self) -> u64 {
        self.levels.iter().map(|(_, elements)| elements.len as u64).sum()
    }

    /// Returns the bytes of device memory of the elements and of the data that [`prepare`](Dictionary::prepare) made.
    pub fn memory_bytes(&self) -> u64 {
        let of_tree = self.indexed.get().map_or(0, |indexed| indexed.memory_bytes() as u64);
        of_tree + self.levels.iter().map(|(_, elements)| elements.memory_bytes()).sum::<u64>()
    }

    /// Whether there is at most one level, and all its elements are known to live.
    fn is_clean(&self) -> bool {
        self.levels.len() <= 1 && self.live.get() == Some(&self.resident_len())
    }

    /// Returns a stream that starts after everything queued on the device so far.
    fn ready_stream(&self) -> Result<Stream, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        Ok(stream)
    }

    /// Runs `queue` on a stream after everything queued on the device so far, and waits.
    fn waiting<R>(&self, queue: impl FnOnce(&Stream) -> Result<R, Error>) -> Result<R, Error> {
        self.device.waiting(queue)
    }
}

impl<K: DeviceKey, V: DeviceValue + Value, P: fmt::Debug> fmt::Debug for Dictionary<K, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels: Vec<(u32, usize)> = self.levels.iter().map(|(index, level)| (index.get(), level.len)).collect();
        f.debug_struct("gpu::Dictionary").field("policy", &self.policy).field("levels", &levels).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
