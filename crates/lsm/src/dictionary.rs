//! What dictionaries have in common, on every backend: for code that works with any of them.

use std::ops::RangeBounds;

use crate::cpu::Ordered;
use crate::form::Form;
use crate::{Error, OrderedKey, Ranges, Value};

/// An ordered dictionary that takes updates in batches. The types have inherent methods of the same names, with their exact
/// results: use the trait where the type is open.
///
/// ```
/// use warpset_lsm::{Dictionary, Error, Lsm, SortedArray};
///
/// fn overwritten(mut of: impl Dictionary<u32, u32>) -> Result<Vec<Option<u32>>, Error> {
///     of.insert_bulk(&[1, 2], &[10, 20])?;
///     of.insert_bulk(&[2], &[22])?;
///     of.get_bulk(&[1, 2, 3])
/// }
/// let expected = [Some(10), Some(22), None];
/// assert_eq!(overwritten(Lsm::builder().build()?)?, expected);
/// assert_eq!(overwritten(SortedArray::builder().build()?)?, expected);
/// # Ok::<(), Error>(())
/// ```
pub trait Dictionary<K: OrderedKey, V: Value> {
    /// Inserts keys with their values; of equal keys the last one counts.
    fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error>;
    /// Removes keys.
    fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error>;
    /// Removes the keys whose flag is set, and inserts the others; a key that is in both is removed.
    fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error>;
    /// Drops what does not live.
    fn cleanup(&mut self) -> Result<(), Error>;
    /// Removes everything.
    fn clear(&mut self) -> Result<(), Error>;
    /// The values of keys.
    fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error>;
    /// Whether keys have values.
    fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error>;
    /// How many keys of each range have a value.
    fn count_range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Vec<u64>, Error>;
    /// The keys of each range that have a value, with their values.
    fn range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error>;
    /// The smallest key above each key that has a value, with its value.
    fn successor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error>;
    /// The largest key below each key that has a value, with its value.
    fn predecessor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error>;
    /// The smallest key that has a value, with its value.
    fn first_key_value(&self) -> Result<Option<(K, V)>, Error>;
    /// The largest key that has a value, with its value.
    fn last_key_value(&self) -> Result<Option<(K, V)>, Error>;
    /// How many keys have a value.
    fn len(&self) -> Result<u64, Error>;
    /// Whether no key has a value.
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }
    /// Elements that are stored.
    fn resident_len(&self) -> u64;
    /// Bytes of memory that they take, and what has been derived from them.
    fn memory_bytes(&self) -> u64;
}

/// Of trees and sorted arrays in host memory.
impl<K: OrderedKey, V: Value, F: Form> Dictionary<K, V> for Ordered<K, V, F> {
    fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        self.insert_bulk(keys, values)
    }
    fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error> {
        self.remove_bulk(keys)
    }
    fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error> {
        self.update_bulk(keys, values, removed)
    }
    fn cleanup(&mut self) -> Result<(), Error> {
        self.cleanup()
    }
    fn clear(&mut self) -> Result<(), Error> {
        self.clear();
        Ok(())
    }
    fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error> {
        Ok(self.get_bulk(keys))
    }
    fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        Ok(self.contains_bulk(keys))
    }
    fn count_range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Vec<u64>, Error> {
        Ok(self.count_range_bulk(ranges))
    }
    fn range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error> {
        self.range_bulk(ranges)
    }
    fn successor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> {
        Ok(self.successor_bulk(keys))
    }
    fn predecessor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> {
        Ok(self.predecessor_bulk(keys))
    }
    fn first_key_value(&self) -> Result<Option<(K, V)>, Error> {
        Ok(self.first_key_value())
    }
    fn last_key_value(&self) -> Result<Option<(K, V)>, Error> {
        Ok(self.last_key_value())
    }
    fn len(&self) -> Result<u64, Error> {
        Ok(self.len())
    }
    fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.is_empty())
    }
    fn resident_len(&self) -> u64 {
        self.resident_len()
    }
    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}
