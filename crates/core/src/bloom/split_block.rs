//! Parquet's split-block Bloom filter: addressing and bit patterns.
//!
//! A block is eight 32-bit little-endian words; a key sets one bit in each. Source: the Apache Parquet format
//! specification, `BloomFilter.md`; hash: XXH64 with seed 0 of the value's plain bytes
//! ([`crate::hash::xxh64_u64`] and its neighbours).
//!
//! ```text
//!  hash   63            32 31             0
//!        +----------------+----------------+
//!        |  chooses block |  x             |   word i: bit (x * SALT[i]) >> 27
//!        +----------------+----------------+
//! ```

/// Words in a block.
pub const WORDS_PER_BLOCK: usize = 8;
/// Bytes in a block.
pub const BLOCK_BYTES: usize = 32;
/// Bits in a block.
pub const BLOCK_BITS: usize = 256;
/// The most blocks that [`block_of`] can address: 128 GiB.
pub const MAX_BLOCKS: u64 = 1 << 32;

/// One odd multiplier per word, as the specification gives them.
pub const SALT: [u32; WORDS_PER_BLOCK] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// Returns the block of `hash`, below `blocks`; `blocks` is at most [`MAX_BLOCKS`].
#[inline]
pub const fn block_of(hash: u64, blocks: u64) -> u64 {
    ((hash >> 32) * blocks) >> 32
}

/// Returns the one bit that `hash` sets in word `word` (below eight) of its block.
#[inline]
pub const fn word_mask(hash: u64, word: usize) -> u32 {
    1 << ((hash as u32).wrapping_mul(SALT[word % WORDS_PER_BLOCK]) >> 27)
}

/// Returns all eight masks of `hash`.
#[inline]
pub const fn block_mask(hash: u64) -> [u32; WORDS_PER_BLOCK] {
    let x = hash as u32;
    [
        1 << (x.wrapping_mul(SALT[0]) >> 27),
        1 << (x.wrapping_mul(SALT[1]) >> 27),
        1 << (x.wrapping_mul(SALT[2]) >> 27),
        1 << (x.wrapping_mul(SALT[3]) >> 27),
        1 << (x.wrapping_mul(SALT[4]) >> 27),
        1 << (x.wrapping_mul(SALT[5]) >> 27),
        1 << (x.wrapping_mul(SALT[6]) >> 27),
        1 << (x.wrapping_mul(SALT[7]) >> 27),
    ]
}

/// Whether every bit of `mask` is set in `block`.
#[inline]
pub const fn covers(block: &[u32; WORDS_PER_BLOCK], mask: &[u32; WORDS_PER_BLOCK]) -> bool {
    let missing = (mask[0] & !block[0])
        | (mask[1] & !block[1])
        | (mask[2] & !block[2])
        | (mask[3] & !block[3])
        | (mask[4] & !block[4])
        | (mask[5] & !block[5])
        | (mask[6] & !block[6])
        | (mask[7] & !block[7]);
    missing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_mask_is_the_word_masks() {
        for i in 0..100 {
            let hash = crate::hash::finalise(i);
            let mask = block_mask(hash);
            for (w, m) in mask.iter().enumerate() {
                assert_eq!(*m, word_mask(hash, w));
                assert_eq!(m.count_ones(), 1);
            }
            assert!(covers(&mask, &mask));
            assert!(!covers(&[0; 8], &mask));
        }
    }

    #[test]
    fn blocks_stay_in_range_and_halve_when_the_count_halves() {
        for blocks in [1, 2, 6, 1 << 20, MAX_BLOCKS] {
            for hash in [0, 1, u64::MAX, 0x8000_0000_0000_0000] {
                assert!(block_of(hash, blocks) < blocks);
                if blocks.is_multiple_of(2) {
                    assert_eq!(block_of(hash, blocks / 2), block_of(hash, blocks) / 2);
                }
            }
        }
    }
}
