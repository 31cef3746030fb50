//! [`rebuild`](super::rebuild) for packed slots with short remainders and fingerprints of 32 bits: the same in 32-bit
//! arithmetic, relative to the thread's block, in few enough registers that the blocks of 64 quotients of a filter of 2^23
//! slots are on an H200 at the same time, a thread each.
//!
//! A fingerprint relative to its block is six bits of quotient and the remainder; the largest 32-bit number stands for
//! the end.

use warpset_core::quotient::slots::{BLOCK_SLOTS, PackedSlots};
use warpset_core::quotient::standard as core;
use warpset_core::scan::{Lift, Operator};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, kernel, thread};

use super::rebuild::{ENDS_AT, PREFIX_AT, SCRATCH_AT, TILE_BLOCKS, WARPS, lower_bound};
use crate::quotient_memory::{Fill, Filling, Parameters, ReadOnly};
use crate::{block, look_back};

/// The longest remainders of these kernels.
pub const MAX_REMAINDER_BITS: u32 = 25;

/// After the last fingerprint.
const END: u32 = u32::MAX;

/// The way through the fingerprints of a block.
struct Ours {
    words: Global<u64>,
    /// The block's first word.
    first_word: u64,
    remainder_bits: u32,
    /// Quotients whose runs are not through.
    occupied: u64,
    /// The slot, relative to the block.
    at: u32,
    /// `is_continuation` of the slots of the block that `at` is in.
    continuations: u64,
}

impl Ours {
    /// # Safety
    /// `words` are a sound filter of `slots` packed slots; the block has quotients.
    #[inline(always)]
    unsafe fn new(words: Global<u64>, slots: u64, remainder_bits: u32, block: u64) -> Ours {
        let all = PackedSlots::new(ReadOnly(words), slots, remainder_bits);
        let first_word = block * (remainder_bits as u64 + 3);
        // SAFETY: the block's first word is its `is_occupied`.
        let occupied = unsafe { words.read_nc(first_word as usize) };
        let mut ours = Ours { words, first_word, remainder_bits, occupied, at: 0, continuations: 0 };
        if occupied != 0 {
            let quotient = block * BLOCK_SLOTS + occupied.trailing_zeros() as u64;
            ours.at = (core::find_run_start(&all, quotient) - block * BLOCK_SLOTS) as u32;
            // SAFETY: the slot is below the last.
            ours.continuations = unsafe { ours.block_word(1) };
        }
        ours
    }

    /// A word of the block that `at` is in.
    ///
    /// # Safety
    /// The slot is a slot of the filter, and the block has the word.
    #[inline(always)]
    unsafe fn block_word(&self, which: u32) -> u64 {
        let index = self.at / 64 * (self.remainder_bits + 3) + which;
        // SAFETY: the caller's promise.
        unsafe { self.words.read_nc(self.first_word as usize + index as usize) }
    }

    /// The fingerprint, or [`END`].
    ///
    /// # Safety
    /// As for [`new`](Self::new).
    #[inline(always)]
    unsafe fn get(&self) -> u32 {
        if self.occupied == 0 {
            return END;
        }
        let bits = self.remainder_bits;
        let bit = self.at % 64 * bits;
        let index = 2 * (self.at / 64 * (bits + 3) + 3) + bit / 32;
        let shift = bit % 32;
        let words = self.words.at(self.first_word as usize).cast::<u32>();
        // SAFETY: the slot is below the last; the remainder lies in these words of it.
        let mut remainder = unsafe { words.read_nc(index as usize) } >> shift;
        if shift + bits > 32 {
            // SAFETY: as above.
            remainder |= unsafe { words.read_nc(index as usize + 1) } << (32 - shift);
        }
        self.occupied.trailing_zeros() << bits | remainder & ((1 << bits) - 1)
    }

    /// Goes on to the next.
    ///
    /// # Safety
    /// As for [`new`](Self::new); this is not the end.
    #[inline(always)]
    unsafe fn advance(&mut self) {
        self.at += 1;
        if self.at % 64 == 0 {
            // SAFETY: the last slot of all is empty, so there is a slot after this one.
            self.continuations = unsafe { self.block_word(1) };
        }
        if self.continuations >> (self.at % 64) & 1 == 0 {
            self.occupied &= self.occupied - 1;
            // The next run is where this one ended, unless it is in its canonical slot behind a gap, in this same block.
            if self.occupied != 0 {
                self.at = self.at.max(self.occupied.trailing_zeros());
            }
        }
    }
}

