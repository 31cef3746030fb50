//! Streams: work that runs in order.

use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex};
use warpset_base::filter::LengthMismatch;

use bytemuck::Pod;
use warpset_simt::{KernelInfo, LaunchConfig, Launcher, ThreadBody};

#[cfg(feature = "cuda")]
use crate::cuda::{CudaDevice, CudaStream};
use crate::device::{Device, Executor};
use crate::emulated::EmulatedStream;
use crate::error::{GpuError, Result};
use crate::event::Event;
use crate::faults;
use crate::pinned::{Pending, PinnedVec};
use crate::slice::{DeviceSlice, DeviceSliceMut, same_len};
#[cfg(all(feature = "cuda", feature = "emulator"))]
use crate::testing;
use crate::transfer::{LARGE, download_large, upload_large};
use crate::vector::DeviceVec;
use crate::zeroed::Halves;

/// A queue of work for a device. Clones are handles to the same stream, usable from any thread.
///
/// On the emulator everything has run when the call that queued it returns, unless the device is
/// [deferred](crate::EmulatorOptions::deferred).
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    /// Dropped before the queue, so that it is freed after the queue's work.
    zeroed: Mutex<Option<Halves>>,
    device: Device,
    queue: Queue,
    /// Whether [`Device::waiting`] made the stream and waits for it.
    is_waited: bool,
}

enum Queue {
    #[cfg(feature = "cuda")]
    Cuda(CudaStream),
    Emulated(EmulatedStream),
}

impl Stream {
    pub(crate) fn new(device: &Device, priority: i32) -> Result<Self> {
        Self::made(device, priority, false)
    }

    /// Makes a stream for [`Device::waiting`].
    pub(crate) fn waited(device: &Device) -> Result<Self> {
        Self::made(device, 0, true)
    }

    fn made(device: &Device, priority: i32, is_waited: bool) -> Result<Self> {
        let _ = priority; // the emulator has none
        let queue = match &device.0 {
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => Queue::Cuda(CudaStream::new(device.clone(), priority)?),
            Executor::Emulator(device) => Queue::Emulated(EmulatedStream::new(device.clone())),
        };
        Ok(Self(Arc::new(Inner { zeroed: Mutex::default(), device: device.clone(), queue, is_waited })))
    }

    /// Wraps a stream of the driver.
    ///
    /// # Safety
    /// The contract of [`CudaStream::adopt`].
    #[cfg(feature = "cuda")]
    pub(crate) unsafe fn adopted(device: &Device, cuda: &Arc<CudaDevice>, raw: *mut c_void) -> Result<Self> {
        // SAFETY: the contract of `CudaStream::adopt` is this function's.
        let stream = unsafe { CudaStream::adopt(cuda.clone(), raw)? };
        let (zeroed, device, queue) = (Mutex::default(), device.clone(), Queue::Cuda(stream));
        Ok(Self(Arc::new(Inner { zeroed, device, queue, is_waited: false })))
    }

    /// Returns the driver's stream. Only for streams of a CUDA device.
    #[cfg(feature = "cuda")]
    pub(crate) fn cuda(&self) -> &CudaStream {
        match &self.0.queue {
            Queue::Cuda(stream) => stream,
            Queue::Emulated(_) => unreachable!("asked of streams of CUDA devices only"),
        }
    }

    /// Returns the emulated device's stream. Only for streams of an emulated device.
    pub(crate) fn emulated(&self) -> &EmulatedStream {
        match &self.0.queue {
            Queue::Emulated(stream) => stream,
            #[cfg(feature = "cuda")]
            Queue::Cuda(_) => unreachable!("asked of streams of emulated devices only"),
        }
    }

    /// Returns the zeroed words that stay with the stream.
    pub(crate) fn zeroed(&self) -> &Mutex<Option<Halves>> {
        &self.0.zeroed
    }

