//! Structures divided among devices: partition, exchange and gather of batches.
//!
//! Each part of a [`Sharded`] structure owns a range of hashes. A batch lies on one of the devices, in equal or unequal
//! shares on all of them, or on the host, which sends each device an equal share. The device with a share hashes its
//! keys and groups them by owner, stably and with their numbers. Each owner copies its hashes (8 bytes per key), works
//! on them as on any batch, and the source copies the answers back (one bit per key) and puts them in question order.
//!
//! Large batches go in rounds, on two sets of streams that take turns: while the owners work on one round, the source
//! groups the next, and its hashes travel. Copies go from device to device where these can access each other's memory;
//! otherwise the driver brings them through pinned memory of the host.
//!
//! Scratch on the source, for two rounds of each batch: 24 bytes per key and what the sort takes; on an owner 8 bytes
//! per key that it receives.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use warpset_base::filter::{Filter, Insert, LengthMismatch, Take};
use warpset_base::key::{Hashed, Key};
use warpset_gpu::batch::{Answers, DEFAULT_CHUNK_KEYS, DeviceKeys, Hashing, Reply, Staging};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, Devices, GpuError, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
pub use warpset_kernels::primitives::exchange::MAX_OWNERS;
use warpset_kernels::primitives::exchange::{self as kernels, BLOCK, NUMBER_BITS};

use crate::{DeviceFilter, DeviceInsert, Result};
use route::{Routed, Router, Table, covering};

mod route;

/// Keys of a share that are exchanged at a time, at most.
const ROUND: usize = 1 << NUMBER_BITS;
/// Keys of the host that are inserted at a time, for each device.
const HOST_ROUND: usize = 1 << 24;

/// Structure with a part on each of several devices. Every part answers for the hashes of its range.
pub struct Sharded<F> {
    devices: Devices,
    router: Router,
    /// One per device.
    parts: Vec<F>,
}

/// Part of a structure: filter of hashes in device memory.
pub trait Part: for<'k> DeviceFilter<DeviceSlice<'k, Hashed>> + Send + Sync {}

impl<F: for<'k> DeviceFilter<DeviceSlice<'k, Hashed>> + Send + Sync> Part for F {}

/// Result of a change, by all parts together.
pub trait Total: Copy + Send {
    /// The result of no change.
    const NOTHING: Self;

    /// Returns the result of both.
    #[must_use]
    fn and(self, other: Self) -> Self;
}

impl Total for () {
    const NOTHING: Self = ();
    fn and(self, (): Self) {}
}

impl Total for u64 {
    const NOTHING: Self = 0;
    fn and(self, other: Self) -> Self {
        self + other
    }
}

/// Streams of every second round: one of the source, and one per part.
struct Lane {
    source: Stream,
    parts: Vec<Stream>,
}

/// Returns the number of devices that can have a part, of `devices`, for a structure of `units` parts at most.
pub fn owners(devices: &Devices, units: u64) -> Devices {
    devices.at_most(units.min(MAX_OWNERS as u64) as usize)
}

/// Divides `units` units of `bytes` bytes among the devices: equally, unless some have too little free memory, which
/// then get fewer. Each device gets at least one unit, if there is one per device.
///
/// # Errors
/// A device that does not tell its free memory.
pub fn divide(devices: &Devices, units: u64, bytes: u64) -> Result<Vec<Range<u64>>> {
    let count = devices.all().len() as u64;
    let mut room = Vec::new();
    for (place, device) in devices.all().iter().enumerate() {
        // A part of the memory stays free for batches.
        let free = device.memory_info()?.free as u64;
        room.push(((free - free / 8) / bytes.max(1), place));
    }
    room.sort_unstable();
    let mut ends: Vec<u64> =
        (1..=count).map(|end| (u128::from(units) * u128::from(end) / u128::from(count)) as u64).collect();
    if units.div_ceil(count) > room[0].0 {
        // In ascending order of memory: each gets what it has room for, and the others divide the rest.
        let mut rest = units;
        for (done, &(room, place)) in room.iter().enumerate() {
            let left = count - done as u64;
            ends[place] = if left == 1 { rest } else { (rest / left).min(room.max(1)) };
            rest -= ends[place];
        }
        (1..ends.len()).for_each(|i| ends[i] += ends[i - 1]);
    }
    let mut start = 0;
    Ok(ends.into_iter().map(|end| std::mem::replace(&mut start, end)..end).collect())
}

