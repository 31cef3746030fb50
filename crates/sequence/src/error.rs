//! Everything that can go wrong, with the numbers.

use warpset_core::minimizer::{MOST_K, MOST_W};

/// Why an operation on sequences failed; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No k-mer or window has such a length.
    #[error("windows of {w} k-mers of {k} bases: k is from 1 to {}, and w from 1 to {}", MOST_K, MOST_W)]
    InvalidScheme {
        /// Bases per k-mer.
        k: u32,
        /// K-mers per window.
        w: u32,
    },
}
