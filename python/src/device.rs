//! Devices, and arrays on them: those of other libraries, and ours.

use std::ffi::CStr;
use std::fmt::Display;
use std::ptr::NonNull;
use std::sync::Mutex;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};
use pyo3::{ffi, intern};
use warpset::gpu::dlpack::{
    DL_CUDA, DL_EXT_DEV, DLManagedTensor, DLManagedTensorVersioned, DeviceTensor, ManagedTensor, SharedVec,
};
use warpset::gpu::{self, AdoptedMemory, ArrayItem, Backend, CudaArrayInterface, DeviceSlice, DeviceVec, GpuError};

use crate::error::{Failure, Result};
use crate::keys::{Batch, HostKeys};
use crate::output::{Flag, Item, Output};

/// A GPU, by its number; or the emulator of one, slow and meant for tests.
///
/// `Device("cuda:0")` opens the first GPU of the machine, `Device("cuda")` the first one that can be used,
/// `Device("emulator")` an emulator. Structures take either such an object or its name.
#[pyclass(frozen, module = "warpset", from_py_object)]
#[derive(Clone)]
pub struct Device(pub gpu::Device);

/// The emulator of this process: one, so that arrays and structures that name it are on the same device.
static EMULATOR: Mutex<Option<gpu::Device>> = Mutex::new(None);

/// Where a structure is to live.
pub enum Location {
    /// In host memory.
    Cpu,
    /// On a device.
    On(gpu::Device),
}

impl Location {
    /// What an argument `device=` names: `None` or `"cpu"`, `"auto"`, a device or its name.
    pub fn of(object: Option<&Bound<'_, PyAny>>) -> PyResult<Location> {
        let Some(object) = object else { return Ok(Location::Cpu) };
        if let Ok(device) = object.cast::<Device>() {
            return Ok(Location::On(device.get().0.clone()));
        }
        let wrong = || PyTypeError::new_err("device: pass \"cpu\", \"auto\", \"cuda\", \"cuda:N\" or a `Device`");
        let name = object.cast::<PyString>().map_err(|_| wrong())?;
        Ok(match name.to_str()? {
            "cpu" => Location::Cpu,
            "auto" => match Backend::auto() {
                Backend::Cuda(device) => Location::On(device),
                Backend::Cpu(_) => Location::Cpu,
            },
            name => Location::On(named(name)?),
        })
    }
}

/// The device of a name.
fn named(name: &str) -> PyResult<gpu::Device> {
    let ordinal = match name {
        "emulator" => {
            let mut emulator = EMULATOR.lock().map_err(|_| Failure::internal("the emulator has failed"))?;
            return Ok(emulator.get_or_insert_with(|| gpu::Device::emulator(Default::default())).clone());
        }
        "cuda" => match Backend::auto() {
            Backend::Cuda(device) => return Ok(device),
            Backend::Cpu(why) => return Err(Failure::from(why).into()),
        },
        _ => name.strip_prefix("cuda:").and_then(|ordinal| ordinal.parse().ok()),
    };
    let ordinal = ordinal.ok_or_else(|| {
        let why = format!("device {name:?}: there are \"cpu\", \"auto\", \"cuda\", \"cuda:N\" and \"emulator\"");
        PyValueError::new_err(why)
    })?;
    gpu::Device::cuda(ordinal).map_err(|error| Failure::from(error).into())
}

/// The name of a device, as `device=` takes it.
pub fn name_of(device: &gpu::Device) -> String {
    let properties = device.properties();
    if properties.is_emulator { "emulator".into() } else { format!("cuda:{}", properties.ordinal) }
}

#[pymethods]
impl Device {
    #[new]
    fn new(name: &str) -> PyResult<Device> {
        named(name).map(Device)
    }

    /// What the driver calls it.
    #[getter]
    fn name(&self) -> String {
        self.0.properties().name.clone()
    }

    /// Bytes of memory: free, and in all.
    #[getter]
    fn memory(&self, py: Python<'_>) -> Result<(usize, usize)> {
        let info = py.detach(|| self.0.memory_info())?;
        Ok((info.free, info.total))
    }

    /// Waits for all work on the device.
    fn synchronize(&self, py: Python<'_>) -> Result<()> {
        Ok(py.detach(|| self.0.synchronize())?)
    }

