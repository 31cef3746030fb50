//! What a quotient filter has to know of its slots; everything else is the same for all quotient filters.
//!
//! A kind of slots says how ascending fingerprints lie in words: it lays them out, walks through them, looks them up,
//! and changes them in place. Building, batches, combining two filters, resizing, files and views use nothing else.

use std::fmt;

use warpset_base::file::Structure;
use warpset_core::quotient::slots::Container;

use crate::{Error, Layout, View};

/// How fingerprints lie in slots. Sealed: [`Standard`](crate::Standard) and [`RankSelect`](crate::RankSelect) implement
/// it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kind of slots of a quotient filter",
    note = "use `StandardQuotientFilter` or `RankSelectQuotientFilter`, or their kinds `Standard` and `RankSelect`"
)]
pub trait SlotKind: Slots {
    /// For messages: "standard quotient filter".
    const NAME: &'static str;
    /// The share of slots that may be used unless the user says otherwise.
    const MAX_LOAD: f64;
}

/// What [`SlotKind`] promises on the host; not for other crates.
///
/// In all methods `words` are the words of a sound filter of this `layout`, or of whole blocks of 64 slots of one where
/// a method says so. Damaged words make wrong answers, nothing worse.
pub trait Slots: Copy + fmt::Debug + Send + Sync + 'static {
    /// What the header of saved filters says: number and version.
    const STRUCTURE: Structure;

    /// Whether there are slots of this kind with counters.
    const COUNTS: bool;

    /// Whether slots of this kind lie in this container.
    fn lies_in(container: Container) -> bool;

    /// An iterator over all fingerprints, by blocks.
    type Walk<'a>: Walk;

    /// From the first fingerprint on whose quotient is at least `quotient`.
    fn walk<'a>(layout: &Layout, words: &'a [u64], quotient: u64) -> Self::Walk<'a>;

    /// Runs `job` with what writes items into `words`: zero, and whole blocks.
    fn write<J: WriteJob>(layout: &Layout, words: &mut [u64], job: J) -> J::Output;

    /// Puts items of all blocks into slots that are empty; their quotients, and what depends on free slots, have been
    /// written.
    fn put(layout: &Layout, words: &mut [u64], items: impl Iterator<Item = PlacedItem>);

    /// Whether a fingerprint is stored.
    fn contains(layout: &Layout, words: &[u64], fingerprint: u64) -> bool;

    /// How many copies of a fingerprint are stored.
    fn count(layout: &Layout, words: &[u64], fingerprint: u64) -> u64;

    /// What is found out about all slots before a large batch of lookups.
    type Prepass: Sync;

    /// Makes the pass, if it pays for `lookups` in a filter of `items` fingerprints.
    fn prepass(layout: &Layout, words: &[u64], items: u64, lookups: usize) -> Option<Self::Prepass>;

    /// Hands out whether each of `len` fingerprints is stored, in their order.
    fn contains_each(
        layout: &Layout,
        words: &[u64],
        prepass: Option<&Self::Prepass>,
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, bool),
    );

    /// Hands out how many copies of each of `len` fingerprints are stored, in their order.
    fn count_each(
        layout: &Layout,
        words: &[u64],
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, u64),
    );

    /// How many slots of a block are empty.
    fn empty_slots(layout: &Layout, words: &[u64], block: u64) -> u32;

    /// Stores or removes one fingerprint.
    fn change(layout: &Layout, words: &mut [u64], fingerprint: u64, change: Change) -> Changed;

    /// Stores `copies >= 1` copies of a fingerprint, or removes as many as there are up to that number, in a filter
    /// with counters. Returns what the change came to, `None` if there are no slots for it, and then nothing was
    /// written. Kinds without counters are not asked.
    fn recount(layout: &Layout, words: &mut [u64], fingerprint: u64, copies: u64, change: Change) -> Option<Counts> {
        let _ = (layout, words, fingerprint, copies, change);
        None
    }

    /// Stores or removes the ascending fingerprints of a part of a filter: `words` are its blocks, `first_slot` is its
    /// first slot. Fingerprints whose clusters reach out of the part, or that have no slot in it, go to `leave`.
    /// Returns what was stored or removed.
    fn change_part(
        layout: &Layout,
        words: &mut [u64],
        first_slot: u64,
        fingerprints: &[u64],
        change: Change,
        leave: impl FnMut(u64),
    ) -> Counts;

    /// An error unless the slots are those of a filter that holds what the view says.
    fn validate(view: &View<'_, Self>) -> Result<(), Error>;
}

/// Iterates over fingerprints in ascending order, one block of slots at a time.
pub trait Walk {
    /// Writes the next fingerprints; returns how many, zero only at the end.
    fn next_block(&mut self, fingerprints: &mut [u64; 64]) -> usize;

    /// [`Walk::next_block`] with copies; equal fingerprints may come one after the other.
    fn next_copies(&mut self, into: &mut [Copies; 64]) -> usize {
        let mut fingerprints = [0; 64];
        let count = self.next_block(&mut fingerprints);
        for (place, &fingerprint) in into.iter_mut().zip(&fingerprints[..count]) {
            *place = Copies { fingerprint, copies: 1 };
        }
        count
    }
}

/// A fingerprint and how many copies of it there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// The fingerprint.
    pub fingerprint: u64,
    /// How many copies of it.
    pub copies: u64,
}

/// What a filter holds, or what was stored or removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Fingerprints, copies included.
    pub copies: u64,
    /// Slots that they take: as many, unless they are counted.
    pub slots: u64,
}

/// Without counters.
impl From<u64> for Counts {
    fn from(items: u64) -> Counts {
        Counts { copies: items, slots: items }
    }
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        // Caller-supplied counts may overflow; saturate, the total is above the limit anyway.
        self.copies = self.copies.saturating_add(other.copies);
        self.slots += other.slots;
    }
}

impl std::ops::SubAssign for Counts {
    fn sub_assign(&mut self, other: Counts) {
        self.copies -= other.copies;
        self.slots -= other.slots;
    }
}

/// Writes items of ascending slots into zero words.
pub trait SlotWriter {
    /// Says that the next item has this quotient; it may be the same as in the last call. `free` is the first slot that
    /// the items before leave free, those of earlier parts of the filter included.
    fn occupy(&mut self, quotient: u64, free: u64);

    /// Puts an item into a slot after the last one.
    fn item(&mut self, item: PlacedItem);

    /// Writes what is still in registers; `free` is the first slot that all items leave free.
    fn finish(self, free: u64);
}

/// What is done with a [`SlotWriter`], whichever it is.
pub trait WriteJob {
    /// What comes of it.
    type Output;

    /// Writes.
    fn run<W: SlotWriter>(self, writer: W) -> Self::Output;
}

/// An item and its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedItem {
    /// Its slot.
    pub slot: u64,
    /// Its quotient, counted from the same slot as `slot`.
    pub quotient: u64,
    /// Whether the item before has the same quotient.
    pub follows: bool,
    /// Its remainder, or the digit of a counter.
    pub remainder: u64,
    /// Whether it is a digit.
    pub is_digit: bool,
}

/// What is done to a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// One that is stored already is stored again only if the layout keeps duplicates.
    Insert,
    /// One copy is removed.
    Remove,
}

/// What became of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// It was stored, or removed.
    Done,
    /// There was nothing to do: it was there already, or not there.
    Unchanged,
    /// There is no empty slot for it; nothing was written.
    NoSlot,
}
