//! Splittings in more than two parts with rotation of groups: the first trial and the first rotations that give every
//! child its keys.
//!
//! Source: packed counts as in D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis,
//! KIT 2022, section 5.6.3; rotation of groups as in `docs/recsplit.md`. The counts of a group are fields of one word,
//! and rotating the group rotates the word. A count that overflows spoils its neighbour, but only if it is above the
//! unit, which no solution has; apparent solutions are counted again.

use warpset_core::recsplit::Node;
use warpset_core::recsplit::candidate::Candidate;
use warpset_core::recsplit::hash;
use warpset_core::recsplit::shape::field_bits;
use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, thread};

use crate::recsplit::node_keys::{self, Slice, TRIALS};
#[cfg(feature = "bodies")]
use crate::recsplit::node_keys::{NodeKeys, Tile};
use crate::recsplit::nodes::Mix;
#[cfg(feature = "bodies")]
use crate::recsplit::nodes::{node, put_number};
use crate::recsplit::queue::{List, each_node};

/// Words of packed counts of a splitting.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Packing {
    /// Bits of a count.
    field: u32,
    /// Bits of all counts.
    width: u32,
    mask: u32,
    /// Sum of all groups in a solution.
    target: u32,
    radix: u32,
}

#[cfg(feature = "bodies")]
impl Packing {
    #[inline(always)]
    fn of(row: &Node) -> Self {
        let (field, radix) = (field_bits(row.unit as u32), row.radix as u32);
        let width = field * radix;
        let mut target = 0;
        let mut child = 0;
        while child < radix {
            target |= (row.unit as u32) << (field * child);
            child += 1;
        }
        Self { field, width, mask: u32::MAX >> (32 - width), target, radix }
    }

    /// Returns the addend of one key: nothing for the child after those that rotate, since that is outside the mask.
    #[inline(always)]
    fn step(&self, child: u32) -> u32 {
        (1u64 << (self.field * child)) as u32
    }

    /// Returns the counts of a group, rotated.
    #[inline(always)]
    fn turn(&self, counts: u32, by: u32) -> u32 {
        let left = self.field * by;
        // Rotates in a word twice as wide, so that no shift is by 32.
        ((counts as u64) << left | (counts as u64) >> (self.width - left)) as u32 & self.mask
    }
}

/// The most rotations of a group.
const MOST: usize = 9;
/// The most rotations with those of two groups in registers.
const IN_REGISTERS: usize = 6;

