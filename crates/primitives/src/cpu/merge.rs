//! Merging on host slices: see [`crate::merge`].
//!
//! Merge path cuts the output into parts of one length, each of which a task merges by itself.

mod many;

use warpset_base::parallel;

use crate::check::same_len;
use crate::sort::{Payload, SortKey};
use crate::{KeyMask, Result};

pub use many::{
    Marked, WithStatus, merge_many_keys, merge_many_keys_with_status, merge_many_pairs, merge_many_pairs_with_status,
    merge_newest_keys, merge_newest_pairs,
};

/// Items of a part.
const PART: usize = 1 << 15;

/// Merges two sorted runs of keys into `out`.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) unless `out` is as long as both runs.
pub fn merge_keys<K: SortKey>(a: &[K], b: &[K], mask: KeyMask<K>, out: &mut [K]) -> Result<()> {
    same_len("merged keys", a.len() + b.len(), out.len())?;
    parallel::for_each(out.chunks_mut(PART).enumerate(), |(part, out)| {
        let (mut at_a, mut at_b) = crossing(a, b, part * PART, mask);
        for key in out {
            let from_a = from_first(a, b, at_a, at_b, mask);
            *key = if from_a { a[at_a] } else { b[at_b] };
            at_a += usize::from(from_a);
            at_b += usize::from(!from_a);
        }
    });
    Ok(())
}

/// Merges two sorted runs of keys with values into `out_keys` and `out_values`.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) unless there are as many values as keys, in the runs and merged.
pub fn merge_pairs<K: SortKey, V: Payload>(
    (a, a_values): (&[K], &[V]),
    (b, b_values): (&[K], &[V]),
    mask: KeyMask<K>,
    out_keys: &mut [K],
    out_values: &mut [V],
) -> Result<()> {
    same_len("values of a run", a.len(), a_values.len())?;
    same_len("values of a run", b.len(), b_values.len())?;
    same_len("merged keys", a.len() + b.len(), out_keys.len())?;
    same_len("merged values", out_keys.len(), out_values.len())?;
    let parts = out_keys.chunks_mut(PART).zip(out_values.chunks_mut(PART));
    parallel::for_each(parts.enumerate(), |(part, (keys, values))| {
        let (mut at_a, mut at_b) = crossing(a, b, part * PART, mask);
        for (key, value) in keys.iter_mut().zip(values) {
            let from_a = from_first(a, b, at_a, at_b, mask);
            (*key, *value) = if from_a { (a[at_a], a_values[at_a]) } else { (b[at_b], b_values[at_b]) };
            at_a += usize::from(from_a);
            at_b += usize::from(!from_a);
        }
    });
    Ok(())
}

/// Whether the next item comes from `a`; one of the runs has items left.
#[inline]
fn from_first<K: SortKey>(a: &[K], b: &[K], at_a: usize, at_b: usize, mask: KeyMask<K>) -> bool {
    at_b >= b.len() || (at_a < a.len() && mask.of(a[at_a]) <= mask.of(b[at_b]))
}

/// How many of the first `diagonal` items of the merge come from `a`, and how many from `b`.
fn crossing<K: SortKey>(a: &[K], b: &[K], diagonal: usize, mask: KeyMask<K>) -> (usize, usize) {
    let (mut low, mut high) = (diagonal.saturating_sub(b.len()), diagonal.min(a.len()));
    while low < high {
        let middle = low + (high - low) / 2;
        if mask.of(a[middle]) <= mask.of(b[diagonal - 1 - middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low, diagonal - low)
}
