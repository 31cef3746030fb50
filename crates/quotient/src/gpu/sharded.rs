//! Filters with quotients on several devices.
//!
//! Each of `2^k` devices has the quotients with the same `k` highest bits, as a filter of the hash without them: fewer
//! quotients, remainders of the same width. The layout of fingerprints is unique, so a copy in host memory, laid out of
//! the fingerprints of all parts, has the bytes of one filter. Batches are exchanged by [`Sharded`].

use std::fmt;

use warpset_base::filter::{Filter, Insert, Remove, Take, same_length};
use warpset_base::words::zeroed_vec;
use warpset_gpu::batch::Hashing;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, Devices, Stream};
use warpset_primitives::DeviceInsert;
use warpset_primitives::sharded::{NO_VALUES, Replies, Sharded};

use super::fingerprints::Fingerprints;
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact, hashing};
use crate::{Builder, Count, Error, Hashed, Key, Layout, cpu};
pub(crate) use division::{Division, change_each, same_devices};

/// [`QuotientFilter`] divided among devices, as many as the largest power of two allows. For filters larger than one
/// device's memory and for the bandwidth of all devices.
///
/// Keys come from the host or from any of the devices. [`insert_each_device`](Self::insert_each_device) and
/// [`contains_each_device`](Self::contains_each_device) take a batch on every device. Each part has its share of the
/// load limit, so a filter close to its limit may be full although another part has free slots. On an error parts of a
/// batch may have been applied.
///
/// ```
/// use warpset_gpu::{Device, Devices};
/// use warpset_quotient::{Filter, Insert, StandardQuotientFilter};
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let builder = StandardQuotientFilter::builder(1_000);
/// let mut filter = builder.sharded_on(&devices).build_from(&[2u64, 3])?;
/// assert_eq!(filter.insert_bulk(&[3u64, 5])?, 1);
/// assert_eq!(filter.contains_bulk(&[5u64, 6])?, [true, false]);
/// assert!(filter.to_host()? == builder.build_from(&[2u64, 3, 5])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedQuotientFilter<S> {
    division: Division,
    shards: Sharded<QuotientFilter<S>>,
}

/// [`Builder`] of filters divided among devices, made by [`Builder::sharded_on`].
#[must_use = "a builder does nothing until `build`"]
pub struct ShardedBuilder<S> {
    settings: Builder<S>,
    devices: Devices,
}

impl<S: DeviceSlotKind> Builder<S> {
    /// Makes a builder with these settings of a filter that is divided among `devices`.
    pub fn sharded_on(&self, devices: &Devices) -> ShardedBuilder<S> {
        ShardedBuilder { settings: *self, devices: devices.clone() }
    }
}

impl<S: DeviceSlotKind> ShardedBuilder<S> {
    /// Checks every setting, then allocates an empty filter.
    ///
    /// # Errors
    /// The errors of [`Builder::layout`]; [`Error::Gpu`] if a device has too little memory for its part.
    pub fn build(&self) -> Result<ShardedQuotientFilter<S>, Error> {
        ShardedQuotientFilter::with_layout(&self.devices, self.settings.layout()?)
    }

    /// Builds a filter of these keys.
    ///
    /// # Errors
    /// The errors of [`ShardedBuilder::build`] and of an insertion.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<ShardedQuotientFilter<S>, Error> {
        let mut filter = self.build()?;
        filter.insert_bulk(keys)?;
        Ok(filter)
    }

    /// Builds a filter of keys on one of the devices.
    ///
    /// # Errors
    /// The errors of [`ShardedBuilder::build`] and of an insertion.
    pub fn build_from_device<K: DeviceKeys>(&self, keys: K) -> Result<ShardedQuotientFilter<S>, Error> {
        let mut filter = self.build()?;
        filter.insert_each_device(&[keys])?;
        Ok(filter)
    }
}

impl<S: DeviceSlotKind> ShardedQuotientFilter<S> {
    fn with_layout(devices: &Devices, layout: Layout) -> Result<Self, Error> {
        let division = Division::new(devices, layout);
        let part = layout.part(division.prefix_bits);
        let shards = division.parts(devices, &layout, |_, device| QuotientFilter::with_layout(device, part))?;
        Ok(Self { division, shards })
    }

