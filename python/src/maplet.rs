//! Values of keys that change, without the keys.

use pyo3::prelude::*;
use warpset::gpu::DeviceSlice;
use warpset::quotient::{self, BitOr, Builder, Max, Min, RankSelect, Sum};
use warpset_base::bitmap::options_to;

use crate::device::{Adopted, DeviceArray, Location};
use crate::error::{Failure, Result};
use crate::filter::each_change;
use crate::keys::{Batch, HostKeys, each_group, one_key};
use crate::output::array;
use crate::quotient::{Settings, name_of};
use crate::sorted_map::call::{Combined, host_parts, host_pieces, values_of};
use crate::sorted_map::cell::DeviceItem;
use crate::static_sets::lookups::{Values, value_of_one};
use crate::structure::{ALL_OF_IT, Forms, Object, Structure, Where, combine, keys_elsewhere, length, read_only};
use crate::threads::{ON_DEVICE, Shared, Threads, run};
use crate::{anywhere, ask, changing, class, structure, with_device_keys, with_key, with_keys};

structure!(Values64: quotient::Maplet, quotient::MappedMaplet, quotient::gpu::Maplet);

impl Structure for Values64 {
    const NAME: &'static str = "Maplet";

    fn describe(value: &Where<Self>) -> Result<String> {
        Ok(anywhere!(value, |maplet| format!(
            "{} values of {} bits, {} bytes, fpr={:.2e}, duplicates={:?}",
            maplet.len(),
            maplet.layout().value_bits(),
            maplet.memory_bytes(),
            maplet.layout().expected_fpr(maplet.len()),
            name_of(maplet.layout().keys().duplicates())
        )))
    }

    /// Whether all values surely fit, since one takes at most one slot.
    fn has_room(value: &Where<Self>, keys: u64) -> bool {
        anywhere!(value, |maplet| maplet.len().saturating_add(keys) <= maplet.layout().keys().limit())
    }
}

/// Returns the value of each key.
fn look_up(maplet: &Where<Values64>, keys: HostKeys<'_>) -> Result<Vec<Option<u64>>> {
    with_keys!(keys, |keys| Ok(match maplet {
        Where::Host(maplet) => maplet.get_bulk(keys),
        Where::Mapped(maplet, _) => maplet.get_bulk(keys),
        Where::Device(maplet) => maplet.get_bulk(keys)?,
    }))
}

/// Runs `$body` with the operator of a name under the name `$operator`.
macro_rules! with_operator {
    ($by:expr, |$operator:ident| $body:expr) => {
        with_operator!(@ $by, $operator, $body, Sum Sum, Min Min, Max Max, Or BitOr)
    };
    (@ $by:expr, $operator:ident, $body:expr, $($name:ident $named:ident),*) => {
        match $by {
            $(Combined::$name => {
                type $operator = $named<u64>;
                $body
            })*
        }
    };
}

/// Insertion, without an operator, or combination of values with the stored ones.
type Change = Option<Combined>;

/// Changes values on the host; returns the number of new values, or of fingerprints that had none.
fn change(maplet: &mut Where<Values64>, by: Change, keys: HostKeys<'_>, values: &[u64]) -> Result<u64> {
    changing!(maplet, |maplet| with_keys!(keys, |keys| Ok(match by {
        None => maplet.insert_bulk(keys, values)?,
        Some(by) => with_operator!(by, |O| maplet.upsert_bulk::<O, _, _>(keys, values)?),
    })))
}

/// Changes values by keys and values on the device, like [`change`].
fn change_there(
    maplet: &mut quotient::gpu::Maplet,
    by: Change,
    keys: &Adopted<'_>,
    values: DeviceSlice<'_, u64>,
) -> Result<u64> {
    with_device_keys!(keys, |keys| Ok(match by {
        None => maplet.insert_device(keys, values)?,
        Some(by) => with_operator!(by, |O| maplet.upsert_device::<O, _>(keys, values)?),
    }))
}

/// Changes the values of keys, which both are on the host or on the device.
fn change_all(
    object: &Object<Values64>,
    py: Python<'_>,
    by: Change,
    keys: &Bound<'_, PyAny>,
    values: &Bound<'_, PyAny>,
    threads: Option<Threads>,
) -> PyResult<u64> {
    let (keys, values) = (Batch::of(keys)?, Batch::of(values)?);
    if let (Batch::Device(keys), Batch::Device(values)) = (&keys, &values) {
        return Ok(object.write(py, threads, ON_DEVICE, |maplet| {
            let Where::Device(maplet) = maplet else { return Err(keys_elsewhere("in host memory")) };
            let (keys, values) = (keys.adopt(maplet.device())?, values.adopt(maplet.device())?);
            change_there(maplet, by, &keys, DeviceItem::slice(&values)?)
        })?);
    }
    let values = values_of::<u64>(&host_pieces(&keys)?, &host_pieces(&values)?)?;
    let (mut rest, mut changed) = (&values[..], 0);
    each_change(object, py, host_parts(&keys)?, |group, places| {
        changed += object.write(py, threads, places.len(), |maplet| {
            group.iter().try_fold(0, |changed, piece| {
                let (here, after) = rest.split_at(piece.count());
                rest = after;
                Ok(changed + change(maplet, by, piece.keys(), here)?)
            })
        })?;
        Ok(())
    })?;
    Ok(changed)
}

