//! The emulator executor: device memory in host memory, and launches that run at once or as late as a program allows.

mod deferred;
mod stream;
mod work;

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use warpset_simt::emulator::{Config, Emulator, MAX_BLOCK_THREADS, MAX_SHARED_BYTES, OutOfMemory, POISON};
use warpset_simt::{KernelInfo, LaunchConfig};

use crate::error::{GpuError, Result};
use crate::launch;
use crate::loaded::Asked;
use crate::memory::Budget;
use crate::pinned_pool::PinnedPool;
use crate::properties::{DeviceProperties, MemoryInfo};

use self::deferred::Deferred;
pub(crate) use self::deferred::Point;
pub(crate) use self::stream::EmulatedStream;
use self::work::Work;

/// Options of an emulated device; [`Device::emulator`](crate::Device::emulator) takes the defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmulatorOptions {
    /// Options of kernel runs: seed, detectors, limits, and the bytes of device memory, past which allocations fail.
    pub config: Config,
    /// Multiprocessors, as code that sizes its grids sees them. Default: 4.
    pub multiprocessors: u32,
    /// Bytes of L2 cache, as code that sizes its parts sees them. Default: 1 MiB.
    pub l2_bytes: usize,
    /// Whether streams run as late as the program allows, and operations of several streams that nothing orders are
    /// faults ([`GpuError::Emulator`] of a later call that waits). Default: false, each call has run when it returns.
    pub deferred: bool,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self { config: Config::default(), multiprocessors: 4, l2_bytes: 1 << 20, deferred: false }
    }
}

impl EmulatorOptions {
    /// Sets the options of the emulator that runs the kernels.
    #[must_use]
    pub fn config(self, config: Config) -> Self {
        Self { config, ..self }
    }

    /// Sets the bytes of device memory, past which allocations fail.
    #[must_use]
    pub fn memory_bytes(mut self, memory_bytes: usize) -> Self {
        self.config.memory_bytes = memory_bytes;
        self
    }

    /// Sets the number of multiprocessors that the device reports, 1 to 4096.
    #[must_use]
    pub fn multiprocessors(self, multiprocessors: u32) -> Self {
        Self { multiprocessors, ..self }
    }

    /// Whether streams run as late as the program allows; see [`EmulatorOptions::deferred`].
    #[must_use]
    pub fn deferred(self, deferred: bool) -> Self {
        Self { deferred, ..self }
    }

    /// Sets the bytes of L2 cache, at most 2^40.
    #[must_use]
    pub fn l2_bytes(self, l2_bytes: usize) -> Self {
        Self { l2_bytes, ..self }
    }
}

/// No lock is needed. Allocation and launches are the emulator's, which threads may share. The host accesses an
/// allocation only through a vector's borrow, and the contract of a launch excludes other accesses to the memory of its
/// kernel.
pub(crate) struct EmulatedDevice {
    /// Number of the device in this process, from 1, for messages.
    pub(crate) number: u64,
    pub(crate) budget: Budget,
    pub(crate) pinned: PinnedPool,
    properties: DeviceProperties,
    emulator: Emulator,
    /// Queues of its streams, unless calls execute their work at once.
    deferred: Option<Deferred>,
    resident_blocks: u32,
    pub(crate) asked: Asked,
}

impl EmulatedDevice {
    pub(crate) fn new(options: EmulatorOptions) -> Self {
        let properties = DeviceProperties {
            name: "Warpset emulator".into(),
            ordinal: 0,
            is_emulator: true,
            compute_capability: (9, 0),
            driver_version: None,
            multiprocessors: options.multiprocessors.clamp(1, 1 << 12),
            warp_size: 32,
            max_threads_per_block: MAX_BLOCK_THREADS,
            max_block: [MAX_BLOCK_THREADS, MAX_BLOCK_THREADS, 64],
            max_grid: [i32::MAX as u32, 65535, 65535],
            max_threads_per_multiprocessor: 2048,
            max_blocks_per_multiprocessor: 32,
            registers_per_multiprocessor: 64 << 10,
            max_shared_bytes_per_block: MAX_SHARED_BYTES,
            shared_bytes_per_multiprocessor: MAX_SHARED_BYTES + (1 << 10),
            reserved_shared_bytes_per_block: 1 << 10,
            l2_bytes: options.l2_bytes.min(1 << 40),
            memory_bytes: options.config.memory_bytes,
            memory_bandwidth: None,
            has_memory_pools: true,
        };
        let emulator = Emulator::new(options.config);
        static MADE: AtomicU64 = AtomicU64::new(0);
        Self {
            number: MADE.fetch_add(1, Ordering::Relaxed) + 1,
            budget: Budget::unlimited(),
            pinned: PinnedPool::new(),
            properties,
            resident_blocks: emulator.config().resident_blocks.max(1),
            deferred: options.deferred.then(|| Deferred::new(emulator.config().seed)),
            emulator,
            asked: Asked::new(),
        }
    }

    pub(crate) fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    pub(crate) fn memory_info(&self) -> MemoryInfo {
        let (free, total) = self.emulator.memory_info();
        MemoryInfo { free, total, pool_reserved: total - free, pool_used: total - free }
    }

