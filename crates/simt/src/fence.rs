//! Memory fences, named by scope.
//!
//! A fence is both acquire and release. Read-modify-write atomics and relaxed loads
//! and stores order nothing by themselves: put a fence before the store that
//! publishes and after the load that observes.
use crate::target::fence as imp;

/// Orders this thread's accesses for the threads of its block (`fence.acq_rel.cta`).
#[inline(always)]
#[track_caller]
pub fn block() {
    imp::block();
}

/// Orders this thread's accesses for all threads of the device (`fence.acq_rel.gpu`).
#[inline(always)]
#[track_caller]
pub fn device() {
    imp::device();
}

/// Orders this thread's accesses for the host and other devices too (`fence.acq_rel.sys`).
#[inline(always)]
#[track_caller]
pub fn system() {
    imp::system();
}