    /// Copies integers to the device: an array as `update` takes it, nulls left out.
    fn array(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<DeviceArray> {
        fn copied<T: SharedItem>(py: Python<'_>, device: &gpu::Device, items: &[T]) -> PyResult<DeviceArray> {
            Ok(T::share(py.detach(|| device.from_slice(items)).map_err(Failure::from)?))
        }
        let Batch::Host(parts) = Batch::of(keys)? else {
            return Err(PyValueError::new_err("the array is on a device; pass it to the structure as it is"));
        };
        match parts.as_slice() {
            [] => copied::<u64>(py, &self.0, &[]),
            [part] => match part.keys() {
                HostKeys::U32(items) => copied(py, &self.0, items),
                HostKeys::I32(items) => copied(py, &self.0, items),
                HostKeys::U64(items) => copied(py, &self.0, items),
                HostKeys::Strings(_) => {
                    Err(PyTypeError::new_err("strings stay on the host: pass them to the structure, which hashes them"))
                }
            },
            _ => Err(PyValueError::new_err("an array in chunks: combine them first, as by `.combine_chunks()`")),
        }
    }

    fn __eq__(&self, other: &Device) -> bool {
        name_of(&self.0) == name_of(&other.0)
    }

    fn __hash__(&self) -> u64 {
        u64::from(self.0.properties().ordinal) ^ u64::from(self.0.is_emulator()) << 32
    }

    fn __str__(&self) -> String {
        name_of(&self.0)
    }

    fn __repr__(&self) -> String {
        format!("Device({:?}, {})", name_of(&self.0), self.0.properties().name)
    }
}

/// All GPUs of this machine that can be used; an empty list if there are none, or no driver.
#[pyfunction]
pub fn devices() -> Vec<Device> {
    gpu::Device::cuda_all().map_or(Vec::new(), |devices| devices.into_iter().map(Device).collect())
}

/// Keys in device memory of another library.
pub enum DeviceKeys {
    /// By the fields of a `__cuda_array_interface__`, whose device shows when they are used.
    Interface {
        /// The fields.
        array: CudaArrayInterface,
        /// Keeps the memory.
        #[allow(dead_code, reason = "held, not read")]
        owner: Py<PyAny>,
    },
    /// A tensor taken by DLPack.
    Tensor(Tensor),
}

/// A tensor of another library, by the type of its items.
pub enum Tensor {
    /// Unsigned integers of 32 bits.
    U32(DeviceTensor<u32>),
    /// Signed integers of 32 bits.
    I32(DeviceTensor<i32>),
    /// Unsigned integers of 64 bits.
    U64(DeviceTensor<u64>),
    /// Signed integers of 64 bits.
    I64(DeviceTensor<i64>),
}

/// Memory of others on the device where it is used.
pub enum Kept<'a, T: ArrayItem> {
    /// Adopted for this call.
    Adopted(AdoptedMemory<'a, T>),
    /// Taken with its tensor.
    Tensor(&'a DeviceTensor<T>),
}

impl<T: ArrayItem> Kept<'_, T> {
    /// The items.
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        match self {
            Kept::Adopted(memory) => memory.as_slice(),
            Kept::Tensor(tensor) => tensor.as_slice(),
        }
    }
}

