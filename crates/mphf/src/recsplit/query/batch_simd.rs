//! Batches with AVX-512 or AVX2: like [`super::batch_scalar`], in vectors of eight keys, loads included.
//!
//! The code is generic over the vectors, so that it can be tested on any processor. Between stages numbers are in
//! arrays aligned to cache lines; otherwise every vector would cross one (that alone was half of the time). Properties
//! that a level's nodes share are not loaded, numbers are taken apart as floats, and a loop of `pdep` between the
//! vectors selects the ones of all words, since vectors have no such instruction.

use super::Lookup;
use super::batch_scalar::prefetch_tree;
use super::node_rows_simd::{Fields, MOST_STORED, Memory, Numbers};
use crate::batch::BATCH;
use crate::batch::reads::{Keys, LOW, Pair, Starts, Within, keys_of, next_key, windows_of, words_of};
use crate::batch::u64_vector::{LANES, Lanes, Mask, VECTORS, Vector, Vectors};
use crate::windows::{bits_from, far_unary_part, scan};
use warpset_base::key::Hash128;
use warpset_core::recsplit::Remix;
use warpset_core::recsplit::hash::{
    LEVEL_FIRST, LEVEL_LEAF, LEVEL_ROOT, LEVEL_SECOND, MULTIPLIER_1, MULTIPLIER_2, REGROUP, bucket_of,
    leaf_group_multiplier, start_seed,
};
use warpset_core::recsplit::lookup::row::Child;
use warpset_core::recsplit::lookup::{Function, MOST_TRIALS, NEAR_CODES, Walk};

/// Walks of a batch, each field in lanes.
struct Walks {
    low: Lanes,
    value: Lanes,
    fixed: Lanes,
    unary: Lanes,
    skip: Lanes,
    keys: Lanes,
}

/// Computes [`warpset_core::recsplit::hash::trial_hash`] with the 32-bit remix, in the low half.
#[inline(always)]
fn trial_hash<T: Vectors>(vectors: T, low: T::V, start: u32, trial: T::V) -> T::V {
    let sum = low + trial;
    let folded = sum.shr::<32>() ^ sum ^ vectors.splat(start.into());
    let mixed = folded.times(vectors.splat(MULTIPLIER_1.into()));
    let mixed = mixed ^ (mixed & vectors.splat(LOW)).shr::<15>();
    mixed.times(vectors.splat(MULTIPLIER_2.into())) & vectors.splat(LOW)
}

/// The most unary parts to skip by clearing their ones. A mask: all combinations of its bits are at most the number
/// itself.
const MOST_CLEARED: u64 = 3;

/// Whether a walk is at a node of more than `keys` keys.
#[inline(always)]
fn any_above<T: Vectors>(vectors: T, walks: &Walks, keys: u32) -> bool {
    let least = vectors.splat(keys.into());
    let mut any = 0;
    for v in 0..VECTORS {
        any |= least.below(walks.keys.get(vectors, v)).bits();
    }
    any != 0
}

