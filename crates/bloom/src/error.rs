//! Everything that can go wrong, with the numbers.

use std::fmt;

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::short;
use warpset_base::words::OutOfMemory;

use crate::PhysicalType;

/// Why an operation on a Bloom filter failed; the filter is as it was before.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A filter was asked for that holds no keys.
    #[error("capacity is zero: ask for room for at least one key")]
    ZeroCapacity,
    /// The requested rate is not a probability strictly between 0 and 1.
    #[error("false-positive rate {} is not between 0 and 1 (0.01 is one percent)", short(.fpr))]
    InvalidFpr {
        /// The rate asked for.
        fpr: f64,
    },
    /// The requested number of bits per key is not a positive finite number.
    #[error("{} bits per key is not a positive finite number", short(.bits_per_key))]
    InvalidBitsPerKey {
        /// The number asked for.
        bits_per_key: f64,
    },
    /// No blocked filter has these parameters.
    #[error(
        "block of {block_bits} bits in words of {word_bits} with {hashes} bits per key: the block must be a power of two \
         from 64 to 1024, words 32 or 64 bits, and 1 to 32 bits per key"
    )]
    InvalidShape {
        /// Bits in a block.
        block_bits: u32,
        /// Bits in a word.
        word_bits: u32,
        /// Bits per key.
        hashes: u32,
    },
    /// No bucket of Rao's filter has these parameters.
    #[error("bucket of {bucket_words} words with {hashes} hashes per key: 2 to 16384 words of 32 bits, 1 to 64 hashes")]
    InvalidBucket {
        /// Words of 32 bits in a bucket.
        bucket_words: u32,
        /// Hashes per key.
        hashes: u32,
    },
    /// A key of Rao's filter has one or two buckets to choose from.
    #[error("{choices} bucket choices; only 1 and 2 exist")]
    InvalidChoices {
        /// The number asked for.
        choices: u32,
    },
    /// A load factor that is not above 0 and at most 1.
    #[error("load factor {} is not above 0 and at most 1", short(.load_factor))]
    InvalidLoadFactor {
        /// The factor asked for.
        load_factor: f64,
    },
    /// What was asked for does not fit in the memory limit.
    #[error("{keys} keys {size} need {needed} bytes; the limit is {limit}")]
    OverMemoryLimit {
        /// Keys to hold.
        keys: u64,
        /// How large the filter was to be.
        size: AskedSize,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// No number of bits gives this rate with these parameters.
    #[error(
        "a false-positive rate of {} is out of reach for {keys} keys with these parameters: ask for a higher one",
        short(.fpr)
    )]
    UnreachableFpr {
        /// Keys to hold.
        keys: u64,
        /// The rate asked for.
        fpr: f64,
    },
    /// The filter would be larger than its addressing, or this machine's, allows.
    #[error("a filter of {blocks} blocks is too large: at most {limit}")]
    TooLarge {
        /// Blocks or buckets asked for (saturated).
        blocks: u64,
        /// The most there can be.
        limit: u64,
    },
    /// The allocator refused.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Two filters that do not share their parameters cannot be merged.
    #[error("filters differ in {field}, {left} here and {right} there: build both with the same")]
    Incompatible {
        /// The first parameter that differs.
        field: &'static str,
        /// Its value in the filter that was to change.
        left: u64,
        /// Its value in the other filter.
        right: u64,
    },
    /// Rao's filter with two choices: a key of both filters may lie in different buckets of them, and AND would lose it.
    #[error("filters with two bucket choices have no intersection by AND: build both with one choice")]
    NoIntersection,
    /// The number of blocks is not a multiple of the factor.
    #[error("cannot fold {blocks} blocks by {factor}: the factor has to divide their number")]
    CannotFold {
        /// Blocks or buckets now.
        blocks: u64,
        /// The factor asked for.
        factor: u64,
    },
    /// A slice for answers does not have one place per key.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// A bucket of Rao's filter would have more bits set than its rate allows (about half), under every first-level hash that was tried.
    #[error(
        "a bucket overflows: {ones} bits set where {limit} may be, after {attempts} first-level hashes; ask for a larger \
         capacity or a lower load factor"
    )]
    BucketOverflow {
        /// First-level hashes tried.
        attempts: u32,
        /// Bits of a bucket that may be set.
        limit: u32,
        /// Set bits of the fullest bucket at the last attempt.
        ones: u32,
    },
    /// The bytes are not such a filter, or could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The bytes are not a Parquet Bloom filter that we can read.
    #[error("Parquet Bloom filter header: {what}")]
    Parquet {
        /// What is wrong.
        what: &'static str,
    },
    /// The filter hashes integers in another way than the column does that it is written for.
    #[error(
        "a column of type {column} needs integers hashed otherwise than as {bytes} bytes: build the filter for it, with `column`"
    )]
    ColumnMismatch {
        /// The column's type.
        column: PhysicalType,
        /// Bytes of an integer that this filter hashes.
        bytes: u32,
    },
    /// Words that are not as many as the parameters say.
    #[error(
        "{found} words of 32 bits, where a filter with these parameters has {needed}: pass all of them, and no others"
    )]
    WordCount {
        /// Words that the parameters come to.
        needed: u64,
        /// Words given.
        found: u64,
    },
    /// The driver or the device refused.
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// Hashes cannot be grouped by that many bits.
    #[error("grouping by {bits} bits: pass 1 to 24")]
    InvalidGrouping {
        /// Bits asked for.
        bits: u32,
    },
    /// A primitive got arguments that it does not take.
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

impl From<warpset_primitives::Error> for Error {
    fn from(error: warpset_primitives::Error) -> Error {
        match error {
            warpset_primitives::Error::Gpu(error) => Error::Gpu(error),
            warpset_primitives::Error::InvalidBits { bits } => Error::InvalidGrouping { bits },
            other => Error::Primitive(Box::new(other)),
        }
    }
}

/// How a user said how large a filter is to be; of several ways, the one that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AskedSize {
    /// By a rate of false positives.
    Fpr(f64),
    /// By bits per key.
    BitsPerKey(f64),
    /// By the memory limit alone, which is too small for the least filter with these parameters.
    MemoryLimit,
}

impl fmt::Display for AskedSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskedSize::Fpr(fpr) => write!(f, "at a false-positive rate of {}", short(fpr)),
            AskedSize::BitsPerKey(bits) => write!(f, "at {} bits per key", short(bits)),
            AskedSize::MemoryLimit => f.write_str("in the least filter with these parameters"),
        }
    }
}
