//! Search in host slices: see [`crate::search`].

use warpset_base::parallel;

use crate::check::same_len;
use crate::sort::SortKey;
use crate::{KeyMask, Result};

/// Needles of a task.
const PART: usize = 1 << 12;

/// Writes for each needle the number of keys below it.
///
/// # Errors
/// [`LengthMismatch`](crate::Error::LengthMismatch) unless `out` has a place for each needle.
pub fn lower_bound<K: SortKey>(keys: &[K], needles: &[K], mask: KeyMask<K>, out: &mut [u64]) -> Result<()> {
    search(needles, out, |needle| keys.partition_point(|&key| mask.of(key) < mask.of(needle)))
}

/// Writes for each needle the number of keys not above it.
///
/// # Errors
/// The errors of [`lower_bound`].
pub fn upper_bound<K: SortKey>(keys: &[K], needles: &[K], mask: KeyMask<K>, out: &mut [u64]) -> Result<()> {
    search(needles, out, |needle| keys.partition_point(|&key| mask.of(key) <= mask.of(needle)))
}

/// [`lower_bound`] for needles that are sorted as the keys are.
///
/// # Errors
/// The errors of [`lower_bound`].
pub fn lower_bound_sorted<K: SortKey>(keys: &[K], needles: &[K], mask: KeyMask<K>, out: &mut [u64]) -> Result<()> {
    search_sorted(keys, needles, out, |key, needle| mask.of(key) < mask.of(needle))
}

/// [`upper_bound`] for needles that are sorted as the keys are.
///
/// # Errors
/// The errors of [`lower_bound`].
pub fn upper_bound_sorted<K: SortKey>(keys: &[K], needles: &[K], mask: KeyMask<K>, out: &mut [u64]) -> Result<()> {
    search_sorted(keys, needles, out, |key, needle| mask.of(key) <= mask.of(needle))
}

fn search<K: SortKey>(needles: &[K], out: &mut [u64], place: impl Fn(K) -> usize + Sync) -> Result<()> {
    same_len("places of needles", needles.len(), out.len())?;
    let parts = out.chunks_mut(PART).zip(needles.chunks(PART));
    parallel::for_each(parts, |(out, needles)| {
        out.iter_mut().zip(needles).for_each(|(to, &needle)| *to = place(needle) as u64);
    });
    Ok(())
}

/// A task searches its first needle among all keys, and each other one after the one before: in steps that double, then
/// by halving, so that the cost of a needle grows with the logarithm of its distance.
fn search_sorted<K: SortKey>(
    keys: &[K],
    needles: &[K],
    out: &mut [u64],
    before: impl Fn(K, K) -> bool + Sync,
) -> Result<()> {
    same_len("places of needles", needles.len(), out.len())?;
    let parts = out.chunks_mut(PART).zip(needles.chunks(PART));
    parallel::for_each(parts, |(out, needles)| {
        let mut place = keys.partition_point(|&key| before(key, needles[0]));
        for (to, &needle) in out.iter_mut().zip(needles) {
            let mut step = 1;
            while place + step <= keys.len() && before(keys[place + step - 1], needle) {
                place += step;
                step *= 2;
            }
            let end = keys.len().min(place + step);
            place += keys[place..end].partition_point(|&key| before(key, needle));
            *to = place as u64;
        }
    });
    Ok(())
}
