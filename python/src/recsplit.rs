//! Perfect hash functions, and static filters based on them.

use std::sync::Arc;

use pyo3::prelude::*;
use warpset::mphf::{self, Builder, ConsensusKind, HashKind, PlacementKind, RecSplitKind};

use crate::device::Location;
use crate::error::{Failure, Result};
use crate::filter::numbers;
use crate::keys::{ArrayKeys, Batch, HostKeys, one_key};
use crate::kinds::{Either, Kinds, no_kind};
use crate::static_sets::lookups::NO_NUMBER;
use crate::structure::{Forms, Structure, Where, keys_elsewhere, length};
use crate::threads::{Shared, Threads, Watch, run_watched};
use crate::{anywhere, ask, class, structure, with_device_keys, with_key, with_keys};

structure!(RecSplitFunction: mphf::RecSplit, mphf::MappedRecSplit, mphf::gpu::RecSplit);
structure!(ConsensusFunction: mphf::Consensus, mphf::MappedConsensus, mphf::gpu::Consensus);
structure!(PlacementFunction: mphf::Placement, mphf::MappedPlacement, mphf::gpu::Placement);
structure!(RecSplitFilter:
    mphf::StaticFilter<RecSplitKind>, mphf::MappedStaticFilter<RecSplitKind>, mphf::gpu::StaticFilter<RecSplitKind>);
structure!(ConsensusFilter: mphf::StaticFilter, mphf::MappedStaticFilter, mphf::gpu::StaticFilter);
structure!(PlacementFilter:
    mphf::StaticFilter<PlacementKind>, mphf::MappedStaticFilter<PlacementKind>, mphf::gpu::StaticFilter<PlacementKind>);

/// Types of functions.
pub type Function = Kinds<RecSplitFunction, Kinds<ConsensusFunction, PlacementFunction>>;
/// Types of static filters.
pub type Static = Kinds<RecSplitFilter, Kinds<ConsensusFilter, PlacementFilter>>;

/// Names of kinds, in the order of [`HashKinds`].
const KINDS: [&str; 3] = ["recsplit", "consensus", "placement"];

/// Kinds of functions.
#[derive(Clone, Copy, PartialEq)]
pub enum HashKinds {
    RecSplit,
    Consensus,
    Placement,
}

/// Runs `$body` with the structure under the name `$it`, whatever its kind.
macro_rules! any_kind {
    ($structure:expr, |$it:ident| $body:expr) => {
        match $structure {
            Either::First($it) => $body,
            Either::Second(other) => $crate::either!(other, |$it| $body),
        }
    };
}

pub(crate) use any_kind;

/// Returns the name of a structure's kind.
pub fn kind_of<A: Forms, B: Forms, C: Forms>(value: &Where<Kinds<A, Kinds<B, C>>>) -> &'static str {
    let index = anywhere!(value, |value| match value {
        Either::First(_) => 0,
        Either::Second(Either::First(_)) => 1,
        Either::Second(Either::Second(_)) => 2,
    });
    KINDS[index]
}

impl Structure for Function {
    const NAME: &'static str = "PerfectHash";

    fn describe(value: &Where<Self>) -> Result<String> {
        let kind = kind_of(value);
        Ok(anywhere!(value, |function| any_kind!(function, |function| format!(
            "{} keys, kind={kind:?}, {} bytes, {:.2} bits per key",
            function.len(),
            function.memory_bytes(),
            function.bits_per_key()
        ))))
    }
}

impl Structure for Static {
    const NAME: &'static str = "StaticFilter";

    fn describe(value: &Where<Self>) -> Result<String> {
        let kind = kind_of(value);
        Ok(anywhere!(value, |filter| any_kind!(filter, |filter| format!(
            "{} keys, kind={kind:?}, {} bytes, fpr={:.2e}",
            filter.len(),
            filter.memory_bytes(),
            filter.fpr()
        ))))
    }
}

/// Settings of functions and filters.
#[derive(Clone, Copy)]
pub struct Settings {
    pub kind: HashKinds,
    leaf_size: Option<u32>,
    bucket_size: Option<u32>,
    overhead: Option<f64>,
    keys_per_seed: Option<f64>,
    seed: Option<u64>,
}

