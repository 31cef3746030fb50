//! From hashed keys to a function: partitions of buckets in parallel, parts joined, lists built.
//!
//! Source: sections 5.1 (counting sort), 5.8 (threads), 5.9. Departures:
//! - Keys are first spread over partitions, each a range of buckets small enough for the cache; a task then sorts its
//!   partition into buckets and builds their trees while the keys are still in cache.
//! - Where partitions are few and buckets take long, threads without work take subtrees of the buckets of others.
//! - The parts' bit vectors are joined in parallel: every part shifts its own words to their place, only the words that
//!   two parts share are combined with an atomic `or`.

use crate::bits;
use crate::elias_fano::{self, Least};
use crate::format::{self, Header};
use crate::function::RecSplit;
use crate::room::Room;
use crate::search::Simd;
use crate::search::sequential::Sequential;
use crate::stage;
use crate::tree::{self, Bucket, Buckets, Failure, Part, Plan, Scratch};
use rayon::prelude::*;
use std::ops::Range;
use warpset_core::recsplit::hash::{Hash128, bucket_of};
use warpset_core::recsplit::shape::MAX_BUCKET;
use warpset_core::recsplit::{Remix, Shape};

/// The settings of one attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub shape: Shape,
    pub bucket_size: u32,
    pub remix: Remix,
    pub simd: Simd,
    pub seed: u64,
}

impl Settings {
    pub(crate) fn buckets(&self, keys: u64) -> u64 {
        keys.div_ceil(u64::from(self.bucket_size))
    }

    /// A bound for bucket sizes that hashed keys exceed with a probability of less than 2^-64 a bucket.
    fn largest_bucket(&self) -> u32 {
        let mean = f64::from(self.bucket_size);
        ((mean + 10.0 * mean.sqrt() + 50.0) as usize).min(MAX_BUCKET) as u32
    }
}

/// Parts of equal size of a range of buckets.
#[derive(Clone, Debug)]
pub(crate) struct Partitions {
    /// All buckets.
    buckets: u64,
    /// Those in the partitions.
    within: Range<u64>,
    /// Base-2 logarithm of the buckets in one partition.
    log_buckets: u32,
}

impl Partitions {
    /// Partitions of the buckets `within`, which have some `keys_wanted` of `keys` keys each; at most `most` of them, unless
    /// that takes more than 2^16 buckets in each.
    pub(crate) fn new(keys: u64, within: Range<u64>, buckets: u64, keys_wanted: u64, most: u64) -> Self {
        let wanted = (keys / keys_wanted).clamp(1, most);
        let mut log_buckets = 0;
        while (within.end - within.start).div_ceil(1 << log_buckets) > wanted && log_buckets < 16 {
            log_buckets += 1;
        }
        Self { buckets, within, log_buckets }
    }

    /// Buckets in each but the last one.
    pub(crate) fn len(&self) -> usize {
        1 << self.log_buckets
    }

    pub(crate) fn count(&self) -> usize {
        (self.within.end - self.within.start).div_ceil(1 << self.log_buckets) as usize
    }

    /// The partition of a key, and its bucket within.
    #[inline]
    pub(crate) fn of(&self, hash: &Hash128) -> (usize, u16) {
        let bucket = bucket_of(hash.high, self.buckets) - self.within.start;
        ((bucket >> self.log_buckets) as usize, (bucket & ((1 << self.log_buckets) - 1)) as u16)
    }
}

/// The builder of trees for one set of settings.
pub(crate) struct Engine {
    pub settings: Settings,
    table: std::sync::Arc<[warpset_core::recsplit::Node]>,
    budgets: Vec<u64>,
    works: Vec<f64>,
    /// Work from which on threads share a subtree, if there are few others.
    pub share_from: f64,
    largest: u32,
    /// All buckets.
    buckets: u64,
}

/// Hashes from which on threads share a subtree: a tenth of a millisecond or more, which another thread takes a
/// hundredth of to begin.
const SHARED: f64 = 1e6;

/// Trees of the first buckets of a function.
pub(crate) struct Built {
    pub parts: Vec<Part>,
    pub buckets: Room<Bucket>,
    pub least: Least,
}

impl Built {
    /// Nothing so far.
    pub(crate) fn new(engine: &Engine) -> Self {
        Self { parts: Vec::new(), buckets: Room::new(engine.buckets as usize), least: Least::default() }
    }
}

impl Engine {
    pub(crate) fn new(settings: Settings, keys: u64) -> Self {
        let largest = u64::from(settings.largest_bucket()).min(keys) as u32;
        let table = crate::table::nodes(&settings.shape, largest);
        let budgets = tree::budgets(&settings.shape, &table[..=largest as usize]);
        let works = tree::works(&settings.shape, &table[..=largest as usize]);
        Self { settings, table, budgets, works, share_from: SHARED, largest, buckets: settings.buckets(keys) }
    }

    pub(crate) fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Whether a bucket of the usual size takes so much work that one for each task is enough.
    pub(crate) fn has_large_buckets(&self) -> bool {
        self.works[self.largest.min(self.settings.bucket_size) as usize] >= SHARED / 4.0
    }

