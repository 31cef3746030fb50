//! Hashes of integers and byte strings, the same on every backend.
//!
//! | function | where it is used |
//! | --- | --- |
//! | [`xxh64_u64`], [`xxh64`] | Parquet's split-block Bloom filter (seed 0) |
//! | [`xxh64_int32`] | the same, integers of a column of type INT32 |
//! | [`mix`] | integer keys of every other structure |
//! | [`xxh3_128`] | byte strings of RecSplit |
//! | [`string`] | the first-level functions of Rao's Bloom filter |

pub mod permute;
pub mod string;
mod xxh3;
mod xxh64;

pub use xxh3::xxh3_128;
pub use xxh64::{ByteSource, xxh64, xxh64_int32, xxh64_u32, xxh64_u64};

/// 2^64 divided by the golden ratio, odd: spreads small seeds over all bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Permutes 64 bits so that every input bit changes every output bit with probability close to one half.
///
/// Pelle Evensen's `moremur` constants for the Murmur3 finaliser: two multiplications.
#[inline]
pub const fn finalise(mut x: u64) -> u64 {
    x ^= x >> 27;
    x = x.wrapping_mul(0x3c79_ac49_2ba7_b653);
    x ^= x >> 33;
    x = x.wrapping_mul(0x1c69_b3f7_4ac4_ae35);
    x ^ (x >> 27)
}

/// Prepares the seed of [`mix`]; a kernel can take the result as a parameter and call [`mix_spread`].
#[inline]
pub const fn spread_seed(seed: u64) -> u64 {
    finalise(seed.wrapping_mul(GOLDEN))
}

/// Hashes an integer under a seed: for each seed a bijection on 64 bits. Shorter integers hash like the 64-bit integer
/// of their value.
///
/// The seed is spread over all bits first; otherwise neighbouring seeds would only permute a dense range of keys.
#[inline]
pub const fn mix(key: u64, seed: u64) -> u64 {
    mix_spread(key, spread_seed(seed))
}

/// Hashes like [`mix`], with a seed prepared by [`spread_seed`]: one exclusive or and [`finalise`].
#[inline]
pub const fn mix_spread(key: u64, spread: u64) -> u64 {
    finalise(key ^ spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_zero_is_the_plain_finaliser() {
        assert_eq!(mix(12345, 0), finalise(12345));
    }

    #[test]
    fn a_flipped_bit_changes_half_of_the_output() {
        for bit in 0..64 {
            let mut changed = 0;
            for key in 0..1000u64 {
                changed += (mix(key, 7) ^ mix(key ^ 1 << bit, 7)).count_ones();
            }
            assert!((30_000..34_000).contains(&changed), "bit {bit}: {changed} of 64000");
        }
    }

    #[test]
    fn neighbouring_seeds_hash_a_dense_range_to_other_values() {
        // An unspread seed would map 0..256 onto the same set of hashes.
        let sum = |seed| (0..256u64).map(|key| mix(key, seed)).fold(0u64, u64::wrapping_add);
        assert_ne!(sum(0), sum(1));
        assert_ne!(sum(1), sum(2));
    }
}
