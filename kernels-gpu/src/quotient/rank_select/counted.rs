//! Rank-and-select quotient filters with counters: fingerprints with their copies to slots and back; lookups and
//! counts.
//!
//! A fingerprint with `c` copies takes one slot, and from two copies on more slots for the digits of `c - 2`
//! (`warpset_core::quotient::rank_select::counters`). So the contents of slots are written to a list first,
//! fingerprints and digits with the quotient of their fingerprint, and the layout of all kinds of slots
//! ([`layout`](crate::quotient::layout)) takes the list; a bit per item marks digits. A run of any number of copies is
//! one item of the input, so a hot key costs no more than another.

use warpset_core::quotient::rank_select::{Blocks, DIGITS, counters, metadata_words};
use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_core::scan::{Count, Sum};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, allow, atomic, thread};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::quotient::answers::contains;
#[cfg(feature = "bodies")]
use crate::quotient::keys::fingerprint_at;
use crate::quotient::layout::Slot;
#[cfg(feature = "bodies")]
use crate::quotient::layout::lay_out;
use crate::quotient::memory::{Fingerprint, Parameters, ReadOnly};
use crate::quotient::rank_select::extract_tile::TILE_BLOCKS;
#[cfg(feature = "bodies")]
use crate::quotient::rank_select::extract_tile::extract;
use crate::quotient::rank_select::form::CountedRankSelect;
use crate::quotient::rank_select::search::Runs;
use crate::{block, look_back};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;
/// Fingerprints per block of the expansion.
pub const EXPAND_TILE: usize = BLOCK as usize * RUNS;
/// Dynamic shared memory of [`quotient_rank_select_expand`], in bytes.
pub const EXPAND_SHARED_BYTES: u32 = SCRATCH_AT + block::scratch_bytes::<u64>(WARPS);

const WARPS: u32 = BLOCK / 32;
/// Fingerprints per thread of the expansion.
const RUNS: usize = 4;
const PREFIX_AT: u32 = 16;
const SCRATCH_AT: u32 = 32;

/// Returns the words of the look-back of an expansion of that many tiles.
pub const fn expand_look_back_words(tiles: usize) -> usize {
    look_back::words::<Count>(tiles)
}

/// Bits of digits that are not written yet; other threads add to the same words.
#[cfg(feature = "bodies")]
struct Marks {
    words: GlobalMut<u32>,
    index: u64,
    bits: u32,
}

#[cfg(feature = "bodies")]
impl Marks {
    /// Sets the bit of a digit.
    ///
    /// # Safety
    /// The bits have one for `item`, and all threads access them by such operations alone.
    #[inline(always)]
    unsafe fn mark(&mut self, item: u64) {
        if item / 32 != self.index {
            // SAFETY: the contract is the same.
            unsafe { self.flush() };
            self.index = item / 32;
        }
        self.bits |= 1 << (item % 32);
    }

    /// Writes pending bits.
    ///
    /// # Safety
    /// The contract of [`mark`](Self::mark).
    #[inline(always)]
    unsafe fn flush(&mut self) {
        if self.bits != 0 {
            // SAFETY: the contract is the same.
            unsafe { atomic::reduce_or(self.words.at(self.index as usize), self.bits) };
            self.bits = 0;
        }
    }
}

