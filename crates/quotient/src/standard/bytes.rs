//! Slots of whole bytes on the CPU, slot by slot.

use warpset_core::bits::OrWords;
use warpset_core::quotient::Split;
use warpset_core::quotient::slots::{BLOCK_SLOTS, ByteSlots, OCCUPIED, bytes_of_slot};
use warpset_core::quotient::standard::{self as core, Inserted};

use crate::Layout;
use crate::cpu::BATCH;
use crate::slot_kind::{Change, Changed, PlacedItem, SlotWriter};
use warpset_base::processor::prefetch;

/// Writer of items in ascending slots into zero words, like `warpset_core::quotient::slots::Appender`, with the words
/// kept in registers.
pub(super) struct ByteWriter<'a> {
    words: &'a mut [u64],
    slot_bits: u32,
    /// Word of the last quotient's slot, and its `is_occupied` bits that are not written yet.
    home: u64,
    occupieds: u64,
    /// Word of the last item, and its bits that are not written yet.
    index: u64,
    items: u64,
}

impl<'a> ByteWriter<'a> {
    #[inline(always)]
    pub(super) fn new(words: &'a mut [u64], remainder_bits: u32) -> ByteWriter<'a> {
        let slot_bits = 8 * bytes_of_slot(remainder_bits);
        ByteWriter { words, slot_bits, home: 0, occupieds: 0, index: 0, items: 0 }
    }

    /// Writes the word of items, and continues with another.
    #[inline(always)]
    fn write_items(&mut self, next: u64) {
        self.words.or(self.index, self.items);
        (self.index, self.items) = (next, 0);
    }
}

impl SlotWriter for ByteWriter<'_> {
    #[inline(always)]
    fn occupy(&mut self, quotient: u64, _: u64) {
        let at = quotient * u64::from(self.slot_bits);
        let home = at / 64;
        if home != self.home {
            self.words.or(self.home, self.occupieds);
            (self.home, self.occupieds) = (home, 0);
        }
        self.occupieds |= OCCUPIED << (at % 64);
    }

    #[inline(always)]
    fn item(&mut self, PlacedItem { slot, quotient, follows, remainder, .. }: PlacedItem) {
        let at = slot * u64::from(self.slot_bits);
        let (index, shift) = (at / 64, at as u32 % 64);
        let item = remainder << 3 | core::item_metadata(slot, quotient, follows);
        if index != self.index {
            self.write_items(index);
        }
        self.items |= item << shift;
        if shift + self.slot_bits > 64 {
            self.write_items(index + 1);
            self.items = item >> (64 - shift);
        }
    }

    #[inline(always)]
    fn finish(mut self, _: u64) {
        self.words.or(self.home, self.occupieds);
        self.write_items(0);
    }
}

/// Reports the answers of `ask` for each of `len` fingerprints, a batch at a time.
#[inline(always)]
pub(super) fn answer_many<'a, T: Copy + Default>(
    layout: &Layout,
    words: &'a [u64],
    len: usize,
    fingerprint: impl Fn(usize) -> u64,
    ask: impl Fn(ByteSlots<&'a [u64]>, Split, &[u64], &mut [T]),
    mut take: impl FnMut(usize, T),
) {
    let (split, block_words) = (layout.split, layout.block_words());
    let slots = ByteSlots::new(words, layout.slots(), split.remainder_bits);
    let (mut fingerprints, mut answers) = ([0; BATCH], [T::default(); BATCH]);
    let mut first = 0;
    while first < len {
        let count = BATCH.min(len - first);
        for (i, place) in fingerprints[..count].iter_mut().enumerate() {
            *place = fingerprint(first + i);
            prefetch(words, (split.quotient(*place) * block_words / BLOCK_SLOTS) as usize);
        }
        ask(slots, split, &fingerprints[..count], &mut answers[..count]);
        for (i, &answer) in answers[..count].iter().enumerate() {
            take(first + i, answer);
        }
        first += count;
    }
}

/// Reports whether each fingerprint is stored. It is a function of its own, because its loops need all registers.
#[inline(never)]
pub(super) fn contains(slots: ByteSlots<&[u64]>, split: Split, fingerprints: &[u64], answers: &mut [bool]) {
    for (answer, &fingerprint) in answers.iter_mut().zip(fingerprints) {
        *answer = core::contains(&slots, split.quotient(fingerprint), split.remainder(fingerprint));
    }
}

