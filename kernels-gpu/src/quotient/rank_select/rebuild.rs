//! Merge and rebuild in one pass: the words of a rank-and-select quotient filter with the combination of another filter
//! and an ascending batch.
//!
//! A tile takes the items of some blocks of quotients: the slots between two offsets. It lists them in shared memory as
//! an extraction does ([`runs`](crate::quotient::rank_select::runs)), combines them with its part of the batch, and
//! continues as a tile of the layout ([`layout`](crate::quotient::layout)). So no list of fingerprints goes through
//! memory, where algorithm 8 of Geil, Farach-Colton, Owens, IPDPS 2018, extracts, compacts, merges and builds.
//!
//! A tile with more items than shared memory holds, of long runs or of a batch that is crowded in one place, gives up
//! and reports that; then there is no result.

use warpset_core::bits::lowest;
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::Blocks;
use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_core::scan::{Lift, Operator, Sum};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, allow, atomic, thread, warp};

#[cfg(feature = "bodies")]
use crate::quotient::layout::{Ends, write};
use crate::quotient::layout::{Form, Items, Slot, WINDOW_WORDS};
use crate::quotient::memory::{Fill, Parameters, ReadOnly};
use crate::quotient::rank_select::form::{REMAINDERS, RankSelect};
#[cfg(feature = "bodies")]
use crate::quotient::rank_select::runs::{for_each_used, list_quotients, ones_before, used_slots};
use crate::{block, look_back};

#[cfg(feature = "bodies")]
mod combine;

#[cfg(feature = "bodies")]
use combine::{batch_below, combine};

/// Threads of a block.
pub const BLOCK: u32 = 256;
/// Blocks of 64 quotients in a tile.
pub const TILE_BLOCKS: u64 = 32;
/// Least number of quotient bits, so that blocks are full of quotients.
pub const MIN_QUOTIENT_BITS: u32 = 6;
/// Limit on slots: filters of these kernels have fewer.
pub const MAX_SLOTS: u64 = 1 << 31;

const WARPS: u32 = BLOCK / 32;
/// Most items of a tile, of the filter and the batch together. Each thread takes the same odd number of them, so that
/// threads meet different banks.
const ROOM: u32 = 11 * BLOCK;
/// Most blocks of slots of a tile's items.
const SLOT_BLOCKS: u32 = 48;
/// Largest offset.
const FAR: u64 = 1 << 20;
/// Parts of 32 slots, and of 32 quotients, per warp.
const SLOT_PARTS: u32 = 2 * SLOT_BLOCKS / WARPS;
const QUOTIENT_PARTS: u32 = 2 * TILE_BLOCKS as u32 / WARPS;

const PREFIX_AT: u32 = 16;
/// Head of the tile: the first slot of its items, counted from the first of its quotients; their blocks of slots, none
/// if the tile has given up; occupied quotients.
const HEAD_AT: u32 = 32;
/// Begin and end of the tile in the batch.
const BATCH_AT: u32 = 48;
const SCRATCH_AT: u32 = 64;
const ITEMS_AT: u32 = SCRATCH_AT + block::scratch_bytes::<Fill>(WARPS);

/// Places of data that are used up before the layout, in the memory of its window: run ends and occupied quotients,
/// each with those before each block; the list of quotients; items of the filter, and of the batch after them.
struct At {
    runends: u32,
    ends_before: u32,
    occupieds: u32,
    before: u32,
    list: u32,
    parts: u32,
    end: u32,
}

const fn at(fingerprint_bytes: u32) -> At {
    let runends = ITEMS_AT + ROOM * fingerprint_bytes;
    let ends_before = runends + 8 * 64;
    let occupieds = ends_before + 4 * 64;
    let before = occupieds + 8 * TILE_BLOCKS as u32;
    let list = before + 4 * TILE_BLOCKS as u32;
    let parts = list + 4 * 64 * TILE_BLOCKS as u32;
    At { runends, ends_before, occupieds, before, list, parts, end: parts + ROOM * fingerprint_bytes }
}

/// Returns the dynamic shared memory for fingerprints of that many bytes, in bytes.
pub const fn shared_bytes(fingerprint_bytes: usize) -> u32 {
    let At { runends, end, .. } = at(fingerprint_bytes as u32);
    let window = runends + 8 * WINDOW_WORDS;
    if window > end { window } else { end }
}

