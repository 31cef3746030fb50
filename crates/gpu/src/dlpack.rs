//! Exchange of tensors with PyTorch, JAX, CuPy, NumPy and others by DLPack, in both directions and without a copy.
//!
//! Source: DLPack 1.3, `include/dlpack/dlpack.h`, and its Python specification. A program that embeds Python, or talks
//! to it, takes the pointer out of the capsule returned by `__dlpack__`, and renames the capsule to `used_dltensor` or
//! `used_dltensor_versioned` when the tensor is here; or makes a capsule of what [`DeviceVec::into_dlpack`] gives.
//! Crates that speak Python, such as `dlpark`, have the same structures, to whose pointers ours are cast.
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_gpu::dlpack::{DLManagedTensorVersioned, DeviceTensor};
//!
//! let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
//! let keys = device.from_slice(&[2u64, 3, 5, 7])?;
//! let theirs = keys.into_dlpack::<DLManagedTensorVersioned>()?; // what another library takes, and gives back by its deleter
//!
//! // SAFETY: the tensor is a sound one, and nothing else uses it.
//! let back = unsafe { DeviceTensor::<u64>::from_dlpack(&device, theirs)? }; // what we make of what it gives
//! assert_eq!((back.as_slice().to_vec()?, back.shape()), (vec![2, 3, 5, 7], &[4][..]));
//! drop(back); // calls the deleter, which frees the memory
//! # Ok::<(), warpset_gpu::GpuError>(())
//! ```

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use bytemuck::Pod;

use crate::adopt::AdoptedMemory;
use crate::cuda_array::{ArrayItem, CudaArrayInterface, unfit};
use crate::device::Device;
use crate::error::{GpuError, Result};
use crate::memory::byte_len;
use crate::slice::{DeviceSlice, DeviceSliceMut};
use crate::vector::DeviceVec;

mod abi;

pub use abi::{
    DL_CPU, DL_CUDA, DL_CUDA_HOST, DL_EXT_DEV, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned,
    DLPACK_FLAG_BITMASK_READ_ONLY, DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION, DLPackVersion, DLTensor, ManagedTensor,
};

/// The code of booleans, whose items are bytes.
const BOOLEAN: u8 = 6;

/// Names the type of an item in DLPack's terms.
fn type_of<T: ArrayItem>() -> DLDataType {
    let code = match T::KIND {
        'i' => 0,
        'u' => 1,
        _ => 2,
    };
    DLDataType { code, bits: 8 * size_of::<T>() as u8, lanes: 1 }
}

/// Names the place of a device's memory in DLPack's terms.
fn place_of(device: &Device) -> DLDevice {
    let properties = device.properties();
    let device_type = if properties.is_emulator { DL_EXT_DEV } else { DL_CUDA };
    DLDevice { device_type, device_id: properties.ordinal as i32 }
}

/// Items of a tensor and their place.
struct Items {
    address: usize,
    len: usize,
    shape: Vec<usize>,
    is_read_only: bool,
}

