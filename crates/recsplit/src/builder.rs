//! Building functions from keys in memory.

use crate::engine::{Built, Engine, Partitions, Settings};
use crate::key::{Hash128, Key};
use crate::room::{self, Room};
use crate::search::Simd;
use crate::spread::Spread;
use crate::tree::{Bucket, Buckets, Failure, Scratch};
use crate::{Error, RecSplit, stage};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use warpset_core::recsplit::shape::MAX_BUCKET;
use warpset_core::recsplit::{Method, Remix, Shape};

/// What a build does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Reads the keys of an [external](Builder::external) build, and hashes them.
    Hashing,
    /// Builds trees.
    Building,
}

/// How far a build is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// What is being done.
    pub stage: Stage,
    /// Keys for which it is done.
    pub keys_done: u64,
    /// All keys; 0 where nobody knows yet: while an external build reads them.
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
    load_factor: f64,
    keys_per_value: Option<u32>,
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
            .field("load_factor", &self.load_factor)
            .field("keys_per_value", &self.keys_per_value)
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
pub(crate) const SEEDS: u32 = 8;

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
            load_factor: 1.0,
            keys_per_value: None,
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
    /// [`Method::Grouped`], those of the thesis for the other methods. Where the counts of a large fanout do not fit one word,
    /// its splittings are searched by brute force: [`Estimate::brute_force_share`](crate::Estimate::brute_force_share). The
    /// largest fanouts would take years to build; [`Builder::estimate`] tells it beforehand.
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

    /// Keys for each value that the function may take, above 0.75 and at most 1: below 1 the function is perfect but not
    /// minimal, and smaller. Rounded to whole positions of a leaf; [`RecSplit::values`] tells the outcome. Default: 1.
    pub fn load_factor(mut self, load_factor: f64) -> Self {
        self.load_factor = load_factor;
        self
    }

    /// Builds a `k`-perfect function: up to `k` keys, 2 to 24, have the same value; all values but one in each bucket have
    /// `k`. Replaces the leaf size and the load factor. Default: every key has its own value.
    pub fn keys_per_value(mut self, k: u32) -> Self {
        self.keys_per_value = Some(k);
        self
    }

    /// Threads to build with, which are started for each build; 0 for as many as rayon would start. Default: the global rayon
    /// pool.
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
        if let Some(k) = self.keys_per_value {
            if !(2..=24).contains(&k) {
                let value = f64::from(k);
                return Err(Error::InvalidParameter { what: "number of keys for a value", value, allowed: "2 to 24" });
            }
            let tree = Self { leaf_size: k, keys_per_value: None, load_factor: 1.0, ..self.clone() }.shape()?;
            return Ok(tree.with_positions(1).unwrap_or(tree));
        }
        if !(self.load_factor > 0.75 && self.load_factor <= 1.0) {
            let value = self.load_factor;
            return Err(Error::InvalidParameter { what: "load factor", value, allowed: "above 0.75 and at most 1" });
        }
        let thesis = Shape::thesis(self.leaf_size.clamp(2, 24), Method::BruteForce);
        let (first, second) = match (self.fanouts, self.method, thesis) {
            (Some(fanouts), ..) => fanouts,
            (None, Method::Grouped, _) => Self::tuned_fanouts(self.leaf_size),
            (None, _, Some(shape)) => (shape.first_fanout(), shape.second_fanout()),
            (None, _, None) => (0, 0),
        };
        let shape = Shape::new(self.leaf_size, first, second, self.method).ok_or(Error::InvalidShape {
            leaf_size: self.leaf_size,
            first_fanout: first,
            second_fanout: second,
        })?;
        // At most 24 / 0.75 = 32 positions.
        let positions = (f64::from(self.leaf_size) / self.load_factor).round() as u32;
        Ok(shape.with_positions(positions).unwrap_or(shape))
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
            // On a thread of the pool, which does not have to be woken for each stage.
            None => Ok(rayon::scope(|_| work())),
            Some(threads) => Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(work)),
        }
    }

    /// The seeds to try, in order.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = (u32, u64)> + use<> {
        let seed = self.seed;
        (0..SEEDS)
            .map(move |attempt| (attempt, seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }

    pub(crate) fn meter(&self, stage: Stage, keys: u64, attempt: u32) -> Meter<'_> {
        Meter { callback: self.progress.as_deref(), done: AtomicU64::new(0), stage, keys, attempt }
    }

    /// Builds the function of `keys`, which must be distinct.
    ///
    /// Takes 10 bytes a key beside the keys (26 for keys whose hash is not cheap), and all threads.
    pub fn build<K: Key + Sync>(&self, keys: &[K]) -> Result<RecSplit, Error> {
        let settings = self.settings()?;
        self.run(|| self.build_here(settings, keys))?
    }

    /// Builds the function of the keys that `source` gives, which may be called several times and must give the same keys
    /// in the same order each time: twice as a rule. Takes 32 bytes a key; the keys themselves are never all in memory.
    pub fn build_iter<K: Key, I: IntoIterator<Item = K>>(
        &self,
        mut source: impl FnMut() -> I,
    ) -> Result<RecSplit, Error> {
        let settings = self.settings()?;
        for (attempt, seed) in self.seeds() {
            let settings = Settings { seed, ..settings };
            let hashes: Vec<Hash128> = source().into_iter().map(|key| key.hash128(seed)).collect();
            let keys = hashes.len() as u64;
            let meter = self.meter(Stage::Building, keys, attempt);
            match self.run(|| build_once(settings, hashes.len(), |i| hashes[i], &meter))? {
                Ok(function) => return Ok(function),
                Err(Failure::Unlucky) => {}
                Err(Failure::Collision { bucket, low }) => {
                    let positions = positions_of(hashes.iter().copied(), bucket, low, settings.buckets(keys));
                    check_duplicates(source().into_iter().enumerate().filter_map(|(at, key)| {
                        positions.binary_search(&(at as u64)).is_ok().then_some((at as u64, key))
                    }))?;
                }
            }
        }
        Err(Error::HashesCollide { seeds: SEEDS })
    }

    fn build_here<K: Key + Sync>(&self, settings: Settings, keys: &[K]) -> Result<RecSplit, Error> {
        for (attempt, seed) in self.seeds() {
            let settings = Settings { seed, ..settings };
            let meter = self.meter(Stage::Building, keys.len() as u64, attempt);
            // Hashing again costs less than 16 bytes of memory traffic, or it does not.
            let built = if K::CHEAP {
                build_once(settings, keys.len(), |i| keys[i].hash128(seed), &meter)
            } else {
                let hashes = Room::of(keys.len(), |i| keys[i].hash128(seed));
                let hashes = hashes.as_slice();
                build_once(settings, keys.len(), |i| hashes[i], &meter)
            };
            match built {
                Ok(function) => return Ok(function),
                Err(Failure::Unlucky) => {}
                Err(Failure::Collision { bucket, low }) => {
                    let buckets = settings.buckets(keys.len() as u64);
                    let positions = positions_of(keys.iter().map(|key| key.hash128(seed)), bucket, low, buckets);
                    check_duplicates(positions.into_iter().map(|at| (at, &keys[at as usize])))?;
                }
            }
        }
        Err(Error::HashesCollide { seeds: SEEDS })
    }
}

