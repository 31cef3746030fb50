//! Host slices on their way to the device: in chunks through pinned memory, on lanes that take turns.
//!
//! A lane is a stream with memory of its own, on both sides of the bus. While the kernels of one lane run, another
//! thread fills the pinned memory of the next, and the copy engines move data in both directions at once.
//!
//! Each call makes its lanes and drops them. The device keeps their parts: streams, device memory, and pinned memory,
//! which is slow to allocate. Calls of all threads and structures share them.

use std::ops::Range;

use bytemuck::Pod;
use warpset_base::key::Key;
use warpset_base::key::sealed::Raw;
use warpset_kernels::batch::keys::KeySlice;
use warpset_simt::{Global, GlobalMut};

use super::hashing::{copy_many, each};
use super::strings::hash_integers;
use super::{Answers, Hashing, KeyClass};
use crate::error::{GpuError, Result};
use crate::workers::{Queue, beside};
use crate::{Device, DeviceVec, Stream, lane};

/// Keys of a chunk unless set otherwise: 32 MiB of `u64` keys.
pub const DEFAULT_CHUNK_KEYS: usize = 1 << 22;
/// The fewest keys that a lane is made for.
const LEAST_CHUNK_KEYS: usize = 1 << 12;
/// Words that the parts of a lane's memory are aligned to: 256 bytes, as an allocation of its own would be.
const PART: usize = 32;

/// Reply of the device to each key: the values of a chunk's keys, in whole words, then the bits, 64 to a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Bytes of a value, or zero.
    value: usize,
    has_bit: bool,
}

impl Reply {
    /// Nothing comes back.
    pub const NONE: Reply = Reply { value: 0, has_bit: false };
    /// One bit per key.
    pub const BITS: Reply = Reply { value: 0, has_bit: true };
    /// One `u64` per key.
    pub const WORDS: Reply = Reply { value: size_of::<u64>(), has_bit: false };

    /// Returns the number of words of the values of `keys` keys.
    const fn value_words(self, keys: usize) -> usize {
        (keys * self.value).div_ceil(8)
    }

    /// Returns the number of words of the replies to `keys` keys.
    const fn words(self, keys: usize) -> usize {
        self.value_words(keys) + if self.has_bit { keys.div_ceil(64) } else { 0 }
    }
}

/// The way of host keys to a device, for one structure.
#[derive(Clone, Copy)]
pub struct Staging<'d> {
    device: &'d Device,
    hashing: Hashing,
    chunk_keys: usize,
}

/// Keys that have arrived when the kernels queued on `stream` run.
pub struct Chunk<'l> {
    /// Stream of the transfer. Work on the keys is queued here, and runs beside that of other lanes.
    pub stream: &'l Stream,
    /// Range of the slice's keys; the first number is a multiple of 64.
    pub range: Range<usize>,
    /// Keys in the form that kernels take.
    pub keys: KeySlice,
    /// String hashes of the keys, if the structure uses them.
    pub string_hashes: Option<Global<u32>>,
    /// Destination of the replies; no other work uses this memory.
    pub replies: GlobalMut<u64>,
}

impl<'d> Staging<'d> {
    /// Stages keys in chunks of [`DEFAULT_CHUNK_KEYS`].
    pub fn new(device: &'d Device, hashing: Hashing) -> Staging<'d> {
        Staging { device, hashing, chunk_keys: DEFAULT_CHUNK_KEYS }
    }

    /// Sets the number of keys per chunk: more hide launch costs, fewer take less memory. Rounded up to a multiple of
    /// 64.
    pub fn chunk_keys(self, keys: usize) -> Staging<'d> {
        Staging { chunk_keys: keys.clamp(1, 1 << 30).next_multiple_of(64), ..self }
    }

