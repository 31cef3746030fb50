//! Errors of builds, lookups and files.

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::count;
use warpset_base::words::OutOfMemory;
use warpset_core::range::{MOST_CODES, MOST_KEYS};

/// Reason why an operation on a range filter failed; nothing was changed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bits per key are outside of the possible ones.
    #[error("{bits} bits per key: choose 3 to 60; a rate of `r` at ranges of `l` keys takes `log2(l / r) + 2`")]
    InvalidBitsPerKey {
        /// Requested bits.
        bits: f64,
    },
    /// The rate is not a probability strictly between 0 and 1.
    #[error("a false-positive rate of {fpr}: choose one between 0 and 1 (0.01 is one percent)")]
    InvalidFpr {
        /// Requested rate.
        fpr: f64,
    },
    /// The length of ranges is zero.
    #[error("a rate at ranges of 0 keys: choose a length of at least 1")]
    InvalidRangeLength,
    /// There are more keys than a filter can have.
    #[error("{}, and a range filter takes at most {MOST_KEYS}: split them by ranges into several filters", count(*keys, "key"))]
    TooManyKeys {
        /// Keys.
        keys: u64,
    },
    /// The number of keys and the bits per key need codes of more than 62 bits.
    #[error(
        "{} at {bits:.1} bits per key need more than {MOST_CODES} codes: take fewer bits per key, or split the keys by \
         ranges into several filters",
        count(*keys, "key")
    )]
    TooManyCodes {
        /// Different keys.
        keys: u64,
        /// Requested bits.
        bits: f64,
    },
    /// The rate is lower than that of any dynamic filter for this number of keys.
    #[error(
        "a false-positive rate of {fpr} at ranges of {length} keys, with room for {}: a dynamic range filter has no such \
         rate, ask for a higher one or divide the keys by ranges among several filters",
        count(*keys, "key")
    )]
    UnreachableFpr {
        /// Keys to hold.
        keys: u64,
        /// Requested rate.
        fpr: f64,
        /// Length of the ranges.
        length: u64,
    },
    /// The slots of a dynamic filter take no more keys, or differ from those of another.
    #[error(transparent)]
    Slots(Box<warpset_quotient::Error>),
    /// A saved filter has keys of another type.
    #[error(
        "a range filter of keys of type {found}, where {expected} was expected: load it as a `{structure}<{found}>`"
    )]
    OtherKeys {
        /// Type of the filter, without that of its keys.
        structure: &'static str,
        /// Type of the keys that was asked for.
        expected: &'static str,
        /// Type of the keys in the bytes.
        found: &'static str,
    },
    /// Slices differ in length.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// Memory could not be allocated.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The bytes are not such a filter, or could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The driver or the device failed.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// A primitive rejected its arguments.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

impl From<warpset_quotient::Error> for Error {
    fn from(error: warpset_quotient::Error) -> Error {
        match error {
            warpset_quotient::Error::OutOfMemory(error) => error.into(),
            warpset_quotient::Error::File(error) => error.into(),
            #[cfg(feature = "gpu")]
            warpset_quotient::Error::Gpu(error) => error.into(),
            other => Error::Slots(Box::new(other)),
        }
    }
}

warpset_base::debug_as_display!(Error);

warpset_base::saved_error!(Error);
#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);
