//! What a kind of perfect hash functions gives; everything else is the same for all kinds.
//!
//! The frame of every kind: the high half of a key's 128-bit hash picks its bucket, the kind turns the low halves of a
//! bucket's keys into bits, its *code*, and two Elias-Fano lists say where the keys and the code of each bucket begin.
//! Builders, partitions, sorting into buckets, external builds, the check for duplicates, the join, progress, files,
//! storages, lookups of many keys and static filters use nothing else of a kind than the trait here.
//!
//! A new kind takes a folder of its own with an implementation of [`HashKind`], its kernels with one of
//! [`gpu::DeviceHashKind`](crate::gpu), and a line in [`Kind`].

use crate::bit_vec::BitVec;
use crate::build::Settings;
use crate::elias_fano::{Least, Lists};
use crate::format::Header;
use crate::function::Lookup;
use crate::{Builder, Error, Estimate};
use std::fmt::Debug;
use warpset_base::file::{FileError, HEADER_BYTES, Structure};
use warpset_base::key::Hash128;

/// The kinds of functions, with the numbers that they have in the headers of saved functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u16)]
pub enum Kind {
    /// [`RecSplitKind`](crate::RecSplitKind): splitting trees.
    RecSplit = Structure::RECSPLIT.number,
    /// [`ConsensusKind`](crate::ConsensusKind): tasks that share the bits of a bucket.
    Consensus = Structure::CONSENSUS.number,
}

impl Kind {
    /// All kinds of hash function.
    pub const ALL: &'static [Kind] = &[Kind::RecSplit, Kind::Consensus];

    /// Its number in headers, with the version of its format.
    pub(crate) const fn structure(self) -> Structure {
        match self {
            Kind::RecSplit => Structure::RECSPLIT,
            Kind::Consensus => Structure::CONSENSUS,
        }
    }

    /// The kind whose functions within this space, in bits per key, are predicted to be built fastest on the host.
    /// [`Builder::for_space`](crate::Builder::for_space) sets up a builder of either.
    ///
    /// ```
    /// use warpset_mphf::Kind;
    ///
    /// assert_eq!(Kind::for_space(1.5)?, Kind::Consensus);
    /// assert!(Kind::for_space(0.5).is_err());
    /// # Ok::<(), warpset_mphf::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnreachableSpace`] if no kind has functions so small.
    pub fn for_space(bits_per_key: f64) -> Result<Kind, Error> {
        Self::fastest(bits_per_key, |estimate| estimate.nanoseconds_per_key)
    }

    /// [`for_space`](Self::for_space) for builds of many keys on a device.
    ///
    /// ```
    /// use warpset_mphf::Kind;
    ///
    /// assert_eq!(Kind::for_space_on_device(1.7)?, Kind::Consensus);
    /// # Ok::<(), warpset_mphf::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnreachableSpace`] if no kind has functions so small.
    pub fn for_space_on_device(bits_per_key: f64) -> Result<Kind, Error> {
        Self::fastest(bits_per_key, |estimate| estimate.device_nanoseconds_per_key)
    }

    /// The kind that is built fastest within this space.
    fn fastest(bits_per_key: f64, time: fn(&Estimate) -> f64) -> Result<Kind, Error> {
        fn estimate<M: HashKind>(bits_per_key: f64) -> Result<Estimate, Error> {
            Builder::<M>::new().for_space(bits_per_key).estimate()
        }
        let [recsplit, consensus] =
            [estimate::<crate::RecSplitKind>(bits_per_key), estimate::<crate::ConsensusKind>(bits_per_key)];
        // The smallest functions are of Consensus: where these are too large, its error names the least.
        match (recsplit, consensus?) {
            (Ok(recsplit), consensus) if time(&recsplit) <= time(&consensus) => Ok(Kind::RecSplit),
            _ => Ok(Kind::Consensus),
        }
    }

    /// The kind of a saved function, by its first 128 bytes; of the rest nothing is checked.
    ///
    /// ```
    /// use warpset_mphf::{Kind, RecSplit};
    ///
    /// let function = RecSplit::builder().build_from(&["one", "two"])?;
    /// assert_eq!(Kind::of_bytes(&function.to_bytes())?, Kind::RecSplit);
    /// # Ok::<(), warpset_mphf::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError`] if the bytes do not begin with the header of a function.
    pub fn of_bytes(bytes: &[u8]) -> Result<Kind, FileError> {
        let (needed, found) = (HEADER_BYTES as u64, bytes.len() as u64);
        let head = bytes.first_chunk().ok_or(FileError::Truncated { needed, found })?;
        let mut outcome = Err(FileError::BadMagic);
        for &kind in Kind::ALL {
            outcome = warpset_base::file::Header::parse(head, kind.structure()).map(|_| kind);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }
}

/// A kind of perfect hash functions: how the keys of a bucket become bits, and how a lookup reads them. Sealed;
/// [`RecSplitKind`](crate::RecSplitKind) and [`ConsensusKind`](crate::ConsensusKind) implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kind of perfect hash functions",
    note = "use `RecSplit`, `Consensus` or `StaticFilter`, or the kinds `RecSplitKind` and `ConsensusKind`"
)]
pub trait HashKind: sealed::HashKind {}

