//! The log-structured merge tree as a mapping of Python, from integers to integers.

mod cell;
mod types;

use std::borrow::Cow;

use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use warpset::gpu;
use warpset::lsm::{CleanupPolicy, OrderedMap};
use warpset_base::bitmap::bits_to;

use self::cell::{Cell, DeviceItem, keys_on_device};
use self::types::{End, Lsm, Pair, Settled, Single, Sorted, Types, Walk, by_pair, match_pair};
use crate::device::{DeviceArray, DeviceKeys, Place, SharedItem};
use crate::error::{Failure, Result};
use crate::filter::answer_on_device;
use crate::keys::{Batch, Part};
use crate::output::{Flag, Output};
use crate::structure::{ALL_OF_IT, Object, Where, combine, copy, keys_elsewhere};
use crate::threads::{Shared, run};
use crate::{anywhere, changing, class};

type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type Ends<T> = (End<<T as Types>::K>, End<<T as Types>::K>);
type Element<T> = (<T as Types>::K, <T as Types>::V);
/// Three arrays.
type Three = (Py<PyAny>, Py<PyAny>, Py<PyAny>);

/// A call of a method.
#[derive(Clone, Copy)]
struct Call<'a, 'py> {
    map: &'a Object<Sorted>,
    py: Python<'py>,
    threads: Option<usize>,
}

/// Asks the dictionary, under the name `$it`, wherever it is.
macro_rules! ask {
    ($call:expr, $types:ident, $keys:expr, |$it:ident| $body:expr) => {
        $call.map.read($call.py, $call.threads, $keys, |value| {
            anywhere!(value, |typed| {
                let $it = $types::of(typed)?;
                $body
            })
        })
    };
}

/// Changes the dictionary, under the name `$it`, on the host or a device.
macro_rules! change {
    ($call:expr, $types:ident, $keys:expr, |$it:ident| $body:expr) => {
        $call.map.write($call.py, $call.threads, $keys, |value| {
            changing!(value, |typed| {
                let $it = $types::of_mut(typed)?;
                $body
            })
        })
    };
}

/// Asks or changes the dictionary on its device; one elsewhere takes no device arrays.
macro_rules! on_device {
    ($call:expr, $method:ident, $types:ident, $of:ident, |$it:ident| $body:expr) => {
        $call.map.$method($call.py, $call.threads, ALL_OF_IT, |value| match value {
            Where::Device(typed) => {
                let $it = $types::$of(typed)?;
                $body
            }
            _ => Err(keys_elsewhere("in host memory")),
        })
    };
}

/// The parts of an array in host memory.
fn host_parts(batch: &Batch) -> Result<&[Part]> {
    match batch {
        Batch::Host(parts) => Ok(parts),
        Batch::Device(_) => Err(Failure::wrong_type(
            "an array on a device where one of the host is expected: all arrays of a call are on one side; copy this one \
             (`.get()`, `.cpu()`)",
        )),
    }
}

/// All that an array holds.
fn column<C: Cell>(parts: &[Part]) -> Result<Cow<'_, [C]>> {
    if parts.iter().any(|part| part.len() > part.count()) {
        return Err(Failure::value("an array with nulls: fill them or drop them first"));
    }
    if let [part] = parts {
        return C::column(part);
    }
    let columns: Vec<_> = parts.iter().map(C::column).collect::<Result<_>>()?;
    Ok(columns.concat().into())
}

/// Ranges on the host, both ends included.
fn ranges<T: Types>(lows: &[Part], highs: &[Part]) -> Result<Vec<Ends<T>>> {
    let (lows, highs) = (column::<T::K>(lows)?, column::<T::K>(highs)?);
    if lows.len() != highs.len() {
        return Err(Failure::value(format!(
            "{} low and {} high ends: a range has one of each",
            lows.len(),
            highs.len()
        )));
    }
    Ok(lows.iter().zip(highs.iter()).map(|(&low, &high)| (End::Included(low), End::Included(high))).collect())
}

