//! Copies inserted and removed by number, listed, and counted by a histogram; keys of exact filters.

use warpset_base::filter::same_length;
use warpset_base::words::zeroed_vec;
use warpset_core::quotient::Split;
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};

use super::counted_fingerprints::{CountedFingerprints, DIFFERENCE, total};
use super::fingerprints::{Fingerprints, TooWide};
use super::launch::waiting_on_errors;
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact};
use crate::cpu::counted::removals;
use crate::cpu::rewrite::MOST_COPIES;
use crate::slot_kind::{Change, Counts};
use crate::{Duplicates, Error, Key, Layout};

/// Split of fingerprints of 64 bits.
const WIDEST: Split = Split { quotient_bits: 3, remainder_bits: 61 };

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Inserts key `i` `copies[i]` times. Returns the growth of the number of stored fingerprints. Needs counters.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one number per key, [`Error::NoCounters`] without counters. The filter
    /// is unchanged then, and if the copies do not all fit.
    pub fn insert_counted_bulk<K: Key>(&mut self, keys: &[K], copies: &[u64]) -> Result<u64, Error> {
        same_length(keys.len(), copies.len())?;
        self.expect_counters()?;
        self.check_total(copies.iter().map(|&copies| copies as u128).sum())?;
        let (some, copies): (Vec<&K>, Vec<u64>) =
            keys.iter().zip(copies).filter(|(_, copies)| **copies > 0).map(|(key, &copies)| (key, copies)).unzip();
        if some.is_empty() {
            return Ok(0);
        }
        let (stream, layout) = (self.ready_stream()?, self.layout);
        let of = layout.fingerprints_of();
        let fingerprints: Result<Vec<u64>, Error> =
            some.into_iter().map(|key| layout.expect_fingerprint(of.of(key))).collect();
        let fingerprints = Fingerprints::from_host(&layout, &stream, &fingerprints?)?;
        let batch = CountedFingerprints::of_pairs(&layout, &stream, fingerprints, stream.from_slice(&copies)?)?;
        self.recount(&stream, &batch, Change::Insert)
    }

    /// Removes up to `copies[i]` copies of key `i`. Returns the decrease of the number of stored fingerprints. In a
    /// set, any number above zero removes the fingerprint.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one number per key; nothing is removed then.
    pub fn remove_counted_bulk<K: Key>(&mut self, keys: &[K], copies: &[u64]) -> Result<u64, Error> {
        same_length(keys.len(), copies.len())?;
        let batch = removals(&self.layout, keys, copies);
        if batch.is_empty() {
            return Ok(0);
        }
        let (fingerprints, copies): (Vec<u64>, Vec<u64>) =
            batch.into_iter().map(|item| (item.fingerprint, item.copies)).unzip();
        let (stream, layout) = (self.ready_stream()?, self.layout);
        let fingerprints = Fingerprints::from_host(&layout, &stream, &fingerprints)?;
        let batch = CountedFingerprints::of_pairs(&layout, &stream, fingerprints, stream.from_slice(&copies)?)?;
        self.recount(&stream, &batch, Change::Remove)
    }

    /// Inserts keys and numbers on the device, like [`QuotientFilter::insert_counted_bulk`].
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert_counted_bulk`]; memory of another device is refused.
    pub fn insert_counted_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        copies: DeviceSlice<'_, u64>,
    ) -> Result<u64, Error> {
        self.expect_counters()?;
        self.recount_device(keys, copies, Change::Insert)
    }

    /// Removes up to `copies[i]` copies of key `i`. Returns the decrease of the number of stored fingerprints. In a
    /// set, any number above zero removes the fingerprint.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one number per key.
    pub fn remove_counted_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        copies: DeviceSlice<'_, u64>,
    ) -> Result<u64, Error> {
        self.recount_device(keys, copies, Change::Remove)
    }

    fn recount_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        copies: DeviceSlice<'_, u64>,
        change: Change,
    ) -> Result<u64, Error> {
        same_length(keys.count(), copies.len())?;
        if keys.count() == 0 {
            return Ok(0);
        }
        self.device.expect_all_here([keys.device(), copies.device()], "changing a quotient filter")?;
        let (stream, layout) = (self.ready_stream()?, self.layout);
        if change == Change::Insert {
            self.check_total(total(&stream, copies)?)?;
        }
        let mut own = stream.alloc_uninit::<u64>(copies.len())?;
        stream.copy(&mut own, copies)?;
        let too_wide = match change {
            Change::Insert => TooWide::Refused,
            Change::Remove => TooWide::Zeroed(own.global_mut()),
        };
        waiting_on_errors(&stream, || {
            // SAFETY: keys and copies are borrowed until the stream has been waited for, on an error too; there is a
            // number per key.
            let fingerprints = unsafe { Fingerprints::of_device_keys(&layout, &stream, keys, too_wide)? };
            let batch = CountedFingerprints::of_pairs(&layout, &stream, fingerprints, own)?;
            self.recount(&stream, &batch, change)
        })
    }

    pub(super) fn expect_counters(&self) -> Result<(), Error> {
        if self.layout.is_counted() { Ok(()) } else { Err(Error::NoCounters { structure: S::NAME }) }
    }

    /// Refuses more copies than can be added.
    fn check_total(&self, copies: u128) -> Result<(), Error> {
        if copies > (MOST_COPIES - self.items) as u128 { Err(Error::TooManyCopies) } else { Ok(()) }
    }

    /// Inserts or removes ascending fingerprints with their copies. Returns the change of the number of fingerprints,
    /// and waits. On an error the filter is unchanged.
    pub(crate) fn recount(
        &mut self,
        stream: &Stream,
        batch: &CountedFingerprints,
        change: Change,
    ) -> Result<u64, Error> {
        let before = self.items;
        let stored = self.extract_counts(stream)?;
        let all = match change {
            Change::Insert => stored.merged(batch, &self.layout, stream)?,
            Change::Remove => {
                let mut left = stored;
                left.combine(stream, batch, DIFFERENCE)?;
                left
            }
        };
        *self = QuotientFilter::from_counts(stream, self.layout, all)?;
        Ok(self.items.abs_diff(before))
    }

    /// Builds a filter of ascending fingerprints with their copies. Waits for all of `stream`, on an error too.
    pub(crate) fn from_counts(
        stream: &Stream,
        layout: Layout,
        mut counts: CountedFingerprints,
    ) -> Result<QuotientFilter<S>, Error> {
        waiting_on_errors(stream, || {
            if layout.is_counted() {
                let (words, held) = S::lay_out_counts(stream, &layout, &counts)?;
                return Ok(QuotientFilter::from_parts(stream.device(), layout, words, held));
            }
            let most = if layout.duplicates == Duplicates::Dropped { 1 } else { u64::MAX };
            counts.bound(stream, 1, most)?;
            let total = counts.total(stream)?;
            if total > layout.limit as u128 {
                return Err(layout.full(u64::try_from(total).unwrap_or(u64::MAX)));
            }
            let all = counts.repeated(&layout, stream, total as usize)?;
            QuotientFilter::lay_out(stream, layout, &all)
        })
    }

    /// Extracts the stored fingerprints with their copies. Waits.
    pub(super) fn extract_counts(&self, stream: &Stream) -> Result<CountedFingerprints, Error> {
        self.extract_counts_for(&self.layout, stream, 0)
    }

    /// Extracts the stored fingerprints with their copies, `dropped` bits shorter, in the words of a layout. Waits.
    pub(super) fn extract_counts_for(
        &self,
        layout: &Layout,
        stream: &Stream,
        dropped: u32,
    ) -> Result<CountedFingerprints, Error> {
        if !self.layout.is_counted() {
            return CountedFingerprints::of_sorted(layout, stream, &self.extract_for(layout, stream, dropped)?);
        }
        let room = Fingerprints::alloc(layout, stream, self.slots_used() as usize)?;
        let counts = self.counts_in(stream, dropped, room)?;
        if dropped > 0 { counts.reduced(layout, stream) } else { Ok(counts) }
    }

    /// Extracts the fingerprints of a filter with counters, and their copies, into memory with a place for each slot in
    /// use.
    fn counts_in(&self, stream: &Stream, dropped: u32, room: Fingerprints) -> Result<CountedFingerprints, Error> {
        if self.items == 0 {
            return Ok(CountedFingerprints { fingerprints: room, copies: stream.alloc_uninit(0)?, len: 0 });
        }
        S::extract_counts(self, stream, dropped, room)
    }

    /// Extracts the stored fingerprints with their copies in 64-bit words. Waits.
    fn wide_counts(&self, stream: &Stream) -> Result<CountedFingerprints, Error> {
        if self.layout.is_counted() {
            return self.counts_in(stream, 0, Fingerprints::Wide(stream.alloc_uninit(self.slots_used() as usize)?));
        }
        let widest = Layout { split: WIDEST, ..self.layout };
        CountedFingerprints::of_sorted(&widest, stream, &self.extract_wide(stream)?)
    }

    /// Extracts the stored fingerprints in ascending order, copies included, of a filter with counters. Waits.
    pub(super) fn counted_fingerprints(&self, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
        let widest = Layout { split: WIDEST, ..self.layout };
        let all = self.wide_counts(stream)?.repeated(&widest, stream, self.items as usize)?;
        stream.synchronize()?;
        Ok(all.into_wide())
    }

    /// Returns the different stored fingerprints in ascending order, with their numbers of copies.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn fingerprint_counts(&self) -> Result<Vec<(u64, u64)>, Error> {
        let (fingerprints, copies) = self.fingerprint_counts_device()?;
        Ok(fingerprints.to_vec()?.into_iter().zip(copies.to_vec()?).collect())
    }

    /// Returns what [`QuotientFilter::fingerprint_counts`] does as two vectors in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn fingerprint_counts_device(&self) -> Result<(DeviceVec<u64>, DeviceVec<u64>), Error> {
        let stream = self.ready_stream()?;
        let CountedFingerprints { fingerprints, copies, len } = self.wide_counts(&stream)?;
        let mut listed = (stream.alloc_uninit(len)?, stream.alloc_uninit(len)?);
        stream.copy(&mut listed.0, fingerprints.into_wide().slice(..len))?;
        stream.copy(&mut listed.1, copies.slice(..len))?;
        stream.synchronize()?;
        Ok(listed)
    }

    /// Returns the keys of an exact filter, copies included, in the order of their fingerprints.
    ///
    /// # Errors
    /// [`Error::NotExact`] if it is not.
    pub fn keys(&self) -> Result<Vec<u64>, Error> {
        Ok(self.keys_device()?.to_vec()?)
    }

    /// Returns what [`QuotientFilter::keys`] does in device memory.
    ///
    /// # Errors
    /// [`Error::NotExact`] if the filter is not exact; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn keys_device(&self) -> Result<DeviceVec<u64>, Error> {
        self.expect_exact()?;
        let mut keys = self.fingerprints_device()?;
        self.device.waiting(|stream| exact::to_keys(&self.layout, stream, &mut keys))?;
        Ok(keys)
    }

    /// Returns the different keys of an exact filter, with their numbers of copies, in the order of their fingerprints.
    ///
    /// # Errors
    /// [`Error::NotExact`] if it is not.
    pub fn key_counts(&self) -> Result<Vec<(u64, u64)>, Error> {
        let (keys, copies) = self.key_counts_device()?;
        Ok(keys.to_vec()?.into_iter().zip(copies.to_vec()?).collect())
    }

    /// Returns what [`QuotientFilter::key_counts`] does as two vectors in device memory.
    ///
    /// # Errors
    /// [`Error::NotExact`] if the filter is not exact; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn key_counts_device(&self) -> Result<(DeviceVec<u64>, DeviceVec<u64>), Error> {
        self.expect_exact()?;
        let (mut keys, copies) = self.fingerprint_counts_device()?;
        self.device.waiting(|stream| exact::to_keys(&self.layout, stream, &mut keys))?;
        Ok((keys, copies))
    }

    fn expect_exact(&self) -> Result<(), Error> {
        if self.layout.exact { Ok(()) } else { Err(Error::NotExact) }
    }

    /// Returns a histogram of copies. Entry `c` is the number of fingerprints with `c` copies; the last entry, `most`,
    /// also counts those with more.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is no memory for `most + 1` numbers, [`Error::Gpu`] if the device fails or has
    /// too little memory.
    pub fn count_histogram(&self, most: usize) -> Result<Vec<u64>, Error> {
        let mut counted = zeroed_vec((most as u64).saturating_add(1))?;
        // No fingerprint has more copies than there are in all.
        let entries = counted.len().min(usize::try_from(self.items).unwrap_or(usize::MAX).saturating_add(1));
        let stream = self.ready_stream()?;
        self.extract_counts(&stream)?.histogram(&stream, &mut counted[..entries])?;
        Ok(counted)
    }

    /// Removes all fingerprints with fewer than `least` copies. Returns the decrease of the number of stored
    /// fingerprints, copies included.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn retain_counts(&mut self, least: u64) -> Result<u64, Error> {
        let (stream, before) = (self.ready_stream()?, self.items);
        let mut counts = self.extract_counts(&stream)?;
        counts.bound(&stream, least, u64::MAX)?;
        *self = QuotientFilter::from_counts(&stream, self.layout, counts)?;
        Ok(before - self.items)
    }

    /// Returns the slots in use: one per fingerprint, unless they are counted.
    pub(crate) fn slots_used(&self) -> u64 {
        if self.layout.is_counted() { self.counted_slots } else { self.items }
    }

    /// Returns the contents in numbers.
    pub(super) fn held(&self) -> Counts {
        Counts { copies: self.items, slots: self.slots_used() }
    }
}
