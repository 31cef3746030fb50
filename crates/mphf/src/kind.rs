//! The part of a perfect hash function that differs between kinds.
//!
//! All kinds share a frame: the high half of a key's 128-bit hash picks its bucket; the kind encodes the low halves of
//! a bucket's keys as bits, its *code*; two Elias-Fano lists locate the keys and the code of each bucket. Builders,
//! partitions, sorting into buckets, external builds, the check for duplicates, the join, progress, files, storages,
//! lookups of many keys and static filters use only the trait here.
//!
//! A new kind needs a folder of its own with an implementation of [`sealed::HashKind`], kernels with one of
//! `gpu::kind::sealed::DeviceHashKind`, and a variant of [`Kind`].

use crate::bit_vec::BitVec;
use crate::build::Settings;
use crate::elias_fano::{Least, Lists};
use crate::format::Header;
use crate::function::Lookup;
use crate::{Builder, Error, Estimate, Number};
use std::fmt::Debug;
use warpset_base::file::{FileError, FileKind, HEADER_BYTES};
use warpset_base::key::{Hash128, Key};

/// Kinds of functions, with their numbers in the headers of saved functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[repr(u16)]
pub enum Kind {
    /// [`RecSplitKind`](crate::RecSplitKind): splitting trees.
    RecSplit = FileKind::RECSPLIT.number,
    /// [`ConsensusKind`](crate::ConsensusKind): tasks that share the bits of a bucket.
    Consensus = FileKind::CONSENSUS.number,
    /// [`PlacementKind`](crate::PlacementKind): a seed per few keys.
    Placement = FileKind::PLACEMENT.number,
}

impl Kind {
    /// All kinds of hash function.
    pub const ALL: &'static [Kind] = &[Kind::RecSplit, Kind::Consensus, Kind::Placement];

    /// Returns its number in headers, with the version of its format.
    pub(crate) const fn structure(self) -> FileKind {
        match self {
            Kind::RecSplit => FileKind::RECSPLIT,
            Kind::Consensus => FileKind::CONSENSUS,
            Kind::Placement => FileKind::PLACEMENT,
        }
    }

    /// Returns the kind that is predicted to build a function of `bits_per_key` bits per key fastest on the host.
    /// [`Builder::for_space`](crate::Builder::for_space) sets up a builder of each.
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

    /// Returns the kind for builds of many keys on a device, like [`for_space`](Self::for_space).
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

    /// Returns the kind with the least time among those that reach this space.
    fn fastest(bits_per_key: f64, time: fn(&Estimate) -> f64) -> Result<Kind, Error> {
        fn estimate<M: HashKind>(bits_per_key: f64) -> Result<Estimate, Error> {
            Builder::<M>::new().for_space(bits_per_key).estimate()
        }
        // Consensus has the smallest functions. If these are too large, its error names the least.
        let consensus = estimate::<crate::ConsensusKind>(bits_per_key)?;
        let others = [
            (Kind::RecSplit, estimate::<crate::RecSplitKind>(bits_per_key)),
            (Kind::Placement, estimate::<crate::PlacementKind>(bits_per_key)),
        ];
        let all = others.into_iter().filter_map(|(kind, estimate)| Some((kind, time(&estimate.ok()?))));
        let fastest = all.chain([(Kind::Consensus, time(&consensus))]).min_by(|a, b| a.1.total_cmp(&b.1));
        Ok(fastest.map_or(Kind::Consensus, |(kind, _)| kind))
    }

    /// Returns the kind of a saved function by its first 128 bytes; the rest is not checked.
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

/// A kind of perfect hash functions: the code of a bucket's keys, and its lookup. Sealed;
/// [`RecSplitKind`](crate::RecSplitKind), [`ConsensusKind`](crate::ConsensusKind) and
/// [`PlacementKind`](crate::PlacementKind) implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no kind of perfect hash functions",
    note = "use `RecSplit`, `Consensus`, `Placement` or `StaticFilter`, or the kinds of these functions"
)]
pub trait HashKind: sealed::HashKind {}

pub(crate) mod sealed {
    use super::*;

    /// Operations of a kind.
    pub trait HashKind: Copy + Debug + Eq + Send + Sync + 'static {
        /// Number in headers.
        const KIND: Kind;
        /// Name in messages: "RecSplit function".
        const NAME: &'static str;
        /// Default of the expected number of keys in a bucket.
        const BUCKET_SIZE: u32;

        /// Options that only this kind has.
        type KindOptions: Copy + Debug + Default + Send + Sync;
        /// Parameters of the codes, stored in headers.
        type CodeParameters: Copy + Debug + Eq + Send + Sync;
        /// Tables derived from a header, for lookups.
        type Tables: Clone + Send + Sync;
        /// Shared, immutable part of the search for the codes of all buckets.
        type Search: Send + Sync;
        /// Memory that a thread reuses from search to search.
        type Scratch: Default + Send;

