//! Lookups in blocks on the CPU, by single keys and a batch at a time.
//!
//! Answers are those of `warpset_core::quotient::rank_select`. Nearly all runs begin and end in the block of their
//! quotient. They are answered from that block's words alone, with bounds checked once.

use warpset_base::processor::Pdep;
use warpset_core::bits::{Portable, Select, lowest, window};
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::counters::count_of;
use warpset_core::quotient::rank_select::{Blocks, DIGITS, OCCUPIEDS, metadata_words};

use super::change::with_select;
use super::run::Fields;
use super::{blocks, counted_blocks};
use crate::Layout;
use crate::cpu::BATCH;
use crate::cpu::one::{self, Ask};
use warpset_base::processor::prefetch;

/// Blocks of a filter for lookups, with counters or without.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a, const COUNTED: bool> {
    words: &'a [u64],
    split: Split,
    block_words: usize,
    fields: Fields,
}

/// Run that begins and ends in the block of its quotient.
struct Run {
    /// First word of the block.
    first: usize,
    /// First slot of the run.
    slot: u32,
    /// Remainders of the run, digits included, and the bits after them.
    stored: u64,
    /// Bits of `stored` that belong to the run.
    within: u64,
}

impl<'a, const COUNTED: bool> Lookup<'a, COUNTED> {
    const REMAINDERS: usize = metadata_words(COUNTED) as usize;

    #[inline(always)]
    fn new(words: &'a [u64], split: Split) -> Self {
        let block_words = split.remainder_bits as usize + Self::REMAINDERS;
        Lookup { words, split, block_words, fields: Fields::new(split.remainder_bits) }
    }

    #[inline(always)]
    fn blocks(&self) -> u64 {
        (self.words.len() / self.block_words) as u64
    }

    /// Prefetches the lines with the metadata of a quotient and with the remainder in its canonical slot.
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

    /// Returns the run of an occupied quotient, if the block tells its place and a word holds it.
    #[inline(always)]
    fn run(&self, fingerprint: u64, select: impl Select) -> Option<Run> {
        let width = self.split.remainder_bits;
        let quotient = self.split.quotient(fingerprint);
        let at = quotient as u32 % 64;
        let first = (quotient / 64) as usize * self.block_words;
        let block = self.words.get(first..first.wrapping_add(self.block_words))?;
        let &[offset, occupieds, runends] = block.first_chunk()?;
        if offset >= 64 {
            return None;
        }
        // These are the slots after run ends: after the last of the block before, after the first of this block, ...
        let begins = 1 << offset | (runends & !0 << offset) << 1;
        let slot = select.select(begins, (occupieds & !(!0 << at)).count_ones()).max(at);
        // A shift by 64, which does not occur, would be one by zero.
        let rest = runends >> (slot % 64);
        let len = 1 + rest.trailing_zeros();
        if slot >= 64 || rest == 0 || len * width > 64 {
            return None;
        }
        let bit = slot * width;
        // The next word has further bits, or bits of the next block, which do not matter.
        let stored = window(self.words, (64 * (first + Self::REMAINDERS)) as u64 + u64::from(bit));
        Some(Run { first, slot, stored, within: self.fields.first(len as u64) })
    }

    /// Returns the number of copies of a fingerprint with an occupied quotient.
    #[inline(always)]
    pub(super) fn count(&self, fingerprint: u64, select: impl Select) -> u64 {
        match self.count_near(fingerprint, select) {
            Some(count) => count,
            None => count_far::<COUNTED>(self.words, self.split, fingerprint, select),
        }
    }

