//! Laying out a filter from ascending fingerprints, in parallel.
//!
//! Source: section IV-C. Item `i` lies in slot `max(slot(i - 1) + 1, quotient(i))`. A part of the filter therefore
//! turns the first slot that is free when it begins, `x`, into the one that is free when it ends, `max(end, x +
//! items)`, where `end` is what it would be with nothing before: functions of this form compose, so all parts are laid
//! out at once and one short pass over the parts joins them (the paper iterates instead, algorithms 4 to 6).

use warpset_base::parallel;
use warpset_base::words::AlignedWords;
use warpset_core::quotient::rank_select::counters;
use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_core::quotient::{Split, standard as core};

use super::QuotientFilter;
use super::fingerprint_source::{Ascending, AscendingSource, Item};
use crate::slot_kind::{Counts, PlacedItem, SlotKind, SlotWriter, WriteJob};
use crate::{Error, Layout};

/// Quotients of a part, at least.
const LEAST_PART: u64 = 1 << 14;

/// What a part of the quotients does to the first free slot.
struct PartEffect {
    held: Counts,
    /// The slot after the last item, were nothing spilled into the part; 0 without items.
    end: u64,
}

/// A fingerprint to be stored: its quotient, its remainder, its copies, whether the one before has the same quotient,
/// and how many slots it takes.
#[derive(Clone, Copy)]
struct Placed {
    quotient: u64,
    remainder: u64,
    copies: u64,
    follows: bool,
    slots: u64,
}

/// Visits the fingerprints of quotients `first..end`; equal ones once, unless duplicates are kept.
#[inline(always)]
fn for_each_item<A: AscendingSource>(layout: &Layout, source: &A, first: u64, end: u64, mut visit: impl FnMut(Placed)) {
    let (split, keep) = (layout.split, layout.keeps_duplicates());
    // No item has this quotient.
    let (mut quotient_before, mut before) = (u64::MAX, 0);
    let mut run = source.read_from(split.join(first, 0));
    loop {
        let ready = run.ready();
        let count = ready.len();
        if count == 0 {
            return;
        }
        for &item in ready {
            let fingerprint = item.fingerprint();
            let quotient = split.quotient(fingerprint);
            if quotient >= end {
                return;
            }
            let follows = quotient == quotient_before;
            if !(follows && fingerprint == before && !keep) {
                let copies = item.copies();
                let slots = if A::Item::COUNTED { counters::slots(copies, split.remainder_bits) } else { 1 };
                visit(Placed { quotient, remainder: split.remainder(fingerprint), copies, follows, slots });
            }
            (quotient_before, before) = (quotient, fingerprint);
        }
        run.advance(count);
    }
}

fn measure(layout: &Layout, source: &impl AscendingSource, first: u64, end: u64) -> PartEffect {
    let mut part = PartEffect { held: Counts::default(), end: 0 };
    for_each_item(layout, source, first, end, |Placed { quotient, copies, slots, .. }| {
        part.end = core::place(part.end, quotient) + slots;
        part.held += Counts { copies, slots };
    });
    part
}

/// What was written.
struct Written {
    held: Counts,
    /// The first free slot after all items.
    free: u64,
    /// Items whose slots lie after the words.
    spilled: Vec<PlacedItem>,
}

/// Writes the items of quotients `first..end`, the first free slot being `free`, into the zero words of the slots
/// `first..first + len`.
struct WritePart<'a, A> {
    layout: &'a Layout,
    source: &'a A,
    first: u64,
    end: u64,
    free: u64,
    len: u64,
}

