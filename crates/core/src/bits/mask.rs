//! Masks, and the ones below a bit.

/// Returns a mask of the lowest `width` bits, `width` up to 64.
#[inline(always)]
pub const fn lowest(width: u32) -> u64 {
    if width >= 64 { !0 } else { (1 << width) - 1 }
}

/// Returns a mask of the bits `from..to`, `to` up to 64; empty if the range is.
#[inline(always)]
pub const fn range(from: u32, to: u32) -> u64 {
    if from >= to { 0 } else { (!0 >> (64 - (to - from))) << from }
}

/// Returns a mask of the bits above the highest set bit; of all bits if none is set.
#[inline(always)]
pub const fn above_last(word: u64) -> u64 {
    // A shift by 63 and another by one, as a shift by 64 has no meaning; without a one, neither must shift.
    if word == 0 { !0 } else { !0 << (63 - word.leading_zeros()) << 1 }
}

/// Counts the ones of `word` below bit `at`, which is below 64.
#[inline(always)]
pub const fn rank(word: u64, at: u32) -> u32 {
    (word & ((1 << at) - 1)).count_ones()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_range() {
        for from in 0..=64 {
            for to in 0..=64 {
                let wanted = (0..64).filter(|at| (from..to).contains(at)).fold(0, |bits, at| bits | 1 << at);
                assert_eq!(range(from, to), wanted, "{from}..{to}");
            }
            assert_eq!(lowest(from), range(0, from));
        }
    }

    #[test]
    fn above_every_bit() {
        assert_eq!(above_last(0), !0);
        for at in 0..64 {
            for below in [0, 1, 0x5555_5555_5555_5555, !0] {
                assert_eq!(above_last(1 << at | below & lowest(at)), range(at + 1, 64));
            }
        }
    }

    #[test]
    fn every_rank() {
        for word in [0, 1, 1 << 63, 0x1234_5678_9abc_def0, !0] {
            let mut ones = 0;
            for at in 0..64 {
                assert_eq!(rank(word, at), ones);
                ones += (word >> at & 1) as u32;
            }
        }
    }
}
