//! One block to a register of 256 bits.

use std::arch::x86_64::*;

use super::Unaligned;

use warpset_core::bloom::split_block::{SALT, WORDS_PER_BLOCK, block_of};

/// Returns all eight masks of a hash.
#[inline]
#[target_feature(enable = "avx2")]
fn mask(hash: u64, salt: __m256i) -> __m256i {
    let product = _mm256_mullo_epi32(_mm256_set1_epi32(hash as i32), salt);
    _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32::<27>(product))
}

#[inline]
#[target_feature(enable = "avx2")]
fn salt() -> __m256i {
    // SAFETY: `SALT` is 32 bytes long; the load takes any alignment.
    unsafe { _mm256_loadu_si256(SALT.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &[Unaligned], block: u64) -> __m256i {
    let block = &words.as_chunks::<WORDS_PER_BLOCK>().0[block as usize];
    // SAFETY: a block is 32 bytes long; the load takes any alignment.
    unsafe { _mm256_loadu_si256(block.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
pub(super) fn contains(words: &[Unaligned], blocks: u64, hash: u64) -> bool {
    _mm256_testc_si256(load(words, block_of(hash, blocks)), mask(hash, salt())) != 0
}

#[target_feature(enable = "avx2")]
pub(super) fn contains_batch(words: &[Unaligned], blocks: u64, hashes: &[u64]) -> u64 {
    let salt = salt();
    let mut bits = 0;
    for (i, &hash) in hashes.iter().enumerate() {
        let all = _mm256_testc_si256(load(words, block_of(hash, blocks)), mask(hash, salt));
        bits |= (all as u64) << i;
    }
    bits
}

/// Sets the bits of a hash; true if that changed one.
#[inline]
#[target_feature(enable = "avx2")]
fn set(words: &mut [u32], index: u64, mask: __m256i) -> bool {
    let block = &mut words.as_chunks_mut::<WORDS_PER_BLOCK>().0[index as usize];
    let pointer = block.as_mut_ptr().cast();
    // SAFETY: `pointer` is the 32 bytes of `block`, borrowed mutably; load and store take any alignment.
    unsafe {
        let old = _mm256_loadu_si256(pointer);
        _mm256_storeu_si256(pointer, _mm256_or_si256(old, mask));
        _mm256_testc_si256(old, mask) == 0
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn insert(words: &mut [u32], first_block: u64, blocks: u64, hash: u64) -> bool {
    set(words, block_of(hash, blocks) - first_block, mask(hash, salt()))
}

#[target_feature(enable = "avx2")]
pub(super) fn insert_batch(words: &mut [u32], first_block: u64, blocks: u64, hashes: &[u64]) {
    let salt = salt();
    for &hash in hashes {
        set(words, block_of(hash, blocks) - first_block, mask(hash, salt));
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn insert_and_tell(words: &mut [u32], first_block: u64, blocks: u64, hashes: &[u64]) -> u64 {
    let salt = salt();
    let mut changed = 0;
    for (i, &hash) in hashes.iter().enumerate() {
        changed |= (set(words, block_of(hash, blocks) - first_block, mask(hash, salt)) as u64) << i;
    }
    changed
}
