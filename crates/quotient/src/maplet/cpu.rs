//! Maplets in host memory.

use std::fmt;

use warpset_base::filter::same_length;
use warpset_base::parallel;
use warpset_base::sort::sort_by_rank;
use warpset_base::words::in_huge_pages;
use warpset_core::scan::Operator;

use super::{MapletLayout, MapletView};
use crate::cpu::fingerprints::{HASH_NS, sorted_fingerprints_of_some};
use crate::resize::resizes;
use crate::slot_kind::SlotKind;
use crate::{Error, Insert, Key, Layout, QuotientFilter, RankSelect};

/// Items that a task combines.
const PART: usize = 1 << 12;

/// Values beside fingerprints, in host memory: a map that does not store its keys, made by
/// [`Builder::values`](crate::Builder::values).
///
/// A lookup of a stored key returns its value, and one of another key `None`, except with the probability that
/// [`expected_fpr`](Maplet::expected_fpr) states: then the fingerprint is that of another stored key, whose value is
/// returned. [`Builder::exact`](crate::Builder::exact) excludes that for integers.
///
/// | what a key gets | by |
/// | --- | --- |
/// | the sum, least, largest or bits of all its values | [`upsert_bulk`] with [`Sum`], [`Min`], [`Max`], [`BitOr`] |
/// | its last value | [`upsert_bulk_with`] `\|_, new\| new` |
/// | all its different values | [`insert_bulk`] |
/// | all its values, with repetitions | [`insert_bulk`] with [`Duplicates::Kept`] |
/// | how often it has each value | [`insert_bulk`] with [`Duplicates::Counted`] |
///
/// **Counters** count equal pairs of fingerprint and value. Operators and counters exclude each other: an operator
/// would have to be applied to every copy, and is refused with [`Error::CountedValues`].
///
/// ```
/// use warpset_quotient::{RankSelectQuotientFilter, Sum};
///
/// let mut sold = RankSelectQuotientFilter::builder(1000).fpr(1e-6).values(20).build()?;
/// sold.upsert_bulk::<Sum<u64>, _, _>(&["tea", "salt", "tea"], &[3u8, 1, 4])?;
/// assert_eq!(sold.get_bulk(&["tea", "salt", "oil"]), [Some(7), Some(1), None]);
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
///
/// [`upsert_bulk`]: Maplet::upsert_bulk
/// [`upsert_bulk_with`]: Maplet::upsert_bulk_with
/// [`insert_bulk`]: Maplet::insert_bulk
/// [`Sum`]: crate::Sum
/// [`Min`]: crate::Min
/// [`Max`]: crate::Max
/// [`BitOr`]: crate::BitOr
/// [`Duplicates::Kept`]: crate::Duplicates::Kept
/// [`Duplicates::Counted`]: crate::Duplicates::Counted
#[derive(Clone, PartialEq, Eq)]
pub struct Maplet {
    layout: MapletLayout,
    /// Filter with the pairs.
    pairs: QuotientFilter<RankSelect>,
}

/// Fingerprint with the value that a batch brings.
#[derive(Clone, Copy, Debug, Default)]
struct Brought {
    fingerprint: u64,
    value: u64,
}

impl Maplet {
    pub(crate) fn with_layout(layout: MapletLayout) -> Result<Maplet, Error> {
        Ok(Maplet { layout, pairs: QuotientFilter::with_layout(layout.pairs())? })
    }

    /// Makes a maplet of a filter with the layout for pairs.
    pub(crate) fn from_parts(layout: MapletLayout, pairs: QuotientFilter<RankSelect>) -> Maplet {
        debug_assert_eq!(layout.pairs(), *pairs.layout());
        Maplet { layout, pairs }
    }

    pub(super) fn from_keys<K: Key, V: Copy + Into<u64> + Sync>(
        layout: MapletLayout,
        keys: &[K],
        values: &[V],
    ) -> Result<Maplet, Error> {
        let pairs = QuotientFilter::from_fingerprints(layout.pairs(), &pairs(&layout, keys, values)?)?;
        Ok(Maplet::from_parts(layout, pairs))
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &MapletLayout {
        &self.layout
    }

    /// Returns the filter with the pairs.
    pub(crate) fn filter(&self) -> &QuotientFilter<RankSelect> {
        &self.pairs
    }

    /// Returns the words, little-endian, block by block: the memory image that every backend shares.
    pub fn words(&self) -> &[u64] {
        self.pairs.words()
    }

    /// Returns a borrow that answers queries.
    #[inline]
    pub fn view(&self) -> MapletView<'_> {
        MapletView::new(self.layout, self.pairs.view())
    }

