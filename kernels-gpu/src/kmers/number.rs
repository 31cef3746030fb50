//! Numbers that hold a k-mer: fingerprints and keys, one copy for every backend.

use core::ops::BitXor;

use warpset_core::hash::permute::{permute, spread_of, unpermute};
use warpset_core::hash::{finalise, mix_spread, spread_seed};
use warpset_core::minimizer::Kmer;

/// Constant that separates keys of long k-mers from other hashes.
const SPREAD: u64 = 0xa076_1d64_78bd_642f;

/// Number that holds a k-mer on a device: `u64` up to 32 bases, `u128` up to 63.
pub trait Number: Kmer + BitXor<Output = Self> {
    /// Returns the fingerprint of a key of `bits` bits, a bijection; `bits` is even for `u128`.
    fn fingerprint(self, bits: u32) -> Self;

    /// Inverts [`fingerprint`](Number::fingerprint).
    fn of_fingerprint(fingerprint: Self, bits: u32) -> Self;

    /// Returns the low 64 bits of the number shifted right.
    fn bits_from(self, shift: u32) -> u64;

    /// Returns the key of a k-mer in a structure of 64-bit keys: a short k-mer itself, and of a long one a hash under a
    /// seed. For each seed, two long k-mers have equal keys with probability 2^-64.
    fn key(self, seed: u64) -> u64;
}

impl Number for u64 {
    /// Returns the fingerprint of the table's filter with seed 0.
    #[inline(always)]
    fn fingerprint(self, bits: u32) -> u64 {
        permute(self, bits, spread_of(0))
    }

    #[inline(always)]
    fn of_fingerprint(fingerprint: u64, bits: u32) -> u64 {
        unpermute(fingerprint, bits, spread_of(0))
    }

    #[inline(always)]
    fn bits_from(self, shift: u32) -> u64 {
        self >> shift
    }

    #[inline(always)]
    fn key(self, _: u64) -> u64 {
        self
    }
}

impl Number for u128 {
    /// Applies two rounds of a Feistel network to both halves, which have at most 63 bits.
    #[inline(always)]
    fn fingerprint(self, bits: u32) -> u128 {
        let (high, low, mask) = halves(self, bits);
        let low = low ^ finalise(high) & mask;
        let high = high ^ finalise(low) & mask;
        joined(high, low, bits)
    }

    #[inline(always)]
    fn of_fingerprint(fingerprint: u128, bits: u32) -> u128 {
        let (high, low, mask) = halves(fingerprint, bits);
        let high = high ^ finalise(low) & mask;
        let low = low ^ finalise(high) & mask;
        joined(high, low, bits)
    }

    #[inline(always)]
    fn bits_from(self, shift: u32) -> u64 {
        // The choice is made once per loop.
        let high = (self >> 64) as u64;
        if shift < 64 { (self >> (shift & 63)) as u64 } else { high >> (shift & 63) }
    }

    #[inline(always)]
    fn key(self, seed: u64) -> u64 {
        // Seed 0 adds nothing.
        mix_spread(self as u64, finalise((self >> 64) as u64 ^ SPREAD ^ spread_seed(seed)))
    }
}

/// Returns the upper and the lower half of a number of `bits` bits, at most 126, and the mask of a half.
#[inline(always)]
const fn halves(value: u128, bits: u32) -> (u64, u64, u64) {
    let mask = u64::MAX >> (64 - bits / 2);
    ((value >> ((bits / 2) & 63)) as u64, value as u64 & mask, mask)
}

/// Returns the number of both halves. A shift known to be below 64 takes no selection.
#[inline(always)]
const fn joined(high: u64, low: u64, bits: u32) -> u128 {
    (high as u128) << ((bits / 2) & 63) | low as u128
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_bijections_that_spread() {
        for k in [33u32, 34, 47, 55, 62, 63] {
            let mut parts = [0u32; 16];
            for i in 0..2000u64 {
                let kmer = (u128::from(finalise(i)) << 64 | u128::from(i)) & u128::mask(k);
                // K-mers that differ in few bases, too.
                for kmer in [kmer, i.into(), u128::from(i) << (2 * k - 12) & u128::mask(k)] {
                    let fingerprint = kmer.fingerprint(2 * k);
                    assert_eq!(fingerprint & !u128::mask(k), 0);
                    assert_eq!(u128::of_fingerprint(fingerprint, 2 * k), kmer);
                    parts[(fingerprint >> (2 * k - 4)) as usize] += 1;
                }
            }
            assert!(parts.iter().all(|n| (250..500).contains(n)), "{k} {parts:?}");
        }
    }

    #[test]
    fn keys_differ_by_kmer_and_by_seed() {
        let mut keys: Vec<u64> = (0..300)
            .flat_map(|i| [i as u128, (i as u128) << 64, (i as u128) << 96])
            .flat_map(|kmer| [0, 1, 2].map(|seed| (kmer | 1 << 125).key(seed)))
            .collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), 3 * (3 * 300 - 2));
        assert!(7u64.key(1) == 7);
    }
}
