//! Changes on the CPU over any number of blocks except the last of a filter, with bounds checked once per block.
//!
//! The words afterwards are those of `warpset_core::quotient::rank_select`. Slots are counted from the first one of the
//! block of the fingerprint's quotient.

use warpset_core::bits::{Select, lowest, range};
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::counters::{count_of, digit, slots};
use warpset_core::quotient::rank_select::{DIGITS, OCCUPIEDS, OFFSET, RUNENDS, metadata_words};

use super::run::Fields;
use crate::slot_kind::{Changed, Counts};

mod moves;

/// Blocks of a filter, or of a part of it, to be changed.
pub(super) struct BlocksMut<'a, const COUNTED: bool> {
    words: &'a mut [u64],
    fields: Fields,
    block_words: usize,
}

/// Metadata of a block that is not the last one.
#[derive(Clone, Copy)]
struct Head {
    /// First word of the block.
    first: usize,
    offset: u64,
    occupieds: u64,
    /// Slots after the runs of earlier blocks, after the first run of this block, and so on; no bit for the first if it
    /// is in another block.
    begins: u64,
}

/// Slot of a block that begins at this word.
#[derive(Clone, Copy)]
struct BlockSlot {
    first: usize,
    slot: u32,
}

/// Place of a fingerprint that is stored or to be stored.
struct Found {
    /// Block of its quotient.
    home: Head,
    /// Quotient, counted from the block's first.
    at: u32,
    /// Whether the quotient has a run.
    occupied: bool,
    /// First slot of the run.
    start: u64,
    /// First free slot after this run and those before.
    free: u64,
    /// Slot of the fingerprint.
    place: u64,
    /// Whether it is there.
    is_there: bool,
}

/// Returns the bits up to this one, below 64.
#[inline(always)]
const fn upto(bit: u32) -> u64 {
    (2u64 << bit).wrapping_sub(1)
}

impl<'a, const COUNTED: bool> BlocksMut<'a, COUNTED> {
    const REMAINDERS: usize = metadata_words(COUNTED) as usize;

    #[inline(always)]
    pub(super) fn new(words: &'a mut [u64], split: Split) -> Self {
        let block_words = split.remainder_bits as usize + Self::REMAINDERS;
        BlocksMut { words, fields: Fields::new(split.remainder_bits), block_words }
    }

    /// Returns the metadata of the block at this word, if it is not the last one.
    #[inline(always)]
    fn head(&self, first: usize) -> Option<Head> {
        let &[offset, occupieds, runends] = self.words.get(first..first + 2 * self.block_words)?.first_chunk()?;
        let begins = if offset < 64 { 1 << offset | (runends & !0 << offset) << 1 } else { 0 };
        Some(Head { first, offset, occupieds, begins })
    }

    /// Returns the block of a slot, and the slot in it.
    #[inline(always)]
    fn place(&self, home: &Head, slot: u64) -> BlockSlot {
        BlockSlot { first: home.first + (slot / 64) as usize * self.block_words, slot: slot as u32 % 64 }
    }

    /// Returns the slot after the first `runs` runs of a block.
    #[inline(always)]
    fn after(&self, head: &Head, runs: u32, select: impl Select) -> Option<u64> {
        match select.select(head.begins, runs) {
            64 => self.after_far(head, runs, select),
            slot => Some(slot as u64),
        }
    }

    /// Returns what [`BlocksMut::after`] does for a slot of another block.
    #[inline(always)]
    fn after_far(&self, head: &Head, runs: u32, select: impl Select) -> Option<u64> {
        let mut slot = head.offset;
        if slot >= self.words.len() as u64 {
            return None;
        }
        let mut block = self.place(head, slot);
        self.head(block.first)?;
        if runs == 0 {
            return Some(slot);
        }
        let mut rank = runs - 1;
        loop {
            let ends = self.words.get(block.first + RUNENDS as usize)? & !0 << block.slot;
            if rank < ends.count_ones() {
                slot = slot - block.slot as u64 + select.select(ends, rank) as u64 + 1;
                self.head(self.place(head, slot).first)?;
                return Some(slot);
            }
            rank -= ends.count_ones();
            slot = slot - block.slot as u64 + 64;
            block = BlockSlot { first: block.first + self.block_words, slot: 0 };
        }
    }

