//! Device memory: which addresses are a buffer's, and what fresh memory looks like.
use crate::{Global, GlobalMut};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

/// Value of every byte of fresh device memory and of shared memory.
pub const POISON: u8 = 0xc7;

/// Alignment of buffers, that of the CUDA allocator.
const ALIGN: usize = 256;

/// Freed bytes that stay reserved, so that a use after free is seen as one.
const QUARANTINE_BYTES: usize = 64 << 20;

/// There is not enough device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "out of device memory: {asked} bytes asked for, {free} free; raise `Config::memory_bytes` or free something first"
)]
pub struct OutOfMemory {
    /// Requested bytes.
    pub asked: usize,
    /// Bytes free.
    pub free: usize,
}

/// The pointer is not the start of a live buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{address:#x} is not the start of a live device buffer: it was freed before, or never allocated here")]
pub struct NotABuffer {
    /// The address.
    pub address: usize,
}

/// A range of addresses that kernels may access.
#[derive(Debug)]
pub struct Region {
    pub start: usize,
    pub bytes: usize,
    freed: AtomicBool,
    /// The allocation, unless the memory has another owner.
    owned: Option<(*mut u8, Layout)>,
}

// SAFETY: the pointer is only used to free the allocation, by the last owner of the region.
unsafe impl Send for Region {}
// SAFETY: shared regions only read the pointer's value; `freed` is atomic.
unsafe impl Sync for Region {}

impl Region {
    #[inline]
    pub fn is_freed(&self) -> bool {
        self.freed.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some((pointer, layout)) = self.owned {
            // SAFETY: `pointer` came from `alloc` with this layout, and is freed here alone.
            unsafe { dealloc(pointer, layout) };
        }
    }
}

/// All buffers of an emulator.
#[derive(Debug)]
pub struct Memory {
    regions: RwLock<BTreeMap<usize, Arc<Region>>>,
    accounts: Mutex<Accounts>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Accounts {
    used: usize,
    quarantine: VecDeque<usize>,
    quarantined: usize,
}

impl Memory {
    pub fn new(capacity: usize) -> Self {
        Self { regions: RwLock::default(), accounts: Mutex::default(), capacity }
    }

    pub fn alloc(&self, bytes: usize) -> Result<*mut u8, OutOfMemory> {
        let mut accounts = self.accounts.lock().unwrap();
        let free = self.capacity - accounts.used;
        let refused = OutOfMemory { asked: bytes, free };
        if bytes > free {
            return Err(refused);
        }
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).map_err(|_| refused)?;
        // SAFETY: the layout has at least one byte.
        let pointer = unsafe { alloc(layout) };
        if pointer.is_null() {
            return Err(refused);
        }
        // SAFETY: `layout.size()` fresh bytes.
        unsafe { pointer.write_bytes(POISON, layout.size()) };
        accounts.used += bytes;
        let region =
            Region { start: pointer.addr(), bytes, freed: AtomicBool::new(false), owned: Some((pointer, layout)) };
        self.regions.write().unwrap().insert(region.start, Arc::new(region));
        Ok(pointer)
    }

    /// Gives the buffer of exactly this size that was freed last, filled with poison, if there is one.
    pub fn reuse(&self, bytes: usize) -> Option<*mut u8> {
        let mut accounts = self.accounts.lock().unwrap();
        let regions = self.regions.read().unwrap();
        let is_fit = |address: &usize| regions.get(address).is_some_and(|region| region.bytes == bytes);
        let at = accounts.quarantine.iter().rposition(is_fit)?;
        if accounts.used + bytes > self.capacity {
            return None;
        }
        let region = regions.get(&accounts.quarantine.remove(at)?)?;
        let (pointer, layout) = region.owned?;
        accounts.quarantined -= bytes;
        accounts.used += bytes;
        // SAFETY: the region owns `layout.size()` bytes; it was freed, so no kernel or copy may access them.
        unsafe { pointer.write_bytes(POISON, layout.size()) };
        region.freed.store(false, Ordering::Relaxed);
        Some(pointer)
    }

