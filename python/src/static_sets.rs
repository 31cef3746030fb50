//! Exact sets and maps of integers that never change.

mod lists;
pub mod lookups;

use std::borrow::Cow;

use lists::{Column, elements};
use lookups::{DeviceValued, NO_NUMBER, Numbered, SetKey, Valued, Values, value_of_one};
use pyo3::exceptions::PyKeyError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyMemoryView};
use warpset::static_sets::gpu::DeviceMapValue;
use warpset::static_sets::{self, MappedStaticMap, MappedStaticSet, StaticMap as Host, StaticSet as HostSet};

use crate::device::Location;
use crate::error::{Failure, Result};
use crate::filter::numbers;
use crate::keys::{Batch, HostKeys, OneKey, one_key};
use crate::kinds::{Either, Kinds, one_of};
use crate::output::TypeName;
use crate::sorted_map::call::{column, host_pieces, pairs};
use crate::sorted_map::cell::{Cell, DeviceItem};
use crate::structure::{Forms, Structure, Where, keys_elsewhere, length};
use crate::threads::{Shared, Threads, run_watched};
use crate::{anywhere, ask, class, either, structure};

structure!(Set64: HostSet<u64>, MappedStaticSet<u64>, static_sets::gpu::StaticSet<u64>);
structure!(Set32: HostSet<u32>, MappedStaticSet<u32>, static_sets::gpu::StaticSet<u32>);
structure!(Map64To64: Host<u64, u64>, MappedStaticMap<u64, u64>, static_sets::gpu::StaticMap<u64, u64>);
structure!(Map32To64: Host<u32, u64>, MappedStaticMap<u32, u64>, static_sets::gpu::StaticMap<u32, u64>);
structure!(Map64To32: Host<u64, u32>, MappedStaticMap<u64, u32>, static_sets::gpu::StaticMap<u64, u32>);
structure!(Map32To32: Host<u32, u32>, MappedStaticMap<u32, u32>, static_sets::gpu::StaticMap<u32, u32>);

/// Types of sets, by their keys.
pub type Set = Kinds<Set64, Set32>;
/// Types of maps, by their values and then by their keys.
pub type Map = Kinds<Kinds<Map64To64, Map32To64>, Kinds<Map64To32, Map32To32>>;

/// Names of the types of keys and values.
const TYPES: [&str; 2] = ["uint64", "uint32"];

/// Returns the index in [`TYPES`] of the type that an argument names.
fn type_of(argument: &str, name: &TypeName) -> Result<usize> {
    let name = name.0.as_str();
    let wrong = || Failure::value(format!("{argument}={name:?}: there are \"uint64\" and \"uint32\""));
    TYPES.iter().position(|known| *known == name).ok_or_else(wrong)
}

/// Returns the name of the type of keys.
fn key_type<A, B>(either: &Either<A, B>) -> &'static str {
    TYPES[usize::from(matches!(either, Either::Second(_)))]
}

impl Structure for Set {
    const NAME: &'static str = "StaticSet";

    fn describe(value: &Where<Self>) -> Result<String> {
        let (key, (len, bytes)) =
            anywhere!(value, |set| { (key_type(set), either!(set, |set| (set.len(), set.memory_bytes()))) });
        Ok(format!("{len} keys of {key}, {bytes} bytes"))
    }
}

impl Structure for Map {
    const NAME: &'static str = "StaticMap";

    fn describe(value: &Where<Self>) -> Result<String> {
        let (value, (key, (len, bytes))) = anywhere!(value, |map| {
            (key_type(map), either!(map, |map| (key_type(map), either!(map, |map| (map.len(), map.memory_bytes())))))
        });
        Ok(format!("{len} keys of {key}, values of {value}, {bytes} bytes"))
    }
}

/// Returns all keys of a batch, without its nulls.
fn all<C: Cell>(batch: &Batch) -> Result<Cow<'_, [C]>> {
    column(&host_pieces(batch)?)
}

