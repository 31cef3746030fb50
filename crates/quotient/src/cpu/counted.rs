//! Copies inserted and removed by number, listed, and counted by a histogram.

use warpset_base::filter::same_length;
use warpset_base::parallel;
use warpset_base::sort::sort_by_rank;
use warpset_core::quotient::combine::Combination;

use super::QuotientFilter;
use super::batch::{REMOVE_IN_PLACE_SLOTS_PER_KEY, counted};
use super::fingerprint_source::{self, Each, Kept};
use super::fingerprints::HASH_NS;
use super::rewrite::{MOST_COPIES, lay_out};
use crate::slot_kind::{Change, Copies, SlotKind};
use crate::{Error, Key, Layout, View};

impl<S: SlotKind> QuotientFilter<S> {
    /// Does what `copies` calls of [`insert`](QuotientFilter::insert) do, or nothing if one of them would fail. Returns
    /// the growth of the number of stored fingerprints. With counters it costs as much as one call.
    ///
    /// ```
    /// use warpset_quotient::{Duplicates, RankSelectQuotientFilter};
    ///
    /// let mut words = RankSelectQuotientFilter::builder(1000).duplicates(Duplicates::Counted).build()?;
    /// words.insert_counted("the", 1_000_000_000_000)?;
    /// words.insert("the")?;
    /// assert_eq!((words.count("the"), words.distinct()), (1_000_000_000_001, 1));
    /// assert_eq!(words.remove_counted("the", u64::MAX), 1_000_000_000_001);
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert`].
    pub fn insert_counted(&mut self, key: impl Key, copies: u64) -> Result<u64, Error> {
        self.insert_counted_fingerprint(self.layout.expect_fingerprint(self.layout.fingerprint(key))?, copies)
    }

    /// Inserts copies of a fingerprint as [`QuotientFilter::insert_counted`] does of a key's.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert_fingerprint`].
    pub fn insert_counted_fingerprint(&mut self, fingerprint: u64, copies: u64) -> Result<u64, Error> {
        let layout = &self.layout;
        layout.check_fingerprint(fingerprint)?;
        if copies == 0 {
            return Ok(0);
        }
        if !layout.is_counted() {
            let copies = if layout.keeps_duplicates() { copies } else { 1 };
            if copies > layout.limit {
                return Err(layout.full(self.held.slots.saturating_add(copies)));
            }
            return self.insert_fingerprints_bulk(&vec![fingerprint; copies as usize]);
        }
        self.add_copies(fingerprint, copies)
    }

    /// Inserts at least one copy of a fingerprint of valid length, with counters.
    #[inline]
    pub(super) fn add_copies(&mut self, fingerprint: u64, copies: u64) -> Result<u64, Error> {
        if copies > MOST_COPIES - self.held.copies {
            return Err(Error::TooManyCopies);
        }
        let words = self.words.as_mut_slice();
        let Some(added) = S::recount(&self.layout, words, fingerprint, copies, Change::Insert) else {
            return Err(self.layout.no_slot());
        };
        if self.held.slots + added.slots > self.layout.limit {
            return Err(self.take_back(fingerprint, copies, added.slots));
        }
        self.held += added;
        Ok(copies)
    }

    /// Removes the copies that take too many slots. It is a function of its own, because insertions are faster without
    /// it.
    #[cold]
    #[inline(never)]
    fn take_back(&mut self, fingerprint: u64, copies: u64, slots: u64) -> Error {
        S::recount(&self.layout, self.words.as_mut_slice(), fingerprint, copies, Change::Remove);
        self.layout.full(self.held.slots + slots)
    }

    /// Does what `copies` calls of [`remove`](QuotientFilter::remove) do. Returns the number of removed copies.
    pub fn remove_counted(&mut self, key: impl Key, copies: u64) -> u64 {
        let fingerprint = self.layout.fingerprint(key);
        fingerprint.map_or(0, |fingerprint| self.remove_counted_fingerprint(fingerprint, copies))
    }

    /// Removes copies of a fingerprint as [`QuotientFilter::remove_counted`] does of a key's.
    pub fn remove_counted_fingerprint(&mut self, fingerprint: u64, copies: u64) -> u64 {
        if fingerprint > self.layout.last_fingerprint() || copies == 0 {
            return 0;
        }
        if !self.layout.is_counted() {
            return (0..copies).take_while(|_| self.remove_fingerprint(fingerprint)).count() as u64;
        }
        let words = self.words.as_mut_slice();
        let removed = S::recount(&self.layout, words, fingerprint, copies, Change::Remove).unwrap_or_default();
        self.held -= removed;
        removed.copies
    }

    /// Inserts key `i` `copies[i]` times. Returns the growth of the number of stored fingerprints. Needs counters.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one number per key, [`Error::NoCounters`] without counters.
    pub fn insert_counted_bulk<K: Key>(&mut self, keys: &[K], copies: &[u64]) -> Result<u64, Error> {
        same_length(keys.len(), copies.len())?;
        if !self.layout.is_counted() {
            return Err(Error::NoCounters { structure: S::NAME });
        }
        let (layout, of, before) = (self.layout, self.layout.fingerprints_of(), self.held.copies);
        let total = copies.iter().try_fold(before, |sum, &copies| sum.checked_add(copies));
        if total.is_none_or(|total| total > MOST_COPIES) {
            return Err(Error::TooManyCopies);
        }
        let with_copies = |(key, &copies): (&K, &u64)| {
            layout.expect_fingerprint(of.of(key)).map(|fingerprint| Copies { fingerprint, copies })
        };
        let task = parallel::task_len(keys.len(), HASH_NS);
        let parts = parallel::map(keys.chunks(task).zip(copies.chunks(task)), |(keys, copies)| {
            keys.iter().zip(copies).filter(|(_, copies)| **copies > 0).map(with_copies).collect()
        });
        let mut all = parts.into_iter().collect::<Result<Vec<Vec<Copies>>, Error>>()?.concat();
        sort_by_rank(&mut all, layout.fingerprint_bits(), |item| item.fingerprint);
        let all = counted(&all);
        if !all.is_empty() {
            *self = self.combined_with_counted(Combination::Sum, &all)?;
        }
        Ok(self.held.copies - before)
    }

    /// Removes up to `copies[i]` copies of key `i`. Returns the decrease of the number of stored fingerprints. In a
    /// set, any number above zero removes the fingerprint.
    ///
    /// ```
    /// use warpset_quotient::{Duplicates, RankSelectQuotientFilter};
    ///
    /// let mut stock = RankSelectQuotientFilter::builder(1000).duplicates(Duplicates::Counted).build()?;
    /// stock.insert_counted_bulk(&["nuts", "bolts"], &[1000, 5])?;
    /// assert_eq!(stock.remove_counted_bulk(&["nuts", "bolts", "nuts"], &[1, 9, 2])?, 8);
    /// assert_eq!((stock.count("nuts"), stock.contains("bolts")), (997, false));
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one number per key; nothing is removed then.
    pub fn remove_counted_bulk<K: Key>(&mut self, keys: &[K], copies: &[u64]) -> Result<u64, Error> {
        same_length(keys.len(), copies.len())?;
        let (batch, before) = (removals(&self.layout, keys, copies), self.held.copies);
        if self.layout.is_counted() && batch.len() as u64 > self.layout.slots() / REMOVE_IN_PLACE_SLOTS_PER_KEY {
            // Without memory for a second filter, this one is changed in place.
            if let Ok(rewritten) = self.combined_with_counted(Combination::Difference, &batch) {
                *self = rewritten;
                return Ok(before - self.held.copies);
            }
        }
        for Copies { fingerprint, copies } in batch {
            self.remove_counted_fingerprint(fingerprint, copies);
        }
        Ok(before - self.held.copies)
    }

    /// Removes all fingerprints with fewer than `least` copies. Returns the decrease of the number of stored
    /// fingerprints, copies included.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is no memory for the rewritten filter.
    pub fn retain_counts(&mut self, least: u64) -> Result<u64, Error> {
        let before = self.held.copies;
        let kept = Kept { source: fingerprint_source::stored::<S, Copies>(self.view(), 0), least };
        *self = if self.layout.is_counted() {
            lay_out(self.layout, &kept)?
        } else {
            let all = Each(fingerprint_source::AscendingSource::read_from(&kept, 0));
            let fingerprints: Vec<u64> =
                all.flat_map(|item| std::iter::repeat_n(item.fingerprint, item.copies as usize)).collect();
            lay_out(self.layout, &fingerprint_source::Sorted(&fingerprints))?
        };
        Ok(before - self.held.copies)
    }
}

