//! Empty slots, and starts of clusters and superclusters.

use super::{Blocks, Metadata};
use crate::bits::{ReadWords, Select, lowest};

impl<W: ReadWords, const COUNTED: bool> Blocks<W, COUNTED> {
    /// Restricts changes to `begin..end`, slots and quotients. `begin` is the slot after an empty one, or the first
    /// slot of a cluster whose earlier quotients are empty. `end` is the first slot that no change reaches: at most the
    /// last of the filter, or one more in a part of it. Queried quotients are at least `begin` and below `end`.
    ///
    /// Nothing then depends on bits of slots and quotients before `begin` or from `end` on, or on the offsets of blocks
    /// that begin there. Other owners may change them meanwhile.
    #[inline(always)]
    pub fn within(mut self, begin: u64, end: u64) -> Self {
        (self.begin, self.end) = (begin, end);
        self
    }

    /// Returns the first empty slot from `slot` on (algorithm 9, `FINDFIRSTUNUSEDSLOT`). Without one within reach of
    /// changes, returns some slot after it.
    #[inline(always)]
    pub fn unused_from(&self, mut slot: u64, select: impl Select) -> u64 {
        while slot < self.end {
            let free = self.free_after(slot, select);
            if free <= slot {
                return slot;
            }
            slot = free;
        }
        slot
    }

    /// Marks the slots of a block that hold an item: bit `i` for slot `64 * block + i`.
    #[inline(always)]
    pub fn used(&self, block: u64) -> u64 {
        self.clusters(block).0
    }

    /// Marks the slots of a block that hold an item, and those where a cluster begins: an item in its canonical slot.
    #[inline(always)]
    fn clusters(&self, block: u64) -> (u64, u64) {
        let Metadata { offset, occupieds, runends } = self.metadata(block);
        if offset >= 64 {
            return (!0, 0);
        }
        let mut used = lowest(offset as u32);
        let mut starts = 0;
        let mut left = occupieds;
        let mut ends = runends & !used;
        // One run per step; the last may go past the block.
        while left != 0 {
            let quotient = left & left.wrapping_neg();
            let end = ends & ends.wrapping_neg();
            left ^= quotient;
            ends ^= end;
            starts |= quotient & !used;
            // These are the slots from the quotient's slot, or after the runs before, up to the end.
            let upto = end.wrapping_sub(1) | end;
            used |= upto & !quotient.wrapping_sub(1);
        }
        (used, starts)
    }

    /// Returns the start of the supercluster of a slot: the slot after the nearest empty one before `slot`, or the
    /// first of all. An empty slot belongs to the supercluster that it ends.
    #[inline(always)]
    pub fn supercluster_start(&self, slot: u64) -> u64 {
        if slot == 0 {
            return 0;
        }
        self.last_before(slot - 1, |blocks, block| !blocks.used(block)).map_or(0, |empty| empty + 1)
    }

    /// Returns the start of the nearest cluster that begins at a slot or before; the first slot if there is none.
    #[inline(always)]
    pub fn cluster_start(&self, slot: u64) -> u64 {
        self.last_before(slot, |blocks, block| blocks.clusters(block).1).unwrap_or(0)
    }

    /// Returns the last slot up to this one with a bit in `bits` of its block.
    #[inline(always)]
    fn last_before(&self, slot: u64, bits: impl Fn(&Self, u64) -> u64) -> Option<u64> {
        let mut block = slot / 64;
        let mut found = bits(self, block) & lowest(slot as u32 % 64 + 1);
        while found == 0 {
            if block == 0 {
                return None;
            }
            block -= 1;
            found = bits(self, block);
        }
        Some(block * 64 + 63 - found.leading_zeros() as u64)
    }
}
