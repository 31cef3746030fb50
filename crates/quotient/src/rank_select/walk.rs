//! All fingerprints of the blocks in ascending order, run by run.

use warpset_base::processor::Pdep;
use warpset_core::bits::Portable;
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::Blocks;

use crate::slot_kind::Walk;

/// The fingerprints of a rank-and-select quotient filter.
pub struct BlockWalk<'a> {
    blocks: Blocks<&'a [u64]>,
    split: Split,
    /// The block of the next quotient, and those of its quotients that are to come.
    home: u64,
    left: u64,
    /// The next slot; within a run, its quotient.
    slot: u64,
    quotient: Option<u64>,
}

impl<'a> BlockWalk<'a> {
    /// From the first fingerprint on whose quotient is at least `from`.
    pub(super) fn from_quotient(blocks: Blocks<&'a [u64]>, split: Split, from: u64) -> BlockWalk<'a> {
        let mut walk = BlockWalk { blocks, split, home: from / 64, left: 0, slot: 0, quotient: None };
        if walk.home < blocks.blocks() {
            walk.left = walk.occupieds() & (!0 << (from % 64));
            if walk.left != 0 {
                let first = walk.home * 64 + walk.left.trailing_zeros() as u64;
                walk.slot = match Pdep::detect() {
                    Some(pdep) => blocks.find_run_start(first, pdep),
                    None => blocks.find_run_start(first, Portable),
                };
            }
        }
        walk
    }

    /// The quotients of the block that have a run. There are none past the last quotient, except in damaged memory.
    #[inline(always)]
    fn occupieds(&self) -> u64 {
        let quotients = self.split.quotients().saturating_sub(self.home * 64);
        let exist = if quotients < 64 { (1 << quotients) - 1 } else { !0 };
        self.blocks.metadata(self.home).occupieds & exist
    }

    #[inline(always)]
    fn fill(&mut self, into: &mut [u64; 64]) -> usize {
        let slots = self.blocks.slots();
        let mut count = 0;
        while count < into.len() {
            let quotient = match self.quotient {
                Some(quotient) => quotient,
                None => {
                    while self.left == 0 {
                        self.home += 1;
                        if self.home >= self.blocks.blocks() {
                            self.home = self.blocks.blocks();
                            return count;
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
            // As much of the run as there is in this block of slots, and as there are places for.
            if self.slot >= slots {
                // From damaged memory only.
                (self.home, self.left, self.quotient) = (self.blocks.blocks(), 0, None);
                return count;
            }
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

impl Walk for BlockWalk<'_> {
    #[inline]
    fn next_block(&mut self, fingerprints: &mut [u64; 64]) -> usize {
        match Pdep::detect() {
            Some(pdep) => pdep.run(
                #[inline(always)]
                || self.fill(fingerprints),
            ),
            None => self.fill(fingerprints),
        }
    }
}
