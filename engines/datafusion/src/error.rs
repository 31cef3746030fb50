//! Errors, with the function that failed.

use std::fmt;

use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;

/// Error of a function of this crate; [`DataFusionError::External`] holds one.
#[derive(thiserror::Error)]
#[error("{function}: {cause}")]
pub struct Error {
    /// The function's name in SQL.
    pub function: &'static str,
    /// The cause.
    #[source]
    pub cause: Cause,
}

/// Writes the `Display` form: engines that send an error to another machine send its `Debug` form.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Cause of an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The function takes another number of arguments.
    #[error("{found} arguments, where {least} to {most} are taken")]
    ArgumentCount {
        /// Arguments in the call.
        found: usize,
        /// The fewest that the function takes.
        least: usize,
        /// The most that the function takes.
        most: usize,
    },
    /// Values of this type have no hash that every engine agrees on.
    #[error("{found} cannot be a key: cast it to an integer, a string, a binary, a date, a timestamp or a decimal")]
    KeyType {
        /// The argument's type.
        found: DataType,
    },
    /// A saved structure is binary.
    #[error("{found} cannot hold a filter or a function: pass the binary value that an aggregate gave")]
    BlobType {
        /// The argument's type.
        found: DataType,
    },
    /// A range filter has keys of another type than its bounds.
    #[error(
        "a range filter of {keys} keys takes no bounds of types {low} and {high}: cast both to an integer, `REAL` \
         (`f32`), `DOUBLE` (`f64`) or a string (`[u8]`)"
    )]
    BoundType {
        /// Type of the filter's keys; `any` if there is none of both bounds.
        keys: &'static str,
        /// Type of the lower bound.
        low: DataType,
        /// Type of the upper bound.
        high: DataType,
    },
    /// The bounds of a range have different units or scales.
    #[error(
        "bounds of types {low} and {high}: their stored integers have different units, cast both to the type of the filter's column"
    )]
    BoundUnits {
        /// Type of the lower bound.
        low: DataType,
        /// Type of the upper bound.
        high: DataType,
    },
    /// A parameter of an aggregate is not the same in every row, or is missing.
    #[error("the parameter `{parameter}` is not a literal: write a number, not a column and not NULL")]
    NotLiteral {
        /// The parameter.
        parameter: &'static str,
    },
    /// A parameter is out of range.
    #[error("the parameter `{parameter}` is {found}, but must be {allowed}")]
    InvalidParameter {
        /// The parameter.
        parameter: &'static str,
        /// The value given.
        found: String,
        /// The values allowed.
        allowed: &'static str,
    },
    /// The engine asked for distinct values where copies count.
    #[error("DISTINCT is not available where copies are counted: aggregate a subquery that selects DISTINCT rows")]
    Distinct,
    /// The results of one batch of groups do not fit into one array.
    #[error(
        "{groups} groups have results of {bytes} bytes, and an array holds 2 GiB: ask for smaller filters, or set more \
         target partitions"
    )]
    ResultTooLarge {
        /// Groups in the batch.
        groups: usize,
        /// Bytes of their results.
        bytes: u64,
    },
    /// A partial result has a format that this version does not send.
    #[error("a partial result of {bytes} bytes is not one of this function: run the same version on every machine")]
    PartialResult {
        /// Its size.
        bytes: usize,
    },
    /// A quotient filter was given far more keys than its fingerprints tell apart.
    #[error(
        "more different keys than fingerprints of {fingerprint_bits} bits tell apart: raise the parameter `items`, or lower \
         `fpr`"
    )]
    Saturated {
        /// Bits of a fingerprint.
        fingerprint_bits: u32,
    },
    /// The hashes of different keys collided, which a new seed cannot cure without the keys.
    #[error("the hashes of {keys} keys collide in more than chance allows: report which column this is")]
    Reseeded {
        /// Different hashes.
        keys: usize,
    },
    /// A Bloom filter could not be built, opened or merged.
    #[error(transparent)]
    Bloom(#[from] warpset_bloom::Error),
    /// A quotient filter could not be built, opened or merged.
    #[error(transparent)]
    Quotient(#[from] warpset_quotient::Error),
    /// A binary fuse filter could not be built or opened.
    #[error(transparent)]
    Fuse(#[from] warpset_fuse::Error),
    /// A perfect hash function could not be built or opened.
    #[error(transparent)]
    PerfectHash(#[from] warpset_mphf::Error),
    /// A range filter could not be opened.
    #[error(transparent)]
    Range(#[from] warpset_range::Error),
    /// There is not enough memory.
    #[error(transparent)]
    OutOfMemory(#[from] warpset_base::words::OutOfMemory),
}

impl Cause {
    /// Returns the engine's error, with the name of the function.
    pub(crate) fn of(self, function: &'static str) -> DataFusionError {
        DataFusionError::External(Box::new(Error { function, cause: self }))
    }
}