/// Returns the fingerprints, ascending and each once, that a removal of `copies[i]` copies of key `i` takes out.
pub(crate) fn removals<K: Key>(layout: &Layout, keys: &[K], copies: &[u64]) -> Vec<Copies> {
    let of = layout.fingerprints_of();
    let meant = keys.iter().zip(copies).filter(|(_, copies)| **copies > 0);
    let mut all: Vec<Copies> =
        meant.filter_map(|(key, &copies)| Some(Copies { fingerprint: of.of(key)?, copies })).collect();
    sort_by_rank(&mut all, layout.fingerprint_bits(), |item| item.fingerprint);
    all.dedup_by(|item, kept| {
        let is_equal = item.fingerprint == kept.fingerprint;
        if is_equal {
            // The sum may exceed any stored number of copies.
            kept.copies = kept.copies.saturating_add(item.copies);
        }
        is_equal
    });
    all
}

impl<'a, S: SlotKind> View<'a, S> {
    /// Iterates over the different stored fingerprints in ascending order, with their numbers of copies.
    pub fn fingerprint_counts(&self) -> impl Iterator<Item = (u64, u64)> + use<'a, S> {
        let all = Each(fingerprint_source::stored::<S, Copies>(*self, 0).read_from(0));
        all.map(|Copies { fingerprint, copies }| (fingerprint, copies))
    }

    /// Iterates over the keys of an exact filter, copies included, in no order.
    ///
    /// # Errors
    /// [`Error::NotExact`] if it is not.
    pub fn keys(&self) -> Result<impl Iterator<Item = u64> + use<'a, S>, Error> {
        let layout = *self.layout();
        if !layout.exact {
            return Err(Error::NotExact);
        }
        Ok(self.fingerprints().map(move |fingerprint| layout.key_of(fingerprint)))
    }

    /// Iterates over the different keys of an exact filter, with their numbers of copies, in no order.
    ///
    /// # Errors
    /// [`Error::NotExact`] if it is not.
    pub fn key_counts(&self) -> Result<impl Iterator<Item = (u64, u64)> + use<'a, S>, Error> {
        let layout = *self.layout();
        if !layout.exact {
            return Err(Error::NotExact);
        }
        Ok(self.fingerprint_counts().map(move |(fingerprint, copies)| (layout.key_of(fingerprint), copies)))
    }

    /// Returns a histogram of copies. Entry `c` is the number of fingerprints with `c` copies; the last entry, `most`,
    /// also counts those with more. Takes time per stored fingerprint, whatever `most` is, and memory for `most + 1`
    /// numbers.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if there is no memory for `most + 1` numbers.
    pub fn count_histogram(&self, most: usize) -> Result<Vec<u64>, Error> {
        Ok(fingerprint_source::histogram(*self, most)?)
    }
}
