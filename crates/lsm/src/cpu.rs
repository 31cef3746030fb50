//! Log-structured merge trees in host memory.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::batch;
use crate::builder::Settings;
use crate::error::one_per_key;
use crate::level::{Level, LevelIndex, Sorted, place_for};
use crate::merge::{merge_all, merge_live};
use crate::query::methods::queries;
use crate::run::{Elements, Run};
use crate::{Builder, CleanupPolicy, Error, OrderedKey, Value};

/// A dictionary as a log-structured merge tree: sorted levels, each twice as large as the one before, that never change once
/// they are made.
///
/// An update sorts its batch and merges it with the levels that it fills up. A removal inserts a *tombstone*. Elements that
/// a newer one with their key makes stale stay until a cleanup, which a [`CleanupPolicy`] calls for, or
/// [`Lsm::cleanup`]. Within one batch a removal wins over insertions of its key, and of several insertions the last one
/// counts.
///
/// A clone and a [`Snapshot`] share the levels: both cost a few words, and go on unchanged whatever happens to this one.
///
/// ```
/// use warpset_lsm::{CleanupPolicy, Lsm};
///
/// let mut lsm = Lsm::<u64, u32>::builder().batch_size(1024).cleanup(CleanupPolicy::Manual).build()?;
/// let keys: Vec<u64> = (0..4096).rev().collect();
/// lsm.insert_bulk(&keys, &vec![1; 4096])?;
/// let before = lsm.snapshot();
///
/// lsm.update_bulk(&[5, 6, 6], &[50, 60, 0], &[false, false, true])?; // 6 is inserted and removed: removed
/// assert_eq!((lsm.get(5), lsm.get(6)), (Some(50), None));
/// assert_eq!((before.get(5), before.get(6)), (Some(1), Some(1)));
///
/// assert_eq!((lsm.len(), lsm.resident_len()), (4095, 4099));
/// lsm.cleanup()?;
/// assert_eq!((lsm.len(), lsm.resident_len()), (4095, 4095));
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
#[derive(Clone)]
pub struct Lsm<K, V> {
    settings: Settings,
    /// The occupied ones, ascending by their index, which is from the newest elements to the oldest.
    levels: Vec<Arc<Level<K, V>>>,
    /// What the automatic cleanup goes by.
    pub(crate) history: History,
    live: OnceLock<u64>,
}

/// What has happened since the last cleanup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    /// Elements that lived then.
    pub live_at_cleanup: u64,
    /// Updates since then.
    pub updates: u64,
}

/// A dictionary as it was when [`Lsm::snapshot`] was called; answers every query, from any thread, while that one goes on
/// changing.
///
/// ```
/// use warpset_lsm::Lsm;
///
/// let mut lsm = Lsm::<u32, u32>::builder().build()?;
/// lsm.insert_bulk(&[1, 2], &[10, 20])?;
/// let snapshot = lsm.snapshot();
/// std::thread::scope(|scope| {
///     let reader = scope.spawn(|| snapshot.get_bulk(&[1, 2]));
///     lsm.clear();
///     assert_eq!(reader.join().unwrap(), [Some(10), Some(20)]);
/// });
/// # Ok::<(), warpset_lsm::Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot<K, V> {
    levels: Vec<Arc<Level<K, V>>>,
    live: OnceLock<u64>,
}

impl<K: OrderedKey, V: Value> Lsm<K, V> {
    /// Settings for a dictionary.
    pub fn builder() -> Builder<K, V> {
        Builder::default()
    }

    pub(crate) fn empty(settings: Settings) -> Self {
        Lsm { settings, levels: Vec::new(), history: History::default(), live: OnceLock::from(0) }
    }

    /// Levels that keep the invariants for these settings.
    pub(crate) fn from_levels(settings: Settings, levels: Vec<Arc<Level<K, V>>>, history: History) -> Self {
        Lsm { settings, levels, history, live: OnceLock::new() }
    }

