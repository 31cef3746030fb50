//! Devices, their memory and streams, and keys in device memory.

#[cfg(feature = "gpu")]
mod present;

#[cfg(feature = "gpu")]
pub(crate) use present::{Address, Adopted, Memory, with_device_integers, with_device_keys};

use std::ffi::c_void;

#[cfg(not(all(feature = "gpu", feature = "emulator")))]
use crate::error::{Failure, warpset_status as Status};
use crate::error::{Result, guard, warpset_status};
use crate::handle::{self, content, give, hand_out, handles};
use crate::keys::array;
use crate::map::one_high_per_low;
use crate::object::Object;

#[cfg(feature = "gpu")]
use warpset::gpu;

/// A GPU, an emulator for tests, or a group of such devices. Devices may be used by several threads at once.
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_device {
    _private: [u8; 0],
}

/// A stream of a device. Work on it runs in the order of the calls.
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_stream {
    _private: [u8; 0],
}

#[cfg(not(feature = "gpu"))]
pub mod absent {
    /// Devices of a build without devices: there are none.
    pub enum Devices {}
    /// Stream of a build without devices: there is none.
    pub enum Stream {}
}
#[cfg(not(feature = "gpu"))]
use absent as gpu;

/// Runs a call with device memory; in a library without devices, `$arguments` go to the error.
#[cfg(feature = "gpu")]
macro_rules! on_device {
    ($arguments:expr, $call:expr) => {
        $call
    };
}
#[cfg(not(feature = "gpu"))]
macro_rules! on_device {
    ($arguments:expr, $call:expr) => {
        $crate::device::no_device($arguments)
    };
}
pub(crate) use on_device;

handles! {
    warpset_device: b"wdevice\x01", gpu::Devices;
    warpset_stream: b"wstream\x01", gpu::Stream;
}

/// Place of a structure.
pub enum Place {
    /// In host memory.
    Host,
    /// On a device, or on several.
    #[cfg(feature = "gpu")]
    On(gpu::Devices),
}

impl Place {
    /// Returns the place that a caller names; NULL is host memory.
    ///
    /// # Safety
    /// As [`content`], if the pointer is not NULL.
    pub unsafe fn of(device: *const warpset_device) -> Result<Place> {
        if device.is_null() {
            return Ok(Place::Host);
        }
        // SAFETY: the contract of this function.
        let device = unsafe { content(device) }?;
        #[cfg(feature = "gpu")]
        return Ok(Place::On(device.clone()));
        #[cfg(not(feature = "gpu"))]
        match *device {}
    }

    /// Returns the place of a structure.
    pub fn of_object(object: &dyn Object) -> Result<Place> {
        #[cfg(feature = "gpu")]
        if object.is_on_device() {
            return Ok(Place::On(object.devices()?));
        }
        let _ = object;
        Ok(Place::Host)
    }

    /// Moves a structure from host memory to this place.
    pub fn take(&self, object: Box<dyn Object>) -> Result<Box<dyn Object>> {
        match self {
            Place::Host => Ok(object),
            #[cfg(feature = "gpu")]
            Place::On(devices) => object.to_device(devices),
        }
    }
}

/// Returns the error for a library without devices.
#[cfg(not(feature = "gpu"))]
fn none<T>() -> Result<T> {
    Err(Failure::new(Status::Device, "this library is built without devices: build it with the feature `cuda`"))
}

/// Returns the number of GPUs of this machine; 0 without a driver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_device_count(count: *mut u32) -> warpset_status {
    #[cfg(feature = "gpu")]
    let found = || gpu::Device::cuda_count().unwrap_or(0);
    #[cfg(not(feature = "gpu"))]
    let found = || 0;
    // SAFETY: the contract of the header.
    guard(|| unsafe { give(count, "count", found()) })
}

/// Opens a GPU by its number among those of the machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_device_open(ordinal: u32, out: *mut *mut warpset_device) -> warpset_status {
    #[cfg(feature = "gpu")]
    let open = || Ok(gpu::Devices::from(&gpu::Device::cuda(ordinal)?));
    #[cfg(not(feature = "gpu"))]
    let open = || (ordinal, none()).1;
    // SAFETY: the contract of the header.
    guard(|| unsafe { hand_out(out, open) })
}

/// Opens an emulated device, which is slow and meant for tests. Needs a library with the feature `emulator`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_device_emulator(out: *mut *mut warpset_device) -> warpset_status {
    #[cfg(feature = "emulator")]
    let open = || Ok(gpu::Devices::from(&gpu::Device::emulator(Default::default())));
    #[cfg(not(feature = "emulator"))]
    let open = || Err(Failure::new(Status::Device, "this library is built without the emulator, which is for tests"));
    // SAFETY: the contract of the header.
    guard(|| unsafe { hand_out(out, open) })
}

/// Makes a group of devices. A split-block Bloom filter in a group has a part on each device; perfect hash functions
/// and static filters are built by all devices. Other structures, and the results, are on the first device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_device_group(
    devices: *const *const warpset_device,
    len: usize,
    out: *mut *mut warpset_device,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        handle::check(devices, "devices")?;
        let devices = array(devices, len, "devices")?;
        on_device!(
            (devices, out),
            hand_out(out, || {
                let mut all = Vec::new();
                for &device in devices {
                    all.extend_from_slice(content(device)?.all());
                }
                Ok(gpu::Devices::new(all)?)
            })
        )
    })
}

/// Frees the handle of a device; NULL is no error. Structures and streams on the device stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_device_free(device: *mut warpset_device) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { handle::free(device) })
}

/// Waits for all work on a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_device_synchronize(device: *const warpset_device) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let device = content(device)?;
        on_device!(device, device.all().iter().try_for_each(|device| Ok(device.synchronize()?)))
    })
}

