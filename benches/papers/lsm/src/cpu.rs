//! The published structure in host memory.

use std::fmt;
use std::ops::{Bound, RangeBounds};

use bytemuck::cast_slice;
use papers_kernels::lsm::layout::Counter;
use warpset_base::words::zeroed_vec;

use super::element::{PackedKey, PairValue};
use super::host::{self, Host};
use super::query::{Listed, LookupMethod};
use super::steps::{Batch, Does, Pairs};
use super::tree::Tree;
use crate::Error;
use crate::error::one_per_key;
use warpset_base::bitmap::Bitmap;
use warpset_lsm::{OrderedKey, Ranges};

/// The published structure in host memory.
///
/// ```
/// use papers_lsm::{LookupMethod, Lsm};
///
/// let mut lsm = Lsm::<u32, u32>::builder().batch_size(64).build()?;
/// lsm.insert_bulk(&[5, 3, 5], &[50, 30, 55])?; // padded to 64
/// lsm.remove_bulk(&[3])?;
/// assert_eq!((lsm.batches(), lsm.resident_len()), (2, 128));
/// assert_eq!(lsm.get_bulk_with(&[3, 5], LookupMethod::Bulk)?, [None, Some(55)]);
/// assert_eq!(lsm.count_range_bulk(&[0..=10])?, [1]);
///
/// lsm.cleanup()?; // one element, and 63 placebos
/// assert_eq!((lsm.batches(), lsm.get(5)), (1, Some(55)));
/// assert!(lsm.insert_bulk(&[1 << 31], &[0]).is_err()); // 31 bits are left for the key
/// # Ok::<(), papers_lsm::Error>(())
/// ```
pub struct Lsm<K: PackedKey, V: PairValue> {
    pub(crate) tree: Tree<K, V, Host>,
}

/// Refuses more keys than a batch.
pub(crate) fn check_batch(counter: Counter, keys: usize) -> Result<(), Error> {
    if keys > counter.batch {
        return Err(Error::BatchTooLong { keys, batch_size: counter.batch as u64 });
    }
    Ok(())
}

/// Returns the first and the last key of a range that has keys.
fn ends<K: OrderedKey>(range: &impl RangeBounds<K>) -> Option<(K, K)> {
    let first = match range.start_bound() {
        Bound::Included(&key) => key,
        Bound::Excluded(&key) => key.above()?,
        Bound::Unbounded => K::MIN,
    };
    let last = match range.end_bound() {
        Bound::Included(&key) => key,
        Bound::Excluded(&key) => key.below()?,
        Bound::Unbounded => K::MAX,
    };
    (first <= last).then_some((first, last))
}

/// Returns the first and the last key of each range; the last one is below the first of a range without keys.
pub(crate) fn bounds<K: OrderedKey>(ranges: &[impl RangeBounds<K>]) -> (Vec<K>, Vec<K>) {
    ranges.iter().map(|range| ends(range).unwrap_or((K::MAX, K::MIN))).unzip()
}

