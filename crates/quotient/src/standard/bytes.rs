//! Slots of whole bytes on the CPU, slot by slot.

use warpset_core::quotient::slots::{Appender, BLOCK_SLOTS, ByteSlots, Container};
use warpset_core::quotient::standard::{self as core, Inserted};

use super::packed::{BATCH, prefetch};
use crate::Layout;
use crate::slot_kind::{Change, Changed, PlacedItem, SlotWriter};

/// Writes items of ascending slots into zero words.
pub(super) struct ByteWriter<'a>(Appender<&'a mut [u64]>);

impl<'a> ByteWriter<'a> {
    pub(super) fn new(words: &'a mut [u64], remainder_bits: u32) -> ByteWriter<'a> {
        ByteWriter(Appender::new(words, Container::Bytes, remainder_bits))
    }
}

impl SlotWriter for ByteWriter<'_> {
    #[inline(always)]
    fn occupy(&mut self, quotient: u64) {
        self.0.occupy(quotient);
    }

    #[inline(always)]
    fn item(&mut self, PlacedItem { slot, quotient, follows, remainder }: PlacedItem) {
        self.0.item(slot, core::item_metadata(slot, quotient, follows), remainder);
    }

    #[inline(always)]
    fn finish(self) {
        self.0.finish();
    }
}

/// Hands out what `ask` answers of each of `len` fingerprints, a batch at a time.
#[inline(always)]
pub(super) fn answer_many<'a, T>(
    layout: &Layout,
    words: &'a [u64],
    len: usize,
    fingerprint: impl Fn(usize) -> u64,
    ask: impl Fn(&ByteSlots<&'a [u64]>, u64, u64) -> T,
    mut take: impl FnMut(usize, T),
) {
    let (split, block_words) = (layout.split, layout.block_words());
    let slots = ByteSlots::new(words, layout.slots(), split.remainder_bits);
    let mut fingerprints = [0; BATCH];
    let mut first = 0;
    while first < len {
        let count = BATCH.min(len - first);
        for (i, place) in fingerprints[..count].iter_mut().enumerate() {
            *place = fingerprint(first + i);
            prefetch(words, (split.quotient(*place) * block_words / BLOCK_SLOTS) as usize);
        }
        for (i, &fingerprint) in fingerprints[..count].iter().enumerate() {
            take(first + i, ask(&slots, split.quotient(fingerprint), split.remainder(fingerprint)));
        }
        first += count;
    }
}

/// Stores or removes one fingerprint.
pub(super) fn change(layout: &Layout, words: &mut [u64], fingerprint: u64, change: Change) -> Changed {
    let split = layout.split;
    let mut slots = ByteSlots::new(words, layout.slots(), split.remainder_bits);
    change_slots(&mut slots, layout, split.quotient(fingerprint), split.remainder(fingerprint), change)
}

fn change_slots(
    slots: &mut ByteSlots<&mut [u64]>,
    layout: &Layout,
    quotient: u64,
    remainder: u64,
    change: Change,
) -> Changed {
    match change {
        Change::Insert => match core::insert(slots, quotient, remainder, layout.keeps_duplicates()) {
            Inserted::Stored => Changed::Done,
            Inserted::Present => Changed::Unchanged,
            Inserted::NoSlot => Changed::NoSlot,
        },
        Change::Remove if core::remove(slots, quotient, remainder) => Changed::Done,
        Change::Remove => Changed::Unchanged,
    }
}

/// Works off ascending fingerprints of a part; see [`SlotKind::change_part`](crate::slot_kind::SlotKind::change_part).
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
