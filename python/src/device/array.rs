//! Our own arrays on devices, which other libraries take without a copy.

use std::ffi::CStr;
use std::ptr::NonNull;

use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{ffi, intern};
use warpset::gpu::dlpack::{DLManagedTensor, DLManagedTensorVersioned, ManagedTensor, SharedVec};
use warpset::gpu::{ArrayItem, DeviceSlice, DeviceVec};

use super::{Device, name_of};
use crate::error::Failure;
use crate::output::{Flag, Item, Output};

/// An array on a device: copied keys, or answers. CuPy, PyTorch, Numba and JAX take it without a copy by
/// `__cuda_array_interface__` and `__dlpack__`: `cupy.asarray(answers)`, `torch.from_dlpack(answers)`.
///
/// >>> import warpset
/// >>> keys = warpset.Device("emulator").array([2, 3, 5, 7])
/// >>> keys
/// DeviceArray(4 items of uint64, emulator)
/// >>> primes = warpset.SplitBlockBloom(100, fpr=0.001, device="emulator")
/// >>> primes.update(keys)
/// >>> primes.contains(keys).tolist()
/// [True, True, True, True]
#[pyclass(frozen, module = "warpset")]
pub struct DeviceArray(Shared);

/// The items of a [`DeviceArray`].
enum Shared {
    Flags(SharedVec<u8>),
    U8(SharedVec<u8>),
    U32(SharedVec<u32>),
    I32(SharedVec<i32>),
    U64(SharedVec<u64>),
    I64(SharedVec<i64>),
}

/// Runs `$body` with the items under the name `$items`, whatever their type.
macro_rules! with_items {
    ($shared:expr, |$items:ident| $body:expr) => {
        match $shared {
            Shared::Flags($items) => $body,
            Shared::U8($items) => $body,
            Shared::U32($items) => $body,
            Shared::I32($items) => $body,
            Shared::U64($items) => $body,
            Shared::I64($items) => $body,
        }
    };
}

/// Type of items of a [`DeviceArray`].
pub trait SharedItem: Item + ArrayItem {
    /// Wraps a vector.
    fn share(vector: DeviceVec<Self>) -> DeviceArray;
}
macro_rules! shared_items {
    ($($item:ty: $variant:ident;)*) => {$(
        impl SharedItem for $item {
            fn share(vector: DeviceVec<$item>) -> DeviceArray {
                DeviceArray(Shared::$variant(SharedVec::new(vector)))
            }
        }
    )*};
}
shared_items! {
    u8: U8;
    u32: U32;
    i32: I32;
    u64: U64;
    i64: I64;
}

impl DeviceArray {
    /// Wraps booleans, bytes 0 and 1.
    pub fn flags(vector: DeviceVec<u8>) -> DeviceArray {
        DeviceArray(Shared::Flags(SharedVec::booleans(vector)))
    }
}

