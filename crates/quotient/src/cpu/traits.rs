//! Operations on many keys, by the traits of filters.

use warpset_base::filter::{Count, Filter, Insert, Remove, Take, TestAndInsert, same_length};

use super::QuotientFilter;
use super::fingerprints::{sorted_fingerprints, sorted_fingerprints_of_some};
use super::test_and_insert::new_keys;
use crate::slot_kind::{Counts, SlotKind};
use crate::{Error, Key, View};

impl<S: SlotKind> Filter for View<'_, S> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        take(0, &self.bits(keys));
        Ok(())
    }
    warpset_base::by_inherent! {
        fn memory_bytes(&self) -> u64;
        fn contains(&self, key: impl Key) -> Result<bool, Error> as Ok;
    }
}
warpset_base::filters_by_view! {
    Error;
    [S: SlotKind] QuotientFilter<S>;
    #[cfg(feature = "mmap")]
    [S: SlotKind] crate::Mapped<S>;
}

impl<S: SlotKind> Count for View<'_, S> {
    fn count_bulk_into<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Error> {
        same_length(keys.len(), counts.len())?;
        self.fill_counts(keys, counts);
        Ok(())
    }
}
impl<S: SlotKind> Count for QuotientFilter<S> {
    fn count_bulk_into<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Error> {
        self.view().count_bulk_into(keys, counts)
    }
}
#[cfg(feature = "mmap")]
impl<S: SlotKind> Count for crate::Mapped<S> {
    fn count_bulk_into<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Error> {
        self.view().count_bulk_into(keys, counts)
    }
}

impl<S: SlotKind> Insert for QuotientFilter<S> {
    /// Number of fingerprints added.
    type Inserted = u64;

    /// Inserts all keys. Returns the number of fingerprints added.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::OverflowRegionFull`] if they do not all fit, [`Error::TooManyCopies`] if there would
    /// be more copies than counters take, [`Error::KeyTooWide`] if the filter is exact and a key has too many bits,
    /// [`Error::OutOfMemory`]. The filter is unchanged then.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.insert_sorted(sorted_fingerprints(&self.layout, keys)?)
    }

    fn insert(&mut self, key: impl Key) -> Result<(), Error> {
        self.insert(key).map(|_| ())
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.words.as_mut_slice().fill(0);
        self.held = Counts::default();
        Ok(())
    }

    warpset_base::by_inherent! {
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

/// The batch is looked up and inserted, and the absent keys are sorted.
///
/// ```
/// use warpset_quotient::{StandardQuotientFilter, TestAndInsert};
///
/// let mut seen = StandardQuotientFilter::builder(1000).build_from(&["a"])?;
/// assert_eq!(seen.test_and_insert_bulk(&["a", "b", "b"])?, [false, true, false]);
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
impl<S: SlotKind> TestAndInsert for QuotientFilter<S> {
    fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        let there = self.contains_bitmap_bulk(keys)?;
        self.insert_bulk(keys)?;
        new_keys(&self.layout, keys, &there, new);
        Ok(())
    }
}

impl<S: SlotKind> Remove for QuotientFilter<S> {
    /// Removes the fingerprints of all keys. Returns the number of fingerprints removed.
    ///
    /// Each key removes one copy of its fingerprint if there is one. In a set, keys with equal fingerprints remove it
    /// together; in a multiset, they remove one copy per key.
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        Ok(self.remove_sorted(&sorted_fingerprints_of_some(&self.layout, keys)))
    }
}