/// The range of a slice, whose end is not part of it.
fn ends<T: Types>(slice: &Bound<'_, PySlice>) -> PyResult<Ends<T>> {
    let py = slice.py();
    if !slice.getattr(intern!(py, "step"))?.is_none() {
        return Err(PyValueError::new_err("a slice of keys has no step: `map[low:high]`"));
    }
    let end = |name| {
        let key = slice.getattr(name)?;
        if key.is_none() { Ok(None) } else { T::K::of_object(&key).map(Some) }
    };
    let (low, high) = (end(intern!(py, "start"))?, end(intern!(py, "stop"))?);
    Ok((low.map_or(End::Unbounded, End::Included), high.map_or(End::Unbounded, End::Excluded)))
}

/// A device array of answers; none of sets' values.
fn shared<A: SharedItem>(py: Python<'_>, items: gpu::DeviceVec<A>, is_there: bool) -> PyResult<Py<PyAny>> {
    if is_there { Ok(Py::new(py, A::share(items))?.into_any()) } else { Ok(py.None()) }
}

impl Call<'_, '_> {
    fn update<T: Types>(self, keys: Any<'_, '_>, values: Option<Any<'_, '_>>) -> PyResult<()> {
        match (values, T::V::DTYPE) {
            (None, Some(_)) => {
                let why = "values are missing: `update(keys, values)`, or `update({key: value})`";
                return Err(PyTypeError::new_err(why));
            }
            (Some(_), None) => return Err(PyTypeError::new_err("with value=None there are no values: `update(keys)`")),
            _ => {}
        }
        let (keys, values) = (Batch::of(keys)?, values.map(Batch::of).transpose()?);
        match (&keys, &values) {
            (Batch::Device(keys), None) => on_device!(self, write, T, of_mut, |map| {
                let (keys, none) = (keys.adopt(map.device())?, map.device().alloc_zeroed(0)?);
                Ok(map.insert_device(keys_on_device::<T::K>(&keys)?, none.as_slice())?)
            }),
            (Batch::Device(keys), Some(Batch::Device(values))) => on_device!(self, write, T, of_mut, |map| {
                let (keys, values) = (keys.adopt(map.device())?, values.adopt(map.device())?);
                Ok(map.insert_device(keys_on_device::<T::K>(&keys)?, DeviceItem::slice(&values)?)?)
            }),
            _ => {
                let (parts, values) = (host_parts(&keys)?, values.as_ref().map(host_parts).transpose()?);
                change!(self, T, keys.len(), |map| {
                    let keys = column(parts)?;
                    let values = values.map_or_else(|| Ok(vec![T::V::default(); keys.len()].into()), column)?;
                    Ok(map.insert_bulk(&keys, &values)?)
                })
            }
        }?;
        Ok(())
    }

    fn delete<T: Types>(self, keys: Any<'_, '_>) -> PyResult<()> {
        let batch = Batch::of(keys)?;
        match &batch {
            Batch::Host(parts) => change!(self, T, batch.len(), |map| Ok(map.remove_bulk(&*column(parts)?)?)),
            Batch::Device(keys) => on_device!(self, write, T, of_mut, |map| {
                Ok(map.remove_device(keys_on_device::<T::K>(&keys.adopt(map.device())?)?)?)
            }),
        }?;
        Ok(())
    }

    /// Values, and which keys have one.
    fn get_many<T: Types>(
        self,
        keys: Any<'_, '_>,
        default: i128,
        out: Option<Any<'_, '_>>,
        found: Option<Any<'_, '_>>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let wrong = || Failure::overflow(format!("default={default} is out of the range of values"));
        let absent = T::V::of_int(default).ok_or_else(wrong)?;
        let batch = Batch::of(keys)?;
        let parts = match &batch {
            Batch::Host(parts) => parts,
            Batch::Device(keys) if default == 0 && found.is_none() => return self.get_many_on_device::<T>(keys, out),
            Batch::Device(_) => {
                return Err(PyValueError::new_err(
                    "for keys on a device, absent ones have the value 0, and the flags are a new array: leave `default` \
                     and `found` away",
                ));
            }
        };
        let mut flags = Output::<Flag>::new(self.py, batch.len(), found)?;
        let values = T::V::array(self.py, batch.len(), out, |values| {
            let flags = bytemuck::cast_slice_mut(flags.items());
            Ok(ask!(self, T, batch.len(), |map| {
                bits_to::<u8>(flags, map.get_bulk_into(&column::<T::K>(parts)?, values)?.as_words());
                if absent != T::V::default() {
                    let absents = values.iter_mut().zip(&*flags).filter(|(_, found)| **found == 0);
                    absents.for_each(|(value, _)| *value = absent);
                }
                Ok(())
            })?)
        })?;
        Ok((values, flags.finish()))
    }

