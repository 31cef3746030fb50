//! Writing a filter from ascending fingerprints, in parallel.
//!
//! Source: section IV-C. Item `i` lies in slot `max(slot(i - 1) + 1, quotient(i))`. A part of the filter therefore turns
//! the first slot that is free when it begins, `x`, into the one that is free when it ends, `max(end, x + items)`, where
//! `end` is what it would be with nothing before: functions of this form compose, so all parts are laid out at once and
//! one short pass over the parts joins them (the paper iterates instead, algorithms 4 to 6).

use rayon::prelude::*;
use warpset_core::quotient::slots::{Appender, BLOCK_SLOTS, ByteSlots, Container, PackedSlots, SlotsMut};
use warpset_core::quotient::{Split, standard as core};

use super::packed::PackedAppender;
use super::source::{Ascending, Source};
use super::with_slots;
use crate::Words;
use crate::{Error, Layout, StandardQuotientFilter};

/// Quotients of a part, at least.
const LEAST_PART: u64 = 1 << 14;

/// What a part of the quotients does to the first free slot.
struct Part {
    items: u64,
    /// The slot after the last item, were nothing spilled into the part; 0 without items.
    end: u64,
}

/// An item that lies behind the part of the filter that its quotient belongs to.
struct Spilled {
    slot: u64,
    metadata: u64,
    remainder: u64,
}

/// An item: its quotient, its remainder, and whether the item before has the same quotient.
#[derive(Clone, Copy)]
struct Item {
    quotient: u64,
    remainder: u64,
    follows: bool,
}

/// Goes through the fingerprints of quotients `first..end`; equal ones once, unless duplicates are kept.
#[inline(always)]
fn for_each_item(layout: &Layout, source: &impl Source, first: u64, end: u64, mut visit: impl FnMut(Item)) {
    let (split, keep) = (layout.split, layout.keeps_duplicates());
    // No item has this quotient.
    let (mut quotient_before, mut before) = (u64::MAX, 0);
    let mut run = source.from(split.join(first, 0));
    loop {
        let ready = run.ready();
        let count = ready.len();
        if count == 0 {
            return;
        }
        for &fingerprint in ready {
            let quotient = split.quotient(fingerprint);
            if quotient >= end {
                return;
            }
            let follows = quotient == quotient_before;
            if !(follows && fingerprint == before && !keep) {
                visit(Item { quotient, remainder: split.remainder(fingerprint), follows });
            }
            (quotient_before, before) = (quotient, fingerprint);
        }
        run.advance(count);
    }
}

fn lay_out(layout: &Layout, source: &impl Source, first: u64, end: u64) -> Part {
    let mut part = Part { items: 0, end: 0 };
    for_each_item(layout, source, first, end, |item| {
        part.end = core::place(part.end, item.quotient) + 1;
        part.items += 1;
    });
    part
}

/// What was written.
struct Written {
    items: u64,
    /// The first free slot behind all items.
    free: u64,
    /// Those that lie behind the words.
    spilled: Vec<Spilled>,
}

/// Writes the items of quotients `first..end`, the first free slot being `free`, into the zero `words` of the slots from
/// `first` on.
fn write(layout: &Layout, words: &mut [u64], source: &impl Source, first: u64, end: u64, mut free: u64) -> Written {
    let len = words.len() as u64 / layout.block_words() * BLOCK_SLOTS;
    let (mut items, mut spilled) = (0, Vec::new());
    // Where an item goes, if that is in the words.
    let mut place = |item: Item| {
        items += 1;
        let slot = core::place(free, item.quotient);
        free = slot + 1;
        if slot - first < len {
            return Some(slot - first);
        }
        let metadata = core::item_metadata(slot, item.quotient, item.follows);
        spilled.push(Spilled { slot, metadata, remainder: item.remainder });
        None
    };
    match layout.container {
        Container::Packed => {
            let mut slots = PackedAppender::new(words, layout.split.remainder_bits);
            for_each_item(layout, source, first, end, |item| {
                let quotient = item.quotient - first;
                slots.occupy(quotient);
                if let Some(slot) = place(item) {
                    slots.item(slot, item.follows, slot != quotient, item.remainder);
                }
            });
            slots.finish();
        }
        Container::Bytes => {
            let mut slots = Appender::new(words, Container::Bytes, layout.split.remainder_bits);
            for_each_item(layout, source, first, end, |item| {
                let quotient = item.quotient - first;
                slots.occupy(quotient);
                if let Some(slot) = place(item) {
                    slots.item(slot, core::item_metadata(slot, quotient, item.follows), item.remainder);
                }
            });
            slots.finish();
        }
    }
    Written { items, free, spilled }
}

/// Quotients of a part: a power of two, so many that all threads have work and few enough that parts are worth it.
fn part_quotients(split: Split) -> u64 {
    let threads = rayon::current_num_threads() as u64;
    if threads == 1 {
        return split.quotients();
    }
    (split.quotients() / (8 * threads.next_power_of_two())).max(LEAST_PART).min(split.quotients())
}

/// Whether so many items, with so many slots up to the end of the last one, are permitted.
fn check(layout: &Layout, items: u64, end: u64) -> Result<(), Error> {
    if items > layout.limit {
        return Err(Error::Full { items, limit: layout.limit });
    }
    let usable = layout.slots() - 1;
    if end > usable {
        return Err(Error::OverflowRegionFull { slot: end - 1, limit: usable });
    }
    Ok(())
}

/// A filter of the fingerprints of `source`.
pub(super) fn build(layout: Layout, source: &impl Source) -> Result<StandardQuotientFilter, Error> {
    let split = layout.split;
    let step = part_quotients(split);
    if step == split.quotients() {
        // One part begins at its first slot, so it is written without having been laid out before.
        let mut words = Words::zeroed(layout.words())?;
        let Written { items, free, .. } = write(&layout, words.as_mut_slice(), source, 0, split.quotients(), 0);
        check(&layout, items, free)?;
        return Ok(StandardQuotientFilter::from_parts(layout, words, items));
    }
    let parts: Vec<Part> = (0..split.quotients() / step)
        .into_par_iter()
        .map(|i| lay_out(&layout, source, i * step, (i + 1) * step))
        .collect();
    let items = parts.iter().map(|part| part.items).sum();
    let mut free = 0u64;
    let frees: Vec<u64> = parts
        .iter()
        .map(|part| {
            let before = free;
            if part.items > 0 {
                free = part.end.max(free + part.items);
            }
            before
        })
        .collect();
    check(&layout, items, free)?;

    let mut words = Words::zeroed(layout.words())?;
    // A filter of less than a block has one part; all others have whole blocks, the last part those of the overflow.
    let part_words = (step.div_ceil(BLOCK_SLOTS) * layout.block_words()) as usize;
    let mut rest = words.as_mut_slice();
    let mut chunks = Vec::with_capacity(frees.len());
    for _ in 1..frees.len() {
        let (chunk, after) = rest.split_at_mut(part_words);
        chunks.push(chunk);
        rest = after;
    }
    chunks.push(rest);
    let spilled: Vec<Vec<Spilled>> = chunks
        .into_par_iter()
        .zip(frees)
        .enumerate()
        .map(|(i, (chunk, free))| {
            let first = i as u64 * step;
            write(&layout, chunk, source, first, first + step, free).spilled
        })
        .collect();
    with_slots!(&layout, words.as_mut_slice(), layout.slots(), |slots| {
        for item in spilled.iter().flatten() {
            slots.set_item(item.slot, item.metadata, item.remainder);
        }
    });
    Ok(StandardQuotientFilter::from_parts(layout, words, items))
}
