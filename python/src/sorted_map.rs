//! The log-structured merge tree as a mapping of Python.

pub(crate) mod call;
pub(crate) mod cell;
mod rows;
mod types;

use pyo3::exceptions::{PyKeyError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList, PyMapping, PySlice, PyTuple, PyType};
use warpset::lsm::{CleanupPolicy, OrderedMap};

use self::call::{ALL, Any, Call, Combined, Three, ask, change, ends, pair};
use self::cell::Cell;
use self::rows::listed;
use self::types::{Lsm, Pair, Settled, Sorted, Types, by_pair, match_pair};
use crate::device::Location;
use crate::error::Result;
use crate::output::TypeName;
use crate::structure::{ALL_OF_IT, Where, combine, copy, length};
use crate::threads::{Shared, Threads, run};
use crate::{anywhere, class};

/// Condition for automatic cleanups, as given by `cleanup=`.
#[derive(FromPyObject)]
enum Cleanup {
    Updates(u64),
    Share(f64),
}

fn build<T: Types>(place: &Location, batch_size: Option<u64>, cleanup: CleanupPolicy) -> Result<Where<Sorted>> {
    let mut builder = Lsm::<T>::builder().cleanup(cleanup);
    if let Some(batch_size) = batch_size {
        builder = builder.batch_size(batch_size);
    }
    Ok(match place {
        Location::Cpu => Where::Host(T::wrap(builder.build()?)),
        Location::On(device) => Where::Device(T::wrap(builder.on(device).build()?)),
    })
}

/// Runs `$body` with the name `$types` for the types of the map, and `$call` for the call of a method.
macro_rules! call {
    ($slf:ident, $py:ident, $threads:expr, |$call:ident, $types:ident| $body:expr) => {{
        let $call = Call { map: &$slf.0, py: $py, threads: $threads };
        by_pair!($slf.types($py)?, |$types| $body)
    }};
}

impl SortedMap {
    fn types(&self, py: Python<'_>) -> PyResult<Pair> {
        Ok(self.0.read(py, None, 1, |map| Ok(anywhere!(map, |map| map.pair())))?)
    }
}

/// Splits pairs into keys and values.
fn unzipped<'py>(pairs: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let (keys, values) = (PyList::empty(pairs.py()), PyList::empty(pairs.py()));
    let wrong = |_| PyTypeError::new_err("values are missing: pass `keys, values`, a `dict`, or pairs of both");
    for pair in pairs.try_iter().map_err(wrong)? {
        let pair = pair?;
        let pair = match pair.cast::<PyList>() {
            Ok(list) => list.to_tuple().into_any(),
            Err(_) => pair,
        };
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract().map_err(wrong)?;
        keys.append(key)?;
        values.append(value)?;
    }
    Ok((keys.into_any(), values.into_any()))
}

fn absent(key: Any<'_, '_>) -> PyErr {
    PyKeyError::new_err(key.clone().unbind())
}

