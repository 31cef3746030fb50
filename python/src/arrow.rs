//! Arrow arrays, through the C data interface: those of pyarrow, polars, duckdb, arro3 and others. None of these is
//! required.

use arrow_array::cast::AsArray;
use arrow_array::ffi::{self, FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayRef, make_array};
use arrow_schema::{ArrowError, DataType};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::keys::{ArrayKeys, Integers, Owner};
use crate::output::packed;

fn broken(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the Arrow array cannot be read: {error}"))
}

/// Arrays in order.
type Parts = Box<dyn Iterator<Item = PyResult<ArrayKeys>>>;

/// Returns the keys of an object with `__arrow_c_array__` or `__arrow_c_stream__`, array by array on demand; `None` if
/// it has neither.
pub fn parts(object: &Bound<'_, PyAny>) -> PyResult<Option<Parts>> {
    let py = object.py();
    // The classes themselves have such methods, too.
    if object.is_instance_of::<pyo3::types::PyType>() {
        return Ok(None);
    }
    if let Some(export) = object.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = export.call0()?.extract()?;
        let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
        let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
        // SAFETY: by the interface, capsules of these names contain these structures, and a consumer may move the array
        // out and leave one that is marked as released. The schema stays in its capsule.
        let (array, schema) = unsafe { (FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
        if array.is_released() {
            return Err(PyValueError::new_err("the Arrow array was given away already: export it again"));
        }
        // SAFETY: a valid array of the interface, with its schema.
        let part = part(make_array(unsafe { ffi::from_ffi(array, schema) }.map_err(broken)?));
        return Ok(Some(Box::new(std::iter::once(part))));
    }
    let Some(export) = object.getattr_opt(intern!(py, "__arrow_c_stream__"))? else { return Ok(None) };
    let stream: Bound<'_, PyCapsule> = export.call0()?.extract()?;
    let stream = stream.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: by the interface, a capsule of this name contains a stream that a consumer may move out.
    let stream = unsafe { ArrayStreamReader::from_raw(stream.as_ptr()) }.map_err(broken)?;
    Ok(Some(Box::new(stream.map(|array| part(array.map_err(broken)?)))))
}

/// Returns the places with a key, if there are nulls.
fn present(array: &dyn Array) -> Option<Vec<bool>> {
    let nulls = array.logical_nulls()?;
    (nulls.null_count() > 0).then(|| nulls.iter().collect())
}

/// Returns the keys of an array.
fn part(array: ArrayRef) -> PyResult<ArrayKeys> {
    let (size, is_signed) = match array.data_type() {
        DataType::UInt8 => (1, false),
        DataType::UInt16 => (2, false),
        DataType::UInt32 => (4, false),
        DataType::UInt64 => (8, false),
        DataType::Int8 => (1, true),
        DataType::Int16 => (2, true),
        DataType::Int32 => (4, true),
        DataType::Int64 => (8, true),
        // A table of one column, such as a relation of duckdb.
        DataType::Struct(fields) if fields.len() == 1 => {
            let column = part(array.as_struct().column(0).clone())?;
            return Ok(match present(&array) {
                Some(rows) => column.shown(&rows),
                None => column,
            });
        }
        DataType::Struct(fields) => {
            let why = format!("a table of {} columns: pass one of them", fields.len());
            return Err(PyTypeError::new_err(why));
        }
        DataType::Dictionary(..) => return dictionary(&array),
        _ => return strings(array),
    };
    let (data, present) = (array.to_data(), present(&array));
    let memory = Integers {
        // SAFETY: a primitive array has one buffer, with at least `offset + len` items of `size` bytes.
        address: unsafe { data.buffers()[0].as_ptr().add(data.offset() * size) },
        len: data.len(),
        size,
        stride: size as isize,
        is_signed,
    };
    // SAFETY: `memory` is the values of `array`, which are immutable and live as long as the owner, this array.
    Ok(unsafe { ArrayKeys::integers(&memory, Owner::Arrow(array), present) })
}

/// Returns the keys of a dictionary array.
fn dictionary(array: &ArrayRef) -> PyResult<ArrayKeys> {
    let (dictionary, present) = (array.as_any_dictionary(), present(array));
    // If no row has a key, the type of the values does not matter.
    let has_keys = present.as_ref().is_none_or(|present| present.contains(&true));
    if !has_keys || dictionary.values().is_empty() {
        return Ok(ArrayKeys::nulls(array.len()));
    }
    let (values, places) = (part(dictionary.values().clone())?, dictionary.normalized_keys());
    // Maps the index of a value to its index among the values that are not null.
    let count = |before: &mut usize, &is_value: &bool| Some(std::mem::replace(before, *before + usize::from(is_value)));
    let numbers: Vec<usize> = match values.present() {
        Some(present) => present.iter().scan(0, count).collect(),
        None => (0..values.len()).collect(),
    };
    let is_there = |place: usize| present.as_ref().is_none_or(|present| present[place]);
    let picks = places.iter().enumerate().filter(|&(place, _)| is_there(place)).map(|(_, &value)| numbers[value]);
    Ok(values.picked(picks, present.clone()))
}

/// Returns the keys of an array of strings.
fn strings(array: ArrayRef) -> PyResult<ArrayKeys> {
    let present = present(&array);
    let mut strings = Vec::with_capacity(array.len());
    each_string(&array, &mut |string| strings.extend(string))?;
    // SAFETY: the strings are in buffers of `array`, which are immutable and live as long as the owner, this array.
    let strings = strings.into_iter().map(|string: &[u8]| unsafe { &*std::ptr::from_ref(string) }).collect();
    // SAFETY: see above.
    Ok(unsafe { ArrayKeys::strings(strings, Owner::Arrow(array), present) })
}

/// Calls `each` for each place of an array of strings, with its bytes or `None`.
fn each_string<'a>(array: &'a ArrayRef, each: &mut dyn FnMut(Option<&'a [u8]>)) -> PyResult<()> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().for_each(|text| each(text.map(str::as_bytes))),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().for_each(|text| each(text.map(str::as_bytes))),
        DataType::Utf8View => array.as_string_view().iter().for_each(|text| each(text.map(str::as_bytes))),
        DataType::Binary => array.as_binary::<i32>().iter().for_each(each),
        DataType::LargeBinary => array.as_binary::<i64>().iter().for_each(each),
        DataType::BinaryView => array.as_binary_view().iter().for_each(each),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().for_each(each),
        DataType::Null => (0..array.len()).for_each(|_| each(None)),
        other => {
            return Err(PyTypeError::new_err(format!(
                "an Arrow array of {other} holds no keys: pass integers of 8 to 64 bits, strings, bytes, or dictionaries \
                 of these; cast others first"
            )));
        }
    }
    Ok(())
}

