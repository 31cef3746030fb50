//! Errors of builds, lookups and files.

use crate::Stage;
use std::io;
use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::{count, short};

/// Reason why a function could not be built, saved, opened or queried.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two keys are equal; a minimal perfect hash function has no place for both.
    #[error("duplicate key {key}: keys number {first} and {second} are equal; remove one of them")]
    DuplicateKey {
        /// Position of the key in the input.
        first: u64,
        /// Position of its duplicate.
        second: u64,
        /// The key, as text.
        key: String,
    },
    /// Leaf size or fanouts outside of what a splitting tree can have.
    #[error(
        "leaf size {leaf_size} with fanouts {first_fanout} and {second_fanout}: choose 2 to 24, 2 to 9 and 1 to 9, with leaf \
         size times first fanout below 255"
    )]
    InvalidShape {
        /// Keys in a leaf.
        leaf_size: u32,
        /// Children of a node of the first aggregation level.
        first_fanout: u32,
        /// Children of a node of the second aggregation level.
        second_fanout: u32,
    },
    /// The expected bucket size is zero or too large.
    #[error("bucket size {bucket_size}: choose 1 to {largest}")]
    InvalidBucketSize {
        /// Requested size.
        bucket_size: u32,
        /// Largest valid size.
        largest: u32,
    },
    /// The load factor or the number of keys per value is out of range.
    #[error("{what} {}: choose {allowed}", short(.value))]
    InvalidParameter {
        /// The parameter.
        what: &'static str,
        /// Requested value.
        value: f64,
        /// Valid values.
        allowed: &'static str,
    },
    /// No function reaches the requested space.
    #[error(
        "no {name} takes {} bits per key: ask `for_space` for {} or more", short(.bits_per_key),
        (least * 100.0).ceil() / 100.0
    )]
    UnreachableSpace {
        /// Kind of function: "RecSplit function".
        name: &'static str,
        /// Requested bits per key.
        bits_per_key: f64,
        /// Fewest bits per key that the cost model predicts for a function of this kind.
        least: f64,
    },
    /// No seed of the initial hash function worked: the keys' hashes collide under every seed, which random hashes do
    /// not do. Ready-made hashes that are not random can be the reason.
    #[error("hash values collided with each of {seeds} seeds: pass the keys themselves, or hashes that are random")]
    HashesCollide {
        /// Number of seeds tried.
        seeds: u32,
    },
    /// The input of a two-pass build changed between the passes.
    #[error(
        "the first pass over the keys saw {first} of them, a later one {later}: every pass has to see the same keys"
    )]
    InputChanged {
        /// Keys in the first pass.
        first: u64,
        /// Keys in the later pass.
        later: u64,
    },
    /// A file of fixed-width keys ends within a key.
    #[error(
        "the file of keys of {} ends {} into a key: it was cut, or its keys have another width",
        count(*width, "byte"), count(*rest, "byte")
    )]
    PartialKey {
        /// Bytes in a key.
        width: u64,
        /// Bytes after the last whole key.
        rest: u64,
    },
    /// The slices of keys and answers have different lengths.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// The bytes are not such a structure, or could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The number of words differs from the one in their header.
    #[error("{found} words of 64 bits, where the structure has {needed}: pass all of its words, and no others")]
    WordCount {
        /// Words according to the header, or the words of a header.
        needed: u64,
        /// Words given.
        found: u64,
    },
    /// The [progress callback](crate::Builder::progress) stopped the build.
    #[error(
        "the progress callback stopped the build while it {}, after {keys_done} keys: let it go on to get a function",
        match stage { Stage::Hashing => "hashed keys", Stage::Building => "built trees" }
    )]
    Interrupted {
        /// Stage of the build.
        stage: Stage,
        /// Keys that had passed the stage.
        keys_done: u64,
        /// All keys; 0 if their number was unknown.
        keys: u64,
    },
    /// The thread pool could not be made.
    #[error("cannot start threads: {0}; ask for fewer")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Reading keys, or writing what does not fit in memory, failed.
    #[error("cannot read keys, or write hashes to the temporary file: {0}")]
    Io(#[from] io::Error),
    /// Numbers were requested as `u32`, which cannot hold all of them.
    #[error("numbers below {values} do not fit in `u32`: take them as `u64`")]
    NumbersTooLarge {
        /// The function's values.
        values: u64,
    },
    /// The table of values has no item for some numbers.
    #[error("a table of {found} items, where numbers go up to {}: pass one item for each of {values} values", values - 1)]
    TableTooShort {
        /// The function's values, at least 1.
        values: u64,
        /// Items of the table.
        found: u64,
    },
    /// The driver or the device failed.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// A device-wide primitive could not be queued.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

warpset_base::debug_as_display!(Error);

warpset_base::saved_error!(Error);
#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);
