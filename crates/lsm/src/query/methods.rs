//! Queries of dictionaries in host memory, for every merge policy and owner of levels.

use std::ops::RangeBounds;

use super::{lookup, order, range};
use crate::cpu::Dictionary;
use crate::error::one_per_key;
use crate::level::{self, Sorted};
use crate::{Bitmap, Error, OrderedKey, Range, Ranges, Value};
use warpset_base::words::in_huge_pages;

/// Queries. Methods that end in `_bulk` use all threads of the current rayon pool.
impl<K: OrderedKey, V: Value, P, L: Sorted<K, V> + Sync> Dictionary<K, V, P, L> {
    /// Returns the value of a key.
    pub fn get(&self, key: K) -> Option<V> {
        lookup::get(&self.levels, key)
    }

    /// Whether a key has a value.
    pub fn contains(&self, key: K) -> bool {
        self.get(key).is_some()
    }

    /// Returns the values of keys, in the order of the keys.
    pub fn get_bulk(&self, keys: &[K]) -> Vec<Option<V>> {
        lookup::get_bulk(&self.levels, keys)
    }

    /// Writes the values of keys to a slice of the same length, zero for keys without a value, and returns a bit per
    /// key, set if it has a value.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn get_bulk_into(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap, Error> {
        let mut found = Bitmap::default();
        self.get_bitmap_bulk_into(keys, values, &mut found)?;
        Ok(found)
    }

    /// Writes values as [`get_bulk_into`](Dictionary::get_bulk_into) does, and reuses the memory of an earlier answer:
    /// allocates none for answers if `found` has the same number of keys.
    ///
    /// ```
    /// use warpset_lsm::{Bitmap, Lsm};
    ///
    /// let squares: Lsm<u32, u64> = (0..1000).map(|i| (i, u64::from(i) * u64::from(i))).collect();
    /// let (mut values, mut found) = ([0; 4], Bitmap::default());
    /// for first in [0, 4, 998] {
    ///     squares.get_bitmap_bulk_into(&[first, first + 1, first + 2, first + 3], &mut values, &mut found)?;
    /// }
    /// assert_eq!((values, found.count_ones()), ([996_004, 998_001, 0, 0], 2));
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn get_bitmap_bulk_into(&self, keys: &[K], values: &mut [V], found: &mut Bitmap) -> Result<(), Error> {
        one_per_key(keys.len(), "places for values", values.len())?;
        let mut words = std::mem::take(found).into_words();
        words.resize(keys.len().div_ceil(64), 0);
        lookup::get_bulk_into(&self.levels, keys, values, &mut words);
        *found = Bitmap::from_words(words, keys.len());
        Ok(())
    }

    /// Whether each key has a value.
    pub fn contains_bulk(&self, keys: &[K]) -> Vec<bool> {
        let mut answers = vec![false; keys.len()];
        lookup::contains_bulk_into(&self.levels, keys, &mut answers);
        answers
    }

    /// Writes the answers of `contains_bulk` to a slice of the same length.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn contains_bulk_into(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "places for answers", answers.len())?;
        lookup::contains_bulk_into(&self.levels, keys, answers);
        Ok(())
    }

    /// Returns the answers of `contains_bulk` as one bit per key.
    pub fn contains_bitmap_bulk(&self, keys: &[K]) -> Bitmap {
        let words = lookup::contains_words(&self.levels, keys);
        Bitmap::from_words(words, keys.len())
    }

    /// Counts the keys that have a value.
    pub fn count_contained_bulk(&self, keys: &[K]) -> usize {
        self.contains_bitmap_bulk(keys).count_ones()
    }

    /// Counts the keys of a range that have a value; none if its end is below its start.
    pub fn count_range(&self, range: impl RangeBounds<K>) -> u64 {
        range::count(&self.levels, &range)
    }

    /// Counts the keys of many ranges, in their order, as `count_range` does.
    pub fn count_range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Vec<u64> {
        let mut counts = in_huge_pages(vec![0; ranges.len()]);
        range::count_bulk(&self.levels, ranges, &mut counts);
        counts
    }

    /// Returns the keys of a range that have a value, with their values, ascending.
    pub fn range(&self, range: impl RangeBounds<K>) -> Range<'_, K, V> {
        range::range(&self.levels, &range)
    }

    /// Returns the elements of many ranges, in their order, in one piece of memory.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error> {
        let mut found = Ranges::default();
        self.range_bulk_into(ranges, &mut found)?;
        // Stale elements and tombstones had places too.
        found.keys.shrink_to_fit();
        found.values.shrink_to_fit();
        Ok(found)
    }

    /// Writes the result of `range_bulk` to an earlier result: replaces its content, and reuses its memory if it has
    /// room for all elements of the ranges, including stale ones and tombstones.
    ///
    /// ```
    /// use warpset_lsm::{Lsm, Ranges};
    ///
    /// let lsm = Lsm::<u32, u64>::builder().build_from(&[1, 2, 30], &[10, 20, 300])?;
    /// let mut found = Ranges::default();
    /// for window in [[0..2, 2..10], [0..30, 30..31]] {
    ///     lsm.range_bulk_into(&window, &mut found)?;
    ///     println!("{:?}, {:?}", found.get(0), found.get(1));
    /// }
    /// assert_eq!(found.keys, [1, 2, 30]);
    /// assert_eq!(found.offsets, [0, 2, 3]);
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], then `found` is unchanged.
    pub fn range_bulk_into<R: RangeBounds<K> + Sync>(
        &self,
        ranges: &[R],
        found: &mut Ranges<K, V>,
    ) -> Result<(), Error> {
        range::range_bulk_into(&self.levels, ranges, found)
    }

    /// Returns all keys that have a value, with their values, ascending.
    pub fn iter(&self) -> Range<'_, K, V> {
        self.range(..)
    }

    /// Returns the smallest key above `key` that has a value, with its value.
    pub fn successor(&self, key: K) -> Option<(K, V)> {
        order::successor(&self.levels, key)
    }

    /// Returns the largest key below `key` that has a value, with its value.
    pub fn predecessor(&self, key: K) -> Option<(K, V)> {
        order::predecessor(&self.levels, key)
    }

    /// Returns the `successor` of many keys, in their order.
    pub fn successor_bulk(&self, keys: &[K]) -> Vec<Option<(K, V)>> {
        order::bulk(&self.levels, keys, order::successor)
    }

    /// Returns the `predecessor` of many keys, in their order.
    pub fn predecessor_bulk(&self, keys: &[K]) -> Vec<Option<(K, V)>> {
        order::bulk(&self.levels, keys, order::predecessor)
    }

    /// Returns the smallest key that has a value, with its value.
    pub fn first_key_value(&self) -> Option<(K, V)> {
        order::first_from(&self.levels, K::MIN)
    }

    /// Returns the largest key that has a value, with its value.
    pub fn last_key_value(&self) -> Option<(K, V)> {
        order::last_to(&self.levels, K::MAX)
    }

    /// Counts the keys that have a value. The first call after an update examines the levels that it wrote.
    pub fn len(&self) -> u64 {
        self.count_range(..)
    }

    /// Whether no key has a value.
    pub fn is_empty(&self) -> bool {
        self.first_key_value().is_none()
    }

    /// Returns the number of stored elements: live ones, tombstones and stale ones.
    pub fn resident_len(&self) -> u64 {
        self.levels.iter().map(|level| level.run().len() as u64).sum()
    }

    /// Returns the bits of memory per key that has a value.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.len() as f64
    }

    /// Returns the bytes of memory of the elements and their search indexes.
    pub fn memory_bytes(&self) -> u64 {
        level::memory_bytes(&self.levels)
    }
}

impl<'a, K: OrderedKey, V: Value, P, L: Sorted<K, V> + Sync> IntoIterator for &'a Dictionary<K, V, P, L> {
    type Item = (K, V);
    type IntoIter = Range<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
