//! Slots of the rank-and-select quotient filter: blocks of 64 with `occupieds`, `runends` and an offset (section III-B
//! of the paper).
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018;
//! algorithms 2 and 9. The arithmetic on blocks is in `warpset_core::quotient::rank_select`.

use warpset_base::file::FileKind;
use warpset_base::processor::Pdep;
use warpset_core::bits::Portable;
use warpset_core::quotient::rank_select::Blocks;
use warpset_core::quotient::slots::Container;

use crate::slot_kind::{Change, Changed, Copies, Counts, PlacedItem, SlotKind, WriteJob};
use crate::{Error, Layout, View};
use warpset_base::processor::prefetch;

mod append;
mod blocks_mut;
mod change;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;
mod lookup;
mod run;
mod validate;
mod walk;

use append::BlockWriter;
use change::{Edit, Many, One, apply_one, with_select};
pub(crate) use lookup::{any_between, any_between_each, first_prefixed, first_prefixed_each, for_each_prefixed};
pub use walk::{BlockWalk, Runs};

/// Blocks of 64 slots with `occupieds`, `runends` and an offset: the kind of
/// [`RankSelectQuotientFilter`](crate::RankSelectQuotientFilter).
#[derive(Clone, Copy, Debug)]
pub struct RankSelect;

/// Returns the blocks of a filter.
#[inline(always)]
fn blocks<W>(layout: &Layout, words: W) -> Blocks<W>
where
    W: warpset_core::bits::ReadWords,
{
    Blocks::new(words, layout.blocks, layout.split.remainder_bits)
}

/// Returns the blocks of a filter with counters.
#[inline(always)]
fn counted_blocks<W>(layout: &Layout, words: W) -> Blocks<W, true>
where
    W: warpset_core::bits::ReadWords,
{
    Blocks::counted(words, layout.blocks, layout.split.remainder_bits)
}

/// Reports the answers of a method of [`lookup::Lookup`] for every fingerprint.
macro_rules! ask_each {
    ($ask:ident, $layout:ident, $words:ident, $len:ident, $fingerprint:ident, $take:ident) => {
        if $layout.is_counted() {
            ask_each!(true, $ask, $layout, $words, $len, $fingerprint, $take)
        } else {
            ask_each!(false, $ask, $layout, $words, $len, $fingerprint, $take)
        }
    };
    ($counted:literal, $ask:ident, $layout:ident, $words:ident, $len:ident, $fingerprint:ident, $take:ident) => {
        with_select!(|select| lookup::answer::<_, $counted>(
            $layout,
            $words,
            $len,
            $fingerprint,
            #[inline(always)]
            |blocks, _, fingerprint| blocks.$ask(fingerprint, select),
            $take
        ))
    };
}

impl SlotKind for RankSelect {
    const NAME: &'static str = "rank-and-select quotient filter";
    const MAX_LOAD: f64 = 0.95;
}

impl crate::slot_kind::Slots for RankSelect {
    const STRUCTURE: FileKind = FileKind::RANK_SELECT_QUOTIENT_FILTER;
    const COUNTS: bool = true;

    fn lies_in(container: Container) -> bool {
        container == Container::Packed
    }

    type Walk<'a> = BlockWalk<'a>;

    fn walk<'a>(layout: &Layout, words: &'a [u64], quotient: u64) -> BlockWalk<'a> {
        if layout.is_counted() {
            let runs = Runs::from_quotient(words, counted_blocks(layout, words), layout.split, quotient);
            return BlockWalk::Counted(runs, Copies::default());
        }
        BlockWalk::Plain(Runs::from_quotient(words, blocks(layout, words), layout.split, quotient))
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
            return lookup::count::<true>(layout, words, fingerprint) > 0;
        }
        lookup::contains(layout, words, fingerprint)
    }

    #[inline]
    fn count(layout: &Layout, words: &[u64], fingerprint: u64) -> u64 {
        if layout.is_counted() {
            return lookup::count::<true>(layout, words, fingerprint);
        }
        lookup::count::<false>(layout, words, fingerprint)
    }

    /// No prepass: blocks have their offsets.
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
        ask_each!(contains, layout, words, len, fingerprint, take);
    }

    fn count_each(
        layout: &Layout,
        words: &[u64],
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, u64),
    ) {
        ask_each!(count, layout, words, len, fingerprint, take);
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
        let edit = One { duplicates: layout.keeps_duplicates() };
        // Each change has its own function: both in one would save registers for the larger on every call.
        match change {
            Change::Insert => apply_one::<_, false>(layout, words, fingerprint, edit),
            Change::Remove => apply_one::<_, true>(layout, words, fingerprint, edit),
        }
    }

    #[inline]
    fn recount(layout: &Layout, words: &mut [u64], fingerprint: u64, copies: u64, change: Change) -> Option<Counts> {
        match change {
            Change::Insert => apply_one::<_, false>(layout, words, fingerprint, Many(copies)),
            Change::Remove => apply_one::<_, true>(layout, words, fingerprint, Many(copies)),
        }
    }

    fn change_part(
        layout: &Layout,
        words: &mut [u64],
        first_slot: u64,
        fingerprints: &[u64],
        change: Change,
        mut leave: impl FnMut(u64),
    ) -> Counts {
        let (split, block_words) = (layout.split, layout.block_words() as usize);
        let mut done = Counts::default();
        if layout.is_counted() {
            with_select!(|select| for equal in fingerprints.chunk_by(|a, b| a == b) {
                let parts = (split.quotient(equal[0]) - first_slot, split.remainder(equal[0]));
                match Many(equal.len() as u64).apply(layout, words, parts, change, select) {
                    Some(changed) => done += changed,
                    None => equal.iter().for_each(|&fingerprint| leave(fingerprint)),
                }
            });
            return done;
        }
        let edit = One { duplicates: layout.keeps_duplicates() };
        with_select!(|select| for (i, &fingerprint) in fingerprints.iter().enumerate() {
            if let Some(&soon) = fingerprints.get(i + 8) {
                prefetch(words, ((split.quotient(soon) - first_slot) / 64) as usize * block_words);
            }
            let parts = (split.quotient(fingerprint) - first_slot, split.remainder(fingerprint));
            match edit.apply(layout, words, parts, change, select) {
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