/// Returns the free and the total memory of a device in bytes, of a group's first one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_device_memory(
    device: *const warpset_device,
    free: *mut u64,
    total: *mut u64,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let device = content(device)?;
        on_device!((device, free, total), {
            let info = device.first().memory_info()?;
            handle::check(total, "total")?;
            give(free, "free", info.free as u64)?;
            give(total, "total", info.total as u64)
        })
    })
}

/// Makes a stream of a device, of a group's first one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_stream_new(
    device: *const warpset_device,
    out: *mut *mut warpset_stream,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let device = content(device)?;
        on_device!((device, out), hand_out(out, || Ok(device.first().new_stream()?)))
    })
}

/// Wraps a `CUstream` (or `cudaStream_t`) of the caller, which must live until the handle and all work on it are done.
/// It must not be the legacy default stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_stream_adopt(
    device: *const warpset_device,
    raw: *mut c_void,
    out: *mut *mut warpset_stream,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let device = content(device)?;
        if raw.is_null() {
            return Err(handle::null("raw"));
        }
        on_device!((device, out), hand_out(out, || Ok(gpu::Stream::adopt(device.first(), raw)?)))
    })
}

/// Waits for all work on a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_stream_synchronize(stream: *const warpset_stream) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let stream = content(stream)?;
        on_device!(stream, Ok(stream.synchronize()?))
    })
}

/// Frees a stream; NULL is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_stream_free(stream: *mut warpset_stream) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { handle::free(stream) })
}

/// Memory of a device, for programs without an allocator of their own.
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_buffer {
    _private: [u8; 0],
}

#[cfg(feature = "gpu")]
type Buffer = gpu::DeviceVec<u64>;
#[cfg(not(feature = "gpu"))]
use absent::Devices as Buffer;

handles! { warpset_buffer: b"wbuffer\x01", std::sync::RwLock<Buffer>; }

/// Allocates `bytes` bytes of a device, with zeros. Their address is `*address`, a multiple of 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_buffer_new(
    device: *const warpset_device,
    bytes: usize,
    address: *mut u64,
    out: *mut *mut warpset_buffer,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let device = content(device)?;
        on_device!((device, address, bytes, out), {
            handle::check(address, "address")?;
            hand_out(out, || {
                let memory = device.first().alloc_zeroed::<u64>(bytes.div_ceil(8))?;
                address.write(memory.as_slice().as_raw());
                Ok(memory.into())
            })
        })
    })
}

/// Copies `len` bytes of the host to the start of a buffer, and waits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_buffer_write(
    buffer: *const warpset_buffer,
    data: *const u8,
    len: usize,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (buffer, data) = (content(buffer)?, array(data, len, "data")?);
        #[cfg(feature = "gpu")]
        {
            let mut memory = buffer.write().map_err(present::broken)?;
            present::fits("bytes of the buffer", len, memory.byte_len())?;
            memory.as_mut_slice().cast::<u8>()?.slice_mut(..len).copy_from_slice(data)?;
        }
        let _ = (buffer, data);
        Ok(())
    })
}

/// Copies the first `len` bytes of a buffer to the host, and waits for all work on the device before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_buffer_read(
    buffer: *const warpset_buffer,
    data: *mut u8,
    len: usize,
) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe {
        let (buffer, data) = (content(buffer)?, crate::keys::array_mut(data, len, "data")?);
        #[cfg(feature = "gpu")]
        {
            let memory = buffer.read().map_err(present::broken)?;
            present::fits("bytes of the buffer", len, memory.byte_len())?;
            memory.device().synchronize()?;
            memory.as_slice().cast::<u8>()?.slice(..len).copy_to_slice(data)?;
        }
        let _ = (buffer, data);
        Ok(())
    })
}

/// Frees a buffer; NULL is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warpset_buffer_free(buffer: *mut warpset_buffer) -> warpset_status {
    // SAFETY: the contract of the header.
    guard(|| unsafe { handle::free(buffer) })
}

/// Keys in device memory, adjacent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(non_camel_case_types, reason = "name in C")]
pub struct warpset_device_keys {
    /// Type of the keys, a `warpset_key_type`: integers of 32 or 64 bits, doubles, hashes, strings with offsets.
    pub key_type: u32,
    /// Address of the first key on the device, or of the first byte of strings.
    pub address: u64,
    pub len: usize,
    /// Address of `len + 1` offsets of strings. Wrong ones give wrong answers; no memory beyond `bytes` is read.
    pub offsets: u64,
    /// Number of bytes of strings.
    pub bytes: usize,
}

impl warpset_device_keys {
    /// Returns the description of a caller.
    ///
    /// # Safety
    /// If `keys` is neither NULL nor misaligned, it points to a description.
    pub unsafe fn read(keys: *const warpset_device_keys) -> Result<warpset_device_keys> {
        handle::check(keys, "keys")?;
        // SAFETY: checked for NULL and alignment; the caller guarantees that it points to a description.
        Ok(unsafe { *keys })
    }

    /// Returns the descriptions of the bounds of ranges.
    ///
    /// # Safety
    /// As [`warpset_device_keys::read`].
    pub unsafe fn bounds(
        lows: *const warpset_device_keys,
        highs: *const warpset_device_keys,
    ) -> Result<(warpset_device_keys, warpset_device_keys)> {
        // SAFETY: the contract of this function.
        let (lows, highs) = unsafe { (Self::read(lows)?, Self::read(highs)?) };
        one_high_per_low(lows.len, highs.len)?;
        Ok((lows, highs))
    }
}

/// Returns the error for device memory in a library without devices.
#[cfg(not(feature = "gpu"))]
pub fn no_device<T>(_: T) -> Result<()> {
    none()
}
