//! Transfers of host slices.
//!
//! Lookups travel in chunks, there and back through pinned memory, by several threads with two lanes each, so that host
//! copies, both directions of the bus and kernels overlap. Short batches of updates travel in one copy, long ones by
//! several threads.

use std::ops::Range;

use warpset_base::parallel;
use warpset_gpu::batch::{upload_many, upload_parts};
use warpset_gpu::lane::Lane;
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};

use crate::Error;
use crate::gpu::device_run::DeviceElements;
use crate::gpu::query::lookup::FLIPPED_FROM;
use crate::gpu::update::batch;
use crate::gpu::wide_values;
use crate::gpu::wide_values::AnswerBuffer;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, LookupMethod};

/// Largest number of threads that look up: as many as saturate the bus.
const THREADS: usize = 8;
/// Smallest and largest number of keys per chunk; multiples of 64.
const CHUNK: Range<usize> = if cfg!(test) { 128..256 } else { 1 << 14..1 << 18 };
/// Fewest bytes of a batch that several threads transfer.
const LARGE: usize = if cfg!(test) { 1 << 12 } else { 1 << 20 };
/// Bytes per part of a large batch: each part is sorted while the next one is transferred.
const PART: usize = if cfg!(test) { 1 << 11 } else { 1 << 26 };
/// Largest number of parts; they are merged at the end.
const MOST_PARTS: usize = 4;
/// Alignment of the parts of a lane's memory, equal to that of allocations.
const ALIGNMENT: usize = 256;

/// Keys to look up, and the places of their answers.
struct Query<'a, K, S> {
    keys: &'a [K],
    /// One value per key, or empty.
    values: &'a mut [S],
    /// One bit per key, in whole words.
    found: &'a mut [u64],
}

/// Places of the parts in the memory of a lane, in bytes.
struct Places {
    keys: Range<usize>,
    /// Bits of found keys, which end where values start, so that one copy transfers exactly both.
    found: Range<usize>,
    values: Range<usize>,
}

impl Places {
    /// Returns the places for these numbers of keys, values, and bits of found keys.
    fn of<K, S>(keys: usize, values: usize, bits: usize) -> Places {
        let (keys, found) = (keys * size_of::<K>(), 8 * bits.div_ceil(64));
        let begin = (keys + found).next_multiple_of(ALIGNMENT);
        Places { keys: 0..keys, found: begin - found..begin, values: begin..begin + values * size_of::<S>() }
    }

    /// Returns the words of 64 bits of all parts.
    fn words(&self) -> usize {
        self.values.end.div_ceil(8)
    }

