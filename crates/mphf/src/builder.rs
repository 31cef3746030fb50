//! Builds of functions from keys in memory.

use crate::build::duplicates::{check_duplicates, positions_of};
use crate::build::huge_vec::HugeVec;
use crate::build::{self, Failure, Settings};
use crate::function::PerfectHash;
use crate::progress::{self, Callback, Progress, ProgressAction, Reporter, Stage};
use crate::{Error, Estimate, HashKind, RecSplitKind};
use std::marker::PhantomData;
use warpset_base::key::{Hash128, Key};
use warpset_base::parallel::threads_for;
use warpset_core::recsplit::shape::MAX_BUCKET;

/// Settings for building a function of the kind `M`, or a [`StaticFilter`](crate::StaticFilter) around one; each setter
/// states its default.
///
/// [`RecSplit::builder`](crate::RecSplit::builder), [`Consensus::builder`](crate::Consensus::builder),
/// [`Placement::builder`](crate::Placement::builder) and [`StaticFilter::builder`](crate::StaticFilter::builder) make
/// one.
#[derive(Clone)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct Builder<M: HashKind = RecSplitKind, S = PerfectHash<M>> {
    /// Options of this kind only.
    pub(crate) options: M::KindOptions,
    pub(crate) bucket_size: u32,
    /// The bits per key that [`for_space`](Builder::for_space) could not reach, and the least that are reachable.
    unreachable: Option<(f64, f64)>,
    seed: u64,
    threads: Option<usize>,
    progress: Option<Callback>,
    /// Bits of a filter's fingerprints.
    pub(crate) width: FingerprintWidth,
    structure: PhantomData<fn() -> S>,
}

/// Width of a filter's fingerprints, as the user gave it.
#[derive(Clone, Copy)]
pub(crate) enum FingerprintWidth {
    Bits(u32),
    Fpr(f64),
}

impl<M: HashKind, S> std::fmt::Debug for Builder<M, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder")
            .field("options", &self.options)
            .field("bucket_size", &self.bucket_size)
            .field("seed", &self.seed)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// Seeds to try before giving up. Random hashes need a second one once in millions of builds.
pub(crate) const SEEDS: u32 = 8;

impl<M: HashKind, S> Builder<M, S> {
    /// Makes the default settings of this kind.
    pub(crate) fn new() -> Self {
        Self {
            options: M::KindOptions::default(),
            bucket_size: M::BUCKET_SIZE,
            unreachable: None,
            seed: 0,
            threads: None,
            progress: None,
            width: FingerprintWidth::Fpr(0.01),
            structure: PhantomData,
        }
    }

    /// Sets the expected number of keys in a bucket, at least 1. Larger buckets take less space and make lookups
    /// slower, except for Placement, whose buckets are segments. Default: 1000 for RecSplit, 2400 for Consensus, 57,344
    /// for Placement.
    pub fn bucket_size(mut self, bucket_size: u32) -> Self {
        self.bucket_size = bucket_size;
        self
    }

    /// Sets the seed of the initial hash. Default: 0, under which [`Hash128`] keys are used unchanged.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the number of threads, which are started for each build; 0 uses all of the machine. No more threads are
    /// started than there are keys, and at most 256 unless the machine has more. Default: the threads of the current
    /// rayon pool.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Calls `callback` from time to time, from any thread of the build. If it returns
    /// [`ControlFlow::Break`](std::ops::ControlFlow::Break), the build stops with [`Error::Interrupted`]; a callback
    /// without a result never stops it. Threads of the host call it after some thousand keys each. A build on a device
    /// calls it after every chunk of host keys and after every kind of node, some thirty times, and waits for the
    /// device before. Default: no callback.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::{Duration, Instant};
    /// use warpset_mphf::{Error, RecSplit};
    ///
    /// let deadline = Instant::now() + Duration::from_secs(60);
    /// let in_time = move |_| match Instant::now() < deadline {
    ///     true => ControlFlow::Continue(()),
    ///     false => ControlFlow::Break(()),
    /// };
    /// let keys: Vec<u64> = (0..1000).collect();
    /// match RecSplit::builder().progress(in_time).build_from(&keys) {
    ///     Ok(function) => assert_eq!(function.len(), 1000),
    ///     Err(error) => assert!(matches!(error, Error::Interrupted { .. })),
    /// }
    /// ```
    pub fn progress<V: ProgressAction>(mut self, callback: impl Fn(Progress) -> V + Send + Sync + 'static) -> Self {
        self.progress = Some(progress::callback(callback));
        self
    }

