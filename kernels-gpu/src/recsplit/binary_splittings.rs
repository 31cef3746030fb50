//! Splittings in two: the first trial and the first choice of mirrored groups that send the right number of keys to the
//! left.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, sections
//! 5.6.3 and 5.7. Departures: groups of keys may be mirrored (`docs/recsplit.md`), so few trials are expected.
//! Therefore 16 trials are tried at a time, and the keys are divided among the threads of each trial; the thesis gives
//! every thread a trial and all keys.

use warpset_core::recsplit::hash;
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, thread};

use crate::recsplit::node_keys::{self, Slice, TRIALS};
#[cfg(feature = "bodies")]
use crate::recsplit::node_keys::{NodeKeys, Tile};
use crate::recsplit::nodes::Mix;
#[cfg(feature = "bodies")]
use crate::recsplit::nodes::{node, put_number};
use crate::recsplit::queue::{List, each_node};

kernel! {
    /// Finds the number of each splitting in two of a list. A block takes a node.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of whole warps, at most [`MOST_THREADS`](super::node_keys::MOST_THREADS), with
    ///   [`shared_bytes`](super::node_keys::shared_bytes) of shared memory for the largest node of the list.
    /// - `items`: valid for the `count` items from `first` on, splittings in two, not written while the kernel runs.
    /// - `nodes`: rows for all sizes of nodes; `budgets`: trials after which a search gives up, by number of keys;
    ///   neither is written while the kernel runs.
    /// - `lows`: valid for reading the keys of all items; no two items share keys, and nothing writes them meanwhile.
    /// - `other`: as long as `lows` if a node has more than [`TILE`](super::node_keys::TILE) keys, and used by this
    ///   launch alone.
    /// - `numbers`: valid for writing at the places of all items, and accessed by this launch alone.
    /// - `next`: 0 at the start, and accessed by this launch alone, by atomics.
    /// - `failure`: as for [`fail`](super::nodes::fail).
    #[launch_bounds(256)]
    pub unsafe fn recsplit_binary_splittings<M>(
        items: Global<u32>, first: usize, count: usize, next: GlobalMut<u32>, nodes: Global<u32>, budgets: Global<u64>,
        start: M, lows: Global<u64>, other: GlobalMut<u64>, numbers: GlobalMut<u64>, failure: GlobalMut<u32>,
    ) for [u32 => recsplit_binary_splittings_32, u64 => recsplit_binary_splittings_64] {
        let start = start.seed();
        let slice = Slice::own();
        let own = thread::thread_idx_x();
        let list = List { items, first, count, next };
        // SAFETY: this kernel's contract; all threads of the block have the same item and the same first trial and find
        // the same, so they reach barriers, votes and exchanges together.
        unsafe {
            each_node!(list, team 1, node_keys::own().at(node_keys::SLOT), |item| {
                let row = node(nodes, item.keys);
                let (groups, unit, threshold) = (row.groups as u32, row.unit as u32, row.scale);
                let budget = budgets.read_nc(item.keys as usize);
                let keys_of = NodeKeys::new(lows, item, groups);
                let tiles = keys_of.tiles();
                let mut tile = keys_of.load_first(other);
                let mut base = 0;
                let number = loop {
                    // Per group: keys to the left unchanged in the low half, mirrored in the high half.
                    let mut counts = [0u32; 6];
                    let mut next = 0;
                    loop {
                        tile.add_up(&mut counts, slice, |key, group| {
                            let hash = hash::trial_hash(M::REMIX, key, start, base + slice.trial as u64);
                            let mirrored = group > 0 && !hash < threshold;
                            (hash < threshold) as u32 | (mirrored as u32) << 16
                        });
                        next += 1;
                        if tiles == 1 {
                            break;
                        }
                        thread::sync_threads();
                        tile = keys_of.load_sorted(other, next % tiles);
                        if next == tiles {
                            break;
                        }
                    }
                    Tile::share(&mut counts, slice);
                    let best = first_mirroring(&counts, unit);
                    let found = warp::ballot(FULL_MASK, best != u32::MAX) & 0xffff;
                    if found != 0 {
                        let lane = found.trailing_zeros();
                        let best = warp::shuffle_idx(FULL_MASK, best, lane);
                        break (base + lane as u64) * row.candidates as u64 + best as u64;
                    }
                    base += TRIALS as u64;
                    if base >= budget {
                        break u64::MAX;
                    }
                };
                if own == 0 {
                    put_number(numbers, failure, item, number);
                }
            });
        }
    }
}

/// Returns the first choice of mirrored groups, as bits, that sends `unit` keys to the left; `u32::MAX` if there is
/// none. Groups without keys are never mirrored by it.
#[cfg(feature = "bodies")]
#[inline(always)]
fn first_mirroring(counts: &[u32; 6], unit: u32) -> u32 {
    // Sums over groups 1 to 3, and over 4 and 5.
    let (mut low, mut high) = ([0u32; 8], [0u32; 4]);
    warpset_simt::unroll!(8, choice, {
        warpset_simt::unroll!(3, group, {
            low[choice] += if choice >> group & 1 == 0 { counts[group + 1] & 0xffff } else { counts[group + 1] >> 16 };
        });
    });
    warpset_simt::unroll!(4, choice, {
        warpset_simt::unroll!(2, group, {
            high[choice] += if choice >> group & 1 == 0 { counts[group + 4] & 0xffff } else { counts[group + 4] >> 16 };
        });
    });
    let missing = unit.wrapping_sub(counts[0]);
    let mut best = u32::MAX;
    warpset_simt::unroll!(4, above, {
        warpset_simt::unroll!(8, below, {
            if low[below].wrapping_add(high[above]) == missing {
                best = best.min((above * 8 + below) as u32);
            }
        });
    });
    best
}
