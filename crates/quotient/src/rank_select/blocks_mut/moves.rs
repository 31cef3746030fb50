//! Items moved by one slot, by whole words, over any number of blocks.
//!
//! Remainders of neighbouring blocks follow each other, except for the metadata in between: the first word of a block
//! takes in the end of the word before the block.

use warpset_core::bits::{lowest, range};
use warpset_core::quotient::rank_select::{DIGITS, RUNENDS};

use super::{BlockSlot, BlocksMut, upto};

impl<const COUNTED: bool> BlocksMut<'_, COUNTED> {
    /// Metadata that move with an item, beside its remainder.
    const MOVING: &'static [u64] = if COUNTED { &[RUNENDS, DIGITS] } else { &[RUNENDS] };

    /// Moves the remainders from slot `place` of a block on, up to the slot before `empty`, up by one, and puts one
    /// into `place`.
    #[inline(always)]
    pub(super) fn move_up_here(&mut self, first: usize, place: u32, empty: u32, remainder: u64) {
        let width = self.fields.width();
        let (begin, len) = (place * width, (empty + 1 - place) * width);
        if len <= 64 {
            // The common case, in half-empty filters, has no loop, because its end would be mispredicted.
            let bits = self.window(BlockSlot { first, slot: place }) << width | remainder;
            self.set_bits(first, begin, len, bits & lowest(len));
        } else {
            shift_up(self.remainders(first), begin + width, begin + len, width, 0);
            self.set_remainder(BlockSlot { first, slot: place }, remainder);
        }
    }

    /// Moves the items from `place` on, up to the slot before `empty`, up by one, and puts a remainder into `place`.
    /// Its metadata are left undefined.
    #[inline(always)]
    pub(super) fn move_up(&mut self, place: BlockSlot, empty: BlockSlot, remainder: u64) {
        let (mut first, mut to) = (empty.first, empty.slot);
        let width = self.fields.width();
        while first != place.first {
            for &which in Self::MOVING {
                let before = self.words[first - self.block_words + which as usize] >> 63;
                let word = &mut self.words[first + which as usize];
                let moved = upto(to);
                *word = *word & !moved | (*word << 1 | before) & moved;
            }
            let before = self.words[first - 1];
            shift_up(self.remainders(first), 0, (to + 1) * width, width, before);
            (first, to) = (first - self.block_words, 63);
        }
        for &which in Self::MOVING {
            let word = &mut self.words[first + which as usize];
            let moved = range(place.slot + 1, to + 1);
            *word = *word & !moved | *word << 1 & moved;
        }
        self.move_up_here(first, place.slot, to, remainder);
    }

    /// Moves the items after `place`, up to `last`, down by one slot, and empties `last`.
    #[inline(always)]
    pub(super) fn move_down(&mut self, place: BlockSlot, last: BlockSlot) {
        let (mut first, mut from) = (place.first, place.slot);
        let width = self.fields.width();
        while first != last.first {
            let next = first + self.block_words;
            for &which in Self::MOVING {
                let after = self.words[next + which as usize] << 63;
                let word = &mut self.words[first + which as usize];
                let moved = !0 << from;
                *word = *word & !moved | (*word >> 1 | after) & moved;
            }
            let after = self.words[next + Self::REMAINDERS];
            shift_down(self.remainders(first), from * width, 64 * width, width, after);
            (first, from) = (next, 0);
        }
        for &which in Self::MOVING {
            let word = &mut self.words[first + which as usize];
            let (moved, end) = (range(from, last.slot + 1), upto(last.slot));
            *word = *word & !moved | (*word & end) >> 1 & moved;
        }
        self.move_down_here(first, from, last.slot);
    }

    /// Moves the remainders after slot `place` of a block, up to `last`, down by one slot, and clears the one of
    /// `last`.
    #[inline(always)]
    pub(super) fn move_down_here(&mut self, first: usize, place: u32, last: u32) {
        let width = self.fields.width();
        let (begin, len) = (place * width, (last + 1 - place) * width);
        if len <= 64 {
            let bits = self.window(BlockSlot { first, slot: place }) & lowest(len);
            self.set_bits(first, begin, len, bits >> width);
        } else {
            shift_down(self.remainders(first), begin, begin + len - width, width, 0);
            self.set_remainder(BlockSlot { first, slot: last }, 0);
        }
    }

    #[inline(always)]
    fn remainders(&mut self, first: usize) -> &mut [u64] {
        &mut self.words[first + Self::REMAINDERS..first + self.block_words]
    }
}

/// Sets the bits `begin..end` to those that are `by` lower; the highest bits of `before` precede the lowest.
#[inline(always)]
fn shift_up(words: &mut [u64], begin: u32, end: u32, by: u32, before: u64) {
    if begin >= end {
        return;
    }
    let (first, mut index) = ((begin / 64) as usize, ((end - 1) / 64) as usize);
    if index >= words.len() {
        return;
    }
    let mut moved = lowest(end - 64 * index as u32);
    let mut word = words[index];
    while index > first {
        let before = words[index - 1];
        words[index] = word & !moved | (word << by | before >> (64 - by)) & moved;
        (word, moved) = (before, !0);
        index -= 1;
    }
    moved &= !0 << (begin % 64);
    let before = if index > 0 { words[index - 1] } else { before };
    words[index] = word & !moved | (word << by | before >> (64 - by)) & moved;
}

/// Sets the bits `begin..end` to those that are `by` higher; the lowest bits of `after` follow the highest.
#[inline(always)]
fn shift_down(words: &mut [u64], begin: u32, end: u32, by: u32, after: u64) {
    if begin >= end {
        return;
    }
    let (mut index, last) = ((begin / 64) as usize, ((end - 1) / 64) as usize);
    if last >= words.len() {
        return;
    }
    let mut moved = !0 << (begin % 64);
    let mut word = words[index];
    while index < last {
        let after = words[index + 1];
        words[index] = word & !moved | (word >> by | after << (64 - by)) & moved;
        (word, moved) = (after, !0);
        index += 1;
    }
    moved &= lowest(end - 64 * index as u32);
    let after = words.get(index + 1).copied().unwrap_or(after);
    words[index] = word & !moved | (word >> by | after << (64 - by)) & moved;
}
