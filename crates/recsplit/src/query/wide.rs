//! Batches with AVX-512: as [`super::batch`], in loops over lanes of 64 bits that become vectors, loads included.
//!
//! The loops are plain Rust, so that they can be tested on any processor; what makes them fast are the features of the
//! function that they are inlined into. There is no `pdep` for vectors: ones are selected by halves and population counts.

use super::batch::BATCH;
use super::lanes::{Fields, LOW, Lane, Memory, multiply_high, nth_one, select};
use super::{MOST_TRIALS, POWERS, far_unary_part};
use crate::function::{RecSplit, Words};
use crate::key::Hash128;
use crate::read::{Portable, prefetch, scan};
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
    let folded = (sum >> 32 ^ sum ^ u64::from(start)) & LOW;
    let mixed = (folded * u64::from(MULTIPLIER_1)) & LOW;
    let mixed = mixed ^ mixed >> 15;
    (mixed * u64::from(MULTIPLIER_2)) & LOW
}

impl Fields {
    /// [`Row::rotation`].
    #[inline(always)]
    fn rotation(&self, stored: u64, group: u64) -> u64 {
        let fraction = stored.wrapping_mul(POWERS[((self.radix * 8 + group) & 255) as usize]);
        ((fraction >> 32) * self.radix + (((fraction & LOW) * self.radix) >> 32)) >> 32
    }

    /// The group of a key of a splitting.
    #[inline(always)]
    fn group(&self, low: u64) -> u64 {
        ((low & 0xff) * self.groups) >> 8
    }
}

impl<W: Words> RecSplit<W> {
    /// The values of at most [`BATCH`] keys, with the 32-bit remix; there are keys.
    #[inline(always)]
    pub(crate) fn get_wide(&self, hashes: &[Hash128], values: &mut [u64]) {
        let words = self.words.words();
        let memory = Memory { rows: &self.rows, words };
        let mut walks = self.enter_wide(memory, hashes);
        let levels = &self.levels;
        let above = |walks: &Walks, keys: u32| walks.keys.iter().any(|&of| of > u64::from(keys));
        if above(&walks, levels.second_unit) {
            let (root, high) = (walks.unary, walks.keys);
            let mut codes = walks.keys.map(|keys| keys.saturating_sub(1) / u64::from(levels.second_unit));
            let mut level = LEVEL_ROOT;
            while above(&walks, levels.second_unit) {
                self.halve_wide(memory, &mut walks, &mut codes, start_seed(level));
                level += 1;
            }
            self.land_wide(memory, &mut walks, &high, &root, &codes);
        }
        for (keys, level) in [(levels.first_unit, LEVEL_SECOND), (levels.leaf, LEVEL_FIRST)] {
            if above(&walks, keys) {
                self.split_wide(memory, &mut walks, u64::from(keys), start_seed(level));
            }
        }
        let numbers = self.finish_wide(memory, &mut walks);
        values.copy_from_slice(&numbers[..values.len()]);
    }

    /// The roots of the keys' buckets.
    #[inline(always)]
    fn enter_wide(&self, memory: Memory, hashes: &[Hash128]) -> Walks {
        /// Words up to which a function stays in caches that are near enough.
        const NEAR: usize = 1 << 16;
        let far = memory.words.len() > NEAR;
        let [mut low, mut buckets]: [Lane; 2] = [[0; BATCH]; 2];
        for ((low, bucket), hash) in low.iter_mut().zip(&mut buckets).zip(hashes) {
            *low = hash.low;
            *bucket = hash::bucket_of(hash.high, self.header.layout.buckets);
        }
        let entries = self.lists.lanes(memory, &buckets, far);
        let [mut keys, mut fixed, mut unary]: [Lane; 3] = [[0; BATCH]; 3];
        let most = memory.rows.len() as u64;
        for i in 0..BATCH {
            // A bucket larger than the largest exists in damaged words only.
            keys[i] = if entries.keys[i] < most { entries.keys[i] } else { 0 };
            fixed[i] = self.trees.wrapping_add(entries.bits_before[i]);
            unary[i] = fixed[i].wrapping_add(memory.row(keys[i]).fixed_bits);
        }
        let mut value = entries.keys_before.map(|keys| keys.min(self.header.keys));
        if !self.header.shape.is_minimal() {
            for (value, bucket) in value.iter_mut().zip(buckets) {
                *value = self.header.shape.base(*value, bucket);
            }
        }
        if far {
            for (fixed, unary) in fixed.iter().zip(&unary).take(hashes.len()) {
                // All of the fixed parts and most of the unary ones.
                for line in 0..=unary.wrapping_sub(*fixed) / 352 {
                    prefetch(memory.words, fixed / 64 + line * 8);
                }
            }
        }
        Walks { low, value, fixed, unary, skip: [0; BATCH], keys }
    }

