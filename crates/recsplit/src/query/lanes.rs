//! Arithmetic and loads for look-ups in lanes of 64 bits: plain Rust without branches, which becomes vectors.

use super::Row;
use super::batch::BATCH;

/// A number for each look-up of a batch.
pub(crate) type Lane = [u64; BATCH];

/// The low half of a lane.
pub(crate) const LOW: u64 = 0xffff_ffff;

/// The fields of a row that a level needs, unpacked.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    pub reciprocal: u64,
    pub scale: u64,
    pub fixed_bits: u64,
    pub child_fixed_bits: u64,
    pub values: u64,
    pub unit: u64,
    pub child_codes: u64,
    pub golomb: u64,
    pub last: u64,
    pub groups: u64,
    pub radix: u64,
}

/// Rows and words, for loads in lanes.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub rows: &'a [Row],
    pub words: &'a [u64],
}

impl Memory<'_> {
    #[inline(always)]
    pub(crate) fn row(self, keys: u64) -> Fields {
        let index = (keys as usize).min(self.rows.len() - 1);
        // SAFETY: the index is within the rows, which are 32 bytes of integers without padding, aligned for words.
        let [a, b, c, d] = unsafe { self.rows.as_ptr().cast::<[u64; 4]>().add(index).read() };
        // In the order of `Row`, little-endian.
        Fields {
            reciprocal: a,
            scale: b & LOW,
            fixed_bits: b >> 32,
            child_fixed_bits: c & LOW,
            values: c >> 32,
            unit: d & 0xffff,
            child_codes: d >> 16 & 0xffff,
            golomb: d >> 32 & 0xff,
            last: d >> 40 & 0xff,
            groups: d >> 48 & 0xff,
            radix: d >> 56,
        }
    }

    /// The word at `index`, zero past the end.
    #[inline(always)]
    pub(crate) fn word(self, index: u64) -> u64 {
        let within = if index < self.words.len() as u64 { index } else { 0 };
        // SAFETY: the index is within the words, of which there is one at least.
        let word = unsafe { *self.words.as_ptr().add(within as usize) };
        if index < self.words.len() as u64 { word } else { 0 }
    }

    /// [`crate::read::bits_from`].
    #[inline(always)]
    pub(crate) fn bits_from(self, at: u64) -> u64 {
        let limit = self.words.len() as u64 * 8 - 8;
        let byte = at >> 3;
        let within = if byte < limit { byte } else { 0 };
        // SAFETY: the eight bytes are within the words, of which there is one at least.
        let bits = unsafe { self.words.as_ptr().cast::<u8>().add(within as usize).cast::<u64>().read_unaligned() };
        if byte < limit { bits >> (at & 7) } else { 0 }
    }
}

/// [`crate::read::scan`], and whether the one is among the `N` words that are looked at.
#[inline(always)]
pub(crate) fn nth_one<const N: usize>(memory: Memory, from: u64, rank: u64) -> (u64, bool) {
    let first = from >> 6;
    let (mut sum, mut before, mut at, mut chosen) = (0, 0, 0, 0);
    let mut i = 0;
    while i < N as u64 {
        let word = memory.word(first.wrapping_add(i)) & if i == 0 { u64::MAX << (from & 63) } else { u64::MAX };
        let here = sum <= rank;
        (chosen, before, at) = if here { (word, sum, i) } else { (chosen, before, at) };
        sum += u64::from(word.count_ones());
        i += 1;
    }
    let position = ((first.wrapping_add(at)) << 6).wrapping_add(select(chosen, rank.wrapping_sub(before) & 63));
    (position, rank < sum)
}

/// High half of a product, from products of halves, which vectors have.
#[inline(always)]
pub(crate) fn multiply_high(a: u64, b: u64) -> u64 {
    let (a0, a1, b0, b1) = (a & LOW, a >> 32, b & LOW, b >> 32);
    let middle = a1 * b0 + ((a0 * b0) >> 32);
    let other = a0 * b1 + (middle & LOW);
    a1 * b1 + (middle >> 32) + (other >> 32)
}

/// Position of the one of `word` with `rank` ones below it, of those that there are.
#[inline(always)]
pub(crate) fn select(word: u64, rank: u64) -> u64 {
    let (mut word, mut rank, mut at) = (word, rank, 0);
    let mut width = 32;
    while width > 0 {
        let ones = u64::from((word & ((1 << width) - 1)).count_ones());
        let above = rank >= ones;
        rank = if above { rank - ones } else { rank };
        word = if above { word >> width } else { word };
        at = if above { at + width } else { at };
        width /= 2;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Portable, bits_from, scan};

    #[test]
    fn arithmetic_of_lanes() {
        for a in [0, 1, 0xffff_ffff, u64::MAX, 0x1234_5678_9abc_def0] {
            for b in [0, 3, u64::MAX, 0xfedc_ba98_7654_3210, 1 << 63] {
                assert_eq!(multiply_high(a, b), ((u128::from(a) * u128::from(b)) >> 64) as u64);
            }
            for rank in 0..a.count_ones() {
                assert_eq!(select(a, rank.into()) as u32, warpset_core::recsplit::bits::select(a, rank));
            }
        }
    }

    #[test]
    fn reads_as_one_by_one() {
        let words: Vec<u64> = (0..40_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (i << 60 | 0xff0f)).collect();
        let memory = Memory { rows: &[], words: &words };
        for from in (0..41 * 64).step_by(7).chain([u64::MAX]) {
            assert_eq!(memory.bits_from(from), bits_from(&words, from));
            for rank in 0..100 {
                let (position, found) = nth_one::<6>(memory, from, rank);
                if found {
                    assert_eq!(position, scan::<1>(&words, from, rank as u32, Portable), "{from} {rank}");
                } else {
                    assert!(scan::<1>(&words, from, rank as u32, Portable) >= (from / 64 + 6).min(40) * 64);
                }
            }
        }
    }
}
