//! Keys and values of a fixed number of bytes: byte strings, and items of NumPy's structured and void types.

use std::borrow::Cow;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use warpset::gpu::{DeviceSlice, DeviceVec};

use super::call::{Any, Call};
use super::cell::{Cell, Value, filled};
use super::types::Types;
use crate::device::{Adopted, DeviceKeys};
use crate::error::{Failure, Result};
use crate::keys::{ArrayKeys, Batch, HostKeys, OneKey, Owner, Piece, is_one_key, one_key, unmasked};
use crate::output::Item;

/// Whether the items of a buffer are bytes without objects: of `S`, `V`, structured and complex types.
fn has_bytes(buffer: &PyUntypedBuffer) -> bool {
    let format = buffer.format().to_bytes();
    match format {
        [b'T', b'{', ..] => {
            // Names of fields are between colons.
            format.split(|&byte| byte == b':').step_by(2).all(|types| !types.contains(&b'O'))
        }
        [b'Z', _] => true,
        [digits @ .., b's' | b'x'] => digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Returns the error for too many bytes.
fn too_long(what: &str, found: usize, len: usize) -> Failure {
    Failure::value(format!("{what}{found} bytes: this map has {len} bytes for each"))
}

/// Pads a row with zeros; `None` if it is too long.
fn padded<const LEN: usize>(bytes: &[u8]) -> Option<[u8; LEN]> {
    let mut row = [0; LEN];
    row.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(row)
}

/// Reads arrays with items of at most `len` bytes, rows of `uint8`, and containers of byte strings.
fn batch(object: &Bound<'_, PyAny>, len: usize) -> PyResult<Batch> {
    if let Some(batch) = unmasked(object, |data| batch(data, len))? {
        return Ok(batch);
    }
    let is_one = is_one_key(object) || object.is_instance_of::<PyByteArray>();
    let Some(buffer) = PyUntypedBuffer::get(object).ok().filter(|_| !is_one) else { return Batch::of(object) };
    let (rows, size, stride) = match buffer.dimensions() {
        1 if has_bytes(&buffer) => (buffer.shape()[0], buffer.item_size(), buffer.strides()[0]),
        2 if buffer.format().to_bytes() == b"B" => {
            if !buffer.is_c_contiguous() {
                return Err(PyValueError::new_err("rows with gaps: pass a contiguous array, as by `.copy()`"));
            }
            (buffer.shape()[0], buffer.shape()[1], buffer.shape()[1] as isize)
        }
        _ => return Batch::of(object),
    };
    if size > len {
        return Err(too_long("items of ", size, len).into());
    }
    let address = buffer.buf_ptr().cast_const().cast::<u8>();
    let items = (0..rows)
        // SAFETY: row `place` of the buffer, `place < len`, by the range; the result keeps the buffer.
        .map(|place| unsafe { std::slice::from_raw_parts(address.offset(stride * place as isize), size) })
        .collect();
    // SAFETY: the buffer stays in place while the result keeps it. Python code that writes it meanwhile changes rows,
    // as with NumPy's own functions.
    Ok(Batch::Host(vec![unsafe { ArrayKeys::strings(items, Owner::Buffer(buffer), None) }]))
}

/// Reads one row: `bytes`, a `str`, or an item of an array.
fn of_object<const LEN: usize>(object: &Bound<'_, PyAny>) -> PyResult<[u8; LEN]> {
    let row = |bytes: &[u8]| padded(bytes).ok_or_else(|| too_long("", bytes.len(), LEN).into());
    match one_key(object) {
        Ok(OneKey::Bytes(bytes)) => row(&bytes),
        Ok(OneKey::Word(_)) => Err(integers().into()),
        Err(error) => match of_scalar(object)? {
            Some(bytes) => row(bytes.as_bytes()),
            None => Err(error),
        },
    }
}

/// Returns the bytes of an item of an array of bytes, which NumPy exports as a buffer without a shape.
fn of_scalar<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let py = object.py();
    let (Some(dtype), Some(dimensions)) =
        (object.getattr_opt(intern!(py, "dtype"))?, object.getattr_opt(intern!(py, "ndim"))?)
    else {
        return Ok(None);
    };
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let has_bytes = matches!(kind.as_str(), "V" | "c") && !dtype.getattr(intern!(py, "hasobject"))?.is_truthy()?;
    if dimensions.extract::<usize>()? > 0 || !has_bytes {
        return Ok(None);
    }
    Ok(Some(object.call_method0(intern!(py, "tobytes"))?.cast_into()?))
}

fn integers() -> Failure {
    Failure::wrong_type(
        "integers: keys or values of this map are bytes; pass `bytes`, or items of NumPy's `S`, `V` or \
                         structured types",
    )
}

/// Returns the error for rows in a device array.
fn on_host() -> Failure {
    Failure::wrong_type("values of this map are bytes, and device arrays have numbers: pass arrays of the host")
}

macro_rules! rows {
    ($($len:literal: $dtype:literal, $is_string:literal;)*) => {$(
        impl Item for [u8; $len] {
            const DTYPE: &'static str = $dtype;
            const LETTER: Option<&'static str> = None;

            fn fits(buffer: &PyUntypedBuffer) -> bool {
                buffer.item_size() == $len && has_bytes(buffer)
            }
        }

        impl Cell for [u8; $len] {
            const DTYPE: Option<&'static str> = Some($dtype);
            const IS_ROW: bool = true;

            fn batch(object: &Bound<'_, PyAny>) -> PyResult<Batch> {
                batch(object, $len)
            }

            fn of_int(int: i128) -> Option<Self> {
                (int == 0).then_some([0; $len])
            }

            fn of_object(object: &Bound<'_, PyAny>) -> PyResult<Self> {
                of_object(object)
            }

            fn object<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
                let len = if $is_string { self.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1) } else { $len };
                Ok(PyBytes::new(py, &self[..len]).into_any())
            }

            fn column(piece: Piece<'_>) -> Result<Cow<'_, [Self]>> {
                let HostKeys::Strings(items) = piece.keys() else {
                    return if piece.count() == 0 { Ok(Cow::Borrowed(&[])) } else { Err(integers()) };
                };
                let row = |(place, bytes): (usize, &&[u8])| {
                    padded(bytes).ok_or_else(|| too_long(&format!("item {place}: "), bytes.len(), $len))
                };
                items.iter().enumerate().map(row).collect()
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
rows! {
    8: "S8", true;
    16: "V16", false;
    32: "V32", false;
}

macro_rules! row_values {
    ($($len:literal)*) => {$(
        impl Value for [u8; $len] {
            fn slice_there<'a>(_: &'a Adopted<'_>) -> Result<DeviceSlice<'a, Self>> {
                Err(on_host())
            }

            fn share_there(_: Python<'_>, _: DeviceVec<Self>) -> PyResult<Py<PyAny>> {
                Err(on_host().into())
            }

            fn answers_there<T: Types<V = Self>>(
                _: Call<'_, '_>,
                _: &DeviceKeys,
                _: Option<Any<'_, '_>>,
            ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
                Err(on_host().into())
            }
        }
    )*};
}
row_values!(16 32);

/// Iterates over the items of an array that this module made.
pub fn listed<'py, C: Cell>(array: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match C::IS_ROW {
        true => array.call_method0("tolist"),
        false => Ok(pyo3::types::PyMemoryView::from(array)?.into_any()),
    }
}
