//! Methods of the dictionary, generic over its types.

use std::borrow::Cow;
use std::ops::{Range, RangeBounds, RangeFull};

use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};
use warpset::gpu;
use warpset::lsm::OrderedMap;
use warpset::lsm::gpu::DeviceValue;
use warpset_base::bitmap::bits_to;

use super::cell::{Cell, DeviceItem, StoredKey, Value, keys_on_device};
use super::types::{End, Settled, Sorted, Types};
use crate::device::{DeviceArray, DeviceKeys, SharedItem};
use crate::error::{Failure, Result};
use crate::filter::answer_on_device;
use crate::keys::{AT_ONCE, ArrayKeys, Batch, Piece, each_group, overlap};
use crate::output::{Flag, Output};
use crate::structure::{ALL_OF_IT, Object, Where, keys_elsewhere};
use crate::threads::{Threads, run};

pub type Any<'a, 'py> = &'a Bound<'py, PyAny>;
type Ends<T> = (End<<T as Types>::K>, End<<T as Types>::K>);
type Element<T> = (<T as Types>::K, <T as Types>::V);
/// All keys.
pub const ALL: RangeFull = ..;
/// Three arrays.
pub type Three = (Py<PyAny>, Py<PyAny>, Py<PyAny>);

/// Operation that combines values.
#[derive(Clone, Copy)]
pub enum Combined {
    Sum,
    Min,
    Max,
    Or,
}

impl Combined {
    /// Returns the operation with this name.
    pub fn by(name: &str) -> Result<Combined> {
        match name {
            "sum" => Ok(Combined::Sum),
            "min" => Ok(Combined::Min),
            "max" => Ok(Combined::Max),
            "or" => Ok(Combined::Or),
            _ => Err(Failure::value(format!("by={name:?}: there are \"sum\", \"min\", \"max\" and \"or\""))),
        }
    }
}

/// A call of a method.
#[derive(Clone, Copy)]
pub struct Call<'a, 'py> {
    pub map: &'a Object<Sorted>,
    pub py: Python<'py>,
    pub threads: Option<Threads>,
}

/// Query of the dictionary, under the name `$it`, in any place.
macro_rules! ask {
    ($call:expr, $types:ident, $keys:expr, |$it:ident| $body:expr) => {
        $call.map.read($call.py, $call.threads, $keys, |value| {
            $crate::anywhere!(value, |typed| {
                let $it = $types::of(typed)?;
                $body
            })
        })
    };
}

/// Change of the dictionary, under the name `$it`, on the host or a device.
macro_rules! change {
    ($call:expr, $types:ident, $keys:expr, |$it:ident| $body:expr) => {
        $call.map.write($call.py, $call.threads, $keys, |value| {
            $crate::changing!(value, |typed| {
                let $it = $types::of_mut(typed)?;
                $body
            })
        })
    };
}

/// Query or change of the dictionary on its device; elsewhere, device arrays are an error.
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

pub(super) use {ask, change};

/// Returns the parts of an array in host memory.
pub fn host_parts(batch: &Batch) -> Result<&[ArrayKeys]> {
    match batch {
        Batch::Host(parts) => Ok(parts),
        Batch::Device(_) => Err(Failure::wrong_type(
            "an array on a device where one of the host is expected: all arrays of a call are on one side; copy this one \
             (`.get()`, `.cpu()`)",
        )),
    }
}

/// Returns an array in host memory as pieces.
pub fn host_pieces(batch: &Batch) -> Result<Vec<Piece<'_>>> {
    Ok(host_parts(batch)?.iter().map(ArrayKeys::piece).collect())
}

/// Returns all keys of pieces, without their nulls.
pub fn column<'a, C: Cell>(pieces: &[Piece<'a>]) -> Result<Cow<'a, [C]>> {
    if let [piece] = *pieces {
        return C::column(piece);
    }
    let columns: Vec<_> = pieces.iter().copied().map(C::column).collect::<Result<_>>()?;
    Ok(columns.concat().into())
}

