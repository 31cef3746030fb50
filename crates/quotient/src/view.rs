//! Queries over borrowed words of a filter in memory or of a saved one.

use std::fmt;
use std::marker::PhantomData;

use warpset_base::filter::share_of_hashes_on_host;
use warpset_base::parallel;

use crate::cpu::fingerprint_source;
use crate::rank_select::{any_between, any_between_each};
use crate::slot_kind::{Counts, SlotKind};
use crate::{Key, Layout, RankSelect, rates};

/// Nanoseconds per key of a batch of lookups.
const LOOKUP_NS: f64 = 20.0;

/// A filter's parameters and a borrow of its words. It answers queries and owns nothing.
///
/// It is made from saved bytes without a copy ([`View::from_bytes`]) or from a filter
/// ([`QuotientFilter::view`](crate::QuotientFilter::view)).
///
/// ```
/// use warpset_quotient::StandardQuotientFilter;
///
/// let filter = StandardQuotientFilter::builder(100).build_from(&["north", "south"])?;
/// let view = filter.view(); // may go to other threads, lives as long as the filter
/// assert!(view.contains("north") && view.len() == 2);
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'a, S> {
    layout: Layout,
    words: &'a [u64],
    held: Counts,
    slots: PhantomData<S>,
}

impl<'a, S: SlotKind> View<'a, S> {
    /// Makes a view; `words` are exactly the words of `layout`.
    #[doc(hidden)]
    pub fn new(layout: Layout, words: &'a [u64], held: Counts) -> View<'a, S> {
        debug_assert_eq!(words.len() as u64, layout.words());
        View { layout, words, held, slots: PhantomData }
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the words, little-endian, block by block: the memory image that every backend shares.
    pub fn words(&self) -> &'a [u64] {
        self.words
    }

    /// Returns the number of stored fingerprints, copies included.
    pub fn len(&self) -> u64 {
        self.held.copies
    }

    /// Returns the contents in numbers.
    pub(crate) fn held(&self) -> Counts {
        self.held
    }

    /// Whether no fingerprint is stored.
    pub fn is_empty(&self) -> bool {
        self.held.copies == 0
    }

    /// Returns the bytes of memory of the slots.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Returns the bits of memory per stored fingerprint, copies included.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.held.copies as f64
    }

    /// Returns the slots in use as a share of the quotients: `α` in the paper.
    pub fn load_factor(&self) -> f64 {
        self.held.slots as f64 / self.layout.quotients() as f64
    }

    /// Whether the key may be in the filter. Never false for a key that was inserted and not removed.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.layout.fingerprint(key).is_some_and(|fingerprint| S::contains(&self.layout, self.words, fingerprint))
    }

    /// Whether this fingerprint is stored.
    #[inline]
    pub fn contains_fingerprint(&self, fingerprint: u64) -> bool {
        fingerprint <= self.layout.last_fingerprint() && S::contains(&self.layout, self.words, fingerprint)
    }

    /// Returns the number of stored copies of the key's fingerprint.
    #[inline]
    pub fn count(&self, key: impl Key) -> u64 {
        self.layout.fingerprint(key).map_or(0, |fingerprint| S::count(&self.layout, self.words, fingerprint))
    }

    /// Returns the number of stored copies of this fingerprint.
    #[inline]
    pub fn count_fingerprint(&self, fingerprint: u64) -> u64 {
        if fingerprint > self.layout.last_fingerprint() { 0 } else { S::count(&self.layout, self.words, fingerprint) }
    }

    /// Reports for each of `keys` whether it may be in the filter.
    fn contains_each<K: Key>(&self, keys: &[K], prepass: Option<&S::Prepass>, take: impl FnMut(usize, bool)) {
        let (layout, of) = (&self.layout, self.layout.fingerprints_of());
        if self.asks_one_by_one::<K>() {
            let mut take = take;
            return keys.iter().enumerate().for_each(|(i, key)| take(i, self.contains(key)));
        }
        S::contains_each(layout, self.words, prepass, keys.len(), |i| of.or_none(&keys[i]), take);
    }

    /// Whether every 64-bit number is a fingerprint, so that no number can mark keys without one.
    fn asks_one_by_one<K: Key>(&self) -> bool {
        self.layout.exact && self.layout.fingerprint_bits() == 64 && !K::HAS_WORD
    }

    fn prepass(&self, lookups: usize) -> Option<S::Prepass> {
        S::prepass(&self.layout, self.words, self.held.slots, lookups)
    }

    /// Looks up many keys, one bit of the result per key, on all threads of the current rayon pool.
    pub(crate) fn bits<K: Key>(&self, keys: &[K]) -> Vec<u64> {
        let prepass = self.prepass(keys.len());
        let mut words = vec![0u64; keys.len().div_ceil(64)];
        parallel::answer(keys, &mut words, (LOOKUP_NS, 64), |keys, words| {
            self.contains_each(keys, prepass.as_ref(), |i, yes| words[i / 64] |= u64::from(yes) << (i % 64));
        });
        words
    }

    /// Writes the copies of each key to a slice of the same length.
    pub(crate) fn fill_counts<K: Key>(&self, keys: &[K], answers: &mut [u64]) {
        let (layout, of) = (&self.layout, self.layout.fingerprints_of());
        parallel::answer(keys, answers, (LOOKUP_NS, 1), |keys, answers| {
            if self.asks_one_by_one::<K>() {
                return keys.iter().zip(answers).for_each(|(key, answer)| *answer = self.count(key));
            }
            let fingerprint = |i: usize| of.or_none(&keys[i]);
            S::count_each(layout, self.words, keys.len(), fingerprint, |i, count| answers[i] = count);
        });
    }

    /// Iterates over the stored fingerprints in ascending order.
    pub fn fingerprints(&self) -> impl Iterator<Item = u64> + use<'a, S> {
        fingerprint_source::Each(fingerprint_source::stored::<S, u64>(*self, 0).read_from(0))
    }

    /// Counts the different stored fingerprints.
    pub fn distinct(&self) -> u64 {
        if !self.layout.keeps_duplicates() {
            return self.held.copies;
        }
        fingerprint_source::distinct(*self)
    }

    /// Returns the current rate of false positives: the stored share of all fingerprints. It is exact for uniform
    /// hashes.
    pub fn fpr(&self) -> f64 {
        if self.layout.exact {
            return 0.0;
        }
        rates::of_distinct(self.distinct(), self.layout.fingerprint_bits())
    }

    /// Returns the expected rate of false positives with `keys` different keys in the filter.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        if self.layout.exact {
            return 0.0;
        }
        rates::expected(keys, self.layout.fingerprint_bits())
    }

    /// Returns the share of `samples` random hashes, drawn with `seed`, that the filter claims to contain.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> f64 {
        share_of_hashes_on_host(samples, seed, |hashes| self.bits(hashes))
    }
}

/// Ranges of fingerprints, for the crate of range filters.
#[doc(hidden)]
impl View<'_, RankSelect> {
    /// Whether a fingerprint from the first to the last of `ends` is stored. Both have one quotient; the filter has no
    /// counters.
    #[inline]
    pub fn any_between(&self, (first, last): (u64, u64)) -> bool {
        any_between(&self.layout, self.words, first, last)
    }

    /// Reports the answers of [`View::any_between`] for many ranges, in order.
    #[inline]
    pub fn any_between_each(&self, ends: &[(u64, u64)], take: impl FnMut(usize, bool)) {
        any_between_each(&self.layout, self.words, ends, take);
    }
}

impl<S: SlotKind> fmt::Debug for View<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("layout", &self.layout).field("held", &self.held).finish()
    }
}
