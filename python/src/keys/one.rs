//! One key as a Python object.

use std::borrow::Cow;

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt, PyString};

use crate::arrow;

/// One key.
pub enum OneKey<'py> {
    /// An integer as its word of 64 bits.
    Word(u64),
    /// The bytes of a `bytes` or `str`.
    Bytes(Cow<'py, [u8]>),
}

/// Runs `$body` with a reference to one key under the name `$key`, whatever its type.
#[macro_export]
macro_rules! with_key {
    ($one:expr, |$key:ident| $body:expr) => {
        match $one {
            $crate::keys::OneKey::Word($key) => $body,
            $crate::keys::OneKey::Bytes(bytes) => {
                let bytes: &[u8] = bytes;
                let $key = &bytes;
                $body
            }
        }
    };
}

/// Returns the word of an `int`, and whether it is negative. Negative numbers are their two's complement, as in columns
/// of 64 bits.
pub(super) fn word_of(int: &Bound<'_, PyAny>) -> PyResult<(u64, bool)> {
    // SAFETY: the function takes any object, and the interpreter is attached.
    let word = unsafe { ffi::PyLong_AsUnsignedLongLong(int.as_ptr()) };
    if word < u64::MAX || !PyErr::occurred(int.py()) {
        return Ok((word, false));
    }
    let _ = PyErr::take(int.py());
    int.extract::<i64>().map(|word| (word as u64, true)).map_err(|error| {
        let why = "an integer below -2**63 or above 2**64 - 1 is no key: pass its bytes, as by `int.to_bytes`";
        if error.is_instance_of::<PyOverflowError>(int.py()) { PyOverflowError::new_err(why) } else { error }
    })
}

/// Returns the error for an object that is no key.
pub fn wrong_key(object: &Bound<'_, PyAny>) -> PyErr {
    let name = object.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!("a key is an `int`, `str` or `bytes`, not `{name}`"))
}

/// Reads one key.
pub fn one_key<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<OneKey<'a>> {
    if object.is_instance_of::<PyInt>() {
        return Ok(OneKey::Word(word_of(object)?.0));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(OneKey::Bytes(text.to_str()?.as_bytes().into()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(OneKey::Bytes(bytes.as_bytes().into()));
    }
    if let Some(value) = arrow::scalar(object)? {
        return match one_key(&value)? {
            OneKey::Word(word) => Ok(OneKey::Word(word)),
            OneKey::Bytes(bytes) => Ok(OneKey::Bytes(bytes.into_owned().into())),
        };
    }
    // Integers of NumPy and others; floats have no index.
    match object.call_method0(intern!(object.py(), "__index__")) {
        Ok(int) => Ok(OneKey::Word(word_of(&int)?.0)),
        Err(_) => Err(wrong_key(object)),
    }
}

/// Whether an object is a single key, of the types that are never batches.
pub fn is_one_key(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyInt>() || object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>()
}

/// Whether an item is a null: `None`, the float `nan`, or a null of pandas or Arrow.
pub fn is_null(item: &Bound<'_, PyAny>) -> PyResult<bool> {
    if is_one_key(item) {
        return Ok(false); // the most frequent, at once
    }
    let is_nan = || item.cast::<PyFloat>().is_ok_and(|number| number.value().is_nan());
    if item.is_none() || is_nan() {
        return Ok(true);
    }
    let name = item.get_type().name()?;
    Ok(name == "NAType" || name == "NaTType" || arrow::scalar(item)?.is_some_and(|value| value.is_none()))
}
