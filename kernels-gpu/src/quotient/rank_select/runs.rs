//! Runs of the slots of a tile in shared memory.
//!
//! A slot with `k` run ends before it, counted from the start of the first run, belongs to the run of the `k`-th
//! occupied quotient, if that one does not come after the slot; otherwise it is empty. With a list of the occupied
//! quotients the selection is one access. Slots and quotients are taken in *parts* of 32, one per lane of a warp.

use warpset_core::bits::lowest;
use warpset_simt::shared::Shared;
use warpset_simt::warp;

use crate::quotient::memory::Fingerprint;

/// Parts with memory accesses in flight at the same time.
const AT_ONCE: u32 = 4;

/// Counts the runs that end in a block's first slots, up to `offset` of them.
#[inline(always)]
pub fn ends_below(runends: u64, offset: u64) -> u32 {
    if offset < 64 { (runends & lowest(offset as u32)).count_ones() } else { runends.count_ones() }
}

/// Counts the ones before the lane's bit of a part, given those before each block of two parts.
///
/// # Safety
/// Both have been written, and no thread writes them at the same time.
#[inline(always)]
pub unsafe fn ones_before(words: Shared<u32>, before: Shared<u32>, part: u32) -> u32 {
    // SAFETY: the contract is the same.
    unsafe {
        let mut ones = before.get(part / 2);
        if part % 2 != 0 {
            ones += words.get(part - 1).count_ones();
        }
        ones + (words.get(part) & warp::lane_mask_lt()).count_ones()
    }
}

/// Lists the occupied quotients of the parts `from..to`, counted from that of the first, by a warp. The first goes to
/// place `first`; those from place `room` on are left out.
///
/// # Safety
/// - The contract of [`ones_before`].
/// - The list has `room` places, and no other thread writes these places.
#[inline(always)]
pub unsafe fn list_quotients<F: Fingerprint>(
    occupieds: Shared<u32>,
    before: Shared<u32>,
    (from, to): (u32, u32),
    first: u32,
    room: u32,
    list: Shared<F>,
) {
    let lane = warp::lane_id();
    let mut part = from;
    while part < to {
        // SAFETY: the contract is the same.
        unsafe {
            let place = first + ones_before(occupieds, before, part);
            if occupieds.get(part) >> lane & 1 != 0 && place < room {
                list.set(place, F::of((32 * part + lane) as u64));
            }
        }
        part += 1;
    }
}

/// Finds the used slots of the parts `from..to`, up to 32 parts, by a warp. Returns those of the `h`-th part in lane
/// `h`.
///
/// # Safety
/// All lanes of the warp come here together, with the same `from` and `to`.
#[inline(always)]
pub unsafe fn used_slots((from, to): (u32, u32), is_used: impl Fn(u32) -> bool) -> u32 {
    let mut used = 0;
    let mut part = from;
    while part < to {
        for k in 0..AT_ONCE {
            // SAFETY: `part`, `k` and `to` are equal in all lanes, by the contract, so all lanes reach this or none.
            unsafe {
                if part + k < to {
                    let here = warp::ballot(warp::FULL_MASK, is_used(part + k));
                    if warp::lane_id() == part + k - from {
                        used = here;
                    }
                }
            }
        }
        part += AT_ONCE;
    }
    used
}

/// Passes the part and the place of the lane's slot to `put`, for each part in which it is used. `place` is that of the
/// warp's first used slot.
///
/// # Safety
/// The contract of [`used_slots`] for the same parts; `used` is its result.
#[inline(always)]
pub unsafe fn for_each_used((from, to): (u32, u32), used: u32, place: u64, mut put: impl FnMut(u32, u64)) {
    let mut place = place;
    let mut part = from;
    while part < to {
        for k in 0..AT_ONCE {
            // SAFETY: `part`, `k` and `to` are equal in all lanes, by the contract, so all lanes reach this or none.
            let here = unsafe { warp::shuffle_idx(warp::FULL_MASK, used, part + k - from) };
            if here >> warp::lane_id() & 1 != 0 {
                put(part + k, place + (here & warp::lane_mask_lt()).count_ones() as u64);
            }
            place += here.count_ones() as u64;
        }
        part += AT_ONCE;
    }
}
