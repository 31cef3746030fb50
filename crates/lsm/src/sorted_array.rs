//! A sorted array with the operations of the tree: what the paper measures it against.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::batch;
use crate::builder::SortedArrayBuilder;
use crate::error::one_per_key;
use crate::level::{Level, LevelIndex};
use crate::merge::merge_live;
use crate::query::methods::queries;
use crate::run::Elements;
use crate::{Error, OrderedKey, Value};

/// A dictionary as one sorted array of its live elements.
///
/// Every update sorts its batch and merges it with everything, and so rewrites the array; queries search one array and
/// validate nothing. For dictionaries that change seldom, or by large parts of what they hold; otherwise take an
/// [`Lsm`](crate::Lsm).
///
/// ```
/// use warpset_lsm::SortedArray;
///
/// let mut array = SortedArray::<u32, u32>::builder().build_from(&[3, 1, 2], &[30, 10, 20])?;
/// array.remove_bulk(&[2])?;
/// array.insert(4, 40)?;
/// assert_eq!(array.keys(), [1, 3, 4]);
/// assert_eq!(array.values(), [10, 30, 40]);
/// assert_eq!(array.count_range(2..), 2);
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
#[derive(Clone)]
pub struct SortedArray<K, V> {
    /// One level.
    levels: [Arc<Level<K, V>>; 1],
    live: OnceLock<u64>,
}

impl<K: OrderedKey, V: Value> SortedArray<K, V> {
    /// Makes an array.
    pub fn builder() -> SortedArrayBuilder<K, V> {
        SortedArrayBuilder::default()
    }

    /// Elements that all live.
    pub(crate) fn from_live(elements: Elements<K, V>) -> Self {
        let live = OnceLock::from(elements.len() as u64);
        SortedArray { levels: [Arc::new(Level::of_live(LevelIndex(0), elements))], live }
    }

    pub(crate) fn from_pairs(keys: &[K], values: &[V]) -> Result<Self, Error> {
        one_per_key(keys.len(), "values", values.len())?;
        Ok(SortedArray::from_live(batch::live_insertions(keys, values)?))
    }

    /// Inserts a key with its value, or replaces the key's value. Rewrites the array.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn insert(&mut self, key: K, value: V) -> Result<(), Error> {
        self.insert_bulk(&[key], &[value])
    }

    /// Removes a key, whether it has a value or not. Rewrites the array.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn remove(&mut self, key: K) -> Result<(), Error> {
        self.remove_bulk(&[key])
    }

    /// Inserts keys with their values, of which there are as many; replaces those of keys that are there. Of equal keys the
    /// last one counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::OutOfMemory`].
    pub fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        self.push(batch::insertions(keys, values)?)
    }

    /// Removes keys, whether they have values or not.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error> {
        self.push(batch::removals(keys)?)
    }

    /// Removes the keys whose flag in `removed` is set, and inserts the others with their values. Where a key is removed and
    /// inserted, it is removed, wherever in the batch the two are.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless all three are of one length; [`Error::OutOfMemory`].
    pub fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        one_per_key(keys.len(), "flags", removed.len())?;
        self.push(batch::mixed(keys, values, removed)?)
    }

    fn push(&mut self, batch: Elements<K, V>) -> Result<(), Error> {
        if batch.len() > 0 {
            *self = SortedArray::from_live(merge_live(&[batch.run(), self.elements().run()])?);
        }
        Ok(())
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        if let Ok(empty) = SortedArray::from_pairs(&[], &[]) {
            *self = empty;
        }
    }

    /// All keys, ascending.
    pub fn keys(&self) -> &[K] {
        self.elements().keys.as_slice()
    }

    /// The value of each key.
    pub fn values(&self) -> &[V] {
        &self.elements().values
    }

    pub(crate) fn elements(&self) -> &Elements<K, V> {
        &self.levels[0].elements
    }

    pub(crate) fn levels(&self) -> &[Arc<Level<K, V>>] {
        &self.levels
    }

    fn live(&self) -> &OnceLock<u64> {
        &self.live
    }
}

queries!([K: OrderedKey, V: Value] SortedArray<K, V>);

/// Same keys, same values.
impl<K: OrderedKey, V: Value> PartialEq for SortedArray<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.keys() == other.keys() && self.values() == other.values()
    }
}
impl<K: OrderedKey, V: Value> Eq for SortedArray<K, V> {}

impl<K: OrderedKey, V: Value> fmt::Debug for SortedArray<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedArray").field("len", &self.elements().len()).finish()
    }
}
