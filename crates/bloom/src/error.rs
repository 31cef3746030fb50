//! Everything that can go wrong, with the numbers.

use std::fmt;

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::{count, short};
use warpset_base::words::OutOfMemory;

use crate::PhysicalType;

/// Failed operation on a Bloom filter; the filter is unchanged.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layout without blocks or buckets.
    #[error("a layout without blocks: ask for one at least, or let `builder(keys)` choose")]
    ZeroCapacity,
    /// The requested rate is not a probability strictly between 0 and 1.
    #[error("a false-positive rate of {}: choose one between 0 and 1 (0.01 is one percent)", short(.fpr))]
    InvalidFpr {
        /// Requested rate.
        fpr: f64,
    },
    /// The requested number of bits per key is not a positive finite number.
    #[error("{} bits per key: choose a positive number, such as 10", short(.bits_per_key))]
    InvalidBitsPerKey {
        /// Requested number.
        bits_per_key: f64,
    },
    /// No blocked filter has these parameters.
    #[error(
        "blocks of {block_bits} bits, words of {word_bits} and {hashes} bits per key: choose blocks of 64, 128, 256, 512 or \
         1024 bits, words of 32 or 64, and 1 to 32 bits per key"
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
    #[error(
        "buckets of {bucket_words} words and {hashes} hashes per key: choose 2 to 16384 words of 32 bits, and 1 to 64 hashes"
    )]
    InvalidBucket {
        /// Words of 32 bits in a bucket.
        bucket_words: u32,
        /// Hashes per key.
        hashes: u32,
    },
    /// A key of Rao's filter has one or two buckets to choose from.
    #[error("{choices} buckets to choose from: pass 1 or 2")]
    InvalidChoices {
        /// Requested number.
        choices: u32,
    },
    /// A load factor that is not above 0 and at most 1.
    #[error("a load factor of {}: choose one above 0 and at most 1", short(.load_factor))]
    InvalidLoadFactor {
        /// Requested factor.
        load_factor: f64,
    },
    /// Required size above the memory limit.
    #[error(
        "{needed} bytes are needed for {} {size}, and the memory limit is {limit}: raise it, or ask for less",
        count(*keys, "key")
    )]
    OverMemoryLimit {
        /// Keys to hold.
        keys: u64,
        /// Requested size of the filter.
        size: AskedSize,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// No number of bits gives this rate with these parameters.
    #[error(
        "a false-positive rate of {} is out of reach for {} in such a filter: ask for a higher one, or take a \
         quotient filter",
        short(.fpr), count(*keys, "key")
    )]
    UnreachableFpr {
        /// Keys to hold.
        keys: u64,
        /// Requested rate.
        fpr: f64,
    },
    /// The filter would be larger than its addressing, or this machine's, allows.
    #[error("a filter of {bytes} bytes, where {limit} are the most: divide the keys among several filters")]
    TooLarge {
        /// Requested bytes of the filter (saturated).
        bytes: u64,
        /// The most there can be.
        limit: u64,
    },
    /// The allocator refused.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// Two filters that do not share their parameters cannot be merged.
    #[error(
        "the filters differ in {field}, {left} here and {right} there: build both for the same number of keys, with the same \
         settings"
    )]
    Incompatible {
        /// The first parameter that differs.
        field: &'static str,
        /// Its value in the filter that was to change.
        left: u64,
        /// Its value in the other filter.
        right: u64,
    },
    /// Rao's filter with two choices: a key of both filters may lie in different buckets of them, and AND would lose
    /// it.
    #[error("filters whose keys choose between two buckets have no intersection: build both with `choices(1)`")]
    NoIntersection,
    /// The number of blocks is not a multiple of the factor.
    #[error("a filter cannot be folded by {factor}: pass a factor of {blocks}")]
    CannotFold {
        /// Blocks or buckets now.
        blocks: u64,
        /// Requested factor.
        factor: u64,
    },
    /// A slice for answers does not have one place per key.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// A bucket of Rao's filter would have more bits set than its rate allows (about half), under every first-level
    /// hash that was tried.
    #[error(
        "the filter is full: too many of its keys belong to one bucket ({ones} bits set, where {limit} may be), also with \
         the last of {attempts} hashes; build for more keys, or with a lower load factor"
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
    #[error("no Bloom filter of Parquet: {what}; pass the bytes at the offset that the column's metadata name")]
    Parquet {
        /// Problem, in words.
        what: &'static str,
    },
    /// The bytes are not, or the filter cannot become, a Bloom filter of Milvus.
    #[error("no Bloom filter of Milvus: {what}; pass the bytes of an MBF1 filter, or build one with `for_milvus`")]
    Milvus {
        /// Problem, in words.
        what: &'static str,
    },
    /// The bytes are not a Bloom filter of Spark.
    #[error("no Bloom filter of Spark: {what}; pass the bytes that `bloom_filter_agg` gave there")]
    Spark {
        /// Problem, in words.
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
    /// Number of words that differs from the parameters'.
    #[error(
        "{found} words of 32 bits, where a filter with these parameters has {needed}: pass all of them, and no others"
    )]
    WordCount {
        /// Words for these parameters.
        needed: u64,
        /// Words given.
        found: u64,
    },
    /// The driver or the device refused.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// Hashes cannot be grouped by that many bits.
    #[cfg(feature = "gpu")]
    #[error("grouping by {bits} bits: choose 1 to 24")]
    InvalidGrouping {
        /// Requested bits.
        bits: u32,
    },
    /// A primitive got arguments that it does not take.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

warpset_base::debug_as_display!(Error);

warpset_base::saved_error!(Error);
#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);

/// Requested size of a filter; of several settings, the effective one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum AskedSize {
    /// By a rate of false positives.
    Fpr(f64),
    /// By bits per key.
    BitsPerKey(f64),
    /// By the memory limit alone, which is too small for the smallest filter.
    MemoryLimit,
}

impl fmt::Display for AskedSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AskedSize::Fpr(fpr) => write!(f, "at a false-positive rate of {}", short(fpr)),
            AskedSize::BitsPerKey(bits) => write!(f, "at {} bits per key", short(bits)),
            AskedSize::MemoryLimit => f.write_str("in the smallest filter"),
        }
    }
}
