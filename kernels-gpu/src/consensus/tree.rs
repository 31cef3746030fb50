//! A bucket's tree during the search: the keys and the bits of each task.

use warpset_core::consensus::tree::{FRACTION, Node, Row, depth};
use warpset_simt::Global;

/// Rows that the trees of all buckets share.
#[derive(Clone, Copy)]
pub struct Trees {
    /// Two words per row: splittings by the smaller number of keys, then leaves.
    pub rows: Global<u64>,
    /// Rows of splittings.
    pub splits: u32,
}

/// A level of a bucket's tree.
#[derive(Clone, Copy)]
pub struct Level {
    /// Number of the level, which has `1 << level` tasks.
    pub level: u32,
    /// Whether its tasks are leaves.
    pub is_leaves: bool,
    /// Keys of the bucket.
    keys: u32,
    row: Row,
    /// Position of its first bit, in parts of a bit.
    base: u32,
}

/// A splitting or a leaf.
#[derive(Clone, Copy)]
pub struct Task {
    /// Keys of the bucket before the task's own.
    pub begin: u32,
    /// Keys of the bucket before the next task's.
    pub end: u32,
    /// Keys that go left.
    pub left: u32,
    /// Keys with a hash below it go left.
    pub threshold: u32,
}

#[cfg(feature = "bodies")]
impl Trees {
    /// Returns a level of a bucket of `keys` keys; its bits begin at `base`.
    ///
    /// # Safety
    /// - The rows are those of buckets of that many keys, from a multiple of 16 bytes on, and nothing writes them.
    /// - The tree has the level.
    #[inline(always)]
    unsafe fn at(&self, keys: u32, level: u32, base: u32) -> Level {
        let is_leaves = level == depth(keys);
        let place = if is_leaves { self.splits } else { 0 } + (keys >> level);
        // SAFETY: this function's contract.
        let row = Row::from_words(unsafe { self.rows.read2_nc(2 * place as usize) });
        Level { level, is_leaves, keys, row, base }
    }

    /// Returns the first level of a bucket of `keys` keys.
    ///
    /// # Safety
    /// The rows are those of buckets of that many keys, and nothing writes them.
    #[inline(always)]
    pub unsafe fn first(&self, keys: u32) -> Level {
        // SAFETY: this function's contract; every tree has a first level.
        unsafe { self.at(keys, 0, 0) }
    }

    /// Returns the level after one of splittings.
    ///
    /// # Safety
    /// The level is of these trees.
    #[inline(always)]
    pub unsafe fn after(&self, level: &Level) -> Level {
        let base = level.base.wrapping_add(level.row.all(level.level, level.keys));
        // SAFETY: this function's contract.
        unsafe { self.at(level.keys, level.level + 1, base) }
    }

    /// Returns the level before one that is not the first.
    ///
    /// # Safety
    /// The level is of these trees.
    #[inline(always)]
    pub unsafe fn before(&self, level: &Level) -> Level {
        // SAFETY: this function's contract.
        let mut before = unsafe { self.at(level.keys, level.level - 1, 0) };
        before.base = level.base.wrapping_sub(before.row.all(before.level, before.keys));
        before
    }
}

impl Level {
    /// Returns the number of tasks.
    #[inline(always)]
    pub fn tasks(&self) -> u32 {
        1 << self.level
    }

    /// Returns the bits of all tasks before number `task` of the level, at most the number of tasks.
    #[inline(always)]
    pub fn bits_before(&self, task: u32) -> u32 {
        let keys_before = (task * self.keys) >> self.level;
        let bits = task.wrapping_mul(self.row.per_node).wrapping_add(keys_before.wrapping_mul(self.row.per_key));
        self.base.wrapping_add(bits) >> FRACTION
    }

    /// Returns a task.
    #[inline(always)]
    pub fn task(&self, task: u32) -> Task {
        let node = Node::new(self.keys, self.level, task);
        Task { begin: node.begin, end: node.end, left: node.middle - node.begin, threshold: node.threshold(&self.row) }
    }
}
