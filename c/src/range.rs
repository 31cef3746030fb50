//! Ranges in range filters.

use crate::error::{guard, warpset_status};
use crate::handle::content;
use crate::keys::{array_mut, warpset_keys};
use crate::map::bounds;
use crate::object::warpset_structure;

/// Writes whether any key of a range filter may lie from `firsts` to `lasts`, both included: `answers[i]` is 1 or 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_range_filter_may_contain(
    structure: *const warpset_structure,
    firsts: *const warpset_keys,
    lasts: *const warpset_keys,
    answers: *mut u8,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, (firsts, lasts)) = (content(structure)?, bounds(firsts, lasts)?);
        let answers = array_mut(answers, firsts.len(), "answers")?;
        held.read()?.may_contain_ranges(&firsts, &lasts, answers)
    })
}

/// Writes an upper bound of the number of different keys from `firsts` to `lasts`, both included, to `counts[i]`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_range_filter_count_at_most(
    structure: *const warpset_structure,
    firsts: *const warpset_keys,
    lasts: *const warpset_keys,
    counts: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (held, (firsts, lasts)) = (content(structure)?, bounds(firsts, lasts)?);
        let counts = array_mut(counts, firsts.len(), "counts")?;
        held.read()?.count_ranges_at_most(&firsts, &lasts, counts)
    })
}
