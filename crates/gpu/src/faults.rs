//! Operations that fail on a test's request.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// No operation is to fail.
const NONE: usize = usize::MAX;

/// Allocations and launches up to the one that fails.
type Left = Arc<AtomicUsize>;

thread_local! {
    /// State of the thread, as tests share a device, and of those threads that work for it.
    static LEFT: RefCell<Option<Left>> = const { RefCell::new(None) };
}

/// Lets `operations` more allocations and launches of this thread pass, and fails the next, as if memory were short or
/// the driver had refused it; `None` cancels that. Returns the number that were left, if no failure has occurred.
#[cfg(feature = "emulator")]
pub(crate) fn fail_after(operations: Option<usize>) -> Option<usize> {
    let before = LEFT.replace(operations.map(|left| Arc::new(AtomicUsize::new(left))));
    before.map(|left| left.load(Ordering::Relaxed)).filter(|&left| left != NONE)
}

/// Whether the calling operation is the one to fail.
pub(crate) fn strikes() -> bool {
    let less = |left: usize| (left != NONE).then(|| left.checked_sub(1).unwrap_or(NONE));
    let take = |left: &Left| left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) == Ok(0);
    LEFT.with_borrow(|left| left.as_ref().is_some_and(take))
}

/// Returns the faults planned for this thread.
pub(crate) fn of_this_thread() -> Option<Left> {
    LEFT.with_borrow(Option::clone)
}

/// Lets operations of this thread count with those of another.
pub(crate) fn share(left: Option<Left>) {
    LEFT.set(left);
}
