//! Range filters with keys that are inserted and removed.
//!
//! ```text
//!  key         | prefix                      | suffix |
//!                |                              |
//!                v hash                         v
//!  fingerprint | quotient | remainder        | suffix |   64 bits at most
//! ```
//!
//! A key is a fingerprint of a rank-and-select quotient filter: the hash of its prefix, then its suffix. So the keys of
//! a prefix are in one run, in order, and a range of up to `2^suffix_bits` keys is one or two intervals of
//! fingerprints.
//!
//! Source: Eslami, Dayan, "Memento Filter: A Fast, Dynamic, and Robust Range Filter", SIGMOD 2025. Departures: every
//! key has a slot of its own, where the paper packs the suffixes of one fingerprint; ranges may have any number of
//! prefixes, so that suffixes need not be as long as ranges.

use std::fmt;
use std::marker::PhantomData;

use warpset_base::parallel;
use warpset_core::bits::lowest;
use warpset_quotient::{Duplicates, Insert, Layout, RankSelectBuilder, RankSelectQuotientFilter};

use crate::key::sealed::Word;
use crate::{Error, KeyOf, RangeKey};

mod format;
#[cfg(test)]
mod tests;
mod view;

#[cfg(feature = "mmap")]
pub use format::MappedDynamicRangeFilter;
pub use view::DynamicRangeFilterView;
#[cfg(feature = "gpu")]
pub(crate) use view::{fpr_of, most_prefixes};

/// Most bits of a suffix. Longer runs of near keys would make updates and the overflow region long.
const MOST_SUFFIX_BITS: u32 = 8;
/// Nanoseconds to hash a key.
const HASH_NS: f64 = 3.0;

/// Settings of a [`DynamicRangeFilter`]; each setter states its default.
///
/// ```
/// use warpset_range::DynamicRangeFilter;
///
/// let builder = DynamicRangeFilter::<u32>::builder(1000).fpr_at(0.001, 16);
/// let filter = builder.build_from(&[5u32, 5, 4_000_000_000])?;
/// assert!(filter.contains(5) && filter.may_contain(3_999_999_990..) && filter.len() == 3);
/// # Ok::<(), warpset_range::Error>(())
/// ```
#[must_use = "a builder does nothing until `build`"]
pub struct DynamicBuilder<K: ?Sized> {
    capacity: u64,
    fpr: f64,
    length: u64,
    max_load: f64,
    seed: u64,
    keys: PhantomData<fn() -> K>,
}

impl<K: RangeKey + ?Sized> DynamicBuilder<K> {
    /// Sets the highest rate of wrong answers at ranges of `length` keys, at capacity. Default: 1 % at ranges of 100
    /// keys.
    pub fn fpr_at(mut self, fpr: f64, length: u64) -> Self {
        (self.fpr, self.length) = (fpr, length);
        self
    }

    /// Sets the share of slots that may be used, above 0 and at most 0.99. Updates of single keys move fewer others at
    /// a lower one. Default: 0.95.
    pub fn max_load(mut self, max_load: f64) -> Self {
        self.max_load = max_load;
        self
    }

    /// Sets the seed of the hash of prefixes. The same keys, settings and seed make the same bytes on every backend.
    /// Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks every setting and returns the parameters of the slots.
    ///
    /// # Errors
    /// [`Error::InvalidFpr`], [`Error::InvalidRangeLength`], [`Error::UnreachableFpr`] for impossible rates;
    /// [`Error::Slots`] for an impossible load, or too many keys.
    pub fn layout(&self) -> Result<Layout, Error> {
        let DynamicBuilder { capacity: keys, fpr, length, max_load, seed, .. } = *self;
        if length == 0 {
            return Err(Error::InvalidRangeLength);
        }
        if !(fpr > 0.0 && fpr < 1.0) {
            return Err(Error::InvalidFpr { fpr });
        }
        let suffix_bits = (u64::BITS - (length - 1).leading_zeros()).min(MOST_SUFFIX_BITS);
        // A share of the least rates is 0, which is an invalid one.
        let unreachable = |error| match error {
            warpset_quotient::Error::InvalidFpr { .. }
            | warpset_quotient::Error::UnreachableFpr { .. }
            | warpset_quotient::Error::InvalidBits { .. } => Error::UnreachableFpr { keys, fpr, length },
            other => other.into(),
        };
        let at_prefixes = fpr / overlays(length, suffix_bits) as f64;
        let prefixes = RankSelectBuilder::with_capacity(keys).fpr(at_prefixes).max_load(max_load);
        let prefixes = prefixes.layout().map_err(unreachable)?;
        let slots = RankSelectBuilder::with_bits(prefixes.quotient_bits(), prefixes.remainder_bits() + suffix_bits)
            .max_load(max_load)
            .duplicates(Duplicates::Kept)
            .seed(seed)
            .layout()
            .map_err(unreachable)?;
        let slots = slots.with_ordered_bits(suffix_bits).filter(|slots| !view::is_too_long(slots, length));
        slots.ok_or(Error::UnreachableFpr { keys, fpr, length })
    }

