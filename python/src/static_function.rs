//! Values of known keys, without the keys.

use std::borrow::Cow;

use pyo3::prelude::*;
use warpset::fuse::{self, Arity, Form};
use warpset_base::bitmap::bits_to;

use crate::device::{DeviceArray, Location};
use crate::error::Result;
use crate::fuse::graphs;
use crate::keys::Batch;
use crate::recsplit::as_one;
use crate::sorted_map::call::{host_parts, host_pieces, values_of};
use crate::sorted_map::cell::DeviceItem;
use crate::static_sets::lookups::{Values, value_of_one};
use crate::structure::{Where, keys_elsewhere, length};
use crate::threads::{Shared, Threads, run_watched};
use crate::{anywhere, ask, class, structure, with_device_keys, with_key, with_keys};

structure!(
    Function = "StaticFunction":
    fuse::StaticFunction<u64>, fuse::MappedStaticFunction<u64>, fuse::gpu::StaticFunction<u64>;
    |value: &Where<Function>| Ok(anywhere!(value, |function| format!(
        "{} keys, values of {} bits, {} bytes, fpr={:.2e}",
        function.len(),
        function.layout().value_bits(),
        function.memory_bytes(),
        function.fpr()
    )))
);

/// Settings of a function.
struct Settings {
    place: Location,
    /// Bits of a value; by default those of the largest one.
    value_bits: Option<u32>,
    filtered: u32,
    graphs: (Arity, Form),
    seed: Option<u64>,
}

impl Settings {
    /// Returns the builder of a function with these values.
    fn builder(&self, values: &[u64]) -> fuse::FunctionBuilder<u64> {
        let widest = || u64::BITS - values.iter().fold(1, |all, value| all | value).leading_zeros();
        fuse::StaticFunction::builder()
            .value_bits(self.value_bits.unwrap_or_else(widest))
            .filtered(self.filtered)
            .arity(self.graphs.0)
            .form(self.graphs.1)
            .seed(self.seed.unwrap_or_default())
    }

    fn build(&self, keys: &Batch, values: &Batch) -> Result<Where<Function>> {
        match (&self.place, keys, values) {
            (Location::Cpu, Batch::Device(_), _) => Err(keys_elsewhere("in host memory")),
            (Location::On(device), Batch::Device(keys), Batch::Device(values)) => {
                let (keys, values) = (keys.adopt(device)?, values.adopt(device)?);
                // The largest value is unknown here.
                let (values, builder) = (DeviceItem::slice(&values)?, self.builder(&[u64::MAX]).on(device));
                Ok(Where::Device(with_device_keys!(&keys, |keys| builder.build_from_device(keys, values))?))
            }
            _ => {
                let values: Cow<'_, [u64]> = values_of(&host_pieces(keys)?, &host_pieces(values)?)?;
                let builder = self.builder(&values);
                as_one(host_parts(keys)?, |keys| {
                    with_keys!(keys, |keys| Ok(match &self.place {
                        Location::Cpu => Where::Host(builder.build_from(keys, &values)?),
                        Location::On(device) => Where::Device(builder.on(device).build_from(keys, &values)?),
                    }))
                })
            }
        }
    }
}

