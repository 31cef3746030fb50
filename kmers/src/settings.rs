//! Settings of a count.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use warpset_gpu::Device;

use crate::reads::Seen;
use crate::{Error, K, Progress};

/// Declares the setters that everything that reads files has.
macro_rules! reading_setters {
    () => {
        /// Sets the number of threads; 0 for all of the machine. Compressed files and pipes are parsed by one thread
        /// each. At most one thread per 4 KiB of input is started, and at most 256 unless the machine has more.
        /// Default: all of the machine.
        pub fn threads(mut self, threads: usize) -> Self {
            self.threads = threads;
            self
        }

        /// Sets where progress is shown. Default: nowhere.
        pub fn progress(mut self, progress: Progress) -> Self {
            self.progress = progress;
            self
        }
    };
}
pub(crate) use reading_setters;

/// Settings of a count; each setter states its default.
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
    /// Statistics of the letters of one count.
    pub(crate) seen: Arc<Mutex<Seen>>,
}

/// Choice of a backend. All backends give the same results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendChoice {
    /// A GPU if CUDA answers, the input is large enough for it to pay, and no memory limit is set; else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU; an error if none answers.
    Cuda,
}

/// Executor of a count.
#[derive(Clone, Debug)]
pub(crate) enum Executor {
    Backend(BackendChoice),
    Device(Device),
}

/// Devices that are being closed on their own threads. Closing takes some hundredths of a second, in which a table can
/// be saved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closing(Arc<Threads>);

#[derive(Debug, Default)]
struct Threads(Mutex<Vec<JoinHandle<()>>>);

impl Closing {
    /// Drops a value on a device, and with it the device, on its own thread.
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
    /// Creates settings for k-mers of `k` bases.
    ///
    /// # Errors
    /// [`Error::InvalidK`] unless `k` is 1 to 63.
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

    /// Leaves out k-mers with fewer than `least` copies. Default: 1.
    pub fn least(mut self, least: u64) -> Self {
        self.least = least;
        self
    }

    /// Limits the memory of the host, approximately, in bytes. Default: no limit.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    reading_setters!();

    /// Sets the backend. Default: [`BackendChoice::Auto`]. A device that was opened for a count is closed on its own
    /// thread, which has ended when all clones of these settings are dropped.
    pub fn backend(mut self, backend: BackendChoice) -> Self {
        self.place = Executor::Backend(backend);
        self
    }

    /// Counts on this device instead of one that is opened for the call.
    pub fn on(mut self, device: &Device) -> Self {
        self.place = Executor::Device(device.clone());
        self
    }
}