impl<A: AscendingSource> WriteJob for WritePart<'_, A> {
    type Output = Written;

    #[inline(always)]
    fn run<W: SlotWriter>(self, mut writer: W) -> Written {
        let WritePart { layout, source, first, end, mut free, len } = self;
        let (mut held, mut spilled) = (Counts::default(), Vec::new());
        let mut put = |writer: &mut W, item: PlacedItem| {
            if item.slot - first < len {
                writer.item(PlacedItem { slot: item.slot - first, quotient: item.quotient - first, ..item });
            } else {
                spilled.push(item);
            }
        };
        for_each_item(layout, source, first, end, |Placed { quotient, remainder, copies, follows, slots }| {
            held += Counts { copies, slots };
            writer.occupy(quotient - first, free.saturating_sub(first));
            let slot = core::place(free, quotient);
            free = slot + slots;
            put(&mut writer, PlacedItem { slot, quotient, follows, remainder, is_digit: false });
            if A::Item::COUNTED {
                for i in 1..slots {
                    let remainder = counters::digit(copies, layout.split.remainder_bits, i as u32 - 1);
                    put(&mut writer, PlacedItem { slot: slot + i, quotient, follows: true, remainder, is_digit: true });
                }
            }
        });
        writer.finish(free.saturating_sub(first));
        Written { held, free, spilled }
    }
}

/// [`WritePart`] into these words.
fn write<S: SlotKind>(
    layout: &Layout,
    words: &mut [u64],
    source: &impl AscendingSource,
    (first, end): (u64, u64),
    free: u64,
) -> Written {
    let len = words.len() as u64 / layout.block_words() * BLOCK_SLOTS;
    S::write(layout, words, WritePart { layout, source, first, end, free, len })
}

/// Quotients of a part: a power of two, small enough that all threads have work and large enough that parts are worth
/// it.
fn part_quotients(split: Split) -> u64 {
    let threads = rayon::current_num_threads() as u64;
    if threads == 1 {
        return split.quotients();
    }
    (split.quotients() / (8 * threads.next_power_of_two())).max(LEAST_PART).min(split.quotients())
}

/// An error unless fingerprints that take `items` slots, the last of them `end - 1`, fit.
pub fn check_fit(layout: &Layout, items: u64, end: u64) -> Result<(), Error> {
    if items > layout.limit {
        return Err(layout.full(items));
    }
    let usable = layout.slots() - 1;
    if end > usable {
        return Err(Error::OverflowRegionFull { slot: end - 1, limit: usable });
    }
    Ok(())
}

/// The most copies that a filter may hold: those of two filters can be added.
pub(crate) const MOST_COPIES: u64 = (1 << 63) - 1;

/// [`check_fit`], and an error if there are more copies than are counted.
fn check_held(layout: &Layout, held: Counts, end: u64) -> Result<(), Error> {
    if held.copies > MOST_COPIES {
        return Err(Error::TooManyCopies);
    }
    check_fit(layout, held.slots, end)
}

/// A filter of the fingerprints of `source`, which gives them counted if the layout counts them.
pub(crate) fn lay_out<S: SlotKind, A: AscendingSource>(layout: Layout, source: &A) -> Result<QuotientFilter<S>, Error> {
    debug_assert_eq!(layout.is_counted(), A::Item::COUNTED);
    let split = layout.split;
    let step = part_quotients(split);
    if step == split.quotients() {
        // One part begins at its first slot, so it is written without having been measured.
        let mut words = AlignedWords::zeroed(layout.words())?;
        let Written { held, free, .. } = write::<S>(&layout, words.as_mut_slice(), source, (0, split.quotients()), 0);
        check_held(&layout, held, free)?;
        return Ok(QuotientFilter::from_parts(layout, words, held));
    }
    let parts: Vec<PartEffect> =
        parallel::map(0..split.quotients() / step, |i| measure(&layout, source, i * step, (i + 1) * step));
    let mut held = Counts::default();
    parts.iter().for_each(|part| held += part.held);
    let mut free = 0u64;
    let frees: Vec<u64> = parts
        .iter()
        .map(|part| {
            let before = free;
            if part.held.slots > 0 {
                free = part.end.max(free + part.held.slots);
            }
            before
        })
        .collect();
    check_held(&layout, held, free)?;

    let mut words = AlignedWords::zeroed(layout.words())?;
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
    let spilled: Vec<Vec<PlacedItem>> =
        parallel::map(chunks.into_iter().zip(frees).enumerate(), |(i, (chunk, free))| {
            let first = i as u64 * step;
            write::<S>(&layout, chunk, source, (first, first + step), free).spilled
        });
    S::put(&layout, words.as_mut_slice(), spilled.into_iter().flatten());
    Ok(QuotientFilter::from_parts(layout, words, held))
}
