//! Building functions from keys in memory.

use crate::engine::{Engine, Partitions, Settings};
use crate::key::{Hash128, Key};
use crate::search::Simd;
use crate::tree::{Failure, Part, Scratch};
use crate::{Error, RecSplit};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use warpset_core::recsplit::shape::MAX_BUCKET;
use warpset_core::recsplit::{Method, Remix, Shape};

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Keys whose trees are built.
    pub keys_done: u64,
    /// All keys.
    pub keys: u64,
    /// Which seed is being tried: 0 unless hash values collided.
    pub attempt: u32,
}

type ProgressCallback = Arc<dyn Fn(Progress) + Send + Sync>;

/// Settings for building a function; each setter states its default.
#[derive(Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    leaf_size: u32,
    bucket_size: u32,
    fanouts: Option<(u32, u32)>,
    method: Method,
    remix: Remix,
    simd: Simd,
    seed: u64,
    threads: Option<usize>,
    progress: Option<ProgressCallback>,
}

impl std::fmt::Debug for Builder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("leaf_size", &self.leaf_size)
            .field("bucket_size", &self.bucket_size)
            .field("fanouts", &self.fanouts)
            .field("method", &self.method)
            .field("remix", &self.remix)
            .field("simd", &self.simd)
            .field("seed", &self.seed)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

/// Seeds that are tried before giving up. Random hashes need a second one once in millions of builds.
const SEEDS: u32 = 8;

impl Builder {
    /// The default settings.
    pub fn new() -> Self {
        Self {
            leaf_size: 12,
            bucket_size: 1000,
            fanouts: None,
            method: Method::Grouped,
            remix: Remix::Bits32,
            simd: Simd::Auto,
            seed: 0,
            threads: None,
            progress: None,
        }
    }

    /// Keys in a leaf of the splitting trees, 2 to 24: larger leaves take less space and more time to build. Default: 12.
    pub fn leaf_size(mut self, leaf_size: u32) -> Self {
        self.leaf_size = leaf_size;
        self
    }

    /// Expected number of keys in a bucket, at least 1: larger buckets take less space and make queries slower.
    /// Default: 1000.
    pub fn bucket_size(mut self, bucket_size: u32) -> Self {
        self.bucket_size = bucket_size;
        self
    }

    /// Fanouts of the first and second aggregation level. Default: those of [`Builder::tuned_fanouts`] for
    /// [`Method::Grouped`], those of the thesis for the other methods.
    pub fn fanouts(mut self, first: u32, second: u32) -> Self {
        self.fanouts = Some((first, second));
        self
    }

    /// How trial numbers are searched, which is part of the function. Default: [`Method::Grouped`]; the others are those
    /// of the thesis.
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// The finaliser of trial hashes. Default: [`Remix::Bits32`]; the other is for comparison, and has no vectors.
    pub fn remix(mut self, remix: Remix) -> Self {
        self.remix = remix;
        self
    }

    /// Which vector instructions search. All give the same function. Default: [`Simd::Auto`].
    pub fn simd(mut self, simd: Simd) -> Self {
        self.simd = simd;
        self
    }

