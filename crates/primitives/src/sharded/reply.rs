//! Lookups: keys to their owners, and answers back in the order of the keys.

use std::mem;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use warpset_base::filter::{Filter, LengthMismatch, Take};
use warpset_base::key::{Hashed, Key};
use warpset_gpu::batch::{Answers, DEFAULT_CHUNK_KEYS, DeviceBatch, DeviceKeys, Staging, copy_many, expect_room};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::primitives::exchange::{self as kernels, BLOCK, FOUND_TILE, stride};
use warpset_simt::GlobalMut;

use super::route::{Beside, Routed, covering};
use super::{Failure, Part, Sharded, rounds_of};
use crate::{DeviceFilter, Result};

/// Number of keys below which a second round costs more than its overlap with the first one saves.
const FEW_KEYS: usize = 1 << 22;

/// Destination of answers: whether each key is found, its value, or both.
#[derive(Clone, Copy)]
pub struct Replies {
    /// Whether keys are found; none if that is not asked.
    pub found: Option<Answers>,
    /// Values of the keys, if their width is not 0.
    pub values: GlobalMut<u64>,
    /// Bytes of a value; 0 if values are not asked.
    width: usize,
    /// Value of a key that no part owns.
    absent: u64,
}

impl Replies {
    /// Takes whether keys are found.
    pub fn found(found: Answers) -> Self {
        Self { found: Some(found), values: found.words, width: 0, absent: 0 }
    }

    /// Takes values, aligned to the largest power of two up to 8 that divides their size, and whether keys are found if
    /// `found` is given.
    pub fn values<V>(values: GlobalMut<V>, found: Option<Answers>) -> Self {
        // The length is rounded up, since values may share a word.
        let words = words_of(size_of::<V>(), values.len());
        let values = GlobalMut::from_raw_parts(values.as_ptr().cast(), words);
        Self { found, values, width: size_of::<V>(), absent: 0 }
    }

    /// Sets the value of keys that no part owns, of up to 8 bytes. Without it they get zero.
    #[must_use]
    pub fn absent(self, absent: u64) -> Self {
        Self { absent, ..self }
    }

    /// Takes a value and a bit per key.
    ///
    /// # Errors
    /// If there are fewer values or bits than keys.
    pub fn for_keys<K: DeviceBatch, V: Pod>(
        keys: &K,
        values: &mut DeviceSliceMut<'_, V>,
        found: DeviceSliceMut<'_, u64>,
    ) -> std::result::Result<Self, LengthMismatch> {
        expect_room(keys.count(), values.len())?;
        let found = Answers::bits(found, keys.count())?;
        Ok(Self::values(values.global_mut(), Some(found)))
    }

    /// Returns this destination in the memory of a part: bits of found keys, and values.
    fn at(self, mut bits: DeviceSliceMut<'_, u64>, mut values: DeviceSliceMut<'_, u64>) -> Self {
        let found = self.found.map(|_| Answers::bits_at(bits.global_mut()));
        Self { found, values: values.global_mut(), ..self }
    }

    /// Returns the destination of the answers to the keys from `first` on, a multiple of 64.
    fn from(self, first: usize) -> Self {
        let found = self.found.map(|found| found.from(first));
        Self { found, values: self.values.at(words_of(self.width, first)), ..self }
    }
}

/// Keys, places for their values, and places for their bits.
pub type AnswerShare<'a, K, V> = (&'a [K], &'a mut [V], &'a mut [u64]);

/// Returns the words that hold `n` values of `width` bytes.
fn words_of(width: usize, n: usize) -> usize {
    (n * width).div_ceil(8)
}

/// Queues a copy of the first bytes of `from`.
fn copy_bytes(stream: &Stream, to: DeviceSliceMut<'_, u64>, from: &DeviceVec<u64>, bytes: usize) -> Result<()> {
    let mut to = to.cast::<u8>()?;
    Ok(stream.copy(to.slice_mut(..bytes), from.as_slice().cast::<u8>()?.slice(..bytes))?)
}

