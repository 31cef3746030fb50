//! Changes: keys, and values if there are any, to their owners.

use std::ops::Range;

use bytemuck::Pod;
use warpset_base::filter::{Insert, LengthMismatch};
use warpset_base::key::{Hashed, Key};

use warpset_gpu::batch::{DeviceKeys, Hashing, Staging};
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Devices, Stream, beside};

use super::received::queued_words_of;
use super::route::{Beside, Routed, Router};
use super::{By, Failure, HOST_ROUND, Part, Sharded, each_mut, rounds_of, share};
use crate::{DeviceInsert, Result};

/// Values of keys that have none.
pub const NO_VALUES: &[u64] = &[];
const OPERATION: &str = "a change of a structure on several devices";

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

/// Words of a round for the parts.
struct Round {
    /// Words grouped on their devices.
    routed: Vec<Routed>,
    /// One per part.
    own: Vec<Own>,
}

/// Words that a part owns, and their values if there are any.
struct Own {
    /// A list on the part's device: a range of the grouped words with this number.
    here: Option<(usize, Range<usize>)>,
    /// All others, on their way to the device on this stream.
    copied: Option<(Stream, DeviceVec<u64>, DeviceVec<u64>)>,
}

impl Round {
    /// Queues the copies of grouped words to their owners; waits for the grouping.
    fn of(devices: &Devices, router: &Router, mut routed: Vec<Routed>) -> Result<Self> {
        let are_apart = routed.iter().any(Routed::has_regions);
        let (mut ranges, owners) = (Vec::new(), devices.all().len());
        while ranges.len() < routed.len() {
            let (own, others) = routed[ranges.len()].ranges_apart(router, owners)?;
            ranges.push(own);
            routed.extend(others);
        }
        let own = devices.all().iter().enumerate().map(|(place, device)| {
            let own = ranges.iter().map(|ranges| ranges[place].clone()).enumerate();
            Own::of(device, &routed, own.filter(|(_, range)| !range.is_empty()).collect(), are_apart)
        });
        let own = own.collect::<Result<_>>()?;
        Ok(Self { routed, own })
    }
}

impl Own {
    /// Queues the copies of ranges of grouped words to a device. All are copied to one list, unless a single range is
    /// there already, or changes by several lists cost no more: `are_apart`.
    fn of(device: &Device, routed: &[Routed], mut ranges: Vec<(usize, Range<usize>)>, are_apart: bool) -> Result<Self> {
        let is_here = |(at, _): &(usize, Range<usize>)| routed[*at].words.device() == device;
        let here = ranges.iter().position(is_here).filter(|_| are_apart || ranges.len() == 1);
        let here = here.map(|i| ranges.remove(i));
        let copied = if ranges.is_empty() { None } else { Some(Self::copied(device, routed, &ranges)?) };
        Ok(Self { here, copied })
    }

    /// Queues the copies of ranges of grouped words to a device, one after the other.
    fn copied(
        device: &Device,
        routed: &[Routed],
        ranges: &[(usize, Range<usize>)],
    ) -> Result<(Stream, DeviceVec<u64>, DeviceVec<u64>)> {
        let parts =
            ranges.iter().map(|(at, range)| (routed[*at].words.slice(range.clone()), routed[*at].values(range)));
        let stream = device.new_stream()?;
        let mut keys = stream.alloc_uninit(parts.clone().map(|(words, _)| words.len()).sum())?;
        let mut values = stream.alloc_uninit(parts.clone().map(|(_, values)| values.len()).sum())?;
        let mut first = 0;
        for (words, theirs) in parts {
            let to = first..first + words.len();
            first = to.end;
            stream.copy(keys.slice_mut(to.clone()), words)?;
            if !theirs.is_empty() {
                stream.copy(values.slice_mut(to), theirs)?;
            }
        }
        Ok((stream, keys, values))
    }
}

/// Changes each part by the words that it owns: first by a list on its device, while the others arrive.
fn change_parts<F: Send, R: Total, E: Failure>(
    devices: &Devices,
    parts: &mut [F],
    round: &Round,
    change: &(impl Fn(&mut F, DeviceSlice<'_, u64>, DeviceSlice<'_, u64>) -> std::result::Result<R, E> + Sync),
) -> std::result::Result<R, E> {
    let changed = each_mut(devices, parts, |place, part| {
        let (mut total, Own { here, copied }) = (R::NOTHING, &round.own[place]);
        if let Some((at, range)) = here {
            let routed = &round.routed[*at];
            total = change(part, routed.words.slice(range.clone()), routed.values(range))?;
        }
        if let Some((stream, keys, values)) = copied {
            stream.synchronize()?;
            total = total.and(change(part, keys.as_slice(), values.as_slice())?);
        }
        Ok::<_, E>(total)
    })?;
    Ok(changed.into_iter().fold(R::NOTHING, R::and))
}