impl<F> Sharded<F> {
    /// Makes the parts, each on its device: part `i` owns the hashes from `bounds[i - 1]` to before `bounds[i]`, and
    /// gets them without their `shift` highest bits, moved up.
    ///
    /// # Errors
    /// The errors of `make`, and failed allocations.
    ///
    /// # Panics
    /// Unless `bounds` has one entry less than there are devices, of [`owners`].
    pub fn new<E: From<GpuError> + Send>(
        devices: &Devices,
        hashing: Hashing,
        bounds: &[u64],
        shift: u32,
        make: impl Fn(usize, &Device) -> std::result::Result<F, E> + Sync,
    ) -> std::result::Result<Self, E>
    where
        F: Send,
    {
        assert!(bounds.len() + 1 == devices.all().len() && bounds.len() < MAX_OWNERS, "a bound between any two parts");
        let firsts: Vec<u32> = (1..=bounds.len() as u32).map(|owner| owner << NUMBER_BITS).collect();
        let made = devices.each(|place, device| {
            let table = Table { bounds: device.from_slice(bounds)?, firsts: device.from_slice(&firsts)? };
            Ok((table, make(place, device)?))
        });
        let (tables, parts) = made.into_iter().collect::<std::result::Result<Vec<_>, E>>()?.into_iter().unzip();
        Ok(Self { devices: devices.clone(), router: Router { hashing, shift, tables, round: ROUND }, parts })
    }

    /// Returns the devices, one per part.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// Returns the parts in the order of their hashes.
    pub fn parts(&self) -> &[F] {
        &self.parts
    }

