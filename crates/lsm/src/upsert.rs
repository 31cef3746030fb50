//! Updates that combine with existing values.
//!
//! Each key of a batch is looked up once, and the combined value is inserted. Levels, files and queries are therefore
//! independent of the operator, and a removal resets a key. An update costs a lookup of its keys more than an
//! insertion.

use warpset_base::parallel;
use warpset_base::words::OutOfMemory;

use crate::cpu::Dictionary;
use crate::policy::MergePolicy;
use crate::{Error, Operator, OrderedKey, OrderedMap, Value, batch};

/// Elements that a task combines.
const PART: usize = 1 << 14;

/// Updates that combine with existing values.
///
/// | what a key gets | by |
/// | --- | --- |
/// | the sum, least, largest or bits of all its values | [`upsert_bulk`] with [`Sum`], [`Min`], [`Max`], [`BitOr`] |
/// | how often it occurs | [`increment_bulk`](Dictionary::increment_bulk) |
/// | its first value | [`insert_new_bulk`](Dictionary::insert_new_bulk) |
/// | its last value | [`insert_bulk`](Dictionary::insert_bulk) |
/// | anything else | [`upsert_bulk_with`](Dictionary::upsert_bulk_with) a closure |
///
/// [`upsert_bulk`]: Dictionary::upsert_bulk
/// [`Sum`]: crate::Sum
/// [`Min`]: crate::Min
/// [`Max`]: crate::Max
/// [`BitOr`]: crate::BitOr
impl<K: OrderedKey, V: Value, P: MergePolicy> Dictionary<K, V, P> {
    /// Combines values with the stored ones, by an associative operator. A key without a value gets the combination of
    /// its values in the batch, in their order; the others get their value combined with that. Costs a lookup of the
    /// keys and an insertion.
    ///
    /// ```
    /// use warpset_lsm::{Lsm, Max};
    ///
    /// let mut last_seen = Lsm::<u32, u64>::builder().build_from(&[7, 8], &[100, 200])?;
    /// last_seen.upsert_bulk::<Max<u64>>(&[8, 7, 9, 7], &[150, 120, 90, 110])?;
    /// assert_eq!(last_seen.iter().collect::<Vec<_>>(), [(7, 120), (8, 200), (9, 90)]);
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::OutOfMemory`]; nothing is changed then.
    pub fn upsert_bulk<O: Operator<Value = V>>(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        self.upsert_bulk_with(keys, values, O::combine)
    }

    /// Combines values as [`upsert_bulk`](Dictionary::upsert_bulk) does, by a function of the earlier and the later
    /// value. It is called in no particular order of the keys.
    ///
    /// ```
    /// use warpset_lsm::Lsm;
    ///
    /// // A counter in the low half and a maximum in the high half.
    /// let merge = |a: u64, b: u64| (a >> 32).max(b >> 32) << 32 | (a + b) & 0xffff_ffff;
    /// let mut seen = Lsm::<u32, u64>::builder().build()?;
    /// seen.upsert_bulk_with(&[1, 1, 2], &[5 << 32 | 1, 9 << 32 | 1, 2 << 32 | 1], merge)?;
    /// assert_eq!(seen.get(1), Some(9 << 32 | 2));
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::OutOfMemory`]; nothing is changed then, nor where `combine` panics.
    pub fn upsert_bulk_with(
        &mut self,
        keys: &[K],
        values: &[V],
        combine: impl Fn(V, V) -> V + Sync,
    ) -> Result<(), Error> {
        OrderedMap::upsert_bulk_with(self, keys, values, combine)
    }

    /// Inserts the keys that have no value; values of the others are unchanged. The first one of equal keys counts.
    ///
    /// ```
    /// use warpset_lsm::Lsm;
    ///
    /// let mut names = Lsm::<u32, u32>::builder().build_from(&[1], &[10])?;
    /// names.insert_new_bulk(&[1, 2, 2], &[11, 20, 21])?;
    /// assert_eq!(names.get_bulk(&[1, 2]), [Some(10), Some(20)]);
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::OutOfMemory`]; nothing is changed then.
    pub fn insert_new_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        OrderedMap::insert_new_bulk(self, keys, values)
    }
}

/// Counters.
impl<K: OrderedKey, V: Counter, P: MergePolicy> Dictionary<K, V, P> {
    /// Adds one to the value of each key per occurrence, wrapping; keys without a value start at zero.
    ///
    /// ```
    /// use warpset_lsm::Lsm;
    ///
    /// let mut counts = Lsm::<u32, u32>::builder().build()?;
    /// counts.increment_bulk(&[3, 1, 3])?;
    /// counts.increment_bulk(&[3])?;
    /// assert_eq!(counts.iter().collect::<Vec<_>>(), [(1, 1), (3, 3)]);
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; nothing is changed then.
    pub fn increment_bulk(&mut self, keys: &[K]) -> Result<(), Error> {
        self.upsert_bulk::<crate::Sum<V>>(keys, &vec![V::ONE; keys.len()])
    }
}

/// Values that count: `u32` and `u64`. Sealed.
pub trait Counter: Value + warpset_core::scan::Number {
    /// One occurrence.
    const ONE: Self;
}
impl Counter for u32 {
    const ONE: u32 = 1;
}
impl Counter for u64 {
    const ONE: u64 = 1;
}

/// Returns the keys of a batch, each once and ascending, with their values combined in the order of the batch.
pub(crate) fn combined<K: OrderedKey, V: Value>(
    keys: &[K],
    values: &[V],
    combine: &(impl Fn(V, V) -> V + Sync),
) -> Result<(Vec<K>, Vec<V>), OutOfMemory> {
    // The sorted batch has the last one of equal keys first.
    let sorted = batch::insertions(keys, values)?;
    let (keys, values) = (sorted.keys.as_slice(), &sorted.values[..]);
    let begins = |&i: &usize| i == 0 || keys[i] != keys[i - 1];
    let first_from = |i: usize| (i..keys.len()).find(begins).unwrap_or(keys.len());
    let parts = parallel::map((0..keys.len()).step_by(PART), |begin| {
        let (mut at, end) = (first_from(begin), first_from(keys.len().min(begin + PART)));
        let (mut own_keys, mut own_values) = (Vec::with_capacity(end - at), Vec::with_capacity(end - at));
        while at < end {
            let next = first_from(at + 1);
            own_keys.push(keys[at]);
            own_values.extend(values[at..next].iter().rev().copied().reduce(combine));
            at = next;
        }
        (own_keys, own_values)
    });
    let (keys, values): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    Ok((keys.concat(), values.concat()))
}

/// Combines values with the earlier ones, where there are any.
pub(crate) fn combine_with<V: Value>(values: &mut [V], before: &[Option<V>], combine: &(impl Fn(V, V) -> V + Sync)) {
    parallel::for_each(values.chunks_mut(PART).zip(before.chunks(PART)), |(values, before)| {
        for (value, before) in values.iter_mut().zip(before) {
            *value = before.map_or(*value, |before| combine(before, *value));
        }
    });
}
