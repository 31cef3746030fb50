//! Iteration over all fingerprints of packed slots on the CPU in ascending order, by blocks of slots: each word of
//! metadata is read once, and the end of a run does not branch.

#[cfg(target_arch = "x86_64")]
use warpset_base::processor::has_bit_instructions;

use warpset_core::bits::Portable;

use super::Packed;

/// Iterator over the fingerprints of a filter in ascending order, like
/// `warpset_core::quotient::standard::Fingerprints`.
pub struct PackedWalk<'a> {
    slots: Packed<'a>,
    /// Next block of slots, and its slots that are still to come.
    block: usize,
    to_come: u64,
    /// Quotient of the current run.
    quotient: u64,
    /// Block of the next quotient with a run that has not begun, and all such quotients of that block.
    home: usize,
    waiting: u64,
}

impl<'a> PackedWalk<'a> {
    /// Starts at the first fingerprint with a quotient of at least `from`.
    pub(in super::super) fn from_quotient(slots: Packed<'a>, from: u64) -> PackedWalk<'a> {
        let home = (from / 64) as usize;
        let mut walk = PackedWalk { slots, block: usize::MAX, to_come: !0, quotient: from, home, waiting: 0 };
        if home < walk.blocks() {
            walk.waiting = walk.occupieds(home) & (!0 << (from % 64));
            if walk.find_waiting() {
                let first = walk.home as u64 * 64 + u64::from(walk.waiting.trailing_zeros());
                let (block, at) = slots.run_start(first, false, Portable);
                (walk.quotient, walk.block, walk.to_come) = (first, block, !0 << at);
            }
        }
        walk
    }

    fn blocks(&self) -> usize {
        self.slots.words.len() / self.slots.block_words
    }

    /// Returns the occupied quotients of a block. There are none past the last quotient, except in damaged memory.
    #[inline(always)]
    fn occupieds(&self, block: usize) -> u64 {
        let quotients = self.slots.split.quotients().saturating_sub(block as u64 * 64);
        let exist = if quotients < 64 { (1 << quotients) - 1 } else { !0 };
        self.slots.metadata(block)[0] & exist
    }

    /// Moves to the next block with a quotient whose run has not begun, unless this one has more. Returns whether there
    /// is one.
    #[inline(always)]
    fn find_waiting(&mut self) -> bool {
        while self.waiting == 0 {
            self.home += 1;
            if self.home >= self.blocks() {
                return false;
            }
            self.waiting = self.occupieds(self.home);
        }
        true
    }

    /// Writes the fingerprints of the next block of slots that is not empty. Returns their number, zero only at the
    /// end.
    pub(in super::super) fn next_block(&mut self, into: &mut [u64; 64]) -> usize {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
            fn fast(walk: &mut PackedWalk<'_>, into: &mut [u64; 64]) -> usize {
                walk.decode(into)
            }
            if has_bit_instructions() {
                // SAFETY: the processor has these instructions.
                return unsafe { fast(self, into) };
            }
        }
        self.decode(into)
    }

    #[inline(always)]
    fn decode(&mut self, into: &mut [u64; 64]) -> usize {
        let mut count = 0;
        while count == 0 && self.block < self.blocks() {
            let [occupieds, continuations, shifteds] = self.slots.metadata(self.block);
            let mut used = (occupieds | shifteds) & self.to_come;
            while used != 0 {
                let at = used.trailing_zeros();
                let head = continuations >> at & 1 == 0;
                if head & (self.waiting == 0) && !self.find_waiting() {
                    self.block = usize::MAX; // a run of no quotient can come from damaged memory only
                    return count;
                }
                // A head's quotient is the next waiting one. Both are computed, because the choice is unpredictable.
                let next = self.home as u64 * 64 + u64::from(self.waiting.trailing_zeros());
                self.quotient = if head { next } else { self.quotient };
                self.waiting &= self.waiting.wrapping_sub(u64::from(head));
                into[count % 64] = self.slots.split.join(self.quotient, self.slots.remainder(self.block, at));
                count += 1;
                used &= used - 1;
            }
            self.block += 1;
            self.to_come = !0;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpset_core::quotient::slots::PackedSlots;
    use warpset_core::quotient::standard::Fingerprints;

    use super::*;
    use crate::{Duplicates, StandardBuilder};

    fn all(mut walk: PackedWalk<'_>) -> Vec<u64> {
        let (mut all, mut plain) = (Vec::new(), Vec::<u64>::new());
        let mut block = [0; 64];
        let mut again = PackedWalk { ..walk };
        loop {
            let count = walk.next_block(&mut block);
            all.extend(&block[..count]);
            let same = again.decode(&mut block);
            plain.extend(&block[..same]);
            if count + same == 0 {
                break;
            }
        }
        assert_eq!(all, plain);
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn the_same_from_everywhere(
            q in 1u32..if cfg!(miri) { 7 } else { 10 }, r in prop::sample::select(vec![1u32, 2, 3, 5, 6, 13, 32, 61]), chosen in prop::collection::vec(any::<u64>(), 0..if cfg!(miri) { 60 } else { 900 }), low in 0u32..5,
        ) {
            let q = q.min(64 - r);
            let layout = StandardBuilder::with_bits(q, r).max_load(0.99).duplicates(Duplicates::Kept).layout().unwrap();
            let of = |(i, hash): (usize, &u64)| (hash >> if i % 2 == 0 { low } else { 0 }) & layout.last_fingerprint();
            let mut fingerprints: Vec<u64> = chosen.iter().enumerate().map(of).collect();
            fingerprints.truncate(layout.limit() as usize);
            if let Ok(filter) = StandardBuilder::with_layout(layout).build_from_fingerprints(&fingerprints) {
                for from in 0..layout.quotients() {
                    let slots = PackedSlots::new(filter.words(), layout.slots(), r);
                    let wanted = Fingerprints::from_quotient(slots, layout.split, from);
                    let walk = PackedWalk::from_quotient(Packed::new(filter.words(), layout.split), from);
                    prop_assert!(all(walk).into_iter().eq(wanted), "from {}", from);
                }
            }
        }
    }

    #[test]
    fn damaged_words_end() {
        let split = warpset_core::quotient::Split::new(9, 5).unwrap();
        for words in [vec![!0u64; 64], vec![0x5555_5555_5555_5555; 64], (0..64).map(|i| !0 << i).collect::<Vec<u64>>()]
        {
            for from in [0, 63, 64, 300, 511] {
                assert!(all(PackedWalk::from_quotient(Packed::new(&words, split), from)).len() <= 64 * 64);
            }
        }
    }
}
