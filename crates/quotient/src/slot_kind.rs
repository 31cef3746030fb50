//! Interface of a kind of slots; everything else is the same for all quotient filters.
//!
//! A kind of slots lays out ascending fingerprints in words, walks through them, looks them up, and changes them in
//! place. Building, batches, set operations, resizing, files and views use nothing else.

use std::fmt;

use warpset_base::file::FileKind;
use warpset_core::quotient::slots::Container;

use crate::{Error, Layout, View};

/// Arrangement of fingerprints in slots. Sealed: [`Standard`](crate::Standard) and [`RankSelect`](crate::RankSelect)
/// implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kind of slots of a quotient filter",
    note = "use `StandardQuotientFilter` or `RankSelectQuotientFilter`, or their kinds `Standard` and `RankSelect`"
)]
pub trait SlotKind: Slots {
    /// Name in messages: "standard quotient filter".
    const NAME: &'static str;
    /// Default share of slots that may be used.
    const MAX_LOAD: f64;
}

/// Operations of a [`SlotKind`] on the host; not for other crates.
///
/// In all methods `words` are the words of a sound filter of this `layout`, or whole blocks of 64 slots of one where a
/// method says so. Damaged words cause wrong answers and nothing worse.
pub trait Slots: Copy + fmt::Debug + Send + Sync + 'static {
    /// Number and version in the header of saved filters.
    const STRUCTURE: FileKind;

    /// Whether slots of this kind can have counters.
    const COUNTS: bool;

    /// Whether slots of this kind exist in this container.
    fn lies_in(container: Container) -> bool;

    /// Iterator over all fingerprints, by blocks.
    type Walk<'a>: Walk;

    /// Starts at the first fingerprint with a quotient of at least `quotient`.
    fn walk<'a>(layout: &Layout, words: &'a [u64], quotient: u64) -> Self::Walk<'a>;

    /// Runs `job` with a writer of items into `words`, which are zero and whole blocks.
    fn write<J: WriteJob>(layout: &Layout, words: &mut [u64], job: J) -> J::Output;

    /// Puts items of all blocks into empty slots. Their quotients, and metadata that depend on free slots, have been
    /// written.
    fn put(layout: &Layout, words: &mut [u64], items: impl Iterator<Item = PlacedItem>);

    /// Whether a fingerprint is stored.
    fn contains(layout: &Layout, words: &[u64], fingerprint: u64) -> bool;

    /// Returns the number of stored copies of a fingerprint.
    fn count(layout: &Layout, words: &[u64], fingerprint: u64) -> u64;

    /// Facts about all slots, collected before a large batch of lookups.
    type Prepass: Sync;

    /// Makes the pass if it is worthwhile for `lookups` in a filter of `items` fingerprints.
    fn prepass(layout: &Layout, words: &[u64], items: u64, lookups: usize) -> Option<Self::Prepass>;

    /// Reports for each of `len` fingerprints, in order, whether it is stored.
    fn contains_each(
        layout: &Layout,
        words: &[u64],
        prepass: Option<&Self::Prepass>,
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, bool),
    );

    /// Reports for each of `len` fingerprints, in order, its number of stored copies.
    fn count_each(
        layout: &Layout,
        words: &[u64],
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, u64),
    );

    /// Returns the number of empty slots of a block.
    fn empty_slots(layout: &Layout, words: &[u64], block: u64) -> u32;

    /// Stores or removes one fingerprint.
    fn change(layout: &Layout, words: &mut [u64], fingerprint: u64, change: Change) -> Changed;

    /// Stores `copies >= 1` copies of a fingerprint in a filter with counters, or removes up to that many. Returns the
    /// change, or `None` if it has no slots; then nothing was written. Kinds without counters are not asked.
    fn recount(layout: &Layout, words: &mut [u64], fingerprint: u64, copies: u64, change: Change) -> Option<Counts> {
        let _ = (layout, words, fingerprint, copies, change);
        None
    }

    /// Stores or removes the ascending fingerprints of a part of a filter. `words` are its blocks, and `first_slot` is
    /// its first slot. Fingerprints with clusters that reach out of the part, or without a slot in it, go to `leave`.
    /// Returns the stored or removed amount.
    fn change_part(
        layout: &Layout,
        words: &mut [u64],
        first_slot: u64,
        fingerprints: &[u64],
        change: Change,
        leave: impl FnMut(u64),
    ) -> Counts;

    /// Refuses slots that are not those of a filter with the contents that the view claims.
    fn validate(view: &View<'_, Self>) -> Result<(), Error>;
}

/// Iterates over fingerprints in ascending order, one block of slots at a time.
pub trait Walk {
    /// Writes the next fingerprints and returns their number, zero only at the end.
    fn next_block(&mut self, fingerprints: &mut [u64; 64]) -> usize;

    /// Writes the next fingerprints like [`Walk::next_block`], with copies; equal fingerprints may follow each other.
    fn next_copies(&mut self, into: &mut [Copies; 64]) -> usize {
        let mut fingerprints = [0; 64];
        let count = self.next_block(&mut fingerprints);
        for (place, &fingerprint) in into.iter_mut().zip(&fingerprints[..count]) {
            *place = Copies { fingerprint, copies: 1 };
        }
        count
    }
}

/// Fingerprint with its number of copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Copies {
    /// The fingerprint.
    pub fingerprint: u64,
    /// Number of copies.
    pub copies: u64,
}

/// Contents of a filter, or a stored or removed amount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Fingerprints, copies included.
    pub copies: u64,
    /// Slots of the fingerprints: one each, unless they are counted.
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
        // Numbers from the caller may overflow. A saturated total is above the limit anyway.
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

/// Writer of items in ascending slots into zero words.
pub trait SlotWriter {
    /// Announces that the next item has this quotient, which may be that of the last call. `free` is the first slot
    /// after the items before, including items of earlier parts of the filter.
    fn occupy(&mut self, quotient: u64, free: u64);

    /// Puts an item into a slot after the last one.
    fn item(&mut self, item: PlacedItem);

    /// Writes words that are still in registers; `free` is the first slot after all items.
    fn finish(self, free: u64);
}

/// Work with any [`SlotWriter`].
pub trait WriteJob {
    /// Result of the work.
    type Output;

    /// Does the work.
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

/// Change of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Stores a copy; of a fingerprint that is there, only if the layout keeps duplicates.
    Insert,
    /// Removes one copy.
    Remove,
}

/// Outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// The fingerprint was stored or removed.
    Done,
    /// Nothing was to be done: an insertion found the fingerprint, or a removal did not.
    Unchanged,
    /// No slot is empty; nothing was written.
    NoSlot,
}
