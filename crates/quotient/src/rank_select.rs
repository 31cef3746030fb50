//! The rank-and-select quotient filter's slots: blocks of 64 with `occupieds`, `runends` and an offset (section III-B of the
//! paper).
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018;
//! algorithms 2 and 9. The arithmetic on blocks is in `warpset_core::quotient::rank_select`.

use warpset_base::processor::Pdep;
use warpset_core::bits::{Portable, Select};
use warpset_core::quotient::rank_select::{Blocks, Changed as CoreChanged};
use warpset_core::quotient::slots::Container;

use crate::cpu::ahead::{BATCH, prefetch};
use crate::slot_kind::{Change, Changed, PlacedItem, SlotKind, WriteJob, sealed};
use crate::{Error, Layout, View};

mod append;
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

/// Fingerprints that are looked up together, their cache lines asked for before.
struct Batch<'a> {
    blocks: Blocks<&'a [u64]>,
    words: &'a [u64],
    layout: Layout,
}

impl Batch<'_> {
    /// Asks for the lines with the metadata of a quotient and with the remainder in its canonical slot.
    #[inline(always)]
    fn prefetch(&self, fingerprint: u64) {
        let quotient = self.layout.split.quotient(fingerprint) as usize;
        let block = quotient / 64 * self.layout.block_words() as usize;
        prefetch(self.words, block);
        if self.layout.block_words() != 8 {
            prefetch(self.words, block + 3 + quotient % 64 * self.layout.split.remainder_bits as usize / 64);
        }
    }

    /// Hands out what `ask` answers of the fingerprints whose quotients have a run, and the default of all others.
    #[inline(always)]
    fn answer<T: Copy + Default>(
        &self,
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        ask: impl Fn(&Blocks<&[u64]>, u64, u64) -> T,
        mut take: impl FnMut(usize, T),
    ) {
        let split = self.layout.split;
        let mut fingerprints = [0; BATCH];
        let mut first = 0;
        while first < len {
            let count = BATCH.min(len - first);
            for (i, place) in fingerprints[..count].iter_mut().enumerate() {
                *place = fingerprint(first + i);
                self.prefetch(*place);
            }
            // Those without a run are sorted out first: a branch on each would be guessed wrong as often as not.
            let (mut left, mut answers) = ([0u8; BATCH], [T::default(); BATCH]);
            let mut stay = 0;
            for (i, &fingerprint) in fingerprints[..count].iter().enumerate() {
                left[stay] = i as u8;
                stay += self.blocks.is_occupied(split.quotient(fingerprint)) as usize;
            }
            for &i in &left[..stay] {
                let i = i as usize % BATCH;
                let fingerprint = fingerprints[i];
                answers[i] = ask(&self.blocks, split.quotient(fingerprint), split.remainder(fingerprint));
            }
            for (i, answer) in answers[..count].iter().enumerate() {
                take(first + i, *answer);
            }
            first += count;
        }
    }
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
        let (quotient, remainder) = (layout.split.quotient(fingerprint), layout.split.remainder(fingerprint));
        let blocks = blocks(layout, words);
        blocks.is_occupied(quotient) && with_select!(|select| blocks.contains(quotient, remainder, select))
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
        let batch = Batch { blocks: blocks(layout, words), words, layout: *layout };
        with_select!(|select| batch.answer(
            len,
            fingerprint,
            #[inline(always)]
            |blocks, quotient, remainder| blocks.contains(quotient, remainder, select),
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
        let batch = Batch { blocks: blocks(layout, words), words, layout: *layout };
        with_select!(|select| batch.answer(
            len,
            fingerprint,
            #[inline(always)]
            |blocks, quotient, remainder| blocks.count(quotient, remainder, select),
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
