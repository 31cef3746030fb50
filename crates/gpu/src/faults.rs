//! Operations that fail because a test wants them to.

use std::cell::Cell;

/// No operation is to fail.
const NONE: usize = usize::MAX;

thread_local! {
    /// Allocations and launches of this thread up to the one that fails. Of the thread, as tests share a device.
    static LEFT: Cell<usize> = const { Cell::new(NONE) };
}

/// Lets `operations` more allocations and launches of this thread pass, and fails the next, as if memory were short or the driver
/// had refused it; `None` takes that back. Returns how many were left, if the one has not come.
pub(crate) fn fail_after(operations: Option<usize>) -> Option<usize> {
    Some(LEFT.replace(operations.unwrap_or(NONE))).filter(|&left| left != NONE)
}

/// Whether the operation that asks is the one.
pub(crate) fn strikes() -> bool {
    let left = LEFT.get();
    if left != NONE {
        LEFT.set(left.checked_sub(1).unwrap_or(NONE));
    }
    left == 0
}
