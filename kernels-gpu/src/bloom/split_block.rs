//! Kernels of Parquet's split-block Bloom filter.
//!
//! A block is one 32-byte sector, so a key costs one memory transaction. Eight neighbouring lanes insert a key: its
//! eight words leave in one instruction and reach the memory system as one request (5.4 times faster in the L2 cache of
//! an H200 than eight requests of one thread). A lookup is two 128-bit loads of one thread.

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::batch::keys::xxh64_at;
use crate::batch::results;
#[cfg(feature = "bodies")]
use crate::bloom::batch_partition::Insertion;
use crate::bloom::batch_partition::{self, Parts};
#[cfg(doc)]
use crate::bloom::claims;
use crate::bloom::claims::{Batch, Claims};
#[cfg(feature = "bodies")]
use crate::bloom::device_query::in_split_block;
use warpset_core::bloom::split_block::{SALT, WORDS_PER_BLOCK, block_of};
use warpset_simt::shared::Shared;
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 256;

/// Inserts the hashes of the lanes that `valid` has set.
///
/// # Safety
/// - All lanes of the warp arrive together.
/// - `words` holds `blocks > 0` blocks and is only accessed atomically.
#[cfg(feature = "bodies")]
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

/// An insertion into a filter of `blocks` blocks.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct SplitBlockInsertion {
    blocks: u64,
}

#[cfg(feature = "bodies")]
impl Insertion for SplitBlockInsertion {
    const SALTS: &'static [u32] = &SALT;
    const BLOCK_WORDS: u32 = WORDS_PER_BLOCK as u32;

    #[inline(always)]
    fn block_of(self, hash: u64, blocks: u64) -> u64 {
        block_of(hash, blocks)
    }

    #[inline(always)]
    unsafe fn insert_warp(self, words: GlobalMut<u32>, _: Shared<u32>, hash: u64, valid: u32) {
        // SAFETY: this function's contract is that of the callee.
        unsafe { insert_warp(words, self.blocks, hash, valid) }
    }

    #[inline(always)]
    unsafe fn setter(self, salts: Shared<u32>) -> impl Fn(Shared<u32>, u32, u64) {
        // Lane `l` sets word `i ^ l % 8` after `i` others.
        let begin = warp::lane_id() % 8;
        let mut own = [0; WORDS_PER_BLOCK];
        for i in 0..WORDS_PER_BLOCK {
            // SAFETY: there are eight salts.
            own[i] = unsafe { salts.get(i as u32 ^ begin) };
        }
        move |here, first, hash| {
            for i in 0..WORDS_PER_BLOCK {
                let mask = 1 << ((hash as u32).wrapping_mul(own[i]) >> 27);
                // SAFETY: the block's words are valid by this function's contract.
                unsafe { here.reduce_or(first + (i as u32 ^ begin), mask) };
            }
        }
    }
}

kernel! {
    /// Inserts `n` keys, one per thread.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads, no shared memory.
    /// - `words`: valid for `8 * blocks` words, `0 < blocks <= 2^32`; only accessed atomically while the kernel runs.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs.
    #[launch_bounds(256, 8)]
    pub unsafe fn split_block_insert(words: GlobalMut<u32>, blocks: u64, keys: Global<u64>, kind: KeyKind, n: usize) {
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
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs.
    /// - `out`: room for the form of result (see [`crate::batch::results`]), used by this launch alone.
    #[launch_bounds(256, 8)]
    pub unsafe fn split_block_contains(
        words: Global<u32>, blocks: u64, keys: Global<u64>, kind: KeyKind, n: usize, form: u32, out: GlobalMut<u64>,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n`; all threads reach `put`.
        unsafe {
            let found = i < n && in_split_block(words, blocks, xxh64_at(keys, kind, i));
            results::put(form, out, i, n, found);
        }
    }
}

kernel! {
    /// Marks the keys that the filter does not contain, and lets each of them claim its hash: the first half of
    /// test-and-insert. In a divided batch the marks exist already, and only keys of parts that overflowed claim.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, any number of them, no shared memory.
    /// - `words`, `keys`, `out`: as for [`split_block_contains`], the form being bytes or bits.
    /// - `table`: as [`claims::Claims::new`] asks, all words [`claims::EMPTY`] at the start (if a part overflowed).
    /// - `parts`, `counts`: as [`partition_absent`](crate::bloom::partition::partition_absent) has left them, with the
    ///   marks; or [`Parts::UNDIVIDED`].
    #[launch_bounds(256, 6)]
    pub unsafe fn split_block_dedup_claim(
        words: Global<u32>, blocks: u64, keys: Global<u64>, kind: KeyKind, n: usize, form: u32, out: GlobalMut<u64>,
        table: GlobalMut<u64>, table_bits: u32, parts: Parts, counts: Global<u32>,
    ) {
        let batch = Batch { block: BLOCK, n, form, out, claims: Claims::new(table, table_bits), parts, counts };
        // SAFETY: the contract is that of this kernel; `j < n`, and the words of all blocks are valid.
        unsafe { batch.claim(|j| xxh64_at(keys, kind, j), |hash| in_split_block(words, blocks, hash)) };
    }
}

kernel! {
    /// Resolves claims: of the keys marked by [`split_block_dedup_claim`] leaves marked the winners of their hashes,
    /// and inserts them; in a divided batch, the keys of parts that overflowed. The second half of test-and-insert.
    ///
    /// # Safety
    /// - The contract of [`split_block_dedup_claim`], which has run with the same arguments.
    /// - `words` is only accessed atomically.
    #[launch_bounds(256, 6)]
    pub unsafe fn split_block_dedup_resolve(
        words: GlobalMut<u32>, blocks: u64, keys: Global<u64>, kind: KeyKind, n: usize, form: u32, out: GlobalMut<u64>,
        table: GlobalMut<u64>, table_bits: u32, parts: Parts, counts: Global<u32>,
    ) {
        let batch = Batch { block: BLOCK, n, form, out, claims: Claims::new(table, table_bits), parts, counts };
        // SAFETY: the caller keeps this kernel's contract; `j < n`, and all lanes of a warp insert together.
        unsafe { batch.resolve(|j| xxh64_at(keys, kind, j), |hash, valid| insert_warp(words, blocks, hash, valid)) };
    }
}

kernel! {
    /// Finishes a test-and-insert by parts: of equal keys leaves the first marked, and inserts all. Parts that
    /// overflowed are left to [`split_block_dedup_claim`].
    ///
    /// # Safety
    /// - Launch: 1-D, one block of [`batch_partition::BLOCK`] threads per part,
    ///   [`batch_partition::shared_bytes`]`(stretch)` bytes of dynamic shared memory.
    /// - `words`: valid for all blocks, only accessed atomically while the kernel runs.
    /// - `keys`, `counts`, `parts`, `form`, `out`: as [`partition_absent`](crate::bloom::partition::partition_absent)
    ///   has left them; nothing else accesses `out`.
    /// - `stretch`: 0, or at most [`batch_partition::MAX_STRETCH`]; for every part, the number of 32-bit words from the
    ///   block of its first hash to the block of its last.
    #[launch_bounds(384, 4)]
    pub unsafe fn split_block_insert_parts(
        words: GlobalMut<u32>, blocks: u64, keys: Global<u64>, counts: Global<u32>, parts: Parts, form: u32,
        out: GlobalMut<u64>, stretch: u32,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            batch_partition::insert_part(SplitBlockInsertion { blocks }, words, blocks, keys, counts, parts, form, out, stretch);
        }
    }
}
