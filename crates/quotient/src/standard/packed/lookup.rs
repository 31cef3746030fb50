//! Lookups in packed slots on the CPU: a batch of keys at a time.
//!
//! Answers are those of `warpset_core::quotient::standard::contains`. Before a batch that is large against the filter,
//! a pass over the filter's metadata counts the runs that wait at each block's first slot; then no lookup has to go
//! left.

use warpset_base::parallel;
#[cfg(target_arch = "x86_64")]
use warpset_base::processor::{Pdep, has_bit_instructions};
use warpset_core::bits::{Portable, Select, range};
use warpset_core::quotient::Split;

use super::Packed;
use super::update::next;
use crate::Layout;
use crate::cpu::BATCH;
use crate::cpu::one::{self, Ask};
use warpset_base::processor::prefetch;

/// Nanoseconds per block of the pass.
const BLOCK_NS: f64 = 2.0;

/// Waiting runs per block: the number of quotients of earlier blocks with a run that begins in this block or after it.
pub struct WaitingRuns(Vec<u32>);

/// Word for each width, with a one in the lowest bit of each field.
const LOWEST: [u64; 65] = {
    let mut words = [0; 65];
    let mut width = 1;
    while width <= 64 {
        let mut at = 0;
        while at + width <= 64 {
            words[width] |= 1 << at;
            at += width;
        }
        width += 1;
    }
    words
};