/// Builds a set in its place.
fn build_set<K: SetKey, A: Forms<Host = HostSet<K>, Device = static_sets::gpu::StaticSet<K>>>(
    seed: Option<u64>,
    place: &Location,
    keys: &Batch,
) -> Result<Where<A>> {
    let builder = HostSet::<K>::builder().seed(seed.unwrap_or(0));
    Ok(match (place, keys) {
        (Location::Cpu, Batch::Host(_)) => Where::Host(builder.build_from(&all(keys)?)?),
        (Location::On(device), Batch::Host(_)) => Where::Device(builder.on(device).build_from(&all(keys)?)?),
        (Location::On(device), Batch::Device(keys)) => {
            Where::Device(builder.on(device).build_from_device(DeviceItem::slice(&keys.adopt(device)?)?)?)
        }
        (Location::Cpu, Batch::Device(_)) => return Err(keys_elsewhere("in host memory")),
    })
}

/// Builds a map in its place.
fn build_map<K, V, A>(seed: Option<u64>, place: &Location, keys: &Batch, values: &Batch) -> Result<Where<A>>
where
    K: SetKey,
    V: Cell + DeviceMapValue + DeviceItem,
    A: Forms<Host = Host<K, V>, Device = static_sets::gpu::StaticMap<K, V>>,
{
    let builder = Host::<K, V>::builder().seed(seed.unwrap_or(0));
    Ok(match (place, keys, values) {
        (Location::Cpu, Batch::Device(_), _) => return Err(keys_elsewhere("in host memory")),
        (Location::Cpu, ..) => {
            let (keys, values) = pairs(&host_pieces(keys)?, &host_pieces(values)?)?;
            Where::Host(builder.build_from(&keys, &values)?)
        }
        (Location::On(device), Batch::Device(keys), Batch::Device(values)) => {
            let (keys, values) = (keys.adopt(device)?, values.adopt(device)?);
            let (keys, values) = (DeviceItem::slice(&keys)?, DeviceItem::slice(&values)?);
            Where::Device(builder.on(device).build_from_device(keys, values)?)
        }
        (Location::On(device), ..) => {
            let (keys, values) = pairs(&host_pieces(keys)?, &host_pieces(values)?)?;
            Where::Device(builder.on(device).build_from(&keys, &values)?)
        }
    })
}

/// Class of a set or map: shared methods, with the class's own.
macro_rules! over_integers {
    ($(#[$doc:meta])* $class:ident($family:ty), $typed:ident { $($own:tt)* }) => {
        class! {
            $(#[$doc])*
            $class($family), static_filter {
                /// Returns the number of keys.
                fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
                    ask!(self.0, py, |value| length($typed!(value, |it| it.len())))
                }

                /// Returns the bytes of memory of keys and values.
                #[getter]
                fn nbytes(&self, py: Python<'_>) -> PyResult<u64> {
                    ask!(self.0, py, |value| $typed!(value, |it| it.memory_bytes()))
                }

                /// Returns the bits of memory per key.
                #[getter]
                fn bits_per_key(&self, py: Python<'_>) -> PyResult<f64> {
                    ask!(self.0, py, |value| $typed!(value, |it| it.bits_per_key()))
                }

                /// Returns the bound of the numbers: the number of slots for keys, some of them empty.
                #[getter]
                fn slots(&self, py: Python<'_>) -> PyResult<u64> {
                    ask!(self.0, py, |value| $typed!(value, |it| it.slots()))
                }

                /// Returns all keys, in the order of their numbers, as an array of the type of keys.
                fn keys(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                    elements(&self.0, py)?.keys.object(py)
                }

                /// Iterates over the keys, in the order of their numbers.
                fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
                    PyMemoryView::from(self.keys(py)?.bind(py))?.try_iter()
                }

                /// Returns the number of each key, unique and below `slots`, as an array of `uint64`, or `out`, filled.
                /// Nulls and absent keys have `2**64 - 1`.
                #[pyo3(signature = (keys, /, *, out=None, threads=None))]
                fn index(
                    &self,
                    py: Python<'_>,
                    keys: &Bound<'_, PyAny>,
                    out: Option<&Bound<'_, PyAny>>,
                    threads: Option<Threads>,
                ) -> PyResult<Py<PyAny>> {
                    numbers(&self.0, py, keys, out, threads, NO_NUMBER, |value, keys, numbers| {
                        anywhere!(value, |value| value.numbers_into(keys, numbers))
                    }, |_, _, _| Err(Failure::value("index: the keys are on a device; copy them to the host first")))
                }

                /// Returns the number of one key, or `None` if it is absent.
                fn index_one(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
                    let (OneKey::Word(key), mut number) = (one_key(key)?, [0]) else { return Ok(None) };
                    self.0.read(py, None, 1, |value| {
                        anywhere!(value, |value| value.numbers_into(HostKeys::U64(&[key]), &mut number))
                    })?;
                    Ok(Some(number[0]).filter(|&number| number != NO_NUMBER))
                }

                $($own)*
            }
        }
    };
}

