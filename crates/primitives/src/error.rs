//! Errors of the primitives.

use warpset_base::filter::LengthMismatch;
use warpset_gpu::GpuError;

/// Error for which a primitive could not be queued. Its output is then unspecified, its input unchanged.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A digit that a pass cannot distinguish, or that reaches past the hash.
    #[error("a digit of {bits} bits at bit {shift}: choose 1 to 8 bits within the 64 of a hash")]
    InvalidDigit {
        /// First bit of the digit.
        shift: u32,
        /// Width of the digit.
        bits: u32,
    },
    /// Grouping by an unsupported number of bits.
    #[error("grouping by {bits} bits: choose 1 to 24")]
    InvalidBits {
        /// Requested bits.
        bits: u32,
    },
    /// An output or a bitmap without a place for each item.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// Bits of a key that end before they begin, or past the key.
    #[error("bits {begin}..{end} of a key of {width} bits: choose a range within the key")]
    InvalidBitRange {
        /// Lowest bit.
        begin: u32,
        /// One past the highest bit.
        end: u32,
        /// Width of the key.
        width: u32,
    },
    /// An output that shares memory with an input that is still to be read.
    #[error("{what} overlap: pass memory of its own for the output")]
    Overlap {
        /// The two operands.
        what: &'static str,
    },
    /// More items than the primitive supports.
    #[error("{len} items at once, where {max} are the most: pass them in parts")]
    TooLong {
        /// Number of items.
        len: usize,
        /// Largest number of items.
        max: usize,
    },
    /// More sorted runs than are merged in one pass.
    #[error("{runs} sorted runs, where {max} are merged at once: merge groups of them first")]
    TooManyRuns {
        /// Number of runs.
        runs: usize,
        /// Largest number of runs.
        max: usize,
    },
    /// The device refused an allocation or a launch.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

warpset_base::debug_as_display!(Error);

/// Result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Fails unless `found` is at least `needed`.
pub(crate) fn check_len(what: &'static str, needed: usize, found: usize) -> Result<()> {
    Ok(LengthMismatch::unless_room(what, needed, found)?)
}

/// Converts errors of primitives to errors of a structure, which has the variants `Gpu(GpuError)`,
/// `LengthMismatch(LengthMismatch)` and `Primitive(Box<Error>)`.
#[doc(hidden)]
#[macro_export]
macro_rules! from_primitives {
    ($error:ident) => {
        impl From<$crate::Error> for $error {
            fn from(error: $crate::Error) -> $error {
                match error {
                    $crate::Error::Gpu(error) => $error::Gpu(error),
                    $crate::Error::LengthMismatch(error) => $error::LengthMismatch(error),
                    other => $error::Primitive(Box::new(other)),
                }
            }
        }
    };
}
