//! How host slices travel: in chunks through pinned memory, on two lanes that take turns.
//!
//! A lane is a stream with buffers of its own. While the kernels of one lane run, the host fills the pinned buffer of the
//! other and the copy engines move its data, in both directions at once.

use std::ops::Range;

use rayon::prelude::*;
use warpset_gpu::{Device, DeviceVec, GpuError, PinnedVec, Stream};
use warpset_kernels::keys::KeySlice;
use warpset_simt::Global;

use super::DeviceLayout;
use super::keys::{KeyClass, bring_string_hashes};
use crate::Key;
use crate::key::sealed::Raw;

/// Keys of a chunk unless set otherwise: 32 MiB of `u64` keys.
const DEFAULT_CHUNK_KEYS: usize = 1 << 22;
/// Items that one task copies or hashes on the host.
const TASK: usize = 1 << 15;

/// The lanes of a filter, and how much they carry.
pub(super) struct Staging {
    chunk_keys: usize,
    lanes: Vec<Lane>,
}

impl Default for Staging {
    fn default() -> Staging {
        Staging { chunk_keys: DEFAULT_CHUNK_KEYS, lanes: Vec::new() }
    }
}

/// A stream and the buffers whose contents travel on it.
pub(super) struct Lane {
    pub(super) stream: Stream,
    /// Keys, two `u32` ones in a word.
    host_keys: PinnedVec<u64>,
    keys: DeviceVec<u64>,
    /// One word a key, where the layout wants string hashes.
    string_hashes: Option<DeviceVec<u32>>,
    /// One bit a key.
    host_answers: PinnedVec<u64>,
    pub(super) answers: DeviceVec<u64>,
    /// Whose answers are under way.
    waiting: Option<Range<usize>>,
}

impl Lane {
    fn new(device: &Device, keys: usize) -> Result<Lane, GpuError> {
        let answers = keys.div_ceil(64);
        Ok(Lane {
            stream: device.new_stream()?,
            host_keys: device.pinned(keys)?,
            keys: device.alloc_uninit(keys)?,
            string_hashes: None,
            host_answers: device.pinned(answers)?,
            answers: device.alloc_uninit(answers)?,
            waiting: None,
        })
    }

    /// The string hashes of the keys, if there are any.
    pub(super) fn string_hashes(&self) -> Option<Global<u32>> {
        self.string_hashes.as_ref().map(DeviceVec::global)
    }

    /// Waits for the lane, and hands over the answers that it brought.
    fn finish(&mut self, take: &mut impl FnMut(Range<usize>, &[u64])) -> Result<(), GpuError> {
        let waiting = self.waiting.take();
        self.stream.synchronize()?;
        if let Some(range) = waiting {
            take(range.clone(), &self.host_answers[..range.len().div_ceil(64)]);
        }
        Ok(())
    }

    /// Fills the pinned buffer with keys. The lane is idle before.
    fn fill<K: Key, L: DeviceLayout>(&mut self, layout: &L, keys: &[K]) -> (KeyClass, usize) {
        let class = class_of(keys);
        let words = (keys.len() * class.bytes()).div_ceil(8);
        let pinned = &mut self.host_keys[..words];
        match K::raw(keys) {
            Raw::U32(keys) => copy(&mut bytemuck::cast_slice_mut(pinned)[..keys.len()], keys),
            Raw::U64(keys) | Raw::Hashes(keys) => copy(pinned, keys),
            Raw::Other => {
                let hash = |(to, key): (&mut u64, &K)| *to = L::hash_of(&layout.probe(key));
                pinned.par_iter_mut().with_min_len(TASK / 64).zip(keys).for_each(hash);
            }
        }
        (class, words)
    }

    /// Fills the pinned buffer and queues the upload to the lane's own buffer.
    fn load<K: Key, L: DeviceLayout>(&mut self, layout: &L, keys: &[K]) -> Result<KeySlice, GpuError> {
        let (class, words) = self.fill(layout, keys);
        // SAFETY: the pinned buffer belongs to the lane, which is waited for before it is filled again or dropped.
        unsafe { self.stream.upload_async(self.keys.slice_mut(..words), &self.host_keys[..words])? };
        let (kind, spread) = layout.hashing(class);
        let slice = KeySlice::new(self.keys.slice(..words).global(), kind, spread);
        if let Some(function) = layout.string_function() {
            let buffer = match self.string_hashes.take() {
                Some(buffer) => buffer,
                None => self.stream.device().alloc_uninit(self.keys.len())?,
            };
            let buffer = self.string_hashes.insert(buffer);
            // SAFETY: keys and hashes are the lane's, and all work on them is queued on its stream.
            unsafe { bring_string_hashes(&self.stream, function, keys, slice, buffer)? };
        }
        Ok(slice)
    }
}

/// A lane that is dropped while its copies are under way, as by a panic in a key, waits for them.
impl Drop for Lane {
    fn drop(&mut self) {
        // An error ends the copies too.
        let _ = self.stream.synchronize();
    }
}

