//! The keys of a splitting in shared memory, by rotation group.

use warpset_core::recsplit::hash;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, thread};

use crate::recsplit::nodes::Item;

/// The most threads of a block that searches a splitting.
pub const MOST_THREADS: u32 = 256;
/// Keys of a node that are in shared memory at a time.
pub const TILE: u32 = 2048;
/// Bytes before the keys: two rows of counters, and what kernels keep themselves.
const HEAD: u32 = 64;
/// Bytes of a kernel's own, after the counters.
pub const OWN_BYTES: u32 = 512;

/// Bytes of shared memory for nodes of up to `keys` keys.
pub const fn shared_bytes(keys: u32) -> u32 {
    HEAD + OWN_BYTES + 8 * if keys > TILE { TILE } else { keys }
}

/// What a kernel keeps itself: [`OWN_BYTES`] of shared memory.
#[inline(always)]
pub fn own() -> Shared<u32> {
    shared::dynamic(HEAD)
}

/// A block's copy of some keys of a node.
#[derive(Clone, Copy)]
pub struct NodeKeys {
    lows: Global<u64>,
    item: Item,
    groups: u32,
}

/// Where each group's keys begin within the tile, and where the last group's end.
pub type Bounds = [u32; 7];

impl NodeKeys {
    /// Of a node, among `groups` groups, at most 6.
    pub fn new(lows: Global<u64>, item: Item, groups: u32) -> Self {
        Self { lows, item, groups }
    }

    /// Number of tiles.
    #[inline(always)]
    pub fn tiles(&self) -> u32 {
        (self.item.keys - 1) / TILE + 1
    }

    /// The keys of a tile by group, and where the groups begin.
    ///
    /// # Safety
    /// - All threads of the block come here together, with the same arguments, none of which still reads the tile before.
    /// - The node's keys are valid for reading, and nothing writes them meanwhile; the block has [`shared_bytes`] of shared memory
    ///   for them.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(&self, tile: u32) -> (Shared<u64>, Bounds) {
        let (counts, ends): (Shared<u32>, Shared<u32>) = (shared::dynamic(0), shared::dynamic(32));
        let keys: Shared<u64> = shared::dynamic(HEAD + OWN_BYTES);
        let (own, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let first = self.item.first + tile * TILE;
        let len = (self.item.keys - tile * TILE).min(TILE);
        // SAFETY: the caller's promise; a barrier stands between the writes of one phase and the reads of the next; places are
        // distinct and below `len`.
        unsafe {
            if own < 8 {
                counts.set(own, 0);
            }
            thread::sync_threads();
            let mut i = own;
            while i < len {
                let key = self.lows.read((first + i) as usize);
                counts.reduce_add(hash::group_of(key, self.groups), 1);
                i += threads;
            }
            thread::sync_threads();
            let mut bounds = [0; 7];
            let mut sum = 0;
            warpset_simt::unroll!(6, group, {
                sum += counts.get_volatile(group as u32);
                bounds[group + 1] = sum;
            });
            if own < 8 {
                let mut before = 0;
                warpset_simt::unroll!(6, group, {
                    if own > group as u32 {
                        before = bounds[group + 1];
                    }
                });
                ends.set(own, before);
            }
            thread::sync_threads();
            let mut i = own;
            while i < len {
                let key = self.lows.read((first + i) as usize);
                keys.set(ends.fetch_add(hash::group_of(key, self.groups), 1), key);
                i += threads;
            }
            thread::sync_threads();
            (keys, bounds)
        }
    }
}

/// A thread's place in its block: 16 trials at a time, whose keys are shared out to slices.
#[derive(Clone, Copy)]
pub struct Slice {
    /// The thread's trial, counted from the first of the 16.
    pub trial: u32,
    /// Its slice of the keys: every `slices`th, from this one on.
    pub slice: u32,
    /// Number of slices.
    pub slices: u32,
}

/// Trials that a block takes at a time.
pub const TRIALS: u32 = 16;

impl Slice {
    /// The calling thread's.
    #[inline(always)]
    pub fn own() -> Self {
        let thread = thread::thread_idx_x();
        Self { trial: thread % TRIALS, slice: thread / TRIALS, slices: thread::block_dim_x() / TRIALS }
    }
}
