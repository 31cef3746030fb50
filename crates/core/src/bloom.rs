//! Bloom filters: which bits belong to a hash, one copy for every backend.
//!
//! - [`split_block`]: Parquet's split-block filter, 256-bit blocks, eight bits per key.
//! - [`blocked`]: blocks of 64 to 1024 bits, 32- or 64-bit words, any number of bits per key.
//! - [`rao`]: Rao's two-level filter, buckets of a prime number of bits, double hashing.

pub mod blocked;
pub mod rao;
pub mod split_block;

/// Keys per step of a bulk `test_and_insert`.
///
/// Bulk input is cut into sub-batches of this many keys. A key is reported new if the filter before its sub-batch does
/// not contain it and no equal hash precedes it in the sub-batch. Every backend uses the same cut, and so gives the
/// same answers.
pub const TEST_AND_INSERT_BATCH: usize = 1 << 24;

/// Returns `floor(hash / 2^64 * n)`: maps a 64-bit hash evenly to `0..n` by its high bits.
#[inline]
pub const fn reduce64(hash: u64, n: u64) -> u64 {
    ((hash as u128 * n as u128) >> 64) as u64
}

/// Returns `floor(hash / 2^32 * n)` for `n <= 2^32`.
#[inline]
pub const fn reduce32(hash: u32, n: u64) -> u64 {
    (hash as u64 * n) >> 32
}