    /// Stores a value beside those of the key. Returns `false` if the key's fingerprint has it already and duplicates
    /// are dropped.
    ///
    /// # Errors
    /// [`Error::ValueTooWide`]; the errors of [`QuotientFilter::insert`].
    pub fn insert(&mut self, key: impl Key, value: u64) -> Result<bool, Error> {
        let fingerprint = self.layout.keys.expect_fingerprint(self.layout.keys.fingerprint(key))?;
        self.pairs.insert_fingerprint(self.layout.join(fingerprint, self.layout.check_value(value)?))
    }

    /// Stores `values[i]` beside the values of key `i`. Returns the number of values added.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one value per key, [`Error::ValueTooWide`]; the errors of
    /// [`Insert::insert_bulk`] of filters. The maplet is unchanged then.
    pub fn insert_bulk<K: Key, V: Copy + Into<u64> + Sync>(&mut self, keys: &[K], values: &[V]) -> Result<u64, Error> {
        self.pairs.insert_fingerprints_bulk(&pairs(&self.layout, keys, values)?)
    }

    /// Combines a value with those of the key, by an operator: see [`Maplet::upsert_bulk`].
    ///
    /// # Errors
    /// The errors of [`Maplet::upsert_bulk`].
    pub fn upsert<O: Operator<Value = u64>>(&mut self, key: impl Key, value: u64) -> Result<bool, Error> {
        self.upsert_bulk::<O, _, _>(&[key], &[value]).map(|new| new > 0)
    }

    /// Combines values with the stored ones, by an associative operator. A key without a value gets the combination of
    /// its values in the batch, in their order; that of the others follows their stored value, or all their stored
    /// values in ascending order. After that a fingerprint of the batch has one value: the low bits of the result, so
    /// that sums wrap. Returns the number of fingerprints that had no value.
    ///
    /// # Errors
    /// [`Error::CountedValues`] if the maplet has counters; [`Error::LengthMismatch`] if there is not one value per
    /// key, [`Error::ValueTooWide`]; [`Error::Full`] or [`Error::OverflowRegionFull`] if the new keys do not fit,
    /// [`Error::KeyTooWide`] if the maplet is exact and a key has too many bits, [`Error::OutOfMemory`]. The maplet is
    /// unchanged then.
    pub fn upsert_bulk<O: Operator<Value = u64>, K: Key, V: Copy + Into<u64> + Sync>(
        &mut self,
        keys: &[K],
        values: &[V],
    ) -> Result<u64, Error> {
        self.upsert_bulk_with(keys, values, O::combine)
    }

