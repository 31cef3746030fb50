//! Ascending words of fingerprints and their copies, in parts, and lookups in them: one copy for every backend.
//!
//! The [fingerprint](Number::fingerprint) of a k-mer is a bijection. Its high bits are the number of its part, and the
//! others are spread, so that the place of a fingerprint within its part is known within a few words from its value. A
//! count takes one word:
//!
//! ```text
//! | fingerprint without the bits of its part | copies, or 0 if they are too many and stand in a list beside |
//! ```

use core::marker::PhantomData;
use core::ops::Range;

use super::number::Number;

/// Most high bits of a fingerprint that select its part: a part of a round should fit into a core's own cache.
const PART_BITS: u32 = 11;
/// Most bits for the number of copies in a word.
const COPY_BITS: u32 = 16;
/// First step of a search from a guess, in words.
const FIRST_STEP: usize = 8;

/// Division of a fingerprint into bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut<W> {
    fingerprint_bits: u32,
    part_bits: u32,
    copy_bits: u32,
    words: PhantomData<W>,
}

impl<W: Number> Cut<W> {
    /// Creates the division of fingerprints of this many bits.
    #[inline(always)]
    pub fn new(fingerprint_bits: u32) -> Cut<W> {
        let part_bits = PART_BITS.min(fingerprint_bits / 2);
        let copy_bits = COPY_BITS.min(8 * size_of::<W>() as u32 - (fingerprint_bits - part_bits));
        Cut { fingerprint_bits, part_bits, copy_bits, words: PhantomData }
    }

    /// Returns the number of parts.
    pub fn parts(self) -> usize {
        1 << self.part_bits
    }

    /// Returns the bits of a fingerprint without those of its part.
    #[inline(always)]
    pub fn low_bits(self) -> u32 {
        self.fingerprint_bits - self.part_bits
    }

    /// Returns the part of a fingerprint.
    #[inline(always)]
    pub fn part(self, fingerprint: W) -> usize {
        fingerprint.bits_from(self.low_bits()) as usize
    }

    /// Returns a fingerprint without the bits of its part.
    #[inline(always)]
    pub fn low(self, fingerprint: W) -> W {
        fingerprint & !(!W::default() << self.low_bits())
    }

    /// Whether a number has no more bits than a fingerprint without those of its part.
    pub fn is_value(self, low: W) -> bool {
        low == self.low(low)
    }

    /// Returns the fingerprint with these bits of its part, and these others.
    #[inline(always)]
    pub fn fingerprint(self, part: usize, low: W) -> W {
        W::from(part as u64) << self.low_bits() | low
    }

    /// Returns the highest 64 bits of a fingerprint after those of its part, or all and zeros.
    #[inline(always)]
    pub fn share(self, fingerprint: W) -> u64 {
        let (low, bits) = (self.low(fingerprint), self.low_bits());
        if bits < 64 { low.low() << (64 - bits) } else { (low >> (bits - 64)).low() }
    }

    /// Returns the word of a count; `copies` is at most [`Cut::most_copies`].
    #[inline(always)]
    pub fn word(self, fingerprint: W, copies: u64) -> W {
        self.low(fingerprint) << self.copy_shift() | W::from(copies)
    }

    /// Returns a word's fingerprint without the bits of its part.
    #[inline(always)]
    pub fn value(self, word: W) -> W {
        word >> self.copy_shift()
    }

    /// Returns the bits of copies, as a number below 64: such shifts of 128 bits take no selection.
    #[inline(always)]
    pub fn copy_shift(self) -> u32 {
        self.copy_bits & 63
    }

    /// Returns a word's copies.
    #[inline(always)]
    pub fn copies(self, word: W) -> u64 {
        word.low() & self.most_copies()
    }

    /// Returns the largest number of copies that fits into a word.
    #[inline(always)]
    pub fn most_copies(self) -> u64 {
        (1 << self.copy_bits) - 1
    }

    /// Returns a place among those of its part, `places`, near which a fingerprint is found.
    #[inline(always)]
    pub fn guess(self, fingerprint: W, places: &Range<usize>) -> usize {
        let len = (places.end - places.start) as u128;
        places.start + ((self.share(fingerprint) as u128 * len) >> 64) as usize
    }

    /// Returns the place of a fingerprint among those of its part, `places`, searched from `guess` on; `read` returns
    /// the word of a place. Words ascend by their values; if they do not, the result is arbitrary. `guess` is one of
    /// `places` or their end, and only places of `places` are read.
    #[inline(always)]
    pub fn find(self, fingerprint: W, places: Range<usize>, guess: usize, read: impl Fn(usize) -> W) -> Option<usize> {
        let least = self.word(fingerprint, 0);
        // The first word that is not below lies between both.
        let (mut begin, mut end, mut step) = (guess, guess, FIRST_STEP);
        while begin > places.start && read(begin - 1) >= least {
            end = begin - 1;
            begin = if end - places.start > step { end - step } else { places.start };
            step *= 2;
        }
        while end < places.end && read(end) < least {
            begin = end + 1;
            end = if places.end - begin > step { begin + step } else { places.end };
            step *= 2;
        }
        while begin < end {
            let middle = begin + (end - begin) / 2;
            if read(middle) < least {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        (begin < places.end && self.value(read(begin)) == self.value(least)).then_some(begin)
    }
}
