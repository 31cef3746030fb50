//! Selection: the place of the one of a word that has `rank` ones below it.
//!
//! | form | where | ns (ranks 0 to 3 / any rank) |
//! | --- | --- | --- |
//! | `Pdep` of `warpset_base::processor` | x86-64 with fast `pdep` | 0.4 / 0.4 |
//! | [`Portable`] | every other host | 1.3 / 4.4 |
//! | [`ByHalves`], [`select`], [`select_short`] | devices, constants | 11 / 11 on a host without `popcnt`, 5 / 6 with |
//!
//! Random words, one of two cores of a busy x86-64 machine, throughput per selection. A host chooses its form once per
//! batch and passes it down by value, as a type: code generic over [`Select`] is compiled for each form, and no
//! selection queries the processor. Only `unsafe` code may assume the instruction `pdep`, so its form is outside this
//! crate.
//!
//! Sources: Pandey, Bender, Johnson, "A Fast x86 Implementation of Select", arXiv 1706.00990, 2017 (`pdep`);
//! Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, section 2.1 (halves).

/// A way to select ones.
pub trait Select: Copy {
    /// Returns the one of `word` with `rank` ones below it, alone in its place; zero if there is none. A `rank` of 64
    /// or more gives any one of the word, or zero.
    fn one(self, word: u64, rank: u32) -> u64;

    /// Returns the place of the bit; 64 if there is none.
    #[inline(always)]
    fn select(self, word: u64, rank: u32) -> u32 {
        self.one(word, rank).trailing_zeros()
    }

    /// Returns the ones of `word` with `rank` and `rank + 1` ones below them, as far as they exist; `rank` as for
    /// `one`.
    #[inline(always)]
    fn pair(self, word: u64, rank: u32) -> u64 {
        let first = self.one(word, rank);
        // The lowest one above the first; if there is no first, there is no second either.
        let above = word & !(first | first.wrapping_sub(1));
        first | above & above.wrapping_neg()
    }
}

/// Selection on any host: a few ones are taken away, the lowest first. Mostly few are, as clusters and buckets are
/// short.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

impl Select for Portable {
    #[inline(always)]
    fn one(self, mut word: u64, rank: u32) -> u64 {
        // A branch on the number among the first four would be unpredictable, so the code below has none.
        if rank < 4 {
            let second = word & word.wrapping_sub(1);
            let third = second & second.wrapping_sub(1);
            let fourth = third & third.wrapping_sub(1);
            let low = if rank & 1 == 0 { word } else { second };
            let high = if rank & 1 == 0 { third } else { fourth };
            word = if rank & 2 == 0 { low } else { high };
        } else {
            for _ in 0..rank.min(64) {
                word &= word.wrapping_sub(1);
            }
        }
        word & word.wrapping_neg()
    }
}

/// Selection on a device: the same steps for all threads of a warp.
#[derive(Clone, Copy, Debug)]
pub struct ByHalves;

impl Select for ByHalves {
    #[inline(always)]
    fn one(self, word: u64, rank: u32) -> u64 {
        match select(word, rank) {
            64 => 0,
            at => 1 << at,
        }
    }

    #[inline(always)]
    fn select(self, word: u64, rank: u32) -> u32 {
        select(word, rank)
    }
}

/// Returns the place of the one of `word` with `rank` ones below it; 64 if there is none.
#[inline]
pub const fn select(mut word: u64, rank: u32) -> u32 {
    // Halve by popcounts: six steps without a table or a branch that depends on data order.
    if rank >= word.count_ones() {
        return 64;
    }
    let mut rank = rank;
    let mut at = 0;
    let mut width = 32;
    while width > 0 {
        let ones = (word & ((1 << width) - 1)).count_ones();
        if rank >= ones {
            rank -= ones;
            word >>= width;
            at += width;
        }
        width /= 2;
    }
    at
}

/// Returns the position of the one of this rank in 32 bits that contain it: one by one for small ranks, else by halves.
#[inline(always)]
pub const fn select_short(word: u32, rank: u32) -> u32 {
    let (mut rest, mut rank, mut at) = (word, rank, 0);
    if rank < 4 {
        let mut step = 0;
        while step < 3 {
            if step < rank {
                rest &= rest.wrapping_sub(1);
            }
            step += 1;
        }
        return rest.trailing_zeros();
    }
    let mut width = 16;
    while width > 0 {
        let ones = (rest & ((1 << width) - 1)).count_ones();
        if rank >= ones {
            rest >>= width;
            rank -= ones;
            at += width;
        }
        width /= 2;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares all ranks of a word by every form of this crate.
    fn agree(word: u64) {
        let mut rest = word;
        for rank in 0..64 {
            let wanted = rest.trailing_zeros();
            let one = if rest == 0 { 0 } else { 1 << wanted };
            rest &= rest.wrapping_sub(1);
            let pair = if rest == 0 { one } else { one | 1 << rest.trailing_zeros() };
            assert_eq!(select(word, rank), wanted, "{word:x} {rank}");
            assert_eq!(Portable.select(word, rank), wanted, "{word:x} {rank}");
            assert_eq!(Portable.one(word, rank), one, "{word:x} {rank}");
            assert_eq!(Portable.pair(word, rank), pair, "{word:x} {rank}");
            assert_eq!(ByHalves.select(word, rank), wanted, "{word:x} {rank}");
            assert_eq!(ByHalves.one(word, rank), one, "{word:x} {rank}");
            assert_eq!(ByHalves.pair(word, rank), pair, "{word:x} {rank}");
            if word >> 32 == 0 && one != 0 {
                assert_eq!(select_short(word as u32, rank), wanted, "{word:x} {rank}");
            }
        }
        assert_eq!(select(word, 64), 64);
        assert_eq!(select(word, u32::MAX), 64);
    }

    #[test]
    fn all_words_of_sixteen_bits_in_a_row() {
        let step = if cfg!(miri) { 4099 } else { 1 };
        for low in (0..1u64 << 16).step_by(step) {
            agree(low << (low % 7 * 8));
        }
    }

    #[test]
    fn words_of_any_density() {
        let mut state = 1;
        for i in 0..if cfg!(miri) { 40 } else { 10_000 } {
            state = crate::hash::finalise(state);
            let other = crate::hash::finalise(!state);
            agree(match i % 4 {
                0 => state,
                1 => state & other,
                2 => state | other,
                _ => state >> 32,
            });
        }
        [0, !0, 1 << 63, 1 << 63 | 1, 0xaaaa_5555_0000_ffff].into_iter().for_each(agree);
    }
}
