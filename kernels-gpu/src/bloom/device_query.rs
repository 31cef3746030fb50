//! Queries of a Bloom filter in device memory by one thread: for the kernels here, and for kernels of other crates
//! (feature `filters`).
//!
//! To a kernel a filter is two parameters: its words as a `Global<u32>`, and a query by value, which the method `query`
//! of the filter in device memory makes. They stay apart because a pointer inside a struct would lose its address
//! space.
//!
//! ```
//! use warpset_kernels::bloom::device_query::SplitBlockQuery;
//! use warpset_simt::{Global, GlobalMut, kernel, thread};
//!
//! kernel! {
//!     /// `found[i]` becomes 1 if the filter may contain key `i`, else 0.
//!     ///
//!     /// # Safety
//!     /// `words` are those of `filter`, and nothing writes them; `keys` and `found` are valid for `n` items.
//!     pub unsafe fn ask(
//!         words: Global<u32>, filter: SplitBlockQuery, keys: Global<u64>, found: GlobalMut<u32>, n: usize,
//!     ) {
//!         for i in thread::grid_stride(n) {
//!             // SAFETY: `i < n`; the words are the filter's.
//!             unsafe { found.write(i, filter.contains(words, keys.read(i)) as u32) };
//!         }
//!     }
//! }
//! ```

use warpset_core::bloom::blocked::{BlockShape, Pattern, block_of};
use warpset_core::bloom::split_block::{self, WORDS_PER_BLOCK, block_mask};
use warpset_core::hash;
use warpset_simt::Global;

/// A split-block filter, without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct SplitBlockQuery {
    blocks: u64,
    /// 1 if integers hash as in a Parquet column of type INT32.
    int32: u64,
}

const _: () = assert!(size_of::<SplitBlockQuery>() == 16);

impl SplitBlockQuery {
    /// Returns a filter of `blocks` blocks; `is_int32` if it is one of a Parquet column of type INT32.
    pub const fn new(blocks: u64, is_int32: bool) -> SplitBlockQuery {
        SplitBlockQuery { blocks, int32: is_int32 as u64 }
    }

    /// Returns the hash of an integer by its value in 64 bits, a signed one with its sign carried.
    #[inline(always)]
    pub const fn hash(self, key: u64) -> u64 {
        if self.int32 != 0 { hash::xxh64_int32(key) } else { hash::xxh64_u64(key, 0) }
    }

    /// Whether the filter may contain an integer, by its value in 64 bits.
    ///
    /// # Safety
    /// `words` are those of the filter, at an address that is a multiple of 16, not written while the kernel runs.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn contains(self, words: Global<u32>, key: u64) -> bool {
        // SAFETY: this function's contract is that of the callee.
        unsafe { self.contains_hash(words, self.hash(key)) }
    }

    /// Whether the filter may contain a key, by its hash.
    ///
    /// # Safety
    /// The contract of [`SplitBlockQuery::contains`].
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn contains_hash(self, words: Global<u32>, hash: u64) -> bool {
        // SAFETY: this function's contract is that of the callee.
        unsafe { in_split_block(words, self.blocks, hash) }
    }
}

/// Whether a split-block filter contains a hash.
///
/// # Safety
/// `words` holds `blocks > 0` blocks, 16-byte aligned, not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
pub(super) unsafe fn in_split_block(words: Global<u32>, blocks: u64, hash: u64) -> bool {
    let first = split_block::block_of(hash, blocks) as usize * WORDS_PER_BLOCK;
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

/// A blocked filter, without its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct BlockedQuery {
    blocks: u64,
    spread: u64,
    shape: BlockShape,
}

const _: () = assert!(size_of::<BlockedQuery>() == 32);

impl BlockedQuery {
    /// Returns a filter of `blocks` blocks of a shape, with a seed.
    pub const fn new(blocks: u64, shape: BlockShape, seed: u64) -> BlockedQuery {
        BlockedQuery { blocks, spread: hash::spread_seed(seed), shape }
    }

    /// Returns the hash of an integer by its value in 64 bits, a signed one with its sign carried.
    #[inline(always)]
    pub const fn hash(self, key: u64) -> u64 {
        hash::mix_spread(key, self.spread)
    }

    /// Whether the filter may contain an integer, by its value in 64 bits: reads at most one word of the block per bit
    /// of the key, and ends at the first missing bit.
    ///
    /// # Safety
    /// `words` are those of the filter, not written while the kernel runs.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn contains(self, words: Global<u32>, key: u64) -> bool {
        // SAFETY: this function's contract is that of the callee.
        unsafe { self.contains_hash(words, self.hash(key)) }
    }

    /// Whether the filter may contain a key, by its hash.
    ///
    /// # Safety
    /// The contract of [`BlockedQuery::contains`].
    #[cfg(feature = "bodies")]
    #[inline(always)]
    pub unsafe fn contains_hash(self, words: Global<u32>, hash: u64) -> bool {
        // SAFETY: this function's contract is that of the callee.
        unsafe { in_block(words, self.blocks, self.shape, hash) }
    }
}

/// Whether a blocked filter contains a hash, bit by bit; for any shape, and for single lanes.
///
/// # Safety
/// `words` holds `blocks > 0` blocks of `shape`, not written while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
pub(super) unsafe fn in_block(words: Global<u32>, blocks: u64, shape: BlockShape, hash: u64) -> bool {
    let first = block_of(hash, blocks) as usize * (shape.block_bits() / 32) as usize;
    let pattern = Pattern::of(hash);
    let mut i = 0;
    while i < shape.hashes() {
        let bit = pattern.bit(shape, i);
        // SAFETY: `bit` lies inside the block, and `block_of` stays below `blocks`.
        let word = unsafe { words.read_nc(first + (bit / 32) as usize) };
        if word >> (bit % 32) & 1 == 0 {
            return false;
        }
        i += 1;
    }
    true
}
