//! Memory accesses of kernel threads: checked, counted, and ordered.
use super::engine::{Engine, raise, switch, with};
use super::fault::{CallSite, FaultKind, Other, Space};
use super::memory::Region;
use super::races::{Conflict, Who};
use super::weak::Waiting;
use crate::host::memory::Raw;
use crate::host::operation::{AccessKind as Access, Atomic, Order, Scope};
use crate::host::word::{AtomicWord, Modify};
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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
        engine.check_global(address, index, count, len, size, align).map_err(|kind| {
            // A free that nothing orders with this launch is the cause, the use after it the effect.
            let is_freed = matches!(kind, FaultKind::UseAfterFree { .. });
            let order = if is_freed { engine.note_order(address, count * size, access, place) } else { Ok(()) };
            order.err().unwrap_or(kind)
        })?;
        engine.note_global(address, count * size, access, place)?;
        Ok(engine.burn())
    });
    match checked {
        Ok(true) => {}
        Ok(false) => out_of_fuel(),
        Err(kind) => raise(kind, place),
    }
}

/// Returns the pointer to `size` bytes at `offset` of the block's shared memory.
#[track_caller]
#[inline]
pub fn shared_access(offset: u32, size: usize, access: Access) -> *mut u8 {
    let place = Location::caller();
    let checked = with(|engine| {
        let pointer = engine.check_shared(offset, size)?;
        engine.note_shared(offset, size, access, place)?;
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

/// Lets the scheduler switch to another thread.
pub fn preempt() {
    if with(|engine| engine.random.one_in(engine.config.switch_at_atomics)) {
        switch();
    }
}

/// Orders the current thread's accesses.
pub fn fence(scope: Scope) {
    preempt();
    with(|engine| engine.fence(scope));
}

/// Performs an atomic on global memory and returns the old value. A `delayable` one may take effect later; its result
/// has no meaning.
#[track_caller]
pub fn global_atomic<T: AtomicWord>(word: Raw<T>, op: Atomic<T>, order: Order, delayable: bool) -> T {
    preempt();
    let access = if matches!(op, Atomic::Load) { Access::AtomicRead } else { Access::AtomicWrite };
    let pointer = word.pointer();
    let size = size_of::<T>();
    global_access(pointer.addr(), 0, 1, word.count(), size, size, access);
    T::from_bits(with(|engine| {
        if order == Order::Ordered {
            match op {
                Atomic::Load => engine.catch_up(),
                _ => engine.commit_own(),
            }
        }
        let delay = delayable && order == Order::Relaxed && engine.weak.is_some() && engine.random.one_in(2);
        match (delay, op) {
            (true, Atomic::Store(value)) => engine.delay(pointer, Modify::Exchange, value),
            (true, Atomic::Modify(modify, value)) => engine.delay(pointer, modify, value),
            (_, Atomic::Load) if order == Order::Relaxed => {
                if let Some(old) = engine.stale(pointer.addr(), size) {
                    return old;
                }
            }
            _ => {}
        }
        if delay {
            return 0;
        }
        // SAFETY: `global_access` found the word inside a live buffer, aligned.
        unsafe { engine.perform(pointer, None, pointer.addr(), op, order) }
    }))
}

/// Checks that two words can be had in one 128-bit access; the caller records each access itself.
#[track_caller]
pub fn check_pair(words: Raw<u64>) {
    let checked = with(|engine| engine.check_global(words.pointer().addr(), 0, 2, words.count(), 8, 16));
    if let Err(kind) = checked {
        raise(kind, Location::caller());
    }
}

#[track_caller]
pub fn shared_atomic<T: AtomicWord>(address: u32, op: Atomic<T>) -> T {
    preempt();
    let access = if matches!(op, Atomic::Load) { Access::AtomicRead } else { Access::AtomicWrite };
    let pointer: *mut T = shared_access(address, size_of::<T>(), access).cast();
    let bits = with(|engine| {
        let slot = Some(engine.current.slot);
        // SAFETY: `shared_access` found the element inside the block's shared memory, aligned.
        unsafe { engine.perform(pointer, slot, address as usize, op, Order::Relaxed) }
    });
    T::from_bits(bits)
}

/// Passes knowledge on like a relaxed atomic, for a volatile load or store of shared memory.
pub fn shared_volatile(offset: u32, writes: bool) {
    with(|engine| {
        let (slot, who) = (Some(engine.current.slot), engine.who());
        let Some(races) = &mut engine.races else { return };
        if writes {
            let released = races.what_is_released(who, false);
            races.release(slot, offset as usize, released, false);
        } else if let Some(released) = races.passed_on(slot, offset as usize) {
            races.observe(who, &released, false);
        }
    });
}

/// Does `op`; the old value's bits, and whether the word was written.
///
/// # Safety
/// `pointer` is to a valid word, aligned to its size.
unsafe fn host_atomic<T: AtomicWord>(pointer: *mut T, op: Atomic<T>) -> (u64, bool) {
    let step = |old: u64| match op {
        Atomic::Load => None,
        Atomic::Store(value) => Some(value.to_bits()),
        Atomic::Modify(modify, operand) => Some(T::from_bits(old).modify(modify, operand).to_bits()),
        Atomic::CompareExchange(current, new) => (old == current.to_bits()).then(|| new.to_bits()),
    };
    let result = if size_of::<T>() == 4 {
        // SAFETY: the word is valid, by this function's contract.
        let word = unsafe { AtomicU32::from_ptr(pointer.cast()) };
        word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| step(u64::from(old)).map(|new| new as u32))
            .map(u64::from)
            .map_err(u64::from)
    } else {
        // SAFETY: the word is valid, by this function's contract.
        let word = unsafe { AtomicU64::from_ptr(pointer.cast()) };
        word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, step)
    };
    match result {
        Ok(old) => (old, true),
        Err(old) => (old, false),
    }
}

/// Performs a delayed change.
///
/// # Safety
/// `pointer` is to a valid `T`, aligned to its size.
unsafe fn commit<T: AtomicWord>(pointer: *mut u8, modify: Modify, operand: u64) -> u64 {
    // SAFETY: the callee has this function's contract.
    unsafe { host_atomic(pointer.cast(), Atomic::Modify(modify, T::from_bits(operand))) }.0
}

impl Engine {
    #[inline]
    fn burn(&mut self) -> bool {
        self.fuel -= 1;
        self.fuel > 0
    }

    fn who(&self) -> Who {
        Who { slot: self.current.slot, thread: self.current.thread }
    }

    #[inline]
    fn note_global(&mut self, address: usize, size: usize, access: Access, place: CallSite) -> Result<(), FaultKind> {
        if access == Access::Write {
            self.wrote();
        }
        if self.weak.as_ref().is_some_and(|weak| !weak.is_empty()) {
            let me = self.current;
            self.commit_where(|w| w.owner == me && w.address < address + size && address < w.address + w.size);
        }
        self.note_order(address, size, access, place)?;
        let who = self.who();
        match &mut self.races {
            Some(races) => races
                .global(who, address, size, access, place)
                .map_err(|conflict| self.race(Space::Global, address, access, conflict)),
            None => Ok(()),
        }
    }

    /// Checks the order of this launch with other operations.
    #[inline]
    fn note_order(&mut self, address: usize, size: usize, access: Access, place: CallSite) -> Result<(), FaultKind> {
        match &mut self.order {
            Some((operation, accesses)) => accesses.access(operation, address, size, access, place, &self.memory),
            None => Ok(()),
        }
    }

    #[inline]
    fn note_shared(&mut self, offset: u32, size: usize, access: Access, place: CallSite) -> Result<(), FaultKind> {
        if access != Access::Read && access != Access::AtomicRead {
            self.wrote();
        }
        let who = self.who();
        match &mut self.races {
            Some(races) => races
                .shared(who, offset, size, access, place)
                .map_err(|conflict| self.race(Space::Shared, offset as usize, access, conflict)),
            None => Ok(()),
        }
    }

    #[cold]
    fn race(&mut self, space: Space, address: usize, mine: Access, conflict: Conflict) -> FaultKind {
        let other = Other {
            block: self.shape.grid_dim.index(u64::from(conflict.block)),
            thread: self.shape.block_dim.index(u64::from(conflict.thread)),
            location: conflict.place,
        };
        let start = match space {
            Space::Global => self.region(address).map_or(0, |region| region.start),
            Space::Shared => 0,
        };
        FaultKind::Race { space, byte: address - start, mine, theirs: conflict.theirs, other }
    }

    pub(super) fn fence(&mut self, scope: Scope) {
        self.commit_own();
        self.catch_up();
        let who = self.who();
        if let Some(races) = &mut self.races {
            races.fence(who, scope);
        }
    }

    fn catch_up(&mut self) {
        let me = self.current;
        if let Some(weak) = &mut self.weak {
            weak.catch_up(me);
        }
    }

    /// Makes the current thread's delayed stores visible.
    #[inline]
    pub(super) fn commit_own(&mut self) {
        if self.weak.as_ref().is_some_and(|weak| !weak.is_empty()) {
            let me = self.current;
            self.commit_where(|w| w.owner == me);
        }
    }

    /// Makes delayed stores visible; true if there were any.
    pub(super) fn commit_where(&mut self, wanted: impl Fn(&Waiting) -> bool) -> bool {
        let mut any = false;
        while let Some(store) = self.weak.as_mut().and_then(|weak| weak.take(&wanted)) {
            self.commit(store);
            any = true;
        }
        any
    }

    /// Makes some delayed store visible, from time to time.
    pub(super) fn commit_some(&mut self) {
        let Some(weak) = &mut self.weak else { return };
        if !weak.is_empty() && self.random.one_in(8) {
            let at = self.random.next() as usize >> 16;
            if let Some(store) = weak.take_any(at) {
                self.commit(store);
            }
        }
    }

    fn commit(&mut self, store: Waiting) {
        // SAFETY: `delay` was given a pointer to a valid word, in a region that the store keeps.
        let old = unsafe { (store.commit)(store.pointer, store.modify, store.operand) };
        self.wrote();
        let before = self.races.as_mut().and_then(|races| races.passed_on(None, store.address));
        if let (Some(races), Some(released)) = (&mut self.races, store.released) {
            races.release(None, store.address, released, store.modify != Modify::Exchange);
        }
        if let Some(weak) = &mut self.weak {
            weak.changed(store.owner, store.address, store.size, old, before);
        }
    }

    /// Lets a store or reduction wait; if too many do, the oldest becomes visible.
    fn delay<T: AtomicWord>(&mut self, pointer: *mut T, modify: Modify, operand: T) {
        let address = pointer.addr();
        let Some(region) = self.region(address).cloned() else { return };
        let who = self.who();
        let released = self.races.as_mut().map(|races| races.what_is_released(who, false));
        let oldest = self.weak.as_mut().filter(|weak| !weak.has_room()).and_then(|weak| weak.take_any(0));
        if let Some(store) = oldest {
            self.commit(store);
        }
        let store = Waiting {
            owner: self.current,
            address,
            pointer: pointer.cast(),
            size: size_of::<T>(),
            modify,
            operand: operand.to_bits(),
            commit: commit::<T>,
            released,
            _region: region,
        };
        if let Some(weak) = &mut self.weak {
            weak.push(store);
        }
    }

    /// Returns, one time in eight, an older value of the word that the current thread may still see.
    fn stale(&mut self, address: usize, size: usize) -> Option<u64> {
        let weak = self.weak.as_mut()?;
        if !self.random.one_in(8) {
            return None;
        }
        let random = &mut self.random;
        let (value, released) = weak.stale(self.current, address, size, |n| random.below(n))?;
        let who = self.who();
        if let (Some(races), Some(released)) = (&mut self.races, released) {
            races.observe(who, &released, false);
        }
        Some(value)
    }

    /// Does an atomic and keeps the books of who learns what from whom.
    ///
    /// # Safety
    /// `pointer` is to a valid word, aligned to its size.
    unsafe fn perform<T: AtomicWord>(
        &mut self,
        pointer: *mut T,
        slot: Option<u32>,
        address: usize,
        op: Atomic<T>,
        order: Order,
    ) -> u64 {
        // SAFETY: the word is valid, by this function's contract.
        let (old, written) = unsafe { host_atomic(pointer, op) };
        let (me, who) = (self.current, self.who());
        let loads = !matches!(op, Atomic::Store(_));
        let mut before = None;
        if let Some(races) = &mut self.races {
            before = races.passed_on(slot, address);
            if let (true, Some(released)) = (loads, &before) {
                races.observe(who, released, order == Order::Ordered);
            }
            if written {
                let released = races.what_is_released(who, !loads && order == Order::Ordered);
                races.release(slot, address, released, loads);
            }
        }
        if written {
            let same = match op {
                Atomic::Modify(modify, operand) => T::from_bits(old).modify(modify, operand).to_bits() == old,
                Atomic::Store(value) => value.to_bits() == old,
                Atomic::CompareExchange(current, new) => current.to_bits() == new.to_bits(),
                Atomic::Load => true,
            };
            if !same {
                self.wrote();
            }
        }
        if let (Some(weak), None) = (&mut self.weak, slot) {
            if written {
                weak.changed(me, address, size_of::<T>(), old, before);
            } else {
                weak.saw_newest(me, address);
            }
        }
        old
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
