//! Combination of two ascending multisets of fingerprints, of a filter and of a batch, without a list of either.
//!
//! Quotients are taken in blocks of 64. The combined fingerprints of a block depend on no other block. So all blocks
//! are processed at once, twice: first for the effect of each block on the first free slot, then for writing (section
//! IV-C of Geil, Farach-Colton, Owens, IPDPS 2018; these are its segments).

use super::Split;
use super::slots::{BLOCK_SLOTS, Slots};
use super::standard::find_run_start;

/// Combination of two multisets of fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combination {
    /// All fingerprints of both, each once.
    Union,
    /// All fingerprints of both.
    Sum,
    /// Fingerprints of the first without those of the second; each cancels one equal copy.
    Difference,
    /// Fingerprints of the first that have an equal in the second, one for one.
    Intersection,
}

/// Step of a combination, by the heads of two ascending lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Whether the head of the first list is taken.
    pub take_first: bool,
    /// Whether the head of the second list is taken.
    pub take_second: bool,
    /// Whether the smaller head goes into the result; in a [`Combination::Union`] only if it differs from the last one
    /// there.
    pub keep: bool,
}

impl Combination {
    /// Returns the combination with this number. [`Combination::Intersection`] has none, because it does not change a
    /// filter by a batch.
    #[inline]
    pub const fn from_index(index: u32) -> Combination {
        match index {
            0 => Combination::Union,
            1 => Combination::Sum,
            _ => Combination::Difference,
        }
    }

    /// Returns the step for two heads.
    #[inline(always)]
    pub fn step<T: Ord>(self, first: T, second: T) -> Step {
        let take_first = first <= second;
        match self {
            Combination::Union | Combination::Sum => Step { take_first, take_second: second < first, keep: true },
            Combination::Difference => {
                let take_second = second <= first;
                Step { take_first, take_second, keep: !take_second }
            }
            Combination::Intersection => {
                let take_second = second <= first;
                Step { take_first, take_second, keep: take_first & take_second }
            }
        }
    }

    /// Whether the rest of the first list, after the end of the second, goes into the result.
    #[inline(always)]
    pub const fn keeps_first(self) -> bool {
        !matches!(self, Combination::Intersection)
    }

    /// Whether the rest of the second list, after the end of the first, goes into the result.
    #[inline(always)]
    pub const fn keeps_second(self) -> bool {
        matches!(self, Combination::Union | Combination::Sum)
    }
}

/// Item of the result; items come in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Quotient of the fingerprint.
    pub quotient: u64,
    /// Remainder of the fingerprint.
    pub remainder: u64,
    /// Whether the item before has the same quotient.
    pub follows: bool,
}