impl Items {
    /// Finds the items of a tensor, if they are of type `T` and contiguous in a place that `is_here` accepts.
    ///
    /// # Safety
    /// `managed` is a sound tensor of whatever version.
    unsafe fn of<T: ArrayItem, M: ManagedTensor>(
        managed: NonNull<M>,
        is_here: impl FnOnce(DLDevice) -> Result<()>,
    ) -> Result<Items> {
        // SAFETY: a sound tensor, by this function's contract.
        if let Some(DLPackVersion { major, minor }) = unsafe { M::version(managed) }
            && major != DLPACK_MAJOR_VERSION
        {
            return Err(unfit("version", format!("{major}.{minor}"), format!("{DLPACK_MAJOR_VERSION}.x")));
        }
        // SAFETY: the tensor is sound, by this function's contract, and this version has this layout.
        let managed = unsafe { managed.as_ref() };
        let tensor = managed.tensor();
        is_here(tensor.device)?;
        let (found, expected) = (tensor.dtype, type_of::<T>());
        let is_boolean = found == DLDataType { code: BOOLEAN, ..expected } && expected == type_of::<u8>();
        if found != expected && !is_boolean {
            return Err(unfit("dtype", format!("{found:?}"), format!("{expected:?}")));
        }
        let Some(shape) = tensor.dimensions(tensor.shape) else {
            return Err(unfit("ndim", tensor.ndim, "the number of items of `shape`"));
        };
        let unfit_shape = || unfit("shape", format!("{shape:?}"), "one whose items can be addressed");
        let sizes = shape.iter().map(|&items| usize::try_from(items)).collect::<Result<Vec<_>, _>>();
        let sizes = sizes.map_err(|_| unfit_shape())?;
        // A dimension without items makes the others irrelevant.
        let len =
            if sizes.contains(&0) { Some(0) } else { sizes.iter().try_fold(1usize, |all, &n| all.checked_mul(n)) };
        let len = len.filter(|&len| byte_len::<T>(len).is_ok()).ok_or_else(unfit_shape)?;
        if let Some(strides) = tensor.dimensions(tensor.strides).filter(|_| len > 0)
            && !is_contiguous(shape, strides)
        {
            let found = format!("{strides:?} for shape {shape:?}");
            return Err(unfit("strides", found, "items one after the other: make a contiguous copy"));
        }
        if len > 0 && tensor.data.is_null() {
            return Err(unfit("data", "null", "the address of the items"));
        }
        let offset = tensor.byte_offset;
        let address = usize::try_from(offset).ok().and_then(|offset| tensor.data.addr().checked_add(offset));
        let address = address.ok_or_else(|| unfit("byte_offset", offset, "one within the address space"))?;
        if len > 0 && !address.is_multiple_of(align_of::<T>()) {
            let (bytes, item_size, alignment) = (len * size_of::<T>(), size_of::<T>(), align_of::<T>());
            return Err(GpuError::InvalidCast { bytes, item_size, alignment });
        }
        Ok(Items { address, len, shape: sizes, is_read_only: managed.is_read_only() })
    }

    fn expect_writable(&self) -> Result<()> {
        if self.is_read_only {
            Err(unfit("flags", "that forbid writing", "a tensor that may be written"))
        } else {
            Ok(())
        }
    }
}

impl DLTensor {
    /// Returns the numbers of all dimensions, unless there are dimensions and no numbers.
    fn dimensions(&self, numbers: *mut i64) -> Option<&[i64]> {
        match usize::try_from(self.ndim) {
            Ok(0) => Some(&[]),
            // SAFETY: a sound tensor has a number for each dimension, as long as it lives.
            Ok(dimensions) if !numbers.is_null() => Some(unsafe { slice::from_raw_parts(numbers, dimensions) }),
            _ => None,
        }
    }
}

/// Whether items lie one after the other, the last dimension first. Strides of dimensions of one item do not matter.
fn is_contiguous(shape: &[i64], strides: &[i64]) -> bool {
    let mut next = 1i64;
    strides.iter().zip(shape).rev().all(|(&stride, &items)| {
        let fits = items == 1 || stride == next;
        next = next.wrapping_mul(items);
        fits
    })
}

/// Gives a tensor back when it is dropped.
struct Owner {
    tensor: NonNull<()>,
    delete: unsafe fn(NonNull<()>),
}

// SAFETY: nothing but the deleter uses the pointer, and `new` was promised that any thread may call it, if the owner is
// in a type that can be sent to another one.
unsafe impl Send for Owner {}
// SAFETY: a shared owner gives no access to anything.
unsafe impl Sync for Owner {}

impl Owner {
    /// Takes over a tensor.
    ///
    /// # Safety
    /// The tensor is ours alone, and its deleter has not been called. The deleter may be called on any thread that the
    /// owner is sent to.
    unsafe fn new<M: ManagedTensor>(tensor: NonNull<M>) -> Owner {
        unsafe fn delete<M: ManagedTensor>(tensor: NonNull<()>) {
            // SAFETY: the promise of `Owner::new`; the owner is dropped once.
            unsafe { M::delete(tensor.cast()) }
        }
        Owner { tensor: tensor.cast(), delete: delete::<M> }
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the promise of `Owner::new`.
        unsafe { (self.delete)(self.tensor) }
    }
}

/// A tensor of another library in device memory. When it is dropped, it waits for all work on the device and gives the
/// tensor back.
pub struct DeviceTensor<T: ArrayItem> {
    memory: AdoptedMemory<'static, T>,
    items: Items,
    device: Device,
    /// Dropped last.
    _owner: Owner,
}

