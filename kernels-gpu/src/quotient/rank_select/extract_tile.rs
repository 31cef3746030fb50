//! Tile of an extraction from a rank-and-select quotient filter: fingerprints in ascending order, with counters or
//! without.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section IV-E and algorithm 8, with ranks and selections as in algorithm 2.
//!
//! A tile lists its occupied quotients in shared memory, after earlier quotients with runs that reach into it; the
//! offset of its first block gives the number of these. Then every slot can find its run
//! ([`runs`](crate::quotient::rank_select::runs)). Only the place in the output needs a scan, over the slots in use.

use warpset_core::bits::ReadWords;
use warpset_core::quotient::Split;
use warpset_core::quotient::rank_select::{Blocks, Metadata, metadata_words};
use warpset_core::quotient::slots::BLOCK_SLOTS;
use warpset_core::scan::{Count, Sum};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, thread, warp};

use crate::quotient::memory::{Fingerprint, ReadOnly};
#[cfg(feature = "bodies")]
use crate::quotient::rank_select::runs::{ends_below, for_each_used, list_quotients, ones_before, used_slots};
use crate::{block, look_back};

/// Threads of a block.
pub const BLOCK: u32 = 256;
/// Blocks of 64 slots in a tile.
pub const TILE_BLOCKS: u64 = 64;

const WARPS: u32 = BLOCK / 32;
/// Parts of 32 slots per warp.
const PARTS: u32 = 2 * TILE_BLOCKS as u32 / WARPS;
/// Number of runs listed before the tile, and with those of the tile.
const LISTED_AT: u32 = 4;
const PREFIX_AT: u32 = 16;
const SCRATCH_AT: u32 = 32;
/// Run ends in each block of slots, and before it in the tile.
const RUNENDS_AT: u32 = SCRATCH_AT + block::scratch_bytes::<u32>(WARPS);
const ENDS_BEFORE_AT: u32 = RUNENDS_AT + 8 * TILE_BLOCKS as u32;
/// Occupied quotients in each block of quotients, and before it in the tile.
const OCCUPIEDS_AT: u32 = ENDS_BEFORE_AT + 4 * TILE_BLOCKS as u32;
const BEFORE_AT: u32 = OCCUPIEDS_AT + 8 * TILE_BLOCKS as u32;
const LIST_AT: u32 = BEFORE_AT + 4 * TILE_BLOCKS as u32;
/// Most runs with slots in a tile.
const LIST: u32 = TILE_BLOCKS as u32 * 64 + 1;

/// Returns the dynamic shared memory for fingerprints of that many bytes, in bytes.
pub const fn shared_bytes(fingerprint_bytes: usize) -> u32 {
    LIST_AT + LIST * fingerprint_bytes as u32
}

/// Returns the words of the look-back of that many tiles.
pub const fn look_back_words(tiles: usize) -> usize {
    look_back::words::<Count>(tiles)
}

