//! Changes: keys, and values if there are any, to their owners.

use warpset_base::filter::{Insert, LengthMismatch};
use warpset_base::key::{Hashed, Key};
use warpset_gpu::DeviceSlice;
use warpset_gpu::Stream;
use warpset_gpu::batch::{DeviceKeys, Hashing, Staging};

use super::route::{Beside, Routed, Router};
use super::{Failure, HOST_ROUND, Part, Sharded};
use crate::{DeviceInsert, Result};

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

impl<F: Send + Sync> Sharded<F> {
    /// Changes each part by those of the keys, grouped on their devices, that it owns.
    fn change_routed<R: Total, E: Failure>(
        &mut self,
        routed: Vec<Routed>,
        change: &(impl Fn(&mut F, DeviceSlice<'_, u64>, DeviceSlice<'_, u64>) -> std::result::Result<R, E> + Sync),
    ) -> std::result::Result<R, E> {
        let owners = self.parts.len();
        let ranges = routed.iter().map(|routed| routed.ranges(owners)).collect::<Result<Vec<_>>>()?;
        let devices = self.devices.clone();
        let changed = self.each_mut(|place, part| {
            let own = routed.iter().zip(&ranges).map(|(routed, ranges)| (routed, ranges[place].clone()));
            let own: Vec<_> = own.filter(|(_, range)| !range.is_empty()).collect();
            let device = &devices.all()[place];
            match &own[..] {
                [] => return Ok(R::NOTHING),
                [(only, range)] if only.words.device() == device => {
                    return change(part, only.words.slice(range.clone()), only.values(range));
                }
                _ => {}
            }
            let count = own.iter().map(|(_, range)| range.len()).sum();
            let values = own.iter().map(|(routed, range)| routed.values(range).len()).sum();
            let stream = device.new_stream()?;
            let (mut keys, mut values) = (stream.alloc_uninit::<u64>(count)?, stream.alloc_uninit::<u64>(values)?);
            let mut first = 0;
            for (routed, range) in &own {
                let (to, values_there) = (first..first + range.len(), routed.values(range));
                first = to.end;
                stream.copy(keys.slice_mut(to.clone()), routed.words.slice(range.clone()))?;
                if !values_there.is_empty() {
                    stream.copy(values.slice_mut(to), values_there)?;
                }
            }
            stream.synchronize()?;
            change(part, keys.as_slice(), values.as_slice())
        })?;
        Ok(changed.into_iter().fold(R::NOTHING, R::and))
    }

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
        let mut sources = Vec::new();
        for (i, keys) in batches.iter().enumerate().filter(|(_, keys)| keys.count() > 0) {
            let device = keys.device();
            let place = self.place_of(device, OPERATION)?;
            device.synchronize()?;
            sources.push((keys, values.get(i), place, [device.new_stream()?, device.new_stream()?]));
        }
        let round = self.round;
        let rounds = sources.iter().map(|(keys, ..)| keys.count().div_ceil(round)).max().unwrap_or(0);
        let route = |router: &Router, i: usize| {
            let begun = sources.iter().filter(|(keys, ..)| i * round < keys.count());
            let routed = begun.map(|(keys, values, place, streams)| {
                let part = keys.part(i * round..keys.count().min((i + 1) * round));
                let beside = values.map_or(Beside::Nothing, |values| Beside::Values(values.global().at(i * round)));
                // SAFETY: keys and values are borrowed until the streams have been waited for.
                unsafe {
                    let hashed = part.kernel_keys(&router.hashing, &streams[i % 2])?;
                    router.route(&streams[i % 2], *place, hashed.keys, part.count(), beside)
                }
            });
            routed.collect::<Result<Vec<_>>>()
        };
        let mut changed = || -> std::result::Result<R, E> {
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

    /// Changes the parts by keys of the host, with a value per key unless `values` is empty. On an error some of the
    /// keys may have been applied.
    ///
    /// # Errors
    /// Another number of values than of keys; failed allocations, copies and launches, and the errors of `change`.
    pub fn change_bulk<K: Key, R: Total, E: Failure>(
        &mut self,
        keys: &[K],
        values: &[u64],
        change: impl Fn(&mut F, DeviceSlice<'_, u64>, DeviceSlice<'_, u64>) -> std::result::Result<R, E> + Sync,
    ) -> std::result::Result<R, E> {
        if !values.is_empty() {
            LengthMismatch::unless_equal("values", keys.len(), values.len())?;
        }
        let (step, mut total) = (self.round.min(HOST_ROUND) * self.parts.len(), R::NOTHING);
        for (i, keys) in keys.chunks(step).enumerate() {
            let values = if values.is_empty() { values } else { &values[i * step..][..keys.len()] };
            let routed = self.devices.each(|place, device| {
                let ((_, keys), (_, values)) = (self.share(keys, place), self.share(values, place));
                if keys.is_empty() {
                    return Ok(None);
                }
                let stream = device.new_stream()?;
                let mut here = stream.alloc_uninit(keys.len())?;
                let slice = Staging::new(device, self.router.hashing).gather(keys, &mut here)?;
                let there = stream.from_slice(values)?;
                let beside = if values.is_empty() { Beside::Nothing } else { Beside::Values(there.global()) };
                // SAFETY: keys and values have arrived, and are freed in the order of the stream or after it.
                let routed = unsafe { self.router.route(&stream, place, slice, keys.len(), beside)? };
                Ok(Some(routed))
            });
            let routed: Vec<Option<Routed>> = routed.into_iter().collect::<Result<_>>()?;
            total = total.and(self.change_routed(routed.into_iter().flatten().collect(), &change)?);
        }
        Ok(total)
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
        self.change_each(batches, &[], Self::insert_words)
    }
}

impl<F: Part + DeviceInsert<Inserted: Total>> Insert for Sharded<F> {
    type Inserted = F::Inserted;

    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> std::result::Result<F::Inserted, F::Error> {
        match &mut self.parts[..] {
            [only] => only.insert_bulk(keys),
            _ => self.change_bulk(keys, &[], Self::insert_words),
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
