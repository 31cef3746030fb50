//! Merge and rebuild in one pass: the words of a filter with the combination of another filter and an ascending batch.
//!
//! A thread takes the 64 quotients of a block, with stored and new fingerprints, and goes over them twice
//! ([`warpset_core::quotient::combine`]). The first time it finds their effect on the first free slot; a single-pass
//! scan with decoupled look-back gives it that slot; the second time it writes. So no list of fingerprints is made,
//! where algorithm 8 extracts, compacts, merges and builds.

use warpset_core::quotient::Split;
use warpset_core::quotient::combine::{Combination, combine};
use warpset_core::quotient::slots::{Appender, BLOCK_SLOTS, ByteSlots, Container, PackedSlots, Slots};
use warpset_core::quotient::standard as core;
use warpset_core::scan::{Lift, Operator};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, thread};

#[cfg(feature = "bodies")]
use crate::quotient::memory::Shareable;
use crate::quotient::memory::{Fill, Filling, Fingerprint, Parameters, ReadOnly};
use crate::{block, look_back};

/// Threads of a block.
pub const THREADS: u32 = 128;
/// Blocks of 64 quotients in a tile: one per thread.
pub const TILE_BLOCKS: u64 = THREADS as u64;
/// Dynamic shared memory, in bytes.
pub const SHARED_BYTES: u32 = SCRATCH_AT + block::scratch_bytes::<Fill>(WARPS);

const WARPS: u32 = THREADS / 32;
/// Begin and end of the tile in the batch.
const ENDS_AT: u32 = 16;
const PREFIX_AT: u32 = 32;
const SCRATCH_AT: u32 = 48;

/// Returns the words of the look-back of that many tiles.
pub const fn look_back_words(tiles: usize) -> usize {
    look_back::words::<Fill>(tiles)
}

