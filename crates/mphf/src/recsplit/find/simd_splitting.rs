//! Search of a splitting: many trials at a time, one per lane, generic over the vectors.
//!
//! Source: sections 5.6.2 (packed counts, theorem 5.2) and 5.7.1.

use super::node::{NoSolution, Task};
use super::one_by_one;
use super::simd_hash::{Hasher, carry_from};
use crate::u32_vector::U32Vector;
use warpset_core::recsplit::candidate::Candidate;
use warpset_core::recsplit::shape::field_bits;

/// Searches a splitting.
///
/// # Safety
/// - The conditions of [`U32Vector`].
/// - The node's unit is below 255 unless it splits in two.
#[inline(always)]
pub(super) unsafe fn splitting<V: U32Vector>(task: &Task) -> Result<u64, NoSolution> {
    let without = carry_from(task.keys).min(task.budget);
    // SAFETY: the processor has the instructions, by this function's contract; below `without` nothing carries.
    unsafe {
        if task.node.fanout > 2 && task.node.groups == 1 {
            let found = parts::<V, false>(task, 0, without).or_else(|| parts::<V, true>(task, without, task.budget));
            return found.ok_or(NoSolution);
        }
        // Few trials are expected, so a trial with a carry is rare.
        let found = if task.node.fanout == 2 {
            binary_splitting::<V>(task, without)
        } else {
            grouped_parts::<V>(task, without)
        };
        match found {
            Some(number) => Ok(number),
            None => one_by_one::splitting_from(task, without),
        }
    }
}

/// Searches a splitting in two: counts the hashes below the threshold, and, with groups, those below it when mirrored.
///
/// # Safety
/// - The conditions of [`splitting`].
/// - Trials below `to` do not carry.
#[inline(always)]
unsafe fn binary_splitting<V: U32Vector>(task: &Task, to: u64) -> Option<u64> {
    let bounds = task.group_bounds();
    let groups = usize::from(task.node.groups);
    // SAFETY: this function's contract.
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
            // For each further group: keys that go left unchanged (low half), and when mirrored (high half).
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

/// Returns the child of each hash.
///
/// # Safety
/// - The conditions of [`U32Vector`].
#[inline(always)]
unsafe fn child_index<V: U32Vector>(hash: V, scale: V) -> V {
    // SAFETY: the processor has the instructions, by this function's contract.
    unsafe { hash.mul_high_halves(scale).shr::<28>() }
}

/// Searches a splitting in more than two parts by brute force: byte-packed counts of all children but the last.
///
/// # Safety
/// - The conditions of [`splitting`].
/// - Trials below `to` do not carry, unless `CARRY`.
#[inline(always)]
unsafe fn parts<V: U32Vector, const CARRY: bool>(task: &Task, from: u64, to: u64) -> Option<u64> {
    let fanout = usize::from(task.node.fanout);
    let (mut first, mut second) = ([0_u32; 16], [0_u32; 16]);
    let (mut first_sum, mut second_sum) = (0, 0);
    for child in 0..fanout - 1 {
        let (table, sum) = if child < 4 { (&mut first, &mut first_sum) } else { (&mut second, &mut second_sum) };
        table[child] = 1 << (8 * (child % 4));
        *sum += u32::from(task.node.unit) << (8 * (child % 4));
    }
    // SAFETY: this function's contract.
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

/// Searches a splitting in more than two parts with rotation of groups: one word of packed counts per group.
///
/// A count that overflows spoils its neighbour, but only if it is above the unit, which no solution has. Apparent
/// solutions are counted again.
///
/// # Safety
/// - The conditions of [`splitting`].
/// - Trials below `to` do not carry.
/// - The packed counts fit one word.
#[inline(always)]
unsafe fn grouped_parts<V: U32Vector>(task: &Task, to: u64) -> Option<u64> {
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
    // SAFETY: this function's contract.
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
    let candidate = Candidate::of(number, task.node);
    let mut counts = [0_u32; 16];
    for &key in task.keys {
        counts[candidate.child(key, task.node, task.start, task.remix) as usize] += 1;
    }
    counts[..usize::from(task.node.fanout) - 1].iter().all(|&count| count == u32::from(task.node.unit))
}
