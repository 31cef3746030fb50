//! Tiers of tests, and their keys. Not part of the API.

use warpset_core::hash::mix;

/// The environment variable that selects the tier: `thorough`, or the default one.
pub const TIER_VARIABLE: &str = "WARPSET_TESTS";

/// Returns `default`, or `thorough` in the thorough tier.
///
/// # Panics
/// If the variable has another value.
pub fn tier<T>(default: T, thorough: T) -> T {
    match std::env::var(TIER_VARIABLE).as_deref() {
        Ok("thorough") => thorough,
        Err(_) | Ok("" | "default") => default,
        Ok(other) => panic!("{TIER_VARIABLE}={other}: `default` or `thorough`"),
    }
}

/// Returns `n` keys that look random, others for each seed.
pub fn keys(n: u64, seed: u64) -> Vec<u64> {
    (0..n).map(|i| mix(i, seed)).collect()
}