    /// Builds the trees of one of `partitions` partitions.
    pub(crate) fn part(&self, buckets: Buckets, partitions: usize, scratch: &mut Scratch) -> Result<Part, Failure> {
        let threads = rayon::current_num_threads();
        // The last ones leave a thread without work for half of one, on average.
        let few = threads > 1 && partitions < threads * 16;
        let remix = self.settings.remix;
        let plan = Plan {
            shape: &self.settings.shape,
            table: &self.table[..=self.largest as usize],
            budgets: &self.budgets,
            remix,
            works: &self.works,
            share_from: if few { self.share_from } else { f64::INFINITY },
            simd: if remix == Remix::Bits64 { Simd::Sequential } else { self.settings.simd },
            build: build_with,
            subtree: None,
        };
        build_with(&plan, buckets, scratch)
    }

    /// Joins the parts of all partitions to a function.
    pub(crate) fn join(&self, keys: u64, built: Built) -> Result<RecSplit, Failure> {
        let Built { parts, buckets, least } = built;
        let sums = Sums::over(&parts, buckets.as_slice());
        let layout = elias_fano::layout(&sums, &least, elias_fano::log_stride(self.settings.bucket_size));
        let header = Header {
            keys,
            seed: self.settings.seed,
            shape: self.settings.shape,
            remix: self.settings.remix,
            largest_bucket: parts.iter().map(|part| part.largest).max().unwrap_or(0),
            bucket_size: self.settings.bucket_size,
            tree_bits: sums.all().bits,
            layout,
        };
        // Fresh pages, which the threads that write to them get from the system.
        let zeros = rayon::iter::repeat_n(0, header.words() as usize);
        let mut words: Vec<u64> = zeros.with_min_len(ZEROED).collect();
        let (head, rest) = words.split_at_mut(format::HEADER_WORDS as usize);
        head.copy_from_slice(&header.to_words());
        let (trees, lists) = bits::shared(rest).split_at(header.tree_bits.div_ceil(64) as usize);
        let stretches = elias_fano::stretches(&sums);
        // Several parts at a time, since most are small.
        let some = parts.len().div_ceil(rayon::current_num_threads() * 8).max(1);
        let work = |space: &mut elias_fano::Space, item| {
            if item < stretches {
                return elias_fano::encode_stretch(&layout, &sums, item, space, lists).ok_or(Failure::Unlucky);
            }
            let from = (item - stretches) * some;
            parts
                .iter()
                .zip(&sums.starts)
                .skip(from)
                .take(some)
                .for_each(|(part, start)| part.bits.copy_to(trees, start.bits));
            Ok(())
        };
        stage::each(0..stretches + parts.len().div_ceil(some), work)?;
        let (checksum, ()) = rayon::join(|| format::checksum(&words), || drop((parts, buckets)));
        words[format::COMMON_WORDS - 1] = checksum;
        Ok(RecSplit::trusted(words, header))
    }
}

/// Builds trees by the search that `plan` asks for.
fn build_with(plan: &Plan, buckets: Buckets, scratch: &mut Scratch) -> Result<Part, Failure> {
    match plan.simd {
        Simd::Sequential => tree::build(Sequential, plan, buckets, scratch),
        Simd::Portable => crate::search::portable::build(plan, buckets, scratch),
        #[cfg(target_arch = "x86_64")]
        simd => crate::search::x86_build::build(simd, plan, buckets, scratch),
        #[cfg(not(target_arch = "x86_64"))]
        _ => crate::search::portable::build(plan, buckets, scratch),
    }
}

/// Words that are made at a time.
const ZEROED: usize = 1 << 12;

/// Where a part begins.
#[derive(Clone, Copy, Default)]
struct Start {
    bucket: usize,
    keys: u64,
    bits: u64,
}

/// Keys and bits before each bucket.
struct Sums<'a> {
    buckets: &'a [Bucket],
    /// Where each part begins, and where the last one ends.
    starts: Vec<Start>,
}

impl<'a> Sums<'a> {
    fn over(parts: &[Part], buckets: &'a [Bucket]) -> Self {
        let mut starts = vec![Start::default()];
        let mut sum = Start::default();
        for part in parts {
            sum.bucket += part.buckets;
            sum.keys += part.keys;
            sum.bits += part.bits.len();
            starts.push(sum);
        }
        Self { buckets, starts }
    }

    fn all(&self) -> Start {
        self.starts.last().copied().unwrap_or_default()
    }
}

impl elias_fano::Prefixes for Sums<'_> {
    fn len(&self) -> usize {
        self.buckets.len() + 1
    }

    fn read(&self, first: usize, to: &mut [(u64, u64)]) {
        let Some((entry, rest)) = to.split_first_mut() else { return };
        let start = self.starts[self.starts.partition_point(|start| start.bucket <= first) - 1];
        let mut sum = (start.keys, start.bits);
        let mut add = |bucket: &Bucket| {
            sum.0 += u64::from(bucket.keys);
            sum.1 += u64::from(bucket.bits);
            sum
        };
        let (before, after) = self.buckets.split_at(first);
        before[start.bucket..].iter().for_each(|bucket| _ = add(bucket));
        *entry = add(&Bucket::default());
        // Each further entry has one bucket more before it.
        rest.iter_mut().zip(after).for_each(|(entry, bucket)| *entry = add(bucket));
    }
}
