//! Times of a build's stages by the device's clock, for the bench.

use std::sync::{Mutex, PoisonError};

use warpset_gpu::{Event, Stream};

use crate::Error;

/// The stages of a build, with the seconds of each.
pub(super) type Stages = Vec<(&'static str, f64)>;

/// The stages of a build, each with its end.
#[derive(Default)]
pub(super) struct StageTimer(Mutex<Vec<(&'static str, Event)>>);

impl StageTimer {
    /// Ends a stage at the stream's current point.
    pub(super) fn mark(&self, stream: &Stream, stage: &'static str) -> Result<(), Error> {
        let event = stream.device().new_event()?;
        event.record(stream)?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((stage, event));
        Ok(())
    }

    /// Returns the seconds of each stage but the first, which is the start of all. Waits.
    pub(super) fn seconds(self) -> Result<Stages, Error> {
        let marks = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let seconds =
            |pair: &[(&'static str, Event)]| Ok((pair[1].0, f64::from(pair[1].1.elapsed_ms(&pair[0].1)?) / 1e3));
        marks.windows(2).map(seconds).collect()
    }
}
