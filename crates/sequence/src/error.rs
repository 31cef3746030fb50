//! Errors of operations on sequences.

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::short;
use warpset_base::words::OutOfMemory;
use warpset_core::minimizer::{MOST_K, MOST_W};
use warpset_core::sequence_filter::{LEAST_K, LEAST_M, MOST_S};

/// Error of an operation on sequences. The operation has changed nothing.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Lengths that no k-mer or window can have.
    #[error(
        "windows of {w} k-mers of {k} bases: choose k from 1 to 32, or to {MOST_K} for k-mers of 128 bits, and w from 1 to \
         {MOST_W}"
    )]
    InvalidScheme {
        /// Bases per k-mer.
        k: u32,
        /// K-mers per window.
        w: u32,
    },
    /// More positions than a device takes in one call.
    #[error("{positions} positions at once, where {most} are the most: pass the sequences in parts")]
    TooLong {
        /// Positions of the call.
        positions: usize,
        /// Largest number of positions.
        most: usize,
    },
    /// Starts of reads that do not ascend from 0.
    #[error("starts of reads that do not ascend from 0 to at most {words} words: pass what `Packed::push` returned")]
    InvalidStarts {
        /// Words of packed reads.
        words: usize,
    },
    /// Lengths that no sequence filter can have.
    #[error(
        "k-mers of {k} bases, s-mers of {s} and minimizers of {m}: k is from {} to {}, s at most k and {}, k at most {} above s, \
         and m from {} to s",
        LEAST_K,
        MOST_K,
        MOST_S,
        MOST_S - 1,
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
    /// Layout without blocks.
    #[error("a layout without blocks: ask for one at least, or let `builder(kmers)` choose")]
    ZeroCapacity,
    /// Number of bits per k-mer that is not positive and finite.
    #[error("{} bits per k-mer: choose a positive number, such as 16", short(.bits_per_key))]
    InvalidBitsPerKey {
        /// Requested number.
        bits_per_key: f64,
    },
    /// Filter larger than the largest possible one.
    #[error(
        "a filter of {bytes} bytes: the largest has {limit}; ask for fewer bits per k-mer, or divide the k-mers among several"
    )]
    TooLarge {
        /// Requested bytes.
        bytes: u64,
        /// Bytes of the largest filter.
        limit: u64,
    },
    /// Filters of different parameters.
    #[error("filters with different parameters: {field} {left} and {right}; build both with one layout")]
    Incompatible {
        /// The first parameter that differs.
        field: &'static str,
        /// Its value in the filter to be changed.
        left: u64,
        /// Its value in the other filter.
        right: u64,
    },
    /// Letters that are not one k-mer.
    #[error("{kmer:?} is no k-mer of {k} letters A, C, G, T: ask for windows of a sequence by `contains_windows`")]
    NotKmer {
        /// The letters.
        kmer: String,
        /// Bases per k-mer.
        k: u32,
    },
    /// Fraction of k-mers that is not from 0 to 1.
    #[error("a fraction of {} of the k-mers: choose one from 0 to 1 (0.01 is one percent)", short(.fraction))]
    InvalidFraction {
        /// Requested fraction.
        fraction: f64,
    },
    /// Allocation refused by the allocator.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Bytes that are no such filter, or that could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Memory for answers of another length.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// Refusal of the driver or the device.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// Error of the filter in which minimizers were looked up.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Filter(Box<dyn std::error::Error + Send + Sync>),
    /// Invalid arguments of a primitive.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

warpset_base::debug_as_display!(Error);

warpset_base::saved_error!(Error);
#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);
