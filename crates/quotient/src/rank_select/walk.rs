//! Iteration over all fingerprints of the blocks in ascending order, run by run.

use warpset_base::processor::Pdep;
use warpset_core::bits::{Portable, Select, window};
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::{Blocks, metadata_words};

use crate::slot_kind::{Copies, Walk};

/// Iterator over the fingerprints of a rank-and-select quotient filter.
pub enum BlockWalk<'a> {
    /// Without counters.
    Plain(Runs<'a, false>),
    /// With counters, and the copies of the last counted fingerprint that are still to come.
    Counted(Runs<'a, true>, Copies),
}

/// Runs of a filter's quotients.
pub struct Runs<'a, const COUNTED: bool> {
    words: &'a [u64],
    blocks: Blocks<&'a [u64], COUNTED>,
    split: Split,
    /// Block of the next quotient, and its quotients that are to come.
    home: u64,
    left: u64,
    /// Next slot; within a run, its quotient.
    slot: u64,
    quotient: Option<u64>,
}

impl<'a, const COUNTED: bool> Runs<'a, COUNTED> {
    /// Starts at the first fingerprint with a quotient of at least `from`.
    pub(super) fn from_quotient(words: &'a [u64], blocks: Blocks<&'a [u64], COUNTED>, split: Split, from: u64) -> Self {
        let mut runs = Runs { words, blocks, split, home: from / 64, left: 0, slot: 0, quotient: None };
        if runs.home < blocks.blocks() {
            runs.left = runs.occupieds() & (!0 << (from % 64));
            if runs.left != 0 {
                let first = runs.home * 64 + runs.left.trailing_zeros() as u64;
                runs.slot = match Pdep::detect() {
                    Some(pdep) => runs.start(first, pdep),
                    None => runs.start(first, Portable),
                };
            }
        }
        runs
    }

    fn start(&self, quotient: u64, select: impl Select) -> u64 {
        self.blocks.find_run_start(quotient, select)
    }

    /// Returns the occupied quotients of the block. There are none past the last quotient, except in damaged memory.
    #[inline(always)]
    fn occupieds(&self) -> u64 {
        let quotients = self.split.quotients().saturating_sub(self.home * 64);
        let exist = if quotients < 64 { (1 << quotients) - 1 } else { !0 };
        self.blocks.metadata(self.home).occupieds & exist
    }

    /// Returns the quotient of the next slot, which is valid; `None` at the end.
    #[inline(always)]
    fn next_slot(&mut self) -> Option<u64> {
        let quotient = match self.quotient {
            Some(quotient) => quotient,
            None => {
                while self.left == 0 {
                    self.home += 1;
                    if self.home >= self.blocks.blocks() {
                        self.home = self.blocks.blocks();
                        return None;
                    }
                    self.left = self.occupieds();
                    self.slot = (64 * self.home).saturating_add(self.blocks.metadata(self.home).offset);
                }
                let quotient = 64 * self.home + self.left.trailing_zeros() as u64;
                self.left &= self.left - 1;
                self.slot = self.slot.max(quotient);
                quotient
            }
        };
        if self.slot >= self.blocks.slots() {
            // Only damaged memory leads here.
            (self.home, self.left, self.quotient) = (self.blocks.blocks(), 0, None);
            return None;
        }
        Some(quotient)
    }
}

impl Runs<'_, false> {
    /// Writes runs of the block of the next quotient from place `count` on, as far as they are short and in the block.
    /// Returns the number of fingerprints written in all.
    #[inline(always)]
    fn fill_short(&mut self, into: &mut [u64; 64], mut count: usize) -> usize {
        let (width, block) = (self.split.remainder_bits, self.home);
        // Runs up to this length are written as if they had four items; further ones are overwritten.
        let short = (64 / width).min(4);
        let Some(mut at) = self.slot.checked_sub(64 * block).filter(|at| *at < 64).map(|at| at as u32) else {
            return count;
        };
        let (runends, mut left) = (self.blocks.runends(block), self.left);
        let first_bit = 64 * (block * (u64::from(width) + metadata_words(false)) + metadata_words(false));
        while left != 0 && at < 64 {
            let quotient = left.trailing_zeros();
            let start = at.max(quotient);
            let len = 1 + (runends >> start).trailing_zeros();
            let Some(places) = into.get_mut(count..count + 4).filter(|_| len <= short) else { break };
            let first = self.split.join(64 * block + u64::from(quotient), 0);
            let stored = window(self.words, first_bit + u64::from(start * width));
            for (i, place) in (0..).zip(places) {
                *place = first | self.split.remainder(stored.wrapping_shr(i * width));
            }
            count += len as usize;
            (at, left) = (start + len, left & (left - 1));
        }
        (self.slot, self.left) = (64 * block + u64::from(at), left);
        count
    }

    #[inline(always)]
    fn fill(&mut self, into: &mut [u64; 64]) -> usize {
        let mut count = 0;
        while count < into.len() {
            if self.quotient.is_none() && self.left != 0 {
                count = self.fill_short(into, count);
            }
            let Some(quotient) = self.next_slot() else { break };
            // The run is read as far as it is in this block of slots and as there are places.
            let ends = self.blocks.runends(self.slot / 64) >> (self.slot % 64);
            let here = if ends == 0 { 64 - self.slot % 64 } else { ends.trailing_zeros() as u64 + 1 };
            let taken = here.min((into.len() - count) as u64);
            let first = self.split.join(quotient, 0);
            for place in &mut into[count..count + taken as usize] {
                *place = first | self.blocks.remainder(self.slot);
                self.slot += 1;
            }
            count += taken as usize;
            self.quotient = if ends != 0 && taken == here { None } else { Some(quotient) };
        }
        count
    }
}

impl Runs<'_, true> {
    #[inline(always)]
    fn next(&mut self) -> Option<Copies> {
        let quotient = self.next_slot()?;
        let fingerprint = self.split.join(quotient, self.blocks.remainder(self.slot));
        let (copies, after) = self.blocks.count_from(self.slot);
        self.slot = after;
        self.quotient = if self.blocks.is_runend(after - 1) { None } else { Some(quotient) };
        Some(Copies { fingerprint, copies })
    }

    fn fill(&mut self, into: &mut [Copies; 64]) -> usize {
        let mut count = 0;
        for place in into {
            let Some(copies) = self.next() else { break };
            *place = copies;
            count += 1;
        }
        count
    }
}

impl Walk for BlockWalk<'_> {
    #[inline]
    fn next_block(&mut self, fingerprints: &mut [u64; 64]) -> usize {
        match self {
            BlockWalk::Plain(runs) => match Pdep::detect() {
                Some(pdep) => pdep.run(
                    #[inline(always)]
                    || runs.fill(fingerprints),
                ),
                None => runs.fill(fingerprints),
            },
            BlockWalk::Counted(runs, left) => {
                let mut count = 0;
                for place in fingerprints {
                    if left.copies == 0 {
                        let Some(next) = runs.next() else { break };
                        *left = next;
                    }
                    *place = left.fingerprint;
                    left.copies -= 1;
                    count += 1;
                }
                count
            }
        }
    }

    #[inline]
    fn next_copies(&mut self, into: &mut [Copies; 64]) -> usize {
        match self {
            BlockWalk::Counted(runs, _) => runs.fill(into),
            BlockWalk::Plain(_) => {
                let mut fingerprints = [0; 64];
                let count = self.next_block(&mut fingerprints);
                for (place, &fingerprint) in into.iter_mut().zip(&fingerprints[..count]) {
                    *place = Copies { fingerprint, copies: 1 };
                }
                count
            }
        }
    }
}
