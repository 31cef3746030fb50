//! Updates and cleanups in host memory, of trees and sorted arrays.

use std::ops::RangeBounds;
use std::sync::Arc;

use super::Dictionary;
use crate::element::are_same;
use crate::error::one_per_key;
use crate::level::{Level, Sorted};
use crate::merge::{merge_all, merge_live};
use crate::policy::MergePolicy;
use crate::query::range;
use crate::run::{Elements, Run};
use crate::{Error, OrderedKey, Value, batch};

/// Updates. Methods that end in `_bulk` use all threads of the current rayon pool.
impl<K: OrderedKey, V: Value, P: MergePolicy> Dictionary<K, V, P> {
    /// Inserts a key with its value, or replaces its value. Rewrites a sorted array.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn insert(&mut self, key: K, value: V) -> Result<(), Error> {
        self.insert_bulk(&[key], &[value])
    }

    /// Removes a key, whether or not it has a value. Rewrites a sorted array.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn remove(&mut self, key: K) -> Result<(), Error> {
        self.remove_bulk(&[key])
    }

    /// Inserts one value per key and replaces existing values. The last one of equal keys counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::OutOfMemory`].
    pub fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        self.push(batch::insertions(keys, values)?)
    }

    /// Removes keys, whether or not they have values.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error> {
        self.push(batch::removals(keys)?)
    }

    /// Removes the keys with a flag in `removed`, and inserts the others with their values. A key that is both removed
    /// and inserted is removed, wherever in the batch.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless all three are of one length; [`Error::OutOfMemory`].
    pub fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        one_per_key(keys.len(), "flags", removed.len())?;
        self.push(batch::mixed(keys, values, removed)?)
    }

    /// Replaces a key's value by `change(old)`; `None` removes the key. Writes nothing if the value is unchanged.
    /// Returns the new value. Costs one lookup and one [`insert`](Dictionary::insert) or
    /// [`remove`](Dictionary::remove); for many keys, [`get_bulk`](Dictionary::get_bulk) and
    /// [`update_bulk`](Dictionary::update_bulk) take far less time.
    ///
    /// ```
    /// use warpset_lsm::Lsm;
    ///
    /// let mut stock = Lsm::<u32, u64>::builder().build_from(&[1, 2], &[1, 10])?;
    /// for sold in [1, 2, 3] {
    ///     stock.update(sold, |left| left?.checked_sub(1).filter(|&left| left > 0))?;
    /// }
    /// assert_eq!(stock.iter().collect::<Vec<_>>(), [(2, 9)]);
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; the value is then unchanged.
    pub fn update(&mut self, key: K, change: impl FnOnce(Option<V>) -> Option<V>) -> Result<Option<V>, Error> {
        let before = self.get(key);
        let after = change(before);
        match after {
            _ if are_same(after.as_slice(), before.as_slice()) => {}
            Some(value) => self.insert(key, value)?,
            None => self.remove(key)?,
        }
        Ok(after)
    }

    /// Removes all keys of a range, and returns the number of keys that had a value. Lists them, and inserts one
    /// tombstone each, in one batch that needs no sort. A range of all keys equals [`clear`](Dictionary::clear).
    ///
    /// ```
    /// use warpset_lsm::Lsm;
    ///
    /// let mut events: Lsm<u64, u32> = (0..1000).map(|second| (second, 1)).collect();
    /// assert_eq!(events.remove_range(..900)?, 900); // those that are too old
    /// assert_eq!(events.first_key_value(), Some((900, 1)));
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; then nothing is removed.
    pub fn remove_range(&mut self, range: impl RangeBounds<K>) -> Result<u64, Error> {
        if range::ends(&range) == Some((K::MIN, K::MAX)) {
            let removed = self.len();
            self.clear();
            return Ok(removed);
        }
        let keys = range::keys_in(&self.levels, &range)?;
        self.remove_bulk(&keys)?;
        Ok(keys.len() as u64)
    }

    /// Removes the keys for which `keep` is false. `keep` is called once per key, in ascending order. Leaves one level,
    /// as [`cleanup`](Dictionary::cleanup) does, at the same cost in time and memory.
    ///
    /// ```
    /// use warpset_lsm::Lsm;
    ///
    /// let mut counts: Lsm<u32, u32> = [(1, 5), (2, 0), (3, 7)].into_iter().collect();
    /// counts.retain(|_, count| count > 0)?;
    /// assert_eq!(counts.iter().collect::<Vec<_>>(), [(1, 5), (3, 7)]);
    /// # Ok::<(), warpset_lsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; then, and if `keep` panics, nothing is removed.
    pub fn retain(&mut self, mut keep: impl FnMut(K, V) -> bool) -> Result<(), Error> {
        let mut live = merge_live(&self.runs(None))?;
        let (keys, values) = (live.keys.as_mut_slice(), &mut live.values);
        let mut kept = 0;
        for i in 0..keys.len() {
            if keep(keys[i], values[i]) {
                (keys[kept], values[kept]) = (keys[i], values[i]);
                kept += 1;
            }
        }
        if kept < live.len() {
            live = batch::insertions(&live.keys.as_slice()[..kept], &live.values[..kept])?;
        }
        self.set_live(live);
        Ok(())
    }

    /// Drops tombstones and stale elements. Leaves one level; answers do not change.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn cleanup(&mut self) -> Result<(), Error> {
        let is_clean = match &self.levels[..] {
            [] => true,
            [level] => !level.run().has_tombstones() && level.search_index().is_distinct(level.run().keys),
            _ => false,
        };
        let len = self.resident_len();
        if is_clean && self.levels.iter().all(|level| level.index == self.policy.level_for(len as usize)) {
            self.policy.note_cleanup(len);
            return Ok(());
        }
        let live = merge_live(&self.runs(None))?;
        self.set_live(live);
        Ok(())
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        *self = Dictionary::empty(self.policy);
    }

    pub(crate) fn empty(mut policy: P) -> Self {
        policy.note_cleanup(0);
        Dictionary::from_levels(policy, Vec::new())
    }

    /// Returns a dictionary of live elements.
    pub(crate) fn from_live(policy: P, elements: Elements<K, V>) -> Self {
        let mut made = Dictionary::empty(policy);
        made.set_live(elements);
        made
    }

    pub(crate) fn from_pairs(policy: P, keys: &[K], values: &[V]) -> Result<Self, Error> {
        one_per_key(keys.len(), "values", values.len())?;
        Ok(Dictionary::from_live(policy, batch::live_insertions(keys, values)?))
    }

    /// Replaces everything by these live elements.
    fn set_live(&mut self, elements: Elements<K, V>) {
        let len = elements.len();
        let index = self.policy.level_for(len);
        self.levels.clear();
        if len > 0 {
            self.levels.push(Arc::new(Level::of_live(index, elements)));
        }
        self.policy.note_cleanup(len as u64);
    }

    /// Returns the runs of a batch, if any, and of all levels, the newest first.
    fn runs<'a>(&'a self, batch: Option<&'a Elements<K, V>>) -> Vec<Run<'a, K, V>> {
        batch.map(Elements::run).into_iter().chain(self.levels.iter().map(Sorted::run)).collect()
    }

    /// Adds a sorted batch, and cleans up if a cleanup is due.
    fn push(&mut self, batch: Elements<K, V>) -> Result<(), Error> {
        if batch.len() == 0 {
            return Ok(());
        }
        if P::ALWAYS_CLEAN {
            let live = merge_live(&self.runs(Some(&batch)))?;
            self.set_live(live);
            return Ok(());
        }
        let lengths = self.levels.iter().map(|level| (level.index, level.elements.len()));
        let (index, merged) = self.policy.place_for(batch.len(), lengths);
        let elements = if merged == 0 { batch } else { merge_all(&self.runs(Some(&batch))[..=merged])? };
        self.levels.splice(..merged, [Arc::new(Level::new(index, elements))]);
        self.policy.note_update();
        if self.policy.is_due(self.resident_len()) {
            // If memory runs out, the next update tries again.
            let _ = self.cleanup();
        }
        Ok(())
    }
}

