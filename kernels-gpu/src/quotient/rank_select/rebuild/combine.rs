//! Part of the batch for a tile, and its combination with the tile's items.

use warpset_core::scan::Sum;
use warpset_simt::shared::Shared;
use warpset_simt::{Global, thread, warp};

use super::{BLOCK, WARPS};
use crate::block;
use crate::quotient::layout::Slot;

/// Counts the quotients below `quotient` among `n` ascending fingerprints, by a warp: a lane for each of 32 parts.
///
/// # Safety
/// - All lanes of the warp come here together.
/// - `batch` is valid for `n` reads.
#[inline(always)]
pub(super) unsafe fn batch_below<F: Slot>(batch: Global<F>, n: usize, quotient: u64, remainder_bits: u32) -> usize {
    let (mut from, mut to) = (0, n);
    while from < to {
        let step = (to - from).div_ceil(32);
        let at = from + warp::lane_id() as usize * step;
        // SAFETY: `at < n`; the loop is the same for all lanes.
        let parts = unsafe {
            let is_below = at < to && batch.read_nc(at).quotient(remainder_bits).bits() < quotient;
            warp::ballot(warp::FULL_MASK, is_below).count_ones() as usize
        };
        if parts == 0 {
            return from;
        }
        // The first one that is not below is in the last part that begins with one below, or begins the next part.
        to = Ord::min(from + parts * step, to);
        from += (parts - 1) * step + 1;
    }
    from
}

/// Counts the items below `item` among `n` ascending ones; with `OR_EQUAL`, those not above it.
///
/// # Safety
/// `items` is valid for `n` reads.
#[inline(always)]
unsafe fn count_below<F: Slot, const OR_EQUAL: bool>(items: Shared<F>, n: u32, item: F) -> u32 {
    let (mut from, mut to) = (0, n);
    while from < to {
        let middle = (from + to) / 2;
        // SAFETY: `middle < n`.
        let other = unsafe { items.get(middle) };
        if other < item || OR_EQUAL && other == item {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// Writes the combination of `ours` and `theirs` to `to`, by all threads of a block. Returns its length.
///
/// # Safety
/// - All threads of the block come here together, after a barrier; another has to follow.
/// - Both are valid for reads of their lengths and ascend; `to` is valid for as many writes as both together, and
///   overlaps neither.
#[inline(always)]
pub(super) unsafe fn combine<F: Slot>(
    (ours, n): (Shared<F>, u32),
    (theirs, m): (Shared<F>, u32),
    removes: bool,
    to: Shared<F>,
    scratch: Shared<u32>,
) -> u32 {
    let t = thread::thread_idx_x();
    // SAFETY: items are read below their numbers; each has its own place.
    unsafe {
        if !removes {
            let mut i = t;
            while i < n {
                let item = ours.get(i);
                to.set(i + count_below::<F, false>(theirs, m, item), item);
                i += BLOCK;
            }
            let mut j = t;
            while j < m {
                let item = theirs.get(j);
                to.set(j + count_below::<F, true>(ours, n, item), item);
                j += BLOCK;
            }
            return n + m;
        }
        // The k-th of equal items goes if there are more than k to cancel them.
        let each = n.div_ceil(BLOCK) | 1;
        let (first, end) = (Ord::min(t * each, n), Ord::min((t + 1) * each, n));
        let mut kept = 0u32;
        let mut i = first;
        while i < end {
            let item = ours.get(i);
            let mut earlier = 0;
            if i > 0 && ours.get(i - 1) == item {
                earlier = i - count_below::<F, false>(ours, i, item);
            }
            let at = count_below::<F, false>(theirs, m, item) + earlier;
            if at >= m || theirs.get(at) != item {
                kept |= 1 << (i - first);
            }
            i += 1;
        }
        let (mut place, all) = block::exclusive_scan::<Sum<u32>, WARPS>(kept.count_ones(), scratch);
        let mut i = first;
        while i < end {
            if kept >> (i - first) & 1 != 0 {
                to.set(place, ours.get(i));
                place += 1;
            }
            i += 1;
        }
        all
    }
}
