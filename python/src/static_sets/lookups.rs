//! Lookups in static sets and maps by keys of any integer type.

use std::borrow::Cow;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use warpset::gpu::DeviceSliceMut;
use warpset::prelude::DeviceFilter;
use warpset::static_sets::gpu::{self, DeviceMapValue, DeviceStaticKey};
use warpset::static_sets::{MappedStaticMap, StaticMap as Host, Value};
use warpset_base::bitmap::bits_to;

use crate::device::{Adopted, DeviceArray, SharedItem};
use crate::error::{Failure, Result};
use crate::filter::answer_on_device;
use crate::keys::{Batch, HostKeys, OneKey, Piece, each_group, one_key, overlap};
use crate::kinds::Either;
use crate::output::{Flag, Output};
use crate::sorted_map::cell::{Cell, DeviceItem};
use crate::structure::{Object, Structure, Where};
use crate::threads::Threads;
use crate::{either, with_keys};

/// Key of a set or map.
pub trait SetKey: Cell + DeviceStaticKey + DeviceItem {
    /// Converts keys, and returns the places of those out of range, which get an arbitrary key.
    fn of_keys(keys: HostKeys<'_>) -> Result<(Cow<'_, [Self]>, Vec<usize>)>;
}

fn strings<T>() -> Result<T> {
    Err(Failure::wrong_type("strings or bytes: keys of static sets and maps are integers"))
}

impl SetKey for u64 {
    fn of_keys(keys: HostKeys<'_>) -> Result<(Cow<'_, [u64]>, Vec<usize>)> {
        let keys = match keys {
            HostKeys::U64(keys) => keys.into(),
            HostKeys::U32(keys) => keys.iter().map(|&key| u64::from(key)).collect(),
            HostKeys::I32(keys) => keys.iter().map(|&key| key as u64).collect(),
            HostKeys::Strings(_) => return strings(),
        };
        Ok((keys, Vec::new()))
    }
}

impl SetKey for u32 {
    fn of_keys(keys: HostKeys<'_>) -> Result<(Cow<'_, [u32]>, Vec<usize>)> {
        fn narrow<T: Copy + TryInto<u32>>(keys: &[T]) -> (Cow<'_, [u32]>, Vec<usize>) {
            let keys: Vec<Option<u32>> = keys.iter().map(|&key| key.try_into().ok()).collect();
            let absent = keys.iter().enumerate().filter(|(_, key)| key.is_none()).map(|(place, _)| place).collect();
            (keys.into_iter().map(Option::unwrap_or_default).collect(), absent)
        }
        Ok(match keys {
            HostKeys::U64(keys) => narrow(keys),
            HostKeys::U32(keys) => (keys.into(), Vec::new()),
            HostKeys::I32(keys) => narrow(keys),
            HostKeys::Strings(_) => return strings(),
        })
    }
}

/// Number of a null, and of an absent key.
pub const NO_NUMBER: u64 = u64::MAX;