    /// Allocates poisoned memory that every stream may use. `bytes > 0`.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<usize> {
        let refused = |refused: OutOfMemory| GpuError::OutOfMemory {
            place: self.properties.name.clone(),
            asked: refused.asked,
            free: refused.free,
        };
        let Some(deferred) = &self.deferred else {
            return Ok(self.emulator.alloc(bytes).map_err(refused)?.expose_provenance());
        };
        let pointer = match self.emulator.reuse(bytes) {
            Some(pointer) => pointer,
            None => match self.emulator.alloc(bytes) {
                Ok(pointer) => pointer,
                // Frees may be queued behind other work.
                Err(_) => {
                    deferred.synchronize_all(self)?;
                    self.emulator.alloc(bytes).map_err(refused)?
                }
            },
        };
        self.emulator.forget_accesses(pointer.addr(), bytes);
        Ok(pointer.expose_provenance())
    }

    /// Frees what [`allocate`](Self::allocate) gave, once, after everything that the device holds.
    pub(crate) fn free(&self, address: usize, bytes: usize) {
        match &self.deferred {
            Some(deferred) => deferred.free_behind_everything(self, Work::Free { address, bytes }),
            None => self.release(address),
        }
    }

    fn release(&self, address: usize) {
        let freed = self.emulator.free(ptr::with_exposed_provenance_mut(address));
        debug_assert!(freed.is_ok(), "an allocation is freed once, by its owner");
    }

    /// Executes an operation now, after everything that the device holds.
    fn perform_now(&self, work: Work) -> Result<()> {
        let Some(deferred) = &self.deferred else { return self.perform(work, None).map_err(GpuError::Emulator) };
        deferred.synchronize_all(self)?;
        deferred.queue(self, deferred::OF_HOST, work)?;
        deferred.synchronize(self, &deferred.end(deferred::OF_HOST))
    }

    /// Copies from the host and waits.
    ///
    /// # Safety
    /// `address..` is within an allocation of this device, and `from` valid for `bytes` reads.
    pub(crate) unsafe fn write(&self, address: usize, from: *const u8, bytes: usize) -> Result<()> {
        self.perform_now(Work::Upload { to: address, from: from.expose_provenance(), bytes })
    }

    /// Copies to the host and waits.
    ///
    /// # Safety
    /// `address..` is within an allocation of this device, and `to` valid for `bytes` writes.
    pub(crate) unsafe fn read(&self, address: usize, to: *mut u8, bytes: usize) -> Result<()> {
        self.perform_now(Work::Download { to: to.expose_provenance(), from: address, bytes })
    }

    /// Fills with one byte and waits.
    ///
    /// # Safety
    /// `address..` is within an allocation of this device.
    pub(crate) unsafe fn set(&self, address: usize, byte: u8, bytes: usize) -> Result<()> {
        self.perform_now(Work::FillBytes { address, byte, bytes })
    }

    /// Executes everything that the device holds.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.deferred.as_ref().map_or(Ok(()), |deferred| deferred.synchronize_all(self))
    }

    /// Executes everything before a point of one of its streams.
    pub(crate) fn pass(&self, point: &Point) -> Result<()> {
        self.deferred.as_ref().map_or(Ok(()), |deferred| deferred.synchronize(self, point))
    }

    /// Whether a point of one of its streams has been passed.
    pub(crate) fn has_passed(&self, point: &Point) -> Result<bool> {
        self.deferred.as_ref().map_or(Ok(true), |deferred| deferred.is_done(self, point))
    }

    /// Overwrites pinned memory that is given back, if streams run late: a copy that the program did not wait for then
    /// finds poison.
    pub(crate) fn poison(&self, words: &mut [u64]) {
        if self.deferred.is_some() {
            words.fill(u64::from_ne_bytes([POISON; 8]));
        }
    }

    /// Checks a launch against the device's limits.
    fn check_launch(&self, info: &'static KernelInfo, config: LaunchConfig) -> Result<()> {
        launch::check(info, config, &self.properties, None)?;
        self.asked.note_launch(info);
        Ok(())
    }

    /// Returns the blocks of this shape that fit on the device: by threads and shared memory alone, and no more than
    /// the emulator runs at once.
    pub(crate) fn resident_blocks(&self, info: &'static KernelInfo, config: LaunchConfig) -> Result<u32> {
        let device = &self.properties;
        launch::check(info, config, device, None)?;
        let by_threads = device.max_threads_per_multiprocessor / config.block.count() as u32;
        let shared = config.shared_bytes + device.reserved_shared_bytes_per_block;
        let by_shared = device.shared_bytes_per_multiprocessor / shared;
        let on_one = by_threads.min(by_shared).min(device.max_blocks_per_multiprocessor);
        Ok((on_one * device.multiprocessors).min(self.resident_blocks))
    }
}

impl Drop for EmulatedDevice {
    fn drop(&mut self) {
        for raw in self.pinned.drain() {
            let words = ptr::slice_from_raw_parts_mut(raw.pointer.as_ptr(), raw.len);
            // SAFETY: on the emulator, pinned memory is a box of this length (see `PinnedVec::new`), which the pool
            // owned.
            drop(unsafe { Box::from_raw(words) });
        }
    }
}
