//! Warp intrinsics, which LLVM treats as convergent.
use core::arch::asm;

use super::word::{MatchWord, ShuffleWord};

#[allow(improper_ctypes)]
unsafe extern "C" {
    #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
    fn sreg_laneid() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.lanemask.lt"]
    fn sreg_lanemask_lt() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.lanemask.le"]
    fn sreg_lanemask_le() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.lanemask.gt"]
    fn sreg_lanemask_gt() -> u32;
    #[link_name = "llvm.nvvm.read.ptx.sreg.lanemask.eq"]
    fn sreg_lanemask_eq() -> u32;
    #[link_name = "llvm.nvvm.activemask"]
    fn activemask() -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: u32);
    #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
    fn shfl_idx(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
    fn shfl_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
    fn shfl_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shfl_xor(mask: u32, value: u32, lane_mask: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.vote.ballot.sync"]
    fn vote_ballot(mask: u32, predicate: bool) -> u32;
    #[link_name = "llvm.nvvm.vote.any.sync"]
    fn vote_any(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.vote.all.sync"]
    fn vote_all(mask: u32, predicate: bool) -> bool;
    #[link_name = "llvm.nvvm.match.any.sync.i32"]
    fn match_any_32(mask: u32, value: u32) -> u32;
    #[link_name = "llvm.nvvm.match.any.sync.i64"]
    fn match_any_64(mask: u32, value: u64) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.add"]
    fn redux_add(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umin"]
    fn redux_min(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.umax"]
    fn redux_max(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.and"]
    fn redux_and(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.or"]
    fn redux_or(value: u32, mask: u32) -> u32;
    #[link_name = "llvm.nvvm.redux.sync.xor"]
    fn redux_xor(value: u32, mask: u32) -> u32;
}

macro_rules! registers {
    ($($name:ident = $intrinsic:ident;)*) => {$(
        #[inline(always)]
        pub fn $name() -> u32 {
            // SAFETY: reads a special register.
            unsafe { $intrinsic() }
        }
    )*};
}

registers! {
    lane_id = sreg_laneid;
    lane_mask_lt = sreg_lanemask_lt;
    lane_mask_le = sreg_lanemask_le;
    lane_mask_gt = sreg_lanemask_gt;
    lane_mask_eq = sreg_lanemask_eq;
    active_mask = activemask;
}

macro_rules! votes {
    ($($name:ident -> $ret:ty = $intrinsic:ident;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $name(mask: u32, predicate: bool) -> $ret {
            // SAFETY: the caller's lanes all come here with the same mask.
            unsafe { $intrinsic(mask, predicate) }
        }
    )*};
}

macro_rules! reductions {
    ($($name:ident = $intrinsic:ident;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $name(mask: u32, value: u32) -> u32 {
            // SAFETY: the caller's lanes all come here with the same mask.
            unsafe { $intrinsic(value, mask) }
        }
    )*};
}

votes! {
    ballot -> u32 = vote_ballot;
    any -> bool = vote_any;
    all -> bool = vote_all;
}

reductions! {
    reduce_add = redux_add;
    reduce_min = redux_min;
    reduce_max = redux_max;
    reduce_and = redux_and;
    reduce_or = redux_or;
    reduce_xor = redux_xor;
}

/// Meets the lanes of `mask`.
///
/// # Safety
/// The contract of [`warp::sync_warp`](crate::warp::sync_warp).
#[inline(always)]
pub unsafe fn sync_warp(mask: u32) {
    // SAFETY: the caller's lanes all come here with the same mask.
    unsafe { bar_warp_sync(mask) }
}

macro_rules! shuffles {
    ($($name:ident = $intrinsic:ident, $clamp:literal;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $name<T: ShuffleWord>(mask: u32, value: T, x: u32) -> T {
            // SAFETY: the caller's lanes all come here with the same mask, once per half.
            value.by_halves(|half| unsafe { $intrinsic(mask, half, x, $clamp) })
        }
    )*};
}

shuffles! {
    shuffle_idx = shfl_idx, 31;
    shuffle_up = shfl_up, 0;
    shuffle_down = shfl_down, 31;
    shuffle_xor = shfl_xor, 31;
}

/// Finds the lanes with the same value.
///
/// # Safety
/// The contract of [`warp::match_any`](crate::warp::match_any).
#[inline(always)]
pub unsafe fn match_any<T: MatchWord>(mask: u32, value: T) -> u32 {
    // SAFETY: the caller's lanes all come here with the same mask.
    unsafe {
        if size_of::<T>() == 4 { match_any_32(mask, value.bits() as u32) } else { match_any_64(mask, value.bits()) }
    }
}

/// Finds the lanes with the same low byte.
///
/// # Safety
/// The contract of [`warp::match_low_byte`](crate::warp::match_low_byte).
#[inline(always)]
pub unsafe fn match_low_byte(mask: u32, value: u32) -> u32 {
    /// ANDs to `{peers}` the lanes that agree in bits `$low` and `$high` (masks). Lanes whose bit is clear invert the
    /// vote round; one predicate per bit serves both, which LLVM's own rewriting of the test prevents.
    macro_rules! two_bits {
        ($low:literal, $high:literal) => {
            concat!(
                "and.b32 v, {x}, ",
                $low,
                "; setp.ne.u32 p, v, 0; vote.sync.ballot.b32 v, p, {m}; @!p not.b32 v, v; ",
                "and.b32 w, {x}, ",
                $high,
                "; setp.ne.u32 p, w, 0; vote.sync.ballot.b32 w, p, {m}; @!p not.b32 w, w; ",
                "lop3.b32 {peers}, {peers}, v, w, 0x80;"
            )
        };
    }
    let mut peers = mask;
    // SAFETY: votes, which all lanes of the caller reach with the same mask. Neither `pure` nor `nomem`: LLVM does not
    // treat them as convergent, and must leave them in place.
    unsafe {
        asm!(
            "{{ .reg .pred p; .reg .b32 v, w;",
            two_bits!(1, 2),
            two_bits!(4, 8),
            two_bits!(16, 32),
            two_bits!(64, 128),
            "}}",
            x = in(reg32) value,
            m = in(reg32) mask,
            peers = inout(reg32) peers,
            options(nostack, preserves_flags)
        );
    }
    peers
}