/// Keys on the device of a structure, by their type.
pub enum Adopted<'a> {
    /// Unsigned integers of 32 bits.
    U32(Kept<'a, u32>),
    /// Signed integers of 32 bits.
    I32(Kept<'a, i32>),
    /// Unsigned integers of 64 bits.
    U64(Kept<'a, u64>),
    /// Signed integers of 64 bits.
    I64(Kept<'a, i64>),
}

/// Runs `$body` with the slice of keys under the name `$keys`, whatever their type. Signed integers of 64 bits come as
/// unsigned ones: a key counts by its bits.
#[macro_export]
macro_rules! with_device_keys {
    ($adopted:expr, |$keys:ident| $body:expr) => {
        match $adopted {
            $crate::device::Adopted::U32(memory) => {
                let $keys = memory.as_slice();
                $body
            }
            $crate::device::Adopted::I32(memory) => {
                let $keys = memory.as_slice();
                $body
            }
            $crate::device::Adopted::U64(memory) => {
                let $keys = memory.as_slice();
                $body
            }
            $crate::device::Adopted::I64(memory) => {
                let $keys = memory.as_slice().cast::<u64>()?;
                $body
            }
        }
    };
}

/// Refuses arrays of several dimensions.
fn expect_flat(dimensions: usize) -> Result<()> {
    match dimensions {
        1 => Ok(()),
        _ => Err(Failure::value(format!("an array of {dimensions} dimensions: pass a flat one, as by `.ravel()`"))),
    }
}

/// Why items of that type are no keys.
fn no_keys(found: impl Display) -> Failure {
    let why = "keys on a device are integers of 32 or 64 bits (`.astype`, or `.view` of other numbers)";
    Failure::value(format!("a device array with items of type `{found}`: {why}"))
}

impl DeviceKeys {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        match self {
            DeviceKeys::Interface { array, .. } => array.item_count().unwrap_or(0),
            DeviceKeys::Tensor(Tensor::U32(tensor)) => tensor.as_slice().len(),
            DeviceKeys::Tensor(Tensor::I32(tensor)) => tensor.as_slice().len(),
            DeviceKeys::Tensor(Tensor::U64(tensor)) => tensor.as_slice().len(),
            DeviceKeys::Tensor(Tensor::I64(tensor)) => tensor.as_slice().len(),
        }
    }

    /// The keys, on the device where a structure is; memory of another device is an error.
    pub fn adopt(&self, device: &gpu::Device) -> Result<Adopted<'_>> {
        let array = match self {
            DeviceKeys::Interface { array, .. } => array,
            DeviceKeys::Tensor(Tensor::U32(tensor)) => return Ok(Adopted::U32(Kept::Tensor(tensor))),
            DeviceKeys::Tensor(Tensor::I32(tensor)) => return Ok(Adopted::I32(Kept::Tensor(tensor))),
            DeviceKeys::Tensor(Tensor::U64(tensor)) => return Ok(Adopted::U64(Kept::Tensor(tensor))),
            DeviceKeys::Tensor(Tensor::I64(tensor)) => return Ok(Adopted::I64(Kept::Tensor(tensor))),
        };
        expect_flat(array.shape.len())?;
        // SAFETY: the owner keeps the array. Work of other streams on it is ordered with ours: the methods that take
        // keys wait for all work on the device before and after.
        unsafe {
            Ok(match array.typestr.as_str() {
                "<u4" => Adopted::U32(Kept::Adopted(array.adopt(device)?)),
                "<i4" => Adopted::I32(Kept::Adopted(array.adopt(device)?)),
                "<u8" => Adopted::U64(Kept::Adopted(array.adopt(device)?)),
                "<i8" => Adopted::I64(Kept::Adopted(array.adopt(device)?)),
                other => return Err(no_keys(other)),
            })
        }
    }
}

/// The number by which DLPack calls memory that the driver moves between host and device.
const DL_CUDA_MANAGED: u32 = 13;

/// The keys in a tensor on a device, if the object gives one by DLPack.
fn tensor_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Tensor>> {
    let py = object.py();
    let Some(place) = object.getattr_opt(intern!(py, "__dlpack_device__"))? else { return Ok(None) };
    let (kind, ordinal): (u32, u32) = place.call0()?.extract()?;
    let device = match kind {
        DL_CUDA | DL_CUDA_MANAGED => gpu::Device::cuda(ordinal).map_err(Failure::from)?,
        DL_EXT_DEV => named("emulator")?,
        _ => return Ok(None),
    };
    // The producer makes its default stream wait for the tensor; taking it waits for the device.
    let capsule = object.call_method0(intern!(py, "__dlpack__"))?.cast_into::<PyCapsule>()?;
    let tensor = if capsule.is_valid_checked(Some(c"dltensor_versioned")) {
        take::<DLManagedTensorVersioned>(&capsule, &device, c"dltensor_versioned", c"used_dltensor_versioned")
    } else {
        take::<DLManagedTensor>(&capsule, &device, c"dltensor", c"used_dltensor")
    };
    tensor.map(Some)
}

/// Takes the tensor out of a capsule. If it does not fit, it stays there.
fn take<M: ManagedTensor>(
    capsule: &Bound<'_, PyCapsule>,
    device: &gpu::Device,
    name: &'static CStr,
    used: &'static CStr,
) -> PyResult<Tensor> {
    let tensor = capsule.pointer_checked(Some(name))?.cast::<M>();
    // SAFETY: a capsule of this name holds a sound tensor that nothing has taken, by the protocol. Work of other
    // streams on it is ordered with ours: the methods that take keys wait for all work on the device before and after.
    let taken = unsafe {
        let first = DeviceTensor::from_dlpack(device, tensor).map(Tensor::U64);
        let then = first.or_else(|_| DeviceTensor::from_dlpack(device, tensor).map(Tensor::I64));
        let then = then.or_else(|_| DeviceTensor::from_dlpack(device, tensor).map(Tensor::U32));
        then.or_else(|_| DeviceTensor::from_dlpack(device, tensor).map(Tensor::I32))
    };
    let taken = taken.map_err(|error| match error {
        GpuError::ForeignArray { field: "dtype", found, .. } => no_keys(found),
        error => Failure::from(error),
    })?;
    // SAFETY: the interpreter is attached, and the name lives for ever.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
        // The tensor is ours and the capsule's: nothing may give it back twice.
        std::mem::forget(taken);
        return Err(PyErr::fetch(capsule.py()));
    }
    let dimensions = match &taken {
        Tensor::U32(tensor) => tensor.shape().len(),
        Tensor::I32(tensor) => tensor.shape().len(),
        Tensor::U64(tensor) => tensor.shape().len(),
        Tensor::I64(tensor) => tensor.shape().len(),
    };
    expect_flat(dimensions)?;
    Ok(taken)
}

