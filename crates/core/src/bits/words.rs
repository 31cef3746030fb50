//! Memory in words of 64 bits as a parameter.
//!
//! Words past the end of a slice read as zero and are not written, so that a damaged file can lead to a wrong answer
//! but never to an access out of bounds.

use super::{lowest, read_field, window};

/// Words that can be read.
pub trait ReadWords {
    /// Returns word `index`.
    fn word(&self, index: u64) -> u64;

    /// Returns the `width` bits from bit `at` on, `width` from 1 to 64. Reads no word that contains none of them,
    /// unless that is cheaper and harmless.
    #[inline(always)]
    fn field(&self, at: u64, width: u32) -> u64 {
        read_field(self, at, width)
    }
}

/// Words that one owner changes: on a device, bits of one word may have different owners.
pub trait WriteWords: ReadWords {
    /// Sets the bits of word `index` that are set in `mask` to those of `bits`, which has no others.
    fn replace(&mut self, index: u64, mask: u64, bits: u64);
}

/// Words that are zero at first, to which ones are added: on a device, by several threads at once.
pub trait OrWords {
    /// Sets the bits of word `index` that are set in `bits`.
    fn or(&mut self, index: u64, bits: u64);
}

/// Returns the word at `index`, zero past the end.
#[inline]
pub fn word(words: &[u64], index: usize) -> u64 {
    match words.get(index) {
        Some(&word) => word,
        None => 0,
    }
}

impl ReadWords for [u64] {
    #[inline]
    fn word(&self, index: u64) -> u64 {
        word(self, index as usize)
    }

    #[inline(always)]
    fn field(&self, at: u64, width: u32) -> u64 {
        // Whether the second word is needed depends on the place, which no processor predicts.
        window(self, at) & lowest(width)
    }
}

impl<W: ReadWords + ?Sized> ReadWords for &W {
    #[inline]
    fn word(&self, index: u64) -> u64 {
        (**self).word(index)
    }

    #[inline(always)]
    fn field(&self, at: u64, width: u32) -> u64 {
        (**self).field(at, width)
    }
}

impl<W: ReadWords + ?Sized> ReadWords for &mut W {
    #[inline]
    fn word(&self, index: u64) -> u64 {
        (**self).word(index)
    }

    #[inline(always)]
    fn field(&self, at: u64, width: u32) -> u64 {
        (**self).field(at, width)
    }
}

impl WriteWords for [u64] {
    #[inline]
    fn replace(&mut self, index: u64, mask: u64, bits: u64) {
        if let Some(word) = self.get_mut(index as usize) {
            *word = *word & !mask | bits;
        }
    }
}

impl<W: WriteWords + ?Sized> WriteWords for &mut W {
    #[inline]
    fn replace(&mut self, index: u64, mask: u64, bits: u64) {
        (**self).replace(index, mask, bits);
    }
}

impl OrWords for [u64] {
    #[inline]
    fn or(&mut self, index: u64, bits: u64) {
        if let Some(word) = self.get_mut(index as usize) {
            *word |= bits;
        }
    }
}

impl<W: OrWords + ?Sized> OrWords for &mut W {
    #[inline]
    fn or(&mut self, index: u64, bits: u64) {
        (**self).or(index, bits);
    }
}