kernel! {
    /// Expands `n` fingerprints with their copies: one item each, and digits after it from two copies on.
    ///
    /// # Safety
    /// - Launch: 1-D, a block of [`BLOCK`] threads for each [`EXPAND_TILE`] fingerprints, [`EXPAND_SHARED_BYTES`] of
    ///   dynamic shared memory; `n` below 2^32, at least one.
    /// - `fingerprints`, `copies`: `n` each, with these [`Parameters`], ascending, not written while the kernel runs.
    /// - `look_back`: [`expand_look_back_words`] of the tiles, at a multiple of 16 bytes, and `ticket` one word: zero
    ///   at the start, used by this launch alone.
    /// - `out`: `room` places, and `digits` a bit for each, zero at the start; used by this launch alone. Items that
    ///   have no place are left out.
    /// - `totals`: three words, zero at the start: the number of items, and the sums of the low and of the high halves
    ///   of the copies.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_rank_select_expand<F>(
        fingerprints: Global<F>, copies: Global<u64>, n: usize, parameters: u32, room: u64, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, out: GlobalMut<F>, digits: GlobalMut<u32>, totals: GlobalMut<u64>,
    ) for [u32 => quotient_rank_select_expand_u32, u64 => quotient_rank_select_expand_u64] {
        let bits = Parameters(parameters).split().remainder_bits;
        let number: Shared<u32> = shared::dynamic(0);
        let prefix_slot: Shared<u32> = shared::dynamic(PREFIX_AT);
        let scratch: Shared<u32> = shared::dynamic(SCRATCH_AT);
        // SAFETY: barriers separate the uses of shared memory; runs below `n` are read, and places below `room`
        // written, which are different for all items; digits are added to atomically.
        unsafe {
            let tile = look_back::ticket(ticket, number);
            let first = tile * EXPAND_TILE + thread::thread_idx_x() as usize * RUNS;
            let mut counts = [0u64; RUNS];
            let (mut slots, mut low, mut high) = (0u32, 0u64, 0u64);
            for k in 0..RUNS {
                if first + k < n {
                    counts[k] = copies.read_nc(first + k);
                    slots += counters::slots(counts[k], bits) as u32;
                    low += counts[k] & 0xffff_ffff;
                    high += counts[k] >> 32;
                }
            }
            let (before, all) = block::exclusive_scan::<Sum<u32>, WARPS>(slots, scratch);
            let Count(prefix) = look_back::tile_prefix::<Sum<Count>>(look_back, tile, Count(all as u64), prefix_slot);
            let mut place = prefix + before as u64;
            let mut marks = Marks { words: digits, index: 0, bits: 0 };
            for k in 0..RUNS {
                let count = counts[k];
                if count > 0 {
                    let fingerprint = fingerprints.read_nc(first + k);
                    if place < room {
                        out.write(place as usize, fingerprint);
                    }
                    place += 1;
                    let mut left = counters::slots(count, bits) as u32 - 1;
                    let quotient = fingerprint.quotient(bits);
                    let mut i = 0;
                    while left > 0 {
                        if place < room {
                            let digit = F::of(counters::digit(count, bits, i));
                            out.write(place as usize, F::joined(quotient, digit, bits));
                            marks.mark(place);
                        }
                        place += 1;
                        i += 1;
                        left -= 1;
                    }
                }
            }
            marks.flush();
            thread::sync_threads();
            let low = block::reduce::<Sum<u64>, WARPS>(low, scratch);
            thread::sync_threads();
            let high = block::reduce::<Sum<u64>, WARPS>(high, scratch);
            if thread::thread_idx_x() == 0 {
                atomic::reduce_add(totals.at(1), low);
                if high != 0 {
                    atomic::reduce_add(totals.at(2), high);
                }
                if (tile + 1) * EXPAND_TILE >= n {
                    totals.write(0, prefix + all as u64);
                }
            }
        }
    }
}

kernel! {
    /// Writes a filter of `n` items, digits where the bit is set.
    ///
    /// # Safety
    /// The contract of [`lay_out`], with [`Slot::ITEMS`] for `ITEMS`; the [`Parameters`] say that slots are packed and
    /// duplicates kept.
    #[launch_bounds(256, 5)]
    pub unsafe fn quotient_rank_select_build_counted<F>(
        items: Global<F>, digits: Global<u32>, n: usize, parameters: u32, slots: u64, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
    ) for [u32 => quotient_rank_select_build_counted_u32, u64 => quotient_rank_select_build_counted_u64] {
        // The kernel spills like that for filters without counters.
        allow::spill();
        // SAFETY: the caller keeps this kernel's contract.
        unsafe {
            lay_out::<F, CountedRankSelect, { F::ITEMS }>(
                items, digits, n, Parameters(parameters), slots, look_back, ticket, words, totals,
            )
        }
    }
}

