//! Keys and values of dictionaries, converted from and to Python.

use std::borrow::Cow;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use warpset::gpu::{DeviceSlice, DeviceVec};
use warpset::lsm::gpu::{DeviceKey, DeviceValue};

use super::call::{Any, Call, Combined, shared};
use super::types::Types;
use crate::arrow;
use crate::device::{Adopted, DeviceKeys, Kept, SharedItem};
use crate::error::{Failure, Result};
use crate::keys::{Batch, HostKeys, Piece, Sign};
use crate::output::{self, Output};

/// A key or a value.
pub trait Cell: Copy + Default + PartialEq + Send + Sync + 'static {
    /// Name of the type in NumPy; `None` for `()`, the value of sets.
    const DTYPE: Option<&'static str>;
    /// Whether the type is bytes, not a number.
    const IS_ROW: bool = false;

    /// Reads keys or values of this type from an object.
    fn batch(object: &Bound<'_, PyAny>) -> PyResult<Batch> {
        Batch::of(object)
    }
    /// Converts a number; `None` if it is out of range.
    fn of_int(int: i128) -> Option<Self>;
    /// Combines two values; `None` unless they are numbers.
    fn combined(self, _: Self, _: Combined) -> Option<Self> {
        None
    }
    /// Reads a value from a Python object.
    fn of_object(object: &Bound<'_, PyAny>) -> PyResult<Self>;
    /// Converts a value to a Python object.
    fn object<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>>;
    /// Reads a piece of an array, without its nulls.
    fn column(piece: Piece<'_>) -> Result<Cow<'_, [Self]>>;
    /// Runs `fill` on an array: `out`, or a new one.
    fn array(
        py: Python<'_>,
        n: usize,
        out: Option<&Bound<'_, PyAny>>,
        fill: impl FnOnce(&mut [Self]) -> PyResult<()>,
    ) -> PyResult<Py<PyAny>>;

    /// Creates an array of values.
    fn copied(py: Python<'_>, items: &[Self]) -> PyResult<Py<PyAny>> {
        Self::array(py, items.len(), None, |places| {
            places.copy_from_slice(items);
            Ok(())
        })
    }
}

/// A key.
pub trait Key: Cell + DeviceKey<Stored: StoredKey> {}
impl<T: Cell + DeviceKey<Stored: StoredKey>> Key for T {}

/// Representation of keys on devices.
pub trait StoredKey: Sized {
    /// Returns the keys of a device array.
    fn slice_there<'a>(adopted: &'a Adopted<'_>) -> Result<DeviceSlice<'a, Self>>;
    /// Wraps keys as a device array.
    fn share_there(py: Python<'_>, keys: DeviceVec<Self>) -> PyResult<Py<PyAny>>;
}

macro_rules! keys_on_devices {
    ($($key:ty),*) => {$(
        impl StoredKey for $key {
            fn slice_there<'a>(adopted: &'a Adopted<'_>) -> Result<DeviceSlice<'a, Self>> {
                DeviceItem::slice(adopted)
            }

            fn share_there(py: Python<'_>, keys: DeviceVec<Self>) -> PyResult<Py<PyAny>> {
                shared(py, keys, true)
            }
        }
    )*};
}
keys_on_devices!(u32, u64);

impl StoredKey for u128 {
    fn slice_there<'a>(_: &'a Adopted<'_>) -> Result<DeviceSlice<'a, u128>> {
        Err(keys_on_host())
    }

    fn share_there(_: Python<'_>, _: DeviceVec<u128>) -> PyResult<Py<PyAny>> {
        Err(keys_on_host().into())
    }
}

/// Returns the error for keys that are bytes in a device array.
fn keys_on_host() -> Failure {
    Failure::wrong_type("keys of this map are bytes, and device arrays have numbers: pass arrays of the host")
}

/// A value.
pub trait Value: Cell + DeviceValue {
    /// Returns the values of a device array.
    fn slice_there<'a>(adopted: &'a Adopted<'_>) -> Result<DeviceSlice<'a, Self::Stored>>;
    /// Wraps values as a device array; `None` for sets.
    fn share_there(py: Python<'_>, values: DeviceVec<Self::Stored>) -> PyResult<Py<PyAny>>;
    /// Runs `get_many` for keys on a device.
    fn answers_there<T: Types<V = Self>>(
        call: Call<'_, '_>,
        keys: &DeviceKeys,
        out: Option<Any<'_, '_>>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)>;
}

macro_rules! values_on_devices {
    ($($value:ty),*) => {$(
        impl Value for $value {
            fn slice_there<'a>(adopted: &'a Adopted<'_>) -> Result<DeviceSlice<'a, Self::Stored>> {
                DeviceItem::slice(adopted)
            }

            fn share_there(py: Python<'_>, values: DeviceVec<Self::Stored>) -> PyResult<Py<PyAny>> {
                shared(py, values, Self::DTYPE.is_some())
            }

            fn answers_there<T: Types<V = Self>>(
                call: Call<'_, '_>,
                keys: &DeviceKeys,
                out: Option<Any<'_, '_>>,
            ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
                call.get_many_on_device::<T>(keys, out)
            }
        }
    )*};
}
values_on_devices!(u32, u64, ());

/// Item of device arrays of keys and values.
pub trait DeviceItem: SharedItem {
    /// Returns the items of an array.
    fn slice<'a>(adopted: &'a Adopted<'_>) -> Result<DeviceSlice<'a, Self>>;
}

fn out_of_range(int: impl std::fmt::Display, dtype: Option<&str>) -> String {
    let name = dtype.unwrap_or_default();
    format!(
        "{int} is out of the range of {name}: pass others, or make the structure with a wider type, or one with another \
         sign, if it has `key=` or `value=`"
    )
}

/// Converts integers to another type, in place if the sizes are equal.
fn convert<S, T>(items: &[S]) -> Result<Cow<'_, [T]>>
where
    S: bytemuck::Pod + Into<i128>,
    T: Cell + bytemuck::Pod + TryFrom<i128>,
{
    let converted = |item: S| T::try_from(item.into()).ok();
    if !items.iter().fold(true, |all, &item| all & converted(item).is_some()) {
        let wrong = items.iter().position(|&item| converted(item).is_none()).unwrap_or_default();
        return Err(Failure::overflow(format!("item {wrong}: {}", out_of_range(items[wrong].into(), T::DTYPE))));
    }
    Ok(match size_of::<S>() == size_of::<T>() {
        true => Cow::Borrowed(bytemuck::cast_slice(items)),
        false => items.iter().filter_map(|&item| converted(item)).collect(),
    })
}

/// Implements [`Cell::array`] for items that NumPy has.
pub fn filled<T: output::Item>(
    py: Python<'_>,
    n: usize,
    out: Option<&Bound<'_, PyAny>>,
    fill: impl FnOnce(&mut [T]) -> PyResult<()>,
) -> PyResult<Py<PyAny>> {
    let mut array = Output::new(py, n, out)?;
    fill(array.items())?;
    Ok(array.finish())
}

macro_rules! numbers {
    ($($number:ty)*) => {$(
        impl Cell for $number {
            const DTYPE: Option<&'static str> = Some(<$number as crate::output::Item>::DTYPE);

            fn of_int(int: i128) -> Option<Self> {
                int.try_into().ok()
            }

            fn combined(self, after: Self, by: Combined) -> Option<Self> {
                Some(match by {
                    Combined::Sum => self.wrapping_add(after),
                    Combined::Min => self.min(after),
                    Combined::Max => self.max(after),
                    Combined::Or => self | after,
                })
            }

            fn of_object(object: &Bound<'_, PyAny>) -> PyResult<Self> {
                if !object.is_instance_of::<PyInt>()
                    && let Some(value) = arrow::scalar(object)?
                {
                    return Self::of_object(&value);
                }
                object.extract().map_err(|error: PyErr| match error.is_instance_of::<PyOverflowError>(object.py()) {
                    true => PyOverflowError::new_err(out_of_range(object, Self::DTYPE)),
                    false => error,
                })
            }

            fn object<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                self.into_bound_py_any(py)
            }

            fn column(piece: Piece<'_>) -> Result<Cow<'_, [Self]>> {
                match (piece.keys(), piece.sign()) {
                    (HostKeys::U32(items), _) => convert(items),
                    (HostKeys::I32(items), _) => convert(items),
                    (HostKeys::U64(items), Sign::Unsigned) => convert(items),
                    (HostKeys::U64(items), Sign::Signed) => convert(bytemuck::cast_slice::<u64, i64>(items)),
                    (HostKeys::U64(_), Sign::Mixed) => {
                        Err(Failure::overflow("integers below 0 and above 2**63 - 1 in one list: no type has both"))
                    }
                    (HostKeys::Strings(_), _) => {
                        Err(Failure::wrong_type(
                            "strings or bytes where integers are expected: choose a class or a `key=` of strings",
                        ))
                    }
                }
            }

            fn array(
                py: Python<'_>,
                n: usize,
                out: Option<&Bound<'_, PyAny>>,
                fill: impl FnOnce(&mut [Self]) -> PyResult<()>,
            ) -> PyResult<Py<PyAny>> {
                filled(py, n, out, fill)
            }
        }
    )*};
}
numbers!(u32 u64 i32 i64);

impl Cell for () {
    const DTYPE: Option<&'static str> = None;

    fn of_int(_: i128) -> Option<()> {
        Some(())
    }

    fn of_object(object: &Bound<'_, PyAny>) -> PyResult<()> {
        match object.is_none() {
            true => Ok(()),
            false => Err(PyTypeError::new_err("with value=None all values are `None`: add keys by `update(keys)`")),
        }
    }

    fn object<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(py.None().into_bound(py))
    }

    fn column(piece: Piece<'_>) -> Result<Cow<'_, [()]>> {
        Ok(vec![(); piece.count()].into())
    }

    fn array(
        py: Python<'_>,
        n: usize,
        _: Option<&Bound<'_, PyAny>>,
        fill: impl FnOnce(&mut [()]) -> PyResult<()>,
    ) -> PyResult<Py<PyAny>> {
        fill(&mut vec![(); n])?;
        Ok(py.None())
    }
}

macro_rules! on_device {
    ($($item:ty: $variant:ident;)*) => {$(
        impl DeviceItem for $item {
            fn slice<'a>(adopted: &'a Adopted<'_>) -> Result<DeviceSlice<'a, Self>> {
                match adopted {
                    Adopted::$variant(kept) => Ok(Kept::as_slice(kept)),
                    _ => Err(Failure::wrong_type(concat!(
                        "device arrays for this map have items of ", stringify!($item),
                        " (uint32 or uint64 elsewhere): `.astype`, or `.view` of integers that are not negative"
                    ))),
                }
            }
        }
    )*};
}
on_device! {
    u32: U32;
    u64: U64;
}

/// Returns the keys of a device array.
pub fn keys_on_device<'a, K: Key>(adopted: &'a Adopted<'_>) -> Result<DeviceSlice<'a, K::Stored>> {
    if K::IS_ROW {
        return Err(keys_on_host());
    }
    if K::MIN != K::default() {
        return Err(Failure::wrong_type(
            "a map with signed keys takes no device arrays: make it with key=\"uint64\" and keys whose highest bit is \
             flipped, which keeps their order, or pass arrays of the host",
        ));
    }
    StoredKey::slice_there(adopted)
}