pub(crate) mod sealed {
    use super::*;

    /// Operations of a kind.
    pub trait HashKind: Copy + Debug + Eq + Send + Sync + 'static {
        /// The number in headers.
        const KIND: Kind;
        /// For messages: "RecSplit function".
        const NAME: &'static str;
        /// The expected number of keys in a bucket unless builders say otherwise.
        const BUCKET_SIZE: u32;

        /// What the setters of a builder set, besides what all kinds have.
        type KindOptions: Copy + Debug + Default + Send + Sync;
        /// The parameters of the codes, as headers have them.
        type CodeParameters: Copy + Debug + Eq + Send + Sync;
        /// What follows from a header and makes lookups fast.
        type Tables: Clone + Send + Sync;
        /// What the search for the codes of all buckets has in common.
        type Search: Send + Sync;
        /// Space that a thread keeps from search to search.
        type Scratch: Default + Send;

        /// The parameters that these options give with this expected number of keys in a bucket.
        ///
        /// # Errors
        /// There are no functions with these options.
        fn code(options: &Self::KindOptions, bucket_size: u32) -> Result<Self::CodeParameters, Error>;

        /// What functions with these parameters are predicted to cost.
        fn estimate(code: &Self::CodeParameters, bucket_size: u32) -> Estimate;

        /// Changes the options to those that are predicted to build fastest within this space, and returns the bucket size.
        ///
        /// # Errors
        /// The fewest bits per key, where no functions are so small.
        fn choose_for_space(options: &mut Self::KindOptions, bits_per_key: f64) -> Result<u32, f64>;

        /// The parameters for the header: five bytes and a word.
        fn to_fields(code: &Self::CodeParameters) -> ([u8; 5], u64);

        /// The parameters of a header; `bytes` is the whole field that begins with the five, for messages.
        ///
        /// # Errors
        /// [`FileError`] for fields that no function has.
        fn from_fields(fields: [u8; 5], word: u64, bytes: u64) -> Result<Self::CodeParameters, FileError>;

        /// Whether there can be a function with this header, of which all that the kinds have in common was checked.
        fn is_possible(header: &Header<Self>) -> bool;

        /// Whether the functions map `n` keys to `0..n`.
        fn is_minimal(code: &Self::CodeParameters) -> bool;

        /// All values of a function are below.
        fn values(header: &Header<Self>) -> u64;

        /// The tables of a function.
        fn tables(header: &Header<Self>, lists: &Lists) -> Self::Tables;

        /// The value of the key with this hash under the function's seed; 0 if there are no keys.
        fn get(lookup: Lookup<'_, Self>, hash: Hash128) -> u64;

        /// The values of at most `BATCH` keys; the slices have the same length.
        fn get_batch(lookup: Lookup<'_, Self>, hashes: &[Hash128], values: &mut [u64]);

        /// Prepares the search for the codes of buckets of at most `largest` keys.
        fn search(settings: &Settings<Self>, largest: u32) -> Self::Search;

        /// Whether a bucket of this many keys takes so long that threads had better take one each.
        fn is_slow(search: &Self::Search, keys: u32) -> bool;

        /// Whether [`HashKind::encode`] wants the keys of a bucket in the order of their lowest byte.
        fn wants_lowest_byte_first(code: &Self::CodeParameters) -> bool;

        /// Finds the codes of consecutive buckets, and says in `found` what each bucket has. If `are_few`, there are few
        /// partitions left, and idle threads may help with one bucket.
        ///
        /// # Errors
        /// `SearchFailure` names a bucket without a code.
        fn encode(
            search: &Self::Search,
            are_few: bool,
            buckets: Buckets<'_>,
            found: &mut [Bucket],
            least: &mut Least,
            scratch: &mut Self::Scratch,
        ) -> Result<Part, SearchFailure>;
    }
}

/// Keys of consecutive buckets.
pub struct Buckets<'a> {
    /// Low halves of hashes, bucket after bucket. A search may leave each bucket's keys in any order.
    pub keys: &'a mut [u64],
    /// Where each bucket begins within `keys`, and where the last one ends.
    pub bounds: &'a [u32],
}

/// A bucket, counted from the first one, that is too large or has no code: two keys have the same hash, or the hashes
/// are against us, which is far less likely than any hardware fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchFailure {
    /// The number of the bucket.
    pub bucket: usize,
}

/// What a bucket has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    /// Number of keys in the bucket.
    pub keys: u32,
    /// Bits of its code.
    pub bits: u32,
}

/// The codes of consecutive buckets.
#[derive(Default)]
pub struct Part {
    /// Number of buckets.
    pub buckets: usize,
    /// Keys in all buckets.
    pub keys: u64,
    /// Keys in the largest.
    pub largest: u32,
    /// The codes, one after the other.
    pub(crate) bits: BitVec,
}