/// Returns the place of the first fingerprint from `first` to `end` with a quotient of at least `quotient`.
///
/// # Safety
/// Fingerprints up to `end` are valid for reads and ascend.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn lower_bound<F: Fingerprint>(
    batch: Global<F>,
    first: usize,
    end: usize,
    remainder_bits: u32,
    quotient: u64,
) -> usize {
    let (mut from, mut to) = (first, end);
    while from < to {
        let middle = from + (to - from) / 2;
        // SAFETY: `first <= middle < end`.
        if unsafe { batch.read_nc(middle).bits() } >> remainder_bits < quotient {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// Tile of quotients in one thread.
#[cfg(feature = "bodies")]
pub(super) struct Tile {
    number: usize,
    /// Block of 64 quotients of the thread.
    pub(super) block: u64,
    /// Whether that block has quotients.
    pub(super) has_quotients: bool,
    /// Begin and end of the block's fingerprints in the batch.
    pub(super) range: (usize, usize),
    /// Fingerprints of the batch in the tile.
    pub(super) keys: usize,
}

#[cfg(feature = "bodies")]
impl Tile {
    /// Finds the block's tile.
    ///
    /// # Safety
    /// - All threads of the block come here together.
    /// - The contract of [`quotient_update_rebuild`], whose arguments these are.
    #[inline(always)]
    pub(super) unsafe fn open<F: Fingerprint>(
        ticket: GlobalMut<u32>,
        batch: Global<F>,
        n: usize,
        split: Split,
    ) -> Tile {
        let ends: Shared<u64> = shared::dynamic(ENDS_AT);
        let t = thread::thread_idx_x();
        // SAFETY: shared regions do not overlap, and a barrier separates writing and reading each; the batch is read
        // below `n`.
        unsafe {
            let number = look_back::ticket(ticket, shared::dynamic(0));
            let first_block = number as u64 * TILE_BLOCKS;
            // A thread of each of two warps searches one end of the tile's part of the batch.
            if t % 32 == 0 && t < 64 {
                let block = first_block + if t == 0 { 0 } else { TILE_BLOCKS };
                ends.set(t / 32, lower_bound(batch, 0, n, split.remainder_bits, block * BLOCK_SLOTS) as u64);
            }
            thread::sync_threads();
            let (tile_first, tile_end) = (ends.get(0) as usize, ends.get(1) as usize);
            let block = first_block + t as u64;
            let has_quotients = block * BLOCK_SLOTS < split.quotients();
            let mut range = (tile_end, tile_end);
            if has_quotients {
                let quotient = block * BLOCK_SLOTS;
                range.0 = lower_bound(batch, tile_first, tile_end, split.remainder_bits, quotient);
                range.1 = lower_bound(batch, range.0, tile_end, split.remainder_bits, quotient + BLOCK_SLOTS);
            }
            Tile { number, block, has_quotients, range, keys: tile_end - tile_first }
        }
    }

    /// Returns the first slot that is free for the thread's block, given the effect of its items on that slot.
    ///
    /// # Safety
    /// The contract of [`open`](Self::open).
    #[inline(always)]
    pub(super) unsafe fn first_free(
        &self,
        fill: Lift<u64>,
        look_back: GlobalMut<u64>,
        totals: GlobalMut<u64>,
        split: Split,
    ) -> u64 {
        // SAFETY: shared regions do not overlap, and a barrier separates writing and reading each.
        unsafe {
            let (in_block, all) = block::exclusive_scan::<Filling, WARPS>(Fill(fill), shared::dynamic(SCRATCH_AT));
            let prefix = look_back::tile_prefix::<Filling>(look_back, self.number, all, shared::dynamic(PREFIX_AT));
            let end_block = (self.number as u64 + 1) * TILE_BLOCKS;
            if thread::thread_idx_x() == 0 && end_block * BLOCK_SLOTS >= split.quotients() {
                let Fill(total) = Filling::combine(prefix, all);
                totals.write(0, total.add);
                totals.write(1, total.apply(0));
            }
            Filling::combine(prefix, in_block).0.apply(0)
        }
    }
}

/// Rebuilds a tile.
///
/// # Safety
/// The contract of [`quotient_update_rebuild`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn rebuild<F: Fingerprint, S: Slots>(
    old: S,
    parameters: Parameters,
    batch: Global<F>,
    n: usize,
    combination: Combination,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    words: GlobalMut<u64>,
    totals: GlobalMut<u64>,
) {
    let split = parameters.split();
    let slots = old.len();
    // SAFETY: the batch is read below `n`; slots are written below `slots`; all threads reach the tile's steps.
    unsafe {
        let tile = Tile::open(ticket, batch, n, split);
        let theirs = |i: usize| batch.read_nc(i).bits();

        let mut fill = Filling::IDENTITY.0;
        if tile.has_quotients {
            combine(&old, split, tile.block, theirs, tile.range, combination, |item| {
                fill = Lift { floor: core::place(fill.floor, item.quotient) + 1, add: fill.add + 1 };
            });
        }
        let mut free = tile.first_free(fill, look_back, totals, split);
        if tile.has_quotients {
            let mut target = Appender::new(Shareable(words), parameters.container(), split.remainder_bits);
            combine(&old, split, tile.block, theirs, tile.range, combination, |item| {
                let slot = core::place(free, item.quotient);
                free = slot + 1;
                if slot < slots {
                    if !item.follows {
                        target.occupy(item.quotient);
                    }
                    target.item(slot, core::item_metadata(slot, item.quotient, item.follows), item.remainder);
                }
            });
            target.finish();
        }
    }
}

kernel! {
    /// Writes the combination of a filter and an ascending batch of `n` `F` fingerprints.
    ///
    /// # Safety
    /// - Launch: 1-D, [`THREADS`] threads per block, a block for each [`TILE_BLOCKS`] blocks of 64 quotients,
    ///   [`SHARED_BYTES`] of dynamic shared memory.
    /// - `old`: a sound filter of `slots` slots with these [`Parameters`], not written while the kernel runs.
    /// - `batch`: `n` fingerprints, ascending, not written while the kernel runs; `rule`: the number of a
    ///   [`Combination`].
    /// - `look_back`: [`look_back_words`] of the blocks, at a multiple of 16 bytes, and `ticket` one word: zero at
    ///   the start, used by this launch alone.
    /// - `words`: those of `slots` slots, zero at the start, used by this launch alone. Items that belong to other
    ///   slots are left out.
    /// - `totals`: two words, set to the number of fingerprints stored and to the slot after the last.
    #[launch_bounds(128, 6)]
    pub unsafe fn quotient_update_rebuild<F>(
        old: Global<u64>, slots: u64, parameters: u32, batch: Global<F>, n: usize, rule: u32,
        look_back: GlobalMut<u64>, ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
    ) for [u32 => quotient_update_rebuild_u32, u64 => quotient_update_rebuild_u64] {
        let parameters = Parameters(parameters);
        let (bits, combination) = (parameters.split().remainder_bits, Combination::from_index(rule));
        let old = ReadOnly(old);
        // SAFETY: the caller keeps this kernel's contract; the container is the same for all threads.
        unsafe {
            match parameters.container() {
                Container::Bytes => {
                    let old = ByteSlots::new(old, slots, bits);
                    rebuild(old, parameters, batch, n, combination, look_back, ticket, words, totals);
                }
                Container::Packed => {
                    let old = PackedSlots::new(old, slots, bits);
                    rebuild(old, parameters, batch, n, combination, look_back, ticket, words, totals);
                }
            }
        }
    }
}
