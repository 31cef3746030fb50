//! The emulator executor: device memory in host memory, and launches that run at once.

use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use warpset_simt::emulator::{Config, Emulator, MAX_BLOCK_THREADS, MAX_SHARED_BYTES};
use warpset_simt::{KernelInfo, LaunchConfig};

use crate::error::{GpuError, Result};
use crate::launch;
use crate::loaded::Asked;
use crate::memory::Budget;
use crate::pinned_pool::PinnedPool;
use crate::properties::{DeviceProperties, MemoryInfo};

/// What an emulated device is like; [`Device::emulator`](crate::Device::emulator) takes the defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EmulatorOptions {
    /// How kernels are run: seed, detectors, limits; and the bytes of device memory, past which allocations fail.
    pub config: Config,
    /// Multiprocessors, as code that sizes its grids sees them. Default: 4.
    pub multiprocessors: u32,
    /// Bytes of L2 cache, as code that sizes its parts sees them. Default: 1 MiB.
    pub l2_bytes: usize,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        Self { config: Config::default(), multiprocessors: 4, l2_bytes: 1 << 20 }
    }
}

impl EmulatorOptions {
    /// Settings of the emulator that runs the kernels.
    #[must_use]
    pub fn config(self, config: Config) -> Self {
        Self { config, ..self }
    }

    /// Bytes of device memory, past which allocations fail.
    #[must_use]
    pub fn memory_bytes(mut self, memory_bytes: usize) -> Self {
        self.config.memory_bytes = memory_bytes;
        self
    }

    /// Number of multiprocessors that the device says it has, 1 to 4096.
    #[must_use]
    pub fn multiprocessors(self, multiprocessors: u32) -> Self {
        Self { multiprocessors, ..self }
    }

    /// Bytes of L2 cache, at most 2^40.
    #[must_use]
    pub fn l2_bytes(self, l2_bytes: usize) -> Self {
        Self { l2_bytes, ..self }
    }
}

/// No lock is needed: allocation and launches are the emulator's, which threads may share; and the host touches an
/// allocation only through a vector's borrow, while the caller of a launch guarantees that nothing else accesses what
/// the kernel accesses.
pub(crate) struct EmulatedDevice {
    /// Which one of this process, from 1, for messages.
    pub(crate) number: u64,
    pub(crate) budget: Budget,
    pub(crate) pinned: PinnedPool,
    properties: DeviceProperties,
    emulator: Emulator,
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
        static MADE: AtomicU64 = AtomicU64::new(0);
        Self {
            number: MADE.fetch_add(1, Ordering::Relaxed) + 1,
            budget: Budget::unlimited(),
            pinned: PinnedPool::new(),
            properties,
            resident_blocks: options.config.resident_blocks.max(1),
            emulator: Emulator::new(options.config),
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

    /// Poisoned memory. `bytes > 0`.
    pub(crate) fn allocate(&self, bytes: usize) -> Result<usize> {
        let pointer = self.emulator.alloc(bytes).map_err(|refused| GpuError::OutOfMemory {
            place: self.properties.name.clone(),
            asked: refused.asked,
            free: refused.free,
        })?;
        Ok(pointer.expose_provenance())
    }

    /// Frees what [`allocate`](Self::allocate) gave, once.
    pub(crate) fn free(&self, address: usize) {
        let freed = self.emulator.free(ptr::with_exposed_provenance_mut(address));
        debug_assert!(freed.is_ok(), "an allocation is freed once, by its owner");
    }

    /// # Safety
    /// `address..` is within an allocation of this device, and `from` valid for `bytes` reads.
    pub(crate) unsafe fn write(&self, address: usize, from: *const u8, bytes: usize) -> Result<()> {
        // SAFETY: both ranges are valid (the caller's promise), and no kernel accesses them (the launch's promise).
        unsafe { ptr::copy_nonoverlapping(from, ptr::with_exposed_provenance_mut(address), bytes) };
        Ok(())
    }

    /// # Safety
    /// `address..` is within an allocation of this device, and `to` valid for `bytes` writes.
    pub(crate) unsafe fn read(&self, address: usize, to: *mut u8, bytes: usize) -> Result<()> {
        // SAFETY: both ranges are valid (the caller's promise), and no kernel accesses them (the launch's promise).
        unsafe { ptr::copy_nonoverlapping(ptr::with_exposed_provenance(address), to, bytes) };
        Ok(())
    }

    /// # Safety
    /// `to..` is within an allocation of this device, `from..` within one of any emulated device.
    pub(crate) unsafe fn copy(&self, to: usize, from: usize, bytes: usize) -> Result<()> {
        let (from, to) = (ptr::with_exposed_provenance::<u8>(from), ptr::with_exposed_provenance_mut(to));
        // SAFETY: both ranges are valid (the caller's promise), and no kernel accesses them (the launch's promise).
        unsafe { ptr::copy(from, to, bytes) };
        Ok(())
    }

    /// # Safety
    /// `address..` is within an allocation of this device.
    pub(crate) unsafe fn set(&self, address: usize, byte: u8, bytes: usize) -> Result<()> {
        // SAFETY: the range is valid (the caller's promise), and no kernel accesses it (the launch's promise).
        unsafe { ptr::write_bytes(ptr::with_exposed_provenance_mut::<u8>(address), byte, bytes) };
        Ok(())
    }

    /// # Safety
    /// `address..` is within an allocation of this device, and a multiple of 4.
    pub(crate) unsafe fn set_words(&self, address: usize, word: u32, words: usize) -> Result<()> {
        // SAFETY: the range is valid and aligned (the caller's promise), and no kernel accesses them (the launch's
        // promise).
        let target = unsafe { std::slice::from_raw_parts_mut(ptr::with_exposed_provenance_mut::<u32>(address), words) };
        target.fill(word);
        Ok(())
    }

    /// Runs a launch to its end.
    pub(crate) fn launch(
        &self,
        info: &'static KernelInfo,
        config: LaunchConfig,
        thread: &(dyn Fn() + Sync),
    ) -> Result<()> {
        launch::check(info, config, &self.properties, None)?;
        self.asked.note_launch(info);
        self.emulator.launch(info, config, thread).map_err(GpuError::Emulator)
    }

    /// Blocks of this shape that fit on the device: by threads and shared memory alone, and no more than the emulator
    /// runs at once.
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
