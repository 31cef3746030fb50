//! Leaves in two groups that take many trials: the first trial, and the first rotation of its second group, that make a
//! bijection.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, sections
//! 5.4.2 (a block takes a leaf) and 5.5; the backlog of 5.4.3, which the thesis has for vectors of a CPU. Here a lane
//! has a trial. It hashes half of the keys, all of one group, so most trials end in a collision. The others wait until
//! there is one per lane of the warp, and only then are all keys hashed, into a mask per group. So the keys need not be
//! sorted by group for each half of a warp, and no lane without a collision makes the other 31 wait.

use warpset_core::recsplit::hash;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK, lane_id, lane_mask_lt};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::recsplit::nodes::Mix;
#[cfg(feature = "bodies")]
use crate::recsplit::nodes::position_bit;
use crate::recsplit::queue::{List, each_node};
use crate::recsplit::rotation_groups::HALF;
use crate::recsplit::rotation_match;

/// The most threads of a block.
pub const MOST_THREADS: u32 = 128;

/// Words of 64 bits before the keys: the block's next leaf, and the least number that it has found.
const HEAD: u32 = 2;
/// The most keys to hash first: half of a leaf.
const MOST_FIRST: u32 = 12;
/// Waiting trials of a warp.
const WAITING: u32 = 64;
/// Words of 64 bits of a warp: the keys that the trials of each half hash first, and the waiting trials.
const WARP_WORDS: u32 = 2 * MOST_FIRST + WAITING;
/// Rounds after which a team reads the results of its other blocks.
const ROUNDS: u32 = 16;

/// Returns the words of 64 bits of a leaf's keys: an even number, for alignment.
const fn key_words(keys: u32) -> u32 {
    keys + keys % 2
}

/// Returns the bytes of shared memory of blocks of `threads` threads for leaves of `keys` keys.
pub const fn shared_bytes(keys: u32, threads: u32) -> u32 {
    8 * (HEAD + key_words(keys) + threads / 32 * WARP_WORDS)
}

kernel! {
    /// Finds the number of each leaf of a list. `team` blocks take a leaf; without teams a block takes the next one.
    ///
    /// # Safety
    /// - Launch: 1-D, a multiple of `team` blocks of whole warps, at most [`MOST_THREADS`], [`shared_bytes`] of shared
    ///   memory.
    /// - `items`: valid for the `count` items from `first` on, leaves of `keys` keys, 5 to 24, in two groups, not
    ///   written while the kernel runs.
    /// - `lows`: valid for reading the keys of all items, and nothing writes them meanwhile.
    /// - `next`: 0 at the start, and accessed by this launch alone, by atomics.
    /// - `numbers`: valid at the places of all items, which hold `u64::MAX` and are accessed by atomics alone while the
    ///   kernel runs.
    #[launch_bounds(128, 8)]
    pub unsafe fn recsplit_two_group_leaves<M>(
        items: Global<u32>, first: usize, count: usize, next: GlobalMut<u32>, team: u32, keys: u32, budget: u64,
        start: M, lows: Global<u64>, numbers: GlobalMut<u64>,
    ) for [u32 => recsplit_two_group_leaves_32, u64 => recsplit_two_group_leaves_64] {
        let start = start.seed();
        let lane = lane_id();
        let own = thread::thread_idx_x();
        let warps = thread::block_dim_x() / 32;
        let (slot, found): (Shared<u32>, Shared<u64>) = (shared::dynamic(0), shared::dynamic(8));
        let all: Shared<u64> = shared::dynamic(8 * HEAD);
        let space = all.at(key_words(keys) + own / 32 * WARP_WORDS);
        let mut search = Search {
            all, keys, start, probed: keys.div_ceil(2), firsts: space, waiting: space.at(2 * MOST_FIRST), head: 0, waits: 0,
        };
        let block = thread::block_idx_x();
        let stride = (team * warps * 32) as u64;
        let list = List { items, first, count, next };
        // SAFETY: this kernel's contract; all threads of a block have the same leaf, so they reach the barriers
        // together, and the lanes of a warp see the same limit and the same trials, so they reach votes and exchanges
        // together; barriers separate the writes and the reads of keys.
        unsafe {
            each_node!(list, team team, slot, |item| {
                let place = numbers.at(item.place as usize);
                if own < keys {
                    all.set(own, lows.read((item.first + own) as usize));
                }
                if own == 0 {
                    found.set_volatile(0, u64::MAX);
                }
                thread::sync_threads();
                let key = if lane < keys { all.get(lane) } else { 0 };
                (search.head, search.waits) = (0, 0);
                let mut base = ((block % team * warps + own / 32) * 32) as u64;
                let mut round = 0;
                loop {
                    if team > 1 && round % ROUNDS == 0 && lane == 0 {
                        found.reduce_min(0, atomic::load_relaxed(place));
                    }
                    round += 1;
                    // One lane reads for all, so that the warp stays together.
                    let least = warp::shuffle_idx(FULL_MASK, found.get_volatile(0), 0);
                    let ends = base >= budget || base * keys as u64 >= least;
                    if !ends {
                        search.probe::<M>(key, base);
                        base += stride;
                    }
                    // At the end the waiting trials may still be below the least.
                    while search.waits >= 32 || ends && search.waits > 0 {
                        let number = search.solve::<M>();
                        if number != u64::MAX {
                            // The waiting trials are later ones.
                            search.waits = 0;
                            if lane == 0 {
                                found.reduce_min(0, number);
                            }
                        }
                    }
                    if ends {
                        // `recsplit_check` tests whether any block has found one.
                        break;
                    }
                }
                thread::sync_threads();
                if own == 0 {
                    atomic::reduce_min(place, found.get_volatile(0));
                }
                thread::sync_threads();
            });
        }
    }
}

