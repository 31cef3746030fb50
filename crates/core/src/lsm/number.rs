//! Keys as numbers, for hashes and indexes.

use super::UPPER_SEED;
use crate::hash::mix;

/// Unsigned number of 64 or 128 bits, in the order of the keys.
pub trait Number: Copy + Ord {
    /// Returns the number with these halves, the lower one first; a number of 64 bits is the lower half.
    fn from_halves(halves: [u64; 2]) -> Self;
    /// Returns the halves, the lower one first; the upper half of a number of 64 bits is zero.
    fn halves(self) -> [u64; 2];
    /// Returns 64 bits for a hash: the number itself if it has no more.
    fn folded(self) -> u64;
    /// Returns the largest left shift of the distance to `least` (at most this number) that loses no bits; for a
    /// distance of zero, all bits but one.
    fn room(self, least: Self) -> u32;
    /// Returns the upper 64 bits of the distance to `least` (at most this number), shifted left by `shift`, at most
    /// [`room`](Self::room).
    fn shifted(self, least: Self, shift: u32) -> u64;
}

impl Number for u64 {
    #[inline]
    fn from_halves([lower, _]: [u64; 2]) -> u64 {
        lower
    }

    #[inline]
    fn halves(self) -> [u64; 2] {
        [self, 0]
    }

    #[inline]
    fn folded(self) -> u64 {
        self
    }

    #[inline]
    fn room(self, least: u64) -> u32 {
        (self - least).leading_zeros().min(63)
    }

    #[inline]
    fn shifted(self, least: u64, shift: u32) -> u64 {
        (self - least) << shift
    }
}

impl Number for u128 {
    #[inline]
    fn from_halves([lower, upper]: [u64; 2]) -> u128 {
        (upper as u128) << 64 | lower as u128
    }

    #[inline]
    fn halves(self) -> [u64; 2] {
        [self as u64, (self >> 64) as u64]
    }

    #[inline]
    fn folded(self) -> u64 {
        self as u64 ^ mix((self >> 64) as u64, UPPER_SEED)
    }

    #[inline]
    fn room(self, least: u128) -> u32 {
        (self - least).leading_zeros().min(127)
    }

    #[inline]
    fn shifted(self, least: u128, shift: u32) -> u64 {
        ((self - least) << shift >> 64) as u64
    }
}
