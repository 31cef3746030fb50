//! The way through all fingerprints of packed slots on the CPU: each word of metadata is read once.

use super::Packed;

/// The fingerprints of a filter in ascending order, as `warpset_core::quotient::standard::Fingerprints` gives them.
pub(in super::super) struct Walk<'a> {
    slots: Packed<'a>,
    /// The quotient of the next fingerprint's block and the quotients of that block that are still to come, its own first.
    block: usize,
    occupieds: u64,
    /// The next fingerprint's slot, and the `is_continuation` bits of the slots behind it in its block.
    slot: (usize, u32),
    continuations: u64,
    quotients: u64,
}

impl<'a> Walk<'a> {
    /// From the first fingerprint on whose quotient is at least `from`.
    pub(in super::super) fn from_quotient(slots: Packed<'a>, from: u64) -> Walk<'a> {
        let block = (from / 64) as usize;
        let occupieds = slots.metadata(block)[0] & (!0 << (from % 64));
        let quotients = slots.split.quotients();
        let mut walk = Walk { slots, block, occupieds, slot: (block, 0), continuations: 0, quotients };
        if walk.find_occupied() {
            walk.slot = slots.run_start(walk.quotient(), false);
            walk.continuations = slots.metadata(walk.slot.0)[1] >> walk.slot.1;
        }
        walk
    }

    /// Goes on to the next block with a quotient that has a run, unless this one has more; whether there is one.
    #[inline(always)]
    fn find_occupied(&mut self) -> bool {
        while self.occupieds == 0 {
            self.block += 1;
            if self.block as u64 * 64 >= self.quotients {
                return false;
            }
            self.occupieds = self.slots.metadata(self.block)[0];
        }
        true
    }

    #[inline(always)]
    fn quotient(&self) -> u64 {
        self.block as u64 * 64 + self.occupieds.trailing_zeros() as u64
    }
}

impl Iterator for Walk<'_> {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        // A quotient past the end can come from damaged memory only.
        let quotient = if self.occupieds == 0 { self.quotients } else { self.quotient() };
        if quotient >= self.quotients || self.slot.0 * self.slots.block_words >= self.slots.words.len() {
            return None;
        }
        let (block, at) = self.slot;
        let fingerprint = self.slots.split.join(quotient, self.slots.remainder(block, at));
        self.slot.1 += 1;
        self.continuations >>= 1;
        if self.slot.1 == 64 {
            self.slot = (block + 1, 0);
            self.continuations = self.slots.metadata(block + 1)[1];
        }
        if self.continuations & 1 == 0 {
            self.occupieds &= self.occupieds - 1;
            if self.find_occupied() {
                // The next run is where this one ended, unless it is in its canonical slot behind a gap.
                let home = (self.block, self.occupieds.trailing_zeros());
                if home > self.slot {
                    if home.0 != self.slot.0 {
                        self.continuations = self.slots.metadata(home.0)[1] >> home.1;
                    } else {
                        self.continuations >>= home.1 - self.slot.1;
                    }
                    self.slot = home;
                }
            }
        }
        Some(fingerprint)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpset_core::quotient::slots::PackedSlots;
    use warpset_core::quotient::standard::Fingerprints;

    use super::*;
    use crate::{Builder, Duplicates, StandardQuotientFilter};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_same_from_everywhere(
            q in 1u32..10, r in 1u32..7, chosen in prop::collection::vec(any::<u64>(), 0..900), low in 0u32..5,
        ) {
            let layout = Builder::with_bits(q, r).max_load(0.99).duplicates(Duplicates::Kept).layout().unwrap();
            let of = |(i, hash): (usize, &u64)| (hash >> if i % 2 == 0 { low } else { 0 }) & layout.last_fingerprint();
            let mut fingerprints: Vec<u64> = chosen.iter().enumerate().map(of).collect();
            fingerprints.truncate(layout.limit() as usize);
            if let Ok(filter) = StandardQuotientFilter::from_fingerprints(layout, &fingerprints) {
                for from in 0..layout.quotients() {
                    let slots = PackedSlots::new(filter.words(), layout.slots(), r);
                    let wanted = Fingerprints::from_quotient(slots, layout.split, from);
                    let walk = Walk::from_quotient(Packed::new(filter.words(), layout.split), from);
                    prop_assert!(walk.eq(wanted), "from {}", from);
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
                assert!(Walk::from_quotient(Packed::new(&words, split), from).count() <= 64 * 64);
            }
        }
    }
}
