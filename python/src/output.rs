//! Arrays for answers: the caller's, or new ones.

use std::marker::PhantomData;
use std::slice;

use arrow_buffer::BooleanBuffer;
use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyMemoryView, PyString};

use crate::arrow::BooleanArray;
use crate::keys::{element_type, is_masked};

/// Name of a type of items in NumPy, given as such or as anything that NumPy converts to a `dtype`.
pub struct TypeName(pub String);

impl TypeName {
    /// Returns the name of unsigned integers of 64 bits.
    pub fn default() -> TypeName {
        TypeName("uint64".into())
    }
}

impl FromPyObject<'_, '_> for TypeName {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<TypeName> {
        let py = object.py();
        if let Ok(name) = object.cast::<PyString>() {
            return Ok(TypeName(name.to_str()?.into()));
        }
        let wrong = |_| PyTypeError::new_err("a type is named by a `str`, such as \"uint64\", or is one of NumPy's");
        let numpy = py.import(intern!(py, "numpy")).map_err(wrong)?;
        let dtype = numpy.call_method1(intern!(py, "dtype"), (object,)).map_err(wrong)?;
        let kind: String = dtype.getattr(intern!(py, "kind"))?.extract()?;
        Ok(TypeName(match kind.as_str() {
            "S" | "V" => format!("{kind}{}", dtype.getattr(intern!(py, "itemsize"))?),
            _ => dtype.getattr(intern!(py, "name"))?.extract()?,
        }))
    }
}

/// Item of an array of answers.
pub trait Item: bytemuck::Pod + Send + Sync {
    /// Name in NumPy.
    const DTYPE: &'static str;
    /// Letter in `memoryview.cast`, if there is one.
    const LETTER: Option<&'static str>;

    /// Whether the items of a buffer have this type.
    fn fits(buffer: &PyUntypedBuffer) -> bool;
}

/// A boolean of NumPy, 0 or 1.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Flag(pub u8);

// SAFETY: a byte; zero is a valid one.
unsafe impl bytemuck::Zeroable for Flag {}
// SAFETY: a byte with no invalid bit pattern and no padding.
unsafe impl bytemuck::Pod for Flag {}

impl Item for Flag {
    const DTYPE: &'static str = "bool";
    const LETTER: Option<&'static str> = Some("?");

    fn fits(buffer: &PyUntypedBuffer) -> bool {
        matches!(element_type(buffer), ElementType::Bool | ElementType::UnsignedInteger { bytes: 1 })
    }
}

macro_rules! items {
    ($($item:ty: $dtype:literal $letter:literal $signed:ident;)*) => {$(
        impl Item for $item {
            const DTYPE: &'static str = $dtype;
            const LETTER: Option<&'static str> = Some($letter);

            fn fits(buffer: &PyUntypedBuffer) -> bool {
                matches!(element_type(buffer), ElementType::$signed { bytes: b } if b == size_of::<$item>())
            }
        }
    )*};
}
items! {
    u8: "uint8" "B" UnsignedInteger;
    u32: "uint32" "I" UnsignedInteger;
    i32: "int32" "i" SignedInteger;
    u64: "uint64" "Q" UnsignedInteger;
    i64: "int64" "q" SignedInteger;
}

/// Packs answers, bytes 0 and 1, into bits.
pub fn packed(answers: &[u8]) -> BooleanBuffer {
    BooleanBuffer::collect_bool(answers.len(), |place| answers[place] != 0)
}

/// Booleans in the form that the caller requested.
pub enum Answers {
    /// An array of booleans.
    Bool(Output<Flag>),
    /// A bitmap, lowest bit first, and the answers as bytes.
    Bitmap(Output<u8>, Vec<u8>),
    /// For an Arrow array.
    Arrow(Vec<u8>),
}

impl Answers {
    /// Allocates `n` answers in the form with this name.
    pub fn new(py: Python<'_>, n: usize, form: &str, out: Option<&Bound<'_, PyAny>>) -> PyResult<Answers> {
        match (form, out) {
            ("bool", _) => Ok(Answers::Bool(Output::new(py, n, out)?)),
            ("bitmap", _) => Ok(Answers::Bitmap(Output::new(py, n.div_ceil(8), out)?, vec![0; n])),
            ("arrow", None) => Ok(Answers::Arrow(vec![0; n])),
            ("arrow", Some(_)) => {
                Err(PyValueError::new_err("out: an Arrow array is always a new one; leave `out` away"))
            }
            _ => Err(PyValueError::new_err(format!("form={form:?}: there are \"bool\", \"bitmap\" and \"arrow\""))),
        }
    }

