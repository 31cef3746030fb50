//! Device memory, pinned memory, copies and sets.

use std::ffi::c_void;
use std::sync::{MutexGuard, PoisonError};

use super::binding;
use super::device::CudaDevice;
use super::driver::{self, Address, Failure, Handle, check};
use super::stream::CudaStream;
use crate::error::{DriverCode, GpuError, Result};
use crate::host;
use crate::properties::MemoryInfo;

/// Bytes that a memory pool takes from the driver at a time: the size of a pool after a first allocation of 4 bytes.
const POOL_STEP: usize = 32 << 20;

impl CudaDevice {
    /// Allocates memory that every stream may use at once. `bytes > 0`.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Address> {
        self.enter()?;
        if self.pool.is_none() {
            return self.allocate_plain(bytes);
        }
        let address = self.allocate_in_order(bytes, self.alloc_stream)?;
        // SAFETY: our own stream. It holds nothing but allocations, so this waits for memory at most.
        let code = unsafe { binding::cuStreamSynchronize(self.alloc_stream) };
        match self.checked(check("cuStreamSynchronize", code)) {
            Ok(()) => Ok(address),
            Err(error) => {
                self.free_behind_everything(address);
                Err(error)
            }
        }
    }

    fn allocate_plain(&self, bytes: usize) -> Result<Address> {
        let mut address = 0;
        // SAFETY: the context is current, and the result goes to a local variable.
        let code = unsafe { binding::cuMemAlloc_v2(&mut address, bytes) };
        check("cuMemAlloc", code).map_err(|failure| self.allocation_error(failure, bytes))?;
        Ok(address)
    }

    /// Allocates memory from the pool, usable in the order of `stream`.
    fn allocate_in_order(&self, bytes: usize, stream: Handle) -> Result<Address> {
        let Some(pool) = self.pool else { return self.allocate_plain(bytes) };
        let mut address = 0;
        let mut attempt = || {
            // SAFETY: pool and stream live as long as the device, and the result goes to a local variable.
            let code = unsafe { binding::cuMemAllocFromPoolAsync(&mut address, bytes, pool, stream) };
            check("cuMemAllocFromPoolAsync", code)
        };
        match attempt() {
            Err(failure) if failure.code == DriverCode::OUT_OF_MEMORY => {
                // The pool may keep its memory in pieces of the wrong size: give it all back, and try once more.
                self.trim()?;
                attempt().map_err(|failure| self.allocation_error(failure, bytes))?;
            }
            other => self.checked(other)?,
        }
        Ok(address)
    }

    fn allocation_error(&self, failure: Failure, asked: usize) -> GpuError {
        if failure.code == DriverCode::OUT_OF_MEMORY {
            let free = self.memory_info().map_or(0, |info| self.obtainable(info, asked));
            return GpuError::OutOfMemory { place: self.properties().name.clone(), asked, free };
        }
        self.error(failure, None)
    }

    /// Returns the bytes that allocations can get, after one of `asked` bytes has failed. The pool takes memory from
    /// the driver in whole steps, so a rest that the driver reports as free may be out of reach.
    fn obtainable(&self, info: MemoryInfo, asked: usize) -> usize {
        let unused = info.pool_reserved.saturating_sub(info.pool_used);
        let of_driver = info.free.saturating_sub(unused);
        let step = if self.pool.is_some() { POOL_STEP } else { 1 };
        (unused + of_driver - of_driver % step).min(asked.saturating_sub(1))
    }

    /// Returns the ordinal of the device that this address belongs to.
    pub(crate) fn ordinal_of(&self, address: Address) -> Result<u32> {
        self.enter()?;
        let mut ordinal = 0i32;
        // SAFETY: the attribute is a 32-bit integer, and the result goes to a local variable; an unknown address is
        // answered with an error.
        let code = unsafe {
            binding::cuPointerGetAttribute((&raw mut ordinal).cast(), driver::POINTER_DEVICE_ORDINAL, address)
        };
        self.checked(check("cuPointerGetAttribute", code))?;
        Ok(ordinal.max(0) as u32)
    }

    /// Whether this device, whose context is current, can read the memory of another at this address.
    fn reads(&self, address: Address) -> bool {
        let mut access = 0u32;
        // SAFETY: the attribute has 32 bits, and the result goes to a local variable; an unknown address is answered
        // with an error.
        let code =
            unsafe { binding::cuPointerGetAttribute((&raw mut access).cast(), driver::POINTER_ACCESS_FLAGS, address) };
        code == 0 && access != 0
    }

    /// Frees memory of [`allocate`](Self::allocate), after everything that may use it.
    pub(crate) fn free(&self, address: Address) {
        self.enter_to_drop();
        self.free_behind_everything(address);
    }

    /// Copies to the device and waits, after everything that the device's streams hold now.
    ///
    /// # Safety
    /// `from` is valid for `bytes` reads and `to` for `bytes` writes.
    pub(crate) unsafe fn upload(&self, to: Address, from: *const c_void, bytes: usize) -> Result<()> {
        self.enter()?;
        let stream = turn(&self.upload);
        self.checked(self.order_after_all(*stream))?;
        // SAFETY: both are valid for `bytes`, by this function's contract, and `finish` waits for the copy.
        let code = unsafe { binding::cuMemcpyHtoDAsync_v2(to, from, bytes, *stream) };
        self.finish("cuMemcpyHtoDAsync", code, *stream)
    }

    /// Copies from the device and waits, after everything that the device's streams hold now.
    ///
    /// # Safety
    /// `to` is valid for `bytes` writes and `from` for `bytes` reads.
    pub(crate) unsafe fn download(&self, to: *mut c_void, from: Address, bytes: usize) -> Result<()> {
        self.enter()?;
        let stream = turn(&self.download);
        self.checked(self.order_after_all(*stream))?;
        // SAFETY: both are valid for `bytes`, by this function's contract, and `finish` waits for the copy.
        let code = unsafe { binding::cuMemcpyDtoHAsync_v2(to, from, bytes, *stream) };
        self.finish("cuMemcpyDtoHAsync", code, *stream)
    }

    /// Sets bytes and waits, after everything that the device's streams hold now.
    ///
    /// # Safety
    /// `to` is valid for `bytes` writes.
    pub(crate) unsafe fn set(&self, to: Address, byte: u8, bytes: usize) -> Result<()> {
        self.enter()?;
        let stream = turn(&self.upload);
        self.checked(self.order_after_all(*stream))?;
        // SAFETY: `to` is valid for `bytes` writes, by this function's contract.
        let code = unsafe { binding::cuMemsetD8Async(to, byte, bytes, *stream) };
        self.finish("cuMemsetD8Async", code, *stream)
    }

    fn finish(&self, call: &'static str, code: u32, stream: Handle) -> Result<()> {
        let queued = check(call, code);
        // Even a copy that was refused may have started: the host's memory must be free when this returns.
        // SAFETY: our own stream.
        let waited = check("cuStreamSynchronize", unsafe { binding::cuStreamSynchronize(stream) });
        self.checked(queued.and(waited))
    }

    /// Allocates page-locked host memory. `bytes > 0`.
    pub(crate) fn allocate_pinned(&self, bytes: usize) -> Result<*mut c_void> {
        self.enter()?;
        let mut pointer = std::ptr::null_mut();
        // SAFETY: the context is current, and the result goes to a local variable.
        let code = unsafe { binding::cuMemHostAlloc(&mut pointer, bytes, driver::HOST_ALLOC_PORTABLE) };
        check("cuMemHostAlloc", code).map_err(|failure| match failure.code {
            DriverCode::OUT_OF_MEMORY => {
                let (place, free) = ("the host (pinned memory)".into(), host::available_bytes());
                GpuError::OutOfMemory { place, asked: bytes, free }
            }
            _ => self.error(failure, None),
        })?;
        Ok(pointer)
    }

    /// Frees page-locked host memory.
    ///
    /// # Safety
    /// `pointer` came from [`allocate_pinned`](Self::allocate_pinned), and nothing uses it any more.
    pub(crate) unsafe fn free_pinned(&self, pointer: *mut c_void) {
        self.enter_to_drop();
        // SAFETY: the pointer is an allocation in no use, by this function's contract.
        unsafe { binding::cuMemFreeHost(pointer) };
    }
}

