//! Rank-and-select quotient filter: blocks of 64 slots with two bits of metadata per slot and an offset.
//!
//! ```text
//!  block b, slots and quotients 64 b .. 64 b + 63: r + 3 words of 64 bits
//!  +-----------+----------------+---------------+--------------------------------+
//!  | offset    | 64 occupieds   | 64 runends    | 64 remainders, r bits each     |
//!  +-----------+----------------+---------------+--------------------------------+
//! ```
//!
//! - *occupied*: some stored fingerprint has this quotient.
//! - *runend*: the remainder in this slot is the last of its run.
//! - *offset*: the number of slots, from the block's first one on, that runs of earlier quotients take. It has a whole
//!   word, so it cannot overflow.
//!
//! The `k`-th occupied quotient of a block has the `k`-th run that ends at `64 b + offset` or later, so a rank and a
//! selection find it, at any load. Items lie in the slots of a standard quotient filter, so the same scan lays out
//! both. Empty slots are zero.
//!
//! | remainder bits | words of a block | bytes | 32-byte sectors that the metadata touch (worst, mean) |
//! | --- | --- | --- | --- |
//! | 5 | 8 | 64 | 1, 1 |
//! | 13 | 16 | 128 | 1, 1 |
//! | 4 k + 1 | 4 k + 4 | 32 k + 32 | 1, 1 |
//! | even | odd | | 2, 1.5 |
//! | 4 k + 3 | 4 k + 6 | | 2, 1.5 |
//!
//! Metadata are at the head of the block and not in an array of their own, because a lookup of a stored fingerprint
//! reads both metadata and remainders. At r = 5 a block has 64 aligned bytes, and an H200
//! reads them in the time of 4 bytes.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! sections III-B and V, algorithms 2 and 9; Pandey, Bender, Johnson, Patro, "A General-Purpose Counting Filter",
//! SIGMOD 2017 (the structure). Departures: the offset has a word and not eight bits; runs are read from their first
//! slot on.

use crate::bits::{ReadWords, Select, lowest, rank};

mod change;
mod clusters;
pub mod counters;

pub use change::Changed;

/// Index of a block's word with its offset.
pub const OFFSET: u64 = 0;
/// Index of a block's word with its occupieds.
pub const OCCUPIEDS: u64 = 1;
/// Index of a block's word with its runends.
pub const RUNENDS: u64 = 2;
/// Index of a block's word that marks the slots with digits of a counter; only filters with counters have it.
pub const DIGITS: u64 = 3;

/// Returns the number of words of metadata, which precede the remainders.
#[inline(always)]
pub const fn metadata_words(counted: bool) -> u64 {
    3 + counted as u64
}

/// Metadata of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Slots taken by runs of earlier quotients, from the block's first slot on.
    pub offset: u64,
    /// Bit per quotient: it has a run.
    pub occupieds: u64,
    /// Bit per slot: a run ends here.
    pub runends: u64,
}

/// Word for each width, with a one in the lowest bit of each whole field.
const FIELDS: [u64; 64] = {
    let mut words = [0; 64];
    let mut width = 1;
    while width < 64 {
        let mut at = 0;
        while at + width <= 64 {
            words[width] |= 1 << at;
            at += width;
        }
        width += 1;
    }
    words
};

/// Returns the constant by which [`Blocks`] compare remainders of this width, up to 63 bits.
#[inline(always)]
pub const fn fields(remainder_bits: u32) -> u64 {
    FIELDS[remainder_bits as usize % 64]
}

/// Whether one of the lowest `len` fields of `width` bits in a word, which has them all, has this value; `fields` are
/// [`fields`] of the width.
#[inline(always)]
pub const fn any_field_equals(word: u64, fields: u64, width: u32, len: u32, value: u64) -> bool {
    // A field is zero where it is equal; the lowest such field is the first with a highest bit set by the subtraction.
    let differ = word ^ fields.wrapping_mul(value);
    differ.wrapping_sub(fields) & !differ & fields << (width - 1) & lowest(len * width) != 0
}