    /// `land` for all walks whose buckets have higher levels: `high` are the buckets' keys.
    #[inline(always)]
    fn land_wide(&self, memory: Memory, walks: &mut Walks, high: &Lane, root: &Lane, codes: &Lane) {
        let least = u64::from(self.levels.second_unit);
        let [mut unary, mut skip]: [Lane; 2] = [[0; BATCH]; 2];
        let mut missing = [0_u8; BATCH];
        for i in 0..BATCH {
            let (last, found) = nth_one::<8>(memory, root[i], codes[i].wrapping_sub(1));
            let on = high[i] > least;
            unary[i] = if on { last.wrapping_add(1) } else { walks.unary[i] };
            skip[i] = if on { 0 } else { walks.skip[i] };
            missing[i] = u8::from(!found & on);
        }
        for i in (0..BATCH).filter(|&i| missing[i] != 0) {
            unary[i] = scan::<1>(memory.words, root[i], (codes[i] as u32).wrapping_sub(1), Portable).wrapping_add(1);
        }
        (walks.unary, walks.skip) = (unary, skip);
    }

    /// The stored numbers of all nodes of more than `least` keys, which are passed.
    #[inline(always)]
    fn stored_wide(&self, memory: Memory, walks: &mut Walks, least: u64) -> Lane {
        // Results go to arrays that nothing else can point to, which is what lets the loop become vectors.
        let [mut stored, mut fixed_of, mut unary_of]: [Lane; 3] = [[0; BATCH]; 3];
        let mut missing = [0_u8; BATCH];
        for i in 0..BATCH {
            let golomb = memory.row(walks.keys[i]).golomb;
            let bits = memory.bits_from(walks.unary[i]) << 1 | 1;
            let found = walks.skip[i] + 1 < u64::from(bits.count_ones());
            let begin = select(bits, walks.skip[i]);
            let rest = bits >> (begin & 63) >> 1;
            let zeros = u64::from((!rest & rest.wrapping_sub(1)).count_ones());
            let on = walks.keys[i] > least;
            missing[i] = u8::from(!found & on);
            let fixed = memory.bits_from(walks.fixed[i]) & ((1 << (golomb & 63)) - 1);
            stored[i] = zeros << (golomb & 63) | fixed;
            fixed_of[i] = walks.fixed[i].wrapping_add(if on { golomb } else { 0 });
            unary_of[i] = walks.unary[i].wrapping_add(if on & found { begin + zeros + 1 } else { 0 });
        }
        (walks.fixed, walks.unary) = (fixed_of, unary_of);
        if missing != [0; BATCH] {
            for i in (0..BATCH).filter(|&i| missing[i] != 0) {
                let golomb = memory.row(walks.keys[i]).golomb;
                let (zeros, end) = far_unary_part(memory.words, walks.unary[i], walks.skip[i] as u32);
                let fixed = memory.bits_from(walks.fixed[i].wrapping_sub(golomb)) & ((1 << golomb) - 1);
                (stored[i], walks.unary[i]) = (zeros << golomb | fixed, end);
            }
        }
        stored
    }

    /// `halve` for all walks on the higher levels.
    #[inline(always)]
    fn halve_wide(&self, memory: Memory, walks: &mut Walks, codes: &mut Lane, start: u32) {
        let least = u64::from(self.levels.second_unit);
        let second_codes = u64::from(self.levels.second_codes);
        let stored = self.stored_wide(memory, walks, least);
        let [mut value, mut fixed, mut skip, mut keys_of, mut codes_of]: [Lane; 5] = [[0; BATCH]; 5];
        for i in 0..BATCH {
            let keys = walks.keys[i];
            let row = memory.row(keys);
            let trial = stored[i] >> (row.groups.wrapping_sub(1) & 63);
            let mirror = 0_u64.wrapping_sub((stored[i] << 1 >> row.group(walks.low[i])) & 1) & LOW;
            let right = trial_hash(walks.low[i], start, trial) ^ mirror >= row.scale;
            let on = keys > least;
            let right_of = |x: u64| if right & on { x } else { 0 };
            value[i] = walks.value[i].wrapping_add(right_of(row.values));
            fixed[i] = walks.fixed[i].wrapping_add(right_of(row.child_fixed_bits));
            skip[i] = if on { right_of(row.child_codes) } else { walks.skip[i] };
            codes_of[i] = codes[i] + right_of((row.child_codes + 1) * second_codes);
            let next = if right { keys.wrapping_sub(row.unit) } else { row.unit };
            keys_of[i] = if on { next } else { keys };
        }
        (walks.value, walks.fixed, walks.skip, walks.keys) = (value, fixed, skip, keys_of);
        *codes = codes_of;
    }