    /// Returns the number of copies, if the block of the fingerprint's quotient tells.
    #[inline(always)]
    fn count_near(&self, fingerprint: u64, select: impl Select) -> Option<u64> {
        let run = self.run(fingerprint, select)?;
        let mut equal = self.fields.equal(run.stored, self.split.remainder(fingerprint)) & run.within;
        if !COUNTED {
            return Some(equal.count_ones() as u64);
        }
        let digits = self.words.get(run.first + DIGITS as usize)? >> run.slot;
        while equal != 0 {
            let index = self.fields.lowest_of(equal) as u32;
            if digits >> index & 1 == 0 {
                return Some(self.count_at(&run, digits, index));
            }
            equal &= equal - 1;
        }
        Some(0)
    }

    /// Returns the number of copies of item number `index` of a run with these digits.
    #[inline(always)]
    fn count_at(&self, run: &Run, digits: u64, index: u32) -> u64 {
        let width = self.split.remainder_bits;
        let after = (run.stored >> (index * width) >> 1) >> (width - 1);
        let len = (!(digits >> index >> 1)).trailing_zeros();
        // Unchecked bytes may claim more digits than the word has.
        let digit = |i| after.checked_shr(i * width).unwrap_or(0) & lowest(width);
        match len {
            // This is chosen without a branch.
            0 | 1 => 1 + if len == 1 { 1 + digit(0) } else { 0 },
            _ => count_of((0..len).map(digit), width),
        }
    }
}

impl<const COUNTED: bool> Lookup<'_, COUNTED> {
    /// Returns the lowest `dropped` bits of the first item that differs from `least`, with an occupied quotient, in
    /// these bits alone; they are zero in `least`.
    #[inline(always)]
    fn first_prefixed(&self, least: u64, dropped: u32, select: impl Select) -> Option<u64> {
        let Some(run) = self.run(least, select).filter(|_| !COUNTED) else {
            return first_prefixed_far::<COUNTED>(self.words, self.split, least, dropped, select);
        };
        let index = self.fields.first_prefixed(run.stored, run.within, self.split.remainder(least), dropped)?;
        Some(run.stored >> (index as u32 * self.split.remainder_bits) & lowest(dropped))
    }
}

impl Lookup<'_, false> {
    /// Whether a fingerprint with an occupied quotient is stored.
    #[inline(always)]
    pub(super) fn contains(&self, fingerprint: u64, select: impl Select) -> bool {
        match self.run(fingerprint, select) {
            Some(run) => self.fields.any_equal(run.stored, run.within, self.split.remainder(fingerprint)),
            None => count_far::<false>(self.words, self.split, fingerprint, select) > 0,
        }
    }

    /// Whether a fingerprint from `first` to `last` is stored, which have one quotient, an occupied one.
    #[inline(always)]
    fn any_between(&self, first: u64, last: u64, select: impl Select) -> bool {
        let Some(run) = self.run(first, select) else { return any_between_far(self.words, self.split, first, last) };
        let from_first = self.fields.not_below(run.stored, self.split.remainder(first)) & run.within;
        if from_first == 0 {
            return false;
        }
        let index = self.fields.lowest_of(from_first) as u32;
        self.split.remainder(run.stored >> (index * self.split.remainder_bits)) <= self.split.remainder(last)
    }
}

/// Answers [`Lookup::any_between`] for runs anywhere.
#[inline(never)]
fn any_between_far(words: &[u64], split: Split, first: u64, last: u64) -> bool {
    let blocks = Blocks::new(words, Lookup::<false>::new(words, split).blocks(), split.remainder_bits);
    let start = with_select!(|select| blocks.find_run_start(split.quotient(first), select));
    if start >= blocks.slots() {
        return false; // only in damaged memory
    }
    let (mut low, mut high) = (start, blocks.run_end(start));
    while low < high {
        let middle = low + (high - low) / 2;
        if blocks.remainder(middle) < split.remainder(first) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (split.remainder(first)..=split.remainder(last)).contains(&blocks.remainder(low))
}

impl Lookup<'_, true> {
    /// Whether a fingerprint with an occupied quotient is stored.
    #[inline(always)]
    pub(super) fn contains(&self, fingerprint: u64, select: impl Select) -> bool {
        self.count(fingerprint, select) > 0
    }
}

