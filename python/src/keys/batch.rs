//! Batches of keys in any container of Python.

use std::slice;

use pyo3::IntoPyObjectExt;
use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyByteArray, PyIterator};

use super::one::wrong_key;
use super::{ArrayKeys, Gathered, Integers, Owner, is_one_key, one_key};
use crate::arrow;
use crate::device::{self, DeviceKeys};

/// Batch of keys.
pub enum Batch {
    /// In host memory, by the chunks of an array.
    Host(Vec<ArrayKeys>),
    /// On a device.
    Device(DeviceKeys),
}

impl Batch {
    /// Reads the keys of an array, a list or another iterable.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Batch> {
        match Batch::of_array(object)? {
            Some(batch) => Ok(batch),
            None => {
                let mut gathered = Gathered::default();
                for key in items(object)? {
                    gathered.push(&key?)?;
                }
                Ok(Batch::Host(vec![gathered.take()]))
            }
        }
    }

    /// Reads the keys of an array; `None` for other objects.
    pub fn of_array(object: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
        if is_one_key(object) || object.is_instance_of::<PyByteArray>() {
            return Err(one_for_many());
        }
        // Lists and tuples implement none of the protocols below.
        if object.is_instance_of::<pyo3::types::PyList>() || object.is_instance_of::<pyo3::types::PyTuple>() {
            return Ok(None);
        }
        if let Some(batch) = unmasked(object, Batch::of)? {
            return Ok(Some(batch));
        }
        if let Ok(buffer) = PyUntypedBuffer::get(object) {
            if buffer.dimensions() == 0 {
                return Err(wrong_key(object)); // a number of NumPy
            }
            // Arrays of text or objects are read as lists. The buffer of an Arrow scalar is its bytes.
            let format = buffer.format().to_bytes();
            let is_scalar = matches!(format, b"b" | b"B") && arrow::scalar(object)?.is_some();
            if !format.ends_with(b"w") && !format.ends_with(b"O") && !is_scalar {
                return of_buffer(buffer).map(|part| Some(Batch::Host(vec![part])));
            }
        }
        if let Some(parts) = arrow::parts(object)? {
            return Ok(Some(Batch::Host(parts.collect::<PyResult<_>>()?)));
        }
        if let Some(keys) = device::keys(object)? {
            return Ok(Some(keys));
        }
        if let Some(value) = arrow::scalar(object)? {
            let is_one = value.is_none() || one_key(&value).is_ok();
            return if is_one { Err(one_for_many()) } else { Batch::of(&value).map(Some) };
        }
        match arrow::other_array(object)? {
            Some(array) => of_array_of_objects(object, &array).map(|part| Some(Batch::Host(vec![part]))),
            None => Ok(None),
        }
    }

    /// Returns the number of keys and nulls.
    pub fn len(&self) -> usize {
        match self {
            Batch::Host(parts) => parts.iter().map(ArrayKeys::len).sum(),
            Batch::Device(keys) => keys.len(),
        }
    }
}

/// Returns an iterator over an iterable.
pub fn items<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyIterator>> {
    if object.hasattr(intern!(object.py(), "collect"))? && object.hasattr(intern!(object.py(), "explain"))? {
        return Err(PyTypeError::new_err("a query that has not run holds no keys: pass a column of its `.collect()`"));
    }
    object.try_iter().map_err(|_| no_batch(object))
}

fn one_for_many() -> PyErr {
    PyTypeError::new_err("one key where many are expected: use `key in …` or `add(key)`, or pass a list or an array")
}

static MASKED_ARRAY: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();

/// Whether an object is a masked array of NumPy.
pub fn is_masked(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    let find = || py.import("numpy.ma").and_then(|ma| ma.getattr("MaskedArray")).ok().map(Bound::unbind);
    MASKED_ARRAY.get_or_init(py, find).as_ref().map_or(Ok(false), |class| object.is_instance(class.bind(py)))
}

/// Reads a masked array by `of`, with nulls in place of hidden items; `None` for other objects.
pub fn unmasked(
    object: &Bound<'_, PyAny>,
    of: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<Batch>,
) -> PyResult<Option<Batch>> {
    let py = object.py();
    if !is_masked(object)? {
        return Ok(None);
    }
    let batch = of(&object.getattr(intern!(py, "data"))?)?;
    let hidden = py.import(intern!(py, "numpy.ma"))?.call_method1(intern!(py, "getmaskarray"), (object,))?;
    let is_shown = unset(&hidden)?;
    let Batch::Host(parts) = batch else { return Err(no_batch(object)) };
    Ok(Some(Batch::Host(parts.into_iter().map(|part| part.shown(&is_shown)).collect())))
}

/// Returns where an array of booleans is false.
fn unset(flags: &Bound<'_, PyAny>) -> PyResult<Vec<bool>> {
    let bytes = Bytes::of(&flags.call_method0(intern!(flags.py(), "copy"))?)?;
    if bytes.0.dimensions() != 1 || bytes.0.item_size() != 1 {
        return Err(PyTypeError::new_err("a mask with several flags per item: fill the array, as by `.filled()`"));
    }
    Ok(bytes.get().iter().map(|&flag| flag == 0).collect())
}

fn no_batch(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "`{name}` holds no keys: pass an array of integers or strings (NumPy, Arrow, CuPy, PyTorch), or an iterable of \
         `int`, `str` or `bytes`"
    ))
}

