//! Counters: numbers of copies, in slots after the remainder.
//!
//! A fingerprint that is stored once takes one slot. One that is stored `c >= 2` times takes a slot for the remainder,
//! then one for each digit of `c - 2` in base 2^r, the lowest first, marked as digits in a fourth word of metadata; `c
//! = 2` has the one digit 0. So space grows with the logarithm of the number of copies, for every width of remainders,
//! and the slots of a multiset are unique.
//!
//! Departure from Pandey, Bender, Johnson, Patro, "A General-Purpose Counting Filter", SIGMOD 2017: their counters are
//! told apart by descending remainders. There three and more copies take at least three slots, two of which repeat the
//! remainder, some digits cannot occur, and a lookup has to read runs from left to right to classify a slot. Here a bit
//! per slot classifies it, which suits threads that each look at one slot, and two slots hold counts up to `2^r + 1`.

use super::{Blocks, DIGITS};
use crate::bits::{ReadWords, Select, WriteWords};

/// Returns the number of slots of a fingerprint with `count` copies; 0 if it is not stored.
#[inline(always)]
pub const fn slots(count: u64, remainder_bits: u32) -> u64 {
    if count < 2 {
        return count;
    }
    let bits = 64 - (count - 2).leading_zeros();
    let digits = bits.div_ceil(remainder_bits);
    1 + if digits == 0 { 1 } else { digits as u64 }
}

/// Returns digit `i`, from 0, of a fingerprint with `count >= 2` copies.
#[inline(always)]
pub const fn digit(count: u64, remainder_bits: u32, i: u32) -> u64 {
    let shift = i * remainder_bits;
    (if shift < 64 { (count - 2) >> shift } else { 0 }) & !(!0 << remainder_bits)
}

/// Returns the count with these digits, lowest first; saturates, which only damaged memory causes.
#[inline(always)]
pub fn count_of(digits: impl Iterator<Item = u64>, remainder_bits: u32) -> u64 {
    let (mut value, mut shift, mut any) = (0u64, 0, false);
    for digit in digits {
        let fits = shift < 64 && digit << shift >> shift == digit;
        value = if fits {
            value | digit << shift
        } else if digit == 0 {
            value
        } else {
            !0
        };
        shift += remainder_bits;
        any = true;
    }
    if any { value.saturating_add(2) } else { 1 }
}

/// Outcome of a change of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recounted {
    /// The fingerprint had `before` copies and now has `after`.
    Done {
        /// Copies before.
        before: u64,
        /// Copies after.
        after: u64,
    },
    /// There would be 2^64 copies or more; nothing was written.
    TooMany,
    /// The change reaches the last slot, which stays as it is; nothing was written.
    Outside,
}

impl<W: ReadWords> Blocks<W, true> {
    /// Whether a slot holds a digit.
    #[inline(always)]
    pub fn is_digit(&self, slot: u64) -> bool {
        self.words.word(self.first_word(slot / 64) + DIGITS) >> (slot % 64) & 1 != 0
    }

    /// Returns the number of copies of the fingerprint with its remainder in this slot, and the slot after its digits.
    #[inline(always)]
    pub fn count_from(&self, slot: u64) -> (u64, u64) {
        let end = self.after_digits(slot + 1);
        (count_of((slot + 1..end).map(|slot| self.remainder(slot)), self.remainder_bits), end)
    }

    #[inline(always)]
    fn count_at(&self, slot: u64) -> u64 {
        self.count_from(slot).0
    }

    /// Returns the number of copies of a fingerprint.
    #[inline(always)]
    pub fn count(&self, quotient: u64, remainder: u64, select: impl Select) -> u64 {
        let of_block = self.metadata(quotient / 64);
        if of_block.occupieds >> (quotient % 64) & 1 == 0 {
            return 0;
        }
        match self.find_in_run(self.run_start(quotient, of_block, select), remainder) {
            (place, true) => self.count_at(place),
            _ => 0,
        }
    }
}

impl<W: WriteWords> Blocks<W, true> {
    /// Stores `more >= 1` further copies of a fingerprint.
    #[inline(always)]
    pub fn add(&mut self, quotient: u64, remainder: u64, more: u64, select: impl Select) -> Recounted {
        let of_home = self.metadata(quotient / 64);
        let free = self.free_after_in(quotient, of_home, select);
        let mut free = Ord::max(free, quotient);
        let mut occupied = of_home.occupieds >> (quotient % 64) & 1 != 0;
        if free >= self.slots() {
            return Recounted::Outside;
        }
        let (place, found) = if occupied {
            self.find_in_run(self.run_start(quotient, of_home, select), remainder)
        } else {
            (free, false)
        };
        let before = if found { self.count_at(place) } else { 0 };
        let Some(after) = before.checked_add(more) else { return Recounted::TooMany };
        let (taken, wanted) = (slots(before, self.remainder_bits), slots(after, self.remainder_bits));
        // All empty slots are found before anything is written.
        let mut empty = free;
        for i in taken..wanted {
            empty = self.unused_from(empty + (i > taken) as u64, select);
            if empty + 1 >= self.slots() {
                return Recounted::Outside;
            }
        }
        for i in taken..wanted {
            let empty = self.unused_from(free, select);
            self.open(quotient, occupied, place + i, free, empty);
            (occupied, free) = (true, free + 1);
            self.set_bit(DIGITS, place + i, i > 0);
        }
        if !found {
            self.set_remainder(place, remainder);
        }
        self.write_digits(place, after, wanted);
        Recounted::Done { before, after }
    }

