//! Writer of blocks in ascending order into zero memory on the CPU, with the words of a block kept in registers.

use warpset_core::quotient::rank_select::{DIGITS, OCCUPIEDS, OFFSET, RUNENDS, metadata_words};

use crate::slot_kind::{PlacedItem, SlotWriter};

/// Writer of items in ascending slots, their quotients, and the offsets of all blocks, into whole zero blocks.
pub(super) struct BlockWriter<'a, const COUNTED: bool> {
    words: &'a mut [u64],
    width: u32,
    block_words: usize,
    /// Block of the last quotient, and those of its `occupieds` that are not written yet; blocks up to it have their
    /// offsets.
    home: usize,
    occupieds: u64,
    /// Block of the last slot, its `runends`, and its slots that hold digits.
    block: usize,
    runends: u64,
    digits: u64,
    /// Bit of the last slot, which ends its run unless the next item follows it.
    last: u64,
    /// Word of the last remainder, and its bits.
    index: usize,
    remainders: u64,
    begun: bool,
}

impl<'a, const COUNTED: bool> BlockWriter<'a, COUNTED> {
    const REMAINDERS: usize = metadata_words(COUNTED) as usize;

    pub(super) fn new(words: &'a mut [u64], remainder_bits: u32) -> Self {
        BlockWriter {
            words,
            width: remainder_bits,
            block_words: remainder_bits as usize + Self::REMAINDERS,
            home: 0,
            occupieds: 0,
            block: 0,
            runends: 0,
            digits: 0,
            last: 0,
            index: Self::REMAINDERS,
            remainders: 0,
            begun: false,
        }
    }

    /// Writes the offsets of the blocks `first..end`; those of blocks that no item reaches stay zero.
    #[inline(always)]
    fn write_offsets(&mut self, first: usize, end: usize, free: u64) {
        let mut block = first;
        while block < end && 64 * (block as u64) < free {
            self.words[block * self.block_words + OFFSET as usize] = free - 64 * block as u64;
            block += 1;
        }
    }

    #[inline(always)]
    fn write_occupieds(&mut self) {
        self.words[self.home * self.block_words + OCCUPIEDS as usize] = self.occupieds;
        self.occupieds = 0;
    }

    #[inline(always)]
    fn write_runends(&mut self) {
        let first = self.block * self.block_words;
        self.words[first + RUNENDS as usize] = self.runends;
        self.runends = 0;
        if COUNTED {
            self.words[first + DIGITS as usize] = self.digits;
            self.digits = 0;
        }
    }

    /// Writes the word of remainders, and continues with another.
    #[inline(always)]
    fn write_remainders(&mut self, next: usize) {
        self.words[self.index] = self.remainders;
        (self.index, self.remainders) = (next, 0);
    }
}

impl<const COUNTED: bool> SlotWriter for BlockWriter<'_, COUNTED> {
    #[inline(always)]
    fn occupy(&mut self, quotient: u64, free: u64) {
        let home = (quotient / 64) as usize;
        if home != self.home {
            self.write_occupieds();
            self.write_offsets(if self.begun { self.home + 1 } else { 0 }, home + 1, free);
            self.home = home;
            self.begun = true;
        } else if !self.begun {
            self.write_offsets(0, 1, free);
            self.begun = true;
        }
        self.occupieds |= 1 << (quotient % 64);
    }

    #[inline(always)]
    fn item(&mut self, PlacedItem { slot, follows, remainder, is_digit, .. }: PlacedItem) {
        let (block, at) = ((slot / 64) as usize, (slot % 64) as u32);
        self.runends |= if follows { 0 } else { self.last };
        self.last = 1 << at;
        if block != self.block {
            self.write_runends();
            self.block = block;
        }
        if COUNTED {
            self.digits |= u64::from(is_digit) << at;
        }
        let bit = at * self.width;
        let (index, shift) = (block * self.block_words + Self::REMAINDERS + (bit / 64) as usize, bit % 64);
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
    fn finish(mut self, free: u64) {
        self.write_occupieds();
        self.runends |= self.last;
        self.write_runends();
        self.write_remainders(0);
        let blocks = self.words.len() / self.block_words;
        self.write_offsets(if self.begun { self.home + 1 } else { 0 }, blocks, free);
    }
}
