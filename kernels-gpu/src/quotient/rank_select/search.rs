//! Search for a quotient's run, and in it, by one thread: metadata by pairs of words, bits of a block in registers of
//! 32 bits, as many remainders at once as 64 bits hold.
//!
//! Source: algorithm 2 of Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU",
//! IPDPS
//! 2018. 2018. It selects the end of the run among all run ends of the block, and walks back. Departure: runs that end
//!       before the quotient's slot are counted, and the rest of the rank is selected from there on. That is about as
//!       many ends as the run is shifted by slots, mostly few; then the run is read from its first slot on.

use warpset_core::bits::{Select, lowest};
use warpset_core::quotient::rank_select::{Blocks, DIGITS, RUNENDS, metadata_words};

use crate::quotient::memory::Pairs;

/// Blocks of a filter, `COUNTED` or not; `PAIRED` if all have an even number of words: remainders with an odd number of
/// bits, with counters an even one.
#[derive(Clone, Copy, Debug)]
pub struct Runs<const PAIRED: bool, const COUNTED: bool, P> {
    words: P,
    blocks: u64,
    remainder_bits: u32,
    fields: u64,
}

/// Selection on a device, in a half of the word: the first place with that many ones up to it, by halving, with the
/// same five steps for all threads of a warp. Counting the ones of shorter and shorter parts, like
/// [`select_short`](warpset_core::bits::select_short), takes two instructions more per step.
#[derive(Clone, Copy, Debug)]
pub struct ByMasks;

impl Select for ByMasks {
    #[inline(always)]
    fn one(self, word: u64, rank: u32) -> u64 {
        if rank < word.count_ones() { 1 << self.select(word, rank) } else { 0 }
    }

    /// Selects the one of rank `rank`, which must exist.
    #[inline(always)]
    fn select(self, word: u64, rank: u32) -> u32 {
        let (low, high) = (word as u32, (word >> 32) as u32);
        let count = low.count_ones();
        let (half, rank, first) = if rank < count { (low, rank, 0) } else { (high, rank - count, 32) };
        let mut at = 0;
        let mut width = 16;
        while width > 0 {
            let next = at + width;
            if (half & !(!0 << next)).count_ones() <= rank {
                at = next;
            }
            width /= 2;
        }
        first + at
    }
}

/// Run, from its first slot on.
#[derive(Clone, Copy, Debug)]
struct Run {
    block: u64,
    /// First slot in the block.
    start: u32,
    /// Run ends of the block from that slot on.
    ends: u64,
    /// First word of the block after its metadata without counters, if it came with them: of the remainders or, with
    /// counters, the digits.
    first: u64,
    held: bool,
}

/// Metadata of a block, and the words read with them.
#[derive(Clone, Copy, Debug)]
struct Head {
    offset: u64,
    occupieds: u64,
    runends: u64,
    first: u64,
    held: bool,
}

impl<const PAIRED: bool, const COUNTED: bool, P: Pairs> Runs<PAIRED, COUNTED, P> {
    /// Words of metadata of a block.
    const REMAINDERS: u64 = metadata_words(COUNTED);

    /// Makes runs of the blocks in `words`, at least one, with the
    /// [`fields`](warpset_core::quotient::rank_select::fields) of these remainders.
    #[inline(always)]
    pub fn new(words: P, blocks: u64, remainder_bits: u32, fields: u64) -> Self {
        Runs { words, blocks, remainder_bits, fields }
    }

    #[inline(always)]
    fn first_word(&self, block: u64) -> u64 {
        block * (self.remainder_bits as u64 + Self::REMAINDERS)
    }

    #[inline(always)]
    fn head(&self, block: u64) -> Head {
        let first = self.first_word(block);
        // Every other block of an odd number of words begins with the second word of a pair.
        let paired = PAIRED || first & 1 == 0;
        let pair = if PAIRED { first } else { first & !1 };
        let ([a, b], [c, d]) = (self.words.pair(pair), self.words.pair(pair + 2));
        let (offset, occupieds, runends) = if paired { (a, b, c) } else { (b, c, d) };
        Head { offset, occupieds, runends, first: if paired { d } else { 0 }, held: paired }
    }

    #[cfg(feature = "bodies")]
    #[inline(always)]
    fn runends(&self, block: u64) -> u64 {
        self.words.word(self.first_word(block) + RUNENDS)
    }

