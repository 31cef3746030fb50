//! The rank-and-select quotient filter's slots: blocks of 64 with `occupieds`, `runends` and an offset (section III-B of the
//! paper).
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018;
//! algorithms 2 and 9. The arithmetic on blocks is in `warpset_core::quotient::rank_select`.

use warpset_base::processor::Pdep;
use warpset_core::bits::{Portable, Select};
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::counters::{self, Recounted};
use warpset_core::quotient::rank_select::{Blocks, Changed as CoreChanged};
use warpset_core::quotient::slots::Container;

use crate::cpu::ahead::prefetch;
use crate::slot_kind::{Change, Changed, Copies, PlacedItem, SlotKind, Tally, WriteJob, sealed};
use crate::{Error, Layout, View};

mod append;
pub mod gpu;
mod lookup;
mod near;
mod validate;
mod walk;

use append::BlockWriter;
pub use walk::{BlockWalk, Runs};

/// Blocks of 64 slots with `occupieds`, `runends` and an offset: the kind of
/// [`RankSelectQuotientFilter`](crate::RankSelectQuotientFilter).
#[derive(Clone, Copy, Debug)]
pub struct RankSelect;

/// The blocks of a filter.
#[inline(always)]
fn blocks<W>(layout: &Layout, words: W) -> Blocks<W>
where
    W: warpset_core::bits::ReadWords,
{
    Blocks::new(words, layout.blocks, layout.split.remainder_bits)
}

/// The blocks of a filter with counters.
#[inline(always)]
fn counted_blocks<W>(layout: &Layout, words: W) -> Blocks<W, true>
where
    W: warpset_core::bits::ReadWords,
{
    Blocks::counted(words, layout.blocks, layout.split.remainder_bits)
}

/// Runs the body with the processor's way to select ones.
macro_rules! with_select {
    (|$select:ident| $body:expr) => {
        match Pdep::detect() {
            Some($select) => $select.run(
                #[inline(always)]
                || $body,
            ),
            None => {
                let $select = Portable;
                $body
            }
        }
    };
}

/// Stores or removes a fingerprint in blocks without counters.
#[inline(always)]
fn apply(
    layout: &Layout,
    words: &mut [u64],
    (quotient, remainder): (u64, u64),
    change: Change,
    select: impl Select,
) -> Changed {
    let (split, duplicates) = (layout.split, layout.keeps_duplicates());
    let near = match change {
        Change::Insert => near::insert(words, split, (quotient, remainder), duplicates, select),
        Change::Remove => near::remove(words, split, (quotient, remainder), select),
    };
    match near {
        Some(changed) => changed,
        None => apply_far(layout, words, (quotient, remainder), change, select),
    }
}

/// The same, whatever blocks it takes.
#[inline(never)]
fn apply_far(
    layout: &Layout,
    words: &mut [u64],
    (quotient, remainder): (u64, u64),
    change: Change,
    select: impl Select,
) -> Changed {
    let part = words.len() as u64 / layout.block_words();
    let mut blocks = Blocks::new(words, part, layout.split.remainder_bits);
    let changed = match change {
        Change::Insert => blocks.insert(quotient, remainder, layout.keeps_duplicates(), select),
        Change::Remove => blocks.remove(quotient, remainder, select),
    };
    match changed {
        CoreChanged::Done => Changed::Done,
        CoreChanged::Unchanged => Changed::Unchanged,
        CoreChanged::Outside => Changed::NoSlot,
    }
}

/// How many copies a filter with counters has. Apart, and without the layout, as the answers of others are faster so.
#[inline(never)]
fn count_counted(words: &[u64], blocks: u64, split: Split, fingerprint: u64) -> u64 {
    let blocks = Blocks::counted(words, blocks, split.remainder_bits);
    with_select!(|select| blocks.count(split.quotient(fingerprint), split.remainder(fingerprint), select))
}

/// Stores copies of a fingerprint, or removes them; `None` if there are no slots for that.
#[inline(always)]
fn recount(
    layout: &Layout,
    blocks: &mut Blocks<&mut [u64], true>,
    quotient: u64,
    remainder: u64,
    copies: u64,
    change: Change,
    select: impl Select,
) -> Option<Tally> {
    let done = match change {
        Change::Insert => blocks.add(quotient, remainder, copies, select),
        Change::Remove => blocks.subtract(quotient, remainder, copies, select),
    };
    let slots = |count| counters::slots(count, layout.split.remainder_bits);
    match done {
        Recounted::Done { before, after } => {
            Some(Tally { copies: after.abs_diff(before), slots: slots(after).abs_diff(slots(before)) })
        }
        Recounted::TooMany | Recounted::Outside => None,
    }
}

impl sealed::Sealed for RankSelect {}

impl SlotKind for RankSelect {
    const STRUCTURE: u16 = 25;
    const NAME: &'static str = "rank-and-select quotient filter";
    const MAX_LOAD: f64 = 0.95;
    const COUNTS: bool = true;

    fn lies_in(container: Container) -> bool {
        container == Container::Packed
    }

    type Walk<'a> = BlockWalk<'a>;

