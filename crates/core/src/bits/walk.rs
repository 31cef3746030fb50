//! Walks over many words: ranks, selection, the next and the previous one.
//!
//! Words are requested by number, so that those of a structure need not be contiguous, and may be the complement of the
//! stored ones: `|i| !words[i]` searches zeros. No word without a bit of the range is requested.

use super::{Select, lowest};

/// Counts the ones among the bits `from..to`.
#[inline]
pub fn count(from: u64, to: u64, word: impl Fn(u64) -> u64) -> u64 {
    if from >= to {
        return 0;
    }
    let (mut index, last) = (from / 64, (to - 1) / 64);
    let mut bits = word(index) & !0 << (from % 64);
    let mut ones = 0;
    while index < last {
        ones += bits.count_ones() as u64;
        index += 1;
        bits = word(index);
    }
    ones + (bits & lowest((to - 1) as u32 % 64 + 1)).count_ones() as u64
}

/// Returns the place of the one with `rank` ones between bit `from` and itself; `to` if there is none before that bit.
#[inline]
pub fn select_from(from: u64, to: u64, mut rank: u64, select: impl Select, word: impl Fn(u64) -> u64) -> u64 {
    if from >= to {
        return to;
    }
    let mut index = from / 64;
    let mut bits = word(index) & !0 << (from % 64);
    loop {
        let ones = bits.count_ones() as u64;
        if rank < ones {
            return Ord::min(index * 64 + select.select(bits, rank as u32) as u64, to);
        }
        rank -= ones;
        index += 1;
        if index * 64 >= to {
            return to;
        }
        bits = word(index);
    }
}

/// Returns the first one from bit `from` on; `to` if there is none before that bit.
#[inline]
pub fn next_one(from: u64, to: u64, word: impl Fn(u64) -> u64) -> u64 {
    if from >= to {
        return to;
    }
    let mut index = from / 64;
    let mut bits = word(index) & !0 << (from % 64);
    while bits == 0 {
        index += 1;
        if index * 64 >= to {
            return to;
        }
        bits = word(index);
    }
    Ord::min(index * 64 + bits.trailing_zeros() as u64, to)
}

/// Returns the last one before bit `to`.
#[inline]
pub fn previous_one(to: u64, word: impl Fn(u64) -> u64) -> Option<u64> {
    if to == 0 {
        return None;
    }
    let mut index = (to - 1) / 64;
    let mut bits = word(index) & lowest((to - 1) as u32 % 64 + 1);
    while bits == 0 {
        if index == 0 {
            return None;
        }
        index -= 1;
        bits = word(index);
    }
    Some(index * 64 + 63 - bits.leading_zeros() as u64)
}

#[cfg(test)]
mod tests {
    use super::super::{ByHalves, Portable};
    use super::*;

    const BITS: usize = 3 * 64;
    const SETS: [[u64; 3]; 5] = [
        [!0; 3],
        [1 << 63, 0, 1],
        [0, 0x8000_0000_0000_0001, 0x10],
        [0x0123_4567_89ab_cdef, 0, 0x9e37_79b9_7f4a_7c15],
        [0, 0, 1 << 63],
    ];

    /// Compares every range of bits of some words with a walk bit by bit.
    #[test]
    fn every_range_of_bits() {
        let step = if cfg!(miri) { 37 } else { 1 };
        for words in SETS {
            let has = |at: usize| words[at / 64] >> (at % 64) & 1 == 1;
            for from in (0..=BITS).step_by(step) {
                for to in (0..=BITS).step_by(step) {
                    // Panics if a word without a bit of the range is requested.
                    let word = |index: u64| {
                        assert!(index * 64 < to as u64 && (index + 1) * 64 > from as u64);
                        words[index as usize]
                    };
                    let ones = || (from..to).filter(|&at| has(at));
                    let (start, end) = (from as u64, to as u64);
                    assert_eq!(count(start, end, word), ones().count() as u64);
                    assert_eq!(next_one(start, end, word), ones().next().unwrap_or(to) as u64);
                    for rank in [0, 1, 17, 63, 64, 130] {
                        let wanted = ones().nth(rank).unwrap_or(to) as u64;
                        assert_eq!(select_from(start, end, rank as u64, Portable, word), wanted);
                        assert_eq!(select_from(start, end, rank as u64, ByHalves, word), wanted);
                    }
                }
                let before = (0..from).rev().find(|&at| has(at)).map(|at| at as u64);
                assert_eq!(previous_one(from as u64, |index| words[index as usize]), before);
            }
        }
    }
}
