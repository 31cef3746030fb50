//! What filters have in common, on every backend: traits for code that works with any of them.
//!
//! All methods return `Result`, because a device can fail. The types have inherent methods of the same names, with
//! their exact results: use the traits where the type is open.
//!
//! | trait | operation | who has it |
//! | --- | --- | --- |
//! | [`Filter`] | ask | all |
//! | [`Insert`] | insert, clear, merge | all that can change |
//! | [`TestAndInsert`] | insert and say which keys were new | Bloom filters |
//! | [`Remove`] | take out one copy of each key | quotient filters |
//! | [`Count`] | how many copies of each key | quotient filters |

use crate::bitmap::Bitmap;
use crate::key::Key;

/// Slices of keys and of answers that do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{keys} keys, and {answers} places for answers: pass one place per key")]
pub struct LengthMismatch {
    /// Keys given.
    pub keys: usize,
    /// Places for answers given.
    pub answers: usize,
}

/// An error unless there are as many places for answers as keys.
pub fn same_length(keys: usize, answers: usize) -> Result<(), LengthMismatch> {
    if keys == answers { Ok(()) } else { Err(LengthMismatch { keys, answers }) }
}

/// A set that answers "no" only for keys that it does not hold.
pub trait Filter {
    /// Why an operation failed.
    type Error: std::error::Error + Send + Sync + 'static;

    /// [`Filter::contains_bulk`] into a slice of the same length.
    ///
    /// # Errors
    /// If the lengths differ, and what the backend adds.
    fn contains_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Self::Error>;

    /// [`Filter::contains_bulk`] as one bit per key.
    fn contains_bitmap_bulk<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Self::Error>;

    /// Bytes of memory that the filter's words take.
    fn memory_bytes(&self) -> u64;

    /// Whether each key may be in the filter, in the order of the keys.
    fn contains_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<bool>, Self::Error> {
        let mut answers = vec![false; keys.len()];
        self.contains_bulk_into(keys, &mut answers)?;
        Ok(answers)
    }

    /// How many of the keys may be in the filter.
    fn count_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<usize, Self::Error> {
        Ok(self.contains_bitmap_bulk(keys)?.count_ones())
    }
}

/// A filter that keys can be added to.
///
/// ```
/// use warpset_base::filter::Insert;
///
/// fn refill<F: Insert>(filter: &mut F, keys: &[u64]) -> Result<usize, F::Error> {
///     filter.clear()?;
///     filter.insert_bulk(keys)?;
///     filter.count_contained_bulk(keys)
/// }
/// ```
pub trait Insert: Filter {
    /// Inserts all keys.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Self::Error>;

    /// Removes all keys and keeps the memory.
    fn clear(&mut self) -> Result<(), Self::Error>;

    /// Adds what another filter with the same parameters holds.
    fn merge(&mut self, other: &Self) -> Result<(), Self::Error>;
}

/// A filter that can say, while it inserts, which keys it did not hold.
pub trait TestAndInsert: Insert {
    /// Inserts all keys and says which were new: of equal keys in a batch at most the first is.
    fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Self::Error>;
}

/// A filter that keys can be removed from.
pub trait Remove: Insert {
    /// Removes one copy of each key, and says how many copies that took out. Removing a key that was never inserted can
    /// remove another one that looks the same to the filter.
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Self::Error>;
}

/// A filter that counts.
pub trait Count: Filter {
    /// How many copies of each key the filter holds, in the order of the keys: never fewer than were inserted.
    fn count_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<u64>, Self::Error>;
}
