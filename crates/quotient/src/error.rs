//! Everything that can go wrong, with the numbers.

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::short;
use warpset_base::words::OutOfMemory;

/// Why an operation on a quotient filter failed; the filter is as it was before.
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
    /// The load limit is not above 0 and at most 0.99.
    #[error("a load limit of {} is not above 0 and at most 0.99", short(.max_load))]
    InvalidMaxLoad {
        /// The limit asked for.
        max_load: f64,
    },
    /// No filter has fingerprints of this form.
    #[error(
        "quotients of {quotient_bits} and remainders of {remainder_bits} bits: 1 to 48 and 1 to 61, together at most 64"
    )]
    InvalidBits {
        /// Bits of a quotient.
        quotient_bits: u32,
        /// Bits of a remainder.
        remainder_bits: u32,
    },
    /// The rate takes fingerprints of more than 64 bits, or remainders of more than 61.
    #[error("a false-positive rate of {} is out of reach for {keys} keys: ask for a higher one", short(.fpr))]
    UnreachableFpr {
        /// Keys to hold.
        keys: u64,
        /// The rate asked for.
        fpr: f64,
    },
    /// The allocator refused.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The filter would hold more fingerprints than its load limit permits.
    #[error(
        "{items} fingerprints would be stored; the load limit permits {limit}: double the filter, or build a larger one"
    )]
    Full {
        /// Fingerprints, those already there included.
        items: u64,
        /// The most that are permitted.
        limit: u64,
    },
    /// More fingerprints belong near the end than the overflow region can take. Hashed keys do not do this; a multiset in
    /// which one key is repeated very often can, and so can fingerprints chosen on purpose.
    #[error(
        "the last fingerprint would lie in slot {slot}; only slots below {limit} may be used: double the filter, or store \
         repeated keys once"
    )]
    OverflowRegionFull {
        /// The slot needed.
        slot: u64,
        /// The number of usable slots.
        limit: u64,
    },
    /// Slots of this kind have no counters.
    #[error("a {structure} has no counters: take a rank-and-select quotient filter, or `Duplicates::Kept`")]
    NoCounters {
        /// The structure.
        structure: &'static str,
    },
    /// The filter is exact, and a key is no integer of that many bits.
    #[error("a key is no integer of {bits} bits, and the filter is exact: build it for more bits, or not exact")]
    KeyTooWide {
        /// Bits of a key.
        bits: u32,
    },
    /// The filter stores hashes, which do not tell their keys.
    #[error("only an exact filter can list its keys: build it with `exact`")]
    NotExact,
    /// There would be more copies of fingerprints than are counted.
    #[error("there would be 2^63 copies of fingerprints or more")]
    TooManyCopies,
    /// Two filters that differ in this cannot be merged or compared.
    #[error("filters differ in {field}, {left} here and {right} there: build both with the same")]
    Incompatible {
        /// The first parameter that differs.
        field: &'static str,
        /// Its value in the filter that was to change.
        left: u64,
        /// Its value in the other filter.
        right: u64,
    },
    /// A fingerprint has more bits than those of the filter.
    #[error("{fingerprint:#x} is not a fingerprint of {bits} bits: `Layout::fingerprint` makes them from keys")]
    InvalidFingerprint {
        /// The first such value.
        fingerprint: u64,
        /// Bits of a fingerprint.
        bits: u32,
    },
    /// Fingerprints with their copies were to be given in ascending order.
    #[error(
        "{fingerprint:#x} does not ascend, has no copies, or is no fingerprint of this filter: give each fingerprint once, in \
         ascending order"
    )]
    NotAscending {
        /// A fingerprint for which that does not hold.
        fingerprint: u64,
    },
    /// A slice for answers does not have one place per key.
    #[error(transparent)]
    LengthMismatch(#[from] LengthMismatch),
    /// The bytes are not such a filter, or could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The slots are not those of any set of fingerprints.
    #[error(
        "the slots break the invariants of a quotient filter, at slot {slot} or before: the file was not written by this \
         library, build the filter again"
    )]
    InvalidSlots {
        /// Where that was noticed.
        slot: u64,
    },
    /// The driver or the device refused.
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// A primitive got arguments that it does not take.
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

impl From<warpset_primitives::Error> for Error {
    fn from(error: warpset_primitives::Error) -> Error {
        match error {
            warpset_primitives::Error::Gpu(error) => Error::Gpu(error),
            other => Error::Primitive(Box::new(other)),
        }
    }
}