    /// Returns up to 64 bits of remainders from this slot on, without those of later blocks.
    #[inline(always)]
    fn window(&self, BlockSlot { first, slot }: BlockSlot) -> u64 {
        let bit = slot * self.fields.width();
        let index = first + Self::REMAINDERS + (bit / 64) as usize;
        let low = self.words.get(index).map_or(0, |word| word >> (bit % 64));
        // The next word has further bits, or none that matter.
        let high = self.words.get(index + 1).map_or(0, |word| word << 1 << (63 - bit % 64));
        low | high
    }

    #[inline(always)]
    fn remainder(&self, place: BlockSlot) -> u64 {
        self.window(place) & lowest(self.fields.width())
    }

    #[inline(always)]
    fn set_remainder(&mut self, BlockSlot { first, slot }: BlockSlot, remainder: u64) {
        self.set_bits(first, slot * self.fields.width(), self.fields.width(), remainder);
    }

    /// Sets `len` bits of the remainders of a block, 1 to 64.
    #[inline(always)]
    fn set_bits(&mut self, first: usize, at: u32, len: u32, bits: u64) {
        let (index, shift, all) = (first + Self::REMAINDERS + (at / 64) as usize, at % 64, lowest(len));
        // There is no branch on whether the bits reach into the next word. That word exists, because the block is not
        // the last.
        if let Some([low, high]) = self.words.get_mut(index..).and_then(|words| words.first_chunk_mut()) {
            *low = *low & !(all << shift) | bits << shift;
            *high = *high & !(all >> 1 >> (63 - shift)) | bits >> 1 >> (63 - shift);
        }
    }

    /// Finds the run of a quotient, stored or new; the fingerprint's place is the run's end.
    #[inline(always)]
    fn find_run(&self, quotient: u64, select: impl Select) -> Option<Found> {
        let at = quotient as u32 % 64;
        let home = self.head((quotient / 64) as usize * self.block_words)?;
        let free = self.after(&home, (home.occupieds & upto(at)).count_ones(), select)?;
        let occupied = home.occupieds >> at & 1 != 0;
        let mut found = Found { home, at, occupied, start: free, free, place: free, is_there: false };
        if occupied {
            let start = self.after(&home, (home.occupieds & lowest(at)).count_ones(), select)?;
            found.start = start.max(at as u64);
        }
        Some(found)
    }

    /// Finds the place of a fingerprint, stored or new.
    #[inline(always)]
    fn find(&self, quotient: u64, remainder: u64, select: impl Select) -> Option<Found> {
        let mut found = self.find_run(quotient, select)?;
        if found.occupied {
            (found.place, found.is_there) = self.find_between(&found.home, found.start, found.free, remainder);
        }
        Some(found)
    }

    /// Finds a fingerprint if it is there, in fewer instructions.
    #[inline(always)]
    fn find_stored(&self, quotient: u64, remainder: u64, select: impl Select) -> Option<Found> {
        let mut found = self.find_run(quotient, select)?;
        if found.occupied {
            let (first, len) = (self.place(&found.home, found.start), found.free.saturating_sub(found.start));
            if COUNTED || first.slot as u64 + len > 64 || !self.fields.hold(len) {
                (found.place, found.is_there) = self.find_between(&found.home, found.start, found.free, remainder);
            } else if let Some(index) = self.fields.first_equal(self.window(first), self.fields.first(len), remainder) {
                (found.place, found.is_there) = (found.start + index, true);
            }
        }
        Some(found)
    }

    /// Finds the place of a remainder in the run with the slots `start..free`, and whether it is there.
    #[inline(always)]
    fn find_between(&self, home: &Head, start: u64, free: u64, remainder: u64) -> (u64, bool) {
        let (first, len) = (self.place(home, start), free.saturating_sub(start));
        if first.slot as u64 + len > 64 || !self.fields.hold(len + 1) {
            return self.find_one_by_one(home, start, free, remainder);
        }
        let word = self.window(first);
        let equal = self.fields.equal(word, remainder);
        // The field after those of the run counts as not below.
        let end = self.fields.first(len) + 1;
        let mut not_below = self.fields.not_below(word, remainder) & (end - 1) | end;
        loop {
            let index = self.fields.lowest_of(not_below);
            let lowest = not_below & not_below.wrapping_neg();
            if !COUNTED || lowest == end || !self.is_digit(self.place(home, start + index)) {
                return (start + index, equal & (end - 1) & lowest != 0);
            }
            not_below ^= lowest;
        }
    }

