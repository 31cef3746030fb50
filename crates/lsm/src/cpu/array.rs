//! Sorted arrays in host memory, with the operations of the tree: the paper's baseline.

use super::Dictionary;
use crate::policy::ArrayPolicy;
use crate::{OrderedKey, Value};

/// Dictionary as one sorted array of its live elements.
///
/// Every update sorts its batch and merges it with everything, which rewrites the array; queries search one array and
/// validate nothing. Use it for dictionaries that change seldom, or by large parts; otherwise use an
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
pub type SortedArray<K, V> = Dictionary<K, V, ArrayPolicy>;

impl<K: OrderedKey, V: Value> SortedArray<K, V> {
    /// Returns all keys, ascending.
    pub fn keys(&self) -> &[K] {
        self.levels.first().map_or(&[], |level| level.elements.keys.as_slice())
    }

    /// Returns the value of each key.
    pub fn values(&self) -> &[V] {
        self.levels.first().map_or(&[], |level| &level.elements.values)
    }
}

impl<K: OrderedKey, V: Value> Eq for SortedArray<K, V> {}