/// A warp's search in a leaf.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Search {
    /// The leaf's keys.
    all: Shared<u64>,
    keys: u32,
    start: u32,
    /// Keys to hash first.
    probed: u32,
    /// Sums of the keys to hash first: those of the first 16 trials, and of the other 16.
    firsts: Shared<u64>,
    /// Waiting trials, in ascending order: a ring.
    waiting: Shared<u64>,
    head: u32,
    waits: u32,
}

#[cfg(feature = "bodies")]
impl Search {
    /// Hashes half of the keys under the 32 trials from `base` on, and adds the trials without a collision to the
    /// waiting ones.
    ///
    /// # Safety
    /// All lanes of the warp come here together; `key` is the key of the lane's number, if there is one; at most 32
    /// trials wait.
    #[inline(always)]
    #[track_caller]
    unsafe fn probe<M: Mix>(&mut self, key: u64, base: u64) {
        let lane = lane_id();
        let everyone = u32::MAX >> (32 - self.keys);
        let sum = hash::trial_sum(key, self.start, base);
        // SAFETY: this function's contract; places are below the number of keys to hash first, or within the ring; the
        // warp synchronises between writes and reads of others.
        unsafe {
            let runs_over = warp::any(FULL_MASK, lane < self.keys && !hash::is_near(sum));
            warpset_simt::unroll!(2, half, {
                let multiplier = hash::leaf_group_multiplier(base + half as u64 * HALF as u64);
                let is_second = hash::leaf_group_of(key, multiplier, 2) == 1;
                let second = warp::ballot(FULL_MASK, is_second) & everyone;
                // The larger group has half of the keys, or more.
                let larger = if 2 * second.count_ones() > self.keys { second } else { everyone ^ second };
                let place = (larger & lane_mask_lt()).count_ones();
                if larger >> lane & 1 != 0 && place < self.probed {
                    self.firsts.set(half as u32 * MOST_FIRST + place, sum);
                }
            });
            warp::sync_warp(FULL_MASK);
            let trial = base + lane as u64;
            let firsts = self.firsts.at(lane / HALF * MOST_FIRST);
            let position = |sum| position_bit(hash::trial_hash_near(M::REMIX, sum, lane), self.keys);
            let mut taken = 0u32;
            let mut i = 0;
            while i + 4 <= self.probed {
                warpset_simt::unroll!(2, k, {
                    let [a, b] = firsts.get2(i + 2 * k as u32);
                    taken |= position(a);
                    taken |= position(b);
                });
                i += 4;
            }
            while i < self.probed {
                taken |= position(firsts.get(i));
                i += 1;
            }
            // If a sum overflows, which is rare, all trials wait: they are tested with all keys.
            let is_free = taken.count_ones() == self.probed || runs_over;
            let free = warp::ballot(FULL_MASK, is_free);
            if is_free {
                let place = self.head + self.waits + (free & lane_mask_lt()).count_ones();
                self.waiting.set(place % WAITING, trial);
            }
            self.waits += free.count_ones();
            warp::sync_warp(FULL_MASK);
        }
    }

    /// Returns the position of a key under a trial, as a bit.
    #[inline(always)]
    fn position<M: Mix>(&self, key: u64, trial: u64) -> u32 {
        position_bit(hash::trial_hash(M::REMIX, key, self.start, trial), self.keys)
    }

    /// Takes up to 32 of the waiting trials, and returns the least number that makes one of them a bijection;
    /// `u64::MAX` if there is none.
    ///
    /// # Safety
    /// All lanes of the warp come here together, with the same trials waiting, one or more.
    #[inline(always)]
    #[track_caller]
    unsafe fn solve<M: Mix>(&mut self) -> u64 {
        let lane = lane_id();
        let some = self.waits.min(32);
        // SAFETY: this function's contract; the warp has synchronised since the trials were written, and does so before
        // they are written again.
        unsafe {
            let trial = self.waiting.get((self.head + if lane < some { lane } else { 0 }) % WAITING);
            self.head = (self.head + some) % WAITING;
            self.waits -= some;
            let multiplier = hash::leaf_group_multiplier(trial);
            let mut masks = [0u32; 6];
            let mut i = 0;
            while i < self.keys {
                let key = self.all.get(i);
                let bit = self.position::<M>(key, trial);
                let of_second = 0u32.wrapping_sub(hash::leaf_group_of(key, multiplier, 2));
                masks[0] |= bit & !of_second;
                masks[1] |= bit & of_second;
                i += 1;
            }
            // Both groups have keys, and none has a collision.
            let is_free = masks[0] != 0 && masks[1] != 0 && masks[0].count_ones() + masks[1].count_ones() == self.keys;
            let mut free = warp::ballot(FULL_MASK, lane < some && is_free);
            while free != 0 {
                let from = free.trailing_zeros();
                free &= free - 1;
                let (one, two) =
                    (warp::shuffle_idx(FULL_MASK, masks[0], from), warp::shuffle_idx(FULL_MASK, masks[1], from));
                let index = rotation_match::of_warp(&[one, two, 0, 0, 0, 0], 2, self.keys, self.firsts.cast());
                if index != u32::MAX {
                    return warp::shuffle_idx(FULL_MASK, trial, from) * self.keys as u64 + index as u64;
                }
            }
            warp::sync_warp(FULL_MASK);
        }
        u64::MAX
    }
}
