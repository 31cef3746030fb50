//! One allocation, whoever executes: owned by vectors, seen through slices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::device::{Device, Executor};
use crate::error::{GpuError, Result};
use crate::faults;
use crate::stream::Stream;

/// Address of empty memory: a multiple of every alignment in use, never accessed.
const NOTHING: usize = 256;

pub(crate) struct Memory {
    pub(crate) device: Device,
    /// The stream that orders its allocation and its freeing; `None` if every stream may use the memory at once.
    home: Option<Stream>,
    /// Whether another stream than `home` has used it, through a call that we saw.
    foreign: AtomicBool,
    address: usize,
    bytes: usize,
    owner: Owner,
}

/// Who frees memory.
enum Owner {
    /// This object.
    Own,
    /// Another library, which allocated it.
    Other,
    /// Part of this allocation.
    Whole(Arc<Memory>),
}

impl Memory {
    /// Allocates memory that every stream of the device may use.
    pub(crate) fn on_device(device: &Device, bytes: usize) -> Result<Self> {
        let address = within_budget(device, bytes, || {
            Ok(match &device.0 {
                #[cfg(feature = "cuda")]
                Executor::Cuda(device) => device.allocate(bytes)? as usize,
                Executor::Emulator(device) => device.allocate(bytes)?,
            })
        })?;
        Ok(Self {
            device: device.clone(),
            home: None,
            foreign: AtomicBool::new(false),
            address,
            bytes,
            owner: Owner::Own,
        })
    }

    /// Wraps memory of another owner, who frees it after this is dropped.
    pub(crate) fn adopted(device: &Device, address: usize, bytes: usize) -> Self {
        let foreign = AtomicBool::new(false);
        Self { device: device.clone(), home: None, foreign, address, bytes, owner: Owner::Other }
    }

    /// Returns `bytes` bytes of this memory from byte `begin` on; the allocation stays until its last part is dropped.
    pub(crate) fn part(self: &Arc<Self>, begin: usize, bytes: usize) -> Self {
        let address = if bytes == 0 { NOTHING } else { self.address + begin };
        if bytes > 0 {
            self.check(address, bytes);
        }
        let (foreign, owner) = (AtomicBool::new(false), Owner::Whole(self.clone()));
        Self { device: self.device.clone(), home: None, foreign, address, bytes, owner }
    }

    /// Returns the allocation, which this may be a part of.
    fn whole(&self) -> &Memory {
        match &self.owner {
            Owner::Whole(whole) => whole,
            _ => self,
        }
    }

    /// Allocates memory in the order of `stream`, which is freed in that order too.
    pub(crate) fn on_stream(stream: &Stream, bytes: usize) -> Result<Self> {
        let address = within_budget(stream.device(), bytes, || {
            Ok(match &stream.device().0 {
                #[cfg(feature = "cuda")]
                Executor::Cuda(_) => stream.cuda().allocate(bytes)? as usize,
                Executor::Emulator(_) => stream.emulated().allocate(bytes)?,
            })
        })?;
        let (device, home, foreign) = (stream.device().clone(), Some(stream.clone()), AtomicBool::new(false));
        Ok(Self { device, home, foreign, address, bytes, owner: Owner::Own })
    }

    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Lets `stream` use this memory: checks that it is of this device, and orders it after the allocation.
    pub(crate) fn prepare_for(&self, stream: &Stream, operation: &'static str) -> Result<()> {
        stream.device().expect_same(&self.device, operation)?;
        self.order_behind_home(stream)
    }

    /// Makes `stream`, of whatever device, wait for the stream on which this memory was allocated.
    pub(crate) fn order_behind_home(&self, stream: &Stream) -> Result<()> {
        let whole = self.whole();
        match &whole.home {
            Some(home) if home != stream => {
                whole.foreign.store(true, Ordering::Relaxed);
                stream.wait_for(home)
            }
            _ => Ok(()),
        }
    }

    /// Whether the memory is freed in the order of `stream`, and no other stream has used it by a call of this crate.
    pub(crate) fn follows(&self, stream: &Stream) -> bool {
        let whole = self.whole();
        whole.home.as_ref() == Some(stream) && !whole.foreign.load(Ordering::Relaxed)
    }

    /// Copies from the host to `address..`, and waits.
    pub(crate) fn upload(&self, address: usize, from: &[u8]) -> Result<()> {
        self.check(address, from.len());
        match &self.device.0 {
            _ if from.is_empty() => Ok(()),
            // SAFETY: `from` is valid for its length, and the target range is within this allocation.
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => unsafe { device.upload(address as u64, from.as_ptr().cast(), from.len()) },
            // SAFETY: `from` is valid for its length, and `check` found the target range within this allocation.
            Executor::Emulator(device) => unsafe { device.write(address, from.as_ptr(), from.len()) },
        }
    }

