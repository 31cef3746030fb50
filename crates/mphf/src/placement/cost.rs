//! Space and time of functions, measured.

use super::CodeParameters;
use crate::Estimate;
use warpset_core::placement::{LAYOUTS, POINT};

/// Bits per key of a function of 10^6 keys, by keys per seed.
const SPACE: [(f64, f64); 11] = [
    (1.0, 8.011),
    (2.0, 4.021),
    (3.0, 2.698),
    (3.5, 2.325),
    (4.0, 2.061),
    (4.25, 1.982),
    (4.5, 1.950),
    (4.75, 1.950),
    (5.0, 1.959),
    (5.5, 2.003),
    (6.0, 2.050),
];
/// Nanoseconds per key for hashing and sorting.
const SORT: f64 = 25.0;
/// Nanoseconds for the search of a seed.
const SEED: f64 = 80.0;

/// Returns the keys per seed for this space: 4, which bumps few keys, or more; or the fewest bits per key.
pub(super) fn keys_per_seed(bits_per_key: f64) -> Result<f64, f64> {
    let from_four = || SPACE.iter().filter(|row| row.0 >= 4.0);
    let found = from_four().find(|row| row.1 <= bits_per_key);
    found.map(|row| row.0).ok_or_else(|| from_four().map(|row| row.1).fold(f64::INFINITY, f64::min))
}

/// Predicts the cost of functions of this code.
pub(super) fn estimate(code: CodeParameters) -> Estimate {
    let seeds_per_key = f64::from(code.buckets_per_key) / f64::from(1 << POINT);
    let keys_per_seed = seeds_per_key.recip();
    let above = SPACE.partition_point(|row| row.0 < keys_per_seed).clamp(1, SPACE.len() - 1);
    let [(low, bits_low), (high, bits_high)] = [SPACE[above - 1], SPACE[above]];
    Estimate {
        bits_per_key: bits_low + (bits_high - bits_low) * (keys_per_seed - low) / (high - low),
        hashes_per_key: LAYOUTS.into(),
        nanoseconds_per_key: SORT + SEED * seeds_per_key,
        // The host places the keys.
        device_nanoseconds_per_key: f64::INFINITY,
        device_nanoseconds: 0.0,
        brute_force_share: 0.0,
    }
}