/// Returns the number of stored copies of a fingerprint, for runs anywhere.
#[inline(never)]
fn count_far<const COUNTED: bool>(words: &[u64], split: Split, fingerprint: u64, select: impl Select) -> u64 {
    let (blocks, width) = (Lookup::<COUNTED>::new(words, split).blocks(), split.remainder_bits);
    let (quotient, remainder) = (split.quotient(fingerprint), split.remainder(fingerprint));
    if COUNTED {
        Blocks::counted(words, blocks, width).count(quotient, remainder, select)
    } else {
        Blocks::new(words, blocks, width).count(quotient, remainder, select)
    }
}

/// Returns what [`Lookup::first_prefixed`] does, for runs anywhere.
#[inline(never)]
fn first_prefixed_far<const COUNTED: bool>(
    words: &[u64],
    split: Split,
    least: u64,
    dropped: u32,
    select: impl Select,
) -> Option<u64> {
    let (blocks, width) = (Lookup::<COUNTED>::new(words, split).blocks(), split.remainder_bits);
    let (quotient, remainder) = (split.quotient(least), split.remainder(least));
    macro_rules! first {
        ($blocks:expr) => {{
            let blocks = $blocks;
            Some(blocks.remainder(blocks.first_prefixed(quotient, remainder, dropped, select)?) & lowest(dropped))
        }};
    }
    if COUNTED { first!(Blocks::counted(words, blocks, width)) } else { first!(Blocks::new(words, blocks, width)) }
}

/// Whether a fingerprint is stored, in a filter without counters.
struct Contains;

impl Ask for Contains {
    type Answer = bool;

    #[inline(always)]
    fn ask(words: &[u64], split: Split, fingerprint: u64, select: impl Select) -> bool {
        Lookup::<false>::new(words, split).contains(fingerprint, select)
    }
}

/// Number of stored copies of a fingerprint.
struct Count<const COUNTED: bool>;

impl<const COUNTED: bool> Ask for Count<COUNTED> {
    type Answer = u64;

    #[inline(always)]
    fn ask(words: &[u64], split: Split, fingerprint: u64, select: impl Select) -> u64 {
        Lookup::<COUNTED>::new(words, split).count(fingerprint, select)
    }
}

/// Whether a fingerprint is stored, in a filter without counters.
#[inline]
pub(super) fn contains(layout: &Layout, words: &[u64], fingerprint: u64) -> bool {
    let lookup = Lookup::<false>::new(words, layout.split);
    lookup.is_occupied(fingerprint) && one::ask::<Contains>(words, layout.split, fingerprint)
}

/// Returns the number of stored copies of a fingerprint.
#[inline]
pub(super) fn count<const COUNTED: bool>(layout: &Layout, words: &[u64], fingerprint: u64) -> u64 {
    if !Lookup::<COUNTED>::new(words, layout.split).is_occupied(fingerprint) {
        return 0;
    }
    one::ask::<Count<COUNTED>>(words, layout.split, fingerprint)
}

/// Visits the items of a filter that differ from `least`, a fingerprint, in the lowest `dropped` bits alone, which are
/// zero in `least`: these bits and the number of copies, in ascending order. Equal items may follow each other.
pub(crate) fn for_each_prefixed(
    layout: &Layout,
    words: &[u64],
    least: u64,
    dropped: u32,
    mut visit: impl FnMut(u64, u64),
) {
    let (quotient, remainder) = (layout.split.quotient(least), layout.split.remainder(least));
    macro_rules! visit_all {
        ($blocks:expr, $copies:expr) => {{
            let (blocks, copies) = ($blocks, $copies);
            let mut at = with_select!(|select| blocks.first_prefixed(quotient, remainder, dropped, select));
            while let Some(slot) = at {
                visit(blocks.remainder(slot) & lowest(dropped), copies(&blocks, slot));
                at = blocks.next_prefixed(slot, dropped);
            }
        }};
    }
    if layout.is_counted() {
        visit_all!(counted_blocks(layout, words), |blocks: &Blocks<&[u64], true>, slot| blocks.count_from(slot).0);
    } else {
        visit_all!(blocks(layout, words), |_: &Blocks<&[u64]>, _| 1);
    }
}

