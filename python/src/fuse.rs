//! Binary fuse filters: fingerprints of sets of keys that never change.

use pyo3::prelude::*;
use warpset::fuse::gpu::DeviceWidth;
use warpset::fuse::{self, Arity, Builder, Form};

use crate::device::Location;
use crate::error::{Failure, Result};
use crate::keys::Batch;
use crate::kinds::{Either, Kinds, one_of};
use crate::recsplit::as_one;
use crate::structure::{Forms, Structure, Where, keys_elsewhere, length};
use crate::threads::{Shared, Threads, run_watched};
use crate::{anywhere, ask, class, either, structure, with_device_keys, with_keys};

structure!(Fuse8: fuse::BinaryFuse8, fuse::MappedBinaryFuse8, fuse::gpu::BinaryFuse8);
structure!(Fuse16: fuse::BinaryFuse16, fuse::MappedBinaryFuse16, fuse::gpu::BinaryFuse16);
structure!(Fuse32: fuse::BinaryFuse32, fuse::MappedBinaryFuse32, fuse::gpu::BinaryFuse32);

/// Types of filters, by the width of their fingerprints.
pub type Fuse = Kinds<Fuse8, Kinds<Fuse16, Fuse32>>;

/// Runs `$body` with the filter under the name `$it`, whatever its width.
macro_rules! any_width {
    ($filter:expr, |$it:ident| $body:expr) => {
        match $filter {
            Either::First($it) => $body,
            Either::Second(wider) => either!(wider, |$it| $body),
        }
    };
}

impl Structure for Fuse {
    const NAME: &'static str = "BinaryFuse";

    fn describe(value: &Where<Self>) -> Result<String> {
        Ok(anywhere!(value, |filter| any_width!(filter, |filter| format!(
            "{} keys, {} bytes, fpr={:.2e}",
            filter.len(),
            filter.memory_bytes(),
            filter.fpr()
        ))))
    }
}

/// Reads settings of graphs.
pub fn graphs(arity: u32, sharded: bool) -> Result<(Arity, Form)> {
    let arity = match arity {
        3 => Arity::Three,
        4 => Arity::Four,
        _ => return Err(Failure::value(format!("arity={arity}: choose 3 or 4"))),
    };
    Ok((arity, if sharded { Form::Sharded } else { Form::OneGraph }))
}

/// Settings of any width.
struct Settings {
    place: Location,
    keys: Batch,
    arity: Arity,
    form: Form,
    seed: Option<u64>,
}

impl Settings {
    /// Builds a filter of one width.
    fn build<F, A>(&self) -> Result<Where<A>>
    where
        F: DeviceWidth,
        A: Forms<Host = fuse::BinaryFuse<F>, Device = fuse::gpu::BinaryFuse<F>>,
    {
        let mut builder: Builder<F> = fuse::BinaryFuse::builder().arity(self.arity).form(self.form);
        if let Some(seed) = self.seed {
            builder = builder.seed(seed);
        }
        match (&self.place, &self.keys) {
            (Location::Cpu, Batch::Host(parts)) => {
                as_one(parts, |keys| Ok(Where::Host(with_keys!(keys, |keys| builder.build_from(keys))?)))
            }
            (Location::On(device), Batch::Host(parts)) => {
                let builder = builder.on(device);
                as_one(parts, |keys| Ok(Where::Device(with_keys!(keys, |keys| builder.build_from(keys))?)))
            }
            (Location::On(device), Batch::Device(keys)) => {
                let (adopted, builder) = (keys.adopt(device)?, builder.on(device));
                Ok(Where::Device(with_device_keys!(&adopted, |keys| builder.build_from_device(keys))?))
            }
            (Location::Cpu, Batch::Device(_)) => Err(keys_elsewhere("in host memory")),
        }
    }
}

class! {
    /// Binary fuse filter: a set of known keys that never changes, the smallest and fastest for a yes or no.
    ///
    /// `keys` is an array or a list; equal keys count once, nulls are ignored.
    ///
    /// - `bits` per fingerprint, 8, 16 or 32: 9, 18 or 36 bits of memory per key, and a rate of false positives of
    ///   `2**-bits`.
    /// - `arity`: 4 takes a twentieth less memory than 3, and more time. `sharded=True` builds faster, on many cores
    ///   and on a GPU, and takes a little more memory.
    /// - `seed` changes which other keys are false positives. `device` is the place of the build and the lookups.
    ///   `threads` limits the number of threads of the build.
    ///
    /// >>> import warpset
    /// >>> trees = warpset.BinaryFuse(["ash", "birch", "fir", "oak"], bits=16)
    /// >>> "ash" in trees, "rose" in trees, len(trees)
    /// (True, False, 4)
    BinaryFuse(Fuse), static_filter {
        #[new]
        #[pyo3(signature = (keys, *, bits=8, arity=3, sharded=false, seed=None, device=None, threads=None))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            bits: u32,
            arity: u32,
            sharded: bool,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Self> {
            let (place, keys) = (Location::of(device)?, Batch::of(keys)?);
            let (arity, form) = graphs(arity, sharded)?;
            let settings = Settings { place, keys, arity, form, seed };
            let built = run_watched(py, threads, None, move |_| match bits {
                8 => one_of::<Fuse8, Fuse>(settings.build()?, Either::First, Either::First),
                16 => one_of::<Fuse16, Fuse>(settings.build()?,
                    |filter| Either::Second(Either::First(filter)),
                    |filter| Either::Second(Either::First(filter)),
                ),
                32 => one_of::<Fuse32, Fuse>(settings.build()?,
                    |filter| Either::Second(Either::Second(filter)),
                    |filter| Either::Second(Either::Second(filter)),
                ),
                _ => Err(Failure::value(format!("bits={bits}: choose 8, 16 or 32"))),
            });
            Ok(Self(Shared::new(built?)))
        }

        /// Returns the number of different keys.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            ask!(self.0, py, |filter| length(any_width!(filter, |filter| filter.len())))
        }

        /// Returns the bytes of memory.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |filter| any_width!(filter, |filter| filter.memory_bytes()))
        }

        /// Returns the bits of memory per key.
        #[getter]
        fn bits_per_key(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |filter| any_width!(filter, |filter| filter.bits_per_key()))
        }

        /// Returns the rate of false positives.
        #[getter]
        fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |filter| any_width!(filter, |filter| filter.fpr()))
        }

        /// Returns the bits per fingerprint: 8, 16 or 32.
        #[getter]
        fn bits(&self, py: Python<'_>) -> PyResult<u32> {
            ask!(self.0, py, |filter| match filter {
                Either::First(_) => 8,
                Either::Second(Either::First(_)) => 16,
                Either::Second(Either::Second(_)) => 32,
            })
        }
    }
}
