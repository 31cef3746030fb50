//! Consensus: the tasks of a bucket share one string of bits, and no seed is stored by itself.
//!
//! Source and idea: `warpset_core::consensus`. [`budget`] assigns bits to tasks, [`find`] searches them, [`query`]
//! looks keys up, [`cost`] predicts space and time, and `gpu` does the same on devices.

mod budget;
mod builder;
mod cost;
mod find;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;
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
use crate::{Error, Estimate, HashKind, Simd, build};
use find::{NoCode, Tasks};
use std::ops::RangeInclusive;
use warpset_base::file::FileError;
use warpset_base::key::Hash128;
use warpset_core::consensus::tree::LEAF;

/// Kind of functions with one shared string of bits per bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsensusKind;

/// A minimal perfect hash function of the smallest kind: maps the `n` keys that it was built from to `0..n`, each to
/// its own number, in 1.46 to 1.7 bits per key.
///
/// Other keys map to any number below `n`: the function does not know its keys. See [`crate::StaticFilter`] for a
/// structure that does.
///
/// ```
/// use warpset_mphf::Consensus;
///
/// let keys: Vec<u64> = (0..100_000).map(|i| i * i).collect();
/// let function = Consensus::builder().overhead(0.05).build_from(&keys)?;
/// assert!(function.bits_per_key() < 1.53);
/// let mut seen = vec![false; keys.len()];
/// for &key in &keys {
///     seen[function.get(key) as usize] = true;
/// }
/// assert!(seen.iter().all(|seen| *seen));
/// # Ok::<(), warpset_mphf::Error>(())
/// ```
///
/// Space: 1.4427 bits per key, the lower bound of every such function; the [`overhead`](crate::Builder::overhead); and
/// 0.01 to 0.02 for the positions of buckets. Build time is inversely proportional to the overhead. Lookups: as for
/// [`RecSplit`](crate::RecSplit), with one read of bits per halving of a bucket.
pub type Consensus = PerfectHash<ConsensusKind>;

/// A function that borrows its words: lent by [`Consensus::view`], or opened in bytes without a copy.
pub type ConsensusView<'a> = PerfectHash<ConsensusKind, &'a [u64]>;

/// A function in a memory-mapped file, made by [`Consensus::map`].
#[cfg(feature = "mmap")]
pub type MappedConsensus = PerfectHash<ConsensusKind, Mapped>;

/// Parameters that determine the bits of each task, stored in headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeParameters {
    /// Bits to spare for a task of weight 1, in parts of `1 / 2^16`.
    pub(crate) slack: u32,
    /// Bits of the number at the beginning of a bucket.
    pub(crate) root_bits: u32,
}

/// Valid slacks.
const SLACKS: RangeInclusive<u32> = 1..=1 << 20;
/// Valid bits of the number at the beginning of a bucket.
const ROOT_BITS: RangeInclusive<u32> = 1..=24;

/// Options that only Consensus has.
#[derive(Clone, Copy, Debug)]
pub struct KindOptions {
    overhead: f64,
    simd: Simd,
}

/// Shared, immutable part of the search for all codes.
pub struct Search {
    tasks: Tasks,
    instructions: find::Instructions,
}

/// Memory that a thread reuses from search to search.
pub type Scratch = find::Scratch;

impl HashKind for ConsensusKind {}

impl sealed::HashKind for ConsensusKind {
    const KIND: Kind = Kind::Consensus;
    const NAME: &'static str = "Consensus function";
    const BUCKET_SIZE: u32 = 2400;
    type KindOptions = KindOptions;
    type CodeParameters = CodeParameters;
    type Tables = query::Tables;
    type Search = Search;
    type Scratch = Scratch;

    fn code(options: &KindOptions, bucket_size: u32) -> Result<CodeParameters, Error> {
        options.code(bucket_size)
    }

    fn estimate(code: &CodeParameters, bucket_size: u32) -> Estimate {
        cost::Costs::new(bucket_size).estimate(*code)
    }

