//! Exchange of contexts, streams and memory with the crate `cust`, in both directions and without copies.
//!
//! | of `cust` | used by ours | of ours | used by `cust` |
//! | --- | --- | --- | --- |
//! | `Context` | [`adopt_context`] | `Device` | [`lend_context`] |
//! | `Stream` | [`adopt_stream`] | `Stream` | [`lend_stream`] |
//! | `DeviceSlice`, `DeviceBuffer` | [`adopt_memory`] | `DeviceSlice`, `DeviceSliceMut` | [`lend_slice`], [`lend_slice_mut`] |
//! | `Function` of a `Module` | [`launch`] | | |
//!
//! The program `examples/filter_on_cust.rs` asks a filter on a stream and in buffers of `cust`, and lets `cust` copy on
//! a stream of ours. An [`Error`] says which side refused.
//!
//! This crate is for programs that use `cust` already; no other part of Warpset needs it. Its build needs what `cust`
//! needs: a C compiler, and the variable `CUDA_LIBRARY_PATH` or a CUDA toolkit, whose directory the build script of
//! `cust_raw` looks for (any directory with a folder `lib64/` will do: the driver is bound when the program runs, by an
//! import library that this crate makes). Result codes newer than CUDA 11.4, which `cust` cannot represent, reach it as
//! `CUDA_ERROR_UNKNOWN`, as far as they come from functions that `import/import.c` lists.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use cust_crate::context::Context;
use cust_crate::function::Function;
use cust_crate::memory::{DeviceCopy, DevicePointer, DeviceSlice as CustSlice};
use cust_crate::stream::Stream as CustStream;
use cust_crate::sys::CUstream;
use warpset_gpu::{AdoptedMemory, Device, DeviceSlice, DeviceSliceMut, GpuError, LaunchConfig, Stream};

pub use cust_crate as cust;

/// Reason why an exchange with `cust` failed.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The context is not the primary context of any device.
    #[error("this context is no device's primary context: make it with `cust::context::Context::new`")]
    NotPrimary,
    /// The emulator has no context, stream or memory that `cust` could use.
    #[error("the emulated device has nothing that `cust` could use: open a device with `Device::cuda`")]
    Emulator,
    /// `cust` refused.
    #[error("cust: {0}")]
    Cust(#[from] cust_crate::error::CudaError),
    /// This crate's side refused.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// Formats like `Display`: a program whose `main` returns the error prints it by `Debug`.
impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// Returns the device of this primary context.
///
/// # Errors
/// [`Error::NotPrimary`] if it is none; [`Error::Gpu`] if there is no device that runs our kernels.
pub fn adopt_context(context: &Context) -> Result<Device, Error> {
    let raw = context.as_raw().cast::<c_void>();
    Device::cuda_all()?.into_iter().find(|device| device.as_raw_context() == Some(raw)).ok_or(Error::NotPrimary)
}

/// Returns the device's context for `cust`: retained once more, and made current on this thread.
///
/// # Errors
/// [`Error::Emulator`], or the error of `cust`.
pub fn lend_context(device: &Device) -> Result<Context, Error> {
    if device.is_emulator() {
        return Err(Error::Emulator);
    }
    cust_crate::init(cust_crate::CudaFlags::empty())?;
    Ok(Context::new(cust_crate::device::Device::get_device(device.properties().ordinal)?)?)
}

/// Wraps a stream of `cust`, for work of ours.
///
/// # Errors
/// [`GpuError::OtherDevice`] if it belongs to another device.
///
/// # Safety
/// `stream` outlives every clone of the result.
pub unsafe fn adopt_stream(device: &Device, stream: &CustStream) -> Result<Stream, Error> {
    // SAFETY: a live stream of `cust`, which makes no legacy default streams; it outlives the result, by this
    // function's contract.
    Ok(unsafe { Stream::adopt(device, stream.as_inner().cast())? })
}

/// Lends a stream of ours, for work of `cust`.
///
/// # Errors
/// [`Error::Emulator`].
pub fn lend_stream(stream: &Stream) -> Result<LentStream<'_>, Error> {
    const { assert!(size_of::<CustStream>() == size_of::<CUstream>()) };
    let raw: CUstream = stream.as_raw().ok_or(Error::Emulator)?.cast();
    // SAFETY: `cust`'s stream has one field, of this type and size; it is never dropped, so the handle stays ours.
    let lent = unsafe { std::mem::transmute::<CUstream, CustStream>(raw) };
    Ok(LentStream { lent: ManuallyDrop::new(lent), owner: PhantomData })
}

