//! Building invariants (section III-D), as far as elements show them. Tests check them after every operation.
//!
//! 1. Within a level elements ascend by original keys.
//! 2. Of equal keys the newest is first: that is the order of merging, and shows only in answers and in values that
//!    tell time.
//! 3. Tombstones come before regular elements of their key. That holds within a batch; after a merge a regular element
//!    of a newer batch comes before an older tombstone, and so does an element of the largest key before placebos. So
//!    level 0 is checked, below the largest key.
//!
//! Levels are full or empty by construction. A tombstone's value is zero, so that equal structures have equal bytes.

use super::cpu::Lsm;
use super::element::{PackedKey, PairValue};
use crate::Error;

impl<K: PackedKey, V: PairValue> Lsm<K, V> {
    /// Checks that the levels keep the invariants of the structure; for tests.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub fn check_invariants(&self) -> Result<(), Error> {
        for level in self.tree.counter.full() {
            let (keys, values) = self.tree.level(level);
            let broken = |what, place| Error::Invalid { level, what, place: place as u64 };
            if let Some(place) = keys.windows(2).position(|two| two[0].original() > two[1].original()) {
                return Err(broken("keys do not ascend after", place));
            }
            let unordered = |two: &[K]| two[0] > two[1] && two[0].original() < K::MAX_KEY;
            if let Some(place) = keys.windows(2).position(unordered).filter(|_| level == 0) {
                return Err(broken("a tombstone comes too late after", place));
            }
            if let Some(place) = (0..keys.len()).find(|&i| !keys[i].is_regular() && values[i] != V::NONE) {
                return Err(broken("the tombstone has a value at", place));
            }
        }
        Ok(())
    }
}