kernel! {
    /// Finds the number of each splitting of a list with rotation of groups. A block takes a node.
    ///
    /// # Safety
    /// - Launch, `nodes`, `next`, `budgets`, `lows`, `numbers`, `failure`: as for
    ///   [`recsplit_binary_splittings`](super::binary_splittings::recsplit_binary_splittings).
    /// - `items`: valid for the `count` items from `first` on, splittings in more than two parts with more than one
    ///   group, not written while the kernel runs.
    #[launch_bounds(256, 4)]
    pub unsafe fn recsplit_rotated_splittings<M>(
        items: Global<u32>, first: usize, count: usize, next: GlobalMut<u32>, nodes: Global<u32>, budgets: Global<u64>,
        start: M, lows: Global<u64>, numbers: GlobalMut<u64>, failure: GlobalMut<u32>,
    ) for [u32 => recsplit_rotated_splittings_32, u64 => recsplit_rotated_splittings_64] {
        let start = start.seed();
        let slice = Slice::own();
        let bests = node_keys::own().at(6 * TRIALS);
        let child_counts = bests.at(TRIALS);
        let own = thread::thread_idx_x();
        let list = List { items, first, count, next };
        // SAFETY: this kernel's contract; all threads of the block have the same item and the same first trial and find
        // the same, so they reach barriers, votes and exchanges together.
        unsafe {
            each_node!(list, team 1, node_keys::own().at(node_keys::SLOT), |item| {
                let row = node(nodes, item.keys);
                let groups = row.groups as u32;
                let packing = Packing::of(&row);
                let budget = budgets.read_nc(item.keys as usize);
                let keys_of = NodeKeys::new(lows, item, groups);
                // One tile: counts fit a word for at most five children of less than 255 keys.
                let tile = keys_of.load();
                let mut base = 0;
                let number = 'trials: loop {
                    let mut counts = [0u32; 6];
                    tile.add_up(&mut counts, slice, |key, _| {
                        let hash = hash::trial_hash(M::REMIX, key, start, base + slice.trial as u64);
                        packing.step(hash::child_of(hash, row.scale))
                    });
                    Tile::share(&mut counts, slice);
                    for count in counts.iter_mut() {
                        *count &= packing.mask;
                    }
                    // Candidates of the trial below this are no solutions.
                    let mut least = 0;
                    loop {
                        let mut best =
                            first_rotations(&counts, &packing, groups, row.candidates, slice, least);
                        best = best.min(warp::shuffle_xor(FULL_MASK, best, TRIALS));
                        if slice.slices > 2 {
                            thread::sync_threads();
                            if own < TRIALS {
                                bests.set(own, u32::MAX);
                            }
                            thread::sync_threads();
                            if best != u32::MAX {
                                bests.reduce_min(slice.trial, best);
                            }
                            thread::sync_threads();
                            best = bests.get_volatile(slice.trial);
                        }
                        let found = warp::ballot(FULL_MASK, best != u32::MAX) & 0xffff;
                        if found == 0 {
                            break;
                        }
                        let lane = found.trailing_zeros();
                        let index = warp::shuffle_idx(FULL_MASK, best, lane);
                        let number = (base + lane as u64) * row.candidates as u64 + index as u64;
                        if splits::<M>(tile.keys, item.keys, &row, start, number, child_counts) {
                            break 'trials number;
                        }
                        if slice.trial == lane {
                            least = index + 1;
                        }
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

/// Returns the first rotations from candidate `least` on, as the digits of an index, with counts that add up to the
/// target, among those of the caller's slice; `u32::MAX` if there are none.
#[cfg(feature = "bodies")]
#[inline(always)]
fn first_rotations(
    counts: &[u32; 6],
    packing: &Packing,
    groups: u32,
    candidates: u32,
    Slice { slice, slices, .. }: Slice,
    least: u32,
) -> u32 {
    let radix = packing.radix;
    // Rotations of group 1 in registers, and those of group 2, unless it is absent or has more.
    let second_radix = if groups > 2 && radix <= IN_REGISTERS as u32 { radix } else { 1 };
    let (mut turned, mut second) = ([0u32; MOST], [0u32; IN_REGISTERS]);
    for by in 0..MOST {
        if (by as u32) < radix {
            turned[by] = packing.turn(counts[1], by as u32);
        }
    }
    for by in 0..IN_REGISTERS {
        if (by as u32) < second_radix && second_radix > 1 {
            second[by] = packing.turn(counts[2], by as u32);
        }
    }
    let in_registers = radix * second_radix;
    let from = if second_radix > 1 { 3 } else { 2 };
    let first = packing.target.wrapping_sub(counts[0]);
    let mut best = u32::MAX;
    let mut outer = slice;
    while outer < candidates / in_registers {
        let mut missing = first;
        let mut digits = outer;
        for group in 2..6 {
            if group >= from && group < groups as usize {
                missing = missing.wrapping_sub(packing.turn(counts[group], digits % radix));
                digits /= radix;
            }
        }
        let mut any = false;
        for by_second in 0..IN_REGISTERS {
            if (by_second as u32) < second_radix {
                let missing = missing.wrapping_sub(second[by_second]);
                for by in 0..MOST {
                    // Rotations beyond `radix` never match, because the target has ones.
                    any |= missing == turned[by] && (by as u32) < radix;
                }
            }
        }
        if any {
            // Rare, so the rotations are searched again.
            let mut inner = 0;
            while inner < in_registers {
                let index = outer * in_registers + inner;
                let turned = packing.turn(counts[1], inner % radix);
                let second = if second_radix > 1 { packing.turn(counts[2], inner / radix) } else { 0 };
                if missing.wrapping_sub(second) == turned && index >= least {
                    best = best.min(index);
                }
                inner += 1;
            }
        }
        outer += slices;
    }
    best
}

/// Whether a number gives every child its keys.
///
/// # Safety
/// All threads of the block come here together, with the same arguments; `keys` are `len` keys in shared memory,
/// `counts` 16 words of it that nothing else uses.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn splits<M: Mix>(
    keys: Shared<u64>,
    len: u32,
    row: &Node,
    start: u32,
    number: u64,
    counts: Shared<u32>,
) -> bool {
    let (own, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let candidate = Candidate::of(number, row);
    // SAFETY: this function's contract; barriers separate the phases.
    unsafe {
        thread::sync_threads();
        if own < 16 {
            counts.set(own, 0);
        }
        thread::sync_threads();
        let mut i = own;
        while i < len {
            counts.reduce_add(candidate.child(keys.get(i), row, start, M::REMIX), 1);
            i += threads;
        }
        thread::sync_threads();
        let counted = own + 1 < row.fanout as u32;
        let right = !counted || counts.get_volatile(own % 16) == row.unit as u32;
        thread::sync_threads_and(right)
    }
}
