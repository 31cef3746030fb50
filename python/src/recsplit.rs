//! Perfect hash functions, and the static filters around them.

use std::sync::Arc;

use pyo3::prelude::*;
use warpset::recsplit::{self, Builder, RecSplitKind};

use crate::device::Location;
use crate::error::{Failure, Result};
use crate::filter::numbers;
use crate::keys::{ArrayKeys, Batch, HostKeys, one_key};
use crate::structure::{Where, keys_elsewhere};
use crate::threads::{Shared, Watch, run_watched};
use crate::{anywhere, ask, class, structure, with_device_keys, with_key, with_keys};

structure!(Function = "PerfectHash": recsplit::RecSplit, recsplit::MappedRecSplit, recsplit::gpu::RecSplit;
|value: &Where<Self>| Ok(anywhere!(value, |function| format!(
    "{} keys, {} bytes, {:.2} bits per key", function.len(), function.memory_bytes(), function.bits_per_key()
))));
structure!(Static = "StaticFilter": recsplit::StaticFilter, recsplit::MappedStaticFilter, recsplit::gpu::StaticFilter;
|value: &Where<Self>| Ok(anywhere!(value, |filter| format!(
    "{} keys, {} bytes, fpr={:.2e}", filter.len(), filter.memory_bytes(), filter.fpr()
))));

/// The number of a null, and of a key that is surely no member.
const NO_NUMBER: u64 = u64::MAX;

/// Settings of all functions.
struct Settings {
    leaf_size: Option<u32>,
    bucket_size: Option<u32>,
    seed: Option<u64>,
}