        /// Returns the parameters for these options and this expected number of keys in a bucket.
        ///
        /// # Errors
        /// [`Error::InvalidParameter`] or [`Error::InvalidShape`] for options without functions.
        fn code(options: &Self::KindOptions, bucket_size: u32) -> Result<Self::CodeParameters, Error>;

        /// Predicts the cost of functions with these parameters.
        fn estimate(code: &Self::CodeParameters, bucket_size: u32) -> Estimate;

        /// Chooses the options with the least predicted `time` within this space, and returns the bucket size.
        ///
        /// # Errors
        /// The fewest bits per key, if no functions are so small.
        fn choose_for_space(
            options: &mut Self::KindOptions,
            bits_per_key: f64,
            time: impl Fn(&Estimate) -> f64,
        ) -> Result<u32, f64>;

        /// Encodes the parameters for the header: five bytes and a word.
        fn to_fields(code: &Self::CodeParameters) -> ([u8; 5], u64);

        /// Decodes the parameters of a header; `bytes` is the whole field that begins with the five, for messages.
        ///
        /// # Errors
        /// [`FileError`] for fields that no function has.
        fn from_fields(fields: [u8; 5], word: u64, bytes: u64) -> Result<Self::CodeParameters, FileError>;

        /// Whether a function with this header can exist. The fields that all kinds share are checked before.
        fn is_possible(header: &Header<Self>) -> bool;

        /// Whether the functions map `n` keys to `0..n`.
        fn is_minimal(code: &Self::CodeParameters) -> bool;

        /// Returns an upper bound: all values of a function are below it.
        fn values(header: &Header<Self>) -> u64;

        /// Whether [`tables`](Self::tables) reads the lists.
        const READS_LISTS: bool = false;

        /// Derives the tables of a function from its header, which was checked, and the words of its lists, which may
        /// be damaged. They are empty unless [`READS_LISTS`](Self::READS_LISTS).
        fn tables(header: &Header<Self>, lists: &Lists, list_words: &[u64]) -> Self::Tables;

        /// Hashes a key: the high half picks its bucket, and the low half is what [`encode`](Self::encode) gets.
        #[inline(always)]
        fn hash<K: Key + ?Sized>(key: &K, seed: u64) -> Hash128 {
            key.hash128(seed)
        }

        /// Returns the value of the key with this hash under the function's seed; 0 if there are no keys.
        fn get(lookup: Lookup<'_, Self>, hash: Hash128) -> u64;

        /// Looks up at most `BATCH` keys; the slices have equal lengths.
        fn get_batch(lookup: Lookup<'_, Self>, hashes: &[Hash128], values: &mut [u64]);

        /// Whether [`get_many`](Self::get_many) is faster than to hash keys and look up batches of hashes, so much that
        /// keys that are cheap to hash may be hashed twice.
        const MANY_IS_FAST: bool = false;

        /// Looks up many keys on the calling thread; the slices have equal lengths.
        fn get_many<K: Key, N: Number>(lookup: Lookup<'_, Self>, keys: &[K], values: &mut [N])
        where
            Self: crate::HashKind,
        {
            lookup.hash_and_get(keys, values);
        }

        /// Prepares the search for the codes of buckets of at most `largest` keys.
        fn search(settings: &Settings<Self>, keys: u64, largest: u32) -> Self::Search;

        /// Whether a bucket of this many keys takes so long that each thread should take one bucket at a time.
        fn is_slow(search: &Self::Search, keys: u32) -> bool;

        /// Whether [`encode`](Self::encode) needs the keys of a bucket in the order of their lowest byte.
        fn wants_lowest_byte_first(code: &Self::CodeParameters) -> bool;

        /// Finds the codes of consecutive buckets, and writes the size of each bucket and its code to `found`. If
        /// `are_few`, few partitions are left, and idle threads may help with one bucket.
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
    /// Low halves of hashes, bucket after bucket. A search may permute each bucket's keys.
    pub keys: &'a mut [u64],
    /// Start of each bucket within `keys`, and the end of the last one.
    pub bounds: &'a [u32],
}

/// A bucket without a code, counted from the first one. It is too large, two of its keys have equal hashes, or no seed
/// solved it, which is far less likely than a hardware fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchFailure {
    /// Index of the bucket.
    pub bucket: usize,
}

/// Sizes of a bucket.
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
    /// Keys in the largest bucket.
    pub largest: u32,
    /// The codes, one after the other.
    pub(crate) bits: BitVec,
}