    /// Whether zeroed words stay with the stream: neither if [`Device::waiting`] made it for one call, nor if a caller
    /// lends it, perhaps for one call.
    pub(crate) fn keeps_words(&self) -> bool {
        let is_lent = match &self.0.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.is_adopted(),
            Queue::Emulated(_) => false,
        };
        !self.0.is_waited && !is_lent
    }

    /// Returns the device of the stream.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Returns the driver's handle (`CUstream`), for other libraries; `None` on the emulator. It is valid while the
    /// stream is held.
    pub fn as_raw(&self) -> Option<*mut c_void> {
        match &self.0.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => Some(stream.as_raw()),
            Queue::Emulated(_) => None,
        }
    }

    /// Waits for everything queued so far, and reports the error if some of it failed.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.0.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.synchronize(),
            Queue::Emulated(stream) => stream.synchronize(),
        }
    }

    /// Waits for everything queued so far, reports what failed, and gives this handle up. Dropping a stream lets its
    /// work finish and reports nothing.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn close(self) -> Result<()> {
        self.synchronize()
    }

    /// Keeps a share of `memory` in the L2 cache for the work that is queued from here on, and returns whether it does.
    /// Only on the stream of [`Device::waiting`], which gives the cache back when it has waited: for random accesses to
    /// memory of about the cache's size. Other streams get a smaller cache in the meantime.
    #[doc(hidden)]
    pub fn keep_in_l2<T: Pod>(&self, memory: DeviceSlice<'_, T>) -> bool {
        let (base, bytes) = (memory.as_raw(), memory.byte_len());
        self.0.is_waited
            && match &self.0.queue {
                #[cfg(feature = "cuda")]
                Queue::Cuda(stream) => stream.keep_in_l2(base, bytes),
                Queue::Emulated(_) => {
                    let _ = (base, bytes);
                    false
                }
            }
    }

    /// Ends [`keep_in_l2`](Self::keep_in_l2), after the work.
    pub(crate) fn keep_nothing(&self) {
        match &self.0.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.keep_nothing(),
            Queue::Emulated(_) => {}
        }
    }

    /// Whether everything queued so far has ended.
    ///
    /// # Errors
    /// [`GpuError::DeviceLost`] or [`GpuError::Driver`] if earlier work on the device failed.
    pub fn is_idle(&self) -> Result<bool> {
        match &self.0.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.is_idle(),
            Queue::Emulated(stream) => stream.is_idle(),
        }
    }

    /// Whether the stream runs beside the legacy default stream, according to the driver. Always true for streams of
    /// this crate; an adopted one keeps its owner's setting.
    ///
    /// # Errors
    /// [`GpuError::Driver`] with the driver's code.
    pub fn is_non_blocking(&self) -> Result<bool> {
        match &self.0.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => stream.is_non_blocking(),
            Queue::Emulated(_) => Ok(true),
        }
    }

    /// Moves `event` to the end of the work that this stream holds now.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`] if the event is another device's; [`GpuError::Driver`] with the driver's code.
    pub fn record(&self, event: &Event) -> Result<()> {
        event.record(self)
    }

    /// Makes later work on this stream wait for `event`, which may be of another device.
    ///
    /// # Errors
    /// [`GpuError::Driver`] with the driver's code.
    pub fn wait(&self, event: &Event) -> Result<()> {
        event.make_wait(self)
    }

    /// Makes later work on this stream wait for the work that `other` holds now.
    ///
    /// # Errors
    /// [`GpuError::Driver`] with the driver's code.
    pub fn wait_for(&self, other: &Stream) -> Result<()> {
        match (&self.0.queue, &other.0.queue) {
            #[cfg(feature = "cuda")]
            (Queue::Cuda(stream), Queue::Cuda(other)) => stream.wait_for(other),
            (Queue::Emulated(stream), Queue::Emulated(other)) => stream.wait_for(other),
            #[cfg(feature = "cuda")]
            _ => other.synchronize(),
        }
    }

    /// Allocates `len` items with unspecified contents, allocated and freed in the order of this stream: neither the
    /// allocation nor the drop waits. Launches on other streams must wait for this one, and it for them before the
    /// drop.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::TooLarge`]; [`GpuError::Driver`] for anything else that the driver
    /// refuses.
    pub fn alloc_uninit<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>> {
        DeviceVec::on_stream(self, len)
    }

    /// Allocates `len` items of zero bytes, in the order of this stream as [`alloc_uninit`](Self::alloc_uninit) does.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::TooLarge`]; [`GpuError::Driver`] for anything else that the driver
    /// refuses.
    pub fn alloc_zeroed<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>> {
        let mut vector = self.alloc_uninit(len)?;
        self.fill_bytes(&mut vector, 0)?;
        Ok(vector)
    }

    /// Copies `items` to memory allocated in the order of this stream, as by [`alloc_uninit`](Self::alloc_uninit);
    /// waits for the copy.
    ///
    /// # Errors
    /// [`GpuError::OutOfMemory`], [`GpuError::TooLarge`]; [`GpuError::Driver`] for anything else that the driver
    /// refuses.
    pub fn from_slice<T: Pod>(&self, items: &[T]) -> Result<DeviceVec<T>> {
        let mut vector = self.alloc_uninit(items.len())?;
        self.upload(&mut vector, items)?;
        Ok(vector)
    }

    /// Does the work of [`from_slice`](Self::from_slice), but leaves a copy of less than 1 MiB in the stream's queue.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice).
    ///
    /// # Safety
    /// Until the stream has passed this copy, `items` stays allocated and unchanged.
    pub unsafe fn from_slice_async<T: Pod>(&self, items: &[T]) -> Result<DeviceVec<T>> {
        if size_of_val(items) >= LARGE {
            return self.from_slice(items);
        }
        let mut vector = self.alloc_uninit(items.len())?;
        // SAFETY: `upload_async` has this function's contract.
        unsafe { self.upload_async(&mut vector, items)? };
        Ok(vector)
    }

    /// Copies `from` to the device, after this stream's work, and waits. From 1 MiB on, several threads bring it
    /// through pinned memory.
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::OtherDevice`] if a slice lies on another device than the stream;
    /// [`GpuError::Driver`] with the driver's code.
    pub fn upload<'a, T: Pod>(&self, to: impl Into<DeviceSliceMut<'a, T>>, from: &[T]) -> Result<()> {
        let mut to = to.into();
        same_len(from.len(), to.len())?;
        if to.byte_len() >= LARGE {
            match upload_large(self, from, to.reborrow()) {
                // Without pinned memory the driver brings it, if slowly.
                Err(error) if error.is_out_of_memory() => {}
                result => return result,
            }
        }
        // SAFETY: the borrow of `from` lasts until the copy has been waited for, whether it succeeded or not.
        let queued = unsafe { self.upload_async(to, from) };
        queued.and(self.synchronize())
    }

    /// Copies from the device, after this stream's work, and waits. From 1 MiB on, several threads fetch it through
    /// pinned memory.
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::OtherDevice`] if a slice lies on another device than the stream;
    /// [`GpuError::Driver`] with the driver's code.
    pub fn download<'a, T: Pod>(&self, from: impl Into<DeviceSlice<'a, T>>, to: &mut [T]) -> Result<()> {
        let from = from.into();
        same_len(from.len(), to.len())?;
        if from.byte_len() >= LARGE {
            match download_large(self, from, to) {
                // Without pinned memory the driver fetches it, if slowly.
                Err(error) if error.is_out_of_memory() => {}
                result => return result,
            }
        }
        // SAFETY: the borrow of `to` lasts until the copy has been waited for, whether it succeeded or not.
        let queued = unsafe { self.download_async(from, to) };
        queued.and(self.synchronize())
    }

    /// Copies the first item to the host, a count for example, after this stream's work. Waits.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`] if the slice lies on another device than the stream; [`GpuError::Driver`] with the
    /// driver's code.
    ///
    /// # Panics
    /// If there is none, like slices of the standard library.
    pub fn download_first<'a, T: Pod>(&self, from: impl Into<DeviceSlice<'a, T>>) -> Result<T> {
        let mut first = [T::zeroed()];
        self.download(from.into().slice(..1), &mut first)?;
        Ok(first[0])
    }

    /// Queues a copy to the device. It overlaps other work if `from` is [pinned](PinnedVec).
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::OtherDevice`] if a slice lies on another device than the stream;
    /// [`GpuError::Driver`] with the driver's code.
    ///
    /// # Safety
    /// Until the stream has passed this copy, `from` stays allocated and unchanged.
    pub unsafe fn upload_async<'a, T: Pod>(&self, to: impl Into<DeviceSliceMut<'a, T>>, from: &[T]) -> Result<()> {
        let to = to.into();
        same_len(from.len(), to.len())?;
        to.memory().prepare_for(self, "a copy to the device")?;
        // SAFETY: `prepare_for` orders the stream after the allocation; the other conditions are this function's own.
        unsafe { self.upload_unordered(to, from) }
    }

    /// Queues a copy to the device as [`upload_async`](Self::upload_async) does, without waiting for the allocation of
    /// `to`, which is as long as `from` and on this device.
    ///
    /// # Safety
    /// Until the stream has passed this copy, nothing changes or frees `from`, and nothing else accesses `to`. When the
    /// stream reaches the copy, `to` is allocated.
    pub(crate) unsafe fn upload_unordered<T: Pod>(&self, to: DeviceSliceMut<'_, T>, from: &[T]) -> Result<()> {
        match &self.0.queue {
            _ if to.byte_len() == 0 => Ok(()),
            // SAFETY: `from` stays valid until the stream has passed, by this function's contract; `to` is a range of
            // its allocation.
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => unsafe { stream.upload(to.address() as u64, from.as_ptr().cast(), to.byte_len()) },
            // SAFETY: `from` stays valid until the stream has passed, by this function's contract; `to` is a range of
            // its allocation.
            Queue::Emulated(stream) => unsafe { stream.upload(to.address(), from.as_ptr().cast(), to.byte_len()) },
        }
    }

    /// Queues a copy from the device. It overlaps other work if `to` is [pinned](PinnedVec).
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::OtherDevice`] if a slice lies on another device than the stream;
    /// [`GpuError::Driver`] with the driver's code.
    ///
    /// # Safety
    /// Until the stream has passed this copy, `to` stays allocated, and nothing else reads or writes it.
    pub unsafe fn download_async<'a, T: Pod>(&self, from: impl Into<DeviceSlice<'a, T>>, to: &mut [T]) -> Result<()> {
        let from = from.into();
        same_len(from.len(), to.len())?;
        from.memory().prepare_for(self, "a copy from the device")?;
        // SAFETY: `prepare_for` orders the stream after the allocation; the other conditions are this function's own.
        unsafe { self.download_unordered(from, to) }
    }

    /// Queues a copy from the device as [`download_async`](Self::download_async) does, without waiting for the
    /// allocation of `from`, which is as long as `to` and on this device.
    ///
    /// # Safety
    /// Until the stream has passed this copy, nothing writes `from`, and nothing else accesses or frees `to`. When the
    /// stream reaches the copy, `from` is allocated.
    pub(crate) unsafe fn download_unordered<T: Pod>(&self, from: DeviceSlice<'_, T>, to: &mut [T]) -> Result<()> {
        match &self.0.queue {
            _ if from.byte_len() == 0 => Ok(()),
            // SAFETY: `to` stays valid until the stream has passed, by this function's contract; `from` is a range of
            // its allocation.
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => unsafe {
                stream.download(to.as_mut_ptr().cast(), from.address() as u64, from.byte_len())
            },
            // SAFETY: `to` stays valid until the stream has passed, by this function's contract; `from` is a range of
            // its allocation.
            Queue::Emulated(stream) => unsafe {
                stream.download(to.as_mut_ptr().cast(), from.address(), from.byte_len())
            },
        }
    }

    /// Queues a copy of the first `to.len()` items of `from`, which comes back when the copy has ended.
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::OtherDevice`] if a slice lies on another device than the stream;
    /// [`GpuError::Driver`] with the driver's code.
    pub fn upload_pinned<'a, T: Pod>(
        &self,
        to: impl Into<DeviceSliceMut<'a, T>>,
        from: PinnedVec<T>,
    ) -> Result<Pending<T>> {
        let (to, done) = (to.into(), self.device().new_event()?);
        LengthMismatch::unless_room("items in the source of a copy", to.len(), from.len())?;
        let count = to.len();
        let pending = Pending::new(from, done);
        // SAFETY: `pending` keeps the memory, to itself, until its event has passed.
        let queued = unsafe { self.upload_async(to, &pending.items()[..count]) };
        self.finish_pending(pending, queued)
    }

    /// Queues a copy into the first `from.len()` items of `to`, which comes back when the copy has ended.
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::OtherDevice`] if a slice lies on another device than the stream;
    /// [`GpuError::Driver`] with the driver's code.
    pub fn download_pinned<'a, T: Pod>(
        &self,
        from: impl Into<DeviceSlice<'a, T>>,
        to: PinnedVec<T>,
    ) -> Result<Pending<T>> {
        let (from, done) = (from.into(), self.device().new_event()?);
        LengthMismatch::unless_room("items in the target of a copy", from.len(), to.len())?;
        let count = from.len();
        let mut pending = Pending::new(to, done);
        // SAFETY: `pending` keeps the memory, to itself, until its event has passed.
        let queued = unsafe { self.download_async(from, &mut pending.items_mut()[..count]) };
        self.finish_pending(pending, queued)
    }

    /// Marks the end of a copy that was queued; one that may have been queued but has no mark is waited for.
    fn finish_pending<T: Pod>(&self, mut pending: Pending<T>, queued: Result<()>) -> Result<Pending<T>> {
        match queued.and_then(|()| pending.event().record(self)) {
            Ok(()) => Ok(pending),
            Err(error) => {
                if self.synchronize().is_err() {
                    pending.leak();
                }
                Err(error)
            }
        }
    }

    /// Queues a copy between device slices of the same length. The source may be on another device of the same kind;
    /// then this stream does not wait for that device: synchronise first, or [`wait`](Self::wait).
    ///
    /// # Errors
    /// [`GpuError::LengthMismatch`]; [`GpuError::OtherDevice`] if the target lies on another device than the stream;
    /// [`GpuError::Driver`] with the driver's code.
    pub fn copy<'a, 'b, T: Pod>(
        &self,
        to: impl Into<DeviceSliceMut<'a, T>>,
        from: impl Into<DeviceSlice<'b, T>>,
    ) -> Result<()> {
        let (to, from) = (to.into(), from.into());
        same_len(from.len(), to.len())?;
        to.memory().prepare_for(self, "a copy")?;
        if to.byte_len() == 0 {
            return Ok(());
        }
        match (&self.0.queue, &from.device().0) {
            #[cfg(feature = "cuda")]
            (Queue::Cuda(stream), Executor::Cuda(source)) => {
                from.memory().order_behind_home(self)?;
                // SAFETY: both are ranges of live allocations, and frees come after this stream's work.
                unsafe { stream.copy(to.address() as u64, source, from.address() as u64, to.byte_len()) }
            }
            (Queue::Emulated(stream), Executor::Emulator(source)) => {
                from.memory().order_behind_home(self)?;
                // SAFETY: both are ranges of live allocations, which are freed after this stream's work; a borrow for
                // writing overlaps no other.
                unsafe { stream.copy(to.address(), source, from.address(), to.byte_len()) }
            }
            #[cfg(feature = "cuda")]
            _ => self.device().expect_same(from.device(), "a copy"),
        }
    }

    /// Queues setting every byte.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`] if the slice lies on another device than the stream; [`GpuError::Driver`] with the
    /// driver's code.
    pub fn fill_bytes<'a, T: Pod>(&self, to: impl Into<DeviceSliceMut<'a, T>>, byte: u8) -> Result<()> {
        let to = to.into();
        to.memory().prepare_for(self, "a fill")?;
        match &self.0.queue {
            _ if to.byte_len() == 0 => Ok(()),
            // SAFETY: a range of a live allocation, which is freed after this stream's work.
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => unsafe { stream.set_bytes(to.address() as u64, byte, to.byte_len()) },
            // SAFETY: a range of a live allocation, which is freed after this stream's work.
            Queue::Emulated(stream) => unsafe { stream.set_bytes(to.address(), byte, to.byte_len()) },
        }
    }

    /// Queues setting every word.
    ///
    /// # Errors
    /// [`GpuError::OtherDevice`] if the slice lies on another device than the stream; [`GpuError::Driver`] with the
    /// driver's code.
    pub fn fill_words<'a>(&self, to: impl Into<DeviceSliceMut<'a, u32>>, word: u32) -> Result<()> {
        let to = to.into();
        to.memory().prepare_for(self, "a fill")?;
        match &self.0.queue {
            _ if to.is_empty() => Ok(()),
            // SAFETY: a range of a live allocation, aligned for words, which is freed after this stream's work.
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => unsafe { stream.set_words(to.address() as u64, word, to.len()) },
            // SAFETY: a range of a live allocation, aligned for words, which is freed after this stream's work.
            Queue::Emulated(stream) => unsafe { stream.set_words(to.address(), word, to.len()) },
        }
    }
}

impl Launcher for Stream {
    type Error = GpuError;

    unsafe fn launch_raw(
        &self,
        info: &'static KernelInfo,
        config: LaunchConfig,
        args: &mut [*mut c_void],
        thread: &dyn Fn() -> ThreadBody,
    ) -> Result<()> {
        if faults::strikes() {
            let reason = "a test wants this launch to fail".to_owned();
            return Err(GpuError::InvalidLaunch { kernel: info.name, reason });
        }
        let _ = &args; // the emulator has them in `thread`
        match &self.0.queue {
            #[cfg(feature = "cuda")]
            Queue::Cuda(stream) => {
                #[cfg(feature = "emulator")]
                testing::delay(stream)?;
                // SAFETY: the kernel's contract is kept until the launch has ended, by this function's contract.
                unsafe { stream.launch(info, config, args) }
            }
            // SAFETY: the kernel's contract is kept until the launch has ended, by this function's contract.
            Queue::Emulated(stream) => unsafe { stream.launch(info, config, thread()) },
        }
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({})", self.device())
    }
}
