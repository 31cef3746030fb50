//! Memory accesses of kernel threads: checked, counted, and ordered.
use super::engine::{Engine, raise, switch, with};
use super::fault::{FaultKind, Space};
use super::memory::Region;
use super::vocabulary::memory::Raw;
use super::vocabulary::word::{AtomicWord, Modify};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub use super::fault::AccessKind as Access;

/// An atomic operation on a word.
#[derive(Clone, Copy, Debug)]
pub enum Atomic<T> {
    Load,
    Store(T),
    Modify(Modify, T),
    /// From the first to the second.
    CompareExchange(T, T),
}

/// How a load or store orders other accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Relaxed,
    /// Acquire for a load, release for a store.
    Ordered,
}

/// Regions that a launch remembers.
const REMEMBERED: usize = 8;

/// Checks `count` elements of `size` bytes at `address`, element `index` of a handle to `len`.
#[track_caller]
#[inline]
pub fn global_access(
    address: usize,
    index: usize,
    count: usize,
    len: usize,
    size: usize,
    align: usize,
    access: Access,
) {
    let place = Location::caller();
    let checked = with(|engine| {
        engine.check_global(address, index, count, len, size, align)?;
        engine.after_access(access);
        Ok(engine.burn())
    });
    match checked {
        Ok(true) => {}
        Ok(false) => out_of_fuel(),
        Err(kind) => raise(kind, place),
    }
}

/// The pointer to `size` bytes at `offset` of the block's shared memory.
#[track_caller]
#[inline]
pub fn shared_access(offset: u32, size: usize, access: Access) -> *mut u8 {
    let place = Location::caller();
    let checked = with(|engine| {
        let pointer = engine.check_shared(offset, size)?;
        engine.after_access(access);
        Ok((pointer, engine.burn()))
    });
    match checked {
        Ok((pointer, true)) => pointer,
        Ok((pointer, false)) => {
            out_of_fuel();
            pointer
        }
        Err(kind) => raise(kind, place),
    }
}

#[cold]
fn out_of_fuel() {
    with(Engine::refuel);
    switch();
}

/// A point at which the scheduler may switch to another thread.
pub fn preempt() {
    if with(|engine| engine.random.one_in(engine.config.switch_at_atomics)) {
        switch();
    }
}

/// Orders the current thread's accesses.
#[track_caller]
pub fn fence() {
    preempt();
}

#[track_caller]
pub fn global_atomic<T: AtomicWord>(word: Raw<T>, op: Atomic<T>, _order: Order) -> T {
    preempt();
    let access = if matches!(op, Atomic::Load) { Access::AtomicRead } else { Access::AtomicWrite };
    let pointer = word.pointer();
    global_access(pointer.addr(), 0, 1, word.count(), size_of::<T>(), size_of::<T>(), access);
    // SAFETY: `global_access` found the word inside a live buffer, aligned.
    T::from_bits(unsafe { host_atomic(pointer, op) })
}

#[track_caller]
pub fn shared_atomic<T: AtomicWord>(address: u32, op: Atomic<T>) -> T {
    preempt();
    let pointer: *mut T = shared_access(address, size_of::<T>(), Access::AtomicWrite).cast();
    // SAFETY: `shared_access` found the word inside the block's shared memory, aligned.
    T::from_bits(unsafe { host_atomic(pointer, op) })
}

/// Does `op` and returns the old value's bits.
///
/// # Safety
/// `pointer` is to a valid word, aligned to its size.
unsafe fn host_atomic<T: AtomicWord>(pointer: *mut T, op: Atomic<T>) -> u64 {
    let step = |old: u64| match op {
        Atomic::Load => None,
        Atomic::Store(value) => Some(value.to_bits()),
        Atomic::Modify(modify, operand) => Some(T::from_bits(old).modify(modify, operand).to_bits()),
        Atomic::CompareExchange(current, new) => (old == current.to_bits()).then(|| new.to_bits()),
    };
    let old = if size_of::<T>() == 4 {
        // SAFETY: the caller vouches for the word.
        let word = unsafe { AtomicU32::from_ptr(pointer.cast()) };
        let result =
            word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| step(u64::from(old)).map(|new| new as u32));
        u64::from(result.unwrap_or_else(|old| old))
    } else {
        // SAFETY: the caller vouches for the word.
        let word = unsafe { AtomicU64::from_ptr(pointer.cast()) };
        word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step).unwrap_or_else(|old| old)
    };
    if step(old).is_some_and(|new| new != old) {
        with(Engine::wrote);
    }
    old
}

impl Engine {
    #[inline]
    fn burn(&mut self) -> bool {
        self.fuel -= 1;
        self.fuel > 0
    }

    #[inline]
    fn after_access(&mut self, access: Access) {
        if access == Access::Write {
            self.wrote();
        }
    }

    #[inline]
    fn check_global(
        &mut self,
        address: usize,
        index: usize,
        count: usize,
        len: usize,
        size: usize,
        align: usize,
    ) -> Result<(), FaultKind> {
        let outside = FaultKind::GlobalOutOfBounds { index, count, len, size };
        if index.checked_add(count).is_none_or(|end| end > len) {
            return Err(outside);
        }
        let bytes = count * size;
        if bytes == 0 {
            return Ok(());
        }
        let region = self.region(address).ok_or(FaultKind::UnknownAddress { address })?;
        if region.is_freed() {
            return Err(FaultKind::UseAfterFree { offset: address - region.start, bytes: region.bytes });
        }
        if address + bytes > region.start + region.bytes {
            let len = (region.start + region.bytes).saturating_sub(address) / size;
            return Err(FaultKind::GlobalOutOfBounds { index, count, len: index + len, size });
        }
        if !address.is_multiple_of(align) {
            return Err(FaultKind::Misaligned { space: Space::Global, address, align });
        }
        Ok(())
    }

    #[inline]
    fn region(&mut self, address: usize) -> Option<&Arc<Region>> {
        let found = self.regions.iter().position(|region| region.contains(address));
        match found {
            Some(0) => {}
            Some(i) => self.regions.swap(i, i - 1),
            None => {
                let region = self.memory.find(address)?;
                if self.regions.len() == REMEMBERED {
                    self.regions.pop();
                }
                self.regions.push(region);
            }
        }
        let at = match found {
            Some(i) => i.saturating_sub(1),
            None => self.regions.len() - 1,
        };
        Some(&self.regions[at])
    }

    #[inline]
    fn check_shared(&mut self, offset: u32, size: usize) -> Result<*mut u8, FaultKind> {
        let shared_bytes = self.shared_bytes();
        if offset as usize + size > shared_bytes as usize {
            return Err(FaultKind::SharedOutOfBounds { offset, size, shared_bytes });
        }
        if !(offset as usize).is_multiple_of(size) {
            return Err(FaultKind::Misaligned { space: Space::Shared, address: offset as usize, align: size });
        }
        let slot = self.current.slot as usize;
        // SAFETY: `offset` is inside the block's shared memory, checked above.
        Ok(unsafe { self.slots[slot].shared_pointer().add(offset as usize) })
    }
}
