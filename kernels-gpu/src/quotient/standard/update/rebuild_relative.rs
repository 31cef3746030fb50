//! [`rebuild`](super::rebuild) in arithmetic relative to the thread's block: slots in 32 bits, fingerprints in the
//! width of the batch. It takes so few registers that all blocks of 64 quotients of a filter of 2^23 slots run on an
//! H200 at the same time, one per thread.
//!
//! A fingerprint relative to its block is six bits of quotient and the remainder. With more than 64 quotients at least
//! one bit is unused, so the largest number can mark the end.

use warpset_core::quotient::Split;
use warpset_core::quotient::combine::{Combination, Step};
use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_core::scan::Lift;
use warpset_simt::{Global, GlobalMut};

use super::rebuild::THREADS;
#[cfg(feature = "bodies")]
use super::rebuild::Tile;
use crate::quotient::memory::Parameters;

mod walk;
#[cfg(feature = "bodies")]
mod write;

use walk::Near;
#[cfg(feature = "bodies")]
use walk::Ours;
#[cfg(feature = "bodies")]
use write::Writer;

/// Least number of quotient bits: filters of these kernels have more quotients than a block.
pub const MIN_QUOTIENT_BITS: u32 = 7;
/// Limit on slots: filters of these kernels have fewer.
pub const MAX_SLOTS: u64 = 1 << 31;
/// Most fingerprints of the batch for a tile, one per two blocks, for which runs without any are taken as a whole.
const KEYS_BY_RUNS: usize = THREADS as usize / 2;

/// Fingerprints of the batch with quotients of a block.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Theirs<F> {
    batch: Global<F>,
    next: u32,
    end: u32,
    /// First fingerprint of the block.
    base: F,
}

#[cfg(feature = "bodies")]
impl<F: Near> Theirs<F> {
    /// Returns the next one, relative to the block, or the end.
    ///
    /// # Safety
    /// The batch is valid for reads up to the end.
    #[inline(always)]
    unsafe fn get(&self) -> F {
        // SAFETY: the contract is the same.
        if self.next < self.end { unsafe { self.batch.read_nc(self.next as usize) }.minus(self.base) } else { F::END }
    }
}

/// Combines a block's fingerprints and the batch, in ascending order; with `of`, only those of this quotient, for which
/// all smaller ones have been combined.
///
/// # Safety
/// - The contract of [`Ours::start`] and [`Theirs::get`].
/// - The batch is ascending.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn combine<F: Near, const PACKED: bool, const REMOVES: bool>(
    ours: &mut Ours<PACKED>,
    theirs: &mut Theirs<F>,
    of: Option<u32>,
    keep: bool,
    mut put: impl FnMut(u32, F, bool),
) {
    let bits = ours.remainder_bits;
    // SAFETY: ours advances only before its end; the rest is the contract of this function.
    unsafe {
        let mut first: F = ours.get();
        let mut second = theirs.get();
        let mut last = F::END;
        loop {
            let item = first.min(second);
            let is_end = if REMOVES { first } else { item } == F::END;
            if is_end || of.is_some_and(|quotient| item.quotient(bits) != quotient) {
                break;
            }
            let combination = if REMOVES { Combination::Difference } else { Combination::Sum };
            let Step { take_first, take_second, keep: stays } = combination.step(first, second);
            if stays & (REMOVES | keep | (item != last)) {
                put(item.quotient(bits), item.remainder(bits), last.quotient(bits) == item.quotient(bits));
                last = item;
            }
            if take_first {
                ours.advance();
                first = ours.get();
            }
            if take_second {
                theirs.next += 1;
                second = theirs.get();
            }
        }
    }
}

/// Returns the first free slot after the items of [`combine`], relative to the block, and their number.
///
/// With `by_runs`, runs of quotients that are not in the batch are taken as a whole, which is faster if most are.
///
/// # Safety
/// The contract of [`combine`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn fill<F: Near, const PACKED: bool, const REMOVES: bool>(
    mut ours: Ours<PACKED>,
    mut theirs: Theirs<F>,
    keep: bool,
    by_runs: bool,
) -> (u32, u32) {
    let (mut free, mut count) = (0u32, 0u32);
    // SAFETY: the contract is the same.
    unsafe {
        if !by_runs {
            combine::<F, PACKED, REMOVES>(&mut ours, &mut theirs, None, keep, |quotient, _, _| {
                free = free.max(quotient) + 1;
                count += 1;
            });
            return (free, count);
        }
        loop {
            let next = theirs.get().quotient(ours.remainder_bits);
            while ours.occupied != 0 && ours.occupied.trailing_zeros() < next {
                let quotient = ours.occupied.trailing_zeros();
                let length = ours.skip_run();
                free = free.max(quotient) + length;
                count += length;
            }
            if theirs.next >= theirs.end || REMOVES && ours.occupied == 0 {
                return (free, count);
            }
            combine::<F, PACKED, REMOVES>(&mut ours, &mut theirs, Some(next), keep, |quotient, _, _| {
                free = free.max(quotient) + 1;
                count += 1;
            });
        }
    }
}

