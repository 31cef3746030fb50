//! Operations on many keys, by the traits of filters.

use warpset_base::filter::{Count, Filter, Insert, Remove, Take, TestAndInsert, same_length};

use super::QuotientFilter;
use super::fingerprints::{sorted_fingerprints, sorted_fingerprints_of_some};
use super::test_and_insert::new_keys;
use crate::slot_kind::{Counts, SlotKind};
use crate::{Error, Key, View};

/// Implements the traits of queries by a view.
macro_rules! queries {
    ($($(#[$attribute:meta])* $filter:ty, |$this:ident| $view:expr;)*) => {$(
        $(#[$attribute])*
        impl<S: SlotKind> Filter for $filter {
            type Error = Error;

            fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
                let $this = self;
                take(0, &$view.bits(keys));
                Ok(())
            }
            fn memory_bytes(&self) -> u64 {
                let $this = self;
                $view.memory_bytes()
            }
            fn contains(&self, key: impl Key) -> Result<bool, Error> {
                Ok(self.contains(key))
            }
        }

        $(#[$attribute])*
        impl<S: SlotKind> Count for $filter {
            fn count_bulk_into<K: Key>(&self, keys: &[K], counts: &mut [u64]) -> Result<(), Error> {
                same_length(keys.len(), counts.len())?;
                let $this = self;
                $view.fill_counts(keys, counts);
                Ok(())
            }
        }
    )*};
}
queries! {
    QuotientFilter<S>, |filter| filter.view();
    View<'_, S>, |view| view;
    #[cfg(feature = "mmap")]
    crate::Mapped<S>, |map| map.view();
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
