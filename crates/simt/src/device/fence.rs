//! Fences. core's `fence` is at system scope, twice as slow as the device's.
use core::arch::asm;

#[inline(always)]
pub fn block() {
    // SAFETY: orders memory, touches none.
    unsafe { asm!("fence.acq_rel.cta;", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub fn device() {
    // SAFETY: orders memory, touches none.
    unsafe { asm!("fence.acq_rel.gpu;", options(nostack, preserves_flags)) };
}

#[inline(always)]
pub fn system() {
    // SAFETY: orders memory, touches none.
    unsafe { asm!("fence.acq_rel.sys;", options(nostack, preserves_flags)) };
}
