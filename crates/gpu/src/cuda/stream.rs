//! Streams and events. Every stream is created non-blocking: it never waits for the legacy default stream.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use warpset_simt::KernelInfo;

use super::device::CudaDevice;
use super::driver::{self, Failure, Handle, check};
use crate::error::{DriverCode, Result};

/// A user's stream.
pub(crate) struct CudaStream {
    pub(super) device: Arc<CudaDevice>,
    pub(super) raw: Handle,
    last_kernel: AtomicPtr<KernelInfo>,
}

// SAFETY: a stream handle may be used from any thread in which its context is current.
unsafe impl Send for CudaStream {}
// SAFETY: as above; the driver queues concurrent submissions in some order.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    pub(crate) fn new(device: Arc<CudaDevice>, priority: i32) -> Result<Self> {
        device.enter()?;
        let raw = device.checked(Self::create_raw(priority))?;
        match device.streams.add(raw) {
            Ok(()) => Ok(Self { device, raw, last_kernel: AtomicPtr::new(std::ptr::null_mut()) }),
            Err(failure) => {
                // SAFETY: the stream is new and unused.
                unsafe { driver::warpset_cuStreamDestroy_v2(raw) };
                Err(device.error(failure, None))
            }
        }
    }

    /// A non-blocking stream in the current context.
    pub(super) fn create_raw(priority: i32) -> Result<Handle, Failure> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current, and the place is ours. The driver clamps the priority.
        let code =
            unsafe { driver::warpset_cuStreamCreateWithPriority(&mut raw, driver::STREAM_NON_BLOCKING, priority) };
        check("cuStreamCreateWithPriority", code)?;
        Ok(raw)
    }

    pub(crate) fn note_launch(&self, kernel: &'static KernelInfo) {
        self.last_kernel.store(std::ptr::from_ref(kernel).cast_mut(), Ordering::Relaxed);
    }

    fn last_kernel(&self) -> Option<&'static str> {
        let kernel = self.last_kernel.load(Ordering::Relaxed);
        // SAFETY: null, or a `&'static KernelInfo` stored by `note_launch`.
        unsafe { kernel.as_ref() }.map(|kernel| kernel.name)
    }

    pub(super) fn checked<T>(&self, result: Result<T, Failure>) -> Result<T> {
        result.map_err(|failure| self.device.error(failure, self.last_kernel()))
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.device.enter()?;
        // SAFETY: our stream, in its context.
        self.checked(check("cuStreamSynchronize", unsafe { driver::warpset_cuStreamSynchronize(self.raw) }))
    }

    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.device.enter()?;
        // SAFETY: our stream, in its context.
        ready(self, "cuStreamQuery", unsafe { driver::warpset_cuStreamQuery(self.raw) })
    }

    /// Whether the driver agrees that this stream does not wait for the legacy default stream.
    pub(crate) fn is_non_blocking(&self) -> Result<bool> {
        self.device.enter()?;
        let mut flags = 0;
        // SAFETY: our stream, in its context, and a place of ours.
        let code = unsafe { driver::warpset_cuStreamGetFlags(self.raw, &mut flags) };
        self.checked(check("cuStreamGetFlags", code))?;
        Ok(flags & driver::STREAM_NON_BLOCKING != 0)
    }

    pub(crate) fn record(&self, event: &CudaEvent) -> Result<()> {
        self.device.enter()?;
        // SAFETY: both are ours and of one device, which the caller has checked.
        self.checked(check("cuEventRecord", unsafe { driver::warpset_cuEventRecord(event.raw, self.raw) }))
    }

    pub(crate) fn wait(&self, event: &CudaEvent) -> Result<()> {
        self.device.enter()?;
        // SAFETY: both are ours; the event stays the owner's.
        self.checked(check("cuStreamWaitEvent", unsafe { driver::warpset_cuStreamWaitEvent(self.raw, event.raw, 0) }))
    }

    /// Makes this stream wait for what `other` holds now.
    pub(crate) fn wait_for(&self, other: &CudaStream) -> Result<()> {
        self.device.enter()?;
        self.checked(other.device.streams.join_one_into(other.raw, self.raw))
    }

    /// The handle, for libraries that take one.
    pub(crate) fn as_raw(&self) -> Handle {
        self.raw
    }
}

fn ready(stream: &CudaStream, call: &'static str, code: u32) -> Result<bool> {
    if DriverCode(code) == DriverCode::NOT_READY {
        return Ok(false);
    }
    stream.checked(check(call, code))?;
    Ok(true)
}