    /// Copies `address..` to the host, and waits.
    pub(crate) fn download(&self, address: usize, to: &mut [u8]) -> Result<()> {
        self.check(address, to.len());
        match &self.device.0 {
            _ if to.is_empty() => Ok(()),
            // SAFETY: `to` is valid for its length, and the source range is within this allocation.
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => unsafe { device.download(to.as_mut_ptr().cast(), address as u64, to.len()) },
            // SAFETY: `to` is valid for its length, and `check` found the source range within this allocation.
            Executor::Emulator(device) => unsafe { device.read(address, to.as_mut_ptr(), to.len()) },
        }
    }

    /// Sets bytes, and waits.
    pub(crate) fn set(&self, address: usize, byte: u8, bytes: usize) -> Result<()> {
        self.check(address, bytes);
        match &self.device.0 {
            _ if bytes == 0 => Ok(()),
            // SAFETY: the range is within this allocation.
            #[cfg(feature = "cuda")]
            Executor::Cuda(device) => unsafe { device.set(address as u64, byte, bytes) },
            // SAFETY: `check` found the range within this allocation.
            Executor::Emulator(device) => unsafe { device.set(address, byte, bytes) },
        }
    }

    /// Panics unless the range lies in this allocation. Slices check their ranges when they are made; the `unsafe`
    /// blocks above rely on this check.
    fn check(&self, address: usize, bytes: usize) {
        assert!(
            address >= self.address && bytes <= self.bytes && address - self.address <= self.bytes - bytes,
            "a slice reaches out of its allocation"
        );
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.bytes == 0 || !matches!(self.owner, Owner::Own) {
            return;
        }
        let home = self.home.as_ref().filter(|_| !*self.foreign.get_mut());
        match (&self.device.0, home) {
            #[cfg(feature = "cuda")]
            (Executor::Cuda(_), Some(home)) => home.cuda().free(self.address as u64),
            #[cfg(feature = "cuda")]
            (Executor::Cuda(device), None) => device.free(self.address as u64),
            (Executor::Emulator(_), Some(home)) => home.emulated().free(self.address, self.bytes),
            (Executor::Emulator(device), None) => device.free(self.address, self.bytes),
        }
        self.device.budget().give_back(self.bytes);
    }
}

/// Budget of a device: the limit set by the user, and the bytes allocated.
pub(crate) struct Budget {
    limit: AtomicUsize,
    used: AtomicUsize,
}

impl Budget {
    pub(crate) const fn unlimited() -> Self {
        Self { limit: AtomicUsize::new(usize::MAX), used: AtomicUsize::new(0) }
    }

    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes that may still be allocated.
    pub(crate) fn left(&self) -> usize {
        self.limit.load(Ordering::Relaxed).saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Counts an allocation within the limit; otherwise returns the bytes left.
    fn take(&self, bytes: usize) -> Result<(), usize> {
        let limit = self.limit.load(Ordering::Relaxed);
        let more = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(()),
            Err(used) => Err(limit.saturating_sub(used)),
        }
    }

    fn give_back(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Calls `allocate` if the device's budget allows these bytes, and returns the address; no bytes need no allocation.
fn within_budget(device: &Device, bytes: usize, allocate: impl FnOnce() -> Result<usize>) -> Result<usize> {
    if bytes == 0 {
        return Ok(NOTHING);
    }
    let out_of_memory = |left: usize| {
        let free = device.memory_info().map_or(left, |info| info.free.min(left));
        GpuError::OutOfMemory { place: device.properties().name.clone(), asked: bytes, free }
    };
    if faults::strikes() {
        return Err(out_of_memory(0));
    }
    device.budget().take(bytes).map_err(out_of_memory)?;
    allocate().inspect_err(|_| device.budget().give_back(bytes))
}

/// Returns the bytes of `len` items of `T`.
pub(crate) fn byte_len<T>(len: usize) -> Result<usize> {
    match len.checked_mul(size_of::<T>()) {
        Some(bytes) if bytes <= isize::MAX as usize => Ok(bytes),
        _ => Err(GpuError::TooLarge { items: len, item_size: size_of::<T>() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "out of its allocation")]
    fn parts_end_within_their_allocation() {
        let memory = Arc::new(Memory::on_device(&crate::testing::deferred(1), 32).unwrap());
        assert_eq!(memory.part(16, 16).bytes, 16);
        memory.part(17, 16);
    }
}