/// A stream of ours as the type of `cust`.
pub struct LentStream<'a> {
    lent: ManuallyDrop<CustStream>,
    owner: PhantomData<&'a Stream>,
}

impl Deref for LentStream<'_> {
    type Target = CustStream;

    fn deref(&self) -> &CustStream {
        &self.lent
    }
}

/// Wraps memory of `cust`, a `DeviceBuffer` or a part of one, for structures of ours.
///
/// # Errors
/// [`GpuError::OtherDevice`] if it is memory of another device.
///
/// # Safety
/// Work of `cust` on these items, and work of ours, are ordered by a stream, an event or a wait.
pub unsafe fn adopt_memory<'a, T: Pod + DeviceCopy>(
    device: &Device,
    items: &'a mut CustSlice<T>,
) -> Result<AdoptedMemory<'a, T>, Error> {
    // SAFETY: the borrow keeps the items alive and from other users on the host; the caller orders the device's work.
    Ok(unsafe { AdoptedMemory::new(device, items.as_device_ptr().as_raw(), items.len())? })
}

/// Lends items of ours, for `cust` to read.
///
/// # Safety
/// Work of `cust` on these items, and work of ours that writes them, are ordered by a stream, an event or a wait.
pub unsafe fn lend_slice<'a, T: Pod + DeviceCopy>(items: DeviceSlice<'a, T>) -> LentSlice<'a, T> {
    let pointer = DevicePointer::from_raw(items.as_raw());
    // SAFETY: the slice is valid for its length during `'a`; without `DerefMut` no code writes it.
    LentSlice { lent: unsafe { CustSlice::from_raw_parts(pointer, items.len()) }, owner: PhantomData }
}

/// Lends items of ours, for `cust` to write.
///
/// # Safety
/// Work of `cust` on these items, and work of ours, are ordered by a stream, an event or a wait.
pub unsafe fn lend_slice_mut<T: Pod + DeviceCopy>(mut items: DeviceSliceMut<'_, T>) -> LentSliceMut<'_, T> {
    let pointer = DevicePointer::from_raw(items.as_raw_mut());
    // SAFETY: the slice is valid for its length as long as its lifetime, and borrowed for writing.
    LentSliceMut { lent: unsafe { CustSlice::from_raw_parts_mut(pointer, items.len()) }, owner: PhantomData }
}

/// A slice of ours as the type of `cust`, for reading.
pub struct LentSlice<'a, T: DeviceCopy> {
    lent: CustSlice<T>,
    owner: PhantomData<&'a [T]>,
}

impl<T: DeviceCopy> Deref for LentSlice<'_, T> {
    type Target = CustSlice<T>;

    fn deref(&self) -> &CustSlice<T> {
        &self.lent
    }
}

/// A slice of ours as the type of `cust`, for writing.
pub struct LentSliceMut<'a, T: DeviceCopy> {
    lent: CustSlice<T>,
    owner: PhantomData<&'a mut [T]>,
}

impl<T: DeviceCopy> Deref for LentSliceMut<'_, T> {
    type Target = CustSlice<T>;

    fn deref(&self) -> &CustSlice<T> {
        &self.lent
    }
}

impl<T: DeviceCopy> DerefMut for LentSliceMut<'_, T> {
    fn deref_mut(&mut self) -> &mut CustSlice<T> {
        &mut self.lent
    }
}

/// Queues a kernel of a module that `cust` loaded on a stream of ours.
///
/// # Errors
/// [`GpuError::LaunchFailed`] if the driver refuses it.
///
/// # Safety
/// - The function's module was loaded in the primary context of the stream's device, and stays loaded until the launch
///   has ended.
/// - `arguments` holds one pointer per parameter of the kernel, to a value of the parameter's type.
/// - The kernel's own contract is kept until the launch has ended.
pub unsafe fn launch(
    stream: &Stream,
    function: &Function<'_>,
    config: LaunchConfig,
    arguments: &mut [*mut c_void],
) -> Result<(), Error> {
    // SAFETY: `function` and `arguments` fit, by this function's contract.
    unsafe { stream.launch_function(function.to_raw().cast(), config, arguments) }.map_err(Error::from)
}
