//! Interface of all dictionaries, on every backend, for code that works with any of them.

use std::ops::RangeBounds;

use crate::cpu::Dictionary;
use crate::element::are_same;
use crate::error::one_per_key;
use crate::policy::MergePolicy;
use crate::upsert::{combine_with, combined};
use crate::{Error, OrderedKey, Ranges, Value};

/// Ordered dictionary that takes updates in batches. Each type has inherent methods of the same names, with more
/// precise result types: use the trait only in generic code.
///
/// ```
/// use warpset_lsm::{OrderedMap, Error, Lsm, SortedArray};
///
/// fn overwritten(mut of: impl OrderedMap<u32, u32>) -> Result<Vec<Option<u32>>, Error> {
///     of.insert_bulk(&[1, 2], &[10, 20])?;
///     of.insert_bulk(&[2], &[22])?;
///     of.get_bulk(&[1, 2, 3])
/// }
/// let expected = [Some(10), Some(22), None];
/// assert_eq!(overwritten(Lsm::builder().build()?)?, expected);
/// assert_eq!(overwritten(SortedArray::builder().build()?)?, expected);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no dictionary with keys `{K}` and values `{V}`",
    note = "`Lsm<K, V>` and `SortedArray<K, V>` are, on the host and on devices"
)]
pub trait OrderedMap<K: OrderedKey, V: Value> {
    /// Inserts keys with their values; of equal keys the last one counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], and no memory on the host or device.
    fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error>;
    /// Removes keys.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error>;
    /// Removes the keys with a flag, and inserts the others. A key that is both removed and inserted is removed.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], and no memory on the host or device.
    fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error>;
    /// Replaces a key's value by `change(old)`; `None` removes the key. Returns the new value.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn update(&mut self, key: K, change: impl FnOnce(Option<V>) -> Option<V>) -> Result<Option<V>, Error> {
        let before = self.get_bulk(&[key])?[0];
        let after = change(before);
        match after {
            _ if are_same(after.as_slice(), before.as_slice()) => {}
            Some(value) => self.insert_bulk(&[key], &[value])?,
            None => self.remove_bulk(&[key])?,
        }
        Ok(after)
    }
    /// Combines values with the stored ones, by an associative function of the earlier and the later value. A key
    /// without a value gets the combination of its values in the batch, in their order. Runs on the host, by one lookup
    /// and one insertion; dictionaries on devices have their own `upsert_bulk` for operators with kernels.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], and no memory on the host or device; nothing is changed then.
    fn upsert_bulk_with(&mut self, keys: &[K], values: &[V], combine: impl Fn(V, V) -> V + Sync) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let (keys, mut values) = combined(keys, values, &combine)?;
        combine_with(&mut values, &self.get_bulk(&keys)?, &combine);
        self.insert_bulk(&keys, &values)
    }
    /// Inserts the keys that have no value; the first one of equal keys counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], and no memory on the host or device; nothing is changed then.
    fn insert_new_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let (mut keys, mut values) = combined(keys, values, &|first, _| first)?;
        let is_there = self.contains_bulk(&keys)?;
        let mut kept = is_there.iter();
        keys.retain(|_| kept.next() == Some(&false));
        let mut kept = is_there.iter();
        values.retain(|_| kept.next() == Some(&false));
        self.insert_bulk(&keys, &values)
    }
    /// Removes all keys of a range, and returns the number of keys that had a value.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn remove_range<R: RangeBounds<K> + Sync>(&mut self, range: R) -> Result<u64, Error> {
        let found = self.range_bulk(&[range])?;
        self.remove_bulk(&found.keys)?;
        Ok(found.keys.len() as u64)
    }
    /// Removes the keys for which `keep` is false. `keep` is called on the host, once per key, in ascending order.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn retain(&mut self, mut keep: impl FnMut(K, V) -> bool) -> Result<(), Error> {
        let Ranges { mut keys, values, .. } = self.range_bulk(&[K::MIN..=K::MAX])?;
        let mut values = values.into_iter();
        keys.retain(|&key| values.next().is_some_and(|value| !keep(key, value)));
        self.remove_bulk(&keys)
    }
    /// Drops tombstones and stale elements.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn cleanup(&mut self) -> Result<(), Error>;
    /// Removes everything.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn clear(&mut self) -> Result<(), Error>;
    /// Returns the values of keys.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error>;
    /// Whether keys have values.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error>;
    /// Counts the keys of each range that have a value.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn count_range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Vec<u64>, Error>;
    /// Returns the keys of each range that have a value, with their values.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error>;
    /// Returns the smallest key above each key that has a value, with its value.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn successor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error>;
    /// Returns the largest key below each key that has a value, with its value.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn predecessor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error>;
    /// Returns the smallest key that has a value, with its value.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn first_key_value(&self) -> Result<Option<(K, V)>, Error>;
    /// Returns the largest key that has a value, with its value.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn last_key_value(&self) -> Result<Option<(K, V)>, Error>;
    /// Counts the keys that have a value.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn len(&self) -> Result<u64, Error>;
    /// Whether no key has a value.
    ///
    /// # Errors
    /// No memory on the host or device.
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }
    /// Returns the number of stored elements.
    fn resident_len(&self) -> u64;
    /// Returns the bytes of memory of the elements and their search indexes.
    fn memory_bytes(&self) -> u64;
}

/// Trees and sorted arrays in host memory.
impl<K: OrderedKey, V: Value, P: MergePolicy> OrderedMap<K, V> for Dictionary<K, V, P> {
    warpset_base::by_inherent! {
        fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error>;
        fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error>;
        fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error>;
        fn update(&mut self, key: K, change: impl FnOnce(Option<V>) -> Option<V>) -> Result<Option<V>, Error>;
        fn remove_range[R: RangeBounds<K> + Sync](&mut self, range: R) -> Result<u64, Error>;
    }
    fn retain(&mut self, keep: impl FnMut(K, V) -> bool) -> Result<(), Error> {
        self.retain(keep)
    }
    warpset_base::by_inherent! {
        fn cleanup(&mut self) -> Result<(), Error>;
        fn clear(&mut self) -> Result<(), Error> as Ok;
        fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error> as Ok;
        fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error> as Ok;
        fn count_range_bulk[R: RangeBounds<K> + Sync](&self, ranges: &[R]) -> Result<Vec<u64>, Error> as Ok;
        fn range_bulk[R: RangeBounds<K> + Sync](&self, ranges: &[R]) -> Result<Ranges<K, V>, Error>;
        fn successor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> as Ok;
        fn predecessor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> as Ok;
        fn first_key_value(&self) -> Result<Option<(K, V)>, Error> as Ok;
        fn last_key_value(&self) -> Result<Option<(K, V)>, Error> as Ok;
        fn len(&self) -> Result<u64, Error> as Ok;
        fn is_empty(&self) -> Result<bool, Error> as Ok;
        fn resident_len(&self) -> u64;
        fn memory_bytes(&self) -> u64;
    }
}
