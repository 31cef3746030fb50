//! Leaves by brute force: the first trial without a collision.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, sections 5.4
//! and 5.4.2 (positions as bits of a word; from 14 keys on a warp abandons its trials when all have a collision after
//! `ceil(3 sqrt(m))` keys). Departures: the thesis gives a leaf to a block. Here 8, 16 or 32 lanes take a leaf,
//! according to the expected search, or whole teams of warps.

use warpset_core::recsplit::hash;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, atomic, thread};

#[cfg(feature = "bodies")]
use crate::recsplit::nodes::position_bit;
use crate::recsplit::nodes::{Item, Mix};

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Least keys of leaves with a midstop.
const MIDSTOP_FROM: u32 = 14;

/// Returns the bytes of shared memory if `lanes` lanes take a leaf of `keys` keys.
pub const fn shared_bytes(keys: u32, lanes: u32) -> u32 {
    BLOCK / lanes * keys * 8
}

kernel! {
    /// Finds the number of each leaf of a list. `team` groups of `lanes` lanes take a leaf; all leaves have `keys` keys
    /// and `positions` positions.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, [`shared_bytes`] of shared memory; `lanes` is 8, 16 or
    ///   32, `team` divides the number of groups of the grid, and is 1 where `lanes` is not 32.
    /// - `items`: valid for the `count` items from `first` on, leaves of `keys` keys, 2 to 24, not written while the
    ///   kernel runs.
    /// - `lows`: valid for reading the keys of all items, and nothing writes them meanwhile.
    /// - `numbers`: valid at the places of all items, which hold `u64::MAX` and are accessed by atomics alone while the
    ///   kernel runs.
    #[launch_bounds(256)]
    pub unsafe fn recsplit_leaves<M>(
        items: Global<u32>, first: usize, count: usize, lanes: u32, team: u32, keys: u32, positions: u32, budget: u64,
        start: M, lows: Global<u64>, numbers: GlobalMut<u64>,
    ) for [u32 => recsplit_leaves_32, u64 => recsplit_leaves_64] {
        let start = start.seed();
        let own = lane_id() % lanes;
        let in_warp = lane_id() / lanes;
        let of_group = (u32::MAX >> (32 - lanes)) << (in_warp * lanes);
        let copy: Shared<u64> = shared::dynamic(thread::thread_idx_x() / lanes * keys * 8);
        let group = thread::index_1d() / lanes;
        let teams = (thread::grid_dim_x() * (BLOCK / lanes) / team) as usize;
        let stride = (team * lanes) as u64;
        let begin = (group % team * lanes) as u64;
        let midstop = if keys < MIDSTOP_FROM { keys } else { midstop_of(keys) };
        let mut next = (group / team) as usize;
        let mut item = Item::default();
        let mut base = 0;
        let mut searches = false;
        loop {
            // SAFETY: this kernel's contract; all lanes of the warp reach each vote, and each barrier of the warp
            // between the writes and the reads of a group's keys; the groups of a warp leave the loop together.
            unsafe {
                if !searches && next < count {
                    item = Item::read(items, first + next);
                    searches = item.keys != 0;
                    next += teams;
                    base = begin;
                    let mut i = own;
                    while i < keys {
                        copy.set(i, lows.read((item.first + i) as usize));
                        i += lanes;
                    }
                }
                if !warp::any(FULL_MASK, searches) {
                    break;
                }
                warp::sync_warp(FULL_MASK);
                let trial = base + own as u64;
                let mut taken = taken_by::<M>(copy, 0, midstop, (start, trial, positions));
                if midstop < keys && warp::any(FULL_MASK, taken.count_ones() == midstop) {
                    taken |= taken_by::<M>(copy, midstop, keys, (start, trial, positions));
                }
                let found = warp::ballot(FULL_MASK, searches && taken.count_ones() == keys) & of_group;
                let place = numbers.at(item.place as usize);
                let mut least = u64::MAX;
                if team > 1 {
                    // One lane reads for all, so that the warp stays together.
                    least = warp::shuffle_idx(FULL_MASK, atomic::load_relaxed(place), 0);
                }
                if searches {
                    base += stride;
                    if found != 0 {
                        if own == 0 {
                            let number = base - stride + (found.trailing_zeros() % lanes) as u64;
                            atomic::reduce_min(place, number);
                        }
                        searches = false;
                    } else if base >= least || base >= budget {
                        // Another group may still find one; `recsplit_check` tests it.
                        searches = false;
                    }
                }
                warp::sync_warp(FULL_MASK);
            }
        }
    }
}

/// Returns `ceil(3 sqrt(keys))`, at most `keys`.
#[cfg(feature = "bodies")]
#[inline(always)]
fn midstop_of(keys: u32) -> u32 {
    let mut stop = 0;
    while stop * stop < 9 * keys {
        stop += 1;
    }
    stop.min(keys)
}

/// Returns the positions of the keys from `from` to `to` under a trial, as bits.
///
/// # Safety
/// `keys` has these keys, in shared memory, which nothing writes meanwhile.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn taken_by<M: Mix>(keys: Shared<u64>, from: u32, to: u32, (start, trial, positions): (u32, u64, u32)) -> u32 {
    let mut taken = 0u32;
    let mut take = |i: u32| {
        // SAFETY: this function's contract; `i < to`.
        let key = unsafe { keys.get(i) };
        taken |= position_bit(hash::trial_hash(M::REMIX, key, start, trial), positions);
    };
    let mut i = from;
    while i + 4 <= to {
        warpset_simt::unroll!(4, k, {
            take(i + k as u32);
        });
        i += 4;
    }
    while i < to {
        take(i);
        i += 1;
    }
    taken
}
