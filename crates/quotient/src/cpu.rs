//! Quotient filters in host memory, for every kind of slots.

use std::fmt;
use std::marker::PhantomData;

use warpset_base::words::AlignedWords;

use crate::slot_kind::{Change, Changed, Counts, SlotKind};
use crate::{Error, Key, Layout, View};

mod batch;
mod collect;
pub(crate) mod counted;
pub(crate) mod fingerprint_source;
pub(crate) mod fingerprints;
mod from_fingerprints;
mod in_place;
pub(crate) mod one;
mod resize;
pub(crate) mod rewrite;
mod set_operations;
pub(crate) mod test_and_insert;
mod traits;

/// Keys whose cache lines are prefetched before the first of them is looked up.
pub(crate) const BATCH: usize = 32;

/// Quotient filter in host memory: an approximate set or multiset of fingerprints.
///
/// `S` is the kind of its slots; [`StandardQuotientFilter`](crate::StandardQuotientFilter) is the one with three
/// metadata bits per slot.
///
/// - **Cost**: every operation reads the cluster around a key's slot: a few slots at a load of one half, some hundred
///   at 0.95.
/// - **Limits**: at most `layout().limit()` fingerprints; more are refused with [`Error::Full`].
///
/// Operations on many keys sort them. Then they apply them in parallel as single-key operations, each thread in its own
/// part of the filter, or rewrite the filter. Both give the same bytes, because a set of fingerprints has one
/// arrangement in slots.
///
/// ```
/// use warpset_quotient::{Duplicates, StandardQuotientFilter};
///
/// let mut words = StandardQuotientFilter::builder(1000).fpr(1e-6).duplicates(Duplicates::Kept).build()?;
/// words.insert("filter")?;
/// words.insert("filter")?;
/// assert_eq!(words.count("filter"), 2);
/// assert!(words.remove("filter") && words.contains("filter"));
/// assert!(words.remove("filter") && !words.contains("filter"));
/// assert!(!words.remove("filter"));
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
#[derive(Clone)]
pub struct QuotientFilter<S> {
    layout: Layout,
    words: AlignedWords<u64>,
    /// Stored fingerprints and their slots.
    held: Counts,
    slots: PhantomData<S>,
}

impl<S: SlotKind> QuotientFilter<S> {
    /// Makes an empty filter with these parameters.
    pub(crate) fn with_layout(layout: Layout) -> Result<QuotientFilter<S>, Error> {
        Ok(QuotientFilter::from_parts(layout, AlignedWords::zeroed(layout.words())?.in_huge_pages(), Counts::default()))
    }

    /// Makes a filter of words that hold `held` in this layout.
    pub(crate) fn from_parts(layout: Layout, words: AlignedWords<u64>, held: impl Into<Counts>) -> QuotientFilter<S> {
        debug_assert_eq!(words.as_slice().len() as u64, layout.words());
        QuotientFilter { layout, words, held: held.into(), slots: PhantomData }
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the words, little-endian, block by block: the memory image that every backend shares.
    #[inline]
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// Returns a borrow that answers queries.
    #[inline]
    pub fn view(&self) -> View<'_, S> {
        View::new(self.layout, self.words(), self.held)
    }

    /// Returns the stored fingerprints and slots in numbers.
    pub(crate) fn held(&self) -> Counts {
        self.held
    }

    /// Stores a key's fingerprint. Returns `false` if it is there already and duplicates are dropped.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::OverflowRegionFull`] if it does not fit, [`Error::TooManyCopies`] if there would be
    /// more copies than a counter takes, [`Error::KeyTooWide`] if the filter is exact and the key has too many bits.
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Error> {
        self.insert_own(self.layout.expect_fingerprint(self.layout.fingerprint(key))?)
    }

    /// Stores a fingerprint as [`QuotientFilter::insert`] does a key's.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert`], and [`Error::InvalidFingerprint`] if it has too many bits.
    pub fn insert_fingerprint(&mut self, fingerprint: u64) -> Result<bool, Error> {
        self.layout.check_fingerprint(fingerprint)?;
        self.insert_own(fingerprint)
    }

    /// Stores a fingerprint of valid length.
    #[inline]
    fn insert_own(&mut self, fingerprint: u64) -> Result<bool, Error> {
        let layout = &self.layout;
        if layout.is_counted() {
            return self.add_copies(fingerprint, 1).map(|_| true);
        }
        if self.held.slots == layout.limit {
            self.check_full(fingerprint)?;
        }
        match S::change(layout, self.words.as_mut_slice(), fingerprint, Change::Insert) {
            Changed::Done => {
                self.held += 1.into();
                Ok(true)
            }
            Changed::Unchanged => Ok(false),
            Changed::NoSlot => Err(layout.no_slot()),
        }
    }