    /// Removes up to `fewer` copies of a fingerprint.
    #[inline(always)]
    pub fn subtract(&mut self, quotient: u64, remainder: u64, fewer: u64, select: impl Select) -> Recounted {
        let of_home = self.metadata(quotient / 64);
        if of_home.occupieds >> (quotient % 64) & 1 == 0 {
            return Recounted::Done { before: 0, after: 0 };
        }
        let mut free = self.free_after_in(quotient, of_home, select);
        if free >= self.slots() {
            return Recounted::Outside;
        }
        let start = self.run_start(quotient, of_home, select);
        let (place, found) = self.find_in_run(start, remainder);
        if !found {
            return Recounted::Done { before: 0, after: 0 };
        }
        let before = self.count_at(place);
        let after = before.saturating_sub(fewer);
        let (taken, wanted) = (slots(before, self.remainder_bits), slots(after, self.remainder_bits));
        for i in (wanted..taken).rev() {
            let Some(last) = self.last_of_cluster(free, select) else { return Recounted::Outside };
            self.close(quotient, start, place + i, free, last);
            free -= 1;
        }
        self.write_digits(place, after, wanted);
        Recounted::Done { before, after }
    }

    /// Writes the digits of a counter, for which there are slots.
    #[inline(always)]
    fn write_digits(&mut self, place: u64, count: u64, slots: u64) {
        for i in 1..slots {
            self.set_remainder(place + i, digit(count, self.remainder_bits, i as u32 - 1));
        }
    }

    /// Puts a slot of an item after all others, as [`Blocks::put`] does; it is a digit or begins the item.
    #[inline(always)]
    pub fn put_counted(&mut self, slot: u64, follows: bool, digit: bool, bits: u64) {
        self.put(slot, follows, bits);
        self.set_bit(DIGITS, slot, digit);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeMap;
    use std::vec;

    use super::*;
    use crate::bits::{ByHalves, Portable};
    use crate::hash::finalise;

    #[test]
    fn counts_and_their_digits() {
        for r in [1, 2, 3, 5, 13, 32, 61] {
            for count in (2..600)
                .chain([(1 << 32) - 1, 1 << 32, !0 - 1, !0])
                .chain((1..64).flat_map(|i| [1 << i, (1 << i) + 1, (1 << i) + 2]).filter(|&c| c >= 2))
            {
                let taken = slots(count, r);
                assert!(taken >= 2 && taken - 1 <= 64);
                let digits = (0..taken as u32 - 1).map(|i| digit(count, r, i));
                assert_eq!(count_of(digits.clone(), r), count, "{r}");
                assert!(taken == 2 || digits.clone().next_back() != Some(0));
            }
            assert_eq!(
                (slots(0, r), slots(1, r), slots(2, r), slots((1 << r) + 1, r), slots((1 << r) + 2, r)),
                (0, 1, 2, 2, 3)
            );
            assert_eq!(count_of([!(!0 << r); 70].into_iter(), r), !0);
        }
    }

    /// Builds the words of a multiset by additions in ascending order.
    fn built(counts: &BTreeMap<(u64, u64), u64>, blocks: u64, r: u32) -> Option<vec::Vec<u64>> {
        let mut words = vec![0u64; (blocks * (r as u64 + 4)) as usize];
        let mut slots = Blocks::counted(&mut words[..], blocks, r);
        let fits = counts.iter().all(|(&(q, remainder), &count)| {
            slots.add(q, remainder, count, Portable) == Recounted::Done { before: 0, after: count }
        });
        fits.then_some(words)
    }

    fn changes(r: u32, blocks: u64, crowd: u32, mut state: u64, steps: usize) {
        let mut model: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut words = vec![0u64; (blocks * (r as u64 + 4)) as usize];
        for _ in 0..steps {
            state = finalise(state + 1);
            let quotient = (state >> 20) % (((64 * blocks) >> crowd).max(1));
            let key = (quotient, state & 3 & !(!0 << r));
            // Most steps have a few copies, some very many.
            let n = if state >> 59 & 7 == 0 { 1 + (state << 3 >> (state >> 50 & 63)) } else { 1 + (state >> 40) % 4 };
            let mut wanted = model.clone();
            let mut slots = Blocks::counted(&mut words[..], blocks, r);
            let before = model.get(&key).copied().unwrap_or(0);
            let removes = state >> 61 < 3;
            let (changed, after) = if removes {
                (slots.subtract(key.0, key.1, n, ByHalves), Some(before.saturating_sub(n)))
            } else {
                (slots.add(key.0, key.1, n, Portable), before.checked_add(n))
            };
            let Some(after) = after else {
                assert_eq!(changed, Recounted::TooMany);
                continue;
            };
            wanted.insert(key, after);
            wanted.retain(|_, count| *count > 0);
            match built(&wanted, blocks, r) {
                Some(same) => {
                    assert_eq!(changed, Recounted::Done { before, after });
                    assert!(same == words, "{key:?} {before} -> {after} r = {r}");
                    model = wanted;
                }
                None => assert_eq!(changed, Recounted::Outside),
            }
        }
        let slots = Blocks::counted(&words[..], blocks, r);
        for quotient in 0..64 * blocks {
            for remainder in 0..4 & !(!0 << r) {
                let count = model.get(&(quotient, remainder)).copied().unwrap_or(0);
                assert_eq!(slots.count(quotient, remainder, Portable), count);
                assert_eq!(slots.contains(quotient, remainder, ByHalves), count > 0);
            }
        }
    }

    #[test]
    fn counters_are_those_of_a_map() {
        let steps = if cfg!(miri) { 40 } else { 400 };
        for (i, r) in [1, 2, 3, 5, 7, 13, 32, 60].into_iter().enumerate() {
            for (blocks, crowd) in [(1, 0), (2, 1), (4, 2), (5, 8)] {
                changes(r, blocks, crowd, i as u64 * 77, steps);
            }
        }
    }
}
