//! Splittings in more than two parts by brute force: each thread has a trial and all keys.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, section
//! 5.6.3: packed counts of all children but the last, which adds nothing (the edge cases of 5 and 9 children).
//! Departures: the thesis has a byte per count and so two registers for more than five children. Here the counts share
//! one register, as wide as they fit, and overflow into each other. A solution's sum is the same for any width;
//! apparent solutions are counted again. `team` blocks share a node, so a long search fills the device; a block
//! continues until its next trial is above the least number found.

use warpset_core::recsplit::{Node, hash};
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::recsplit::nodes::Mix;
#[cfg(feature = "bodies")]
use crate::recsplit::nodes::node;
use crate::recsplit::queue::{List, each_node};

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Returns the bytes of shared memory for nodes of up to `keys` keys.
pub const fn shared_bytes(keys: u32) -> u32 {
    16 + 8 * keys
}

kernel! {
    /// Finds the number of each splitting of a list by brute force. `team` blocks take a node; without teams a block
    /// takes the next one that is left.
    ///
    /// # Safety
    /// - Launch: 1-D, a multiple of `team` blocks of [`BLOCK`] threads, [`shared_bytes`] of shared memory for the
    ///   largest node of the list.
    /// - `items`: valid for the `count` items from `first` on, splittings in more than two parts of less than 255 keys
    ///   each, not written while the kernel runs.
    /// - `nodes`, `budgets`, `lows`: as for
    ///   [`recsplit_binary_splittings`](super::binary_splittings::recsplit_binary_splittings).
    /// - `next`: 0 at the start, and accessed by this launch alone, by atomics.
    /// - `numbers`: valid at the places of all items, which hold `u64::MAX` and are accessed by atomics alone while the
    ///   kernel runs.
    #[launch_bounds(256)]
    pub unsafe fn recsplit_packed_splittings<M>(
        items: Global<u32>, first: usize, count: usize, next: GlobalMut<u32>, team: u32, nodes: Global<u32>,
        budgets: Global<u64>, start: M, lows: Global<u64>, numbers: GlobalMut<u64>,
    ) for [u32 => recsplit_packed_splittings_32, u64 => recsplit_packed_splittings_64] {
        let start = start.seed();
        let (slot, keys): (Shared<u32>, Shared<u64>) = (shared::dynamic(0), shared::dynamic(16));
        let own = thread::thread_idx_x();
        let block = thread::block_idx_x();
        let stride = (team * BLOCK) as u64;
        let list = List { items, first, count, next };
        // SAFETY: this kernel's contract; all threads of the block have the same item, so they reach the barriers
        // together, and those of a warp leave the search together.
        unsafe {
            each_node!(list, team team, slot, |item| {
                let row = node(nodes, item.keys);
                let budget = budgets.read_nc(item.keys as usize);
                let mut i = own;
                while i < item.keys {
                    keys.set(i, lows.read((item.first + i) as usize));
                    i += BLOCK;
                }
                thread::sync_threads();
                let packing = Packing::of(&row);
                let place = numbers.at(item.place as usize);
                let first_lane = (block % team * BLOCK + (own & !31)) as u64;
                let mut base = first_lane;
                loop {
                    // One lane reads for all, so that the warp stays together.
                    if base >= warp::shuffle_idx(FULL_MASK, atomic::load_relaxed(place), 0) {
                        break;
                    }
                    if base >= budget {
                        // Another block may still find one; the distribution of keys tests it.
                        break;
                    }
                    let trial = base + (own % 32) as u64;
                    let mut counts = 0u32;
                    each_child::<M>(keys, item.keys, (start, trial, row.scale), |child| {
                        counts = counts.wrapping_add(packing.step(child));
                    });
                    let mut alike = warp::ballot(FULL_MASK, packing.is_alike(counts));
                    let mut found = u64::MAX;
                    while alike != 0 && found == u64::MAX {
                        let trial = base + alike.trailing_zeros() as u64;
                        alike &= alike - 1;
                        if splits::<M>(keys, item.keys, &row, start, trial) {
                            found = trial;
                        }
                    }
                    if found != u64::MAX {
                        if own % 32 == 0 {
                            atomic::reduce_min(place, found);
                        }
                        break;
                    }
                    base += stride;
                }
                thread::sync_threads();
            });
        }
    }
}

/// Counts of all children but the last, in one word.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Packing {
    /// Bits of a count.
    field: u32,
    mask: u32,
    /// Counts of a solution, under the mask.
    target: u32,
}

#[cfg(feature = "bodies")]
impl Packing {
    #[inline(always)]
    fn of(row: &Node) -> Self {
        let children = row.fanout as u32 - 1;
        let field = 32 / children;
        let mask = (u64::MAX >> (64 - field * children)) as u32;
        let mut target = 0u32;
        let mut child = 0;
        while child < children {
            target = target.wrapping_add((row.unit as u32) << (field * child));
            child += 1;
        }
        Self { field, mask, target: target & mask }
    }

    /// Returns the addend of one key: nothing under the mask for the last child.
    #[inline(always)]
    fn step(&self, child: u32) -> u32 {
        (1u64 << (self.field * child)) as u32
    }

    /// Whether the counts can be those of a solution.
    #[inline(always)]
    fn is_alike(&self, counts: u32) -> bool {
        counts & self.mask == self.target
    }
}

/// Whether a trial gives every child its keys.
///
/// # Safety
/// All lanes of the warp come here together, with the same arguments; `keys` are `len` keys in shared memory, and
/// nothing writes them meanwhile.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn splits<M: Mix>(keys: Shared<u64>, len: u32, row: &Node, start: u32, trial: u64) -> bool {
    let mut child = 0;
    while child + 1 < row.fanout as u32 {
        let (mut count, mut first) = (0, 0);
        while first < len {
            let i = first + warp::lane_id();
            // SAFETY: this function's contract; `i < len` where a key is read.
            unsafe {
                let is_child = i < len
                    && hash::child_of(hash::trial_hash(M::REMIX, keys.get(i), start, trial), row.scale) == child;
                count += warp::ballot(FULL_MASK, is_child).count_ones();
            }
            first += 32;
        }
        if count != row.unit as u32 {
            return false;
        }
        child += 1;
    }
    true
}

/// Calls `body` with the child of each key under a trial.
///
/// # Safety
/// `keys` are `len` keys in shared memory, and nothing writes them meanwhile.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn each_child<M: Mix>(
    keys: Shared<u64>,
    len: u32,
    (start, trial, scale): (u32, u64, u32),
    mut body: impl FnMut(u32),
) {
    let child = |i| {
        // SAFETY: this function's contract; `i < len`.
        let key = unsafe { keys.get(i) };
        hash::child_of(hash::trial_hash(M::REMIX, key, start, trial), scale)
    };
    let mut i = 0;
    while i + 8 <= len {
        warpset_simt::unroll!(8, k, {
            body(child(i + k as u32));
        });
        i += 8;
    }
    while i < len {
        body(child(i));
        i += 1;
    }
}