/// Returns the words of the look-back of that many tiles.
pub const fn look_back_words(tiles: usize) -> usize {
    look_back::words::<Fill>(tiles)
}

/// Writes a tile's metadata to shared memory, by one warp.
///
/// # Safety
/// - All lanes of the warp come here together; a barrier follows before the shared memory is read.
/// - The filter has the blocks, and one after them.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn stage(filter: &Blocks<ReadOnly>, first_block: u64, blocks: u32, at: At) {
    let (runends, occupieds): (Shared<u64>, Shared<u64>) = (shared::dynamic(at.runends), shared::dynamic(at.occupieds));
    let (ends_before, before): (Shared<u32>, Shared<u32>) =
        (shared::dynamic(at.ends_before), shared::dynamic(at.before));
    let head: Shared<u32> = shared::dynamic(HEAD_AT);
    let lane = warp::lane_id();
    let from = filter.metadata(first_block).offset;
    let end = filter.metadata(first_block + blocks as u64).offset;
    let mut bits = 0;
    if lane < blocks {
        bits = filter.metadata(first_block + lane as u64).occupieds;
    }
    let is_near = from <= FAR && end <= FAR;
    let to = blocks * 64 + Ord::min(end, FAR) as u32;
    let from = Ord::min(from, FAR) as u32;
    let mut slot_blocks = to.div_ceil(64).saturating_sub(from / 64);
    if !is_near || slot_blocks > SLOT_BLOCKS {
        slot_blocks = 0;
    }
    let mut ends = [0u64; 2];
    for k in 0..2 {
        let block = 2 * lane + k;
        let of_filter = first_block + (from / 64 + block) as u64;
        if block < slot_blocks && of_filter < filter.blocks() {
            ends[k as usize] = filter.runends(of_filter);
            if block == 0 {
                ends[k as usize] &= !lowest(from % 64);
            }
        }
    }
    // SAFETY: the whole warp comes here; each block has a place of its own.
    unsafe {
        let ones = bits.count_ones();
        let sum = warp::inclusive_scan_add(warp::FULL_MASK, ones);
        occupieds.set(lane, bits);
        before.set(lane, sum - ones);
        let counts = ends.map(u64::count_ones);
        let all_ends = warp::inclusive_scan_add(warp::FULL_MASK, counts[0] + counts[1]);
        runends.set(2 * lane, ends[0]);
        runends.set(2 * lane + 1, ends[1]);
        ends_before.set(2 * lane, all_ends - counts[0] - counts[1]);
        ends_before.set(2 * lane + 1, all_ends - counts[1]);
        if lane == 31 {
            head.set(0, from);
            head.set(1, slot_blocks);
            head.set(2, sum);
        }
    }
}

/// Arguments of the kernel.
#[cfg(feature = "bodies")]
struct Arguments<F> {
    old: Global<u64>,
    slots: u64,
    parameters: Parameters,
    batch: Global<F>,
    n: usize,
    removes: bool,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    words: GlobalMut<u64>,
    totals: GlobalMut<u64>,
}

