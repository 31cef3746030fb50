//! Updates and cleanups in host memory, of trees and sorted arrays.

use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use super::Ordered;
use crate::error::one_per_key;
use crate::form::Form;
use crate::level::{Level, Sorted};
use crate::merge::{merge_all, merge_live};
use crate::run::{Elements, Run};
use crate::{Error, OrderedKey, Value, batch};

/// Updates. Those that end in `_bulk` use all threads of the current rayon pool.
impl<K: OrderedKey, V: Value, F: Form> Ordered<K, V, F> {
    /// Inserts a key with its value, or replaces the key's value. A sorted array is rewritten.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn insert(&mut self, key: K, value: V) -> Result<(), Error> {
        self.insert_bulk(&[key], &[value])
    }

    /// Removes a key, whether it has a value or not. A sorted array is rewritten.
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

    /// Drops tombstones and stale elements; what lives is one level then, and answers are as they were.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn cleanup(&mut self) -> Result<(), Error> {
        let is_clean = match &self.levels[..] {
            [] => true,
            [level] => !level.run().has_tombstones() && level.derived().is_distinct(level.run().keys),
            _ => false,
        };
        let len = self.resident_len();
        if is_clean && self.levels.iter().all(|level| level.index == self.form.level_for(len as usize)) {
            self.form.note_cleanup(len);
            return Ok(());
        }
        let live = merge_live(&self.runs(None))?;
        self.set_live(live);
        Ok(())
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        *self = Ordered::empty(self.form);
    }

    pub(crate) fn empty(mut form: F) -> Self {
        form.note_cleanup(0);
        Ordered { form, levels: Vec::new(), live: OnceLock::from(0), elements: PhantomData }
    }

    /// Elements that all live.
    pub(crate) fn from_live(form: F, elements: Elements<K, V>) -> Self {
        let mut made = Ordered::empty(form);
        made.set_live(elements);
        made
    }

    pub(crate) fn from_pairs(form: F, keys: &[K], values: &[V]) -> Result<Self, Error> {
        one_per_key(keys.len(), "values", values.len())?;
        Ok(Ordered::from_live(form, batch::live_insertions(keys, values)?))
    }

    /// Replaces everything by these elements, which all live.
    fn set_live(&mut self, elements: Elements<K, V>) {
        let len = elements.len();
        let index = self.form.level_for(len);
        self.levels.clear();
        if len > 0 {
            self.levels.push(Arc::new(Level::of_live(index, elements)));
        }
        self.form.note_cleanup(len as u64);
        self.live = OnceLock::from(len as u64);
    }

    /// A batch, if there is one, and all levels, the newest first.
    fn runs<'a>(&'a self, batch: Option<&'a Elements<K, V>>) -> Vec<Run<'a, K, V>> {
        batch.map(Elements::run).into_iter().chain(self.levels.iter().map(Sorted::run)).collect()
    }

    /// Adds a sorted batch, and cleans up if that is due.
    fn push(&mut self, batch: Elements<K, V>) -> Result<(), Error> {
        if batch.len() == 0 {
            return Ok(());
        }
        if F::ALWAYS_CLEAN {
            let live = merge_live(&self.runs(Some(&batch)))?;
            self.set_live(live);
            return Ok(());
        }
        let lengths = self.levels.iter().map(|level| (level.index, level.elements.len()));
        let (index, merged) = self.form.place_for(batch.len(), lengths);
        let elements = if merged == 0 { batch } else { merge_all(&self.runs(Some(&batch))[..=merged])? };
        self.levels.splice(..merged, [Arc::new(Level::new(index, elements))]);
        self.live = OnceLock::new();
        self.form.note_update();
        if self.form.is_due(self.resident_len()) {
            // Where there is no memory for it now, the next update tries again.
            let _ = self.cleanup();
        }
        Ok(())
    }
}
