//! A share of some memory that stays in the L2 cache.
//!
//! A context sets a part of the cache aside, and each stream names the memory that it is for. The part grows while an
//! operation that waits needs it; afterwards it is as large as before, and its lines are ordinary ones.

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::binding;
use super::device::CudaDevice;
use super::driver::{self, AccessWindow, Address, Failure, Handle, check};

/// Numerator and denominator of the part of the largest set-aside that is taken; the rest serves all other memory.
const PART: (usize, usize) = (5, 8);

/// Part of a context's cache that can be set aside, and the number of its holders.
pub(super) struct SetAside {
    holders: Mutex<Holders>,
    /// Bytes to set aside; 0 if the device cannot.
    bytes: usize,
    largest_window: usize,
}

#[derive(Default)]
struct Holders {
    count: u32,
    /// Bytes that were set aside before the first holder.
    before: usize,
}

/// A stream's share of the set-aside, given back on drop. The stream has ended its work by then.
pub(super) struct Kept {
    device: Arc<CudaDevice>,
    stream: Handle,
}

impl Kept {
    /// Names the memory for this stream, in the current context of `device`; `None` if the device has no such cache, or
    /// if the driver refuses.
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

    /// Sets the part aside for the first holder, unless as much is; `None` if the driver refuses.
    fn enter(&self) -> Option<()> {
        let mut holders = self.holders();
        if holders.count == 0 {
            // SAFETY: a context is current, and the result goes to a field.
            let code = unsafe { binding::cuCtxGetLimit(&mut holders.before, driver::LIMIT_PERSISTING_L2) };
            check("cuCtxGetLimit", code).ok()?;
            set_limit(self.bytes.max(holders.before)).ok()?;
        }
        holders.count += 1;
        Some(())
    }

    /// Restores what was set aside before the first holder, after the last one, and makes all lines ordinary ones.
    fn leave(&self) {
        let mut holders = self.holders();
        holders.count -= 1;
        if holders.count == 0 {
            // SAFETY: a context is current. An error cannot be reported; it costs other work a part of the cache.
            unsafe { binding::cuCtxResetPersistingL2Cache() };
            let _ = set_limit(holders.before);
        }
    }

    fn holders(&self) -> MutexGuard<'_, Holders> {
        self.holders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sets the bytes aside that streams of the current context can name memory for.
fn set_limit(bytes: usize) -> Result<(), Failure> {
    // SAFETY: a context is current.
    check("cuCtxSetLimit", unsafe { binding::cuCtxSetLimit(driver::LIMIT_PERSISTING_L2, bytes) })
}