impl Packed<'_> {
    /// Counts the waiting runs of all blocks, on all threads.
    pub(in super::super) fn count_waiting_runs(&self) -> WaitingRuns {
        let mut counts = vec![0; self.words.len() / self.block_words];
        let task = parallel::task_len(counts.len(), BLOCK_NS);
        parallel::for_each(counts.chunks_mut(task).enumerate(), |(i, counts)| self.count_waiting(i * task, counts));
        WaitingRuns(counts)
    }

    /// Counts the waiting runs of the blocks from `first` on.
    fn count_waiting(&self, first: usize, counts: &mut [u32]) {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
            fn fast(slots: &Packed<'_>, first: usize, counts: &mut [u32]) {
                slots.count_waiting_from(first, counts);
            }
            if has_bit_instructions() {
                // SAFETY: the processor has these instructions.
                return unsafe { fast(self, first, counts) };
            }
        }
        self.count_waiting_from(first, counts);
    }

    #[inline(always)]
    fn count_waiting_from(&self, first: usize, counts: &mut [u32]) {
        // The count starts at a block without waiting runs: its first slot is empty or the start of a cluster.
        let mut block = first;
        while block > 0 && self.metadata(block)[2] & 1 != 0 {
            block -= 1;
        }
        let mut waiting = 0u32;
        for block in block..first + counts.len() {
            if block >= first {
                counts[block - first] = waiting;
            }
            let [occupieds, continuations, shifteds] = self.metadata(block);
            let heads = !continuations & (occupieds | shifteds);
            waiting = waiting.wrapping_add(occupieds.count_ones()).wrapping_sub(heads.count_ones());
        }
    }

    /// Returns the run start of an occupied quotient, if `waiting` runs wait at its block's first slot.
    #[inline(always)]
    fn run_start_after(&self, quotient: u64, waiting: u32, select: impl Select) -> (usize, u32) {
        let (block, at) = ((quotient / 64) as usize, (quotient % 64) as u32);
        let [occupieds, continuations, shifteds] = self.metadata(block);
        let heads = !continuations & (occupieds | shifteds);
        let before = range(0, at);
        let begun = (heads & before).count_ones();
        let rank = waiting.wrapping_add((occupieds & before).count_ones()).wrapping_sub(begun);
        self.nth_head(block, heads & !before, rank, select)
    }

    /// Whether a remainder is in the run that begins there.
    #[inline(always)]
    fn is_in_run(&self, start: (usize, u32), remainder: u64) -> bool {
        match self.equal_in_run(start, remainder) {
            Some(equal) => equal != 0,
            None => self.find_in_run(start, remainder).1,
        }
    }

    /// Marks the remainders that are equal in the run that begins there, by one bit each; `None` if a word does not
    /// hold the run or it may reach out of the block.
    #[inline(always)]
    fn equal_in_run(&self, (block, at): (usize, u32), remainder: u64) -> Option<u64> {
        let width = self.split.remainder_bits;
        let len = 1 + (!(self.metadata(block)[1] >> at >> 1)).trailing_zeros();
        if at + len >= 64 || len * width > 64 {
            return None;
        }
        // All remainders are compared at once: a field is zero where they are equal, and then nothing carries into its
        // highest bit.
        let lowest = LOWEST[width as usize % LOWEST.len()];
        let highest = lowest << (width - 1);
        let differ = self.remainders_from(block, at) ^ lowest.wrapping_mul(remainder);
        let equal = !((differ & !highest).wrapping_add(!highest) | differ) & highest;
        Some(equal & range(0, len * width))
    }

    /// Whether an occupied quotient's fingerprint is stored.
    #[inline(always)]
    fn is_stored(&self, fingerprint: u64, select: impl Select) -> bool {
        let start = self.run_start(self.split.quotient(fingerprint), false, select);
        self.is_in_run(start, self.split.remainder(fingerprint))
    }

    /// Whether an occupied quotient's fingerprint is stored, by the waiting runs.
    #[inline(always)]
    fn is_stored_after(&self, fingerprint: u64, waiting: &WaitingRuns, select: impl Select) -> bool {
        let quotient = self.split.quotient(fingerprint);
        let waiting = waiting.0.get((quotient / 64) as usize).map_or(0, |waiting| *waiting);
        self.is_in_run(self.run_start_after(quotient, waiting, select), self.split.remainder(fingerprint))
    }

    /// Whether a fingerprint is stored.
    #[inline]
    pub(in super::super) fn contains(&self, fingerprint: u64) -> bool {
        self.is_occupied(fingerprint) && one::ask::<Contains>(self.words, self.split, fingerprint)
    }

    /// Returns the number of stored copies of a fingerprint.
    #[inline]
    pub(in super::super) fn count(&self, fingerprint: u64) -> u64 {
        if self.is_occupied(fingerprint) { one::ask::<Count>(self.words, self.split, fingerprint) } else { 0 }
    }

    /// Returns the number of stored copies of an occupied quotient's fingerprint.
    #[inline(always)]
    fn count_stored(&self, fingerprint: u64, select: impl Select) -> u64 {
        let remainder = self.split.remainder(fingerprint);
        let start = self.run_start(self.split.quotient(fingerprint), false, select);
        if let Some(equal) = self.equal_in_run(start, remainder) {
            return u64::from(equal.count_ones());
        }
        let (mut place, mut found) = self.find_in_run(start, remainder);
        let mut count = 0;
        while found {
            count += 1;
            let (block, at) = next(place);
            place = (block, at);
            found = self.metadata(block)[1] >> at & 1 != 0 && self.remainder(block, at) == remainder;
        }
        count
    }

    /// Prefetches the cache lines with the metadata of a quotient and with its canonical remainder.
    #[inline(always)]
    fn prefetch(&self, fingerprint: u64) {
        let quotient = self.split.quotient(fingerprint) as usize;
        let block = quotient / 64 * self.block_words;
        prefetch(self.words, block);
        if self.block_words > 8 {
            prefetch(self.words, block + 3 + quotient % 64 * self.split.remainder_bits as usize / 64);
        }
    }

    /// Reports the answers for `len` keys, a batch at a time; `fingerprint` maps the number of a key to its
    /// fingerprint.
    #[inline(always)]
    fn answer(
        &self,
        waiting: Option<&WaitingRuns>,
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        mut take: impl FnMut(usize, bool),
        select: impl Select,
    ) {
        let mut fingerprints = [0; BATCH];
        let mut first = 0;
        while first < len {
            let count = BATCH.min(len - first);
            for (i, place) in fingerprints[..count].iter_mut().enumerate() {
                *place = fingerprint(first + i);
                self.prefetch(*place);
            }
            // Fingerprints without a run are sorted out first: a branch on each would be mispredicted half of the time.
            let (mut left, mut answers) = ([0u8; BATCH], [false; BATCH]);
            let mut stay = 0;
            for (i, &fingerprint) in fingerprints[..count].iter().enumerate() {
                left[stay] = i as u8;
                stay += self.is_occupied(fingerprint) as usize;
            }
            for &i in &left[..stay] {
                let i = i as usize % BATCH;
                answers[i] = match waiting {
                    Some(waiting) => self.is_stored_after(fingerprints[i], waiting, select),
                    None => self.is_stored(fingerprints[i], select),
                };
            }
            for (i, answer) in answers[..count].iter().enumerate() {
                take(first + i, *answer);
            }
            first += count;
        }
    }

    /// Reports the answers for `len` keys; `fingerprint` maps the number of a key to its fingerprint.
    pub(in super::super) fn answer_many(
        &self,
        waiting: Option<&WaitingRuns>,
        len: usize,
        fingerprint: impl Fn(usize) -> u64,
        take: impl FnMut(usize, bool),
    ) {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
            fn fast(
                slots: &Packed<'_>,
                waiting: Option<&WaitingRuns>,
                len: usize,
                fingerprint: impl Fn(usize) -> u64,
                take: impl FnMut(usize, bool),
                select: impl Select,
            ) {
                slots.answer(waiting, len, fingerprint, take, select);
            }
            if let Some(pdep) = Pdep::detect() {
                // SAFETY: a `Pdep` exists only where the processor has these instructions.
                return unsafe { fast(self, waiting, len, fingerprint, take, pdep) };
            }
            if has_bit_instructions() {
                // SAFETY: the processor has these instructions.
                return unsafe { fast(self, waiting, len, fingerprint, take, Portable) };
            }
        }
        self.answer(waiting, len, fingerprint, take, Portable);
    }
}