    /// Returns the end of keys and values, in bytes.
    fn end(&self) -> usize {
        self.values.end.max(self.keys.end).next_multiple_of(ALIGNMENT)
    }
}

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Looks up keys: writes one bit per key, set if it has a value, to `found`, in whole words, and the stored forms
    /// of the values to `values`, which has one place per key or none.
    pub(super) fn look_up(&self, keys: &[K], values: &mut [V::Stored], found: &mut [u64]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        self.prepare_for(keys.len())?;
        let flips = keys.len() >= FLIPPED_FROM && self.sight().is_known();
        self.device.synchronize()?;
        let threads = rayon::current_num_threads().min(THREADS);
        let chunk = (keys.len() / (4 * threads)).clamp(CHUNK.start, CHUNK.end).next_multiple_of(64);
        let places =
            Places::of::<K::Stored, V::Stored>(chunk.min(keys.len()), chunk.min(values.len()), chunk.min(keys.len()));
        if keys.len() <= chunk {
            let mut lane = Lane::new(&self.device, places.words(), places.words())?;
            let asked = Query { keys, values, found };
            self.ask(&mut lane, &asked, flips)?;
            return take(&mut lane, asked);
        }
        let mut shares: Vec<Vec<Query<'_, K, V::Stored>>> = (0..threads).map(|_| Vec::new()).collect();
        let mut values = values.chunks_mut(chunk);
        for (i, (keys, found)) in keys.chunks(chunk).zip(found.chunks_mut(chunk / 64)).enumerate() {
            shares[i % threads].push(Query { keys, values: values.next().unwrap_or_default(), found });
        }
        // A snapshot has no policy, so the threads' code is compiled once for all policies.
        let of = self.snapshot();
        parallel::try_for_each(shares, |share| {
            let lane = || Lane::new(&of.device, places.words(), places.words());
            let mut lanes = [(lane()?, None), (lane()?, None)];
            for (i, asked) in share.into_iter().enumerate() {
                let (lane, before) = &mut lanes[i % 2];
                if let Some(before) = before.take() {
                    take(lane, before)?;
                }
                of.ask(lane, &asked, flips)?;
                *before = Some(asked);
            }
            // Lanes finish in the order in which they were queued, except for the last two.
            for (lane, before) in &mut lanes {
                if let Some(before) = before.take() {
                    take(lane, before)?;
                }
            }
            Ok(())
        })
    }

    /// Queues one chunk on an idle lane: upload of keys, lookup, download of answers.
    fn ask(&self, lane: &mut Lane, asked: &Query<'_, K, V::Stored>, flips: bool) -> Result<(), Error> {
        let n = asked.keys.len();
        let Places { keys, found, values } = Places::of::<K::Stored, V::Stored>(n, asked.values.len(), n);
        K::store(asked.keys, bytemuck::cast_slice_mut(&mut lane.host()?[keys.clone()]));
        lane.send(keys.clone())?;
        let method = if flips && asked.keys.is_sorted() { LookupMethod::Flipped } else { LookupMethod::Auto };
        let stream = lane.stream().clone();
        let (queries, rest) = lane.device()?.split_at_mut(found.start);
        let (mut bits, mut to) = rest.split_at_mut(found.len());
        let queries = queries.slice(..keys.len()).cast::<K::Stored>()?;
        let mut bits = bits.slice_mut(..).cast::<u64>()?;
        // SAFETY: a bit and a place for each key, in memory of the lane, which waits before it is used again.
        unsafe {
            if values.is_empty() {
                let nowhere = bits.global_mut().cast();
                self.queue_lookup(&stream, method, queries, nowhere, 0, bits)?;
            } else {
                let mut answers = AnswerBuffer::<V>::new(&stream, to.slice_mut(..values.len()).cast()?)?;
                self.queue_lookup(&stream, method, queries, answers.global_mut(), V::WORDS, bits)?;
                answers.finish(&stream)?;
            }
        }
        Ok(lane.fetch(found.start..values.end)?)
    }
}

/// Waits for a lane, and copies the answers that have arrived.
fn take<K: DeviceKey, S: bytemuck::Pod>(lane: &mut Lane, asked: Query<'_, K, S>) -> Result<(), Error> {
    let places = Places::of::<K::Stored, S>(asked.keys.len(), asked.values.len(), asked.keys.len());
    let host = lane.host()?;
    if !places.values.is_empty() {
        bytemuck::cast_slice_mut::<S, u8>(asked.values).copy_from_slice(&host[places.values]);
    }
    bytemuck::cast_slice_mut::<u64, u8>(asked.found).copy_from_slice(&host[places.found]);
    Ok(())
}

/// Batch of an update in transfer: the source and target of its copies stay allocated until this is dropped.
#[derive(Default)]
pub(super) struct Batch {
    lane: Option<Lane>,
    memory: Option<DeviceVec<u8>>,
}

impl Batch {
    /// Queues insertions, at least one.
    pub(super) fn insertions<K: DeviceKey, V: DeviceValue>(
        &mut self,
        stream: &Stream,
        keys: &[K],
        values: &[V],
    ) -> Result<DeviceElements<K::Stored, V>, Error> {
        let bytes = keys.len() * (size_of::<K>() + size_of::<V>());
        if bytes >= LARGE {
            return match V::WORDS {
                0 => self.keys_in_parts(stream, keys, (bytes / PART).clamp(1, MOST_PARTS)),
                _ => self.insertions_by_keys(stream, keys, values),
            };
        }
        let (keys, values) = self.bring(stream, keys, values)?;
        // SAFETY: the transferred batch stays allocated until the caller has waited.
        unsafe { batch::insertions(stream, keys, values) }
    }