    fn get_many_on_device<T: Types>(
        self,
        keys: &DeviceKeys,
        out: Option<Any<'_, '_>>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let mut flags = None;
        let values =
            answer_on_device(self.map, self.py, keys, out, self.threads, SharedItem::share, |there, keys, values| {
                let (map, keys) = (T::of(there)?, keys_on_device::<T::K>(keys)?);
                let mut bits = map.device().alloc_zeroed(keys.len().div_ceil(64))?;
                let mut found = map.device().alloc_zeroed(keys.len())?;
                map.get_device(keys, values, bits.as_mut_slice())?;
                map.contains_device(keys, found.as_mut_slice())?;
                flags = Some(DeviceArray::flags(found));
                Ok(())
            })?;
        let values = if T::V::DTYPE.is_some() { values } else { self.py.None() };
        let flags = flags.ok_or_else(|| Failure::internal("no flags"))?;
        Ok((values, Py::new(self.py, flags)?.into_any()))
    }

    fn contains<T: Types>(self, keys: Any<'_, '_>, out: Option<Any<'_, '_>>) -> PyResult<Py<PyAny>> {
        let batch = Batch::of(keys)?;
        let parts = match &batch {
            Batch::Host(parts) => parts,
            Batch::Device(keys) => {
                let flags = DeviceArray::flags;
                return answer_on_device(self.map, self.py, keys, out, self.threads, flags, |there, keys, flags| {
                    Ok(T::of(there)?.contains_device(keys_on_device::<T::K>(keys)?, flags)?)
                });
            }
        };
        let mut flags = Output::<Flag>::new(self.py, batch.len(), out)?;
        let items = bytemuck::cast_slice_mut(flags.items());
        ask!(self, T, batch.len(), |map| {
            bits_to::<u8>(items, map.contains_bitmap_bulk(&*column(parts)?).settled()?.as_words());
            Ok(())
        })?;
        Ok(flags.finish())
    }

    fn count_range<T: Types>(
        self,
        lows: Any<'_, '_>,
        highs: Any<'_, '_>,
        out: Option<Any<'_, '_>>,
    ) -> PyResult<Py<PyAny>> {
        let (lows, highs) = (Batch::of(lows)?, Batch::of(highs)?);
        if let (Batch::Device(lows), Batch::Device(highs)) = (&lows, &highs) {
            return answer_on_device(self.map, self.py, lows, out, self.threads, u64::share, |there, lows, counts| {
                let map = T::of(there)?;
                let highs = highs.adopt(map.device())?;
                Ok(map.count_range_device(keys_on_device::<T::K>(lows)?, keys_on_device::<T::K>(&highs)?, counts)?)
            });
        }
        let (lows, highs, n) = (host_parts(&lows)?, host_parts(&highs)?, lows.len());
        let mut counts = Output::new(self.py, n, out)?;
        let items = counts.items();
        ask!(self, T, n, |map| {
            items.copy_from_slice(&map.count_range_bulk(&ranges::<T>(lows, highs)?).settled()?);
            Ok(())
        })?;
        Ok(counts.finish())
    }

