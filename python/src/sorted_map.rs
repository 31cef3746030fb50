//! The log-structured merge tree as a mapping of Python, from integers to integers.

mod cell;
mod types;

use std::borrow::Cow;

use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use warpset::lsm::{self, CleanupPolicy};
use warpset_base::bitmap::bits_to;

use self::cell::{Cell, DeviceItem, keys_on_device};
use self::types::{
    Answers, Changes, End, Lsm, Pair, Sorted, Types, Walk, answers, by_pair, changes, match_pair, pair_of,
};
use crate::class;
use crate::device::{DeviceArray, DeviceKeys, Place, SharedItem};
use crate::error::{Failure, Result};
use crate::filter::answer_on_device;
use crate::keys::{Batch, Part};
use crate::output::{Flag, Output};
use crate::structure::{ALL_OF_IT, Object, Where, combine, copy, keys_elsewhere};
use crate::threads::{Shared, run};

type Map = Object<Sorted>;
type Ends<T> = (End<<T as Types>::K>, End<<T as Types>::K>);
type Element<T> = (<T as Types>::K, <T as Types>::V);

/// Asks the map for `n` keys, or for all of it.
fn ask<T: Types, R: Send>(
    map: &Map,
    py: Python<'_>,
    threads: Option<usize>,
    n: usize,
    work: impl FnOnce(&dyn Answers<T::K, T::V>) -> Result<R> + Send,
) -> PyResult<R> {
    Ok(map.read(py, threads, n, |value| work(answers::<T>(value)?))?)
}

/// Changes the map by `n` keys, or all of it.
fn change<T: Types, R: Send>(
    map: &Map,
    py: Python<'_>,
    threads: Option<usize>,
    n: usize,
    work: impl FnOnce(&mut dyn Changes<T::K, T::V>) -> Result<R> + Send,
) -> PyResult<R> {
    Ok(map.write(py, threads, n, |value| work(changes::<T>(value)?))?)
}

/// The map on its device; one elsewhere takes no device arrays.
fn on_device<T: Types>(value: &Where<Sorted>) -> Result<&lsm::gpu::Lsm<T::K, T::V>> {
    match value {
        Where::Device(there) => T::of(there),
        _ => Err(keys_elsewhere("in host memory")),
    }
}

/// Whether an array has nulls.
fn has_nulls(parts: &[Part]) -> bool {
    parts.iter().any(|part| part.len() > part.count())
}

/// All that an array holds, nulls left out.
fn column<C: Cell>(parts: &[Part]) -> Result<Cow<'_, [C]>> {
    match parts {
        [part] => C::column(part),
        parts => {
            let mut all = Vec::with_capacity(parts.iter().map(Part::count).sum());
            for part in parts {
                all.extend_from_slice(&C::column(part)?);
            }
            Ok(all.into())
        }
    }
}

/// `column` of an array that goes with others place by place.
fn full_column<C: Cell>(parts: &[Part]) -> Result<Cow<'_, [C]>> {
    match has_nulls(parts) {
        true => Err(Failure::value("an array with nulls: fill them or drop them first")),
        false => column(parts),
    }
}

/// The parts of an array in host memory.
fn host_parts(batch: &Batch) -> PyResult<&[Part]> {
    match batch {
        Batch::Host(parts) => Ok(parts),
        Batch::Device(_) => Err(PyTypeError::new_err(
            "an array on a device where one of the host is expected: all arrays of a call are on one side; copy this one \
             (`.get()`, `.cpu()`)",
        )),
    }
}

/// Answers for each part of an array, in the order of its places; a null has `absent`.
fn each_part<A: Copy + Default + Send>(
    parts: &[Part],
    mut answers: &mut [A],
    absent: A,
    mut work: impl FnMut(&Part, &mut [A]) -> Result<()>,
) -> Result<()> {
    for part in parts {
        let (here, after) = answers.split_at_mut(part.len());
        part.answer(here, absent, |_, here| work(part, here))?;
        answers = after;
    }
    Ok(())
}

