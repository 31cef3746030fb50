//! Streams and events. Every stream is created non-blocking: it never waits for the legacy default stream.

use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use warpset_simt::KernelInfo;

use super::binding;
use super::device::CudaDevice;
use super::driver::{self, Address, Failure, Handle, check};
use super::l2::Kept;
use crate::error::{DriverCode, GpuError, Result};

/// A user's stream.
pub(crate) struct CudaStream {
    pub(super) device: Arc<CudaDevice>,
    pub(super) raw: Handle,
    priority: i32,
    /// Whether another library made the handle and destroys it.
    is_adopted: bool,
    last_kernel: AtomicPtr<KernelInfo>,
    /// Share of memory that stays in the L2 cache for this stream.
    kept: Mutex<Option<Kept>>,
}

// SAFETY: a stream handle may be used from any thread in which its context is current.
unsafe impl Send for CudaStream {}
// SAFETY: the driver queues concurrent submissions in some order.
unsafe impl Sync for CudaStream {}

impl CudaStream {
    /// Returns a stream without another owner: a kept one that its owner has dropped, or else a new one.
    pub(crate) fn new(device: Arc<CudaDevice>, priority: i32) -> Result<Self> {
        device.enter()?;
        let kept = if priority == KEPT_PRIORITY { device.streams.take_kept() } else { None };
        let raw = match kept {
            Some(raw) => raw,
            None => device.checked(Self::create_raw(priority).and_then(|raw| {
                // SAFETY: if it fails, the stream is new and unused.
                device.streams.add(raw).inspect_err(|_| unsafe {
                    binding::cuStreamDestroy_v2(raw);
                })?;
                Ok(raw)
            }))?,
        };
        Ok(Self {
            device,
            raw,
            priority,
            is_adopted: false,
            last_kernel: AtomicPtr::new(std::ptr::null_mut()),
            kept: Mutex::default(),
        })
    }

    /// Whether a caller lends the stream.
    pub(crate) fn is_adopted(&self) -> bool {
        self.is_adopted
    }

    /// Wraps the stream of another owner, in this device's context.
    ///
    /// # Safety
    /// `raw` is a live stream other than the legacy default stream, and outlives the returned object.
    pub(crate) unsafe fn adopt(device: Arc<CudaDevice>, raw: Handle) -> Result<Self> {
        device.enter()?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the caller's stream, and the result goes to a local variable.
        device.checked(check("cuStreamGetCtx", unsafe { binding::cuStreamGetCtx(raw, &mut context) }))?;
        if context != device.raw_context() {
            let expected = device.properties().name.clone();
            let found = "another context".into();
            return Err(GpuError::OtherDevice { operation: "the adoption of a stream", expected, found });
        }
        device.checked(device.streams.add(raw))?;
        let last_kernel = AtomicPtr::new(std::ptr::null_mut());
        Ok(Self { device, raw, priority: KEPT_PRIORITY, is_adopted: true, last_kernel, kept: Mutex::default() })
    }