/// Writes metadata and counts of a tile's blocks to shared memory, by one warp. Returns the number of runs of earlier
/// quotients that end in the tile or after it, of occupied quotients of the tile, and of runs that end in it.
///
/// # Safety
/// - All lanes of the warp come here together; a barrier follows before the shared memory is read.
/// - The filter has the blocks.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn stage<const COUNTED: bool>(
    filter: &Blocks<ReadOnly, COUNTED>,
    first_block: u64,
    blocks: u32,
) -> (u64, u32, u32) {
    let runends: Shared<u64> = shared::dynamic(RUNENDS_AT);
    let occupieds: Shared<u64> = shared::dynamic(OCCUPIEDS_AT);
    let before: Shared<u32> = shared::dynamic(BEFORE_AT);
    let ends_before: Shared<u32> = shared::dynamic(ENDS_BEFORE_AT);
    let lane = warp::lane_id();
    let offset = filter.metadata(first_block).offset;
    let mut ends = 0;
    // The low half counts occupied quotients, the high half run ends.
    let mut both = [0; 2];
    for k in 0..2 {
        let block = 2 * lane + k;
        if block < blocks {
            let of_block: Metadata = filter.metadata(first_block + block as u64);
            both[k as usize] = of_block.occupieds.count_ones() | of_block.runends.count_ones() << 16;
            ends += ends_below(of_block.runends, offset.saturating_sub(block as u64 * BLOCK_SLOTS));
            // SAFETY: each block has places of its own.
            unsafe {
                runends.set(block, of_block.runends);
                occupieds.set(block, of_block.occupieds);
            }
        }
    }
    // SAFETY: the whole warp comes here; each block has a place of its own.
    unsafe {
        let sum = warp::inclusive_scan_add(warp::FULL_MASK, both[0] + both[1]);
        for (k, sum) in [sum - both[0] - both[1], sum - both[1]].into_iter().enumerate() {
            before.set(2 * lane + k as u32, sum & 0xffff);
            ends_before.set(2 * lane + k as u32, sum >> 16);
        }
        let all = warp::shuffle_idx(warp::FULL_MASK, sum, 31);
        let here = warp::shuffle_idx(warp::FULL_MASK, warp::inclusive_scan_add(warp::FULL_MASK, ends), 31);
        let mut reaching = here as u64;
        // These runs reach past the tile.
        let mut next = first_block + TILE_BLOCKS;
        let end = first_block.saturating_mul(BLOCK_SLOTS).saturating_add(offset).min(filter.slots());
        while next * BLOCK_SLOTS < end {
            let block = next + lane as u64;
            let mut ones = 0;
            if block * BLOCK_SLOTS < end {
                ones = ends_below(filter.runends(block), end - block * BLOCK_SLOTS);
            }
            let sum = warp::inclusive_scan_add(warp::FULL_MASK, ones);
            reaching += warp::shuffle_idx(warp::FULL_MASK, sum, 31) as u64;
            next += 32;
        }
        (reaching, all & 0xffff, all >> 16)
    }
}

/// Lists the first `listed` of the last `reaching` occupied quotients before a tile, by one warp, as the start of their
/// fingerprints.
///
/// # Safety
/// - All lanes of the warp come here together; a barrier follows before the list is read.
/// - The list has `listed` places.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn list_before<F: Fingerprint, const COUNTED: bool>(
    filter: &Blocks<ReadOnly, COUNTED>,
    split: Split,
    dropped: u32,
    first_block: u64,
    reaching: u64,
    listed: u32,
    list: Shared<F>,
) {
    let lane = warp::lane_id();
    // Quotients are counted from the tile backwards.
    let (from, mut passed, mut end) = (reaching - listed as u64, 0, first_block);
    while end > 0 && passed < reaching {
        let mut bits = 0;
        if (lane as u64) < end {
            bits = filter.metadata(end - 1 - lane as u64).occupieds;
        }
        let ones = bits.count_ones();
        // SAFETY: loops and votes are the same for the whole warp; each quotient has its own place.
        unsafe {
            let sum = warp::inclusive_scan_add(warp::FULL_MASK, ones);
            let rank = passed + (sum - ones) as u64;
            let is_listed = rank < reaching && rank + ones as u64 > from;
            let mut lanes = warp::ballot(warp::FULL_MASK, is_listed);
            while lanes != 0 {
                let at = lanes.trailing_zeros();
                lanes &= lanes - 1;
                let bits = warp::shuffle_idx(warp::FULL_MASK, bits, at);
                let rank = warp::shuffle_idx(warp::FULL_MASK, rank, at);
                for half in 0..2 {
                    let bit = lane + 32 * half;
                    let rank = rank + (bits >> bit >> 1).count_ones() as u64;
                    if bits >> bit & 1 != 0 && from <= rank && rank < reaching {
                        let quotient = (end - 1 - at as u64) * BLOCK_SLOTS + bit as u64;
                        list.set((reaching - 1 - rank) as u32, F::of(split.join(quotient, 0) >> dropped));
                    }
                }
            }
            passed += warp::shuffle_idx(warp::FULL_MASK, sum, 31) as u64;
        }
        end = end.saturating_sub(32);
    }
}