    /// Finds the place of a remainder slot by slot, in any block.
    #[inline(always)]
    fn find_one_by_one(&self, home: &Head, start: u64, free: u64, remainder: u64) -> (u64, bool) {
        for slot in start..free {
            let place = self.place(home, slot);
            if !COUNTED || !self.is_digit(place) {
                let stored = self.remainder(place);
                if stored >= remainder {
                    return (slot, stored == remainder);
                }
            }
        }
        (free, false)
    }

    /// Puts a remainder or digit into the slot `place` of a run, which may be new, after moving later items.
    #[inline(always)]
    fn open(&mut self, found: &Found, place: u64, remainder: u64, select: impl Select) -> Option<()> {
        let &Found { home, free, .. } = found;
        let mut slot = free as u32;
        // This finds the first empty slot from `free` on.
        while slot < 64 {
            let next = select.select(home.begins, (home.occupieds & upto(slot)).count_ones());
            if next <= slot {
                self.open_here(found, place as u32, slot, remainder);
                return Some(());
            }
            slot = next;
        }
        self.open_far(found, place, remainder, select)
    }

    /// Opens a slot where all slots that move are in one block.
    #[inline(always)]
    fn open_here(&mut self, found: &Found, place: u32, empty: u32, remainder: u64) {
        let &Found { home: Head { first, .. }, at, occupied, free, .. } = found;
        let ends = place == free as u32;
        let moved = range(place + 1, empty + 1);
        // Runs end one slot later; this one ends at its new slot if it is its last.
        let last = 1 << place | u64::from(occupied && ends) << (place.wrapping_sub(1) % 64);
        if let Some(words) = self.words.get_mut(first..).and_then(|words| words.first_chunk_mut::<4>()) {
            let runends = words[RUNENDS as usize];
            words[RUNENDS as usize] = runends & !(moved | last) | runends << 1 & moved | u64::from(ends) << place;
            words[OCCUPIEDS as usize] |= 1 << at;
            if COUNTED {
                let digits = &mut words[DIGITS as usize];
                *digits = *digits & !moved | *digits << 1 & moved;
            }
        }
        self.move_up_here(first, place, empty, remainder);
    }

    /// Opens a slot where the slots that move are in several blocks.
    #[inline(always)]
    fn open_far(&mut self, found: &Found, place: u64, remainder: u64, select: impl Select) -> Option<()> {
        let &Found { home, at, occupied, free, .. } = found;
        let mut head = home;
        let BlockSlot { first, mut slot } = self.place(&home, free);
        if free >= 64 {
            head = self.head(first)?;
        }
        loop {
            let next = select.select(head.begins, (head.occupieds & upto(slot)).count_ones());
            if next == 64 {
                // The rest of the block is taken, and as many slots of the next one as its offset says.
                head = self.head(head.first + self.block_words)?;
                slot = head.offset as u32 % 64;
            } else if next <= slot {
                break;
            } else {
                slot = next;
            }
        }
        let target = self.place(&home, place);
        self.move_up(target, BlockSlot { first: head.first, slot }, remainder);
        // An item ends its run if it begins the run or is its last; items within a run end nothing.
        let ends = place == free;
        let word = &mut self.words[target.first + RUNENDS as usize];
        *word = *word & !(1 << target.slot) | u64::from(ends) << target.slot;
        if occupied && ends {
            let last = self.place(&home, place - 1);
            self.words[last.first + RUNENDS as usize] &= !(1 << last.slot);
        }
        self.words[home.first + OCCUPIEDS as usize] |= 1 << at;
        self.add_to_offsets(home.first, head.first, 1);
        Some(())
    }

