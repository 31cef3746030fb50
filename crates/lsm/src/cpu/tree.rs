//! Log-structured merge trees in host memory: methods that only trees have.

use super::Dictionary;
use crate::policy::TreePolicy;
use crate::{CleanupPolicy, OrderedKey, Value};

/// Dictionary as a log-structured merge tree: sorted, immutable levels, each twice as large as the previous one.
///
/// An update sorts its batch and merges it with the levels that it fills up. A removal inserts a *tombstone*. An
/// element becomes *stale* when a newer one has its key; it stays until a cleanup, triggered by a [`CleanupPolicy`] or
/// by [`Dictionary::cleanup`]. Within one batch a removal wins over insertions of its key, and the last of several
/// insertions counts.
///
/// A clone and a [`Snapshot`](crate::Snapshot) share the levels: each costs a few words and is unaffected by later
/// updates of this dictionary.
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
pub type Lsm<K, V> = Dictionary<K, V, TreePolicy>;

impl<K: OrderedKey, V: Value> Lsm<K, V> {
    /// Returns the number of elements of a full batch.
    pub fn batch_size(&self) -> u64 {
        self.policy.settings.batch_size
    }

    /// Returns the policy of automatic cleanups.
    pub fn cleanup_policy(&self) -> CleanupPolicy {
        self.policy.settings.cleanup
    }

    /// Returns the number, from 0, and the length of each occupied level, the newest first.
    pub fn level_lens(&self) -> Vec<(u32, u64)> {
        self.levels.iter().map(|level| (level.index.get(), level.elements.len() as u64)).collect()
    }
}