/// Positions of the keys whose hash has `bucket` and `low`.
fn positions_of(hashes: impl Iterator<Item = Hash128>, bucket: u64, low: u64, buckets: u64) -> Vec<u64> {
    use warpset_core::recsplit::hash::bucket_of;
    let hits = hashes.enumerate().filter(|(_, hash)| hash.low == low && bucket_of(hash.high, buckets) == bucket);
    hits.map(|(position, _)| position as u64).collect()
}

/// Among keys that collide, equal ones are an error; if there are none, another seed will do.
fn check_duplicates<K: Key>(mut colliding: impl Iterator<Item = (u64, K)>) -> Result<(), Error> {
    let mut duplicates = Duplicates::default();
    colliding.try_for_each(|(position, key)| duplicates.see(position, &key))
}

/// Keys that collide. They are taken for equal if their 128-bit hashes are under two more seeds.
#[derive(Default)]
pub(crate) struct Duplicates {
    seen: Vec<((Hash128, Hash128), u64)>,
}

impl Duplicates {
    /// An error if the key has been seen.
    pub(crate) fn see<K: Key + ?Sized>(&mut self, position: u64, key: &K) -> Result<(), Error> {
        let identity = (key.hash128(0x5bd1_e995_9d1b_54a3), key.hash128(0x2545_f491_4f6c_dd1d));
        if let Some(&(_, first)) = self.seen.iter().find(|(other, _)| *other == identity) {
            return Err(Error::DuplicateKey { first, second: position, key: key.describe() });
        }
        self.seen.push((identity, position));
        Ok(())
    }
}

/// Counts finished keys and reports them.
pub(crate) struct Meter<'a> {
    callback: Option<&'a (dyn Fn(Progress) + Send + Sync)>,
    done: AtomicU64,
    stage: Stage,
    keys: u64,
    attempt: u32,
}