/// Returns the last slot, which stays empty.
#[inline(always)]
const fn last_slot(blocks: u64) -> u64 {
    (blocks * 64).wrapping_sub(1)
}

/// Blocks of a filter, or whole blocks of one with their first slot as the first quotient.
///
/// Walks expect the invariants of a filter. In damaged memory they end at the last slot. The last slot of a filter is
/// always empty.
///
/// `COUNTED` blocks have counters: [`counters`].
#[derive(Clone, Copy, Debug)]
pub struct Blocks<W, const COUNTED: bool = false> {
    words: W,
    blocks: u64,
    remainder_bits: u32,
    /// [`fields`] of the remainders.
    fields: u64,
    /// Changes are made between these slots; see [`Blocks::within`].
    begin: u64,
    end: u64,
}

impl<W: ReadWords> Blocks<W> {
    /// Makes blocks of `words`.
    #[inline(always)]
    pub const fn new(words: W, blocks: u64, remainder_bits: u32) -> Blocks<W> {
        Blocks::with_fields(words, blocks, remainder_bits, fields(remainder_bits))
    }

    /// Makes blocks of `words`, given [`fields`] of `remainder_bits`.
    #[inline(always)]
    pub const fn with_fields(words: W, blocks: u64, remainder_bits: u32, fields: u64) -> Blocks<W> {
        Blocks { words, blocks, remainder_bits, fields, begin: 0, end: last_slot(blocks) }
    }

    /// Returns the number of copies of a fingerprint.
    #[inline(always)]
    pub fn count(&self, quotient: u64, remainder: u64, select: impl Select) -> u64 {
        if !self.is_occupied(quotient) {
            return 0;
        }
        let (first, found) = self.find_in_run(self.find_run_start(quotient, select), remainder);
        if !found {
            return 0;
        }
        let mut slot = first;
        while !self.is_runend(slot) && slot + 1 < self.slots() && self.remainder(slot + 1) == remainder {
            slot += 1;
        }
        slot + 1 - first
    }
}

impl<W: ReadWords> Blocks<W, true> {
    /// Makes blocks of `words`, with counters.
    #[inline(always)]
    pub const fn counted(words: W, blocks: u64, remainder_bits: u32) -> Blocks<W, true> {
        let (fields, end) = (fields(remainder_bits), last_slot(blocks));
        Blocks { words, blocks, remainder_bits, fields, begin: 0, end }
    }
}

impl<W: ReadWords, const COUNTED: bool> Blocks<W, COUNTED> {
    /// Index of the first word of the remainders.
    const REMAINDERS: u64 = metadata_words(COUNTED);

    /// Returns the number of slots.
    #[inline(always)]
    pub fn slots(&self) -> u64 {
        self.blocks * 64
    }

    /// Returns the number of blocks.
    #[inline(always)]
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    #[inline(always)]
    fn first_word(&self, block: u64) -> u64 {
        block * (self.remainder_bits as u64 + Self::REMAINDERS)
    }

    /// Returns the metadata of a block; of one in which changes begin ([`Blocks::within`]), as if nothing were stored
    /// before.
    #[inline(always)]
    pub fn metadata(&self, block: u64) -> Metadata {
        let first = self.first_word(block);
        let mut of_block = Metadata {
            offset: self.words.word(first + OFFSET),
            occupieds: self.words.word(first + OCCUPIEDS),
            runends: self.words.word(first + RUNENDS),
        };
        if self.begin > block * 64 {
            // Queries of such a block are for slots after the offset, or for quotients.
            of_block.offset = self.begin - block * 64;
            of_block.occupieds &= !0 << (self.begin % 64);
        }
        of_block
    }

    /// Returns the run ends in a block.
    #[inline(always)]
    pub fn runends(&self, block: u64) -> u64 {
        self.words.word(self.first_word(block) + RUNENDS)
    }

    /// Whether a quotient has a run.
    #[inline(always)]
    pub fn is_occupied(&self, quotient: u64) -> bool {
        self.words.word(self.first_word(quotient / 64) + OCCUPIEDS) >> (quotient % 64) & 1 != 0
    }

