//! Reductions on host slices: see [`crate::reduce`].

use warpset_base::parallel;
use warpset_core::scan::{Operator, Sum};

use super::scan::PART;
use crate::Result;
use crate::check::same_len;
use crate::error::check_len;

/// Combines all items, in their order.
pub fn reduce<O: Operator>(input: &[O::Value]) -> O::Value {
    let fold = |part: &[O::Value]| part.iter().copied().fold(O::IDENTITY, O::combine);
    let parts = parallel::map(input.chunks(PART), fold);
    fold(&parts)
}

/// Writes for each run of equal neighbouring keys, in order, its key and its values combined; returns the number of
/// runs. Both outputs have room for all items.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) unless there is a value for each key, or an output is too short.
pub fn reduce_by_key<O: Operator, K: Copy + PartialEq + Send + Sync>(
    keys: &[K],
    values: &[O::Value],
    out_keys: &mut [K],
    out_values: &mut [O::Value],
) -> Result<usize> {
    same_len("values of keys", keys.len(), values.len())?;
    by_run::<O, K>(keys, |i| values[i], out_keys, out_values)
}

/// Writes for each run of equal neighbouring items, in order, the item and its length; returns the number of runs. Both
/// outputs have room for all items.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) if an output is too short.
pub fn run_length_encode<K: Copy + PartialEq + Send + Sync>(
    items: &[K],
    out_items: &mut [K],
    lengths: &mut [u64],
) -> Result<usize> {
    by_run::<Sum<u64>, K>(items, |_| 1, out_items, lengths)
}

/// Parts begin where runs begin. Each counts its runs, and then writes them after those of the parts before it.
fn by_run<O: Operator, K: Copy + PartialEq + Send + Sync>(
    keys: &[K],
    value: impl Fn(usize) -> O::Value + Sync,
    out_keys: &mut [K],
    out_values: &mut [O::Value],
) -> Result<usize> {
    let n = keys.len();
    check_len("keys of runs", n, out_keys.len())?;
    check_len("values of runs", n, out_values.len())?;
    let is_head = |i: usize| i == 0 || keys[i] != keys[i - 1];
    // The first run that begins at or after the part's first item.
    let start = |part: usize| (part * PART..n).find(|&i| is_head(i)).unwrap_or(n);
    let starts: Vec<usize> = (0..=n.div_ceil(PART)).map(|part| if part * PART < n { start(part) } else { n }).collect();
    let parts: Vec<(usize, usize)> = starts.windows(2).map(|pair| (pair[0], pair[1])).collect();
    let counts = parallel::map(&parts, |&(a, b)| (a..b).filter(|&i| is_head(i)).count());
    let (mut rest_keys, mut rest_values) = (out_keys, out_values);
    let mut targets = Vec::with_capacity(parts.len());
    for (&range, &count) in parts.iter().zip(&counts) {
        let (keys, after) = std::mem::take(&mut rest_keys).split_at_mut(count);
        rest_keys = after;
        let (values, after) = std::mem::take(&mut rest_values).split_at_mut(count);
        rest_values = after;
        targets.push((range, keys, values));
    }
    parallel::for_each(targets, |((first, end), out_keys, out_values)| {
        let mut run = 0;
        for (i, &key) in (first..end).zip(&keys[first..end]) {
            if is_head(i) {
                out_keys[run] = key;
                out_values[run] = value(i);
                run += 1;
            } else {
                out_values[run - 1] = O::combine(out_values[run - 1], value(i));
            }
        }
    });
    Ok(counts.iter().sum())
}