/// Removes all values of keys; returns their number.
fn remove(
    object: &Object<Values64>,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    threads: Option<Threads>,
) -> PyResult<u64> {
    let mut removed = 0;
    match &Batch::of(keys)? {
        Batch::Host(parts) => each_group(py, parts, |group, places| {
            removed += object.write(py, threads, places.len(), |maplet| {
                group.iter().try_fold(0, |removed, piece| {
                    let more = changing!(&mut *maplet, |maplet| {
                        with_keys!(piece.keys(), |keys| maplet.remove_bulk(keys).map_err(Failure::from))
                    })?;
                    Ok(removed + more)
                })
            })?;
            Ok(())
        })?,
        Batch::Device(keys) => {
            removed = object.write(py, threads, ON_DEVICE, |maplet| {
                let Where::Device(maplet) = maplet else { return Err(keys_elsewhere("in host memory")) };
                let keys = keys.adopt(Values64::device(maplet))?;
                Ok(with_device_keys!(&keys, |keys| maplet.remove_device(keys))?)
            })?;
        }
    }
    Ok(removed)
}

class! {
    /// Maplet: a map that stores fingerprints in place of keys. It has updates, removal, merging and growth, like a
    /// quotient filter.
    ///
    /// `n` is the expected number of values, and `value_bits` the bits of each. A key's fingerprint and value have at
    /// most 64 bits. `fpr`, 0.01 by default, is the rate at which another key has a value, and at which a key has a
    /// value of another one besides its own. Inserting into a full maplet raises `FullError` and leaves it unchanged;
    /// `double()` makes room.
    ///
    /// - `duplicates` of a value of a key: `"dropped"` ignores them, `"kept"` stores each, `"counted"` stores counts in
    ///   little memory, and has no `upsert`.
    /// - `key_bits` makes the maplet exact for integers from 0 to `2**key_bits - 1`; `fpr` is ignored.
    /// - `max_load` is the largest share of used slots. `seed` changes which keys share fingerprints.
    ///
    /// Keys are `int`, `str` and `bytes`, values integers from 0 to `2**value_bits - 1`. `len` is the number of values.
    /// Arrays on a device change and query a maplet on that device; values there are `uint64`.
    ///
    /// >>> import warpset
    /// >>> sold = warpset.Maplet(1000, value_bits=20, fpr=1e-6)
    /// >>> sold.upsert(["tea", "salt", "tea"], [3, 1, 4])
    /// 2
    /// >>> sold.get("tea"), sold.get("oil"), "salt" in sold
    /// (7, None, True)
    /// >>> values, found = sold.get_many(["salt", "oil"], default=9)
    /// >>> values.tolist(), found.tolist()
    /// ([1, 9], [True, False])
    Maplet(Values64), other {
        #[new]
        #[pyo3(signature = (
            n, *, value_bits, fpr=None, duplicates="dropped", key_bits=None, max_load=None, seed=None, device=None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            n: u64,
            value_bits: u32,
            fpr: Option<f64>,
            duplicates: &str,
            key_bits: Option<u32>,
            max_load: Option<f64>,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let place = Location::of(device)?;
            let settings = Settings::new(n, fpr, duplicates, key_bits, max_load, seed)?;
            Ok(Self(Shared::new(run(py, None, ALL_OF_IT, || {
                let builder: Builder<RankSelect> = settings.builder();
                let builder = builder.values(value_bits);
                Ok(match &place {
                    Location::Cpu => Where::Host(builder.build()?),
                    Location::On(device) => Where::Device(builder.on(device).build()?),
                })
            })?)))
        }

        /// Stores one of `values` beside the values of each key; returns the number of values added. Keys that are null
        /// are ignored with their values.
        #[pyo3(signature = (keys, values, /, *, threads=None))]
        fn insert(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            values: &Bound<'_, PyAny>,
            threads: Option<Threads>,
        ) -> PyResult<u64> {
            change_all(&self.0, py, None, keys, values, threads)
        }

        /// Combines numbers with the values of keys, which then have one value each; keys without a value get the
        /// combination of their numbers. `by` is `"sum"`, modulo 2 to the bits of a value; `"min"`; `"max"`; or `"or"`
        /// of the bits. Returns how many keys had no value.
        #[pyo3(signature = (keys, values, /, *, by="sum", threads=None))]
        fn upsert(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            values: &Bound<'_, PyAny>,
            by: &str,
            threads: Option<Threads>,
        ) -> PyResult<u64> {
            change_all(&self.0, py, Some(Combined::by(by)?), keys, values, threads)
        }

