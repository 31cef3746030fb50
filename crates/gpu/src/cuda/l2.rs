//! A share of some memory that stays in the L2 cache.
//!
//! The driver sets a part of the cache aside for a whole context, and each stream names the memory that it is for. The
//! part is set aside while an operation that waits needs it, and given back afterwards; a program that sets one aside
//! itself keeps it.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, PoisonError};

use super::binding;
use super::device::CudaDevice;
use super::driver::{self, AccessWindow, Address, Handle, check};

/// Numerator and denominator of the part of the largest set-aside that is taken; the rest serves all other memory.
const PART: (usize, usize) = (1, 2);

/// Part of a context's cache that can be set aside, and the number of its holders.
pub(super) struct SetAside {
    holders: Mutex<u32>,
    /// Bytes to set aside; 0 if the device cannot.
    bytes: usize,
    largest_window: usize,
}

/// A stream's share of the set-aside, given back on drop. The stream has ended its work by then.
pub(super) struct Kept {
    device: Arc<CudaDevice>,
    stream: Handle,
}

impl Kept {
    /// Names the memory for this stream, in the current context of `device`; `None` if the driver has no such cache, or
    /// if the program divides it itself.
    ///
    /// # Safety
    /// `stream` is a live stream of `device`, and outlives the returned object.
    pub(super) unsafe fn new(device: &Arc<CudaDevice>, stream: Handle, base: Address, bytes: usize) -> Option<Self> {
        let SetAside { bytes: part, largest_window, .. } = device.set_aside;
        if part == 0 || bytes == 0 || bytes > largest_window {
            return None;
        }
        device.set_aside.enter()?;
        let kept = Self { device: device.clone(), stream };
        let window = AccessWindow::persisting(base, bytes, (part as f32 / bytes as f32).min(1.0));
        // SAFETY: this function's contract.
        unsafe { set_window(stream, &window) }.then_some(kept)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.device.enter_to_drop();
        // SAFETY: the stream is live, by the contract of `new`.
        unsafe { set_window(self.stream, &AccessWindow::none()) };
        self.device.set_aside.leave();
    }
}

/// Sets the window of a stream; returns whether the driver did.
///
/// # Safety
/// `stream` is a live stream of the current context.
unsafe fn set_window(stream: Handle, window: &AccessWindow) -> bool {
    // SAFETY: the value outlives the call; the rest is this function's contract.
    unsafe { binding::cuStreamSetAttribute(stream, driver::STREAM_ACCESS_WINDOW, window) == 0 }
}

impl SetAside {
    /// Reads what the device can set aside.
    pub(super) fn of(device: c_int) -> Self {
        let attribute = |attribute: c_int| {
            let mut value = 0;
            // SAFETY: the driver has named the device, and the result goes to a local variable. If it refuses, that
            // stays 0.
            unsafe { binding::cuDeviceGetAttribute(&mut value, attribute, device) };
            value.max(0) as usize
        };
        Self {
            holders: Mutex::default(),
            bytes: attribute(driver::DEVICE_MAX_PERSISTING_L2_CACHE_SIZE) / PART.1 * PART.0,
            largest_window: attribute(driver::DEVICE_MAX_ACCESS_POLICY_WINDOW_SIZE),
        }
    }

    /// Sets the part aside for the first holder. `None` if the driver refuses, or if the program has set one aside.
    fn enter(&self) -> Option<()> {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        if *holders == 0 {
            let mut before = 0;
            // SAFETY: a context is current, and the result goes to a local variable.
            check("cuCtxGetLimit", unsafe { binding::cuCtxGetLimit(&mut before, driver::LIMIT_PERSISTING_L2) }).ok()?;
            if before != 0 {
                return None;
            }
            // SAFETY: a context is current.
            check("cuCtxSetLimit", unsafe { binding::cuCtxSetLimit(driver::LIMIT_PERSISTING_L2, self.bytes) }).ok()?;
        }
        *holders += 1;
        Some(())
    }

    /// Gives the part back after the last holder, and makes its lines ordinary ones.
    fn leave(&self) {
        let mut holders = self.holders.lock().unwrap_or_else(PoisonError::into_inner);
        *holders -= 1;
        if *holders == 0 {
            // SAFETY: a context is current. An error cannot be reported; it costs other work a part of the cache.
            unsafe {
                binding::cuCtxResetPersistingL2Cache();
                binding::cuCtxSetLimit(driver::LIMIT_PERSISTING_L2, 0);
            }
        }
    }
}