/// Puts the result for the quotients of a block, in ascending order. The batch's fingerprints with these quotients are
/// `batch(first)` up to `batch(end - 1)`, ascending.
#[inline(always)]
pub fn combine<S: Slots>(
    slots: &S,
    split: Split,
    block: u64,
    batch: impl Fn(usize) -> u64,
    (first, end): (usize, usize),
    combination: Combination,
    mut put: impl FnMut(Item),
) {
    let base = block * BLOCK_SLOTS;
    let [mut occupied, ..] = slots.metadata_words(block); // quotients whose runs have not ended
    let (mut slot, mut ours) = (0, 0);
    if occupied != 0 {
        let quotient = base + occupied.trailing_zeros() as u64;
        slot = find_run_start(slots, quotient);
        ours = split.join(quotient, slots.remainder(slot));
    }
    let mut next = first;
    let mut theirs = if next < end { batch(next) } else { 0 };
    let mut last = None;
    loop {
        let (has_ours, has_theirs) = (occupied != 0, next < end);
        let ends = if has_ours { !has_theirs && !combination.keeps_first() } else { !combination.keeps_second() };
        if ends || !(has_ours || has_theirs) {
            break;
        }
        let Step { take_first, take_second, keep } = combination.step(ours, theirs);
        let take_ours = has_ours && (!has_theirs || take_first);
        let take_theirs = has_theirs && (!has_ours || take_second);
        let item = if take_ours { ours } else { theirs };
        let stays = match combination {
            Combination::Union => last != Some(item),
            _ => keep || !(has_ours && has_theirs),
        };
        if stays {
            let quotient = split.quotient(item);
            let follows = last.is_some_and(|last| split.quotient(last) == quotient);
            put(Item { quotient, remainder: split.remainder(item), follows });
            last = Some(item);
        }
        if take_ours {
            slot += 1;
            if slot >= slots.len() || !slots.is_continuation(slot) {
                occupied &= occupied - 1;
                // The next run begins where this one ended, unless it is in its canonical slot after a gap.
                if occupied != 0 {
                    slot = slot.max(base + occupied.trailing_zeros() as u64);
                }
            }
            if occupied != 0 {
                ours = split.join(base + occupied.trailing_zeros() as u64, slots.remainder(slot));
            }
        }
        if take_theirs {
            next += 1;
            if next < end {
                theirs = batch(next);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    use super::super::slots::{ByteSlots, PackedSlots, SlotsMut};
    use super::super::standard::insert;
    use super::*;
    use crate::hash::mix;

    const ALL: [Combination; 4] =
        [Combination::Union, Combination::Sum, Combination::Difference, Combination::Intersection];

    /// Combines ascending lists by the rule's definition.
    fn expected(rule: Combination, mut ours: Vec<u64>, theirs: &[u64]) -> Vec<u64> {
        if matches!(rule, Combination::Difference | Combination::Intersection) {
            let mut common = Vec::new();
            for item in theirs {
                if let Some(at) = ours.iter().position(|x| x == item) {
                    common.push(ours.remove(at));
                }
            }
            return if rule == Combination::Difference { ours } else { common };
        }
        ours.extend(theirs);
        ours.sort_unstable();
        if rule == Combination::Union {
            ours.dedup();
        }
        ours
    }

    fn check<S: SlotsMut>(mut slots: S, split: Split, n: u64, seed: u64, rule: Combination) {
        let mut stored = Vec::new();
        for i in 0..n {
            let item = split.fingerprint(mix(i, seed));
            if rule != Combination::Union || !stored.contains(&item) {
                stored.push(item);
                insert(&mut slots, split.quotient(item), split.remainder(item), true);
            }
        }
        stored.sort_unstable();
        let mut batch: Vec<u64> = (n / 2..n + 40).map(|i| split.fingerprint(mix(i, seed))).collect();
        batch.extend_from_within(..10);
        batch.sort_unstable();
        let mut found = Vec::new();
        for block in 0..split.quotients().div_ceil(64) {
            let at = |quotient| batch.partition_point(|&item| split.quotient(item) < quotient);
            let range = (at(64 * block), at(64 * block + 64));
            combine(
                &slots,
                split,
                block,
                |i| batch[i],
                range,
                rule,
                |item| {
                    let fingerprint = split.join(item.quotient, item.remainder);
                    let before = found.last().copied();
                    assert_eq!(item.follows, before.is_some_and(|before| split.quotient(before) == item.quotient));
                    found.push(fingerprint);
                },
            );
        }
        assert_eq!(found, expected(rule, stored, &batch));
    }

    #[test]
    fn blocks_give_what_the_rule_says() {
        for (q, r) in [(5, 3), (8, 5), (8, 20), (8, 56)] {
            let split = Split::new(q, r).unwrap();
            for rule in ALL.into_iter().chain((0..3).map(Combination::from_index)) {
                for percent in [0, 40, 70, 95] {
                    let n = split.quotients() * percent / 100;
                    let mut words = [0u64; 8 * 59];
                    check(PackedSlots::new(&mut words[..], 512, r), split, n, percent, rule);
                    let mut words = [0u64; 64 * 64];
                    check(ByteSlots::new(&mut words[..], 512, r), split, n, percent, rule);
                }
            }
        }
    }
}