/// Returns the Python value of an Arrow scalar; `None` for other objects.
pub fn scalar<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if object.is_instance_of::<pyo3::types::PyType>() {
        return Ok(None);
    }
    object.getattr_opt(intern!(py, "as_py"))?.map(|value| value.call0()).transpose()
}

/// Converts other objects by NumPy: its own strings, columns of pandas.
pub fn other_array<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if !object.hasattr(intern!(py, "__array__"))? || object.is_instance_of::<pyo3::types::PyType>() {
        return Ok(None);
    }
    let Ok(numpy) = py.import(intern!(py, "numpy")) else { return Ok(None) };
    numpy.call_method1(intern!(py, "asarray"), (object,)).map(Some)
}

/// Answers as an Arrow array of booleans: pass it to `pyarrow.array`, `polars.Series` or another library of Arrow.
#[pyclass(frozen, module = "warpset")]
pub struct BooleanArray(arrow_array::BooleanArray);

impl BooleanArray {
    /// Packs answers given as bytes 0 and 1.
    pub fn of(answers: &[u8]) -> BooleanArray {
        BooleanArray(packed(answers).into())
    }
}

#[pymethods]
impl BooleanArray {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema; // A wish, which need not be met.
        let (array, schema) = ffi::to_ffi(&self.0.to_data()).map_err(broken)?;
        let schema = PyCapsule::new_with_value(py, schema, c"arrow_schema")?;
        Ok((schema, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __repr__(&self) -> String {
        format!("BooleanArray({} items, {} true)", self.0.len(), self.0.true_count())
    }
}
