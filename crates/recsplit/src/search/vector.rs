//! Search of many trials at a time, one in each lane, generic over the vectors.
//!
//! Source: sections 5.3.1, 5.4.3 (midstop with a backlog), 5.5.3, 5.6.2 (packed counts, theorem 5.2), 5.7.1. Departures:
//! - The fold of 64 to 32 bits costs two instructions instead of two additions, two blends and an exclusive or: the
//!   halves of a key are broadcast, the trial numbers are added to the low half, and the carry into the high half, which
//!   comes once in 2^32 trials, is known not to happen up to a trial that the largest key gives. Beyond it runs a version
//!   with carry.
//! - Rotation only looks at trials whose groups are free of collisions, and has the rotations, not the trials, in lanes.

use super::fit::fit;
use super::lanes::{Lanes, lanes_below};
use super::{NoSolution, Task, child, sequential};
use warpset_core::recsplit::hash::{self, MULTIPLIER_1, MULTIPLIER_2, REGROUP};
use warpset_core::recsplit::shape::field_bits;

/// Vectors that hold the constants of a node.
#[derive(Clone, Copy)]
struct Hasher<V> {
    start: V,
    multiplier_1: V,
    multiplier_2: V,
}

impl<V: Lanes> Hasher<V> {
    /// # Safety
    /// See [`Lanes`].
    #[inline(always)]
    unsafe fn new(start: u32) -> Self {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            Self { start: V::splat(start), multiplier_1: V::splat(MULTIPLIER_1), multiplier_2: V::splat(MULTIPLIER_2) }
        }
    }

    /// Trial hashes of `key` for the trials `trial`; `trial_high` are their high halves.
    ///
    /// # Safety
    /// See [`Lanes`]. Without `CARRY`, no lane of `trial` may reach past 32 bits when added to the key's low half.
    #[inline(always)]
    unsafe fn hash<const CARRY: bool>(self, key: u64, trial: V, trial_high: u32) -> V {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let low = V::splat(key as u32).add(trial);
            let mut high = V::splat((key >> 32) as u32);
            if CARRY {
                high = high.add(V::splat(trial_high)).add_if_less(low, trial, V::splat(1));
            }
            self.mix(low, high)
        }
    }

    /// Folds and mixes the halves of sums.
    ///
    /// # Safety
    /// See [`Lanes`].
    #[inline(always)]
    unsafe fn mix(self, low: V, high: V) -> V {
        // SAFETY: the caller vouches for the instructions.
        unsafe {
            let mixed = low.xor3(high, self.start).mul(self.multiplier_1);
            mixed.xor(mixed.shr::<15>()).mul(self.multiplier_2)
        }
    }
}

/// The first trial that may need the version with carry.
#[inline(always)]
fn carry_from(keys: &[u64]) -> u64 {
    let largest = keys.iter().fold(0, |largest, &key| largest.max(key as u32));
    // A multiple of every vector's length.
    u64::from(u32::MAX - largest) / 64 * 64
}

