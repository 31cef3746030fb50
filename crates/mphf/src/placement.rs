//! Placement: a bucket of a few keys stores one byte, which places its keys in free slots.
//!
//! Sources and idea: `warpset_core::placement`. [`find`] searches seeds, [`bumped`] numbers the keys that remain,
//! [`query`] looks keys up, and [`cost`] predicts space and time. A bucket of the frame that all kinds share is a
//! *segment* here.

mod builder;
mod bumped;
mod cost;
mod find;
#[cfg(feature = "gpu")]
mod gpu;
mod query;
#[cfg(test)]
mod tests;

use crate::bit_vec::BitVec;
use crate::elias_fano::{Least, Lists};
use crate::format::Header;
use crate::function::{Lookup, PerfectHash};
use crate::kind::{Bucket, Buckets, Kind, Part, SearchFailure, sealed};
#[cfg(feature = "mmap")]
use crate::stored::Mapped;
use crate::{Error, Estimate, HashKind, Number, build};
use std::ops::RangeInclusive;
use warpset_base::file::FileError;
use warpset_base::key::{Hash128, Key};
use warpset_core::placement::{LOG_SLICE, POINT, Shape, buckets_per_segment};

/// Kind of functions with a seed of one byte per four to five keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementKind;

/// A minimal perfect hash function with the fastest lookups: maps the `n` keys that it was built from to `0..n`, each
/// to its own number, in 1.95 bits per key.
///
/// Other keys map to any number below `n`: the function does not know its keys. See [`crate::StaticFilter`] for a
/// structure that does.
///
/// ```
/// use warpset_mphf::Placement;
///
/// let keys: Vec<u64> = (0..100_000).map(|i| i * i).collect();
/// let function = Placement::builder().build_from(&keys)?;
/// assert!(function.bits_per_key() < 2.05);
/// let mut seen = vec![false; keys.len()];
/// for &key in &keys {
///     seen[function.get(key) as usize] = true;
/// }
/// assert!(seen.iter().all(|seen| *seen));
/// # Ok::<(), warpset_mphf::Error>(())
/// ```
///
/// Lookups: one cache miss for large functions, and no loop. Beside its words a function has a table of 32 bytes per
/// segment of 57,344 keys, which is made when it is opened.
pub type Placement = PerfectHash<PlacementKind>;

/// A function that borrows its words: lent by [`Placement::view`], or opened in bytes without a copy.
pub type PlacementView<'a> = PerfectHash<PlacementKind, &'a [u64]>;

/// A function in a memory-mapped file, made by [`Placement::map`].
#[cfg(feature = "mmap")]
pub type MappedPlacement = PerfectHash<PlacementKind, Mapped>;

/// Buckets per key, in parts of `1 << POINT`, stored in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeParameters {
    pub(crate) buckets_per_key: u32,
}

impl CodeParameters {
    /// Returns the buckets of each segment in a function of this many keys.
    fn buckets(self, keys: u64, segments: u64) -> u32 {
        buckets_per_segment(keys, segments, self.buckets_per_key)
    }
}

/// Valid numbers of buckets per key: 1 to 6 keys in a bucket.
const BUCKETS_PER_KEY: RangeInclusive<u32> = (1 << POINT) / 6..=1 << POINT;

/// Options of this kind only.
#[derive(Clone, Copy, Debug)]
pub struct KindOptions {
    keys_per_seed: f64,
}

/// Shared, immutable part of searches.
#[derive(Clone)]
pub struct Search {
    /// Buckets per segment.
    buckets: u32,
    order: find::Order,
    largest: u32,
}

/// Memory that a thread reuses from search to search.
#[derive(Default)]
pub struct Scratch {
    find: find::Scratch,
    bumped: bumped::Scratch,
}

impl HashKind for PlacementKind {}

impl sealed::HashKind for PlacementKind {
    const KIND: Kind = Kind::Placement;
    const NAME: &'static str = "placement function";
    const BUCKET_SIZE: u32 = 7 << 13;
    const READS_LISTS: bool = true;
    const MANY_IS_FAST: bool = true;
    type KindOptions = KindOptions;
    type CodeParameters = CodeParameters;
    type Tables = query::Tables;
    type Search = Search;
    type Scratch = Scratch;

    fn code(options: &KindOptions, _: u32) -> Result<CodeParameters, Error> {
        options.code()
    }

    fn estimate(code: &CodeParameters, _: u32) -> Estimate {
        cost::estimate(*code)
    }

