//! Devices: owners of memory, executors of kernels.

use std::fmt;
use std::sync::Arc;

use bytemuck::Pod;
#[cfg(feature = "emulator")]
use warpset_simt::emulator;
use warpset_simt::{KernelInfo, LaunchConfig, Module};

#[cfg(feature = "cuda")]
use crate::cuda::{self, CudaDevice};
use crate::emulated::EmulatedDevice;
#[cfg(feature = "emulator")]
use crate::emulated::EmulatorOptions;
use crate::error::{GpuError, Result};
use crate::event::Event;
use crate::loaded::LoadedKernel;
use crate::memory::Budget;
use crate::pinned::PinnedVec;
use crate::pinned_pool::PinnedPool;
use crate::properties::{DeviceProperties, KernelAttributes, MemoryInfo};
use crate::stream::Stream;
use crate::vector::DeviceVec;

/// A CUDA device or the emulator. Clones are handles to the same device, usable from any thread.
#[derive(Clone)]
pub struct Device(pub(crate) Executor);

#[derive(Clone)]
pub(crate) enum Executor {
    #[cfg(feature = "cuda")]
    Cuda(Arc<CudaDevice>),
    Emulator(Arc<EmulatedDevice>),
}

impl Device {
    /// Opens the CUDA device of this ordinal. Opening a device again while it is held yields the same one.
    ///
    /// # Errors
    /// Why it cannot be used: [`GpuError::is_unavailable`] holds for all of these.
    pub fn cuda(ordinal: u32) -> Result<Self> {
        crate::backend::check_enabled()?;
        #[cfg(feature = "cuda")]
        return Ok(Self(Executor::Cuda(cuda::open(ordinal)?)));
        #[cfg(not(feature = "cuda"))]
        {
            let _ = ordinal;
            Err(GpuError::NotBuiltIn)
        }
    }

    /// Counts the CUDA devices; at least one.
    ///
    /// # Errors
    /// Why there is none.
    pub fn cuda_count() -> Result<u32> {
        crate::backend::check_enabled()?;
        #[cfg(feature = "cuda")]
        return cuda::count();
        #[cfg(not(feature = "cuda"))]
        Err(GpuError::NotBuiltIn)
    }

    /// Opens every CUDA device that can run our kernels, in the order of their ordinals.
    ///
    /// # Errors
    /// Why there is none.
    pub fn cuda_all() -> Result<Vec<Self>> {
        let results: Vec<_> = (0..Self::cuda_count()?).map(Self::cuda).collect();
        if results.iter().any(Result::is_ok) {
            return Ok(results.into_iter().flatten().collect());
        }
        results.into_iter().collect()
    }

    /// Opens a CUDA device apart from [`Device::cuda`]: with other streams, another pool of memory and modules of its
    /// own, so that it counts as another device.
    pub(crate) fn cuda_apart(ordinal: u32) -> Result<Self> {
        #[cfg(feature = "cuda")]
        return Ok(Self(Executor::Cuda(Arc::new(cuda::CudaDevice::new(ordinal)?))));
        #[cfg(not(feature = "cuda"))]
        Self::cuda(ordinal)
    }

    /// Makes an emulated device with the default properties.
    #[cfg(feature = "emulator")]
    pub fn emulator(config: emulator::Config) -> Self {
        Self::emulator_with(EmulatorOptions { config, ..EmulatorOptions::default() })
    }

    /// Makes an emulated device with these options.
    #[cfg(feature = "emulator")]
    pub fn emulator_with(options: EmulatorOptions) -> Self {
        Self(Executor::Emulator(Arc::new(EmulatedDevice::new(options))))
    }

    /// Whether kernels run on the emulator.
    pub fn is_emulator(&self) -> bool {
        self.properties().is_emulator
    }