impl Settings {
    /// Checks settings of a kind, which must include none of other kinds.
    pub fn new(
        kind: &str,
        leaf_size: Option<u32>,
        bucket_size: Option<u32>,
        overhead: Option<f64>,
        keys_per_seed: Option<f64>,
        seed: Option<u64>,
    ) -> Result<Settings> {
        let kind = match KINDS.iter().position(|name| *name == kind) {
            Some(0) => HashKinds::RecSplit,
            Some(1) => HashKinds::Consensus,
            Some(_) => HashKinds::Placement,
            None => return Err(no_kind(kind, &KINDS)),
        };
        let settings = Settings { kind, leaf_size, bucket_size, overhead, keys_per_seed, seed };
        settings.only_of(HashKinds::RecSplit, "leaf_size", leaf_size.is_some())?;
        settings.only_of(HashKinds::Consensus, "overhead", overhead.is_some())?;
        settings.only_of(HashKinds::Placement, "keys_per_seed", keys_per_seed.is_some())?;
        Ok(settings)
    }

    /// Returns an error if a setting of this kind is given for another one.
    fn only_of(&self, kind: HashKinds, setting: &str, is_given: bool) -> Result<()> {
        if is_given && self.kind != kind {
            let kind = KINDS[kind as usize];
            return Err(Failure::value(format!("{setting} is a setting of kind={kind:?}: leave it away")));
        }
        Ok(())
    }

    /// Returns RecSplit's builder with these settings; it reports its progress to `watch`.
    fn of_recsplit<S>(&self, mut builder: Builder<RecSplitKind, S>, watch: &Arc<Watch>) -> Builder<RecSplitKind, S> {
        if let Some(keys) = self.leaf_size {
            builder = builder.leaf_size(keys);
        }
        self.of(builder, watch)
    }

    /// Returns Consensus' builder with these settings; it reports its progress to `watch`.
    fn of_consensus<S>(&self, mut builder: Builder<ConsensusKind, S>, watch: &Arc<Watch>) -> Builder<ConsensusKind, S> {
        if let Some(bits) = self.overhead {
            builder = builder.overhead(bits);
        }
        self.of(builder, watch)
    }

    /// Returns placement's builder with these settings; it reports its progress to `watch`.
    fn of_placement<S>(&self, mut builder: Builder<PlacementKind, S>, watch: &Arc<Watch>) -> Builder<PlacementKind, S> {
        if let Some(keys) = self.keys_per_seed {
            builder = builder.keys_per_seed(keys);
        }
        self.of(builder, watch)
    }

    /// Returns a builder with the settings of all kinds; it reports its progress to `watch`.
    pub fn of<M: HashKind, S>(&self, mut builder: Builder<M, S>, watch: &Arc<Watch>) -> Builder<M, S> {
        if let Some(keys) = self.bucket_size {
            builder = builder.bucket_size(keys);
        }
        if let Some(seed) = self.seed {
            builder = builder.seed(seed);
        }
        let watch = watch.clone();
        builder.progress(move |progress| watch.note(progress.keys_done, progress.keys))
    }
}

/// Structure that a builder makes of keys, in its place; `$kind` wraps it. Keys on a device stay there.
macro_rules! built {
    ($kind:expr, $builder:expr, $place:expr, $batch:expr) => {
        match ($place, $batch) {
            (Location::Cpu, Batch::Host(parts)) => {
                as_one(parts, |keys| Ok(Where::Host(($kind)(with_keys!(keys, |keys| $builder.build_from(keys))?))))
            }
            (Location::On(device), Batch::Host(parts)) => as_one(parts, |keys| {
                Ok(Where::Device(($kind)(with_keys!(keys, |keys| $builder.on(device).build_from(keys))?)))
            }),
            (Location::On(device), Batch::Device(keys)) => {
                let adopted = keys.adopt(device)?;
                let built = with_device_keys!(&adopted, |keys| $builder.on(device).build_from_device(keys))?;
                Ok(Where::Device(($kind)(built)))
            }
            (Location::Cpu, Batch::Device(_)) => Err(keys_elsewhere("in host memory")),
        }
    };
}

/// Structure of the kind that settings name, by one builder per kind, in its place.
macro_rules! built_of_kind {
    ($settings:ident, $recsplit:ident, $consensus:ident, $placement:ident, $watch:ident, $place:expr, $batch:expr) => {
        match $settings.kind {
            HashKinds::RecSplit => built!(Either::First, $settings.of_recsplit($recsplit, $watch), $place, $batch),
            HashKinds::Consensus => built!(
                |it| Either::Second(Either::First(it)),
                $settings.of_consensus($consensus, $watch),
                $place,
                $batch
            ),
            HashKinds::Placement => built!(
                |it| Either::Second(Either::Second(it)),
                $settings.of_placement($placement, $watch),
                $place,
                $batch
            ),
        }
    };
}