    /// Takes the slot `place` out of a run.
    #[inline(always)]
    fn close(&mut self, found: &Found, place: u64, select: impl Select) -> Option<()> {
        let &Found { home, free, .. } = found;
        let mut end = free as u32;
        // Runs with quotients before their slots follow, up to one in its canonical slot or an empty slot.
        while end < 64 {
            let next = select.select(home.begins, (home.occupieds & lowest(end)).count_ones());
            if next <= end {
                self.close_here(found, place as u32, end - 1);
                return Some(());
            }
            end = next;
        }
        self.close_far(found, place, select)
    }

    /// Closes a slot where all slots, up to the cluster's last, are in one block.
    #[inline(always)]
    fn close_here(&mut self, found: &Found, place: u32, last: u32) {
        let &Found { home: Head { first, .. }, at, start, free, .. } = found;
        let (moved, only) = (range(place, last + 1), start + 1 == free);
        // The run ends a slot earlier if its last slot goes.
        let ends = u64::from(!only && place as u64 + 1 == free) << (place.wrapping_sub(1) % 64);
        if let Some(words) = self.words.get_mut(first..).and_then(|words| words.first_chunk_mut::<4>()) {
            let runends = words[RUNENDS as usize];
            words[RUNENDS as usize] = runends & !moved | (runends & upto(last)) >> 1 & moved | ends;
            words[OCCUPIEDS as usize] &= !(u64::from(only) << at);
            if COUNTED {
                let digits = &mut words[DIGITS as usize];
                *digits = *digits & !moved | (*digits & upto(last)) >> 1 & moved;
            }
        }
        self.move_down_here(first, place, last);
    }

    /// Closes a slot where the slots that move are in several blocks.
    #[inline(always)]
    fn close_far(&mut self, found: &Found, place: u64, select: impl Select) -> Option<()> {
        let &Found { home, at, start, free, .. } = found;
        let mut head = home;
        let BlockSlot { first, slot: mut end } = self.place(&home, free);
        if free >= 64 {
            head = self.head(first)?;
        }
        loop {
            let next = select.select(head.begins, (head.occupieds & lowest(end)).count_ones());
            if next == 64 {
                head = self.head(head.first + self.block_words)?;
                end = head.offset as u32 % 64;
            } else if next <= end {
                break;
            } else {
                end = next;
            }
        }
        let last = match end.checked_sub(1) {
            Some(slot) => BlockSlot { first: head.first, slot },
            None => BlockSlot { first: head.first - self.block_words, slot: 63 },
        };
        self.move_down(self.place(&home, place), last);
        if start + 1 == free {
            self.words[home.first + OCCUPIEDS as usize] &= !(1 << at);
        } else if place + 1 == free {
            let last = self.place(&home, place - 1);
            self.words[last.first + RUNENDS as usize] |= 1 << last.slot;
        }
        self.add_to_offsets(home.first, last.first, !0);
        Some(())
    }

    /// Stores a fingerprint in its empty canonical slot.
    #[inline(always)]
    fn put_alone(&mut self, &Found { home: Head { first, .. }, at, .. }: &Found, remainder: u64) {
        self.set_remainder(BlockSlot { first, slot: at }, remainder);
        self.words[first + OCCUPIEDS as usize] |= 1 << at;
        self.words[first + RUNENDS as usize] |= 1 << at;
    }

    /// Adds to the offsets of the blocks after one block, up to another.
    #[inline(always)]
    fn add_to_offsets(&mut self, mut after: usize, last: usize, change: u64) {
        while after < last {
            after += self.block_words;
            let offset = &mut self.words[after + OFFSET as usize];
            *offset = offset.wrapping_add(change);
        }
    }

    #[inline(always)]
    fn is_digit(&self, BlockSlot { first, slot }: BlockSlot) -> bool {
        self.words[first + DIGITS as usize] >> slot & 1 != 0
    }
}

impl BlocksMut<'_, false> {
    /// Stores a fingerprint. Returns `None` if that reaches the last block; then nothing was written.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        quotient: u64,
        remainder: u64,
        duplicates: bool,
        select: impl Select,
    ) -> Option<Changed> {
        let found = self.find(quotient, remainder, select)?;
        if found.free <= found.at as u64 {
            // No run reaches the quotient's slot, so the slot is empty.
            self.put_alone(&found, remainder);
            return Some(Changed::Done);
        }
        if found.is_there && !duplicates {
            return Some(Changed::Unchanged);
        }
        self.open(&found, found.place, remainder, select)?;
        Some(Changed::Done)
    }

    /// Removes a fingerprint once. Returns `None` if that reaches the last block; then nothing was written.
    #[inline(always)]
    pub(super) fn remove(&mut self, quotient: u64, remainder: u64, select: impl Select) -> Option<Changed> {
        let found = self.find_stored(quotient, remainder, select)?;
        if !found.is_there {
            return Some(Changed::Unchanged);
        }
        self.close(&found, found.place, select)?;
        Some(Changed::Done)
    }
}