/// What a block's fingerprints and the batch make, in ascending order.
///
/// # Safety
/// As for [`Ours::new`]; the batch is readable and ascending in the range, with quotients of the block.
#[inline(always)]
unsafe fn combine<const REMOVES: bool>(
    mut ours: Ours,
    batch: Global<u32>,
    (mut next, end): (u32, u32),
    base: u32,
    keep: bool,
    mut put: impl FnMut(u32, u32, bool),
) {
    let bits = ours.remainder_bits;
    // SAFETY: `next < end` where it is read; ours advances only before its end.
    unsafe {
        let mut first = ours.get();
        let mut second = if next < end { batch.read_nc(next as usize).wrapping_sub(base) } else { END };
        let mut last = END;
        while if REMOVES { first != END } else { first.min(second) != END } {
            let take_first = first <= second;
            let take_second = if REMOVES { second <= first } else { second < first };
            let item = first.min(second);
            if if REMOVES { !take_second } else { keep | (item != last) } {
                put(item >> bits, item & ((1 << bits) - 1), last >> bits == item >> bits);
                last = item;
            }
            if take_first {
                ours.advance();
                first = ours.get();
            }
            if take_second {
                next += 1;
                second = if next < end { batch.read_nc(next as usize).wrapping_sub(base) } else { END };
            }
        }
    }
}

/// Items of ascending slots on their way to memory that is zero.
struct Writer {
    words: GlobalMut<u64>,
    /// The first word of the thread's block.
    first_word: u64,
    remainder_bits: u32,
    /// The block in which items are put, relative to the thread's.
    block: u32,
    continuations: u64,
    shifteds: u64,
    /// A word of remainders, relative to the first word.
    index: u32,
    remainders: u64,
}

impl Writer {
    /// # Safety
    /// The word exists and is accessed by such operations alone.
    #[inline(always)]
    unsafe fn or(&self, index: u32, bits: u64) {
        if bits != 0 {
            // SAFETY: the caller's promise.
            unsafe { atomic::reduce_or(self.words.at(self.first_word as usize + index as usize), bits) };
        }
    }

    /// # Safety
    /// The words of items put so far exist and are accessed by such operations alone.
    #[inline(always)]
    unsafe fn flush_metadata(&mut self) {
        let first = self.block * (self.remainder_bits + 3);
        // SAFETY: the caller's promise.
        unsafe {
            self.or(first + 1, self.continuations);
            self.or(first + 2, self.shifteds);
        }
        (self.continuations, self.shifteds) = (0, 0);
    }

    /// # Safety
    /// The slot, relative to the thread's block, is one of the filter; its words are accessed by such operations alone.
    #[inline(always)]
    unsafe fn put(&mut self, slot: u32, is_shifted: bool, follows: bool, remainder: u32) {
        let bits = self.remainder_bits;
        let (block, at) = (slot / 64, slot % 64);
        // SAFETY: the caller's promise, for this slot and those before.
        unsafe {
            if block != self.block {
                self.flush_metadata();
                self.block = block;
            }
            self.continuations |= (follows as u64) << at;
            self.shifteds |= (is_shifted as u64) << at;
            let (index, shift) = (block * (bits + 3) + 3 + at * bits / 64, at * bits % 64);
            if index != self.index {
                self.or(self.index, self.remainders);
                (self.index, self.remainders) = (index, 0);
            }
            self.remainders |= (remainder as u64) << shift;
            if shift + bits > 64 {
                self.or(index, self.remainders);
                (self.index, self.remainders) = (index + 1, remainder as u64 >> (64 - shift));
            }
        }
    }
}