    /// Copies a filter from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if a device fails or has too little memory; [`Error::Full`] if a part of a filter close to its
    /// limit has too many fingerprints.
    pub fn from_host(devices: &Devices, filter: &cpu::QuotientFilter<S>) -> Result<Self, Error> {
        let division = Division::new(devices, *filter.layout());
        let shards = division.parts(devices, filter.layout(), |place, device| {
            QuotientFilter::from_host(device, &division.part_of(filter, place)?)
        })?;
        Ok(Self { division, shards })
    }

    /// Copies the filter to host memory: one filter, to save or to ask. Waits for all work on the devices.
    ///
    /// # Errors
    /// [`Error::Gpu`] if a device fails, [`Error::OutOfMemory`] if the host has too little memory;
    /// [`Error::OverflowRegionFull`] if a key of a multiset was inserted so often that one filter has no room for it.
    pub fn to_host(&self) -> Result<cpu::QuotientFilter<S>, Error> {
        self.division.joined(self.shards.each(|_, shard| shard.to_host())?)
    }

    /// Returns the parameters of the whole filter.
    pub fn layout(&self) -> &Layout {
        &self.division.layout
    }

    /// Returns the number of stored fingerprints, copies included.
    pub fn len(&self) -> u64 {
        self.shards.parts().iter().map(QuotientFilter::len).sum()
    }

    /// Whether no fingerprint is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts batches of keys, each on one of the devices. Returns the number of fingerprints added.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert_device`].
    pub fn insert_each_device<B: DeviceKeys>(&mut self, batches: &[B]) -> Result<u64, Error> {
        self.division.expect_fits(&self.division.layout, &self.shards, batches)?;
        self.shards.insert_each_device(batches)
    }

