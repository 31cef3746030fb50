//! Everything that can go wrong, with the numbers.

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::short;
use warpset_base::words::OutOfMemory;
use warpset_core::minimizer::{MOST_K, MOST_W};
use warpset_core::sequence_filter::{LEAST_K, LEAST_M};

/// Why an operation on sequences failed; nothing was changed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No k-mer or window has such a length.
    #[error("windows of {w} k-mers of {k} bases: choose k from 1 to {MOST_K}, and w from 1 to {MOST_W}")]
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
    /// Starts of reads that do not ascend from 0.
    #[error("starts of reads that do not ascend from 0 to at most {words} words: pass what `Packed::push` returned")]
    InvalidStarts {
        /// Words of packed reads.
        words: usize,
    },
    /// No sequence filter has these lengths.
    #[error(
        "k-mers of {k} bases, s-mers of {s} and minimizers of {m}: k is from {} to {}, s at most k, and m from {} to s",
        LEAST_K,
        MOST_K,
        LEAST_M
    )]
    InvalidLengths {
        /// Bases per k-mer.
        k: u32,
        /// Bases per s-mer.
        s: u32,
        /// Bases per minimizer.
        m: u32,
    },
    /// A layout without blocks.
    #[error("a layout without blocks: ask for one at least, or let `builder(kmers)` choose")]
    ZeroCapacity,
    /// The requested number of bits per k-mer is not a positive finite number.
    #[error("{} bits per k-mer: choose a positive number, such as 16", short(.bits_per_key))]
    InvalidBitsPerKey {
        /// The number asked for.
        bits_per_key: f64,
    },
    /// No filter is so large.
    #[error(
        "a filter of {bytes} bytes: the largest has {limit}; ask for fewer bits per k-mer, or divide the k-mers among several"
    )]
    TooLarge {
        /// Bytes asked for.
        bytes: u64,
        /// Bytes of the largest filter.
        limit: u64,
    },
    /// Two filters do not have the same parameters.
    #[error("filters with different parameters: {field} {left} and {right}; build both with one layout")]
    Incompatible {
        /// The first parameter that differs.
        field: &'static str,
        /// Its value in the one that was to be changed.
        left: u64,
        /// Its value in the other one.
        right: u64,
    },
    /// Not one k-mer.
    #[error("{kmer:?} is no k-mer of {k} letters A, C, G, T: ask for windows of a sequence by `contains_windows`")]
    NotKmer {
        /// What was given.
        kmer: String,
        /// Bases per k-mer.
        k: u32,
    },
    /// A fraction of k-mers that is not from 0 to 1.
    #[error("a fraction of {} of the k-mers: choose one from 0 to 1 (0.01 is one percent)", short(.fraction))]
    InvalidFraction {
        /// The fraction asked for.
        fraction: f64,
    },
    /// The allocator refused.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The bytes are not such a filter, or could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Memory for answers has another length.
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

warpset_base::debug_as_display!(Error);

warpset_base::saved_error!(Error);
#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);