    /// Whether a run ends in this slot.
    #[inline(always)]
    pub fn is_runend(&self, slot: u64) -> bool {
        self.runends(slot / 64) >> (slot % 64) & 1 != 0
    }

    /// Returns the place of the first bit of the remainder in a slot.
    #[inline(always)]
    fn remainder_at(&self, slot: u64) -> u64 {
        64 * (self.first_word(slot / 64) + Self::REMAINDERS) + slot % 64 * self.remainder_bits as u64
    }

    /// Returns the remainder in a slot; zero if it is empty.
    #[inline(always)]
    pub fn remainder(&self, slot: u64) -> u64 {
        self.words.field(self.remainder_at(slot), self.remainder_bits)
    }

    /// Returns the first free slot after the first `runs` runs of a block's quotients and all runs before the block;
    /// the number of slots if there are fewer.
    #[inline(always)]
    fn after_runs(&self, block: u64, of_block: Metadata, runs: u32, select: impl Select) -> u64 {
        let Metadata { offset, runends, .. } = of_block;
        if offset < 64 {
            // These are the slots after run ends: after the last of the block before, after the first of this block,
            // ...
            let begins = 1 << offset | (runends & !0 << offset) << 1;
            let place = select.select(begins, runs);
            if place < 64 {
                return block * 64 + place as u64;
            }
        }
        self.after_runs_far(block, of_block, runs, select)
    }

    /// Returns the slot that [`after_runs`](Self::after_runs) does, in another block.
    #[inline(always)]
    fn after_runs_far(&self, block: u64, of_block: Metadata, runs: u32, select: impl Select) -> u64 {
        let Metadata { offset, runends, .. } = of_block;
        if runs == 0 {
            return (block * 64).saturating_add(offset).min(self.slots());
        }
        let (mut rank, mut block) = (runs as u64 - 1, block);
        let mut ends = runends;
        if offset >= 64 {
            block = block.saturating_add(offset / 64);
            if block >= self.blocks {
                return self.slots();
            }
            ends = self.runends(block);
        }
        ends &= !0 << (offset % 64);
        loop {
            let here = ends.count_ones() as u64;
            if rank < here {
                return block * 64 + select.select(ends, rank as u32) as u64 + 1;
            }
            rank -= here;
            block += 1;
            if block >= self.blocks {
                return self.slots();
            }
            ends = self.runends(block);
        }
    }

    /// Returns the first slot after the runs of all quotients up to this one: at most the quotient if none of them
    /// reaches its slot.
    #[inline(always)]
    pub fn free_after(&self, quotient: u64, select: impl Select) -> u64 {
        let of_block = self.metadata(quotient / 64);
        self.free_after_in(quotient, of_block, select)
    }

    /// Returns the slot that [`free_after`](Self::free_after) does, given the metadata of the quotient's block.
    #[inline(always)]
    fn free_after_in(&self, quotient: u64, of_block: Metadata, select: impl Select) -> u64 {
        let runs = (of_block.occupieds & lowest(quotient as u32 % 64 + 1)).count_ones();
        self.after_runs(quotient / 64, of_block, runs, select)
    }

    /// Returns the first slot of an occupied quotient's run, given the metadata of its block.
    #[inline(always)]
    fn run_start(&self, quotient: u64, of_block: Metadata, select: impl Select) -> u64 {
        let runs = rank(of_block.occupieds, quotient as u32 % 64);
        Ord::max(self.after_runs(quotient / 64, of_block, runs, select), quotient)
    }

    /// Returns the first slot of an occupied quotient's run.
    #[inline(always)]
    pub fn find_run_start(&self, quotient: u64, select: impl Select) -> u64 {
        self.run_start(quotient, self.metadata(quotient / 64), select)
    }

