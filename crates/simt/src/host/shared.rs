//! Shared memory: an address is an offset into the block's array.
use super::engine;
use super::operation::{AccessKind as Access, Atomic};
use super::word::{AtomicWord, Modify, Word};

pub fn dynamic_base() -> u32 {
    0
}

pub fn dynamic_bytes() -> u32 {
    engine::with(|engine| engine.shared_bytes())
}

/// Reads an element.
///
/// # Safety
/// The contract of [`Shared::get`](crate::shared::Shared::get).
#[track_caller]
pub unsafe fn get<T: Word>(address: u32) -> T {
    let pointer: *mut T = engine::shared_access(address, size_of::<T>(), Access::Read).cast();
    // SAFETY: checked to lie in the block's shared memory, aligned; one host thread runs the block.
    unsafe { pointer.read() }
}

/// Sets an element.
///
/// # Safety
/// The contract of [`Shared::set`](crate::shared::Shared::set).
#[track_caller]
pub unsafe fn set<T: Word>(address: u32, value: T) {
    let pointer: *mut T = engine::shared_access(address, size_of::<T>(), Access::Write).cast();
    // SAFETY: checked to lie in the block's shared memory, aligned; one host thread runs the block.
    unsafe { pointer.write(value) };
}

/// Reads an element in every execution.
///
/// # Safety
/// The contract of [`Shared::get_volatile`](crate::shared::Shared::get_volatile).
#[track_caller]
pub unsafe fn get_volatile<T: Word>(address: u32) -> T {
    engine::preempt();
    let pointer: *mut T = engine::shared_access(address, size_of::<T>(), Access::AtomicRead).cast();
    engine::shared_volatile(address, false);
    // SAFETY: checked to lie in the block's shared memory, aligned; one host thread runs the block.
    unsafe { pointer.read() }
}

/// Sets an element in every execution.
///
/// # Safety
/// The contract of [`Shared::set_volatile`](crate::shared::Shared::set_volatile).
#[track_caller]
pub unsafe fn set_volatile<T: Word>(address: u32, value: T) {
    engine::preempt();
    let pointer: *mut T = engine::shared_access(address, size_of::<T>(), Access::AtomicWrite).cast();
    engine::shared_volatile(address, true);
    // SAFETY: checked to lie in the block's shared memory, aligned; one host thread runs the block.
    unsafe { pointer.write(value) };
}

macro_rules! vector {
    ($ty:ty, $n:literal, $get:ident, $set:ident) => {
        /// # Safety
        /// The contract of the public function of this name.
        #[track_caller]
        pub unsafe fn $get(address: u32) -> [$ty; $n] {
            let pointer: *mut [$ty; $n] = engine::shared_access(address, 16, Access::Read).cast();
            // SAFETY: checked to lie in the block's shared memory, aligned; one host thread runs the block.
            unsafe { pointer.read() }
        }

        /// # Safety
        /// The contract of the public function of this name.
        #[track_caller]
        pub unsafe fn $set(address: u32, values: [$ty; $n]) {
            let pointer: *mut [$ty; $n] = engine::shared_access(address, 16, Access::Write).cast();
            // SAFETY: checked to lie in the block's shared memory, aligned; one host thread runs the block.
            unsafe { pointer.write(values) };
        }
    };
}

vector!(u32, 4, get4, set4);
vector!(u64, 2, get2, set2);

macro_rules! read_modify_write {
    ($($name:ident $(, $reduce:ident)? = $op:ident;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[track_caller]
        pub unsafe fn $name<T: AtomicWord>(address: u32, value: T) -> T {
            engine::shared_atomic(address, Atomic::Modify(Modify::$op, value))
        }
        $(
            /// # Safety
            /// The contract of the public function of this name.
            #[track_caller]
            pub unsafe fn $reduce<T: AtomicWord>(address: u32, value: T) {
                engine::shared_atomic(address, Atomic::Modify(Modify::$op, value));
            }
        )?
    )*};
}

read_modify_write! {
    fetch_add, reduce_add = Add;
    fetch_and, reduce_and = And;
    fetch_or, reduce_or = Or;
    fetch_xor, reduce_xor = Xor;
    fetch_min, reduce_min = Min;
    fetch_max, reduce_max = Max;
    exchange = Exchange;
}

/// Exchanges the element if it equals `current`.
///
/// # Safety
/// The contract of the public function of this name.
#[track_caller]
pub unsafe fn compare_exchange<T: AtomicWord>(address: u32, current: T, new: T) -> T {
    engine::shared_atomic(address, Atomic::CompareExchange(current, new))
}
