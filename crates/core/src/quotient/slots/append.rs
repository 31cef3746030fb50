//! Writer of slots in ascending order into zero memory.

use crate::bits::OrWords;

use super::{CONTINUATIONS, Container, OCCUPIED, OCCUPIEDS, SHIFTEDS, bytes_of_slot};

/// Bits of a word that are not in memory yet.
#[derive(Clone, Copy, Default)]
struct Pending {
    index: u64,
    bits: u64,
}

impl Pending {
    #[inline]
    fn add(&mut self, words: &mut impl OrWords, index: u64, bits: u64) {
        if index != self.index {
            self.flush(words);
            self.index = index;
        }
        self.bits |= bits;
    }

    #[inline]
    fn flush(&mut self, words: &mut impl OrWords) {
        if self.bits != 0 {
            words.or(self.index, self.bits);
            self.bits = 0;
        }
    }
}

/// Writer of items in ascending slots into zero memory; neighbours that share a word cost one access.
pub struct Appender<W> {
    words: W,
    container: Container,
    remainder_bits: u32,
    block_words: u64,
    occupieds: Pending,
    continuations: Pending,
    shifteds: Pending,
    remainders: Pending,
}

impl<W: OrWords> Appender<W> {
    /// Starts a writer into whole blocks.
    #[inline]
    pub fn new(words: W, container: Container, remainder_bits: u32) -> Appender<W> {
        Appender {
            words,
            container,
            remainder_bits,
            block_words: container.block_words(remainder_bits),
            occupieds: Pending::default(),
            continuations: Pending::default(),
            shifteds: Pending::default(),
            remainders: Pending::default(),
        }
    }

    /// Writes `width` bits from bit `at` on.
    #[inline]
    fn field(&mut self, at: u64, width: u32, value: u64) {
        let (index, shift) = (at / 64, at as u32 % 64);
        self.remainders.add(&mut self.words, index, value << shift);
        if shift + width > 64 {
            self.remainders.add(&mut self.words, index + 1, value >> (64 - shift));
        }
    }

    /// Sets `is_occupied` of a quotient.
    #[inline]
    pub fn occupy(&mut self, quotient: u64) {
        let (index, bit) = match self.container {
            Container::Bytes => {
                let at = quotient * 8 * bytes_of_slot(self.remainder_bits) as u64;
                (at / 64, OCCUPIED << (at % 64))
            }
            Container::Packed => (quotient / 64 * self.block_words + OCCUPIEDS, 1 << (quotient % 64)),
        };
        self.occupieds.add(&mut self.words, index, bit);
    }

    /// Puts an item: `CONTINUATION`, `SHIFTED` and the remainder.
    #[inline]
    pub fn item(&mut self, slot: u64, metadata: u64, remainder: u64) {
        match self.container {
            Container::Bytes => {
                let bits = 8 * bytes_of_slot(self.remainder_bits);
                self.field(slot * bits as u64, bits, remainder << 3 | metadata);
            }
            Container::Packed => {
                let (block, at) = (slot / 64 * self.block_words, slot % 64);
                self.continuations.add(&mut self.words, block + CONTINUATIONS, (metadata >> 1 & 1) << at);
                self.shifteds.add(&mut self.words, block + SHIFTEDS, (metadata >> 2 & 1) << at);
                self.field(64 * (block + 3) + at * self.remainder_bits as u64, self.remainder_bits, remainder);
            }
        }
    }

    /// Writes what is pending.
    #[inline]
    pub fn finish(mut self) {
        self.occupieds.flush(&mut self.words);
        self.continuations.flush(&mut self.words);
        self.shifteds.flush(&mut self.words);
        self.remainders.flush(&mut self.words);
    }
}
