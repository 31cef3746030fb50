//! Lookups in blocks on the CPU, by single keys and a batch at a time.
//!
//! The answers are those of `warpset_core::quotient::rank_select`. Nearly all runs begin and end in the block of their
//! quotient: those are answered from that block's words alone, bounds checked once.

#[cfg(target_arch = "x86_64")]
use warpset_base::processor::Pdep;
use warpset_core::bits::{Portable, Select};
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::{
    Blocks, OCCUPIEDS, OFFSET, RUNENDS, any_field_equals, fields, metadata_words,
};

use crate::Layout;
use crate::cpu::ahead::{BATCH, prefetch};

/// The blocks of a filter that are asked, with counters or without.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a, const COUNTED: bool> {
    words: &'a [u64],
    split: Split,
    block_words: usize,
    fields: u64,
}

impl<'a, const COUNTED: bool> Lookup<'a, COUNTED> {
    const REMAINDERS: usize = metadata_words(COUNTED) as usize;

    #[inline(always)]
    fn new(words: &'a [u64], split: Split) -> Self {
        let block_words = split.remainder_bits as usize + Self::REMAINDERS;
        Lookup { words, split, block_words, fields: fields(split.remainder_bits) }
    }

    #[inline(always)]
    fn blocks(&self) -> u64 {
        (self.words.len() / self.block_words) as u64
    }

    /// Asks for the lines with the metadata of a quotient and with the remainder in its canonical slot.
    #[inline(always)]
    fn prefetch(&self, fingerprint: u64) {
        let quotient = self.split.quotient(fingerprint) as usize;
        let block = quotient / 64 * self.block_words;
        prefetch(self.words, block);
        if self.block_words != 8 {
            prefetch(self.words, block + Self::REMAINDERS + quotient % 64 * self.split.remainder_bits as usize / 64);
        }
    }

    #[inline(always)]
    fn is_occupied(&self, fingerprint: u64) -> bool {
        let quotient = self.split.quotient(fingerprint);
        let word = (quotient / 64) as usize * self.block_words + OCCUPIEDS as usize;
        self.words.get(word).is_some_and(|occupieds| occupieds >> (quotient % 64) & 1 != 0)
    }
}

impl Lookup<'_, false> {
    /// Whether the fingerprint, whose quotient has a run, is stored.
    #[inline(always)]
    pub(super) fn contains(&self, fingerprint: u64, select: impl Select) -> bool {
        match self.contains_near(fingerprint, select) {
            Some(is_stored) => is_stored,
            None => contains_far(self.words, self.split, fingerprint, select),
        }
    }

    /// The same, if the block of its quotient tells.
    #[inline(always)]
    fn contains_near(&self, fingerprint: u64, select: impl Select) -> Option<bool> {
        let width = self.split.remainder_bits;
        let quotient = self.split.quotient(fingerprint);
        let at = quotient as u32 % 64;
        let first = (quotient / 64) as usize * self.block_words;
        let block = self.words.get(first..first.wrapping_add(self.block_words))?;
        let [offset, occupieds, runends] = [block[OFFSET as usize], block[OCCUPIEDS as usize], block[RUNENDS as usize]];
        if offset >= 64 {
            return None;
        }
        // Slots that come after a run's end: after that of the block before, after the first of this block, ...
        let begins = 1 << offset | (runends & !0 << offset) << 1;
        let slot = select.select(begins, (occupieds & !(!0 << at)).count_ones()).max(at);
        // A shift by 64, where there is none, would be one by zero.
        let rest = runends >> (slot % 64);
        let len = 1 + rest.trailing_zeros();
        if slot >= 64 || rest == 0 || len * width > 64 {
            return None;
        }
        let bit = slot * width;
        let index = Self::REMAINDERS + (bit / 64) as usize;
        // The next word has bits of it or none that count.
        let high = block.get(index + 1).map_or(0, |word| word << 1);
        let stored = block.get(index)? >> (bit % 64) | high << (63 - bit % 64);
        let remainder = self.split.remainder(fingerprint);
        Some(any_field_equals(stored, self.fields, width, len, remainder))
    }

    /// How many copies of a fingerprint are stored.
    #[inline(always)]
    pub(super) fn count(&self, fingerprint: u64, select: impl Select) -> u64 {
        let blocks = Blocks::new(self.words, self.blocks(), self.split.remainder_bits);
        blocks.count(self.split.quotient(fingerprint), self.split.remainder(fingerprint), select)
    }
}

