//! Building functions from keys in memory.

use crate::build::duplicates::{check_duplicates, positions_of};
use crate::build::huge_vec::HugeVec;
use crate::build::{self, Failure, Settings};
use crate::find::Simd;
use crate::gpu;
use crate::progress::{self, Callback, Progress, Reporter, Stage, Verdict};
use crate::{Error, Estimate, RecSplit};
use std::marker::PhantomData;
use warpset_base::key::{Hash128, Key};
use warpset_core::recsplit::shape::MAX_BUCKET;
use warpset_core::recsplit::{Method, Remix, TreeShape};
use warpset_gpu::{Backend, Device};

/// Settings for building a function, or a [`StaticFilter`](crate::StaticFilter); each setter states its default.
///
/// [`RecSplit::builder`] and [`StaticFilter::builder`](crate::StaticFilter::builder) make one.
#[derive(Clone)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct Builder<S = RecSplit> {
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
    progress: Option<Callback>,
    /// Where functions are built if that is predicted to take less time.
    device: Option<Device>,
    /// Bits of a filter's fingerprints.
    width: u32,
    structure: PhantomData<fn() -> S>,
}

impl<S> std::fmt::Debug for Builder<S> {
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

/// Seeds that are tried before giving up. Random hashes need a second one once in millions of builds.
pub(crate) const SEEDS: u32 = 8;

impl<S> Builder<S> {
    /// The default settings; filters have fingerprints of `width` bits.
    pub(crate) fn new(width: u32) -> Self {
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
            device: None,
            width,
            structure: PhantomData,
        }
    }