/// Returns keys with their values, without null keys; a null value is an error.
pub fn pairs<'a, K: Cell, V: Cell>(keys: &[Piece<'a>], values: &[Piece<'a>]) -> Result<Pairs<'a, K, V>> {
    let values = values_of(keys, values)?;
    Ok((column(keys)?, values))
}

/// Returns the values of keys, without those of null keys; a null value is an error.
pub fn values_of<'a, V: Cell>(keys: &[Piece<'_>], values: &[Piece<'a>]) -> Result<Cow<'a, [V]>> {
    if values.iter().any(Piece::has_nulls) {
        return Err(Failure::value("values with nulls: fill them, or drop them with their keys"));
    }
    let (n, values) = (keys.iter().map(Piece::len).sum::<usize>(), column(values)?);
    if n != values.len() {
        return Err(Failure::value(format!("{n} keys and {} values: pass one for each", values.len())));
    }
    if !keys.iter().any(Piece::has_nulls) {
        return Ok(values);
    }
    let present = keys.iter().flat_map(Piece::places);
    Ok(values.iter().zip(present).filter(|value| value.1).map(|value| *value.0).collect())
}

/// Keys, and one value per key.
pub type Pairs<'a, K, V> = (Cow<'a, [K]>, Cow<'a, [V]>);

/// Writes the answers of keys to their places in the pieces, and `absent` to the places of nulls.
fn spread<T: Copy>(pieces: &[Piece<'_>], answers: &[T], mut places: &mut [T], absent: T) {
    let mut begin = 0;
    for piece in pieces {
        let (here, after) = places.split_at_mut(piece.len());
        piece.spread(&answers[begin..begin + piece.count()], here, absent);
        (begin, places) = (begin + piece.count(), after);
    }
}

/// Copies keys that share memory with answers: a caller may pass one array as `keys` and `out`.
fn apart<'a, K: Clone, V>(keys: Cow<'a, [K]>, answers: &[V]) -> Cow<'a, [K]> {
    if overlap(&keys, answers) { keys.into_owned().into() } else { keys }
}