/// Extracts one tile. `digits` marks a block's slots with digits of counters, by halves of 32; they are skipped. `put`
/// gets the place of each other item, its slot and its fingerprint; `finish` gets the number of items up to the end of
/// the tile.
///
/// # Safety
/// The contract of `quotient_rank_select_extract`; `words` are those of `filter`, without or with counters.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn extract<F: Fingerprint, const COUNTED: bool>(
    words: Global<u64>,
    filter: Blocks<ReadOnly, COUNTED>,
    split: Split,
    dropped: u32,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    digits: impl Fn(u64, u32) -> u32,
    put: impl Fn(u64, u64, F),
    finish: impl Fn(u64, u64),
) {
    let metadata = metadata_words(COUNTED);
    let number: Shared<u32> = shared::dynamic(0);
    let listed_at: Shared<u32> = shared::dynamic(LISTED_AT);
    let prefix_slot: Shared<u32> = shared::dynamic(PREFIX_AT);
    let scratch: Shared<u32> = shared::dynamic(SCRATCH_AT);
    let runends: Shared<u32> = shared::dynamic(RUNENDS_AT);
    let ends_before: Shared<u32> = shared::dynamic(ENDS_BEFORE_AT);
    let list: Shared<F> = shared::dynamic(LIST_AT);
    let (t, lane) = (thread::thread_idx_x(), warp::lane_id());
    let bits = split.remainder_bits;
    // SAFETY: shared regions do not overlap, and barriers separate writes and reads; blocks are those of the filter;
    // places below `n` are written, one thread per item.
    unsafe {
        let tile = look_back::ticket(ticket, number) as u64;
        let first_block = tile * TILE_BLOCKS;
        let blocks = Ord::min(filter.blocks() - first_block, TILE_BLOCKS) as u32;
        let (mut reaching, mut listed) = (0, 0);
        if t < 32 {
            let (occupied, all_ends);
            (reaching, occupied, all_ends) = stage(&filter, first_block, blocks);
            listed = Ord::min(reaching, all_ends as u64 + 1) as u32;
            if lane == 0 {
                listed_at.set(0, listed);
                listed_at.set(1, listed + occupied);
            }
        }
        thread::sync_threads();
        if t < 32 && reaching > 0 {
            list_before(&filter, split, dropped, first_block, reaching, listed, list);
        }
        let (listed, runs) = (listed_at.get(0), listed_at.get(1));
        let parts = (t / 32 * PARTS, Ord::min((t / 32 + 1) * PARTS, 2 * blocks));
        list_quotients(shared::dynamic(OCCUPIEDS_AT), shared::dynamic(BEFORE_AT), parts, listed, LIST, list);
        thread::sync_threads();

        let mut used = used_slots(parts, |part| {
            let run = ones_before(runends, ends_before, part);
            run < listed || run < runs && list.get(run).bits() <= (32 * part + lane) as u64
        });
        if COUNTED && parts.0 + lane < parts.1 {
            let part = parts.0 + lane;
            used &= !digits(first_block + part as u64 / 2, part % 2);
        }
        let (before, all) = block::exclusive_scan::<Sum<u32>, WARPS>(used.count_ones(), scratch);
        let in_tile = warp::shuffle_idx(warp::FULL_MASK, before, 0);
        let Count(prefix) =
            look_back::tile_prefix::<Sum<Count>>(look_back, tile as usize, Count(all as u64), prefix_slot);
        if t == 0 {
            finish(tile, prefix + all as u64);
        }
        for_each_used(parts, used, prefix + in_tile as u64, |part, place| {
            let run = ones_before(runends, ends_before, part);
            let item = list.get(run).bits();
            let begin = if run < listed { item } else { split.join(first_block * BLOCK_SLOTS + item, 0) >> dropped };
            let block = first_block + part as u64 / 2;
            let remainders = ReadOnly(words.at((block * (bits as u64 + metadata) + metadata) as usize));
            let slot = part % 2 * 32 + lane;
            let remainder = remainders.field((slot * bits) as u64, bits);
            put(place, block * BLOCK_SLOTS + slot as u64, F::of(begin | remainder >> dropped));
        });
    }
}