    /// `split` for all walks whose nodes have more than `least` keys.
    #[inline(always)]
    fn split_wide(&self, memory: Memory, walks: &mut Walks, least: u64, start: u32) {
        let stored = self.stored_wide(memory, walks, least);
        let [mut value, mut fixed, mut skip, mut keys_of]: [Lane; 4] = [[0; BATCH]; 4];
        for i in 0..BATCH {
            let keys = walks.keys[i];
            let row = memory.row(keys);
            let rotation = row.rotation(stored[i], row.group(walks.low[i]));
            let hash = trial_hash(walks.low[i], start, multiply_high(stored[i] << 1, row.reciprocal));
            let half = u64::from(hash ^ (0_u64.wrapping_sub(rotation) & LOW) >= row.scale);
            let part = ((hash >> 16) * (row.scale & 0xffff)) >> 28;
            let turned = part + rotation;
            let turned = if turned >= row.radix { turned.wrapping_sub(row.radix) } else { turned };
            let part = if part < row.radix { turned } else { part };
            let child = if row.last == 1 { half } else { part };
            let on = keys > least;
            let child_of = |x: u64| if on { child * x } else { 0 };
            value[i] = walks.value[i].wrapping_add(child_of(row.values));
            fixed[i] = walks.fixed[i].wrapping_add(child_of(row.child_fixed_bits));
            skip[i] = if on { child * row.child_codes } else { walks.skip[i] };
            let next = if child == row.last { keys.wrapping_sub(child * row.unit) } else { row.unit };
            keys_of[i] = if on { next } else { keys };
        }
        (walks.value, walks.fixed, walks.skip, walks.keys) = (value, fixed, skip, keys_of);
    }

    /// `finish` for all walks.
    #[inline(always)]
    fn finish_wide(&self, memory: Memory, walks: &mut Walks) -> Lane {
        let stored = self.stored_wide(memory, walks, 0);
        let mut numbers = [0; BATCH];
        for i in 0..BATCH {
            let row = memory.row(walks.keys[i]);
            let low = walks.low[i];
            let trial = multiply_high(stored[i] << 1, row.reciprocal);
            // `leaf_group_multiplier` in two steps.
            let regroup = (trial & MOST_TRIALS) / REGROUP;
            let multiplier = (u64::from(leaf_group_multiplier(0)) * (2 * regroup + 1)) & LOW;
            let group = (((((low & LOW) * multiplier) & LOW) >> 24) * row.groups) >> 8;
            let hash = trial_hash(low, start_seed(LEVEL_LEAF), trial);
            let position = (((hash >> 16) * row.values) >> 16) + row.rotation(stored[i], group);
            let turned = position.wrapping_sub(row.values);
            let position = if position >= row.values { turned } else { position };
            numbers[i] = walks.value[i].wrapping_add(position).min(self.values - 1);
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Key, Method};

    #[test]
    fn lanes_agree_with_single_look_ups() {
        for (leaf, bucket, method) in [
            (5, 5, Method::Rotation),
            (8, 100, Method::BruteForce),
            (8, 2000, Method::Rotation),
            (12, 9, Method::Grouped),
            (16, 2000, Method::Grouped),
            (20, 300, Method::Grouped),
            (3, 2000, Method::Grouped),
        ] {
            let keys: Vec<u64> = (0..3000).collect();
            let builder = Builder::new().leaf_size(leaf).bucket_size(bucket).method(method);
            for builder in [builder.clone(), builder.clone().load_factor(0.8), builder.keys_per_value(leaf)] {
                let function = builder.build(&keys).unwrap();
                // With the instructions that there are.
                let mut values = vec![u64::MAX; keys.len()];
                function.get_many(&keys, &mut values);
                assert!(keys.iter().zip(values).all(|(key, value)| function.get(key) == value), "{leaf} {bucket}");
                for keys in keys.chunks(BATCH) {
                    let hashes: Vec<Hash128> = keys.iter().map(|key| key.hash128(function.seed())).collect();
                    let mut values = vec![u64::MAX; keys.len()];
                    function.get_wide(&hashes, &mut values);
                    assert!(keys.iter().zip(values).all(|(key, value)| function.get(key) == value), "{leaf} {bucket}");
                }
            }
        }
    }
}
