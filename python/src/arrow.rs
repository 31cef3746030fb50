//! Arrays of Arrow, by its C data interface: those of pyarrow, polars, duckdb, arro3 and others, none of which is
//! needed.

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

/// Arrays, one after the other.
type Parts = Box<dyn Iterator<Item = PyResult<ArrayKeys>>>;

/// The keys in an object with `__arrow_c_array__` or `__arrow_c_stream__`, array after array as they are asked for;
/// `None` if it has neither.
pub fn parts(object: &Bound<'_, PyAny>) -> PyResult<Option<Parts>> {
    let py = object.py();
    // Their classes have such methods too.
    if object.is_instance_of::<pyo3::types::PyType>() {
        return Ok(None);
    }
    if let Some(export) = object.getattr_opt(intern!(py, "__arrow_c_array__"))? {
        let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = export.call0()?.extract()?;
        let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
        let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
        // SAFETY: capsules of these names hold these structures, and the interface says that who asked for them may
        // move the array out; what is left is marked as released. The schema stays with its capsule.
        let (array, schema) = unsafe { (FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
        if array.is_released() {
            return Err(PyValueError::new_err("the Arrow array was given away already: export it again"));
        }
        // SAFETY: it is one of the interface, with its schema.
        let part = part(make_array(unsafe { ffi::from_ffi(array, schema) }.map_err(broken)?));
        return Ok(Some(Box::new(std::iter::once(part))));
    }
    let Some(export) = object.getattr_opt(intern!(py, "__arrow_c_stream__"))? else { return Ok(None) };
    let stream: Bound<'_, PyCapsule> = export.call0()?.extract()?;
    let stream = stream.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: as above.
    let stream = unsafe { ArrayStreamReader::from_raw(stream.as_ptr()) }.map_err(broken)?;
    Ok(Some(Box::new(stream.map(|array| part(array.map_err(broken)?)))))
}

/// Which places hold a key, if there are nulls.
fn present(array: &dyn Array) -> Option<Vec<bool>> {
    let nulls = array.logical_nulls()?;
    (nulls.null_count() > 0).then(|| nulls.iter().collect())
}

/// The keys of an array.
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
        // SAFETY: the buffer begins `offset` items before the first one.
        address: unsafe { data.buffers()[0].as_ptr().add(data.offset() * size) },
        len: data.len(),
        size,
        stride: size as isize,
        is_signed,
    };
    // SAFETY: arrays do not change, and the part holds this one.
    Ok(unsafe { ArrayKeys::integers(&memory, Owner::Arrow(array), present) })
}

/// The keys of an array of places in another one.
fn dictionary(array: &ArrayRef) -> PyResult<ArrayKeys> {
    let (dictionary, present) = (array.as_any_dictionary(), present(array));
    // Without a value there is no place of one, and the type of the values does not matter.
    let has_keys = present.as_ref().is_none_or(|present| present.contains(&true));
    if !has_keys || dictionary.values().is_empty() {
        return Ok(ArrayKeys::nulls(array.len()));
    }
    let (values, places) = (part(dictionary.values().clone())?, dictionary.normalized_keys());
    // The number of each value among those that are no nulls.
    let count = |before: &mut usize, &is_value: &bool| Some(std::mem::replace(before, *before + usize::from(is_value)));
    let numbers: Vec<usize> = match values.present() {
        Some(present) => present.iter().scan(0, count).collect(),
        None => (0..values.len()).collect(),
    };
    let is_there = |place: usize| present.as_ref().is_none_or(|present| present[place]);
    let picks = places.iter().enumerate().filter(|&(place, _)| is_there(place)).map(|(_, &value)| numbers[value]);
    Ok(values.picked(picks, present.clone()))
}

/// The keys of an array of strings.
fn strings(array: ArrayRef) -> PyResult<ArrayKeys> {
    let present = present(&array);
    let mut strings = Vec::with_capacity(array.len());
    each_string(&array, &mut |string| strings.extend(string))?;
    // SAFETY: the strings are in buffers of the array, which do not change; the part holds it.
    let strings = strings.into_iter().map(|string: &[u8]| unsafe { &*std::ptr::from_ref(string) }).collect();
    // SAFETY: as above.
    Ok(unsafe { ArrayKeys::strings(strings, Owner::Arrow(array), present) })
}

/// Gives `each` the bytes of every place of an array of strings, or `None` for a null.
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

/// The object of Python that a single value of Arrow stands for; `None` if the object is something else.
pub fn scalar<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = object.py();
    if object.is_instance_of::<pyo3::types::PyType>() {
        return Ok(None);
    }
    object.getattr_opt(intern!(py, "as_py"))?.map(|value| value.call0()).transpose()
}

/// The keys in other objects that NumPy makes arrays of: its own strings, columns of pandas.
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
    /// From answers as bytes 0 and 1.
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
