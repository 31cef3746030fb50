//! Search of a leaf: many trials at a time, one per lane, generic over the vectors.
//!
//! Source: sections 5.4.3 (midstop with a backlog) and 5.5.3. Departure: only trials with groups free of collisions are
//! tried with rotations, and the rotations, not the trials, are in lanes ([`super::rotation_match`]).

use super::node::{NoSolution, Task};
use super::one_by_one;
use super::rotation_match::matching_rotations;
use super::simd_hash::{Hasher, carry_from};
use crate::u32_vector::{U32Vector, lanes_below};
use warpset_core::recsplit::hash::{self, REGROUP};

/// Searches a leaf of `M` keys.
///
/// # Safety
/// - The conditions of [`U32Vector`].
/// - `task.keys` has `M` keys, 2 to 24.
#[inline(always)]
pub(super) unsafe fn leaf<V: U32Vector, const M: usize>(task: &Task) -> Result<u64, NoSolution> {
    if task.positions as usize != M {
        return one_by_one::leaf_from(task, 0);
    }
    let without = carry_from(task.keys).min(task.budget);
    // SAFETY: the processor has the instructions and the leaf has `M` keys, by this function's contract; below
    // `without` nothing carries.
    unsafe {
        if task.node.groups > 1 {
            // Few trials are expected, so a trial with a carry is rare.
            return match grouped::<V, M>(task, without) {
                Some(number) => Ok(number),
                None => one_by_one::leaf_from(task, without),
            };
        }
        let found = if M < MIDSTOP_FROM {
            plain::<V, M, false>(task, 0, without).or_else(|| plain::<V, M, true>(task, without, task.budget))
        } else {
            midstop::<V, M, false>(task, 0, without).or_else(|| midstop::<V, M, true>(task, without, task.budget))
        };
        found.ok_or(NoSolution)
    }
}

/// Returns the positions of a leaf's keys as single bits.
///
/// # Safety
/// - The conditions of [`U32Vector`].
#[inline(always)]
unsafe fn position_bit<V: U32Vector, const M: usize>(hash: V) -> V {
    // SAFETY: the processor has the instructions, by this function's contract.
    unsafe { V::splat(1).shlv(hash.mul_high_halves(V::splat((M as u32) << 16)).shr::<16>()) }
}

/// Searches by brute force without a midstop.
///
/// # Safety
/// - The conditions of [`leaf`].
/// - Trials below `to` do not carry, unless `CARRY`.
#[inline(always)]
unsafe fn plain<V: U32Vector, const M: usize, const CARRY: bool>(task: &Task, from: u64, to: u64) -> Option<u64> {
    let keys: &[u64; M] = task.keys.first_chunk()?;
    // SAFETY: this function's contract.
    unsafe {
        let hasher = Hasher::<V>::new(task.start);
        let full = V::splat(u32::MAX >> (32 - M));
        let mut trial = from;
        while trial < to {
            let trials = V::splat(trial as u32).add(V::iota());
            let mut taken = V::splat(0);
            for &key in keys {
                taken = taken.or(position_bit::<V, M>(hasher.hash::<CARRY>(key, trials, (trial >> 32) as u32)));
            }
            let found = taken.eq(full);
            if found != 0 {
                return Some(trial + u64::from(found.trailing_zeros()));
            }
            trial += V::N as u64;
        }
    }
    None
}

/// Least keys of a leaf that is searched with a midstop (section 6.4.2).
const MIDSTOP_FROM: usize = 12;

/// Searches by brute force with a midstop after 2.6 sqrt(M) keys; trials without a collision so far wait in a backlog
/// until they fill a vector.
///
/// # Safety
/// - The conditions of [`leaf`].
/// - Trials below `to` do not carry, unless `CARRY`.
#[inline(always)]
unsafe fn midstop<V: U32Vector, const M: usize, const CARRY: bool>(task: &Task, from: u64, to: u64) -> Option<u64> {
    let keys: &[u64; M] = task.keys.first_chunk()?;
    let stop = ((2.6 * (M as f64).sqrt()).ceil() as usize).min(M);
    let (before, after) = keys.split_at(stop);
    // SAFETY: this function's contract; the backlog holds fewer than `N` entries before a vector is added, so it has at
    // most `2 N <= 32` entries, and writes and reads of whole vectors stay inside it.
    unsafe {
        let hasher = Hasher::<V>::new(task.start);
        let full = V::splat(u32::MAX >> (32 - M));
        let mut backlog_taken = [0_u32; 48];
        let mut backlog_trial = [0_u32; 48];
        let mut waiting = 0;
        let mut trial = from;
        while trial < to {
            let high = (trial >> 32) as u32;
            let trials = V::splat(trial as u32).add(V::iota());
            let mut taken = V::splat(0);
            for &key in before {
                taken = taken.or(position_bit::<V, M>(hasher.hash::<CARRY>(key, trials, high)));
            }
            let free = taken.count_ones().eq(V::splat(stop as u32));
            taken.compress(free, backlog_taken.as_mut_ptr().add(waiting));
            trials.compress(free, backlog_trial.as_mut_ptr().add(waiting));
            waiting += free.count_ones() as usize;
            trial += V::N as u64;
            // At the end of a stretch of 2^32 trials, or of the search, the rest is processed in a partly filled
            // vector.
            let last = trial >= to || trial as u32 == 0;
            while waiting >= V::N || (last && waiting > 0) {
                let trials = V::load(backlog_trial.as_ptr());
                let mut taken = V::load(backlog_taken.as_ptr());
                for &key in after {
                    taken = taken.or(position_bit::<V, M>(hasher.hash::<CARRY>(key, trials, high)));
                }
                let found = taken.eq(full) & lanes_below(waiting);
                if found != 0 {
                    let lane = found.trailing_zeros() as usize;
                    return Some(u64::from(high) << 32 | u64::from(backlog_trial[lane]));
                }
                let rest = waiting.saturating_sub(V::N);
                backlog_taken.copy_within(V::N..V::N + rest, 0);
                backlog_trial.copy_within(V::N..V::N + rest, 0);
                waiting = rest;
            }
        }
    }
    None
}