/// Runs `work` with the keys of all parts as one slice. Several parts are copied, integers as words.
pub fn as_one<R>(parts: &[ArrayKeys], work: impl FnOnce(HostKeys<'_>) -> Result<R>) -> Result<R> {
    let parts: Vec<HostKeys<'_>> = parts.iter().filter(|part| part.count() > 0).map(ArrayKeys::keys).collect();
    if parts.len() < 2 {
        return work(parts.first().copied().unwrap_or(HostKeys::U64(&[])));
    }
    let (mut words, mut strings) = (Vec::new(), Vec::new());
    for keys in parts {
        match keys {
            HostKeys::U32(keys) => words.extend(keys.iter().map(|&key| u64::from(key))),
            HostKeys::I32(keys) => words.extend(keys.iter().map(|&key| key as u64)),
            HostKeys::U64(keys) => words.extend_from_slice(keys),
            HostKeys::Strings(keys) => strings.extend_from_slice(keys),
        }
    }
    match (words.is_empty(), strings.is_empty()) {
        (_, true) => work(HostKeys::U64(&words)),
        (true, _) => work(HostKeys::Strings(&strings)),
        _ => Err(Failure::wrong_type("an array with chunks of integers and of strings: pass keys of one kind")),
    }
}

/// Class of a function or of a filter with one: shared properties, with the class's own methods.
macro_rules! over_a_function {
    ($(#[$doc:meta])* $class:ident($family:ty), $kind:ident { $($own:tt)* }) => {
        class! {
            $(#[$doc])*
            $class($family), $kind {
                /// Returns the number of keys.
                fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
                    ask!(self.0, py, |value| length(any_kind!(value, |value| value.len())))
                }

                /// Returns the bytes of memory.
                #[getter]
                fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
                    ask!(self.0, py, |value| any_kind!(value, |value| value.memory_bytes()))
                }

                /// Returns the bits of memory per key.
                #[getter]
                fn bits_per_key(&self, py: Python<'_>) -> PyResult<f64> {
                    ask!(self.0, py, |value| any_kind!(value, |value| value.bits_per_key()))
                }

                /// Returns `"recsplit"`, `"consensus"` or `"placement"`.
                #[getter]
                fn kind(&self, py: Python<'_>) -> PyResult<&'static str> {
                    Ok(self.0.read(py, None, 1, |value| Ok(kind_of(value)))?)
                }

                $($own)*
            }
        }
    };
}

over_a_function! {
    /// Minimal perfect hash function: maps each of `n` known keys to its own number from 0 to `n - 1`, in 1.46 to 3
    /// bits per key, without storing the keys. Values of keys can then be stored in a plain array.
    ///
    /// `keys` is an array or a list of different keys; a repeated key raises `DuplicateKeyError`. Nulls are ignored.
    ///
    /// - `kind`: `"recsplit"`; `"consensus"`, which builds faster at the same size and has slower lookups; or
    ///   `"placement"`, which has the fastest lookups, from 2 bits per key on.
    /// - `bits_per_key`: the size, at least 1.53 with RecSplit, 1.46 with Consensus and 1.95 with placement; smaller
    ///   functions take longer to build. Alternatively RecSplit has `leaf_size`, 2 to 24 (default 12), Consensus
    ///   `overhead`, the bits per key beyond the minimum of 1.4427 (default 0.05), placement `keys_per_seed`, 1 to 6
    ///   (default 4.5), and all have `bucket_size` (default 1000, 2400 and 57,344).
    /// - `load_factor`, with RecSplit: from 0.75 to 1. Below 1 the function is smaller, but some numbers below `values`
    ///   have no key. `keys_per_value`, with RecSplit: 2 to 24 keys share a number.
    /// - `seed` changes the numbers.
    /// - `device` is the place of the build and the lookups; keys on a device need that device here.
    /// - `threads` limits the number of threads of the build (default: all of the machine).
    /// - `progress` is called now and then as `progress(done, keys)`; a device counts each key twice, when hashing and
    ///   when building. An exception in it stops the build, as Ctrl-C does.
    ///
    /// Equal values are equal keys, whatever array they come from. Other keys have arbitrary numbers; a `StaticFilter`
    /// detects most of them.
    ///
    /// >>> import warpset
    /// >>> function = warpset.PerfectHash(["ash", "birch", "fir", "oak"])
    /// >>> sorted(function(["oak", "fir", "birch", "ash"]).tolist())
    /// [0, 1, 2, 3]
    /// >>> heights = [None] * len(function)
    /// >>> heights[function.index_one("oak")] = 40
    /// >>> heights[function.index_one("oak")]
    /// 40
    PerfectHash(Function), other {
        #[new]
        #[pyo3(signature = (
            keys, *, kind="recsplit", bits_per_key=None, leaf_size=None, bucket_size=None, overhead=None,
            keys_per_seed=None, load_factor=None, keys_per_value=None, seed=None, device=None, threads=None, progress=None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            kind: &str,
            bits_per_key: Option<f64>,
            leaf_size: Option<u32>,
            bucket_size: Option<u32>,
            overhead: Option<f64>,
            keys_per_seed: Option<f64>,
            load_factor: Option<f64>,
            keys_per_value: Option<u32>,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
            progress: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (place, batch) = (Location::of(device)?, Batch::of(keys)?);
            let settings = Settings::new(kind, leaf_size, bucket_size, overhead, keys_per_seed, seed)?;
            settings.only_of(HashKinds::RecSplit, "load_factor", load_factor.is_some())?;
            settings.only_of(HashKinds::RecSplit, "keys_per_value", keys_per_value.is_some())?;
            let (mut builder, mut consensus) = (mphf::RecSplit::builder(), mphf::Consensus::builder());
            let mut placement = mphf::Placement::builder();
            if let Some(bits) = bits_per_key {
                let (option, least) = match settings.kind {
                    HashKinds::RecSplit => ("leaf_size", 1.53),
                    HashKinds::Consensus => ("overhead", 1.46),
                    HashKinds::Placement => ("keys_per_seed", 1.95),
                };
                if leaf_size.is_some() || overhead.is_some() || keys_per_seed.is_some() || bucket_size.is_some() {
                    let why = format!("bits_per_key chooses {option} and bucket_size: give it alone, or those two");
                    return Err(Failure::value(why).into());
                }
                if !(bits > 0.0 && bits.is_finite()) {
                    return Err(Failure::value(format!("bits_per_key={bits}: choose {least} or more")).into());
                }
                (builder, consensus) = (builder.for_space(bits), consensus.for_space(bits));
                placement = placement.for_space(bits);
            }
            if let Some(k) = keys_per_value {
                if leaf_size.is_some() || load_factor.is_some() {
                    let why = "keys_per_value takes the place of leaf_size and load_factor: give it without them";
                    return Err(Failure::value(why).into());
                }
                builder = builder.keys_per_value(k);
            }
            if let Some(load) = load_factor {
                builder = builder.load_factor(load);
            }
            let built = run_watched(py, threads, progress, move |watch| {
                built_of_kind!(settings, builder, consensus, placement, watch, &place, &batch)
            });
            Ok(Self(Shared::new(built?)))
        }

        /// Returns the number of each key as an array of `uint64`, or `out`, filled. Other keys have arbitrary numbers,
        /// nulls `2**64 - 1`. For keys on a device the numbers are on the device.
        #[pyo3(signature = (keys, /, *, out=None, threads=None))]
        fn index(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            numbers(&self.0, py, keys, out, threads, NO_NUMBER, |function, keys, numbers| {
                anywhere!(function, |function| any_kind!(function, |function| {
                    Ok(with_keys!(keys, |keys| function.get_bulk_into(keys, numbers))?)
                }))
            }, |function, keys, numbers| any_kind!(function, |function| {
                Ok(with_device_keys!(keys, |keys| function.get_device(keys, numbers))?)
            }))
        }

        /// Returns the number of each key, as `index` does.
        #[pyo3(signature = (keys, /, *, out=None, threads=None))]
        fn __call__(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            self.index(py, keys, out, threads)
        }

        /// Returns the number of one key: an `int`, `str` or `bytes`.
        fn index_one(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
            let (key, mut number) = (one_key(key)?, [0]);
            self.0.read(py, None, 1, |function| anywhere!(function, |function| any_kind!(function, |function| {
                Ok(with_key!(&key, |key| function.get_bulk_into(&[key], &mut number))?)
            })))?;
            Ok(number[0])
        }

        /// Returns the bound of the numbers: the number of keys, unless there is a load factor or several keys share a
        /// number.
        #[getter]
        fn values(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |function| any_kind!(function, |function| function.values()))
        }
    }
}

