//! Division of the interval from the least key to the greatest into parts of equal width.

use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{ShuffleWord, thread};

use crate::primitives::ranking::SortKey;

/// Interval of compared parts of keys, cut into parts. A lesser key is in an earlier part or in the same one.
#[derive(Clone, Copy)]
pub(super) struct Interval<K> {
    least: K,
    /// Low bits that are ignored, so that 32 are left.
    shift: u32,
    /// Parts per step of `1 << shift`, times 2^32, rounded down.
    factor: u64,
}

impl<K: SortKey> Interval<K> {
    /// Returns the interval from `least` to `greatest`, both inside, with fewer than 2^16 parts.
    #[inline(always)]
    pub(super) fn new(least: K, greatest: K, parts: u32) -> Self {
        let range = greatest.minus(least);
        let shift = range.significant_bits().saturating_sub(32);
        Interval { least, shift, factor: ((parts as u64) << 32) / (range.shifted(shift) as u64 + 1) }
    }

    /// Returns the part of a value inside, below the number of parts.
    #[inline(always)]
    pub(super) fn part(self, compared: K) -> u32 {
        // A range of 32 bits needs no shift.
        let shift = if size_of::<K>() == 4 { 0 } else { self.shift };
        let steps = compared.minus(self.least).shifted(shift);
        ((steps as u64 * self.factor) >> 32) as u32
    }
}

/// Combines the values of all lanes by `pick`.
///
/// # Safety
/// All lanes of the warp call this together.
#[inline(always)]
unsafe fn over_warp<K: ShuffleWord>(mut value: K, pick: impl Fn(K, K) -> K) -> K {
    let mut distance = 1;
    while distance < warp::WARP_SIZE {
        // SAFETY: the loop is uniform in the warp.
        value = pick(value, unsafe { warp::shuffle_xor(FULL_MASK, value, distance) });
        distance *= 2;
    }
    value
}

/// Returns the least and the greatest over the threads of a block of `WARPS` warps. One barrier.
///
/// # Safety
/// - All threads of the block call this together.
/// - `scratch` is valid for two values per warp, and nothing else accesses it until the next barrier.
#[inline(always)]
pub(super) unsafe fn bounds_of_block<K: SortKey + ShuffleWord, const WARPS: u32>(
    (least, greatest): (K, K),
    scratch: Shared<K>,
) -> (K, K) {
    let lane = warp::lane_id();
    // SAFETY: whole warps reach the shuffles; there are two places per warp, and a barrier before they are read.
    unsafe {
        let (least, greatest) = (over_warp(least, K::min), over_warp(greatest, K::max));
        if lane == 0 {
            scratch.set(thread::thread_idx_x() / 32, least);
            scratch.set(WARPS + thread::thread_idx_x() / 32, greatest);
        }
        thread::sync_threads();
        let warp = if lane < WARPS { lane } else { 0 };
        (over_warp(scratch.get(warp), K::min), over_warp(scratch.get(WARPS + warp), K::max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_ascend_and_stay_below_their_number() {
        let greatest = [0, 1, 99, 1 << 31, u64::from(u32::MAX), 1 << 32, (1 << 40) + 12345, u64::MAX - 7];
        for (range, parts) in greatest.into_iter().flat_map(|range| [1, 2, 132, 256, 16_384].map(|p| (range, p))) {
            for least in [0, 7] {
                let interval = Interval::new(least, least + range, parts);
                let steps: Vec<u64> = (0..=1000u128).map(|i| (u128::from(range) * i / 1000) as u64).collect();
                let of_all: Vec<u32> = steps.iter().map(|step| interval.part(least + step)).collect();
                assert!(of_all.is_sorted() && of_all[0] == 0 && of_all[1000] < parts, "{range} in {parts}");
                if range >= 1 << 20 {
                    assert_eq!(of_all[1000], parts - 1);
                    assert!(of_all[500].abs_diff(parts / 2) <= 1);
                }
                if least + range <= u64::from(u32::MAX) {
                    let narrow = Interval::new(least as u32, (least + range) as u32, parts);
                    assert!(steps.iter().all(|s| narrow.part((least + s) as u32) == interval.part(least + s)));
                }
                // Middle bits of a wider range; the low ones are ignored.
                let place = |x: u64| (u128::from(x) << 40) + 5;
                let wide = Interval::new(place(least), place(least + range), parts);
                let same = |s: &u64| wide.part(place(least + s)) == interval.part(least + s);
                assert!(range < 1 << 32 || steps.iter().all(same));
            }
        }
    }
}
