//! Leaves with rotation of groups: the first trial, and its first rotations, that make a bijection.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, section 5.5;
//! more than two groups as in `docs/recsplit.md`. During the search for trials without a collision within a group, each
//! lane has a trial; for each such trial, each lane then has a rotation.

use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, atomic, thread};

#[cfg(feature = "bodies")]
use crate::recsplit::nodes::fail;
use crate::recsplit::nodes::{Item, Mix};
#[cfg(feature = "bodies")]
use crate::recsplit::queue::Queue;
use crate::recsplit::rotation_groups::{HALF, Sorted, sorted_words};
use crate::recsplit::rotation_match::{self, Masks, rotation_words};

/// Threads of a block.
pub const BLOCK: u32 = 128;
/// The most keys of leaves that half a warp takes.
pub const MOST_OF_HALF: u32 = 16;

/// Returns the bytes of shared memory of [`recsplit_small_leaves`].
pub const fn small_shared_bytes(keys: u32) -> u32 {
    BLOCK / HALF * sorted_words(keys) * 4
}

/// Returns the bytes of shared memory of [`recsplit_rotated_leaves`].
pub const fn shared_bytes(keys: u32, groups: u32) -> u32 {
    BLOCK / 32 * (2 * sorted_words(keys) + rotation_words(groups)) * 4
}

kernel! {
    /// Finds the number of each leaf of a list. Half a warp takes a leaf; all have `keys` keys and `groups` groups.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, [`small_shared_bytes`] of shared memory.
    /// - `items`: valid for the `count` items from `first` on, leaves of `keys` keys, 5 to 16, in `groups` groups, 2 to
    ///   4, not written while the kernel runs. `candidates` is `keys^(groups - 1)`.
    /// - `lows`: valid for reading the keys of all items, and nothing writes them meanwhile.
    /// - `numbers`: valid for writing at the places of all items, and accessed by this launch alone.
    /// - `next`: as for [`Queue::take`], 0 before; leaves are taken `step` at a time.
    /// - `failure`: as for [`fail`].
    #[launch_bounds(128, 8)]
    pub unsafe fn recsplit_small_leaves<M>(
        items: Global<u32>, first: usize, count: usize, next: GlobalMut<u32>, step: u32, keys: u32, groups: u32,
        candidates: u32, budget: u64, start: M, lows: Global<u64>, numbers: GlobalMut<u64>, failure: GlobalMut<u32>,
    ) for [u32 => recsplit_small_leaves_32, u64 => recsplit_small_leaves_64] {
        let start = start.seed();
        let (own, half) = (lane_id() % HALF, lane_id() / HALF);
        let of_half = 0xffff << (half * HALF);
        let words = sorted_words(keys) * 4;
        let sorted = Sorted(shared::dynamic(thread::thread_idx_x() / HALF * words));
        let mut queue = Queue::new(next, count, step);
        let (mut item, mut key, mut base) = (Item::default(), 0u64, 0u64);
        let mut searches = false;
        loop {
            // SAFETY: this kernel's contract; all lanes of the warp reach each vote, exchange and barrier of the warp;
            // halves leave the loops together.
            unsafe {
                if let Some(index) = queue.take(!searches, half * HALF) {
                    item = Item::read(items, first + index);
                    searches = item.keys != 0;
                    base = 0;
                    if own < keys {
                        key = lows.read((item.first + own) as usize);
                    }
                }
                if !warp::any(FULL_MASK, searches) {
                    break;
                }
                let full = sorted.sort(of_half, key, own < keys, base, groups);
                warp::sync_warp(FULL_MASK);
                let is_free = sorted.is_free::<M>(keys, start, base + own as u64);
                let mut free = warp::ballot(FULL_MASK, searches && full && is_free) >> (half * HALF) & 0xffff;
                while warp::any(FULL_MASK, free != 0) {
                    let lane = free.trailing_zeros() % HALF;
                    let trial = base + lane as u64;
                    // One key per lane; both halves' positions in one word.
                    let i = if own < keys { own } else { 0 };
                    let (bit, group) = sorted.position::<M>(i, keys, start, trial);
                    let mut masks: Masks = [0; 6];
                    warpset_simt::unroll!(4, number, {
                        if (number as u32) < groups {
                            let is_member = own < keys && group == number as u32;
                            let bits = if is_member { bit << (half * HALF) } else { 0 };
                            masks[number] = warp::reduce_or(FULL_MASK, bits) >> (half * HALF) & 0xffff;
                        }
                    });
                    let index = rotation_match::of_half(&masks, groups, keys);
                    if free != 0 && index != u32::MAX {
                        if own == 0 {
                            numbers.write(item.place as usize, trial * candidates as u64 + index as u64);
                        }
                        searches = false;
                        free = 0;
                    }
                    free &= free.wrapping_sub(1);
                }
                base += HALF as u64;
                if searches && base >= budget {
                    if own == 0 {
                        numbers.write(item.place as usize, u64::MAX);
                        fail(failure, item);
                    }
                    searches = false;
                }
                warp::sync_warp(FULL_MASK);
            }
        }
    }
}