impl Drop for CudaStream {
    fn drop(&mut self) {
        self.device.enter_to_drop();
        // Work still queued goes on after the handle is gone, and frees must still come behind it.
        let _ = self.device.streams.join_one_into(self.raw, self.device.free_stream);
        self.device.streams.remove(self.raw);
        // SAFETY: the last use of the handle; the driver lets queued work finish.
        unsafe { driver::warpset_cuStreamDestroy_v2(self.raw) };
    }
}

/// The live streams of a device, each with an event that marks its end when others are to wait for it.
pub(super) struct StreamRegistry(Mutex<Vec<(Handle, Handle)>>);

impl StreamRegistry {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn add(&self, stream: Handle) -> Result<(), Failure> {
        let event = create_event(driver::EVENT_DISABLE_TIMING)?;
        self.entries().push((stream, event));
        Ok(())
    }

    fn remove(&self, stream: Handle) {
        let mut entries = self.entries();
        if let Some(i) = entries.iter().position(|(s, _)| *s == stream) {
            let (_, event) = entries.swap_remove(i);
            // SAFETY: ours, and no one else knows it; waits already queued keep what they need.
            unsafe { driver::warpset_cuEventDestroy_v2(event) };
        }
    }

    /// Makes `target` wait for what every live stream holds now.
    pub(super) fn join_into(&self, target: Handle) -> Result<(), Failure> {
        self.entries().iter().try_for_each(|&(stream, event)| join(stream, event, target))
    }

    pub(super) fn join_one_into(&self, stream: Handle, target: Handle) -> Result<(), Failure> {
        let entries = self.entries();
        let entry = entries.iter().find(|(s, _)| *s == stream);
        entry.map_or(Ok(()), |&(stream, event)| join(stream, event, target))
    }

    fn entries(&self) -> std::sync::MutexGuard<'_, Vec<(Handle, Handle)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn join(stream: Handle, event: Handle, target: Handle) -> Result<(), Failure> {
    if stream == target {
        return Ok(());
    }
    // SAFETY: the registry's lock is held, so both handles are live; the context is current.
    unsafe {
        check("cuEventRecord", driver::warpset_cuEventRecord(event, stream))?;
        check("cuStreamWaitEvent", driver::warpset_cuStreamWaitEvent(target, event, 0))
    }
}

fn create_event(flags: u32) -> Result<Handle, Failure> {
    let mut event = std::ptr::null_mut();
    // SAFETY: a context is current, and the place is ours.
    check("cuEventCreate", unsafe { driver::warpset_cuEventCreate(&mut event, flags) })?;
    Ok(event)
}

/// A user's event, with timing.
pub(crate) struct CudaEvent {
    device: Arc<CudaDevice>,
    raw: Handle,
}

// SAFETY: an event handle may be used from any thread in which its context is current.
unsafe impl Send for CudaEvent {}
// SAFETY: as above.
unsafe impl Sync for CudaEvent {}

impl CudaEvent {
    pub(crate) fn new(device: Arc<CudaDevice>) -> Result<Self> {
        device.enter()?;
        let raw = device.checked(create_event(driver::EVENT_DEFAULT))?;
        Ok(Self { device, raw })
    }

    pub(crate) fn synchronize(&self) -> Result<()> {
        self.device.enter()?;
        // SAFETY: our event, in its context.
        self.device.checked(check("cuEventSynchronize", unsafe { driver::warpset_cuEventSynchronize(self.raw) }))
    }

    pub(crate) fn is_done(&self) -> Result<bool> {
        self.device.enter()?;
        // SAFETY: our event, in its context.
        let code = unsafe { driver::warpset_cuEventQuery(self.raw) };
        if DriverCode(code) == DriverCode::NOT_READY {
            return Ok(false);
        }
        self.device.checked(check("cuEventQuery", code))?;
        Ok(true)
    }

    /// Milliseconds from `start` to this event; both are recorded, and are waited for.
    pub(crate) fn elapsed_ms(&self, start: &CudaEvent) -> Result<f32> {
        start.synchronize()?;
        self.synchronize()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events are ours, made with timing, and a place of ours.
        let code = unsafe { driver::warpset_cuEventElapsedTime(&mut milliseconds, start.raw, self.raw) };
        self.device.checked(check("cuEventElapsedTime", code))?;
        Ok(milliseconds)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        self.device.enter_to_drop();
        // SAFETY: the last use of the handle; streams that wait for it keep what they need.
        unsafe { driver::warpset_cuEventDestroy_v2(self.raw) };
    }
}