/// Returns the lowest `dropped` bits of the first item that [`for_each_prefixed`] visits.
#[inline]
pub(crate) fn first_prefixed(layout: &Layout, words: &[u64], least: u64, dropped: u32) -> Option<u64> {
    #[inline(always)]
    fn first<const COUNTED: bool>(layout: &Layout, words: &[u64], least: u64, dropped: u32) -> Option<u64> {
        let lookup = Lookup::<COUNTED>::new(words, layout.split);
        with_select!(|select| if lookup.is_occupied(least) {
            lookup.first_prefixed(least, dropped, select)
        } else {
            None
        })
    }
    match layout.is_counted() {
        true => first::<true>(layout, words, least, dropped),
        false => first::<false>(layout, words, least, dropped),
    }
}

/// Whether a fingerprint from `first` to `last` is stored, which have one quotient, in a filter without counters.
#[inline]
pub(crate) fn any_between(layout: &Layout, words: &[u64], first: u64, last: u64) -> bool {
    let lookup = Lookup::<false>::new(words, layout.split);
    lookup.is_occupied(first) && with_select!(|select| lookup.any_between(first, last, select))
}

/// Reports the answers of [`any_between`] for pairs of fingerprints, in order.
pub(crate) fn any_between_each(layout: &Layout, words: &[u64], ends: &[(u64, u64)], take: impl FnMut(usize, bool)) {
    with_select!(|select| answer::<_, false>(
        layout,
        words,
        ends.len(),
        |i| ends[i].0,
        #[inline(always)]
        |lookup, i, first| lookup.any_between(first, ends[i].1, select),
        take
    ));
}

/// Reports the answers of [`first_prefixed`] for `len` fingerprints, in order.
pub(crate) fn first_prefixed_each(
    layout: &Layout,
    words: &[u64],
    dropped: u32,
    len: usize,
    least: impl Fn(usize) -> u64,
    take: impl FnMut(usize, Option<u64>),
) {
    macro_rules! answer {
        ($counted:literal) => {
            with_select!(|select| answer::<_, $counted>(
                layout,
                words,
                len,
                least,
                #[inline(always)]
                |lookup, _, least| lookup.first_prefixed(least, dropped, select),
                take
            ))
        };
    }
    if layout.is_counted() { answer!(true) } else { answer!(false) }
}

/// Reports the answers of `ask`, which takes numbers of keys with their fingerprints, for fingerprints with occupied
/// quotients, and the default for all others, a batch at a time; `fingerprint` maps the number of a key to its
/// fingerprint.
#[inline(always)]
pub(super) fn answer<T: Copy + Default, const COUNTED: bool>(
    layout: &Layout,
    words: &[u64],
    len: usize,
    fingerprint: impl Fn(usize) -> u64,
    ask: impl Fn(&Lookup<'_, COUNTED>, usize, u64) -> T,
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
        // Fingerprints without a run are sorted out first: a branch on each would be mispredicted half of the time.
        let (mut left, mut answers) = ([0u8; BATCH], [T::default(); BATCH]);
        let mut stay = 0;
        for (i, &fingerprint) in fingerprints[..count].iter().enumerate() {
            left[stay] = i as u8;
            stay += lookup.is_occupied(fingerprint) as usize;
        }
        for &i in &left[..stay] {
            let i = i as usize % BATCH;
            answers[i] = ask(&lookup, first + i, fingerprints[i]);
        }
        for (i, answer) in answers[..count].iter().enumerate() {
            take(first + i, *answer);
        }
        first += count;
    }
}
