//! Everything that can go wrong, with the numbers.

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::short;
use warpset_base::words::OutOfMemory;

/// Failed operation on a binary fuse filter; the filter is unchanged.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The requested rate is not a probability strictly between 0 and 1.
    #[error("a false-positive rate of {}: choose one between 0 and 1 (0.01 is one percent)", short(.fpr))]
    InvalidFpr {
        /// Requested rate.
        fpr: f64,
    },
    /// Fingerprints of this width have a higher rate.
    #[error(
        "a false-positive rate of {}: fingerprints of {bits} bits have one of {}; {}",
        short(.fpr), short(&(-f64::from(*bits)).exp2()),
        match crate::bits_for(*fpr) {
            Some(bits) => format!("take a `BinaryFuse{bits}`"),
            None => "no binary fuse filter has fewer, ask for a higher one".to_owned(),
        }
    )]
    UnreachableFpr {
        /// Requested rate.
        fpr: f64,
        /// Bits of a fingerprint.
        bits: u32,
    },
    /// A filter of this form has slots for fewer keys.
    #[error(
        "{keys} keys: a filter of this form has at most {most}; {}",
        if *most < 1 << 32 { "build it sharded (`Form::Sharded`), which takes more" } else { "divide them among several" }
    )]
    TooManyKeys {
        /// Number of given keys.
        keys: u64,
        /// The most that the form takes.
        most: u64,
    },
    /// A key of a function has two values.
    #[error("a key has the values {first} and {second}: give each key one value")]
    TwoValues {
        /// One value.
        first: u64,
        /// Another one.
        second: u64,
    },
    /// A value of a function has more bits than its slots.
    #[error("a value of {value} has more than {bits} bits: set `value_bits` to {}", u64::BITS - value.leading_zeros())]
    WideValue {
        /// The value.
        value: u64,
        /// Bits of a value.
        bits: u32,
    },
    /// Values and fingerprints of a function do not fit in slots.
    #[error(
        "values of {value_bits} bits with fingerprints of {filter_bits}: values take 1 to {} bits, fingerprints at most \
         32, both at most 64",
        type_bits
    )]
    InvalidBits {
        /// Bits of a value.
        value_bits: u32,
        /// Bits of a fingerprint.
        filter_bits: u32,
        /// Bits of the type of values.
        type_bits: u32,
    },
    /// A saved function has values of more bits than the type that was asked for.
    #[error(
        "a static function with values of {found} bits, where a type of {expected} was expected: load it as a \
         `StaticFunction<u{}>`",
        found.next_power_of_two().max(8)
    )]
    OtherValues {
        /// Bits of the type of values that was asked for.
        expected: u32,
        /// Bits of a value in the bytes.
        found: u32,
    },
    /// No seed worked; this does not happen with random hashes.
    #[error(
        "no filter of these keys with any of {seeds} seeds: pass the keys themselves, or hashes that are random, or try \
         another `seed`"
    )]
    NoSeed {
        /// Number of tried seeds.
        seeds: u32,
    },
    /// An array of another program that cannot be a filter.
    #[error("the array is no binary fuse filter: {what} is {value}; it is damaged, or of another kind of filter")]
    InvalidArray {
        /// Problem, in words.
        what: &'static str,
        /// Its value.
        value: u64,
    },
    /// A filter for which other programs have no form.
    #[error("other programs have no form for a filter that is {what}: build it three-wise, as one graph of some keys")]
    NotInterchangeable {
        /// Name of the parameter.
        what: &'static str,
    },
    /// The source of keys, or the temporary file, failed.
    #[error("keys could not be read, or their hashes not be kept in a temporary file: {0}")]
    Io(#[from] std::io::Error),
    /// The allocator refused.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A slice for answers does not have one place per key.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// The bytes are not such a filter, or could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The driver or the device refused.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// A primitive got arguments that it does not take.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

warpset_base::debug_as_display!(Error);

warpset_base::saved_error!(Error);
#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);