fn update<T: Types>(
    map: &Map,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    values: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<()> {
    match (values, T::V::DTYPE) {
        (None, Some(_)) => {
            return Err(PyTypeError::new_err("values are missing: `update(keys, values)`, or `update({key: value})`"));
        }
        (Some(_), None) => return Err(PyTypeError::new_err("with value=None there are no values: `update(keys)`")),
        _ => {}
    }
    let (keys, values) = (Batch::of(keys)?, values.map(Batch::of).transpose()?);
    match (&keys, &values) {
        (Batch::Device(keys), None | Some(Batch::Device(_))) => Ok(map.write(py, threads, ALL_OF_IT, |value| {
            let device = on_device::<T>(value)?.device().clone();
            let (keys, none) = (keys.adopt(&device)?, device.alloc_zeroed(0)?);
            let values = match &values {
                Some(Batch::Device(values)) => Some(values.adopt(&device)?),
                _ => None,
            };
            let Where::Device(there) = value else { return Err(keys_elsewhere("in host memory")) };
            let values = values.as_ref().map_or(Ok(none.as_slice()), DeviceItem::slice)?;
            Ok(T::of_mut(there)?.insert_device(keys_on_device::<T::K>(&keys)?, values)?)
        })?),
        _ => {
            let parts = host_parts(&keys)?;
            let values = values.as_ref().map(host_parts).transpose()?;
            change::<T, _>(map, py, threads, keys.len(), |map| {
                let keys = full_column(parts)?;
                match values {
                    Some(values) => map.put(&keys, &full_column(values)?),
                    None => map.put(&keys, &vec![T::V::default(); keys.len()]),
                }
            })
        }
    }
}

fn delete<T: Types>(map: &Map, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<usize>) -> PyResult<()> {
    let batch = Batch::of(keys)?;
    match &batch {
        Batch::Host(parts) => change::<T, _>(map, py, threads, batch.len(), |map| map.delete(&*column(parts)?)),
        Batch::Device(keys) => Ok(map.write(py, threads, ALL_OF_IT, |value| {
            let keys = keys.adopt(on_device::<T>(value)?.device())?;
            let Where::Device(there) = value else { return Err(keys_elsewhere("in host memory")) };
            Ok(T::of_mut(there)?.remove_device(keys_on_device::<T::K>(&keys)?)?)
        })?),
    }
}

/// Values and which keys have one.
fn get_many<T: Types>(
    map: &Map,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    default: i128,
    (out, found): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    threads: Option<usize>,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let absent = T::V::of_int(default).ok_or_else(|| Failure::overflow(format!("default={default}: no such value")))?;
    let batch = Batch::of(keys)?;
    let parts = match &batch {
        Batch::Host(parts) => parts,
        Batch::Device(keys) if default == 0 && found.is_none() => {
            return get_many_on_device::<T>(map, py, keys, out, threads);
        }
        Batch::Device(_) => {
            return Err(PyValueError::new_err(
                "for keys on a device, absent ones have the value 0, and the flags are a new array: leave `default` and \
                 `found` away",
            ));
        }
    };
    let mut flags = Output::<Flag>::new(py, batch.len(), found)?;
    let values = T::V::array(py, batch.len(), out, |values| {
        let flags = bytemuck::cast_slice_mut(flags.items());
        ask::<T, _>(map, py, threads, batch.len(), |map| {
            let mut found = Vec::<u8>::with_capacity(values.len());
            each_part(parts, values, absent, |part, values| {
                let keys = T::K::column(part)?;
                let (begin, bits) = (found.len(), map.get_into(&keys, values)?);
                found.resize(begin + keys.len(), 0);
                bits_to(&mut found[begin..], bits.as_words());
                if absent != T::V::default() {
                    let absents = values.iter_mut().zip(&found[begin..]).filter(|(_, found)| **found == 0);
                    absents.for_each(|(value, _)| *value = absent);
                }
                Ok(())
            })?;
            let mut found = &found[..];
            each_part(parts, flags, 0, |_, flags| {
                let (here, after) = found.split_at(flags.len());
                flags.copy_from_slice(here);
                found = after;
                Ok(())
            })
        })
    })?;
    Ok((values, flags.finish()))
}

fn get_many_on_device<T: Types>(
    map: &Map,
    py: Python<'_>,
    keys: &DeviceKeys,
    out: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let mut flags = None;
    let values = answer_on_device(map, py, keys, out, threads, SharedItem::share, |there, keys, values| {
        let there: &lsm::gpu::Lsm<T::K, T::V> = T::of(there)?;
        let keys = keys_on_device::<T::K>(keys)?;
        let device = there.device();
        let (mut bits, mut found) = (device.alloc_zeroed(keys.len().div_ceil(64))?, device.alloc_zeroed(keys.len())?);
        there.get_device(keys, values, bits.as_mut_slice())?;
        there.contains_device(keys, found.as_mut_slice())?;
        flags = Some(found);
        Ok(())
    })?;
    let values = if T::V::DTYPE.is_some() { values } else { py.None() };
    let flags = flags.ok_or_else(|| Failure::internal("no flags"))?;
    Ok((values, Py::new(py, DeviceArray::flags(flags))?.into_any()))
}

fn contains<T: Types>(
    map: &Map,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    out: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Py<PyAny>> {
    let batch = Batch::of(keys)?;
    match &batch {
        Batch::Host(parts) => {
            let mut flags = Output::<Flag>::new(py, batch.len(), out)?;
            let items: &mut [u8] = bytemuck::cast_slice_mut(flags.items());
            ask::<T, _>(map, py, threads, batch.len(), |map| {
                each_part(parts, items, 0, |part, flags| {
                    bits_to(flags, map.contains(&*T::K::column(part)?)?.as_words());
                    Ok(())
                })
            })?;
            Ok(flags.finish())
        }
        Batch::Device(keys) => {
            answer_on_device(map, py, keys, out, threads, DeviceArray::flags, |there, keys, flags| {
                Ok(T::of(there)?.contains_device(keys_on_device::<T::K>(keys)?, flags)?)
            })
        }
    }
}

/// Ranges on the host, both ends included.
fn ranges<T: Types>(lows: &[Part], highs: &[Part]) -> Result<Vec<Ends<T>>> {
    let (lows, highs) = (full_column::<T::K>(lows)?, full_column::<T::K>(highs)?);
    if lows.len() != highs.len() {
        return Err(Failure::value(format!("{} low and {} high ends: a range has one of each", lows.len(), highs.len())));
    }
    Ok(lows.iter().zip(highs.iter()).map(|(&low, &high)| (End::Included(low), End::Included(high))).collect())
}

fn count_range<T: Types>(
    map: &Map,
    py: Python<'_>,
    (lows, highs): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
    out: Option<&Bound<'_, PyAny>>,
    threads: Option<usize>,
) -> PyResult<Py<PyAny>> {
    let (lows, highs) = (Batch::of(lows)?, Batch::of(highs)?);
    if let (Batch::Device(lows), Batch::Device(highs)) = (&lows, &highs) {
        return answer_on_device(map, py, lows, out, threads, u64::share, |there, lows, counts| {
            let there = T::of(there)?;
            let highs = highs.adopt(there.device())?;
            Ok(there.count_range_device(keys_on_device::<T::K>(lows)?, keys_on_device::<T::K>(&highs)?, counts)?)
        });
    }
    let (lows, highs, n) = (host_parts(&lows)?, host_parts(&highs)?, lows.len());
    let mut counts = Output::new(py, n, out)?;
    let items = counts.items();
    ask::<T, _>(map, py, threads, n, |map| {
        items.copy_from_slice(&map.count(&ranges::<T>(lows, highs)?)?);
        Ok(())
    })?;
    Ok(counts.finish())
}

/// Offsets, keys and values of ranges.
type Listed = (Py<PyAny>, Py<PyAny>, Py<PyAny>);

fn list_ranges<T: Types>(
    map: &Map,
    py: Python<'_>,
    (lows, highs): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
    threads: Option<usize>,
) -> PyResult<Listed> {
    let (lows, highs) = (Batch::of(lows)?, Batch::of(highs)?);
    if let (Batch::Device(lows), Batch::Device(highs)) = (&lows, &highs) {
        let found = map.read(py, threads, ALL_OF_IT, |value| {
            let there = on_device::<T>(value)?;
            let (lows, highs) = (lows.adopt(there.device())?, highs.adopt(there.device())?);
            Ok(there.range_device(keys_on_device::<T::K>(&lows)?, keys_on_device::<T::K>(&highs)?)?)
        })?;
        let values = match T::V::DTYPE {
            Some(_) => Py::new(py, SharedItem::share(found.values))?.into_any(),
            None => py.None(),
        };
        let [offsets, keys] = [u64::share(found.offsets), SharedItem::share(found.keys)];
        return Ok((Py::new(py, offsets)?.into_any(), Py::new(py, keys)?.into_any(), values));
    }
    let (lows, highs) = (host_parts(&lows)?, host_parts(&highs)?);
    // However few the ranges are, they may have all elements.
    let found = ask::<T, _>(map, py, threads, ALL_OF_IT, |map| map.list(&ranges::<T>(lows, highs)?))?;
    Ok((u64::copied(py, &found.offsets)?, T::K::copied(py, &found.keys)?, T::V::copied(py, &found.values)?))
}

/// Keys and values of one range.
fn list<T: Types>(map: &Map, py: Python<'_>, range: Ends<T>) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let found = ask::<T, _>(map, py, None, ALL_OF_IT, |map| map.list(&[range]))?;
    Ok((T::K::copied(py, &found.keys)?, T::V::copied(py, &found.values)?))
}

/// Keys and values next to keys, and which keys have such a neighbour.
fn neighbours<T: Types>(
    map: &Map,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    threads: Option<usize>,
    is_above: bool,
) -> PyResult<Listed> {
    let batch = Batch::of(keys)?;
    let parts = host_parts(&batch)?;
    let found = ask::<T, _>(map, py, threads, batch.len(), |map| {
        let keys = full_column(parts)?;
        if is_above { map.successors(&keys) } else { map.predecessors(&keys) }
    })?;
    let flags: Vec<Flag> = found.iter().map(|found| Flag(found.is_some().into())).collect();
    let (keys, values): (Vec<T::K>, Vec<T::V>) = found.into_iter().map(Option::unwrap_or_default).unzip();
    let mut answers = Output::new(py, flags.len(), None)?;
    answers.items().copy_from_slice(&flags);
    Ok((T::K::copied(py, &keys)?, T::V::copied(py, &values)?, answers.finish()))
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

fn get<T: Types>(map: &Map, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    let key = T::K::of_object(key)?;
    let value = ask::<T, _>(map, py, None, 1, |map| map.get(key))?;
    value.map(|value| value.object(py).map(Bound::unbind)).transpose()
}

/// What a key has before `change` changes it.
fn changed<T: Types>(
    map: &Map,
    key: &Bound<'_, PyAny>,
    work: impl FnOnce(&mut dyn Changes<T::K, T::V>, T::K, Option<T::V>) -> Result<()> + Send,
) -> PyResult<Option<Py<PyAny>>> {
    let (py, key) = (key.py(), T::K::of_object(key)?);
    let before = change::<T, _>(map, py, None, 1, |map| {
        let before = map.get(key)?;
        work(map, key, before)?;
        Ok(before)
    })?;
    before.map(|value| value.object(py).map(Bound::unbind)).transpose()
}

/// Removes a key, and gives its value.
fn take<T: Types>(map: &Map, key: &Bound<'_, PyAny>) -> PyResult<Option<Py<PyAny>>> {
    changed::<T>(map, key, |map, key, before| if before.is_some() { map.delete(&[key]) } else { Ok(()) })
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

fn walk<T: Types>(map: &Map, py: Python<'_>, with_values: bool) -> PyResult<SortedMapIterator> {
    let more = ask::<T, _>(map, py, None, ALL_OF_IT, |map| map.walk())?;
    let steps = Box::new(Walking::<T> { ready: Vec::new().into_iter(), more });
    Ok(SortedMapIterator { steps, with_values })
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

/// Takes over what another map has; its values count.
fn merge(map: &Map, other: &Map, py: Python<'_>) -> PyResult<()> {
    combine(
        map,
        other,
        py,
        |here, other| {
            by_pair!(here.pair(), |T| {
                let all = T::of(other)?.list(&[(End::Unbounded, End::Unbounded)])?;
                T::of_mut(here)?.put(&all.keys, &all.values)
            })
        },
        |here, other| {
            by_pair!(here.pair(), |T| {
                let all = T::of(other)?.live_elements()?;
                Ok(T::of_mut(here)?.insert_device(all.keys(), all.values())?)
            })
        },
    )
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

/// Calls a function with the types of the map.
macro_rules! typed {
    ($slf:ident, $py:ident, |$types:ident| $body:expr) => {
        by_pair!($slf.types($py)?, |$types| $body)
    };
}

impl SortedMap {
    fn types(&self, py: Python<'_>) -> PyResult<Pair> {
        Ok(self.0.read(py, None, 1, |map| Ok(pair_of(map)))?)
    }

    fn absent(key: &Bound<'_, PyAny>) -> PyErr {
        PyKeyError::new_err(key.clone().unbind())
    }
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
            if let Ok(other) = keys.cast::<Self>() {
                return self.merge(py, other.get());
            }
            let call = |name| keys.getattr_opt(name)?.map(|method| method.call0()).transpose();
            if let (None, Some(own)) = (values, call(intern!(py, "keys"))?) {
                let values = call(intern!(py, "values"))?;
                return typed!(self, py, |T| {
                    update::<T>(&self.0, py, &own, values.as_ref().filter(|_| <T as Types>::V::DTYPE.is_some()), threads)
                });
            }
            typed!(self, py, |T| update::<T>(&self.0, py, keys, values, threads))
        }

        /// Removes keys, whether they are there or not; nulls are left out.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn delete(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<usize>) -> PyResult<()> {
            typed!(self, py, |T| delete::<T>(&self.0, py, keys, threads))
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
            typed!(self, py, |T| get_many::<T>(&self.0, py, keys, default, (out, found), threads))
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
            typed!(self, py, |T| contains::<T>(&self.0, py, keys, out, threads))
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
            typed!(self, py, |T| count_range::<T>(&self.0, py, (lows, highs), out, threads))
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
        ) -> PyResult<Listed> {
            typed!(self, py, |T| list_ranges::<T>(&self.0, py, (lows, highs), threads))
        }

        /// The smallest key above each key, which need not be there: arrays `keys, values, found`, 0 where there is none.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn successors(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<usize>) -> PyResult<Listed> {
            typed!(self, py, |T| neighbours::<T>(&self.0, py, keys, threads, true))
        }

        /// The largest key below each key, which need not be there: arrays `keys, values, found`, 0 where there is none.
        #[pyo3(signature = (keys, /, *, threads=None))]
        fn predecessors(&self, py: Python<'_>, keys: &Bound<'_, PyAny>, threads: Option<usize>) -> PyResult<Listed> {
            typed!(self, py, |T| neighbours::<T>(&self.0, py, keys, threads, false))
        }

        /// The smallest key, with its value; `KeyError` if the map is empty.
        fn first<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
            typed!(self, py, |T| pair::<T>(py, ask::<T, _>(&self.0, py, None, 1, |map| map.first())?))
        }

        /// The largest key, with its value; `KeyError` if the map is empty.
        fn last<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
            typed!(self, py, |T| pair::<T>(py, ask::<T, _>(&self.0, py, None, 1, |map| map.last())?))
        }

        /// The value of a key, or `(keys, values)` of a slice: arrays of the elements from its start up to its stop, which
        /// is not part of it.
        fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
            match key.cast::<PySlice>() {
                Ok(slice) => {
                    let arrays = typed!(self, py, |T| list::<T>(&self.0, py, ends::<T>(slice)?))?;
                    Ok(arrays.into_pyobject(py)?.into_any().unbind())
                }
                Err(_) => typed!(self, py, |T| get::<T>(&self.0, py, key))?.ok_or_else(|| Self::absent(key)),
            }
        }

        fn __setitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
            typed!(self, py, |T| {
                let (key, value) = (<T as Types>::K::of_object(key)?, <T as Types>::V::of_object(value)?);
                change::<T, _>(&self.0, py, None, 1, |map| map.put(&[key], &[value]))
            })
        }

        fn __delitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
            match key.cast::<PySlice>() {
                Ok(slice) => typed!(self, py, |T| {
                    let range = ends::<T>(slice)?;
                    change::<T, _>(&self.0, py, None, ALL_OF_IT, |map| map.delete_range(range))
                }),
                Err(_) => {
                    typed!(self, py, |T| take::<T>(&self.0, key))?.map(|_| ()).ok_or_else(|| Self::absent(key))
                }
            }
        }

        fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
            Ok(typed!(self, py, |T| get::<T>(&self.0, py, key))?.is_some())
        }

        /// The value of a key, or `default` if it is absent.
        #[pyo3(signature = (key, default=None, /))]
        fn get(
            &self,
            py: Python<'_>,
            key: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            Ok(typed!(self, py, |T| get::<T>(&self.0, py, key))?.or(default))
        }

        /// Removes a key and gives its value; if it is absent, gives `default`, or raises `KeyError` if none is named.
        #[pyo3(signature = (key, /, *default))]
        fn pop(&self, py: Python<'_>, key: &Bound<'_, PyAny>, default: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
            if default.len() > 1 {
                return Err(PyTypeError::new_err("pop takes a key and one default"));
            }
            match typed!(self, py, |T| take::<T>(&self.0, key))? {
                Some(value) => Ok(value),
                None => default.get_item(0).map(Bound::unbind).map_err(|_| Self::absent(key)),
            }
        }

        /// Removes the largest key and gives it with its value; `KeyError` if the map is empty.
        fn popitem<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
            typed!(self, py, |T| pair::<T>(py, change::<T, _>(&self.0, py, None, 1, |map| {
                let last = map.last()?;
                last.map_or(Ok(()), |(key, _)| map.delete(&[key]))?;
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
            let value = default.as_ref().unwrap_or(&none).bind(py);
            Ok(typed!(self, py, |T| {
                let value = <T as Types>::V::of_object(value)?;
                changed::<T>(&self.0, key, |map, key, before| match before {
                    Some(_) => Ok(()),
                    None => map.put(&[key], &[value]),
                })
            })?.or(default))
        }

        /// Removes everything.
        fn clear(&self, py: Python<'_>) -> PyResult<()> {
            typed!(self, py, |T| change::<T, _>(&self.0, py, None, ALL_OF_IT, |map| map.remove_all()))
        }

        /// Drops elements that were removed or replaced. Answers stay as they are, memory and time for them shrink.
        fn cleanup(&self, py: Python<'_>) -> PyResult<()> {
            typed!(self, py, |T| change::<T, _>(&self.0, py, None, ALL_OF_IT, |map| map.compact()))
        }

        /// Inserts what another map of the same types has; where both have a key, the other one's value counts.
        fn merge(&self, py: Python<'_>, other: &Self) -> PyResult<()> {
            merge(&self.0, &other.0, py)
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
            Ok(typed!(self, py, |T| list::<T>(&self.0, py, (End::Unbounded, End::Unbounded)))?.0)
        }

        /// All values, in the order of their keys, as an array; None for a set.
        fn values(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            Ok(typed!(self, py, |T| list::<T>(&self.0, py, (End::Unbounded, End::Unbounded)))?.1)
        }

        /// Iterates over pairs of keys and values, ascending, as they are now, whatever happens to the map meanwhile. As
        /// arrays they are `map[:]`.
        fn items(&self, py: Python<'_>) -> PyResult<SortedMapIterator> {
            typed!(self, py, |T| walk::<T>(&self.0, py, true))
        }

        /// Iterates over the keys, ascending, as they are now, whatever happens to the map meanwhile.
        fn __iter__(&self, py: Python<'_>) -> PyResult<SortedMapIterator> {
            typed!(self, py, |T| walk::<T>(&self.0, py, false))
        }

        /// How many keys there are. After an update, the first call walks through all of them.
        fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
            let len = typed!(self, py, |T| ask::<T, _>(&self.0, py, None, ALL_OF_IT, |map| map.live_len()))?;
            Ok(isize::try_from(len).unwrap_or(isize::MAX) as usize)
        }

        fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
            typed!(self, py, |T| ask::<T, _>(&self.0, py, None, 1, |map| Ok(map.first()?.is_some())))
        }

        /// The types of keys and values, by their names in NumPy.
        #[getter]
        fn dtypes(&self, py: Python<'_>) -> PyResult<(&'static str, Option<&'static str>)> {
            Ok(self.types(py)?.names())
        }

        /// Elements that are stored: keys with their values, and what the next cleanup drops.
        #[getter]
        fn stored(&self, py: Python<'_>) -> PyResult<u64> {
            typed!(self, py, |T| ask::<T, _>(&self.0, py, None, 1, |map| Ok(map.stored_len())))
        }

        /// Bytes of memory that elements and search indexes take.
        #[getter]
        fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
            typed!(self, py, |T| ask::<T, _>(&self.0, py, None, 1, |map| Ok(map.bytes())))
        }
    }
}
