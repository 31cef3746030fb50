//! Live elements: cleanups, their number, and all of them in the order of their keys.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};

use warpset_gpu::{DeviceSlice, Stream};

use crate::Error;
use crate::gpu::device_run::{DeviceElements, upload_table};
use crate::gpu::{DeviceKey, DeviceValue, Dictionary};
use crate::policy::MergePolicy;

impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> Dictionary<K, V, P> {
    /// Drops tombstones and stale elements. Leaves one level; answers do not change. Waits.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn cleanup(&mut self) -> Result<(), Error> {
        let len = self.resident_len();
        if self.is_clean() && self.levels.iter().all(|(index, level)| *index == self.policy.level_for(level.len)) {
            self.policy.note_cleanup(len);
            return Ok(());
        }
        let live = self.waiting(|stream| self.merged_live(stream, None))?;
        self.set_live(live)
    }

    /// Replaces everything by these live elements. Waits.
    pub(in crate::gpu) fn set_live(&mut self, elements: DeviceElements<K::Stored, V>) -> Result<(), Error> {
        let len = elements.len;
        let index = self.policy.level_for(len);
        let levels = if len == 0 { Vec::new() } else { vec![(index, Arc::new(elements))] };
        let table = self.waiting(|stream| upload_table(stream, &levels))?;
        (self.levels, self.table) = (levels, Arc::new(table));
        (self.indexed, self.asked) = (OnceLock::new(), AtomicU64::new(0));
        self.policy.note_cleanup(len as u64);
        self.live = OnceLock::from(len as u64);
        self.retired.clear();
        Ok(())
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn clear(&mut self) -> Result<(), Error> {
        self.device.synchronize()?;
        let mut policy = self.policy;
        policy.note_cleanup(0);
        *self = Dictionary::empty(&self.device, policy)?;
        Ok(())
    }
}

/// Live elements.
impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Counts the keys that have a value. The first call after an update merges everything, in as much memory again.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn len(&self) -> Result<u64, Error> {
        if let Some(&len) = self.live.get() {
            return Ok(len);
        }
        let live = self.waiting(|stream| self.merged_live(stream, None))?;
        Ok(*self.live.get_or_init(|| live.len as u64))
    }

    /// Returns the bits of device memory per key that has a value.
    ///
    /// # Errors
    /// The errors of [`Dictionary::len`].
    pub fn bits_per_key(&self) -> Result<f64, Error> {
        Ok(8.0 * self.memory_bytes() as f64 / self.len()? as f64)
    }

    /// Whether no key has a value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        match self.live.get() {
            Some(&len) => Ok(len == 0),
            None => Ok(self.first_key_value()?.is_none()),
        }
    }

    /// Returns all keys that have a value, with their values, ascending, in device memory. Waits.
    ///
    /// For a dictionary that is clean (a [`SortedArray`](crate::gpu::SortedArray) after updates that wait, or any after
    /// [`cleanup`](Dictionary::cleanup)) this is its only level, without a copy; otherwise everything is merged, in as
    /// much memory again. If that is too much, use [chunks of ranges](Dictionary::range_chunks_device).
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn live_elements(&self) -> Result<LiveElements<K, V>, Error> {
        Ok(LiveElements(self.live_run()?))
    }

    /// Iterates over all keys that have a value, with their values, ascending, copied to the host in chunks. Starts
    /// with [`live_elements`](Dictionary::live_elements), so later updates of the dictionary do not affect it.
    ///
    /// # Errors
    /// [`Error::Gpu`], of this call and of each item.
    pub fn iter(&self) -> Result<Iter<K, V>, Error> {
        Ok(self.live_elements()?.into_iter())
    }

    pub(in crate::gpu) fn live_run(&self) -> Result<Arc<DeviceElements<K::Stored, V>>, Error> {
        if let (true, [(_, level)]) = (self.is_clean(), &self.levels[..]) {
            return Ok(level.clone());
        }
        let live = self.waiting(|stream| self.merged_live(stream, None))?;
        let _ = self.live.set(live.len as u64); // or it is known
        Ok(Arc::new(live))
    }

    /// Merges the live elements of a sorted batch, if any, and of all levels into one run. Waits for the stream.
    pub(in crate::gpu) fn merged_live(
        &self,
        stream: &Stream,
        batch: Option<&DeviceElements<K::Stored, V>>,
    ) -> Result<DeviceElements<K::Stored, V>, Error> {
        let levels = self.levels.iter().map(|(_, elements)| &**elements);
        let runs: Vec<&DeviceElements<K::Stored, V>> = batch.into_iter().chain(levels).collect();
        let total: usize = runs.iter().map(|run| run.len).sum();
        let mut live = DeviceElements::uninit(stream, total, false)?;
        if total == 0 {
            return Ok(live);
        }
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        // SAFETY: the outputs are new and as long as all runs, which nothing writes; this waits for the result.
        unsafe { V::merge_live(stream, &runs, &mut live, count.as_mut_slice())? };
        let mut len = [0];
        stream.download(&count, &mut len)?;
        live.len = len[0] as usize;
        if live.len + live.len / 8 < total {
            // Returns the memory of dropped elements.
            let mut exact = DeviceElements::<K::Stored, V>::uninit(stream, live.len, false)?;
            let (keys, carried, _) = exact.parts_mut::<u8>()?;
            stream.copy(keys, live.keys())?;
            stream.copy(carried, live.carried::<u8>()?)?;
            live = exact;
        }
        // SAFETY: rows are in the runs: the levels keep theirs until the stream has been waited for, and the batch is
        // freed in stream order.
        unsafe { live.settle(stream, 0)? };
        Ok(live)
    }
}

