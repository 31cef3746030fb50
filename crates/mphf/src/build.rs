//! Stages of a build: from keys to a function.
//!
//! Source: sections 5.1, 5.8 (threads) and 5.9.
//!
//! 1. Keys are hashed and spread over *partitions*, each a range of buckets small enough for the cache ([`partition`]).
//! 2. Partition by partition, on any thread, while its keys are in cache: keys are sorted into buckets
//!    ([`bucket_sort`]), and the kind finds their codes ([`sealed::HashKind::encode`]).
//! 3. The parts of all partitions are joined, and the lists of buckets are made ([`join`]).
//!
//! [`external`] repeats this for one range of buckets after the other.

pub(crate) mod bucket_sort;
pub(crate) mod duplicates;
pub(crate) mod external;
pub(crate) mod huge_vec;
mod join;
pub(crate) mod partition;
pub(crate) mod work_stealing;

use crate::HashKind;
use crate::elias_fano::Least;
use crate::function::PerfectHash;
use crate::kind::sealed;
use crate::kind::{Bucket, Part, SearchFailure};
use crate::progress::{Interrupted, Meter};
use bucket_sort::BucketSort;
use huge_vec::HugeVec;
use partition::{Partition, PartitionedKeys, Partitions};
use std::ops::Range;
use warpset_base::key::Hash128;
use warpset_core::recsplit::shape::MAX_BUCKET;

/// Settings of one attempt.
#[derive(Clone, Copy, Debug)]
pub struct Settings<M: sealed::HashKind> {
    pub(crate) code: M::CodeParameters,
    pub(crate) options: M::KindOptions,
    pub(crate) bucket_size: u32,
    pub(crate) seed: u64,
}

impl<M: HashKind> Settings<M> {
    pub(crate) fn buckets(&self, keys: u64) -> u64 {
        keys.div_ceil(u64::from(self.bucket_size))
    }

    /// Prepares the search for the codes of a function of `keys` keys.
    pub(crate) fn search(&self, keys: u64) -> M::Search {
        M::search(self, keys, u64::from(self.largest_bucket()).min(keys) as u32)
    }

    /// Returns a bound that the size of a bucket of hashed keys exceeds with a probability below 2^-64.
    fn largest_bucket(&self) -> u32 {
        let mean = f64::from(self.bucket_size);
        ((mean + 10.0 * mean.sqrt() + 50.0) as usize).min(MAX_BUCKET) as u32
    }
}

/// Reason for failure under one seed.
#[derive(Clone, Copy, Debug)]
pub enum Failure {
    /// Two keys have this bucket and this low half of their hash.
    Collision { bucket: u64, low: u64 },
    /// The hashes differ, but a bucket has no solution or is too large: another seed helps.
    Unlucky,
    /// The progress callback stopped the build.
    Interrupted(Interrupted),
}

impl From<Interrupted> for Failure {
    fn from(at: Interrupted) -> Self {
        Self::Interrupted(at)
    }
}

/// Construction of one function under one seed.
pub(crate) struct Construction<M: HashKind> {
    settings: Settings<M>,
    search: M::Search,
    keys: u64,
    buckets: u64,
}

/// Codes of a function's first buckets.
pub(crate) struct Parts {
    parts: Vec<Part>,
    buckets: HugeVec<Bucket>,
    least: Least,
}

/// Memory that one thread reuses from partition to partition.
struct Scratch<M: HashKind> {
    sort: BucketSort,
    least: Least,
    encode: M::Scratch,
}

impl<M: HashKind> Default for Scratch<M> {
    fn default() -> Self {
        Self { sort: BucketSort::default(), least: Least::default(), encode: M::Scratch::default() }
    }
}

/// Remains of a build, to be dropped.
struct Used<M: HashKind> {
    _keys: PartitionedKeys,
    _scratches: Vec<Scratch<M>>,
}

/// Keys in one partition: their data fills a third of a typical second-level cache.
const PARTITION_KEYS: u64 = 1 << 15;
/// The most partitions: more would spread the keys over more lines than a first-level cache keeps open.
const MOST_PARTITIONS: u64 = 1024;

/// Builds the function of `keys` hashes. `hash` returns each by its position, the same one each time.
pub(crate) fn build<M: HashKind>(
    settings: Settings<M>,
    keys: usize,
    hash: impl Fn(usize) -> Hash128 + Sync,
    meter: &Meter,
) -> Result<PerfectHash<M>, Failure> {
    let construction = Construction::new(settings, keys as u64);
    let mut parts = construction.no_parts();
    let used = construction.build(keys, hash, 0..construction.buckets, meter, &mut parts)?;
    // Freeing memory takes a while.
    rayon::join(|| construction.join(parts), || drop(used)).0
}

