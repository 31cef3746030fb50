//! Everything that can go wrong, with the numbers.

use warpset_base::filter::LengthMismatch;
use warpset_core::minimizer::{MOST_K, MOST_W};

/// Why an operation on sequences failed; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No k-mer or window has such a length.
    #[error(
        "windows of {w} k-mers of {k} bases: choose k from 1 to {MOST_K}, and w from 1 to {MOST_W}"
    )]
    InvalidScheme {
        /// Bases per k-mer.
        k: u32,
        /// K-mers per window.
        w: u32,
    },
    /// More positions than a device takes at a time.
    #[error("{positions} positions at once, where {most} are the most: pass the sequences in parts")]
    TooLong {
        /// How many there are.
        positions: usize,
        /// How many there may be.
        most: usize,
    },
    /// Reads that do not begin one after the other.
    #[error("starts of reads that do not ascend from 0 to at most {words} words: pass what `Packed::push` returned")]
    InvalidUnits {
        /// Words of packed reads.
        words: usize,
    },
    /// Slices that go together differ in length.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// The driver or the device refused.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// The filter that minimizers were looked up in refused.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Filter(Box<dyn std::error::Error + Send + Sync>),
    /// A primitive got arguments that it does not take.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);
