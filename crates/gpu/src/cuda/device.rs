//! Devices: enumeration, primary contexts, properties.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::binding;
use super::driver::{self, Address, Failure, Handle, check};
use super::l2::SetAside;
use super::module::Modules;
use super::stream::{CudaStream, StreamRegistry};
use crate::error::{CudaVersion, DriverCode, GpuError, Result};
use crate::memory::Budget;
use crate::pinned_pool::PinnedPool;
use crate::properties::{DeviceProperties, MemoryInfo};

/// The least that the kernels' PTX (ISA 8.0, `sm_80`) loads on.
const NEEDED_DRIVER: CudaVersion = CudaVersion { major: 12, minor: 0 };
const NEEDED_CAPABILITY: (u32, u32) = (8, 0);

/// A device's primary context, which the driver keeps while it is retained.
struct PrimaryContext {
    device: c_int,
    raw: Handle,
}

impl PrimaryContext {
    fn retain(device: c_int) -> Result<Self, Failure> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver has named the device, and the result goes to a local variable.
        check("cuDevicePrimaryCtxRetain", unsafe { binding::cuDevicePrimaryCtxRetain(&mut raw, device) })?;
        Ok(Self { device, raw })
    }

    fn make_current(&self) -> Result<(), Failure> {
        // SAFETY: the context is retained as long as `self` lives.
        check("cuCtxSetCurrent", unsafe { binding::cuCtxSetCurrent(self.raw) })
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: retained once, and released once. An error cannot be reported.
        unsafe { binding::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// One device with its primary context, its modules and its memory pool.
pub(crate) struct CudaDevice {
    pub(super) modules: Modules,
    /// Allocates; never waits for anything but memory.
    pub(super) alloc_stream: Handle,
    /// Frees, after everything that was queued before.
    pub(super) free_stream: Handle,
    /// Blocking copies to the device, and from it, in turn.
    pub(super) upload: Mutex<Handle>,
    pub(super) download: Mutex<Handle>,
    pub(super) pool: Option<Handle>,
    pub(super) streams: StreamRegistry,
    pub(super) set_aside: SetAside,
    pub(crate) budget: Budget,
    pub(crate) pinned: PinnedPool,
    properties: DeviceProperties,
    /// The sticky code that broke the context; 0 while it works.
    lost: AtomicU32,
    context: PrimaryContext,
}

// SAFETY: the handles are the driver's, which may be used from any thread once the context is current there, and
// every method makes it current first.
unsafe impl Send for CudaDevice {}
// SAFETY: the driver locks internally, and our own tables are behind locks.
unsafe impl Sync for CudaDevice {}

/// Devices in use, so that one device has one module cache and one pool, however often it is opened.
static OPEN: Mutex<Vec<(u32, Weak<CudaDevice>)>> = Mutex::new(Vec::new());

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that these locks guard is left half-changed by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the driver. Repeating it costs nothing.
fn initialise() -> Result<()> {
    if let Some(reason) = binding::missing() {
        return Err(GpuError::NoDriver { reason: reason.into() });
    }
    // SAFETY: may be called at any time, from any thread.
    check("cuInit", unsafe { binding::cuInit(0) }).map_err(|failure| match failure.code {
        DriverCode::NO_DEVICE => GpuError::NoDevice,
        DriverCode::STUB_LIBRARY => GpuError::NoDriver { reason: "libcuda.so.1 is the toolkit's stub".into() },
        _ => GpuError::from(failure),
    })
}

fn driver_version() -> Result<CudaVersion> {
    let mut version = 0;
    // SAFETY: the result goes to a local variable.
    check("cuDriverGetVersion", unsafe { binding::cuDriverGetVersion(&mut version) })?;
    let version = version.max(0) as u32;
    Ok(CudaVersion { major: version / 1000, minor: version % 1000 / 10 })
}

/// Counts the devices that the driver sees.
pub(crate) fn count() -> Result<u32> {
    initialise()?;
    let mut count = 0;
    // SAFETY: the driver has been started, and the result goes to a local variable.
    check("cuDeviceGetCount", unsafe { binding::cuDeviceGetCount(&mut count) })?;
    match count.max(0) as u32 {
        0 => Err(GpuError::NoDevice),
        count => Ok(count),
    }
}

/// Opens the device of this ordinal; the same object for all callers while one of them holds it.
pub(crate) fn open(ordinal: u32) -> Result<Arc<CudaDevice>> {
    let count = count()?;
    if ordinal >= count {
        return Err(GpuError::NoSuchDevice { ordinal, count });
    }
    let mut open = locked(&OPEN);
    if let Some(device) = open.iter().find(|(o, _)| *o == ordinal).and_then(|(_, weak)| weak.upgrade()) {
        device.enter()?;
        return Ok(device);
    }
    let device = Arc::new(CudaDevice::new(ordinal)?);
    open.retain(|(o, weak)| *o != ordinal && weak.strong_count() > 0);
    open.push((ordinal, Arc::downgrade(&device)));
    Ok(device)
}

impl CudaDevice {
    pub(crate) fn new(ordinal: u32) -> Result<Self> {
        let found = driver_version()?;
        if found < NEEDED_DRIVER {
            return Err(GpuError::DriverTooOld { found, needed: NEEDED_DRIVER });
        }
        let mut device = 0;
        // SAFETY: the driver has been started, and the result goes to a local variable.
        check("cuDeviceGet", unsafe { binding::cuDeviceGet(&mut device, ordinal as c_int) })?;
        let properties = properties(device, ordinal, found)?;
        if properties.compute_capability < NEEDED_CAPABILITY {
            let (name, found) = (properties.name, properties.compute_capability);
            return Err(GpuError::DeviceTooOld { name, found, needed: NEEDED_CAPABILITY });
        }
        let context = PrimaryContext::retain(device)?;
        context.make_current()?;
        // From here on, dropping `this` releases what was made so far.
        let mut this = Self {
            modules: Modules::new(),
            alloc_stream: std::ptr::null_mut(),
            free_stream: std::ptr::null_mut(),
            upload: Mutex::new(std::ptr::null_mut()),
            download: Mutex::new(std::ptr::null_mut()),
            pool: None,
            streams: StreamRegistry::new(),
            set_aside: SetAside::of(device),
            budget: Budget::unlimited(),
            pinned: PinnedPool::new(),
            properties,
            lost: AtomicU32::new(0),
            context,
        };
        this.alloc_stream = CudaStream::create_raw(0)?;
        this.free_stream = CudaStream::create_raw(0)?;
        this.upload = Mutex::new(CudaStream::create_raw(0)?);
        this.download = Mutex::new(CudaStream::create_raw(0)?);
        if this.properties.has_memory_pools {
            this.pool = Some(create_pool(device)?);
        }
        Ok(this)
    }

    pub(crate) fn properties(&self) -> &DeviceProperties {
        &self.properties
    }

    /// Makes the context current on this thread; every entry begins with it.
    pub(crate) fn enter(&self) -> Result<()> {
        match self.lost.load(Ordering::Relaxed) {
            0 => {}
            code => return Err(GpuError::DeviceLost { code: DriverCode(code), last_kernel: None }),
        }
        self.checked(self.context.make_current())
    }

    /// Whether the context is broken.
    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed) != 0
    }

    /// Makes the context current like `enter`, for drops: also on a lost device, and without reporting errors.
    pub(super) fn enter_to_drop(&self) {
        let _ = self.context.make_current();
    }

    pub(crate) fn raw_context(&self) -> Handle {
        self.context.raw
    }

    /// Turns a failed call into our error, and notes whether it broke the context.
    pub(super) fn error(&self, failure: Failure, last_kernel: Option<&'static str>) -> GpuError {
        if failure.code.is_sticky() {
            self.lost.store(failure.code.0, Ordering::Relaxed);
            return GpuError::DeviceLost { code: failure.code, last_kernel };
        }
        failure.into()
    }

    pub(super) fn checked<T>(&self, result: Result<T, Failure>) -> Result<T> {
        result.map_err(|failure| self.error(failure, None))
    }

    /// Waits for all work on the device.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.enter()?;
        // SAFETY: the context is current.
        self.checked(check("cuCtxSynchronize", unsafe { binding::cuCtxSynchronize() }))
    }

    pub(crate) fn memory_info(&self) -> Result<MemoryInfo> {
        self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the context is current, and both results go to local variables.
        self.checked(check("cuMemGetInfo", unsafe { binding::cuMemGetInfo_v2(&mut free, &mut total) }))?;
        let pool_reserved = self.pool_figure(driver::POOL_RESERVED_CURRENT)?;
        let pool_used = self.pool_figure(driver::POOL_USED_CURRENT)?;
        Ok(MemoryInfo { free: free + pool_reserved.saturating_sub(pool_used), total, pool_reserved, pool_used })
    }

    fn pool_figure(&self, attribute: i32) -> Result<usize> {
        let Some(pool) = self.pool else { return Ok(0) };
        let mut bytes = 0u64;
        // SAFETY: both attributes are 64-bit integers, and the pool lives as long as `self`.
        let code = unsafe { binding::cuMemPoolGetAttribute(pool, attribute, (&raw mut bytes).cast()) };
        self.checked(check("cuMemPoolGetAttribute", code))?;
        Ok(bytes as usize)
    }

    /// Lets `other` access the memory of the pool, if it can: otherwise copies between both go through the host, as
    /// without a pool.
    pub(crate) fn open_memory_to(&self, other: &Self) {
        let Some(pool) = self.pool else { return };
        let (here, there) = (self.context.device, other.context.device);
        let mut can = 0;
        // SAFETY: the driver has named both devices, and the result goes to a local variable.
        let code = unsafe { binding::cuDeviceCanAccessPeer(&mut can, there, here) };
        if code == 0 && can != 0 && self.enter().is_ok() {
            // SAFETY: the pool lives as long as `self`, and the call reads one description. A refusal leaves the way
            // through the host.
            unsafe { binding::cuMemPoolSetAccess(pool, &driver::PoolAccess::by_device(there), 1) };
        }
    }

    /// Gives memory that the pool keeps unused back to the driver. Waits for the device, so that queued frees count.
    pub(crate) fn trim(&self) -> Result<()> {
        self.synchronize()?;
        let Some(pool) = self.pool else { return Ok(()) };
        // SAFETY: the pool lives as long as `self`, and the context is current; memory in use stays.
        self.checked(check("cuMemPoolTrimTo", unsafe { binding::cuMemPoolTrimTo(pool, 0) }))
    }

    /// Makes `stream` wait for everything queued so far on every stream that users of this device hold.
    pub(super) fn order_after_all(&self, stream: Handle) -> Result<(), Failure> {
        self.streams.join_into(stream)
    }

    /// Frees memory that no queued work may use any more once that work is done.
    pub(super) fn free_behind_everything(&self, address: Address) {
        if self.pool.is_none() {
            // SAFETY: the address came from `cuMemAlloc`; the driver waits for the device before it frees.
            unsafe { binding::cuMemFree_v2(address) };
            return;
        }
        // An error here comes from a broken context, and the memory is freed with the context.
        let _ = self.order_after_all(self.free_stream);
        // SAFETY: the address came from the pool, and the stream is ordered after all its uses.
        unsafe { binding::cuMemFreeAsync(address, self.free_stream) };
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        self.enter_to_drop();
        self.streams.destroy_kept();
        self.modules.unload_all();
        for raw in self.pinned.drain() {
            // SAFETY: the pool owned the memory, whose last use was waited for before it was given back.
            unsafe { self.free_pinned(raw.pointer.as_ptr().cast()) };
        }
        let (upload, download) = (*locked(&self.upload), *locked(&self.download));
        for stream in [self.alloc_stream, self.free_stream, upload, download] {
            if !stream.is_null() {
                // SAFETY: our own stream, not used after this. Waiting first returns its frees to the pool.
                unsafe {
                    binding::cuStreamSynchronize(stream);
                    binding::cuStreamDestroy_v2(stream);
                }
            }
        }
        if let Some(pool) = self.pool {
            // SAFETY: every allocation holds its device, so none is left.
            unsafe { binding::cuMemPoolDestroy(pool) };
        }
    }
}