    /// Returns the run of a quotient, if it has one.
    #[cfg(feature = "bodies")]
    #[inline(always)]
    fn find(&self, quotient: u64, select: impl Select) -> Option<Run> {
        let (mut block, at) = (quotient / 64, quotient as u32 % 64);
        let Head { offset, occupieds, runends, mut first, mut held } = self.head(block);
        // The quotient's own bit moves to the top.
        let up_to = occupieds << (63 - at);
        if up_to >> 63 == 0 {
            return None;
        }
        // These runs are skipped, from slot `from` on.
        let mut runs = up_to.count_ones() - 1;
        let mut ends = runends;
        let mut from = offset as u32 % 64;
        if offset < 64 {
            let from_offset = ends >> from;
            from = Ord::max(from, at);
            ends >>= from;
            runs = runs.wrapping_sub(from_offset.count_ones() - ends.count_ones());
        } else {
            block = block.saturating_add(offset / 64);
            held = false;
            if block >= self.blocks {
                return None;
            }
            ends = self.runends(block) >> from;
        }
        // This is the end of the run before, or bit 0 if there is none to skip.
        loop {
            let befores = ends << 1 | 1;
            if runs < befores.count_ones() {
                let skipped = select.select(befores, runs);
                from += skipped;
                ends >>= skipped % 64;
                if from < 64 {
                    return Some(Run { block, start: from, ends, first, held });
                }
                runs = 0;
            } else {
                runs -= ends.count_ones();
            }
            block += 1;
            (first, held, from) = (0, false, 0);
            if block >= self.blocks {
                return None;
            }
            ends = self.runends(block);
        }
    }
}

#[cfg(feature = "bodies")]
impl<const PAIRED: bool, P: Pairs + Copy> Runs<PAIRED, true, P> {
    /// Returns the slot of a run with a remainder, if it is there. Digits are skipped, a block of slots at a time.
    #[inline(always)]
    fn place(&self, run: Run, remainder: u64) -> Option<u64> {
        let Run { mut block, mut start, mut ends, first, mut held } = run;
        loop {
            let digits = if held { first } else { self.words.word(self.first_word(block) + DIGITS) };
            let len = if ends == 0 { 64 - start } else { ends.trailing_zeros() + 1 };
            let mut others = !(digits >> start) & lowest(len);
            let remainders = 64 * (self.first_word(block) + Self::REMAINDERS);
            while others != 0 {
                let slot = start + others.trailing_zeros();
                others &= others - 1;
                let stored = self.words.field(remainders + (slot * self.remainder_bits) as u64, self.remainder_bits);
                if stored >= remainder {
                    return (stored == remainder).then_some(block * 64 + slot as u64);
                }
            }
            block += 1;
            if ends != 0 || block >= self.blocks {
                return None;
            }
            ends = self.runends(block);
            (start, held) = (0, false);
        }
    }

    /// Returns the slots of a run that 64 bits hold, with the place of a remainder; `None` if they do not decide
    /// whether it is stored.
    #[inline(always)]
    fn window(&self, run: &Run, remainder: u64) -> Option<Window> {
        let (bits, start) = (self.remainder_bits, run.start);
        let digits = if run.held { run.first } else { self.words.word(self.first_word(run.block) + DIGITS) } >> start;
        let len = if run.ends == 0 { 64 - start } else { run.ends.trailing_zeros() + 1 };
        let held = Ord::min(len, self.fields.count_ones());
        let at = 64 * (self.first_word(run.block) + Self::REMAINDERS) + (start * bits) as u64;
        let stored = self.words.field(at, held * bits);
        let mut others = !digits & lowest(held);
        while others != 0 {
            let slot = others.trailing_zeros();
            others &= others - 1;
            let here = stored >> (slot * bits) & lowest(bits);
            if here >= remainder {
                let place = if here == remainder { slot } else { ABSENT };
                return Some(Window { stored, digits, held, place });
            }
        }
        // The rest of the run is in the window too, or later slots decide.
        (run.ends != 0 && held == len).then_some(Window { stored, digits, held, place: ABSENT })
    }

    /// Whether a fingerprint is stored.
    #[inline(always)]
    pub fn contains_counted(&self, quotient: u64, remainder: u64) -> bool {
        let Some(run) = self.find(quotient, ByMasks) else { return false };
        match self.window(&run, remainder) {
            Some(window) => window.place != ABSENT,
            None => self.place(run, remainder).is_some(),
        }
    }