kernel! {
    /// Finds the number of each leaf of a list. `team` warps take a leaf; all have `keys` keys and `groups` groups.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, [`shared_bytes`] of shared memory; `team` divides the
    ///   number of warps.
    /// - `items`: valid for the `count` items from `first` on, leaves of `keys` keys, 5 to 24, in `groups` groups, 2 to
    ///   6, not written while the kernel runs. `candidates` is `keys^(groups - 1)`.
    /// - `lows`: valid for reading the keys of all items, and nothing writes them meanwhile.
    /// - `next`: as for [`Queue::take`], 0 before; used where `team` is 1.
    /// - `numbers`: valid at the places of all items, which hold `u64::MAX` and are accessed by atomics alone while the
    ///   kernel runs.
    #[launch_bounds(128, 6)]
    pub unsafe fn recsplit_rotated_leaves<M>(
        items: Global<u32>, first: usize, count: usize, next: GlobalMut<u32>, team: u32, keys: u32, groups: u32,
        candidates: u32, budget: u64, start: M, lows: Global<u64>, numbers: GlobalMut<u64>,
    ) for [u32 => recsplit_rotated_leaves_32, u64 => recsplit_rotated_leaves_64] {
        let start = start.seed();
        let lane = lane_id();
        let half = lane / HALF;
        let words = 2 * sorted_words(keys) + rotation_words(groups);
        let space: Shared<u32> = shared::dynamic(thread::thread_idx_x() / 32 * words * 4);
        let sorted = |half: u32| Sorted(space.at(half * sorted_words(keys)));
        let fit_space = space.at(2 * sorted_words(keys));
        let warp_in_grid = thread::index_1d() / 32;
        let teams = (thread::grid_dim_x() * (BLOCK / 32) / team) as usize;
        let stride = (team * 2 * HALF) as u64;
        let mut index = (warp_in_grid / team) as usize;
        let mut queue = Queue::new(next, count, 1);
        loop {
            // SAFETY: this kernel's contract; all lanes of the warp have the same leaf and the same trials, so they
            // reach each vote, exchange and barrier of the warp together.
            unsafe {
                if team == 1 {
                    index = queue.take(true, 0).unwrap_or(count);
                }
                if index >= count {
                    break;
                }
                let item = Item::read(items, first + index);
                index += teams;
                if item.keys == 0 {
                    continue;
                }
                let place = numbers.at(item.place as usize);
                let key = if lane < keys { lows.read((item.first + lane) as usize) } else { 0 };
                let mut base = (warp_in_grid % team * 2 * HALF) as u64;
                'trials: loop {
                    // One lane reads for all, so that the warp stays together.
                    if team > 1 && base >= warp::shuffle_idx(FULL_MASK, atomic::load_relaxed(place), 0) {
                        break;
                    }
                    if base >= budget {
                        // Another warp may still find one; `recsplit_check` tests it.
                        break;
                    }
                    let mut full = false;
                    warpset_simt::unroll!(2, i, {
                        let of_half =
                            sorted(i as u32).sort(FULL_MASK, key, lane < keys, base + i as u64 * HALF as u64, groups);
                        full |= of_half && half == i as u32;
                    });
                    warp::sync_warp(FULL_MASK);
                    let is_free = sorted(half).is_free::<M>(keys, start, base + lane as u64);
                    let mut free = warp::ballot(FULL_MASK, full && is_free);
                    while free != 0 {
                        let found = free.trailing_zeros();
                        free &= free - 1;
                        let trial = base + found as u64;
                        let i = if lane < keys { lane } else { 0 };
                        let (bit, group) = sorted(found / HALF).position::<M>(i, keys, start, trial);
                        let mut masks: Masks = [0; 6];
                        warpset_simt::unroll!(6, number, {
                            if (number as u32) < groups {
                                let is_member = lane < keys && group == number as u32;
                                masks[number] = warp::reduce_or(FULL_MASK, if is_member { bit } else { 0 });
                            }
                        });
                        let index = rotation_match::of_warp(&masks, groups, keys, fit_space);
                        if index != u32::MAX {
                            if lane == 0 {
                                // In the order of the numbers, as `index < candidates`.
                                atomic::reduce_min(place, trial * candidates as u64 + index as u64);
                            }
                            break 'trials;
                        }
                    }
                    base += stride;
                    warp::sync_warp(FULL_MASK);
                }
                warp::sync_warp(FULL_MASK);
            }
        }
    }
}