impl Lookup<'_, true> {
    /// Whether a fingerprint is stored.
    #[inline(always)]
    pub(super) fn contains(&self, fingerprint: u64, select: impl Select) -> bool {
        let blocks = Blocks::counted(self.words, self.blocks(), self.split.remainder_bits);
        blocks.contains(self.split.quotient(fingerprint), self.split.remainder(fingerprint), select)
    }

    /// How many copies of a fingerprint are stored.
    #[inline(always)]
    pub(super) fn count(&self, fingerprint: u64, select: impl Select) -> u64 {
        let blocks = Blocks::counted(self.words, self.blocks(), self.split.remainder_bits);
        blocks.count(self.split.quotient(fingerprint), self.split.remainder(fingerprint), select)
    }
}

/// Whether a fingerprint is stored, wherever its run is.
#[inline(never)]
fn contains_far(words: &[u64], split: Split, fingerprint: u64, select: impl Select) -> bool {
    let blocks = Lookup::<false>::new(words, split).blocks();
    let blocks = Blocks::new(words, blocks, split.remainder_bits);
    blocks.contains(split.quotient(fingerprint), split.remainder(fingerprint), select)
}

/// Whether a fingerprint is stored, in a filter without counters.
#[inline]
pub(super) fn contains(layout: &Layout, words: &[u64], fingerprint: u64) -> bool {
    let split = layout.split;
    if !Lookup::<false>::new(words, split).is_occupied(fingerprint) {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
        fn fast(words: &[u64], split: Split, fingerprint: u64, pdep: Pdep) -> bool {
            Lookup::<false>::new(words, split).contains(fingerprint, pdep)
        }
        if let Some(pdep) = Pdep::detect() {
            // SAFETY: a `Pdep` exists only where the processor has these instructions.
            return unsafe { fast(words, split, fingerprint, pdep) };
        }
    }
    #[inline(never)]
    fn portable(words: &[u64], split: Split, fingerprint: u64) -> bool {
        Lookup::<false>::new(words, split).contains(fingerprint, Portable)
    }
    portable(words, split, fingerprint)
}

/// Hands out what `ask` answers of the fingerprints whose quotients have a run, and the default of all others, a batch at a
/// time; `fingerprint` gives that of a key by its number.
#[inline(always)]
pub(super) fn answer<T: Copy + Default, const COUNTED: bool>(
    layout: &Layout,
    words: &[u64],
    len: usize,
    fingerprint: impl Fn(usize) -> u64,
    ask: impl Fn(&Lookup<'_, COUNTED>, u64) -> T,
    mut take: impl FnMut(usize, T),
) {
    let lookup = Lookup::<COUNTED>::new(words, layout.split);
    let mut fingerprints = [0; BATCH];
    let mut first = 0;
    while first < len {
        let count = BATCH.min(len - first);
        for (i, place) in fingerprints[..count].iter_mut().enumerate() {
            *place = fingerprint(first + i);
            lookup.prefetch(*place);
        }
        // Those without a run are sorted out first: a branch on each would be guessed wrong as often as not.
        let (mut left, mut answers) = ([0u8; BATCH], [T::default(); BATCH]);
        let mut stay = 0;
        for (i, &fingerprint) in fingerprints[..count].iter().enumerate() {
            left[stay] = i as u8;
            stay += lookup.is_occupied(fingerprint) as usize;
        }
        for &i in &left[..stay] {
            let i = i as usize % BATCH;
            answers[i] = ask(&lookup, fingerprints[i]);
        }
        for (i, answer) in answers[..count].iter().enumerate() {
            take(first + i, *answer);
        }
        first += count;
    }
}