    /// Returns the last slot of the run that has this slot; the last of all if memory is damaged.
    #[inline(always)]
    pub fn run_end(&self, slot: u64) -> u64 {
        let mut block = slot / 64;
        let mut ends = self.runends(block) & (!0 << (slot % 64));
        while ends == 0 {
            block += 1;
            if block >= self.blocks {
                return self.slots() - 1;
            }
            ends = self.runends(block);
        }
        block * 64 + ends.trailing_zeros() as u64
    }

    /// Returns the first slot from `slot` on without a digit.
    #[inline(always)]
    fn after_digits(&self, slot: u64) -> u64 {
        let mut block = slot / 64;
        if block >= self.blocks {
            return self.slots();
        }
        let mut others = !self.words.word(self.first_word(block) + DIGITS) & (!0 << (slot % 64));
        while others == 0 {
            block += 1;
            if block >= self.blocks {
                return self.slots();
            }
            others = !self.words.word(self.first_word(block) + DIGITS);
        }
        block * 64 + others.trailing_zeros() as u64
    }

    /// Finds a remainder in the run that begins there: the first slot with one that is not smaller, or the slot after
    /// the run; and whether it is equal.
    #[inline(always)]
    fn find_in_run(&self, start: u64, remainder: u64) -> (u64, bool) {
        let mut slot = start;
        while slot < self.slots() {
            let stored = self.remainder(slot);
            if stored >= remainder {
                return (slot, stored == remainder);
            }
            slot += 1;
            if COUNTED {
                slot = self.after_digits(slot);
            }
            if self.is_runend(slot - 1) {
                break;
            }
        }
        (slot, false)
    }

    /// Returns the slot with the first item of a quotient whose remainder without its lowest `dropped` bits is that of
    /// `least`, a remainder in which these bits are zero.
    #[inline(always)]
    pub fn first_prefixed(&self, quotient: u64, least: u64, dropped: u32, select: impl Select) -> Option<u64> {
        if !self.is_occupied(quotient) {
            return None;
        }
        let start = self.find_run_start(quotient, select);
        let (slot, _) = self.find_in_run(start, least);
        let is_in_run = slot < self.slots() && (slot == start || !self.is_runend(slot - 1));
        (is_in_run && self.remainder(slot) >> dropped == least >> dropped).then_some(slot)
    }

    /// Returns the slot with the next item after the one in `slot`, if it is of the same run and its remainder without
    /// the lowest `dropped` bits is the same.
    #[inline(always)]
    pub fn next_prefixed(&self, slot: u64, dropped: u32) -> Option<u64> {
        let next = if COUNTED { self.after_digits(slot + 1) } else { slot + 1 };
        if next >= self.slots() || self.is_runend(next - 1) {
            return None;
        }
        (self.remainder(next) >> dropped == self.remainder(slot) >> dropped).then_some(next)
    }

    /// Whether a remainder is in the run that begins there. `known` is a block and its runends.
    #[inline(always)]
    fn is_in_run(&self, start: u64, known: (u64, u64), remainder: u64) -> bool {
        let (block, at) = (start / 64, start as u32 % 64);
        if block >= self.blocks {
            return false;
        }
        let runends = if block == known.0 { known.1 } else { self.runends(block) } >> at;
        let width = self.remainder_bits;
        let len = 1 + runends.trailing_zeros();
        if COUNTED || runends == 0 || len * width > 64 {
            return self.find_in_run(start, remainder).1;
        }
        // All remainders are compared at once.
        let stored = self.words.field(self.remainder_at(start), len * width);
        any_field_equals(stored, self.fields, width, len, remainder)
    }

    /// Whether a fingerprint is stored (algorithm 2, `LOOKUP`).
    #[inline(always)]
    pub fn contains(&self, quotient: u64, remainder: u64, select: impl Select) -> bool {
        let block = quotient / 64;
        let of_block = self.metadata(block);
        if of_block.occupieds >> (quotient % 64) & 1 == 0 {
            return false;
        }
        self.is_in_run(self.run_start(quotient, of_block, select), (block, of_block.runends), remainder)
    }
}

#[cfg(test)]
mod tests;
