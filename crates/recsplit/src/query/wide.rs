//! Batches with AVX-512: as [`super::batch`], in loops over lanes of 64 bits that become vectors, loads included.
//!
//! The loops are plain Rust, so that they can be tested on any processor; what makes them fast are the features of the
//! function that they are inlined into. Lanes stand at multiples of a cache line, without which every vector would cross one
//! (that alone was half of the time). What a level's nodes have in common is not loaded, numbers are taken apart as
//! floats, and the ones of all words are selected by a loop of `pdep` between the vectors, which have none.

use super::batch::{BATCH, prefetch_tree};
use super::lanes::{Fields, LOW, Lane, MOST_STORED, Memory, Pair, multiply, pairs, whole, windows_of, words_of};
use super::{Child, MOST_TRIALS, NEAR_CODES, Walk, far_unary_part, reciprocal};
use crate::function::{RecSplit, Words};
use crate::key::Hash128;
use crate::read::{Select, scan};
use warpset_core::recsplit::Remix;
use warpset_core::recsplit::hash::{
    self, LEVEL_FIRST, LEVEL_LEAF, LEVEL_ROOT, LEVEL_SECOND, MULTIPLIER_1, MULTIPLIER_2, REGROUP,
    leaf_group_multiplier, start_seed,
};

/// The walks of a batch, each field in lanes.
struct Walks {
    low: Lane,
    value: Lane,
    fixed: Lane,
    unary: Lane,
    skip: Lane,
    keys: Lane,
}

/// [`warpset_core::recsplit::hash::trial_hash`] with the 32-bit remix.
#[inline(always)]
fn trial_hash(low: u64, start: u32, trial: u64) -> u64 {
    let sum = low.wrapping_add(trial);
    let mixed = multiply(sum >> 32 ^ sum ^ u64::from(start), u64::from(MULTIPLIER_1)) & LOW;
    multiply(mixed ^ mixed >> 15, u64::from(MULTIPLIER_2)) & LOW
}

/// `1 / radix^group` and a little more by `radix * 8 + group`, 0 for group 0.
static FRACTIONS: [f64; 256] = {
    let mut table = [0.0; 256];
    let mut radix = 2;
    while radix < 25 {
        let mut power = 1;
        let mut group = 1;
        while group < 6 {
            power *= radix as u64;
            table[radix * 8 + group] = reciprocal(power) as f64 * UNIT;
            group += 1;
        }
        radix += 1;
    }
    table
};

/// What a [`reciprocal`] counts.
const UNIT: f64 = 1.0 / (1_u64 << 63) as f64;

/// [`super::Row::trial`].
#[inline(always)]
fn trial_of(stored: u64, reciprocal: u64) -> u64 {
    whole(stored as f64 * UNIT * reciprocal as f64)
}

impl Fields {
    /// [`super::Row::rotation`].
    #[inline(always)]
    fn rotation(&self, stored: u64, group: u64) -> u64 {
        let quotient = stored as f64 * FRACTIONS[((self.radix * 8 + group) & 255) as usize];
        let fraction = quotient - whole(quotient) as f64;
        whole(fraction * self.radix as f64)
    }

    /// The group of a key of a splitting.
    #[inline(always)]
    fn group(&self, low: u64) -> u64 {
        multiply(low & 0xff, self.groups) >> 8
    }
}

/// Whether a walk is at a node of more than `keys` keys.
#[inline(always)]
fn any_above(walks: &Walks, keys: u32) -> bool {
    walks.keys.iter().fold(false, |any, &of| any | (of > u64::from(keys)))
}

