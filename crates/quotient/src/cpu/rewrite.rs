//! Parallel layout of ascending fingerprints.
//!
//! Source: section IV-C. Item `i` lies in slot `max(slot(i - 1) + 1, quotient(i))`. So a part of the filter maps the
//! first free slot at its start, `x`, to the first free slot at its end, `max(end, x + items)`; `end` is the result
//! without items before the part. Functions of this form compose. All parts are measured at once, and one short pass
//! over the parts joins them (the paper iterates instead, algorithms 4 to 6).

use warpset_base::parallel;
use warpset_base::words::AlignedWords;
use warpset_core::quotient::rank_select::counters;
use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_core::quotient::{Split, standard as core};

use super::QuotientFilter;
use super::fingerprint_source::{Ascending, AscendingSource, Item};
use crate::slot_kind::{Counts, PlacedItem, SlotKind, SlotWriter, WriteJob};
use crate::{Error, Layout};

/// Least number of quotients of a part.
const LEAST_PART: u64 = 1 << 14;

/// Effect of a part of the quotients on the first free slot.
struct PartEffect {
    held: Counts,
    /// Slot after the last item if nothing spills into the part; 0 without items.
    end: u64,
}

/// Fingerprint to be stored: its quotient, its remainder, its copies, whether the one before has the same quotient, and
/// its number of slots.
#[derive(Clone, Copy)]
struct Placed {
    quotient: u64,
    remainder: u64,
    copies: u64,
    follows: bool,
    slots: u64,
}

/// Visits the fingerprints of quotients `first..end`, equal ones once unless duplicates are kept.
#[inline(always)]
fn for_each_item<A: AscendingSource>(layout: &Layout, source: &A, first: u64, end: u64, mut visit: impl FnMut(Placed)) {
    let (split, keep) = (layout.split, layout.keeps_duplicates());
    // No item has the quotient `u64::MAX`.
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

/// Result of writing a part.
struct Written {
    held: Counts,
    /// First free slot after all items.
    free: u64,
    /// Items with slots after the words.
    spilled: Vec<PlacedItem>,
}

/// Writer of the items of quotients `first..end` into the zero words of slots `first..first + len`; `free` is the first
/// free slot.
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

/// Runs [`WritePart`] on these words.
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

/// Returns the quotients of a part: a power of two that leaves work for all threads and is large enough to pay.
fn part_quotients(split: Split) -> u64 {
    let threads = rayon::current_num_threads() as u64;
    if threads == 1 {
        return split.quotients();
    }
    (split.quotients() / (8 * threads.next_power_of_two())).max(LEAST_PART).min(split.quotients())
}

/// Refuses fingerprints that do not fit: they take `items` slots, the last of them `end - 1`.
///
/// # Errors
/// [`Error::Full`] or [`Error::OverflowRegionFull`].
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

/// Most copies of a filter: the numbers of two filters can be added.
pub(crate) const MOST_COPIES: u64 = (1 << 63) - 1;

/// Refuses what [`check_fit`] refuses, and more copies than counters take.
fn check_held(layout: &Layout, held: Counts, end: u64) -> Result<(), Error> {
    if held.copies > MOST_COPIES {
        return Err(Error::TooManyCopies);
    }
    check_fit(layout, held.slots, end)
}

/// Builds a filter of the fingerprints of `source`, which yields them counted if the layout has counters.
pub(crate) fn lay_out<S: SlotKind, A: AscendingSource>(layout: Layout, source: &A) -> Result<QuotientFilter<S>, Error> {
    debug_assert_eq!(layout.is_counted(), A::Item::COUNTED);
    let split = layout.split;
    let step = part_quotients(split);
    if step == split.quotients() {
        // A single part begins at its first slot, so it is written without having been measured.
        let mut words = AlignedWords::zeroed(layout.words())?.in_huge_pages();
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

    let mut words = AlignedWords::zeroed(layout.words())?.in_huge_pages();
    // A filter of less than a block has one part. Others have whole blocks, and the last part has those of the overflow
    // region.
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