/// The fields of an object's `__cuda_array_interface__`, if it has one.
fn interface_of(object: &Bound<'_, PyAny>) -> PyResult<Option<CudaArrayInterface>> {
    let Some(fields) = object.getattr_opt(intern!(object.py(), "__cuda_array_interface__"))? else { return Ok(None) };
    let fields = fields.cast_into::<PyDict>()?;
    let field = |name: &str| {
        fields.get_item(name)?.ok_or_else(|| PyValueError::new_err(format!("__cuda_array_interface__ has no `{name}`")))
    };
    let optional = |name: &str| Ok::<_, PyErr>(fields.get_item(name)?.filter(|value| !value.is_none()));
    Ok(Some(CudaArrayInterface {
        shape: field("shape")?.extract()?,
        typestr: field("typestr")?.extract()?,
        data: field("data")?.extract()?,
        strides: optional("strides")?.map(|strides| strides.extract()).transpose()?,
        stream: optional("stream")?.map(|stream| stream.extract()).transpose()?,
        version: field("version")?.extract()?,
    }))
}

/// The keys of an array on a device, if the object is one.
pub fn keys(object: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
    if let Some(array) = interface_of(object)? {
        return Ok(Some(Batch::Device(DeviceKeys::Interface { array, owner: object.clone().unbind() })));
    }
    Ok(tensor_of(object)?.map(|tensor| Batch::Device(DeviceKeys::Tensor(tensor))))
}

/// An array on a device: keys copied there, or answers. CuPy, PyTorch, Numba and JAX take it without a copy, since it
/// has `__cuda_array_interface__` and `__dlpack__`: `cupy.asarray(answers)`, `torch.from_dlpack(answers)`.
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
            Shared::U32($items) => $body,
            Shared::I32($items) => $body,
            Shared::U64($items) => $body,
            Shared::I64($items) => $body,
        }
    };
}

/// An item that a [`DeviceArray`] can have.
pub trait SharedItem: Item + ArrayItem {
    /// The array that shares a vector.
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
    u32: U32;
    i32: I32;
    u64: U64;
    i64: I64;
}

impl DeviceArray {
    /// An array of booleans, bytes 0 and 1.
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

    /// A capsule with the items, for another library. They are ready for every stream.
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
        // SAFETY: the methods of this module that read or write the items wait for all work on the device before and
        // after, and have ended.
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

    /// Where it is.
    #[getter]
    fn device(&self) -> Device {
        Device(with_items!(&self.0, |items| items.as_slice().device().clone()))
    }

