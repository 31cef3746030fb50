//! Table of a segment's bumped keys: a seed per group of two numbers them, and a list has the free slot of each number.

use crate::bit_vec::BitVec;
use warpset_core::placement::{BUMPED_BITS, Bumped, bumped_hash};

/// Memory reused from segment to segment.
#[derive(Default)]
pub(super) struct Scratch {
    /// Hashes, in the order of groups.
    hashes: Vec<u64>,
    /// End of each group within `hashes`, before the group's own hashes are put there its start.
    ends: Vec<u32>,
    /// Groups, the largest first.
    order: Vec<u32>,
    seeds: Vec<u32>,
    /// Whether each number is taken.
    taken: Vec<bool>,
}

impl Scratch {
    /// Appends the table for the bumped keys with these low halves of hashes, in a segment of `keys` keys, to `bits`:
    /// `free` are as many free slots in ascending order. `None` if there are too many, or two keys are equal.
    pub(super) fn number(&mut self, bumped: &[u64], free: &[u32], keys: u32, bits: &mut BitVec) -> Option<()> {
        debug_assert_eq!(bumped.len(), free.len());
        let count = bumped.len() as u32;
        // Random hashes bump a few per cent, but up to all keys of a small segment.
        if count > keys / 2 + 64 {
            return None;
        }
        bits.push(count.into(), BUMPED_BITS);
        if count == 0 {
            return Some(());
        }
        // Smaller groups always have seeds, unless keys are equal.
        let all = [4, 3, 2, 1].map(|keys_per_group| Bumped::new(count, count.div_ceil(keys_per_group), keys));
        let sizes = all.into_iter().find(|&sizes| self.solve(bumped, sizes).is_some())?;
        bits.push(sizes.groups.into(), BUMPED_BITS);
        self.seeds.iter().for_each(|&seed| bits.push(seed.into(), BUMPED_BITS));
        free.iter().for_each(|&slot| bits.push(slot.into(), sizes.low_bits));
        let mut before = 0;
        for high in free.iter().map(|&slot| slot >> sizes.low_bits) {
            bits.push_unary((high - before).into());
            before = high;
        }
        // The next code begins with a byte.
        bits.push(0, (bits.len() as u32).wrapping_neg() % 8);
        Some(())
    }

    /// Finds the seeds of all groups.
    fn solve(&mut self, bumped: &[u64], sizes: Bumped) -> Option<()> {
        let Self { hashes, ends, order, seeds, taken } = self;
        let groups = sizes.groups as usize;
        ends.clear();
        ends.resize(groups, 0);
        bumped.iter().for_each(|&low| ends[sizes.group_of(bumped_hash(low)) as usize] += 1);
        order.clear();
        order.extend(0..sizes.groups);
        order.sort_by_key(|&group| std::cmp::Reverse(ends[group as usize]));
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
        taken.clear();
        taken.resize(sizes.keys as usize, false);
        for &group in &*order {
            let group = group as usize;
            let begin = if group == 0 { 0 } else { ends[group - 1] };
            let hashes = &hashes[begin as usize..ends[group] as usize];
            seeds[group] = (0..1 << BUMPED_BITS).find(|&seed| take(hashes, seed, sizes, taken))?;
        }
        Some(())
    }
}

/// Takes the numbers of these keys under a seed, if all are free.
fn take(hashes: &[u64], seed: u32, sizes: Bumped, taken: &mut [bool]) -> bool {
    for (at, &hash) in hashes.iter().enumerate() {
        let number = sizes.number_of(hash, seed) as usize;
        if std::mem::replace(&mut taken[number], true) {
            // Gives back the numbers before.
            hashes[..at].iter().for_each(|&hash| taken[sizes.number_of(hash, seed) as usize] = false);
            return false;
        }
    }
    true
}