    /// Creates a non-blocking stream in the current context.
    pub(super) fn create_raw(priority: i32) -> Result<Handle, Failure> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current, and the result goes to a local variable. The driver clamps the priority.
        let code = unsafe { binding::cuStreamCreateWithPriority(&mut raw, driver::STREAM_NON_BLOCKING, priority) };
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
        self.checked(check("cuStreamSynchronize", unsafe { binding::cuStreamSynchronize(self.raw) }))
    }

    /// Keeps a share of this memory in the L2 cache for the work that is queued from here on; returns whether it does.
    pub(crate) fn keep_in_l2(&self, base: Address, bytes: usize) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() && self.device.enter().is_ok() {
            // SAFETY: our stream, whose handle outlives this object and with it the field.
            *kept = unsafe { Kept::new(&self.device, self.raw, base, bytes) };
        }
        kept.is_some()
    }

    /// Ends [`keep_in_l2`](Self::keep_in_l2), after the work.
    pub(crate) fn keep_nothing(&self) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(crate) fn is_idle(&self) -> Result<bool> {
        self.device.enter()?;
        // SAFETY: our stream, in its context.
        ready(self, "cuStreamQuery", unsafe { binding::cuStreamQuery(self.raw) })
    }

    /// Whether the driver agrees that this stream does not wait for the legacy default stream.
    pub(crate) fn is_non_blocking(&self) -> Result<bool> {
        self.device.enter()?;
        let mut flags = 0;
        // SAFETY: our stream, in its context, and the result goes to a local variable.
        let code = unsafe { binding::cuStreamGetFlags(self.raw, &mut flags) };
        self.checked(check("cuStreamGetFlags", code))?;
        Ok(flags & driver::STREAM_NON_BLOCKING != 0)
    }

    pub(crate) fn record(&self, event: &CudaEvent) -> Result<()> {
        self.device.enter()?;
        // SAFETY: both are ours and of one device, which the caller has checked.
        self.checked(check("cuEventRecord", unsafe { binding::cuEventRecord(event.raw, self.raw) }))
    }

    pub(crate) fn wait(&self, event: &CudaEvent) -> Result<()> {
        self.device.enter()?;
        // SAFETY: both are ours; the event stays the owner's.
        self.checked(check("cuStreamWaitEvent", unsafe { binding::cuStreamWaitEvent(self.raw, event.raw, 0) }))
    }

    /// Makes this stream wait for what `other` holds now.
    pub(crate) fn wait_for(&self, other: &CudaStream) -> Result<()> {
        self.device.enter()?;
        self.checked(other.device.streams.join_one_into(other.raw, self.raw))
    }

    /// Returns the handle, for libraries that take one.
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
        self.keep_nothing();
        self.device.enter_to_drop();
        if self.priority == KEPT_PRIORITY
            && !self.is_adopted
            && !self.device.is_lost()
            && self.device.streams.keep(self.raw)
        {
            return;
        }
        // Queued work runs on after the handle is gone, and frees must still come after it.
        let _ = self.device.streams.join_one_into(self.raw, self.device.free_stream);
        self.device.streams.remove(self.raw);
        if !self.is_adopted {
            // SAFETY: the last use of the handle; the driver lets queued work finish.
            unsafe { binding::cuStreamDestroy_v2(self.raw) };
        }
    }
}

/// Streams of this priority are kept for reuse: making one takes longer than a short kernel.
const KEPT_PRIORITY: i32 = 0;
/// The most that are kept: two for each of eight threads that copy, or three for lookups from each of eight devices,
/// and a few.
const MOST_KEPT: usize = 32;

/// The streams of a device.
pub(super) struct StreamRegistry(Mutex<Streams>);

struct Streams {
    live: Vec<Live>,
    /// Streams without an owner. Their work may still be queued.
    kept: Vec<Handle>,
}

struct Live {
    stream: Handle,
    /// Event that marks the end of its work, for streams that wait for it.
    event: Handle,
    /// Whether it had ended its work when its owner gave it up, and has no owner since: nothing waits for it.
    is_idle: bool,
}

