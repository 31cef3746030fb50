//! Lookups in packed slots on the CPU: a batch of keys at a time, with the processor's instructions on bits where it has
//! them.
//!
//! The answers are those of `warpset_core::quotient::standard::contains`. The way to a run is shorter by a pass: going left
//! to the start of the cluster (algorithm 1, `FINDRUNSTART`) counts the quotients that have a run and the runs that begin,
//! and their difference is how many runs lie between the canonical slot and the run, so that the walk to the right begins
//! at the canonical slot instead of the cluster.

use warpset_core::quotient::Split;

mod update;
mod walk;

pub(super) use update::{Change, PackedMut};
pub(super) use walk::Walk as PackedWalk;

/// Keys whose cache lines are asked for before the first of them is looked up.
pub(super) const BATCH: usize = 32;

/// Packed slots that are read.
#[derive(Clone, Copy)]
pub(super) struct Packed<'a> {
    words: &'a [u64],
    split: Split,
    block_words: usize,
}

impl<'a> Packed<'a> {
    /// The slots in `words`, whole blocks of them.
    pub(super) fn new(words: &'a [u64], split: Split) -> Packed<'a> {
        Packed { words, split, block_words: split.remainder_bits as usize + 3 }
    }

    /// `is_occupied`, `is_continuation` and `is_shifted` of a block; empty slots behind the last block.
    #[inline(always)]
    fn metadata(&self, block: usize) -> [u64; 3] {
        let first = block.wrapping_mul(self.block_words);
        match self.words.get(first..first.wrapping_add(3)) {
            Some(&[occupieds, continuations, shifteds]) => [occupieds, continuations, shifteds],
            _ => [0; 3],
        }
    }

    /// Whether the quotient of a fingerprint has a run.
    #[inline(always)]
    fn is_occupied(&self, fingerprint: u64) -> bool {
        let quotient = self.split.quotient(fingerprint);
        let word = (quotient / 64) as usize * self.block_words;
        self.words.get(word).is_some_and(|occupieds| occupieds >> (quotient % 64) & 1 != 0)
    }

    /// The block and the place in it where the run of a quotient begins; where it would begin if it is `new`, and the slot is
    /// in use.
    #[inline(always)]
    fn run_start(&self, quotient: u64, new: bool) -> (usize, u32) {
        let (mut block, at) = ((quotient / 64) as usize, (quotient % 64) as u32);
        let [occupieds, continuations, shifteds] = self.metadata(block);
        if shifteds >> at & 1 == 0 {
            return (block, at);
        }
        // Everything up to the quotient's slot, from the slot after the start of the cluster on.
        let upto = !0 >> (63 - at);
        let mut range = upto & above_last(!shifteds & upto);
        let mut runs = (occupieds & range).count_ones();
        let mut starts = (!continuations & range).count_ones();
        if range == upto {
            let mut before = block;
            while before > 0 {
                before -= 1;
                let [occupieds, continuations, shifteds] = self.metadata(before);
                range = above_last(!shifteds);
                runs = runs.wrapping_add((occupieds & range).count_ones());
                starts = starts.wrapping_add((!continuations & range).count_ones());
                if shifteds != !0 {
                    break;
                }
            }
        }
        // At least one in a sound filter: a run that had begun by its canonical slot would begin there, unshifted.
        let mut skipped = runs.wrapping_add(new as u32).wrapping_sub(starts);
        let mut next = !continuations & !upto;
        loop {
            let here = next.count_ones();
            if skipped <= here {
                break;
            }
            skipped -= here;
            block += 1;
            if block.wrapping_mul(self.block_words) >= self.words.len() {
                return (block, 0);
            }
            next = !self.metadata(block)[1];
        }
        (block, nth_one(next, skipped.wrapping_sub(1)) % 64)
    }

    /// Where a remainder is or belongs in the run that begins there: the first slot with one that is not smaller, or the end
    /// of the run; and whether it is there.
    #[inline(always)]
    fn find_in_run(&self, (mut block, mut at): (usize, u32), remainder: u64) -> ((usize, u32), bool) {
        let mut continuations = self.metadata(block)[1] >> at;
        loop {
            let stored = self.remainder(block, at);
            if stored >= remainder {
                return ((block, at), stored == remainder);
            }
            at += 1;
            continuations >>= 1;
            if at == 64 {
                (block, at) = (block + 1, 0);
                continuations = self.metadata(block)[1];
            }
            if continuations & 1 == 0 {
                return ((block, at), false);
            }
        }
    }

    /// The remainder in a slot; zero behind the last block.
    #[inline(always)]
    fn remainder(&self, block: usize, at: u32) -> u64 {
        let bit = at * self.split.remainder_bits;
        let index = block.wrapping_mul(self.block_words).wrapping_add(3 + bit as usize / 64);
        let shift = bit % 64;
        let low = self.words.get(index).map_or(0, |word| word >> shift);
        // The next word has bits of it or none that count. Two shifts, since a shift by 64 has no meaning.
        let high = self.words.get(index + 1).map_or(0, |word| (word << 1) << (63 - shift));
        self.split.remainder(low | high)
    }

    /// Whether an occupied quotient's fingerprint is stored.
    #[inline(always)]
    fn is_stored(&self, fingerprint: u64) -> bool {
        self.find_in_run(self.run_start(self.split.quotient(fingerprint), false), self.split.remainder(fingerprint)).1
    }

    /// Whether a fingerprint is stored.
    #[inline]
    pub(super) fn contains(&self, fingerprint: u64) -> bool {
        if !self.is_occupied(fingerprint) {
            return false;
        }
        #[cfg(target_arch = "x86_64")]
        if has_bit_instructions() {
            // SAFETY: the processor has these instructions.
            return unsafe { self.is_stored_with_bit_instructions(fingerprint) };
        }
        self.is_stored(fingerprint)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    fn is_stored_with_bit_instructions(&self, fingerprint: u64) -> bool {
        self.is_stored(fingerprint)
    }

    /// Asks for the cache line with the metadata of a quotient, and the one where its remainder would be.
    #[inline(always)]
    fn prefetch(&self, fingerprint: u64) {
        let quotient = self.split.quotient(fingerprint) as usize;
        let block = quotient / 64 * self.block_words;
        prefetch(self.words, block);
        if self.block_words > 8 {
            prefetch(self.words, block + 3 + quotient % 64 * self.split.remainder_bits as usize / 64);
        }
    }

    /// Hands out the answers of `len` keys, a batch at a time; `fingerprint` gives that of a key by its number.
    #[inline(always)]
    fn answer(&self, len: usize, fingerprint: impl Fn(usize) -> u64, mut take: impl FnMut(usize, bool)) {
        let mut fingerprints = [0; BATCH];
        let mut first = 0;
        while first < len {
            let count = BATCH.min(len - first);
            for (i, place) in fingerprints[..count].iter_mut().enumerate() {
                *place = fingerprint(first + i);
                self.prefetch(*place);
            }
            // Those without a run are sorted out first: a branch on each would be guessed wrong as often as not.
            let (mut left, mut answers) = ([0u8; BATCH], [false; BATCH]);
            let mut stay = 0;
            for (i, &fingerprint) in fingerprints[..count].iter().enumerate() {
                left[stay] = i as u8;
                stay += self.is_occupied(fingerprint) as usize;
            }
            for &i in &left[..stay] {
                let i = i as usize % BATCH;
                answers[i] = self.is_stored(fingerprints[i]);
            }
            for (i, answer) in answers[..count].iter().enumerate() {
                take(first + i, *answer);
            }
            first += count;
        }
    }

    /// Hands out the answers of `len` keys; `fingerprint` gives that of a key by its number.
    pub(super) fn answer_many(&self, len: usize, fingerprint: impl Fn(usize) -> u64, take: impl FnMut(usize, bool)) {
        #[cfg(target_arch = "x86_64")]
        if has_bit_instructions() {
            // SAFETY: the processor has these instructions.
            return unsafe { self.answer_with_bit_instructions(len, fingerprint, take) };
        }
        self.answer(len, fingerprint, take);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    fn answer_with_bit_instructions(
        &self,
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, bool),
    ) {
        self.answer(len, fingerprint, take);
    }
}

/// The bits above the highest one that is set; all of them if none is.
#[inline(always)]
fn above_last(bits: u64) -> u64 {
    // A shift by 63 and another by one, as a shift by 64 has no meaning; without a bit, neither must shift.
    if bits == 0 { !0 } else { !0 << (63 - bits.leading_zeros()) << 1 }
}

/// The place of the one that has `rank` ones below it; 64 if there is none.
#[inline(always)]
fn nth_one(mut bits: u64, rank: u32) -> u32 {
    // Mostly the first few, and which of them is anybody's guess: chosen without a branch.
    if rank < 4 {
        let second = bits & bits.wrapping_sub(1);
        let third = second & second.wrapping_sub(1);
        let fourth = third & third.wrapping_sub(1);
        let low = if rank & 1 == 0 { bits } else { second };
        let high = if rank & 1 == 0 { third } else { fourth };
        return if rank & 2 == 0 { low } else { high }.trailing_zeros();
    }
    for _ in 0..rank.min(64) {
        bits &= bits.wrapping_sub(1);
    }
    bits.trailing_zeros()
}

/// Whether counting, scanning and shifting bits take one instruction each.
#[cfg(target_arch = "x86_64")]
#[inline]
fn has_bit_instructions() -> bool {
    is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

/// Asks for the cache line of a word.
#[inline(always)]
pub(super) fn prefetch(words: &[u64], index: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which may name any address; SSE is part of x86-64.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().wrapping_add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (words, index);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpset_core::quotient::slots::PackedSlots;
    use warpset_core::quotient::standard as core;

    use super::*;
    use crate::{Builder, Duplicates, StandardQuotientFilter};

    /// Every fingerprint that there is, and each answer as the slot-by-slot walk gives it.
    fn agrees(filter: &StandardQuotientFilter) {
        let layout = filter.layout();
        let split = layout.split;
        let packed = Packed::new(filter.words(), split);
        let slots = PackedSlots::new(filter.words(), layout.slots(), split.remainder_bits);
        let last = layout.last_fingerprint();
        let all: Vec<u64> = (0..=last.min(1 << 14)).collect();
        let wanted: Vec<bool> =
            all.iter().map(|&f| core::contains(&slots, split.quotient(f), split.remainder(f))).collect();
        let mut plain = vec![false; all.len()];
        packed.answer(all.len(), |i| all[i], |i, yes| plain[i] = yes);
        assert_eq!(plain, wanted);
        let mut fast = vec![false; all.len()];
        packed.answer_many(all.len(), |i| all[i], |i, yes| fast[i] = yes);
        assert_eq!(fast, wanted);
        assert!(all.iter().zip(&wanted).all(|(&f, &yes)| packed.contains(f) == yes));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn answers_are_those_of_the_walk(
            q in 1u32..9, r in 1u32..7, kept: bool,
            chosen in prop::collection::vec(any::<u64>(), 0..600), low in 0u32..8,
        ) {
            let duplicates = if kept { Duplicates::Kept } else { Duplicates::Dropped };
            let layout = Builder::with_bits(q, r).max_load(0.99).duplicates(duplicates).layout().unwrap();
            // Half of them crowded into few quotients, so that clusters reach over blocks.
            let of = |(i, hash): (usize, &u64)| (hash >> if i % 2 == 0 { low } else { 0 }) & layout.last_fingerprint();
            let mut fingerprints: Vec<u64> = chosen.iter().enumerate().map(of).collect();
            fingerprints.truncate(layout.limit() as usize);
            if let Ok(filter) = StandardQuotientFilter::from_fingerprints(layout, &fingerprints) {
                agrees(&filter);
            }
        }
    }

    #[test]
    fn clusters_over_many_blocks() {
        let layout = Builder::with_bits(10, 4).max_load(0.99).duplicates(Duplicates::Kept).layout().unwrap();
        // One run of 300; runs of three on every third quotient behind it; one cluster up to the end.
        let run = std::iter::repeat_n(100 << 4 | 7, 300);
        let runs = (101..300u64).flat_map(|quotient| [quotient << 4 | 1, quotient << 4 | 1, quotient << 4 | 9]);
        let fingerprints: Vec<u64> = run.chain(runs).collect();
        agrees(&StandardQuotientFilter::from_fingerprints(layout, &fingerprints).unwrap());
    }

    #[test]
    fn damaged_words_give_answers_and_nothing_worse() {
        let split = Split::new(9, 5).unwrap();
        let mut state = 1u64;
        for density in 0..4 {
            let words: Vec<u64> = (0..8 * 8)
                .map(|_| {
                    state = warpset_core::hash::finalise(state);
                    match density {
                        0 => state,
                        1 => state | state.rotate_left(17) | state.rotate_left(31),
                        2 => state & state.rotate_left(17),
                        _ => !0,
                    }
                })
                .collect();
            let packed = Packed::new(&words, split);
            let mut answers = 0;
            packed.answer_many(1 << 14, |i| i as u64, |_, yes| answers += yes as u64);
            assert!(answers <= 1 << 14);
        }
    }
}
