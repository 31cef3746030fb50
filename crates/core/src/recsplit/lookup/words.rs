//! How the words of a function are read: unaligned bits, and walks to the ones after them.

use crate::bits::{Portable, Select};

/// The words of a function. Reads past the end give zeros.
pub trait Words: Copy {
    /// How many there are.
    fn len(self) -> u64;
    /// Whether there are none.
    #[inline(always)]
    fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// The word at `index`.
    fn word(self, index: u64) -> u64;
    /// At least 57 bits from position `at` on, zeros above. Of the last 8 bytes, which hold no more than a jump array,
    /// they may be zeros too.
    fn bits_from(self, at: u64) -> u64;

    /// The `width` bits from bit `at` on, `width` up to 63.
    #[inline(always)]
    fn field(self, at: u64, width: u32) -> u64 {
        let (index, shift) = (at / 64, at as u32 % 64);
        // Two shifts, since a shift by 64 has no meaning.
        let window = self.word(index) >> shift | (self.word(index.wrapping_add(1)) << 1) << (63 - shift);
        window & ((1 << width) - 1)
    }

    /// Position of the one with `rank` ones between it and position `from`; some position at the end if there is none.
    /// May take `N` words at a time.
    fn scan<const N: usize>(self, from: u64, rank: u32, select: impl Select) -> u64;

    /// The length of the unary part after `skip` others from `at` on, however far it is, and where it ends. Rarely
    /// called.
    #[inline(always)]
    fn far_unary_part(self, at: u64, skip: u32) -> (u64, u64) {
        let begin = if skip == 0 { at } else { self.scan::<1>(at, skip - 1, Portable).wrapping_add(1) };
        let end = self.scan::<1>(begin, 0, Portable);
        // Damaged words can say that it begins past the end.
        (end.saturating_sub(begin), end.wrapping_add(1))
    }
}

/// [`Words::scan`] word by word.
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
