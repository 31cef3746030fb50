//! From keys, or from fingerprints in any order, to ascending fingerprints.

use rayon::prelude::*;
use warpset_primitives::cpu::sort::sort_by_rank;

use crate::key::Seed;
use crate::{Error, Key, Layout};

/// Keys that one task hashes, at least.
const LEAST_TASK: usize = 1 << 12;

/// The fingerprints of the keys in ascending order.
pub(crate) fn sorted_fingerprints<K: Key>(layout: &Layout, keys: &[K]) -> Vec<u64> {
    let seed = Seed::new(layout.seed);
    let hashed = keys.par_iter().with_min_len(LEAST_TASK).map(|key| layout.fingerprint_with(seed, key));
    sorted(layout, hashed.collect())
}

/// The fingerprints in ascending order, or an error if one has too many bits.
pub(super) fn checked_and_sorted(layout: &Layout, fingerprints: &[u64]) -> Result<Vec<u64>, Error> {
    layout.check_fingerprints(fingerprints)?;
    Ok(sorted(layout, fingerprints.to_vec()))
}

fn sorted(layout: &Layout, mut fingerprints: Vec<u64>) -> Vec<u64> {
    sort_by_rank(&mut fingerprints, layout.fingerprint_bits(), |fingerprint| fingerprint);
    fingerprints
}