    /// Removes keys on one of the devices. Returns the number of fingerprints removed.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::remove_device`].
    pub fn remove_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        self.remove_each_device(&[keys])
    }

    /// Removes batches of keys, each on one of the devices. Returns the number of fingerprints removed.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::remove_device`].
    pub fn remove_each_device<B: DeviceKeys>(&mut self, batches: &[B]) -> Result<u64, Error> {
        change_each!(self.shards, batches; |part, keys| part.remove_device(keys))
    }

    /// Inserts key `i` `copies[i]` times, like [`QuotientFilter::insert_counted_bulk`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert_counted_bulk`].
    pub fn insert_counted_bulk<K: Key>(&mut self, keys: &[K], copies: &[u64]) -> Result<u64, Error> {
        same_length(keys.len(), copies.len())?;
        self.expect_counters()?;
        if let Some(only) = self.shards.only() {
            return only.insert_counted_bulk(keys, copies);
        }
        // Without copies a key may have no fingerprint.
        if let Some(layout) = self.exact_layout().filter(|layout| exact::words(layout, keys).is_err()) {
            let of = layout.fingerprints_of();
            for (key, _) in keys.iter().zip(copies).filter(|(_, copies)| **copies > 0) {
                layout.expect_fingerprint(of.of(key))?;
            }
        }
        self.change_counts(keys, copies, |part, hashes, copies| part.insert_counted_device(hashes, copies))
    }

    /// Inserts keys and numbers on one of the devices, like [`QuotientFilter::insert_counted_device`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert_counted_device`].
    pub fn insert_counted_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        copies: DeviceSlice<'_, u64>,
    ) -> Result<u64, Error> {
        self.insert_counted_each_device(&[keys], &[copies])
    }

    /// Inserts batches of keys, each on one of the devices with its numbers, like
    /// [`QuotientFilter::insert_counted_device`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert_counted_device`]; [`Error::LengthMismatch`] unless there are numbers for
    /// each batch.
    pub fn insert_counted_each_device<B: DeviceKeys>(
        &mut self,
        batches: &[B],
        copies: &[DeviceSlice<'_, u64>],
    ) -> Result<u64, Error> {
        self.expect_counters()?;
        self.division.expect_fits(&self.division.layout, &self.shards, batches)?;
        change_each!(self.shards, batches, copies; |part, keys, copies| part.insert_counted_device(keys, copies))
    }

    /// Removes up to `copies[i]` copies of key `i`, like [`QuotientFilter::remove_counted_bulk`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::remove_counted_bulk`].
    pub fn remove_counted_bulk<K: Key>(&mut self, keys: &[K], copies: &[u64]) -> Result<u64, Error> {
        same_length(keys.len(), copies.len())?;
        match self.shards.only() {
            Some(only) => only.remove_counted_bulk(keys, copies),
            None => self.change_counts(keys, copies, |part, hashes, copies| part.remove_counted_device(hashes, copies)),
        }
    }

    /// Changes several parts by hashes of keys of the host, and numbers. Keys without fingerprint are left out.
    fn change_counts<K: Key>(
        &mut self,
        keys: &[K],
        copies: &[u64],
        change: impl Fn(&mut QuotientFilter<S>, DeviceSlice<'_, Hashed>, DeviceSlice<'_, u64>) -> Result<u64, Error> + Sync,
    ) -> Result<u64, Error> {
        let change = |part: &mut _, words: DeviceSlice<'_, u64>, copies: DeviceSlice<'_, u64>| {
            change(part, words.cast()?, copies)
        };
        match self.exact_layout() {
            None => self.shards.change_bulk(keys, copies, change),
            Some(layout) => {
                let (words, copies) = exact::some_pairs(&layout, keys, copies);
                self.shards.change_bulk(&words, &copies, change)
            }
        }
    }

    /// Returns the layout if several parts hold exact keys.
    fn exact_layout(&self) -> Option<Layout> {
        let layout = self.division.layout;
        self.division.is_exact(&layout).then_some(layout)
    }

    /// Removes copies of keys on one of the devices, like [`QuotientFilter::remove_counted_device`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::remove_counted_device`].
    pub fn remove_counted_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        copies: DeviceSlice<'_, u64>,
    ) -> Result<u64, Error> {
        self.remove_counted_each_device(&[keys], &[copies])
    }

    /// Removes copies of batches of keys, each on one of the devices with its numbers, like
    /// [`QuotientFilter::remove_counted_device`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::remove_counted_device`]; [`Error::LengthMismatch`] unless there are numbers for
    /// each batch.
    pub fn remove_counted_each_device<B: DeviceKeys>(
        &mut self,
        batches: &[B],
        copies: &[DeviceSlice<'_, u64>],
    ) -> Result<u64, Error> {
        change_each!(self.shards, batches, copies; |part, keys, copies| part.remove_counted_device(keys, copies))
    }

    /// Refuses filters without counters, before any part is changed.
    fn expect_counters(&self) -> Result<(), Error> {
        self.shards.parts()[0].expect_counters()
    }

    /// Keeps only fingerprints of another filter on the same devices, like [`QuotientFilter::intersect`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::merge`]. On an error of a device some parts may have been intersected.
    pub fn intersect(&mut self, other: &Self) -> Result<(), Error> {
        self.combine(other, QuotientFilter::intersect)
    }

    /// Removes the fingerprints of another filter on the same devices, like [`QuotientFilter::subtract`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::merge`]. On an error of a device some parts may have been changed.
    pub fn subtract(&mut self, other: &Self) -> Result<(), Error> {
        self.combine(other, QuotientFilter::subtract)
    }

    /// Changes each part by the other filter's part, which is on the same device.
    fn combine(
        &mut self,
        other: &Self,
        change: impl Fn(&mut QuotientFilter<S>, &QuotientFilter<S>) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        self.layout().bits_to_drop(other.layout())?;
        same_devices(&self.shards, &other.shards, "two quotient filters")?;
        self.shards.each_mut(|place, part| change(part, &other.shards.parts()[place])).map(drop)
    }

    /// Counts the fingerprints in both filters, like [`QuotientFilter::intersection_count`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::intersection_count`].
    pub fn intersection_count(&self, other: &Self) -> Result<u64, Error> {
        self.sum_with(other, QuotientFilter::intersection_count)
    }

    /// Counts the fingerprints in at least one of the filters, like [`QuotientFilter::union_count`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::intersection_count`].
    pub fn union_count(&self, other: &Self) -> Result<u64, Error> {
        self.sum_with(other, QuotientFilter::union_count)
    }

    /// Sums the counts of each part and the other filter's part, which is on the same device.
    fn sum_with(
        &self,
        other: &Self,
        count: impl Fn(&QuotientFilter<S>, &QuotientFilter<S>) -> Result<u64, Error> + Sync,
    ) -> Result<u64, Error> {
        same_devices(&self.shards, &other.shards, "two quotient filters")?;
        Ok(self.shards.each(|place, part| count(part, &other.shards.parts()[place]))?.into_iter().sum())
    }

    /// Removes all fingerprints with fewer than `least` copies, like [`QuotientFilter::retain_counts`].
    ///
    /// # Errors
    /// [`Error::Gpu`] if a device fails or has too little memory; other parts may have been changed.
    pub fn retain_counts(&mut self, least: u64) -> Result<u64, Error> {
        Ok(self.shards.each_mut(|_, part| part.retain_counts(least))?.into_iter().sum())
    }

    /// Returns a histogram of copies, like [`QuotientFilter::count_histogram`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::count_histogram`].
    pub fn count_histogram(&self, most: usize) -> Result<Vec<u64>, Error> {
        let mut counted = zeroed_vec((most as u64).saturating_add(1))?;
        // No fingerprint has more copies than there are in all.
        let most = most.min(usize::try_from(self.len()).unwrap_or(usize::MAX));
        for of_part in self.shards.each(|_, part| part.count_histogram(most))? {
            counted.iter_mut().zip(of_part).for_each(|(sum, count)| *sum += count);
        }
        Ok(counted)
    }

    /// Writes the number of stored copies of each key's fingerprint; `counts` has one word per key.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if not; memory of a device that has no part.
    pub fn count_device<K: DeviceKeys>(&self, keys: K, counts: DeviceSliceMut<'_, u64>) -> Result<(), Error> {
        // SAFETY: filter, keys and counts are borrowed until the stream has been waited for.
        keys.device().waiting(|stream| unsafe { self.count_async(stream, keys, counts) })
    }

    /// Queues [`count_device`](Self::count_device). Waits for the grouping of each round; a standard filter extracts
    /// all of its fingerprints first, and waits for the counts.
    ///
    /// # Errors
    /// The errors of [`count_device`](Self::count_device).
    ///
    /// # Safety
    /// The contract of [`QuotientFilter::count_async`].
    pub unsafe fn count_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        if let [only] = self.shards.parts() {
            // SAFETY: this function's contract.
            return unsafe { only.count_async(stream, keys, counts) };
        }
        let stored = self.stored()?;
        // SAFETY: this function's contract; the stream is waited for before `stored` is freed.
        let counted = unsafe { self.count_by(stream, keys, counts, &stored) };
        if stored.iter().any(Option::is_some) {
            stream.synchronize()?;
        }
        counted
    }

    /// Prepares counts of several parts: what each part has to extract, waited for.
    fn stored(&self) -> Result<Vec<Option<Fingerprints>>, Error> {
        self.shards.each(|_, part| {
            let stream = part.device.new_stream()?;
            let stored = S::prepass_of_counts(part, &stream);
            stream.synchronize()?;
            stored
        })
    }

    /// Queues counts by the fingerprints of [`stored`](Self::stored).
    ///
    /// # Safety
    /// The contract of [`count_async`](Self::count_async), also for `stored`.
    unsafe fn count_by<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        mut counts: DeviceSliceMut<'_, u64>,
        stored: &[Option<Fingerprints>],
    ) -> Result<(), Error> {
        same_length(keys.count(), counts.len())?;
        let to = Replies::values(counts.global_mut(), None);
        // SAFETY: there is a word per key; the rest is this function's contract.
        unsafe { self.shards.reply_async(stream, keys, &[counts.device()], to, self.counts(stored)) }
    }

    /// Counts copies for batches that lie on all devices, one batch per device in their order, as
    /// [`count_device`](Self::count_device) does: `counts` are on the device of their keys.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is a batch per device, with counts; [`Error::Gpu`].
    pub fn count_each_device<K: DeviceKeys + Sync>(
        &self,
        batches: &[K],
        counts: Vec<DeviceSliceMut<'_, u64>>,
    ) -> Result<(), Error> {
        if let [_] = self.shards.parts() {
            return self.shards.ask_each(batches, counts, |keys, counts| self.count_device(keys, counts));
        }
        let stored = self.stored()?;
        self.shards.ask_each(batches, counts, |keys, counts| {
            // SAFETY: filter, keys, counts and `stored` are borrowed until the stream has been waited for.
            keys.device().waiting(|stream| unsafe { self.count_by(stream, keys, counts, &stored) })
        })
    }

    /// Counts in several parts, by keys that all have a fingerprint.
    fn count_any<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Error> {
        let stored = self.stored()?;
        // SAFETY: `counts` queues all work on its stream, and writes a word per key; the work has been waited for
        // before `stored` is freed.
        unsafe { self.shards.reply_bulk(keys, counts, &mut [], self.counts(&stored)) }
    }

    /// Returns the function that queues the counts of a part.
    fn counts<'a>(
        &'a self,
        stored: &'a [Option<Fingerprints>],
    ) -> impl Fn(&QuotientFilter<S>, &Stream, DeviceSlice<'_, u64>, Replies) -> Result<(), Error> + Sync + 'a {
        move |part, stream, hashes, to| {
            let place = self.shards.parts().iter().position(|own| std::ptr::eq(own, part));
            let stored = place.and_then(|place| stored[place].as_ref());
            // SAFETY: the callers' contract: there is a word per hash, and memory outlives the stream's work.
            unsafe { part.count_into(stream, hashes.cast::<Hashed>()?, stored, to.values) }
        }
    }
}

