//! Kernel that extracts the fingerprints of a standard quotient filter in ascending order.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section IV-E and algorithm 8.
//!
//! Departures. The paper writes a fingerprint for each slot, and compacts. Here one pass does both: a scan with
//! look-back over the numbers of items gives a tile's first place in the output. The paper walks from each slot to the
//! start of its cluster and back. Here the `j`-th run belongs to the `j`-th occupied quotient. So a second scan, over
//! occupied quotients less run starts, gives the number of runs *pending* at a block of 64 slots: their quotients lie
//! before it, and they begin in it or later. The quotient of an item then is a selection in a word.

use warpset_core::bits::select;
use warpset_core::quotient::Split;
use warpset_core::quotient::slots::{
    BLOCK_SLOTS, ByteSlots, CONTINUATION, Container, OCCUPIED, PackedSlots, SHIFTED, Slots,
};
use warpset_core::scan::{Lift, Operator};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, thread, warp};

use crate::quotient::memory::{Fill, Fingerprint, Parameters, ReadOnly};
use crate::{block, look_back};

/// Threads of a block.
pub const BLOCK: u32 = 256;
/// Blocks of 64 slots in a tile of an extraction.
pub const TILE_BLOCKS: u64 = 64;
/// Dynamic shared memory of an extraction, in bytes.
pub const SHARED_BYTES: u32 = SCRATCH_AT + block::scratch_bytes::<Fill>(WARPS);

const WARPS: u32 = BLOCK / 32;
const PREFIX_AT: u32 = 16;
/// Quotient of the run in which the tile begins.
const ANCHOR_AT: u32 = 32;
/// Rows per block of slots: the three words of metadata, places before it, runs pending at it.
const OCCUPIEDS_AT: u32 = 48;
const CONTINUATIONS_AT: u32 = OCCUPIEDS_AT + ROW;
const SHIFTEDS_AT: u32 = CONTINUATIONS_AT + ROW;
const PLACES_AT: u32 = SHIFTEDS_AT + ROW;
const PENDING_AT: u32 = PLACES_AT + ROW;
const SCRATCH_AT: u32 = PENDING_AT + ROW;
const ROW: u32 = 8 * TILE_BLOCKS as u32;

/// Returns the words of the look-back of that many tiles.
pub const fn look_back_words(tiles: usize) -> usize {
    look_back::words::<Fill>(tiles)
}

/// Sums of items, and of occupied quotients less run starts. Partial sums of the second may be negative, and are taken
/// modulo 2^62; from the first block on they are not.
#[cfg(feature = "bodies")]
struct Sums;

#[cfg(feature = "bodies")]
impl Operator for Sums {
    type Value = Fill;
    const IDENTITY: Fill = Fill(Lift { floor: 0, add: 0 });
    #[inline(always)]
    fn combine(before: Fill, after: Fill) -> Fill {
        let (a, b) = (before.0, after.0);
        let pending = a.add.wrapping_add(b.add) & look_back::PAYLOAD;
        Fill(Lift { floor: a.floor.wrapping_add(b.floor), add: pending })
    }
}

/// Access to the words of metadata of a block.
#[cfg(feature = "bodies")]
trait Metadata: Slots {
    /// Writes occupied, continuation and shifted bits of the tile's blocks to their rows, by all threads of a block.
    ///
    /// # Safety
    /// - The rows belong to the block.
    /// - A barrier follows before they are read.
    unsafe fn stage(&self, first_block: u64, blocks: u64);
}

#[cfg(feature = "bodies")]
impl Metadata for PackedSlots<ReadOnly> {
    #[inline(always)]
    unsafe fn stage(&self, first_block: u64, blocks: u64) {
        let rows: Shared<u64> = shared::dynamic(OCCUPIEDS_AT);
        let t = thread::thread_idx_x();
        if (t as u64) < blocks {
            let [occupied, continues, shifted] = self.metadata_words(first_block + t as u64);
            // SAFETY: one place per thread in each row.
            unsafe {
                rows.set(t, occupied);
                rows.set(ROW / 8 + t, continues);
                rows.set(2 * (ROW / 8) + t, shifted);
            }
        }
    }
}