impl<W: Words> RecSplit<W> {
    /// The values of at most [`BATCH`] keys, with the 32-bit remix; there are keys.
    #[inline(always)]
    pub(crate) fn get_wide(&self, hashes: &[Hash128], values: &mut [u64], select: impl Select) {
        let words = self.words.words();
        let memory = Memory { rows: &self.rows, words };
        let mut walks = self.enter_wide(memory, hashes, select);
        let levels = &self.levels;
        if any_above(&walks, levels.second_unit) {
            let (root, high) = (walks.unary, walks.keys);
            let mut codes = Lane::ZERO;
            for i in 0..BATCH {
                codes[i] = levels.higher(high[i]);
            }
            let mut level = LEVEL_ROOT;
            while any_above(&walks, levels.second_unit) {
                self.halve_wide(memory, &mut walks, &mut codes, start_seed(level), select);
                level += 1;
            }
            self.land_wide(memory, &mut walks, &high, &root, &codes, select);
        }
        self.split_some(memory, &mut walks, levels.first_unit, &levels.second, LEVEL_SECOND, select);
        self.split_some(memory, &mut walks, levels.leaf, &levels.first, LEVEL_FIRST, select);
        let numbers = self.finish_wide(memory, &mut walks, select);
        values.copy_from_slice(&numbers[..values.len()]);
    }

    /// The roots of the keys' buckets.
    #[inline(always)]
    fn enter_wide(&self, memory: Memory, hashes: &[Hash128], select: impl Select) -> Walks {
        let far = self.is_far();
        let [mut low, mut buckets]: [Lane; 2] = [Lane::ZERO; 2];
        for ((low, bucket), hash) in low.iter_mut().zip(buckets.iter_mut()).zip(hashes) {
            *low = hash.low;
            *bucket = hash::bucket_of(hash.high, self.header.layout.buckets);
        }
        let entries = self.lists.lanes(memory, &buckets, far, select);
        let [mut keys, mut fixed, mut unary]: [Lane; 3] = [Lane::ZERO; 3];
        let most = memory.rows.len() as u64;
        for i in 0..BATCH {
            // A bucket larger than the largest exists in damaged words only.
            keys[i] = if entries.keys[i] < most { entries.keys[i] } else { 0 };
            fixed[i] = self.trees.wrapping_add(entries.bits_before[i]);
            unary[i] = fixed[i].wrapping_add(memory.row::<3>(keys[i]) & LOW);
        }
        let mut value = Lane::ZERO;
        for (value, &keys) in value.iter_mut().zip(entries.keys_before.iter()) {
            *value = keys.min(self.header.keys);
        }
        if !self.header.shape.is_minimal() {
            for (value, bucket) in value.iter_mut().zip(buckets.iter().copied()) {
                *value = self.header.shape.base(*value, bucket);
            }
        }
        if far {
            for (fixed, unary) in fixed.iter().zip(unary.iter()).take(hashes.len()) {
                prefetch_tree(memory.words, *fixed, *unary);
            }
        }
        Walks { low, value, fixed, unary, skip: Lane::ZERO, keys }
    }

    /// `land` for all walks whose buckets have higher levels: `high` are the buckets' keys.
    #[inline(always)]
    fn land_wide(
        &self,
        memory: Memory,
        walks: &mut Walks,
        high: &Lane,
        root: &Lane,
        codes: &Lane,
        select: impl Select,
    ) {
        let least = u64::from(self.levels.second_unit);
        let mut ranks = Lane::ZERO;
        let mut most = 0;
        for i in 0..BATCH {
            ranks[i] = codes[i].wrapping_sub(1);
            most = most.max(if high[i] > least { codes[i] } else { 0 });
        }
        // Unary parts of this many codes are within that many words as a rule.
        let within = if most <= u64::from(NEAR_CODES) {
            windows_of(memory, root, &ranks)
        } else if most <= 160 {
            words_of::<1>(memory, root, &ranks, select)
        } else {
            words_of::<2>(memory, root, &ranks, select)
        };
        let ones = pairs(&within.words, &within.ranks, select);
        let [mut unary, mut skip]: [Lane; 2] = [Lane::ZERO; 2];
        let mut missing = [0_u8; BATCH];
        for i in 0..BATCH {
            let lowest = ones[i] & ones[i].wrapping_neg();
            let end = within.starts[i].wrapping_add(u64::from(lowest.wrapping_sub(1).count_ones())).wrapping_add(1);
            let on = high[i] > least;
            unary[i] = if on { end } else { walks.unary[i] };
            skip[i] = if on { 0 } else { walks.skip[i] };
            missing[i] = u8::from(((within.found[i] == 0) | (ones[i] == 0)) & on);
        }
        if missing != [0; BATCH] {
            for i in (0..BATCH).filter(|&i| missing[i] != 0) {
                unary[i] = scan::<8>(memory.words, root[i], ranks[i] as u32, select).wrapping_add(1);
            }
        }
        (walks.unary, walks.skip) = (unary, skip);
    }