/// Whether an occupied quotient's fingerprint is stored.
struct Contains;

impl Ask for Contains {
    type Answer = bool;

    #[inline(always)]
    fn ask(words: &[u64], split: Split, fingerprint: u64, select: impl Select) -> bool {
        Packed::new(words, split).is_stored(fingerprint, select)
    }
}

/// Number of stored copies of an occupied quotient's fingerprint.
struct Count;

impl Ask for Count {
    type Answer = u64;

    #[inline(always)]
    fn ask(words: &[u64], split: Split, fingerprint: u64, select: impl Select) -> u64 {
        Packed::new(words, split).count_stored(fingerprint, select)
    }
}

/// Reports the number of stored copies of each of `len` fingerprints.
pub(in super::super) fn count_many(
    layout: &Layout,
    words: &[u64],
    len: usize,
    fingerprint: impl Fn(usize) -> u64,
    mut take: impl FnMut(usize, u64),
) {
    let packed = Packed::new(words, layout.split);
    let mut fingerprints = [0; BATCH];
    let mut first = 0;
    while first < len {
        let count = BATCH.min(len - first);
        for (i, place) in fingerprints[..count].iter_mut().enumerate() {
            *place = fingerprint(first + i);
            packed.prefetch(*place);
        }
        for (i, &fingerprint) in fingerprints[..count].iter().enumerate() {
            take(first + i, packed.count(fingerprint));
        }
        first += count;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpset_core::quotient::slots::PackedSlots;
    use warpset_core::quotient::standard as core;

    use super::*;
    use crate::{Duplicates, StandardBuilder, StandardQuotientFilter};

    /// Compares the answers for all fingerprints, or many, with the slot-by-slot walk.
    fn agrees(filter: &StandardQuotientFilter) {
        let layout = filter.layout();
        let split = layout.split;
        let packed = Packed::new(filter.words(), split);
        let slots = PackedSlots::new(filter.words(), layout.slots(), split.remainder_bits);
        let last = layout.last_fingerprint();
        let highest = 1 << (split.remainder_bits - 1);
        let stored = filter.fingerprints().flat_map(|f| [f, f ^ 1, f ^ highest, f ^ highest ^ 1]);
        let all: Vec<u64> = (0..=last.min(if cfg!(miri) { 100 } else { 1 << 13 })).chain(stored).collect();
        let wanted: Vec<bool> =
            all.iter().map(|&f| core::contains(&slots, split.quotient(f), split.remainder(f))).collect();
        let counted = packed.count_waiting_runs();
        for waiting in [None, Some(&counted)] {
            let mut plain = vec![false; all.len()];
            packed.answer(waiting, all.len(), |i| all[i], |i, yes| plain[i] = yes, Portable);
            assert_eq!(plain, wanted);
            let mut fast = vec![false; all.len()];
            packed.answer_many(waiting, all.len(), |i| all[i], |i, yes| fast[i] = yes);
            assert_eq!(fast, wanted);
        }
        // Counts from every block on agree, also without the processor's instructions.
        for first in 0..counted.0.len() {
            let mut counts = vec![0; counted.0.len() - first];
            packed.count_waiting_from(first, &mut counts);
            assert_eq!(counts, counted.0[first..]);
        }
        assert!(all.iter().zip(&wanted).all(|(&f, &yes)| packed.contains(f) == yes));
        let count = |f: u64| core::count(&slots, split.quotient(f), split.remainder(f));
        assert!(all.iter().all(|&f| packed.count(f) == count(f)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 64 }))]

        #[test]
        fn answers_are_those_of_the_walk(
            q in 1u32..9, r in prop::sample::select(vec![1u32, 2, 3, 4, 5, 6, 8, 13, 16, 21, 31, 32, 33, 60, 61]), kept: bool,
            chosen in prop::collection::vec(any::<u64>(), 0..if cfg!(miri) { 60 } else { 600 }), low in 0u32..8,
        ) {
            let duplicates = if kept { Duplicates::Kept } else { Duplicates::Dropped };
            let q = q.min(64 - r);
            let layout = StandardBuilder::with_bits(q, r).max_load(0.99).duplicates(duplicates).layout().unwrap();
            // Half of the fingerprints crowd into few quotients, so that clusters reach over blocks.
            let of = |(i, hash): (usize, &u64)| (hash >> if i % 2 == 0 { low } else { 0 }) & layout.last_fingerprint();
            let mut fingerprints: Vec<u64> = chosen.iter().enumerate().map(of).collect();
            fingerprints.truncate(layout.limit() as usize);
            if let Ok(filter) = StandardBuilder::with_layout(layout).build_from_fingerprints(&fingerprints) {
                agrees(&filter);
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "as the properties above, on more slots")]
    fn clusters_over_many_blocks() {
        let layout = StandardBuilder::with_bits(10, 4).max_load(0.99).duplicates(Duplicates::Kept).layout().unwrap();
        // There is one run of 300, then runs of three on every quotient: one cluster up to the end.
        let run = std::iter::repeat_n(100 << 4 | 7, 300);
        let runs = (101..300u64).flat_map(|quotient| [quotient << 4 | 1, quotient << 4 | 1, quotient << 4 | 9]);
        let fingerprints: Vec<u64> = run.chain(runs).collect();
        agrees(&StandardBuilder::with_layout(layout).build_from_fingerprints(&fingerprints).unwrap());
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
            let (mut answers, asked) = (0, if cfg!(miri) { 1 << 8 } else { 1 << 14 });
            for waiting in [None, Some(&packed.count_waiting_runs())] {
                packed.answer_many(waiting, asked, |i| i as u64, |_, yes| answers += yes as usize);
            }
            assert!(answers <= 2 * asked);
        }
    }
}