    /// Checks every setting, then allocates an empty filter.
    ///
    /// # Errors
    /// The errors of [`DynamicBuilder::layout`]; [`Error::OutOfMemory`].
    pub fn build(&self) -> Result<DynamicRangeFilter<K>, Error> {
        Ok(DynamicRangeFilter::from_slots(RankSelectBuilder::with_layout(self.layout()?).build()?))
    }

    /// Builds a filter of these keys, in any order.
    ///
    /// # Errors
    /// The errors of [`DynamicBuilder::build`]; [`Error::Slots`] if the keys do not all fit.
    pub fn build_from<Q: KeyOf<K>>(&self, keys: &[Q]) -> Result<DynamicRangeFilter<K>, Error> {
        let layout = self.layout()?;
        let all = fingerprints::<K, Q>(&layout, keys);
        Ok(DynamicRangeFilter::from_slots(RankSelectBuilder::with_layout(layout).build_from_fingerprints(&all)?))
    }
}

impl<K: ?Sized> Clone for DynamicBuilder<K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: ?Sized> Copy for DynamicBuilder<K> {}

impl<K: ?Sized> fmt::Debug for DynamicBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DynamicBuilder { capacity, fpr, length, max_load, seed, .. } = self;
        f.debug_struct("DynamicBuilder")
            .field("capacity", capacity)
            .field("fpr_at", &(fpr, length))
            .field("max_load", max_load)
            .field("seed", seed)
            .finish()
    }
}

/// A range filter in host memory with keys that are inserted and removed, alone and in batches; it merges with others
/// and grows. Answers whether any of its keys lies in a range, without storing keys.
///
/// "No" is certain. A wrong "yes" for a range of `l` keys has a probability of at most
/// [`fpr_of(l)`](DynamicRangeFilter::fpr_of), for every range and every set of keys that do not depend on the seed: the
/// number of keys, times `l / 2^s` rounded up, over the number of hashes of prefixes. For keys without a pattern it is
/// `l / 2^s` of that for short ranges. `s` are the bits of a suffix: the logarithm of the length that the builder was
/// given, at most 8.
///
/// - **Space**: `log2(l / fpr) + 3` bits per slot; the number of slots is a power of two.
/// - **Cost**: a lookup reads the metadata and the remainders of a run for each prefix of the range: one or two for up
///   to `2^s` keys. Ranges of more than 4,096 prefixes, and those whose rate at capacity would be 1, get a "yes" unless
///   the filter is empty; `fpr_of` is 1 for them.
/// - **Multiset**: every insertion takes a slot, and every removal frees one.
///
/// ```
/// use warpset_range::DynamicRangeFilter;
///
/// let mut filter = DynamicRangeFilter::<u64>::builder(100_000).fpr_at(0.001, 64).build()?;
/// filter.insert(1_000_000)?;
/// filter.insert_bulk(&[7u64, 1_000_030, 1 << 60])?;
/// assert!(filter.may_contain(1_000_010..1_000_050) && filter.contains(7) && filter.len() == 4);
/// assert!(filter.remove(1_000_030) && !filter.may_contain(1_000_010..1_000_050));
/// filter.double()?; // room for twice as many; the rate for a number of keys stays
/// # Ok::<(), warpset_range::Error>(())
/// ```
pub struct DynamicRangeFilter<K: ?Sized> {
    pub(crate) slots: RankSelectQuotientFilter,
    keys: PhantomData<fn() -> K>,
}

impl<K: RangeKey + ?Sized> DynamicRangeFilter<K> {
    /// Makes a builder for `keys` keys, repetitions included.
    pub fn builder(keys: u64) -> DynamicBuilder<K> {
        DynamicBuilder { capacity: keys, fpr: 0.01, length: 100, max_load: 0.95, seed: 0, keys: PhantomData }
    }

    /// Makes a filter of slots with such a layout.
    pub(crate) fn from_slots(slots: RankSelectQuotientFilter) -> DynamicRangeFilter<K> {
        DynamicRangeFilter { slots, keys: PhantomData }
    }

    /// Returns the parameters of the slots. Their fingerprints are those of prefixes, followed by suffixes.
    pub fn layout(&self) -> &Layout {
        self.slots.layout()
    }

    /// Returns the words, the memory image that every backend shares.
    pub fn words(&self) -> &[u64] {
        self.slots.words()
    }