fn turn(stream: &std::sync::Mutex<Handle>) -> MutexGuard<'_, Handle> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CudaStream {
    /// Allocates memory that this stream may use at once, and others once they have waited for it. `bytes > 0`.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<Address> {
        self.device.enter()?;
        self.device.allocate_in_order(bytes, self.raw)
    }

    /// Frees memory of [`allocate`](Self::allocate) after everything that this stream holds.
    pub(crate) fn free(&self, address: Address) {
        self.device.enter_to_drop();
        if self.device.pool.is_some() {
            // SAFETY: the address came from the pool; only this stream has used it, because memory that others have
            // used is freed through the device.
            unsafe { binding::cuMemFreeAsync(address, self.raw) };
        } else {
            self.device.free_behind_everything(address);
        }
    }

    /// Queues a copy from the host.
    ///
    /// # Safety
    /// `from` is valid for `bytes` reads until the stream has passed, `to` for `bytes` writes.
    pub(crate) unsafe fn upload(&self, to: Address, from: *const c_void, bytes: usize) -> Result<()> {
        self.device.enter()?;
        // SAFETY: both are valid for `bytes` until the stream has passed, by this function's contract.
        let code = unsafe { binding::cuMemcpyHtoDAsync_v2(to, from, bytes, self.raw) };
        self.checked(check("cuMemcpyHtoDAsync", code))
    }

    /// Queues a copy to the host.
    ///
    /// # Safety
    /// `to` is valid for `bytes` writes until the stream has passed, `from` for `bytes` reads.
    pub(crate) unsafe fn download(&self, to: *mut c_void, from: Address, bytes: usize) -> Result<()> {
        self.device.enter()?;
        // SAFETY: both are valid for `bytes` until the stream has passed, by this function's contract.
        let code = unsafe { binding::cuMemcpyDtoHAsync_v2(to, from, bytes, self.raw) };
        self.checked(check("cuMemcpyDtoHAsync", code))
    }

    /// Queues a copy between or within devices.
    ///
    /// # Safety
    /// Both are valid for `bytes`, `from` on the device `source`.
    pub(crate) unsafe fn copy(&self, to: Address, source: &CudaDevice, from: Address, bytes: usize) -> Result<()> {
        self.device.enter()?;
        let (here, there) = (self.device.raw_context(), source.raw_context());
        // SAFETY: both are valid for `bytes`, by this function's contract; each address goes with its context, or this
        // device can read it.
        let code = unsafe {
            match here == there || self.device.reads(from) {
                true => binding::cuMemcpyDtoDAsync_v2(to, from, bytes, self.raw),
                // Copies of this kind from one device wait for each other, whatever their streams.
                false => binding::cuMemcpyPeerAsync(to, here, from, there, bytes, self.raw),
            }
        };
        self.checked(check("a copy between or within devices", code))?;
        if std::ptr::eq(&raw const *self.device, source) {
            return Ok(());
        }
        // The source's device frees after its own streams: this copy has to be among the work that it waits for.
        self.checked(self.device.streams.join_one_into(self.raw, source.free_stream))
    }

    /// Queues a fill with one byte.
    ///
    /// # Safety
    /// `to` is valid for `bytes` writes.
    pub(crate) unsafe fn set_bytes(&self, to: Address, byte: u8, bytes: usize) -> Result<()> {
        self.device.enter()?;
        // SAFETY: `to` is valid for `bytes` writes, by this function's contract.
        let code = unsafe { binding::cuMemsetD8Async(to, byte, bytes, self.raw) };
        self.checked(check("cuMemsetD8Async", code))
    }

    /// Queues a fill with one word.
    ///
    /// # Safety
    /// `to` is a multiple of 4 and valid for `words` writes of 4 bytes.
    pub(crate) unsafe fn set_words(&self, to: Address, word: u32, words: usize) -> Result<()> {
        self.device.enter()?;
        // SAFETY: `to` is aligned and valid for `words` writes, by this function's contract.
        let code = unsafe { binding::cuMemsetD32Async(to, word, words, self.raw) };
        self.checked(check("cuMemsetD32Async", code))
    }
}