warpset_primitives::divided_lookups! { [S: DeviceSlotKind] ShardedQuotientFilter<S>, Error }

impl<S: DeviceSlotKind> Filter for ShardedQuotientFilter<S> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        match self.exact_layout() {
            None => self.shards.answer_bulk(keys, take),
            Some(layout) => exact::answer_bulk(&layout, keys, take, |words, take| self.shards.answer_bulk(words, take)),
        }
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl<S: DeviceSlotKind> Count for ShardedQuotientFilter<S> {
    fn count_bulk_into<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Error> {
        same_length(keys.len(), counts.len())?;
        match (self.shards.parts(), self.exact_layout()) {
            ([only], _) => only.count_bulk_into(keys, counts),
            (_, None) => self.count_any(keys, counts),
            (_, Some(layout)) => exact::answer(&layout, keys, counts, 0, |words, counts| self.count_any(words, counts)),
        }
    }
}

impl<S: DeviceSlotKind> Insert for ShardedQuotientFilter<S> {
    type Inserted = u64;

    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        match self.exact_layout() {
            None => self.shards.insert_bulk(keys),
            Some(layout) => self.shards.insert_bulk(&exact::words(&layout, keys)?),
        }
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.shards.clear()
    }

    /// Adds the fingerprints of a filter on the same devices. A filter of other parameters or devices is refused before
    /// anything is added; on another error, such as a full part, some parts may have been merged.
    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.combine(other, QuotientFilter::merge)
    }
}

impl<S: DeviceSlotKind> DeviceInsert for ShardedQuotientFilter<S> {
    fn hashing(&self) -> Hashing {
        hashing(self.layout())
    }

    fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        self.insert_each_device(&[keys])
    }
}

impl<S: DeviceSlotKind> Remove for ShardedQuotientFilter<S> {
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        match self.shards.only() {
            Some(only) => only.remove_bulk(keys),
            None => self.change_counts(keys, NO_VALUES, |part, hashes, _| part.remove_device(hashes)),
        }
    }
}

impl<S: DeviceSlotKind> fmt::Debug for ShardedQuotientFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedQuotientFilter").field("layout", self.layout()).field("devices", self.devices()).finish()
    }
}

impl<S: DeviceSlotKind> fmt::Debug for ShardedBuilder<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedBuilder").field("settings", &self.settings).field("devices", &self.devices).finish()
    }
}

mod division;
#[cfg(test)]
mod tests;
