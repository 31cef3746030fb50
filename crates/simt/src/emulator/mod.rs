//! Runs kernels on the host, each GPU thread a coroutine, and finds their faults.
//!
//! ```
//! use warpset_simt::emulator::{Config, Emulator, FaultKind};
//! use warpset_simt::{GlobalMut, LaunchConfig, kernel, thread};
//!
//! kernel! {
//!     /// Every thread writes its own word.
//!     ///
//!     /// # Safety
//!     /// `words` has one word per thread.
//!     pub unsafe fn number(words: GlobalMut<u32>) {
//!         let i = thread::index_1d();
//!         // SAFETY: the caller's promise, which the launch below breaks.
//!         unsafe { words.write(i as usize, i) };
//!     }
//! }
//!
//! let emulator = Emulator::new(Config::seeded(7));
//! let words = emulator.buffer_from(&[0u32; 40]);
//! // SAFETY: the emulator turns the broken promise into a fault.
//! let fault = unsafe { number { words: words.global_mut() }.launch(&emulator, LaunchConfig::new(2, 32)) }.unwrap_err();
//! assert!(matches!(fault.kind, FaultKind::GlobalOutOfBounds { len: 40, .. }));
//! println!("{fault}"); // kernel, block, thread, source line, and how to replay
//! ```
//!
//! The diagnostics, the memory model and its limits are described in `docs/emulator.md`.
mod access;
pub(crate) mod block;
mod clock;
pub(crate) mod engine;
mod fault;
mod meeting;
mod memory;
mod order;
mod races;
mod random;
mod shadow;
mod weak;
mod worker;

use crate::{KernelInfo, LaunchConfig, Launcher, ThreadBody, Word};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::host::operation::AccessKind;
pub use fault::{Fault, FaultKind, Other, Space, Unordered, Whereabouts};
pub use memory::{Buffer, NotABuffer, OutOfMemory, POISON};
pub use order::{Clock, Operation, join};

/// The environment variable that sets the seed of every emulator, to replay a schedule.
pub const SEED_VARIABLE: &str = "WARPSET_EMULATOR_SEED";

/// Environment variable with the name of a file. Each emulator adds a line to it when it is dropped: the number of
/// launches it ran, each with a schedule of its own.
pub const COUNT_VARIABLE: &str = "WARPSET_EMULATOR_COUNT";

/// Settings of an [`Emulator`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Seed of every choice of the scheduler: equal seeds and equal sequences of launches give equal runs.
    /// [`SEED_VARIABLE`] overrides it. Default: a constant.
    pub seed: u64,
    /// Blocks that run interleaved. Default: 4.
    pub resident_blocks: u32,
    /// Whether unordered accesses of two threads to a word are faults. Default: true.
    pub detect_races: bool,
    /// Whether relaxed stores of a thread may become visible late, until it fences. Default: true.
    pub reorder_relaxed: bool,
    /// Atomics per switch to another thread, on average; 0 for never. Default: 4.
    pub switch_at_atomics: u32,
    /// Scheduling steps without any thread that ends or barrier that is passed, after
    /// which a launch counts as a livelock. Default: 20 million.
    pub max_steps: u64,
    /// Polls per thread without any write by any thread, after which threads that all
    /// spin count as a deadlock. Default: 1000.
    pub max_polls: u64,
    /// Bytes of device memory. Default: 16 GiB (only used memory is taken from the host).
    pub memory_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0x5eed,
            resident_blocks: 4,
            detect_races: true,
            reorder_relaxed: true,
            switch_at_atomics: 4,
            max_steps: 20_000_000,
            max_polls: 1000,
            memory_bytes: 16 << 30,
        }
    }
}

impl Config {
    /// Returns the defaults with another seed.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Returns settings without race detection and delayed stores: for speed, where another test has both.
    #[must_use]
    pub fn fast() -> Self {
        Self { detect_races: false, reorder_relaxed: false, ..Self::default() }
    }
}

/// Most bytes of shared memory per block: the limit of compute capability 9.0.
pub const MAX_SHARED_BYTES: u32 = 227 << 10;

/// Most threads of a block.
pub const MAX_BLOCK_THREADS: u32 = 1024;

/// An emulated device: memory, and kernels that run on the calling host thread.
///
/// Several host threads may launch at once. If the thread panics while it owns the
/// emulator (a test fails), the seed is printed.
#[derive(Debug)]
pub struct Emulator {
    config: Config,
    memory: Arc<memory::Memory>,
    launches: AtomicU64,
    /// Accesses of operations whose order is checked.
    accesses: Mutex<order::Accesses>,
}

impl Emulator {
    /// Makes a device with these settings.
    ///
    /// # Panics
    /// If [`SEED_VARIABLE`] is set to something that is not a number.
    #[must_use]
    pub fn new(mut config: Config) -> Self {
        if let Ok(text) = std::env::var(SEED_VARIABLE) {
            config.seed = parse_seed(&text).unwrap_or_else(|| panic!("{SEED_VARIABLE}={text} is no number"));
        }
        let memory = Arc::new(memory::Memory::new(config.memory_bytes));
        Self { config, memory, launches: AtomicU64::new(0), accesses: Mutex::new(order::Accesses::new()) }
    }

