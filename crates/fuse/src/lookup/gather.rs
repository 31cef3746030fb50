//! Batches on Intel processors since Sapphire Rapids: hashes, slots and reads of eight keys at a time in vectors.
//!
//! The arithmetic is that of [`Graph`](warpset_core::fuse::Graph) and [`mix`](warpset_core::fuse::hash::mix): from the
//! hash to the answer nothing goes through memory, so a core has the reads of several groups of eight in progress.

use std::arch::x86_64::*;

use warpset_core::fuse::Graph;

use super::{BATCH, Lookup};
use crate::build::word_of;
use crate::width::Width;
use crate::{Arity, Key, Layout};

/// Keys per vector.
const LANES: usize = 8;
/// Bytes of words up to which gathers were faster than prefetches.
const MOST_BYTES: usize = 1 << 24;

/// Whether [`answers`] is faster than the other form: for one graph, in the nearer caches. These processors alone have
/// AVX-512 for numbers of 16 bits; on older ones microcode slows gathers down.
#[inline]
pub(super) fn is_fast<F>(lookup: Lookup<'_, F>) -> bool {
    8 * lookup.words.len() <= MOST_BYTES
        && lookup.layout.shards == 0
        && std::is_x86_feature_detected!("avx512fp16")
        && std::is_x86_feature_detected!("avx512bw")
        && std::is_x86_feature_detected!("avx512dq")
        && std::is_x86_feature_detected!("avx512vl")
}

/// Returns whether up to 64 keys may be in the filter, which [`is_fast`], one bit per key.
pub(super) fn answers<F: Width, K: Key>(lookup: Lookup<'_, F>, keys: &[K]) -> u64 {
    assert!(is_fast(lookup));
    // SAFETY: the processor has these features, detected above.
    unsafe {
        match lookup.layout.arity {
            Arity::Three => answers_of::<3, F, K>(lookup, keys),
            Arity::Four => answers_of::<4, F, K>(lookup, keys),
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn answers_of<const ARITY: usize, F: Width, K: Key>(lookup: Lookup<'_, F>, keys: &[K]) -> u64 {
    let mut words = [0; BATCH];
    match keys.first_chunk::<BATCH>() {
        Some(keys) => (0..BATCH).for_each(|i| words[i] = word_of(&keys[i])),
        None => keys.iter().zip(&mut words).for_each(|(key, word)| *word = word_of(key)),
    }
    let &Layout { graph: Graph { starts, segment_bits }, seed, .. } = lookup.layout;
    let mask = all((1 << segment_bits) - 1);
    let low_bits = _mm256_set1_epi32((u32::MAX >> (32 - F::BITS)) as i32);
    let mut answers = 0;
    for first_key in (0..BATCH).step_by(LANES) {
        // SAFETY: eight words from here are in the array, since `BATCH` is a multiple of eight.
        let words = unsafe { _mm512_loadu_si512(words.as_ptr().add(first_key).cast()) };
        let hash = mix(words, all(seed));
        let low = _mm512_srli_epi64::<32>(_mm512_mul_epu32(hash, all(starts.into())));
        let high = _mm512_mul_epu32(_mm512_srli_epi64::<32>(hash), all(starts.into()));
        let first = _mm512_srli_epi64::<32>(_mm512_add_epi64(high, low));
        let mut sum = _mm512_cvtepi64_epi32(_mm512_xor_si512(hash, _mm512_srli_epi64::<32>(hash)));
        for j in 0..ARITY {
            let offset = match ARITY - 1 - j {
                0 => hash,
                1 => _mm512_srli_epi64::<18>(hash),
                _ => _mm512_srli_epi64::<46>(_mm512_mullo_epi64(hash, all(GOLDEN))),
            };
            let offset = if j == 0 { all(0) } else { _mm512_and_si512(offset, mask) };
            let at = _mm512_xor_si512(_mm512_add_epi64(first, all((j as u64) << segment_bits)), offset);
            sum = _mm256_xor_si256(sum, read(lookup.slots(), at));
        }
        answers |= u64::from(_mm256_testn_epi32_mask(sum, low_bits)) << first_key;
    }
    answers
}

/// 2^64 divided by the golden ratio, odd.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
#[target_feature(enable = "avx512f")]
fn all(value: u64) -> __m512i {
    _mm512_set1_epi64(value as i64)
}

/// Computes [`mix`](warpset_core::fuse::hash::mix).
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn mix(words: __m512i, seed: __m512i) -> __m512i {
    let fold = |hash| _mm512_xor_si512(hash, _mm512_srli_epi64::<33>(hash));
    let hash = _mm512_mullo_epi64(fold(_mm512_add_epi64(words, seed)), all(0xff51_afd7_ed55_8ccd));
    fold(_mm512_mullo_epi64(fold(hash), all(0xc4ce_b9fe_1a85_ec53)))
}

/// Reads items, each in the low bits of its lane, with others above; zeros if there is no such item.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn read<T>(items: &[T], at: __m512i) -> __m256i {
    // Items in 32 bits, as a base-2 logarithm.
    let log = (4 / size_of::<T>()).ilog2();
    let is_item = _mm512_cmplt_epu64_mask(at, all((items.len() >> log << log) as u64));
    let aligned = _mm512_srlv_epi64(at, all(log.into()));
    // SAFETY: lanes of the mask read 32 bits of whole items of the slice; the others read nothing.
    let read =
        unsafe { _mm512_mask_i64gather_epi32::<4>(_mm256_setzero_si256(), is_item, aligned, items.as_ptr().cast()) };
    let within = _mm512_and_si512(at, all((1 << log) - 1));
    let shift = _mm512_sllv_epi64(within, all((8 * size_of::<T>() as u64).ilog2().into()));
    _mm256_srlv_epi32(read, _mm512_cvtepi64_epi32(shift))
}