impl BlocksMut<'_, true> {
    /// Stores `more >= 1` further copies of a fingerprint. Returns `None` if that takes more than one slot more,
    /// reaches the last block, or makes too many copies; then nothing was written.
    #[inline(always)]
    pub(super) fn add(&mut self, quotient: u64, remainder: u64, more: u64, select: impl Select) -> Option<Counts> {
        let mut found = self.find(quotient, remainder, select)?;
        if found.free <= found.at as u64 {
            if more == 1 {
                self.put_alone(&found, remainder);
                return Some(1.into());
            }
            (found.free, found.place) = (found.at as u64, found.at as u64);
        }
        let before = if found.is_there { self.count_at(&found)? } else { 0 };
        let after = before.checked_add(more)?;
        let (taken, wanted) = self.slots(before, after);
        if wanted > taken + 1 {
            return None;
        }
        if wanted > taken {
            let slot = found.place + taken;
            self.open(&found, slot, remainder, select)?;
            let BlockSlot { first, slot } = self.place(&found.home, slot);
            let digits = &mut self.words[first + DIGITS as usize];
            *digits = *digits & !(1 << slot) | u64::from(taken > 0) << slot;
        }
        self.write_digits(&found, after, wanted);
        Some(Counts { copies: more, slots: wanted - taken })
    }

    /// Removes up to `fewer` copies of a fingerprint. Returns `None` if that frees more than one slot or reaches the
    /// last block; then nothing was written.
    #[inline(always)]
    pub(super) fn subtract(
        &mut self,
        quotient: u64,
        remainder: u64,
        fewer: u64,
        select: impl Select,
    ) -> Option<Counts> {
        let found = self.find(quotient, remainder, select)?;
        if !found.is_there {
            return Some(Counts::default());
        }
        let before = self.count_at(&found)?;
        let after = before.saturating_sub(fewer);
        let (taken, wanted) = self.slots(before, after);
        if taken > wanted + 1 {
            return None;
        }
        if taken > wanted {
            self.close(&found, found.place + wanted, select)?;
        }
        self.write_digits(&found, after, wanted);
        Some(Counts { copies: before - after, slots: taken - wanted })
    }

    /// Returns the numbers of slots of these counts.
    #[inline(always)]
    fn slots(&self, before: u64, after: u64) -> (u64, u64) {
        let width = self.fields.width();
        // The change is from one copy to two, back, or within one digit.
        let few = |count: u64| count.min(2);
        if before.max(after) < 2 + (1 << width) {
            return (few(before), few(after));
        }
        (slots(before, width), slots(after, width))
    }

    /// Returns the number of copies of a stored fingerprint, or `None` if its digits reach out of the block.
    #[inline(always)]
    fn count_at(&self, found: &Found) -> Option<u64> {
        let BlockSlot { first, slot } = self.place(&found.home, found.place);
        let digits = !(self.words[first + DIGITS as usize] >> slot >> 1);
        // The digits are in the slots after this one; slots past the block hold none here.
        let len = digits.trailing_zeros();
        let digit = |i| self.remainder(BlockSlot { first, slot: slot + 1 + i });
        match len {
            _ if slot + len >= 63 => None,
            0 => Some(1),
            1 => Some(digit(0) + 2),
            _ => Some(count_of((0..len).map(digit), self.fields.width())),
        }
    }

    /// Writes the digits of a counter, for which there are slots.
    #[inline(always)]
    fn write_digits(&mut self, found: &Found, count: u64, slots: u64) {
        for i in 1..slots {
            let place = self.place(&found.home, found.place + i);
            self.set_remainder(place, digit(count, self.fields.width(), i as u32 - 1));
        }
    }
}

#[cfg(test)]
mod tests;
