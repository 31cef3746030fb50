//! Reads of a function's words: unaligned bits, and scans for the ones after them.

use crate::bits::{Portable, Select};

/// The words of a function. Reads past the end give zeros.
pub trait Words: Copy {
    /// Returns the number of words.
    fn len(self) -> u64;
    /// Whether there are no words.
    #[inline(always)]
    fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// Returns the word at `index`.
    fn word(self, index: u64) -> u64;
    /// Returns the byte at `index`, the lowest of a word first.
    #[inline(always)]
    fn byte(self, index: u64) -> u8 {
        (self.word(index / 8) >> (index % 8 * 8)) as u8
    }
    /// Returns at least 57 bits from position `at` on, zeros above. The last 8 bytes, which hold only a jump array, may
    /// read as zeros.
    fn bits_from(self, at: u64) -> u64;

    /// Returns the `width` bits from bit `at` on, `width` up to 63.
    #[inline(always)]
    fn field(self, at: u64, width: u32) -> u64 {
        let (index, shift) = (at / 64, at as u32 % 64);
        // Two shifts, since a shift by 64 is undefined.
        let window = self.word(index) >> shift | (self.word(index.wrapping_add(1)) << 1) << (63 - shift);
        window & ((1 << width) - 1)
    }

    /// Returns the position of the one with `rank` ones between it and position `from`; a position at the end if there
    /// is none. May read `N` words at a time.
    fn scan<const N: usize>(self, from: u64, rank: u32, select: impl Select) -> u64;

    /// Returns the length of the unary part after `skip` others from `at` on, at any distance, and the position of its
    /// end. Rarely called.
    #[inline(always)]
    fn far_unary_part(self, at: u64, skip: u32) -> (u64, u64) {
        let begin = if skip == 0 { at } else { self.scan::<1>(at, skip - 1, Portable).wrapping_add(1) };
        let end = self.scan::<1>(begin, 0, Portable);
        // Damaged words can make it begin past the end.
        (end.saturating_sub(begin), end.wrapping_add(1))
    }
}

/// Computes [`Words::scan`] word by word.
#[inline(always)]
pub fn scan(words: impl Words, from: u64, mut rank: u32, select: impl Select) -> u64 {
    let mut index = from / 64;
    let mut mask = u64::MAX << (from % 64);
    while index < words.len() {
        let word = words.word(index) & mask;
        let ones = word.count_ones();
        if rank < ones {
            return index * 64 + u64::from(select.select(word, rank));
        }
        rank -= ones;
        index += 1;
        mask = u64::MAX;
    }
    words.len() * 64
}
