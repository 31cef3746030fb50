//! Evaluation of a task: the seeds that solve it, and the moves of its keys. Each lane has a seed; with few seeds and
//! many keys, each lane has some of the keys instead.

use warpset_core::consensus::hash::{leaf_position, task_hash};
use warpset_core::consensus::tree::LEAF;
use warpset_simt::warp::{self, FULL_MASK, lane_id, lane_mask_lt};
use warpset_simt::{Global, GlobalMut, unroll};

use crate::consensus::slot::Keys;
use crate::consensus::tree::Task;

/// Seeds that lanes with keys evaluate at a time.
const AT_A_TIME: u32 = 4;

/// Whether lanes should hold keys, if a splitting of `keys` keys has this many seeds, by the number of instructions.
#[inline(always)]
pub fn is_by_keys(keys: u32, seeds: u32) -> bool {
    seeds.div_ceil(AT_A_TIME) * (22 * keys.div_ceil(32) + 12) < 4 * keys
}

/// Returns the solutions of a leaf: a bit for each lane whose multiplier gives every key a position of its own.
///
/// # Safety
/// All lanes of the warp come here together, with the same task, a leaf with keys; nothing writes its keys.
#[inline(always)]
#[track_caller]
pub unsafe fn leaf(keys: Keys, task: &Task, multiplier: u32, is_asked: bool) -> u32 {
    let count = task.end - task.begin;
    let mut taken = 0;
    // SAFETY: this function's contract. Repeating the last key changes nothing.
    unsafe {
        unroll!(5, i, {
            const { assert!(LEAF == 5) };
            let at = keys.first + task.begin + (i as u32).min(count - 1);
            taken |= 1 << leaf_position(task_hash(keys.keys.read(at as usize), multiplier), count);
        });
        warp::ballot(FULL_MASK, is_asked && taken == (1_u32 << count) - 1)
    }
}

/// Returns the solutions of a splitting: a bit for each lane whose multiplier sends the right number of keys left.
///
/// # Safety
/// All lanes of the warp come here together, with the same task, a splitting; nothing writes its keys.
#[inline(always)]
#[track_caller]
pub unsafe fn split_by_seeds(keys: Keys, task: &Task, multiplier: u32, is_asked: bool) -> u32 {
    // SAFETY: this function's contract.
    unsafe {
        let lefts = lefts(keys.keys, keys.first + task.begin, keys.first + task.end, multiplier, task.threshold);
        warp::ballot(FULL_MASK, is_asked && lefts == task.left)
    }
}

/// Counts the keys of `at..end` that go left under a multiplier.
///
/// # Safety
/// The keys are valid, from a multiple of 16 bytes on, and nothing writes them.
#[inline(always)]
unsafe fn lefts(keys: Global<u64>, mut at: u32, end: u32, multiplier: u32, threshold: u32) -> u32 {
    let is_left = |key: u64| (task_hash(key, multiplier) < threshold) as u32;
    let mut lefts = 0;
    // SAFETY: this function's contract; pairs begin at even places.
    unsafe {
        if at % 2 != 0 {
            lefts += is_left(keys.read(at as usize));
            at += 1;
        }
        while at + 8 <= end {
            let mut some = [[0; 2]; 4];
            unroll!(4, i, {
                some[i] = keys.read2(at as usize + 2 * i);
            });
            unroll!(4, i, {
                lefts += is_left(some[i][0]) + is_left(some[i][1]);
            });
            at += 8;
        }
        // At most three pairs, loaded together.
        let mut some = [[u64::MAX; 2]; 3];
        unroll!(3, i, {
            if at + 2 * i as u32 + 2 <= end {
                some[i] = keys.read2(at as usize + 2 * i);
            }
        });
        unroll!(3, i, {
            if at + 2 * i as u32 + 2 <= end {
                lefts += is_left(some[i][0]) + is_left(some[i][1]);
            }
        });
        at = end - (end - at) % 2;
        if at < end {
            lefts += is_left(keys.read(at as usize));
        }
    }
    lefts
}

/// Computes [`split_by_seeds`] for the multipliers of the first `seeds` lanes, with some of the keys in each lane.
///
/// # Safety
/// The contract of [`split_by_seeds`].
#[inline(always)]
#[track_caller]
pub unsafe fn split_by_keys(keys: Keys, task: &Task, multiplier: u32, seeds: u32) -> u32 {
    let (first, end) = (keys.first + task.begin + lane_id(), keys.first + task.end);
    let (mut solved, mut seed) = (0, 0);
    // SAFETY: this function's contract; keys are read before the task's end; all lanes loop equally often, until the
    // first one's keys end.
    unsafe {
        while seed < seeds {
            let (mut multipliers, mut lefts) = ([0; AT_A_TIME as usize], [0; AT_A_TIME as usize]);
            unroll!(4, i, {
                multipliers[i] = warp::shuffle_idx(FULL_MASK, multiplier, seed + i as u32);
            });
            let mut at = first;
            while at - lane_id() < end {
                let is_key = at < end;
                let key = if is_key { keys.keys.read(at as usize) } else { 0 };
                unroll!(4, i, {
                    let is_left = is_key && task_hash(key, multipliers[i]) < task.threshold;
                    lefts[i] += warp::ballot(FULL_MASK, is_left).count_ones();
                });
                at += 32;
            }
            unroll!(4, i, {
                solved |= ((lefts[i] == task.left) as u32) << i << seed;
            });
            seed += AT_A_TIME;
        }
    }
    solved & ((1_u64 << seeds) - 1) as u32
}

/// Moves the keys of a splitting to the next level, by a multiplier that solves it.
///
/// # Safety
/// All lanes of the warp come here together, with the same arguments; the task's keys are valid, and nothing else
/// accesses its places on the next level, `to`.
#[inline(always)]
#[track_caller]
pub unsafe fn divide(keys: Keys, task: &Task, multiplier: u32, to: GlobalMut<u64>) {
    let (mut left, mut right, mut at) = (task.begin, task.begin + task.left, task.begin);
    // SAFETY: this function's contract; keys are read before the task's end; `multiplier` solves the task, so all
    // places belong to it.
    unsafe {
        while at < task.end {
            let place = at + lane_id();
            let is_key = place < task.end;
            let key = if is_key { keys.keys.read((keys.first + place) as usize) } else { 0 };
            let is_left = is_key && task_hash(key, multiplier) < task.threshold;
            let lefts = warp::ballot(FULL_MASK, is_left);
            let rights = warp::ballot(FULL_MASK, is_key && !is_left);
            let rank = |votes: u32| (votes & lane_mask_lt()).count_ones();
            if is_key {
                to.write(if is_left { left + rank(lefts) } else { right + rank(rights) } as usize, key);
            }
            left += lefts.count_ones();
            right += rights.count_ones();
            at += 32;
        }
    }
}
