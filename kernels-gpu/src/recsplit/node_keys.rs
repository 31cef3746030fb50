//! Keys of a splitting in shared memory, by rotation group.

use warpset_core::recsplit::hash;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, thread};

use crate::recsplit::nodes::Item;

/// The most threads of a block that searches a splitting.
pub const MOST_THREADS: u32 = 256;
/// Keys of a node that are in shared memory at a time.
pub const TILE: u32 = 2048;
/// Bytes before the keys: two rows of counters, and the kernels' own bytes.
const HEAD: u32 = 64;
/// A kernel's own bytes, after the counters: 128 words, and [`SLOT`].
pub const OWN_BYTES: u32 = 528;
/// A kernel's own word through which its block takes nodes.
pub const SLOT: u32 = 128;

/// Returns the bytes of shared memory for nodes of up to `keys` keys.
pub const fn shared_bytes(keys: u32) -> u32 {
    HEAD + OWN_BYTES + 8 * if keys > TILE { TILE } else { keys }
}

/// Returns a kernel's own [`OWN_BYTES`] of shared memory.
#[inline(always)]
pub fn own() -> Shared<u32> {
    shared::dynamic(HEAD)
}

/// Keys of a node; a block copies some of them.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct NodeKeys {
    lows: Global<u64>,
    item: Item,
    groups: u32,
}

/// A block's copy of some keys of a node, by group.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Tile {
    /// The keys.
    pub keys: Shared<u64>,
    /// End of each group of the node.
    ends: Shared<u32>,
    /// Keys of the node before the tile, and up to its end.
    begin: u32,
    end: u32,
    groups: u32,
}

/// Destination of a node's keys in the order of their groups.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
enum Place {
    /// In its shared memory.
    Shared(Shared<u64>),
    /// In device memory.
    Device(GlobalMut<u64>),
}

/// Returns the ends of groups: one word each, in shared memory.
#[cfg(feature = "bodies")]
#[inline(always)]
fn group_ends() -> Shared<u32> {
    shared::dynamic(32)
}

/// Returns the block's copy of keys.
#[cfg(feature = "bodies")]
#[inline(always)]
fn copied_keys() -> Shared<u64> {
    shared::dynamic(HEAD + OWN_BYTES)
}

#[cfg(feature = "bodies")]
impl NodeKeys {
    /// Wraps the keys of a node in `groups` groups, at most 6.
    pub fn new(lows: Global<u64>, item: Item, groups: u32) -> Self {
        Self { lows, item, groups }
    }

    /// Returns the number of tiles.
    #[inline(always)]
    pub fn tiles(&self) -> u32 {
        (self.item.keys - 1) / TILE + 1
    }

    /// Loads the keys of a node of one tile.
    ///
    /// # Safety
    /// - All threads of the block come here together, with the same arguments, and none of them still reads the tile
    ///   before.
    /// - The node's keys are valid for reading, and nothing writes them meanwhile; the block has [`shared_bytes`] of
    ///   shared memory for them.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load(&self) -> Tile {
        // SAFETY: this function's contract.
        unsafe { self.sort(Place::Shared(copied_keys())) };
        self.tile(0, self.item.keys)
    }

    /// Loads the first tile of a node that may have several. The keys of a node of several are sorted into `other`, at
    /// the places of the node.
    ///
    /// # Safety
    /// The contract of [`load`](Self::load); `other` is valid at the node's places if it has several tiles, and no
    /// other block accesses it there.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_first(&self, other: GlobalMut<u64>) -> Tile {
        let is_one = self.tiles() == 1;
        // SAFETY: this function's contract.
        unsafe {
            self.sort(if is_one { Place::Shared(copied_keys()) } else { Place::Device(other) });
            if is_one { self.tile(0, self.item.keys) } else { self.load_sorted(other, 0) }
        }
    }

    /// Loads a later tile of a node of several.
    ///
    /// # Safety
    /// The contract of [`load_first`](Self::load_first), which has been called for this node.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn load_sorted(&self, other: GlobalMut<u64>, tile: u32) -> Tile {
        let keys = copied_keys();
        let (own, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let begin = tile * TILE;
        let len = (self.item.keys - begin).min(TILE);
        // SAFETY: this function's contract; a barrier separates the writes and the reads of others.
        unsafe {
            let mut i = own;
            while i < len {
                keys.set(i, other.read((self.item.first + begin + i) as usize));
                i += threads;
            }
            thread::sync_threads();
        }
        self.tile(begin, begin + len)
    }

    #[inline(always)]
    fn tile(&self, begin: u32, end: u32) -> Tile {
        Tile { keys: copied_keys(), ends: group_ends(), begin, end, groups: self.groups }
    }

    /// Writes the node's keys to `place`, by group.
    ///
    /// # Safety
    /// The contract of [`load_first`](Self::load_first).
    #[inline(always)]
    #[track_caller]
    unsafe fn sort(&self, place: Place) {
        let (counts, ends): (Shared<u32>, Shared<u32>) = (shared::dynamic(0), group_ends());
        let (own, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        // SAFETY: this function's contract; a barrier separates the writes of one phase and the reads of the next;
        // places are distinct and below the number of keys.
        unsafe {
            if own < 8 {
                counts.set(own, 0);
            }
            thread::sync_threads();
            let mut i = own;
            while i < self.item.keys {
                let key = self.lows.read((self.item.first + i) as usize);
                counts.reduce_add(hash::group_of(key, self.groups), 1);
                i += threads;
            }
            thread::sync_threads();
            if own < 8 {
                let mut before = 0;
                for group in 0..6 {
                    if group < own {
                        before += counts.get_volatile(group);
                    }
                }
                ends.set(own, before);
            }
            thread::sync_threads();
            let mut i = own;
            while i < self.item.keys {
                let key = self.lows.read((self.item.first + i) as usize);
                let at = ends.fetch_add(hash::group_of(key, self.groups), 1);
                match place {
                    Place::Shared(keys) => keys.set(at, key),
                    Place::Device(other) => other.write((self.item.first + at) as usize, key),
                }
                i += threads;
            }
            thread::sync_threads();
        }
    }
}