    /// Predicts the space and the build time of functions with these settings.
    ///
    /// # Errors
    /// The errors of the settings: [`Error::InvalidShape`], [`Error::InvalidParameter`], [`Error::InvalidBucketSize`],
    /// [`Error::UnreachableSpace`].
    pub fn estimate(&self) -> Result<Estimate, Error> {
        let settings = self.settings()?;
        Ok(M::estimate(&settings.code, settings.bucket_size))
    }

    /// Chooses the settings that are predicted to build fastest within `bits_per_key`: leaf size, fanouts and bucket
    /// size for RecSplit, from 1.53 on; overhead and bucket size for Consensus, from 1.46 on; keys per seed for
    /// Placement, from 1.95 on. Below, the build fails
    /// with [`Error::UnreachableSpace`]. Small functions take more, for their fixed parts. The same settings are
    /// fastest on devices for many keys; for fewer see [`for_space_on_device`](Self::for_space_on_device).
    /// [`Kind::for_space`](crate::Kind::for_space) chooses the kind.
    pub fn for_space(self, bits_per_key: f64) -> Self {
        self.fastest_for_space(bits_per_key, |estimate| estimate.nanoseconds_per_key)
    }

    /// Chooses settings as [`for_space`](Self::for_space) does, for builds of `keys` keys on a device. A warp searches
    /// a bucket of Consensus, so a few million keys are built sooner in smaller buckets, with less overhead.
    ///
    /// ```
    /// use warpset_mphf::Consensus;
    ///
    /// let for_host = Consensus::builder().for_space(1.47).estimate()?;
    /// let for_device = Consensus::builder().for_space_on_device(1.47, 1_000_000).estimate()?;
    /// assert!(for_device.device_nanoseconds < 0.6 * for_host.device_nanoseconds);
    /// # Ok::<(), warpset_mphf::Error>(())
    /// ```
    pub fn for_space_on_device(self, bits_per_key: f64, keys: u64) -> Self {
        self.fastest_for_space(bits_per_key, |estimate| estimate.on_device(keys as f64))
    }

    fn fastest_for_space(mut self, bits_per_key: f64, time: impl Fn(&Estimate) -> f64) -> Self {
        match M::choose_for_space(&mut self.options, bits_per_key, time) {
            Ok(bucket_size) => (self.bucket_size, self.unreachable) = (bucket_size, None),
            Err(least) => self.unreachable = Some((bits_per_key, least)),
        }
        self
    }

    pub(crate) fn settings(&self) -> Result<Settings<M>, Error> {
        if let Some((bits_per_key, least)) = self.unreachable {
            return Err(Error::UnreachableSpace { name: M::NAME, bits_per_key, least });
        }
        // Ten standard deviations above this still fit in a bucket.
        let largest = MAX_BUCKET as u32 * 9 / 10;
        if !(1..=largest).contains(&self.bucket_size) {
            return Err(Error::InvalidBucketSize { bucket_size: self.bucket_size, largest });
        }
        let code = M::code(&self.options, self.bucket_size)?;
        Ok(Settings { code, options: self.options, bucket_size: self.bucket_size, seed: self.seed })
    }