kernel! {
    /// Extracts a filter's fingerprints, ascending, without `dropped` low bits, as `F`, with their copies.
    ///
    /// # Safety
    /// - Launch, `look_back`, `ticket`: as for `quotient_rank_select_extract`.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`] and counters, not written while the kernel
    ///   runs.
    /// - `out`, `copies`: `n` places each, used by this launch alone, wide enough; fingerprints from the `n`-th on are
    ///   left out.
    /// - `total`: one word, set to the number of fingerprints.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_rank_select_extract_counted<F>(
        words: Global<u64>, slots: u64, parameters: u32, dropped: u32, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, out: GlobalMut<F>, copies: GlobalMut<u64>, n: u64, total: GlobalMut<u64>,
    ) for [u32 => quotient_rank_select_extract_counted_u32, u64 => quotient_rank_select_extract_counted_u64] {
        let split = Parameters(parameters).split();
        let filter = Blocks::counted(ReadOnly(words), slots / BLOCK_SLOTS, split.remainder_bits);
        let block_words = split.remainder_bits as u64 + metadata_words(true);
        let tiles = filter.blocks().div_ceil(TILE_BLOCKS);
        // SAFETY: the caller keeps this kernel's contract; halves of words of the filter's blocks are read, and places
        // below `n` written.
        unsafe {
            extract::<F, true>(
                words, filter, split, dropped, look_back, ticket,
                |block, half| words.cast::<u32>().read_nc((2 * (block * block_words + DIGITS)) as usize + half as usize),
                |place, slot, item| {
                    if place < n {
                        out.write(place as usize, item);
                        copies.write(place as usize, filter.count_from(slot).0);
                    }
                },
                |tile, up_to| {
                    if tile + 1 == tiles {
                        total.write(0, up_to);
                    }
                },
            )
        }
    }
}

/// Declares the kernels of lookups and counts.
macro_rules! lookups {
    ($($contains:ident, $count:ident: $paired:literal, $remainders:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Whether each key may be in a filter with counters and remainders of ", $remainders, ".")]
            ///
            /// # Safety
            /// The contract of `quotient_rank_select_contains`, of such a filter.
            #[launch_bounds(256, 8)]
            pub unsafe fn $contains(
                words: Global<u64>, blocks: u64, parameters: u32, fields: u64, keys: Global<u64>, kind: KeyKind,
                spread: u64, n: usize, form: u32, out: GlobalMut<u64>,
            ) {
                let parameters = Parameters(parameters);
                let runs = Runs::<$paired, true, _>::new(ReadOnly(words), blocks, parameters.split().remainder_bits, fields);
                let is_stored = |quotient, remainder| runs.contains_counted(quotient, remainder);
                // SAFETY: the caller keeps this kernel's contract.
                unsafe { contains(is_stored, parameters, keys, kind, spread, n, form, out) }
            }
        }

        kernel! {
            #[doc = concat!("How many copies of each key's fingerprint there are in a filter with counters and remainders of ",
                $remainders, ".")]
            ///
            /// # Safety
            /// The contract of `quotient_rank_select_count`, of such a filter.
            #[launch_bounds(256, 5)]
            pub unsafe fn $count(
                words: Global<u64>, blocks: u64, parameters: u32, fields: u64, keys: Global<u64>, kind: KeyKind,
                spread: u64, n: usize, out: GlobalMut<u64>,
            ) {
                let split = Parameters(parameters).split();
                let i = thread::index_1d() as usize;
                if i < n {
                    let runs = Runs::<$paired, true, _>::new(ReadOnly(words), blocks, split.remainder_bits, fields);
                    // SAFETY: `i < n`.
                    unsafe {
                        let fingerprint = fingerprint_at(keys, kind, spread, split, i);
                        let count = |item| runs.count_counted(split.quotient(item), split.remainder(item));
                        out.write(i, fingerprint.map_or(0, count));
                    }
                }
            }
        }
    )*};
}
lookups! {
    quotient_rank_select_contains_counted, quotient_rank_select_count_counted: false, "any number of bits";
    quotient_rank_select_contains_counted_paired, quotient_rank_select_count_counted_paired: true, "an even number of bits";
}