impl<M: HashKind> Construction<M> {
    pub(crate) fn new(settings: Settings<M>, keys: u64) -> Self {
        Self { settings, search: settings.search(keys), keys, buckets: settings.buckets(keys) }
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Returns parts without codes.
    pub(crate) fn no_parts(&self) -> Parts {
        Parts { parts: Vec::new(), buckets: HugeVec::new(self.buckets as usize), least: Least::default() }
    }

    /// Finds the codes of the buckets `within`, which follow those in `parts`; the `keys` hashes are those of these
    /// buckets.
    fn build(
        &self,
        keys: usize,
        hash: impl Fn(usize) -> Hash128 + Sync,
        within: Range<u64>,
        meter: &Meter,
        parts: &mut Parts,
    ) -> Result<Option<Used<M>>, Failure> {
        if within.is_empty() {
            return Ok(None);
        }
        let partitions =
            Partitions::new(keys as u64, within, self.buckets, self.keys_of_partition(keys), MOST_PARTITIONS);
        let pages = parts.buckets.pages();
        let partitioned = PartitionedKeys::new(keys, hash, |hash| partitions.of(hash), partitions.count(), pages);
        let threads = rayon::current_num_threads();
        // While the last partitions are built, each thread is idle for half of one, on average.
        let few = threads > 1 && partitions.count() < threads * 16;
        let scratches = self.encode_all(few, &partitioned, &partitions, meter, parts)?;
        Ok(Some(Used { _keys: partitioned, _scratches: scratches }))
    }

    /// Returns the keys of a partition: fewer where partitions would be too few to share evenly among the threads.
    fn keys_of_partition(&self, keys: usize) -> u64 {
        let threads = rayon::current_num_threads() as u64;
        if threads == 1 {
            return PARTITION_KEYS;
        }
        // One key is enough for a partition if a bucket of the usual size takes much work.
        let least = if M::is_slow(&self.search, self.settings.bucket_size) { 1 } else { 1 << 9 };
        PARTITION_KEYS.min((keys as u64 / (threads * 64)).max(least))
    }

    /// Adds the codes of all partitions to `parts`. `are_few` says whether there are few partitions.
    fn encode_all(
        &self,
        are_few: bool,
        keys: &PartitionedKeys,
        partitions: &Partitions,
        meter: &Meter,
        parts: &mut Parts,
    ) -> Result<Vec<Scratch<M>>, Failure> {
        let Range { start, end } = partitions.buckets();
        let (first, end) = (start as usize, end as usize);
        assert_eq!(parts.buckets.as_slice().len(), first, "ranges come one after the other");
        let slots = parts.buckets.slots()[first..end].chunks_mut(partitions.len());
        let work = |scratch: &mut Scratch<M>, (index, slots)| {
            let found = huge_vec::fill(slots, Bucket::default());
            let first = start + (index * partitions.len()) as u64;
            let part = self.part(are_few, keys.partition(index), first, found, scratch)?;
            meter.add(part.keys)?;
            Ok::<_, Failure>(part)
        };
        let (mut new, scratches) = work_stealing::for_each(slots.enumerate(), work)?;
        // SAFETY: the entries before `first` were initialised, and the others have been filled above.
        unsafe { parts.buckets.set_len(end) };
        parts.parts.append(&mut new);
        scratches.iter().for_each(|scratch| parts.least.merge(&scratch.least));
        Ok(scratches)
    }

    /// Finds the codes of one partition with the first bucket `first`. Writes the sizes of each bucket to `found`.
    fn part(
        &self,
        are_few: bool,
        keys: Partition,
        first: u64,
        found: &mut [Bucket],
        scratch: &mut Scratch<M>,
    ) -> Result<Part, Failure> {
        let Scratch { sort, least, encode } = scratch;
        sort.sort(keys, found.len(), M::wants_lowest_byte_first(&self.settings.code));
        let encoded = M::encode(&self.search, are_few, sort.buckets(), found, least, encode);
        encoded.map_err(|unsolved| explain(sort, first, unsolved))
    }
}

/// Explains why a bucket has no code, or too many keys. The first of the sorted buckets is `first`.
#[cold]
fn explain(sort: &mut BucketSort, first: u64, SearchFailure { bucket }: SearchFailure) -> Failure {
    let keys = sort.keys_of(bucket);
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Failure::Collision { bucket: first + bucket as u64, low: pair[0] },
        None => Failure::Unlucky,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Method, RecSplit, Stage};
    use warpset_base::key::Seed;

    #[test]
    fn trees_that_threads_share() {
        let hash = |i: usize| Seed::new(1).hash128(&(i as u64));
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        for method in [Method::BruteForce, Method::Rotation, Method::Grouped] {
            for (keys, bucket_size) in [(1, 1), (40, 40), (300, 300), (5000, 400), (3000, 2000), (1000, 3)] {
                let builder = RecSplit::builder().leaf_size(5).bucket_size(bucket_size).method(method);
                let settings = builder.settings().unwrap();
                let build = |share_from: f64| {
                    let mut construction = Construction::new(settings, keys as u64);
                    construction.search.share_from = share_from;
                    let mut parts = construction.no_parts();
                    let reporter = builder.reporter();
                    let meter = reporter.meter(Stage::Building, keys as u64, 0);
                    construction.build(keys, hash, 0..construction.buckets(), &meter, &mut parts).unwrap();
                    construction.join(parts).unwrap()
                };
                let alone = pool.install(|| build(f64::INFINITY));
                for share_from in [0.0, 1e3, 1e4] {
                    assert!(
                        pool.install(|| build(share_from)) == alone,
                        "{method:?} {keys} {bucket_size} {share_from}"
                    );
                }
            }
        }
    }

    #[test]
    fn duplicates_in_shared_trees() {
        let count = 2000;
        let mut keys: Vec<u64> = (0..count as u64).collect();
        keys[count - 1] = 1;
        let builder = RecSplit::builder().leaf_size(4).bucket_size(2000).threads(4);
        let mut construction = Construction::new(builder.settings().unwrap(), keys.len() as u64);
        construction.search.share_from = 0.0;
        let reporter = builder.reporter();
        let meter = reporter.meter(Stage::Building, keys.len() as u64, 0);
        let parts = &mut construction.no_parts();
        let failure = builder.run(count as u64, || {
            construction.build(count, |i| Seed::new(0).hash128(&keys[i]), 0..1, &meter, parts).map(|_| ()).err()
        });
        assert!(matches!(failure.unwrap(), Some(Failure::Collision { bucket: 0, .. })));
    }
}