/// Inserts pairs as one batch: the last one of equal keys counts.
///
/// ```
/// use warpset_lsm::Lsm;
///
/// let mut lsm: Lsm<i64, u32> = [(-3, 1), (5, 2)].into_iter().collect();
/// lsm.extend([(5, 3), (-7, 4)]);
/// assert_eq!(lsm.iter().collect::<Vec<_>>(), [(-7, 4), (-3, 1), (5, 3)]);
/// ```
///
/// # Panics
/// If memory runs out, as for `Vec`; then the dictionary is unchanged. [`insert_bulk`](Dictionary::insert_bulk) returns
/// an error instead.
impl<K: OrderedKey, V: Value, P: MergePolicy> Extend<(K, V)> for Dictionary<K, V, P> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, pairs: I) {
        let (keys, values): (Vec<K>, Vec<V>) = pairs.into_iter().unzip();
        self.insert_bulk(&keys, &values).unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Collects pairs into a dictionary with the default settings of its builder; the last one of equal keys counts.
///
/// # Panics
/// If memory runs out, as for `Vec`; `build_from` of a builder returns an error instead.
impl<K: OrderedKey, V: Value, P: MergePolicy + Default> FromIterator<(K, V)> for Dictionary<K, V, P> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let (keys, values): (Vec<K>, Vec<V>) = pairs.into_iter().unzip();
        Dictionary::from_pairs(P::default(), &keys, &values).unwrap_or_else(|error| panic!("{error}"))
    }
}