#[cfg(feature = "bodies")]
impl Metadata for ByteSlots<ReadOnly> {
    #[inline(always)]
    unsafe fn stage(&self, first_block: u64, blocks: u64) {
        let rows: Shared<u32> = shared::dynamic(OCCUPIEDS_AT);
        let lane = warp::lane_id();
        let mut half = thread::thread_idx_x() / 32;
        while (half as u64) < 2 * blocks {
            let metadata = self.metadata(first_block * BLOCK_SLOTS + (32 * half + lane) as u64);
            // SAFETY: the whole warp comes here; one lane writes the warp's own place in each row.
            unsafe {
                let occupied = warp::ballot(warp::FULL_MASK, metadata & OCCUPIED != 0);
                let continues = warp::ballot(warp::FULL_MASK, metadata & CONTINUATION != 0);
                let shifted = warp::ballot(warp::FULL_MASK, metadata & SHIFTED != 0);
                if lane == 0 {
                    rows.set(half, occupied);
                    rows.set(ROW / 4 + half, continues);
                    rows.set(2 * (ROW / 4) + half, shifted);
                }
            }
            half += WARPS;
        }
    }
}

/// Returns the quotient before `block` with `rank` occupied ones between itself and the block.
#[cfg(feature = "bodies")]
#[inline(always)]
fn occupied_before<S: Metadata>(slots: &S, mut block: u64, mut rank: u64) -> u64 {
    while block > 0 {
        block -= 1;
        let bits = slots.metadata_words(block)[0];
        let ones = bits.count_ones() as u64;
        if rank < ones {
            return block * BLOCK_SLOTS + select(bits, (ones - 1 - rank) as u32) as u64;
        }
        rank -= ones;
    }
    0 // from damaged memory only
}

/// Returns what [`occupied_before`] does, by a warp, one block per lane at a time; all lanes get the answer.
///
/// # Safety
/// All lanes of the warp come here together, with the same arguments.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn occupied_before_by_warp<S: Metadata>(slots: &S, mut block: u64, mut rank: u64) -> u64 {
    let lane = warp::lane_id() as u64;
    while block > 0 {
        let bits = if lane < block { slots.metadata_words(block - 1 - lane)[0] } else { 0 };
        let ones = bits.count_ones();
        // SAFETY: the loop is the same for all lanes.
        unsafe {
            let sum = warp::inclusive_scan_add(warp::FULL_MASK, ones);
            let reached = warp::ballot(warp::FULL_MASK, sum as u64 > rank);
            if reached != 0 {
                let at = reached.trailing_zeros();
                let mut quotient = 0;
                if lane == at as u64 {
                    let rank = rank as u32 - (sum - ones);
                    quotient = (block - 1 - lane) * BLOCK_SLOTS + select(bits, ones - 1 - rank) as u64;
                }
                return warp::shuffle_idx(warp::FULL_MASK, quotient, at);
            }
            rank -= warp::shuffle_idx(warp::FULL_MASK, sum, 31) as u64;
        }
        block = block.saturating_sub(32);
    }
    0 // from damaged memory only
}