    /// Seed of the initial hash. Default: 0, under which [`Hash128`] keys are taken as they are.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Threads to build with. Default: the global rayon pool.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Is called now and then, from any thread of the build. Default: nothing is.
    pub fn progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(callback));
        self
    }

    /// The fanouts that [`Method::Grouped`] uses by default.
    pub const fn tuned_fanouts(leaf_size: u32) -> (u32, u32) {
        match leaf_size {
            0..=4 => (4, 4),
            _ => (6, 4),
        }
    }

    /// The shape that these settings give.
    pub fn shape(&self) -> Result<Shape, Error> {
        let thesis = Shape::thesis(self.leaf_size.clamp(2, 24), Method::BruteForce);
        let (first, second) = match (self.fanouts, self.method, thesis) {
            (Some(fanouts), ..) => fanouts,
            (None, Method::Grouped, _) => Self::tuned_fanouts(self.leaf_size),
            (None, _, Some(shape)) => (shape.first_fanout(), shape.second_fanout()),
            (None, _, None) => (0, 0),
        };
        Shape::new(self.leaf_size, first, second, self.method).ok_or(Error::InvalidShape {
            leaf_size: self.leaf_size,
            first_fanout: first,
            second_fanout: second,
        })
    }

    pub(crate) fn settings(&self) -> Result<Settings, Error> {
        // Ten standard deviations above this still fit.
        let largest = MAX_BUCKET as u32 * 9 / 10;
        if !(1..=largest).contains(&self.bucket_size) {
            return Err(Error::InvalidBucketSize { bucket_size: self.bucket_size, largest });
        }
        Ok(Settings {
            shape: self.shape()?,
            bucket_size: self.bucket_size,
            remix: self.remix,
            simd: self.simd,
            seed: self.seed,
        })
    }

    /// Runs `work` on the threads that were asked for.
    pub(crate) fn run<R: Send>(&self, work: impl FnOnce() -> R + Send) -> Result<R, Error> {
        match self.threads {
            None => Ok(work()),
            Some(threads) => Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(work)),
        }
    }

    /// The seeds to try, in order.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        let seed = self.seed;
        (0..SEEDS)
            .map(move |attempt| (attempt, seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }

    pub(crate) fn meter(&self, keys: u64, attempt: u32) -> Meter<'_> {
        Meter { callback: self.progress.as_deref(), done: AtomicU64::new(0), keys, attempt }
    }

    /// Builds the function of `keys`, which must be distinct.
    ///
    /// Takes 16 bytes a key beside the keys (32 for keys whose hash is not cheap), and all threads.
    pub fn build<K: Key + Sync>(&self, keys: &[K]) -> Result<RecSplit, Error> {
        let settings = self.settings()?;
        self.run(|| self.build_here(settings, keys))?
    }

    fn build_here<K: Key + Sync>(&self, settings: Settings, keys: &[K]) -> Result<RecSplit, Error> {
        for (attempt, seed) in self.seeds() {
            let settings = Settings { seed, ..settings };
            match build_once(settings, keys, &self.meter(keys.len() as u64, attempt)) {
                Ok(function) => return Ok(function),
                Err(Failure::Unlucky) => {}
                Err(Failure::Collision { bucket, low }) => {
                    let buckets = settings.buckets(keys.len() as u64);
                    let hashes = keys.iter().map(|key| key.hash128(seed));
                    check_duplicates(&positions_of(hashes, bucket, low, buckets), |at| &keys[at as usize])?;
                }
            }
        }
        Err(Error::HashesCollide { seeds: SEEDS })
    }
}

/// Positions of the keys whose hash has `bucket` and `low`.
pub(crate) fn positions_of(hashes: impl Iterator<Item = Hash128>, bucket: u64, low: u64, buckets: u64) -> Vec<u64> {
    use warpset_core::recsplit::hash::bucket_of;
    let hits = hashes.enumerate().filter(|(_, hash)| hash.low == low && bucket_of(hash.high, buckets) == bucket);
    hits.map(|(position, _)| position as u64).collect()
}

/// Among keys that collide, equal ones are an error; if there are none, another seed will do.
///
/// Keys are taken for equal if their 128-bit hashes are under two more seeds.
pub(crate) fn check_duplicates<K: Key>(positions: &[u64], key: impl Fn(u64) -> K) -> Result<(), Error> {
    let mut seen: Vec<((Hash128, Hash128), u64)> = Vec::new();
    for &position in positions {
        let key = key(position);
        let identity = (key.hash128(0x5bd1_e995_9d1b_54a3), key.hash128(0x2545_f491_4f6c_dd1d));
        if let Some(&(_, first)) = seen.iter().find(|(other, _)| *other == identity) {
            return Err(Error::DuplicateKey { first, second: position, key: key.describe() });
        }
        seen.push((identity, position));
    }
    Ok(())
}

/// Counts finished keys and reports them.
pub(crate) struct Meter<'a> {
    callback: Option<&'a (dyn Fn(Progress) + Send + Sync)>,
    done: AtomicU64,
    keys: u64,
    attempt: u32,
}

impl Meter<'_> {
    pub(crate) fn add(&self, keys: u64) {
        if let Some(callback) = self.callback {
            let done = self.done.fetch_add(keys, Ordering::Relaxed) + keys;
            callback(Progress { keys_done: done, keys: self.keys, attempt: self.attempt });
        }
    }
}

