//! The rank-and-select quotient filter's slots: blocks of 64 with `occupieds`, `runends` and an offset (section III-B of the
//! paper).
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018;
//! algorithms 2 and 9. The arithmetic on blocks is in `warpset_core::quotient::rank_select`.

use warpset_base::processor::Pdep;
use warpset_core::bits::{Portable, Select};
use warpset_core::quotient::rank_select::{Blocks, Changed as CoreChanged};
use warpset_core::quotient::slots::Container;

use crate::cpu::ahead::prefetch;
use crate::slot_kind::{Change, Changed, PlacedItem, SlotKind, WriteJob, sealed};
use crate::{Error, Layout, View};

mod append;
mod lookup;
mod validate;
mod walk;

use append::BlockWriter;
pub use walk::BlockWalk;

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

/// Stores or removes a fingerprint.
#[inline(always)]
fn apply(
    layout: &Layout,
    blocks: &mut Blocks<&mut [u64]>,
    quotient: u64,
    remainder: u64,
    change: Change,
    select: impl Select,
) -> Changed {
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

impl sealed::Sealed for RankSelect {}

impl SlotKind for RankSelect {
    const STRUCTURE: u16 = 25;
    const NAME: &'static str = "rank-and-select quotient filter";
    const MAX_LOAD: f64 = 0.95;

    fn lies_in(container: Container) -> bool {
        container == Container::Packed
    }

    type Walk<'a> = BlockWalk<'a>;

    fn walk<'a>(layout: &Layout, words: &'a [u64], quotient: u64) -> BlockWalk<'a> {
        BlockWalk::from_quotient(blocks(layout, words), layout.split, quotient)
    }

    fn write<J: WriteJob>(layout: &Layout, words: &mut [u64], job: J) -> J::Output {
        job.run(BlockWriter::new(words, layout.split.remainder_bits))
    }

    fn put(layout: &Layout, words: &mut [u64], items: impl Iterator<Item = PlacedItem>) {
        let mut blocks = blocks(layout, words);
        for PlacedItem { slot, follows, remainder, .. } in items {
            blocks.put(slot, follows, remainder);
        }
    }

    #[inline]
    fn contains(layout: &Layout, words: &[u64], fingerprint: u64) -> bool {
        lookup::contains(layout, words, fingerprint)
    }

    #[inline]
    fn count(layout: &Layout, words: &[u64], fingerprint: u64) -> u64 {
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
        with_select!(|select| lookup::answer(
            layout,
            words,
            len,
            fingerprint,
            #[inline(always)]
            |blocks, fingerprint| blocks.contains(fingerprint, select),
            take
        ))
    }

    fn count_each(
        layout: &Layout,
        words: &[u64],
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, u64),
    ) {
        with_select!(|select| lookup::answer(
            layout,
            words,
            len,
            fingerprint,
            #[inline(always)]
            |blocks, fingerprint| blocks.count(fingerprint, select),
            take
        ))
    }

    fn empty_slots(layout: &Layout, words: &[u64], block: u64) -> u32 {
        blocks(layout, words).used(block).count_zeros()
    }

    #[inline]
    fn change(layout: &Layout, words: &mut [u64], fingerprint: u64, change: Change) -> Changed {
        let (quotient, remainder) = (layout.split.quotient(fingerprint), layout.split.remainder(fingerprint));
        let mut blocks = blocks(layout, words);
        // One closure each: both in one would save registers for the larger on every call.
        match change {
            Change::Insert => {
                with_select!(|select| apply(layout, &mut blocks, quotient, remainder, Change::Insert, select))
            }
            Change::Remove => {
                with_select!(|select| apply(layout, &mut blocks, quotient, remainder, Change::Remove, select))
            }
        }
    }

    fn change_part(
        layout: &Layout,
        words: &mut [u64],
        first_slot: u64,
        fingerprints: &[u64],
        change: Change,
        mut leave: impl FnMut(u64),
    ) -> u64 {
        let (split, block_words) = (layout.split, layout.block_words() as usize);
        let part = (words.len() / block_words) as u64;
        let mut done = 0;
        with_select!(|select| for (i, &fingerprint) in fingerprints.iter().enumerate() {
            if let Some(&soon) = fingerprints.get(i + 8) {
                prefetch(words, ((split.quotient(soon) - first_slot) / 64) as usize * block_words);
            }
            let mut blocks = Blocks::new(&mut *words, part, split.remainder_bits);
            let (quotient, remainder) = (split.quotient(fingerprint) - first_slot, split.remainder(fingerprint));
            match apply(layout, &mut blocks, quotient, remainder, change, select) {
                Changed::Done => done += 1,
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
