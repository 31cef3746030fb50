//! Methods with keys, shared by the classes of filters.

use std::ops::Range;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warpset::gpu::{ArrayItem, DeviceSlice, DeviceSliceMut, DeviceVec, GpuError};
use warpset::prelude::{DeviceFilter, DeviceInsert, Filter, Insert, TestAndInsert};
use warpset::primitives;

use crate::device::{self, Adopted, DeviceArray, DeviceKeys, SharedItem};
use crate::error::{Failure, Result};
use crate::keys::{
    AT_ONCE, ArrayKeys, Batch, Gathered, HostKeys, OneKey, Piece, each_group, is_null, is_one_key, items, one_key,
    overlap,
};
use crate::output::{Answers, Output};
use crate::structure::{Object, Structure, Where, keys_elsewhere};
use crate::threads::{ON_DEVICE, Threads};
use crate::{anywhere, arrow, changing, with_device_keys, with_key, with_keys};

/// Lookups of keys on the host, whatever their type.
pub trait Lookups: Send + Sync {
    /// Whether one key may be in the filter.
    fn contains_one(&self, key: &OneKey<'_>) -> Result<bool>;
    /// Writes whether each key may be in the filter, as bytes 0 and 1.
    fn contains_into(&self, keys: HostKeys<'_>, answers: &mut [u8]) -> Result<()>;
    /// Counts the keys that may be in the filter.
    fn count_contained(&self, keys: HostKeys<'_>) -> Result<usize>;
}

impl<F: Filter + Send + Sync> Lookups for F
where
    Failure: From<F::Error>,
{
    fn contains_one(&self, key: &OneKey<'_>) -> Result<bool> {
        Ok(with_key!(key, |key| self.contains(key))?)
    }

    fn contains_into(&self, keys: HostKeys<'_>, answers: &mut [u8]) -> Result<()> {
        Ok(with_keys!(keys, |keys| self.contains_bytes_bulk_into(keys, answers))?)
    }

    fn count_contained(&self, keys: HostKeys<'_>) -> Result<usize> {
        Ok(with_keys!(keys, |keys| self.count_contained_bulk(keys))?)
    }
}

/// Changes by keys on the host.
pub trait Changes: Lookups {
    /// Inserts one key.
    fn insert_one(&mut self, key: &OneKey<'_>) -> Result<()>;
    /// Inserts keys.
    fn insert(&mut self, keys: HostKeys<'_>) -> Result<()>;
    /// Inserts keys and returns which of them were new.
    fn test_and_insert(&mut self, keys: HostKeys<'_>) -> Result<Vec<bool>>;
    /// Removes all keys.
    fn remove_all(&mut self) -> Result<()>;
    /// Adds the contents of another filter.
    fn unite(&mut self, other: &Self) -> Result<()>;
}

impl<F: TestAndInsert + Send + Sync> Changes for F
where
    Failure: From<F::Error>,
{
    fn insert_one(&mut self, key: &OneKey<'_>) -> Result<()> {
        Ok(with_key!(key, |key| Insert::insert(self, key))?)
    }

    fn insert(&mut self, keys: HostKeys<'_>) -> Result<()> {
        with_keys!(keys, |keys| self.insert_bulk(keys))?;
        Ok(())
    }

    fn test_and_insert(&mut self, keys: HostKeys<'_>) -> Result<Vec<bool>> {
        Ok(with_keys!(keys, |keys| self.test_and_insert_bulk(keys))?)
    }

    fn remove_all(&mut self) -> Result<()> {
        Ok(Insert::clear(self)?)
    }

    fn unite(&mut self, other: &Self) -> Result<()> {
        Ok(self.merge(other)?)
    }
}

/// Lookups of keys on a device.
pub trait DeviceLookups: Lookups {
    /// Writes whether each key may be in the filter, as bytes 0 and 1.
    fn contains_on_device(&self, keys: &Adopted<'_>, answers: DeviceSliceMut<'_, u8>) -> Result<()>;
    /// Counts the keys that may be in the filter.
    fn count_contained_on_device(&self, keys: &Adopted<'_>) -> Result<usize>;
}

impl<F, E> DeviceLookups for F
where
    F: Filter<Error = E>
        + for<'k> DeviceFilter<DeviceSlice<'k, u32>>
        + for<'k> DeviceFilter<DeviceSlice<'k, i32>>
        + for<'k> DeviceFilter<DeviceSlice<'k, u64>>
        + Send
        + Sync,
    E: std::error::Error + From<GpuError> + From<primitives::Error> + Send + Sync + 'static,
    Failure: From<E>,
{
    fn contains_on_device(&self, keys: &Adopted<'_>, answers: DeviceSliceMut<'_, u8>) -> Result<()> {
        Ok(with_device_keys!(keys, |keys| self.contains_device(keys, answers))?)
    }

    fn count_contained_on_device(&self, keys: &Adopted<'_>) -> Result<usize> {
        Ok(with_device_keys!(keys, |keys| self.count_contained_device(keys))?)
    }
}

/// Changes by keys on a device.
pub trait DeviceChanges: Changes {
    /// Inserts keys.
    fn insert_on_device(&mut self, keys: &Adopted<'_>) -> Result<()>;
}

impl<F: DeviceInsert + TestAndInsert + Send + Sync> DeviceChanges for F
where
    Failure: From<F::Error>,
{
    fn insert_on_device(&mut self, keys: &Adopted<'_>) -> Result<()> {
        with_device_keys!(keys, |keys| self.insert_device(keys))?;
        Ok(())
    }
}

/// Structure with filters in all forms.
pub trait Asked: Structure<Host: Lookups, Mapped: Lookups, Device: DeviceLookups> {}
impl<S: Structure<Host: Lookups, Mapped: Lookups, Device: DeviceLookups>> Asked for S {}

/// Filter that can change.
pub trait Grown: Asked + Structure<Host: Changes, Mapped: Lookups, Device: DeviceLookups + DeviceChanges> {}
impl<S: Asked + Structure<Host: Changes, Mapped: Lookups, Device: DeviceLookups + DeviceChanges>> Grown for S {}

/// Whether one key may be in the filter.
pub fn contains_one<S: Asked>(object: &Object<S>, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
    let key = one_key(key)?;
    Ok(object.read(py, None, 1, |filter| anywhere!(filter, |filter| filter.contains_one(&key)))?)
}

/// Returns whether each key may be in the filter; nulls are in none.
pub fn contains<S: Asked>(
    object: &Object<S>,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    form: &str,
    out: Option<&Bound<'_, PyAny>>,
    threads: Option<Threads>,
) -> PyResult<Py<PyAny>> {
    let batch = Batch::of(keys)?;
    let n = batch.len();
    match batch {
        Batch::Host(parts) => {
            let mut answers = Answers::new(py, n, form, out)?;
            let items = answers.items();
            each_group(py, &parts, |group, places| {
                let (n, items) = (places.len(), &mut items[places]);
                Ok(object.read(py, threads, n, |filter| {
                    answer(group, items, 0, |keys, answers| {
                        anywhere!(filter, |filter| filter.contains_into(keys, answers))
                    })
                })?)
            })?;
            answers.finish(py)
        }
        Batch::Device(_) if form != "bool" => Err(PyValueError::new_err(format!(
            "form={form:?}: answers for keys on a device are booleans there; leave `form` away"
        ))),
        Batch::Device(keys) => {
            answer_on_device(object, py, &keys, out, threads, DeviceArray::flags, |filter, keys, answers| {
                filter.contains_on_device(keys, answers)
            })
        }
    }
}

/// Answers keys on a device with a structure there, in `out` or in a new array.
pub fn answer_on_device<S: Structure, T: ArrayItem + Send>(
    object: &Object<S>,
    py: Python<'_>,
    keys: &DeviceKeys,
    out: Option<&Bound<'_, PyAny>>,
    threads: Option<Threads>,
    array: impl FnOnce(DeviceVec<T>) -> DeviceArray,
    work: impl FnOnce(&S::Device, &Adopted<'_>, DeviceSliceMut<'_, T>) -> Result<()> + Send,
) -> PyResult<Py<PyAny>> {
    let device = object.read(py, None, 1, |value| match value {
        Where::Device(there) => Ok(S::device(there).clone()),
        _ => Err(keys_elsewhere("in host memory")),
    })?;
    let adopted = keys.adopt(&device)?;
    let fill = |answers: DeviceSliceMut<'_, T>| {
        object.read(py, threads, ON_DEVICE, |value| match value {
            Where::Device(there) => work(there, &adopted, answers),
            _ => Err(keys_elsewhere("in host memory")),
        })
    };
    match out {
        Some(out) => {
            fill(device::output::<T>(&device, out, keys.len())?.as_mut_slice())?;
            Ok(out.clone().unbind())
        }
        None => {
            let mut ours = device.alloc_zeroed::<T>(keys.len()).map_err(Failure::from)?;
            fill(ours.as_mut_slice())?;
            Ok(Py::new(py, array(ours))?.into_any())
        }
    }
}

/// Returns a number per key as an array of `uint64`, or `out`, filled; nulls have `absent`.
#[allow(clippy::too_many_arguments, reason = "those of the methods, and their work")]
pub fn numbers<S: Structure>(
    object: &Object<S>,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    out: Option<&Bound<'_, PyAny>>,
    threads: Option<Threads>,
    absent: u64,
    on_host: impl Fn(&Where<S>, HostKeys<'_>, &mut [u64]) -> Result<()> + Sync,
    on_device: impl FnOnce(&S::Device, &Adopted<'_>, DeviceSliceMut<'_, u64>) -> Result<()> + Send,
) -> PyResult<Py<PyAny>> {
    let batch = Batch::of(keys)?;
    match &batch {
        Batch::Host(parts) => {
            let mut numbers = Output::<u64>::new(py, batch.len(), out)?;
            let items = numbers.items();
            each_group(py, parts, |group, places| {
                let (n, items) = (places.len(), &mut items[places]);
                Ok(object.read(py, threads, n, |value| {
                    answer(group, items, absent, |keys, numbers| on_host(value, keys, numbers))
                })?)
            })?;
            Ok(numbers.finish())
        }
        Batch::Device(keys) => answer_on_device(object, py, keys, out, threads, u64::share, on_device),
    }
}

/// Counts the keys that may be in the filter.
pub fn count_contained<S: Asked>(
    object: &Object<S>,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    threads: Option<Threads>,
) -> PyResult<usize> {
    Ok(match Batch::of(keys)? {
        Batch::Host(parts) => {
            let mut count = 0;
            each_group(py, &parts, |group, places| {
                count += object.read(py, threads, places.len(), |filter| {
                    group.iter().try_fold(0, |count, piece| {
                        anywhere!(filter, |filter| filter.count_contained(piece.keys())).map(|more| count + more)
                    })
                })?;
                Ok(())
            })?;
            count
        }
        Batch::Device(keys) => object.read(py, threads, ON_DEVICE, |filter| {
            let Where::Device(filter) = filter else { return Err(keys_elsewhere("in host memory")) };
            let adopted = keys.adopt(S::device(filter))?;
            filter.count_contained_on_device(&adopted)
        })?,
    })
}

/// Inserts one key.
pub fn add<S: Grown>(object: &Object<S>, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<()> {
    let key = one_key(key)?;
    Ok(object.write(py, None, 1, |filter| changing!(filter, |filter| filter.insert_one(&key)))?)
}

/// Keys collected from an iterable before they are inserted.
const GATHERED: usize = 1 << 16;

/// Inserts the keys of an array, or of an iterable of keys and arrays, piece by piece.
pub fn update<S: Grown>(
    object: &Object<S>,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    threads: Option<Threads>,
) -> PyResult<()> {
    each_batch(keys, &mut |batch| insert(object, py, batch, threads))
}

/// Calls `work` with the batch of an object, or with the batches of an iterable of keys and arrays.
pub fn each_batch(object: &Bound<'_, PyAny>, work: &mut dyn FnMut(&Batch) -> PyResult<()>) -> PyResult<()> {
    if let Some(mut parts) = arrow::parts(object)? {
        return parts.try_for_each(|part| {
            work(&Batch::Host(vec![part?]))?;
            object.py().check_signals()
        });
    }
    if let Some(batch) = Batch::of_array(object)? {
        return work(&batch);
    }
    let mut gathered = Gathered::default();
    for item in items(object)? {
        let item = item?;
        if !is_one_key(&item)
            && !is_null(&item)?
            && one_key(&item).is_err()
            && let Some(batch) = Batch::of_array(&item)?
        {
            work(&batch)?;
            continue;
        }
        gathered.push(&item)?;
        if gathered.len() == GATHERED {
            work(&Batch::Host(vec![gathered.take()]))?;
        }
    }
    if gathered.len() > 0 { work(&Batch::Host(vec![gathered.take()])) } else { Ok(()) }
}

fn insert<S: Grown>(object: &Object<S>, py: Python<'_>, batch: &Batch, threads: Option<Threads>) -> PyResult<()> {
    match batch {
        Batch::Host(parts) => each_change(object, py, parts, |group, places| {
            Ok(object.write(py, threads, places.len(), |filter| {
                for piece in group {
                    changing!(&mut *filter, |filter| filter.insert(piece.keys()))?;
                }
                Ok(())
            })?)
        }),
        Batch::Device(keys) => Ok(object.write(py, threads, ON_DEVICE, |filter| {
            let Where::Device(filter) = filter else { return Err(keys_elsewhere("in host memory")) };
            let adopted = keys.adopt(S::device(filter))?;
            filter.insert_on_device(&adopted)
        })?),
    }
}

/// Calls `work` with groups of pieces if the filter surely has space for all of them, else with all pieces at once, so
/// that keys that do not fit leave the filter unchanged.
pub fn each_change<'a, S: Structure>(
    object: &Object<S>,
    py: Python<'_>,
    parts: &'a [ArrayKeys],
    mut work: impl FnMut(&[Piece<'a>], Range<usize>) -> PyResult<()>,
) -> PyResult<()> {
    let all: Vec<Piece<'_>> = parts.iter().map(ArrayKeys::piece).collect();
    let n = all.iter().map(Piece::len).sum();
    match n <= AT_ONCE || !object.read(py, None, 1, |filter| Ok(S::has_room(filter, n as u64)))? {
        true => work(&all, 0..n),
        false => each_group(py, parts, work),
    }
}

/// Inserts keys and returns which of them were new; nulls are not.
pub fn test_and_add<S: Grown>(
    object: &Object<S>,
    py: Python<'_>,
    keys: &Bound<'_, PyAny>,
    form: &str,
    out: Option<&Bound<'_, PyAny>>,
    threads: Option<Threads>,
) -> PyResult<Py<PyAny>> {
    let batch = Batch::of(keys)?;
    let Batch::Host(parts) = &batch else {
        return Err(PyValueError::new_err("test_and_add: the keys are on a device; copy them to the host first"));
    };
    let mut answers = Answers::new(py, batch.len(), form, out)?;
    let items = answers.items();
    each_change(object, py, parts, |group, places| {
        let (n, items) = (places.len(), &mut items[places]);
        Ok(object.write(py, threads, n, |filter| {
            answer(group, items, 0, |keys, answers| {
                let new = changing!(&mut *filter, |filter| filter.test_and_insert(keys))?;
                answers.iter_mut().zip(new).for_each(|(answer, new)| *answer = u8::from(new));
                Ok(())
            })
        })?)
    })?;
    answers.finish(py)
}

/// Answers all places of some pieces, as [`Piece::answer`] does.
fn answer<T: Copy + Default + Send>(
    pieces: &[Piece<'_>],
    mut answers: &mut [T],
    absent: T,
    mut work: impl FnMut(HostKeys<'_>, &mut [T]) -> Result<()>,
) -> Result<()> {
    for piece in pieces {
        let (here, after) = answers.split_at_mut(piece.len());
        piece.answer(here, absent, &mut work)?;
        answers = after;
    }
    Ok(())
}

impl Piece<'_> {
    /// Answers all places: `work` gets the keys and one answer per key; nulls have `absent`.
    fn answer<T: Copy + Default + Send>(
        &self,
        answers: &mut [T],
        absent: T,
        work: impl FnOnce(HostKeys<'_>, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        // The caller may pass the same array for keys and answers.
        let is_apart = with_keys!(self.keys(), |keys| !overlap(keys, answers));
        if !self.has_nulls() && is_apart {
            return work(self.keys(), answers);
        }
        let mut found = vec![T::default(); self.count()];
        work(self.keys(), &mut found)?;
        self.spread(&found, answers, absent);
        Ok(())
    }
}