/// Set or map that numbers its keys.
pub trait Numbered {
    /// Writes the number of each key, [`NO_NUMBER`] for absent ones.
    fn numbers_into(&self, keys: HostKeys<'_>, numbers: &mut [u64]) -> Result<()>;
}

/// Map with values of one type.
pub trait Valued<V> {
    /// Writes the value of each key, and whether it is present, as bytes 0 and 1.
    fn values_into(&self, keys: HostKeys<'_>, values: &mut [V], found: &mut [u8]) -> Result<()>;
}

/// Map on a device with values of one type.
pub trait DeviceValued<V> {
    /// Writes the value of each key, zero for absent ones; returns whether each key is present, as bytes 0 and 1.
    fn values_on_device(&self, keys: &Adopted<'_>, values: DeviceSliceMut<'_, V>) -> Result<DeviceArray>;
}

macro_rules! lookups {
    ($($map:ty;)*) => {$(
        impl<K: SetKey, V: Value> Numbered for $map {
            fn numbers_into(&self, keys: HostKeys<'_>, numbers: &mut [u64]) -> Result<()> {
                let (keys, absent) = K::of_keys(keys)?;
                let found = self.number_bulk_into(&keys, numbers)?;
                let strangers = found.iter().enumerate().filter(|(_, is_found)| !is_found).map(|(place, _)| place);
                strangers.chain(absent).for_each(|place| numbers[place] = NO_NUMBER);
                Ok(())
            }
        }

        impl<K: SetKey, V: DeviceMapValue + Default> Valued<V> for $map {
            fn values_into(&self, keys: HostKeys<'_>, values: &mut [V], found: &mut [u8]) -> Result<()> {
                let (keys, absent) = K::of_keys(keys)?;
                bits_to::<u8>(found, self.get_bulk_into(&keys, values)?.as_words());
                absent.into_iter().for_each(|place| (values[place], found[place]) = (V::default(), 0));
                Ok(())
            }
        }
    )*};
}
lookups! {
    Host<K, V>;
    MappedStaticMap<K, V>;
    gpu::StaticMap<K, V>;
}

impl<K: SetKey, V: DeviceMapValue> DeviceValued<V> for gpu::StaticMap<K, V> {
    fn values_on_device(&self, keys: &Adopted<'_>, values: DeviceSliceMut<'_, V>) -> Result<DeviceArray> {
        let keys = <K as DeviceItem>::slice(keys)?;
        let (mut bits, mut found) =
            (self.device().alloc_zeroed(keys.len().div_ceil(64))?, self.device().alloc_zeroed(keys.len())?);
        self.get_device(keys, values, bits.as_mut_slice())?;
        self.contains_device(keys, found.as_mut_slice())?;
        Ok(DeviceArray::flags(found))
    }
}

impl<A: Numbered, B: Numbered> Numbered for Either<A, B> {
    fn numbers_into(&self, keys: HostKeys<'_>, numbers: &mut [u64]) -> Result<()> {
        either!(self, |map| map.numbers_into(keys, numbers))
    }
}

impl<V, A: Valued<V>, B: Valued<V>> Valued<V> for Either<A, B> {
    fn values_into(&self, keys: HostKeys<'_>, values: &mut [V], found: &mut [u8]) -> Result<()> {
        either!(self, |map| map.values_into(keys, values, found))
    }
}

impl<V, A: DeviceValued<V>, B: DeviceValued<V>> DeviceValued<V> for Either<A, B> {
    fn values_on_device(&self, keys: &Adopted<'_>, values: DeviceSliceMut<'_, V>) -> Result<DeviceArray> {
        either!(self, |map| map.values_on_device(keys, values))
    }
}

/// Call for the values of keys, and which keys are present.
pub struct Values<'a, 'py, S: Structure> {
    pub map: &'a Object<S>,
    pub py: Python<'py>,
    pub threads: Option<Threads>,
    pub default: i128,
}

impl<S: Structure> Values<'_, '_, S> {
    pub fn of<V: Cell + SharedItem>(
        self,
        batch: &Batch,
        out: Option<&Bound<'_, PyAny>>,
        found: Option<&Bound<'_, PyAny>>,
        on_host: impl Fn(&Where<S>, HostKeys<'_>, &mut [V], &mut [u8]) -> Result<()> + Sync,
        on_device: impl FnOnce(&S::Device, &Adopted<'_>, DeviceSliceMut<'_, V>) -> Result<DeviceArray> + Send,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let Values { map, py, threads, default } = self;
        let wrong = || Failure::overflow(format!("default={default} is out of the range of values"));
        let absent = V::of_int(default).ok_or_else(wrong)?;
        match batch {
            Batch::Host(parts) => {
                let mut flags = Output::<Flag>::new(py, batch.len(), found)?;
                let values = V::array(py, batch.len(), out, |values| {
                    let flags: &mut [u8] = bytemuck::cast_slice_mut(flags.items());
                    each_group(py, parts, |group, places| {
                        let (values, flags) = (&mut values[places.clone()], &mut flags[places]);
                        Ok(map.read(py, threads, flags.len(), |map| {
                            each_piece(group, values, flags, |keys, values, flags| on_host(map, keys, values, flags))?;
                            let absents = values.iter_mut().zip(&*flags).filter(|(_, found)| **found == 0);
                            absents.for_each(|(value, _)| *value = absent);
                            Ok(())
                        })?)
                    })
                })?;
                Ok((values, flags.finish()))
            }
            Batch::Device(keys) if default == 0 && found.is_none() => {
                let mut flags = None;
                let values = answer_on_device(map, py, keys, out, threads, V::share, |map, keys, values| {
                    flags = Some(on_device(map, keys, values)?);
                    Ok(())
                })?;
                let flags = flags.ok_or_else(|| Failure::internal("no flags"))?;
                Ok((values, Py::new(py, flags)?.into_any()))
            }
            Batch::Device(_) => Err(PyValueError::new_err(
                "for keys on a device, absent ones have the value 0, and the flags are a new array: leave `default` and \
                 `found` away",
            )),
        }
    }
}

/// Returns the value of one key, or `default` if it has none.
pub fn value_of_one<S: Structure>(
    map: &Object<S>,
    py: Python<'_>,
    key: &Bound<'_, PyAny>,
    default: Option<Py<PyAny>>,
    value: impl FnOnce(&Where<S>, &OneKey<'_>) -> Result<Option<u64>> + Send,
) -> PyResult<Option<Py<PyAny>>> {
    let key = one_key(key)?;
    match map.read(py, None, 1, |map| value(map, &key))? {
        Some(value) => Ok(Some(value.into_pyobject(py)?.into_any().unbind())),
        None => Ok(default),
    }
}

/// Calls `work` with the keys of each piece, and the places of their answers.
fn each_piece<V: Cell>(
    pieces: &[Piece<'_>],
    mut values: &mut [V],
    mut flags: &mut [u8],
    work: impl Fn(HostKeys<'_>, &mut [V], &mut [u8]) -> Result<()>,
) -> Result<()> {
    for piece in pieces {
        let (here, after) = values.split_at_mut(piece.len());
        let (flags_here, flags_after) = flags.split_at_mut(piece.len());
        // The caller may pass the same array for keys and answers.
        let is_apart = !with_keys!(piece.keys(), |keys| overlap(keys, here) || overlap(keys, flags_here));
        if piece.has_nulls() || !is_apart {
            let (mut found, mut flags) = (vec![V::default(); piece.count()], vec![0; piece.count()]);
            work(piece.keys(), &mut found, &mut flags)?;
            piece.spread(&found, here, V::default());
            piece.spread(&flags, flags_here, 0);
        } else {
            work(piece.keys(), here, flags_here)?;
        }
        (values, flags) = (after, flags_after);
    }
    Ok(())
}