    /// Offsets, keys and values.
    fn range<T: Types>(self, lows: Any<'_, '_>, highs: Any<'_, '_>) -> PyResult<Three> {
        let (py, lows, highs) = (self.py, Batch::of(lows)?, Batch::of(highs)?);
        if let (Batch::Device(lows), Batch::Device(highs)) = (&lows, &highs) {
            let found = on_device!(self, read, T, of, |map| {
                let (lows, highs) = (lows.adopt(map.device())?, highs.adopt(map.device())?);
                Ok(map.range_device(keys_on_device::<T::K>(&lows)?, keys_on_device::<T::K>(&highs)?)?)
            })?;
            let values = shared(py, found.values, T::V::DTYPE.is_some())?;
            return Ok((shared(py, found.offsets, true)?, shared(py, found.keys, true)?, values));
        }
        let (lows, highs) = (host_parts(&lows)?, host_parts(&highs)?);
        // However few the ranges are, they may have all elements.
        let found = ask!(self, T, ALL_OF_IT, |map| Ok(map.range_bulk(&ranges::<T>(lows, highs)?)?))?;
        Ok((u64::copied(py, &found.offsets)?, T::K::copied(py, &found.keys)?, T::V::copied(py, &found.values)?))
    }

    /// Keys and values of one range.
    fn list<T: Types>(self, range: Ends<T>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let found = ask!(self, T, ALL_OF_IT, |map| Ok(map.range_bulk(&[range])?))?;
        Ok((T::K::copied(self.py, &found.keys)?, T::V::copied(self.py, &found.values)?))
    }

    /// Keys and values next to keys, and which keys have such a neighbour.
    fn neighbours<T: Types>(self, keys: Any<'_, '_>, is_above: bool) -> PyResult<Three> {
        let batch = Batch::of(keys)?;
        let parts = host_parts(&batch)?;
        let found = ask!(self, T, batch.len(), |map| {
            let keys = column(parts)?;
            if is_above { map.successor_bulk(&keys).settled() } else { map.predecessor_bulk(&keys).settled() }
        })?;
        let flags: Vec<Flag> = found.iter().map(|found| Flag(found.is_some().into())).collect();
        let (keys, values): (Vec<T::K>, Vec<T::V>) = found.into_iter().map(Option::unwrap_or_default).unzip();
        let mut answers = Output::new(self.py, flags.len(), None)?;
        answers.items().copy_from_slice(&flags);
        Ok((T::K::copied(self.py, &keys)?, T::V::copied(self.py, &values)?, answers.finish()))
    }

    fn get<T: Types>(self, key: Any<'_, '_>) -> PyResult<Option<Py<PyAny>>> {
        let key = T::K::of_object(key)?;
        let value = ask!(self, T, 1, |map| map.value(key))?;
        value.map(|value| value.object(self.py).map(Bound::unbind)).transpose()
    }

    /// The value that a key had; now it has the one that `after` makes of it.
    fn replace<T: Types>(
        self,
        key: Any<'_, '_>,
        after: impl FnOnce(Option<T::V>) -> Option<T::V> + Send,
    ) -> PyResult<Option<Py<PyAny>>> {
        let (key, mut before) = (T::K::of_object(key)?, None);
        change!(self, T, 1, |map| {
            let after = |value| {
                before = value;
                after(value)
            };
            Ok(OrderedMap::update(map, key, after).map(|_| ())?)
        })?;
        before.map(|value| value.object(self.py).map(Bound::unbind)).transpose()
    }

    fn walk<T: Types>(self, with_values: bool) -> PyResult<SortedMapIterator> {
        let more = ask!(self, T, ALL_OF_IT, |map| map.walk())?;
        Ok(SortedMapIterator { steps: Box::new(Walking::<T> { ready: Vec::new().into_iter(), more }), with_values })
    }
}

/// A key and its value, as a tuple.
fn pair<'py, T: Types>(py: Python<'py>, element: Option<Element<T>>) -> PyResult<Bound<'py, PyTuple>> {
    let (key, value) = element.ok_or_else(|| PyKeyError::new_err("the map is empty"))?;
    (key.object(py)?, value.object(py)?).into_pyobject(py)
}

