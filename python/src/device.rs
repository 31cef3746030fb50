//! Devices, and arrays on devices: those of other libraries, and our own.

mod array;

use std::ffi::CStr;
use std::fmt::Display;
use std::ptr::NonNull;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyString};
use pyo3::{ffi, intern};
use warpset::gpu::dlpack::{
    DL_CUDA, DL_EXT_DEV, DLManagedTensor, DLManagedTensorVersioned, DeviceTensor, ManagedTensor,
};
use warpset::gpu::{self, AdoptedMemory, ArrayItem, Backend, CudaArrayInterface, DeviceSlice, GpuError};

pub use self::array::{DeviceArray, SharedItem};

use crate::error::{Failure, Result};
use crate::keys::{Batch, HostKeys};
use crate::sequences::Letters;

/// A GPU, or an emulator, which is slow and meant for tests.
///
/// `Device("cuda:0")` opens the first GPU of the machine, `Device("cuda")` the first usable one, `Device("emulator")`
/// an emulator. Structures take such an object or its name.
#[pyclass(frozen, module = "warpset", from_py_object)]
#[derive(Clone)]
pub struct Device(pub gpu::Device);

/// Place for a structure.
pub enum Location {
    /// In host memory.
    Cpu,
    /// On a device.
    On(gpu::Device),
}