    /// Combines values as [`Maplet::upsert_bulk`] does, by an associative function of the earlier and the later value.
    ///
    /// ```
    /// use warpset_quotient::RankSelectQuotientFilter;
    ///
    /// let mut last = RankSelectQuotientFilter::builder(1000).fpr(1e-6).values(8).build_from(&[7u64], &[1u8])?;
    /// last.upsert_bulk_with(&[7u64, 8, 7], &[2u8, 3, 4], |_, new| new)?;
    /// assert_eq!((last.get(7u64), last.get(8u64)), (Some(4), Some(3)));
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Maplet::upsert_bulk`]; nothing is changed where `combine` panics.
    pub fn upsert_bulk_with<K: Key, V: Copy + Into<u64> + Sync>(
        &mut self,
        keys: &[K],
        values: &[V],
        combine: impl Fn(u64, u64) -> u64 + Sync,
    ) -> Result<u64, Error> {
        self.layout.check_combines()?;
        let mut batch = brought(&self.layout, keys, values, |fingerprint, value| Brought { fingerprint, value })?;
        sort_by_rank(&mut batch, self.layout.keys.fingerprint_bits(), |item| item.fingerprint);
        self.upsert_sorted(&batch, &combine)
    }

    /// Combines a batch, ascending by fingerprint, with the stored values.
    fn upsert_sorted(&mut self, batch: &[Brought], combine: &(impl Fn(u64, u64) -> u64 + Sync)) -> Result<u64, Error> {
        let (layout, view) = (self.layout, self.view());
        let groups: Vec<&[Brought]> = batch.chunk_by(|a, b| a.fingerprint == b.fingerprint).collect();
        let parts = parallel::map(groups.chunks(PART), |groups| {
            let (mut removed, mut added, mut new) = (Vec::new(), Vec::with_capacity(groups.len()), 0u64);
            for group in groups {
                let (fingerprint, before) = (group[0].fingerprint, removed.len());
                view.for_each_value(layout.join(fingerprint, 0), |value, _| {
                    removed.push(layout.join(fingerprint, value));
                });
                new += u64::from(removed.len() == before);
                let stored = removed[before..].iter().map(|&pair| layout.value_of(pair));
                let all = stored.chain(group.iter().map(|item| item.value)).reduce(combine);
                let pair = layout.join(fingerprint, all.unwrap_or_default());
                if removed[before..] == [pair] {
                    removed.pop();
                } else {
                    added.push(pair);
                }
            }
            (removed, added, new)
        });
        let new = parts.iter().map(|part| part.2).sum();
        let (removed, added): (Vec<_>, Vec<_>) = parts.into_iter().map(|(removed, added, _)| (removed, added)).unzip();
        self.pairs.replace_sorted(&removed.concat(), &added.concat())?;
        Ok(new)
    }

    /// Removes all values of a key's fingerprint. Returns their number, copies included.
    ///
    /// Remove only keys that were inserted, because another key may have the same fingerprint.
    pub fn remove(&mut self, key: impl Key) -> u64 {
        self.layout.keys.fingerprint(key).map_or(0, |fingerprint| self.remove_fingerprints(&[fingerprint]))
    }

    /// Removes all values of the fingerprints of these keys. Returns their number, copies included.
    ///
    /// # Errors
    /// No error occurs in host memory.
    pub fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        let mut batch = sorted_fingerprints_of_some(&self.layout.keys, keys);
        batch.dedup();
        Ok(self.remove_fingerprints(&batch))
    }

    /// Removes all values of ascending fingerprints.
    fn remove_fingerprints(&mut self, batch: &[u64]) -> u64 {
        let (layout, view, before) = (self.layout, self.view(), self.len());
        let parts = parallel::map(batch.chunks(PART), |part| {
            let mut removed = Vec::new();
            for &fingerprint in part {
                let mut push = |value, copies| removed.push((layout.join(fingerprint, value), copies));
                view.for_each_value(layout.join(fingerprint, 0), &mut push);
            }
            removed
        });
        let removed = parts.concat();
        if layout.keys.is_counted() {
            removed.iter().for_each(|&(pair, copies)| {
                self.pairs.remove_counted_fingerprint(pair, copies);
            });
        } else {
            self.pairs.remove_sorted(&removed.iter().map(|removed| removed.0).collect::<Vec<u64>>());
        }
        before - self.len()
    }

    /// Removes a value of a key, one copy of it where duplicates are kept. Returns `false` if it is not there.
    pub fn remove_value(&mut self, key: impl Key, value: u64) -> bool {
        let fingerprint = self.layout.keys.fingerprint(key).filter(|_| self.layout.check_value(value).is_ok());
        fingerprint.is_some_and(|fingerprint| self.pairs.remove_fingerprint(self.layout.join(fingerprint, value)))
    }

    /// Adds all values of another maplet, as [`Maplet::insert_bulk`] does. Its fingerprints must be at least as long as
    /// this maplet's; excess bits are dropped.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if values have other bits; the errors of [`QuotientFilter::merge`].
    pub fn merge(&mut self, other: &Maplet) -> Result<(), Error> {
        if self.layout.bits_to_drop(&other.layout)? == 0 {
            return self.pairs.merge(&other.pairs);
        }
        let pairs: Vec<((u64, u64), u64)> = other.shortened(&self.layout).collect();
        if self.layout.keys.is_counted() {
            let mut merged = self.clone();
            for ((fingerprint, value), copies) in pairs {
                merged.pairs.insert_counted_fingerprint(self.layout.join(fingerprint, value), copies)?;
            }
            *self = merged;
            return Ok(());
        }
        let all = pairs.iter().flat_map(|&((fingerprint, value), copies)| {
            std::iter::repeat_n(self.layout.join(fingerprint, value), copies as usize)
        });
        self.pairs.insert_fingerprints_bulk(&all.collect::<Vec<u64>>()).map(|_| ())
    }

    /// Combines the values of another maplet with this one's, by an operator, as [`Maplet::upsert_bulk`] does. Its
    /// fingerprints must be at least as long as this maplet's; excess bits are dropped.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if values have other bits; the errors of [`QuotientFilter::merge`] and
    /// [`Maplet::upsert_bulk`].
    pub fn merge_by<O: Operator<Value = u64>>(&mut self, other: &Maplet) -> Result<(), Error> {
        self.merge_with(other, O::combine)
    }

    /// Combines the values of another maplet as [`Maplet::merge_by`] does, by an associative function.
    ///
    /// # Errors
    /// The errors of [`Maplet::merge_by`]; nothing is changed where `combine` panics.
    pub fn merge_with(&mut self, other: &Maplet, combine: impl Fn(u64, u64) -> u64 + Sync) -> Result<(), Error> {
        self.layout.bits_to_drop(&other.layout)?;
        self.layout.check_combines()?;
        // Dropped bits are the lowest of fingerprints, so these still ascend.
        let all = other.shortened(&self.layout).flat_map(|((fingerprint, value), copies)| {
            std::iter::repeat_n(Brought { fingerprint, value }, copies as usize)
        });
        self.upsert_sorted(&all.collect::<Vec<Brought>>(), &combine).map(|_| ())
    }

    /// Iterates over the pairs with their copies, with fingerprints as long as those of `layout`, which ascend.
    fn shortened(&self, layout: &MapletLayout) -> impl Iterator<Item = ((u64, u64), u64)> + '_ {
        let dropped = self.layout.keys.fingerprint_bits() - layout.keys.fingerprint_bits();
        self.pair_counts().map(move |((fingerprint, value), copies)| ((fingerprint >> dropped, value), copies))
    }

    fn rewritten(&self, keys: Layout) -> Result<Maplet, Error> {
        let layout = MapletLayout::new(keys, self.layout.value_bits)?;
        Ok(Maplet::from_parts(layout, self.pairs.rewritten(layout.pairs())?))
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        // A filter in host memory is cleared without an error.
        let _ = Insert::clear(&mut self.pairs);
    }
}

resizes! { [] Maplet, RankSelect, |maplet| maplet.layout.keys; }

/// Returns `item` of each key's fingerprint and value, in the order of the keys.
fn brought<K: Key, V: Copy + Into<u64> + Sync, T: Copy + Default + Send>(
    layout: &MapletLayout,
    keys: &[K],
    values: &[V],
    item: impl Fn(u64, u64) -> T + Sync,
) -> Result<Vec<T>, Error> {
    same_length(keys.len(), values.len())?;
    let of = layout.keys.fingerprints_of();
    let mut all = in_huge_pages(vec![T::default(); keys.len()]);
    let task = parallel::task_len(keys.len(), HASH_NS);
    let parts = all.chunks_mut(task).zip(keys.chunks(task).zip(values.chunks(task)));
    parallel::try_for_each(parts, |(places, (keys, values))| {
        for ((place, key), &value) in places.iter_mut().zip(keys).zip(values) {
            *place = item(layout.keys.expect_fingerprint(of.of(key))?, layout.check_value(value.into())?);
        }
        Ok::<(), Error>(())
    })?;
    Ok(all)
}

/// Returns the pairs of keys and values, in the order of the keys.
pub(super) fn pairs<K: Key, V: Copy + Into<u64> + Sync>(
    layout: &MapletLayout,
    keys: &[K],
    values: &[V],
) -> Result<Vec<u64>, Error> {
    brought(layout, keys, values, |fingerprint, value| layout.join(fingerprint, value))
}

impl fmt::Debug for Maplet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Maplet").field("layout", &self.layout).field("len", &self.len()).finish()
    }
}
