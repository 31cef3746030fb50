//! Building functions from keys in memory.

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
/// [`RecSplit::builder`](crate::RecSplit::builder) and [`StaticFilter::builder`](crate::StaticFilter::builder) make
/// one.
#[derive(Clone)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct Builder<M: HashKind = RecSplitKind, S = PerfectHash<M>> {
    /// What only this kind has.
    pub(crate) options: M::KindOptions,
    pub(crate) bucket_size: u32,
    /// The bits per key that were asked for in vain, and the fewest that there are.
    unreachable: Option<(f64, f64)>,
    seed: u64,
    threads: Option<usize>,
    progress: Option<Callback>,
    /// Bits of a filter's fingerprints.
    pub(crate) width: FingerprintWidth,
    structure: PhantomData<fn() -> S>,
}

/// What the user said about the fingerprints of a filter.
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

/// Seeds that are tried before giving up. Random hashes need a second one once in millions of builds.
pub(crate) const SEEDS: u32 = 8;

impl<M: HashKind, S> Builder<M, S> {
    /// The default settings of this kind.
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

    /// Expected number of keys in a bucket, at least 1: larger buckets take less space and make queries slower.
    /// Default: 1000 for RecSplit, 2400 for Consensus.
    pub fn bucket_size(mut self, bucket_size: u32) -> Self {
        self.bucket_size = bucket_size;
        self
    }

    /// Seed of the initial hash. Default: 0, under which [`Hash128`] keys are taken as they are.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Threads to build with, which are started for each build; 0 for as many as the machine has. No more are started
    /// than there are keys, and no more than 256 unless the machine has more. Default: those of the current rayon
    /// pool.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Is called now and then, from any thread of the build, and may stop it: a callback that answers
    /// [`ControlFlow::Break`](std::ops::ControlFlow::Break) ends the build with [`Error::Interrupted`], one that
    /// answers nothing never does. Threads of the host call it after some thousand keys each. A device is waited
    /// for after every chunk of host keys and after every kind of node, some thirty times, before it is called.
    /// Default: nothing is called.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::{Duration, Instant};
    /// use warpset_mphf::{Error, RecSplit};
    ///
    /// let deadline = Instant::now() + Duration::from_secs(60);
    /// let in_time = move |_| if Instant::now() < deadline { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
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

    /// What functions of these settings are predicted to cost.
    ///
    /// # Errors
    /// The errors of the settings: [`Error::InvalidShape`], [`Error::InvalidParameter`], [`Error::InvalidBucketSize`],
    /// [`Error::UnreachableSpace`].
    pub fn estimate(&self) -> Result<Estimate, Error> {
        let settings = self.settings()?;
        Ok(M::estimate(&settings.code, settings.bucket_size))
    }

    /// Sets what decides on space to what is predicted to build fastest within `bits_per_key`: leaf size, fanouts and
    /// bucket size for RecSplit, which is possible from 1.53 on, overhead and bucket size for Consensus, from 1.46 on;
    /// below, the build fails with [`Error::UnreachableSpace`]. Small functions take more, for their fixed parts. What
    /// is fastest on the host is so on devices too: they take the same share of its time for all shapes, within what is
    /// predicted. [`Kind::for_space`](crate::Kind::for_space) says which kind is faster.
    pub fn for_space(mut self, bits_per_key: f64) -> Self {
        match M::choose_for_space(&mut self.options, bits_per_key) {
            Ok(bucket_size) => (self.bucket_size, self.unreachable) = (bucket_size, None),
            Err(least) => self.unreachable = Some((bits_per_key, least)),
        }
        self
    }

    pub(crate) fn settings(&self) -> Result<Settings<M>, Error> {
        if let Some((bits_per_key, least)) = self.unreachable {
            return Err(Error::UnreachableSpace { name: M::NAME, bits_per_key, least });
        }
        // Ten standard deviations above this still fit.
        let largest = MAX_BUCKET as u32 * 9 / 10;
        if !(1..=largest).contains(&self.bucket_size) {
            return Err(Error::InvalidBucketSize { bucket_size: self.bucket_size, largest });
        }
        let code = M::code(&self.options, self.bucket_size)?;
        Ok(Settings { code, options: self.options, bucket_size: self.bucket_size, seed: self.seed })
    }

    /// Runs `work` with that many keys on the threads that were asked for.
    pub(crate) fn run<R: Send>(&self, keys: u64, work: impl FnOnce() -> R + Send) -> Result<R, Error> {
        match self.threads {
            // On a thread of the pool, which does not have to be woken for each stage.
            None => Ok(rayon::scope(|_| work())),
            Some(threads) => {
                let threads = threads_for(threads, keys);
                Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(work))
            }
        }
    }

    /// The seeds to try, in order.
    pub(crate) fn seeds(&self) -> impl Iterator<Item = (u32, u64)> + use<M, S> {
        let seed = self.seed;
        (0..SEEDS)
            .map(move |attempt| (attempt, seed.wrapping_add(u64::from(attempt).wrapping_mul(0x9e37_79b9_7f4a_7c15))))
    }

    /// What is told of one build.
    pub(crate) fn reporter(&self) -> Reporter<'_> {
        Reporter::new(self.progress.as_deref())
    }

    /// How many threads build a function of that many keys.
    #[cfg(feature = "gpu")]
    pub(crate) fn threads_for(&self, keys: u64) -> usize {
        self.threads.map_or_else(rayon::current_num_threads, |threads| threads_for(threads, keys))
    }

    /// The function of `keys`.
    pub(crate) fn function_from<K: Key>(&self, keys: &[K]) -> Result<PerfectHash<M>, Error> {
        let settings = self.settings()?;
        self.run(keys.len() as u64, || self.build_here(settings, keys))?
    }

    /// The function of the keys that `source` gives.
    pub(crate) fn function_from_iter<K: Key, I: IntoIterator<Item = K>>(
        &self,
        mut source: impl FnMut() -> I,
    ) -> Result<PerfectHash<M>, Error> {
        let (settings, reporter) = (self.settings()?, self.reporter());
        for (attempt, seed) in self.seeds() {
            let settings = Settings { seed, ..settings };
            let hashes: Vec<Hash128> = source().into_iter().map(|key| key.hash128(seed)).collect();
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

impl<M: HashKind> Builder<M> {
    /// Builds the function of `keys`, which must be distinct.
    ///
    /// Takes 10 bytes per key besides the keys (26 for keys whose hash is not cheap), and all threads.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`]; [`Error::HashesCollide`]; [`Error::Interrupted`]; [`Error::Threads`]; those of the
    /// settings, as for [`Builder::estimate`].
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<PerfectHash<M>, Error> {
        self.function_from(keys)
    }

    /// Builds the function of the keys that `source` gives, which may be called several times and must give the same
    /// keys in the same order each time: once as a rule. Takes 32 bytes per key; the keys themselves are never all
    /// in memory.
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