class! {
    /// Static function: a value for each of a set of known keys, in little more than the bits of the values, without
    /// the keys.
    ///
    /// `keys` is an array or a list, with one of `values` per key: integers from 0 to `2**64 - 1`. Equal keys with
    /// equal values count once; with different ones they raise `DuplicateKeyError`. Keys that are null are ignored with
    /// their values.
    ///
    /// - `value_bits` of each value, 1 to 64; by default those of the largest one (of values on a device all 64). A
    ///   function takes 1.13 times as many bits per key.
    /// - `filtered`: bits of a fingerprint beside each value, at most 32, and 64 with those of the value. Other keys
    ///   have no value, except at the rate `2**-filtered`; with 0, the default, they have arbitrary values.
    /// - `arity`: 4 takes a twentieth less memory than 3, and more time. `sharded=True` builds faster, on many cores
    ///   and on a GPU, and takes a tenth more memory.
    /// - `seed` changes the values of other keys. `device` is the place of the build and the lookups. `threads` limits
    ///   the number of threads of the build.
    ///
    /// >>> import warpset
    /// >>> heights = warpset.StaticFunction(["ash", "birch", "fir", "oak"], [35, 25, 60, 40], filtered=32)
    /// >>> heights.get("fir"), heights.get("rose"), heights.value_bits
    /// (60, None, 6)
    /// >>> values, found = heights.get_many(["oak", "rose"], default=7)
    /// >>> values.tolist(), found.tolist()
    /// ([40, 7], [True, False])
    StaticFunction(Function), other {
        #[new]
        #[pyo3(signature = (
            keys, values, *, value_bits=None, filtered=0, arity=3, sharded=false, seed=None, device=None, threads=None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            values: &Bound<'_, PyAny>,
            value_bits: Option<u32>,
            filtered: u32,
            arity: u32,
            sharded: bool,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Self> {
            let (place, graphs) = (Location::of(device)?, graphs(arity, sharded)?);
            let (keys, values) = (Batch::of(keys)?, Batch::of(values)?);
            let settings = Settings { place, value_bits, filtered, graphs, seed };
            Ok(Self(Shared::new(run_watched(py, threads, None, move |_| settings.build(&keys, &values))?)))
        }

        /// Returns the number of different keys.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            ask!(self.0, py, |function| length(function.len()))
        }

        /// Returns the bytes of memory.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |function| function.memory_bytes())
        }

        /// Returns the bits of memory per key.
        #[getter]
        fn bits_per_key(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |function| function.bits_per_key())
        }

        /// Returns the bits of a value.
        #[getter]
        fn value_bits(&self, py: Python<'_>) -> PyResult<u32> {
            ask!(self.0, py, |function| function.layout().value_bits())
        }

        /// Returns the rate at which other keys have a value: `2**-filtered`, which is 1 by default.
        #[getter]
        fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |function| function.fpr())
        }

        /// Returns the values of keys as an array of `uint64`, `default` for keys without one, and whether each key has
        /// one: new arrays, or `out` and `found`, filled. For keys on a device the answers are on the device. Other
        /// keys than the function's have values at the rate `fpr`; nulls have none.
        #[pyo3(signature = (keys, /, default=0, *, out=None, found=None, threads=None))]
        fn get_many(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            default: i128,
            out: Option<&Bound<'_, PyAny>>,
            found: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
            let values = Values { map: &self.0, py, threads, default };
            values.of::<u64>(&Batch::of(keys)?, out, found, |function, keys, values, flags| {
                let bits = with_keys!(keys, |keys| anywhere!(function, |function| function.get_bulk_into(keys, values)))?;
                bits_to::<u8>(flags, bits.as_words());
                Ok(())
            }, |function, keys, values| {
                let device = function.device();
                let mut bits = device.alloc_zeroed(values.len().div_ceil(64))?;
                let mut flags = vec![0u8; values.len()];
                with_device_keys!(keys, |keys| function.get_device(keys, values, bits.as_mut_slice()))?;
                bits_to::<u8>(&mut flags, &bits.to_vec()?);
                Ok(DeviceArray::flags(device.from_slice(&flags)?))
            })
        }

        /// Returns the value of a key: an `int`, `str` or `bytes`; or `default` if it has none. Other keys than the
        /// function's have values at the rate `fpr`.
        #[pyo3(signature = (key, /, default=None))]
        fn get(
            &self,
            py: Python<'_>,
            key: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            value_of_one(&self.0, py, key, default, |function, key| {
                with_key!(key, |key| anywhere!(function, |function| {
                    let mut value = [0];
                    let found = function.get_bulk_into(&[key], &mut value)?;
                    Ok(found.iter().eq([true]).then_some(value[0]))
                }))
            })
        }
    }
}