    /// Runs `work` on every chunk of `keys`, and `take` on the replies to every chunk, if any, in the order of the
    /// keys.
    ///
    /// `work` queues kernels on the chunk's stream that read the keys and write the replies. On return all queued work
    /// is done, also after an error or a panic of a key's hash. Empty input does nothing.
    ///
    /// # Errors
    /// The first of `work`, or of a copy or an allocation; then some chunks may have been worked on.
    pub fn run<K: Key, E: From<GpuError>>(
        &self,
        keys: &[K],
        reply: Reply,
        mut work: impl FnMut(&Chunk<'_>) -> Result<(), E>,
        mut take: impl FnMut(Range<usize>, &[u64]),
    ) -> Result<(), E> {
        if keys.is_empty() {
            return Ok(());
        }
        let chunk = self.chunk_of(keys.len());
        let parts = Parts::new(self.hashing.class_of(keys), self.hashing.string_hash().is_some(), reply, chunk);
        let chunks = keys.len().div_ceil(chunk);
        // One that is filled, one whose work is queued, and one whose replies are taken.
        let mut lanes = self.lanes(chunks.min(3), parts.words, parts.words)?;
        let load = |lane: &mut Lane, i: usize| {
            lane.load(&self.hashing, keys, &parts, i * chunk..keys.len().min((i + 1) * chunk))
        };
        let mut queue = |lane: &mut Lane| -> Result<(), E> {
            work(&lane.chunk(&self.hashing, &parts))?;
            Ok(lane.reply(&parts, reply)?)
        };
        // On an error, dropping the lanes waits for them.
        if lanes.len() > 1 {
            let (free, loaded) = (Queue::new(), Queue::new());
            lanes.drain(1..).for_each(|lane| free.push(lane));
            // Either side ends when the other has ended.
            let fill = || -> Result<()> {
                let _end = loaded.close_at_end();
                for i in 0..chunks {
                    let Some(mut lane) = free.pop() else { break };
                    load(&mut lane, i)?;
                    loaded.push(lane);
                }
                Ok(())
            };
            let answer = || -> Result<(), E> {
                let (_end, mut before) = (free.close_at_end(), None::<Lane>);
                lanes.drain(..).for_each(|lane| free.push(lane));
                while let Some(mut lane) = loaded.pop() {
                    queue(&mut lane)?;
                    if let Some(mut lane) = before.replace(lane) {
                        lane.finish(&parts, reply, &mut take)?;
                        free.push(lane);
                    }
                }
                before.map_or(Ok(()), |mut lane| Ok(lane.finish(&parts, reply, &mut take)?))
            };
            if let Ok((filled, answered)) = beside(fill, answer) {
                answered?;
                return Ok(filled?);
            }
        }
        for i in 0..chunks {
            load(&mut lanes[0], i)?;
            queue(&mut lanes[0])?;
            lanes[0].finish(&parts, reply, &mut take)?;
        }
        Ok(())
    }

    /// Writes the value of each key to `values`, and whether it is found to the bits of `found`. Either is empty if it
    /// is not asked. `queue` queues both for a chunk, on its stream.
    ///
    /// # Errors
    /// The errors of [`Staging::run`].
    ///
    /// # Panics
    /// If `values` or `found` is not empty and has no place for a key.
    pub fn answer<K: Key, V: Pod + Send + Sync, E: From<GpuError>>(
        &self,
        keys: &[K],
        values: &mut [V],
        found: &mut [u64],
        queue: impl FnMut(&Chunk<'_>, Answers, GlobalMut<V>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.answer_as(keys, values, found, copy_many, queue)
    }

    /// Answers keys as [`Staging::answer`] does, with answers of another type than the values of the device: `put`
    /// writes those of some keys.
    ///
    /// # Errors
    /// The errors of [`Staging::run`].
    ///
    /// # Panics
    /// As [`Staging::answer`] does.
    pub fn answer_as<K: Key, V: Pod, T, E: From<GpuError>>(
        &self,
        keys: &[K],
        answers: &mut [T],
        found: &mut [u64],
        put: impl Fn(&mut [T], &[V]),
        mut queue: impl FnMut(&Chunk<'_>, Answers, GlobalMut<V>) -> Result<(), E>,
    ) -> Result<(), E> {
        let reply = Reply { value: if answers.is_empty() { 0 } else { size_of::<V>() }, has_bit: !found.is_empty() };
        let work = |chunk: &Chunk<'_>| {
            let bits = chunk.replies.at(reply.value_words(chunk.range.len()));
            queue(chunk, Answers::bits_at(bits), chunk.replies.cast())
        };
        self.run(keys, reply, work, |range, replies| {
            let (column, bits) = replies.split_at(reply.value_words(range.len()));
            if reply.has_bit {
                found[range.start / 64..][..bits.len()].copy_from_slice(bits);
            }
            if reply.value > 0 {
                let column = &bytemuck::cast_slice::<u64, u8>(column)[..size_of::<V>() * range.len()];
                put(&mut answers[range], bytemuck::cast_slice(column));
            }
        })
    }

    /// Brings all of `keys` to `to`, which has a word for each, or two for keys that are no integers and have hashes of
    /// 128 bits, and waits.
    ///
    /// # Errors
    /// The driver's error of an allocation or a copy.
    pub fn gather<K: Key>(&self, keys: &[K], to: &mut DeviceVec<u64>) -> Result<KeySlice> {
        let class = self.hashing.class_of(keys);
        let (words, stream) = (class.words(keys.len()), || self.device.new_stream());
        match K::raw(keys) {
            Raw::U32(keys) | Raw::I32(keys) => {
                stream()?.upload(to.as_mut_slice().cast::<u32>()?.slice_mut(..keys.len()), keys)?;
            }
            Raw::U64(keys) | Raw::Hashes(keys) => stream()?.upload(to.slice_mut(..words), keys)?,
            Raw::Other => self.gather_hashes(keys, class, to)?,
        }
        Ok(self.hashing.key_slice(class, to.slice(..words).global()))
    }

    /// Brings the hashes of keys to the begin of `to`: one chunk is hashed while another is copied. Waits.
    fn gather_hashes<K: Key>(&self, keys: &[K], class: KeyClass, to: &mut DeviceVec<u64>) -> Result<()> {
        let chunk = self.chunk_of(keys.len());
        let mut lanes = self.lanes(keys.len().div_ceil(chunk).min(2), class.words(chunk), 0)?;
        let count = lanes.len();
        let mut first_word = 0;
        for (i, keys) in keys.chunks(chunk).enumerate() {
            let lane = &mut lanes[i % count];
            lane.wait()?;
            let words = class.words(keys.len());
            self.hashing.write(keys, &mut lane.lane.host[..words]);
            let target = to.slice_mut(first_word..first_word + words);
            first_word += words;
            lane.lane.is_busy = true;
            // SAFETY: the pinned memory is the lane's, which waits before it fills it again or gives it up.
            unsafe { lane.lane.stream.upload_async(target, &lane.lane.host[..words])? };
        }
        lanes.iter_mut().try_for_each(Lane::wait)
    }

    /// Writes the string hashes of keys that [`Staging::gather`] has brought, if the structure uses them: those of
    /// integers are computed on the device, those of other keys on the host. `to` has room for one per key.
    ///
    /// # Errors
    /// The driver's error of a copy or a launch.
    ///
    /// # Safety
    /// - `gathered` is what `gather` returned for these keys.
    /// - Both vectors stay allocated until `stream` has passed this work; nothing writes the keys, and nothing else
    ///   uses `to`.
    pub unsafe fn gather_string_hashes<K: Key>(
        &self,
        stream: &Stream,
        keys: &[K],
        gathered: KeySlice,
        to: &mut DeviceVec<u32>,
    ) -> Result<()> {
        let Some(function) = self.hashing.string_hash() else { return Ok(()) };
        if let Raw::Other = K::raw(keys) {
            let mut hashes = vec![0; keys.len()];
            each(keys, &mut hashes, |key| key.string_hash(function));
            return stream.upload(to.slice_mut(..keys.len()), &hashes);
        }
        // SAFETY: integers and hashes travel as they are; the rest is this function's contract.
        unsafe { hash_integers(stream, gathered, keys.len(), function, to.global_mut()) }
    }

    /// Returns the number of keys per chunk for `n` keys. A small input gets small lanes, of a power of two, so that
    /// growing inputs find memory of their size kept.
    fn chunk_of(&self, n: usize) -> usize {
        self.chunk_keys.min(n.next_power_of_two().max(LEAST_CHUNK_KEYS)).next_multiple_of(64)
    }

    /// Makes `count` lanes that take turns, at least one, or fewer if there is no memory for all.
    fn lanes(&self, count: usize, host_words: usize, device_words: usize) -> Result<Vec<Lane>> {
        let mut lanes = vec![Lane::new(self.device, host_words, device_words)?];
        while lanes.len() < count {
            match Lane::new(self.device, host_words, device_words) {
                Err(error) if error.is_out_of_memory() => break,
                lane => lanes.push(lane?),
            }
        }
        Ok(lanes)
    }
}

/// Parts of a lane's memory: keys, then string hashes, then replies. The layout is equal on both sides of the bus.
struct Parts {
    class: KeyClass,
    has_strings: bool,
    strings: usize,
    replies: usize,
    words: usize,
}

impl Parts {
    fn new(class: KeyClass, has_strings: bool, reply: Reply, keys: usize) -> Parts {
        let strings = class.words(keys).next_multiple_of(PART);
        let string_words = if has_strings { keys.div_ceil(2) } else { 0 };
        let replies = (strings + string_words).next_multiple_of(PART);
        Parts { class, has_strings, strings, replies, words: replies + reply.words(keys) }
    }
}

/// A lane, and the chunk on it.
struct Lane {
    lane: lane::Lane,
    /// Range of the keys that are there, or under way.
    loaded: Range<usize>,
    /// Whether replies to them are under way.
    has_replies: bool,
}

impl Lane {
    fn new(device: &Device, host_words: usize, device_words: usize) -> Result<Lane> {
        Ok(Lane { lane: lane::Lane::new(device, host_words, device_words)?, loaded: 0..0, has_replies: false })
    }

    fn wait(&mut self) -> Result<()> {
        self.lane.wait()
    }

    /// Waits, and hands over the replies that came back.
    fn finish(&mut self, parts: &Parts, reply: Reply, take: &mut impl FnMut(Range<usize>, &[u64])) -> Result<()> {
        self.wait()?;
        if std::mem::take(&mut self.has_replies) {
            take(self.loaded.clone(), &self.lane.host[parts.replies..][..reply.words(self.loaded.len())]);
        }
        Ok(())
    }

    /// Fills the pinned memory with some of the keys, and queues their upload. The lane is idle before.
    fn load<K: Key>(&mut self, hashing: &Hashing, keys: &[K], parts: &Parts, range: Range<usize>) -> Result<()> {
        self.loaded = range.clone();
        let keys = &keys[range];
        let mut words = parts.class.words(keys.len());
        hashing.write(keys, &mut self.lane.host[..words]);
        let mut hash_on_device = None;
        if let Some(function) = hashing.string_hash() {
            if let Raw::Other = K::raw(keys) {
                words = parts.strings + keys.len().div_ceil(2);
                let hashes = bytemuck::cast_slice_mut(&mut self.lane.host[parts.strings..words]);
                each(keys, &mut hashes[..keys.len()], |key| key.string_hash(function));
            } else {
                hash_on_device = Some(function);
            }
        }
        self.lane.is_busy = true;
        // SAFETY: the pinned memory is the lane's, which waits before it fills it again or gives it up.
        unsafe { self.lane.stream.upload_async(self.lane.device.slice_mut(..words), &self.lane.host[..words])? };
        if let Some(function) = hash_on_device {
            let Chunk { keys: slice, .. } = self.chunk(hashing, parts);
            let hashes = self.lane.device.global_mut().at(parts.strings).cast();
            // SAFETY: keys and hashes are the lane's, with room for both, and all work on them is queued on its stream.
            unsafe { hash_integers(&self.lane.stream, slice, keys.len(), function, hashes)? };
        }
        Ok(())
    }

    /// Returns the loaded keys.
    fn chunk(&mut self, hashing: &Hashing, parts: &Parts) -> Chunk<'_> {
        let string_hashes = self.lane.device.global_mut().at(parts.strings).cast::<u32>();
        Chunk {
            range: self.loaded.clone(),
            keys: hashing.key_slice(parts.class, self.lane.device.global()),
            string_hashes: parts.has_strings.then(|| string_hashes.into()),
            replies: self.lane.device.global_mut().at(parts.replies),
            stream: &self.lane.stream,
        }
    }

    /// Queues the download of the replies to the loaded keys.
    fn reply(&mut self, parts: &Parts, reply: Reply) -> Result<()> {
        if reply == Reply::NONE {
            return Ok(());
        }
        self.has_replies = true;
        let (n, first) = (self.loaded.len(), 8 * parts.replies);
        let (values, bits) = (first + reply.value * n, first + 8 * reply.value_words(n));
        let end = first + 8 * reply.words(n);
        if values == bits {
            return self.lane.fetch(first..end);
        }
        // No value is in the rest of the last word.
        self.lane.fetch(first..values)?;
        if bits < end { self.lane.fetch(bits..end) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