impl<K: PackedKey, V: PairValue> Lsm<K, V> {
    fn update<'a>(&mut self, keys: &'a [K], does: Does<'a, V, Host>) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        check_batch(self.tree.counter, keys.len())?;
        // SAFETY: the callers have compared the lengths.
        unsafe { self.tree.insert(&Host, &Batch { keys, does }, true) }
    }

    /// Inserts one value per key, in one batch. Of equal keys the last one counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::BatchTooLong`], [`Error::KeyTooLarge`], [`Error::OutOfMemory`].
    pub fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        self.update(keys, Does::Insert(values))
    }

    /// Removes keys, with values or without, in one batch.
    ///
    /// # Errors
    /// The errors of [`Lsm::insert_bulk`].
    pub fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error> {
        self.update(keys, Does::Remove)
    }

    /// Removes the keys whose flag in `removed` is set, and inserts the others, in one mixed batch. Where a key is
    /// removed and inserted, it is removed.
    ///
    /// # Errors
    /// The errors of [`Lsm::insert_bulk`].
    pub fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        one_per_key(keys.len(), "flags", removed.len())?;
        self.update(keys, Does::Both(values, cast_slice(removed)))
    }

    /// Returns the value of a key, by the individual approach.
    pub fn get(&self, key: K) -> Option<V> {
        host::find(&self.tree.levels(), key)
    }

    /// Returns the values of keys, by the individual approach.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error> {
        self.get_bulk_with(keys, LookupMethod::Individual)
    }

    /// Returns the values of keys.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; the bulk approach takes at most 2^32 keys.
    pub fn get_bulk_with(&self, keys: &[K], method: LookupMethod) -> Result<Vec<Option<V>>, Error> {
        let mut values = zeroed_vec(keys.len() as u64)?;
        let mut found = zeroed_vec(keys.len().div_ceil(64) as u64)?;
        // SAFETY: `values` and `found` were made for as many keys.
        unsafe { self.tree.look_up(&Host, keys, &mut values, &mut found, method)? };
        let found = Bitmap::from_words(found, keys.len());
        Ok(found.iter().zip(values).map(|(found, value)| found.then_some(value)).collect())
    }

    /// Whether each key has a value.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        Ok(self.get_bulk(keys)?.iter().map(Option::is_some).collect())
    }

    /// Counts the keys of each range that have a value.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn count_range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Vec<u64>, Error> {
        let (lows, highs) = bounds(ranges);
        let mut counts = vec![0; ranges.len()];
        // SAFETY: one low, one high and one count per range.
        unsafe { self.tree.count(&Host, (&lows, &highs), &mut counts)? };
        Ok(counts)
    }

    /// Returns the keys of each range that have a value, with their values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error> {
        let (lows, highs) = bounds(ranges);
        // SAFETY: one low and one high per range.
        let Listed { offsets, pairs } = unsafe { self.tree.range(&Host, (&lows, &highs))? };
        Ok(Ranges { offsets, keys: pairs.keys, values: pairs.values })
    }

    /// Drops tombstones and stale elements, pads with placebos to whole batches, and redistributes all to levels.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn cleanup(&mut self) -> Result<(), Error> {
        self.tree.cleanup(&Host)
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn clear(&mut self) -> Result<(), Error> {
        self.tree = Tree::empty(&Host, self.tree.counter.batch)?;
        Ok(())
    }

    /// Counts the keys that have a value. Each call runs the first three steps of a cleanup.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.tree.valid_elements(&Host)?.1 as u64)
    }

    /// Whether no key has a value.
    ///
    /// # Errors
    /// The errors of [`Lsm::len`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }

    /// Returns the elements of a batch.
    pub fn batch_size(&self) -> u64 {
        self.tree.counter.batch as u64
    }

    /// Returns the number of resident batches; its set bits are the full levels.
    pub fn batches(&self) -> u64 {
        self.tree.counter.batches
    }

    /// Returns the number of elements of all levels, with tombstones, stale elements, copies that pad a batch, and
    /// placebos.
    pub fn resident_len(&self) -> u64 {
        self.tree.counter.resident() as u64
    }

    /// Returns the bytes of the array of all levels, empty ones included.
    pub fn memory_bytes(&self) -> u64 {
        self.tree.memory_bytes()
    }
}

impl<K: PackedKey, V: PairValue> Clone for Lsm<K, V> {
    fn clone(&self) -> Self {
        let Pairs { keys, values } = &self.tree.elements;
        let elements = Pairs { keys: keys.clone(), values: values.clone() };
        Lsm { tree: Tree::from_levels(self.tree.counter, elements) }
    }
}

/// Dictionaries are equal if batch size, levels and elements are.
impl<K: PackedKey, V: PairValue> PartialEq for Lsm<K, V> {
    fn eq(&self, other: &Self) -> bool {
        let counter = self.tree.counter;
        counter == other.tree.counter && counter.full().all(|i| self.tree.level(i) == other.tree.level(i))
    }
}

impl<K: PackedKey, V: PairValue> fmt::Debug for Lsm<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("published::Lsm").field("counter", &self.tree.counter).finish_non_exhaustive()
    }
}