impl<T: ArrayItem> DeviceTensor<T> {
    /// Takes a tensor of `device`, whose items are of type `T` and lie one after the other; bytes may be booleans.
    /// Waits for all work on the device, so that queued work that fills the tensor is done.
    ///
    /// # Errors
    /// [`GpuError::ForeignArray`] names the field that does not fit; [`GpuError::InvalidCast`] if the items are not
    /// aligned; those of [`AdoptedMemory::new`]. The tensor is still the caller's then, and its deleter has not been
    /// called.
    ///
    /// # Safety
    /// - `tensor` is a sound tensor whose deleter has not been called. If this succeeds, the caller does not use it any
    ///   more, and its deleter may be called on any thread that the returned tensor is sent to.
    /// - While the returned tensor lives, all other reads and writes of the items are ordered, by a stream or an event,
    ///   with the work of this crate that accesses them (two reads need no order).
    /// - If the items are booleans, nothing but 0 and 1 is written.
    pub unsafe fn from_dlpack<M: ManagedTensor>(device: &Device, tensor: NonNull<M>) -> Result<Self> {
        let here = place_of(device);
        let is_here = |found| {
            if found == here { Ok(()) } else { Err(unfit("device", format!("{found:?}"), format!("{here:?}"))) }
        };
        // SAFETY: a sound tensor, by this function's contract.
        let items = unsafe { Items::of::<T, M>(tensor, is_here)? };
        device.synchronize()?;
        // A tensor without items may have any address.
        let address = if items.len == 0 { 0 } else { items.address as u64 };
        // SAFETY: the items stay valid until the deleter is called, and the memory is dropped before `owner`, which
        // calls it.
        let memory = unsafe { AdoptedMemory::new(device, address, items.len)? };
        // SAFETY: the deleter has not been called, by this function's contract, and `Owner` alone calls it.
        let owner = unsafe { Owner::new(tensor) };
        Ok(Self { memory, items, device: device.clone(), _owner: owner })
    }

    /// Returns the number of items in each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.items.shape
    }

    /// Borrows the items for reading, all dimensions in one.
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        self.memory.as_slice()
    }

    /// Borrows the items for writing.
    ///
    /// # Errors
    /// [`GpuError::ForeignArray`] if the tensor's flags forbid it. The form without a version has no flags.
    pub fn as_mut_slice(&mut self) -> Result<DeviceSliceMut<'_, T>> {
        self.items.expect_writable()?;
        Ok(self.memory.as_mut_slice())
    }
}

impl<T: ArrayItem> Drop for DeviceTensor<T> {
    fn drop(&mut self) {
        // The next call to the device reports a failure.
        let _ = self.device.synchronize();
    }
}

impl<T: ArrayItem> fmt::Debug for DeviceTensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceTensor({:?} items on {})", self.shape(), self.device)
    }
}

/// A tensor of another library in host memory, plain or pinned: a slice of its items, as methods in `_bulk` take them.
/// When it is dropped, it gives the tensor back.
pub struct HostTensor<T: ArrayItem> {
    data: NonNull<T>,
    items: Items,
    _owner: Owner,
}

impl<T: ArrayItem> HostTensor<T> {
    /// Takes a tensor of the host, whose items are of type `T` and lie one after the other; bytes may be booleans.
    ///
    /// ```
    /// use warpset_gpu::dlpack::{DLManagedTensor, HostTensor, vec_into_dlpack};
    ///
    /// let theirs = vec_into_dlpack::<_, DLManagedTensor>(vec![0.5f32, 1.5]);
    /// // SAFETY: the tensor is a sound one, and nothing else uses it.
    /// let back = unsafe { HostTensor::<f32>::from_dlpack(theirs)? };
    /// assert_eq!(back[..], [0.5, 1.5]);
    /// # Ok::<(), warpset_gpu::GpuError>(())
    /// ```
    ///
    /// # Errors
    /// As for [`DeviceTensor::from_dlpack`].
    ///
    /// # Safety
    /// - `tensor` is a sound tensor whose deleter has not been called. If this succeeds, the caller does not use it any
    ///   more.
    /// - While the returned tensor lives, nothing else writes the items, and after [`HostTensor::as_mut_slice`] nothing
    ///   else reads them.
    /// - If the items are booleans, nothing but 0 and 1 is written.
    pub unsafe fn from_dlpack<M: ManagedTensor>(tensor: NonNull<M>) -> Result<Self> {
        let is_here = |found: DLDevice| match found.device_type {
            DL_CPU | DL_CUDA_HOST => Ok(()),
            _ => Err(unfit("device", format!("{found:?}"), "one of the host: 1, or 3 for pinned memory")),
        };
        // SAFETY: a sound tensor, by this function's contract.
        let items = unsafe { Items::of::<T, M>(tensor, is_here)? };
        // SAFETY: the tensor is sound, by this function's contract, and `Items::of` has checked its version.
        let data = unsafe { tensor.as_ref() }.tensor().data.cast::<u8>();
        let data = match items.len {
            0 => NonNull::dangling(),
            // `Items::of` has checked that the address is aligned and not null.
            _ => NonNull::new(data.wrapping_add(items.address - data.addr()).cast()).unwrap_or(NonNull::dangling()),
        };
        // SAFETY: the deleter has not been called, by this function's contract, and `Owner` alone calls it.
        Ok(Self { data, items, _owner: unsafe { Owner::new(tensor) } })
    }