    pub(crate) fn from_pairs(settings: Settings, keys: &[K], values: &[V]) -> Result<Self, Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let mut lsm = Lsm::empty(settings);
        let sorted = batch::live_insertions(keys, values)?;
        lsm.set_live(sorted);
        Ok(lsm)
    }

    /// Replaces everything by these elements, which all live.
    fn set_live(&mut self, elements: Elements<K, V>) {
        let len = elements.len();
        let index = LevelIndex::holding(self.settings.batch_size, len);
        self.levels.clear();
        if len > 0 {
            self.levels.push(Arc::new(Level::of_live(index, elements)));
        }
        self.history = History { live_at_cleanup: len as u64, updates: 0 };
        self.live = OnceLock::from(len as u64);
    }

    /// Inserts a key with its value, or replaces the key's value.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn insert(&mut self, key: K, value: V) -> Result<(), Error> {
        self.insert_bulk(&[key], &[value])
    }

    /// Removes a key, whether it has a value or not.
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

    /// Adds a sorted batch, and cleans up if that is due.
    fn push(&mut self, batch: Elements<K, V>) -> Result<(), Error> {
        if batch.len() == 0 {
            return Ok(());
        }
        let lengths = self.levels.iter().map(|level| (level.index, level.elements.len()));
        let (index, merged) = place_for(self.settings.batch_size, batch.len(), lengths);
        let elements = if merged == 0 {
            batch
        } else {
            let older = self.levels[..merged].iter().map(|level| level.elements.run());
            merge_all(&std::iter::once(batch.run()).chain(older).collect::<Vec<_>>())?
        };
        self.levels.splice(..merged, [Arc::new(Level::new(index, elements))]);
        self.live = OnceLock::new();
        self.history.updates += 1;
        let History { live_at_cleanup, updates } = self.history;
        if self.settings.is_due(self.resident_len(), live_at_cleanup, updates) {
            // Where there is no memory for it now, the next update tries again.
            let _ = self.cleanup();
        }
        Ok(())
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
        if is_clean
            && self.levels.iter().all(|l| l.index == LevelIndex::holding(self.settings.batch_size, len as usize))
        {
            self.history = History { live_at_cleanup: len, updates: 0 };
            return Ok(());
        }
        let runs: Vec<Run<'_, K, V>> = self.levels.iter().map(Sorted::run).collect();
        let live = merge_live(&runs)?;
        self.set_live(live);
        Ok(())
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        *self = Lsm::empty(self.settings);
    }

    /// The dictionary as it is now, to be asked while this one changes. Costs a few words; the levels are shared.
    pub fn snapshot(&self) -> Snapshot<K, V> {
        Snapshot { levels: self.levels.clone(), live: self.live.clone() }
    }

    /// Elements of a full batch.
    pub fn batch_size(&self) -> u64 {
        self.settings.batch_size
    }

    /// When it cleans up.
    pub fn cleanup_policy(&self) -> CleanupPolicy {
        self.settings.cleanup
    }

    /// The occupied levels with the numbers of their elements, the newest first.
    pub fn level_lens(&self) -> Vec<(LevelIndex, u64)> {
        self.levels.iter().map(|level| (level.index, level.elements.len() as u64)).collect()
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    pub(crate) fn levels(&self) -> &[Arc<Level<K, V>>] {
        &self.levels
    }

    fn live(&self) -> &OnceLock<u64> {
        &self.live
    }
}

impl<K: OrderedKey, V: Value> Snapshot<K, V> {
    fn levels(&self) -> &[Arc<Level<K, V>>] {
        &self.levels
    }

    fn live(&self) -> &OnceLock<u64> {
        &self.live
    }
}

queries!([K: OrderedKey, V: Value] Lsm<K, V>);
queries!([K: OrderedKey, V: Value] Snapshot<K, V>);

/// Same settings, same levels, same elements in them.
impl<K: OrderedKey, V: Value> PartialEq for Lsm<K, V> {
    fn eq(&self, other: &Self) -> bool {
        let parts = |level: &Level<K, V>| (level.index, level.elements.len());
        self.settings == other.settings
            && self.history == other.history
            && self.levels.len() == other.levels.len()
            && self.levels.iter().zip(&other.levels).all(|(a, b)| {
                parts(a) == parts(b)
                    && a.elements.keys.as_slice() == b.elements.keys.as_slice()
                    && a.elements.values == b.elements.values
                    && a.elements.tombstones == b.elements.tombstones
            })
    }
}

impl<K: OrderedKey, V: Value> fmt::Debug for Lsm<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let levels: Vec<(u32, u64)> = self.level_lens().into_iter().map(|(index, len)| (index.get(), len)).collect();
        f.debug_struct("Lsm").field("settings", &self.settings).field("levels", &levels).finish()
    }
}

impl<K: OrderedKey, V: Value> fmt::Debug for Snapshot<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("resident_len", &self.resident_len()).finish()
    }
}