class! {
    /// Dictionary in the order of its keys with updates in batches: a GPU LSM. Keys are integers or byte strings,
    /// values are integers or rows of bytes.
    ///
    /// - `items`: a `dict` or another mapping, or pairs, as in `update`.
    /// - `key` and `value`: `"uint64"` to `"uint64"`, `"uint32"`, `"V16"`, `"V32"` or None; `"int64"` to `"uint64"` or
    ///   None; `"uint32"` to `"uint32"`; `"S8"` to `"uint64"` or `"V16"`; `"V16"` to `"uint64"`. With None it is an
    ///   ordered set, and all values are `None`. Integers of any array are converted; one out of range raises
    ///   `OverflowError`.
    /// - `"S8"` is byte strings of up to 8 bytes, in their order. `"V16"` and `"V32"` are up to 16 and 32 bytes, as
    ///   keys in their order (the `bytes` of UUIDs, the `packed` form of addresses): items of NumPy's structured, void,
    ///   string and complex types, rows of `uint8`, or `bytes`, padded with zeros. Answers are arrays of that type;
    ///   `.view(dtype)` converts them back, or pass an `out=` of your type.
    /// - `batch_size`: expected number of keys per update, a power of two, 65536 by default. Larger batches are cheaper
    ///   per key.
    /// - `cleanup`: limit of removed and replaced elements in memory, as a share of all (a `float`) or a number of
    ///   updates (an `int`); with None, only calls of `cleanup()` drop them.
    ///
    /// The class is a `collections.abc.MutableMapping`, except that `keys()` and `values()` return arrays, `items()` an
    /// iterator, and only maps of the same types are equal. For many keys use the methods that take arrays, which are
    /// far faster: `update`, `increment`, `delete`, `get_many`. Nulls among keys are ignored, and never found. Device
    /// arrays, for a map on that device, have exactly the types of the map, with unsigned keys.
    ///
    /// >>> import warpset
    /// >>> prices = warpset.SortedMap(value="uint32")
    /// >>> prices.update([30, 10, 20], [300, 100, 200])
    /// >>> del prices[20]
    /// >>> prices[10], prices.get(20), len(prices)
    /// (100, None, 2)
    /// >>> values, found = prices.get_many([10, 20, 30], default=7)
    /// >>> values.tolist(), found.tolist()
    /// ([100, 7, 300], [True, False, True])
    /// >>> keys, values = prices[5:15]
    /// >>> keys.tolist(), values.tolist()
    /// ([10], [100])
    /// >>> list(prices.items())
    /// [(10, 100), (30, 300)]
    #[allow(rustdoc::broken_intra_doc_links, reason = "brackets of Python")]
    SortedMap(Sorted), mapping {
        #[new]
        #[pyo3(
            signature = (
                items=None, /, *, key=TypeName::default(), value=Some(TypeName::default()), batch_size=None,
                cleanup=Some(Cleanup::Share(0.5)), device=None
            ),
            text_signature = "(items=None, /, *, key='uint64', value='uint64', batch_size=None, cleanup=0.5, device=None)"
        )]
        fn new(
            py: Python<'_>,
            items: Option<&Bound<'_, PyAny>>,
            key: TypeName,
            value: Option<TypeName>,
            batch_size: Option<u64>,
            cleanup: Option<Cleanup>,
            device: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (place, pair) = (Location::of(device)?, Pair::named(&key.0, value.as_ref().map(|value| &*value.0))?);
            let cleanup = match cleanup {
                Some(Cleanup::Share(share)) => CleanupPolicy::StaleShare(share),
                Some(Cleanup::Updates(updates)) => CleanupPolicy::EveryBatches(updates),
                None => CleanupPolicy::Manual,
            };
            let build = || by_pair!(pair, |T| build::<T>(&place, batch_size, cleanup));
            let map = Self(Shared::new(run(py, None, ALL_OF_IT, build)?));
            items.map_or(Ok(()), |items| map.update(py, items, None, None))?;
            Ok(map)
        }

        /// Returns the class, for annotations such as `SortedMap[int, bytes]`.
        #[classmethod]
        fn __class_getitem__<'py>(cls: &Bound<'py, PyType>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
            let alias = cls.py().import(intern!(cls.py(), "types"))?.getattr(intern!(cls.py(), "GenericAlias"))?;
            alias.call1((cls, items))
        }

        /// Inserts keys with one value each and replaces the values of existing keys. Keys and values are two arrays of
        /// the same length, a `dict` or another mapping, or an iterable of pairs. Of equal keys the last one counts. A
        /// set takes keys only.
        #[pyo3(signature = (keys, values=None, /, *, threads=None))]
        fn update(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            values: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<()> {
            if let (Ok(other), None) = (keys.cast::<Self>(), values) {
                return self.merge(py, other.get());
            }
            call!(self, py, threads, |call, T| match (keys.cast::<PyMapping>(), values) {
                (Ok(other), None) => {
                    let values = Some(other.values()?.into_any()).filter(|_| <T as Types>::V::DTYPE.is_some());
                    call.update::<T>(&other.keys()?.into_any(), values.as_ref())
                }
                (Err(_), None) if <T as Types>::V::DTYPE.is_some() => {
                    let (keys, values) = unzipped(keys)?;
                    call.update::<T>(&keys, Some(&values))
                }
                _ => call.update::<T>(keys, values),
            })
        }

        /// Combines numbers with the values of keys; keys without value get the combination of their numbers. `by` is
        /// `"sum"`, modulo 2 to the bits of a value; `"min"`; `"max"`; or `"or"` of the bits.
        ///
        /// >>> import warpset
        /// >>> last = warpset.SortedMap({1: 10})
        /// >>> last.upsert([1, 2, 2], [5, 7, 9], by="max")
        /// >>> list(last.items())
        /// [(1, 10), (2, 9)]
        #[pyo3(signature = (keys, values, /, *, by="sum", threads=None))]
        fn upsert(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            values: &Bound<'_, PyAny>,
            by: &str,
            threads: Option<Threads>,
        ) -> PyResult<()> {
            let by = Combined::by(by)?;
            call!(self, py, threads, |call, T| call.upsert::<T>(keys, Some(values), by))
        }

        /// Adds one to the value of each key per occurrence; keys without value start at 0.
        ///
        /// >>> import warpset
        /// >>> counts = warpset.SortedMap()
        /// >>> counts.increment([3, 1, 3])
        /// >>> list(counts.items())
        /// [(1, 1), (3, 2)]
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn increment(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<()> {
            call!(self, py, threads, |call, T| call.upsert::<T>(keys, None, Combined::Sum))
        }

        /// Removes keys; absent ones are ignored.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn delete(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<()> {
            call!(self, py, threads, |call, T| call.delete::<T>(keys))
        }

        /// Returns the values of keys, `default` for absent ones, and whether each key is present: new arrays, or `out`
        /// and `found`, filled. For keys on a device the answers are on the device.
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
            call!(self, py, threads, |call, T| call.get_many::<T>(keys, default, out, found))
        }

        /// Returns whether each key is present: an array of booleans, or `out`, filled. For keys on a device the
        /// answers are on the device.
        #[pyo3(signature = (keys, /, *, out=None, threads=None))]
        fn contains(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            call!(self, py, threads, |call, T| call.contains::<T>(keys, out))
        }

        /// Counts the keys from each of `lows` to the matching one of `highs`, both included, as an array of `uint64`,
        /// or `out`, filled. For ends on a device the counts are on the device.
        #[pyo3(signature = (lows, highs, /, *, out=None, threads=None))]
        fn count_range(
            &self,
            py: Python<'_>,
            lows: &Bound<'_, PyAny>,
            highs: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Py<PyAny>> {
            call!(self, py, threads, |call, T| call.count_range::<T>(lows, highs, out))
        }

        /// Returns the elements from each of `lows` to the matching one of `highs`, both included: arrays
        /// `offsets, keys, values`, where range `i` has the places `offsets[i]` to `offsets[i + 1]`. For ends on a
        /// device they are on the device.
        #[pyo3(signature = (lows, highs, /, *, threads=None))]
        fn range(
            &self,
            py: Python<'_>,
            lows: &Bound<'_, PyAny>,
            highs: &Bound<'_, PyAny>,
            threads: Option<Threads>,
        ) -> PyResult<Three> {
            call!(self, py, threads, |call, T| call.range::<T>(lows, highs))
        }

        /// Returns the smallest key above each given key, which may be absent: arrays `keys, values, found`, with 0 if
        /// there is none.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn successors(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<Three> {
            call!(self, py, threads, |call, T| call.neighbours::<T>(keys, true))
        }

        /// Returns the largest key below each given key, which may be absent: arrays `keys, values, found`, with 0 if
        /// there is none.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn predecessors(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<Threads>) -> PyResult<Three> {
            call!(self, py, threads, |call, T| call.neighbours::<T>(keys, false))
        }

        /// Returns the smallest key with its value; `KeyError` if the map is empty.
        fn first<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
            call!(self, py, None, |call, T| pair::<T>(py, ask!(call, T, 1, |map| map.first_key_value().settled())?))
        }

        /// Returns the largest key with its value; `KeyError` if the map is empty.
        fn last<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
            call!(self, py, None, |call, T| pair::<T>(py, ask!(call, T, 1, |map| map.last_key_value().settled())?))
        }

        /// Returns the value of a key, or the arrays `(keys, values)` of a slice, which excludes its stop.
        fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
            match key.cast::<PySlice>() {
                Ok(slice) => {
                    let arrays = call!(self, py, None, |call, T| call.list::<T>(ends::<T>(slice)?))?;
                    Ok(arrays.into_pyobject(py)?.into_any().unbind())
                }
                Err(_) => call!(self, py, None, |call, T| call.get::<T>(key))?.ok_or_else(|| absent(key)),
            }
        }

        fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
            call!(self, py, None, |call, T| {
                let (key, value) = (<T as Types>::K::of_object(key)?, <T as Types>::V::of_object(value)?);
                Ok(change!(call, T, 1, |map| Ok(map.insert_bulk(&[key], &[value])?))?)
            })
        }

        fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
            call!(self, py, None, |call, T| match key.cast::<PySlice>() {
                Ok(slice) => {
                    let range = ends::<T>(slice)?;
                    Ok(change!(call, T, ALL_OF_IT, |map| Ok(OrderedMap::remove_range(map, range).map(|_| ())?))?)
                }
                Err(_) => call.replace::<T>(key, |_| None)?.map(|_| ()).ok_or_else(|| absent(key)),
            })
        }

        fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            Ok(call!(self, py, None, |call, T| call.get::<T>(key))?.is_some())
        }

        /// Returns the value of a key, or `default` if it is absent.
        #[pyo3(signature = (key, /, default=None))]
        fn get(
            &self,
            py: Python<'_>,
            key: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            Ok(call!(self, py, None, |call, T| call.get::<T>(key))?.or(default))
        }

        /// Removes a key and returns its value; if it is absent, returns `default`, or raises `KeyError` without one.
        #[pyo3(signature = (key, /, *default))]
        fn pop(&self, py: Python<'_>, key: &Bound<'_, PyAny>, default: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
            if default.len() > 1 {
                return Err(PyTypeError::new_err("pop takes a key and one default"));
            }
            match call!(self, py, None, |call, T| call.replace::<T>(key, |_| None))? {
                Some(value) => Ok(value),
                None => default.get_item(0).map(Bound::unbind).map_err(|_| absent(key)),
            }
        }

        /// Removes the largest key and returns it with its value; `KeyError` if the map is empty.
        fn popitem<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
            call!(self, py, None, |call, T| pair::<T>(py, change!(call, T, 1, |map| {
                let last = map.last_key_value().settled()?;
                last.map_or(Ok(()), |(key, _)| map.remove_bulk(&[key]))?;
                Ok(last)
            })?))
        }

        /// Returns the value of a key; an absent key first gets the value `default`.
        #[pyo3(signature = (key, /, default=None))]
        fn setdefault(
            &self,
            py: Python<'_>,
            key: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            let none = py.None();
            let before = call!(self, py, None, |call, T| {
                let value = Some(<T as Types>::V::of_object(default.as_ref().unwrap_or(&none).bind(py))?);
                call.replace::<T>(key, |before| before.or(value))
            })?;
            Ok(before.or(default))
        }

        /// Removes all elements.
        fn clear(&self, py: Python<'_>) -> PyResult<()> {
            call!(self, py, None, |call, T| Ok(change!(call, T, ALL_OF_IT, |map| Ok(OrderedMap::clear(map)?))?))
        }

        /// Drops removed and replaced elements from memory. Answers do not change, and become faster.
        fn cleanup(&self, py: Python<'_>) -> PyResult<()> {
            call!(self, py, None, |call, T| Ok(change!(call, T, ALL_OF_IT, |map| Ok(map.cleanup()?))?))
        }

        /// Inserts the elements of another map of the same types; its values replace existing ones.
        fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
            combine(
                &self.0,
                &other.0,
                py,
                |here, other| by_pair!(here.pair(), |T| {
                    let all = T::of(other)?.range_bulk(&[..])?;
                    Ok(T::of_mut(here)?.insert_bulk(&all.keys, &all.values)?)
                }),
                |here, other| by_pair!(here.pair(), |T| {
                    let all = T::of(other)?.live_elements()?;
                    Ok(T::of_mut(here)?.insert_device(all.keys(), all.values())?)
                }),
            )
        }

        fn __or__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
            let both = Self(copy(&self.0, py, None)?);
            both.merge(py, other)?;
            Ok(both)
        }

        fn __ior__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<()> {
            self.update(py, other, None, None)
        }

        /// Returns all keys, ascending, as an array.
        fn keys(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Ok(call!(self, py, None, |call, T| call.list::<T>(ALL))?.0)
        }

        /// Returns all values, in the order of their keys, as an array; None for a set.
        fn values(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Ok(call!(self, py, None, |call, T| call.list::<T>(ALL))?.1)
        }

        /// Iterates over pairs of keys and values, ascending, in a copy: the map may change meanwhile. For arrays use
        /// `map[:]`.
        fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            let (keys, values) = call!(self, py, None, |call, T| {
                let (keys, values) = call.list::<T>(ALL)?;
                let values = match values.is_none(py) {
                    true => py.import(intern!(py, "itertools"))?.call_method1(intern!(py, "repeat"), (values,))?,
                    false => listed::<<T as Types>::V>(values.bind(py))?,
                };
                Ok::<_, PyErr>((listed::<<T as Types>::K>(keys.bind(py))?, values))
            })?;
            py.import(intern!(py, "builtins"))?.call_method1(intern!(py, "zip"), (keys, values))
        }

        /// Iterates over the keys, ascending, in a copy: the map may change meanwhile.
        fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
            let keys = self.keys(py)?;
            call!(self, py, None, |_call, T| listed::<<T as Types>::K>(keys.bind(py)))?.try_iter()
        }

        /// Returns the number of keys. The first call after an update counts them.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            Ok(length(call!(self, py, None, |call, T| ask!(call, T, ALL_OF_IT, |map| map.len().settled()))?))
        }

        fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
            Ok(call!(self, py, None, |call, T| ask!(call, T, 1, |map| Ok(map.first_key_value().settled()?.is_some())))?)
        }

        /// Returns the number of stored elements, including those that the next cleanup drops.
        #[getter]
        fn stored(&self, py: Python<'_>) -> PyResult<u64> {
            Ok(call!(self, py, None, |call, T| ask!(call, T, 1, |map| Ok(map.resident_len())))?)
        }

        /// Returns the bytes of memory of elements and search indexes.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            Ok(call!(self, py, None, |call, T| ask!(call, T, 1, |map| Ok(map.memory_bytes())))?)
        }
    }
}
