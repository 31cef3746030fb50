//! Copies: put in and taken out by their number, listed, counted by how many there are; and the keys of exact filters.

use warpset_base::filter::same_length;
use warpset_gpu::{DeviceSlice, DeviceVec, Stream};

use super::counts::{self, Counts, DIFFERENCE};
use super::fingerprints::{Fingerprints, Misfits};
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact};
use crate::cpu::MOST_COPIES;
use crate::slot_kind::{Change, Tally};
use crate::{Duplicates, Error, Key, Layout};

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Inserts key `i` `copies[i]` times; returns how many more fingerprints are stored than before. Needs counters.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one number per key, [`Error::NoCounters`] without counters; then, and where
    /// the copies do not all fit, nothing has been changed.
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
        let batch = Counts::of_pairs(&layout, &stream, fingerprints, stream.from_slice(&copies)?)?;
        self.recount(&stream, &batch, Change::Insert)
    }

    /// [`QuotientFilter::insert_counted_bulk`] for keys and numbers on the device.
    pub fn insert_counted_device<K: DeviceKeys>(
        &mut self,
        keys: K,
        copies: DeviceSlice<'_, u64>,
    ) -> Result<u64, Error> {
        self.expect_counters()?;
        self.recount_device(keys, copies, Change::Insert)
    }

    /// Removes up to `copies[i]` copies of key `i`; returns how many fewer fingerprints are stored than before. Of a set, any
    /// number above zero removes the fingerprint.
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
        for device in [keys.device(), copies.device()] {
            self.device.expect_same(device, "changing a quotient filter")?;
        }
        let (stream, layout) = (self.ready_stream()?, self.layout);
        if change == Change::Insert {
            self.check_total(counts::total(&stream, copies)?)?;
        }
        let mut own = stream.alloc_uninit::<u64>(copies.len())?;
        stream.copy(&mut own, copies)?;
        // SAFETY: keys and copies are borrowed until the stream has been waited for, on an error too; there is a number per
        // key.
        let batch = unsafe {
            let misfits = match change {
                Change::Insert => Misfits::Refused,
                Change::Remove => Misfits::Zeroed(own.global_mut()),
            };
            Fingerprints::of_device_keys(&layout, &stream, keys, misfits)
                .and_then(|fingerprints| Counts::of_pairs(&layout, &stream, fingerprints, own))
        };
        let changed = batch.and_then(|batch| self.recount(&stream, &batch, change));
        if changed.is_err() {
            stream.synchronize()?;
        }
        changed
    }

    fn expect_counters(&self) -> Result<(), Error> {
        if self.layout.is_counted() { Ok(()) } else { Err(Error::NoCounters { structure: S::NAME }) }
    }

    /// An error if these are more copies than can be added.
    fn check_total(&self, copies: u128) -> Result<(), Error> {
        if copies > (MOST_COPIES - self.items) as u128 { Err(Error::TooManyCopies) } else { Ok(()) }
    }

    /// Inserts or removes ascending fingerprints with their copies; returns by how many the fingerprints changed, and waits. On
    /// an error the filter is as it was.
    pub(crate) fn recount(&mut self, stream: &Stream, batch: &Counts, change: Change) -> Result<u64, Error> {
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

    /// A filter of ascending fingerprints with their copies. Waits for all of `stream`, on an error too.
    pub(crate) fn from_counts(stream: &Stream, layout: Layout, mut counts: Counts) -> Result<QuotientFilter<S>, Error> {
        let mut made = || {
            if layout.is_counted() {
                let (words, held) = S::lay_out_counts(stream, &layout, &counts)?;
                return Ok(QuotientFilter::from_tally(stream.device(), layout, words, held));
            }
            // One more than fit is enough to say so.
            let most = if layout.duplicates == Duplicates::Dropped { 1 } else { layout.limit + 1 };
            counts.bound(stream, 1, most)?;
            let total = counts.total(stream)?;
            if total > layout.limit as u128 {
                return Err(Error::Full { items: layout.limit + 1, limit: layout.limit });
            }
            let all = counts.repeated(&layout, stream, total as usize)?;
            QuotientFilter::lay_out(stream, layout, &all, S::BuildMethod::default())
        };
        let made = made();
        if made.is_err() {
            stream.synchronize()?;
        }
        made
    }

    /// The stored fingerprints with their copies. Waits.
    pub(super) fn extract_counts(&self, stream: &Stream) -> Result<Counts, Error> {
        self.extract_counts_for(&self.layout, stream, 0)
    }

    /// The same as fingerprints of a layout, `dropped` bits shorter. Waits.
    pub(super) fn extract_counts_for(&self, layout: &Layout, stream: &Stream, dropped: u32) -> Result<Counts, Error> {
        if !self.layout.is_counted() {
            return Counts::of_sorted(layout, stream, &self.extract_for(layout, stream, dropped)?);
        }
        let room = Fingerprints::alloc(layout, stream, self.slots_used() as usize)?;
        let counts = self.counts_in(stream, dropped, room)?;
        if dropped > 0 { counts.reduced(layout, stream) } else { Ok(counts) }
    }

    /// The fingerprints of a filter with counters, and their copies, in memory with a place for each slot in use.
    fn counts_in(&self, stream: &Stream, dropped: u32, room: Fingerprints) -> Result<Counts, Error> {
        if self.items == 0 {
            return Ok(Counts { fingerprints: room, copies: stream.alloc_uninit(0)?, len: 0 });
        }
        S::extract_counts(self, stream, dropped, room)
    }

    /// The same in words of 64 bits, whatever the layout. Waits.
    fn wide_counts(&self, stream: &Stream) -> Result<Counts, Error> {
        if self.layout.is_counted() {
            return self.counts_in(stream, 0, Fingerprints::Wide(stream.alloc_uninit(self.slots_used() as usize)?));
        }
        let mut all = stream.alloc_uninit::<u64>(self.items as usize)?;
        self.extract_into(stream, 0, &mut all)?;
        let widest = Layout { split: crate::layout::WIDEST, ..self.layout };
        Counts::of_sorted(&widest, stream, &Fingerprints::Wide(all))
    }

    /// The stored fingerprints in ascending order, copies included, of a filter with counters. Waits.
    pub(super) fn counted_fingerprints(&self, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
        let widest = Layout { split: crate::layout::WIDEST, ..self.layout };
        let all = self.wide_counts(stream)?.repeated(&widest, stream, self.items as usize)?;
        stream.synchronize()?;
        Ok(all.into_wide())
    }

    /// The stored fingerprints in ascending order, each once, with the number of its copies.
    pub fn fingerprint_counts(&self) -> Result<Vec<(u64, u64)>, Error> {
        let (fingerprints, copies) = self.fingerprint_counts_device()?;
        Ok(fingerprints.to_vec()?.into_iter().zip(copies.to_vec()?).collect())
    }

    /// [`QuotientFilter::fingerprint_counts`] as two vectors in device memory.
    pub fn fingerprint_counts_device(&self) -> Result<(DeviceVec<u64>, DeviceVec<u64>), Error> {
        let stream = self.ready_stream()?;
        let Counts { fingerprints, copies, len } = self.wide_counts(&stream)?;
        let mut listed = (stream.alloc_uninit(len)?, stream.alloc_uninit(len)?);
        stream.copy(&mut listed.0, fingerprints.into_wide().slice(..len))?;
        stream.copy(&mut listed.1, copies.slice(..len))?;
        stream.synchronize()?;
        Ok(listed)
    }

    /// The keys of an exact filter, copies included, in the order of their fingerprints.
    ///
    /// # Errors
    /// [`Error::NotExact`] if it is not.
    pub fn keys(&self) -> Result<Vec<u64>, Error> {
        Ok(self.keys_device()?.to_vec()?)
    }

    /// [`QuotientFilter::keys`] in device memory.
    pub fn keys_device(&self) -> Result<DeviceVec<u64>, Error> {
        self.expect_exact()?;
        let mut keys = self.fingerprints_device()?;
        self.device.waiting(|stream| exact::to_keys(&self.layout, stream, &mut keys))?;
        Ok(keys)
    }

    /// The keys of an exact filter, each once, with the number of its copies, in the order of their fingerprints.
    ///
    /// # Errors
    /// [`Error::NotExact`] if it is not.
    pub fn key_counts(&self) -> Result<Vec<(u64, u64)>, Error> {
        let (keys, copies) = self.key_counts_device()?;
        Ok(keys.to_vec()?.into_iter().zip(copies.to_vec()?).collect())
    }

    /// [`QuotientFilter::key_counts`] as two vectors in device memory.
    pub fn key_counts_device(&self) -> Result<(DeviceVec<u64>, DeviceVec<u64>), Error> {
        self.expect_exact()?;
        let (mut keys, copies) = self.fingerprint_counts_device()?;
        self.device.waiting(|stream| exact::to_keys(&self.layout, stream, &mut keys))?;
        Ok((keys, copies))
    }

    fn expect_exact(&self) -> Result<(), Error> {
        if self.layout.exact { Ok(()) } else { Err(Error::NotExact) }
    }

    /// Entry `c` is how many fingerprints there are with `c` copies, the last entry, `most`, how many with that many or more.
    pub fn count_histogram(&self, most: usize) -> Result<Vec<u64>, Error> {
        let stream = self.ready_stream()?;
        self.extract_counts(&stream)?.histogram(&stream, most.saturating_add(1))
    }

    /// Removes all fingerprints of which there are fewer than `least` copies; returns how many fewer are stored, copies
    /// included.
    pub fn retain_counts(&mut self, least: u64) -> Result<u64, Error> {
        let (stream, before) = (self.ready_stream()?, self.items);
        let mut counts = self.extract_counts(&stream)?;
        counts.bound(&stream, least, u64::MAX)?;
        *self = QuotientFilter::from_counts(&stream, self.layout, counts)?;
        Ok(before - self.items)
    }

    /// Slots in use: as many as fingerprints, unless they are counted.
    pub(crate) fn slots_used(&self) -> u64 {
        if self.layout.is_counted() { self.counted_slots } else { self.items }
    }

    /// What the filter holds.
    pub(super) fn tally(&self) -> Tally {
        Tally { copies: self.items, slots: self.slots_used() }
    }
}
