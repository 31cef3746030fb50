//! Writer of packed slots in ascending order into zero memory on the CPU, like
//! `warpset_core::quotient::slots::Appender`, with the words of a block kept in registers.

use crate::slot_kind::{PlacedItem, SlotWriter};

/// Writer of items in ascending slots, and their quotients, into whole zero blocks.
pub(in super::super) struct PackedWriter<'a> {
    words: &'a mut [u64],
    width: u32,
    block_words: usize,
    /// Block of the last quotient, and its `is_occupied` bits that are not written yet.
    home: usize,
    occupieds: u64,
    /// Block of the last slot, and its `is_continuation` and `is_shifted` bits.
    block: usize,
    continuations: u64,
    shifteds: u64,
    /// Word of the last remainder, and its bits.
    index: usize,
    remainders: u64,
}

impl<'a> PackedWriter<'a> {
    pub(in super::super) fn new(words: &'a mut [u64], remainder_bits: u32) -> PackedWriter<'a> {
        PackedWriter {
            words,
            width: remainder_bits,
            block_words: remainder_bits as usize + 3,
            home: 0,
            occupieds: 0,
            block: 0,
            continuations: 0,
            shifteds: 0,
            index: 3,
            remainders: 0,
        }
    }

    #[inline(always)]
    fn write_occupieds(&mut self) {
        self.words[self.home * self.block_words] = self.occupieds;
        self.occupieds = 0;
    }

    #[inline(always)]
    fn write_metadata(&mut self) {
        let first = self.block * self.block_words;
        self.words[first + 1] = self.continuations;
        self.words[first + 2] = self.shifteds;
        (self.continuations, self.shifteds) = (0, 0);
    }

    /// Writes the word of remainders, and continues with another.
    #[inline(always)]
    fn write_remainders(&mut self, next: usize) {
        self.words[self.index] = self.remainders;
        (self.index, self.remainders) = (next, 0);
    }
}

impl SlotWriter for PackedWriter<'_> {
    #[inline(always)]
    fn occupy(&mut self, quotient: u64, _: u64) {
        let home = (quotient / 64) as usize;
        if home != self.home {
            self.write_occupieds();
            self.home = home;
        }
        self.occupieds |= 1 << (quotient % 64);
    }

    #[inline(always)]
    fn item(&mut self, PlacedItem { slot, quotient, follows, remainder, .. }: PlacedItem) {
        let (block, at) = ((slot / 64) as usize, (slot % 64) as u32);
        if block != self.block {
            self.write_metadata();
            self.block = block;
        }
        self.continuations |= u64::from(follows) << at;
        self.shifteds |= u64::from(slot != quotient) << at;
        let bit = at * self.width;
        let (index, shift) = (block * self.block_words + 3 + (bit / 64) as usize, bit % 64);
        if index != self.index {
            self.write_remainders(index);
        }
        self.remainders |= remainder << shift;
        if shift + self.width > 64 {
            self.write_remainders(index + 1);
            self.remainders = remainder >> (64 - shift);
        }
    }

    #[inline(always)]
    fn finish(mut self, _: u64) {
        self.write_occupieds();
        self.write_metadata();
        self.write_remainders(0);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpset_core::quotient::slots::{Appender, Container};
    use warpset_core::quotient::standard as core;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]

        #[test]
        fn the_same_words_as_the_shared_appender(
            r in 1u32..62, items in prop::collection::vec((1u64..90, any::<bool>(), any::<bool>(), any::<u64>()), 0..if cfg!(miri) { 60 } else { 300 }),
        ) {
            let blocks = items.iter().map(|item| item.0).sum::<u64>() / 64 + 1;
            let mut wanted = vec![0; blocks as usize * (r as usize + 3)];
            let mut written = wanted.clone();
            let mut appender = Appender::new(&mut wanted[..], Container::Packed, r);
            let mut packed = PackedWriter::new(&mut written, r);
            let mut slot = u64::MAX;
            for (step, continuation, shifted, remainder) in items {
                slot = slot.wrapping_add(step);
                let remainder = remainder >> (64 - r);
                // Quotients are at most their slots.
                let quotient = slot - u64::from(shifted && slot > 0);
                appender.occupy(quotient);
                packed.occupy(quotient, 0);
                let metadata = core::item_metadata(slot, quotient, continuation);
                appender.item(slot, metadata, remainder);
                packed.item(PlacedItem { slot, quotient, follows: continuation, remainder, is_digit: false });
            }
            appender.finish();
            packed.finish(0);
            prop_assert_eq!(written, wanted);
        }
    }
}