/// Live elements in device memory, with distinct, ascending keys: the result of [`Dictionary::live_elements`]. Later
/// updates of the dictionary do not affect them.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_lsm::Lsm;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let mut lsm = Lsm::<u32, u64>::builder().on(&device).build()?;
/// lsm.insert_bulk(&[3, 1, 2], &[30, 10, 20])?;
/// lsm.remove_bulk(&[2])?;
/// let live = lsm.live_elements()?;
/// assert_eq!(live.keys().to_vec()?, [1, 3]);
/// assert_eq!(live.values().to_vec()?, [10, 30]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct LiveElements<K: DeviceKey, V: DeviceValue>(Arc<DeviceElements<K::Stored, V>>);

impl<K: DeviceKey, V: DeviceValue> LiveElements<K, V> {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// Returns the keys.
    pub fn keys(&self) -> DeviceSlice<'_, K::Stored> {
        self.0.keys()
    }

    /// Returns the value of each key; empty for values `()`.
    pub fn values(&self) -> DeviceSlice<'_, V::Stored> {
        self.0.values()
    }
}

/// Iterates in chunks that are copied to the host.
impl<K: DeviceKey, V: DeviceValue> IntoIterator for LiveElements<K, V> {
    type Item = Result<(K, V), Error>;
    type IntoIter = Iter<K, V>;

    fn into_iter(self) -> Iter<K, V> {
        Iter { left: 0..self.len(), live: self, keys: Vec::new(), values: Vec::new(), at: 0 }
    }
}

impl<K: DeviceKey, V: DeviceValue> fmt::Debug for LiveElements<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LiveElements").field("len", &self.len()).finish()
    }
}

/// Elements per copy.
const CHUNK: usize = 1 << 16;

/// Live elements of a dictionary in device memory, ascending, copied to the host in chunks: the result of
/// [`Dictionary::iter`]. Ends after an error.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_lsm::{Error, SortedArray};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let array = SortedArray::<u32, u32>::builder().on(&device).build_from(&[3, 1], &[30, 10])?;
/// let elements: Vec<(u32, u32)> = array.iter()?.collect::<Result<_, Error>>()?;
/// assert_eq!(elements, [(1, 10), (3, 30)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Iter<K: DeviceKey, V: DeviceValue> {
    live: LiveElements<K, V>,
    /// Places that have not been copied yet.
    left: std::ops::Range<usize>,
    keys: Vec<K>,
    values: Vec<V>,
    at: usize,
}

impl<K: DeviceKey, V: DeviceValue> Iter<K, V> {
    /// Copies the next chunk.
    fn refill(&mut self) -> Result<(), Error> {
        let len = self.left.len().min(CHUNK);
        let next = self.left.start..self.left.start + len;
        self.keys.resize(len, K::zeroed());
        self.values.resize(len, V::NONE);
        let stored = if V::WORDS == 0 { 0..0 } else { next.clone() };
        let (keys, values) = (self.live.keys().slice(next), self.live.values().slice(stored));
        keys.device().waiting(|stream| {
            K::download(stream, keys, &mut self.keys)?;
            stream.download(values, V::stored_mut(&mut self.values))
        })?;
        self.left.start += len;
        self.at = 0;
        Ok(())
    }
}

impl<K: DeviceKey, V: DeviceValue> Iterator for Iter<K, V> {
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.keys.len() {
            if self.left.is_empty() {
                return None;
            }
            if let Err(error) = self.refill() {
                self.left.start = self.left.end;
                return Some(Err(error));
            }
        }
        let item = (self.keys[self.at], self.values[self.at]);
        self.at += 1;
        Some(Ok(item))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        // At least one item is left, possibly an error, unless all have been copied.
        let ready = self.keys.len() - self.at;
        (ready + usize::from(!self.left.is_empty()), Some(ready + self.left.len()))
    }
}

impl<K: DeviceKey, V: DeviceValue> std::iter::FusedIterator for Iter<K, V> {}

impl<K: DeviceKey, V: DeviceValue> fmt::Debug for Iter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("at_most", &self.size_hint().1).finish_non_exhaustive()
    }
}