    fn walk<'a>(layout: &Layout, words: &'a [u64], quotient: u64) -> BlockWalk<'a> {
        if layout.is_counted() {
            let runs = Runs::from_quotient(counted_blocks(layout, words), layout.split, quotient);
            return BlockWalk::Counted(runs, Copies::default());
        }
        BlockWalk::Plain(Runs::from_quotient(blocks(layout, words), layout.split, quotient))
    }

    fn write<J: WriteJob>(layout: &Layout, words: &mut [u64], job: J) -> J::Output {
        let remainder_bits = layout.split.remainder_bits;
        if layout.is_counted() {
            job.run(BlockWriter::<true>::new(words, remainder_bits))
        } else {
            job.run(BlockWriter::<false>::new(words, remainder_bits))
        }
    }

    fn put(layout: &Layout, words: &mut [u64], items: impl Iterator<Item = PlacedItem>) {
        if layout.is_counted() {
            let mut blocks = counted_blocks(layout, words);
            items.for_each(|PlacedItem { slot, follows, remainder, is_digit, .. }| {
                blocks.put_counted(slot, follows, is_digit, remainder);
            });
        } else {
            let mut blocks = blocks(layout, words);
            items.for_each(|PlacedItem { slot, follows, remainder, .. }| blocks.put(slot, follows, remainder));
        }
    }

    #[inline]
    fn contains(layout: &Layout, words: &[u64], fingerprint: u64) -> bool {
        if layout.is_counted() {
            return count_counted(words, layout.blocks, layout.split, fingerprint) > 0;
        }
        lookup::contains(layout, words, fingerprint)
    }

    #[inline]
    fn count(layout: &Layout, words: &[u64], fingerprint: u64) -> u64 {
        if layout.is_counted() {
            return count_counted(words, layout.blocks, layout.split, fingerprint);
        }
        let (quotient, remainder) = (layout.split.quotient(fingerprint), layout.split.remainder(fingerprint));
        with_select!(|select| blocks(layout, words).count(quotient, remainder, select))
    }

    /// Offsets are there already.
    type Prepass = ();

    fn prepass(_: &Layout, _: &[u64], _: u64, _: usize) -> Option<()> {
        None
    }

    fn contains_each(
        layout: &Layout,
        words: &[u64],
        _: Option<&()>,
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, bool),
    ) {
        macro_rules! answer {
            ($counted:literal) => {
                with_select!(|select| lookup::answer::<_, $counted>(
                    layout,
                    words,
                    len,
                    fingerprint,
                    #[inline(always)]
                    |blocks, fingerprint| blocks.contains(fingerprint, select),
                    take
                ))
            };
        }
        if layout.is_counted() { answer!(true) } else { answer!(false) }
    }

    fn count_each(
        layout: &Layout,
        words: &[u64],
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, u64),
    ) {
        macro_rules! answer {
            ($counted:literal) => {
                with_select!(|select| lookup::answer::<_, $counted>(
                    layout,
                    words,
                    len,
                    fingerprint,
                    #[inline(always)]
                    |blocks, fingerprint| blocks.count(fingerprint, select),
                    take
                ))
            };
        }
        if layout.is_counted() { answer!(true) } else { answer!(false) }
    }

    fn empty_slots(layout: &Layout, words: &[u64], block: u64) -> u32 {
        let used = if layout.is_counted() {
            counted_blocks(layout, words).used(block)
        } else {
            blocks(layout, words).used(block)
        };
        used.count_zeros()
    }

    #[inline]
    fn change(layout: &Layout, words: &mut [u64], fingerprint: u64, change: Change) -> Changed {
        let parts = (layout.split.quotient(fingerprint), layout.split.remainder(fingerprint));
        // One closure each: both in one would save registers for the larger on every call.
        match change {
            Change::Insert => with_select!(|select| apply(layout, words, parts, Change::Insert, select)),
            Change::Remove => with_select!(|select| apply(layout, words, parts, Change::Remove, select)),
        }
    }

    fn recount(layout: &Layout, words: &mut [u64], fingerprint: u64, copies: u64, change: Change) -> Option<Tally> {
        let mut blocks = counted_blocks(layout, words);
        let (quotient, remainder) = (layout.split.quotient(fingerprint), layout.split.remainder(fingerprint));
        with_select!(|select| recount(layout, &mut blocks, quotient, remainder, copies, change, select))
    }

    fn change_part(
        layout: &Layout,
        words: &mut [u64],
        first_slot: u64,
        fingerprints: &[u64],
        change: Change,
        mut leave: impl FnMut(u64),
    ) -> Tally {
        let (split, block_words) = (layout.split, layout.block_words() as usize);
        let part = (words.len() / block_words) as u64;
        let mut done = Tally::default();
        if layout.is_counted() {
            with_select!(|select| for equal in fingerprints.chunk_by(|a, b| a == b) {
                let mut blocks = Blocks::counted(&mut *words, part, split.remainder_bits);
                let (quotient, remainder) = (split.quotient(equal[0]) - first_slot, split.remainder(equal[0]));
                match recount(layout, &mut blocks, quotient, remainder, equal.len() as u64, change, select) {
                    Some(changed) => done += changed,
                    None => equal.iter().for_each(|&fingerprint| leave(fingerprint)),
                }
            });
            return done;
        }
        with_select!(|select| for (i, &fingerprint) in fingerprints.iter().enumerate() {
            if let Some(&soon) = fingerprints.get(i + 8) {
                prefetch(words, ((split.quotient(soon) - first_slot) / 64) as usize * block_words);
            }
            let parts = (split.quotient(fingerprint) - first_slot, split.remainder(fingerprint));
            match apply(layout, words, parts, change, select) {
                Changed::Done => done += 1.into(),
                Changed::Unchanged => {}
                Changed::NoSlot => leave(fingerprint),
            }
        });
        done
    }

    fn validate(view: &View<'_, RankSelect>) -> Result<(), Error> {
        validate::validate(view)
    }
}
