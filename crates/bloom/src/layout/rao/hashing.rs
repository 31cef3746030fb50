//! From keys to probes, many at a time.
//!
//! A key is hashed twice, for its bits and for its bucket, four multiplications in all. With AVX2 four keys take them
//! together, in products of 32 bits; the answers are those of [`mix_spread`](warpset_core::hash::mix_spread) and
//! [`rao::choices_spread`].

#[cfg(target_arch = "x86_64")]
use {super::FirstLevel, crate::key::sealed::Raw, crate::layout::BATCH, warpset_core::bloom::rao};

use super::{RaoLayout, RaoProbe};
use crate::Key;
use crate::layout::engine::Engine;

/// Computes the probes of up to [`BATCH`] keys.
#[inline]
pub(super) fn probe_batch<K: Key>(layout: &RaoLayout, keys: &[K], probes: &mut [RaoProbe]) {
    #[cfg(target_arch = "x86_64")]
    if layout.first_level == FirstLevel::Mixed
        && layout.buckets < rao::MAX_BUCKETS
        && std::is_x86_feature_detected!("avx2")
    {
        let mut hashes = [0; BATCH];
        // SAFETY: AVX2 was just detected.
        unsafe {
            match K::raw(keys) {
                Raw::U64(keys) => {
                    hashes[..keys.len()].copy_from_slice(keys);
                    avx2::hash(&mut hashes, keys.len(), layout.seed_spread);
                }
                Raw::U32(keys) => {
                    hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = u64::from(*key));
                    avx2::hash(&mut hashes, keys.len(), layout.seed_spread);
                }
                Raw::I32(keys) => {
                    hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = *key as i32 as u64);
                    avx2::hash(&mut hashes, keys.len(), layout.seed_spread);
                }
                Raw::Hashes(keys) => hashes[..keys.len()].copy_from_slice(keys),
                Raw::Other => {
                    let of = |key: &K| key.seeded_hash(layout.seed, layout.seed_spread);
                    hashes.iter_mut().zip(keys).for_each(|(hash, key)| *hash = of(key));
                }
            }
            return avx2::assign(layout, &hashes, &mut probes[..keys.len()]);
        }
    }
    for (probe, key) in probes.iter_mut().zip(keys) {
        *probe = layout.probe(key);
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::*;

    use super::*;

    /// Keys of a register.
    const LANES: usize = 4;

    /// Returns the low halves of products with a constant.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn multiply(a: __m256i, b: u64) -> __m256i {
        let (low, high) = (_mm256_set1_epi64x(b as i64), _mm256_set1_epi64x((b >> 32) as i64));
        let cross = _mm256_add_epi64(_mm256_mul_epu32(a, high), _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), low));
        _mm256_add_epi64(_mm256_mul_epu32(a, low), _mm256_slli_epi64::<32>(cross))
    }

    /// Mixes four keys; see [`mix_spread`](warpset_core::hash::mix_spread).
    #[inline]
    #[target_feature(enable = "avx2")]
    fn mix(keys: __m256i, spread: u64) -> __m256i {
        // The steps of `hash::finalise`.
        let mut x = _mm256_xor_si256(keys, _mm256_set1_epi64x(spread as i64));
        x = multiply(_mm256_xor_si256(x, _mm256_srli_epi64::<27>(x)), 0x3c79_ac49_2ba7_b653);
        x = multiply(_mm256_xor_si256(x, _mm256_srli_epi64::<33>(x)), 0x1c69_b3f7_4ac4_ae35);
        _mm256_xor_si256(x, _mm256_srli_epi64::<27>(x))
    }

    /// Mixes the first `count` keys in place; see [`mix_spread`](warpset_core::hash::mix_spread).
    #[target_feature(enable = "avx2")]
    pub(super) fn hash(hashes: &mut [u64; BATCH], count: usize, spread: u64) {
        for four in &mut hashes.as_chunks_mut::<LANES>().0[..count.div_ceil(LANES)] {
            let pointer: *mut __m256i = four.as_mut_ptr().cast();
            // SAFETY: `four` is 32 bytes long; load and store take any alignment.
            unsafe { _mm256_storeu_si256(pointer, mix(_mm256_loadu_si256(pointer), spread)) };
        }
    }

    /// Assigns buckets to the first hashes. The first level is [`FirstLevel::Mixed`], and there are fewer than 2^32
    /// buckets.
    #[target_feature(enable = "avx2")]
    pub(super) fn assign(layout: &RaoLayout, hashes: &[u64; BATCH], probes: &mut [RaoProbe]) {
        let (probes, rest) = probes.as_chunks_mut::<LANES>();
        let hashes = &hashes.as_chunks::<LANES>().0;
        for (four, hashes) in probes.iter_mut().zip(hashes.iter()) {
            assign_four(layout, hashes, four);
        }
        if !rest.is_empty() {
            let mut last = [RaoProbe::default(); LANES];
            assign_four(layout, &hashes[probes.len()], &mut last);
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn assign_four(layout: &RaoLayout, hashes: &[u64; LANES], probes: &mut [RaoProbe; LANES]) {
        let buckets = _mm256_set1_epi64x(layout.buckets as i64);
        // SAFETY: `hashes` is 32 bytes long; the load takes any alignment.
        let hashes = unsafe { _mm256_loadu_si256(hashes.as_ptr().cast()) };
        let mixed = mix(hashes, layout.attempt_spread);
        let mut b = _mm256_mul_epu32(_mm256_srli_epi64::<32>(mixed), buckets);
        let a = _mm256_srli_epi64::<32>(b);
        if layout.choices == 2 {
            b = _mm256_mul_epu32(mixed, buckets);
        }
        let both = _mm256_or_si256(a, _mm256_and_si256(b, _mm256_set1_epi64x(!0 << 32)));
        let (even, odd) = (_mm256_unpacklo_epi64(hashes, both), _mm256_unpackhi_epi64(hashes, both));
        let pointer: *mut __m256i = probes.as_mut_ptr().cast();
        // SAFETY: four probes are 64 bytes, a hash and two buckets each; the stores take any alignment.
        unsafe {
            _mm256_storeu_si256(pointer, _mm256_permute2x128_si256::<0x20>(even, odd));
            _mm256_storeu_si256(pointer.add(1), _mm256_permute2x128_si256::<0x31>(even, odd));
        }
    }

    const _: () = assert!(size_of::<RaoProbe>() == 16);
}

#[cfg(test)]
mod tests {
    use super::super::FirstLevel;
    use super::*;
    use crate::layout::BATCH;
    use warpset_core::bloom::rao::{self, BucketShape};
    use warpset_core::hash;
    use warpset_core::hash::string::StringHash;

    #[test]
    fn a_batch_has_the_probes_of_its_keys() {
        let keys: Vec<u64> = (0..BATCH as u64).map(hash::finalise).collect();
        let small: Vec<u32> = keys.iter().map(|key| *key as u32).collect();
        let strings: Vec<String> = keys.iter().map(|key| format!("{key}")).collect();
        for buckets in [1, 7, 1 << 20, rao::MAX_BUCKETS - 1, rao::MAX_BUCKETS] {
            for (choices, first_level) in
                [(1, FirstLevel::Mixed), (2, FirstLevel::Mixed), (2, FirstLevel::String(StringHash::Bkdr))]
            {
                let shape = BucketShape::new(64, 5).unwrap();
                let layout = RaoLayout::new(buckets, shape, choices, first_level, 3).unwrap().at_attempt(2);
                fn check<K: Key>(layout: &RaoLayout, keys: &[K]) {
                    for count in [0, 1, 3, 4, 63, 64] {
                        let mut probes = vec![RaoProbe::default(); count];
                        probe_batch(layout, &keys[..count], &mut probes);
                        assert!(probes.iter().zip(keys).all(|(probe, key)| *probe == layout.probe(key)), "{layout:?}");
                    }
                }
                check(&layout, &keys);
                check(&layout, &small);
                check(&layout, bytemuck::cast_slice::<u32, i32>(&small));
                check(&layout, &strings);
                check(&layout, crate::key::as_hashed(&keys));
            }
        }
    }
}
