//! What filters have in common, on every backend: traits for code that works with any of them.
//!
//! All methods return `Result`, because a device can fail. The types have inherent methods of the same names, with
//! their exact results: use the traits where the type is open.
//!
//! Methods with `_if` in their names take a [`Stencil`], which says for each key of the batch whether it is meant. They
//! are written here, once for all filters, so a program that calls them imports the trait. The keys that are meant are
//! gathered first, by reference (8 bytes of memory for each); the others cost no lookup and do not travel to a device.
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
use crate::stencil::{Stencil, select};

/// Slices of keys and of answers, or keys and a stencil, that do not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{keys} keys, and {answers} places for answers or in the stencil: pass one place per key")]
pub struct LengthMismatch {
    /// Keys given.
    pub keys: usize,
    /// Places for answers given, or keys that the stencil is for.
    pub answers: usize,
}

/// An error unless there are as many places for answers as keys.
pub fn same_length(keys: usize, answers: usize) -> Result<(), LengthMismatch> {
    if keys == answers { Ok(()) } else { Err(LengthMismatch { keys, answers }) }
}

/// A set that answers "no" only for keys that it does not hold.
pub trait Filter {
    /// Why an operation failed.
    type Error: std::error::Error + From<LengthMismatch> + Send + Sync + 'static;

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

    /// [`Filter::contains_bulk`] under a stencil: no for keys that it does not mean.
    ///
    /// # Errors
    /// If the stencil is not for as many keys, and what the backend adds.
    fn contains_if_bulk<K: Key>(
        &self,
        keys: &[K],
        stencil: &(impl Stencil + ?Sized),
    ) -> Result<Vec<bool>, Self::Error> {
        Ok(self.contains_if_bitmap_bulk(keys, stencil)?.iter().collect())
    }

    /// [`Filter::contains_if_bulk`] as one bit per key: a stencil again.
    ///
    /// # Errors
    /// As there.
    fn contains_if_bitmap_bulk<K: Key>(
        &self,
        keys: &[K],
        stencil: &(impl Stencil + ?Sized),
    ) -> Result<Bitmap, Self::Error> {
        let selected = select(keys, stencil)?;
        Ok(selected.spread(stencil, &self.contains_bitmap_bulk(&selected.keys)?))
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

    /// Inserts the keys that a stencil means.
    ///
    /// ```
    /// use warpset_base::filter::Insert;
    ///
    /// /// Moves to `second` what `first` has seen already, and to `first` all.
    /// fn seen_twice<F: Insert>(first: &mut F, second: &mut F, keys: &[u64]) -> Result<(), F::Error> {
    ///     let seen = first.contains_bitmap_bulk(keys)?;
    ///     second.insert_if_bulk(keys, &seen)?;
    ///     first.insert_bulk(keys)
    /// }
    /// ```
    ///
    /// # Errors
    /// If the stencil is not for as many keys, and those of [`Insert::insert_bulk`].
    fn insert_if_bulk<K: Key>(&mut self, keys: &[K], stencil: &(impl Stencil + ?Sized)) -> Result<(), Self::Error> {
        let selected = select(keys, stencil)?;
        self.insert_bulk(&selected.keys)
    }

    /// Removes all keys and keeps the memory.
    fn clear(&mut self) -> Result<(), Self::Error>;

    /// Adds what another filter with the same parameters holds.
    fn merge(&mut self, other: &Self) -> Result<(), Self::Error>;
}

/// A filter that can say, while it inserts, which keys it did not hold.
pub trait TestAndInsert: Insert {
    /// Inserts all keys and says which were new: of equal keys in a batch at most the first is.
    fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Self::Error>;

    /// [`TestAndInsert::test_and_insert_bulk`] under a stencil: keys that it does not mean are not inserted, and not new.
    ///
    /// # Errors
    /// If the stencil is not for as many keys, and what the backend adds.
    fn test_and_insert_if_bulk<K: Key>(
        &mut self,
        keys: &[K],
        stencil: &(impl Stencil + ?Sized),
    ) -> Result<Vec<bool>, Self::Error> {
        let selected = select(keys, stencil)?;
        let new = Bitmap::from_bools(&self.test_and_insert_bulk(&selected.keys)?);
        Ok(selected.spread(stencil, &new).iter().collect())
    }
}

/// A filter that keys can be removed from.
pub trait Remove: Insert {
    /// Removes one copy of each key, and says how many copies that took out. Removing a key that was never inserted can
    /// remove another one that looks the same to the filter.
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Self::Error>;

    /// [`Remove::remove_bulk`] of the keys that a stencil means.
    ///
    /// # Errors
    /// If the stencil is not for as many keys, and those of [`Remove::remove_bulk`].
    fn remove_if_bulk<K: Key>(&mut self, keys: &[K], stencil: &(impl Stencil + ?Sized)) -> Result<u64, Self::Error> {
        let selected = select(keys, stencil)?;
        self.remove_bulk(&selected.keys)
    }
}

/// A filter that counts.
pub trait Count: Filter {
    /// How many copies of each key the filter holds, in the order of the keys: never fewer than were inserted.
    fn count_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<u64>, Self::Error>;
}
