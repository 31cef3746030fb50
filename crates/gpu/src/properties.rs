//! Properties of a device, and its free memory.

use crate::error::CudaVersion;

/// Properties of a device. A launch is checked against its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceProperties {
    /// The device's name.
    pub name: String,
    /// The device's ordinal; 0 for the emulator.
    pub ordinal: u32,
    /// Whether kernels run on the emulator.
    pub is_emulator: bool,
    /// Compute capability, major and minor.
    pub compute_capability: (u32, u32),
    /// The CUDA version that the driver supports; `None` on the emulator.
    pub driver_version: Option<CudaVersion>,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Threads in a warp.
    pub warp_size: u32,
    /// The largest block, in threads.
    pub max_threads_per_block: u32,
    /// The largest block in each dimension.
    pub max_block: [u32; 3],
    /// The largest grid in each dimension.
    pub max_grid: [u32; 3],
    /// Threads that fit on one multiprocessor.
    pub max_threads_per_multiprocessor: u32,
    /// Blocks that fit on one multiprocessor.
    pub max_blocks_per_multiprocessor: u32,
    /// 32-bit registers of one multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Shared memory that one block can have, static and dynamic together (past 48 KiB a kernel must request it).
    pub max_shared_bytes_per_block: u32,
    /// Shared memory of one multiprocessor.
    pub shared_bytes_per_multiprocessor: u32,
    /// Shared memory that the driver takes for itself from each block.
    pub reserved_shared_bytes_per_block: u32,
    /// Size of the L2 cache.
    pub l2_bytes: usize,
    /// Device memory in all.
    pub memory_bytes: usize,
    /// Memory clock times bus width: the bandwidth on paper, bytes per second, where the driver tells.
    pub memory_bandwidth: Option<u64>,
    /// Whether allocations can be ordered in streams (memory pools).
    pub has_memory_pools: bool,
}

/// Amounts of device memory, in total and free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryInfo {
    /// Bytes that an allocation can still take: free on the device, or kept by our pool and unused.
    pub free: usize,
    /// Bytes in all.
    pub total: usize,
    /// Bytes that our pool holds from the driver.
    pub pool_reserved: usize,
    /// Bytes of the pool that are allocated.
    pub pool_used: usize,
}

/// The compiler's figures for a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelAttributes {
    /// The largest block that it can run with.
    pub max_threads_per_block: u32,
    /// Registers per thread.
    pub registers: u32,
    /// Local memory per thread: register arrays that were not unrolled, and spills.
    pub local_bytes: u32,
    /// Static shared memory per block.
    pub static_shared_bytes: u32,
}
