//! Changes within one block on the CPU: nearly all insertions and removals find everything that they touch in the block of
//! their quotient, whose bounds are checked once.
//!
//! The words afterwards are those that `warpset_core::quotient::rank_select` leaves.

use warpset_core::bits::{Select, lowest, range};
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::{OCCUPIEDS, OFFSET, RUNENDS, metadata_words};

use crate::slot_kind::Changed;

const REMAINDERS: usize = metadata_words(false) as usize;

/// A block without counters, not the last of its filter, with the slots that come after the ends of runs.
struct Near<'a> {
    block: &'a mut [u64],
    width: u32,
    occupieds: u64,
    /// The slot after the runs of earlier blocks, after the first run of this block, and so on.
    begins: u64,
}

impl<'a> Near<'a> {
    /// The block of a quotient, if it is not the last one and runs of earlier blocks end in it.
    #[inline(always)]
    fn of(words: &'a mut [u64], split: Split, quotient: u64) -> Option<Near<'a>> {
        let block_words = split.remainder_bits as usize + REMAINDERS;
        let first = (quotient / 64) as usize * block_words;
        if first + 2 * block_words > words.len() {
            return None;
        }
        let block = &mut words[first..first + block_words];
        let [offset, occupieds, runends] = [block[OFFSET as usize], block[OCCUPIEDS as usize], block[RUNENDS as usize]];
        if offset >= 64 {
            return None;
        }
        let begins = 1 << offset | (runends & !0 << offset) << 1;
        Some(Near { block, width: split.remainder_bits, occupieds, begins })
    }

    /// The slot that the runs of quotients up to `at` leave free; 64 if it is in another block.
    #[inline(always)]
    fn free_after(&self, at: u32, select: impl Select) -> u32 {
        select.select(self.begins, (self.occupieds & lowest(at + 1)).count_ones())
    }

    #[inline(always)]
    fn remainder(&self, slot: u32) -> u64 {
        let bit = slot * self.width;
        let index = REMAINDERS + (bit / 64) as usize;
        let low = self.block.get(index).map_or(0, |word| word >> (bit % 64));
        // The next word has bits of it or none that count.
        let high = self.block.get(index + 1).map_or(0, |word| word << 1 << (63 - bit % 64));
        (low | high) & lowest(self.width)
    }

    #[inline(always)]
    fn set_remainder(&mut self, slot: u32, remainder: u64) {
        let (bit, width) = (slot * self.width, self.width);
        let (index, shift) = (REMAINDERS + (bit / 64) as usize, bit % 64);
        if let Some(word) = self.block.get_mut(index) {
            *word = *word & !(lowest(width) << shift) | remainder << shift;
        }
        if shift + width > 64 {
            let in_next = shift + width - 64;
            if let Some(word) = self.block.get_mut(index + 1) {
                *word = *word & !lowest(in_next) | remainder >> (width - in_next);
            }
        }
    }

    /// Where a remainder is or belongs among the slots `start..free` of a run; and whether it is there.
    #[inline(always)]
    fn find(&self, start: u32, free: u32, remainder: u64) -> (u32, bool) {
        let mut slot = start;
        while slot < free {
            let stored = self.remainder(slot);
            if stored >= remainder {
                return (slot, stored == remainder);
            }
            slot += 1;
        }
        (slot, false)
    }

    /// Moves the remainders of `place..empty` up by one slot.
    #[inline(always)]
    fn move_up(&mut self, place: u32, empty: u32) {
        let (begin, end, by) = ((place + 1) * self.width, (empty + 1) * self.width, self.width);
        let remainders = &mut self.block[REMAINDERS..];
        let mut index = (end - 1) / 64;
        let first = begin / 64;
        if begin >= end || index as usize >= remainders.len() {
            return;
        }
        let mut moved = range(0, end - 64 * index);
        let mut word = remainders[index as usize];
        while index > first {
            let before = remainders[index as usize - 1];
            remainders[index as usize] = word & !moved | (word << by | before >> (64 - by)) & moved;
            (word, moved) = (before, !0);
            index -= 1;
        }
        moved &= !0 << (begin % 64);
        let before = if index > 0 { remainders[index as usize - 1] >> (64 - by) } else { 0 };
        remainders[index as usize] = word & !moved | (word << by | before) & moved;
    }

    /// Moves the remainders of `place + 1..=last` down by one slot, and clears that of `last`.
    #[inline(always)]
    fn move_down(&mut self, place: u32, last: u32) {
        let (begin, end, by) = (place * self.width, last * self.width, self.width);
        let remainders = &mut self.block[REMAINDERS..];
        let mut index = begin / 64;
        if begin < end && ((end - 1) / 64 < remainders.len() as u32) {
            let mut moved = !0 << (begin % 64);
            let mut word = remainders[index as usize];
            while index < (end - 1) / 64 {
                let next = remainders[index as usize + 1];
                remainders[index as usize] = word & !moved | (word >> by | next << (64 - by)) & moved;
                (word, moved) = (next, !0);
                index += 1;
            }
            moved &= range(0, end - 64 * index);
            let next = remainders.get(index as usize + 1).map_or(0, |word| word << (64 - by));
            remainders[index as usize] = word & !moved | (word >> by | next) & moved;
        }
        self.set_remainder(last, 0);
    }
}

/// Stores a fingerprint; `None` if that reaches out of the block, and then nothing was written.
#[inline(always)]
pub(super) fn insert(
    words: &mut [u64],
    split: Split,
    (quotient, remainder): (u64, u64),
    duplicates: bool,
    select: impl Select,
) -> Option<Changed> {
    let at = quotient as u32 % 64;
    let mut near = Near::of(words, split, quotient)?;
    let free = near.free_after(at, select);
    if free <= at {
        // Nothing reaches the quotient's slot, so no run is there, and it is empty.
        near.set_remainder(at, remainder);
        near.block[OCCUPIEDS as usize] |= 1 << at;
        near.block[RUNENDS as usize] |= 1 << at;
        return Some(Changed::Done);
    }
    if free >= 64 {
        return None;
    }
    let occupied = near.occupieds >> at & 1 != 0;
    let (place, found) = if occupied {
        let start = select.select(near.begins, (near.occupieds & lowest(at)).count_ones()).max(at);
        near.find(start, free, remainder)
    } else {
        (free, false)
    };
    if found && !duplicates {
        return Some(Changed::Unchanged);
    }
    let mut empty = free;
    loop {
        let next = near.free_after(empty, select);
        if next >= 64 {
            return None;
        }
        if next <= empty {
            break;
        }
        empty = next;
    }
    near.move_up(place, empty);
    near.set_remainder(place, remainder);
    // Runs end one slot later; this one ends at its new slot if it is the last of them.
    let runends = near.block[RUNENDS as usize];
    let moved = range(place + 1, empty + 1);
    let ends = u64::from(place == free) << place;
    let cleared = moved | 1 << place | u64::from(occupied && place == free) << (place.wrapping_sub(1) % 64);
    near.block[RUNENDS as usize] = runends & !cleared | runends << 1 & moved | ends;
    near.block[OCCUPIEDS as usize] |= 1 << at;
    Some(Changed::Done)
}

/// Removes a fingerprint once; `None` if that reaches out of the block, and then nothing was written.
#[inline(always)]
pub(super) fn remove(
    words: &mut [u64],
    split: Split,
    (quotient, remainder): (u64, u64),
    select: impl Select,
) -> Option<Changed> {
    let at = quotient as u32 % 64;
    let mut near = Near::of(words, split, quotient)?;
    if near.occupieds >> at & 1 == 0 {
        return Some(Changed::Unchanged);
    }
    let free = near.free_after(at, select);
    if free >= 64 {
        return None;
    }
    let start = select.select(near.begins, (near.occupieds & lowest(at)).count_ones()).max(at);
    let (place, found) = near.find(start, free, remainder);
    if !found {
        return Some(Changed::Unchanged);
    }
    // Runs whose quotients come before their slots follow, up to one in its canonical slot or an empty slot.
    let mut end = free;
    loop {
        let next = near.free_after(end - 1, select);
        if next >= 64 {
            return None;
        }
        if next <= end {
            break;
        }
        end = next;
    }
    let last = end - 1;
    near.move_down(place, last);
    let runends = near.block[RUNENDS as usize];
    let moved = range(place, last + 1);
    let runends = runends & !moved | (runends & lowest(last + 1)) >> 1 & moved;
    let only = start + 1 == free;
    // The run ends a slot earlier if its last slot went.
    let ends = if !only && place + 1 == free { 1 << (place - 1) } else { 0 };
    near.block[RUNENDS as usize] = runends | ends;
    near.block[OCCUPIEDS as usize] &= !(u64::from(only) << at);
    Some(Changed::Done)
}

#[cfg(test)]
mod tests {
    use warpset_core::bits::Portable;
    use warpset_core::hash::finalise;
    use warpset_core::quotient::rank_select::{Blocks, Changed as Core};

