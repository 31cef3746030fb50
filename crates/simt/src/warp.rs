//! Warp-wide operations.
//!
//! A *collective* takes the mask of the lanes that take part. All of them must reach
//! the same call with the same mask; each must be in the mask; none may have exited.
//! Only [`sync_warp`] orders memory: the others exchange values and nothing else.
use crate::target::warp as imp;
use crate::{MatchWord, ShuffleWord};

/// All 32 lanes.
pub const FULL_MASK: u32 = !0;

/// Lanes in a warp.
pub const WARP_SIZE: u32 = 32;

/// Returns this thread's lane, below 32.
#[inline(always)]
#[must_use]
pub fn lane_id() -> u32 {
    imp::lane_id()
}

/// Returns the lanes before this one.
#[inline(always)]
#[must_use]
pub fn lane_mask_lt() -> u32 {
    imp::lane_mask_lt()
}

/// Returns the lanes before this one, and itself.
#[inline(always)]
#[must_use]
pub fn lane_mask_le() -> u32 {
    imp::lane_mask_le()
}

/// Returns the lanes after this one.
#[inline(always)]
#[must_use]
pub fn lane_mask_gt() -> u32 {
    imp::lane_mask_gt()
}

/// Returns this lane's own bit.
#[inline(always)]
#[must_use]
pub fn lane_mask_eq() -> u32 {
    imp::lane_mask_eq()
}

/// Returns the number of this thread's warp in its block: the linear thread index / 32.
#[inline(always)]
#[must_use]
pub fn warp_id() -> u32 {
    use crate::thread as t;
    (t::thread_idx_x() + t::block_dim_x() * (t::thread_idx_y() + t::block_dim_y() * t::thread_idx_z())) / WARP_SIZE
}

/// Returns some lanes that run together with this one, itself among them. The set may differ at the next instruction,
/// so it is good for statistics, and for opportunistic aggregation only after a [`ballot`] or the like over a known
/// mask.
#[inline(always)]
#[must_use]
pub fn active_mask() -> u32 {
    imp::active_mask()
}

macro_rules! collectives {
    ($($(#[$doc:meta])* $name:ident $(<$g:ident: $bound:ident>)? ($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// All lanes of `mask` reach this call with equal masks. No lane of `mask` has exited, and the caller is one of
        /// them.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name $(<$g: $bound>)? (mask: u32 $(, $arg: $ty)*) $(-> $ret)? {
            // SAFETY: the callee has this function's contract.
            unsafe { imp::$name(mask $(, $arg)*) }
        }
    )*};
}

collectives! {
    /// Waits for the lanes of `mask` and orders their memory accesses.
    sync_warp();
    /// Returns the `value` of lane `lane % 32`, which must be in `mask`; otherwise the result is arbitrary.
    shuffle_idx<T: ShuffleWord>(value: T, lane: u32) -> T;
    /// Returns the `value` of the lane `delta` before, or its own if there is none.
    shuffle_up<T: ShuffleWord>(value: T, delta: u32) -> T;
    /// Returns the `value` of the lane `delta` after, or its own if there is none.
    shuffle_down<T: ShuffleWord>(value: T, delta: u32) -> T;
    /// Returns the `value` of lane `lane_id() ^ lane_mask`.
    shuffle_xor<T: ShuffleWord>(value: T, lane_mask: u32) -> T;
    /// Returns the lanes of `mask` with a true `predicate`.
    ballot(predicate: bool) -> u32;
    /// Whether any lane's `predicate` is true.
    any(predicate: bool) -> bool;
    /// Whether every lane's `predicate` is true.
    all(predicate: bool) -> bool;
    /// Returns the lanes of `mask` with the `value` of this one.
    match_any<T: MatchWord>(value: T) -> u32;
    /// Returns the lanes of `mask` with the 8 low bits of this lane's `value`, by eight votes, which are faster than
    /// [`match_any`].
    match_low_byte(value: u32) -> u32;
    /// Sums `value`, wrapping, over the lanes of `mask`.
    reduce_add(value: u32) -> u32;
    /// Returns the minimum over the lanes of `mask`.
    reduce_min(value: u32) -> u32;
    /// Returns the maximum over the lanes of `mask`.
    reduce_max(value: u32) -> u32;
    /// Returns the AND over the lanes of `mask`.
    reduce_and(value: u32) -> u32;
    /// Returns the OR over the lanes of `mask`.
    reduce_or(value: u32) -> u32;
    /// Returns the XOR over the lanes of `mask`.
    reduce_xor(value: u32) -> u32;
}

/// Sums `value`, wrapping, over the lanes of `mask` up to and including this one.
///
/// # Safety
/// As for the collectives; besides, `mask` is a run of lanes that begins at lane 0.
#[inline(always)]
#[track_caller]
pub unsafe fn inclusive_scan_add(mask: u32, mut value: u32) -> u32 {
    let lane = lane_id();
    let mut delta = 1;
    while delta < WARP_SIZE {
        // SAFETY: the caller's lanes all come here, the same number of times.
        let before = unsafe { shuffle_up(mask, value, delta) };
        if lane >= delta {
            value = value.wrapping_add(before);
        }
        delta <<= 1;
    }
    value
}
