//! The driver functions that this crate declares itself, with result codes as plain numbers.
//!
//! The symbols `warpset_cu...` are trampolines of the import library (`build.rs`); they resolve to the driver
//! function without the prefix. Handles are opaque pointers, as in the driver's headers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

use crate::error::{DriverCode, GpuError};

/// A device address.
pub(crate) type Address = u64;
/// An opaque handle of the driver: context, stream, event, module, function or pool.
pub(crate) type Handle = *mut c_void;

pub(crate) const STREAM_NON_BLOCKING: c_uint = 1;
pub(crate) const EVENT_DEFAULT: c_uint = 0;
pub(crate) const EVENT_DISABLE_TIMING: c_uint = 2;
pub(crate) const HOST_ALLOC_PORTABLE: c_uint = 1;

pub(crate) const JIT_ERROR_LOG_BUFFER: c_int = 5;
pub(crate) const JIT_ERROR_LOG_BUFFER_SIZE_BYTES: c_int = 6;

pub(crate) const FUNCTION_MAX_THREADS_PER_BLOCK: c_int = 0;
pub(crate) const FUNCTION_SHARED_SIZE_BYTES: c_int = 1;
pub(crate) const FUNCTION_LOCAL_SIZE_BYTES: c_int = 3;
pub(crate) const FUNCTION_REGISTERS: c_int = 4;
pub(crate) const FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES: c_int = 8;

pub(crate) const DEVICE_MAX_BLOCKS_PER_MULTIPROCESSOR: c_int = 106;
pub(crate) const DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
pub(crate) const DEVICE_RESERVED_SHARED_MEMORY_PER_BLOCK: c_int = 111;
pub(crate) const DEVICE_MEMORY_POOLS_SUPPORTED: c_int = 115;

pub(crate) const POOL_RELEASE_THRESHOLD: c_int = 4;
pub(crate) const POOL_RESERVED_CURRENT: c_int = 5;
pub(crate) const POOL_USED_CURRENT: c_int = 7;

/// `CUmemPoolProps`: pinned memory of one device, shared with no other process.
#[repr(C)]
pub(crate) struct PoolProperties {
    allocation_type: c_int,
    handle_types: c_int,
    location_type: c_int,
    location_id: c_int,
    security_attributes: *mut c_void,
    max_size: usize,
    reserved: [u8; 56],
}

const _: () = assert!(size_of::<PoolProperties>() == 88);

impl PoolProperties {
    pub(crate) fn of_device(device: c_int) -> Self {
        Self {
            allocation_type: 1, // CU_MEM_ALLOCATION_TYPE_PINNED
            handle_types: 0,    // CU_MEM_HANDLE_TYPE_NONE
            location_type: 1,   // CU_MEM_LOCATION_TYPE_DEVICE
            location_id: device,
            security_attributes: std::ptr::null_mut(),
            max_size: 0,
            reserved: [0; 56],
        }
    }
}