over_a_function! {
    /// Set of known keys that never changes: a perfect hash function with a few bits of each key at its number. Each
    /// member has its own number, and other keys are rejected, except for a share of `fpr`.
    ///
    /// `keys` is an array or a list of different keys; a repeated key raises `DuplicateKeyError`. Nulls are ignored.
    ///
    /// - `fpr`: the largest rate of false positives, at least 2**-32 (default 0.01); or `bits` stored per key, 1 to 32,
    ///   for a rate of `2**-bits`.
    /// - `kind`: `"consensus"`, which is smallest, `"recsplit"`, which has faster lookups, or `"placement"`, which has
    ///   the fastest.
    /// - `leaf_size`, `bucket_size`, `overhead`, `keys_per_seed`, `seed`, `device`, `threads` and `progress` as in
    ///   `PerfectHash`.
    ///
    /// >>> import warpset
    /// >>> trees = warpset.StaticFilter(["ash", "birch", "fir", "oak"], bits=16)
    /// >>> "ash" in trees, "rose" in trees
    /// (True, False)
    /// >>> sorted(trees.index(["oak", "fir", "birch", "ash"]).tolist())
    /// [0, 1, 2, 3]
    StaticFilter(Static), static_filter {
        #[new]
        #[pyo3(signature = (
            keys, *, fpr=None, bits=None, kind="consensus", leaf_size=None, bucket_size=None, overhead=None,
            keys_per_seed=None, seed=None, device=None, threads=None, progress=None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            fpr: Option<f64>,
            bits: Option<u32>,
            kind: &str,
            leaf_size: Option<u32>,
            bucket_size: Option<u32>,
            overhead: Option<f64>,
            keys_per_seed: Option<f64>,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
            progress: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (place, batch) = (Location::of(device)?, Batch::of(keys)?);
            let settings = Settings::new(kind, leaf_size, bucket_size, overhead, keys_per_seed, seed)?;
            let (builder, consensus) = (mphf::StaticFilter::builder_of_kind(RecSplitKind), mphf::StaticFilter::builder());
            let placement = mphf::StaticFilter::builder_of_kind(PlacementKind);
            let (builder, consensus, placement) = match (fpr, bits) {
                (Some(_), Some(_)) => {
                    return Err(Failure::value("fpr and bits both say how much is stored of a key: give one").into());
                }
                (Some(fpr), None) => (builder.fpr(fpr), consensus.fpr(fpr), placement.fpr(fpr)),
                (None, Some(bits)) => (builder.width(bits), consensus.width(bits), placement.width(bits)),
                (None, None) => (builder, consensus, placement),
            };
            let built = run_watched(py, threads, progress, move |watch| {
                built_of_kind!(settings, builder, consensus, placement, watch, &place, &batch)
            });
            Ok(Self(Shared::new(built?)))
        }

        /// Returns the number of each key, below `len`, as an array of `uint64`, or `out`, filled. Nulls, and keys that
        /// are certainly no members, have `2**64 - 1`.
        #[pyo3(signature = (keys, /, *, out=None, threads=None))]
        fn index(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            numbers(&self.0, py, keys, out, threads, NO_NUMBER, |filter, keys, numbers| anywhere!(filter, |filter| any_kind!(filter, |filter| {
                let found = with_keys!(keys, |keys| filter.get_bulk_into(keys, numbers))?;
                let strangers = numbers.iter_mut().zip(found.iter()).filter(|(_, is_found)| !is_found);
                strangers.for_each(|(number, _)| *number = NO_NUMBER);
                Ok(())
            })), |_, _, _| Err(Failure::value("index: the keys are on a device; copy them to the host first")))
        }

        /// Returns the number of one key, or `None` if it is certainly no member.
        fn index_one(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
            let (key, mut number) = (one_key(key)?, [0]);
            let found = self.0.read(py, None, 1, |filter| anywhere!(filter, |filter| any_kind!(filter, |filter| {
                Ok(with_key!(&key, |key| filter.get_bulk_into(&[key], &mut number))?)
            })))?;
            Ok(found.iter().next().and_then(|is_found| is_found.then_some(number[0])))
        }

        /// Returns the rate of false positives.
        #[getter]
        fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |filter| any_kind!(filter, |filter| filter.fpr()))
        }

        /// Returns the bits stored per key.
        #[getter]
        fn bits(&self, py: Python<'_>) -> PyResult<u32> {
            ask!(self.0, py, |filter| any_kind!(filter, |filter| filter.width()))
        }
    }
}