    /// Returns the part, if there is a single one.
    pub fn only(&mut self) -> Option<&mut F> {
        match &mut self.parts[..] {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Sets the number of keys of each device that are exchanged at a time. Rounded up to a multiple of 64.
    pub fn set_chunk_keys(&mut self, keys: usize) {
        self.router.round = keys.clamp(1, ROUND).next_multiple_of(64);
    }

    /// Runs `work` for each part and its place, on a thread of its own.
    ///
    /// # Errors
    /// The first error of `work`.
    pub fn each<R: Send, E: Send>(
        &self,
        work: impl Fn(usize, &F) -> std::result::Result<R, E> + Sync,
    ) -> std::result::Result<Vec<R>, E>
    where
        F: Sync,
    {
        self.devices.each(|place, _| work(place, &self.parts[place])).into_iter().collect()
    }

    /// Runs `work` for each part, mutable, and its place; see [`each`](Self::each).
    ///
    /// # Errors
    /// The first error of `work`.
    pub fn each_mut<R: Send, E: Send>(
        &mut self,
        work: impl Fn(usize, &mut F) -> std::result::Result<R, E> + Sync,
    ) -> std::result::Result<Vec<R>, E>
    where
        F: Send,
    {
        let parts: Vec<_> = self.parts.iter_mut().map(Mutex::new).collect();
        let results = self.devices.each(|place, _| {
            let mut part = parts[place].lock().unwrap_or_else(PoisonError::into_inner);
            work(place, &mut part)
        });
        results.into_iter().collect()
    }

    /// Returns the place of a device in the list.
    fn place_of(&self, device: &Device, operation: &'static str) -> Result<usize> {
        match self.devices.all().iter().position(|own| own == device) {
            Some(place) => Ok(place),
            None => {
                self.devices.first().expect_same(device, operation)?;
                unreachable!("the first device is in the list")
            }
        }
    }

    /// Makes the streams of rounds that begin after the work of `source`.
    fn lanes(&self, source: &Stream) -> Result<[Lane; 2]> {
        let lane = || -> std::result::Result<Lane, GpuError> {
            let parts = self.devices.all().iter().map(Device::new_stream).collect::<std::result::Result<_, _>>()?;
            let lane = Lane { source: source.device().new_stream()?, parts };
            lane.source.wait_for(source)?;
            Ok(lane)
        };
        Ok([lane()?, lane()?])
    }

    /// Returns the share of the host's keys for the device at `place`; all but the last are multiples of 64.
    fn share<'k, K>(&self, keys: &'k [K], place: usize) -> (usize, &'k [K]) {
        let share = keys.len().div_ceil(self.parts.len()).next_multiple_of(64);
        let at = |place: usize| keys.len().min(share * place);
        (at(place), &keys[at(place)..at(place + 1)])
    }
}

impl<F: Part> Sharded<F> {
    /// Queues the answers to a round of `n` keys of the device at `place`; waits for the grouping. The lane's source
    /// follows all of the work.
    ///
    /// # Safety
    /// The contracts of [`Router::route`] for the lane's source and of [`DeviceFilter::answer_async`].
    unsafe fn answer_round(
        &self,
        place: usize,
        lane: &Lane,
        keys: KeySlice,
        n: usize,
        answers: Answers,
    ) -> std::result::Result<(), F::Error> {
        let source = &lane.source;
        // SAFETY: this function's contract.
        let routed = unsafe { self.router.route(source, place, keys, n)? };
        let mut found = Vec::new();
        for ((part, stream), range) in self.parts.iter().zip(&lane.parts).zip(routed.ranges()?) {
            if range.is_empty() {
                continue;
            }
            let mut keys = stream.alloc_uninit::<u64>(range.len())?;
            stream.copy(&mut keys, routed.hashes.slice(range.clone()))?;
            let mut bits = stream.alloc_uninit::<u64>(range.len().div_ceil(64))?;
            let to = Answers::bits(bits.as_mut_slice(), range.len())?;
            // SAFETY: there are bits for all keys, and both are freed in the order of the stream or after it; the part
            // is covered by this function's contract.
            unsafe { part.answer_async(stream, keys.as_slice().cast::<Hashed>()?, &[], to)? };
            found.push((bits, range));
        }
        // After the loop, because the copies above follow what the source's stream holds.
        let mut bytes = source.alloc_uninit::<u8>(n)?;
        for (bits, range) in found {
            let mut answers = source.alloc_uninit::<u64>(bits.len())?;
            source.copy(&mut answers, &bits)?;
            let (n, answers, bytes) = (range.len(), answers.global(), bytes.global_mut());
            let owners = routed.owners.slice(range).global();
            // SAFETY: the numbers are below the number of keys, and differ; memory is freed in the order of the stream.
            unsafe { kernels::exchange_spread { answers, owners, n, bytes }.launch(source, covering(source, n))? };
        }
        let (bytes, Answers { words: out, form }) = (bytes.global(), answers);
        // SAFETY: a byte has been written for each key; the rest is this function's contract.
        unsafe { kernels::exchange_finish { bytes, n, form, out }.launch(source, LaunchConfig::covering(n, BLOCK))? };
        Ok(())
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
        LengthMismatch::unless_equal("batches", self.parts.len(), keys.len())?;
        LengthMismatch::unless_equal("slices for answers", self.parts.len(), answers.len())?;
        let answers: Vec<_> = answers.into_iter().map(Mutex::new).collect();
        let answered = self.devices.each(|place, _| {
            let mut answers = answers[place].lock().unwrap_or_else(PoisonError::into_inner);
            self.contains_device(keys[place], answers.reborrow())
        });
        answered.into_iter().collect()
    }
}

impl<F: Part> Filter for Sharded<F> {
    type Error = F::Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> std::result::Result<(), F::Error> {
        if let [only] = &self.parts[..] {
            return only.answer_bulk(keys, take);
        }
        let chunk = self.router.round.min(DEFAULT_CHUNK_KEYS);
        let found = self.devices.each(|place, device| -> std::result::Result<_, F::Error> {
            let (first, keys) = self.share(keys, place);
            let mut found = vec![0; keys.len().div_ceil(64)];
            device.synchronize()?;
            let lanes = self.lanes(&device.new_stream()?)?;
            let mut turns = lanes.iter().cycle();
            Staging::new(device, self.router.hashing).chunk_keys(chunk).run(
                keys,
                Reply::Bits,
                |chunk| {
                    let lane = turns.next().expect("turns never end");
                    let queue = || -> std::result::Result<(), F::Error> {
                        lane.source.wait_for(chunk.stream)?;
                        let (n, to) = (chunk.range.len(), Answers::bits_at(chunk.replies));
                        // SAFETY: there is memory for the answers to a chunk, and the chunk's stream waits for them;
                        // the parts are borrowed until all of the work has been waited for.
                        unsafe { self.answer_round(place, lane, chunk.keys, n, to)? };
                        Ok(chunk.stream.wait_for(&lane.source)?)
                    };
                    settled(&lanes, queue())
                },
                |range, words| found[range.start / 64..][..words.len()].copy_from_slice(words),
            )?;
            Ok((first, found))
        });
        for found in found {
            let (first, words) = found?;
            if !words.is_empty() {
                take(first, &words);
            }
        }
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        self.parts.iter().map(Filter::memory_bytes).sum()
    }
}

impl<K: DeviceKeys, F: Part + DeviceFilter<K>> DeviceFilter<K> for Sharded<F> {
    /// Queues the answers to keys on any one of the devices, after the work of `stream`. Waits for the grouping of each
    /// round.
    unsafe fn answer_async(
        &self,
        stream: &Stream,
        keys: K,
        others: &[&Device],
        answers: Answers,
    ) -> std::result::Result<(), F::Error> {
        const OPERATION: &str = "a lookup in a structure on several devices";
        if let [only] = &self.parts[..] {
            // SAFETY: this function's contract.
            return unsafe { DeviceFilter::<K>::answer_async(only, stream, keys, others, answers) };
        }
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        stream.device().expect_all_here([keys.device()].into_iter().chain(others.iter().copied()), OPERATION)?;
        let place = self.place_of(stream.device(), OPERATION)?;
        let lanes = self.lanes(stream)?;
        let mut rounds = (0..n).step_by(self.router.round).enumerate();
        let queued = rounds.try_for_each(|(i, first)| {
            let lane = &lanes[i % 2];
            let part = keys.part(first..n.min(first + self.router.round));
            // SAFETY: `stream` waits for the lanes below; the rest is this function's contract.
            unsafe {
                let hashed = part.kernel_keys(&self.router.hashing, &lane.source)?;
                self.answer_round(place, lane, hashed.keys, part.count(), answers.from(first))
            }
        });
        let queued = queued.and_then(|()| Ok(lanes.iter().try_for_each(|lane| stream.wait_for(&lane.source))?));
        settled(&lanes, queued)
    }
}

impl<F: Part> Sharded<F> {
    /// Changes each part by those of the keys, grouped on their devices, that it owns.
    fn change_routed<R: Total>(
        &mut self,
        routed: Vec<Routed>,
        change: &(impl Fn(&mut F, DeviceSlice<'_, Hashed>) -> std::result::Result<R, F::Error> + Sync),
    ) -> std::result::Result<R, F::Error> {
        let ranges = routed.iter().map(Routed::ranges).collect::<Result<Vec<_>>>()?;
        let devices = self.devices.clone();
        let changed = self.each_mut(|place, part| {
            let count = ranges.iter().map(|ranges| ranges[place].len()).sum();
            if count == 0 {
                return Ok(R::NOTHING);
            }
            let stream = devices.all()[place].new_stream()?;
            let mut keys = stream.alloc_uninit::<u64>(count)?;
            let mut rest = keys.as_mut_slice();
            for (routed, ranges) in routed.iter().zip(&ranges) {
                let (to, after) = rest.split_at_mut(ranges[place].len());
                stream.copy(to, routed.hashes.slice(ranges[place].clone()))?;
                rest = after;
            }
            stream.synchronize()?;
            change(part, keys.as_slice().cast::<Hashed>()?)
        })?;
        Ok(changed.into_iter().fold(R::NOTHING, R::and))
    }

    /// Changes the parts by batches of keys, each on one of the devices: one per device, say, or all on one. On an
    /// error some of the keys may have been applied.
    ///
    /// # Errors
    /// Memory of a device that has no part; failed allocations and launches, and the errors of `change`.
    pub fn change_each<K: DeviceKeys, R: Total>(
        &mut self,
        batches: &[K],
        change: impl Fn(&mut F, DeviceSlice<'_, Hashed>) -> std::result::Result<R, F::Error> + Sync,
    ) -> std::result::Result<R, F::Error> {
        let mut sources = Vec::new();
        for keys in batches.iter().filter(|keys| keys.count() > 0) {
            let device = keys.device();
            let place = self.place_of(device, "a change of a structure on several devices")?;
            device.synchronize()?;
            sources.push((keys, place, [device.new_stream()?, device.new_stream()?]));
        }
        let round = self.router.round;
        let rounds = sources.iter().map(|(keys, ..)| keys.count().div_ceil(round)).max().unwrap_or(0);
        let route = |router: &Router, i: usize| {
            let begun = sources.iter().filter(|(keys, ..)| i * round < keys.count());
            let routed = begun.map(|(keys, place, streams)| {
                let part = keys.part(i * round..keys.count().min((i + 1) * round));
                // SAFETY: the keys are borrowed until the streams have been waited for.
                unsafe {
                    let hashed = part.kernel_keys(&router.hashing, &streams[i % 2])?;
                    router.route(&streams[i % 2], *place, hashed.keys, part.count())
                }
            });
            routed.collect::<Result<Vec<_>>>()
        };
        let mut changed = || -> std::result::Result<R, F::Error> {
            let (mut next, mut total) = (route(&self.router, 0)?, R::NOTHING);
            for i in 0..rounds {
                let routed = std::mem::replace(&mut next, route(&self.router, i + 1)?);
                total = total.and(self.change_routed(routed, &change)?);
            }
            Ok(total)
        };
        let changed = changed();
        let waited: Vec<_> = sources.iter().flat_map(|(.., streams)| streams).map(Stream::synchronize).collect();
        let total = changed?;
        waited.into_iter().collect::<std::result::Result<(), _>>()?;
        Ok(total)
    }

    /// Changes the parts by keys of the host. On an error some of the keys may have been applied.
    ///
    /// # Errors
    /// Failed allocations, copies and launches, and the errors of `change`.
    pub fn change_bulk<K: Key, R: Total>(
        &mut self,
        keys: &[K],
        change: impl Fn(&mut F, DeviceSlice<'_, Hashed>) -> std::result::Result<R, F::Error> + Sync,
    ) -> std::result::Result<R, F::Error> {
        let mut total = R::NOTHING;
        for keys in keys.chunks(self.router.round.min(HOST_ROUND) * self.parts.len()) {
            let routed = self.devices.each(|place, device| {
                let (_, keys) = self.share(keys, place);
                if keys.is_empty() {
                    return Ok(None);
                }
                let stream = device.new_stream()?;
                let mut here = stream.alloc_uninit(keys.len())?;
                let slice = Staging::new(device, self.router.hashing).gather(keys, &mut here)?;
                // SAFETY: the keys have arrived, and their memory is freed after the work of all streams.
                let routed = unsafe { self.router.route(&stream, place, slice, keys.len())? };
                Ok(Some(routed))
            });
            let routed: Vec<Option<Routed>> = routed.into_iter().collect::<Result<_>>()?;
            total = total.and(self.change_routed(routed.into_iter().flatten().collect(), &change)?);
        }
        Ok(total)
    }
}

impl<F: Part + DeviceInsert<Inserted: Total>> Sharded<F> {
    /// Inserts batches of keys, each on one of the devices: one per device, say, or all on one. On an error some of the
    /// keys may have been inserted.
    ///
    /// # Errors
    /// Memory of a device that has no part; failed allocations and launches, and the errors of an insertion.
    pub fn insert_each_device<K: DeviceKeys>(&mut self, batches: &[K]) -> std::result::Result<F::Inserted, F::Error> {
        if let [only] = &mut self.parts[..] {
            // The keys themselves, because exact filters take no hashes.
            let mut inserted = batches.iter().map(|&keys| DeviceInsert::insert_device(only, keys));
            return inserted.try_fold(<F::Inserted as Total>::NOTHING, |total, some| Ok(total.and(some?)));
        }
        self.change_each(batches, |part, keys| DeviceInsert::insert_device(part, keys))
    }
}

impl<F: Part + DeviceInsert<Inserted: Total>> Insert for Sharded<F> {
    type Inserted = F::Inserted;

    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> std::result::Result<F::Inserted, F::Error> {
        match &mut self.parts[..] {
            [only] => only.insert_bulk(keys),
            _ => self.change_bulk(keys, |part, keys| DeviceInsert::insert_device(part, keys)),
        }
    }

    fn clear(&mut self) -> std::result::Result<(), F::Error> {
        self.each_mut(|_, part| part.clear())?;
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> std::result::Result<(), F::Error> {
        LengthMismatch::unless_equal("parts of the other structure", self.parts.len(), other.parts.len())?;
        self.each_mut(|place, part| part.merge(&other.parts[place]))?;
        Ok(())
    }
}

impl<F: Part + DeviceInsert<Inserted: Total>> DeviceInsert for Sharded<F> {
    fn hashing(&self) -> Hashing {
        self.router.hashing
    }

    fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> std::result::Result<F::Inserted, F::Error> {
        self.insert_each_device(&[keys])
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
