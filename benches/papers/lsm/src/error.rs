//! Errors, with the numbers.

use warpset_base::filter::LengthMismatch;
use warpset_base::words::OutOfMemory;

/// Cause of a failed operation; the dictionary is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A batch size that no dictionary has.
    #[error("batch size {batch_size}: choose a power of two from 64 to 2^40")]
    InvalidBatchSize {
        /// The size asked for.
        batch_size: u64,
    },
    /// Slices that go together differ in length.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// More keys than a batch has elements.
    #[error("{keys} keys, and batches have {batch_size}: pass them in several, or build with a larger batch size")]
    BatchTooLong {
        /// Keys given.
        keys: usize,
        /// Elements of a batch.
        batch_size: u64,
    },
    /// A key with its highest bit set; the status bit takes that one.
    #[error("key {key} has more than {bits} bits: the status takes the other one")]
    KeyTooLarge {
        /// The largest key of the batch.
        key: u64,
        /// The most bits of a key.
        bits: u32,
    },
    /// A level breaks an invariant of the structure.
    #[error("level {level}: {what} element {place}")]
    Invalid {
        /// The level.
        level: u32,
        /// The broken invariant.
        what: &'static str,
        /// The element.
        place: u64,
    },
    /// The allocator refused.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The driver or the device refused.
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// A primitive refused its arguments.
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

warpset_primitives::from_primitives!(Error);

/// Refuses values or flags if there is not one per key.
pub(crate) fn one_per_key(keys: usize, what: &'static str, found: usize) -> Result<(), Error> {
    Ok(LengthMismatch::unless_equal(what, keys, found)?)
}