    /// Returns the properties of the device.
    pub fn properties(&self) -> &DeviceProperties {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => device.properties(),
            Executor::Emulator(device) => device.properties(),
        }
    }

    /// Returns the amounts of device memory, in total and free.
    ///
    /// # Errors
    /// [`GpuError::Driver`] with the driver's code.
    pub fn memory_info(&self) -> Result<MemoryInfo> {
        let mut info = match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => device.memory_info()?,
            Executor::Emulator(device) => device.memory_info(),
        };
        info.free = info.free.min(self.budget().left());
        Ok(info)
    }

    /// Limits the vectors of this device to that many bytes together; an allocation past the limit fails as if the
    /// memory were not there. Counts for every handle to the device. `usize::MAX`, the default, is no limit.
    pub fn set_memory_limit(&self, bytes: usize) {
        self.budget().set_limit(bytes);
    }

    pub(crate) fn budget(&self) -> &Budget {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => &device.budget,
            Executor::Emulator(device) => &device.budget,
        }
    }

    /// Gives memory that is kept for later allocations back to the driver, for other programs to use: that of the pool,
    /// and the pinned memory through which host slices travel. Waits for the device.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn trim(&self) -> Result<()> {
        self.free_kept();
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => device.trim(),
            Executor::Emulator(device) => device.synchronize(),
        }
    }

    /// Waits for all work on the device, and reports the error if some of it failed.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => device.synchronize(),
            Executor::Emulator(device) => device.synchronize(),
        }
    }

    /// Runs `queue` on a new stream, after all work on the device, part of which the caller may have queued on other
    /// streams. Waits for the queued work, also if `queue` failed. Returns the first error.
    ///
    /// # Errors
    /// The error of `queue`, else the error of the work that it queued.
    ///
    /// ```
    /// use warpset_gpu::{Device, GpuError};
    ///
    /// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
    /// let mut words = device.from_slice(&[1u32, 2])?;
    /// device.waiting(|stream| stream.fill_bytes(words.as_mut_slice(), 0))?;
    /// assert_eq!(words.to_vec()?, [0, 0]);
    /// # Ok::<(), GpuError>(())
    /// ```
    pub fn waiting<R, E: From<GpuError>>(
        &self,
        queue: impl FnOnce(&Stream) -> std::result::Result<R, E>,
    ) -> std::result::Result<R, E> {
        self.synchronize()?;
        let stream = Stream::waited(self)?;
        let queued = queue(&stream);
        let waited = stream.synchronize();
        stream.keep_nothing();
        let result = queued?;
        waited?;
        Ok(result)
    }

    /// Waits for all work on the device, reports what failed, and gives this handle up. Dropping a handle reports
    /// nothing.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn close(self) -> Result<()> {
        self.synchronize()
    }

    /// Makes a stream. Streams are non-blocking: none waits for the legacy default stream.
    ///
    /// # Errors
    /// [`GpuError::Driver`] with the driver's code.
    pub fn new_stream(&self) -> Result<Stream> {
        Stream::new(self, 0)
    }

    /// Makes a stream with a priority: the lower the number, the sooner its blocks run. The driver clamps it.
    ///
    /// # Errors
    /// [`GpuError::Driver`] with the driver's code.
    pub fn new_stream_with_priority(&self, priority: i32) -> Result<Stream> {
        Stream::new(self, priority)
    }

    /// Makes an event.
    ///
    /// # Errors
    /// [`GpuError::Driver`] with the driver's code.
    pub fn new_event(&self) -> Result<Event> {
        Event::new(self)
    }

    /// Allocates `len` items with unspecified contents (poison on the emulator).
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::TooLarge`]; [`GpuError::Driver`] for anything else that the driver
    /// refuses.
    pub fn alloc_uninit<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>> {
        DeviceVec::on_device(self, len)
    }

    /// Allocates `len` items of zero bytes.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::TooLarge`]; [`GpuError::Driver`] for anything else that the driver
    /// refuses.
    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>> {
        let mut vector = DeviceVec::on_device(self, len)?;
        vector.as_mut_slice().fill_bytes(0)?;
        Ok(vector)
    }

    /// Copies `items` to the device.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::TooLarge`]; [`GpuError::Driver`] for anything else that the driver
    /// refuses.
    pub fn from_slice<T: Pod>(&self, items: &[T]) -> Result<DeviceVec<T>> {
        let mut vector = DeviceVec::on_device(self, items.len())?;
        vector.copy_from_slice(items)?;
        Ok(vector)
    }

    /// Allocates `len` zero items of page-locked host memory, from which copies are fast and asynchronous.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::TooLarge`]; [`GpuError::Driver`] for anything else that the driver
    /// refuses.
    pub fn pinned<T: Pod>(&self, len: usize) -> Result<PinnedVec<T>> {
        PinnedVec::new(self, len)
    }

    /// Loads a module's kernels now rather than at their first launch: from its device code, or else compiled from its
    /// PTX.
    ///
    /// # Errors
    /// [`GpuError::UnknownModule`] if it has no PTX; [`GpuError::PtxRejected`] if the driver does not take it.
    pub fn load_module(&self, module: &Module) -> Result<()> {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => device.load_module(module),
            Executor::Emulator(_) => {
                let _ = module;
                Ok(())
            }
        }
    }

    /// Lists the kernels that this device has loaded, by module and name; on the emulator, the launched ones.
    pub fn loaded_kernels(&self) -> Vec<LoadedKernel> {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => device.loaded_kernels(),
            Executor::Emulator(device) => device.asked.all(),
        }
    }

    /// Returns the compiler's figures for a kernel; `None` on the emulator.
    ///
    /// # Errors
    /// [`GpuError::UnknownModule`], [`GpuError::UnknownKernel`]; [`GpuError::PtxRejected`] if the driver does not take
    /// the PTX.
    pub fn kernel_attributes(&self, kernel: &'static KernelInfo) -> Result<Option<KernelAttributes>> {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => device.kernel_attributes(kernel).map(Some),
            Executor::Emulator(_) => {
                let _ = kernel;
                Ok(None)
            }
        }
    }

    /// Returns the largest number of blocks of the shape of `config` that can be resident on the whole device at once.
    /// It suits grids whose blocks wait for each other, and kernels with a grid-stride loop.
    ///
    /// # Errors
    /// [`GpuError::InvalidLaunch`] if no block of this shape fits; what [`Device::kernel_attributes`] returns.
    pub fn resident_blocks(&self, kernel: &'static KernelInfo, config: LaunchConfig) -> Result<u32> {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => {
                Ok(device.occupancy(kernel, config)?.saturating_mul(self.properties().multiprocessors))
            }
            Executor::Emulator(device) => device.resident_blocks(kernel, config),
        }
    }

    /// Reports an error unless `other` is this device; `operation` is the subject of the message.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`].
    pub fn expect_same(&self, other: &Self, operation: &'static str) -> Result<()> {
        if self == other {
            return Ok(());
        }
        let (expected, found) = (self.to_string(), other.to_string());
        Err(GpuError::OtherDevice { operation, expected, found })
    }

    /// Does the work of [`Device::expect_same`] for several devices.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`] names the first that is another one.
    pub fn expect_all_here<'d>(
        &self,
        others: impl IntoIterator<Item = &'d Device>,
        operation: &'static str,
    ) -> Result<()> {
        others.into_iter().try_for_each(|other| self.expect_same(other, operation))
    }

    /// Lets `other` access the memory of this device, if both are CUDA devices that can: copies between them are direct
    /// then.
    pub(crate) fn open_memory_to(&self, other: &Self) {
        match (&self.0, &other.0) {
            #[cfg(feature = "cuda")]
            (Executor::Cuda(here), Executor::Cuda(other)) => here.open_memory_to(other),
            _ => {}
        }
    }

    pub(crate) fn pinned_pool(&self) -> &PinnedPool {
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => &device.pinned,
            Executor::Emulator(device) => &device.pinned,
        }
    }

    /// Frees the pinned memory that this device keeps; returns whether there was any.
    pub(crate) fn free_kept(&self) -> bool {
        let kept = self.pinned_pool().drain();
        let any = !kept.is_empty();
        kept.into_iter().for_each(|raw| drop(PinnedVec::from_raw(self, raw)));
        any
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            #[cfg(feature = "cuda")]
            (Executor::Cuda(a), Executor::Cuda(b)) => Arc::ptr_eq(a, b),
            (Executor::Emulator(a), Executor::Emulator(b)) => Arc::ptr_eq(a, b),
            #[cfg(feature = "cuda")]
            _ => false,
        }
    }
}

impl Eq for Device {}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeviceProperties { name, .. } = self.properties();
        match &self.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(_) => write!(f, "{name} (device {})", self.properties().ordinal),
            Executor::Emulator(device) => write!(f, "{name} {}", device.number),
        }
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&self.properties().name).field(&self.properties().ordinal).finish()
    }
}
