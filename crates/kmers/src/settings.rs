//! How to count.

use std::thread;

use warpset_gpu::Device;

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
    pub(crate) place: Place,
    pub(crate) keeps_open: bool,
}

/// What counts. All give the same tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
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
pub(crate) enum Place {
    Backend(Backend),
    Device(Device),
}

impl Settings {
    /// For k-mers of `k` bases.
    pub fn new(k: u32) -> Result<Settings, Error> {
        let threads = thread::available_parallelism().map_or(1, |threads| threads.get());
        let place = Place::Backend(Backend::default());
        Ok(Settings {
            k: K::new(k)?,
            least: 1,
            memory: None,
            threads,
            progress: Progress::hidden(),
            place,
            keeps_open: false,
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

    /// Threads that parse and count. Files that are compressed, and pipes, are parsed by one thread each. Default: all of the
    /// machine.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Where to show how far reading is. Default: nowhere.
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }

    /// What counts. Default: [`Backend::Auto`].
    pub fn backend(mut self, backend: Backend) -> Self {
        self.place = Place::Backend(backend);
        self
    }

    /// Leaves a device that was opened for this open until the program ends: another count then finds it open, and a program that
    /// has nothing more to do with it does not wait until it is closed. Default: it is closed.
    pub fn keep_open(mut self) -> Self {
        self.keeps_open = true;
        self
    }

    /// This device counts, instead of one that is opened for it.
    pub fn on(mut self, device: &Device) -> Self {
        self.place = Place::Device(device.clone());
        self
    }
}