impl Settings {
    /// The builder with these settings, which tells `watch` how far it is.
    fn of<S>(&self, mut builder: Builder<RecSplitKind, S>, watch: &Arc<Watch>) -> Builder<RecSplitKind, S> {
        if let Some(keys) = self.leaf_size {
            builder = builder.leaf_size(keys);
        }
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

/// What a builder makes of keys, in its place. Keys on a device stay there.
macro_rules! built {
    ($builder:expr, $place:expr, $batch:expr) => {
        match ($place, $batch) {
            (Location::Cpu, Batch::Host(parts)) => {
                as_one(parts, |keys| Ok(Where::Host(with_keys!(keys, |keys| $builder.build_from(keys))?)))
            }
            (Location::On(device), Batch::Host(parts)) => {
                as_one(parts, |keys| Ok(Where::Device(with_keys!(keys, |keys| $builder.on(device).build_from(keys))?)))
            }
            (Location::On(device), Batch::Device(keys)) => {
                let adopted = keys.adopt(device)?;
                Ok(Where::Device(with_device_keys!(&adopted, |keys| $builder.on(device).build_from_device(keys))?))
            }
            (Location::Cpu, Batch::Device(_)) => Err(keys_elsewhere("in host memory")),
        }
    };
}

/// Runs `work` with the keys of all parts as one slice; those of several parts are copied, integers as their words.
fn as_one<R>(parts: &[ArrayKeys], work: impl FnOnce(HostKeys<'_>) -> Result<R>) -> Result<R> {
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

/// What both classes have.
macro_rules! over_a_function {
    ($(#[$doc:meta])* $class:ident($family:ty), $kind:ident { $($own:tt)* }) => {
        class! {
            $(#[$doc])*
            $class($family), $kind {
                /// How many keys there are.
                fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
                    let len = self.0.read(py, None, 1, |value| Ok(anywhere!(value, |value| value.len())))?;
                    Ok(isize::try_from(len).unwrap_or(isize::MAX) as usize)
                }

                /// Bytes of memory that it takes.
                #[getter]
                fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
                    ask!(self.0, py, |value| value.memory_bytes())
                }

                /// Bits of memory for each key.
                #[getter]
                fn bits_per_key(&self, py: Python<'_>) -> PyResult<f64> {
                    ask!(self.0, py, |value| value.bits_per_key())
                }

                $($own)*
            }
        }
    };
}

over_a_function! {
    /// A minimal perfect hash function: maps `n` known keys to the numbers from 0 to `n - 1`, each key to its own, in
    /// 1.5 to 3 bits per key, without storing the keys. Values of keys then lie in a plain array.
    ///
    /// `keys` are the keys in an array or a list, all different; a key that is there twice raises `DuplicateKeyError`.
    /// Nulls are left out.
    ///
    /// - `bits_per_key`: the space, from 1.53 on: less takes longer to build. Instead of it `leaf_size`, 2 to 24
    ///   (default 12), and `bucket_size` (default 1000): larger ones take less space and more time.
    /// - `load_factor`: below 1, to 0.75, the function is smaller, but some numbers below `values` are nobody's.
    ///   `keys_per_value`: how many keys share a number, 2 to 24.
    /// - `seed`: other seeds give other numbers.
    /// - `device`: where it is built and asked; keys that are on a device need that device here.
    /// - `threads` bounds the threads that build; by default as many as the machine has.
    /// - `progress` is called now and then as `progress(done, keys)`; a device counts the keys once as it hashes them
    ///   and once as it builds. An exception in it stops the build, as Ctrl-C does.
    ///
    /// Equal values are equal keys, whatever array they are in. Other keys have any of the numbers: a `StaticFilter`
    /// knows most of them.
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
            keys, *, bits_per_key=None, leaf_size=None, bucket_size=None, load_factor=None, keys_per_value=None,
            seed=None, device=None, threads=None, progress=None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            bits_per_key: Option<f64>,
            leaf_size: Option<u32>,
            bucket_size: Option<u32>,
            load_factor: Option<f64>,
            keys_per_value: Option<u32>,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<usize>,
            progress: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (place, batch) = (Location::of(device)?, Batch::of(keys)?);
            let mut builder = recsplit::RecSplit::builder();
            if let Some(bits) = bits_per_key {
                if leaf_size.is_some() || bucket_size.is_some() {
                    let why = "bits_per_key chooses leaf_size and bucket_size: give it alone, or those two";
                    return Err(Failure::value(why).into());
                }
                if !(bits > 0.0 && bits.is_finite()) {
                    return Err(Failure::value(format!("bits_per_key={bits}: choose 1.53 or more")).into());
                }
                builder = builder.for_space(bits);
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
            let settings = Settings { leaf_size, bucket_size, seed };
            let built = run_watched(py, threads, progress, |watch| {
                built!(settings.of(builder, watch), &place, &batch)
            });
            Ok(Self(Shared::new(built?)))
        }

        /// The number of each key, as an array of `uint64`, or `out` filled. Other keys have any of the numbers, nulls
        /// `2**64 - 1`. For keys on a device the numbers are there too.
        #[pyo3(signature = (keys, /, *, out=None, threads=None))]
        fn index(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<usize>,
        ) -> PyResult<Py<PyAny>> {
            numbers(&self.0, py, keys, out, threads, NO_NUMBER, |function, keys, numbers| {
                anywhere!(function, |function| Ok(with_keys!(keys, |keys| function.get_bulk_into(keys, numbers))?))
            }, |function, keys, numbers| Ok(with_device_keys!(keys, |keys| function.get_device(keys, numbers))?))
        }

        /// What `index` gives.
        #[pyo3(signature = (keys, /, *, out=None, threads=None))]
        fn __call__(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<usize>,
        ) -> PyResult<Py<PyAny>> {
            self.index(py, keys, out, threads)
        }

        /// The number of one key: an `int`, `str` or `bytes`.
        fn index_one(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<u64> {
            let (key, mut number) = (one_key(key)?, [0]);
            self.0.read(py, None, 1, |function| anywhere!(function, |function| {
                Ok(with_key!(&key, |key| function.get_bulk_into(&[key], &mut number))?)
            }))?;
            Ok(number[0])
        }

        /// The bound that all numbers are below: the number of keys, unless there is a load factor or several keys
        /// share a number.
        #[getter]
        fn values(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |function| function.values())
        }
    }
}

over_a_function! {
    /// A set of known keys that never changes: a perfect hash function, and a few bits of each key at its number. It
    /// gives each member a number of its own, and rejects other keys, but for a share of `fpr`.
    ///
    /// `keys` are the keys in an array or a list, all different; a key that is there twice raises `DuplicateKeyError`.
    /// Nulls are left out.
    ///
    /// - `fpr`: the rate of false positives, at most, from 2**-32 on (default 0.01); or `bits`, 1 to 32, that are
    ///   stored of each key, for a rate of `2**-bits`.
    /// - `leaf_size`, `bucket_size`, `seed`, `device`, `threads`, `progress`: those of `PerfectHash`.
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
            keys, *, fpr=None, bits=None, leaf_size=None, bucket_size=None, seed=None, device=None, threads=None,
            progress=None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            fpr: Option<f64>,
            bits: Option<u32>,
            leaf_size: Option<u32>,
            bucket_size: Option<u32>,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<usize>,
            progress: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (place, batch) = (Location::of(device)?, Batch::of(keys)?);
            let builder = recsplit::StaticFilter::builder();
            let builder = match (fpr, bits) {
                (Some(_), Some(_)) => {
                    return Err(Failure::value("fpr and bits both say how much is stored of a key: give one").into());
                }
                (Some(fpr), None) => builder.fpr(fpr),
                (None, Some(bits)) => builder.width(bits),
                (None, None) => builder,
            };
            let settings = Settings { leaf_size, bucket_size, seed };
            let built = run_watched(py, threads, progress, |watch| {
                built!(settings.of(builder, watch), &place, &batch)
            });
            Ok(Self(Shared::new(built?)))
        }

        /// The number of each key, below `len`, as an array of `uint64`, or `out` filled. Nulls, and keys that are
        /// surely no members, have `2**64 - 1`.
        #[pyo3(signature = (keys, /, *, out=None, threads=None))]
        fn index(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<usize>,
        ) -> PyResult<Py<PyAny>> {
            numbers(&self.0, py, keys, out, threads, NO_NUMBER, |filter, keys, numbers| anywhere!(filter, |filter| {
                let found = with_keys!(keys, |keys| filter.get_bulk_into(keys, numbers))?;
                let strangers = numbers.iter_mut().zip(found.iter()).filter(|(_, is_found)| !is_found);
                strangers.for_each(|(number, _)| *number = NO_NUMBER);
                Ok(())
            }), |_, _, _| Err(Failure::value("index: the keys are on a device; copy them to the host first")))
        }

        /// The number of one key, or `None` if it is surely no member.
        fn index_one(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
            let (key, mut number) = (one_key(key)?, [0]);
            let found = self.0.read(py, None, 1, |filter| anywhere!(filter, |filter| {
                Ok(with_key!(&key, |key| filter.get_bulk_into(&[key], &mut number))?)
            }))?;
            Ok(found.iter().next().and_then(|is_found| is_found.then_some(number[0])))
        }

        /// The rate of false positives.
        #[getter]
        fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |filter| filter.fpr())
        }

        /// Bits that are stored of each key.
        #[getter]
        fn bits(&self, py: Python<'_>) -> PyResult<u32> {
            ask!(self.0, py, |filter| filter.width())
        }
    }
}
