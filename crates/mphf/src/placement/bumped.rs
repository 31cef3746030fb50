//! Table of a segment's bumped keys: a seed per group numbers them, and a list has the free slot of each number.

use crate::bit_vec::BitVec;
use warpset_core::placement::{Bumped, COUNT_BITS, LOW_BITS_BITS, SAMPLE, SLICE, bumped_hash};
use warpset_core::recsplit::elias_fano::elias_fano_low_bits;

/// Keys of the largest group for which a seed is searched. Random hashes do not give larger ones.
const LARGEST: usize = 32;
/// Mark of a free number.
const FREE: u32 = u32::MAX;
/// Bumped keys per number to spare.
const SPARE: u32 = 20;
/// Most bumped keys: the high bits of their slots are fewer than `1 << COUNT_BITS`.
const MOST: u32 = 20_000;

/// Memory reused from segment to segment.
#[derive(Default)]
pub(super) struct Scratch {
    /// Hashes, in the order of groups.
    hashes: Vec<u64>,
    /// End of each group within `hashes`, before the group's own hashes are put there its start.
    ends: Vec<u32>,
    /// Groups without a seed, the next one last.
    open: Vec<u32>,
    seeds: Vec<u8>,
    /// Group of the key with each number.
    owners: Vec<u32>,
    /// Slot of each number.
    slots: Vec<u32>,
}

impl Scratch {
    /// Appends the table for the bumped keys with these low halves of hashes, in a segment of `keys` keys, to `bits`:
    /// `free` are as many free slots in ascending order. `None` if there are too many, or two keys are equal.
    pub(super) fn number(&mut self, bumped: &[u64], free: &[u32], keys: u32, bits: &mut BitVec) -> Option<()> {
        debug_assert_eq!(bumped.len(), free.len());
        let count = bumped.len() as u32;
        // Random hashes bump a few per cent, but all keys of segments that are shorter than a slice on average.
        if count > (keys / 2).clamp(2 * SLICE, MOST) {
            return None;
        }
        if count == 0 {
            bits.push(0, COUNT_BITS);
            return Some(());
        }
        let numbers = count + count / SPARE;
        let solved = group_counts(count).find(|&groups| self.solve(bumped, Bumped { numbers, groups }).is_some());
        let low_bits = elias_fano_low_bits(u64::from(keys) - 1, numbers.into());
        bits.push(numbers.into(), COUNT_BITS);
        bits.push(solved?.into(), COUNT_BITS);
        bits.push(low_bits.into(), LOW_BITS_BITS);
        let Self { seeds, owners, slots, .. } = self;
        slots.clear();
        let (mut free, mut slot) = (free.iter(), 0);
        slots.extend(owners.iter().map(|&owner| {
            if owner != FREE {
                slot = free.next().map_or(slot, |&slot| slot);
            }
            slot
        }));
        for first in (0..slots.len()).step_by(SAMPLE as usize) {
            let high = if first == 0 { 0 } else { slots[first - 1] >> low_bits };
            bits.push(first as u64 + u64::from(high), COUNT_BITS);
        }
        seeds.iter().for_each(|&seed| bits.push(seed.into(), 8));
        slots.iter().for_each(|&slot| bits.push(slot.into(), low_bits));
        let mut before = 0;
        for high in slots.iter().map(|&slot| slot >> low_bits) {
            bits.push_unary((high - before).into());
            before = high;
        }
        // The next code begins with a byte.
        bits.push(0, (bits.len() as u32).wrapping_neg() % 8);
        Some(())
    }

    /// Finds the seeds of all groups, the largest first. If no seed is free, the group takes the numbers of others,
    /// which have the fewest keys together, and these search again.
    fn solve(&mut self, bumped: &[u64], sizes: Bumped) -> Option<()> {
        let Self { hashes, ends, open, seeds, owners, .. } = self;
        let groups = sizes.groups as usize;
        ends.clear();
        ends.resize(groups, 0);
        bumped.iter().for_each(|&low| ends[sizes.group_of(bumped_hash(low)) as usize] += 1);
        open.clear();
        open.extend(0..sizes.groups);
        open.sort_by_key(|&group| ends[group as usize]);
        let mut sum = 0;
        ends.iter_mut().for_each(|end| sum += std::mem::replace(end, sum));
        hashes.clear();
        hashes.resize(bumped.len(), 0);
        for hash in bumped.iter().map(|&low| bumped_hash(low)) {
            let end = &mut ends[sizes.group_of(hash) as usize];
            hashes[*end as usize] = hash;
            *end += 1;
        }
        seeds.clear();
        seeds.resize(groups, 0);
        owners.clear();
        owners.resize(sizes.numbers as usize, FREE);
        let hashes_of = |group: u32| {
            let begin = if group == 0 { 0 } else { ends[group as usize - 1] };
            &hashes[begin as usize..ends[group as usize] as usize]
        };
        let mut moves = 0_u32;
        while let Some(group) = open.pop() {
            let hashes = hashes_of(group);
            // The search begins with another seed after each move, so that moves do not repeat.
            let first = moves.wrapping_mul(113) as u8;
            let cost = |number: u32| match owners[number as usize] {
                FREE => 0,
                owner => hashes_of(owner).len() as u32,
            };
            let (cost, seed) = cheapest(hashes, sizes, first, cost)?;
            if cost > 0 {
                moves += 1;
                if moves > sizes.groups + 50 {
                    return None;
                }
            }
            seeds[group as usize] = seed;
            for &hash in hashes {
                let number = sizes.number_of(hash, seed) as usize;
                let owner = owners[number];
                if owner != FREE {
                    for &hash in hashes_of(owner) {
                        owners[sizes.number_of(hash, seeds[owner as usize]) as usize] = FREE;
                    }
                    open.push(owner);
                }
                owners[number] = group;
            }
        }
        Some(())
    }
}

/// Returns numbers of groups to try, for `count > 0` keys: 3.5 keys per group, then fewer.
fn group_counts(count: u32) -> impl Iterator<Item = u32> {
    let least = (2 * count).div_ceil(7);
    (0..40).map(move |step| (least + least * step / 16 + step.min(5)).min((1 << COUNT_BITS) - 1))
}

/// Returns the seed with the least sum of costs of numbers, and the sum; the first one from `first` on with costs of 0.
/// `None` if there are too many keys, or two have equal numbers under all seeds.
fn cheapest(hashes: &[u64], sizes: Bumped, first: u8, cost: impl Fn(u32) -> u32) -> Option<(u32, u8)> {
    let mut numbers = [0; LARGEST];
    let numbers = numbers.get_mut(..hashes.len())?;
    let mut best = None;
    let mut least = u32::MAX;
    for seed in (0..=u8::MAX).map(|seed| seed.wrapping_add(first)) {
        let mut sum = 0;
        for (number, &hash) in numbers.iter_mut().zip(hashes) {
            *number = sizes.number_of(hash, seed);
            sum += cost(*number);
            if sum >= least {
                break;
            }
        }
        if sum < least && !(1..numbers.len()).any(|at| numbers[..at].contains(&numbers[at])) {
            (least, best) = (sum, Some((sum, seed)));
            if sum == 0 {
                break;
            }
        }
    }
    best
}
