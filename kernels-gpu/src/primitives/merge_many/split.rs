//! Splits: the part of each run among the first items of the merge.
//!
//! A group of lanes, one per run, finds one split. For each run the split is known to be in `low..=high`, and both
//! bounds are themselves splits of some rank. In each round the lane with the widest range offers an item of it. Each
//! lane counts by a binary search its own items before that item; the sum, the item's rank, replaces one of the bounds.
//!
//! The item is chosen by interpolation, a little beyond the searched rank: so a distant bound comes near, and for two
//! runs of the same distribution the range shrinks to about its square root. Every fourth round halves the widest
//! range, whatever the keys, so that the search ends.

use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, ShuffleWord};

use crate::primitives::merge_path::MergeKey;

/// Returns the sum over the group's lanes.
///
/// # Safety
/// All lanes of the warp call this together with the same `group`, a power of two.
#[inline(always)]
#[track_caller]
unsafe fn sum(mut value: u64, group: u32) -> u64 {
    let mut distance = 1;
    while distance < group {
        // SAFETY: the loop is uniform in the warp.
        value += unsafe { warp::shuffle_xor(FULL_MASK, value, distance) };
        distance *= 2;
    }
    value
}

/// Returns the greatest value over the group's lanes.
///
/// # Safety
/// The contract of [`sum`].
#[inline(always)]
#[track_caller]
unsafe fn greatest(mut value: u64, group: u32) -> u64 {
    let mut distance = 1;
    while distance < group {
        // SAFETY: the loop is uniform in the warp.
        value = value.max(unsafe { warp::shuffle_xor(FULL_MASK, value, distance) });
        distance *= 2;
    }
    value
}

/// Returns an approximation of the square root.
#[inline(always)]
fn root(n: u64) -> u64 {
    1 << ((65 - n.leading_zeros()) / 2)
}

/// Returns `part` of `range` in proportion to `whole`, approximately, rounded down; at most `range`.
#[inline(always)]
fn share(part: u64, range: u64, whole: u64) -> u64 {
    let share = (part as f32 / whole as f32 * range as f32) as u64;
    if share < range { share } else { range }
}

/// Counts the items of the lane's run among the first `rank` of the merge; by groups of `group` lanes, each with a rank
/// of its own. `keys` is the run numbered as the lane in its group, and the count is known to be in `low..=high`.
///
/// # Safety
/// - All lanes of the warp call this together, with the same `group`, a power of two up to 32, and the same `mask`.
/// - The runs are sorted by the bits of `mask`, valid for `high` reads and not written meanwhile.
/// - `rank` is the group's own, and the bounds of all its lanes are the splits of two ranks, one at most `rank` and one
///   at least `rank`: the start of all runs or their ends, if nothing else is known.
#[inline(always)]
#[track_caller]
pub unsafe fn split_by_group<K: MergeKey + ShuffleWord>(
    keys: Global<K>,
    (mut low, mut high): (u64, u64),
    rank: u64,
    group: u32,
    mask: K,
) -> u64 {
    let lane = warp::lane_id();
    let mut round = 0u32;
    // SAFETY: the whole warp reaches the shuffles in each round, since the vote that ends the loop is uniform; items
    // are read in `low..high`, which is inside the run.
    unsafe {
        loop {
            let (below, above) = (sum(low, group), sum(high, group));
            let done = (below == rank) | (above == rank);
            if warp::all(FULL_MASK, done) {
                return if below == rank { low } else { high };
            }
            // Nothing changes for a finished group: its ranges are read, and bounds are kept.
            let range = high - low;
            let widest = greatest(range << 5 | u64::from(lane), group);
            let (offers, width) = (widest as u32 & 31, widest >> 5);
            let (from_below, from_above, whole) = (rank - below, above - rank, above - below);
            let near_below = from_below <= from_above;
            let nearer = if near_below { from_below } else { from_above };
            let aim = nearer + root(nearer);
            let halve = round % 4 == 3;
            let mut key = K::default();
            let mut place = 0;
            if (offers == lane) & !done {
                let step = if halve { width / 2 } else { share(aim, width, whole) };
                let step = if step < width { step } else { width - 1 };
                place = if near_below { low + step } else { high - 1 - step };
                key = keys.read_nc(place as usize) & mask;
            }
            let pivot = warp::shuffle_idx(FULL_MASK, key, offers);
            // Items before the pivot; in earlier runs those that equal it, too.
            let (mut from, mut to) = (low, high);
            if offers == lane {
                (from, to) = (place, place);
            }
            let before = |at: u64| {
                let own = keys.read_nc(at as usize) & mask;
                if lane < offers { own <= pivot } else { own < pivot }
            };
            if done {
                to = from;
            }
            if (from < to) & !halve {
                // The answer is expected near the nearer bound: one look further away than it should be.
                let guess = 2 * share(aim, range, whole) + 4;
                if guess < range {
                    let at = if near_below { low + guess } else { high - 1 - guess };
                    if before(at) {
                        from = at + 1;
                    } else {
                        to = at;
                    }
                }
            }
            while from < to {
                let middle = from + (to - from) / 2;
                if before(middle) {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
            let pivot_rank = sum(from, group);
            if !done {
                if pivot_rank < rank {
                    low = from + u64::from(offers == lane);
                } else {
                    high = from;
                }
            }
            round += 1;
        }
    }
}
