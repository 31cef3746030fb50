//! Memory, streams and kernels that other libraries own, used by this crate; and this crate's handles, for others.
//!
//! Nothing here takes ownership: who made a handle destroys it, after the adopted object is dropped. For the types of
//! `cust` see the crate `warpset-cust`; for other bindings (cudarc, CuPy, PyTorch) hand over their addresses and
//! handles.

use std::ffi::c_void;
use std::marker::PhantomData;

use bytemuck::Pod;
use warpset_simt::LaunchConfig;

use crate::device::{Device, Executor};
use crate::error::{GpuError, Result};
use crate::memory::{Memory, byte_len};
use crate::slice::{DeviceSlice, DeviceSliceMut};
use crate::stream::Stream;

/// Device memory of another owner, seen as items.
///
/// ```
/// # use warpset_gpu::{AdoptedMemory, Device};
/// # fn main() -> Result<(), warpset_gpu::GpuError> {
/// let device = Device::emulator(Default::default());
/// let theirs = device.from_slice(&[1u32, 2, 3])?; // in place of another library's allocation
///
/// // SAFETY: three words that live as long as `theirs`, and that nothing else writes.
/// let words = unsafe { AdoptedMemory::<u32>::new(&device, theirs.as_slice().as_raw(), 3)? };
/// assert_eq!(words.as_slice().to_vec()?, [1, 2, 3]);
/// # Ok(())
/// # }
/// ```
pub struct AdoptedMemory<'a, T> {
    memory: Memory,
    len: usize,
    owner: PhantomData<&'a mut [T]>,
}

impl<'a, T: Pod> AdoptedMemory<'a, T> {
    /// Wraps `len` items at `address` on `device`.
    ///
    /// # Errors
    /// [`GpuError::InvalidCast`] if the address is not aligned for `T`; [`GpuError::OtherDevice`] if the address is
    /// memory of another device; [`GpuError::Driver`] if the driver finds no memory there.
    ///
    /// # Safety
    /// - `address` is valid for `len` items of `T` on `device` as long as `'a`.
    /// - While the returned object lives, all other reads and writes of these items are ordered, by a stream or an
    ///   event, with the work of this crate that accesses them (two reads need no order).
    pub unsafe fn new(device: &Device, address: u64, len: usize) -> Result<Self> {
        let bytes = byte_len::<T>(len)?;
        let place = address as usize;
        if !place.is_multiple_of(align_of::<T>()) {
            return Err(GpuError::InvalidCast { bytes, item_size: size_of::<T>(), alignment: align_of::<T>() });
        }
        #[cfg(feature = "cuda")]
        if let Executor::Cuda(cuda) = &device.0
            && len > 0
        {
            let (found, own) = (cuda.ordinal_of(address)?, cuda.properties().ordinal);
            if found != own {
                let named = |ordinal| format!("CUDA device {ordinal}");
                let (expected, found) = (named(own), named(found));
                return Err(GpuError::OtherDevice { operation: "the adoption of memory", expected, found });
            }
        }
        Ok(Self { memory: Memory::adopted(device, place, bytes), len, owner: PhantomData })
    }

    /// Borrows the items for reading.
    pub fn as_slice(&self) -> DeviceSlice<'_, T> {
        DeviceSlice::new(&self.memory, self.len)
    }

    /// Borrows the items for writing.
    pub fn as_mut_slice(&mut self) -> DeviceSliceMut<'_, T> {
        DeviceSliceMut::new(&self.memory, self.len)
    }
}

impl Stream {
    /// Wraps the stream of another owner: work that this crate queues on it runs in its order, and memory that is freed
    /// waits for it. Dropping the last clone leaves the other owner's stream unchanged.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`] if the stream belongs to another context than the device's primary one;
    /// [`GpuError::NotBuiltIn`] on the emulator, which has no streams of others.
    ///
    /// # Safety
    /// `raw` is a `CUstream` that lives until the last clone of the returned stream is dropped. It is not the legacy
    /// default stream (a null handle): nothing would run beside it.
    pub unsafe fn adopt(device: &Device, raw: *mut c_void) -> Result<Stream> {
        match &device.0 {
            #[cfg(feature = "cuda")]
            // SAFETY: `raw` is a stream that outlives the result, by this function's contract.
            Executor::Cuda(cuda) => unsafe { Stream::adopted(device, cuda, raw) },
            Executor::Emulator(_) => {
                let _ = raw;
                Err(GpuError::NotBuiltIn)
            }
        }
    }

    /// Queues a kernel of a module that another library loaded, by its `CUfunction`.
    ///
    /// # Errors
    /// [`GpuError::LaunchFailed`] if the driver refuses it; [`GpuError::NotBuiltIn`] on the emulator.
    ///
    /// # Safety
    /// `function` is a loaded kernel of this device's primary context; `arguments` holds one pointer per parameter, to
    /// a value of the parameter's type; the kernel's own contract is kept until the launch has ended.
    pub unsafe fn launch_function(
        &self,
        function: *mut c_void,
        config: LaunchConfig,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        match &self.device().0 {
            #[cfg(feature = "cuda")]
            // SAFETY: `function` and `arguments` fit, by this function's contract.
            Executor::Cuda(_) => unsafe { self.cuda().launch_function(function, config, arguments) },
            Executor::Emulator(_) => {
                let _ = (function, config, arguments);
                Err(GpuError::NotBuiltIn)
            }
        }
    }
}

impl Device {
    /// Returns the driver's handle of the primary context (`CUcontext`), which this crate works in; `None` on the
    /// emulator. It is valid while the device is held.
    pub fn as_raw_context(&self) -> Option<*mut c_void> {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => Some(device.raw_context()),
            Executor::Emulator(_) => None,
        }
    }
}

impl<T: Pod> DeviceSlice<'_, T> {
    /// Returns the address on the device, for other libraries: valid for reads of the slice's items while the slice is
    /// borrowed.
    pub fn as_raw(&self) -> u64 {
        self.address() as u64
    }
}

impl<T: Pod> DeviceSliceMut<'_, T> {
    /// Returns the address on the device, for other libraries: valid for reads and writes of the slice's items while
    /// the slice is borrowed.
    pub fn as_raw_mut(&mut self) -> u64 {
        self.as_slice().as_raw()
    }
}
