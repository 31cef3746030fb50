//! Page-locked host memory, and copies in flight that own theirs.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use bytemuck::Pod;
use warpset_base::words::zeroed_vec;

use crate::device::{Device, Executor};
use crate::error::{GpuError, Result};
use crate::event::Event;
use crate::host;
use crate::memory::byte_len;
use crate::pinned_pool::RawPinned;

/// A vector of fixed length in page-locked host memory: a slice like any other on the host, and the only kind of
/// memory that copies to and from at full speed while other work runs.
///
/// Page-locked memory is scarce and slow to allocate: keep few, megabytes large, and reuse them. On the emulator
/// it is ordinary memory.
pub struct PinnedVec<T> {
    /// Page-locked memory is freed in the context of its device.
    device: Device,
    pointer: NonNull<T>,
    len: usize,
    items: PhantomData<T>,
}

// SAFETY: it owns its items, like a `Vec`.
unsafe impl<T: Send> Send for PinnedVec<T> {}
// SAFETY: a shared vector only gives out shared items, like a `Vec`.
unsafe impl<T: Sync> Sync for PinnedVec<T> {}

impl<T: Pod> PinnedVec<T> {
    pub(crate) fn new(device: &Device, len: usize) -> Result<Self> {
        let bytes = byte_len::<T>(len)?;
        let pointer = match &device.0 {
            _ if bytes == 0 => NonNull::dangling(),
            #[cfg(feature = "cuda")]
            Executor::Cuda(cuda) => {
                let pointer = cuda.allocate_pinned(bytes)?.cast::<T>();
                // SAFETY: the driver gave `bytes` bytes, page-aligned; zero is a valid value of a `Pod` type.
                unsafe { pointer.cast::<u8>().write_bytes(0, bytes) };
                NonNull::new(pointer).expect("the driver reported success")
            }
            Executor::Emulator(_) => {
                let items: Vec<T> = zeroed_vec(len as u64).map_err(|_| GpuError::OutOfMemory {
                    place: "the host (pinned memory)".into(),
                    asked: bytes,
                    free: host::available_bytes(),
                })?;
                // SAFETY: a box is never null.
                unsafe { NonNull::new_unchecked(Box::into_raw(items.into_boxed_slice()).cast::<T>()) }
            }
        };
        Ok(Self { device: device.clone(), pointer, len, items: PhantomData })
    }

    /// Returns the device in whose context the memory was locked; every device of the process can use it.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl PinnedVec<u64> {
    /// Returns at least `len` words with unspecified contents: kept ones of the device if any are large enough.
    /// [`PinnedVec::keep`] gives them back.
    pub(crate) fn kept(device: &Device, len: usize) -> Result<Self> {
        if let Some(raw) = device.pinned_pool().take(len) {
            return Ok(Self::from_raw(device, raw));
        }
        match Self::new(device, len) {
            Err(error) if error.is_out_of_memory() && device.free_kept() => Self::new(device, len),
            result => result,
        }
    }

    /// Takes over memory that a pool of this device kept.
    pub(crate) fn from_raw(device: &Device, raw: RawPinned) -> Self {
        Self { device: device.clone(), pointer: raw.pointer, len: raw.len, items: PhantomData }
    }

    /// Leaves the memory to its device, for the next call that needs some. Nothing uses it any more.
    pub(crate) fn keep(&mut self) {
        if self.len > 0 {
            match &self.device.clone().0 {
                #[cfg(feature = "cuda")]
                Executor::Cuda(_) => {}
                Executor::Emulator(device) => device.poison(self),
            }
            let raw = RawPinned { pointer: self.pointer, len: std::mem::take(&mut self.len) };
            for surplus in self.device.pinned_pool().give(raw) {
                drop(Self::from_raw(&self.device, surplus));
            }
        }
    }
}

impl<T> PinnedVec<T> {
    /// Leaves the memory to a broken context, which may still access it, and frees it when it goes.
    pub(crate) fn leak(&mut self) {
        self.len = 0; // so that dropping it frees nothing, and lets go of the device
    }
}

impl<T> Deref for PinnedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` initialised items that this vector owns.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for PinnedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.len) }
    }
}

impl<T> Drop for PinnedVec<T> {
    fn drop(&mut self) {
        if self.len * size_of::<T>() == 0 {
            return;
        }
        match &self.device.0 {
            // SAFETY: allocated so in `new`; copies in flight own their vector, or their caller keeps it alive.
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => unsafe { device.free_pinned(self.pointer.as_ptr().cast()) },
            Executor::Emulator(_) => {
                let items = std::ptr::slice_from_raw_parts_mut(self.pointer.as_ptr(), self.len);
                // SAFETY: taken out of a box of this length in `new`.
                drop(unsafe { Box::from_raw(items) });
            }
        }
    }
}

impl<T> fmt::Debug for PinnedVec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedVec({} items)", self.len)
    }
}

/// A copy in flight, and the host memory that it uses.
///
/// Forgetting it leaks the memory; dropping it waits for the copy.
#[must_use = "the copy is waited for when this is dropped"]
pub struct Pending<T> {
    memory: Option<PinnedVec<T>>,
    done: Event,
}

impl<T> Pending<T> {
    pub(crate) fn new(memory: PinnedVec<T>, done: Event) -> Self {
        Self { memory: Some(memory), done }
    }

    pub(crate) fn event(&self) -> &Event {
        &self.done
    }

    pub(crate) fn items(&self) -> &[T] {
        self.memory.as_deref().unwrap_or_default()
    }

    pub(crate) fn items_mut(&mut self) -> &mut [T] {
        self.memory.as_deref_mut().unwrap_or_default()
    }

    /// Leaks the memory, see [`PinnedVec::leak`].
    pub(crate) fn leak(&mut self) {
        if let Some(mut memory) = self.memory.take() {
            memory.leak();
        }
    }

    /// Whether the copy has ended.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn is_done(&self) -> Result<bool> {
        self.done.is_done()
    }

    /// Waits for the copy, and gives the memory back.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn wait(mut self) -> Result<PinnedVec<T>> {
        self.done.synchronize()?;
        Ok(self.memory.take().expect("there until `wait` or `drop`"))
    }
}

impl<T> Drop for Pending<T> {
    fn drop(&mut self) {
        if self.memory.is_some() && self.done.synchronize().is_err() {
            self.leak();
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pending({:?})", self.memory)
    }
}
