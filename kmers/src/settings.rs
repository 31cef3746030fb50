//! How to count.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use warpset_gpu::Device;

use crate::reads::Seen;
use crate::{Error, K, Progress};

/// How to count; each setter states its default.
#[derive(Clone, Debug)]
#[must_use = "settings do nothing until something is counted"]
pub struct Settings {
    pub(crate) k: K,
    pub(crate) least: u64,
    pub(crate) memory: Option<u64>,
    pub(crate) threads: usize,
    pub(crate) progress: Progress,
    pub(crate) place: Executor,
    pub(crate) closing: Closing,
    /// Letters that one count has read.
    pub(crate) seen: Arc<Mutex<Seen>>,
}

/// What counts. All give the same tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// A GPU if CUDA answers, the input is large enough for it to pay, and no limit of memory was set; else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU; an error if none answers.
    Cuda,
}

/// Where to count.
#[derive(Clone, Debug)]
pub(crate) enum Executor {
    Backend(BackendChoice),
    Device(Device),
}

/// Devices that are being closed, which takes some hundredths of a second: time in which a table can be saved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closing(Arc<Threads>);

#[derive(Debug, Default)]
struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Closing {
    /// Drops what is on a device, and with it the device, on a thread of its own.
    pub(crate) fn close(&self, on_device: impl Send + 'static) {
        let closing = thread::spawn(move || drop(on_device));
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner).push(closing);
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        let threads = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        // A panic there has been reported, and nothing depends on it.
        threads.drain(..).for_each(|thread| _ = thread.join());
    }
}

impl Settings {
    /// Settings for k-mers of `k` bases.
    ///
    /// # Errors
    /// [`Error::InvalidK`] unless `k` is 1 to 32.
    pub fn new(k: u32) -> Result<Settings, Error> {
        let place = Executor::Backend(BackendChoice::default());
        Ok(Settings {
            k: K::new(k)?,
            least: 1,
            memory: None,
            threads: 0,
            progress: Progress::hidden(),
            place,
            closing: Closing::default(),
            seen: Arc::default(),
        })
    }

    /// K-mers of which there are fewer copies are left out. Default: 1.
    pub fn least(mut self, least: u64) -> Self {
        self.least = least;
        self
    }

    /// Bytes of the host's memory that may be used, about. Default: no limit.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Threads that parse and count; 0 for all of the machine. Files that are compressed, and pipes, are parsed by one
    /// thread each. No more are started than one for every 4 KiB of input, and no more than 256 unless the machine has
    /// more. Default: all of the machine.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Where to show how far reading is. Default: nowhere.
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// What counts. Default: [`BackendChoice::Auto`]. A device that was opened for a count is closed on a thread of its own,
    /// which has ended when all clones of these settings are gone.
    pub fn backend(mut self, backend: BackendChoice) -> Self {
        self.place = Executor::Backend(backend);
        self
    }

    /// This device counts, instead of one that is opened for it.
    pub fn on(mut self, device: &Device) -> Self {
        self.place = Executor::Device(device.clone());
        self
    }
}
