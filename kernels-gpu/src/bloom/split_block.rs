//! Kernels of Parquet's split-block Bloom filter.
//!
//! A block is one 32-byte sector, so a key costs one memory transaction. Eight neighbouring lanes insert a key: its
//! eight words leave in one instruction and reach the memory system as one request (5.4 times faster in the L2 cache of
//! an H200 than eight requests of one thread). A lookup is two 128-bit loads of one thread.

use crate::batch::keys::xxh64_at;
use crate::batch::results;
#[cfg(doc)]
use crate::bloom::claims;
use crate::bloom::claims::Claims;
use warpset_core::bloom::split_block::{SALT, WORDS_PER_BLOCK, block_mask, block_of};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 256;

/// Inserts the hashes of a warp's lanes, those whose bit is set in `valid`.
///
/// # Safety
/// - All lanes of the warp arrive together.
/// - `words` holds `blocks > 0` blocks and is only accessed atomically.
#[inline(always)]
unsafe fn insert_warp(words: GlobalMut<u32>, blocks: u64, hash: u64, valid: u32) {
    let lane = warp::lane_id();
    let word = lane % 8;
    let mut salt = SALT[0];
    for i in 1..WORDS_PER_BLOCK {
        if word == i as u32 {
            salt = SALT[i];
        }
    }
    let block = block_of(hash, blocks) as u32; // below 2^32
    let low = hash as u32;
    for round in 0..8 {
        let source = round * 4 + lane / 8;
        // SAFETY: the whole warp is here; `block_of` stays below `blocks`.
        unsafe {
            let block = warp::shuffle_idx(warp::FULL_MASK, block, source);
            let low = warp::shuffle_idx(warp::FULL_MASK, low, source);
            if valid >> source & 1 != 0 {
                let mask = 1 << (low.wrapping_mul(salt) >> 27);
                atomic::reduce_or(words.at(block as usize * WORDS_PER_BLOCK + word as usize), mask);
            }
        }
    }
}

/// Whether the filter contains a hash.
///
/// # Safety
/// `words` holds `blocks > 0` blocks, 16-byte aligned, not written while the kernel runs.
#[inline(always)]
unsafe fn contains_one(words: Global<u32>, blocks: u64, hash: u64) -> bool {
    let first = block_of(hash, blocks) as usize * WORDS_PER_BLOCK;
    // SAFETY: `block_of` stays below `blocks`.
    let (a, b) = unsafe { (words.read4_nc(first), words.read4_nc(first + 4)) };
    let mask = block_mask(hash);
    let mut missing = 0;
    for i in 0..4 {
        missing |= mask[i] & !a[i];
        missing |= mask[i + 4] & !b[i];
    }
    missing == 0
}

kernel! {
    /// Inserts `n` keys, one per thread.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads, no shared memory.
    /// - `words`: valid for `8 * blocks` words, `0 < blocks <= 2^32`; only accessed atomically while the kernel runs.
    /// - `keys`: `n` keys of the kind (see [`crate::batch::keys`]), not written while the kernel runs.
    #[launch_bounds(256, 8)]
    pub unsafe fn split_block_insert(words: GlobalMut<u32>, blocks: u64, keys: Global<u64>, kind: u32, n: usize) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n`; no lane has left.
        unsafe {
            let valid = warp::ballot(warp::FULL_MASK, i < n);
            let hash = if i < n { xxh64_at(keys, kind, i) } else { 0 };
            insert_warp(words, blocks, hash, valid);
        }
    }
}

kernel! {
    /// Looks up `n` keys, one per thread.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads, no shared memory.
    /// - `words`: valid for `8 * blocks` words, `0 < blocks <= 2^32`, 16-byte aligned, not written while the kernel
    ///   runs.
    /// - `keys`: `n` keys of the kind (see [`crate::batch::keys`]), not written while the kernel runs.
    /// - `out`: room for the form of result (see [`crate::batch::results`]), used by this launch alone.
    #[launch_bounds(256, 8)]
    pub unsafe fn split_block_contains(
        words: Global<u32>, blocks: u64, keys: Global<u64>, kind: u32, n: usize, form: u32, out: GlobalMut<u64>,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n`; all threads reach `put`.
        unsafe {
            let found = i < n && contains_one(words, blocks, xxh64_at(keys, kind, i));
            results::put(form, out, i, n, found);
        }
    }
}

kernel! {
    /// First half of test-and-insert: marks the keys that the filter does not contain, and lets each of them claim its
    /// hash.
    ///
    /// # Safety
    /// - Launch, `words`, `keys`, `out`: as for [`split_block_contains`], the form being bytes or bits.
    /// - `table`: as [`claims::Claims::new`] asks, all words [`claims::EMPTY`] at the start.
    #[launch_bounds(256, 6)]
    pub unsafe fn split_block_claim(
        words: Global<u32>, blocks: u64, keys: Global<u64>, kind: u32, n: usize, form: u32, out: GlobalMut<u64>,
        table: GlobalMut<u64>, table_bits: u32,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n`; all threads reach `put`; claims hold indices below `n`.
        unsafe {
            let mut absent = false;
            if i < n {
                let hash = xxh64_at(keys, kind, i);
                absent = !contains_one(words, blocks, hash);
                if absent {
                    Claims::new(table, table_bits).claim(hash, i, |j| xxh64_at(keys, kind, j));
                }
            }
            results::put(form, out, i, n, absent);
        }
    }
}

kernel! {
    /// Second half: of the keys marked by [`split_block_claim`] leaves those marked that won their hash, and inserts
    /// them.
    ///
    /// # Safety
    /// - As for [`split_block_claim`], which has run with the same arguments.
    /// - `words` is only accessed atomically.
    #[launch_bounds(256, 6)]
    pub unsafe fn split_block_settle(
        words: GlobalMut<u32>, blocks: u64, keys: Global<u64>, kind: u32, n: usize, form: u32, out: GlobalMut<u64>,
        table: GlobalMut<u64>, table_bits: u32,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n`; all threads reach `put` and `insert_warp`; claims hold indices below `n`.
        unsafe {
            let mut new = false;
            let mut hash = 0;
            if i < n && results::get(form, out, i) {
                hash = xxh64_at(keys, kind, i);
                new = Claims::new(table, table_bits).winner(hash, |j| xxh64_at(keys, kind, j)) == i;
            }
            warp::sync_warp(warp::FULL_MASK); // one word of `out` holds bits of all lanes
            results::put(form, out, i, n, new);
            let valid = warp::ballot(warp::FULL_MASK, new);
            insert_warp(words, blocks, hash, valid);
        }
    }
}
