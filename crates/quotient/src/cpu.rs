//! Quotient filters in host memory, whatever their kind of slots.

use std::fmt;
use std::marker::PhantomData;

use warpset_base::words::AlignedWords;

use crate::slot_kind::{Change, Changed, Counts, SlotKind};
use crate::{Error, Key, Layout, View};

pub(crate) mod ahead;
mod batch;
mod collect;
pub(crate) mod counted;
pub(crate) mod fingerprints;
mod given;
mod in_place;
mod resize;
pub(crate) mod rewrite;
pub(crate) mod source;
pub(crate) mod test_and_insert;
mod traits;
mod two_filters;

/// A quotient filter in host memory: an approximate set, or multiset, of fingerprints.
///
/// `S` is the kind of its slots; [`StandardQuotientFilter`](crate::StandardQuotientFilter) is the one with three
/// metadata bits per slot.
///
/// - **Cost**: all operations read the cluster around a key's slot: a few slots at a load of one half, some hundred at
///   0.95.
/// - **Limits**: at most `layout().limit()` fingerprints; more are the error [`Error::Full`], and change nothing.
///
/// Operations on many keys sort them and then either do the same as single-key operations in parallel, each thread in
/// its own part of the filter, or rewrite the filter; both give the same bytes, as the layout of a set of fingerprints
/// is unique.
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
    /// What is stored.
    held: Counts,
    slots: PhantomData<S>,
}

impl<S: SlotKind> QuotientFilter<S> {
    /// An empty filter with these parameters.
    pub(crate) fn with_layout(layout: Layout) -> Result<QuotientFilter<S>, Error> {
        Ok(QuotientFilter::from_parts(layout, AlignedWords::zeroed(layout.words())?, Counts::default()))
    }

    /// The words hold this in this layout.
    pub(crate) fn from_parts(layout: Layout, words: AlignedWords<u64>, held: impl Into<Counts>) -> QuotientFilter<S> {
        debug_assert_eq!(words.as_slice().len() as u64, layout.words());
        QuotientFilter { layout, words, held: held.into(), slots: PhantomData }
    }

    /// The parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The words, little-endian, block by block: the memory image that every backend shares.
    pub fn words(&self) -> &[u64] {
        self.words.as_slice()
    }

    /// A borrow that answers queries.
    #[inline]
    pub fn view(&self) -> View<'_, S> {
        View::new(self.layout, self.words(), self.held)
    }

    /// What is stored.
    pub(crate) fn held(&self) -> Counts {
        self.held
    }

    /// Stores a key's fingerprint; `false` if it is there already and duplicates are dropped.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::OverflowRegionFull`] if it does not fit, [`Error::TooManyCopies`] if there would be
    /// more copies than are counted, [`Error::KeyTooWide`] if the filter is exact and the key has too many bits.
    pub fn insert(&mut self, key: impl Key) -> Result<bool, Error> {
        self.insert_own(self.layout.expect_fingerprint(self.layout.fingerprint(key))?)
    }

    /// [`QuotientFilter::insert`] for a fingerprint.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert`], and [`Error::InvalidFingerprint`] if it has too many bits.
    pub fn insert_fingerprint(&mut self, fingerprint: u64) -> Result<bool, Error> {
        self.layout.check_fingerprint(fingerprint)?;
        self.insert_own(fingerprint)
    }

    /// Stores a fingerprint that the layout has.
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

    /// An error if a full filter would have to store this fingerprint. Apart, as insertions are faster without the
    /// lookup.
    #[cold]
    #[inline(never)]
    fn check_full(&self, fingerprint: u64) -> Result<(), Error> {
        if self.layout.keeps_duplicates() || !self.contains_fingerprint(fingerprint) {
            return Err(self.layout.full(self.held.slots + 1));
        }
        Ok(())
    }

    /// Removes a key's fingerprint, one copy of it in a multiset; `false` if it is not there.
    ///
    /// Remove only keys that were inserted: another key may have the same fingerprint. In a set that other key is then
    /// lost; in a multiset both have a copy.
    pub fn remove(&mut self, key: impl Key) -> bool {
        self.layout.fingerprint(key).is_some_and(|fingerprint| self.remove_own(fingerprint))
    }

    /// [`QuotientFilter::remove`] for a fingerprint.
    pub fn remove_fingerprint(&mut self, fingerprint: u64) -> bool {
        fingerprint <= self.layout.last_fingerprint() && self.remove_own(fingerprint)
    }

    /// Removes a fingerprint that the layout has.
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
        /// How many fingerprints are stored, copies included.
        fn len(&self) -> u64;
        /// Whether no fingerprint is stored.
        fn is_empty(&self) -> bool;
        /// Slots in use, as a share of the quotients: `α` in the paper.
        fn load_factor(&self) -> f64;
        /// Bytes of memory that the slots take.
        fn memory_bytes(&self) -> u64;
        /// Bits of memory per stored fingerprint.
        fn bits_per_key(&self) -> f64;
        /// Whether the key may be in the filter. Never false for a key that was inserted and not removed.
        fn contains(&self, key: impl Key) -> bool;
        /// Whether this fingerprint is stored.
        fn contains_fingerprint(&self, fingerprint: u64) -> bool;
        /// How many copies of the key's fingerprint are stored.
        fn count(&self, key: impl Key) -> u64;
        /// How many copies of this fingerprint are stored.
        fn count_fingerprint(&self, fingerprint: u64) -> u64;
        /// The stored fingerprints in ascending order.
        fn fingerprints(&self) -> impl Iterator<Item = u64> + '_;
        /// The stored fingerprints in ascending order, each once, with the number of its copies.
        fn fingerprint_counts(&self) -> impl Iterator<Item = (u64, u64)> + '_;
        /// The keys of an exact filter, copies included, in no order.
        ///
        /// # Errors
        /// [`Error::NotExact`] if it is not.
        fn keys(&self) -> Result<impl Iterator<Item = u64> + '_, Error>;
        /// The keys of an exact filter, each once, with the number of its copies, in no order.
        ///
        /// # Errors
        /// [`Error::NotExact`] if it is not.
        fn key_counts(&self) -> Result<impl Iterator<Item = (u64, u64)> + '_, Error>;
        /// How many fingerprints there are with each number of copies; see [`View::count_histogram`].
        ///
        /// # Errors
        /// [`Error::OutOfMemory`] if there is no memory for `most + 1` numbers.
        fn count_histogram(&self, most: usize) -> Result<Vec<u64>, Error>;
        /// How many different fingerprints are stored.
        fn distinct(&self) -> u64;
        /// The rate of false positives of the filter as it is: the share of all fingerprints that are stored. Exact, if
        /// the hashes of the keys asked for are uniform.
        fn fpr(&self) -> f64;
        /// The rate of false positives to expect, were `keys` different keys in the filter.
        fn expected_fpr(&self, keys: u64) -> f64;
        /// The fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
        fn measured_fpr(&self, samples: u64, seed: u64) -> f64;
    }
}

/// Same parameters, same bytes.
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
