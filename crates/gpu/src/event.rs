//! Events: points in a stream that can be waited for, and timed.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

#[cfg(feature = "cuda")]
use crate::cuda::CudaEvent;
use crate::device::{Device, Executor};
use crate::emulated::{EmulatedDevice, Point};
use crate::error::{GpuError, Result};
use crate::stream::Stream;

/// A point in a stream, with a time.
///
/// Recording again moves it. A stream that was made to wait for it waits for the point that it stood for then.
pub struct Event {
    device: Device,
    kind: Kind,
    /// When it was last recorded, by the host's clock: its time on the emulator, and on CUDA whether it has one.
    recorded: Mutex<Option<Instant>>,
}

enum Kind {
    #[cfg(feature = "cuda")]
    Cuda(CudaEvent),
    /// The point at which it was last recorded on a deferred device.
    Emulator(Arc<EmulatedDevice>, Mutex<Option<Point>>),
}

impl Event {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let kind = match &device.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => Kind::Cuda(CudaEvent::new(device.clone())?),
            Executor::Emulator(device) => Kind::Emulator(device.clone(), Mutex::new(None)),
        };
        Ok(Self { device: device.clone(), kind, recorded: Mutex::new(None) })
    }

    /// Moves the event to the end of what `stream` holds now.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`] if the stream is another device's; [`GpuError::Driver`] with the driver's code.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.device.expect_same(stream.device(), "recording an event")?;
        match &self.kind {
            #[cfg(feature = "cuda")]
            Kind::Cuda(event) => stream.cuda().record(event)?,
            Kind::Emulator(_, point) => *locked(point) = stream.emulated().end(),
        }
        *locked(&self.recorded) = Some(Instant::now());
        Ok(())
    }

    pub(crate) fn make_wait(&self, stream: &Stream) -> Result<()> {
        match &self.kind {
            #[cfg(feature = "cuda")]
            Kind::Cuda(event) if !stream.device().is_emulator() => stream.cuda().wait(event),
            Kind::Emulator(device, point) if stream.device().is_emulator() => {
                let point = locked(point).clone();
                point.map_or(Ok(()), |point| stream.emulated().wait(device, point))
            }
            #[cfg(feature = "cuda")]
            _ => self.synchronize(),
            #[cfg(not(feature = "cuda"))]
            _ => Ok(()),
        }
    }

    /// Waits until the stream has passed the event. An event never recorded counts as passed.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.kind {
            #[cfg(feature = "cuda")]
            Kind::Cuda(event) => event.synchronize(),
            Kind::Emulator(device, point) => {
                let point = locked(point).clone();
                point.map_or(Ok(()), |point| device.pass(&point))
            }
        }
    }

    /// Whether the stream has passed the event. An event never recorded counts as passed.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn is_done(&self) -> Result<bool> {
        match &self.kind {
            #[cfg(feature = "cuda")]
            Kind::Cuda(event) => event.is_done(),
            Kind::Emulator(device, point) => {
                let point = locked(point).clone();
                point.map_or(Ok(true), |point| device.has_passed(&point))
            }
        }
    }

    /// Returns the milliseconds from `start` to this event, on the device's clock. Waits for both.
    ///
    /// # Errors
    /// [`GpuError::EventNotRecorded`] if one of them was never recorded.
    pub fn elapsed_ms(&self, start: &Event) -> Result<f32> {
        self.device.expect_same(&start.device, "timing between events")?;
        let (from, to) = (start.recorded_at()?, self.recorded_at()?);
        match (&self.kind, &start.kind) {
            #[cfg(feature = "cuda")]
            (Kind::Cuda(end), Kind::Cuda(start)) => end.elapsed_ms(start),
            _ => {
                start.synchronize()?;
                self.synchronize()?;
                Ok(to.saturating_duration_since(from).as_secs_f32() * 1e3)
            }
        }
    }

    fn recorded_at(&self) -> Result<Instant> {
        locked(&self.recorded).ok_or(GpuError::EventNotRecorded)
    }
}

/// Locks a value that is only ever replaced as a whole.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", self.device)
    }
}