    /// Runs `work`, on `keys` keys, on the chosen threads.
    pub(crate) fn run<R: Send>(&self, keys: u64, work: impl FnOnce() -> R + Send) -> Result<R, Error> {
        match self.threads {
            // Runs on a thread of the pool, so no thread has to be woken for each stage.
            None => Ok(rayon::scope(|_| work())),
            Some(threads) => {
                let threads = threads_for(threads, keys);
                Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(work))
            }
        }
    }

    /// Returns the seeds to try, in order.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = (u32, u64)> + use<M, S> {
        let seed = self.seed;
        (0..SEEDS)
            .map(move |attempt| (attempt, seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }

    /// Makes the progress reporter of one build.
    pub(crate) fn reporter(&self) -> Reporter<'_> {
        Reporter::new(self.progress.as_deref())
    }

    /// Returns the number of threads that build a function of `keys` keys.
    #[cfg(feature = "gpu")]
    pub(crate) fn threads_for(&self, keys: u64) -> usize {
        self.threads.map_or_else(rayon::current_num_threads, |threads| threads_for(threads, keys))
    }

    /// Builds the function of `keys`.
    pub(crate) fn function_from<K: Key>(&self, keys: &[K]) -> Result<PerfectHash<M>, Error> {
        let settings = self.settings()?;
        self.run(keys.len() as u64, || self.build_here(settings, keys))?
    }

    /// Builds the function of the keys of `source`.
    pub(crate) fn function_from_iter<K: Key, I: IntoIterator<Item = K>>(
        &self,
        mut source: impl FnMut() -> I,
    ) -> Result<PerfectHash<M>, Error> {
        let (settings, reporter) = (self.settings()?, self.reporter());
        for (attempt, seed) in self.seeds() {
            let settings = Settings { seed, ..settings };
            let hashes: Vec<Hash128> = source().into_iter().map(|key| M::hash(&key, seed)).collect();
            let keys = hashes.len() as u64;
            let meter = reporter.meter(Stage::Building, keys, attempt);
            match self.run(keys, || build::build(settings, hashes.len(), |i| hashes[i], &meter))? {
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

    fn build_here<K: Key>(&self, settings: Settings<M>, keys: &[K]) -> Result<PerfectHash<M>, Error> {
        let reporter = self.reporter();
        for (attempt, seed) in self.seeds() {
            let settings = Settings { seed, ..settings };
            let meter = reporter.meter(Stage::Building, keys.len() as u64, attempt);
            // Cheap hashes are computed again, which costs less than 16 bytes of memory traffic; others are stored.
            let built = if K::CHEAP {
                build::build(settings, keys.len(), |i| M::hash(&keys[i], seed), &meter)
            } else {
                let hashes = HugeVec::of(keys.len(), |i| M::hash(&keys[i], seed));
                let hashes = hashes.as_slice();
                build::build(settings, keys.len(), |i| hashes[i], &meter)
            };
            match built {
                Ok(function) => return Ok(function),
                Err(Failure::Unlucky) => {}
                Err(Failure::Interrupted(at)) => return Err(at.into()),
                Err(Failure::Collision { bucket, low }) => {
                    let buckets = settings.buckets(keys.len() as u64);
                    let positions = positions_of(keys.iter().map(|key| M::hash(key, seed)), bucket, low, buckets);
                    check_duplicates(positions.into_iter().map(|at| (at, &keys[at as usize])))?;
                }
            }
        }
        Err(Error::HashesCollide { seeds: SEEDS })
    }
}

impl<M: HashKind> Builder<M> {
    /// Builds the function of `keys`, which must be distinct.
    ///
    /// Takes 10 bytes per key besides the keys (26 for keys with an expensive hash), and all threads.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`]; [`Error::HashesCollide`]; [`Error::Interrupted`]; [`Error::Threads`]; those of the
    /// settings, as for [`Builder::estimate`].
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<PerfectHash<M>, Error> {
        self.function_from(keys)
    }

    /// Builds the function of the keys of `source`. It may be called several times, usually once, and must return the
    /// same keys in the same order each time. Takes 32 bytes per key; the keys themselves are never all in memory.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`].
    pub fn build_from_iter<K: Key, I: IntoIterator<Item = K>>(
        &self,
        source: impl FnMut() -> I,
    ) -> Result<PerfectHash<M>, Error> {
        self.function_from_iter(source)
    }
}
