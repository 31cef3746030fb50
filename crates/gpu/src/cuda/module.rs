//! Kernels: compiled and loaded on first use, each once per device and by itself.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use warpset_simt::{KernelInfo, LaunchConfig, Module};

use super::binding;
use super::device::CudaDevice;
use super::driver::{self, Failure, Handle, check};
use super::stream::CudaStream;
use crate::error::{DriverCode, GpuError, Result};
use crate::launch;
use crate::properties::KernelAttributes;
use crate::ptx;

/// Dynamic shared memory that a kernel gets without asking.
const SHARED_WITHOUT_REQUEST: u32 = 48 << 10;

/// A kernel as the tables know it: its module, the address of the PTX that came with the module, if any did (modules of two
/// crates may share a name), and its own name.
type Name = (&'static str, Option<usize>, String);

/// Where a kernel goes when it has been compiled.
type Place = Arc<Mutex<Option<Arc<Kernel>>>>;

/// A device's loaded kernels.
pub(super) struct Modules {
    /// Every kernel has a place, which is locked while the driver compiles it: threads that want the same kernel wait, those
    /// that want another one do not.
    places: Mutex<HashMap<Name, Place>>,
    /// By the address of the kernel's description, which is a static.
    kernels: RwLock<HashMap<usize, Arc<Kernel>>>,
}

/// A module of the driver, which holds one kernel: a first launch waits for the compilation of what it launches only.
struct Loaded(Handle);

// SAFETY: a module's handle may be used from any thread in which its context is current.
unsafe impl Send for Loaded {}
// SAFETY: as above; the driver locks internally.
unsafe impl Sync for Loaded {}

/// A kernel, with the module that it lives in.
pub(crate) struct Kernel {
    function: Handle,
    attributes: KernelAttributes,
    /// Dynamic shared memory granted so far.
    granted: Mutex<u32>,
    _module: Loaded,
}

// SAFETY: a function handle may be used from any thread in which its context is current.
unsafe impl Send for Kernel {}
// SAFETY: as above; the grant is behind a lock.
unsafe impl Sync for Kernel {}

impl Modules {
    pub(super) fn new() -> Self {
        Self { places: Mutex::default(), kernels: RwLock::default() }
    }

    /// Drops every module while the context is current.
    pub(super) fn unload_all(&mut self) {
        self.kernels.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self.places.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn place(&self, name: Name) -> Place {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().clone()
    }
}

impl CudaDevice {
    /// Loads every kernel of a module unless it is loaded.
    pub(crate) fn load_module(&self, module: &Module) -> Result<()> {
        self.enter()?;
        let text = ptx::text(module).ok_or_else(|| GpuError::UnknownModule { module: module.name.into() })?;
        if ptx::kernels(&text).next().is_none() {
            let (code, log) = (DriverCode::INVALID_PTX, "the text holds no kernel".into());
            return Err(GpuError::PtxRejected { module: module.name.into(), code, log });
        }
        ptx::kernels(&text).try_for_each(|name| self.loaded(module, name).map(drop))
    }

    fn kernel(&self, info: &'static KernelInfo) -> Result<Arc<Kernel>> {
        let key = std::ptr::from_ref(info) as usize;
        let kernels = &self.modules.kernels;
        if let Some(kernel) = kernels.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(kernel.clone());
        }
        let kernel = self.loaded(info.module, info.name)?;
        kernels.write().unwrap_or_else(PoisonError::into_inner).insert(key, kernel.clone());
        Ok(kernel)
    }

    /// A kernel by name, which is compiled unless it is there.
    fn loaded(&self, module: &Module, name: &str) -> Result<Arc<Kernel>> {
        let place = self.modules.place((module.name, module.ptx.map(|text| text.as_ptr().addr()), name.into()));
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = &*place {
            return Ok(kernel.clone());
        }
        let text = ptx::text(module).ok_or_else(|| GpuError::UnknownModule { module: module.name.into() })?;
        let unknown = || GpuError::UnknownKernel { module: module.name.into(), kernel: name.into() };
        let text = ptx::kernel_alone(&text, name).ok_or_else(unknown)?;
        let rejected = |code, log| GpuError::PtxRejected { module: module.name.into(), code, log };
        let Ok(text) = CString::new(text) else {
            return Err(rejected(DriverCode::INVALID_VALUE, "the text contains a zero byte".into()));
        };
        let loaded = match Loaded::load(&text) {
            Ok(loaded) => loaded,
            Err((failure, _)) if failure.code.is_sticky() => return Err(self.error(failure, None)),
            Err((failure, _)) if failure.code == DriverCode::OUT_OF_MEMORY => return Err(failure.into()),
            Err((failure, log)) => return Err(rejected(failure.code, log)),
        };
        let function = match loaded.function(name) {
            Ok(function) => function,
            Err(failure) if failure.code == DriverCode::NOT_FOUND => return Err(unknown()),
            Err(failure) => return Err(self.error(failure, None)),
        };
        let attribute = |attribute: c_int| -> Result<u32> {
            let mut value = 0;
            // SAFETY: the function's module is loaded, and the result goes to a local variable.
            let code = unsafe { binding::cuFuncGetAttribute(&mut value, attribute, function) };
            self.checked(check("cuFuncGetAttribute", code))?;
            Ok(value.max(0) as u32)
        };
        let attributes = KernelAttributes {
            max_threads_per_block: attribute(driver::FUNCTION_MAX_THREADS_PER_BLOCK)?,
            registers: attribute(driver::FUNCTION_REGISTERS)?,
            local_bytes: attribute(driver::FUNCTION_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: attribute(driver::FUNCTION_SHARED_SIZE_BYTES)?,
        };
        let granted = Mutex::new(SHARED_WITHOUT_REQUEST.saturating_sub(attributes.static_shared_bytes));
        let kernel = Arc::new(Kernel { function, attributes, granted, _module: loaded });
        *place = Some(kernel.clone());
        Ok(kernel)
    }

    pub(crate) fn kernel_attributes(&self, info: &'static KernelInfo) -> Result<KernelAttributes> {
        self.enter()?;
        Ok(self.kernel(info)?.attributes)
    }

    /// Blocks of this shape that fit on one multiprocessor at once.
    pub(crate) fn occupancy(&self, info: &'static KernelInfo, config: LaunchConfig) -> Result<u32> {
        self.enter()?;
        let kernel = self.kernel(info)?;
        launch::check(info, config, self.properties(), Some(kernel.attributes))?;
        kernel.grant(self, config.shared_bytes)?;
        let (mut blocks, threads) = (0, config.block.count() as c_int);
        // SAFETY: the kernel's module is loaded, and the result goes to a local variable.
        let code = unsafe {
            binding::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                kernel.function,
                threads,
                config.shared_bytes as usize,
            )
        };
        self.checked(check("cuOccupancyMaxActiveBlocksPerMultiprocessor", code))?;
        Ok(blocks.max(0) as u32)
    }
}

impl Kernel {
    /// Lets the kernel have this much dynamic shared memory. Grants only grow, so racing launches do no harm.
    fn grant(&self, device: &CudaDevice, bytes: u32) -> Result<()> {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes > *granted {
            // SAFETY: the kernel's module is loaded.
            let code = unsafe {
                binding::cuFuncSetAttribute(
                    self.function,
                    driver::FUNCTION_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    bytes as c_int,
                )
            };
            device.checked(check("cuFuncSetAttribute", code))?;
            *granted = bytes;
        }
        Ok(())
    }
}

impl CudaStream {
    /// Queues a launch.
    ///
    /// # Safety
    /// As [`warpset_simt::Launcher::launch_raw`].
    pub(crate) unsafe fn launch(
        &self,
        info: &'static KernelInfo,
        config: LaunchConfig,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        self.device.enter()?;
        let kernel = self.device.kernel(info)?;
        launch::check(info, config, self.device.properties(), Some(kernel.attributes))?;
        kernel.grant(&self.device, config.shared_bytes)?;
        // SAFETY: `arguments` holds a pointer to each argument of this kernel (the caller's promise); the module is
        // loaded, and the shape is within the limits.
        let code = unsafe { self.launch_raw(kernel.function, config, arguments) };
        match check("cuLaunchKernel", code) {
            Ok(()) => {
                self.note_launch(info);
                Ok(())
            }
            Err(failure) if failure.code.is_sticky() => self.checked(Err(failure)),
            Err(failure) => Err(GpuError::LaunchFailed { kernel: info.name, code: failure.code }),
        }
    }

    /// Queues a kernel of another owner's module.
    ///
    /// # Safety
    /// As for [`Stream::launch_function`](crate::Stream::launch_function).
    pub(crate) unsafe fn launch_function(
        &self,
        function: Handle,
        config: LaunchConfig,
        arguments: &mut [*mut c_void],
    ) -> Result<()> {
        self.device.enter()?;
        // SAFETY: the caller's promise; the driver checks the shape.
        match check("cuLaunchKernel", unsafe { self.launch_raw(function, config, arguments) }) {
            Ok(()) => Ok(()),
            Err(failure) if failure.code.is_sticky() => self.checked(Err(failure)),
            Err(failure) => Err(GpuError::LaunchFailed { kernel: "of another library", code: failure.code }),
        }
    }

    /// # Safety
    /// The context is current; `function` is a loaded kernel of it, and `arguments` holds a pointer to each of its
    /// arguments.
    unsafe fn launch_raw(&self, function: Handle, config: LaunchConfig, arguments: &mut [*mut c_void]) -> u32 {
        let (grid, block) = (config.grid, config.block);
        // SAFETY: the caller's promise.
        unsafe {
            binding::cuLaunchKernel(
                function,
                grid.x,
                grid.y,
                grid.z,
                block.x,
                block.y,
                block.z,
                config.shared_bytes,
                self.raw,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        }
    }
}

impl Loaded {
    /// Compiles PTX in the current context; a refusal comes with the compiler's log.
    fn load(text: &CString) -> Result<Self, (Failure, String)> {
        let mut log = vec![0u8; 16 << 10];
        let mut options = [driver::JIT_ERROR_LOG_BUFFER, driver::JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // The driver takes integers by value in this array of pointers.
        let mut values = [log.as_mut_ptr().cast::<c_void>(), std::ptr::without_provenance_mut(log.len())];
        let mut raw = std::ptr::null_mut();
        // SAFETY: two options with their two values; `text` ends with a zero, `log` has the size stated.
        let code = unsafe {
            binding::cuModuleLoadDataEx(&mut raw, text.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
        };
        check("cuModuleLoadDataEx", code).map_err(|failure| {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            let words = String::from_utf8_lossy(&log[..end]).trim().to_owned();
            (failure, if words.is_empty() { "the driver's compiler left no log".into() } else { words })
        })?;
        Ok(Self(raw))
    }

    fn function(&self, name: &str) -> Result<Handle, Failure> {
        let not_found = Failure { call: "cuModuleGetFunction", code: DriverCode::NOT_FOUND };
        let name = CString::new(name).map_err(|_| not_found)?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is loaded, the name ends with a zero, and the result goes to a local variable.
        let code = unsafe { binding::cuModuleGetFunction(&mut function, self.0, name.as_ptr()) };
        check("cuModuleGetFunction", code)?;
        Ok(function)
    }
}

impl Drop for Loaded {
    /// The context is current: the device drops its modules before its context.
    fn drop(&mut self) {
        // SAFETY: loaded once, and every kernel of it holds it.
        unsafe { binding::cuModuleUnload(self.0) };
    }
}