    /// Queues insertions as [`Batch::insertions`] does, and transfers values after the keys: the keys are sorted
    /// meanwhile, with the addresses of the values.
    fn insertions_by_keys<K: DeviceKey, V: DeviceValue>(
        &mut self,
        stream: &Stream,
        keys: &[K],
        values: &[V],
    ) -> Result<DeviceElements<K::Stored, V>, Error> {
        let (keys, values) = (K::stored(keys), V::stored(values));
        let places = Places::of::<K::Stored, V::Stored>(keys.len(), values.len(), 0);
        let memory = self.memory.insert(stream.alloc_uninit::<u8>(places.end())?);
        let (to_keys, rest) = memory.as_mut_slice().split_at_mut(places.keys.end);
        let (_, to_values) = rest.split_at_mut(places.values.start - places.keys.end);
        let to_values = to_values.split_at_mut(places.values.len()).0;
        let first = wide_values::address_of(to_values.as_slice());
        let mut sorted = None;
        let moves = vec![vec![(bytemuck::cast_slice(&keys), to_keys)], vec![(bytemuck::cast_slice(values), to_values)]];
        upload_parts(stream, moves, |places| {
            // SAFETY: the output is new, and the batch stays allocated until the caller has waited. By the second call
            // the values have arrived.
            unsafe {
                match (&mut sorted, &places[..]) {
                    (None, [keys]) => sorted = Some(batch::order(stream, keys.as_slice().cast()?, first)?),
                    (Some((sorted, order)), _) => batch::fetch(stream, order.take(), first, sorted)?,
                    _ => {}
                }
            }
            Ok::<_, Error>(())
        })?;
        match sorted {
            Some((sorted, _)) => Ok(sorted),
            None => unreachable!("there are keys"),
        }
    }

    /// Queues insertions of keys without values, in `parts` parts: each is sorted while the next one is transferred.
    fn keys_in_parts<K: DeviceKey, V: DeviceValue>(
        &mut self,
        stream: &Stream,
        keys: &[K],
        parts: usize,
    ) -> Result<DeviceElements<K::Stored, V>, Error> {
        let n = keys.len();
        let len = n.div_ceil(parts).next_multiple_of(ALIGNMENT);
        let keys = K::stored(keys);
        let memory = self.memory.insert(stream.alloc_uninit::<u8>(size_of_val(&keys[..]))?);
        let mut rest = memory.as_mut_slice();
        let mut moves = Vec::new();
        for keys in keys.chunks(len) {
            let (part, after) = rest.split_at_mut(size_of_val(keys));
            rest = after;
            moves.push(vec![(bytemuck::cast_slice(keys), part)]);
        }
        // The last part comes first, since the last one of equal keys counts.
        let mut runs = Vec::new();
        upload_parts(stream, moves, |places| {
            let [keys] = &places[..] else { return Ok(()) };
            let (keys, values) = (keys.as_slice().cast::<K::Stored>()?, keys.as_slice().slice(..0).cast()?);
            // SAFETY: the transferred batch stays allocated until the caller has waited.
            runs.insert(0, unsafe { batch::insertions::<_, V>(stream, keys, values)? });
            Ok::<_, Error>(())
        })?;
        DeviceElements::merged(stream, runs)
    }

    /// Queues the copy of keys and values to the device.
    pub(super) fn bring<K: DeviceKey, V: DeviceValue>(
        &mut self,
        stream: &Stream,
        keys: &[K],
        values: &[V],
    ) -> Result<Brought<'_, K, V>, Error> {
        let values = V::stored(values);
        let places = Places::of::<K::Stored, V::Stored>(keys.len(), values.len(), 0);
        let all = places.values.end.max(places.keys.end);
        if all < LARGE {
            let lane = self.lane.insert(Lane::on(stream, all.div_ceil(8), all.div_ceil(8))?);
            let host = lane.host()?;
            K::store(keys, bytemuck::cast_slice_mut(&mut host[places.keys.clone()]));
            if !places.values.is_empty() {
                host[places.values.clone()].copy_from_slice(bytemuck::cast_slice(values));
            }
            lane.send(0..all)?;
            return brought::<K, V>(lane.device()?.into(), places);
        }
        let memory = self.memory.insert(stream.alloc_uninit::<u8>(all)?);
        let stored = K::stored(keys);
        let (to_keys, rest) = memory.as_mut_slice().split_at_mut(places.keys.end);
        let (_, to_values) = rest.split_at_mut(places.values.start - places.keys.end);
        let mut moves: Vec<(&[u8], _)> = vec![(bytemuck::cast_slice(&stored), to_keys)];
        if !places.values.is_empty() {
            moves.push((bytemuck::cast_slice(values), to_values));
        }
        upload_many(stream, moves)?;
        brought::<K, V>(memory.as_slice(), places)
    }
}

/// Keys and values of a batch in device memory.
pub(super) type Brought<'a, K, V> =
    (DeviceSlice<'a, <K as DeviceKey>::Stored>, DeviceSlice<'a, <V as DeviceValue>::Stored>);

fn brought<K: DeviceKey, V: DeviceValue>(
    memory: DeviceSlice<'_, u8>,
    places: Places,
) -> Result<Brought<'_, K, V>, Error> {
    Ok((memory.slice(places.keys).cast()?, memory.slice(places.values).cast()?))
}