    /// Refuses a fingerprint that a full filter would have to store. It is called only where insertions find the filter
    /// full, because they are faster without the lookup.
    #[cold]
    #[inline(never)]
    fn check_full(&self, fingerprint: u64) -> Result<(), Error> {
        if self.layout.keeps_duplicates() || !self.contains_fingerprint(fingerprint) {
            return Err(self.layout.full(self.held.slots + 1));
        }
        Ok(())
    }

    /// Removes a key's fingerprint, one copy of it in a multiset. Returns `false` if it is not there.
    ///
    /// Remove only keys that were inserted, because another key may have the same fingerprint. In a set that other key
    /// is then lost; in a multiset both have a copy.
    pub fn remove(&mut self, key: impl Key) -> bool {
        self.layout.fingerprint(key).is_some_and(|fingerprint| self.remove_own(fingerprint))
    }

    /// Removes a fingerprint as [`QuotientFilter::remove`] does a key's.
    pub fn remove_fingerprint(&mut self, fingerprint: u64) -> bool {
        fingerprint <= self.layout.last_fingerprint() && self.remove_own(fingerprint)
    }

    /// Removes a fingerprint of valid length.
    #[inline]
    fn remove_own(&mut self, fingerprint: u64) -> bool {
        if self.layout.is_counted() {
            return self.remove_counted_fingerprint(fingerprint, 1) > 0;
        }
        let changed = S::change(&self.layout, self.words.as_mut_slice(), fingerprint, Change::Remove);
        let removed = changed == Changed::Done;
        self.held -= u64::from(removed).into();
        removed
    }
}

warpset_base::queries_of_view! {
    [S: SlotKind] QuotientFilter<S>;
    #[cfg(feature = "mmap")]
    [S: SlotKind] crate::Mapped<S>;
    => {
        /// Returns the number of stored fingerprints, copies included.
        fn len(&self) -> u64;
        /// Whether no fingerprint is stored.
        fn is_empty(&self) -> bool;
        /// Returns the slots in use as a share of the quotients: `α` in the paper.
        fn load_factor(&self) -> f64;
        /// Returns the bytes of memory of the slots.
        fn memory_bytes(&self) -> u64;
        /// Returns the bits of memory per stored fingerprint.
        fn bits_per_key(&self) -> f64;
        /// Whether the key may be in the filter. Never false for a key that was inserted and not removed.
        fn contains(&self, key: impl Key) -> bool;
        /// Whether this fingerprint is stored.
        fn contains_fingerprint(&self, fingerprint: u64) -> bool;
        /// Returns the number of stored copies of the key's fingerprint.
        fn count(&self, key: impl Key) -> u64;
        /// Returns the number of stored copies of this fingerprint.
        fn count_fingerprint(&self, fingerprint: u64) -> u64;
        /// Iterates over the stored fingerprints in ascending order.
        fn fingerprints(&self) -> impl Iterator<Item = u64> + '_;
        /// Iterates over the different stored fingerprints in ascending order, with their numbers of copies.
        fn fingerprint_counts(&self) -> impl Iterator<Item = (u64, u64)> + '_;
        /// Iterates over the keys of an exact filter, copies included, in no order.
        ///
        /// # Errors
        /// [`Error::NotExact`] if it is not.
        fn keys(&self) -> Result<impl Iterator<Item = u64> + '_, Error>;
        /// Iterates over the different keys of an exact filter, with their numbers of copies, in no order.
        ///
        /// # Errors
        /// [`Error::NotExact`] if it is not.
        fn key_counts(&self) -> Result<impl Iterator<Item = (u64, u64)> + '_, Error>;
        /// Counts the fingerprints with each number of copies; see [`View::count_histogram`].
        ///
        /// # Errors
        /// [`Error::OutOfMemory`] if there is no memory for `most + 1` numbers.
        fn count_histogram(&self, most: usize) -> Result<Vec<u64>, Error>;
        /// Counts the different stored fingerprints.
        fn distinct(&self) -> u64;
        /// Returns the current rate of false positives: the stored share of all fingerprints. It is exact for uniform
        /// hashes.
        fn fpr(&self) -> f64;
        /// Returns the expected rate of false positives with `keys` different keys in the filter.
        fn expected_fpr(&self, keys: u64) -> f64;
        /// Returns the share of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
        fn measured_fpr(&self, samples: u64, seed: u64) -> f64;
    }
}

/// Filters are equal if their parameters and bytes are.
impl<S: SlotKind> PartialEq for QuotientFilter<S> {
    fn eq(&self, other: &QuotientFilter<S>) -> bool {
        self.layout == other.layout && self.words() == other.words()
    }
}
impl<S: SlotKind> Eq for QuotientFilter<S> {}

impl<S: SlotKind> fmt::Debug for QuotientFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuotientFilter")
            .field("slots", &S::NAME)
            .field("layout", &self.layout)
            .field("held", &self.held)
            .finish()
    }
}

#[cfg(test)]
pub(crate) mod exact_tests;
#[cfg(test)]
mod tests;