/// Queue of the answers of a part to the words that it gets: bits of found keys, and values, if they are asked.
pub trait Ask<F, W: Pod, E>:
    Fn(&F, &Stream, DeviceSlice<'_, W>, DeviceSliceMut<'_, u64>, DeviceSliceMut<'_, u64>) -> std::result::Result<(), E>
{
}

impl<F, W: Pod, E, A> Ask<F, W, E> for A where
    A: Fn(
        &F,
        &Stream,
        DeviceSlice<'_, W>,
        DeviceSliceMut<'_, u64>,
        DeviceSliceMut<'_, u64>,
    ) -> std::result::Result<(), E>
{
}

/// Streams of the rounds that take turns with others: one of the source, and one per part.
struct Lane {
    source: Stream,
    parts: Vec<Stream>,
}

impl<F, R> Sharded<F, R> {
    /// Makes the streams of rounds that begin after the work of `source`.
    fn lanes(&self, source: &Stream) -> Result<[Lane; 2]> {
        let lane = || -> Result<Lane> {
            let lane = Lane { source: source.device().new_stream()?, parts: self.part_streams()? };
            lane.source.wait_for(source)?;
            Ok(lane)
        };
        Ok([lane()?, lane()?])
    }

    /// Makes a stream per part.
    fn part_streams(&self) -> Result<Vec<Stream>> {
        Ok(self.devices.all().iter().map(Device::new_stream).collect::<std::result::Result<_, _>>()?)
    }
}

impl<F: Sync, R> Sharded<F, R> {
    /// Queues the answers to a round of `n` keys, grouped on the lane's source; waits for the grouping. The source
    /// follows all of the work.
    ///
    /// # Safety
    /// The contract of [`Sharded::reply_by`].
    unsafe fn reply_round<W: Pod, E: Failure>(
        &self,
        lane: &Lane,
        n: usize,
        routed: &Routed<W>,
        to: Replies,
        ask: &impl Ask<F, W, E>,
    ) -> std::result::Result<(), E> {
        // SAFETY: this function's contract.
        let answered = unsafe { self.reply_routed(lane, n, routed, to, ask) };
        if answered.is_err() {
            // Parts may still copy from `routed`, which the caller frees.
            lane.parts.iter().for_each(|stream| drop(stream.synchronize()));
        }
        answered
    }

    /// Queues the answers to a round of `n` grouped keys.
    ///
    /// # Safety
    /// The contract of [`reply_round`](Self::reply_round). After an error the work of the lane's parts may still read
    /// `routed`.
    unsafe fn reply_routed<W: Pod, E: Failure>(
        &self,
        lane: &Lane,
        n: usize,
        routed: &Routed<W>,
        to: Replies,
        ask: &impl Ask<F, W, E>,
    ) -> std::result::Result<(), E> {
        let source = &lane.source;
        let (stride, ranges) = (stride(n), routed.ranges(self.parts.len())?);
        let room = stride * ranges.len();
        let mut found = source.alloc_uninit::<u64>(to.found.map_or(0, |_| room / 64))?;
        let mut values = source.alloc_uninit::<u64>(words_of(to.width, room))?;
        // The place of the owner's bits and values. A stride is a multiple of 64, so each begins with a word.
        let bits_at = |at: usize, n: usize| match to.found {
            Some(_) => at * stride / 64..at * stride / 64 + n.div_ceil(64),
            None => 0..0,
        };
        let values_at = |at: usize, n: usize| {
            words_of(to.width, at * stride)..words_of(to.width, at * stride) + words_of(to.width, n)
        };
        let mut replies = Vec::new();
        let filled = ranges.into_iter().enumerate().filter(|(_, range)| !range.is_empty());
        let (here, there): (Vec<_>, Vec<_>) = filled.partition(|(at, _)| lane.parts[*at].device() == source.device());
        for (at, range) in there {
            let (stream, n) = (&lane.parts[at], range.len());
            let mut keys = stream.alloc_uninit::<W>(n)?;
            stream.copy(&mut keys, routed.words.slice(range))?;
            let mut bits = stream.alloc_uninit::<u64>(bits_at(at, n).len())?;
            let mut values = stream.alloc_uninit::<u64>(values_at(at, n).len())?;
            ask(&self.parts[at], stream, keys.as_slice(), bits.as_mut_slice(), values.as_mut_slice())?;
            replies.push((at, n, bits, values));
        }
        // After the others, because their copies follow what the source's stream holds.
        for (at, range) in here {
            let (bits, values) =
                (found.slice_mut(bits_at(at, range.len())), values.slice_mut(values_at(at, range.len())));
            ask(&self.parts[at], source, routed.words.slice(range), bits, values)?;
        }
        for (at, n, bits, theirs) in replies {
            // Only what has been written: the last word may have places without an answer.
            if to.found.is_some() {
                copy_bytes(source, found.slice_mut(bits_at(at, n)), &bits, n.div_ceil(32) * 4)?;
            }
            copy_bytes(source, values.slice_mut(values_at(at, n)), &theirs, n * to.width)?;
        }
        let places = routed.places.global();
        // SAFETY: the places are those of the owners' answers, which have been written or copied; memory is freed in
        // the order of the stream; the rest is this function's contract.
        unsafe {
            if to.width > 0 {
                let (answers, width, absent, out) = (values.global(), to.width as u32, to.absent, to.values);
                kernels::exchange_values { answers, places, n, width, absent, out }
                    .launch(source, covering(source, n))?;
            }
            if let Some(Answers { words: out, form }) = to.found {
                let config = LaunchConfig::covering(n.div_ceil(FOUND_TILE) * BLOCK as usize, BLOCK);
                kernels::exchange_found { answers: found.global(), places, n, form, out }.launch(source, config)?;
            }
        }
        Ok(())
    }

    /// Queues the answers to `n` keys on any one of the devices, after the work of `stream`. `route` queues the
    /// grouping of some keys on the stream and the device in the place that it gets, and `ask` those of a part to the
    /// words that travel: a bit per word if `to` asks for bits, and a value if it asks for values. Waits for the
    /// grouping of each round. `others` are the devices of keys and answers.
    ///
    /// # Errors
    /// Memory of a device that has no part; failed allocations and launches, and the errors of `route` and `ask`.
    ///
    /// # Safety
    /// - `to` has a place for the answers to all keys. Until `stream` has passed this work, the structure, the keys and
    ///   the answers stay allocated; nothing writes the structure or the keys, and nothing else accesses the answers.
    /// - `route` and `ask` queue all their work on the stream that they get; `route` groups the keys of its range, and
    ///   `ask` writes an answer per word.
    pub unsafe fn reply_by<W: Pod, E: Failure>(
        &self,
        stream: &Stream,
        n: usize,
        others: &[&Device],
        to: Replies,
        route: impl Fn(usize, &Stream, Range<usize>) -> std::result::Result<Routed<W>, E>,
        ask: impl Ask<F, W, E>,
    ) -> std::result::Result<(), E> {
        const OPERATION: &str = "a lookup in a structure on several devices";
        if n == 0 {
            return Ok(());
        }
        stream.device().expect_all_here(others.iter().copied(), OPERATION)?;
        let place = self.place_of(stream.device(), OPERATION)?;
        let lanes = self.lanes(stream)?;
        // While the parts work on one round, the next one is grouped.
        let (_, round) = rounds_of(n, self.round, if n < FEW_KEYS { 1 } else { 2 });
        let range = |i: usize| n.min(i * round)..n.min((i + 1) * round);
        let lane = |i: usize| &lanes[i % lanes.len()];
        let route = |i: usize| match range(i) {
            keys if keys.is_empty() => Ok(None),
            keys => route(place, &lane(i).source, keys).map(Some),
        };
        // The next round is grouped before the answers to this one are queued, which would keep the device busy.
        let queued = route(0).and_then(|mut next| {
            for i in 0.. {
                let Some(routed) = next else { break };
                next = route(i + 1)?;
                // SAFETY: `stream` waits for the lanes below; the rest is this function's contract.
                unsafe { self.reply_round(lane(i), range(i).len(), &routed, to.from(range(i).start), &ask)? };
            }
            Ok(())
        });
        let queued = queued.and_then(|()| Ok(lanes.iter().try_for_each(|lane| stream.wait_for(&lane.source))?));
        settled(&lanes, queued)
    }
}

impl<F: Sync> Sharded<F> {
    /// Queues the answers to keys on any one of the devices, after the work of `stream`: `ask` queues those of a part
    /// to the words that travel. Waits for the grouping of each round. `others` are the devices of the destination.
    ///
    /// # Errors
    /// Memory of a device that has no part; failed allocations and launches, and the errors of `ask`.
    ///
    /// # Safety
    /// The contract of [`reply_by`](Self::reply_by); `ask` writes in the form of its replies.
    pub unsafe fn reply_async<K: DeviceKeys, E: Failure>(
        &self,
        stream: &Stream,
        keys: K,
        others: &[&Device],
        to: Replies,
        ask: impl Fn(&F, &Stream, DeviceSlice<'_, u64>, Replies) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let others: Vec<&Device> = [keys.device()].into_iter().chain(others.iter().copied()).collect();
        // SAFETY: this function's contract; the keys of a part are as many as its range.
        unsafe {
            let route = |place: usize, stream: &Stream, range: Range<usize>| {
                let part = keys.part(range);
                let hashed = part.kernel_keys(&self.router.hashing, stream)?;
                Ok(self.router.route(stream, place, hashed.keys, part.count(), Beside::Places)?)
            };
            self.reply_by(stream, keys.count(), &others, to, route, |part, stream, keys, bits, values| {
                ask(part, stream, keys, to.at(bits, values))
            })
        }
    }

    /// Answers keys of the host: `values` has a place for the value of each key, and `found` a bit that says whether it
    /// is found. Either is empty if it is not asked.
    ///
    /// # Errors
    /// Failed allocations, copies and launches, and the errors of `ask`.
    ///
    /// # Safety
    /// The contract of [`reply_async`](Self::reply_async) for `ask`.
    pub unsafe fn reply_bulk<K: Key, V: Pod + Send + Sync, E: Failure>(
        &self,
        keys: &[K],
        values: &mut [V],
        found: &mut [u64],
        ask: impl Fn(&F, &Stream, DeviceSlice<'_, u64>, Replies) -> std::result::Result<(), E> + Sync,
    ) -> std::result::Result<(), E> {
        // SAFETY: the contract of this function.
        unsafe { self.reply_bulk_as(keys, values, found, 0, copy_many, ask) }
    }

    /// Answers keys as [`reply_bulk`](Self::reply_bulk) does, with answers of another type than the values of the
    /// device: `put` writes those of some keys. A key that no part owns has the value `absent`.
    ///
    /// # Errors
    /// The errors of [`reply_bulk`](Self::reply_bulk).
    ///
    /// # Safety
    /// The contract of [`reply_bulk`](Self::reply_bulk).
    pub unsafe fn reply_bulk_as<K: Key, V: Pod, T: Send, E: Failure>(
        &self,
        keys: &[K],
        values: &mut [T],
        found: &mut [u64],
        absent: u64,
        put: impl Fn(&mut [T], &[V]) + Sync,
        ask: impl Fn(&F, &Stream, DeviceSlice<'_, u64>, Replies) -> std::result::Result<(), E> + Sync,
    ) -> std::result::Result<(), E> {
        let (has_values, has_bits) = (!values.is_empty(), !found.is_empty());
        let shares = self.answer_shares(keys, values, found);
        let answered = self.devices.each(|place, device| {
            let mut share = shares[place].lock().unwrap_or_else(PoisonError::into_inner);
            let (keys, values, found) = &mut *share;
            device.synchronize()?;
            // Lanes with values are twice as large.
            let chunk = self.round.min(if has_values { DEFAULT_CHUNK_KEYS } else { 2 * DEFAULT_CHUNK_KEYS });
            let lanes = keys.len().div_ceil(chunk).clamp(1, 3);
            let mut streams = (0..lanes).map(|_| self.part_streams()).collect::<Result<Vec<_>>>()?;
            Staging::new(device, self.router.hashing).chunk_keys(chunk).answer_as(
                keys,
                values,
                found,
                &put,
                |chunk, found, out| {
                    streams.rotate_left(1);
                    let lane = Lane { source: chunk.stream.clone(), parts: streams[0].clone() };
                    let (n, found) = (chunk.range.len(), has_bits.then_some(found));
                    let to = match found {
                        Some(found) if !has_values => Replies::found(found),
                        found => Replies::values(out, found).absent(absent),
                    };
                    // SAFETY: the keys arrive on the chunk's stream, in whose order memory is freed; the parts are
                    // borrowed until `answer` has waited for it; `ask` has this function's contract.
                    unsafe {
                        let routed = self.router.route(chunk.stream, place, chunk.keys, n, Beside::Places)?;
                        self.reply_round(&lane, n, &routed, to, &|part, stream, keys, bits, values| {
                            ask(part, stream, keys, to.at(bits, values))
                        })
                    }
                },
            )
        });
        answered.into_iter().collect()
    }
}

impl<F, R> Sharded<F, R> {
    /// Divides keys of the host, and the places of their answers, among the devices. Either kind of places may be
    /// empty.
    pub fn answer_shares<'a, K, V>(
        &self,
        keys: &'a [K],
        values: &'a mut [V],
        found: &'a mut [u64],
    ) -> Vec<Mutex<AnswerShare<'a, K, V>>> {
        let mut rest = (values, found);
        let share = |place: usize| {
            let (_, keys) = self.share(keys, place);
            let (values, found) = (mem::take(&mut rest.0), mem::take(&mut rest.1));
            let (values, later) = values.split_at_mut(keys.len().min(values.len()));
            let (found, later_found) = found.split_at_mut(keys.len().div_ceil(64).min(found.len()));
            rest = (later, later_found);
            Mutex::new((keys, values, found))
        };
        (0..self.parts.len()).map(share).collect()
    }
}

impl<F: Sync, R: Sync> Sharded<F, R> {
    /// Runs `ask` for a batch per device and the destination of its answers, on a thread per device.
    ///
    /// # Errors
    /// [`LengthMismatch`] unless there is one batch per device, with a destination; the errors of `ask`.
    pub fn ask_each<K: Copy + Sync, T: Send, E: From<LengthMismatch> + Send>(
        &self,
        keys: &[K],
        to: Vec<T>,
        ask: impl Fn(K, T) -> std::result::Result<(), E> + Sync,
    ) -> std::result::Result<(), E> {
        LengthMismatch::unless_equal("batches", self.parts.len(), keys.len())?;
        LengthMismatch::unless_equal("destinations of answers", self.parts.len(), to.len())?;
        let to: Vec<_> = to.into_iter().map(|to| Mutex::new(Some(to))).collect();
        let asked = self.devices.each(|place, _| {
            let to = to[place].lock().unwrap_or_else(PoisonError::into_inner).take();
            to.map_or(Ok(()), |to| ask(keys[place], to))
        });
        asked.into_iter().collect()
    }
}

impl<F: Part> Sharded<F> {
    /// Queues whether keys are in a part, by their hashes or words.
    fn contains(
        part: &F,
        stream: &Stream,
        keys: DeviceSlice<'_, u64>,
        to: Replies,
    ) -> std::result::Result<(), F::Error> {
        let Some(found) = to.found else { return Ok(()) };
        // SAFETY: the callers' contract for `ask`: memory outlives the stream's work, and there is an answer per key.
        unsafe { part.answer_async(stream, keys.cast::<Hashed>()?, &[], found) }
    }

    /// Tests batches that lie on all devices, one batch per device in the order of the devices, as
    /// [`DeviceFilter::contains_device`] does: `answers` are on the device of their keys.
    ///
    /// # Errors
    /// [`LengthMismatch`] unless there is one batch per device, with answers; the errors of a lookup.
    pub fn contains_each_device<K: DeviceKeys + Sync>(
        &self,
        keys: &[K],
        answers: Vec<DeviceSliceMut<'_, u8>>,
    ) -> std::result::Result<(), F::Error>
    where
        Self: DeviceFilter<K, Error = F::Error>,
    {
        self.ask_each(keys, answers, |keys, answers| self.contains_device(keys, answers))
    }
}

impl<F: Part> Filter for Sharded<F> {
    type Error = F::Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> std::result::Result<(), F::Error> {
        if let [only] = &self.parts[..] {
            return only.answer_bulk(keys, take);
        }
        let mut found = vec![0; keys.len().div_ceil(64)];
        // SAFETY: `contains` queues all work on its stream, and writes an answer per key.
        unsafe { self.reply_bulk::<_, u8, _>(keys, &mut [], &mut found, Self::contains)? };
        if !found.is_empty() {
            take(0, &found);
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.parts.iter().map(Filter::memory_bytes).sum()
    }
}

impl<K: DeviceKeys, F: Part + DeviceFilter<K>> DeviceFilter<K> for Sharded<F> {
    /// Queues the answers to keys on any one of the devices, after the work of `stream`. Waits for the grouping of
    /// each round.
    unsafe fn answer_async(
        &self,
        stream: &Stream,
        keys: K,
        others: &[&Device],
        answers: Answers,
    ) -> std::result::Result<(), F::Error> {
        // SAFETY: this function's contract, and `contains` queues all work on its stream.
        unsafe {
            match &self.parts[..] {
                [only] => DeviceFilter::<K>::answer_async(only, stream, keys, others, answers),
                _ => self.reply_async(stream, keys, others, Replies::found(answers), Self::contains),
            }
        }
    }
}

/// Waits for all streams after an error.
fn settled<E>(lanes: &[Lane], result: std::result::Result<(), E>) -> std::result::Result<(), E> {
    if result.is_err() {
        for Lane { source, parts } in lanes {
            parts.iter().chain([source]).for_each(|stream| drop(stream.synchronize()));
        }
    }
    result
}