/// Arguments of these kernels.
#[cfg(feature = "bodies")]
struct Arguments<F> {
    old: Global<u64>,
    slots: u64,
    parameters: Parameters,
    batch: Global<F>,
    n: usize,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    words: GlobalMut<u64>,
    totals: GlobalMut<u64>,
}

/// Rebuilds a tile.
///
/// # Safety
/// The contract of [`quotient_update_insert_packed`], or the kernel of the other container.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn rebuild<F: Near, const PACKED: bool, const REMOVES: bool>(arguments: Arguments<F>) {
    let Arguments { old, slots, parameters, batch, n, look_back, ticket, words, totals } = arguments;
    let split: Split = parameters.split();
    let bits = split.remainder_bits;
    let keep = parameters.keeps_duplicates();
    // SAFETY: the batch is read below `n`; slots are written below `slots`; all threads reach the tile's steps.
    unsafe {
        let tile = Tile::open(ticket, batch, n, split);
        let block = tile.block;
        let (next, end) = (tile.range.0 as u32, tile.range.1 as u32);
        let mut theirs = Theirs { batch, next, end, base: F::of((block * BLOCK_SLOTS) << bits) };

        // This is the first free slot after the block's items, relative to the block, and their number.
        let (mut start, mut free, mut count) = (0, 0, 0);
        if tile.has_quotients {
            start = Ours::<PACKED>::start(old, slots, bits, block);
            let ours = Ours::<PACKED>::new(old, slots, bits, block, start);
            let by_runs = tile.keys <= KEYS_BY_RUNS;
            (free, count) = fill::<F, PACKED, REMOVES>(ours, theirs, keep, by_runs);
        }
        let floor = if count == 0 { 0 } else { block * BLOCK_SLOTS + free as u64 };
        let before = tile.first_free(Lift { floor, add: count as u64 }, look_back, totals, split);

        if tile.has_quotients {
            let mut free = before.max(block * BLOCK_SLOTS).wrapping_sub(block * BLOCK_SLOTS) as u32;
            let limit = (slots - block * BLOCK_SLOTS) as u32;
            let first_word = block * parameters.container().block_words(bits);
            let mut target = Writer::<PACKED>::new(words.at(first_word as usize), bits);
            let mut ours = Ours::<PACKED>::new(old, slots, bits, block, start);
            combine::<F, PACKED, REMOVES>(&mut ours, &mut theirs, None, keep, |quotient, remainder, follows| {
                let slot = free.max(quotient);
                free = slot + 1;
                if slot < limit {
                    if !follows {
                        target.occupy(quotient);
                    }
                    target.put(slot, slot != quotient, follows, remainder.bits());
                }
            });
            target.finish();
        }
    }
}

/// Declares a kernel per container: the driver compiles only the one that a filter needs.
macro_rules! rebuilds {
    ($($kernel:ident, $narrow:ident, $wide:ident: $packed:literal, $removes:literal, $what:literal;)*) => {$(
        kernel! {
            #[doc = $what]
            ///
            /// # Safety
            /// - The contract of [`quotient_update_rebuild`](super::rebuild::quotient_update_rebuild), which has the
            ///   same result.
            /// - There are fewer than [`MAX_SLOTS`], quotients have at least [`MIN_QUOTIENT_BITS`], and the batch has
            ///   fewer than 2^32 fingerprints.
            /// - The filter has the container in the kernel's name.
            pub unsafe fn $kernel<F>(
                old: Global<u64>, slots: u64, parameters: u32, batch: Global<F>, n: usize, look_back: GlobalMut<u64>,
                ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
            ) for [
                #[launch_bounds(128, 8)] u32 => $narrow,
                #[launch_bounds(128, 6)] u64 => $wide,
            ] {
                let parameters = Parameters(parameters);
                let arguments = Arguments { old, slots, parameters, batch, n, look_back, ticket, words, totals };
                // SAFETY: the caller keeps this kernel's contract.
                unsafe { rebuild::<F, $packed, $removes>(arguments) }
            }
        }
    )*};
}
rebuilds! {
    quotient_update_insert_packed, quotient_update_insert_packed_u32, quotient_update_insert_packed_u64: true, false,
        "Rewrites a filter with the fingerprints of an ascending batch besides its own.";
    quotient_update_insert_bytes, quotient_update_insert_bytes_u32, quotient_update_insert_bytes_u64: false, false,
        "Rewrites a filter with the fingerprints of an ascending batch besides its own.";
    quotient_update_remove_packed, quotient_update_remove_packed_u32, quotient_update_remove_packed_u64: true, true,
        "Rewrites a filter without those fingerprints that an ascending batch cancels.";
    quotient_update_remove_bytes, quotient_update_remove_bytes_u32, quotient_update_remove_bytes_u64: false, true,
        "Rewrites a filter without those fingerprints that an ascending batch cancels.";
}