#[pymethods]
impl DeviceArray {
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let array = with_items!(&self.0, |items| items.interface());
        let fields = PyDict::new(py);
        fields.set_item("shape", (array.shape[0],))?;
        fields.set_item("typestr", array.typestr)?;
        fields.set_item("data", array.data)?;
        fields.set_item("strides", py.None())?;
        fields.set_item("version", array.version)?;
        Ok(fields)
    }

    /// Returns a capsule with the items for another library; they are ready on every stream.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = stream;
        if dl_device.is_some_and(|asked| asked != self.__dlpack_device__()) || copy == Some(true) {
            return Err(PyBufferError::new_err("the array stays where it is: make the copy after taking it"));
        }
        // SAFETY: the methods of this module that read or write the items have returned, and wait for all work on the
        // device before and after.
        unsafe {
            if max_version.is_some_and(|(major, _)| major >= 1) {
                capsule::<DLManagedTensorVersioned>(py, with_items!(&self.0, |items| items.to_dlpack()))
            } else {
                capsule::<DLManagedTensor>(py, with_items!(&self.0, |items| items.to_dlpack()))
            }
        }
    }

    fn __dlpack_device__(&self) -> (u32, i32) {
        let place = with_items!(&self.0, |items| items.place());
        (place.device_type, place.device_id)
    }

    fn __len__(&self) -> usize {
        with_items!(&self.0, |items| items.as_slice().len())
    }

    /// Returns the device.
    #[getter]
    fn device(&self) -> Device {
        Device(with_items!(&self.0, |items| items.as_slice().device().clone()))
    }

    /// Returns NumPy's name of the type of items.
    #[getter]
    fn dtype(&self) -> &'static str {
        match &self.0 {
            Shared::Flags(_) => Flag::DTYPE,
            Shared::U8(_) => u8::DTYPE,
            Shared::U32(_) => u32::DTYPE,
            Shared::I32(_) => i32::DTYPE,
            Shared::U64(_) => u64::DTYPE,
            Shared::I64(_) => i64::DTYPE,
        }
    }

    /// Copies the items to host memory: an array of NumPy, or a `memoryview` without NumPy.
    fn get(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        fn copied<T: Item>(py: Python<'_>, items: DeviceSlice<'_, T>) -> PyResult<Py<PyAny>> {
            let mut output = Output::<T>::new(py, items.len(), None)?;
            let target = output.items();
            py.detach(|| items.copy_to_slice(target)).map_err(Failure::from)?;
            Ok(output.finish())
        }
        match &self.0 {
            Shared::Flags(items) => copied(py, items.as_slice().cast::<Flag>().map_err(Failure::from)?),
            Shared::U8(items) => copied(py, items.as_slice()),
            Shared::U32(items) => copied(py, items.as_slice()),
            Shared::I32(items) => copied(py, items.as_slice()),
            Shared::U64(items) => copied(py, items.as_slice()),
            Shared::I64(items) => copied(py, items.as_slice()),
        }
    }

    /// Returns the items as a list.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py)?.call_method0(py, intern!(py, "tolist"))
    }

    fn __repr__(&self) -> String {
        format!("DeviceArray({} items of {}, {})", self.__len__(), self.dtype(), name_of(&self.device().0))
    }
}

/// Wraps a tensor in a capsule, which frees it unless a consumer takes it.
///
/// # Safety
/// `tensor` is a valid tensor that nothing else uses.
unsafe fn capsule<M: ManagedTensor + Named>(py: Python<'_>, tensor: NonNull<M>) -> PyResult<Bound<'_, PyCapsule>> {
    unsafe extern "C" fn give_back<M: ManagedTensor + Named>(capsule: *mut ffi::PyObject) {
        // SAFETY: Python calls this once, for a capsule of ours, with the interpreter attached. A consumer renames the
        // capsule, so a tensor with this name is still owned by it.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) == 1 {
                let tensor = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
                M::give_back(tensor);
            }
        }
    }
    // SAFETY: the pointer is not null, the name is static, and the destructor takes such capsules.
    unsafe {
        let capsule = ffi::PyCapsule_New(tensor.as_ptr().cast(), M::NAME.as_ptr(), Some(give_back::<M>));
        Ok(Bound::from_owned_ptr_or_err(py, capsule)?.cast_into_unchecked())
    }
}

/// Name of a capsule with such a tensor.
trait Named: Sized {
    const NAME: &'static CStr;

    /// Calls the deleter.
    ///
    /// # Safety
    /// `this` is a valid tensor that is not used afterwards.
    unsafe fn give_back(this: *mut Self);
}
macro_rules! named {
    ($($tensor:ty: $name:literal;)*) => {$(
        impl Named for $tensor {
            const NAME: &'static CStr = $name;

            unsafe fn give_back(this: *mut Self) {
                // SAFETY: the caller guarantees a valid tensor, whose deleter is called once.
                unsafe {
                    if let Some(delete) = (*this).deleter {
                        delete(this);
                    }
                }
            }
        }
    )*};
}
named! {
    DLManagedTensor: c"dltensor";
    DLManagedTensorVersioned: c"dltensor_versioned";
}