    /// Returns the number of copies of a fingerprint.
    #[inline(always)]
    pub fn count_counted(&self, quotient: u64, remainder: u64) -> u64 {
        let Some(run) = self.find(quotient, ByMasks) else { return 0 };
        if let Some(Window { stored, digits, held, place }) = self.window(&run, remainder) {
            if place == ABSENT {
                return 0;
            }
            // Adjacent digits, the lowest first, are a number.
            let after = place + 1;
            let its = (!(digits >> place >> 1)).trailing_zeros();
            if after + its < held || after + its == held && run.ends != 0 {
                let bits = self.remainder_bits;
                return if its == 0 { 1 } else { 2 + (stored >> (after * bits) & lowest(its * bits)) };
            }
        }
        let filter = Blocks::counted(self.words, self.blocks, self.remainder_bits);
        self.place(run, remainder).map_or(0, |slot| filter.count_from(slot).0)
    }
}

/// Slots of a run, from its first one on, as many as 64 bits hold.
struct Window {
    /// Contents of the slots.
    stored: u64,
    /// Slots of the block that are digits, from the first one of the window on.
    digits: u64,
    /// Number of slots.
    held: u32,
    /// Slot of a remainder, or [`ABSENT`].
    place: u32,
}

/// Place of a remainder that is not there.
const ABSENT: u32 = 64;

#[cfg(feature = "bodies")]
impl<const PAIRED: bool, P: Pairs> Runs<PAIRED, false, P> {
    /// Walks the slots of a run, as many remainders at once as 64 bits hold. `take` gets them after an exclusive or
    /// with `wanted`, with the lowest bit of each, and returns whether it has seen enough.
    #[inline(always)]
    fn walk(&self, run: Run, wanted: u64, mut take: impl FnMut(u64, u64) -> bool) {
        let Run { mut block, start, mut ends, first, mut held } = run;
        let bits = self.remainder_bits;
        let mut at = start * bits;
        loop {
            let end = if ends == 0 { 64 * bits } else { at + (ends.trailing_zeros() + 1) * bits };
            let remainders = self.first_word(block) + Self::REMAINDERS;
            loop {
                let (word, shift) = (at / 64, at % 64);
                let low = if word == 0 && held { first } else { self.words.word(remainders + word as u64) };
                let width = (end - at).min(self.fields.count_ones() * bits);
                let mut stored = low >> shift;
                if shift + width > 64 {
                    stored |= self.words.word(remainders + word as u64 + 1) << (64 - shift);
                }
                if take(stored ^ wanted, self.fields & (!0 >> (64 - width))) {
                    return;
                }
                at += width;
                if at >= end {
                    break;
                }
            }
            block += 1;
            if ends != 0 || block >= self.blocks {
                return;
            }
            ends = self.runends(block);
            (at, held) = (0, false);
        }
    }

    /// Whether a fingerprint is stored.
    #[inline(always)]
    pub fn contains(&self, quotient: u64, remainder: u64) -> bool {
        let Some(run) = self.find(quotient, ByMasks) else { return false };
        let mut found = false;
        self.walk(run, remainder.wrapping_mul(self.fields), |differs, lowest| {
            // Subtracting one from each borrows from the highest bit of the first that was zero.
            found = differs.wrapping_sub(lowest) & !differs & lowest << (self.remainder_bits - 1) != 0;
            found
        });
        found
    }

    /// Returns the lowest `dropped` bits of the first item of a quotient whose remainder is this one but for these
    /// bits, which are zero in it.
    #[inline(always)]
    pub fn first_prefixed(&self, quotient: u64, remainder: u64, dropped: u32) -> Option<u64> {
        let run = self.find(quotient, ByMasks)?;
        let (bits, mut found) = (self.remainder_bits, None);
        let kept = self.fields.wrapping_mul(lowest(bits) & !lowest(dropped));
        self.walk(run, remainder.wrapping_mul(self.fields), |differs, lowest_bits| {
            let others = differs & kept;
            // Subtracting one from each borrows from the highest bit of the first that was zero.
            let equal = others.wrapping_sub(lowest_bits) & !others & lowest_bits << (bits - 1);
            if equal != 0 {
                found = Some(differs >> (equal.trailing_zeros() + 1 - bits) & lowest(dropped));
            }
            equal != 0
        });
        found
    }

    /// Returns the number of copies of a fingerprint.
    #[inline(always)]
    pub fn count(&self, quotient: u64, remainder: u64) -> u64 {
        let Some(run) = self.find(quotient, ByMasks) else { return 0 };
        let mut count = 0;
        self.walk(run, remainder.wrapping_mul(self.fields), |differs, lowest| {
            // Without the highest bits nothing carries out of a field: its highest bit becomes one unless the rest is
            // zero.
            let highest = lowest << (self.remainder_bits - 1);
            let others = highest - lowest;
            let equal = !(((differs & others) + others) | differs) & highest;
            count += equal.count_ones() as u64;
            false
        });
        count
    }
}

#[cfg(test)]
mod tests;
