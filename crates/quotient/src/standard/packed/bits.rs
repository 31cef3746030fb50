//! Bits of a word: ranges of them, the highest, the n-th.

/// The bits `from..to` of a word, `to` up to 64.
#[inline(always)]
pub(super) const fn bits(from: u32, to: u32) -> u64 {
    if from >= to { 0 } else { (!0 >> (64 - (to - from))) << from }
}

/// The bits above the highest one that is set; all of them if none is.
#[inline(always)]
pub(super) const fn above_last(bits: u64) -> u64 {
    // A shift by 63 and another by one, as a shift by 64 has no meaning; without a bit, neither must shift.
    if bits == 0 { !0 } else { !0 << (63 - bits.leading_zeros()) << 1 }
}

/// The place of the one that has `rank` ones below it; 64 if there is none.
#[inline(always)]
pub(super) fn nth_one(mut bits: u64, rank: u32) -> u32 {
    // Mostly the first few, and which of them is anybody's guess: chosen without a branch.
    if rank < 4 {
        let second = bits & bits.wrapping_sub(1);
        let third = second & second.wrapping_sub(1);
        let fourth = third & third.wrapping_sub(1);
        let low = if rank & 1 == 0 { bits } else { second };
        let high = if rank & 1 == 0 { third } else { fourth };
        return if rank & 2 == 0 { low } else { high }.trailing_zeros();
    }
    for _ in 0..rank.min(64) {
        bits &= bits.wrapping_sub(1);
    }
    bits.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ones_are_found() {
        for bits in [0, 1, 0b1011_0000, !0, 1 << 63, 0x8000_0000_0000_0001, 0x5555_5555_5555_5555] {
            let ones: Vec<u32> = (0..64).filter(|at| bits >> at & 1 != 0).collect();
            for rank in 0..66 {
                let wanted = ones.get(rank).copied().unwrap_or(64);
                assert_eq!(nth_one(bits, rank as u32), wanted, "{bits:x} {rank}");
            }
        }
    }

    #[test]
    fn ranges_of_bits() {
        assert_eq!([bits(0, 64), bits(3, 3), bits(0, 1), bits(63, 64), bits(4, 8)], [!0, 0, 1, 1 << 63, 0xf0]);
        assert_eq!([above_last(0), above_last(1), above_last(1 << 63), above_last(5)], [!0, !1, 0, !7]);
    }
}