/// Reports the number of copies of each fingerprint; a function of its own like [`contains`].
#[inline(never)]
pub(super) fn count(slots: ByteSlots<&[u64]>, split: Split, fingerprints: &[u64], answers: &mut [u64]) {
    for (answer, &fingerprint) in answers.iter_mut().zip(fingerprints) {
        *answer = core::count(&slots, split.quotient(fingerprint), split.remainder(fingerprint));
    }
}

/// Stores or removes one fingerprint.
#[inline(always)]
pub(super) fn change(layout: &Layout, words: &mut [u64], fingerprint: u64, change: Change) -> Changed {
    let split = layout.split;
    let mut slots = ByteSlots::new(words, layout.slots(), split.remainder_bits);
    change_slots(&mut slots, layout, split.quotient(fingerprint), split.remainder(fingerprint), change)
}

#[inline(always)]
fn change_slots(
    slots: &mut ByteSlots<&mut [u64]>,
    layout: &Layout,
    quotient: u64,
    remainder: u64,
    change: Change,
) -> Changed {
    match change {
        Change::Insert => match insert(slots, quotient, remainder, layout.keeps_duplicates()) {
            Inserted::Stored => Changed::Done,
            Inserted::Present => Changed::Unchanged,
            Inserted::NoSlot => Changed::NoSlot,
        },
        Change::Remove if core::remove(slots, quotient, remainder) => Changed::Done,
        Change::Remove => Changed::Unchanged,
    }
}

#[inline(never)]
fn insert(slots: &mut ByteSlots<&mut [u64]>, quotient: u64, remainder: u64, duplicates: bool) -> Inserted {
    core::insert(slots, quotient, remainder, duplicates)
}

/// Applies the ascending fingerprints of a part; see
/// [`SlotKind::change_part`](crate::slot_kind::SlotKind::change_part).
pub(super) fn change_part(
    layout: &Layout,
    words: &mut [u64],
    first_slot: u64,
    fingerprints: &[u64],
    change: Change,
    mut leave: impl FnMut(u64),
) -> u64 {
    let split = layout.split;
    let len = words.len() as u64 / layout.block_words() * BLOCK_SLOTS;
    let mut slots = ByteSlots::new(words, len, split.remainder_bits);
    let mut done = 0;
    for &fingerprint in fingerprints {
        let (quotient, remainder) = (split.quotient(fingerprint) - first_slot, split.remainder(fingerprint));
        if !core::is_inside(&slots, quotient) {
            leave(fingerprint);
            continue;
        }
        match change_slots(&mut slots, layout, quotient, remainder, change) {
            Changed::Done => done += 1,
            Changed::Unchanged => {}
            Changed::NoSlot => leave(fingerprint),
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpset_core::quotient::slots::{Appender, Container};

    use super::*;

    proptest! {
        #[test]
        fn the_same_words_as_the_shared_appender(
            r in 1u32..62, items in prop::collection::vec((1u64..90, any::<bool>(), any::<bool>(), any::<u64>()), 0..300),
        ) {
            let blocks = items.iter().map(|item| item.0).sum::<u64>() / 64 + 1;
            let mut wanted = vec![0; (blocks * Container::Bytes.block_words(r)) as usize];
            let mut written = wanted.clone();
            let mut appender = Appender::new(&mut wanted[..], Container::Bytes, r);
            let mut writer = ByteWriter::new(&mut written, r);
            let mut slot = u64::MAX;
            for (step, follows, shifted, remainder) in items {
                slot = slot.wrapping_add(step);
                let remainder = remainder >> (64 - r);
                // Quotients are at most their slots.
                let quotient = slot - u64::from(shifted && slot > 0);
                appender.occupy(quotient);
                writer.occupy(quotient, 0);
                appender.item(slot, core::item_metadata(slot, quotient, follows), remainder);
                writer.item(PlacedItem { slot, quotient, follows, remainder, is_digit: false });
            }
            appender.finish();
            writer.finish(0);
            prop_assert_eq!(written, wanted);
        }
    }
}
