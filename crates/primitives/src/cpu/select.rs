//! Selection on host slices: see [`crate::select`].
//!
//! Two passes over parts of the input, one after the other in memory but side by side in time: the first counts what
//! each part keeps, the second writes it where the counts before it end.

use warpset_base::parallel;
use warpset_kernels::primitives::predicate::Predicate;

use crate::Result;
use crate::check::same_len;
use crate::error::check_len;

/// Items of a part: enough that a task's start does not count, few enough for all threads to have some.
const PART: usize = 1 << 14;

/// Copies the items whose bit is set in `bitmap` (bit `i % 64` of word `i / 64`) to the start of `out`, in order, and
/// returns their number. `out` has room for all items.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) if the bitmap or `out` are too short.
pub fn select<T: Copy + Send + Sync>(items: &[T], bitmap: &[u64], out: &mut [T]) -> Result<usize> {
    check_len("the bitmap's words", items.len().div_ceil(64), bitmap.len())?;
    compact(items, out, |i| bitmap[i / 64] >> (i % 64) & 1 != 0)
}

/// [`select`] of the items whose flag is not 0.
///
/// # Errors
/// The errors of [`select`]; there is a flag for each item.
pub fn select_flagged<T: Copy + Send + Sync>(items: &[T], flags: &[u8], out: &mut [T]) -> Result<usize> {
    same_len("flags", items.len(), flags.len())?;
    compact(items, out, |i| flags[i] != 0)
}

/// [`select`] of the items that a predicate keeps.
///
/// # Errors
/// The errors of [`select`].
pub fn select_if<T: Copy + Send + Sync>(items: &[T], predicate: impl Predicate<T>, out: &mut [T]) -> Result<usize> {
    compact(items, out, |i| predicate.keep(items[i]))
}

/// [`select`] of the items that differ from the one before them: of sorted items each one once.
///
/// # Errors
/// The errors of [`select`].
pub fn unique<T: Copy + Send + Sync + PartialEq>(items: &[T], out: &mut [T]) -> Result<usize> {
    compact(items, out, |i| i == 0 || items[i - 1] != items[i])
}

/// Copies the keys that differ from the one before them, with their values, and returns their number.
///
/// # Errors
/// The errors of [`select`]; there is a value for each key.
pub fn unique_by_key<K: Copy + Send + Sync + PartialEq, V: Copy + Send + Sync>(
    keys: &[K],
    values: &[V],
    out_keys: &mut [K],
    out_values: &mut [V],
) -> Result<usize> {
    same_len("values", keys.len(), values.len())?;
    let differs = |i: usize| i == 0 || keys[i - 1] != keys[i];
    compact(keys, out_keys, differs)?;
    compact(values, out_values, differs)
}

/// [`select`], and the items whose bit is not set go to the start of `rejected`, in order too.
///
/// # Errors
/// The errors of [`select`].
pub fn partition<T: Copy + Send + Sync>(
    items: &[T],
    bitmap: &[u64],
    out: &mut [T],
    rejected: &mut [T],
) -> Result<usize> {
    let count = select(items, bitmap, out)?;
    compact(items, rejected, |i| bitmap[i / 64] >> (i % 64) & 1 == 0)?;
    Ok(count)
}

/// [`select_flagged`], and the items whose flag is 0 go to the start of `rejected`, in order too.
///
/// # Errors
/// The errors of [`select_flagged`].
pub fn partition_flagged<T: Copy + Send + Sync>(
    items: &[T],
    flags: &[u8],
    out: &mut [T],
    rejected: &mut [T],
) -> Result<usize> {
    let count = select_flagged(items, flags, out)?;
    compact(items, rejected, |i| flags[i] == 0)?;
    Ok(count)
}

/// [`select_if`], and the items that the predicate does not keep go to the start of `rejected`, in order too.
///
/// # Errors
/// The errors of [`select`].
pub fn partition_if<T: Copy + Send + Sync>(
    items: &[T],
    predicate: impl Predicate<T>,
    out: &mut [T],
    rejected: &mut [T],
) -> Result<usize> {
    let count = select_if(items, predicate, out)?;
    compact(items, rejected, |i| !predicate.keep(items[i]))?;
    Ok(count)
}

/// Keeps the items for whose place `keep` says so.
fn compact<T: Copy + Send + Sync>(items: &[T], out: &mut [T], keep: impl Fn(usize) -> bool + Sync) -> Result<usize> {
    check_len("selected items", items.len(), out.len())?;
    let parts = items.len().div_ceil(PART);
    let range = |part: usize| part * PART..items.len().min((part + 1) * PART);
    let counts = parallel::map(0..parts, |part| range(part).filter(|&i| keep(i)).count());
    let mut rest = &mut out[..];
    let mut targets = Vec::with_capacity(parts);
    for &count in &counts {
        let (target, others) = std::mem::take(&mut rest).split_at_mut(count);
        targets.push(target);
        rest = others;
    }
    parallel::for_each(targets.into_iter().enumerate(), |(part, target)| {
        let kept = range(part).filter(|&i| keep(i));
        target.iter_mut().zip(kept).for_each(|(slot, i)| *slot = items[i]);
    });
    Ok(counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;
    use warpset_base::filter::LengthMismatch;

    #[test]
    fn keeps_order_across_parts() {
        for n in [0, 1, 63, 64, 65, PART - 1, PART, PART + 1, 5 * PART + 7] {
            let items: Vec<u32> = (0..n as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
            for one_in in [1, 2, 3, 1000, u32::MAX] {
                let keep = |i: usize| items[i].is_multiple_of(one_in);
                let mut bitmap = vec![0u64; n.div_ceil(64)];
                (0..n).filter(|&i| keep(i)).for_each(|i| bitmap[i / 64] |= 1 << (i % 64));
                let expected: Vec<u32> = (0..n).filter(|&i| keep(i)).map(|i| items[i]).collect();
                let mut out = vec![7; n];
                let kept = select(&items, &bitmap, &mut out).unwrap();
                assert_eq!(out[..kept], expected, "{n} items, one in {one_in}");
                assert!(out[kept..].iter().all(|&x| x == 7));
            }
        }
    }

    #[test]
    fn short_outputs_are_errors() {
        let short = select(&[1u32; 65], &[0], &mut [0; 65]);
        assert!(matches!(short, Err(Error::LengthMismatch(LengthMismatch { needed: 2, found: 1, .. }))));
        let short = select(&[1u32; 65], &[0; 2], &mut [0; 64]);
        assert!(matches!(short, Err(Error::LengthMismatch(LengthMismatch { needed: 65, found: 64, .. }))));
    }
}
