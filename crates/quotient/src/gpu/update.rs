//! Batches of insertions and removals.

use warpset_gpu::Stream;

use super::counted_fingerprints::CountedFingerprints;
use super::fingerprints::{Fingerprints, TooWide};
use super::launch::waiting_on_errors;
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact};
use crate::slot_kind::Change;
use crate::{Error, Key};

pub(crate) mod crossover;
pub(crate) mod in_place;

/// Method of insertions and removals of a batch on a device. All give the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpdateMethod {
    /// Chooses one of the others by the size of the batch and of the filter and by its load, as measured
    /// (see `docs/performance/quotient.md`).
    #[default]
    Auto,
    /// The sorted batch walks to its clusters, and one thread changes each, in rounds, so the cost of a round grows
    /// with the batch. A removal takes one round; the rest of an insertion after 24 rounds is merged. Takes memory for
    /// a copy of the filter, unless the batch is certain to fit. Batches of nearly 2^32 keys, filters with counters and
    /// standard filters of 2^32 slots are rebuilt instead.
    InPlace,
    /// The filter is rewritten from its own fingerprints and the sorted batch.
    Rebuild,
}

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Inserts keys on the device, like [`Insert::insert_bulk`](crate::Insert::insert_bulk). It waits, because only the
    /// result shows whether the batch fits; so there is no `_async` form.
    ///
    /// # Errors
    /// The errors of [`Insert::insert_bulk`](crate::Insert::insert_bulk); memory of another device is refused.
    pub fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        self.insert_device_with(keys, UpdateMethod::Auto)
    }

    /// Inserts keys like [`QuotientFilter::insert_device`], by a method of choice.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert_device`]. If the device fails while a batch that is certain to fit is
    /// inserted in place, part of it may be stored.
    pub fn insert_device_with<K: DeviceKeys>(&mut self, keys: K, method: UpdateMethod) -> Result<u64, Error> {
        self.update_device(keys, Change::Insert, method)
    }

    /// Inserts fingerprints, in any order, like [`Insert::insert_bulk`](crate::Insert::insert_bulk).
    ///
    /// # Errors
    /// The errors of [`Insert::insert_bulk`](crate::Insert::insert_bulk), and [`Error::InvalidFingerprint`] if one has
    /// too many bits.
    pub fn insert_fingerprints_bulk(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        self.update_fingerprints(fingerprints, Change::Insert)
    }

    /// Removes keys on the device, like [`Remove::remove_bulk`](crate::Remove::remove_bulk).
    ///
    /// # Errors
    /// The errors of [`Remove::remove_bulk`](crate::Remove::remove_bulk); memory of another device is refused.
    pub fn remove_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        self.remove_device_with(keys, UpdateMethod::Auto)
    }

    /// Removes keys like [`QuotientFilter::remove_device`], by a method of choice.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::remove_device`].
    pub fn remove_device_with<K: DeviceKeys>(&mut self, keys: K, method: UpdateMethod) -> Result<u64, Error> {
        self.update_device(keys, Change::Remove, method)
    }

    /// Removes fingerprints, in any order, like [`Remove::remove_bulk`](crate::Remove::remove_bulk).
    ///
    /// # Errors
    /// The errors of [`Remove::remove_bulk`](crate::Remove::remove_bulk), and [`Error::InvalidFingerprint`] if one has
    /// too many bits.
    pub fn remove_fingerprints_bulk(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        self.update_fingerprints(fingerprints, Change::Remove)
    }

    /// Whether the change is a removal from an empty filter.
    fn changes_nothing(&self, change: Change) -> bool {
        change == Change::Remove && self.items == 0
    }

    pub(super) fn update_bulk<K: Key>(&mut self, keys: &[K], change: Change) -> Result<u64, Error> {
        if !self.layout.exact {
            return self.update_any(keys, change);
        }
        let words = match change {
            Change::Insert => exact::words(&self.layout, keys)?,
            Change::Remove => exact::some_words(&self.layout, keys).0,
        };
        self.update_any(&words, change)
    }

    /// Inserts or removes like [`QuotientFilter::update_bulk`], keys that all have a fingerprint.
    fn update_any<K: Key>(&mut self, keys: &[K], change: Change) -> Result<u64, Error> {
        if keys.is_empty() || self.changes_nothing(change) {
            return Ok(0);
        }
        let stream = self.ready_stream()?;
        let batch = Fingerprints::of_host_keys(&self.layout, &stream, keys)?;
        self.update(&stream, batch, change, UpdateMethod::Auto)
    }

    fn update_device<K: DeviceKeys>(&mut self, keys: K, change: Change, method: UpdateMethod) -> Result<u64, Error> {
        self.change_by_keys(keys, change, |filter, stream, batch| filter.update(stream, batch, change, method))
    }

    /// Hashes keys on the device and lets `update` insert or remove their fingerprints, unless that changes nothing.
    pub(super) fn change_by_keys<K: DeviceKeys>(
        &mut self,
        keys: K,
        change: Change,
        update: impl FnOnce(&mut Self, &Stream, Fingerprints) -> Result<u64, Error>,
    ) -> Result<u64, Error> {
        if keys.count() == 0 {
            return Ok(0);
        }
        self.device.expect_same(keys.device(), "changing a quotient filter")?;
        if self.changes_nothing(change) {
            return Ok(0);
        }
        let (stream, layout) = (self.ready_stream()?, self.layout);
        let too_wide = if change == Change::Insert { TooWide::Refused } else { TooWide::Dropped };
        waiting_on_errors(&stream, || {
            // SAFETY: the keys are borrowed until the stream has been waited for, on an error too.
            let batch = unsafe { Fingerprints::of_device_keys(&layout, &stream, keys, too_wide)? };
            update(self, &stream, batch)
        })
    }

    /// Inserts or removes fingerprints.
    fn update_fingerprints(&mut self, fingerprints: &[u64], change: Change) -> Result<u64, Error> {
        self.layout.check_fingerprints(fingerprints)?;
        if fingerprints.is_empty() || self.changes_nothing(change) {
            return Ok(0);
        }
        let stream = self.ready_stream()?;
        let batch = Fingerprints::from_host(&self.layout, &stream, fingerprints)?;
        self.update(&stream, batch, change, UpdateMethod::Auto)
    }

    /// Inserts or removes a batch of fingerprints, in any order. Returns the change of the number of fingerprints, and
    /// waits. On an error of a rebuild the filter is unchanged.
    pub(crate) fn update(
        &mut self,
        stream: &Stream,
        batch: Fingerprints,
        change: Change,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        let sorted = batch.sorted(&self.layout, stream)?;
        self.update_sorted(stream, &sorted, change, method)
    }

    /// Inserts or removes like [`QuotientFilter::update`], an ascending batch.
    pub(crate) fn update_sorted(
        &mut self,
        stream: &Stream,
        sorted: &Fingerprints,
        change: Change,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        if sorted.len() == 0 {
            stream.synchronize()?;
            return Ok(0);
        }
        let layout = self.layout;
        let method = self.method_for(sorted.len(), change, method);
        if layout.is_counted() {
            let counts = CountedFingerprints::of_sorted(&layout, stream, sorted)?;
            return self.recount(stream, &counts, change);
        }
        if method == UpdateMethod::InPlace {
            let changed = self
                .change_words(stream, sorted.len(), change, |filter| filter.change_in_place(stream, sorted, change))?;
            if let Some(changed) = changed {
                return Ok(changed);
            }
        }
        // If the batch does not fit, the rebuild reports why.
        self.rebuild(stream, sorted, change)
    }

    /// Returns the method to take: the fastest if none is asked for, and one with wide enough numbers.
    pub(super) fn method_for(&self, keys: usize, change: Change, asked: UpdateMethod) -> UpdateMethod {
        let (layout, slots) = (&self.layout, self.layout.slots());
        // Threads, and their numbers, have 32 bits.
        if layout.is_counted() || keys >= u32::MAX as usize || slots >= S::MOST_SLOTS_IN_PLACE {
            return UpdateMethod::Rebuild;
        }
        if asked != UpdateMethod::Auto {
            return asked;
        }
        let removes = change == Change::Remove;
        match crossover::is_in_place(S::IN_PLACE, keys as u64, slots, self.load_factor(), removes) {
            true => UpdateMethod::InPlace,
            false => UpdateMethod::Rebuild,
        }
    }

    /// Lets `work` change the words in place: those of this filter, or of a copy if the batch may not fit. `work`
    /// returns the change of the number of fingerprints, or `None` if the batch does not fit; the filter is unchanged
    /// then.
    pub(super) fn change_words(
        &mut self,
        stream: &Stream,
        keys: usize,
        change: Change,
        work: impl FnOnce(&mut QuotientFilter<S>) -> Result<Option<u64>, Error>,
    ) -> Result<Option<u64>, Error> {
        if change == Change::Remove || self.surely_fits(stream, keys as u64)? {
            return work(self);
        }
        let mut copy = self.queued_clone(stream)?;
        let changed = work(&mut copy)?.filter(|_| copy.items <= self.layout.limit);
        if changed.is_some() {
            *self = copy;
        }
        Ok(changed)
    }

    /// Rewrites the filter by [`QuotientFilter::rebuilt`]. Returns the change of the number of fingerprints. On an
    /// error the filter is unchanged.
    fn rebuild(&mut self, stream: &Stream, batch: &Fingerprints, change: Change) -> Result<u64, Error> {
        let before = self.items;
        *self = self.rebuilt(stream, batch, change)?;
        Ok(self.items.abs_diff(before))
    }

    /// Builds a filter without counters from the fingerprints of this one and an ascending batch: in one pass if the
    /// kind of slots has a faster one, otherwise by extraction, combination and layout. Waits.
    fn rebuilt(&self, stream: &Stream, batch: &Fingerprints, change: Change) -> Result<QuotientFilter<S>, Error> {
        match S::rebuilt(stream, &self.layout, &self.words, batch, change)? {
            Some((words, items)) => Ok(QuotientFilter::from_parts(&self.device, self.layout, words, items)),
            None => self.rewritten_with(stream, batch, change),
        }
    }

    /// Applies an ascending batch like [`QuotientFilter::update_sorted`] to a copy of a filter without counters.
    /// Besides this filter it takes memory for the slots of one more, and for two more only where an insertion in place
    /// has to merge a rest.
    pub(crate) fn changed(
        &self,
        stream: &Stream,
        sorted: &Fingerprints,
        change: Change,
    ) -> Result<QuotientFilter<S>, Error> {
        if self.method_for(sorted.len(), change, UpdateMethod::Auto) == UpdateMethod::InPlace {
            let mut copy = self.queued_clone(stream)?;
            if copy.change_in_place(stream, sorted, change)?.is_some() && copy.items <= self.layout.limit {
                return Ok(copy);
            }
        }
        self.rebuilt(stream, sorted, change)
    }
}

#[cfg(test)]
mod tests;
