//! Words that hold a k-mer: 64 bits up to 32 bases, 128 bits up to 63.

use bytemuck::Pod;
use warpset_core::minimizer::Kmer;
use warpset_kernels::kmers::number::Number;

/// Largest k of a k-mer in 64 bits.
pub(crate) const MOST_SHORT: u32 = <u64 as Kmer>::MOST_K;

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
        /// Returns the low bits of a number.
        fn of(wide: u128) -> Self;
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
}

/// Returns the k-mers themselves if they are short.
#[inline(always)]
pub(crate) fn short<W: Word>(kmers: &[W]) -> Option<&[u64]> {
    if W::BITS == u64::BITS { bytemuck::try_cast_slice(kmers).ok() } else { None }
}
