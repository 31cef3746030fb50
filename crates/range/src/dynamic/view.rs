//! Queries of a dynamic filter, in memory of any owner.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use warpset_base::bitmap::{Bitmap, bits_to};
use warpset_base::filter::same_length;
use warpset_base::parallel;
use warpset_core::bits::lowest;
use warpset_quotient::{Layout, RankSelectQuotientFilterView};

use super::{fingerprint_of_prefix, overlays};
use crate::key::Ends;
use crate::key::sealed::Word;
use crate::view::bools;
use crate::{DynamicRangeFilter, Error, KeyOf, RangeKey};

/// Most prefixes that are looked up for a range.
const MOST_PREFIXES: u64 = 1 << 12;
/// Most prefixes of a range that is looked up with others.
const FEW: u64 = 16;
/// Nanoseconds per range of a batch.
const LOOKUP_NS: f64 = 30.0;

/// Whether ranges of `length` keys may get a "yes" without a lookup, because of the number of their prefixes.
pub(super) fn is_too_long(layout: &Layout, length: u64) -> bool {
    // The most prefixes of such a range, without the first one.
    overlays(length.saturating_sub(1), layout.ordered_bits()) >= most_prefixes(layout)
}

/// Returns the bound of the rate at ranges of `length` keys, with this number of stored keys.
pub(crate) fn fpr_of(layout: &Layout, keys: u64, length: u64) -> f64 {
    if keys > 0 && is_too_long(layout, length) {
        return 1.0;
    }
    let prefix_bits = layout.fingerprint_bits() - layout.ordered_bits();
    let together = keys as f64 * overlays(length, layout.ordered_bits()) as f64;
    (together * (-f64::from(prefix_bits)).exp2()).min(1.0)
}

/// Returns the number of prefixes from which on a range gets a "yes" without a lookup, because the bound of the rate at
/// capacity is 1 without both ends, or because of the number of lookups.
pub(crate) fn most_prefixes(layout: &Layout) -> u64 {
    let prefixes = 1u128 << (layout.fingerprint_bits() - layout.ordered_bits());
    (prefixes.div_ceil(layout.limit().into()) + 1).min(MOST_PREFIXES.into()) as u64
}

/// A dynamic filter's parameters and a borrow of its words: answers queries, owns nothing.
pub struct DynamicRangeFilterView<'a, K: ?Sized> {
    slots: RankSelectQuotientFilterView<'a>,
    keys: PhantomData<fn() -> K>,
}

impl<K: ?Sized> Clone for DynamicRangeFilterView<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: ?Sized> Copy for DynamicRangeFilterView<'_, K> {}

impl<'a, K: RangeKey + ?Sized> DynamicRangeFilterView<'a, K> {
    /// Makes a view of slots with the layout of such a filter.
    #[inline]
    pub(super) fn new(slots: RankSelectQuotientFilterView<'a>) -> DynamicRangeFilterView<'a, K> {
        DynamicRangeFilterView { slots, keys: PhantomData }
    }

    /// Returns the parameters of the slots.
    pub fn layout(&self) -> &Layout {
        self.slots.layout()
    }

    /// Returns the words, the memory image that every backend shares.
    pub fn words(&self) -> &'a [u64] {
        self.slots.words()
    }

    /// Returns the number of prefixes of the keys between two, and for each prefix the interval of fingerprints of
    /// these keys. `None` if ranges of this length mostly get a "yes", or take too many lookups.
    #[inline(always)]
    fn intervals(&self, first: K::Word, last: K::Word) -> Option<(u64, impl Iterator<Item = (u64, u64)> + '_)> {
        let layout = self.layout();
        let bits = layout.ordered_bits();
        let ((from, low), (to, high)) = (first.split(bits), last.split(bits));
        let further = to.minus(from).wide();
        if further > 1 && further >= most_prefixes(layout).into() {
            return None;
        }
        let further = further as u64;
        let interval = move |i| {
            let prefix = fingerprint_of_prefix(layout, from.plus(i));
            (prefix | if i == 0 { low } else { 0 }, prefix | if i == further { high } else { lowest(bits) })
        };
        Some((further + 1, (0..=further).map(interval)))
    }

    /// Whether any key may lie between two.
    #[inline]
    pub(crate) fn any_of(&self, ends: Ends<K>) -> bool {
        let Some((first, last)) = ends.filter(|_| !self.is_empty()) else { return false };
        self.intervals(first, last).is_none_or(|(_, mut all)| all.any(|ends| self.slots.any_between(ends)))
    }

    /// Answers items, each a range.
    pub(crate) fn answer<T: Sync>(&self, items: &[T], ends: impl Fn(&T) -> Ends<K> + Sync) -> Bitmap {
        let mut answers = vec![0u64; items.len().div_ceil(64)];
        parallel::answer(items, &mut answers, (LOOKUP_NS, 64), |items, answers| {
            let (mut all, mut owners) = (Vec::with_capacity(128), Vec::with_capacity(128));
            for (items, answer) in items.chunks(64).zip(answers) {
                all.clear();
                owners.clear();
                for (owner, item) in items.iter().enumerate() {
                    let ends = ends(item);
                    match ends.and_then(|(first, last)| self.intervals(first, last)) {
                        Some((prefixes, intervals)) if prefixes <= FEW => {
                            all.extend(intervals);
                            owners.resize(all.len(), owner);
                        }
                        _ => *answer |= u64::from(self.any_of(ends)) << owner,
                    }
                }
                self.slots.any_between_each(&all, |i, any| *answer |= u64::from(any) << owners[i]);
            }
        });
        Bitmap::from_words(answers, items.len())
    }
}

crate::view::membership!(DynamicRangeFilterView, DynamicRangeFilter, MappedDynamicRangeFilter);

crate::view::queries! {
    DynamicRangeFilterView, DynamicRangeFilter, MappedDynamicRangeFilter;
    /// Returns the number of stored keys, repetitions included.
    fn len(self) -> u64 {
        self.slots.len()
    }

    /// Whether no key is stored.
    fn is_empty(self) -> bool {
        self.slots.is_empty()
    }

    /// Returns the slots in use as a share of the quotients.
    fn load_factor(self) -> f64 {
        self.slots.load_factor()
    }

    /// Returns the bytes of memory of the slots.
    fn memory_bytes(self) -> u64 {
        self.slots.memory_bytes()
    }

    /// Returns the bits of memory per stored key.
    fn bits_per_key(self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.len().max(1) as f64
    }

    /// Returns a bound of the probability that a key gets a wrong "yes".
    fn fpr(self) -> f64 {
        self.fpr_of(1)
    }

    /// Returns a bound of the probability that a range of `length` keys gets a wrong "yes", with the keys that are
    /// stored: see [`DynamicRangeFilter`].
    fn fpr_of(self, length: u64) -> f64 {
        fpr_of(self.layout(), self.len(), length)
    }
}

impl<K: RangeKey + ?Sized> fmt::Debug for DynamicRangeFilterView<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicRangeFilterView").field("slots", &self.slots).finish()
    }
}