/// Lists a tile's items: the filter's, combined with those of the batch. Returns their number.
///
/// # Safety
/// The contract of [`quotient_rank_select_rebuild`]; all threads of the block come here together.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn list_items<F: Slot>(arguments: &Arguments<F>, first_block: u64, blocks: u32, items: Shared<F>) -> u32 {
    let Arguments { old, slots, parameters, batch, n, removes, totals, .. } = *arguments;
    let split: Split = parameters.split();
    let bits = split.remainder_bits;
    // No remainders are searched here.
    let filter = Blocks::with_fields(ReadOnly(old), slots / BLOCK_SLOTS, bits, 0);
    let at_of = || at(size_of::<F>() as u32);
    let batch_at: Shared<u64> = shared::dynamic(BATCH_AT);
    let head: Shared<u32> = shared::dynamic(HEAD_AT);
    let scratch: Shared<u32> = shared::dynamic(SCRATCH_AT);
    let (runends, ends_before): (Shared<u32>, Shared<u32>) =
        (shared::dynamic(at_of().runends), shared::dynamic(at_of().ends_before));
    let list: Shared<u32> = shared::dynamic(at_of().list);
    let parts: Shared<F> = shared::dynamic(at_of().parts);
    let (t, lane) = (thread::thread_idx_x(), warp::lane_id());
    let warp_index = t / 32;
    // SAFETY: shared regions do not overlap, and barriers separate writes and reads; the batch is read below `n`; there
    // is a block after the tile's.
    unsafe {
        if warp_index == 0 {
            stage(&filter, first_block, blocks, at_of());
        } else if warp_index < 3 {
            let block = first_block + if warp_index == 1 { 0 } else { blocks as u64 };
            let below = batch_below(batch, n, block * BLOCK_SLOTS, bits);
            if lane == 0 {
                batch_at.set(warp_index - 1, below as u64);
            }
        }
        thread::sync_threads();
        let (from, slot_blocks, occupied) = (head.get(0), head.get(1), head.get(2));
        let (batch_first, batch_end) = (batch_at.get(0), batch_at.get(1));
        let of_warp = |each: u32, all: u32| (warp_index * each, Ord::min((warp_index + 1) * each, all));
        let quotients = of_warp(QUOTIENT_PARTS, 2 * blocks);
        list_quotients(shared::dynamic(at_of().occupieds), shared::dynamic(at_of().before), quotients, 0, !0, list);
        thread::sync_threads();

        // Slots are counted from the first of the tile's quotients.
        let first_slot = from / 64 * 64;
        let slot_parts = of_warp(SLOT_PARTS, 2 * slot_blocks);
        let used = used_slots(slot_parts, |part| {
            let slot = first_slot + 32 * part + lane;
            let run = ones_before(runends, ends_before, part);
            slot >= from && run < occupied && list.get(run) <= slot
        });
        let (before, ours) = block::exclusive_scan::<Sum<u32>, WARPS>(used.count_ones(), scratch);
        let theirs = batch_end - batch_first;
        if slot_blocks == 0 || ours as u64 + theirs > ROOM as u64 {
            if t == 0 {
                atomic::reduce_or(totals.at(2), 1);
            }
            thread::sync_threads();
            return 0;
        }
        let theirs = theirs as u32;
        let to = if theirs == 0 { items } else { parts };
        let place = warp::shuffle_idx(warp::FULL_MASK, before, 0);
        for_each_used(slot_parts, used, place as u64, |part, place| {
            let quotient = list.get(ones_before(runends, ends_before, part));
            let quotient = F::of(first_block * BLOCK_SLOTS).plus(F::of(quotient as u64));
            let of_block = first_block + (from / 64 + part / 2) as u64;
            let remainders = old.at((of_block * (bits as u64 + REMAINDERS) + REMAINDERS) as usize);
            let remainder = F::read_field(remainders, (part % 2 * 32 + lane) * bits, bits);
            to.set(place as u32, F::joined(quotient, remainder, bits));
        });
        let mut j = t;
        while j < theirs {
            parts.set(ours + j, batch.read_nc(batch_first as usize + j as usize));
            j += BLOCK;
        }
        thread::sync_threads();
        if theirs == 0 {
            return ours;
        }
        let all = combine((parts, ours), (parts.at(ours), theirs), removes, items, scratch);
        thread::sync_threads();
        all
    }
}