impl Lookup<'_> {
    /// Looks up at most [`BATCH`] keys, with the 32-bit remix; the function has keys.
    #[inline(always)]
    pub(super) fn get_batch_simd<T: Vectors>(self, hashes: &[Hash128], values: &mut [u64], vectors: T) {
        let memory = Memory::new(&self.parameters.tables.rows, self.words, vectors);
        let mut filled;
        let hashes = match hashes.first_chunk() {
            Some(all) => all,
            None => {
                filled = [Hash128::default(); BATCH];
                filled[..hashes.len()].copy_from_slice(hashes);
                &filled
            }
        };
        let mut walks = self.enter_simd(memory, hashes);
        let levels = &self.parameters.tables.plan.levels;
        if any_above(vectors, &walks, levels.second_unit) {
            let (root, high) = (walks.unary, walks.keys);
            let mut codes = Lanes::ZERO;
            let (one, reciprocal) = (vectors.splat(1), vectors.splat(levels.second_reciprocal.into()));
            for v in 0..VECTORS {
                // [`super::Levels::higher`]; the result for no keys is not used.
                codes.set(v, (high.get(vectors, v) - one).times(reciprocal).shr::<32>());
            }
            let mut level = LEVEL_ROOT;
            while any_above(vectors, &walks, levels.second_unit) {
                self.halve_simd(memory, &mut walks, &mut codes, level);
                level += 1;
            }
            self.land_simd(memory, &mut walks, &high, &root, &codes);
        }
        self.split_some(memory, &mut walks, levels.first_unit, &levels.second, LEVEL_SECOND);
        self.split_some(memory, &mut walks, levels.leaf, &levels.first, LEVEL_FIRST);
        let numbers = self.finish_simd(memory, &mut walks);
        values.copy_from_slice(&numbers[..values.len()]);
    }

    /// Returns the roots of the keys' buckets.
    #[inline(always)]
    fn enter_simd<T: Vectors>(self, memory: Memory<T>, hashes: &[Hash128; BATCH]) -> Walks {
        let vectors = memory.vectors;
        let far = self.is_far();
        let low_half = vectors.splat(LOW);
        let small = self.parameters.lists.is_small(self.parameters.header.keys);
        let all_buckets = self.parameters.header.layout.buckets;
        let [mut low, mut buckets]: [Lanes; 2] = [Lanes::ZERO; 2];
        for (v, hashes) in hashes.as_chunks().0.iter().enumerate() {
            let (high, low_of) = vectors.hashes(hashes);
            let by = vectors.splat(all_buckets);
            low.set(v, low_of);
            // `bucket_of` for fewer than 2^32 buckets.
            buckets.set(v, (high.shr::<32>().times(by) + high.times(by).shr::<32>()).shr::<32>());
        }
        if !small {
            for (bucket, hash) in buckets.iter_mut().zip(hashes) {
                *bucket = bucket_of(hash.high, all_buckets);
            }
        }
        let entries = self.parameters.lists.get_batch(memory.words, &buckets, small, far);
        let [mut value, mut keys, mut fixed, mut unary]: [Lanes; 4] = [Lanes::ZERO; 4];
        let (rows, all_keys) =
            (vectors.splat(self.parameters.tables.rows.len() as u64), vectors.splat(self.parameters.header.keys));
        for v in 0..VECTORS {
            // Only damaged words have a bucket that is larger than the largest.
            let of = entries.keys.get(vectors, v);
            let of = of.only(of.below(rows));
            let before = entries.keys_before.get(vectors, v);
            let begin = entries.bits_before.get(vectors, v) + vectors.splat(self.parameters.tables.plan.trees);
            keys.set(v, of);
            value.set(v, before.or_else(before.below(all_keys), all_keys));
            fixed.set(v, begin);
            unary.set(v, begin + (memory.row::<3>(of) & low_half));
        }
        if !self.parameters.header.code.shape.is_minimal() {
            for (value, bucket) in value.iter_mut().zip(buckets.iter().copied()) {
                *value = self.parameters.header.code.shape.base(*value, bucket);
            }
        }
        if far {
            for (fixed, unary) in fixed.iter().zip(unary.iter()) {
                prefetch_tree(memory.words.words, *fixed, *unary);
            }
        }
        Walks { low, value, fixed, unary, skip: Lanes::ZERO, keys }
    }

    /// Runs `land` for all walks in buckets with higher levels; `high` are the buckets' keys.
    #[inline(always)]
    fn land_simd<T: Vectors>(self, memory: Memory<T>, walks: &mut Walks, high: &Lanes, root: &Lanes, codes: &Lanes) {
        let vectors = memory.vectors;
        let (one, zero) = (vectors.splat(1), vectors.splat(0));
        let least = vectors.splat(self.parameters.tables.plan.levels.second_unit.into());
        let mut ranks = Lanes::ZERO;
        let mut most = [0; LANES];
        for v in 0..VECTORS {
            let of = codes.get(vectors, v);
            let of = of.only(least.below(high.get(vectors, v)));
            ranks.set(v, of - one);
            let so_far = vectors.load(&most);
            of.or_else(so_far.below(of), so_far).store(&mut most);
        }
        // Unary parts of this many codes are usually within that many words.
        let (mut starts, mut within) = (Starts::NOWHERE, Within::NOTHING);
        match most.into_iter().fold(0, u64::max) {
            most if most <= u64::from(NEAR_CODES) => windows_of(memory.words, root, &ranks, &mut within),
            ..=160 => {
                starts.set::<1, _>(memory.words, root, &ranks);
                words_of::<1, _>(memory.words, &starts, &mut within);
            }
            _ => {
                starts.set::<2, _>(memory.words, root, &ranks);
                words_of::<2, _>(memory.words, &starts, &mut within);
            }
        }
        let ones = within.ones(vectors);
        let mut missing = within.missing;
        let mut landed: Keys = 0;
        for v in 0..VECTORS {
            let on = least.below(high.get(vectors, v));
            let ones = ones.get(vectors, v);
            let end = within.starts.get(vectors, v) + ones.trailing_zeros(one) + one;
            walks.unary.set(v, end.or_else(on, walks.unary.get(vectors, v)));
            walks.skip.set(v, zero.or_else(on, walks.skip.get(vectors, v)));
            missing |= keys_of(ones.equals(zero), v);
            landed |= keys_of(on, v);
        }
        missing &= landed;
        while let Some(i) = next_key(&mut missing) {
            walks.unary[i] = scan::<8>(memory.words.words, root[i], ranks[i] as u32, vectors.select()).wrapping_add(1);
        }
    }

    /// Returns the stored numbers of all nodes of more than `least` keys, and moves the walks past them; `golomb` are
    /// the bits of fixed parts.
    #[inline(always)]
    fn stored_simd<T: Vectors>(self, memory: Memory<T>, walks: &mut Walks, least: u32, golomb: &Lanes) -> Lanes {
        let vectors = memory.vectors;
        let (zero, one, most_rank) = (vectors.splat(0), vectors.splat(1), vectors.splat(63));
        let least = vectors.splat(least.into());
        let mut bits = Lanes::ZERO;
        let mut skips = zero;
        for v in 0..VECTORS {
            // Includes the end of the preceding part: the length is the distance between two ones.
            bits.set(v, memory.words.bits_from(walks.unary.get(vectors, v)).shl::<1>() | one);
            skips = skips | walks.skip.get(vectors, v);
        }
        if skips.below(vectors.splat(MOST_CLEARED + 1)).bits() == 0xff {
            // Few parts to skip, or none below the higher levels: their ones are cleared.
            let mut cleared = zero;
            while cleared.below(skips).bits() != 0 {
                for v in 0..VECTORS {
                    let (ones, on) = (bits.get(vectors, v), cleared.below(walks.skip.get(vectors, v)));
                    bits.set(v, (ones & (ones - one)).or_else(on, ones));
                }
                cleared = cleared + one;
            }
        } else {
            let mut ranks = Lanes::ZERO;
            for v in 0..VECTORS {
                let skip = walks.skip.get(vectors, v);
                ranks.set(v, skip.or_else(skip.below(most_rank), most_rank));
            }
            let mut pairs = Lanes::ZERO;
            vectors.pairs(&bits, &ranks, &mut pairs);
            bits = pairs;
        }
        let mut stored = Lanes::ZERO;
        let mut missing: Keys = 0;
        for v in 0..VECTORS {
            let golomb = golomb.get(vectors, v);
            let pair = Pair::of(vectors, bits.get(vectors, v));
            let (fixed, unary) = (walks.fixed.get(vectors, v), walks.unary.get(vectors, v));
            let part = memory.words.bits_from(fixed) & (one.shl_by(golomb) - one);
            let on = least.below(walks.keys.get(vectors, v));
            stored.set(v, (pair.zeros.shl_by(golomb) | part) & vectors.splat(MOST_STORED));
            walks.fixed.set(v, fixed + golomb.only(on));
            walks.unary.set(v, unary + pair.second.only(on & !pair.missing));
            missing |= keys_of(on & pair.missing, v);
        }
        while let Some(i) = next_key(&mut missing) {
            let golomb = golomb[i];
            let (zeros, end) = far_unary_part(memory.words.words, walks.unary[i], walks.skip[i] as u32);
            let part = bits_from(memory.words.words, walks.fixed[i].wrapping_sub(golomb)) & ((1 << golomb) - 1);
            (stored[i], walks.unary[i]) = ((zeros << golomb | part) & MOST_STORED, end);
        }
        stored
    }

    /// Returns words 1 of the rows of all nodes, and the bits of fixed parts from them.
    #[inline(always)]
    fn nodes_simd<T: Vectors>(self, memory: Memory<T>, walks: &Walks) -> (Lanes, Lanes) {
        let vectors = memory.vectors;
        let [mut nodes, mut golomb]: [Lanes; 2] = [Lanes::ZERO; 2];
        for v in 0..VECTORS {
            let node = memory.row::<1>(walks.keys.get(vectors, v));
            nodes.set(v, node);
            golomb.set(v, node.shr::<32>() & vectors.splat(63));
        }
        (nodes, golomb)
    }

    /// Runs `halve` for all walks on the higher levels.
    #[inline(always)]
    fn halve_simd<T: Vectors>(self, memory: Memory<T>, walks: &mut Walks, codes: &mut Lanes, level: u32) {
        let vectors = memory.vectors;
        let (one, zero, low_half) = (vectors.splat(1), vectors.splat(0), vectors.splat(LOW));
        let second_codes = vectors.splat(self.parameters.tables.plan.levels.second_codes.into());
        let (nodes, golomb) = self.nodes_simd(memory, walks);
        let stored = self.stored_simd(memory, walks, self.parameters.tables.plan.levels.second_unit, &golomb);
        let least = vectors.splat(self.parameters.tables.plan.levels.second_unit.into());
        for v in 0..VECTORS {
            let keys = walks.keys.get(vectors, v);
            let low = walks.low.get(vectors, v);
            let row = Fields::of(vectors, nodes.get(vectors, v));
            let stored = stored.get(vectors, v);
            let trial = stored.shr_by(row.groups - one);
            let group = (low & vectors.splat(0xff)).times(row.groups).shr::<8>();
            let mirror = (zero - (stored.shl::<1>().shr_by(group) & one)) & low_half;
            let hash = trial_hash(vectors, low, start_seed(level), trial) ^ mirror;
            let on = least.below(keys);
            let right = on & !hash.below(row.scale);
            let (space, subtree) = (memory.row::<2>(keys), memory.row::<3>(keys));
            let unit = subtree.shr::<32>() & vectors.splat(0xffff);
            let child_codes = subtree.shr::<48>();
            walks.value.set(v, walks.value.get(vectors, v) + space.shr::<32>().only(right));
            walks.fixed.set(v, walks.fixed.get(vectors, v) + (space & low_half).only(right));
            walks.skip.set(v, child_codes.only(right).or_else(on, walks.skip.get(vectors, v)));
            codes.set(v, codes.get(vectors, v) + (child_codes + one).times(second_codes).only(right));
            walks.keys.set(v, (keys - unit).or_else(right, unit.or_else(on, keys)));
        }
    }

    /// Runs `split` for all walks at nodes of more than `least` keys: one by one if they are few.
    #[inline(always)]
    fn split_some<T: Vectors>(self, memory: Memory<T>, walks: &mut Walks, least: u32, of: &Child, level: u32) {
        /// The most walks that take no longer one by one than all together.
        const FEW: u32 = 8;
        let vectors = memory.vectors;
        let above = vectors.splat(least.into());
        let mut on: Keys = 0;
        for v in 0..VECTORS {
            on |= keys_of(above.below(walks.keys.get(vectors, v)), v);
        }
        if on.count_ones() > FEW {
            return self.split_simd(memory, walks, least, of, level);
        }
        while let Some(i) = next_key(&mut on) {
            let mut walk = Walk {
                low: walks.low[i],
                value: walks.value[i],
                fixed: walks.fixed[i],
                unary: walks.unary[i],
                skip: walks.skip[i] as u32,
                keys: walks.keys[i] as u32,
            };
            self.split(&mut walk, level, Remix::Bits32, vectors.select());
            (walks.value[i], walks.fixed[i], walks.unary[i]) = (walk.value, walk.fixed, walk.unary);
            (walks.skip[i], walks.keys[i]) = (walk.skip.into(), walk.keys.into());
        }
    }

    /// Runs `split` for all walks at nodes of more than `least` keys.
    #[inline(always)]
    fn split_simd<T: Vectors>(self, memory: Memory<T>, walks: &mut Walks, least: u32, of: &Child, level: u32) {
        let vectors = memory.vectors;
        let (one, zero, low_half) = (vectors.splat(1), vectors.splat(0), vectors.splat(LOW));
        // Constant for all nodes of the level.
        let child_values = vectors.splat(of.values.into());
        let child_fixed = vectors.splat(of.fixed_bits.into());
        let child_codes = vectors.splat(of.codes.into());
        let (nodes, golomb) = self.nodes_simd(memory, walks);
        let stored = self.stored_simd(memory, walks, least, &golomb);
        // Children of a level's nodes have the most keys of the level below.
        let unit = vectors.splat(least.into());
        for v in 0..VECTORS {
            let keys = walks.keys.get(vectors, v);
            let low = walks.low.get(vectors, v);
            let row = Fields::of(vectors, nodes.get(vectors, v));
            let stored = stored.get(vectors, v);
            let numbers = Numbers::of(vectors, row.radix, row.groups);
            let group = (low & vectors.splat(0xff)).times(row.groups).shr::<8>();
            let rotation = numbers.rotation(stored, group);
            let hash = trial_hash(vectors, low, start_seed(level), numbers.trial(stored));
            let half = one.only(!(hash ^ ((zero - rotation) & low_half)).below(row.scale));
            let part = hash.shr::<16>().times(row.scale & vectors.splat(0xffff)).shr::<28>();
            let turned = part + rotation;
            let turned = turned - zero.or_else(turned.below(row.radix), row.radix);
            let part = turned.or_else(part.below(row.radix), part);
            let child = half.or_else(row.last.equals(one), part);
            let on = unit.below(keys);
            let child_on = child.only(on);
            walks.value.set(v, walks.value.get(vectors, v) + child_on.times(child_values));
            walks.fixed.set(v, walks.fixed.get(vectors, v) + child_on.times(child_fixed));
            walks.skip.set(v, child_on.times(child_codes).or_else(on, walks.skip.get(vectors, v)));
            let rest = keys - child.times(unit);
            walks.keys.set(v, rest.or_else(child.equals(row.last), unit).or_else(on, keys));
        }
    }

    /// Runs `finish` for all walks.
    #[inline(always)]
    fn finish_simd<T: Vectors>(self, memory: Memory<T>, walks: &mut Walks) -> Lanes {
        let vectors = memory.vectors;
        let (one, zero, low_half) = (vectors.splat(1), vectors.splat(0), vectors.splat(LOW));
        let byte = vectors.splat(0xff);
        let [mut leaves, mut golomb]: [Lanes; 2] = [Lanes::ZERO; 2];
        for v in 0..VECTORS {
            let leaf = vectors.look_up(&self.parameters.tables.plan.levels.leaves, walks.keys.get(vectors, v));
            leaves.set(v, leaf);
            golomb.set(v, leaf.shr::<8>() & vectors.splat(63));
        }
        let stored = self.stored_simd(memory, walks, 1, &golomb);
        let most = vectors.splat(self.parameters.tables.plan.values - 1);
        let mut numbers = Lanes::ZERO;
        for v in 0..VECTORS {
            // In the order of `Levels::leaves`.
            let leaf = leaves.get(vectors, v);
            let (positions, groups, radix) = (leaf & byte, leaf.shr::<16>() & byte, leaf.shr::<24>());
            let low = walks.low.get(vectors, v);
            let stored = stored.get(vectors, v);
            let of = Numbers::of(vectors, radix, groups);
            let trial = of.trial(stored);
            // `leaf_group_multiplier` in two steps.
            let regroup = (trial & vectors.splat(MOST_TRIALS)).shr::<{ REGROUP.ilog2() }>();
            let multiplier = vectors.splat(leaf_group_multiplier(0).into()).times(regroup + regroup + one);
            let group = (low.times(multiplier) & low_half).shr::<24>().times(groups).shr::<8>();
            let hash = trial_hash(vectors, low, start_seed(LEVEL_LEAF), trial);
            let position = hash.shr::<16>().times(positions).shr::<16>() + of.rotation(stored, group);
            let position = position - zero.or_else(position.below(positions), positions);
            let number = walks.value.get(vectors, v) + position;
            numbers.set(v, number.or_else(number.below(most), most));
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::super::batch::batch_avx2;
    use super::*;
    use crate::batch::u64_vector::portable::Plain;
    use crate::{Method, RecSplit};
    use warpset_base::key::Seed;
    use warpset_core::bits::Portable;

    #[test]
    fn batches_agree_with_single_lookups() {
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
            let builder = RecSplit::builder().leaf_size(leaf).bucket_size(bucket).method(method);
            for builder in [builder.clone(), builder.clone().load_factor(0.8), builder.keys_per_value(leaf)] {
                agrees_with_single_lookups(&builder.build_from(&keys).unwrap(), &keys);
            }
        }
        // Large enough for prefetches everywhere.
        let keys: Vec<u64> = (0..1_500_000).collect();
        let function = RecSplit::builder().leaf_size(5).bucket_size(5).build_from(&keys).unwrap();
        assert!(function.lookup().is_far());
        agrees_with_single_lookups(&function, &keys[700_000..750_001]);
    }

    /// Checks that all instruction sets agree with single lookups.
    fn agrees_with_single_lookups(function: &RecSplit, keys: &[u64]) {
        let lookup = function.lookup();
        let expected: Vec<u64> = keys.iter().map(|key| function.get(key)).collect();
        assert_eq!(function.get_bulk(keys), expected, "{function:?}");
        for (keys, expected) in keys.chunks(BATCH).zip(expected.chunks(BATCH)) {
            let hashes: Vec<Hash128> = keys.iter().map(|key| Seed::new(function.seed()).hash128(key)).collect();
            let mut values = vec![u64::MAX; keys.len()];
            lookup.get_batch_simd(&hashes, &mut values, Plain(Portable));
            assert_eq!(values, expected, "{function:?}");
            values.fill(u64::MAX);
            if crate::processor::has_fast_pdep() {
                // SAFETY: the processor has the instructions.
                unsafe { batch_avx2(lookup.words, lookup.parameters, &hashes, &mut values) };
                assert_eq!(values, expected, "{function:?}");
                values.fill(u64::MAX);
            }
            lookup.get_batch(&hashes, &mut values, Remix::Bits32, Portable);
            assert_eq!(values, expected, "{function:?}");
            for (hash, expected) in hashes.iter().zip(expected) {
                assert_eq!(lookup.value_of(*hash, Remix::Bits32, Portable), *expected, "{function:?}");
            }
        }
    }

    #[test]
    fn damaged_words_give_the_same() {
        let keys: Vec<u64> = (0..300).collect();
        for (leaf, bucket) in [(8, 100), (5, 5), (12, 9), (16, 2000), (3, 2000), (4, 300)] {
            let function = RecSplit::builder().leaf_size(leaf).bucket_size(bucket).build_from(&keys).unwrap();
            let first = crate::format::HEADER_WORDS as usize;
            let words = function.words();
            for bit in (first * 64..words.len() * 64).step_by(3) {
                let mut words = words.to_vec();
                words[bit / 64] ^= 1 << (bit % 64);
                let damaged = RecSplit::trusted(words, function.parameters().clone());
                agrees_with_single_lookups(&damaged, &keys[..64]);
            }
        }
    }
}
