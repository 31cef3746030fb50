//! Writing a filter from ascending fingerprints, in parallel.
//!
//! Source: section IV-C. Item `i` lies in slot `max(slot(i - 1) + 1, quotient(i))`. A part of the filter therefore turns
//! the first slot that is free when it begins, `x`, into the one that is free when it ends, `max(end, x + items)`, where
//! `end` is what it would be with nothing before: functions of this form compose, so all parts are laid out at once and
//! one short pass over the parts joins them (the paper iterates instead, algorithms 4 to 6).

use rayon::prelude::*;
use warpset_core::quotient::slots::{Appender, BLOCK_SLOTS, ByteSlots, Container, PackedSlots, SlotsMut};
use warpset_core::quotient::{Split, standard as core};

use super::source::{Each, Source};
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

/// The fingerprints of quotients `first..end`; equal ones once, unless duplicates are kept.
fn items_of(layout: &Layout, source: &impl Source, first: u64, end: u64) -> impl Iterator<Item = (u64, u64, bool)> {
    let (split, keep) = (layout.split, layout.keeps_duplicates());
    let mut before = None;
    Each(source.from(split.join(first, 0)))
        .map(move |fingerprint| (fingerprint, split.quotient(fingerprint)))
        .take_while(move |&(_, quotient)| quotient < end)
        .filter_map(move |(fingerprint, quotient)| {
            let last = before.replace(fingerprint);
            if last == Some(fingerprint) && !keep {
                return None;
            }
            let follows = last.is_some_and(|last| split.quotient(last) == quotient);
            Some((quotient, split.remainder(fingerprint), follows))
        })
}

fn lay_out(layout: &Layout, source: &impl Source, first: u64, end: u64) -> Part {
    let mut part = Part { items: 0, end: 0 };
    for (quotient, ..) in items_of(layout, source, first, end) {
        part.end = core::place(part.end, quotient) + 1;
        part.items += 1;
    }
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

/// Writes the items of quotients from `first` on, the first free slot being `free`, into the zero `words` of the slots
/// from `first` on.
fn write(
    layout: &Layout,
    words: &mut [u64],
    items: impl Iterator<Item = (u64, u64, bool)>,
    first: u64,
    mut free: u64,
) -> Written {
    let len = words.len() as u64 / layout.block_words() * BLOCK_SLOTS;
    let mut slots = Appender::new(words, layout.container, layout.split.remainder_bits);
    let (mut count, mut spilled) = (0, Vec::new());
    for (quotient, remainder, follows) in items {
        count += 1;
        let slot = core::place(free, quotient);
        free = slot + 1;
        let metadata = core::item_metadata(slot, quotient, follows);
        if !follows {
            slots.occupy(quotient - first);
        }
        if slot - first < len {
            slots.item(slot - first, metadata, remainder);
        } else {
            spilled.push(Spilled { slot, metadata, remainder });
        }
    }
    slots.finish();
    Written { items: count, free, spilled }
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
        let items = items_of(&layout, source, 0, split.quotients());
        let Written { items, free, .. } = write(&layout, words.as_mut_slice(), items, 0, 0);
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
            write(&layout, chunk, items_of(&layout, source, first, first + step), first, free).spilled
        })
        .collect();
    with_slots!(&layout, words.as_mut_slice(), layout.slots(), |slots| {
        for item in spilled.iter().flatten() {
            slots.set_item(item.slot, item.metadata, item.remainder);
        }
    });
    Ok(StandardQuotientFilter::from_parts(layout, words, items))
}
