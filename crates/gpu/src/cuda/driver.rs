//! The driver's types and constants, and what its answers mean here. The functions are in [`binding`](super::binding).

use std::ffi::{CStr, c_int, c_uint, c_void};

use super::binding;
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

/// The first of three: along x, y and z.
pub(crate) const DEVICE_MAX_BLOCK_X: c_int = 2;
/// The first of three: along x, y and z.
pub(crate) const DEVICE_MAX_GRID_X: c_int = 5;
pub(crate) const DEVICE_MAX_THREADS_PER_BLOCK: c_int = 1;
pub(crate) const DEVICE_MAX_SHARED_MEMORY_PER_BLOCK: c_int = 8;
pub(crate) const DEVICE_WARP_SIZE: c_int = 10;
pub(crate) const DEVICE_MULTIPROCESSORS: c_int = 16;
pub(crate) const DEVICE_MEMORY_CLOCK_RATE: c_int = 36;
pub(crate) const DEVICE_MEMORY_BUS_WIDTH: c_int = 37;
pub(crate) const DEVICE_L2_CACHE_SIZE: c_int = 38;
pub(crate) const DEVICE_MAX_THREADS_PER_MULTIPROCESSOR: c_int = 39;
pub(crate) const DEVICE_COMPUTE_CAPABILITY_MAJOR: c_int = 75;
pub(crate) const DEVICE_COMPUTE_CAPABILITY_MINOR: c_int = 76;
pub(crate) const DEVICE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: c_int = 81;
pub(crate) const DEVICE_MAX_REGISTERS_PER_MULTIPROCESSOR: c_int = 82;
pub(crate) const DEVICE_MAX_BLOCKS_PER_MULTIPROCESSOR: c_int = 106;
pub(crate) const DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: c_int = 97;
pub(crate) const DEVICE_RESERVED_SHARED_MEMORY_PER_BLOCK: c_int = 111;
pub(crate) const DEVICE_MAX_PERSISTING_L2_CACHE_SIZE: c_int = 108;
pub(crate) const DEVICE_MAX_ACCESS_POLICY_WINDOW_SIZE: c_int = 109;
pub(crate) const DEVICE_MEMORY_POOLS_SUPPORTED: c_int = 115;

pub(crate) const LIMIT_PERSISTING_L2: c_uint = 6;
pub(crate) const STREAM_ACCESS_WINDOW: c_uint = 1;

pub(crate) const POINTER_DEVICE_ORDINAL: c_int = 9;
pub(crate) const POINTER_ACCESS_FLAGS: c_int = 16;

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

/// `CUmemAccessDesc`: access rights of a device to the memory of a pool.
#[repr(C)]
pub(crate) struct PoolAccess {
    location_type: c_int,
    location_id: c_int,
    flags: c_int,
}

const _: () = assert!(size_of::<PoolAccess>() == 12);

impl PoolAccess {
    /// Grants reading and writing to this device.
    pub(crate) fn by_device(device: c_int) -> Self {
        // CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        Self { location_type: 1, location_id: device, flags: 3 }
    }
}

/// `CUaccessPolicyWindow`, as a `CUstreamAttrValue`: memory whose accesses, by a stream, stay in the L2 cache.
#[repr(C)]
pub(crate) struct AccessWindow {
    base: Address,
    bytes: usize,
    hit_ratio: f32,
    hit: c_int,
    miss: c_int,
    /// Rest of the union.
    reserved: [u8; 36],
}

const _: () = assert!(size_of::<AccessWindow>() == 64);

impl AccessWindow {
    /// Keeps this share of the accesses to some memory.
    pub(crate) fn persisting(base: Address, bytes: usize, hit_ratio: f32) -> Self {
        // CU_ACCESS_PROPERTY_PERSISTING, CU_ACCESS_PROPERTY_NORMAL
        Self { base, bytes, hit_ratio, hit: 2, miss: 0, reserved: [0; 36] }
    }

    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self { base: 0, bytes: 0, hit_ratio: 0.0, hit: 0, miss: 0, reserved: [0; 36] }
    }
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

/// Turns a result code into an error that names the call, unless it is 0.
pub(crate) fn check(call: &'static str, code: c_uint) -> Result<(), Failure> {
    if code == 0 { Ok(()) } else { Err(Failure { call, code: DriverCode(code) }) }
}

/// Returns the driver's own sentence for `code`.
pub(crate) fn describe(code: DriverCode) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: on success `text` is a static string of the driver; an unknown code is answered with an error.
    unsafe {
        (binding::cuGetErrorString(code.0, &mut text) == 0 && !text.is_null())
            .then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}