/// Creates a pool of our own: the device's default pool belongs to the whole process, and gives memory back at each
/// synchronisation, which makes every allocation after it slow.
fn create_pool(device: i32) -> Result<Handle> {
    let mut pool = std::ptr::null_mut();
    let properties = driver::PoolProperties::of_device(device);
    // SAFETY: the properties are a valid `CUmemPoolProps`, and the result goes to a local variable.
    check("cuMemPoolCreate", unsafe { binding::cuMemPoolCreate(&mut pool, &properties) })?;
    let mut keep_everything = u64::MAX;
    // SAFETY: the attribute is a 64-bit integer, which the call only reads.
    let code = unsafe {
        binding::cuMemPoolSetAttribute(pool, driver::POOL_RELEASE_THRESHOLD, (&raw mut keep_everything).cast())
    };
    check("cuMemPoolSetAttribute", code)?;
    Ok(pool)
}

fn properties(device: c_int, ordinal: u32, driver_version: CudaVersion) -> Result<DeviceProperties> {
    let attribute = |attribute: c_int| -> Result<u32, Failure> {
        let mut value = 0;
        // SAFETY: the driver has named the device, and the result goes to a local variable.
        check("cuDeviceGetAttribute", unsafe { binding::cuDeviceGetAttribute(&mut value, attribute, device) })?;
        Ok(value.max(0) as u32)
    };
    // An attribute that this driver lacks counts as absent.
    let newer = |number: c_int| attribute(number).unwrap_or(0);
    let three = |first: c_int| -> Result<[u32; 3], Failure> {
        Ok([attribute(first)?, attribute(first + 1)?, attribute(first + 2)?])
    };
    let default_shared = attribute(driver::DEVICE_MAX_SHARED_MEMORY_PER_BLOCK)?;
    let clock_khz = u64::from(newer(driver::DEVICE_MEMORY_CLOCK_RATE));
    let bus_bits = u64::from(newer(driver::DEVICE_MEMORY_BUS_WIDTH));
    let bandwidth = 2 * clock_khz * 1000 * bus_bits / 8;
    Ok(DeviceProperties {
        name: name(device)?,
        ordinal,
        is_emulator: false,
        compute_capability: (
            attribute(driver::DEVICE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(driver::DEVICE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        driver_version: Some(driver_version),
        multiprocessors: attribute(driver::DEVICE_MULTIPROCESSORS)?,
        warp_size: attribute(driver::DEVICE_WARP_SIZE)?,
        max_threads_per_block: attribute(driver::DEVICE_MAX_THREADS_PER_BLOCK)?,
        max_block: three(driver::DEVICE_MAX_BLOCK_X)?,
        max_grid: three(driver::DEVICE_MAX_GRID_X)?,
        max_threads_per_multiprocessor: attribute(driver::DEVICE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        max_blocks_per_multiprocessor: newer(driver::DEVICE_MAX_BLOCKS_PER_MULTIPROCESSOR).max(1),
        registers_per_multiprocessor: attribute(driver::DEVICE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        max_shared_bytes_per_block: newer(driver::DEVICE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN).max(default_shared),
        shared_bytes_per_multiprocessor: attribute(driver::DEVICE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        reserved_shared_bytes_per_block: newer(driver::DEVICE_RESERVED_SHARED_MEMORY_PER_BLOCK),
        l2_bytes: attribute(driver::DEVICE_L2_CACHE_SIZE)? as usize,
        memory_bytes: memory_bytes(device)?,
        memory_bandwidth: (bandwidth > 0).then_some(bandwidth),
        has_memory_pools: newer(driver::DEVICE_MEMORY_POOLS_SUPPORTED) != 0,
    })
}

fn name(device: c_int) -> Result<String, Failure> {
    let mut name = [0 as c_char; 256];
    // SAFETY: the result goes to a local variable and has this length.
    let code = unsafe { binding::cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, device) };
    check("cuDeviceGetName", code)?;
    // SAFETY: the driver ends the name with a zero within the length that it was given.
    Ok(unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned())
}

fn memory_bytes(device: c_int) -> Result<usize, Failure> {
    let mut bytes = 0;
    // SAFETY: the result goes to a local variable.
    check("cuDeviceTotalMem", unsafe { binding::cuDeviceTotalMem_v2(&mut bytes, device) })?;
    Ok(bytes)
}