impl Meter<'_> {
    pub(crate) fn add(&self, keys: u64) {
        if let Some(callback) = self.callback {
            let done = self.done.fetch_add(keys, Ordering::Relaxed) + keys;
            callback(Progress { stage: self.stage, keys_done: done, keys: self.keys, attempt: self.attempt });
        }
    }
}

/// Keys in one partition: what there is of them takes a third of a usual second-level cache.
const PARTITION_KEYS: u64 = 1 << 15;
/// Partitions at most: more would spread the keys over more lines than a first-level cache keeps open.
const MOST_PARTITIONS: u64 = 1024;

fn build_once(
    settings: Settings,
    keys: usize,
    hash: impl Fn(usize) -> Hash128 + Sync,
    meter: &Meter,
) -> Result<RecSplit, Failure> {
    let count = keys as u64;
    let engine = Engine::new(settings, count);
    let mut built = Built::new(&engine);
    let spread = build_parts(&engine, keys, hash, 0..engine.buckets(), meter, &mut built)?;
    // Giving memory back takes a while.
    rayon::join(|| engine.join(count, built), || drop(spread)).0
}

/// Builds the trees of the buckets `within`, which come after those in `built`; the `keys` hashes are those of these buckets.
/// What is returned is only there to be dropped.
pub(crate) fn build_parts(
    engine: &Engine,
    keys: usize,
    hash: impl Fn(usize) -> Hash128 + Sync,
    within: Range<u64>,
    meter: &Meter,
    built: &mut Built,
) -> Result<Option<(Spread, Vec<Scratch>)>, Failure> {
    if within.is_empty() {
        return Ok(None);
    }
    let count = keys as u64;
    let (first, end) = (within.start as usize, within.end as usize);
    assert_eq!(built.buckets.as_slice().len(), first, "ranges come one after the other");
    // Fewer keys in a partition where there would be too few partitions for the threads to share evenly.
    let threads = rayon::current_num_threads() as u64;
    let least = if engine.has_large_buckets() { 1 } else { 1 << 9 };
    let even = if threads == 1 { PARTITION_KEYS } else { (count / (threads * 64)).max(least) };
    let partitions = Partitions::new(count, within, engine.buckets(), PARTITION_KEYS.min(even), MOST_PARTITIONS);
    let spread = Spread::new(keys, hash, |hash| partitions.of(hash), partitions.count(), built.buckets.pages());
    let slots = built.buckets.slots()[first..end].chunks_mut(partitions.len());
    let work = |scratch: &mut Scratch, (index, slots)| {
        let found = room::fill(slots, Bucket::default());
        let first = (first + index * partitions.len()) as u64;
        let part = engine.part(Buckets { keys: spread.partition(index), first, found }, partitions.count(), scratch)?;
        meter.add(part.keys);
        Ok(part)
    };
    let (mut parts, scratches) = stage::each(slots.enumerate(), work)?;
    // SAFETY: those before `first` were there, the others were filled.
    unsafe { built.buckets.set_len(end) };
    built.parts.append(&mut parts);
    scratches.iter().for_each(|scratch| built.least.merge(&scratch.least));
    Ok(Some((spread, scratches)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subtrees_that_threads_share() {
        let hash = |i: usize| (i as u64).hash128(1);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
        for method in [Method::BruteForce, Method::Rotation, Method::Grouped] {
            for (keys, bucket_size) in [(1, 1), (300, 300), (5000, 400), (3000, 2000), (1000, 3)] {
                let builder = Builder::new().leaf_size(5).bucket_size(bucket_size).method(method);
                let settings = builder.settings().unwrap();
                let build = |share_from: f64| {
                    let mut engine = Engine::new(settings, keys as u64);
                    engine.share_from = share_from;
                    let mut built = Built::new(&engine);
                    let meter = builder.meter(Stage::Building, keys as u64, 0);
                    build_parts(&engine, keys, hash, 0..engine.buckets(), &meter, &mut built).unwrap();
                    engine.join(keys as u64, built).unwrap()
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
    fn duplicates_in_shared_subtrees() {
        let mut keys: Vec<u64> = (0..2000).collect();
        keys[1999] = 1;
        let builder = Builder::new().leaf_size(4).bucket_size(2000).threads(4);
        let settings = builder.settings().unwrap();
        let mut engine = Engine::new(settings, keys.len() as u64);
        engine.share_from = 0.0;
        let meter = builder.meter(Stage::Building, keys.len() as u64, 0);
        let built = &mut Built::new(&engine);
        let failure = builder.run(|| build_parts(&engine, 2000, |i| keys[i].hash128(0), 0..1, &meter, built).err());
        assert!(matches!(failure.unwrap(), Some(Failure::Collision { bucket: 0, .. })));
    }
}
