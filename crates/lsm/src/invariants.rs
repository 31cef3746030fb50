//! The building invariants of a level (section III-D of the paper), as far as they are visible in its elements. Tests
//! check them after every operation, loaders before they accept a file.
//!
//! 1. Keys ascend; equal keys are next to each other.
//! 2. Of equal keys the newest is first: merges keep that order; only answers show it.
//! 3. Within a batch tombstones come before insertions of their key. After a merge an insertion of a newer batch comes
//!    before the tombstone, so only answers show this, too.
//!
//! Further rules make the bytes of a dictionary unique: a tombstone has no value, a bitmap has a tombstone, bits past
//! the last element are zero; levels are occupied, ascend, and hold no more than their capacity.

use crate::element::are_same;
use crate::level::{LevelIndex, Sorted};
use crate::run::Run;
use crate::{Error, Lsm, OrderedKey, Value};

fn broken(level: LevelIndex, what: &'static str, place: usize) -> Error {
    Error::Invalid { level: level.get(), what, place: place as u64 }
}

/// Checks one level; `tombstones` are the words of its bitmap, if any.
pub(crate) fn check_run<K: OrderedKey, V: Value>(
    index: LevelIndex,
    run: &Run<'_, K, V>,
    bitmap: Option<&[u32]>,
) -> Result<(), Error> {
    if let Some(place) = run.keys.windows(2).position(|two| two[0] > two[1]) {
        return Err(broken(index, "keys do not ascend after", place));
    }
    let Some(bitmap) = bitmap else { return Ok(()) };
    let last_bits = run.len() % 32;
    if last_bits != 0 && bitmap[run.len() / 32] >> last_bits != 0 {
        return Err(broken(index, "bits of tombstones past", run.len() - 1));
    }
    if bitmap.iter().all(|&word| word == 0) {
        return Err(broken(index, "no tombstone up to", run.len()));
    }
    match (0..run.len()).find(|&i| run.is_tombstone(i) && !are_same(&run.values[i..=i], &[V::NONE])) {
        Some(place) => Err(broken(index, "the tombstone has a value at", place)),
        None => Ok(()),
    }
}

/// Checks the indices and lengths of the occupied levels.
pub(crate) fn check_places(batch_size: u64, levels: impl Iterator<Item = (LevelIndex, usize)>) -> Result<(), Error> {
    let mut least = 0;
    for (index, len) in levels {
        if index.get() < least {
            return Err(broken(index, "the level is out of order, with its last", len));
        }
        if len == 0 || len as u64 > index.capacity(batch_size) {
            return Err(broken(index, "the level cannot end with", len));
        }
        least = index.get() + 1;
    }
    Ok(())
}

impl<K: OrderedKey, V: Value> Lsm<K, V> {
    /// Checks that the levels keep the invariants of the structure. They always do; this is for tests.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_invariants(&self) -> Result<(), Error> {
        let levels = self.levels();
        check_places(self.batch_size(), levels.iter().map(|level| (level.index, level.elements.len())))?;
        levels.iter().try_for_each(|level| check_run(level.index, &level.run(), level.elements.tombstones.as_deref()))
    }
}
