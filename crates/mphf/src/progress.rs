//! Progress of a build, and the callback that may stop it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::Error;

/// Stage of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stage {
    /// Reads the keys of an [external](crate::Builder::external) build, or copies keys to a device, and hashes them.
    Hashing,
    /// Finds the codes of buckets.
    Building,
}

/// Progress of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Current stage.
    pub stage: Stage,
    /// Keys that have passed the stage.
    pub keys_done: u64,
    /// All keys; 0 while their number is unknown, as during the first pass of an external build.
    pub keys: u64,
    /// Number of the seed being tried: 0 unless hash values collided.
    pub attempt: u32,
}

/// Result of a progress callback: nothing, and the build continues, or a [`ControlFlow`], and its
/// [`Break`](ControlFlow::Break) stops the build. Sealed.
pub trait ProgressAction: sealed::ProgressAction {}

impl ProgressAction for () {}
impl ProgressAction for ControlFlow<()> {}

mod sealed {
    use std::ops::ControlFlow;

    pub trait ProgressAction {
        fn flow(self) -> ControlFlow<()>;
    }

    impl ProgressAction for () {
        fn flow(self) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }

    impl ProgressAction for ControlFlow<()> {
        fn flow(self) -> ControlFlow<()> {
            self
        }
    }
}

type Report = dyn Fn(Progress) -> ControlFlow<()> + Send + Sync;

/// A callback with its result converted to a [`ControlFlow`].
pub(crate) type Callback = Arc<Report>;

pub(crate) fn callback<V: ProgressAction>(callback: impl Fn(Progress) -> V + Send + Sync + 'static) -> Callback {
    Arc::new(move |progress| callback(progress).flow())
}

/// Progress at which a build was stopped.
#[derive(Clone, Copy, Debug)]
pub struct Interrupted(Progress);

impl From<Interrupted> for Error {
    fn from(Interrupted(progress): Interrupted) -> Self {
        let Progress { stage, keys_done, keys, .. } = progress;
        Error::Interrupted { stage, keys_done, keys }
    }
}

/// Callback of one build; it is not called again after it has stopped the build.
pub(crate) struct Reporter<'a> {
    callback: Option<&'a Report>,
    is_stopped: AtomicBool,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(callback: Option<&'a Report>) -> Self {
        Self { callback, is_stopped: AtomicBool::new(false) }
    }

    /// Makes a counter for the keys of a stage.
    pub(crate) fn meter(&self, stage: Stage, keys: u64, attempt: u32) -> Meter<'_> {
        Meter { reporter: self, done: AtomicU64::new(0), stage, keys, attempt }
    }

    /// Whether there is a callback.
    #[cfg(feature = "gpu")]
    pub(crate) fn is_asked(&self) -> bool {
        self.callback.is_some()
    }
}

/// Counter of finished keys, which reports them.
pub(crate) struct Meter<'a> {
    reporter: &'a Reporter<'a>,
    done: AtomicU64,
    stage: Stage,
    keys: u64,
    attempt: u32,
}

impl Meter<'_> {
    /// Adds finished keys; fails if the build has been stopped, by this call or on another thread.
    pub(crate) fn add(&self, keys: u64) -> Result<(), Interrupted> {
        let Some(callback) = self.reporter.callback else { return Ok(()) };
        let keys_done = self.done.fetch_add(keys, Ordering::Relaxed) + keys;
        let progress = Progress { stage: self.stage, keys_done, keys: self.keys, attempt: self.attempt };
        let is_stopped = &self.reporter.is_stopped;
        if is_stopped.load(Ordering::Relaxed) || callback(progress).is_break() {
            is_stopped.store(true, Ordering::Relaxed);
            return Err(Interrupted(progress));
        }
        Ok(())
    }

    /// Whether there is a callback.
    #[cfg(feature = "gpu")]
    pub(crate) fn is_asked(&self) -> bool {
        self.reporter.is_asked()
    }
}