/// Match over both levels of the kinds of a map, as [`either!`].
macro_rules! either_map {
    ($either:expr, |$it:ident| $body:expr) => {
        either!($either, |by_key| either!(by_key, |$it| $body))
    };
}

over_integers! {
    /// Exact set of integers that never changes. A lookup reads a byte and one cache line, and has no false positives.
    ///
    /// `keys` is an array or a list of integers from 0 to `2**64 - 1` in any order; equal keys count once.
    ///
    /// - `key`: `"uint64"`, 72.4 bits per key, or `"uint32"`, 36.2 bits per key.
    /// - `seed` changes the numbers. `device` is the place of the build and the lookups. `threads` limits the number of
    ///   threads of the build.
    ///
    /// Each key has its own number below `slots`, so values can be stored in an array. Lookups take keys of any integer
    /// type; numbers out of the range of the set's type are not in it.
    ///
    /// >>> import warpset
    /// >>> primes = warpset.StaticSet([2, 3, 5, 7])
    /// >>> 5 in primes, 6 in primes, len(primes)
    /// (True, False, 4)
    /// >>> primes.contains([1, 2, 3, 4]).tolist()
    /// [False, True, True, False]
    StaticSet(Set), either {
        #[new]
        #[pyo3(
            signature = (keys, *, key=TypeName::default(), seed=None, device=None, threads=None),
            text_signature = "(keys, *, key='uint64', seed=None, device=None, threads=None)"
        )]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            key: TypeName,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Self> {
            let (place, keys, key) = (Location::of(device)?, Batch::of(keys)?, type_of("key", &key)?);
            let built = run_watched(py, threads, None, move |_| match key {
                0 => one_of(build_set::<u64, Set64>(seed, &place, &keys)?, Either::First, Either::First),
                _ => one_of(build_set::<u32, Set32>(seed, &place, &keys)?, Either::Second, Either::Second),
            });
            Ok(Self(Shared::new(built?)))
        }
    }
}

