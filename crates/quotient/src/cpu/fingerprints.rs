//! Ascending fingerprints of keys, or of fingerprints in any order.

use warpset_base::parallel;
use warpset_base::sort::sort_by_rank;
use warpset_base::words::in_huge_pages;

use crate::{Error, Key, Layout};

/// Nanoseconds to hash a key.
pub(crate) const HASH_NS: f64 = 3.0;

/// Returns the fingerprints of the keys in ascending order, or an error if a key has none.
pub(crate) fn sorted_fingerprints<K: Key>(layout: &Layout, keys: &[K]) -> Result<Vec<u64>, Error> {
    let of = layout.fingerprints_of();
    let mut fingerprints = in_huge_pages(vec![0; keys.len()]);
    let task = parallel::task_len(keys.len(), HASH_NS);
    parallel::try_for_each(fingerprints.chunks_mut(task).zip(keys.chunks(task)), |(fingerprints, keys)| {
        for (fingerprint, key) in fingerprints.iter_mut().zip(keys) {
            *fingerprint = if layout.exact { layout.expect_fingerprint(of.of(key))? } else { of.or_none(key) };
        }
        Ok::<(), Error>(())
    })?;
    Ok(sorted(layout, fingerprints))
}

/// Returns the fingerprints of the keys that have one, in ascending order.
pub(crate) fn sorted_fingerprints_of_some<K: Key>(layout: &Layout, keys: &[K]) -> Vec<u64> {
    let of = layout.fingerprints_of();
    let tasks = keys.chunks(parallel::task_len(keys.len(), HASH_NS));
    let parts = parallel::map(tasks, |keys| keys.iter().filter_map(|key| of.of(key)).collect::<Vec<u64>>());
    sorted(layout, parts.concat())
}

/// Sorts fingerprints, or returns an error if one has too many bits.
pub(super) fn checked_and_sorted(layout: &Layout, fingerprints: &[u64]) -> Result<Vec<u64>, Error> {
    layout.check_fingerprints(fingerprints)?;
    Ok(sorted(layout, fingerprints.to_vec()))
}

fn sorted(layout: &Layout, mut fingerprints: Vec<u64>) -> Vec<u64> {
    sort_by_rank(&mut fingerprints, layout.fingerprint_bits(), |fingerprint| fingerprint);
    fingerprints
}
