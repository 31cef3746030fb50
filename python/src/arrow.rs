//! Arrays of Arrow, by its C data interface.

use pyo3::prelude::*;

use crate::keys::{Batch, Part};

/// An array of another library; gives its memory back when it is dropped.
pub struct Array;

/// The keys in an object with `__arrow_c_array__` or `__arrow_c_stream__`; `None` if it has neither.
pub fn parts(_object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Part>>> {
    Ok(None)
}

/// The keys in other objects that are arrays.
pub fn other_array(_object: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
    Ok(None)
}