/// A tile.
///
/// # Safety
/// As [`quotient_update_insert_packed`].
#[inline(always)]
unsafe fn rebuild<const REMOVES: bool>(
    old: Global<u64>,
    slots: u64,
    parameters: Parameters,
    batch: Global<u32>,
    n: usize,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    words: GlobalMut<u64>,
    totals: GlobalMut<u64>,
) {
    let number: Shared<u32> = shared::dynamic(0);
    let ends: Shared<u64> = shared::dynamic(ENDS_AT);
    let prefix_slot: Shared<u32> = shared::dynamic(PREFIX_AT);
    let scratch: Shared<u32> = shared::dynamic(SCRATCH_AT);
    let split = parameters.split();
    let bits = split.remainder_bits;
    let keep = parameters.keeps_duplicates();
    let t = thread::thread_idx_x();
    // SAFETY: shared regions are apart, and a barrier stands between writing and reading each; the batch is read below
    // `n`; slots are written below `slots`.
    unsafe {
        let tile = look_back::ticket(ticket, number);
        let first_block = tile as u64 * TILE_BLOCKS;
        // A thread of two warps each looks for an end of the tile's part of the batch.
        if t % 32 == 0 && t < 64 {
            let block = first_block + if t == 0 { 0 } else { TILE_BLOCKS };
            ends.set(t / 32, lower_bound(batch, 0, n, bits, block * 64) as u64);
        }
        thread::sync_threads();
        let (tile_first, tile_end) = (ends.get(0) as usize, ends.get(1) as usize);
        let block = first_block + t as u64;
        let inside = block * 64 < split.quotients();
        let mut range = (tile_end as u32, tile_end as u32);
        if inside {
            let from = lower_bound(batch, tile_first, tile_end, bits, block * 64);
            range = (from as u32, lower_bound(batch, from, tile_end, bits, block * 64 + 64) as u32);
        }
        let base = (block << (6 + bits)) as u32; // of the block's fingerprints

        // The first free slot behind the block's items, relative to the block, and how many they are.
        let (mut free, mut count) = (0u32, 0u32);
        if inside {
            let ours = Ours::new(old, slots, bits, block);
            combine::<REMOVES>(ours, batch, range, base, keep, |quotient, _, _| {
                free = free.max(quotient) + 1;
                count += 1;
            });
        }
        let floor = if count == 0 { 0 } else { block * 64 + free as u64 };
        let fill = Fill(Lift { floor, add: count as u64 });
        let (in_block, all) = block::exclusive_scan::<Filling, WARPS>(fill, scratch);
        let prefix = look_back::tile_prefix::<Filling>(look_back, tile, all, prefix_slot);
        if t == 0 && (first_block + TILE_BLOCKS) * 64 >= split.quotients() {
            let Fill(total) = Filling::combine(prefix, all);
            totals.write(0, total.add);
            totals.write(1, total.apply(0));
        }

        if inside {
            let before = Filling::combine(prefix, in_block).0.apply(0);
            let mut free = before.max(block * 64).wrapping_sub(block * 64) as u32;
            let limit = (slots - block * 64) as u32;
            let first_word = block * (bits as u64 + 3);
            let mut occupied = 0u64;
            let mut target = Writer {
                words,
                first_word,
                remainder_bits: bits,
                block: 0,
                continuations: 0,
                shifteds: 0,
                index: 3,
                remainders: 0,
            };
            let ours = Ours::new(old, slots, bits, block);
            combine::<REMOVES>(ours, batch, range, base, keep, |quotient, remainder, follows| {
                let slot = free.max(quotient);
                free = slot + 1;
                if slot < limit {
                    occupied |= 1 << quotient;
                    target.put(slot, slot != quotient, follows, remainder);
                }
            });
            target.flush_metadata();
            target.or(target.index, target.remainders);
            target.or(0, occupied);
        }
    }
}

macro_rules! kernels {
    ($($name:ident: $removes:literal, $doc:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Writes a filter anew ", $doc, ".")]
            ///
            /// # Safety
            /// As [`quotient_update_rebuild_u32`](super::rebuild::quotient_update_rebuild_u32), which has the same result;
            /// besides, slots are packed and fewer than 2^32, remainders have at most [`MAX_REMAINDER_BITS`], fingerprints
            /// at most 32 bits, and the batch has fewer than 2^32.
            #[launch_bounds(128, 8)]
            pub unsafe fn $name(
                old: Global<u64>, slots: u64, parameters: u32, batch: Global<u32>, n: usize, look_back: GlobalMut<u64>,
                ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
            ) {
                let parameters = Parameters(parameters);
                // SAFETY: the caller keeps this kernel's contract.
                unsafe { rebuild::<$removes>(old, slots, parameters, batch, n, look_back, ticket, words, totals) }
            }
        }
    )*};
}
kernels! {
    quotient_update_insert_packed: false, "with the fingerprints of an ascending batch besides its own";
    quotient_update_remove_packed: true, "without those that an ascending batch cancels";
}