    /// Returns the number of items in each dimension.
    pub fn shape(&self) -> &[usize] {
        &self.items.shape
    }

    /// Borrows the items for writing.
    ///
    /// # Errors
    /// As for [`DeviceTensor::as_mut_slice`].
    pub fn as_mut_slice(&mut self) -> Result<&mut [T]> {
        self.items.expect_writable()?;
        // SAFETY: `from_dlpack` was promised that many items, which nothing else accesses; `T` takes any bytes.
        Ok(unsafe { slice::from_raw_parts_mut(self.data.as_ptr(), self.items.len) })
    }
}

impl<T: ArrayItem> Deref for HostTensor<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `from_dlpack` was promised that many items, which nothing writes meanwhile; `T` takes any bytes.
        unsafe { slice::from_raw_parts(self.data.as_ptr(), self.items.len) }
    }
}

impl<T: ArrayItem> fmt::Debug for HostTensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostTensor({:?} items)", self.shape())
    }
}

/// Data that must stay until other libraries have released a tensor of ours.
struct Context<O> {
    shape: [i64; 1],
    strides: [i64; 1],
    _owner: O,
}

/// Makes a tensor of one dimension; its deleter drops `owner`.
fn export<M: ManagedTensor, T: ArrayItem, O>(owner: O, device: DLDevice, data: *mut T, len: usize) -> NonNull<M> {
    export_as(owner, device, data, len, type_of::<T>())
}

/// Does the work of [`export`] with another name for the type of the items.
fn export_as<M: ManagedTensor, T: ArrayItem, O>(
    owner: O,
    device: DLDevice,
    data: *mut T,
    len: usize,
    dtype: DLDataType,
) -> NonNull<M> {
    unsafe extern "C" fn delete<M: ManagedTensor, O>(managed: *mut M) {
        // SAFETY: whoever has the tensor calls this once, with what `export` returned.
        unsafe {
            let managed = Box::from_raw(managed);
            drop(Box::from_raw(managed.context().cast::<Context<O>>()));
        }
    }
    let context = Box::into_raw(Box::new(Context { shape: [len as i64], strides: [1], _owner: owner }));
    // An empty tensor has no address.
    let data = if len == 0 { std::ptr::null_mut() } else { data.cast() };
    // SAFETY: the context has just been made, and stays until the deleter is called.
    let (shape, strides) = unsafe { (&raw mut (*context).shape, &raw mut (*context).strides) };
    let (shape, strides) = (shape.cast(), strides.cast());
    let tensor = DLTensor { data, device, ndim: 1, dtype, shape, strides, byte_offset: 0 };
    NonNull::from(Box::leak(Box::new(M::new(tensor, context.cast(), delete::<M, O>))))
}

/// Device memory that is freed after all work on the device, of whatever library.
struct FreedAfterAll<T: Pod>(DeviceVec<T>);

impl<T: Pod> Drop for FreedAfterAll<T> {
    fn drop(&mut self) {
        // The next call to the device reports a failure.
        let _ = self.0.device().synchronize();
    }
}