#[cfg(feature = "bodies")]
impl Tile {
    /// Adds up the results of `step` for each key of the caller's slice, by group. The second argument of `step` is the
    /// group.
    ///
    /// # Safety
    /// The tile has been loaded, and is not loaded again meanwhile.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn add_up(&self, sums: &mut [u32; 6], slice: Slice, step: impl Fn(u64, u32) -> u32) {
        let mut begin = 0;
        let mut group = 0;
        while group < self.groups {
            // SAFETY: this function's contract; keys are read below the end of their group and of the tile.
            let (end, mut sum) = (unsafe { self.ends.get_volatile(group) }, 0u32);
            let end = end.min(self.end).saturating_sub(self.begin);
            let mut i = begin + slice.slice;
            while i < end {
                // SAFETY: this function's contract; `i` is below the end of the tile.
                sum = sum.wrapping_add(step(unsafe { self.keys.get(i) }, group));
                i += slice.slices;
            }
            // Registers are not indexed at run time.
            for place in 0..6 {
                if place as u32 == group {
                    sums[place] = sums[place].wrapping_add(sum);
                }
            }
            begin = end;
            group += 1;
        }
    }

    /// Adds up the sums of a trial's slices, and returns the total to all of them.
    ///
    /// # Safety
    /// All threads of the block come here together; [`own`] has 96 words that nothing else uses.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn share(sums: &mut [u32; 6], slice: Slice) {
        let (own, shared) = (thread::thread_idx_x(), own());
        // SAFETY: this function's contract; barriers separate the phases.
        unsafe {
            for sum in sums.iter_mut() {
                *sum = sum.wrapping_add(warp::shuffle_xor(FULL_MASK, *sum, TRIALS));
            }
            if slice.slices == 2 {
                return;
            }
            thread::sync_threads();
            let mut i = own;
            while i < 6 * TRIALS {
                shared.set(i, 0);
                i += thread::block_dim_x();
            }
            thread::sync_threads();
            if slice.slice % 2 == 0 {
                for (group, sum) in (0..).zip(sums.iter()) {
                    shared.reduce_add(group * TRIALS + slice.trial, *sum);
                }
            }
            thread::sync_threads();
            for (group, sum) in (0..).zip(sums.iter_mut()) {
                *sum = shared.get_volatile(group * TRIALS + slice.trial);
            }
        }
    }
}

/// A thread's place in its block: 16 trials at a time, with the keys divided into slices.
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
    /// Returns the calling thread's place.
    #[inline(always)]
    pub fn own() -> Self {
        let thread = thread::thread_idx_x();
        Self { trial: thread % TRIALS, slice: thread / TRIALS, slices: thread::block_dim_x() / TRIALS }
    }
}