    /// The stored numbers of all nodes of more than `least` keys, which are passed, and words 1 of all rows.
    #[inline(always)]
    fn stored_wide(&self, memory: Memory, walks: &mut Walks, least: u64, select: impl Select) -> (Lane, Lane) {
        let [mut bits, mut ranks, mut nodes]: [Lane; 3] = [Lane::ZERO; 3];
        for i in 0..BATCH {
            // With the end of the part before, whose length is between two ones.
            bits[i] = memory.bits_from(walks.unary[i]) << 1 | 1;
            ranks[i] = walks.skip[i].min(63);
            nodes[i] = memory.row::<1>(walks.keys[i]);
        }
        let ones = pairs(&bits, &ranks, select);
        // Results go to arrays that nothing else can point to, which is what lets the loop become vectors.
        let [mut stored, mut fixed_of, mut unary_of]: [Lane; 3] = [Lane::ZERO; 3];
        let mut missing = [0_u8; BATCH];
        for i in 0..BATCH {
            let golomb = Fields::of(nodes[i]).golomb & 63;
            let pair = Pair::of(ones[i]);
            let fixed = memory.bits_from(walks.fixed[i]) & ((1 << golomb) - 1);
            let on = walks.keys[i] > least;
            stored[i] = (pair.zeros << golomb | fixed) & MOST_STORED;
            fixed_of[i] = walks.fixed[i].wrapping_add(if on { golomb } else { 0 });
            unary_of[i] = walks.unary[i].wrapping_add(if on & pair.found { pair.second } else { 0 });
            missing[i] = u8::from(!pair.found & on);
        }
        (walks.fixed, walks.unary) = (fixed_of, unary_of);
        if missing != [0; BATCH] {
            for i in (0..BATCH).filter(|&i| missing[i] != 0) {
                let golomb = Fields::of(nodes[i]).golomb & 63;
                let (zeros, end) = far_unary_part(memory.words, walks.unary[i], walks.skip[i] as u32);
                let fixed = memory.bits_from(walks.fixed[i].wrapping_sub(golomb)) & ((1 << golomb) - 1);
                (stored[i], walks.unary[i]) = ((zeros << golomb | fixed) & MOST_STORED, end);
            }
        }
        (stored, nodes)
    }

    /// `halve` for all walks on the higher levels.
    #[inline(always)]
    fn halve_wide(&self, memory: Memory, walks: &mut Walks, codes: &mut Lane, start: u32, select: impl Select) {
        let least = u64::from(self.levels.second_unit);
        let second_codes = u64::from(self.levels.second_codes);
        let (stored, nodes) = self.stored_wide(memory, walks, least, select);
        let [mut value, mut fixed, mut skip, mut keys_of, mut codes_of]: [Lane; 5] = [Lane::ZERO; 5];
        for i in 0..BATCH {
            let keys = walks.keys[i];
            let row = Fields::of(nodes[i]);
            let trial = stored[i] >> (row.groups.wrapping_sub(1) & 63);
            let mirror = 0_u64.wrapping_sub((stored[i] << 1 >> row.group(walks.low[i])) & 1) & LOW;
            let right = trial_hash(walks.low[i], start, trial) ^ mirror >= row.scale;
            let on = keys > least;
            let right_of = |x: u64| if right & on { x } else { 0 };
            let (space, subtree) = (memory.row::<2>(keys), memory.row::<3>(keys));
            let (unit, child_codes) = (subtree >> 32 & 0xffff, subtree >> 48);
            value[i] = walks.value[i].wrapping_add(right_of(space >> 32));
            fixed[i] = walks.fixed[i].wrapping_add(right_of(space & LOW));
            skip[i] = if on { right_of(child_codes) } else { walks.skip[i] };
            codes_of[i] = codes[i] + right_of(multiply(child_codes + 1, second_codes));
            let next = if right { keys.wrapping_sub(unit) } else { unit };
            keys_of[i] = if on { next } else { keys };
        }
        (walks.value, walks.fixed, walks.skip, walks.keys) = (value, fixed, skip, keys_of);
        *codes = codes_of;
    }

