//! Batches with AVX-512 or AVX2: all walks of a batch go down level by level, in vectors of eight keys.

use super::Lookup;
use crate::batch::BATCH;
use crate::batch::reads::{LOW, Reader};
use crate::batch::u64_vector::{Lanes, VECTORS, Vector, Vectors};
use crate::windows::prefetch;
use warpset_base::key::Hash128;
use warpset_core::consensus::hash::{FACTORS, LEVEL_FACTOR, SEED_BITS};
use warpset_core::consensus::lookup::{FULL_SEEDS, Function};
use warpset_core::consensus::tree::{FRACTION, depth};
use warpset_core::recsplit::hash::bucket_of;

/// Walks of a batch, each field in lanes.
struct Walks {
    low: Lanes,
    keys_before: Lanes,
    start: Lanes,
    keys: Lanes,
    /// Modulo 2^32; the upper bits are arbitrary.
    base: Lanes,
    index: Lanes,
    depth: Lanes,
}

/// Words that fit the nearer caches.
const NEAR: usize = 1 << 16;

impl Lookup<'_> {
    /// Looks up at most [`BATCH`] keys; the function has keys.
    #[inline(always)]
    pub(super) fn get_batch_simd<T: Vectors>(self, hashes: &[Hash128], values: &mut [u64], vectors: T) {
        let mut filled;
        let hashes = match hashes.first_chunk() {
            Some(all) => all,
            None => {
                filled = [Hash128::default(); BATCH];
                filled[..hashes.len()].copy_from_slice(hashes);
                &filled
            }
        };
        let reader = Reader { words: self.words, vectors };
        let (mut walks, deepest) = self.enter_simd(reader, hashes);
        for level in 0..deepest {
            self.split_simd(reader, &mut walks, level);
        }
        let numbers = self.finish_simd(reader, &walks);
        values.copy_from_slice(&numbers[..values.len()]);
    }

    /// Returns the roots of the keys' buckets, and the deepest level of their leaves.
    #[inline(always)]
    fn enter_simd<T: Vectors>(self, reader: Reader<T>, hashes: &[Hash128; BATCH]) -> (Walks, u32) {
        let (vectors, plan, lists) = (reader.vectors, self.plan(), &self.parameters.lists);
        let far = self.words.len() > NEAR;
        let small = lists.is_small(plan.keys);
        let mut walks = Walks {
            low: Lanes::ZERO,
            keys_before: Lanes::ZERO,
            start: Lanes::ZERO,
            keys: Lanes::ZERO,
            base: Lanes::ZERO,
            index: Lanes::ZERO,
            depth: Lanes::ZERO,
        };
        let mut buckets = Lanes::ZERO;
        for (v, hashes) in hashes.as_chunks().0.iter().enumerate() {
            let (high, low) = vectors.hashes(hashes);
            let by = vectors.splat(plan.buckets);
            walks.low.set(v, low);
            // `bucket_of` for fewer than 2^32 buckets.
            buckets.set(v, (high.shr::<32>().times(by) + high.times(by).shr::<32>()).shr::<32>());
        }
        if !small {
            for (bucket, hash) in buckets.iter_mut().zip(hashes) {
                *bucket = bucket_of(hash.high, plan.buckets);
            }
        }
        let entries = lists.get_batch(reader, &buckets, small, far);
        let (rows, root) = (vectors.splat(plan.rows.into()), vectors.splat(u64::from(plan.root_bits) << FRACTION));
        for v in 0..VECTORS {
            // Only damaged words have a bucket that is larger than the largest.
            let keys = entries.keys.get(vectors, v);
            walks.keys.set(v, keys.only(keys.below(rows)));
            walks.start.set(v, entries.bits_before.get(vectors, v) + vectors.splat(plan.codes));
            walks.base.set(v, root);
        }
        walks.keys_before = entries.keys_before;
        let mut deepest = 0;
        for (i, &start) in walks.start.iter().enumerate() {
            let keys = walks.keys[i];
            if far {
                // A code has one and a half bits per key, and a line 512.
                for line in 0..=keys * 3 / 1024 {
                    prefetch(reader.words, start / 64 + line * 8);
                }
            }
            walks.depth[i] = depth(keys as u32).into();
            deepest = deepest.max(depth(keys as u32));
        }
        (walks, deepest)
    }

    /// Returns the hashes of eight keys at their nodes, in low halves, with zeros above.
    #[inline(always)]
    fn hash_simd<T: Vectors>(
        self,
        reader: Reader<T>,
        (walks, v): (&Walks, usize),
        (row, keys_before_end): (T::V, T::V),
        (salt, may_be_short): (T::V, bool),
    ) -> T::V {
        let vectors = reader.vectors;
        let (low_half, seed_bits) = (vectors.splat(LOW), vectors.splat(SEED_BITS.into()));
        let next = walks.index.get(vectors, v) + vectors.splat(1);
        let end = walks.base.get(vectors, v) + next.times(row) + keys_before_end.times(row.shr::<32>());
        let end = (end & low_half).shr::<FRACTION>();
        let mut seed = reader.bits_from(walks.start.get(vectors, v) + end - seed_bits) & low_half;
        if may_be_short {
            let missing = (seed_bits - end).only(end.below(seed_bits));
            seed = seed.shr_by(missing).shl_by(missing);
        }
        let x = seed ^ salt;
        let x = (x ^ x.shr::<16>()).times(vectors.splat(FACTORS[0].into())) & low_half;
        // Only the low half of a product counts.
        let multiplier = (x ^ x.shr::<15>()).times(vectors.splat(FACTORS[1].into()));
        let low = walks.low.get(vectors, v);
        (low.times(multiplier) + low.shr::<32>()) & low_half
    }

    /// Runs [`Function::split`] for all walks that are not at their leaves.
    #[inline(always)]
    fn split_simd<T: Vectors>(self, reader: Reader<T>, walks: &mut Walks, level: u32) {
        let vectors = reader.vectors;
        let rows = self.parameters.tables.rows.words().as_flattened();
        let (one, low_half) = (vectors.splat(1), vectors.splat(LOW));
        let (by, next) = (vectors.splat(level.into()), vectors.splat(u64::from(level) + 1));
        let salt = vectors.splat(level.wrapping_mul(LEVEL_FACTOR).into());
        for v in 0..VECTORS {
            let (keys, index) = (walks.keys.get(vectors, v), walks.index.get(vectors, v));
            let place = keys.shr_by(by).shl::<1>();
            let (row, odd) = (vectors.words(rows, place), vectors.words(rows, place + one));
            let begin = index.times(keys).shr_by(by);
            let middle = (index.shl::<1>() + one).times(keys).shr_by(next);
            let end = (index + one).times(keys).shr_by(by);
            let hash = self.hash_simd(reader, (walks, v), (row, end), (salt, level < FULL_SEEDS));
            let uneven = begin + end - middle.shl::<1>();
            let threshold = (vectors.splat(1 << 31) - uneven.times(odd)) & low_half;
            let right = one.only(!hash.below(threshold));
            let on = by.below(walks.depth.get(vectors, v));
            let base = walks.base.get(vectors, v);
            walks.index.set(v, (index.shl::<1>() + right).or_else(on, index));
            walks.base.set(v, base + ((row & low_half).shl_by(by) + keys.times(row.shr::<32>())).only(on));
        }
    }

    /// Runs [`Function::finish`] for all walks.
    #[inline(always)]
    fn finish_simd<T: Vectors>(self, reader: Reader<T>, walks: &Walks) -> Lanes {
        let (vectors, plan) = (reader.vectors, self.plan());
        let rows = self.parameters.tables.rows.words().as_flattened();
        let (one, most) = (vectors.splat(1), vectors.splat(plan.keys - 1));
        let mut numbers = Lanes::ZERO;
        for v in 0..VECTORS {
            let (keys, index) = (walks.keys.get(vectors, v), walks.index.get(vectors, v));
            let depth = walks.depth.get(vectors, v);
            let row = vectors.words(rows, (keys.shr_by(depth) + vectors.splat(plan.rows.into())).shl::<1>());
            let begin = index.times(keys).shr_by(depth);
            let end = (index + one).times(keys).shr_by(depth);
            let salt = depth.times(vectors.splat(LEVEL_FACTOR.into())) & vectors.splat(LOW);
            let hash = self.hash_simd(reader, (walks, v), (row, end), (salt, true));
            let position = begin + hash.shr::<16>().times(end - begin).shr::<16>();
            let number = walks.keys_before.get(vectors, v) + position;
            // Only damaged words that pass the checks make it too large.
            numbers.set(v, number.or_else(number.below(most), most));
        }
        numbers
    }
}