/// Returns ranges on the host, both ends included, by the pieces of their ends and the keys there; a range with a null
/// end is empty.
pub fn ranges<K: Copy + Default>(
    (lows, low_keys): (&[Piece<'_>], &[K]),
    (highs, high_keys): (&[Piece<'_>], &[K]),
) -> Result<Vec<(End<K>, End<K>)>> {
    let (lows, highs) = (with_nulls(lows, low_keys), with_nulls(highs, high_keys));
    if lows.len() != highs.len() {
        return Err(Failure::value(format!(
            "{} low and {} high ends: a range has one of each",
            lows.len(),
            highs.len()
        )));
    }
    let range = |ends: (Option<K>, Option<K>)| match ends {
        (Some(low), Some(high)) => (End::Included(low), End::Included(high)),
        // An empty range.
        _ => (End::Included(K::default()), End::Excluded(K::default())),
    };
    Ok(lows.into_iter().zip(highs).map(range).collect())
}

/// Returns the keys of pieces, with their nulls.
fn with_nulls<K: Copy>(pieces: &[Piece<'_>], keys: &[K]) -> Vec<Option<K>> {
    let mut keys = keys.iter().copied();
    pieces.iter().flat_map(Piece::places).map(|is_there| if is_there { keys.next() } else { None }).collect()
}

/// Returns the range of a slice, without its stop.
pub fn ends<T: Types>(slice: &Bound<'_, PySlice>) -> PyResult<Ends<T>> {
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

/// Wraps answers as a device array, or returns `None` for the values of a set.
pub fn shared<A: SharedItem>(py: Python<'_>, items: gpu::DeviceVec<A>, is_there: bool) -> PyResult<Py<PyAny>> {
    if is_there { Ok(Py::new(py, A::share(items))?.into_any()) } else { Ok(py.None()) }
}

impl Call<'_, '_> {
    pub fn update<T: Types>(self, keys: Any<'_, '_>, values: Option<Any<'_, '_>>) -> PyResult<()> {
        match (values, T::V::DTYPE) {
            (None, Some(_)) => {
                return Err(PyTypeError::new_err("values are missing: `update(keys, values)`"));
            }
            (Some(_), None) => return Err(PyTypeError::new_err("with value=None there are no values: `update(keys)`")),
            _ => {}
        }
        let (keys, values) = (T::K::batch(keys)?, values.map(T::V::batch).transpose()?);
        match (&keys, &values) {
            (Batch::Device(keys), None) => on_device!(self, write, T, of_mut, |map| {
                let (keys, none) = (keys.adopt(map.device())?, map.device().alloc_zeroed(0)?);
                Ok(map.insert_device(keys_on_device::<T::K>(&keys)?, none.as_slice())?)
            }),
            (Batch::Device(keys), Some(Batch::Device(values))) => on_device!(self, write, T, of_mut, |map| {
                let (keys, values) = (keys.adopt(map.device())?, values.adopt(map.device())?);
                Ok(map.insert_device(keys_on_device::<T::K>(&keys)?, T::V::slice_there(&values)?)?)
            }),
            _ => {
                let (pieces, values) = (host_pieces(&keys)?, values.as_ref().map(host_pieces).transpose()?);
                let (keys, values) = run(self.py, self.threads, keys.len(), || match values {
                    Some(values) => pairs::<T::K, T::V>(&pieces, &values),
                    None => {
                        let keys = column(&pieces)?;
                        let values = vec![T::V::default(); keys.len()];
                        Ok((keys, values.into()))
                    }
                })?;
                return self.in_parts(keys.len(), |part| {
                    let (keys, values) = (&keys[part.clone()], &values[part]);
                    change!(self, T, keys.len(), |map| Ok(map.insert_bulk(keys, values)?))
                });
            }
        }?;
        Ok(())
    }

    /// Changes a map in steps of at most `AT_ONCE` keys. Between two steps, signals are handled.
    fn in_parts(self, keys: usize, mut change: impl FnMut(Range<usize>) -> Result<()>) -> PyResult<()> {
        for begin in (0..keys.max(1)).step_by(AT_ONCE) {
            if begin > 0 {
                self.py.check_signals()?;
            }
            change(begin..keys.min(begin + AT_ONCE))?;
        }
        Ok(())
    }

    /// Combines values with those of keys; without `values`, 1 for each key.
    pub fn upsert<T: Types>(self, keys: Any<'_, '_>, values: Option<Any<'_, '_>>, by: Combined) -> PyResult<()> {
        let (keys, values) = (T::K::batch(keys)?, values.map(T::V::batch).transpose()?);
        let (pieces, values) = (host_pieces(&keys)?, values.as_ref().map(host_pieces).transpose()?);
        let one = T::V::of_int(1).filter(|one| one.combined(*one, by).is_some());
        let one =
            one.ok_or_else(|| Failure::wrong_type("values of this map are no numbers, which could be combined"))?;
        let (keys, values) = run(self.py, self.threads, keys.len(), || match values {
            Some(values) => pairs::<T::K, T::V>(&pieces, &values),
            None => {
                let keys = column(&pieces)?;
                let values = vec![one; keys.len()];
                Ok((keys, values.into()))
            }
        })?;
        self.in_parts(keys.len(), |part| {
            let (keys, values) = (&keys[part.clone()], &values[part]);
            change!(self, T, keys.len(), |map| {
                let combine = |before: T::V, after: T::V| before.combined(after, by).unwrap_or(after);
                Ok(OrderedMap::upsert_bulk_with(map, keys, values, combine)?)
            })
        })
    }

    pub fn delete<T: Types>(self, keys: Any<'_, '_>) -> PyResult<()> {
        let batch = T::K::batch(keys)?;
        match &batch {
            Batch::Host(parts) => each_group(self.py, parts, |group, places| {
                Ok(change!(self, T, places.len(), |map| Ok(map.remove_bulk(&column(group)?)?))?)
            }),
            Batch::Device(keys) => Ok(on_device!(self, write, T, of_mut, |map| {
                Ok(map.remove_device(keys_on_device::<T::K>(&keys.adopt(map.device())?)?)?)
            })?),
        }
    }

    /// Returns the values of keys, and which keys are present.
    pub fn get_many<T: Types>(
        self,
        keys: Any<'_, '_>,
        default: i128,
        out: Option<Any<'_, '_>>,
        found: Option<Any<'_, '_>>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let wrong = || Failure::overflow(format!("default={default} is out of the range of values"));
        let absent = T::V::of_int(default).ok_or_else(wrong)?;
        let batch = T::K::batch(keys)?;
        let parts = match &batch {
            Batch::Host(parts) => parts,
            Batch::Device(keys) if default == 0 && found.is_none() => return T::V::answers_there::<T>(self, keys, out),
            Batch::Device(_) => {
                return Err(PyValueError::new_err(
                    "for keys on a device, absent ones have the value 0, and the flags are a new array: leave `default` \
                     and `found` away",
                ));
            }
        };
        let mut flags = Output::<Flag>::new(self.py, batch.len(), found)?;
        let values = T::V::array(self.py, batch.len(), out, |values| {
            let flags: &mut [u8] = bytemuck::cast_slice_mut(flags.items());
            each_group(self.py, parts, |group, places| {
                let (values, flags) = (&mut values[places.clone()], &mut flags[places]);
                Ok(ask!(self, T, flags.len(), |map| {
                    let keys = apart(column::<T::K>(group)?, values);
                    if group.iter().any(Piece::has_nulls) {
                        let (mut found, mut is_found) = (vec![T::V::default(); keys.len()], vec![0; keys.len()]);
                        bits_to::<u8>(&mut is_found, map.get_bulk_into(&keys, &mut found)?.as_words());
                        spread(group, &found, values, T::V::default());
                        spread(group, &is_found, flags, 0);
                    } else {
                        bits_to::<u8>(flags, map.get_bulk_into(&keys, values)?.as_words());
                    }
                    if absent != T::V::default() {
                        let absents = values.iter_mut().zip(&*flags).filter(|(_, found)| **found == 0);
                        absents.for_each(|(value, _)| *value = absent);
                    }
                    Ok(())
                })?)
            })
        })?;
        Ok((values, flags.finish()))
    }

    pub fn get_many_on_device<T: Types>(
        self,
        keys: &DeviceKeys,
        out: Option<Any<'_, '_>>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)>
    where
        <T::V as DeviceValue>::Stored: DeviceItem,
    {
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

    pub fn contains<T: Types>(self, keys: Any<'_, '_>, out: Option<Any<'_, '_>>) -> PyResult<Py<PyAny>> {
        let batch = T::K::batch(keys)?;
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
        let items: &mut [u8] = bytemuck::cast_slice_mut(flags.items());
        each_group(self.py, parts, |group, places| {
            let items = &mut items[places];
            Ok(ask!(self, T, items.len(), |map| {
                let keys = column(group)?;
                let mut found = vec![0u8; keys.len()];
                bits_to::<u8>(&mut found, map.contains_bitmap_bulk(&keys).settled()?.as_words());
                spread(group, &found, items, 0);
                Ok(())
            })?)
        })?;
        Ok(flags.finish())
    }

    pub fn count_range<T: Types>(
        self,
        lows: Any<'_, '_>,
        highs: Any<'_, '_>,
        out: Option<Any<'_, '_>>,
    ) -> PyResult<Py<PyAny>> {
        let (lows, highs) = (T::K::batch(lows)?, T::K::batch(highs)?);
        if let (Batch::Device(lows), Batch::Device(highs)) = (&lows, &highs) {
            return answer_on_device(self.map, self.py, lows, out, self.threads, u64::share, |there, lows, counts| {
                let map = T::of(there)?;
                let highs = highs.adopt(map.device())?;
                Ok(map.count_range_device(keys_on_device::<T::K>(lows)?, keys_on_device::<T::K>(&highs)?, counts)?)
            });
        }
        let (lows, highs, n) = (host_pieces(&lows)?, host_pieces(&highs)?, lows.len());
        let mut counts = Output::new(self.py, n, out)?;
        let items = counts.items();
        // A few ranges may contain all elements.
        ask!(self, T, ALL_OF_IT, |map| {
            items.copy_from_slice(
                &map.count_range_bulk(&ranges((&lows, &column::<T::K>(&lows)?), (&highs, &column(&highs)?))?)
                    .settled()?,
            );
            Ok(())
        })?;
        Ok(counts.finish())
    }

    /// Returns offsets, keys and values of ranges.
    pub fn range<T: Types>(self, lows: Any<'_, '_>, highs: Any<'_, '_>) -> PyResult<Three> {
        let (py, lows, highs) = (self.py, T::K::batch(lows)?, T::K::batch(highs)?);
        if let (Batch::Device(lows), Batch::Device(highs)) = (&lows, &highs) {
            let found = on_device!(self, read, T, of, |map| {
                let (lows, highs) = (lows.adopt(map.device())?, highs.adopt(map.device())?);
                Ok(map.range_device(keys_on_device::<T::K>(&lows)?, keys_on_device::<T::K>(&highs)?)?)
            })?;
            let values = T::V::share_there(py, found.values)?;
            return Ok((shared(py, found.offsets, true)?, StoredKey::share_there(py, found.keys)?, values));
        }
        let (lows, highs) = (host_pieces(&lows)?, host_pieces(&highs)?);
        let found = ask!(self, T, ALL_OF_IT, |map| Ok(
            map.range_bulk(&ranges((&lows, &column::<T::K>(&lows)?), (&highs, &column(&highs)?))?)?
        ))?;
        Ok((u64::copied(py, &found.offsets)?, T::K::copied(py, &found.keys)?, T::V::copied(py, &found.values)?))
    }

    /// Returns keys and values of one range.
    pub fn list<T: Types>(
        self,
        range: impl RangeBounds<T::K> + Copy + Send + Sync,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let found = ask!(self, T, ALL_OF_IT, |map| Ok(map.range_bulk(&[range])?))?;
        Ok((T::K::copied(self.py, &found.keys)?, T::V::copied(self.py, &found.values)?))
    }

    /// Returns the neighbours of keys with their values, and which keys have one.
    pub fn neighbours<T: Types>(self, keys: Any<'_, '_>, is_above: bool) -> PyResult<Three> {
        let batch = T::K::batch(keys)?;
        let pieces = host_pieces(&batch)?;
        let found = ask!(self, T, ALL_OF_IT, |map| {
            let keys = column(&pieces)?;
            let found = if is_above { map.successor_bulk(&keys) } else { map.predecessor_bulk(&keys) }.settled()?;
            let mut answers = vec![None; batch.len()];
            spread(&pieces, &found, &mut answers, None);
            Ok(answers)
        })?;
        let flags: Vec<Flag> = found.iter().map(|found| Flag(found.is_some().into())).collect();
        let (keys, values): (Vec<T::K>, Vec<T::V>) = found.into_iter().map(Option::unwrap_or_default).unzip();
        let mut answers = Output::new(self.py, flags.len(), None)?;
        answers.items().copy_from_slice(&flags);
        Ok((T::K::copied(self.py, &keys)?, T::V::copied(self.py, &values)?, answers.finish()))
    }

    pub fn get<T: Types>(self, key: Any<'_, '_>) -> PyResult<Option<Py<PyAny>>> {
        let key = T::K::of_object(key)?;
        let value = self.map.read(self.py, None, 1, |value| {
            Ok(match value {
                Where::Host(map) => T::of(map)?.get(key),
                Where::Mapped(map, _) => T::of(map)?.get(key),
                Where::Device(map) => T::of(map)?.get_bulk(&[key])?.pop().flatten(),
            })
        })?;
        value.map(|value| value.object(self.py).map(Bound::unbind)).transpose()
    }

    /// Replaces the value of a key by `after(old)`, and returns the old one.
    pub fn replace<T: Types>(
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
}

/// Returns a key and its value as a tuple.
pub fn pair<'py, T: Types>(py: Python<'py>, element: Option<Element<T>>) -> PyResult<Bound<'py, PyTuple>> {
    let (key, value) = element.ok_or_else(|| PyKeyError::new_err("the map is empty"))?;
    (key.object(py)?, value.object(py)?).into_pyobject(py)
}