    pub fn free(&self, pointer: *mut u8) -> Result<(), NotABuffer> {
        let address = pointer.addr();
        let mut accounts = self.accounts.lock().unwrap();
        let mut regions = self.regions.write().unwrap();
        let region =
            regions.get(&address).filter(|r| !r.is_freed() && r.owned.is_some()).ok_or(NotABuffer { address })?;
        region.freed.store(true, Ordering::Relaxed);
        accounts.used -= region.bytes;
        accounts.quarantined += region.bytes;
        accounts.quarantine.push_back(address);
        while accounts.quarantined > QUARANTINE_BYTES || accounts.quarantine.len() > 4096 {
            let Some(oldest) = accounts.quarantine.pop_front() else { break };
            if let Some(region) = regions.remove(&oldest) {
                accounts.quarantined -= region.bytes;
            }
        }
        Ok(())
    }

    pub fn register(&self, pointer: *mut u8, bytes: usize) {
        let region = Region { start: pointer.addr(), bytes, freed: AtomicBool::new(false), owned: None };
        self.regions.write().unwrap().insert(region.start, Arc::new(region));
    }

    pub fn unregister(&self, pointer: *mut u8) -> Result<(), NotABuffer> {
        let address = pointer.addr();
        let mut regions = self.regions.write().unwrap();
        match regions.get(&address) {
            Some(region) if region.owned.is_none() => {
                region.freed.store(true, Ordering::Relaxed);
                regions.remove(&address);
                Ok(())
            }
            _ => Err(NotABuffer { address }),
        }
    }

    /// Returns the bytes free and in all.
    pub fn info(&self) -> (usize, usize) {
        (self.capacity - self.accounts.lock().unwrap().used, self.capacity)
    }

    /// Finds the region with `address`, live or in quarantine. One past the end belongs to it too, for messages.
    pub fn find(&self, address: usize) -> Option<Arc<Region>> {
        let regions = self.regions.read().unwrap();
        let (_, region) = regions.range(..=address).next_back()?;
        (address - region.start <= region.bytes).then(|| region.clone())
    }
}

/// Device memory of an emulator, for tests; freed when dropped.
#[derive(Debug)]
pub struct Buffer<T> {
    memory: Arc<Memory>,
    pointer: *mut T,
    len: usize,
}

// SAFETY: owns its elements like a `Vec<T>`.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: through a shared reference only `to_vec` reads, and its contract is that no kernel runs.
unsafe impl<T: Sync> Sync for Buffer<T> {}

impl<T: Copy> Buffer<T> {
    pub(super) fn new(memory: Arc<Memory>, len: usize) -> Result<Self, OutOfMemory> {
        let bytes = len.saturating_mul(size_of::<T>());
        let pointer = memory.alloc(bytes)?.cast();
        Ok(Self { memory, pointer, len })
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the handle for kernels that read.
    #[must_use]
    pub fn global(&self) -> Global<T> {
        Global::from_raw_parts(self.pointer, self.len)
    }

    /// Returns the handle for kernels that write. (Takes `&self`, because several kernels may hold a handle; the
    /// kernels' contracts say which accesses are allowed.)
    #[must_use]
    pub fn global_mut(&self) -> GlobalMut<T> {
        GlobalMut::from_raw_parts(self.pointer, self.len)
    }

    /// Overwrites the first elements. No kernel may run on the buffer meanwhile.
    ///
    /// # Panics
    /// If there are more values than elements.
    pub fn copy_from(&mut self, values: &[T]) {
        assert!(values.len() <= self.len, "{} values for {} elements", values.len(), self.len);
        // SAFETY: `values.len()` elements fit; distinct allocations.
        unsafe { self.pointer.copy_from_nonoverlapping(values.as_ptr(), values.len()) };
    }
}

impl<T: crate::Word> Buffer<T> {
    /// Copies the elements. No kernel may run on the buffer meanwhile.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        // SAFETY: `len` elements, all bytes of which are initialised (poison at least);
        // every bit pattern is a `Word`.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }.to_vec()
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        let freed = self.memory.free(self.pointer.cast());
        debug_assert!(freed.is_ok(), "a buffer is freed once, here");
    }
}
