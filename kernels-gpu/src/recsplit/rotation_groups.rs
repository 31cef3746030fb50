//! Keys of a leaf by rotation group, and the trials without a collision in any group.
//!
//! Groups change every [`REGROUP`] trials, and half a warp tries that many at a time. So all lanes of a half have the
//! same groups, and the keys are sorted once for all of them.

use warpset_core::recsplit::hash::{self, REGROUP};
use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK, lane_mask_lt};

use crate::recsplit::nodes::Mix;
#[cfg(feature = "bodies")]
use crate::recsplit::nodes::position_bit;

/// Lanes of half a warp, and trials that it takes at a time.
pub const HALF: u32 = REGROUP as u32;

/// Returns the words of shared memory for the sorted keys of a leaf.
pub const fn sorted_words(keys: u32) -> u32 {
    4 * keys
}

/// A leaf's keys by group, four words each: low and high word; zero for the first of a group and all ones for the
/// others; the group.
#[derive(Clone, Copy)]
pub struct Sorted(pub Shared<u32>);

#[cfg(feature = "bodies")]
impl Sorted {
    /// Sorts the keys of the lanes `lanes`, one each in those that are `valid`; returns whether every group has one.
    /// The groups are those of the trials from `first` on.
    ///
    /// # Safety
    /// - All lanes of the warp come here together; those of `lanes`, which include the caller, have the same arguments
    ///   except the key and whether it is valid.
    /// - The words have places for the keys, and no lane reads them until the warp has synchronised.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn sort(self, lanes: u32, key: u64, valid: bool, first: u64, groups: u32) -> bool {
        let group = hash::leaf_group_of(key, hash::leaf_group_multiplier(first), groups);
        // Lanes of smaller groups.
        let mut smaller_groups = 0u32;
        let (mut place, mut keep) = (0, 0);
        let mut full = true;
        for number in 0..6 {
            if number < groups {
                let member = valid && group == number;
                // SAFETY: this function's contract; `groups` is the same for the warp.
                let members = unsafe { warp::ballot(FULL_MASK, member) } & lanes;
                if member {
                    let before = (members & lane_mask_lt()).count_ones();
                    place = smaller_groups.count_ones() + before;
                    keep = if before == 0 { 0 } else { u32::MAX };
                }
                full &= members != 0;
                smaller_groups |= members;
            }
        }
        if valid {
            // SAFETY: places are distinct and below the number of keys.
            unsafe { self.0.set4(4 * place, [key as u32, (key >> 32) as u32, keep, group]) };
        }
        full
    }

    /// Whether a trial has no collision within any group.
    ///
    /// # Safety
    /// `keys` keys have been sorted, and nothing writes the words meanwhile.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn is_free<M: Mix>(self, keys: u32, start: u32, trial: u64) -> bool {
        let (mut taken, mut collisions) = (0u32, 0u32);
        let mut step = |i: u32| {
            // SAFETY: this function's contract; `i < keys`.
            let [low, high, keep, _] = unsafe { self.0.get4(4 * i) };
            let hash = hash::trial_hash(M::REMIX, (high as u64) << 32 | low as u64, start, trial);
            let bit = position_bit(hash, keys);
            let held = taken & keep;
            collisions |= held & bit;
            taken = held | bit;
        };
        let mut i = 0;
        while i + 4 <= keys {
            warpset_simt::unroll!(4, k, {
                step(i + k as u32);
            });
            i += 4;
        }
        while i < keys {
            step(i);
            i += 1;
        }
        collisions == 0
    }

    /// Returns the position of sorted key `i` under a trial, as a bit, and its group.
    ///
    /// # Safety
    /// The contract of [`is_free`](Self::is_free); `i < keys`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn position<M: Mix>(self, i: u32, keys: u32, start: u32, trial: u64) -> (u32, u32) {
        // SAFETY: this function's contract.
        let [low, high, _, group] = unsafe { self.0.get4(4 * i) };
        let hash = hash::trial_hash(M::REMIX, (high as u64) << 32 | low as u64, start, trial);
        (position_bit(hash, keys), group)
    }
}
