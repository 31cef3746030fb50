//! The driver's functions, found in the driver's library when one is first called, with result codes as plain numbers.
//!
//! Nothing is linked: an executable built with the feature `cuda` starts on machines without a driver, and every
//! function here then answers [`NO_DRIVER`]. Handles are opaque pointers, as in the driver's headers.

// The driver's own names and parameters.
#![allow(non_snake_case, clippy::too_many_arguments)]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::Library;

use super::driver::{AccessWindow, Address, Handle, PoolAccess, PoolProperties};

/// Library that the driver's package installs.
const LIBRARY: &str = if cfg!(windows) { "nvcuda.dll" } else { "libcuda.so.1" };

/// Result code without a driver: `CUDA_ERROR_NO_DEVICE`.
const NO_DRIVER: c_uint = 100;
/// Result code of a function that this driver lacks: `CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER`.
const NO_FUNCTION: c_uint = 36;

/// Declares driver functions: a table of their addresses, and one function of that name each.
macro_rules! driver_functions {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        /// The addresses; `None` where this driver is older than the function.
        struct Driver {
            $($name: Option<unsafe extern "system" fn($($type),*) -> c_uint>,)*
            /// Never unloaded: the addresses point into it.
            _library: Library,
        }

        impl Driver {
            fn bind(library: Library) -> Driver {
                // SAFETY: each type is the driver's prototype of the function of that name.
                let address = |name: &str| unsafe { library.get::<*mut c_void>(name).ok().map(|symbol| *symbol) };
                Driver {
                    $($name: address(stringify!($name)).map(|address| {
                        // SAFETY: the symbol is a function of the driver with this prototype.
                        unsafe { std::mem::transmute::<*mut c_void, unsafe extern "system" fn($($type),*) -> c_uint>(address) }
                    }),)*
                    _library: library,
                }
            }
        }

        $(
            /// Calls the driver function of this name.
            ///
            /// # Safety
            /// The conditions in the driver's documentation; [`check`](super::driver::check) reads the result.
            pub(crate) unsafe fn $name($($argument: $type),*) -> c_uint {
                let Ok(driver) = driver() else { return NO_DRIVER };
                match driver.$name {
                    // SAFETY: the arguments are those the driver's documentation asks for, by this function's contract.
                    Some(function) => unsafe { function($($argument),*) },
                    None => NO_FUNCTION,
                }
            }
        )*
    };
}

driver_functions! {
    fn cuCtxGetLimit(bytes: *mut usize, limit: c_uint);
    fn cuCtxResetPersistingL2Cache();
    fn cuCtxSetCurrent(context: Handle);
    fn cuCtxSetLimit(limit: c_uint, bytes: usize);
    fn cuCtxSynchronize();
    fn cuDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int);
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    fn cuDevicePrimaryCtxRelease_v2(device: c_int);
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: c_int);
    fn cuDeviceTotalMem_v2(bytes: *mut usize, device: c_int);
    fn cuDriverGetVersion(version: *mut c_int);
    fn cuEventCreate(event: *mut Handle, flags: c_uint);
    fn cuEventDestroy_v2(event: Handle);
    fn cuEventElapsedTime(milliseconds: *mut f32, start: Handle, end: Handle);
    fn cuEventQuery(event: Handle);
    fn cuEventRecord(event: Handle, stream: Handle);
    fn cuEventSynchronize(event: Handle);
    fn cuFuncGetAttribute(value: *mut c_int, attribute: c_int, function: Handle);
    fn cuFuncSetAttribute(function: Handle, attribute: c_int, value: c_int);
    fn cuGetErrorString(code: c_uint, text: *mut *const c_char);
    fn cuInit(flags: c_uint);
    fn cuLaunchCooperativeKernel(function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: Handle, arguments: *mut *mut c_void);
    fn cuLaunchKernel(function: Handle, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: Handle, arguments: *mut *mut c_void, extra: *mut *mut c_void);
    fn cuLibraryGetModule(module: *mut Handle, library: Handle);
    fn cuLibraryLoadData(library: *mut Handle, image: *const c_void, compiler_options: *mut c_int, compiler_values: *mut *mut c_void, compiler_option_count: c_uint, options: *mut c_int, values: *mut *mut c_void, option_count: c_uint);
    fn cuLibraryUnload(library: Handle);
    fn cuMemAllocFromPoolAsync(address: *mut Address, bytes: usize, pool: Handle, stream: Handle);
    fn cuMemAlloc_v2(address: *mut Address, bytes: usize);
    fn cuMemFreeAsync(address: Address, stream: Handle);
    fn cuMemFreeHost(pointer: *mut c_void);
    fn cuMemFree_v2(address: Address);
    fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint);
    fn cuMemPoolCreate(pool: *mut Handle, properties: *const PoolProperties);
    fn cuMemPoolDestroy(pool: Handle);
    fn cuMemPoolGetAttribute(pool: Handle, attribute: c_int, value: *mut c_void);
    fn cuMemPoolSetAccess(pool: Handle, access: *const PoolAccess, count: usize);
    fn cuMemPoolSetAttribute(pool: Handle, attribute: c_int, value: *mut c_void);
    fn cuMemPoolTrimTo(pool: Handle, bytes_to_keep: usize);
    fn cuMemcpyDtoDAsync_v2(to: Address, from: Address, bytes: usize, stream: Handle);
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: Address, bytes: usize, stream: Handle);
    fn cuMemcpyHtoDAsync_v2(to: Address, from: *const c_void, bytes: usize, stream: Handle);
    fn cuMemcpyPeerAsync(to: Address, to_context: Handle, from: Address, from_context: Handle, bytes: usize, stream: Handle);
    fn cuMemsetD32Async(address: Address, value: c_uint, count: usize, stream: Handle);
    fn cuMemsetD8Async(address: Address, value: u8, count: usize, stream: Handle);
    fn cuModuleGetFunction(function: *mut Handle, module: Handle, name: *const c_char);
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: Handle, block_size: c_int, dynamic_shared_bytes: usize);
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_int, address: Address);
    fn cuStreamCreateWithPriority(stream: *mut Handle, flags: c_uint, priority: c_int);
    fn cuStreamDestroy_v2(stream: Handle);
    fn cuStreamGetCtx(stream: Handle, context: *mut Handle);
    fn cuStreamGetFlags(stream: Handle, flags: *mut c_uint);
    fn cuStreamQuery(stream: Handle);
    fn cuStreamSetAttribute(stream: Handle, attribute: c_uint, value: *const AccessWindow);
    fn cuStreamSynchronize(stream: Handle);
    fn cuStreamWaitEvent(stream: Handle, event: Handle, flags: c_uint);
}

/// Returns the driver, or the reason why this machine has none.
fn driver() -> Result<&'static Driver, &'static str> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    let found = DRIVER.get_or_init(|| {
        // SAFETY: what runs when the driver's library is opened has no requirement on this program.
        unsafe { Library::new(LIBRARY) }.map(Driver::bind).map_err(|error| {
            // The loader's own words, where it has some.
            std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string)
        })
    });
    found.as_ref().map_err(String::as_str)
}

/// Returns the reason why this machine has no driver, or `None` if it has one.
pub(crate) fn missing() -> Option<&'static str> {
    driver().err()
}
