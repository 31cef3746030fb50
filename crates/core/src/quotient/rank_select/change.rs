//! Insertion into blocks, and removal from them.
//!
//! Source: algorithm 9 (`INSERTINTOREGIONS`) and section V-B. Items move by whole words. A change writes between the
//! fingerprint's place and the first empty slot, the bit of its quotient, and the offsets of blocks that begin there.
//! So changes in different superclusters touch different bits.

use super::{Blocks, DIGITS, OCCUPIEDS, OFFSET, RUNENDS};
use crate::bits::{ReadWords, Select, WriteWords, lowest, range, write_field};

/// Outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The fingerprint was stored or removed.
    Done,
    /// Nothing was to be done: an insertion found the fingerprint, or a removal did not.
    Unchanged,
    /// The change reaches the last slot, which stays as it is, or beyond the slots for changes; nothing was written.
    Outside,
}

impl<W: WriteWords> Blocks<W> {
    /// Stores a fingerprint; one that is there is stored again only with `duplicates`.
    #[inline(always)]
    pub fn insert(&mut self, quotient: u64, remainder: u64, duplicates: bool, select: impl Select) -> Changed {
        let of_home = self.metadata(quotient / 64);
        let free = self.free_after_in(quotient, of_home, select);
        if free > self.end {
            return Changed::Outside;
        }
        if free <= quotient {
            // No run reaches the quotient's slot, so the slot is empty.
            if quotient >= self.end {
                return Changed::Outside;
            }
            self.set_remainder(quotient, remainder);
            self.set_bit(OCCUPIEDS, quotient, true);
            self.set_bit(RUNENDS, quotient, true);
            return Changed::Done;
        }
        let occupied = of_home.occupieds >> (quotient % 64) & 1 != 0;
        let (place, found) = if occupied {
            self.find_between(self.run_start(quotient, of_home, select), free, remainder)
        } else {
            (free, false)
        };
        if found && !duplicates {
            return Changed::Unchanged;
        }
        let empty = self.unused_from(free, select);
        if empty >= self.end {
            return Changed::Outside;
        }
        self.open(quotient, occupied, place, free, empty);
        self.set_remainder(place, remainder);
        Changed::Done
    }

    /// Removes a fingerprint once. Later items of its cluster move left by one slot; those of later clusters stay.
    #[inline(always)]
    pub fn remove(&mut self, quotient: u64, remainder: u64, select: impl Select) -> Changed {
        let of_home = self.metadata(quotient / 64);
        if of_home.occupieds >> (quotient % 64) & 1 == 0 {
            return Changed::Unchanged;
        }
        let free = self.free_after_in(quotient, of_home, select);
        if free >= self.slots() {
            return Changed::Outside;
        }
        let start = self.run_start(quotient, of_home, select);
        let (place, found) = self.find_between(start, free, remainder);
        if !found {
            return Changed::Unchanged;
        }
        let Some(last) = self.last_of_cluster(free, select) else { return Changed::Outside };
        self.close(quotient, start, place, free, last);
        Changed::Done
    }
}

impl<W: ReadWords> Blocks<W> {
    /// Finds a remainder in the run with the slots `start..end`, and whether it is equal. As many remainders are read
    /// at once as 64 bits hold.
    #[inline(always)]
    fn find_between(&self, start: u64, end: u64, remainder: u64) -> (u64, bool) {
        let width = self.remainder_bits;
        let mut slot = start;
        while slot < end {
            let len = Ord::min(64 - slot % 64, end - slot).min(64 / width as u64);
            let mut stored = self.words.field(self.remainder_at(slot), len as u32 * width);
            let upto = slot + len;
            while slot < upto {
                let first = stored & lowest(width);
                if first >= remainder {
                    return (slot, first == remainder);
                }
                stored >>= width;
                slot += 1;
            }
        }
        (slot, false)
    }
}

impl<W: WriteWords, const COUNTED: bool> Blocks<W, COUNTED> {
    /// Opens a slot at `place` for a quotient's run, which may be new, and ends before `free`; `empty` is the first
    /// empty slot from there on. The contents of the slot are undefined afterwards.
    #[inline(always)]
    pub(super) fn open(&mut self, quotient: u64, occupied: bool, place: u64, free: u64, empty: u64) {
        self.move_up(place, empty);
        // An item ends its run if it begins the run or is its last; items within a run end nothing.
        self.set_bit(RUNENDS, place, place == free);
        if occupied && place == free {
            self.set_bit(RUNENDS, place - 1, false);
        }
        if !occupied {
            self.set_bit(OCCUPIEDS, quotient, true);
        }
        self.add_to_offsets(quotient / 64 + 1, empty / 64, 1);
    }

    /// Returns the last slot of the cluster that has slot `free - 1`. The cluster goes on as long as the runs of the
    /// quotients up to its last slot end after that slot. Returns `None` if it reaches the end of these slots.
    #[inline(always)]
    pub(super) fn last_of_cluster(&self, free: u64, select: impl Select) -> Option<u64> {
        let mut end = free;
        loop {
            let next = self.free_after(end - 1, select);
            if next <= end {
                return Some(end - 1);
            }
            end = next;
            if end >= self.slots() {
                return None;
            }
        }
    }

    /// Takes the slot `place` out of a quotient's run, which has the slots `start..free`; `last` is the last slot of
    /// the cluster.
    #[inline(always)]
    pub(super) fn close(&mut self, quotient: u64, start: u64, place: u64, free: u64, last: u64) {
        self.move_down(place, last);
        if start + 1 == free {
            self.set_bit(OCCUPIEDS, quotient, false);
        } else if place + 1 == free {
            self.set_bit(RUNENDS, place - 1, true);
        }
        self.add_to_offsets(quotient / 64 + 1, last / 64, !0);
    }

