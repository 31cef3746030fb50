//! Errors, with the numbers.

use warpset_base::file::FileError;
use warpset_base::filter::LengthMismatch;
use warpset_base::number::{count, short};
use warpset_base::words::OutOfMemory;
use warpset_core::quotient::MAX_REMAINDER_BITS;
use warpset_core::quotient::slots::Container;

use crate::{Duplicates, Layout};

/// Cause of a failed operation on a quotient filter; the filter is unchanged.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// More keys than any filter holds.
    #[error("room for {keys} keys: a filter with these settings holds at most {most}, divide the keys among several")]
    TooManyKeys {
        /// Keys to hold.
        keys: u64,
        /// The most that a filter holds.
        most: u64,
    },
    /// The requested rate is not a probability strictly between 0 and 1.
    #[error("a false-positive rate of {}: choose one between 0 and 1 (0.01 is one percent)", short(.fpr))]
    InvalidFpr {
        /// The rate asked for.
        fpr: f64,
    },
    /// The filter would take more memory than it may.
    #[error("the filter takes {needed} bytes, and may take {limit}: ask for fewer keys, a higher rate or more memory")]
    OverMemoryLimit {
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that it may take.
        limit: u64,
    },
    /// The load limit is not above 0 and at most 0.99.
    #[error("a load limit of {}: choose one above 0 and at most 0.99", short(.max_load))]
    InvalidMaxLoad {
        /// The limit asked for.
        max_load: f64,
    },
    /// No filter has fingerprints of the form that was asked for with
    /// [`with_bits`](crate::Builder::with_bits) or [`resized`](crate::QuotientFilter::resized).
    #[error(
        "quotients of {quotient_bits} bits and remainders of {remainder_bits}: choose 1 to 48 and 1 to 61 bits, together at \
         most 64, or let the builder choose: `builder(keys).fpr(rate)`"
    )]
    InvalidBits {
        /// Bits of a quotient.
        quotient_bits: u32,
        /// Bits of a remainder.
        remainder_bits: u32,
    },
    /// The rate is lower than that of a filter that stores 64 bits of every key's hash.
    #[error(
        "a false-positive rate of {} is out of reach: for {} choose one of at least {}",
        short(.fpr), count(*keys, "key"), short(.least)
    )]
    UnreachableFpr {
        /// Keys to hold.
        keys: u64,
        /// The rate asked for.
        fpr: f64,
        /// The lowest rate for that many keys.
        least: f64,
    },
    /// The keys of exact filters have 2 to 64 bits.
    #[error("exact for keys of {key_bits} bits: choose 2 to 64, or build a filter that is not exact")]
    InvalidKeyBits {
        /// Bits of a key, as asked for.
        key_bits: u32,
    },
    /// An exact filter for more keys than are worthwhile at this number of bits.
    #[error(
        "room for {keys} keys of {key_bits} bits: an exact filter of such keys has room for at most {most}; ask for fewer, \
         or take a bitmap, which holds all of them in {}",
        count((1u64 << key_bits).div_ceil(8), "byte")
    )]
    TooManyExactKeys {
        /// Keys to hold.
        keys: u64,
        /// Bits of a key, fewer than 50.
        key_bits: u32,
        /// The most keys that such a filter holds.
        most: u64,
    },
    /// The quotient and remainder given for an exact filter have another number of bits than its keys.
    #[error(
        "exact for keys of {key_bits} bits, but quotient and remainder have {bits} together: give both the same number, or \
         let the builder choose: `builder(keys).exact(bits)`"
    )]
    OtherKeyBits {
        /// Bits of a key, as asked for.
        key_bits: u32,
        /// Bits of quotient and remainder.
        bits: u32,
    },
    /// A layout with slots in a container that this structure does not have.
    #[error(
        "a {structure} has no `Container::{container:?}`: take the layout of another {structure}, or build one for the same \
         number of keys"
    )]
    WrongContainer {
        /// The structure that was to be built.
        structure: &'static str,
        /// Container of the layout's slots.
        container: Container,
    },
    /// The allocator refused.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The filter has no room for all items.
    #[error(
        "the filter is full: {}, and there is room for {limit}; make room with `double`, or build for as many keys as there \
         will be",
        match duplicates {
            Duplicates::Dropped => format!("it would hold at least {items} different keys"),
            Duplicates::Kept => format!("it would hold {items} keys, repetitions included"),
            Duplicates::Counted => format!("keys and their counts would take the room of {items} single keys"),
        }
    )]
    Full {
        /// The items: different keys, keys with their repetitions, or slots of keys and counters, by `duplicates`.
        /// Different keys with equal fingerprints count once. A batch that is refused before all of it has been read
        /// counts as far as it was read.
        items: u64,
        /// The most items.
        limit: u64,
        /// Setting for repeated keys.
        duplicates: Duplicates,
    },
    /// More fingerprints belong near the end than the overflow region takes. Hashed keys do not cause this. A multiset
    /// in which one key is repeated very often can, and so can chosen fingerprints.
    #[error(
        "too many keys with equal or neighbouring hashes for the end of the filter: make room with `double`, or keep \
         repeated keys once (`Duplicates::Dropped`) or counted (`Duplicates::Counted`)"
    )]
    OverflowRegionFull {
        /// The slot needed.
        slot: u64,
        /// The number of usable slots.
        limit: u64,
    },
    /// The largest filter of these keys: another doubling would leave no remainder bits.
    #[error(
        "a filter with room for {} cannot double again: every doubling takes one bit of what tells keys apart, and one is \
         left; build it anew from the keys, with a larger capacity or a lower rate of false positives",
        count(*limit, "key")
    )]
    CannotDouble {
        /// The current limit.
        limit: u64,
    },
    /// The smallest filter of these keys.
    #[error("a filter with room for {} cannot be halved again: keep it as it is", count(*limit, "key"))]
    CannotHalve {
        /// The current limit.
        limit: u64,
    },
    /// Values with no bits, or with too many beside their fingerprints.
    #[error(
        "values of {value_bits} bits beside fingerprints of {fingerprint_bits}: {}, or ask for fewer keys or a higher rate",
        if *most > 0 { format!("choose 1 to {most} bits") } else { "no bits are left".to_owned() }
    )]
    InvalidValueBits {
        /// Bits of a value, as asked for.
        value_bits: u32,
        /// Bits of a fingerprint.
        fingerprint_bits: u32,
        /// Most bits of a value beside it.
        most: u32,
    },
    /// A value has too many bits.
    #[error("a value of {value}, and values have {bits} bits: build it with `values` of {} bits or more", 64 - value.leading_zeros())]
    ValueTooWide {
        /// The first such value.
        value: u64,
        /// Bits of a value.
        bits: u32,
    },
    /// An operator for a maplet that counts pairs of fingerprints and values.
    #[error(
        "a maplet with `Duplicates::Counted` combines no values by an operator: insert values, which are counted, or build it \
         with `Duplicates::Dropped` or `Duplicates::Kept`"
    )]
    CountedValues,
    /// The filter has no counters.
    #[error(
        "this {structure} counts no repetitions: build a `RankSelectQuotientFilter` with `Duplicates::Counted`, or store each \
         repetition, with `Duplicates::Kept`"
    )]
    NoCounters {
        /// The structure.
        structure: &'static str,
    },
    /// The filter is exact, and a key is no integer of that many bits.
    #[error(
        "a key is no integer of {bits} bits, and the filter is exact for those alone: build it for more bits, or not exact"
    )]
    KeyTooWide {
        /// Bits of a key.
        bits: u32,
    },
    /// The filter stores hashes, which do not tell their keys.
    #[error("only an exact filter can list its keys: build it with `exact`")]
    NotExact,
    /// More copies of fingerprints than a counter takes.
    #[error("2^63 keys or more, repetitions included: counts end there, use several filters")]
    TooManyCopies,
    /// Two filters with different parameters cannot be merged or compared.
    #[error("the filters differ in {field}, {left} here and {right} there: build both with the same")]
    Incompatible {
        /// The parameter.
        field: &'static str,
        /// Its value in the filter to be changed.
        left: u64,
        /// Its value in the other filter.
        right: u64,
    },
    /// Two filters with different [`Duplicates`] cannot be merged or compared.
    #[error(
        "the filters differ: `Duplicates::{left:?}` here and `Duplicates::{right:?}` there; build both with the same"
    )]
    DifferentDuplicates {
        /// Setting of the filter to be changed.
        left: Duplicates,
        /// Setting of the other filter.
        right: Duplicates,
    },
    /// An exact filter can be merged or compared only with one of keys with equally many bits.
    #[error("the filters differ: this one is {}, the other {}; build both with the same", exact(.left), exact(.right))]
    DifferentKeyBits {
        /// Bits of a key of the filter to be changed, `None` if it is not exact.
        left: Option<u32>,
        /// Bits of a key of the other filter, `None` if it is not exact.
        right: Option<u32>,
    },
    /// The other filter stores fewer bits of every key, and the missing ones are not known.
    #[error(
        "the other filter stores {right} bits of every key's hash and this one {left}, so that its rate would change: merge or \
         intersect into the other one (`other.merge(&this)`), or build both for the same number of keys and the same rate"
    )]
    FewerBits {
        /// Bits per key in the filter to be changed.
        left: u32,
        /// Bits per key in the other filter: fewer.
        right: u32,
    },
    /// A fingerprint has too many bits.
    #[error("{fingerprint:#x} is not a fingerprint of {bits} bits: `Layout::fingerprint` makes them from keys")]
    InvalidFingerprint {
        /// The first such value.
        fingerprint: u64,
        /// Bits of a fingerprint.
        bits: u32,
    },
    /// Fingerprints with counts that do not ascend.
    #[error(
        "{fingerprint:#x} does not ascend, has no copies, or is no fingerprint of this filter: give each fingerprint once, in \
         ascending order"
    )]
    NotAscending {
        /// A fingerprint that breaks the order.
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
        "the contents are those of no quotient filter, as noticed at place {slot}: they are damaged or were written by another \
         program, build the filter again"
    )]
    InvalidSlots {
        /// The slot where that was noticed.
        slot: u64,
    },
    /// The driver or the device refused.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Gpu(#[from] warpset_gpu::GpuError),
    /// A primitive refused its arguments.
    #[cfg(feature = "gpu")]
    #[error(transparent)]
    Primitive(Box<warpset_primitives::Error>),
}

warpset_base::debug_as_display!(Error);

warpset_base::saved_error!(Error);
#[cfg(feature = "gpu")]
warpset_primitives::from_primitives!(Error);

impl Error {
    /// Returns the error for values beside the fingerprints of a layout.
    pub(crate) fn no_value_bits(keys: &Layout, value_bits: u32) -> Error {
        let (fingerprint_bits, remainder_bits) = (keys.fingerprint_bits(), keys.remainder_bits());
        let most = (64 - fingerprint_bits).min(MAX_REMAINDER_BITS - remainder_bits);
        Error::InvalidValueBits { value_bits, fingerprint_bits, most }
    }
}

fn exact(key_bits: &Option<u32>) -> String {
    key_bits.map_or("not exact".to_owned(), |bits| format!("exact for keys of {bits} bits"))
}
