//! Insertion and removal in packed slots on the CPU: items move by whole words.
//!
//! The result is that of `warpset_core::quotient::standard::{insert, remove}`, which go slot by slot (algorithms 3 and
//! 7).

#[cfg(target_arch = "x86_64")]
use warpset_base::processor::has_bit_instructions;
use warpset_core::bits::{Portable, range};
use warpset_core::quotient::Split;
use warpset_core::quotient::standard::Inserted;

use super::Packed;
use crate::Layout;
use crate::slot_kind::{Change, Changed};
use warpset_base::processor::prefetch;

/// Packed slots for writing: those of a filter, or of a part with its first slot as the first quotient.
pub(in super::super) struct PackedMut<'a> {
    words: &'a mut [u64],
    split: Split,
    keeps_duplicates: bool,
    block_words: usize,
}

/// Slot as block and place in it.
type Slot = (usize, u32);

impl<'a> PackedMut<'a> {
    /// Makes slots of `words`, whole blocks.
    pub(in super::super) fn new(words: &'a mut [u64], layout: &Layout) -> PackedMut<'a> {
        PackedMut::with_split(words, layout.split, layout.keeps_duplicates())
    }

    fn with_split(words: &'a mut [u64], split: Split, keeps_duplicates: bool) -> PackedMut<'a> {
        PackedMut { words, split, keeps_duplicates, block_words: split.remainder_bits as usize + 3 }
    }

    #[inline(always)]
    fn read(&self) -> Packed<'_> {
        Packed::new(self.words, self.split)
    }

    /// Returns the words of a block. All slots passed here are in one.
    #[inline(always)]
    fn block(&mut self, block: usize) -> &mut [u64] {
        &mut self.words[block * self.block_words..(block + 1) * self.block_words]
    }

    #[inline(always)]
    fn blocks(&self) -> usize {
        self.words.len() / self.block_words
    }

    /// Finds the first slot from this one on with a bit in `word`.
    #[inline(always)]
    fn first_from(&self, (mut block, at): Slot, word: impl Fn([u64; 3]) -> u64) -> Option<Slot> {
        let mut found = word(self.read().metadata(block)) & (!0 << at);
        while found == 0 {
            block += 1;
            if block >= self.blocks() {
                return None;
            }
            found = word(self.read().metadata(block));
        }
        Some((block, found.trailing_zeros()))
    }

    #[inline(always)]
    fn set_remainder(&mut self, (block, at): Slot, remainder: u64) {
        let width = self.split.remainder_bits;
        let (index, shift) = (3 + (at * width / 64) as usize, at * width % 64);
        let block = self.block(block);
        block[index] = block[index] & !(range(0, width) << shift) | remainder << shift;
        if shift + width > 64 {
            let in_next = shift + width - 64;
            block[index + 1] = block[index + 1] & !range(0, in_next) | remainder >> (width - in_next);
        }
    }

    /// Stores a fingerprint; see [`Inserted`].
    #[inline(always)]
    fn insert(&mut self, quotient: u64, remainder: u64) -> Inserted {
        let home = ((quotient / 64) as usize, (quotient % 64) as u32);
        let [occupieds, _, shifteds] = self.read().metadata(home.0);
        let last = (self.blocks() - 1, 63);
        if (occupieds | shifteds) >> home.1 & 1 == 0 {
            if home >= last {
                return Inserted::NoSlot; // the last slot of all stays empty
            }
            self.set_remainder(home, remainder);
            self.block(home.0)[0] |= 1 << home.1;
            return Inserted::Stored;
        }
        let occupied = occupieds >> home.1 & 1 != 0;
        let start = self.read().run_start(quotient, !occupied, Portable);
        let (place, found) = if occupied { self.read().find_in_run(start, remainder) } else { (start, false) };
        if found && !self.keeps_duplicates {
            return Inserted::Present;
        }
        let empty = match self.first_from(place, |[occupieds, _, shifteds]| !(occupieds | shifteds)) {
            Some(empty) if empty < last => empty,
            _ => return Inserted::NoSlot,
        };
        self.move_right(place, empty);
        // The head of the quotient's own run, if it moved, follows the new head.
        let follows = occupied && place != start;
        if occupied && !follows {
            let (block, at) = next(place);
            self.block(block)[1] |= 1 << at;
        }
        let block = self.block(place.0);
        block[1] = block[1] & !(1 << place.1) | (follows as u64) << place.1;
        block[2] = block[2] & !(1 << place.1) | ((place != home) as u64) << place.1;
        self.set_remainder(place, remainder);
        self.block(home.0)[0] |= 1 << home.1;
        Inserted::Stored
    }

    /// Moves the items of `place..empty` right by one slot; `is_occupied` stays.
    #[inline(always)]
    fn move_right(&mut self, place: Slot, empty: Slot) {
        let width = self.split.remainder_bits;
        let mut block = empty.0;
        loop {
            // These slots of the block get an item from the left; slot 0 gets that of the block before.
            let from = if block == place.0 { place.1 } else { 0 };
            let to = if block == empty.0 { empty.1 } else { 63 };
            let carried = (block > place.0).then(|| {
                let before = self.read();
                (before.metadata(block - 1)[1] >> 63, before.remainder(block - 1, 63))
            });
            let words = self.block(block);
            let moved = range(from + 1, to + 1);
            words[1] = words[1] & !moved | words[1] << 1 & moved;
            words[2] |= moved;
            shift_left(&mut words[3..], width, from * width, to * width);
            let Some((continuation, remainder)) = carried else { return };
            words[1] = words[1] & !1 | continuation;
            words[2] |= 1;
            self.set_remainder((block, 0), remainder);
            block -= 1;
        }
    }

    /// Removes a fingerprint once. Returns `false` if it is not there.
    #[inline(always)]
    fn remove(&mut self, quotient: u64, remainder: u64) -> bool {
        let home = ((quotient / 64) as usize, (quotient % 64) as u32);
        if self.read().metadata(home.0)[0] >> home.1 & 1 == 0 {
            return false;
        }
        let start = self.read().run_start(quotient, false, Portable);
        let (place, found) = self.read().find_in_run(start, remainder);
        if !found {
            return false;
        }
        let (block, at) = next(place);
        let followed = self.read().metadata(block)[1] >> at & 1 != 0;
        let head = place == start;
        if head && !followed {
            self.block(home.0)[0] &= !(1 << home.1);
        }
        // All later shifted items move left by one slot; the last of their slots becomes empty.
        let end = if block < self.blocks() { self.first_from((block, at), |[_, _, shifteds]| !shifteds) } else { None };
        let last = previous(end.unwrap_or((self.blocks(), 0)));
        self.move_left(place, last);
        if head && followed {
            self.block(place.0)[1] &= !(1 << place.1);
        } else if place < last {
            // The item comes from the right, and counts as shifted until `settle` finds it in its canonical slot.
            self.block(place.0)[2] |= 1 << place.1;
        }
        self.settle(home, place, last, head && followed);
        true
    }

    /// Moves the items of `place + 1..=last` left by one slot, and empties `last`; `is_occupied` stays.
    #[inline(always)]
    fn move_left(&mut self, place: Slot, last: Slot) {
        let width = self.split.remainder_bits;
        for block in place.0..=last.0 {
            let from = if block == place.0 { place.1 } else { 0 };
            let to = if block == last.0 { last.1 } else { 63 };
            let words = self.block(block);
            let moved = range(from, to);
            words[1] = words[1] & !moved | words[1] >> 1 & moved;
            shift_right(&mut words[3..], width, from * width, to * width);
            if block < last.0 {
                let after = self.read();
                let (continuation, remainder) = (after.metadata(block + 1)[1] & 1, after.remainder(block + 1, 0));
                let words = self.block(block);
                words[1] = words[1] & !(1 << 63) | continuation << 63;
                self.set_remainder((block, 63), remainder);
            } else {
                words[1] &= !(1 << to);
                words[2] &= !(1 << to);
                self.set_remainder(last, 0);
            }
        }
    }

    /// Clears `is_shifted` of items that reached their canonical slots when `place..last` moved left.
    ///
    /// The k-th run that begins there belongs to the k-th occupied quotient after `home`. So a head is at home if as
    /// many quotients up to its slot are occupied as runs have begun. `own` says that the first head is that of `home`,
    /// in its old slot.
    #[inline(always)]
    fn settle(&mut self, home: Slot, place: Slot, last: Slot, own: bool) {
        // This counts the occupied quotients after `home` less the runs that have begun.
        let mut waiting = 0u64;
        for block in home.0..=last.0 {
            let [occupieds, continuations, _] = self.read().metadata(block);
            let first = if block == home.0 { home.1 + 1 } else { 0 };
            let occupieds = occupieds & range(first, 64);
            let end = if block == last.0 { last.1 } else { 64 };
            let begin = if block > place.0 {
                0
            } else if block == place.0 {
                place.1 + own as u32
            } else {
                64
            };
            let heads = !continuations & range(begin, end);
            let begun = heads.count_ones() as u64;
            if waiting <= begun {
                let mut left = heads;
                while left != 0 {
                    let upto = left ^ (left - 1); // the lowest head and all below it
                    let home_now =
                        waiting + (occupieds & upto).count_ones() as u64 == (heads & upto).count_ones() as u64;
                    if home_now && occupieds & left & left.wrapping_neg() != 0 {
                        self.block(block)[2] &= !(left & left.wrapping_neg());
                    }
                    left &= left - 1;
                }
            }
            waiting = (waiting + occupieds.count_ones() as u64).wrapping_sub(begun);
        }
    }

    #[inline(always)]
    fn apply(&mut self, quotient: u64, remainder: u64, change: Change) -> Changed {
        match change {
            Change::Insert => match self.insert(quotient, remainder) {
                Inserted::Stored => Changed::Done,
                Inserted::Present => Changed::Unchanged,
                Inserted::NoSlot => Changed::NoSlot,
            },
            Change::Remove if self.remove(quotient, remainder) => Changed::Done,
            Change::Remove => Changed::Unchanged,
        }
    }

    /// Stores or removes one fingerprint.
    #[inline(always)]
    pub(in super::super) fn change(&mut self, fingerprint: u64, change: Change) -> Changed {
        let (quotient, remainder) = (self.split.quotient(fingerprint), self.split.remainder(fingerprint));
        #[cfg(target_arch = "x86_64")]
        {
            // Each change has its own function: both in one would save registers for the larger on every call.
            #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
            fn insert(slots: &mut PackedMut<'_>, quotient: u64, remainder: u64) -> Changed {
                slots.apply(quotient, remainder, Change::Insert)
            }
            #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
            fn remove(slots: &mut PackedMut<'_>, quotient: u64, remainder: u64) -> Changed {
                slots.apply(quotient, remainder, Change::Remove)
            }
            if has_bit_instructions() {
                // SAFETY: the processor has these instructions.
                return unsafe {
                    match change {
                        Change::Insert => insert(self, quotient, remainder),
                        Change::Remove => remove(self, quotient, remainder),
                    }
                };
            }
        }
        #[inline(never)]
        fn portable(slots: &mut PackedMut<'_>, quotient: u64, remainder: u64, change: Change) -> Changed {
            slots.apply(quotient, remainder, change)
        }
        portable(self, quotient, remainder, change)
    }

    /// Applies [`PackedMut::change_part`] with the processor's instructions or without.
    #[inline(always)]
    fn change_each(&mut self, first_slot: u64, batch: &[u64], change: Change, mut leave: impl FnMut(u64)) -> u64 {
        let split = self.split;
        let mut done = 0;
        for (i, &fingerprint) in batch.iter().enumerate() {
            if let Some(&soon) = batch.get(i + 8) {
                prefetch(self.words, ((split.quotient(soon) - first_slot) / 64) as usize * self.block_words);
            }
            let (quotient, remainder) = (split.quotient(fingerprint) - first_slot, split.remainder(fingerprint));
            let changed =
                if self.is_inside(quotient) { self.apply(quotient, remainder, change) } else { Changed::NoSlot };
            match changed {
                Changed::Done => done += 1,
                Changed::Unchanged => {}
                Changed::NoSlot => leave(fingerprint),
            }
        }
        done
    }

    /// Whether changes of this quotient touch only these slots: its cluster begins here, and a later slot is empty.
    #[inline(always)]
    fn is_inside(&self, quotient: u64) -> bool {
        let home = ((quotient / 64) as usize, (quotient % 64) as u32);
        let mut block = home.0;
        let mut unshifted = !self.read().metadata(block)[2] & range(0, home.1 + 1);
        while unshifted == 0 {
            if block == 0 {
                return false;
            }
            block -= 1;
            unshifted = !self.read().metadata(block)[2];
        }
        let last = (self.blocks() - 1, 63);
        self.first_from(home, |[occupieds, _, shifteds]| !(occupieds | shifteds)).is_some_and(|empty| empty < last)
    }

    /// Applies the ascending fingerprints of a part; see
    /// [`SlotKind::change_part`](crate::slot_kind::SlotKind::change_part).
    pub(in super::super) fn change_part(
        &mut self,
        first_slot: u64,
        batch: &[u64],
        change: Change,
        leave: impl FnMut(u64),
    ) -> u64 {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
            fn fast(
                slots: &mut PackedMut<'_>,
                first_slot: u64,
                batch: &[u64],
                change: Change,
                leave: impl FnMut(u64),
            ) -> u64 {
                slots.change_each(first_slot, batch, change, leave)
            }
            if has_bit_instructions() {
                // SAFETY: the processor has these instructions.
                return unsafe { fast(self, first_slot, batch, change, leave) };
            }
        }
        self.change_each(first_slot, batch, change, leave)
    }
}