/// Rebuilds one tile.
///
/// # Safety
/// The contract of [`quotient_rank_select_rebuild`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn rebuild<F: Slot>(arguments: Arguments<F>) {
    let Arguments { slots, parameters, look_back, ticket, words, totals, .. } = arguments;
    let split: Split = parameters.split();
    let (bits, keep) = (split.remainder_bits, parameters.keeps_duplicates());
    let all_items: Shared<F> = shared::dynamic(ITEMS_AT);
    let t = thread::thread_idx_x();
    // SAFETY: shared regions do not overlap, and barriers separate writes and reads; words are written by the contract
    // of `write`.
    unsafe {
        let tile = look_back::ticket(ticket, shared::dynamic(0));
        let first_block = tile as u64 * TILE_BLOCKS;
        let all_blocks = split.quotients() / BLOCK_SLOTS;
        let blocks = Ord::min(all_blocks - first_block, TILE_BLOCKS);
        let is_last = first_block + blocks == all_blocks;
        let n = list_items(&arguments, first_block, blocks as u32, all_items);

        let each = n.div_ceil(BLOCK) | 1;
        let first = Ord::min(t * each, n);
        let count = Ord::min(each, n - first);
        // The range begins before the first item. The tile before writes the offset of the tile's first block.
        let first_quotient = F::of(first_block * BLOCK_SLOTS);
        let before = if first > 0 { all_items.get(first - 1) } else { F::of(split.join(first_quotient.bits(), 0)) };
        let own = all_items.at(first);
        let (mut kept, mut follows) = (0u32, 0u32); // one bit per item
        let mut fill = F::Fillings::IDENTITY;
        let mut last = before;
        let mut i = 0;
        while i < count {
            let item = own.get(i);
            let any = first > 0 || i > 0;
            let quotient = item.quotient(bits);
            if keep || !any || item != last {
                kept |= 1 << i;
                let one = F::of(1);
                fill = F::Fillings::combine(fill, F::fill(Lift { floor: quotient.plus(one), add: one }));
            }
            if any && quotient == last.quotient(bits) {
                follows |= 1 << i;
            }
            last = item;
            i += 1;
        }
        let (in_block, all) = block::exclusive_scan::<F::Fillings, WARPS>(fill, shared::dynamic(SCRATCH_AT));
        let prefix = look_back::tile_prefix::<F::Fillings>(look_back, tile, all, shared::dynamic(PREFIX_AT));
        let total = F::lift(F::Fillings::combine(prefix, all));
        let end = total.apply(F::ZERO);
        if t == 0 && is_last {
            totals.write(0, total.add.bits());
            totals.write(1, end.bits());
        }
        let last_quotient = if n > 0 { all_items.get(n - 1).quotient(bits) } else { first_quotient };
        let limit = if is_last { slots } else { (first_block + blocks) * BLOCK_SLOTS };
        RankSelect::end(parameters, slots, last_quotient.bits(), limit, end.bits(), is_last, words);
        if n > 0 {
            let items = Items::new(own, count, kept, follows, before);
            let first_quotient = all_items.get(0).quotient(bits);
            let ends = Ends { free: F::lift(prefix).apply(F::ZERO), end, first_quotient, last_quotient };
            let free = F::lift(F::Fillings::combine(prefix, in_block)).apply(F::ZERO);
            let window = shared::dynamic(at(size_of::<F>() as u32).runends);
            write::<F, RankSelect>(&items, parameters, slots, ends, free, window, words);
        }
    }
}

kernel! {
    /// Writes the combination of a filter and an ascending batch of `n` `F` fingerprints: all of both or, if `removes`
    /// is 1, those of the filter that the batch does not cancel, one for one.
    ///
    /// # Safety
    /// - Launch: 1-D, [`BLOCK`] threads per block, a block for each [`TILE_BLOCKS`] blocks of 64 quotients,
    ///   [`shared_bytes`] of dynamic shared memory.
    /// - `old`: a sound filter of `slots` slots, fewer than [`MAX_SLOTS`], with these [`Parameters`], with at least
    ///   [`MIN_QUOTIENT_BITS`], not written while the kernel runs.
    /// - `batch`: `n` fingerprints, ascending, not written while the kernel runs.
    /// - `look_back`: [`look_back_words`] of the blocks, at a multiple of 16 bytes, and `ticket` one word: zero at
    ///   the start, used by this launch alone.
    /// - `words`: those of `slots` slots, zero at the start, used by this launch alone. Items that belong to other
    ///   slots are left out.
    /// - `totals`: three words, zero at the start, set to the number of fingerprints stored, to the slot after the
    ///   last, and to 1 if a tile has given up; then the words and the other totals are undefined.
    pub unsafe fn quotient_rank_select_rebuild<F>(
        old: Global<u64>, slots: u64, parameters: u32, batch: Global<F>, n: usize, removes: u32,
        look_back: GlobalMut<u64>, ticket: GlobalMut<u32>, words: GlobalMut<u64>, totals: GlobalMut<u64>,
    ) for [
        #[launch_bounds(256, 5)] u32 => quotient_rank_select_rebuild_u32,
        #[launch_bounds(256, 4)] u64 => quotient_rank_select_rebuild_u64,
    ] {
        let (parameters, removes) = (Parameters(parameters), removes != 0);
        let arguments =
            Arguments { old, slots, parameters, batch, n, removes, look_back, ticket, words, totals };
        // Some registers of the code after the items spill. One block fewer per processor, without spills, takes 1 to 2
        // % longer.
        allow::spill();
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { rebuild(arguments) }
    }
}