/// Reads the keys of an array that NumPy made from an object.
fn of_array_of_objects(object: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> PyResult<ArrayKeys> {
    let py = object.py();
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
    let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
    match kind.as_str() {
        _ if dimensions == 0 && array.is(object) => Err(one_for_many()),
        _ if dimensions == 0 => Err(wrong_key(object)),
        "U" | "T" | "O" if dimensions == 1 => {
            let mut gathered = Gathered::default();
            for item in array.call_method0(intern!(py, "tolist"))?.try_iter()? {
                gathered.push(&item?)?;
            }
            Ok(gathered.take())
        }
        "i" | "u" | "S" if !array.is(object) => of_buffer(PyUntypedBuffer::get(array)?),
        // Integers with nulls, which NumPy turned into floats.
        "f" if !array.is(object) && object.hasattr(intern!(py, "isna"))? => of_nullable(object),
        _ => Err(PyTypeError::new_err(format!(
            "an array of {dtype} holds no keys: pass integers of 8 to 64 bits (`.astype`), the bits of other numbers \
             (`.view(numpy.uint64)`), or strings"
        ))),
    }
}

/// Reads the keys of an array or index of pandas that may have nulls.
fn of_nullable(object: &Bound<'_, PyAny>) -> PyResult<ArrayKeys> {
    let py = object.py();
    let dtype = object.getattr(intern!(py, "dtype"))?.getattr_opt(intern!(py, "numpy_dtype"))?;
    let has_integers = match &dtype {
        Some(dtype) => ["i", "u"].contains(&dtype.getattr(intern!(py, "kind"))?.extract::<&str>()?),
        None => false,
    };
    let Some(dtype) = dtype.filter(|_| has_integers) else {
        let mut gathered = Gathered::default();
        for item in object.try_iter()? {
            gathered.push(&item?)?;
        }
        return Ok(gathered.take());
    };
    let arguments = [("dtype", dtype), ("na_value", 0i32.into_bound_py_any(py)?)].into_py_dict(py)?;
    let data = object.call_method(intern!(py, "to_numpy"), (), Some(&arguments))?;
    let hidden = object.call_method0(intern!(py, "isna"))?;
    Ok(of_buffer(PyUntypedBuffer::get(&data)?)?.shown(&unset(&hidden)?))
}

/// Returns the type of a buffer's items; unknown for the other byte order.
pub fn element_type(buffer: &PyUntypedBuffer) -> ElementType {
    let other_order = if cfg!(target_endian = "little") { [b'>', b'!'] } else { [b'<', b'<'] };
    match buffer.format().to_bytes() {
        [order, size, ..] if other_order.contains(order) && *size != b'B' && *size != b'b' => ElementType::Unknown,
        _ => ElementType::from_format(buffer.format()),
    }
}

/// Reads the keys of a buffer.
fn of_buffer(buffer: PyUntypedBuffer) -> PyResult<ArrayKeys> {
    if buffer.dimensions() != 1 {
        let shape = buffer.shape();
        let why = format!("keys in {} dimensions (shape {shape:?}): pass a flat array, as by `.ravel()`", shape.len());
        return Err(PyValueError::new_err(why));
    }
    let format = buffer.format().to_string_lossy().into_owned();
    let (len, size) = (buffer.shape()[0], buffer.item_size());
    let address = buffer.buf_ptr().cast_const().cast::<u8>();
    let stride = if len > 1 { buffer.strides()[0] } else { size as isize };
    let is_signed = match element_type(&buffer) {
        ElementType::SignedInteger { .. } => true,
        ElementType::UnsignedInteger { .. } => false,
        _ if format.ends_with(['s', 'x']) && format[..format.len() - 1].bytes().all(|b| b.is_ascii_digit()) => {
            // NumPy pads items of `S` with zeros; items of `V` have all their bytes.
            let is_filled = format.ends_with('s');
            let strings = (0..len)
                .map(|place| {
                    // SAFETY: item `place` of the buffer, `place < len`, by the range; the result keeps the buffer.
                    let item = unsafe { slice::from_raw_parts(address.offset(stride * place as isize), size) };
                    let last = || item.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
                    if is_filled { &item[..last()] } else { item }
                })
                .collect();
            // SAFETY: the buffer stays in place while the result keeps it. Python code that writes it meanwhile changes
            // keys, as with NumPy's own functions.
            return Ok(unsafe { ArrayKeys::strings(strings, Owner::Buffer(buffer), None) });
        }
        _ => {
            return Err(PyTypeError::new_err(format!(
                "an array with items of format `{format}` holds no keys: pass integers of 8 to 64 bits in the machine's \
                 byte order (`.astype`), the bits of other numbers (`.view(numpy.uint64)`), or byte strings"
            )));
        }
    };
    if !matches!(size, 1 | 2 | 4 | 8) {
        return Err(PyTypeError::new_err(format!("integers of {size} bytes: pass ones of 8 to 64 bits")));
    }
    let memory = Integers { address, len, size, stride, is_signed };
    // SAFETY: the buffer stays in place while the result keeps it. Python code that writes it meanwhile changes keys,
    // as with NumPy's own functions.
    Ok(unsafe { ArrayKeys::integers(&memory, Owner::Buffer(buffer), None) })
}

/// Bytes from Python, such as `bytes` or a mapped file.
pub struct Bytes(PyUntypedBuffer);

impl Bytes {
    /// Opens the buffer of an object.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
        let buffer = PyUntypedBuffer::get(object)?;
        if !buffer.is_c_contiguous() {
            return Err(PyValueError::new_err("bytes with gaps: pass `bytes`, or a contiguous array of them"));
        }
        Ok(Bytes(buffer))
    }

    /// Returns all bytes.
    pub fn get(&self) -> &[u8] {
        match self.0.len_bytes() {
            0 => &[],
            // SAFETY: `of` checked that the bytes are contiguous, and the buffer keeps them. Python code that writes
            // them meanwhile changes what is read; readers of saved forms check their input.
            len => unsafe { slice::from_raw_parts(self.0.buf_ptr().cast(), len) },
        }
    }
}