/// Returns the slot after this one.
#[inline(always)]
pub(super) fn next((block, at): Slot) -> Slot {
    if at == 63 { (block + 1, 0) } else { (block, at + 1) }
}

#[inline(always)]
fn previous((block, at): Slot) -> Slot {
    if at == 0 { (block - 1, 63) } else { (block, at - 1) }
}

/// Moves the bits `from..to` up by `by`, 1 to 63; the bits `from..from + by` are undefined then.
#[inline(always)]
fn shift_left(words: &mut [u64], by: u32, from: u32, to: u32) {
    if from == to {
        return;
    }
    let (first, end) = (from + by, to + by);
    let mut index = (end - 1) / 64;
    loop {
        let low = if index > 0 { words[index as usize - 1] >> (64 - by) } else { 0 };
        let word = words[index as usize];
        let moved = range(first.saturating_sub(64 * index).min(64), (end - 64 * index).min(64));
        words[index as usize] = word & !moved | (word << by | low) & moved;
        if index == first / 64 {
            return;
        }
        index -= 1;
    }
}

/// Moves the bits `from + by..to + by` down by `by`, 1 to 63; the bits `to..to + by` are undefined then.
#[inline(always)]
fn shift_right(words: &mut [u64], by: u32, from: u32, to: u32) {
    if from == to {
        return;
    }
    for index in from / 64..=(to - 1) / 64 {
        let high = words.get(index as usize + 1).map_or(0, |word| word << (64 - by));
        let word = words[index as usize];
        let moved = range(from.saturating_sub(64 * index).min(64), (to - 64 * index).min(64));
        words[index as usize] = word & !moved | (word >> by | high) & moved;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpset_core::quotient::slots::PackedSlots;
    use warpset_core::quotient::standard as core;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]

        /// Compares the bytes after each operation with those of the slot-by-slot one.
        #[test]
        fn changes_are_those_slot_by_slot(
            r in prop::sample::select(vec![1u32, 2, 5, 7, 13, 32, 61]), blocks in 1usize..5, duplicates: bool,
            ops in prop::collection::vec((any::<u64>(), any::<u64>(), 0u8..3), 0..if cfg!(miri) { 60 } else { 900 }), crowd in 0u64..3,
        ) {
            let split = Split::new(3, r).unwrap();
            let slots = 64 * blocks as u64;
            let mut fast = vec![0u64; blocks * (r as usize + 3)];
            let mut slow = fast.clone();
            for (quotient, remainder, kind) in ops {
                // Some sequences are all over the slots, some in a quarter of them or in a few.
                let quotient = quotient % (slots >> (2 * crowd)).max(1);
                let remainder = split.remainder((remainder % 5) | (remainder << 40 & 1 << 60));
                let mut by_slot = PackedSlots::new(&mut slow[..], slots, r);
                if kind < 2 {
                    let wanted = core::insert(&mut by_slot, quotient, remainder, duplicates);
                    prop_assert_eq!(PackedMut::with_split(&mut fast, split, duplicates).insert(quotient, remainder), wanted);
                } else {
                    let wanted = core::remove(&mut by_slot, quotient, remainder);
                    prop_assert_eq!(PackedMut::with_split(&mut fast, split, duplicates).remove(quotient, remainder), wanted);
                }
                prop_assert_eq!(&fast, &slow);
                let by_slot = PackedSlots::new(&slow[..], slots, r);
                prop_assert_eq!(
                    PackedMut::with_split(&mut fast, split, duplicates).is_inside(quotient), core::is_inside(&by_slot, quotient)
                );
            }
        }
    }
}