impl Location {
    /// Parses an argument `device=`: `None` or `"cpu"`, `"auto"`, a device or its name.
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

/// Returns the emulator of this process. There is one, so that all arrays and structures on `"emulator"` share a
/// device.
#[cfg(feature = "emulator")]
fn emulator() -> PyResult<gpu::Device> {
    static EMULATOR: std::sync::Mutex<Option<gpu::Device>> = std::sync::Mutex::new(None);
    let mut emulator = EMULATOR.lock().map_err(|_| Failure::internal("the emulator has failed"))?;
    Ok(emulator.get_or_insert_with(|| gpu::Device::emulator(Default::default())).clone())
}

#[cfg(not(feature = "emulator"))]
fn emulator() -> PyResult<gpu::Device> {
    let why = "this build has no emulator, which is for tests: build one with `maturin develop --features emulator`";
    Err(PyValueError::new_err(why))
}

/// Opens the device with this name.
fn named(name: &str) -> PyResult<gpu::Device> {
    let ordinal = match name {
        "emulator" => return emulator(),
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

/// Returns the name of a device, as `device=` takes it.
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

    /// Returns the driver's name of the device.
    #[getter]
    fn name(&self) -> String {
        self.0.properties().name.clone()
    }

    /// Returns free and total memory in bytes.
    #[getter]
    fn memory(&self, py: Python<'_>) -> Result<(usize, usize)> {
        let info = py.detach(|| self.0.memory_info())?;
        Ok((info.free, info.total))
    }

    /// Waits for all work on the device.
    fn synchronize(&self, py: Python<'_>) -> Result<()> {
        Ok(py.detach(|| self.0.synchronize())?)
    }

    /// Copies integers to the device, from an array as `update` takes it, without its nulls.
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

    /// Copies the letters of a sequence to the device, as an array of `uint8` for a `SequenceFilter` there.
    fn letters(&self, py: Python<'_>, sequence: &Bound<'_, PyAny>) -> PyResult<DeviceArray> {
        let letters = Letters::of(sequence)?;
        let letters = letters.get();
        Ok(u8::share(py.detach(|| self.0.from_slice(letters)).map_err(Failure::from)?))
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

/// Returns all usable GPUs of this machine; an empty list without a GPU or driver.
#[pyfunction]
pub fn devices() -> Vec<Device> {
    gpu::Device::cuda_all().map_or(Vec::new(), |devices| devices.into_iter().map(Device).collect())
}

/// Keys in device memory of another library.
pub enum DeviceKeys {
    /// Fields of a `__cuda_array_interface__`; the device is determined on use.
    Interface {
        /// The fields.
        array: CudaArrayInterface,
        /// Owner of the memory.
        #[allow(dead_code, reason = "held, not read")]
        owner: Py<PyAny>,
    },
    /// A tensor received by DLPack.
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

/// Foreign memory on the device of a call.
pub enum Kept<'a, T: ArrayItem> {
    /// Adopted for this call.
    Adopted(AdoptedMemory<'a, T>),
    /// Part of a DLPack tensor.
    Tensor(&'a DeviceTensor<T>),
}

impl<T: ArrayItem> Kept<'_, T> {
    /// Returns the items.
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

/// Runs `$body` with the slice of keys under the name `$keys`, whatever their type. Signed integers of 64 bits are
/// passed as unsigned ones, since keys are compared by their bits.
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

/// Returns an error unless there is one dimension.
fn expect_flat(dimensions: usize) -> Result<()> {
    match dimensions {
        1 => Ok(()),
        _ => Err(Failure::value(format!("an array of {dimensions} dimensions: pass a flat one, as by `.ravel()`"))),
    }
}

/// Returns the error for items that cannot be keys.
fn no_keys(found: impl Display) -> Failure {
    let why = "keys on a device are integers of 32 or 64 bits (`.astype`, or `.view` of other numbers)";
    Failure::value(format!("a device array with items of type `{found}`: {why}"))
}

impl DeviceKeys {
    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        match self {
            DeviceKeys::Interface { array, .. } => array.item_count().unwrap_or(0),
            DeviceKeys::Tensor(Tensor::U32(tensor)) => tensor.as_slice().len(),
            DeviceKeys::Tensor(Tensor::I32(tensor)) => tensor.as_slice().len(),
            DeviceKeys::Tensor(Tensor::U64(tensor)) => tensor.as_slice().len(),
            DeviceKeys::Tensor(Tensor::I64(tensor)) => tensor.as_slice().len(),
        }
    }

    /// Returns the keys on the device of a structure; memory of another device is an error.
    pub fn adopt(&self, device: &gpu::Device) -> Result<Adopted<'_>> {
        let array = match self {
            DeviceKeys::Interface { array, .. } => array,
            DeviceKeys::Tensor(Tensor::U32(tensor)) => return Ok(Adopted::U32(Kept::Tensor(tensor))),
            DeviceKeys::Tensor(Tensor::I32(tensor)) => return Ok(Adopted::I32(Kept::Tensor(tensor))),
            DeviceKeys::Tensor(Tensor::U64(tensor)) => return Ok(Adopted::U64(Kept::Tensor(tensor))),
            DeviceKeys::Tensor(Tensor::I64(tensor)) => return Ok(Adopted::I64(Kept::Tensor(tensor))),
        };
        expect_flat(array.shape.len())?;
        // SAFETY: `owner` keeps the array. Methods that take keys wait for all work on the device before and after, so
        // work of other streams on the array does not overlap with ours.
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

/// DLPack's number for memory that the driver moves between host and device.
const DL_CUDA_MANAGED: u32 = 13;

/// Content of a DLPack capsule.
trait Taken: Sized {
    /// Takes the tensor if its items have the right type.
    ///
    /// # Safety
    /// The conditions of [`DeviceTensor::from_dlpack`].
    unsafe fn from_dlpack<M: ManagedTensor>(device: &gpu::Device, tensor: NonNull<M>) -> Result<Self, GpuError>;
    /// Returns the number of dimensions.
    fn dimensions(&self) -> usize;
    /// Returns the error for items of the wrong type.
    fn refused(found: String) -> Failure;
}

impl Taken for Tensor {
    unsafe fn from_dlpack<M: ManagedTensor>(device: &gpu::Device, tensor: NonNull<M>) -> Result<Tensor, GpuError> {
        // SAFETY: the caller guarantees the conditions of `from_dlpack`. A failed attempt leaves the tensor untouched.
        unsafe {
            let first = DeviceTensor::from_dlpack(device, tensor).map(Tensor::U64);
            let then = first.or_else(|_| DeviceTensor::from_dlpack(device, tensor).map(Tensor::I64));
            let then = then.or_else(|_| DeviceTensor::from_dlpack(device, tensor).map(Tensor::U32));
            then.or_else(|_| DeviceTensor::from_dlpack(device, tensor).map(Tensor::I32))
        }
    }

    fn dimensions(&self) -> usize {
        match self {
            Tensor::U32(tensor) => tensor.shape().len(),
            Tensor::I32(tensor) => tensor.shape().len(),
            Tensor::U64(tensor) => tensor.shape().len(),
            Tensor::I64(tensor) => tensor.shape().len(),
        }
    }

    fn refused(found: String) -> Failure {
        no_keys(found)
    }
}

impl Taken for DeviceTensor<u8> {
    unsafe fn from_dlpack<M: ManagedTensor>(device: &gpu::Device, tensor: NonNull<M>) -> Result<Self, GpuError> {
        // SAFETY: the caller guarantees the conditions of `from_dlpack`.
        unsafe { DeviceTensor::from_dlpack(device, tensor) }
    }

    fn dimensions(&self) -> usize {
        self.shape().len()
    }

    fn refused(found: String) -> Failure {
        no_letters(found)
    }
}

/// Receives a tensor by DLPack, if the object has one on a device.
fn tensor_of<T: Taken>(object: &Bound<'_, PyAny>) -> PyResult<Option<T>> {
    let py = object.py();
    let Some(place) = object.getattr_opt(intern!(py, "__dlpack_device__"))? else { return Ok(None) };
    let (kind, ordinal): (u32, u32) = place.call0()?.extract()?;
    let device = match kind {
        DL_CUDA | DL_CUDA_MANAGED => gpu::Device::cuda(ordinal).map_err(Failure::from)?,
        DL_EXT_DEV => named("emulator")?,
        _ => return Ok(None),
    };
    // The producer makes its default stream wait for the tensor, and taking it waits for the device.
    let capsule = object.call_method0(intern!(py, "__dlpack__"))?.cast_into::<PyCapsule>()?;
    let tensor = if capsule.is_valid_checked(Some(c"dltensor_versioned")) {
        take::<DLManagedTensorVersioned, T>(&capsule, &device, c"dltensor_versioned", c"used_dltensor_versioned")
    } else {
        take::<DLManagedTensor, T>(&capsule, &device, c"dltensor", c"used_dltensor")
    };
    tensor.map(Some)
}

/// Takes the tensor out of a capsule; a tensor of the wrong type stays there.
fn take<M: ManagedTensor, T: Taken>(
    capsule: &Bound<'_, PyCapsule>,
    device: &gpu::Device,
    name: &'static CStr,
    used: &'static CStr,
) -> PyResult<T> {
    let tensor = capsule.pointer_checked(Some(name))?.cast::<M>();
    // SAFETY: by the protocol, a capsule of this name contains a valid tensor that no consumer has taken. Methods that
    // take keys wait for all work on the device before and after, so work of other streams on the tensor does not
    // overlap.
    let taken = unsafe { T::from_dlpack(device, tensor) };
    let taken = taken.map_err(|error| match error {
        GpuError::ForeignArray { field: "dtype", found, .. } => T::refused(found),
        error => Failure::from(error),
    })?;
    // SAFETY: the interpreter is attached, and `used` is static.
    if unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) } != 0 {
        // The capsule still owns the tensor, and would free it a second time.
        std::mem::forget(taken);
        return Err(PyErr::fetch(capsule.py()));
    }
    expect_flat(taken.dimensions())?;
    Ok(taken)
}

/// Reads the fields of an object's `__cuda_array_interface__`, if it has one.
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

/// Returns the keys of an array on a device; `None` for other objects.
pub fn keys(object: &Bound<'_, PyAny>) -> PyResult<Option<Batch>> {
    if let Some(array) = interface_of(object)? {
        return Ok(Some(Batch::Device(DeviceKeys::Interface { array, owner: object.clone().unbind() })));
    }
    Ok(tensor_of(object)?.map(|tensor| Batch::Device(DeviceKeys::Tensor(tensor))))
}

/// Letters in device memory of another library.
pub enum DeviceLetters {
    /// Fields of a `__cuda_array_interface__`.
    Interface {
        /// The fields.
        array: CudaArrayInterface,
        /// Owner of the memory.
        #[allow(dead_code, reason = "held, not read")]
        owner: Py<PyAny>,
    },
    /// A tensor received by DLPack.
    Tensor(DeviceTensor<u8>),
}

impl DeviceLetters {
    /// Returns the letters of an array on a device; `None` for other objects.
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<DeviceLetters>> {
        if let Some(array) = interface_of(object)? {
            return Ok(Some(DeviceLetters::Interface { array, owner: object.clone().unbind() }));
        }
        Ok(tensor_of(object)?.map(DeviceLetters::Tensor))
    }

    /// Returns the letters on the device of a structure; memory of another device is an error.
    pub fn adopt(&self, device: &gpu::Device) -> Result<Kept<'_, u8>> {
        match self {
            DeviceLetters::Interface { array, .. } => {
                expect_flat(array.shape.len())?;
                if array.typestr != "|u1" {
                    return Err(no_letters(&array.typestr));
                }
                // SAFETY: `owner` keeps the array, and methods that take letters wait for all work on the device before
                // and after.
                Ok(Kept::Adopted(unsafe { array.adopt(device)? }))
            }
            DeviceLetters::Tensor(tensor) => Ok(Kept::Tensor(tensor)),
        }
    }
}

/// Returns the error for items that cannot be letters.
fn no_letters(found: impl Display) -> Failure {
    Failure::value(format!("a device array with items of type `{found}`: letters on a device are `uint8`"))
}

/// Adopts an array for answers on the device of a structure.
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
    // SAFETY: `out` keeps the array. Methods that write answers wait for all work on the device before and after, and
    // write bytes 0 and 1 only.
    unsafe { array.adopt(device).map_err(|error: GpuError| Failure::from(error).into()) }
}
