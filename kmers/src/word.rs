//! Words that hold a k-mer: 64 bits up to 32 bases, 128 bits up to 63.

use bytemuck::Pod;
use warpset_core::hash::{finalise, mix_spread};
use warpset_core::minimizer::Kmer;
use warpset_kernels::kmers::letters::Number;

/// Largest k of a k-mer in 64 bits.
pub(crate) const MOST_SHORT: u32 = <u64 as Kmer>::MOST_K;
/// Seed of keys of long k-mers.
const SPREAD: u64 = 0xa076_1d64_78bd_642f;

/// Number that holds a k-mer: `u64` up to 32 bases, `u128` up to 63. Sealed.
pub trait Word: Number + Pod + sealed::Word {}
impl Word for u64 {}
impl Word for u128 {}

pub(crate) mod sealed {
    pub trait Word: Sized {
        /// Bits of the number.
        const BITS: u32;
        /// Returns the value of the same number in 128 bits.
        fn wide(self) -> u128;
        /// Returns the low 64 bits of the number shifted right.
        fn bits_from(self, shift: u32) -> u64;
        /// Returns the low bits of a number.
        fn of(wide: u128) -> Self;
        /// Returns the key of a filter of 64-bit keys: different for different short k-mers, and for long ones almost
        /// always.
        fn key(self) -> u64;
    }
}

impl sealed::Word for u64 {
    const BITS: u32 = u64::BITS;

    #[inline(always)]
    fn wide(self) -> u128 {
        self.into()
    }

    #[inline(always)]
    fn bits_from(self, shift: u32) -> u64 {
        self >> shift
    }

    #[inline(always)]
    fn of(wide: u128) -> u64 {
        wide as u64
    }

    #[inline(always)]
    fn key(self) -> u64 {
        self
    }
}

impl sealed::Word for u128 {
    const BITS: u32 = u128::BITS;

    #[inline(always)]
    fn wide(self) -> u128 {
        self
    }

    #[inline(always)]
    fn bits_from(self, shift: u32) -> u64 {
        // The choice is made once per loop.
        let high = (self >> 64) as u64;
        if shift < 64 { (self >> (shift & 63)) as u64 } else { high >> (shift & 63) }
    }

    #[inline(always)]
    fn of(wide: u128) -> u128 {
        wide
    }

    #[inline(always)]
    fn key(self) -> u64 {
        mix_spread(self as u64, finalise((self >> 64) as u64 ^ SPREAD))
    }
}

/// Returns the k-mers themselves if they are short.
#[inline(always)]
pub(crate) fn short<W: Word>(kmers: &[W]) -> Option<&[u64]> {
    if W::BITS == u64::BITS { bytemuck::try_cast_slice(kmers).ok() } else { None }
}