/// Applies rounds of changes one after the other. The next round is brought while the parts change.
fn change_rounds<F: Send, R: Total, E: Failure>(
    devices: &Devices,
    parts: &mut [F],
    rounds: usize,
    brought: impl Fn(usize) -> Result<Round> + Sync,
    change: impl Fn(&mut F, DeviceSlice<'_, u64>, DeviceSlice<'_, u64>) -> std::result::Result<R, E> + Sync,
) -> std::result::Result<R, E> {
    if rounds == 0 {
        return Ok(R::NOTHING);
    }
    let (mut next, mut total) = (brought(0)?, R::NOTHING);
    for i in 1..rounds {
        let both = beside(|| brought(i), || change_parts(devices, parts, &next, &change));
        let (later, changed) = both.unwrap_or_else(|(bring, change)| (bring(), change()));
        (next, total) = (later?, total.and(changed?));
    }
    Ok(total.and(change_parts(devices, parts, &next, &change)?))
}

impl<F: Send + Sync> Sharded<F> {
    /// Checks batches of a change before any of them is applied: that their devices have a part, and that there is a
    /// value per key on the same device, unless `values` is empty.
    ///
    /// # Errors
    /// The first of these that does not hold.
    pub fn check_batches<K: DeviceKeys>(&self, batches: &[K], values: &[DeviceSlice<'_, u64>]) -> Result<()> {
        if !values.is_empty() {
            LengthMismatch::unless_equal("batches of values", batches.len(), values.len())?;
        }
        for (keys, values) in batches.iter().zip(values) {
            LengthMismatch::unless_equal("values", keys.count(), values.len())?;
            keys.device().expect_same(values.device(), OPERATION)?;
        }
        let mut filled = batches.iter().filter(|keys| keys.count() > 0);
        filled.try_for_each(|keys| self.place_of(keys.device(), OPERATION).map(drop))
    }

    /// Changes the parts by batches of keys, each on one of the devices: one per device, say, or all on one. With each
    /// batch goes a value per key, unless `values` is empty. On an error some of the keys may have been applied.
    ///
    /// # Errors
    /// Other numbers of values than of keys; memory of a device that has no part; failed allocations and launches, and
    /// the errors of `change`.
    pub fn change_each<K: DeviceKeys, R: Total, E: Failure>(
        &mut self,
        batches: &[K],
        values: &[DeviceSlice<'_, u64>],
        change: impl Fn(&mut F, DeviceSlice<'_, u64>, DeviceSlice<'_, u64>) -> std::result::Result<R, E> + Sync,
    ) -> std::result::Result<R, E> {
        self.check_batches(batches, values)?;
        self.change_grouped(batches, values, None, change)
    }

    /// Changes the parts by batches of hashes that choose their owners themselves, whatever the keys' route.
    ///
    /// # Errors
    /// The errors of [`change_each`](Self::change_each).
    pub fn change_hashes<R: Total, E: Failure>(
        &mut self,
        batches: &[DeviceSlice<'_, Hashed>],
        change: impl Fn(&mut F, DeviceSlice<'_, Hashed>) -> std::result::Result<R, E> + Sync,
    ) -> std::result::Result<R, E> {
        let by = std::mem::replace(&mut self.router.route.by, By::Hash);
        let changed = self.change_each(batches, &[], |part, words, _| change(part, words.cast()?));
        self.router.route.by = by;
        changed
    }

    /// Changes the parts by batches that have been checked. With `region_bits` parts get their words in one or two
    /// lists, and each list's words from one source are grouped by this many of their highest bits.
    fn change_grouped<K: DeviceKeys, R: Total, E: Failure>(
        &mut self,
        batches: &[K],
        values: &[DeviceSlice<'_, u64>],
        region_bits: Option<u32>,
        change: impl Fn(&mut F, DeviceSlice<'_, u64>, DeviceSlice<'_, u64>) -> std::result::Result<R, E> + Sync,
    ) -> std::result::Result<R, E> {
        let mut sources = Vec::new();
        for device in self.devices.all() {
            device.synchronize()?;
        }
        for (i, keys) in batches.iter().enumerate().filter(|(_, keys)| keys.count() > 0) {
            let device = keys.device();
            let place = self.place_of(device, OPERATION)?;
            sources.push((keys, values.get(i), place, [device.new_stream()?, device.new_stream()?]));
        }
        let most = sources.iter().map(|(keys, ..)| keys.count()).max().unwrap_or(0);
        let (rounds, round) = rounds_of(most, 2 * self.round, 1);
        let Self { devices, router, parts, .. } = self;
        let brought = |i: usize| {
            let begun = sources.iter().filter(|(keys, ..)| i * round < keys.count());
            let routed = begun.map(|(keys, values, place, streams)| {
                let part = keys.part(i * round..keys.count().min((i + 1) * round));
                let (stream, n) = (&streams[i % 2], part.count());
                let beside = values.map_or(Beside::Nothing, |values| Beside::Values(values.global().at(i * round)));
                // SAFETY: keys and values are borrowed until the streams have been waited for.
                unsafe {
                    let hashed = part.kernel_keys(&router.hashing, stream)?;
                    match region_bits {
                        Some(bits) => Routed::by_region(stream, hashed.keys, n, bits),
                        None => router.route(stream, *place, hashed.keys, n, beside),
                    }
                }
            });
            Round::of(devices, router, routed.collect::<Result<Vec<_>>>()?)
        };
        let changed = change_rounds(devices, parts, rounds, brought, change);
        let waited: Vec<_> = sources.iter().flat_map(|(.., streams)| streams).map(Stream::synchronize).collect();
        let total = changed?;
        waited.into_iter().collect::<std::result::Result<(), _>>()?;
        Ok(total)
    }

    /// Changes the parts by keys of the host, with a value per key, an unsigned integer, unless `values` is empty. On
    /// an error some of the keys may have been applied.
    ///
    /// # Errors
    /// Another number of values than of keys; failed allocations, copies and launches, and the errors of `change`.
    pub fn change_bulk<K: Key, V: Pod + Into<u64> + Sync, R: Total, E: Failure>(
        &mut self,
        keys: &[K],
        values: &[V],
        change: impl Fn(&mut F, DeviceSlice<'_, u64>, DeviceSlice<'_, u64>) -> std::result::Result<R, E> + Sync,
    ) -> std::result::Result<R, E> {
        if !values.is_empty() {
            LengthMismatch::unless_equal("values", keys.len(), values.len())?;
        }
        let step = self.round.min(HOST_ROUND) * self.parts.len();
        let Self { devices, router, parts, .. } = self;
        let brought = |i: usize| {
            let range = i * step..keys.len().min((i + 1) * step);
            let values = &values[if values.is_empty() { 0..0 } else { range.clone() }];
            let routed = devices.each(|place, device| {
                let ((_, keys), (_, values)) =
                    (share(devices, &keys[range.clone()], place), share(devices, values, place));
                if keys.is_empty() {
                    return Ok(None);
                }
                let stream = device.new_stream()?;
                let mut here = stream.alloc_uninit(keys.len())?;
                let slice = Staging::new(device, router.hashing).gather(keys, &mut here)?;
                let values_there = stream.from_slice(values)?;
                // SAFETY: values are freed in the order of the stream.
                let there = unsafe { queued_words_of(&stream, values_there.as_slice())? };
                let beside = if values.is_empty() { Beside::Nothing } else { Beside::Values(there.global()) };
                // SAFETY: keys and values have arrived, and are freed in the order of the stream or after it.
                let routed = unsafe { router.route(&stream, place, slice, keys.len(), beside)? };
                Ok(Some(routed))
            });
            Round::of(devices, router, routed.into_iter().filter_map(Result::transpose).collect::<Result<_>>()?)
        };
        change_rounds(devices, parts, keys.len().div_ceil(step), brought, change)
    }
}

impl<F: Part + DeviceInsert<Inserted: Total>> Sharded<F> {
    /// Inserts keys by their hashes into a part.
    fn insert_words(
        part: &mut F,
        keys: DeviceSlice<'_, u64>,
        _: DeviceSlice<'_, u64>,
    ) -> std::result::Result<F::Inserted, F::Error> {
        DeviceInsert::insert_device(part, keys.cast::<Hashed>()?)
    }

    /// Inserts batches of keys, each on one of the devices: one per device, say, or all on one. On an error some of
    /// the keys may have been inserted.
    ///
    /// # Errors
    /// Memory of a device that has no part; failed allocations and launches, and the errors of an insertion.
    pub fn insert_each_device<K: DeviceKeys>(&mut self, batches: &[K]) -> std::result::Result<F::Inserted, F::Error> {
        self.check_batches(batches, &[])?;
        if let [only] = &mut self.parts[..] {
            // The keys themselves, because exact filters take no hashes.
            let mut inserted = batches.iter().map(|&keys| DeviceInsert::insert_device(only, keys));
            return inserted.try_fold(<F::Inserted as Total>::NOTHING, |total, some| Ok(total.and(some?)));
        }
        let keys: usize = batches.iter().map(|keys| keys.count()).sum();
        match self.parts[0].region_bits(keys.div_ceil(self.parts.len())) {
            Some(bits) => self.change_grouped(batches, &[], Some(bits), |part, words, _| {
                DeviceInsert::insert_regions_device(part, words.cast::<Hashed>()?)
            }),
            None => self.change_grouped(batches, &[], None, Self::insert_words),
        }
    }
}

impl<F: Part + DeviceInsert<Inserted: Total>> Insert for Sharded<F> {
    type Inserted = F::Inserted;

    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> std::result::Result<F::Inserted, F::Error> {
        match &mut self.parts[..] {
            [only] => only.insert_bulk(keys),
            _ => self.change_bulk(keys, NO_VALUES, Self::insert_words),
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
