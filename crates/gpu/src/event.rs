//! Events: points in a stream that can be waited for, and timed.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

#[cfg(feature = "cuda")]
use crate::cuda::CudaEvent;
use crate::device::{Device, Executor};
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
    Emulator,
}

impl Event {
    pub(crate) fn new(device: &Device) -> Result<Self> {
        let kind = match &device.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => Kind::Cuda(CudaEvent::new(device.clone())?),
            Executor::Emulator(_) => Kind::Emulator,
        };
        Ok(Self { device: device.clone(), kind, recorded: Mutex::new(None) })
    }

    /// Moves the event to the end of what `stream` holds now.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`] if the stream is another device's; [`GpuError::Driver`] with the driver's code.
    pub fn record(&self, stream: &Stream) -> Result<()> {
        self.device.expect_same(stream.device(), "recording an event")?;
        #[cfg(feature = "cuda")]
        if let Kind::Cuda(event) = &self.kind {
            stream.cuda().record(event)?;
        }
        *self.recorded.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(())
    }

    pub(crate) fn make_wait(&self, stream: &Stream) -> Result<()> {
        let _ = stream; // on the emulator everything is past already
        match &self.kind {
            #[cfg(feature = "cuda")]
            Kind::Cuda(event) if !stream.device().is_emulator() => stream.cuda().wait(event),
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
            Kind::Emulator => Ok(()),
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
            Kind::Emulator => Ok(true),
        }
    }

    /// Milliseconds from `start` to this event, on the device's clock. Waits for both.
    ///
    /// # Errors
    /// [`GpuError::EventNotRecorded`] if one of them was never recorded.
    pub fn elapsed_ms(&self, start: &Event) -> Result<f32> {
        self.device.expect_same(&start.device, "timing between events")?;
        let (from, to) = (start.recorded_at()?, self.recorded_at()?);
        match (&self.kind, &start.kind) {
            #[cfg(feature = "cuda")]
            (Kind::Cuda(end), Kind::Cuda(start)) => end.elapsed_ms(start),
            _ => Ok(to.saturating_duration_since(from).as_secs_f32() * 1e3),
        }
    }

    fn recorded_at(&self) -> Result<Instant> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner).ok_or(GpuError::EventNotRecorded)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({})", self.device)
    }
}