    /// `split` for all walks whose nodes have more than `least` keys: one by one if they are few.
    #[inline(always)]
    fn split_some(&self, memory: Memory, walks: &mut Walks, least: u32, of: &Child, level: u32, select: impl Select) {
        /// Walks that take as long one by one as all together.
        const FEW: u32 = 8;
        let above = |keys: &u64| u64::from(*keys > u64::from(least));
        if walks.keys.iter().map(above).sum::<u64>() > u64::from(FEW) {
            return self.split_wide(memory, walks, least, of, level, select);
        }
        let mut on = walks.keys.iter().enumerate().fold(0_u64, |on, (i, keys)| on | above(keys) << i);
        while on != 0 {
            let i = on.trailing_zeros() as usize % BATCH;
            on &= on - 1;
            let mut walk = Walk {
                low: walks.low[i],
                value: walks.value[i],
                fixed: walks.fixed[i],
                unary: walks.unary[i],
                skip: walks.skip[i] as u32,
                keys: walks.keys[i] as u32,
            };
            self.split(memory.words, &mut walk, level, Remix::Bits32, select);
            (walks.value[i], walks.fixed[i], walks.unary[i]) = (walk.value, walk.fixed, walk.unary);
            (walks.skip[i], walks.keys[i]) = (walk.skip.into(), walk.keys.into());
        }
    }

    /// `split` for all walks whose nodes have more than `least` keys.
    #[inline(always)]
    fn split_wide(&self, memory: Memory, walks: &mut Walks, least: u32, of: &Child, level: u32, select: impl Select) {
        let (least, start) = (u64::from(least), start_seed(level));
        // The same for all nodes of the level.
        let child_values = u64::from(of.values);
        let (unit, child_fixed, child_codes) = (least, u64::from(of.fixed_bits), u64::from(of.codes));
        let (stored, nodes) = self.stored_wide(memory, walks, least, select);
        let [mut value, mut fixed, mut skip, mut keys_of]: [Lane; 4] = [Lane::ZERO; 4];
        for i in 0..BATCH {
            let keys = walks.keys[i];
            let row = Fields::of(nodes[i]);
            let rotation = row.rotation(stored[i], row.group(walks.low[i]));
            let hash = trial_hash(walks.low[i], start, trial_of(stored[i], memory.row::<0>(keys)));
            let half = u64::from(hash ^ (0_u64.wrapping_sub(rotation) & LOW) >= row.scale);
            let part = multiply(hash >> 16, row.scale & 0xffff) >> 28;
            let turned = part + rotation;
            let turned = turned.min(turned.wrapping_sub(row.radix));
            let part = if part < row.radix { turned } else { part };
            let child = if row.last == 1 { half } else { part };
            let on = keys > least;
            let child_of = |x: u64| if on { multiply(child, x) } else { 0 };
            value[i] = walks.value[i].wrapping_add(child_of(child_values));
            fixed[i] = walks.fixed[i].wrapping_add(child_of(child_fixed));
            skip[i] = if on { multiply(child, child_codes) } else { walks.skip[i] };
            let next = if child == row.last { keys.wrapping_sub(multiply(child, unit)) } else { unit };
            keys_of[i] = if on { next } else { keys };
        }
        (walks.value, walks.fixed, walks.skip, walks.keys) = (value, fixed, skip, keys_of);
    }