        /// Removes all values of keys; returns their number.
        ///
        /// Remove only keys that were inserted: a key that was not may have the fingerprint of another key.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn remove(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<u64> {
            remove(&self.0, py, keys, threads)
        }

        /// Returns the values of keys as an array of `uint64`, the least of several values and `default` for keys
        /// without one, and whether each key has one: new arrays, or `out` and `found`, filled. For keys on a device
        /// the answers are on the device.
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
            let call = Values { map: &self.0, py, threads, default };
            call.of::<u64>(&Batch::of(keys)?, out, found, |maplet, keys, values, flags| {
                options_to(values, flags, look_up(maplet, keys)?);
                Ok(())
            }, |maplet, keys, mut values| {
                with_device_keys!(keys, |keys| maplet.get_device(keys, values.reborrow()))?;
                let mut found = values.as_slice().to_vec()?;
                let flag = |value: &u64| u8::from(*value != quotient::gpu::Maplet::ABSENT);
                let flags: Vec<u8> = found.iter().map(flag).collect();
                found.iter_mut().filter(|value| flag(value) == 0).for_each(|value| *value = 0);
                values.copy_from_slice(&found)?;
                Ok(DeviceArray::flags(maplet.device().from_slice(&flags)?))
            })
        }

        /// Returns the value of a key, the least one if it has several, or `default`.
        #[pyo3(signature = (key, /, default=None))]
        fn get(
            &self,
            py: Python<'_>,
            key: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            value_of_one(&self.0, py, key, default, |maplet, key| {
                Ok(with_key!(key, |key| match maplet {
                    Where::Host(maplet) => maplet.get(key),
                    Where::Mapped(maplet, _) => maplet.get(key),
                    Where::Device(maplet) => maplet.get_bulk(&[key])?[0],
                }))
            })
        }

        fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            Ok(self.get(py, key, None)?.is_some())
        }

        /// Returns the different values of a key, ascending, as an array of `uint64`.
        fn values(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
            let key = one_key(key)?;
            let values = self.0.read(py, None, 1, |maplet| with_key!(&key, |key| Ok(match maplet {
                Where::Host(maplet) => maplet.values(key),
                Where::Mapped(maplet, _) => maplet.values(key),
                Where::Device(maplet) => maplet.values(key)?,
            })))?;
            array(py, &values)
        }

        /// Adds the values of another maplet with values of the same bits and fingerprints that are at least as long;
        /// with `by`, combines them as `upsert` does.
        #[pyo3(signature = (other, /, *, by=None))]
        fn merge(&self, py: Python<'_>, other: &Self, by: Option<&str>) -> PyResult<()> {
            let by = by.map(Combined::by).transpose()?;
            macro_rules! merged {
                () => {
                    |maplet, other| Ok(match by {
                        None => maplet.merge(other)?,
                        Some(by) => with_operator!(by, |O| maplet.merge_by::<O>(other)?),
                    })
                };
            }
            combine(&self.0, &other.0, py, merged!(), merged!())
        }

        /// Removes all values and keeps the memory.
        fn clear(&self, py: Python<'_>) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |maplet| match maplet {
                Where::Host(maplet) => {
                    maplet.clear();
                    Ok(())
                }
                Where::Device(maplet) => Ok(maplet.clear()?),
                Where::Mapped(_, file) => Err(read_only(file)),
            })?)
        }

        /// Doubles the memory, for twice as many values at the same rate per key.
        fn double(&self, py: Python<'_>) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |maplet| changing!(maplet, |maplet| Ok(maplet.double()?)))?)
        }

        /// Halves the memory, if the values fit into it.
        fn halve(&self, py: Python<'_>) -> PyResult<()> {
            Ok(self.0.write(py, None, ALL_OF_IT, |maplet| changing!(maplet, |maplet| Ok(maplet.halve()?)))?)
        }

        /// Returns the number of stored values.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            ask!(self.0, py, |maplet| length(maplet.len()))
        }

        /// Returns the share of slots in use.
        #[getter]
        fn load_factor(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |maplet| maplet.load_factor())
        }

        /// Returns the most slots for values.
        #[getter]
        fn capacity(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |maplet| maplet.layout().keys().limit())
        }

        /// Returns the bytes of memory of the slots.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            ask!(self.0, py, |maplet| maplet.memory_bytes())
        }

        /// Returns the bits of a value.
        #[getter]
        fn value_bits(&self, py: Python<'_>) -> PyResult<u32> {
            ask!(self.0, py, |maplet| maplet.layout().value_bits())
        }

        /// Returns the expected rate at which another key has a value.
        #[getter]
        fn fpr(&self, py: Python<'_>) -> PyResult<f64> {
            ask!(self.0, py, |maplet| maplet.layout().expected_fpr(maplet.len()))
        }

        /// Returns `"dropped"`, `"kept"` or `"counted"`.
        #[getter]
        fn duplicates(&self, py: Python<'_>) -> PyResult<&'static str> {
            ask!(self.0, py, |maplet| name_of(maplet.layout().keys().duplicates()))
        }
    }
}