over_integers! {
    /// Exact map from integers to integers that never changes. A lookup reads a byte, one cache line and the value.
    ///
    /// `keys` is an array or a list of integers from 0 to `2**64 - 1`, with one of `values` per key; of equal keys the
    /// last one counts.
    ///
    /// - `key` and `value`: `"uint64"` or `"uint32"`.
    /// - `seed` changes the numbers. `device` is the place of the build and the lookups. `threads` limits the number of
    ///   threads of the build.
    ///
    /// >>> import warpset
    /// >>> squares = warpset.StaticMap([2, 3, 4], [4, 9, 16])
    /// >>> squares[3], squares.get(5), len(squares)
    /// (9, None, 3)
    /// >>> values, found = squares.get_many([2, 5], default=7)
    /// >>> values.tolist(), found.tolist()
    /// ([4, 7], [True, False])
    StaticMap(Map), either_map {
        #[new]
        #[pyo3(
            signature = (
                keys, values, *, key=TypeName::default(), value=TypeName::default(), seed=None, device=None, threads=None
            ),
            text_signature = "(keys, values, *, key='uint64', value='uint64', seed=None, device=None, threads=None)"
        )]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn new(
            py: Python<'_>,
            keys: &Bound<'_, PyAny>,
            values: &Bound<'_, PyAny>,
            key: TypeName,
            value: TypeName,
            seed: Option<u64>,
            device: Option<&Bound<'_, PyAny>>,
            threads: Option<Threads>,
        ) -> PyResult<Self> {
            let (place, keys, values) = (Location::of(device)?, Batch::of(keys)?, Batch::of(values)?);
            let types = (type_of("value", &value)?, type_of("key", &key)?);
            macro_rules! built {
                ($value:path, $key:path, $family:ty) => {
                    one_of(
                        build_map::<_, _, $family>(seed, &place, &keys, &values)?,
                        |map| $value($key(map)),
                        |map| $value($key(map)),
                    )
                };
            }
            let built = run_watched(py, threads, None, move |_| match types {
                (0, 0) => built!(Either::First, Either::First, Map64To64),
                (0, _) => built!(Either::First, Either::Second, Map32To64),
                (_, 0) => built!(Either::Second, Either::First, Map64To32),
                _ => built!(Either::Second, Either::Second, Map32To32),
            });
            Ok(Self(Shared::new(built?)))
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
            let batch = Batch::of(keys)?;
            let is_wide = self.0.read(py, None, 1, |map| {
                Ok(anywhere!(map, |map| matches!(map, Either::First(_))))
            })?;
            let values = Values { map: &self.0, py, threads, default };
            macro_rules! of {
                ($value:ty, $kind:path) => {
                    values.of::<$value>(&batch, out, found, |map, keys, values, flags| anywhere!(map, |map| match map {
                        $kind(map) => map.values_into(keys, values, flags),
                        _ => Err(Failure::internal("a map keeps its types")),
                    }), |map, keys, values| match map {
                        $kind(map) => map.values_on_device(keys, values),
                        _ => Err(Failure::internal("a map keeps its types")),
                    })
                };
            }
            if is_wide { of!(u64, Either::First) } else { of!(u32, Either::Second) }
        }

        /// Returns the value of a key, or `default` if it is absent.
        #[pyo3(signature = (key, /, default=None))]
        fn get(
            &self,
            py: Python<'_>,
            key: &Bound<'_, PyAny>,
            default: Option<Py<PyAny>>,
        ) -> PyResult<Option<Py<PyAny>>> {
            value_of_one(&self.0, py, key, default, |map, key| {
                let (OneKey::Word(word), mut found) = (key, [0]) else { return Ok(None) };
                let keys = HostKeys::U64(std::slice::from_ref(word));
                let value = anywhere!(map, |map| match map {
                    Either::First(map) => {
                        let mut value = [0u64];
                        map.values_into(keys, &mut value, &mut found)?;
                        value[0]
                    }
                    Either::Second(map) => {
                        let mut value = [0u32];
                        map.values_into(keys, &mut value, &mut found)?;
                        value[0].into()
                    }
                });
                Ok((found[0] != 0).then_some(value))
            })
        }

        /// Returns all values, in the order of their keys' numbers, as an array of the type of values.
        fn values(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
            elements(&self.0, py)?.values.object(py)
        }

        /// Iterates over pairs of keys and values, in the order of the keys' numbers.
        fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
            let all = elements(&self.0, py)?;
            let view = |column: &Column| PyMemoryView::from(column.object(py)?.bind(py));
            let pairs = (view(&all.keys)?, view(&all.values)?);
            py.import(intern!(py, "builtins"))?.call_method1(intern!(py, "zip"), pairs)
        }

        fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
            self.get(py, key, None)?.ok_or_else(|| PyKeyError::new_err(key.clone().unbind()))
        }
    }
}