    /// The type of the items, as NumPy names it.
    #[getter]
    fn dtype(&self) -> &'static str {
        match &self.0 {
            Shared::Flags(_) => Flag::DTYPE,
            Shared::U32(_) => u32::DTYPE,
            Shared::I32(_) => i32::DTYPE,
            Shared::U64(_) => u64::DTYPE,
            Shared::I64(_) => i64::DTYPE,
        }
    }

    /// A copy in host memory: an array of NumPy, or a `memoryview` where NumPy is not installed.
    fn get(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        fn copied<T: Item>(py: Python<'_>, items: DeviceSlice<'_, T>) -> PyResult<Py<PyAny>> {
            let mut output = Output::<T>::new(py, items.len(), None)?;
            let target = output.items();
            py.detach(|| items.copy_to_slice(target)).map_err(Failure::from)?;
            Ok(output.finish())
        }
        match &self.0 {
            Shared::Flags(items) => copied(py, items.as_slice().cast::<Flag>().map_err(Failure::from)?),
            Shared::U32(items) => copied(py, items.as_slice()),
            Shared::I32(items) => copied(py, items.as_slice()),
            Shared::U64(items) => copied(py, items.as_slice()),
            Shared::I64(items) => copied(py, items.as_slice()),
        }
    }

    /// The items as a list.
    fn tolist(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.get(py)?.call_method0(py, intern!(py, "tolist"))
    }

    fn __repr__(&self) -> String {
        format!("DeviceArray({} items of {}, {})", self.__len__(), self.dtype(), name_of(&self.device().0))
    }
}

/// A capsule that gives its tensor back unless something has taken it.
///
/// # Safety
/// `tensor` is a sound tensor that nothing else uses.
unsafe fn capsule<M: ManagedTensor + Named>(py: Python<'_>, tensor: NonNull<M>) -> PyResult<Bound<'_, PyCapsule>> {
    unsafe extern "C" fn give_back<M: ManagedTensor + Named>(capsule: *mut ffi::PyObject) {
        // SAFETY: called once, for a capsule of ours, with the interpreter attached. One that was taken has another
        // name.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, M::NAME.as_ptr()) == 1 {
                let tensor = ffi::PyCapsule_GetPointer(capsule, M::NAME.as_ptr()).cast::<M>();
                M::give_back(tensor);
            }
        }
    }
    // SAFETY: a pointer that is not null, a name that lives for ever, a destructor that fits.
    unsafe {
        let capsule = ffi::PyCapsule_New(tensor.as_ptr().cast(), M::NAME.as_ptr(), Some(give_back::<M>));
        Ok(Bound::from_owned_ptr_or_err(py, capsule)?.cast_into_unchecked())
    }
}

/// What a capsule with such a tensor is called.
trait Named: Sized {
    const NAME: &'static CStr;

    /// Calls the deleter.
    ///
    /// # Safety
    /// `this` is a sound tensor that is not used afterwards.
    unsafe fn give_back(this: *mut Self);
}
macro_rules! named {
    ($($tensor:ty: $name:literal;)*) => {$(
        impl Named for $tensor {
            const NAME: &'static CStr = $name;

            unsafe fn give_back(this: *mut Self) {
                // SAFETY: the caller's promise.
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

/// An array that answers are written to, on the device of a structure.
pub fn output<'a, T: gpu::ArrayItem>(
    device: &gpu::Device,
    out: &'a Bound<'_, PyAny>,
    n: usize,
) -> PyResult<AdoptedMemory<'a, T>> {
    let mut array = interface_of(out)?.ok_or_else(|| {
        PyTypeError::new_err("out: keys are on a device, so pass an array there (CuPy, PyTorch, Numba) or nothing")
    })?;
    if array.data.1 {
        return Err(PyValueError::new_err("out: the array is read-only; pass one that can be written"));
    }
    if array.item_count().map_err(Failure::from)? != n {
        return Err(PyValueError::new_err(format!(
            "out: the array has shape {:?}, and there are {n} keys",
            array.shape
        )));
    }
    if array.typestr == "|b1" {
        array.typestr = "|u1".into();
    }
    // SAFETY: `out` keeps the array; the methods that write answers wait for all work on the device before and after,
    // and write 0 and 1.
    unsafe { array.adopt(device).map_err(|error: GpuError| Failure::from(error).into()) }
}