/// Searches a leaf of `M` keys.
///
/// # Safety
/// See [`Lanes`]. `task.keys` has `M` keys, 2 to 24.
#[inline(always)]
pub(crate) unsafe fn leaf<V: Lanes, const M: usize>(task: &Task) -> Result<u64, NoSolution> {
    if task.positions as usize != M {
        return sequential::leaf_from(task, 0);
    }
    let without = carry_from(task.keys).min(task.budget);
    // SAFETY: the caller vouches for the instructions and the number of keys; below `without` nothing carries.
    unsafe {
        if task.node.groups > 1 {
            // So few trials are expected that one with a carry is a rarity.
            return match grouped::<V, M>(task, without) {
                Some(number) => Ok(number),
                None => sequential::leaf_from(task, without),
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

/// Positions of a leaf's keys as single bits.
///
/// # Safety
/// See [`Lanes`].
#[inline(always)]
unsafe fn position_bit<V: Lanes, const M: usize>(hash: V) -> V {
    // SAFETY: the caller vouches for the instructions.
    unsafe { V::splat(1).shlv(hash.mul_high_halves(V::splat((M as u32) << 16)).shr::<16>()) }
}

/// Brute force without a midstop.
///
/// # Safety
/// As [`leaf`]; trials below `to` do not carry unless `CARRY`.
#[inline(always)]
unsafe fn plain<V: Lanes, const M: usize, const CARRY: bool>(task: &Task, from: u64, to: u64) -> Option<u64> {
    let keys: &[u64; M] = task.keys.first_chunk()?;
    // SAFETY: as the caller says.
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

/// Leaves from this size on are searched with a midstop (section 6.4.2).
const MIDSTOP_FROM: usize = 12;

/// Brute force with a midstop after 2.6 sqrt(M) keys; trials without a collision so far wait in a backlog until they
/// fill a vector.
///
/// # Safety
/// As [`leaf`]; trials below `to` do not carry unless `CARRY`.
#[inline(always)]
unsafe fn midstop<V: Lanes, const M: usize, const CARRY: bool>(task: &Task, from: u64, to: u64) -> Option<u64> {
    let keys: &[u64; M] = task.keys.first_chunk()?;
    let stop = ((2.6 * (M as f64).sqrt()).ceil() as usize).min(M);
    let (before, after) = keys.split_at(stop);
    // SAFETY: as the caller says; the backlog holds fewer than `N` entries before a vector is added, so `2 N <= 32`
    // entries are the most, and writes and reads of whole vectors stay inside it.
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
            // At the end of a stretch of 2^32 trials, or of the search, the rest goes without filling a vector.
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

/// Rotation of groups.
///
/// # Safety
/// As [`leaf`]; trials below `to` do not carry.
#[inline(always)]
unsafe fn grouped<V: Lanes, const M: usize>(task: &Task, to: u64) -> Option<u64> {
    let groups = usize::from(task.node.groups);
    // Two vectors of 16 hold the keys of any leaf.
    let (mut lows, mut highs) = ([0_u32; 32], [0_u32; 32]);
    for (i, &key) in task.keys.iter().enumerate().take(M) {
        (lows[i], highs[i]) = (key as u32, (key >> 32) as u32);
    }
    // SAFETY: as the caller says; loads and stores of vectors stay within their arrays: the keys' have a vector's room
    // behind the last key.
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
                        if let Some(index) = fit::<V, M>(&masks[..groups]) {
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

/// Searches a splitting.
///
/// # Safety
/// See [`Lanes`]. The node's unit is below 255 unless it splits in two.
#[inline(always)]
pub(crate) unsafe fn splitting<V: Lanes>(task: &Task) -> Result<u64, NoSolution> {
    let without = carry_from(task.keys).min(task.budget);
    // SAFETY: the caller vouches for the instructions; below `without` nothing carries.
    unsafe {
        if task.node.fanout > 2 && task.node.groups == 1 {
            let found = parts::<V, false>(task, 0, without).or_else(|| parts::<V, true>(task, without, task.budget));
            return found.ok_or(NoSolution);
        }
        // So few trials are expected that one with a carry is a rarity.
        let found = if task.node.fanout == 2 { halves::<V>(task, without) } else { grouped_parts::<V>(task, without) };
        match found {
            Some(number) => Ok(number),
            None => sequential::splitting_from(task, without),
        }
    }
}

/// A splitting in two: counts the hashes below the threshold, and, with groups, those that are below it when mirrored.
///
/// # Safety
/// As [`splitting`]; trials below `to` do not carry.
#[inline(always)]
unsafe fn halves<V: Lanes>(task: &Task, to: u64) -> Option<u64> {
    let bounds = task.group_bounds();
    let groups = usize::from(task.node.groups);
    // SAFETY: as the caller says.
    unsafe {
        let hasher = Hasher::<V>::new(task.start);
        let threshold = V::splat(task.node.scale);
        let mirrored = V::splat(!task.node.scale);
        let unit = V::splat(u32::from(task.node.unit));
        let mut trial = 0;
        while trial < to {
            let trials = V::splat(trial as u32).add(V::iota());
            let mut left = V::splat(0);
            for &key in &task.keys[..bounds[1]] {
                let hash = hasher.hash::<false>(key, trials, 0);
                left = left.add_if_less(hash, threshold, V::splat(1));
            }
            // For each further group: left when as it is (low half), when mirrored (high half).
            let mut counts = [V::splat(0); 6];
            for group in 1..groups {
                let mut count = V::splat(0);
                for &key in &task.keys[bounds[group]..bounds[group + 1]] {
                    let hash = hasher.hash::<false>(key, trials, 0);
                    count = count.add_if_less(hash, threshold, V::splat(1));
                    count = count.add_if_less(mirrored, hash, V::splat(1 << 16));
                }
                counts[group] = count;
            }
            let missing = unit.sub(left);
            let mut best = (u32::MAX, 0);
            for index in 0..1_u32 << (groups - 1) {
                let mut sum = V::splat(0);
                for (group, count) in counts.iter().enumerate().take(groups).skip(1) {
                    sum = sum.add(if index >> (group - 1) & 1 == 0 {
                        count.and(V::splat(0xffff))
                    } else {
                        count.shr::<16>()
                    });
                }
                let found = sum.eq(missing);
                if found != 0 && found.trailing_zeros() < best.0 {
                    best = (found.trailing_zeros(), index);
                }
            }
            if best.0 != u32::MAX {
                return Some((trial + u64::from(best.0)) * u64::from(task.node.candidates) + u64::from(best.1));
            }
            trial += V::N as u64;
        }
    }
    None
}

/// The child of each hash.
///
/// # Safety
/// See [`Lanes`].
#[inline(always)]
unsafe fn child_index<V: Lanes>(hash: V, scale: V) -> V {
    // SAFETY: the caller vouches for the instructions.
    unsafe { hash.mul_high_halves(scale).shr::<28>() }
}

/// A splitting in more than two parts by brute force: byte-packed counts of all children but the last.
///
/// # Safety
/// As [`splitting`]; trials below `to` do not carry unless `CARRY`.
#[inline(always)]
unsafe fn parts<V: Lanes, const CARRY: bool>(task: &Task, from: u64, to: u64) -> Option<u64> {
    let fanout = usize::from(task.node.fanout);
    let (mut first, mut second) = ([0_u32; 16], [0_u32; 16]);
    let (mut first_sum, mut second_sum) = (0, 0);
    for child in 0..fanout - 1 {
        let (table, sum) = if child < 4 { (&mut first, &mut first_sum) } else { (&mut second, &mut second_sum) };
        table[child] = 1 << (8 * (child % 4));
        *sum += u32::from(task.node.unit) << (8 * (child % 4));
    }
    // SAFETY: as the caller says.
    unsafe {
        let hasher = Hasher::<V>::new(task.start);
        let scale = V::splat(task.node.scale << 16);
        let (first, second) = (V::table(&first), V::table(&second));
        let mut trial = from;
        while trial < to {
            let high = (trial >> 32) as u32;
            let trials = V::splat(trial as u32).add(V::iota());
            let mut sum = V::splat(0);
            let found;
            if fanout <= 5 {
                for &key in task.keys {
                    let hash = hasher.hash::<CARRY>(key, trials, high);
                    sum = sum.add(V::look_up(first, child_index(hash, scale)));
                }
                found = sum.eq(V::splat(first_sum));
            } else {
                let mut more = V::splat(0);
                for &key in task.keys {
                    let hash = hasher.hash::<CARRY>(key, trials, high);
                    let index = child_index(hash, scale);
                    sum = sum.add(V::look_up(first, index));
                    more = more.add(V::look_up(second, index));
                }
                found = sum.eq(V::splat(first_sum)) & more.eq(V::splat(second_sum));
            }
            if found != 0 {
                return Some(trial + u64::from(found.trailing_zeros()));
            }
            trial += V::N as u64;
        }
    }
    None
}

/// A splitting in more than two parts with rotation of groups: one word of packed counts for each group.
///
/// A count that runs over spoils its neighbour, but only where it is above the unit, which no solution has. What looks
/// like a solution is counted again.
///
/// # Safety
/// As [`splitting`]; trials below `to` do not carry; the packed counts fit one word.
#[inline(always)]
unsafe fn grouped_parts<V: Lanes>(task: &Task, to: u64) -> Option<u64> {
    let bounds = task.group_bounds();
    let node = task.node;
    let (groups, radix) = (usize::from(node.groups), usize::from(node.radix));
    let field = field_bits(u32::from(node.unit));
    let width = field * radix as u32;
    let mask = u32::MAX >> (32 - width);
    let mut table = [0_u32; 16];
    let mut target = 0_u32;
    for (child, step) in table.iter_mut().enumerate().take(radix) {
        *step = 1 << (field * child as u32);
        target += u32::from(node.unit) << (field * child as u32);
    }
    let outer_candidates = node.candidates / radix as u32;
    // SAFETY: as the caller says.
    unsafe {
        let hasher = Hasher::<V>::new(task.start);
        let scale = V::splat(node.scale << 16);
        let table = V::table(&table);
        let mut trial = 0;
        while trial < to {
            let trials = V::splat(trial as u32).add(V::iota());
            let mut turned = [[V::splat(0); 9]; 6];
            for group in 0..groups {
                let mut sum = V::splat(0);
                for &key in &task.keys[bounds[group]..bounds[group + 1]] {
                    let hash = hasher.hash::<false>(key, trials, 0);
                    sum = sum.add(V::look_up(table, child_index(hash, scale)));
                }
                sum = sum.and(V::splat(mask));
                turned[group][0] = sum;
                if group > 0 {
                    for (by, turned) in turned[group].iter_mut().enumerate().take(radix).skip(1) {
                        let left = V::splat(field * by as u32);
                        let right = V::splat(width - field * by as u32);
                        *turned = sum.shlv(left).or(sum.shrv(right)).and(V::splat(mask));
                    }
                }
            }
            let first = V::splat(target).sub(turned[0][0]);
            let mut best: Option<(u32, u32)> = None;
            for outer in 0..outer_candidates {
                let mut missing = first;
                let mut digits = outer as usize;
                for turned in &turned[2..groups] {
                    missing = missing.sub(turned[digits % radix]);
                    digits /= radix;
                }
                for (inner, turned) in turned[1].iter().enumerate().take(radix) {
                    let mut found = missing.eq(*turned);
                    while found != 0 {
                        let candidate = (found.trailing_zeros(), outer * radix as u32 + inner as u32);
                        found &= found - 1;
                        if best.is_none_or(|best| candidate < best) && splits(task, trial, candidate) {
                            best = Some(candidate);
                        }
                    }
                }
            }
            if let Some((lane, index)) = best {
                return Some((trial + u64::from(lane)) * u64::from(node.candidates) + u64::from(index));
            }
            trial += V::N as u64;
        }
    }
    None
}

/// Whether a candidate `(lane, index)` of the vector of trials from `trial` on is a splitting.
#[cold]
fn splits(task: &Task, trial: u64, (lane, index): (u32, u32)) -> bool {
    let number = (trial + u64::from(lane)) * u64::from(task.node.candidates) + u64::from(index);
    let mut counts = [0_u32; 16];
    for &key in task.keys {
        counts[child(key, task.node, task.start, task.remix, number) as usize] += 1;
    }
    counts[..usize::from(task.node.fanout) - 1].iter().all(|&count| count == u32::from(task.node.unit))
}