/// Keys in one partition: its hashes take half of a usual second-level cache.
const PARTITION_KEYS: u64 = 1 << 15;
/// Partitions at most: more would spread the keys over more lines than a first-level cache keeps open.
const MOST_PARTITIONS: u64 = 1024;

fn build_once<K: Key + Sync>(settings: Settings, keys: &[K], meter: &Meter) -> Result<RecSplit, Failure> {
    let count = keys.len() as u64;
    let buckets = settings.buckets(count);
    let engine = Engine::new(settings, count);
    if count == 0 {
        return engine.join(0, &[]);
    }
    // Fewer keys in a partition where there would be too few partitions for the threads to share evenly.
    let threads = rayon::current_num_threads() as u64;
    let wanted = PARTITION_KEYS.min((count / (threads * 4)).max(1));
    let partitions =
        Partitions::new(count, buckets, if threads == 1 { PARTITION_KEYS } else { wanted }, MOST_PARTITIONS);
    let (hashes, ends) = spread(keys, settings.seed, partitions);
    let parts: Result<Vec<Part>, Failure> = (0..partitions.count())
        .into_par_iter()
        .map_init(Scratch::default, |scratch, partition| {
            let from = if partition == 0 { 0 } else { ends[partition - 1] };
            let keys = &hashes[from..ends[partition]];
            let part = engine.part(keys, partitions.range(partition), buckets, scratch);
            meter.add(keys.len() as u64);
            part
        })
        .collect();
    engine.join(count, &parts?)
}

/// Hashes the keys and puts the hashes into the order of their partitions; also gives each partition's end.
fn spread<K: Key + Sync>(keys: &[K], seed: u64, partitions: Partitions) -> (Vec<Hash128>, Vec<usize>) {
    let count = partitions.count();
    if count == 1 {
        return (keys.par_iter().map(|key| key.hash128(seed)).collect(), vec![keys.len()]);
    }
    let stored: Vec<Hash128> =
        if K::CHEAP { Vec::new() } else { keys.par_iter().map(|key| key.hash128(seed)).collect() };
    let hash = |index: usize| if K::CHEAP { keys[index].hash128(seed) } else { stored[index] };
    let chunk = keys.len().div_ceil(rayon::current_num_threads() * 2).max(1 << 12);
    let chunks = keys.len().div_ceil(chunk);
    let range = |index: usize| index * chunk..keys.len().min((index + 1) * chunk);
    let mut counts: Vec<Vec<usize>> = (0..chunks)
        .into_par_iter()
        .map(|index| {
            let mut counts = vec![0_usize; count];
            range(index).for_each(|i| counts[partitions.of(&hash(i))] += 1);
            counts
        })
        .collect();
    // Turn counts into places: chunk by chunk within each partition.
    let mut ends = Vec::with_capacity(count);
    let mut sum = 0;
    for partition in 0..count {
        for counts in &mut counts {
            sum += std::mem::replace(&mut counts[partition], sum);
        }
        ends.push(sum);
    }
    let mut out: Vec<Hash128> = Vec::with_capacity(keys.len());
    struct Places(*mut Hash128);
    // SAFETY: chunks write to disjoint places, see below.
    unsafe impl Sync for Places {}
    impl Places {
        /// # Safety
        /// `at` is a place within the vector that nobody else writes.
        #[inline]
        unsafe fn put(&self, at: usize, hash: Hash128) {
            // SAFETY: as the caller says.
            unsafe { self.0.add(at).write(hash) };
        }
    }
    let places = Places(out.as_mut_ptr());
    counts.par_iter_mut().enumerate().for_each(|(index, at)| {
        for i in range(index) {
            let hash = hash(i);
            let at = &mut at[partitions.of(&hash)];
            // SAFETY: the counts of the first pass give every key of every chunk its own place below the number of
            // keys, which is the vector's capacity.
            unsafe { places.put(*at, hash) };
            *at += 1;
        }
    });
    // SAFETY: every place was written once.
    unsafe { out.set_len(keys.len()) };
    (out, ends)
}