    /// `finish` for all walks.
    #[inline(always)]
    fn finish_wide(&self, memory: Memory, walks: &mut Walks, select: impl Select) -> Lane {
        let (stored, nodes) = self.stored_wide(memory, walks, 0, select);
        let mut numbers = Lane::ZERO;
        for i in 0..BATCH {
            let row = Fields::of(nodes[i]);
            let low = walks.low[i];
            let trial = trial_of(stored[i], memory.row::<0>(walks.keys[i]));
            // `leaf_group_multiplier` in two steps.
            let regroup = (trial & MOST_TRIALS) / REGROUP;
            let multiplier = multiply(u64::from(leaf_group_multiplier(0)), 2 * regroup + 1);
            let group = multiply((multiply(low, multiplier) & LOW) >> 24, row.groups) >> 8;
            let hash = trial_hash(low, start_seed(LEVEL_LEAF), trial);
            // The positions stand in place of the scale.
            let position = (multiply(hash >> 16, row.scale) >> 16) + row.rotation(stored[i], group);
            let turned = position.wrapping_sub(row.scale);
            let position = if position >= row.scale { turned } else { position };
            numbers[i] = walks.value[i].wrapping_add(position).min(self.values - 1);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::Portable;
    use crate::{Builder, Key, Method};

    #[test]
    fn lanes_agree_with_single_look_ups() {
        for (leaf, bucket, method) in [
            (5, 5, Method::Rotation),
            (8, 100, Method::BruteForce),
            (8, 2000, Method::Rotation),
            (12, 9, Method::Grouped),
            (12, 40, Method::Grouped),
            (16, 2000, Method::Grouped),
            (20, 300, Method::Grouped),
            (3, 2000, Method::Grouped),
        ] {
            let keys: Vec<u64> = (0..3000).collect();
            let builder = Builder::new().leaf_size(leaf).bucket_size(bucket).method(method);
            for builder in [builder.clone(), builder.clone().load_factor(0.8), builder.keys_per_value(leaf)] {
                agrees_with_single_look_ups(&builder.build(&keys).unwrap(), &keys);
            }
        }
        // So large that all is prefetched.
        let keys: Vec<u64> = (0..1_500_000).collect();
        let function = Builder::new().leaf_size(5).bucket_size(5).build(&keys).unwrap();
        assert!(function.is_far());
        agrees_with_single_look_ups(&function, &keys[700_000..750_001]);
    }

    /// Every way of asking gives the same: with the instructions that there are, and without.
    fn agrees_with_single_look_ups(function: &RecSplit, keys: &[u64]) {
        let expected: Vec<u64> = keys.iter().map(|key| function.get(key)).collect();
        let mut values = vec![u64::MAX; keys.len()];
        function.get_many(keys, &mut values);
        assert_eq!(values, expected, "{function:?}");
        for (keys, expected) in keys.chunks(BATCH).zip(expected.chunks(BATCH)) {
            let hashes: Vec<Hash128> = keys.iter().map(|key| key.hash128(function.seed())).collect();
            let mut values = vec![u64::MAX; keys.len()];
            function.get_wide(&hashes, &mut values, Portable);
            assert_eq!(values, expected, "{function:?}");
            values.fill(u64::MAX);
            function.get_batch(&hashes, &mut values, Remix::Bits32, Portable);
            assert_eq!(values, expected, "{function:?}");
            for (hash, expected) in hashes.iter().zip(expected) {
                assert_eq!(function.get_one(*hash, Remix::Bits32, Portable), *expected, "{function:?}");
            }
        }
    }

    #[test]
    fn floats_take_numbers_apart() {
        for radix in 2..=24_u64 {
            for groups in 1..=6_u32 {
                let candidates = radix.pow(groups - 1);
                let fields = Fields { scale: 0, golomb: 0, last: 0, groups: u64::from(groups), radix };
                let largest = MOST_STORED / candidates;
                for trial in [0, 1, 2, 77, 12_345, largest / 3, largest - 1] {
                    for index in
                        [0, 1, candidates / 2, candidates / radix, candidates.saturating_sub(2), candidates - 1]
                    {
                        let stored = trial * candidates + index % candidates;
                        assert_eq!(trial_of(stored, reciprocal(candidates)), trial, "{stored} / {candidates}");
                        for group in 0..groups {
                            let digit = if group == 0 { 0 } else { index % candidates / radix.pow(group - 1) % radix };
                            assert_eq!(fields.rotation(stored, group.into()), digit, "{stored} {radix} {group}");
                        }
                    }
                }
            }
        }
    }
}
