//! Windows of packed slots: blocks of 64, with their metadata in two loads.

use warpset_core::quotient::slots::{BLOCK_SLOTS, Container};

use super::{Window, Windows};
use crate::quotient::memory::Pairs;

/// Returns the lowest bit of each of as many remainders as 64 bits hold.
pub const fn fields(remainder_bits: u32) -> u64 {
    let mut ones = 0;
    let mut at = 0;
    while at + remainder_bits <= 64 {
        ones |= 1 << at;
        at += remainder_bits;
    }
    ones
}

/// Blocks of packed slots; `PAIRED` if all have an even number of words: remainders with an odd number of bits.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy, Debug)]
pub struct PackedWindows<const PAIRED: bool, P> {
    words: P,
    slots: u64,
    remainder_bits: u32,
    fields: u64,
}

#[cfg(feature = "bodies")]
impl<const PAIRED: bool, P: Pairs> PackedWindows<PAIRED, P> {
    /// Makes windows of the slots in `words`, whole blocks, with the [`fields`] of these remainders.
    #[inline(always)]
    pub fn new(words: P, slots: u64, remainder_bits: u32, fields: u64) -> Self {
        PackedWindows { words, slots, remainder_bits, fields }
    }

    #[inline(always)]
    fn block(&self, block: u64) -> u64 {
        block * Container::Packed.block_words(self.remainder_bits)
    }
}

/// First remainders, if they came with the metadata.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy, Debug)]
pub struct Remainders {
    first: u64,
    held: bool,
}

#[cfg(feature = "bodies")]
impl<const PAIRED: bool, P: Pairs> Windows for PackedWindows<PAIRED, P> {
    type Mask = u64;
    type Rest = Remainders;
    const SLOTS: u32 = BLOCK_SLOTS as u32;
    const ALL: u64 = !0;

    #[inline(always)]
    fn count(&self) -> u64 {
        self.slots / BLOCK_SLOTS
    }

    #[inline(always)]
    fn read(&self, window: u64) -> Window<u64, Remainders> {
        let first = self.block(window);
        // Every other block of an odd number of words begins with the second word of a pair.
        let paired = PAIRED || first & 1 == 0;
        let pair = if PAIRED { first } else { first & !1 };
        let ([a, b], [c, d]) = (self.words.pair(pair), self.words.pair(pair + 2));
        let (occupied, continuations, shifted) = if paired { (a, b, c) } else { (b, c, d) };
        let rest = Remainders { first: if paired { d } else { 0 }, held: paired };
        Window { occupied, continuations, shifted, rest }
    }

    /// Compares as many remainders at once as 64 bits hold: subtracting one from each, after an exclusive or with
    /// the searched one, borrows from the highest bit of the first that was zero.
    #[inline(always)]
    fn stores(&self, window: u64, rest: Remainders, from: u32, to: u32, remainder: u64) -> bool {
        let bits = self.remainder_bits;
        let remainders = self.block(window) + 3;
        let wanted = remainder.wrapping_mul(self.fields);
        let mut at = from * bits;
        let end = to * bits;
        loop {
            let (word, shift) = (at / 64, at % 64);
            let first = if word == 0 && rest.held { rest.first } else { self.words.word(remainders + word as u64) };
            let width = (end - at).min(self.fields.count_ones() * bits);
            let mut held = first >> shift;
            if shift + width > 64 {
                held |= self.words.word(remainders + word as u64 + 1) << (64 - shift);
            }
            let differs = held ^ wanted;
            let lowest = self.fields & (!0 >> (64 - width));
            if differs.wrapping_sub(lowest) & !differs & lowest << (bits - 1) != 0 {
                return true;
            }
            at += width;
            if at >= end {
                return false;
            }
        }
    }
}