unsafe extern "C" {
    pub(crate) fn warpset_cuda_missing() -> *const c_char;
    pub(crate) fn warpset_cuda_last_code() -> c_uint;

    pub(crate) fn warpset_cuCtxSynchronize() -> c_uint;
    pub(crate) fn warpset_cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int) -> c_uint;
    pub(crate) fn warpset_cuEventCreate(event: *mut Handle, flags: c_uint) -> c_uint;
    pub(crate) fn warpset_cuEventDestroy_v2(event: Handle) -> c_uint;
    pub(crate) fn warpset_cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle) -> c_uint;
    pub(crate) fn warpset_cuEventQuery(event: Handle) -> c_uint;
    pub(crate) fn warpset_cuEventRecord(event: Handle, stream: Handle) -> c_uint;
    pub(crate) fn warpset_cuEventSynchronize(event: Handle) -> c_uint;
    pub(crate) fn warpset_cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: Handle) -> c_uint;
    pub(crate) fn warpset_cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int) -> c_uint;
    pub(crate) fn warpset_cuGetErrorString(code: c_uint, text: *mut *const c_char) -> c_uint;
    pub(crate) fn warpset_cuLaunchKernel(
        function: Handle,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: Handle,
        arguments: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> c_uint;
    pub(crate) fn warpset_cuMemAllocFromPoolAsync(
        address: *mut Address,
        bytes: usize,
        pool: Handle,
        stream: Handle,
    ) -> c_uint;
    pub(crate) fn warpset_cuMemAlloc_v2(address: *mut Address, bytes: usize) -> c_uint;
    pub(crate) fn warpset_cuMemFreeAsync(address: Address, stream: Handle) -> c_uint;
    pub(crate) fn warpset_cuMemFreeHost(pointer: *mut c_void) -> c_uint;
    pub(crate) fn warpset_cuMemFree_v2(address: Address) -> c_uint;
    pub(crate) fn warpset_cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_uint;
    pub(crate) fn warpset_cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) -> c_uint;
    pub(crate) fn warpset_cuMemPoolCreate(pool: *mut Handle, properties: *const PoolProperties) -> c_uint;
    pub(crate) fn warpset_cuMemPoolDestroy(pool: Handle) -> c_uint;
    pub(crate) fn warpset_cuMemPoolGetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) -> c_uint;
    pub(crate) fn warpset_cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut c_void) -> c_uint;
    pub(crate) fn warpset_cuMemPoolTrimTo(pool: Handle, bytes_to_keep: usize) -> c_uint;
    pub(crate) fn warpset_cuMemcpyDtoDAsync_v2(to: Address, from: Address, bytes: usize, stream: Handle) -> c_uint;
    pub(crate) fn warpset_cuMemcpyDtoHAsync_v2(to: *mut c_void, from: Address, bytes: usize, stream: Handle) -> c_uint;
    pub(crate) fn warpset_cuMemcpyHtoDAsync_v2(
        to: Address,
        from: *const c_void,
        bytes: usize,
        stream: Handle,
    ) -> c_uint;
    pub(crate) fn warpset_cuMemcpyPeerAsync(
        to: Address,
        to_context: Handle,
        from: Address,
        from_context: Handle,
        bytes: usize,
        stream: Handle,
    ) -> c_uint;
    pub(crate) fn warpset_cuMemsetD32Async(address: Address, value: c_uint, count: usize, stream: Handle) -> c_uint;
    pub(crate) fn warpset_cuMemsetD8Async(address: Address, value: u8, count: usize, stream: Handle) -> c_uint;
    pub(crate) fn warpset_cuModuleLoadDataEx(
        module: *mut Handle,
        image: *const c_void,
        option_count: c_uint,
        options: *mut c_int,
        values: *mut *mut c_void,
    ) -> c_uint;
    pub(crate) fn warpset_cuModuleUnload(module: Handle) -> c_uint;
    pub(crate) fn warpset_cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: *mut c_int,
        function: Handle,
        block_size: c_int,
        dynamic_shared_bytes: usize,
    ) -> c_uint;
    pub(crate) fn warpset_cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int) -> c_uint;
    pub(crate) fn warpset_cuStreamDestroy_v2(stream: Handle) -> c_uint;
    pub(crate) fn warpset_cuStreamGetFlags(stream: Handle, flags: *mut c_uint) -> c_uint;
    pub(crate) fn warpset_cuStreamQuery(stream: Handle) -> c_uint;
    pub(crate) fn warpset_cuStreamSynchronize(stream: Handle) -> c_uint;
    pub(crate) fn warpset_cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint) -> c_uint;
}

/// A driver call that did not answer success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failure {
    pub(crate) call: &'static str,
    pub(crate) code: DriverCode,
}

impl From<Failure> for GpuError {
    fn from(failure: Failure) -> Self {
        GpuError::Driver { call: failure.call, code: failure.code }
    }
}

/// Success, or which call answered what.
pub(crate) fn check(call: &'static str, code: c_uint) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure { call, code: DriverCode(code) }) }
}

/// The result of a call through `cust`. Its error enumeration is lossy; the import library kept the true code.
pub(crate) fn check_cust<T>(call: &'static str, result: cust::error::CudaResult<T>) -> Result<T, Failure> {
    result.map_err(|error| {
        // SAFETY: the function only reads a thread-local integer.
        let code = unsafe { warpset_cuda_last_code() };
        // `cust` makes some errors up without asking the driver; then its own number says more.
        Failure { call, code: DriverCode(if code == 0 { error as u32 } else { code }) }
    })
}

/// Why there is no driver on this machine, or `None` where there is one.
pub(crate) fn missing() -> Option<String> {
    // SAFETY: answers null or a static string that no one writes to any more.
    let words = unsafe {
        let words = warpset_cuda_missing();
        (!words.is_null()).then(|| CStr::from_ptr(words))
    };
    words.map(|words| words.to_string_lossy().into_owned())
}

/// The driver's own sentence for `code`.
pub(crate) fn describe(code: DriverCode) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: on success `text` is a static string of the driver; an unknown code is answered with an error.
    unsafe {
        (warpset_cuGetErrorString(code.0, &mut text) == 0 && !text.is_null())
            .then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}