    /// Returns the settings, with the seed that is in use.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Allocates `bytes` of device memory, aligned to 256 bytes, filled with [`POISON`].
    ///
    /// # Errors
    /// If the device has not enough free memory.
    pub fn alloc(&self, bytes: usize) -> Result<*mut u8, OutOfMemory> {
        self.memory.alloc(bytes)
    }

    /// Gives the poisoned memory of the buffer of this size that was freed last, if there is one: an access that comes
    /// too late then meets memory of another owner.
    pub fn reuse(&self, bytes: usize) -> Option<*mut u8> {
        self.memory.reuse(bytes)
    }

    /// Frees what [`alloc`](Self::alloc) gave. Later accesses by kernels are faults.
    ///
    /// # Errors
    /// If `pointer` is not the start of a live buffer.
    pub fn free(&self, pointer: *mut u8) -> Result<(), NotABuffer> {
        self.memory.free(pointer)
    }

    /// Lets kernels access memory that the caller owns, such as pinned host memory.
    ///
    /// # Safety
    /// The memory stays valid until [`unregister`](Self::unregister).
    pub unsafe fn register(&self, pointer: *mut u8, bytes: usize) {
        self.memory.register(pointer, bytes);
    }

    /// Ends what [`register`](Self::register) began.
    ///
    /// # Errors
    /// If `pointer` was not registered.
    pub fn unregister(&self, pointer: *mut u8) -> Result<(), NotABuffer> {
        self.memory.unregister(pointer)
    }

    /// Returns the bytes of device memory that are free, and all there are.
    #[must_use]
    pub fn memory_info(&self) -> (usize, usize) {
        self.memory.info()
    }

    /// Makes a buffer of `len` poisoned elements, for tests.
    ///
    /// # Panics
    /// If there is not enough device memory.
    #[must_use]
    pub fn buffer<T: Word>(&self, len: usize) -> Buffer<T> {
        Buffer::new(self.memory.clone(), len).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Makes a buffer that holds `values`, for tests.
    ///
    /// # Panics
    /// If there is not enough device memory.
    #[must_use]
    pub fn buffer_from<T: Word>(&self, values: &[T]) -> Buffer<T> {
        let mut buffer = self.buffer(values.len());
        buffer.copy_from(values);
        buffer
    }

    /// Runs one launch to its end: `thread` once for each thread of the grid.
    ///
    /// # Errors
    /// The first fault; the launch has then been stopped, with its writes left in memory.
    pub fn launch(
        &self,
        info: &'static KernelInfo,
        config: LaunchConfig,
        thread: &(dyn Fn() + Sync),
    ) -> Result<(), Fault> {
        let launch = self.launches.fetch_add(1, Ordering::Relaxed);
        engine::run(&self.config, &self.memory, info, config, thread, launch, None)
    }

    /// Runs a launch as [`launch`](Self::launch) does, and checks its order with other operations.
    ///
    /// # Errors
    /// The first fault, [`FaultKind::Unordered`] included.
    pub fn launch_in_order(
        &self,
        info: &'static KernelInfo,
        config: LaunchConfig,
        thread: &(dyn Fn() + Sync),
        operation: &Operation,
    ) -> Result<(), Fault> {
        let launch = self.launches.fetch_add(1, Ordering::Relaxed);
        let accesses = &mut *self.accesses();
        accesses.begin(operation);
        let order = self.config.detect_races.then_some((operation, accesses));
        engine::run(&self.config, &self.memory, info, config, thread, launch, order)
    }

    /// Checks the order of an operation that accesses `bytes` bytes at `address`, and records it.
    ///
    /// # Errors
    /// [`FaultKind::Unordered`].
    pub fn access_in_order(
        &self,
        operation: &Operation,
        address: usize,
        bytes: usize,
        kind: AccessKind,
    ) -> Result<(), Fault> {
        if !self.config.detect_races {
            return Ok(());
        }
        let accesses = &mut *self.accesses();
        accesses.begin(operation);
        let launch = self.launches.load(Ordering::Relaxed);
        let checked = accesses.whole(operation, address, bytes, kind, &self.memory);
        checked.map_err(|kind| order::fault(operation, self.config.seed, launch, kind))
    }

    /// Forgets the accesses to a range that is allocated again.
    pub fn forget_accesses(&self, address: usize, bytes: usize) {
        self.accesses().forget(address, bytes);
    }

    fn accesses(&self) -> std::sync::MutexGuard<'_, order::Accesses> {
        // A kernel that panics leaves the records whole.
        self.accesses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("emulator: replay this schedule with {SEED_VARIABLE}={:#x}", self.config.seed);
        }
        if let Some(file) = std::env::var_os(COUNT_VARIABLE) {
            let line = format!("{}\n", self.launches.load(Ordering::Relaxed));
            // One write at the file's end, so that lines of processes side by side stay whole.
            let file = std::fs::OpenOptions::new().append(true).create(true).open(file);
            let _ = file.and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
        }
    }
}

impl Launcher for Emulator {
    type Error = Fault;

    unsafe fn launch_raw(
        &self,
        info: &'static KernelInfo,
        config: LaunchConfig,
        _args: &mut [*mut c_void],
        thread: &dyn Fn() -> ThreadBody,
    ) -> Result<(), Fault> {
        self.launch(info, config, &*thread())
    }
}

fn parse_seed(text: &str) -> Option<u64> {
    let text = text.trim();
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}
