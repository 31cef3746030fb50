//! Packed slots on the CPU, by whole words, with the processor's bit instructions where it has them.
//!
//! The search for a run saves one pass of that in `warpset_core::quotient::standard`. Going left to the start of the
//! cluster (algorithm 1, `FINDRUNSTART`) counts occupied quotients and run starts. Their difference is the number of
//! runs between the canonical slot and the run, so the walk to the right begins at the canonical slot instead of the
//! cluster.

use warpset_core::bits::{Select, above_last};
use warpset_core::quotient::Split;

mod append;
mod lookup;
mod update;
mod walk;

pub(super) use append::PackedWriter;
pub use lookup::WaitingRuns;
pub(super) use lookup::count_many;
pub(super) use update::PackedMut;
pub use walk::PackedWalk;

/// Packed slots for reading.
#[derive(Clone, Copy)]
pub(super) struct Packed<'a> {
    words: &'a [u64],
    split: Split,
    block_words: usize,
}

impl<'a> Packed<'a> {
    /// Makes slots of `words`, whole blocks.
    #[inline(always)]
    pub(super) fn new(words: &'a [u64], split: Split) -> Packed<'a> {
        Packed { words, split, block_words: split.remainder_bits as usize + 3 }
    }

    /// Returns `is_occupied`, `is_continuation` and `is_shifted` of a block; empty slots after the last block.
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

    /// Returns block and place of the start of a quotient's run; if the run is `new` and the slot is in use, of its
    /// future start.
    #[inline(always)]
    fn run_start(&self, quotient: u64, new: bool, select: impl Select) -> (usize, u32) {
        let (block, at) = ((quotient / 64) as usize, (quotient % 64) as u32);
        let [occupieds, continuations, shifteds] = self.metadata(block);
        if shifteds >> at & 1 == 0 {
            return (block, at);
        }
        // These are the bits up to the quotient's slot, from the slot after the start of the cluster on.
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
        // The number is at least one in a sound filter: a run that had begun by its canonical slot would begin there,
        // unshifted.
        let skipped = runs.wrapping_add(new as u32).wrapping_sub(starts);
        self.nth_head(block, !continuations & !upto, skipped.wrapping_sub(1), select)
    }

    /// Returns block and place of the head with `rank` heads before it, among the given heads of a block and all heads
    /// of the blocks after it. The slots up to there are in use.
    #[inline(always)]
    fn nth_head(&self, mut block: usize, mut heads: u64, mut rank: u32, select: impl Select) -> (usize, u32) {
        loop {
            let here = heads.count_ones();
            if rank < here {
                return (block, select.select(heads, rank) % 64);
            }
            rank -= here;
            block += 1;
            if block.wrapping_mul(self.block_words) >= self.words.len() {
                return (block, 0);
            }
            heads = !self.metadata(block)[1];
        }
    }

    /// Finds a remainder in the run that begins there: the first slot with one that is not smaller, or the end of the
    /// run; and whether it is equal.
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

    /// Returns the remainder in a slot; zero after the last block.
    #[inline(always)]
    fn remainder(&self, block: usize, at: u32) -> u64 {
        self.split.remainder(self.remainders_from(block, at))
    }

    /// Returns as many remainders as a word holds, from a slot on, the first in the lowest bits.
    #[inline(always)]
    fn remainders_from(&self, block: usize, at: u32) -> u64 {
        let bit = at * self.split.remainder_bits;
        let index = block.wrapping_mul(self.block_words).wrapping_add(3 + bit as usize / 64);
        let shift = bit % 64;
        let low = self.words.get(index).map_or(0, |word| word >> shift);
        // The next word has further bits, or none that matter. There are two shifts, because a shift by 64 is
        // undefined.
        let high = self.words.get(index + 1).map_or(0, |word| (word << 1) << (63 - shift));
        low | high
    }
}
