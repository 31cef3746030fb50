//! Words that hold a k-mer: 64 bits up to 32 bases, 128 bits up to 63.

use bytemuck::Pod;
use warpset_core::hash::permute::{permute, spread_of, unpermute};
use warpset_core::hash::{finalise, mix_spread};
use warpset_core::minimizer::Kmer;

/// Largest k of a k-mer in 64 bits.
pub(crate) const MOST_SHORT: u32 = <u64 as Kmer>::MOST_K;
/// Seed of keys of long k-mers.
const SPREAD: u64 = 0xa076_1d64_78bd_642f;

/// Number that holds a k-mer: `u64` up to 32 bases, `u128` up to 63. Sealed.
pub trait Word: Kmer + Pod + sealed::Word {}
impl Word for u64 {}
impl Word for u128 {}

pub(crate) mod sealed {
    pub trait Word: Sized {
        /// Bits of the number.
        const BITS: u32;
        /// Returns the value of the same number in 128 bits.
        fn wide(self) -> u128;
        /// Returns the low bits of a number.
        fn of(wide: u128) -> Self;
        /// Returns the key of a filter of 64-bit keys: different for different short k-mers, and for long ones almost
        /// always.
        fn key(self) -> u64;
        /// Returns the fingerprint of a key of `bits` bits, a bijection; `bits` is even for long k-mers.
        fn fingerprint(self, bits: u32) -> Self;
        /// Inverts [`fingerprint`](Word::fingerprint).
        fn of_fingerprint(fingerprint: Self, bits: u32) -> Self;
    }
}

impl sealed::Word for u64 {
    const BITS: u32 = u64::BITS;

    #[inline(always)]
    fn wide(self) -> u128 {
        self.into()
    }

    #[inline(always)]
    fn of(wide: u128) -> u64 {
        wide as u64
    }

    #[inline(always)]
    fn key(self) -> u64 {
        self
    }

    /// Returns the fingerprint of the table's filter with seed 0.
    #[inline(always)]
    fn fingerprint(self, bits: u32) -> u64 {
        permute(self, bits, spread_of(0))
    }

    #[inline(always)]
    fn of_fingerprint(fingerprint: u64, bits: u32) -> u64 {
        unpermute(fingerprint, bits, spread_of(0))
    }
}

impl sealed::Word for u128 {
    const BITS: u32 = u128::BITS;

    #[inline(always)]
    fn wide(self) -> u128 {
        self
    }

    #[inline(always)]
    fn of(wide: u128) -> u128 {
        wide
    }

    #[inline(always)]
    fn key(self) -> u64 {
        mix_spread(self as u64, finalise((self >> 64) as u64 ^ SPREAD))
    }

    /// Applies two rounds of a Feistel network to both halves, which have at most 63 bits.
    #[inline(always)]
    fn fingerprint(self, bits: u32) -> u128 {
        let (high, low, mask) = halves(self, bits);
        let low = low ^ finalise(high) & mask;
        let high = high ^ finalise(low) & mask;
        u128::from(high) << (bits / 2) | u128::from(low)
    }

    #[inline(always)]
    fn of_fingerprint(fingerprint: u128, bits: u32) -> u128 {
        let (high, low, mask) = halves(fingerprint, bits);
        let high = high ^ finalise(low) & mask;
        let low = low ^ finalise(high) & mask;
        u128::from(high) << (bits / 2) | u128::from(low)
    }
}

/// Returns the upper and the lower half of a number of `bits` bits, at most 126, and the mask of a half.
#[inline(always)]
fn halves(value: u128, bits: u32) -> (u64, u64, u64) {
    let mask = u64::MAX >> (64 - bits / 2);
    ((value >> (bits / 2)) as u64, value as u64 & mask, mask)
}

/// Returns the k-mers themselves if they are short.
#[inline(always)]
pub(crate) fn short<W: Word>(kmers: &[W]) -> Option<&[u64]> {
    if W::BITS == u64::BITS { bytemuck::try_cast_slice(kmers).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::sealed::Word;
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
}