/// How the keys travel.
fn class_of<K: Key>(keys: &[K]) -> KeyClass {
    match K::raw(keys) {
        Raw::U32(_) => KeyClass::U32,
        Raw::U64(_) => KeyClass::U64,
        Raw::Hashes(_) | Raw::Other => KeyClass::Hashes,
    }
}

/// Copies on as many threads as it takes to keep up with the bus.
fn copy<T: Copy + Send + Sync>(to: &mut [T], from: &[T]) {
    to.par_chunks_mut(TASK).zip(from.par_chunks(TASK)).for_each(|(to, from)| to.copy_from_slice(from));
}

impl Staging {
    pub(super) fn set_chunk_keys(&mut self, keys: usize) {
        self.chunk_keys = keys.clamp(1, 1 << 30).next_multiple_of(64);
        self.lanes.clear();
    }

    /// Makes sure of idle lanes for `n` keys, the buffers of which are all there before anything is queued.
    fn prepare(&mut self, device: &Device, n: usize) -> Result<usize, GpuError> {
        // A call that a key's panic ended has left work under way, and answers that nobody asks for any more.
        let idle = self.lanes.iter_mut().try_for_each(|lane| {
            lane.waiting = None;
            lane.stream.synchronize()
        });
        if idle.is_err() {
            self.lanes.clear(); // their streams may be broken
        }
        idle?;
        // A small input gets small buffers; powers of two, so that growing inputs do not allocate each time.
        let chunk = self.chunk_keys.min(n.next_power_of_two().max(1 << 12)).next_multiple_of(64);
        let lanes = if n > chunk { 2 } else { 1 };
        if self.lanes.first().is_some_and(|lane| lane.keys.len() < chunk) {
            self.lanes.clear();
        }
        while self.lanes.len() < lanes {
            let chunk = self.lanes.first().map_or(chunk, |lane| lane.keys.len());
            self.lanes.push(Lane::new(device, chunk)?);
        }
        Ok(chunk)
    }

    /// Brings all of `keys` to `to`, and waits.
    pub(super) fn gather<K: Key, L: DeviceLayout>(
        &mut self,
        device: &Device,
        layout: &L,
        keys: &[K],
        to: &mut DeviceVec<u64>,
    ) -> Result<KeySlice, GpuError> {
        let chunk = self.prepare(device, keys.len())?;
        let count = self.lanes.len();
        let mut first_word = 0;
        let mut result = Ok(());
        for (i, keys) in keys.chunks(chunk).enumerate() {
            let lane = &mut self.lanes[i % count];
            result = (|| {
                lane.stream.synchronize()?;
                let (_, words) = lane.fill(layout, keys);
                let target = to.slice_mut(first_word..first_word + words);
                first_word += words; // chunks are of even length, so `u32` keys fill whole words but in the last
                // SAFETY: the pinned buffer belongs to the lane, which is waited for before it is filled again.
                unsafe { lane.stream.upload_async(target, &lane.host_keys[..words]) }
            })();
            if result.is_err() {
                break;
            }
        }
        for lane in &self.lanes {
            result = result.and(lane.stream.synchronize());
        }
        if result.is_err() {
            self.lanes.clear(); // their streams may be broken
        }
        result?;
        let (kind, spread) = layout.hashing(class_of(keys));
        Ok(KeySlice::new(to.slice(..first_word).global(), kind, spread))
    }

    /// Runs `work` on every chunk of `keys`, and `take` on the answers of every chunk if there are any to bring back.
    ///
    /// `work` queues kernels on the lane's stream that read the keys and, with `answers`, write a bit a key; they run
    /// beside those of the other lane. The whole input has been waited for on return, also on an error.
    pub(super) fn run<K: Key, L: DeviceLayout>(
        &mut self,
        device: &Device,
        layout: &L,
        keys: &[K],
        answers: bool,
        mut work: impl FnMut(&mut Lane, KeySlice, usize) -> Result<(), crate::Error>,
        mut take: impl FnMut(Range<usize>, &[u64]),
    ) -> Result<(), crate::Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let chunk = self.prepare(device, keys.len())?;
        let count = self.lanes.len();
        let mut result = Ok(());
        for (i, first) in (0..keys.len()).step_by(chunk).enumerate() {
            let range = first..keys.len().min(first + chunk);
            let lane = &mut self.lanes[i % count];
            result = (|| {
                lane.finish(&mut take)?;
                let n = range.len();
                let slice = lane.load(layout, &keys[range.clone()])?;
                work(lane, slice, n)?;
                if answers {
                    let words = n.div_ceil(64);
                    // SAFETY: the pinned buffer belongs to the lane, which is waited for before anyone reads it.
                    unsafe {
                        lane.stream.download_async(lane.answers.slice(..words), &mut lane.host_answers[..words])?;
                    }
                    lane.waiting = Some(range);
                }
                Ok(())
            })();
            if result.is_err() {
                break;
            }
        }
        for lane in &mut self.lanes {
            if result.is_err() {
                lane.waiting = None;
            }
            let finished = lane.finish(&mut take);
            if result.is_ok() {
                result = finished.map_err(crate::Error::from);
            }
        }
        if result.is_err() {
            self.lanes.clear(); // their streams may be broken
        }
        result
    }
}