    /// Sets the remainder of a slot.
    #[inline(always)]
    pub fn set_remainder(&mut self, slot: u64, remainder: u64) {
        let at = self.remainder_at(slot);
        write_field(&mut self.words, at, self.remainder_bits, remainder);
    }

    /// Sets the bit of a slot or a quotient in a word of metadata.
    #[inline(always)]
    pub fn set_bit(&mut self, which: u64, slot: u64, bit: bool) {
        let index = self.first_word(slot / 64) + which;
        self.words.replace(index, 1 << (slot % 64), (bit as u64) << (slot % 64));
    }

    /// Puts an item into an empty slot after all others; `follows` if the item before has the same quotient. Offsets
    /// and quotients stay as they are.
    #[inline(always)]
    pub fn put(&mut self, slot: u64, follows: bool, remainder: u64) {
        self.set_remainder(slot, remainder);
        self.set_bit(RUNENDS, slot, true);
        if follows {
            self.set_bit(RUNENDS, slot - 1, false);
        }
    }

    #[inline(always)]
    fn add_to_offsets(&mut self, first: u64, last: u64, change: u64) {
        let mut block = first;
        while block <= last {
            let index = self.first_word(block) + OFFSET;
            let offset = self.words.word(index).wrapping_add(change);
            self.words.replace(index, !0, offset);
            block += 1;
        }
    }

    /// Metadata that move with an item, beside its remainder.
    const MOVING: &'static [u64] = if COUNTED { &[RUNENDS, DIGITS] } else { &[RUNENDS] };

    /// Copies an item with its metadata.
    #[inline(always)]
    fn copy(&mut self, from: u64, to: u64) {
        for &which in Self::MOVING {
            let bit = self.words.word(self.first_word(from / 64) + which) >> (from % 64) & 1 != 0;
            self.set_bit(which, to, bit);
        }
        let remainder = self.remainder(from);
        self.set_remainder(to, remainder);
    }

    /// Moves the items of `place..empty` right by one slot.
    #[inline(always)]
    fn move_up(&mut self, place: u64, empty: u64) {
        let width = self.remainder_bits;
        let mut block = empty / 64;
        loop {
            // These slots of the block have items that move within it.
            let from = if block == place / 64 { place as u32 % 64 } else { 0 };
            let to = if block == empty / 64 { empty as u32 % 64 } else { 63 };
            let moved = range(from + 1, to + 1);
            let first = self.first_word(block);
            for &which in Self::MOVING {
                let bits = self.words.word(first + which);
                self.words.replace(first + which, moved, bits << 1 & moved);
            }
            shift_up(&mut self.words, first + Self::REMAINDERS, width, from * width, to * width);
            if block == place / 64 {
                return;
            }
            // Slot 0 gets the item of the slot before.
            self.copy(64 * block - 1, 64 * block);
            block -= 1;
        }
    }

    /// Moves the items of `place + 1..=last` left by one slot, and empties `last`.
    #[inline(always)]
    fn move_down(&mut self, place: u64, last: u64) {
        let width = self.remainder_bits;
        let mut block = place / 64;
        loop {
            let from = if block == place / 64 { place as u32 % 64 } else { 0 };
            let to = if block == last / 64 { last as u32 % 64 } else { 63 };
            let moved = range(from, to);
            let first = self.first_word(block);
            for &which in Self::MOVING {
                let bits = self.words.word(first + which);
                self.words.replace(first + which, moved, bits >> 1 & moved);
            }
            shift_down(&mut self.words, first + Self::REMAINDERS, width, from * width, to * width);
            if block == last / 64 {
                for &which in Self::MOVING {
                    self.set_bit(which, last, false);
                }
                self.set_remainder(last, 0);
                return;
            }
            self.copy(64 * (block + 1), 64 * (block + 1) - 1);
            block += 1;
        }
    }
}

/// Moves the bits `from..to` up by `by`, 1 to 63, counted from the lowest of word `first`; the bits `from..from + by`
/// are undefined then.
#[inline(always)]
fn shift_up<W: WriteWords>(words: &mut W, first: u64, by: u32, from: u32, to: u32) {
    if from == to {
        return;
    }
    let (begin, end) = (from + by, to + by);
    let mut index = (end - 1) / 64;
    let mut word = words.word(first + index as u64);
    loop {
        let before = if index > 0 { words.word(first + index as u64 - 1) } else { 0 };
        let moved = range(begin.saturating_sub(64 * index), (end - 64 * index).min(64));
        words.replace(first + index as u64, moved, (word << by | before >> (64 - by)) & moved);
        if index == begin / 64 {
            return;
        }
        word = before;
        index -= 1;
    }
}

/// Moves the bits `from + by..to + by` down by `by`, 1 to 63; the bits `to..to + by` are undefined then.
#[inline(always)]
fn shift_down<W: WriteWords>(words: &mut W, first: u64, by: u32, from: u32, to: u32) {
    if from == to {
        return;
    }
    let (mut index, last) = (from / 64, (to - 1) / 64);
    let mut word = words.word(first + index as u64);
    loop {
        // Bits from `to + by` on are not used, nor is a word that has only them.
        let reads_next = 64 * (index + 1) < to + by;
        let next = if reads_next { words.word(first + index as u64 + 1) } else { 0 };
        let moved = range(from.saturating_sub(64 * index), (to - 64 * index).min(64));
        words.replace(first + index as u64, moved, (word >> by | next << (64 - by)) & moved);
        if index == last {
            return;
        }
        word = next;
        index += 1;
    }
}