    /// Returns a borrow that answers queries.
    #[inline]
    pub fn view(&self) -> DynamicRangeFilterView<'_, K> {
        DynamicRangeFilterView::new(self.slots.view())
    }

    /// Inserts a key; of equal keys each takes a slot.
    ///
    /// # Errors
    /// [`Error::Slots`] if it does not fit; the filter is unchanged then.
    pub fn insert<Q: KeyOf<K>>(&mut self, key: Q) -> Result<(), Error> {
        self.slots.insert_fingerprint(fingerprint(self.layout(), key.word()))?;
        Ok(())
    }

    /// Inserts keys, on all threads of the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Slots`] if they do not all fit, [`Error::OutOfMemory`]; the filter is unchanged then.
    pub fn insert_bulk<Q: KeyOf<K>>(&mut self, keys: &[Q]) -> Result<(), Error> {
        self.slots.insert_fingerprints_bulk(&fingerprints::<K, Q>(self.layout(), keys))?;
        Ok(())
    }

    /// Removes a key, one of equal ones. Returns `false` if it is not there.
    ///
    /// Remove only keys that were inserted, because another key may have the same fingerprint and then is lost.
    pub fn remove<Q: KeyOf<K>>(&mut self, key: Q) -> bool {
        self.slots.remove_fingerprint(fingerprint(self.layout(), key.word()))
    }

    /// Removes keys like [`remove`](Self::remove), on all threads of the current rayon pool. Returns the number of
    /// removed keys.
    ///
    /// # Errors
    /// No error occurs in host memory.
    pub fn remove_bulk<Q: KeyOf<K>>(&mut self, keys: &[Q]) -> Result<u64, Error> {
        Ok(self.slots.remove_fingerprints_bulk(&fingerprints::<K, Q>(self.layout(), keys))?)
    }

    /// Adds all keys of another filter with the same seed and bits of suffixes. Its hashes of prefixes must be at least
    /// as long as this filter's, as they are at a lower rate or a larger capacity; excess bits are dropped.
    ///
    /// # Errors
    /// [`Error::Slots`] if the filters differ otherwise, or if the keys do not all fit, [`Error::OutOfMemory`]; the
    /// filter is unchanged then.
    pub fn merge(&mut self, other: &DynamicRangeFilter<K>) -> Result<(), Error> {
        let (to, from) = (*self.layout(), *other.layout());
        let dropped = from.fingerprint_bits().saturating_sub(to.fingerprint_bits());
        if dropped == 0 || to.seed() != from.seed() || to.ordered_bits() != from.ordered_bits() {
            return Ok(self.slots.merge(&other.slots)?);
        }
        let suffix = lowest(to.ordered_bits());
        let shortened = |of: u64| of >> dropped & !suffix | of & suffix;
        self.slots.insert_fingerprints_bulk(&other.slots.fingerprints().map(shortened).collect::<Vec<u64>>())?;
        Ok(())
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        // A filter in host memory is cleared without an error.
        let _ = Insert::clear(&mut self.slots);
    }

    /// Doubles the number of slots. The rate for a number of keys stays.
    ///
    /// # Errors
    /// [`Error::Slots`] if the hashes of prefixes have no bit left for it, [`Error::OutOfMemory`]; nothing is changed
    /// then.
    pub fn double(&mut self) -> Result<(), Error> {
        Ok(self.slots.double()?)
    }

    /// Halves the number of slots.
    ///
    /// # Errors
    /// [`Error::Slots`] if the keys do not fit, [`Error::OutOfMemory`]; nothing is changed then.
    pub fn halve(&mut self) -> Result<(), Error> {
        Ok(self.slots.halve()?)
    }
}

/// Returns the number of keys of a range of `length` that may share a suffix.
fn overlays(length: u64, suffix_bits: u32) -> u64 {
    length.div_ceil(1 << suffix_bits)
}

/// Returns the fingerprint of a prefix, followed by zeros.
#[inline(always)]
fn fingerprint_of_prefix<W: Word>(layout: &Layout, prefix: W) -> u64 {
    // Filters that are not exact have a fingerprint for each key.
    layout.fingerprint(prefix).unwrap_or_default() & !lowest(layout.ordered_bits())
}

/// Returns the fingerprint of a key's number.
#[inline(always)]
fn fingerprint<W: Word>(layout: &Layout, word: W) -> u64 {
    let (prefix, suffix) = word.split(layout.ordered_bits());
    fingerprint_of_prefix(layout, prefix) | suffix
}

/// Returns the fingerprints of keys, in their order.
pub(crate) fn fingerprints<K: RangeKey + ?Sized, Q: KeyOf<K>>(layout: &Layout, keys: &[Q]) -> Vec<u64> {
    let mut all = vec![0; keys.len()];
    parallel::answer(keys, &mut all, (HASH_NS, 1), |keys, places| {
        keys.iter().zip(places).for_each(|(key, place)| *place = fingerprint(layout, key.word()));
    });
    all
}

impl<K: ?Sized> Clone for DynamicRangeFilter<K> {
    fn clone(&self) -> Self {
        DynamicRangeFilter { slots: self.slots.clone(), keys: PhantomData }
    }
}

/// Equal parameters, equal bytes.
impl<K: ?Sized> PartialEq for DynamicRangeFilter<K> {
    fn eq(&self, other: &DynamicRangeFilter<K>) -> bool {
        self.slots == other.slots
    }
}
impl<K: ?Sized> Eq for DynamicRangeFilter<K> {}

impl<K: ?Sized> fmt::Debug for DynamicRangeFilter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynamicRangeFilter").field("slots", &self.slots).finish()
    }
}