    fn choose_for_space(
        options: &mut KindOptions,
        bits_per_key: f64,
        time: impl Fn(&Estimate) -> f64,
    ) -> Result<u32, f64> {
        options.choose_for_space(bits_per_key, time)
    }

    fn to_fields(CodeParameters { slack, root_bits }: &CodeParameters) -> ([u8; 5], u64) {
        ([LEAF as u8, *root_bits as u8, 0, 0, 0], (*slack).into())
    }

    fn from_fields(
        [leaf, root_bits, unused @ ..]: [u8; 5],
        slack: u64,
        bytes: u64,
    ) -> Result<CodeParameters, FileError> {
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value });
        let root_bits = root_bits.into();
        if u32::from(leaf) != LEAF || !ROOT_BITS.contains(&root_bits) || unused != [0; 3] {
            return invalid("shape", bytes);
        }
        match u32::try_from(slack).ok().filter(|slack| SLACKS.contains(slack)) {
            Some(slack) => Ok(CodeParameters { slack, root_bits }),
            None => invalid("slack", slack),
        }
    }

    fn is_possible(header: &Header<Self>) -> bool {
        u64::from(header.largest_bucket) <= header.code_bits + 1
    }

    fn is_minimal(_: &CodeParameters) -> bool {
        true
    }

    fn values(header: &Header<Self>) -> u64 {
        header.keys
    }

    fn tables(header: &Header<Self>, lists: &Lists, _: &[u64]) -> query::Tables {
        query::Tables::new(header, lists)
    }

    #[inline(always)]
    fn get(lookup: Lookup<'_, Self>, hash: Hash128) -> u64 {
        lookup.get(hash)
    }

    fn get_batch(lookup: Lookup<'_, Self>, hashes: &[Hash128], values: &mut [u64]) {
        lookup.get_batch_of(hashes, values);
    }

    fn search(settings: &build::Settings<Self>, _: u64, largest: u32) -> Search {
        let CodeParameters { slack, root_bits } = settings.code;
        let instructions = find::Instructions::of(settings.options.simd);
        Search { tasks: Tasks::new(largest, slack, root_bits), instructions }
    }

    fn is_slow(Search { tasks, .. }: &Search, keys: u32) -> bool {
        // Takes a quarter of a millisecond or more.
        u64::from(tasks.entries) * u64::from(keys) > 64 * 50_000
    }

    fn wants_lowest_byte_first(_: &CodeParameters) -> bool {
        false
    }

    fn encode(
        Search { tasks, instructions }: &Search,
        _: bool,
        Buckets { keys, bounds }: Buckets<'_>,
        found: &mut [Bucket],
        least: &mut Least,
        scratch: &mut Scratch,
    ) -> Result<Part, SearchFailure> {
        let mut bits = BitVec::default();
        let mut largest = 0;
        for (index, (bounds, bucket)) in bounds.windows(2).zip(&mut *found).enumerate() {
            let keys = &keys[bounds[0] as usize..bounds[1] as usize];
            let count = keys.len() as u32;
            if count >= tasks.rows.splits {
                return Err(SearchFailure { bucket: index });
            }
            if count > 1 {
                let root = instructions.find(tasks, keys, scratch).map_err(|NoCode| SearchFailure { bucket: index })?;
                bits.push(root.into(), tasks.root_bits);
                scratch.parts().for_each(|(value, width)| bits.push(value.into(), width));
            }
            *bucket = Bucket { keys: count, bits: tasks.bits(count) };
            least.see(keys.len(), bucket.bits.into());
            largest = largest.max(count);
        }
        let keys = bounds.last().map_or(0, |&keys| keys.into());
        debug_assert_eq!(bits.len(), found.iter().map(|bucket| u64::from(bucket.bits)).sum());
        Ok(Part { buckets: found.len(), keys, largest, bits })
    }
}