    pub(crate) fn width(&self) -> u32 {
        self.width
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

    /// Threads to build with, which are started for each build; 0 for as many as rayon would start. Default: those of
    /// the current rayon pool.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Is called now and then, from any thread of the build, and may stop it: a callback that answers
    /// [`ControlFlow::Break`](std::ops::ControlFlow::Break) ends the build with [`Error::Interrupted`], one that answers nothing never
    /// does. Threads of the host call it after some thousand keys each. A device is waited for after every chunk of host keys and after every
    /// kind of node, some thirty times, before it is called. Default: nothing is called.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::{Duration, Instant};
    /// use warpset_recsplit::{Error, RecSplit};
    ///
    /// let deadline = Instant::now() + Duration::from_secs(60);
    /// let in_time = move |_| if Instant::now() < deadline { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    /// let keys: Vec<u64> = (0..1000).collect();
    /// match RecSplit::builder().progress(in_time).build_from(&keys) {
    ///     Ok(function) => assert_eq!(function.len(), 1000),
    ///     Err(error) => assert!(matches!(error, Error::Interrupted { .. })),
    /// }
    /// ```
    pub fn progress<V: Verdict>(mut self, callback: impl Fn(Progress) -> V + Send + Sync + 'static) -> Self {
        self.progress = Some(progress::callback(callback));
        self
    }

    /// A device that may build functions of host memory's keys: it does where that is predicted to take less time than the threads of the host
    /// ([`Estimate::device_pays`](crate::Estimate::device_pays)), and the result comes back; the words are the same. Where the device
    /// fails, as for want of memory, the host builds. [`Builder::on`] leaves no choice. Default: none, so that the host builds.
    ///
    /// ```
    /// use warpset_gpu::Backend;
    /// use warpset_recsplit::RecSplit;
    ///
    /// let keys: Vec<u64> = (0..1000).collect();
    /// let function = RecSplit::builder().backend(&Backend::auto()).build_from(&keys)?;
    /// assert_eq!(function.len(), 1000);
    /// # Ok::<(), warpset_recsplit::Error>(())
    /// ```
    pub fn backend(mut self, backend: &Backend) -> Self {
        self.device = backend.device().cloned();
        self
    }

    /// The shape that these settings give.
    pub fn shape(&self) -> Result<TreeShape, Error> {
        if let Some(k) = self.keys_per_value {
            if !(2..=24).contains(&k) {
                let value = f64::from(k);
                return Err(Error::InvalidParameter { what: "number of keys for a value", value, allowed: "2 to 24" });
            }
            let tree = self.tree_shape(k)?;
            return Ok(tree.with_positions(1).unwrap_or(tree));
        }
        if !(self.load_factor > 0.75 && self.load_factor <= 1.0) {
            let value = self.load_factor;
            return Err(Error::InvalidParameter { what: "load factor", value, allowed: "above 0.75 and at most 1" });
        }
        let shape = self.tree_shape(self.leaf_size)?;
        // At most 24 / 0.75 = 32 positions.
        let positions = (f64::from(self.leaf_size) / self.load_factor).round() as u32;
        Ok(shape.with_positions(positions).unwrap_or(shape))
    }

    /// The shape with these leaves, for a minimal function.
    fn tree_shape(&self, leaf_size: u32) -> Result<TreeShape, Error> {
        let thesis = TreeShape::thesis(leaf_size.clamp(2, 24), Method::BruteForce);
        let (first, second) = match (self.fanouts, self.method, thesis) {
            (Some(fanouts), ..) => fanouts,
            (None, Method::Grouped, _) => tuned_fanouts(leaf_size),
            (None, _, Some(shape)) => (shape.first_fanout(), shape.second_fanout()),
            (None, _, None) => (0, 0),
        };
        TreeShape::new(leaf_size, first, second, self.method).ok_or(Error::InvalidShape {
            leaf_size,
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
            // On a thread of the pool, which does not have to be woken for each stage.
            None => Ok(rayon::scope(|_| work())),
            Some(threads) => Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(work)),
        }
    }

    /// The seeds to try, in order.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = (u32, u64)> + use<S> {
        let seed = self.seed;
        (0..SEEDS)
            .map(move |attempt| (attempt, seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }

    /// What is told of one build.
    pub(crate) fn reporter(&self) -> Reporter<'_> {
        Reporter::new(self.progress.as_deref())
    }

    /// The function of `keys`.
    pub(crate) fn function_from<K: Key>(&self, keys: &[K]) -> Result<RecSplit, Error> {
        let settings = self.settings()?;
        match self.device_for(&settings, keys.len() as u64) {
            Some(device) => self.build_there_or_here(device, settings, keys),
            None => self.run(|| self.build_here(settings, keys))?,
        }
    }

    /// The function of `keys`, built by the device, or by the host if that fails.
    pub(crate) fn build_there_or_here<K: Key>(
        &self,
        device: &Device,
        settings: Settings,
        keys: &[K],
    ) -> Result<RecSplit, Error> {
        match gpu::build_from_slice(device, settings, self, keys) {
            Err(Error::Gpu(_) | Error::Primitive(_)) => self.run(|| self.build_here(settings, keys))?,
            built => built,
        }
    }

    /// The device that may build, if it is predicted to take less time for that many keys.
    fn device_for(&self, settings: &Settings, keys: u64) -> Option<&Device> {
        let device = self.device.as_ref().filter(|_| keys > 0)?;
        let threads = match self.threads {
            None => rayon::current_num_threads(),
            Some(0) => std::thread::available_parallelism().map_or(1, usize::from),
            Some(threads) => threads,
        };
        Estimate::of(&settings.shape, settings.bucket_size).device_pays(keys, threads).then_some(device)
    }

    /// The function of the keys that `source` gives.
    pub(crate) fn function_from_iter<K: Key, I: IntoIterator<Item = K>>(
        &self,
        mut source: impl FnMut() -> I,
    ) -> Result<RecSplit, Error> {
        let (settings, reporter) = (self.settings()?, self.reporter());
        for (attempt, seed) in self.seeds() {
            let settings = Settings { seed, ..settings };
            let hashes: Vec<Hash128> = source().into_iter().map(|key| key.hash128(seed)).collect();
            let keys = hashes.len() as u64;
            let meter = reporter.meter(Stage::Building, keys, attempt);
            match self.run(|| build::build(settings, hashes.len(), |i| hashes[i], &meter))? {
                Ok(function) => return Ok(function),
                Err(Failure::Unlucky) => {}
                Err(Failure::Interrupted(at)) => return Err(at.into()),
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

    fn build_here<K: Key>(&self, settings: Settings, keys: &[K]) -> Result<RecSplit, Error> {
        let reporter = self.reporter();
        for (attempt, seed) in self.seeds() {
            let settings = Settings { seed, ..settings };
            let meter = reporter.meter(Stage::Building, keys.len() as u64, attempt);
            // Hashing again costs less than 16 bytes of memory traffic, or it does not.
            let built = if K::CHEAP {
                build::build(settings, keys.len(), |i| keys[i].hash128(seed), &meter)
            } else {
                let hashes = HugeVec::of(keys.len(), |i| keys[i].hash128(seed));
                let hashes = hashes.as_slice();
                build::build(settings, keys.len(), |i| hashes[i], &meter)
            };
            match built {
                Ok(function) => return Ok(function),
                Err(Failure::Unlucky) => {}
                Err(Failure::Interrupted(at)) => return Err(at.into()),
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

impl Builder<RecSplit> {
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

    /// The fanouts that [`Method::Grouped`] uses by default.
    pub const fn tuned_fanouts(leaf_size: u32) -> (u32, u32) {
        tuned_fanouts(leaf_size)
    }

    /// Builds the function of `keys`, which must be distinct.
    ///
    /// Takes 10 bytes per key besides the keys (26 for keys whose hash is not cheap), and all threads.
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<RecSplit, Error> {
        self.function_from(keys)
    }

    /// Builds the function of the keys that `source` gives, which may be called several times and must give the same keys
    /// in the same order each time: once as a rule. Takes 32 bytes per key; the keys themselves are never all in memory.
    pub fn build_from_iter<K: Key, I: IntoIterator<Item = K>>(
        &self,
        source: impl FnMut() -> I,
    ) -> Result<RecSplit, Error> {
        self.function_from_iter(source)
    }
}

const fn tuned_fanouts(leaf_size: u32) -> (u32, u32) {
    match leaf_size {
        0..=4 => (4, 4),
        _ => (6, 4),
    }
}