impl<T: ArrayItem> DeviceVec<T> {
    /// Turns the vector into a tensor of one dimension for another library, after waiting for all work on the device.
    /// The library releases it by its deleter, on any thread; that waits for all work on the device and frees the
    /// memory. If no library takes the tensor, its memory stays allocated. On the emulator its device is
    /// [`DL_EXT_DEV`], which no other library takes.
    ///
    /// # Errors
    /// The error of earlier work on the device. The vector is dropped then.
    pub fn into_dlpack<M: ManagedTensor>(mut self) -> Result<NonNull<M>> {
        self.device().synchronize()?;
        let (device, len) = (place_of(self.device()), self.len());
        let data = std::ptr::with_exposed_provenance_mut::<T>(self.as_mut_slice().as_raw_mut() as usize);
        Ok(export(FreedAfterAll(self), device, data, len))
    }
}

/// A vector in device memory that other libraries use too, by DLPack or the CUDA array interface. Clones share the
/// vector; its memory is freed when the last clone and the last tensor are gone, after all work on the device.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_gpu::dlpack::{DLManagedTensor, DeviceTensor, SharedVec};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let shared = SharedVec::new(device.from_slice(&[2u64, 3, 5, 7])?);
/// // SAFETY: nothing writes the items any more.
/// let theirs = unsafe { shared.to_dlpack::<DLManagedTensor>() };
/// // SAFETY: the tensor is a sound one, and nothing else uses it.
/// let back = unsafe { DeviceTensor::<u64>::from_dlpack(&device, theirs)? };
/// drop(shared);
/// assert_eq!(back.as_slice().to_vec()?, [2, 3, 5, 7]);
/// # Ok::<(), warpset_gpu::GpuError>(())
/// ```
pub struct SharedVec<T: ArrayItem> {
    vector: Arc<FreedAfterAll<T>>,
    dtype: DLDataType,
}

impl<T: ArrayItem> Clone for SharedVec<T> {
    fn clone(&self) -> Self {
        Self { vector: self.vector.clone(), dtype: self.dtype }
    }
}

impl SharedVec<u8> {
    /// Shares bytes 0 and 1, which other libraries see as booleans.
    pub fn booleans(vector: DeviceVec<u8>) -> Self {
        Self { dtype: DLDataType { code: BOOLEAN, ..type_of::<u8>() }, ..Self::new(vector) }
    }
}

impl<T: ArrayItem> SharedVec<T> {
    /// Wraps a vector to share it.
    pub fn new(vector: DeviceVec<T>) -> Self {
        Self { vector: Arc::new(FreedAfterAll(vector)), dtype: type_of::<T>() }
    }

    /// Borrows the items for reading.
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        self.vector.0.as_slice()
    }

    /// Returns the fields of `__cuda_array_interface__` for other libraries. They may read and write the items while a
    /// clone exists; the calls of this crate that access them wait for all work on the device.
    pub fn interface(&self) -> CudaArrayInterface {
        let mut array = CudaArrayInterface::from_slice(self.as_slice());
        array.data.1 = false;
        if self.dtype.code == BOOLEAN {
            array.typestr = "|b1".into();
        }
        array
    }

    /// Returns a tensor of one dimension for another library, which releases it by its deleter, on any thread.
    ///
    /// # Safety
    /// - While the tensor is used, all reads and writes of the items, here and there, are ordered by a stream or an
    ///   event (two reads need no order). Work on the items that was queued before this call has ended, or is ordered
    ///   too.
    pub unsafe fn to_dlpack<M: ManagedTensor>(&self) -> NonNull<M> {
        let items = self.as_slice();
        let data = std::ptr::with_exposed_provenance_mut::<T>(items.as_raw() as usize);
        export_as(self.vector.clone(), place_of(items.device()), data, items.len(), self.dtype)
    }

    /// Returns the device of the items in the form of `__dlpack_device__`.
    pub fn place(&self) -> DLDevice {
        place_of(self.as_slice().device())
    }
}

impl<T: ArrayItem> fmt::Debug for SharedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedVec({:?})", self.vector.0)
    }
}

/// Turns a vector into a tensor of one dimension in host memory for another library, which releases it by its deleter,
/// on any thread. If no library takes the tensor, its memory stays allocated.
pub fn vec_into_dlpack<T: ArrayItem, M: ManagedTensor>(mut items: Vec<T>) -> NonNull<M> {
    let (data, len) = (items.as_mut_ptr(), items.len());
    export(items, DLDevice { device_type: DL_CPU, device_id: 0 }, data, len)
}

#[cfg(test)]
mod tests;