    /// Returns one byte per answer, 0 or 1.
    pub fn items(&mut self) -> &mut [u8] {
        match self {
            Answers::Bool(flags) => bytemuck::cast_slice_mut(flags.items()),
            Answers::Bitmap(_, answers) | Answers::Arrow(answers) => answers,
        }
    }

    /// Returns the object with the answers.
    pub fn finish(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(match self {
            Answers::Bool(flags) => flags.finish(),
            Answers::Bitmap(mut bitmap, answers) => {
                let bits = packed(&answers);
                bitmap.items().copy_from_slice(bits.values());
                bitmap.finish()
            }
            Answers::Arrow(answers) => Py::new(py, BooleanArray::of(&answers))?.into_any(),
        })
    }
}

/// Array for answers.
pub struct Output<T> {
    object: Py<PyAny>,
    buffer: PyUntypedBuffer,
    items: PhantomData<T>,
}

static NUMPY_EMPTY: PyOnceLock<Option<Py<PyAny>>> = PyOnceLock::new();

/// Returns the function `numpy.empty`, if NumPy is installed.
fn numpy_empty(py: Python<'_>) -> Option<&Bound<'_, PyAny>> {
    let find = || py.import("numpy").and_then(|numpy| numpy.getattr("empty")).ok().map(Bound::unbind);
    NUMPY_EMPTY.get_or_init(py, find).as_ref().map(|empty| empty.bind(py))
}

impl<T: Item> Output<T> {
    /// Uses the array `out` if its type and size fit; without `out`, creates one of `n` items: of NumPy, or a
    /// `memoryview` without NumPy.
    pub fn new(py: Python<'_>, n: usize, out: Option<&Bound<'_, PyAny>>) -> PyResult<Output<T>> {
        let object = match (out, numpy_empty(py)) {
            (Some(out), _) => out.clone(),
            (None, Some(empty)) => empty.call1((n, T::DTYPE))?,
            (None, None) => {
                let letter = T::LETTER.ok_or_else(|| {
                    PyTypeError::new_err(format!("arrays of {} are those of NumPy, which is not installed", T::DTYPE))
                })?;
                let bytes = PyByteArray::new_with(py, n * size_of::<T>(), |_| Ok(()))?;
                PyMemoryView::from(&bytes)?.call_method1("cast", (letter,))?
            }
        };
        let buffer = PyUntypedBuffer::get(&object).map_err(|_| {
            PyTypeError::new_err(format!("out: a writable array of {} is needed, such as one of NumPy", T::DTYPE))
        })?;
        let refuse = |why: &str| {
            let (dtype, found) = (T::DTYPE, buffer.item_count());
            Err(PyValueError::new_err(format!(
                "out: {why}; pass a writable, contiguous, flat array of {dtype} with {n} items (this one has {found})"
            )))
        };
        if out.is_some() && is_masked(&object)? {
            return refuse("the array is masked");
        }
        if buffer.readonly() {
            return refuse("the array is read-only");
        }
        if !T::fits(&buffer) {
            return refuse("the array has items of another type");
        }
        if buffer.dimensions() != 1 || buffer.item_count() != n || !buffer.is_c_contiguous() {
            return refuse("the array has another length or shape, or gaps");
        }
        if n > 0 && !buffer.buf_ptr().cast::<T>().is_aligned() {
            return refuse("the array is not aligned");
        }
        Ok(Output { object: object.unbind(), buffer, items: PhantomData })
    }

    /// Returns the items.
    pub fn items(&mut self) -> &mut [T] {
        let n = self.buffer.item_count();
        if n == 0 {
            return &mut [];
        }
        // SAFETY: `new` checked for `n` writable, aligned items, and the buffer keeps them. Python code that accesses
        // the array in another thread meanwhile sees some of the answers, as with NumPy's own functions.
        unsafe { slice::from_raw_parts_mut(self.buffer.buf_ptr().cast(), n) }
    }

    /// Returns the array.
    pub fn finish(self) -> Py<PyAny> {
        self.object
    }
}

/// Creates an array of items.
pub fn array<T: Item>(py: Python<'_>, items: &[T]) -> PyResult<Py<PyAny>> {
    let mut array = Output::<T>::new(py, items.len(), None)?;
    array.items().copy_from_slice(items);
    Ok(array.finish())
}