/// An iteration, whatever the types.
trait Steps: Send + Sync {
    fn step(&mut self, py: Python<'_>, with_values: bool) -> PyResult<Option<Py<PyAny>>>;
}

/// The elements at hand, and what gives more.
struct Walking<T: Types> {
    ready: std::vec::IntoIter<Element<T>>,
    more: Walk<T::K, T::V>,
}

impl<T: Types> Steps for Walking<T> {
    fn step(&mut self, py: Python<'_>, with_values: bool) -> PyResult<Option<Py<PyAny>>> {
        if self.ready.as_slice().is_empty() {
            self.ready = py.detach(|| (self.more)())?.into_iter();
        }
        let Some(element) = self.ready.next() else { return Ok(None) };
        let object = if with_values { pair::<T>(py, Some(element))?.into_any() } else { element.0.object(py)? };
        Ok(Some(object.unbind()))
    }
}

/// The keys of a map, or its keys with their values, ascending, as they were when the iteration began.
#[pyclass(module = "warpset")]
pub struct SortedMapIterator {
    steps: Box<dyn Steps>,
    with_values: bool,
}

#[pymethods]
impl SortedMapIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        self.steps.step(py, self.with_values)
    }
}

/// When a map cleans up by itself, as `cleanup=` says it.
#[derive(FromPyObject)]
enum Cleanup {
    Updates(u64),
    Share(f64),
}