    use super::*;

    /// Each change leaves the words that the general one leaves, or none at all.
    #[test]
    fn changes_are_the_general_ones() {
        let mut state = 5;
        for (width, crowd) in [(1, 0), (2, 2), (5, 0), (5, 1), (7, 3), (13, 0), (31, 1), (32, 0), (61, 1)] {
            let split = Split::new(3, width).unwrap();
            let blocks = 3;
            let mut words = vec![0u64; blocks * (width as usize + 3)];
            let (mut near_ones, duplicates) = (0, width % 2 == 0);
            for _ in 0..4000 {
                state = finalise(state + 1);
                let quotient = (state >> 20) % ((64 * blocks as u64) >> crowd);
                let remainder = (state & 3 | (state & 4) << 50) & lowest(width);
                let mut general = words.clone();
                let mut slots = Blocks::new(&mut general[..], blocks as u64, width);
                let before = words.clone();
                let (near, wanted) = if state >> 61 < 4 {
                    let near = insert(&mut words, split, (quotient, remainder), duplicates, Portable);
                    (near, slots.insert(quotient, remainder, duplicates, Portable))
                } else {
                    let near = remove(&mut words, split, (quotient, remainder), Portable);
                    (near, slots.remove(quotient, remainder, Portable))
                };
                match near {
                    None => {
                        assert!(words == before);
                        words = general;
                    }
                    Some(changed) => {
                        near_ones += 1;
                        assert_eq!(changed == Changed::Done, wanted == Core::Done);
                        assert!(words == general, "{width} {quotient} {remainder}");
                    }
                }
            }
            assert!(near_ones > 200, "{width}: {near_ones}");
        }
    }
}
