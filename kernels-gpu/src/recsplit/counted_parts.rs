//! Splittings in more than two parts by brute force: each thread has a trial and all keys.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, section 5.6.3: counts of all children but the last
//! in the bytes of one register pair, which theorem 5.2 shows to be enough; nine children need a branch, as the ninth has no byte.
//! Departures: `team` blocks share a node, so that a long search fills the device; a block goes on until its next trial is above the
//! least number that any has found.

use warpset_core::recsplit::hash;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::recsplit::nodes::{Item, Mix, node};

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Bytes of shared memory for nodes of up to `keys` keys.
pub const fn shared_bytes(keys: u32) -> u32 {
    8 * keys
}

kernel! {
    /// Finds the number of each splitting of a list by brute force. `team` blocks take a node.
    ///
    /// # Safety
    /// - Launch: 1-D, a multiple of `team` blocks of [`BLOCK`] threads, [`shared_bytes`] of shared memory for the largest node of the list.
    /// - `items`: valid for the `count` items from `first` on, splittings in more than two parts of less than 255 keys each, not written while
    ///   the kernel runs.
    /// - `nodes`, `budgets`, `lows`: as for [`recsplit_halves`](super::halves::recsplit_halves).
    /// - `numbers`: valid at the places of all items, which hold `u64::MAX` and are accessed by atomics alone while the kernel runs.
    #[launch_bounds(256)]
    pub unsafe fn recsplit_counted_parts<M>(
        items: Global<u32>, first: usize, count: usize, team: u32, nodes: Global<u32>, budgets: Global<u64>,
        start: M, lows: Global<u64>, numbers: GlobalMut<u64>,
    ) for [u32 => recsplit_counted_parts_32, u64 => recsplit_counted_parts_64] {
        let start = start.seed();
        let keys: Shared<u64> = shared::dynamic(0);
        let own = thread::thread_idx_x();
        let block = thread::block_idx_x();
        let teams = (thread::grid_dim_x() / team) as usize;
        let stride = (team * BLOCK) as u64;
        let mut index = (block / team) as usize;
        while index < count {
            // SAFETY: the caller keeps this kernel's contract; all threads of the block have the same item, so that they come
            // to the barriers together, and those of a warp leave the search together.
            unsafe {
                let item = Item::read(items, first + index);
                if item.keys == 0 {
                    index += teams;
                    continue;
                }
                let row = node(nodes, item.keys);
                let budget = budgets.read_nc(item.keys as usize);
                let mut i = own;
                while i < item.keys {
                    keys.set(i, lows.read((item.first + i) as usize));
                    i += BLOCK;
                }
                thread::sync_threads();
                let mut target = 0u64;
                let mut child = 0;
                while child + 1 < row.fanout as u32 {
                    target |= (row.unit as u64) << (8 * child);
                    child += 1;
                }
                let place = numbers.at(item.place as usize);
                let first_lane = (block % team * BLOCK + (own & !31)) as u64;
                let mut base = first_lane;
                loop {
                    // What one lane sees, so that the warp stays together.
                    if base >= warp::shuffle_idx(FULL_MASK, atomic::load_relaxed(place), 0) {
                        break;
                    }
                    if base >= budget {
                        // Another block may still find one; whether any did is seen when keys are distributed.
                        break;
                    }
                    let trial = base + (own % 32) as u64;
                    let solves = match row.fanout {
                        0..=5 => {
                            let mut counts = 0u32;
                            each_child::<M>(keys, item.keys, (start, trial, row.scale), |child| {
                                // The fifth child adds nothing: its step is above the word.
                                counts = counts.wrapping_add((1u64 << (8 * child)) as u32);
                            });
                            counts & last_byte_off(row.fanout as u32) as u32 == target as u32
                        }
                        6..=8 => {
                            let mut counts = 0u64;
                            each_child::<M>(keys, item.keys, (start, trial, row.scale), |child| {
                                counts = counts.wrapping_add(1 << (8 * child));
                            });
                            counts & last_byte_off(row.fanout as u32) == target
                        }
                        _ => {
                            let mut counts = 0u64;
                            each_child::<M>(keys, item.keys, (start, trial, row.scale), |child| {
                                if child < 8 {
                                    counts = counts.wrapping_add(1 << (8 * child));
                                }
                            });
                            counts == target
                        }
                    };
                    let found = warp::ballot(FULL_MASK, solves);
                    if found != 0 {
                        if own % 32 == 0 {
                            atomic::reduce_min(place, base + found.trailing_zeros() as u64);
                        }
                        break;
                    }
                    base += stride;
                }
                thread::sync_threads();
            }
            index += teams;
        }
    }
}

/// All bytes but those from the last child's on. A step of the last child may be inside the word, and is not counted.
#[inline(always)]
fn last_byte_off(fanout: u32) -> u64 {
    u64::MAX >> (64 - 8 * (fanout - 1))
}

/// Calls `body` with the child of each key under a trial.
///
/// # Safety
/// `keys` are `len` keys in shared memory, which nothing writes meanwhile.
#[inline(always)]
#[track_caller]
unsafe fn each_child<M: Mix>(
    keys: Shared<u64>,
    len: u32,
    (start, trial, scale): (u32, u64, u32),
    mut body: impl FnMut(u32),
) {
    let child = |i| {
        // SAFETY: the caller's promise; `i < len`.
        let key = unsafe { keys.get(i) };
        hash::child_of(hash::trial_hash(M::REMIX, key, start, trial), scale)
    };
    let mut i = 0;
    while i + 4 <= len {
        warpset_simt::unroll!(4, k, {
            body(child(i + k as u32));
        });
        i += 4;
    }
    while i < len {
        body(child(i));
        i += 1;
    }
}
