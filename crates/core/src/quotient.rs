//! Quotient filters: fingerprints, slots and the walks through them, one copy for every backend.
//!
//! - [`slots`]: memory layout of slots, and the three metadata bits.
//! - [`standard`]: lookup, insertion, removal and layout in the standard quotient filter.
//! - [`rank_select`]: the rank-and-select quotient filter.
//! - [`combine`]: combination of two multisets of fingerprints, and of a filter with a batch, block by block.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section III-A; Bender et al., "Don't Thrash: How to Cache Your Hash on Flash", VLDB 2012.

pub mod combine;
pub mod rank_select;
pub mod slots;
pub mod standard;

/// Bits of the widest remainder. With three bits of metadata the slot takes 64 bits.
pub const MAX_REMAINDER_BITS: u32 = 61;
/// Most quotient bits: a slot's index, and its position in bits, fit in 64 bits with bits to spare.
pub const MAX_QUOTIENT_BITS: u32 = 48;

/// Split of a fingerprint: the high bits are the quotient, the low ones the remainder.
///
/// ```text
///  hash         | quotient_bits | remainder_bits |  dropped  |   64 bits, most significant first
///  fingerprint  |            quotient            remainder   |   the hash shifted right
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// Base-2 logarithm of the number of quotients.
    pub quotient_bits: u32,
    /// Bits of a remainder.
    pub remainder_bits: u32,
}

impl Split {
    /// Returns a split that filters support: both parts have at least one bit, within the limits above, and together at
    /// most 64.
    #[inline]
    pub const fn new(quotient_bits: u32, remainder_bits: u32) -> Option<Split> {
        if quotient_bits == 0
            || quotient_bits > MAX_QUOTIENT_BITS
            || remainder_bits == 0
            || remainder_bits > MAX_REMAINDER_BITS
            || quotient_bits + remainder_bits > 64
        {
            return None;
        }
        Some(Split { quotient_bits, remainder_bits })
    }

    /// Returns the bits of a fingerprint, `p` in the paper.
    #[inline]
    pub const fn fingerprint_bits(self) -> u32 {
        self.quotient_bits + self.remainder_bits
    }

    /// Returns the number of quotients.
    #[inline]
    pub const fn quotients(self) -> u64 {
        1 << self.quotient_bits
    }

    /// Returns the fingerprint of a hash: its high bits.
    #[inline]
    pub const fn fingerprint(self, hash: u64) -> u64 {
        hash >> (64 - self.fingerprint_bits())
    }

    /// Returns the quotient of a fingerprint.
    #[inline]
    pub const fn quotient(self, fingerprint: u64) -> u64 {
        fingerprint >> self.remainder_bits
    }

    /// Returns the remainder of a fingerprint.
    #[inline]
    pub const fn remainder(self, fingerprint: u64) -> u64 {
        fingerprint & ((1 << self.remainder_bits) - 1)
    }

    /// Returns the fingerprint of a quotient and a remainder.
    #[inline]
    pub const fn join(self, quotient: u64, remainder: u64) -> u64 {
        quotient << self.remainder_bits | remainder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_join_again() {
        for (q, r) in [(1, 1), (3, 61), (23, 5), (48, 16), (32, 32)] {
            let split = Split::new(q, r).unwrap();
            for i in 0..1000 {
                let f = split.fingerprint(crate::hash::finalise(i));
                assert_eq!(split.join(split.quotient(f), split.remainder(f)), f);
                assert!(split.quotient(f) < split.quotients());
            }
        }
        for (q, r) in [(0, 5), (5, 0), (49, 5), (4, 61), (2, 62), (40, 25)] {
            assert_eq!(Split::new(q, r), None, "{q} {r}");
        }
    }
}
