//! Trial hashes of one key for many trials, one trial per lane.
//!
//! Source: section 5.3.1. Departure: the fold of 64 to 32 bits takes two instructions instead of two additions, two
//! blends and an exclusive or. The halves of a key are broadcast, and the trial numbers are added to the low half. The
//! carry into the high half, which occurs once in 2^32 trials, cannot occur before a trial that the largest key
//! determines ([`carry_from`]). From that trial on a version with carry runs.

use crate::u32_vector::U32Vector;
use warpset_core::recsplit::hash::{MULTIPLIER_1, MULTIPLIER_2};

/// Constants of a node in vectors.
#[derive(Clone, Copy)]
pub(super) struct Hasher<V> {
    start: V,
    multiplier_1: V,
    multiplier_2: V,
}

impl<V: U32Vector> Hasher<V> {
    /// Broadcasts the constants.
    ///
    /// # Safety
    /// - The conditions of [`U32Vector`].
    #[inline(always)]
    pub(super) unsafe fn new(start: u32) -> Self {
        // SAFETY: the processor has the instructions, by this function's contract.
        unsafe {
            Self { start: V::splat(start), multiplier_1: V::splat(MULTIPLIER_1), multiplier_2: V::splat(MULTIPLIER_2) }
        }
    }

    /// Returns the trial hashes of `key` for the trials `trial`; `trial_high` are their high halves.
    ///
    /// # Safety
    /// - The conditions of [`U32Vector`].
    /// - Without `CARRY`, no lane of `trial` carries beyond 32 bits when it is added to the key's low half.
    #[inline(always)]
    pub(super) unsafe fn hash<const CARRY: bool>(self, key: u64, trial: V, trial_high: u32) -> V {
        // SAFETY: the processor has the instructions, by this function's contract.
        unsafe {
            let low = V::splat(key as u32).add(trial);
            let mut high = V::splat((key >> 32) as u32);
            if CARRY {
                high = high.add(V::splat(trial_high)).add_if_less(low, trial, V::splat(1));
            }
            self.mix(low, high)
        }
    }

    /// Folds and mixes the halves of sums.
    ///
    /// # Safety
    /// - The conditions of [`U32Vector`].
    #[inline(always)]
    pub(super) unsafe fn mix(self, low: V, high: V) -> V {
        // SAFETY: the processor has the instructions, by this function's contract.
        unsafe {
            let mixed = low.xor3(high, self.start).mul(self.multiplier_1);
            mixed.xor(mixed.shr::<15>()).mul(self.multiplier_2)
        }
    }
}

/// Returns the first trial that may need the version with carry.
#[inline(always)]
pub(super) fn carry_from(keys: &[u64]) -> u64 {
    let largest = keys.iter().fold(0, |largest, &key| largest.max(key as u32));
    // A multiple of every vector's length.
    u64::from(u32::MAX - largest) / 64 * 64
}