fn build<T: Types>(place: &Place, batch_size: Option<u64>, cleanup: CleanupPolicy) -> Result<Where<Sorted>> {
    let mut builder = Lsm::<T>::builder().cleanup(cleanup);
    if let Some(batch_size) = batch_size {
        builder = builder.batch_size(batch_size);
    }
    Ok(match place {
        Place::Cpu => Where::Host(T::wrap(builder.build()?)),
        Place::On(device) => Where::Device(T::wrap(builder.on(device).build()?)),
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

fn absent(key: Any<'_, '_>) -> PyErr {
    PyKeyError::new_err(key.clone().unbind())
}

class! {
    /// A dictionary from integers to integers, in the order of its keys, that takes updates in batches: a GPU LSM.
    ///
    /// `key`: `"uint64"`, `"uint32"`, `"int64"` or `"int32"`; `value`: `"uint64"`, `"uint32"`, or None for an ordered set,
    /// whose values are all `None`. `batch_size`: keys of the updates that are expected, a power of two, 65536 unless
    /// given; larger ones make updates cheaper. Removed and replaced elements take memory until a cleanup; `cleanup`
    /// says when there is one: if more than such a share of all elements may be stale (0.5 unless given), after so many
    /// updates (an `int`), or only when `cleanup()` is called (None).
    ///
    /// It is a `collections.abc.MutableMapping`, but `keys()` and `values()` are arrays, `items()` is an iterator, and it
    /// is equal only to maps of its own types. Key by key it costs what an update of one key costs: methods that take
    /// arrays (`update`, `delete`, `get_many`) are made for more.
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
    SortedMap(Sorted), mapping {
        #[new]
        #[pyo3(signature = (*, key="uint64", value=Some("uint64"), batch_size=None, cleanup=Some(Cleanup::Share(0.5)), device=None))]
        fn new(
            py: Python<'_>,
            key: &str,
            value: Option<&str>,
            batch_size: Option<u64>,
            cleanup: Option<Cleanup>,
            device: Option<&Bound<'_, PyAny>>,
        ) -> PyResult<Self> {
            let (place, pair) = (Place::of(device)?, Pair::named(key, value)?);
            let cleanup = match cleanup {
                Some(Cleanup::Share(share)) => CleanupPolicy::StaleShare(share),
                Some(Cleanup::Updates(updates)) => CleanupPolicy::EveryBatches(updates),
                None => CleanupPolicy::Manual,
            };
            let build = || by_pair!(pair, |T| build::<T>(&place, batch_size, cleanup));
            Ok(Self(Shared::new(run(py, None, ALL_OF_IT, build)?)))
        }

        /// Inserts keys with their values, as arrays of one length, or those of a `dict` or another mapping; replaces the
        /// values of keys that are there. Of equal keys the last one counts. A set takes keys alone.
        #[pyo3(signature = (keys, values=None, /, *, threads=None))]
        fn update(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            values: Option<&Bound<'_, PyAny>>,
            threads: Option<usize>,
        ) -> PyResult<()> {
            if let (Ok(other), None) = (keys.cast::<Self>(), values) {
                return self.merge(py, other.get());
            }
            call!(self, py, threads, |call, T| match keys.getattr_opt(intern!(py, "keys"))? {
                Some(own) if values.is_none() => {
                    let values = keys.call_method0(intern!(py, "values"))?;
                    call.update::<T>(&own.call0()?, Some(&values).filter(|_| <T as Types>::V::DTYPE.is_some()))
                }
                _ => call.update::<T>(keys, values),
            })
        }

        /// Removes keys, whether they are there or not; nulls are left out.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn delete(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<usize>) -> PyResult<()> {
            call!(self, py, threads, |call, T| call.delete::<T>(keys))
        }

        /// The values of keys, `default` for absent ones and nulls, and an array of booleans that says which keys are
        /// there: new arrays, or `out` and `found` filled. For keys on a device the answers are there too.
        #[pyo3(signature = (keys, /, default=0, *, out=None, found=None, threads=None))]
        fn get_many(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            default: i128,
            out: Option<&Bound<'_, PyAny>>,
            found: Option<&Bound<'_, PyAny>>,
            threads: Option<usize>,
        ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
            call!(self, py, threads, |call, T| call.get_many::<T>(keys, default, out, found))
        }

        /// Whether each key is there: an array of booleans, or `out` filled; nulls are not. For keys on a device the
        /// answers are there too.
        #[pyo3(signature = (keys, /, *, out=None, threads=None))]
        fn contains(
            &self,
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<usize>,
        ) -> PyResult<Py<PyAny>> {
            call!(self, py, threads, |call, T| call.contains::<T>(keys, out))
        }

        /// How many keys there are from each of `lows` to that of `highs`, both included, as an array of `uint64`, or
        /// `out` filled. For ends on a device the counts are there too.
        #[pyo3(signature = (lows, highs, /, *, out=None, threads=None))]
        fn count_range(
            &self,
            py: Python<'_>,
            lows: &Bound<'_, PyAny>,
            highs: &Bound<'_, PyAny>,
            out: Option<&Bound<'_, PyAny>>,
            threads: Option<usize>,
        ) -> PyResult<Py<PyAny>> {
            call!(self, py, threads, |call, T| call.count_range::<T>(lows, highs, out))
        }

        /// The elements from each of `lows` to that of `highs`, both included: three arrays `offsets, keys, values`, where
        /// range `i` has places `offsets[i]` to `offsets[i + 1]` of the others. For ends on a device they are there too.
        #[pyo3(signature = (lows, highs, /, *, threads=None))]
        fn range(
            &self,
            py: Python<'_>,
            lows: &Bound<'_, PyAny>,
            highs: &Bound<'_, PyAny>,
            threads: Option<usize>,
        ) -> PyResult<Three> {
            call!(self, py, threads, |call, T| call.range::<T>(lows, highs))
        }

        /// The smallest key above each key, which need not be there: arrays `keys, values, found`, 0 where there is none.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn successors(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<usize>) -> PyResult<Three> {
            call!(self, py, threads, |call, T| call.neighbours::<T>(keys, true))
        }

        /// The largest key below each key, which need not be there: arrays `keys, values, found`, 0 where there is none.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn predecessors(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<usize>) -> PyResult<Three> {
            call!(self, py, threads, |call, T| call.neighbours::<T>(keys, false))
        }

        /// The smallest key, with its value; `KeyError` if the map is empty.
        fn first<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
            call!(self, py, None, |call, T| pair::<T>(py, ask!(call, T, 1, |map| map.first_key_value().settled())?))
        }

        /// The largest key, with its value; `KeyError` if the map is empty.
        fn last<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
            call!(self, py, None, |call, T| pair::<T>(py, ask!(call, T, 1, |map| map.last_key_value().settled())?))
        }

        /// The value of a key, or `(keys, values)` of a slice: arrays of the elements from its start up to its stop, which
        /// is not part of it.
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

        /// The value of a key, or `default` if it is absent.
        #[pyo3(signature = (key, default=None, /))]
        fn get(
            &self,
            py: Python<'_>,
            key: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            Ok(call!(self, py, None, |call, T| call.get::<T>(key))?.or(default))
        }

        /// Removes a key and gives its value; if it is absent, gives `default`, or raises `KeyError` if none is named.
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

        /// Removes the largest key and gives it with its value; `KeyError` if the map is empty.
        fn popitem<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
            call!(self, py, None, |call, T| pair::<T>(py, change!(call, T, 1, |map| {
                let last = map.last_key_value().settled()?;
                last.map_or(Ok(()), |(key, _)| map.remove_bulk(&[key]))?;
                Ok(last)
            })?))
        }

        /// The value of a key, which gets the value `default` before if it is absent.
        #[pyo3(signature = (key, default=None, /))]
        fn setdefault(
            &self,
            py: Python<'_>,
            key: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            let none = py.None();
            let before = call!(self, py, None, |call, T| {
                let value = <T as Types>::V::of_object(default.as_ref().unwrap_or(&none).bind(py))?;
                call.replace::<T>(key, |before| before.or(Some(value)))
            })?;
            Ok(before.or(default))
        }

        /// Removes everything.
        fn clear(&self, py: Python<'_>) -> PyResult<()> {
            call!(self, py, None, |call, T| Ok(change!(call, T, ALL_OF_IT, |map| Ok(OrderedMap::clear(map)?))?))
        }

        /// Drops elements that were removed or replaced. Answers stay as they are, memory and time for them shrink.
        fn cleanup(&self, py: Python<'_>) -> PyResult<()> {
            call!(self, py, None, |call, T| Ok(change!(call, T, ALL_OF_IT, |map| Ok(map.cleanup()?))?))
        }

        /// Inserts what another map of the same types has; where both have a key, the other one's value counts.
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

        /// All keys, ascending, as an array.
        fn keys(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Ok(call!(self, py, None, |call, T| call.list::<T>((End::Unbounded, End::Unbounded)))?.0)
        }

        /// All values, in the order of their keys, as an array; None for a set.
        fn values(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Ok(call!(self, py, None, |call, T| call.list::<T>((End::Unbounded, End::Unbounded)))?.1)
        }

        /// Iterates over pairs of keys and values, ascending, as they are now, whatever happens to the map meanwhile. As
        /// arrays they are `map[:]`.
        fn items(&self, py: Python<'_>) -> PyResult<SortedMapIterator> {
            call!(self, py, None, |call, T| call.walk::<T>(true))
        }

        /// Iterates over the keys, ascending, as they are now, whatever happens to the map meanwhile.
        fn __iter__(&self, py: Python<'_>) -> PyResult<SortedMapIterator> {
            call!(self, py, None, |call, T| call.walk::<T>(false))
        }

        /// How many keys there are. After an update, the first call walks through all of them.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            let len = call!(self, py, None, |call, T| ask!(call, T, ALL_OF_IT, |map| map.len().settled()))?;
            Ok(isize::try_from(len).unwrap_or(isize::MAX) as usize)
        }

        fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
            Ok(call!(self, py, None, |call, T| ask!(call, T, 1, |map| Ok(map.first_key_value().settled()?.is_some())))?)
        }

        /// Elements that are stored: keys with their values, and what the next cleanup drops.
        #[getter]
        fn stored(&self, py: Python<'_>) -> PyResult<u64> {
            Ok(call!(self, py, None, |call, T| ask!(call, T, 1, |map| Ok(map.resident_len())))?)
        }

        /// Bytes of memory that elements and search indexes take.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            Ok(call!(self, py, None, |call, T| ask!(call, T, 1, |map| Ok(map.memory_bytes())))?)
        }
    }
}