impl StreamRegistry {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Streams { live: Vec::new(), kept: Vec::new() }))
    }

    fn add(&self, stream: Handle) -> Result<(), Failure> {
        let event = create_event(driver::EVENT_DISABLE_TIMING)?;
        self.streams().live.push(Live { stream, event, is_idle: false });
        Ok(())
    }

    fn remove(&self, stream: Handle) {
        let live = &mut self.streams().live;
        if let Some(i) = live.iter().position(|one| one.stream == stream) {
            let Live { event, .. } = live.swap_remove(i);
            // SAFETY: the stream is ours, and its handle has no other copy; waits already queued keep what they need.
            unsafe { binding::cuEventDestroy_v2(event) };
        }
    }

    /// Keeps a stream that its owner drops; returns whether there was room.
    fn keep(&self, stream: Handle) -> bool {
        let streams = &mut *self.streams();
        let has_room = streams.kept.len() < MOST_KEPT;
        if has_room {
            streams.kept.push(stream);
            // SAFETY: the stream is live, and the caller has made the context current.
            streams.mark(stream, unsafe { binding::cuStreamQuery(stream) } == 0);
        }
        has_room
    }

    /// Takes a kept stream that has ended its work, so that its next owner does not wait for work of another.
    fn take_kept(&self) -> Option<Handle> {
        let streams = &mut *self.streams();
        // SAFETY: kept streams are live, and the caller has made the context current.
        let i = streams.kept.iter().position(|&stream| unsafe { binding::cuStreamQuery(stream) } == 0)?;
        let stream = streams.kept.swap_remove(i);
        streams.mark(stream, false);
        Some(stream)
    }

    /// Gives back the kept streams when the device goes.
    pub(super) fn destroy_kept(&self) {
        loop {
            let Some(stream) = self.streams().kept.pop() else { return };
            self.remove(stream);
            // SAFETY: it has no owner. Waiting first returns its frees to the pool.
            unsafe {
                binding::cuStreamSynchronize(stream);
                binding::cuStreamDestroy_v2(stream);
            }
        }
    }

    /// Makes `target` wait for all work that the live streams hold now.
    pub(super) fn join_into(&self, target: Handle) -> Result<(), Failure> {
        let streams = self.streams();
        streams.live.iter().filter(|one| !one.is_idle).try_for_each(|one| join(one.stream, one.event, target))
    }

    pub(super) fn join_one_into(&self, stream: Handle, target: Handle) -> Result<(), Failure> {
        let streams = self.streams();
        let entry = streams.live.iter().find(|one| one.stream == stream);
        entry.map_or(Ok(()), |one| join(one.stream, one.event, target))
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    /// Notes whether a live stream is idle.
    fn mark(&mut self, stream: Handle, is_idle: bool) {
        if let Some(one) = self.live.iter_mut().find(|one| one.stream == stream) {
            one.is_idle = is_idle;
        }
    }
}

fn join(stream: Handle, event: Handle, target: Handle) -> Result<(), Failure> {
    if stream == target {
        return Ok(());
    }
    // SAFETY: the registry's lock is held, so both handles are live; the context is current.
    unsafe {
        check("cuEventRecord", binding::cuEventRecord(event, stream))?;
        check("cuStreamWaitEvent", binding::cuStreamWaitEvent(target, event, 0))
    }
}

fn create_event(flags: u32) -> Result<Handle, Failure> {
    let mut event = std::ptr::null_mut();
    // SAFETY: a context is current, and the result goes to a local variable.
    check("cuEventCreate", unsafe { binding::cuEventCreate(&mut event, flags) })?;
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
        self.device.checked(check("cuEventSynchronize", unsafe { binding::cuEventSynchronize(self.raw) }))
    }

    pub(crate) fn is_done(&self) -> Result<bool> {
        self.device.enter()?;
        // SAFETY: our event, in its context.
        let code = unsafe { binding::cuEventQuery(self.raw) };
        if DriverCode(code) == DriverCode::NOT_READY {
            return Ok(false);
        }
        self.device.checked(check("cuEventQuery", code))?;
        Ok(true)
    }

    /// Returns the milliseconds from `start` to this event; both are recorded, and are waited for.
    pub(crate) fn elapsed_ms(&self, start: &CudaEvent) -> Result<f32> {
        start.synchronize()?;
        self.synchronize()?;
        let mut milliseconds = 0.0;
        // SAFETY: both events are ours, made with timing, and the result goes to a local variable.
        let code = unsafe { binding::cuEventElapsedTime(&mut milliseconds, start.raw, self.raw) };
        self.device.checked(check("cuEventElapsedTime", code))?;
        Ok(milliseconds)
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        self.device.enter_to_drop();
        // SAFETY: the last use of the handle; streams that wait for it keep what they need.
        unsafe { binding::cuEventDestroy_v2(self.raw) };
    }
}