/// Searches with rotation of groups.
///
/// # Safety
/// - The conditions of [`leaf`].
/// - Trials below `to` do not carry.
#[inline(always)]
unsafe fn grouped<V: U32Vector, const M: usize>(task: &Task, to: u64) -> Option<u64> {
    let groups = usize::from(task.node.groups);
    // Two vectors of 16 hold the keys of any leaf.
    let (mut lows, mut highs) = ([0_u32; 32], [0_u32; 32]);
    for (i, &key) in task.keys.iter().enumerate().take(M) {
        (lows[i], highs[i]) = (key as u32, (key >> 32) as u32);
    }
    // SAFETY: this function's contract; loads and stores of vectors stay within their arrays, since the keys' arrays
    // have a vector's length after the last key.
    unsafe {
        let hasher = Hasher::<V>::new(task.start);
        let (mut sorted_lows, mut sorted_highs) = ([0_u32; 48], [0_u32; 48]);
        let mut first = 0;
        while first < to {
            // Keys by group, for this stretch of trials.
            let multiplier = V::splat(hash::leaf_group_multiplier(first));
            let mut bounds = [0_usize; 8];
            let mut placed = 0;
            let mut empty = false;
            for group in 0..groups {
                let mut at = 0;
                while at < M {
                    let low = V::load(lows.as_ptr().add(at));
                    let group_of = low.mul(multiplier).shr::<24>().mul(V::splat(groups as u32)).shr::<8>();
                    let members = group_of.eq(V::splat(group as u32)) & lanes_below(M - at);
                    low.compress(members, sorted_lows.as_mut_ptr().add(placed));
                    V::load(highs.as_ptr().add(at)).compress(members, sorted_highs.as_mut_ptr().add(placed));
                    placed += members.count_ones() as usize;
                    at += V::N;
                }
                bounds[group + 1] = placed;
                empty |= bounds[group] == placed;
            }
            let mut trial = first;
            first += REGROUP;
            while trial < first && !empty {
                let trials = V::splat(trial as u32).add(V::iota());
                let mut taken = [V::splat(0); 6];
                let mut ones = V::splat(0);
                for (group, taken) in taken.iter_mut().take(groups).enumerate() {
                    for i in bounds[group]..bounds[group + 1] {
                        let hash = hasher.mix(
                            V::splat(*sorted_lows.get_unchecked(i)).add(trials),
                            V::splat(*sorted_highs.get_unchecked(i)),
                        );
                        *taken = taken.or(position_bit::<V, M>(hash));
                    }
                    ones = ones.add(taken.count_ones());
                }
                let mut free = ones.eq(V::splat(M as u32));
                if free != 0 {
                    let mut words = [[0_u32; 16]; 6];
                    for (words, taken) in words.iter_mut().zip(taken) {
                        taken.store(words.as_mut_ptr());
                    }
                    while free != 0 {
                        let lane = free.trailing_zeros() as usize;
                        free &= free - 1;
                        let masks: [u32; 6] = std::array::from_fn(|group| words[group][lane & 15]);
                        if let Some(index) = matching_rotations::<V, M>(&masks[..groups]) {
                            let trial = trial + lane as u64;
                            return Some(trial * u64::from(task.node.candidates) + u64::from(index));
                        }
                    }
                }
                trial += V::N as u64;
            }
        }
    }
    None
}

/// Calls the function for the number of keys of a leaf.
macro_rules! by_leaf_size {
    ($task:expr, $leaf:ident) => {
        match $task.keys.len() {
            2 => $leaf::<2>($task),
            3 => $leaf::<3>($task),
            4 => $leaf::<4>($task),
            5 => $leaf::<5>($task),
            6 => $leaf::<6>($task),
            7 => $leaf::<7>($task),
            8 => $leaf::<8>($task),
            9 => $leaf::<9>($task),
            10 => $leaf::<10>($task),
            11 => $leaf::<11>($task),
            12 => $leaf::<12>($task),
            13 => $leaf::<13>($task),
            14 => $leaf::<14>($task),
            15 => $leaf::<15>($task),
            16 => $leaf::<16>($task),
            17 => $leaf::<17>($task),
            18 => $leaf::<18>($task),
            19 => $leaf::<19>($task),
            20 => $leaf::<20>($task),
            21 => $leaf::<21>($task),
            22 => $leaf::<22>($task),
            23 => $leaf::<23>($task),
            24 => $leaf::<24>($task),
            keys => unreachable!("a leaf of {keys} keys"),
        }
    };
}
pub(super) use by_leaf_size;
