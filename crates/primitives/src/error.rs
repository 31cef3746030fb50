//! Everything that can go wrong.

use warpset_base::filter::LengthMismatch;
use warpset_gpu::GpuError;

/// Why a primitive could not be queued. Its output is unspecified then, its input as it was.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A digit that the pass cannot tell apart, or that reaches past the hash.
    #[error("a digit of {bits} bits at bit {shift}: choose 1 to 8 bits within the 64 of a hash")]
    InvalidDigit {
        /// Where the digit begins.
        shift: u32,
        /// How wide it is.
        bits: u32,
    },
    /// Grouping by more or fewer bits than passes are made for.
    #[error("grouping by {bits} bits: choose 1 to 24")]
    InvalidBits {
        /// Bits asked for.
        bits: u32,
    },
    /// An output or a bitmap that does not have a place for each item.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// Bits of a key that end before they begin, or past the key.
    #[error("bits {begin}..{end} of a key of {width} bits: choose a range within the key")]
    InvalidBitRange {
        /// The lowest.
        begin: u32,
        /// One past the highest.
        end: u32,
        /// The key's.
        width: u32,
    },
    /// An output that shares memory with an input that is still to be read.
    #[error("{what} overlap: pass memory of its own for the output")]
    Overlap {
        /// Which two.
        what: &'static str,
    },
    /// More items than the primitive can take.
    #[error("{len} items at once, where {max} are the most: pass them in parts")]
    TooLong {
        /// How many there are.
        len: usize,
        /// How many there may be.
        max: usize,
    },
    /// More sorted runs than are merged in one pass.
    #[error("{runs} sorted runs, where {max} are merged at once: merge groups of them first")]
    TooManyRuns {
        /// How many there are.
        runs: usize,
        /// How many there may be.
        max: usize,
    },
    /// The device refused an allocation or a launch.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

warpset_base::debug_as_display!(Error);

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

/// Fails unless there is a place for each of `needed` things.
pub(crate) fn check_len(what: &'static str, needed: usize, found: usize) -> Result<()> {
    Ok(LengthMismatch::unless_room(what, needed, found)?)
}

/// Makes errors of primitives errors of a structure, which has the variants `Gpu(GpuError)`,
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
