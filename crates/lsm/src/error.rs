//! Errors, with the numbers that explain them.

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::short;
use warpset_base::words::OutOfMemory;

/// Failure of an operation on a dictionary; the dictionary is unchanged.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A batch size that is no power of two from 64 to 2^40.
    #[error("batch size {batch_size}: choose a power of two from 64 to 2^40")]
    InvalidBatchSize {
        /// The size asked for.
        batch_size: u64,
    },
    /// A share of stale elements that is reached never or always.
    #[error("a share of {} stale elements: choose one above 0 and below 1", short(.share))]
    InvalidStaleShare {
        /// The share asked for.
        share: f64,
    },
    /// A cleanup after every zero batches.
    #[error("a cleanup after every 0 batches: choose 1 or more")]
    NoBatches,
    /// Slices that belong together differ in length.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// The allocator refused.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The bytes are not such a dictionary, or could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The levels break an invariant of the structure.
    #[error("level {level}: {what} element {place}; the bytes are damaged, copy or build them again")]
    Invalid {
        /// The level.
        level: u32,
        /// The broken invariant.
        what: &'static str,
        /// Place of the element, or number of elements, that shows it.
        place: u64,
    },
    /// The elements of the ranges do not fit in device memory.
    #[cfg(feature = "gpu")]
    #[error(
        "the ranges have {elements} elements, which take {bytes} bytes, and {free} are free on the device: take them in \
         smaller pieces (`range_chunks_device`), or ask for fewer at a time"
    )]
    RangesTooLarge {
        /// Elements of all requested ranges.
        elements: u64,
        /// Bytes of these elements.
        bytes: u64,
        /// Free bytes of device memory.
        free: u64,
    },
    /// The driver or the device refused.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// A primitive was called with invalid arguments.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

warpset_base::debug_as_display!(Error);

warpset_base::saved_error!(Error);
#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);

/// Fails unless `found` equals the number of keys.
pub(crate) fn one_per_key(keys: usize, what: &'static str, found: usize) -> Result<(), Error> {
    Ok(LengthMismatch::unless_equal(what, keys, found)?)
}