/// Extracts one tile.
///
/// # Safety
/// The contract of [`quotient_extract`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn extract<F: Fingerprint, S: Metadata>(
    slots: S,
    split: Split,
    dropped: u32,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    out: GlobalMut<F>,
    n: u64,
) {
    let number: Shared<u32> = shared::dynamic(0);
    let prefix_slot: Shared<u32> = shared::dynamic(PREFIX_AT);
    let anchor_at: Shared<u64> = shared::dynamic(ANCHOR_AT);
    let occupieds: Shared<u64> = shared::dynamic(OCCUPIEDS_AT);
    let continuations: Shared<u64> = shared::dynamic(CONTINUATIONS_AT);
    let shifteds: Shared<u64> = shared::dynamic(SHIFTEDS_AT);
    let places: Shared<u64> = shared::dynamic(PLACES_AT);
    let pendings: Shared<u64> = shared::dynamic(PENDING_AT);
    let scratch: Shared<u32> = shared::dynamic(SCRATCH_AT);
    let t = thread::thread_idx_x();
    // SAFETY: shared regions do not overlap, and barriers separate writes and reads (the scan and the look-back have
    // one each); slots are those of whole blocks below `slots.len()`; places below `n` are written, one thread per
    // item.
    unsafe {
        let tile = look_back::ticket(ticket, number) as u64;
        let first_block = tile * TILE_BLOCKS;
        let blocks = Ord::min(slots.len() / BLOCK_SLOTS - first_block, TILE_BLOCKS);
        slots.stage(first_block, blocks);
        thread::sync_threads();

        let mut sums = Sums::IDENTITY;
        if (t as u64) < blocks {
            let (occupied, continues) = (occupieds.get(t), continuations.get(t));
            let used = occupied | shifteds.get(t);
            let begin = (used & !continues).count_ones() as u64;
            let pending = (occupied.count_ones() as u64).wrapping_sub(begin) & look_back::PAYLOAD;
            sums = Fill(Lift { floor: used.count_ones() as u64, add: pending });
        }
        let (before, all) = block::exclusive_scan::<Sums, WARPS>(sums, scratch);
        let prefix = look_back::tile_prefix::<Sums>(look_back, tile as usize, all, prefix_slot);
        let pending_first = prefix.0.add;
        if (t as u64) < blocks {
            let Fill(here) = Sums::combine(prefix, before);
            places.set(t, here.floor);
            pendings.set(t, here.add);
        }
        if t < warp::WARP_SIZE && continuations.get(0) & 1 != 0 {
            let anchor = occupied_before_by_warp(&slots, first_block, pending_first);
            if t == 0 {
                anchor_at.set(0, anchor);
            }
        }
        thread::sync_threads();

        let mut at = t;
        while (at as u64) < blocks * BLOCK_SLOTS {
            let (block, slot) = (at / 64, at % 64);
            let occupied = occupieds.get(block);
            let used = occupied | shifteds.get(block);
            if used >> slot & 1 != 0 {
                let below = (1u64 << slot) - 1;
                let place = places.get(block) + (used & below).count_ones() as u64;
                // These runs have begun in this block, that of this item included.
                let begun = (used & !continuations.get(block) & (below << 1 | 1)).count_ones() as u64;
                let pending = pendings.get(block);
                let quotient = if begun > pending {
                    (first_block + block as u64) * BLOCK_SLOTS + select(occupied, (begun - pending - 1) as u32) as u64
                } else {
                    // `rank` quotients lie between this one and the block.
                    let mut rank = pending - begun;
                    let mut earlier = block;
                    let mut found = !0;
                    while earlier > 0 && found == !0 {
                        earlier -= 1;
                        let bits = occupieds.get(earlier);
                        let ones = bits.count_ones() as u64;
                        if rank < ones {
                            found = (first_block + earlier as u64) * BLOCK_SLOTS
                                + select(bits, (ones - 1 - rank) as u32) as u64;
                        } else {
                            rank -= ones;
                        }
                    }
                    if found != !0 {
                        found
                    } else if rank == pending_first && continuations.get(0) & 1 != 0 {
                        anchor_at.get(0)
                    } else {
                        occupied_before(&slots, first_block, rank)
                    }
                };
                if place < n {
                    let remainder = slots.remainder((first_block + block as u64) * BLOCK_SLOTS + slot as u64);
                    out.write(place as usize, F::of(split.join(quotient, remainder) >> dropped));
                }
            }
            at += BLOCK;
        }
    }
}

kernel! {
    /// Extracts a filter's fingerprints, ascending, without `dropped` low bits, as `F`.
    ///
    /// # Safety
    /// - Launch: 1-D, a block of [`BLOCK`] threads for each [`TILE_BLOCKS`] blocks of 64 slots, [`SHARED_BYTES`]
    ///   of dynamic shared memory.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`], not written while the kernel runs.
    /// - `look_back`: [`look_back_words`] of the tiles, at a multiple of 16 bytes, and `ticket` one
    ///   word: zero at the start, used by this launch alone.
    /// - `out`: `n` places, used by this launch alone, wide enough; items from the `n`-th on are left out.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_extract<F>(
        words: Global<u64>, slots: u64, parameters: u32, dropped: u32, look_back: GlobalMut<u64>,
        ticket: GlobalMut<u32>, out: GlobalMut<F>, n: u64,
    ) for [u32 => quotient_extract_u32, u64 => quotient_extract_u64] {
        let parameters = Parameters(parameters);
        let split = parameters.split();
        let words = ReadOnly(words);
        // SAFETY: the caller keeps this kernel's contract; the container is the same for all threads.
        unsafe {
            match parameters.container() {
                Container::Bytes => {
                    let slots = ByteSlots::new(words, slots, split.remainder_bits);
                    extract(slots, split, dropped, look_back, ticket, out, n);
                }
                Container::Packed => {
                    let slots = PackedSlots::new(words, slots, split.remainder_bits);
                    extract(slots, split, dropped, look_back, ticket, out, n);
                }
            }
        }
    }
}
