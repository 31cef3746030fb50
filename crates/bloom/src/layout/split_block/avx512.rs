//! Two blocks to a register of 512 bits.

use std::arch::x86_64::*;

use warpset_core::bloom::split_block::{SALT, WORDS_PER_BLOCK};

use super::Unaligned;
use crate::layout::BATCH;

/// Hashes to a register.
const HASHES: usize = 8;
/// The low halves of hashes 0 and 1, 2 and 3, and so on, of a register of eight, each for the words of a block.
const PAIRS: [[u32; 16]; 4] = [pair(0), pair(1), pair(2), pair(3)];

const fn pair(number: u32) -> [u32; 16] {
    let mut lanes = [4 * number; 16];
    let mut lane = WORDS_PER_BLOCK;
    while lane < lanes.len() {
        lanes[lane] += 2;
        lane += 1;
    }
    lanes
}

/// Filters above this size are prefetched to the second-level cache alone. A core has more lines under way there than
/// for its first-level cache, which matters for lines from memory.
const FAR_BYTES: usize = 32 << 20;

/// Looks up at most [`BATCH`] hashes; bit `i` answers for hash `i`. Prefetches the blocks of `next`, eight at a time,
/// so that memory is busy throughout.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn contains_batch(words: &[Unaligned], blocks: u64, hashes: &[u64], next: &[u64]) -> u64 {
    if size_of_val(words) > FAR_BYTES {
        contains::<_MM_HINT_T1>(words, blocks, hashes, next)
    } else {
        contains::<_MM_HINT_T0>(words, blocks, hashes, next)
    }
}

/// Prefetches a cache line.
#[inline(always)]
fn prefetch<const HINT: i32>(line: *const Unaligned) {
    // SAFETY: a prefetch does not access memory as the language sees it, whatever the address.
    unsafe { _mm_prefetch::<HINT>(line.cast()) };
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn contains<const HINT: i32>(words: &[Unaligned], blocks: u64, hashes: &[u64], next: &[u64]) -> u64 {
    assert!(words.len() as u64 / WORDS_PER_BLOCK as u64 >= blocks && hashes.len() <= BATCH);
    let (first, number) = (words.as_ptr(), _mm512_set1_epi64(blocks as i64));
    let (salt, one) = (load(&[SALT, SALT]), _mm512_set1_epi32(1));
    let pairs = [load(&PAIRS[0]), load(&PAIRS[1]), load(&PAIRS[2]), load(&PAIRS[3])];
    // A byte per hash: the words of its block that lack a bit.
    let mut lacking = [[0u16; HASHES / 2]; BATCH / HASHES];
    let mut next = next.as_chunks::<HASHES>().0.iter();
    for (hashes, lacking) in hashes.chunks(HASHES).zip(&mut lacking) {
        if let Some(next) = next.next() {
            let block = block_of(load::<[u64; HASHES]>(next), number);
            for block in block {
                prefetch::<HINT>(first.wrapping_add(block as usize * WORDS_PER_BLOCK));
            }
        }
        let mut eight = [0u64; HASHES];
        let hashes = match hashes.try_into() {
            Ok(hashes) => hashes,
            Err(_) => {
                eight[..hashes.len()].copy_from_slice(hashes);
                &eight
            }
        };
        let hashes: __m512i = load(hashes);
        let block = block_of(hashes, number);
        for (i, pair) in pairs.iter().enumerate() {
            let product = _mm512_mullo_epi32(_mm512_permutexvar_epi32(*pair, hashes), salt);
            let mask = _mm512_sllv_epi32(one, _mm512_srli_epi32::<27>(product));
            // SAFETY: a number below 2^32, times `blocks`, over 2^32, is below `blocks`, and `words` has `blocks`
            // blocks of 32 bytes; the loads take any alignment.
            let (low, high) = unsafe {
                let at = |block: u64| first.add(block as usize * WORDS_PER_BLOCK).cast();
                (_mm256_loadu_si256(at(block[2 * i])), _mm256_loadu_si256(at(block[2 * i + 1])))
            };
            let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            let lacks = _mm512_andnot_si512(both, mask);
            lacking[i] = _mm512_test_epi32_mask(lacks, lacks);
        }
    }
    let lacking: __m512i = load(&lacking);
    let all = _mm512_testn_epi8_mask(lacking, lacking);
    if hashes.len() < BATCH { all & ((1 << hashes.len()) - 1) } else { all }
}

/// Returns the blocks of eight hashes.
#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn block_of(hashes: __m512i, blocks: __m512i) -> [u64; HASHES] {
    let block = _mm512_srli_epi64::<32>(_mm512_mullo_epi64(_mm512_srli_epi64::<32>(hashes), blocks));
    let mut all = [0u64; HASHES];
    // SAFETY: the array has the register's 64 bytes; the store takes any alignment.
    unsafe { _mm512_storeu_si512(all.as_mut_ptr().cast(), block) };
    all
}

/// Returns a register of what has its size.
#[inline]
#[target_feature(enable = "avx512f")]
fn load<T>(from: &T) -> __m512i {
    const { assert!(size_of::<T>() == size_of::<__m512i>()) };
    // SAFETY: `from` is 64 bytes long, of integers; the load takes any alignment.
    unsafe { _mm512_loadu_si512((&raw const *from).cast()) }
}
