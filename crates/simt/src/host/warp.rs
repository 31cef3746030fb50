//! Lanes and collectives.
use super::engine;
use super::operation::Collective;
use super::word::{MatchWord, ShuffleWord};

pub fn lane_id() -> u32 {
    engine::with(|engine| engine.shape.lane)
}

pub fn lane_mask_lt() -> u32 {
    lane_mask_eq() - 1
}

pub fn lane_mask_le() -> u32 {
    lane_mask_eq() | lane_mask_lt()
}

pub fn lane_mask_gt() -> u32 {
    !lane_mask_le()
}

pub fn lane_mask_eq() -> u32 {
    1 << lane_id()
}

/// Returns this lane alone, because the device promises no more.
pub fn active_mask() -> u32 {
    lane_mask_eq()
}

/// Meets the lanes of `mask`.
///
/// # Safety
/// The contract of [`warp::sync_warp`](crate::warp::sync_warp).
#[track_caller]
pub unsafe fn sync_warp(mask: u32) {
    engine::collective(Collective::Sync, mask, 0, 0);
}

macro_rules! shuffles {
    ($($name:ident = $op:ident;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[track_caller]
        pub unsafe fn $name<T: ShuffleWord>(mask: u32, value: T, x: u32) -> T {
            let [low, high] = value.to_halves();
            let low = engine::collective(Collective::$op, mask, low, x);
            let has_high = size_of::<T>() > size_of::<u64>();
            let high = if has_high { engine::collective(Collective::$op, mask, high, x) } else { 0 };
            T::from_halves([low, high])
        }
    )*};
}

shuffles! {
    shuffle_idx = ShuffleIdx;
    shuffle_up = ShuffleUp;
    shuffle_down = ShuffleDown;
    shuffle_xor = ShuffleXor;
}

/// Returns the lanes with a true `predicate`.
///
/// # Safety
/// The contract of [`warp::ballot`](crate::warp::ballot).
#[track_caller]
pub unsafe fn ballot(mask: u32, predicate: bool) -> u32 {
    engine::collective(Collective::Ballot, mask, u64::from(predicate), 0) as u32
}

/// Whether any lane's `predicate` is true.
///
/// # Safety
/// The contract of [`warp::any`](crate::warp::any).
#[track_caller]
pub unsafe fn any(mask: u32, predicate: bool) -> bool {
    engine::collective(Collective::Any, mask, u64::from(predicate), 0) != 0
}

/// Whether all lanes' `predicate` is true.
///
/// # Safety
/// The contract of [`warp::all`](crate::warp::all).
#[track_caller]
pub unsafe fn all(mask: u32, predicate: bool) -> bool {
    engine::collective(Collective::All, mask, u64::from(predicate), 0) != 0
}

/// Finds the lanes with the same value.
///
/// # Safety
/// The contract of [`warp::match_any`](crate::warp::match_any).
#[track_caller]
pub unsafe fn match_any<T: MatchWord>(mask: u32, value: T) -> u32 {
    engine::collective(Collective::MatchAny, mask, value.to_bits(), 0) as u32
}

/// Finds the lanes with the same low byte.
///
/// # Safety
/// The contract of [`warp::match_low_byte`](crate::warp::match_low_byte).
#[track_caller]
pub unsafe fn match_low_byte(mask: u32, value: u32) -> u32 {
    engine::collective(Collective::MatchAny, mask, u64::from(value & 0xff), 0) as u32
}

macro_rules! reductions {
    ($($name:ident = $op:ident;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[track_caller]
        pub unsafe fn $name(mask: u32, value: u32) -> u32 {
            engine::collective(Collective::$op, mask, u64::from(value), 0) as u32
        }
    )*};
}

reductions! {
    reduce_add = Add;
    reduce_min = Min;
    reduce_max = Max;
    reduce_and = And;
    reduce_or = Or;
    reduce_xor = Xor;
}
