//! Vectors in device memory.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use bytemuck::Pod;
use warpset_simt::{Global, GlobalMut};

use crate::device::Device;
use crate::error::Result;
use crate::memory::{Memory, byte_len};
use crate::slice::{DeviceSlice, DeviceSliceMut};
use crate::stream::Stream;

/// A vector of fixed length in device memory.
///
/// Made by [`Device::alloc_uninit`], [`Device::alloc_zeroed`], [`Device::from_slice`], and by the methods of the same
/// names of [`Stream`], whose vectors are allocated and freed in the order of that stream, without any waiting: use
/// those for temporaries. Length zero is allowed. The address is a multiple of 256.
///
/// Its memory is given back when it is dropped, after everything that was queued before.
pub struct DeviceVec<T> {
    memory: Memory,
    len: usize,
    items: PhantomData<T>,
}

impl<T: Pod> DeviceVec<T> {
    pub(crate) fn on_device(device: &Device, len: usize) -> Result<Self> {
        let memory = Memory::on_device(device, byte_len::<T>(len)?)?;
        Ok(Self { memory, len, items: PhantomData })
    }

    pub(crate) fn on_stream(stream: &Stream, len: usize) -> Result<Self> {
        let memory = Memory::on_stream(stream, byte_len::<T>(len)?)?;
        Ok(Self { memory, len, items: PhantomData })
    }

    pub(crate) fn of_memory(memory: Memory, len: usize) -> Self {
        Self { memory, len, items: PhantomData }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes that the items take.
    pub fn byte_len(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Whether a drop frees the items after the work that `stream` holds by then, and before its later work. True if
    /// they were allocated on `stream`, and no other stream has used them by a call of this crate (launches are the
    /// caller's responsibility).
    pub fn follows(&self, stream: &Stream) -> bool {
        self.memory.follows(stream)
    }

    /// Returns the device of the items.
    pub fn device(&self) -> &Device {
        &self.memory.device
    }

    /// Returns the argument for a kernel that reads the items.
    pub fn global(&self) -> Global<T> {
        self.as_slice().global()
    }

    /// Returns the argument for a kernel that writes the items.
    pub fn global_mut(&mut self) -> GlobalMut<T> {
        self.as_mut_slice().global_mut()
    }

    /// Returns all items for reading.
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(&self.memory, self.len)
    }

    /// Returns all items for writing.
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(&self.memory, self.len)
    }

    /// Returns a part for reading.
    ///
    /// # Panics
    /// If the range reaches past the end, like slices of the standard library.
    #[track_caller]
    pub fn slice(&self, range: impl RangeBounds<usize>) -> DeviceSlice<'_, T> {
        self.as_slice().slice(range)
    }

    /// Returns a part for writing.
    ///
    /// # Panics
    /// If the range reaches past the end, like slices of the standard library.
    #[track_caller]
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> DeviceSliceMut<'_, T> {
        let whole = self.as_mut_slice();
        let (start, len) = crate::slice::resolve(range, whole.len());
        whole.split_at_mut(start).1.split_at_mut(len).0
    }

    /// Copies the items to the host. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost) or [`GpuError::Driver`](crate::GpuError::Driver) if
    /// earlier work on the device failed.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.as_slice().to_vec()
    }

    /// Copies the items to `target`, of the same length. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`](crate::GpuError::LengthMismatch);
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost) or [`GpuError::Driver`](crate::GpuError::Driver) if
    /// earlier work on the device failed.
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        self.as_slice().copy_to_slice(target)
    }

    /// Overwrites the items with `source`, of the same length. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`](crate::GpuError::LengthMismatch);
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost) or [`GpuError::Driver`](crate::GpuError::Driver) if
    /// earlier work on the device failed.
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()> {
        self.as_mut_slice().copy_from_slice(source)
    }

    /// Sets every byte of the items. Waits for everything queued on the device before.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`](crate::GpuError::DeviceLost) or [`GpuError::Driver`](crate::GpuError::Driver) if
    /// earlier work on the device failed.
    pub fn fill_bytes(&mut self, byte: u8) -> Result<()> {
        self.as_mut_slice().fill_bytes(byte)
    }
}

impl<T> fmt::Debug for DeviceVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeviceVec({} items on {})", self.len, self.memory.device)
    }
}
