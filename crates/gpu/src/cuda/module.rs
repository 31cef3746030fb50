//! Kernels: loaded on first use, each once per device. If the driver accepts the device code of their module, it loads
//! the whole module in less than a millisecond. Otherwise it compiles PTX, each kernel alone.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::num::NonZero;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use warpset_simt::{KernelInfo, LaunchConfig, Module, Ptx};

use super::binding;
use super::device::CudaDevice;
use super::driver::{self, Handle, check};
use super::library::Library;
use super::stream::CudaStream;
use crate::error::{DriverCode, GpuError, Result};
use crate::launch;
use crate::loaded::LoadedKernel;
use crate::properties::KernelAttributes;
use crate::ptx;

/// Dynamic shared memory that a kernel gets without asking.
const SHARED_WITHOUT_REQUEST: u32 = 48 << 10;

/// Key of a kernel in the tables: its module, the address of the PTX in the module, if any (modules of two crates may
/// share a name), and its own name.
type Name = (&'static str, Option<usize>, String);

/// Place of a kernel once it has been loaded.
type Cell = Arc<Mutex<Option<Arc<Kernel>>>>;

/// A device's loaded kernels.
pub(super) struct Modules {
    /// Each kernel has a place of its own, which is locked while the driver loads it: threads that need the same kernel
    /// wait, others do not.
    places: Mutex<HashMap<Name, Cell>>,
    /// By the address of the kernel's description, which is a static.
    kernels: RwLock<HashMap<usize, Arc<Kernel>>>,
    /// By the address of the device code, which is a static; `None` where it is of other PTX or the driver has refused
    /// it.
    codes: Mutex<HashMap<usize, Option<Arc<Library>>>>,
}

/// A kernel, with the library that contains it.
pub(crate) struct Kernel {
    function: Handle,
    attributes: KernelAttributes,
    /// Dynamic shared memory granted so far.
    granted: Mutex<u32>,
    /// Length of the PTX that the driver compiled; 0 for device code.
    ptx_bytes: usize,
    /// Time the driver took.
    time: Duration,
    launched: AtomicBool,
    _library: Arc<Library>,
}

// SAFETY: a function handle may be used from any thread in which its context is current.
unsafe impl Send for Kernel {}
// SAFETY: the driver locks internally; the grant is behind a lock.
unsafe impl Sync for Kernel {}

impl Modules {
    pub(super) fn new() -> Self {
        Self { places: Mutex::default(), kernels: RwLock::default(), codes: Mutex::default() }
    }

    /// Drops every module while the context is current.
    pub(super) fn unload_all(&mut self) {
        self.kernels.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self.places.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self.codes.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn place(&self, name: Name) -> Cell {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).entry(name).or_default().clone()
    }
}

/// Returns the search key of a kernel: its description is a static, so the address identifies it.
fn address(info: &'static KernelInfo) -> usize {
    std::ptr::from_ref(info).addr()
}

impl CudaDevice {
    /// Loads every kernel of a module unless it is loaded; compiles in parallel.
    pub(crate) fn load_module(&self, module: &Module) -> Result<()> {
        self.enter()?;
        let text = ptx::text(module).ok_or_else(|| GpuError::UnknownModule { module: module.name.into() })?;
        let names: Vec<_> = ptx::kernels(&text).collect();
        if names.is_empty() {
            let (code, log) = (DriverCode::INVALID_PTX, "the text holds no kernel".into());
            return Err(GpuError::PtxRejected { module: module.name.into(), code, log });
        }
        if self.code_of(module)?.is_none() {
            let (next, names) = (AtomicUsize::new(0), &names);
            let threads = std::thread::available_parallelism().map_or(1, NonZero::get).max(2).min(names.len());
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    // Without threads the loop below compiles all of them.
                    let _ = std::thread::Builder::new().name("warpset-load".into()).spawn_scoped(scope, || {
                        let mut rest = std::iter::from_fn(|| names.get(next.fetch_add(1, Ordering::Relaxed)));
                        self.enter().is_ok() && rest.all(|name| self.loaded(module, name).is_ok())
                    });
                }
            });
        }
        // The result is `Ok` if all are loaded, or the first error.
        names.into_iter().try_for_each(|name| self.loaded(module, name).map(drop))
    }

    /// Lists every kernel that has been loaded, by module and name.
    pub(crate) fn loaded_kernels(&self) -> Vec<LoadedKernel> {
        let places = self.modules.places.lock().unwrap_or_else(PoisonError::into_inner);
        let places: Vec<_> =
            places.iter().map(|((module, _, name), place)| (*module, name.clone(), place.clone())).collect();
        let loaded = places.into_iter().filter_map(|(module, name, place)| {
            let place = place.lock().unwrap_or_else(PoisonError::into_inner);
            let kernel = place.as_ref()?;
            let (ptx_bytes, time) = (kernel.ptx_bytes, kernel.time);
            let launched = kernel.launched.load(Ordering::Relaxed);
            Some(LoadedKernel { module, name, ptx_bytes, time, launched })
        });
        let mut loaded: Vec<_> = loaded.collect();
        loaded.sort_by(|a, b| (a.module, &a.name).cmp(&(b.module, &b.name)));
        loaded
    }

    fn kernel(&self, info: &'static KernelInfo) -> Result<Arc<Kernel>> {
        let key = address(info);
        let kernels = &self.modules.kernels;
        if let Some(kernel) = kernels.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(kernel.clone());
        }
        let kernel = self.loaded(info.module, info.name)?;
        kernels.write().unwrap_or_else(PoisonError::into_inner).insert(key, kernel.clone());
        Ok(kernel)
    }

    /// Returns a kernel by name, and loads it first if necessary.
    fn loaded(&self, module: &Module, name: &str) -> Result<Arc<Kernel>> {
        let place = self.modules.place((module.name, module.ptx.map(Ptx::address), name.into()));
        let mut place = place.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = &*place {
            return Ok(kernel.clone());
        }
        let start = Instant::now();
        let (library, ptx_bytes) = match self.code_of(module)? {
            Some(code) => (code, 0),
            None => self.compiled(module, name)?,
        };
        let function = match library.function(name) {
            Ok(function) => function,
            Err(failure) if failure.code == DriverCode::NOT_FOUND => {
                return Err(GpuError::UnknownKernel { module: module.name.into(), kernel: name.into() });
            }
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
        let (time, launched) = (start.elapsed(), AtomicBool::new(false));
        let kernel = Arc::new(Kernel { function, attributes, granted, ptx_bytes, time, launched, _library: library });
        *place = Some(kernel.clone());
        Ok(kernel)
    }

    /// Returns the device code of a module; `None` if it has none for this device that the driver takes.
    fn code_of(&self, module: &Module) -> Result<Option<Arc<Library>>> {
        // An empty slice may share its address with another module's code.
        let Some(container) = module.code.filter(|code| !code.is_empty()) else { return Ok(None) };
        let mut codes = self.modules.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let address = container.as_ptr().addr();
        if let Some(known) = codes.get(&address) {
            return Ok(known.clone());
        }
        let Some(container) = module.device_code() else {
            codes.insert(address, None);
            return Ok(None);
        };
        let library = match Library::load_code(container) {
            Ok(library) => Some(Arc::new(library)),
            Err(failure) if failure.code.is_sticky() => return Err(self.error(failure, None)),
            Err(failure) if failure.code == DriverCode::OUT_OF_MEMORY => return Err(failure.into()),
            // Another architecture, or a driver that is older than the container: it compiles the PTX.
            Err(_) => None,
        };
        codes.insert(address, library.clone());
        Ok(library)
    }

    /// Compiles one kernel of a module's PTX; returns the length of its text too.
    fn compiled(&self, module: &Module, name: &str) -> Result<(Arc<Library>, usize)> {
        let text = ptx::text(module).ok_or_else(|| GpuError::UnknownModule { module: module.name.into() })?;
        let unknown = || GpuError::UnknownKernel { module: module.name.into(), kernel: name.into() };
        let text = ptx::kernel_alone(&text, name).ok_or_else(unknown)?;
        let rejected = |code, log| GpuError::PtxRejected { module: module.name.into(), code, log };
        let Ok(text) = CString::new(text) else {
            return Err(rejected(DriverCode::INVALID_VALUE, "the text contains a zero byte".into()));
        };
        match Library::compile(&text) {
            Ok(library) => Ok((Arc::new(library), text.as_bytes().len())),
            Err((failure, _)) if failure.code.is_sticky() => Err(self.error(failure, None)),
            Err((failure, _)) if failure.code == DriverCode::OUT_OF_MEMORY => Err(failure.into()),
            Err((failure, log)) => Err(rejected(failure.code, log)),
        }
    }

    pub(crate) fn kernel_attributes(&self, info: &'static KernelInfo) -> Result<KernelAttributes> {
        self.enter()?;
        Ok(self.kernel(info)?.attributes)
    }

    /// Returns the blocks of this shape that fit on one multiprocessor at once.
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
        // SAFETY: `arguments` holds a pointer to each argument of this kernel, by this function's contract; the module
        // is loaded, and the shape is within the limits.
        let code = unsafe { self.launch_raw(kernel.function, config, arguments) };
        match check("cuLaunchKernel", code) {
            Ok(()) => {
                if !kernel.launched.load(Ordering::Relaxed) {
                    kernel.launched.store(true, Ordering::Relaxed);
                }
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
        // SAFETY: `function` and `arguments` fit, by this function's contract; the driver checks the shape.
        match check("cuLaunchKernel", unsafe { self.launch_raw(function, config, arguments) }) {
            Ok(()) => Ok(()),
            Err(failure) if failure.code.is_sticky() => self.checked(Err(failure)),
            Err(failure) => Err(GpuError::LaunchFailed { kernel: "of another library", code: failure.code }),
        }
    }

    /// Launches a kernel and returns the driver's result code.
    ///
    /// # Safety
    /// The context is current; `function` is a loaded kernel of it, and `arguments` holds a pointer to each of its
    /// arguments.
    unsafe fn launch_raw(&self, function: Handle, config: LaunchConfig, arguments: &mut [*mut c_void]) -> u32 {
        let (grid, block) = (config.grid, config.block);
        macro_rules! launch {
            ($call:ident $(, $last:expr)?) => {
                // SAFETY: the context is current, and `function` and `arguments` fit, by this function's contract.
                unsafe {
                    binding::$call(
                        function,
                        grid.x,
                        grid.y,
                        grid.z,
                        block.x,
                        block.y,
                        block.z,
                        config.shared_bytes,
                        self.raw,
                        arguments.as_mut_ptr()
                        $(, $last)?
                    )
                }
            };
        }
        match config.cooperative {
            true => launch!(cuLaunchCooperativeKernel),
            false => launch!(cuLaunchKernel, std::ptr::null_mut()),
        }
    }
}