    fn choose_for_space(
        options: &mut KindOptions,
        bits_per_key: f64,
        _: impl Fn(&Estimate) -> f64,
    ) -> Result<u32, f64> {
        options.choose_for_space(bits_per_key)
    }

    fn to_fields(code: &CodeParameters) -> ([u8; 5], u64) {
        ([LOG_SLICE as u8, 0, 0, 0, 0], code.buckets_per_key.into())
    }

    fn from_fields([log_slice, unused @ ..]: [u8; 5], word: u64, bytes: u64) -> Result<CodeParameters, FileError> {
        if u32::from(log_slice) != LOG_SLICE || unused != [0; 4] {
            return Err(FileError::InvalidHeader { field: "shape", value: bytes });
        }
        match u32::try_from(word).ok().filter(|value| BUCKETS_PER_KEY.contains(value)) {
            Some(buckets_per_key) => Ok(CodeParameters { buckets_per_key }),
            None => Err(FileError::InvalidHeader { field: "buckets per key", value: word }),
        }
    }

    fn is_possible(header: &Header<Self>) -> bool {
        // Every segment has a number of bumped keys, so the table of segments is at most as large as they allow.
        header.code_bits.is_multiple_of(8)
            && header.code_bits / 16 >= header.layout.buckets
            && u128::from(header.code.buckets(header.keys, header.layout.buckets)) * u128::from(header.layout.buckets)
                <= u128::from(header.code_bits / 8)
    }

    fn is_minimal(_: &CodeParameters) -> bool {
        true
    }

    fn values(header: &Header<Self>) -> u64 {
        header.keys
    }

    fn tables(header: &Header<Self>, _: &Lists, list_words: &[u64]) -> query::Tables {
        query::Tables::new(header, list_words)
    }

    #[inline(always)]
    fn hash<K: Key + ?Sized>(key: &K, seed: u64) -> Hash128 {
        key.short_hash128(seed)
    }

    #[inline(always)]
    fn get(lookup: Lookup<'_, Self>, hash: Hash128) -> u64 {
        lookup.get(hash)
    }

    fn get_batch(lookup: Lookup<'_, Self>, hashes: &[Hash128], values: &mut [u64]) {
        lookup.get_batch_of(hashes, values);
    }

    fn get_many<K: Key, N: Number>(lookup: Lookup<'_, Self>, keys: &[K], values: &mut [N]) {
        lookup.get_many_of(keys, values);
    }

    fn search(settings: &build::Settings<Self>, keys: u64, largest: u32) -> Search {
        let buckets = settings.code.buckets(keys, settings.buckets(keys));
        Search { buckets, order: find::Order::new(settings.code), largest }
    }

    fn is_slow(_: &Search, keys: u32) -> bool {
        // Takes a quarter of a millisecond or more.
        keys > 1 << 13
    }

    fn wants_lowest_byte_first(_: &CodeParameters) -> bool {
        false
    }

    fn encode(
        Search { buckets, order, largest }: &Search,
        _: bool,
        Buckets { keys, bounds }: Buckets<'_>,
        found: &mut [Bucket],
        least: &mut Least,
        scratch: &mut Scratch,
    ) -> Result<Part, SearchFailure> {
        let mut bits = BitVec::default();
        let mut most = 0;
        for (index, (bounds, bucket)) in bounds.windows(2).zip(&mut *found).enumerate() {
            let keys = &keys[bounds[0] as usize..bounds[1] as usize];
            let count = keys.len() as u32;
            if count > *largest {
                return Err(SearchFailure { bucket: index });
            }
            let before = bits.len();
            let found = scratch.find.place(Shape::new(count, *buckets), order, keys);
            let (sevens, rest) = found.seeds.as_chunks::<7>();
            for &[a, b, c, d, e, f, g] in sevens {
                bits.push(u64::from_le_bytes([a, b, c, d, e, f, g, 0]), 56);
            }
            rest.iter().for_each(|&seed| bits.push(seed.into(), 8));
            let numbered = scratch.bumped.number(found.bumped, found.free, count, &mut bits);
            numbered.ok_or(SearchFailure { bucket: index })?;
            *bucket = Bucket { keys: count, bits: (bits.len() - before) as u32 };
            least.see(keys.len(), bucket.bits.into());
            most = most.max(count);
        }
        let keys = bounds.last().map_or(0, |&keys| keys.into());
        Ok(Part { buckets: found.len(), keys, largest: most, bits })
    }
}
