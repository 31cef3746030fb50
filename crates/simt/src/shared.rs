//! The block's shared memory.
//!
//! A kernel has the dynamic shared memory that its launch asks for, and lays it out
//! itself: `shared::dynamic::<u32>(0)`, `shared::dynamic::<u64>(1024)`. It starts with
//! arbitrary contents (the emulator fills it with a poison pattern).
use crate::target::shared as imp;
use crate::{AtomicWord, Word};
use core::marker::PhantomData;

/// An array of `T` in shared memory, as a 32-bit address in the shared window.
///
/// A Rust pointer would give generic loads and stores, which cost registers and up to 17% in kernels that depend on
/// shared memory; these are `ld.shared`/`st.shared`.
#[repr(transparent)]
pub struct Shared<T>(u32, PhantomData<*mut T>);

impl<T> Clone for Shared<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}

/// Returns the dynamic shared memory from byte `offset` on, which is a multiple of `T`'s alignment.
#[inline(always)]
#[must_use]
pub fn dynamic<T>(offset: u32) -> Shared<T> {
    Shared(imp::dynamic_base().wrapping_add(offset), PhantomData)
}

/// Returns the bytes of dynamic shared memory that the launch asked for.
#[inline(always)]
#[must_use]
pub fn dynamic_bytes() -> u32 {
    imp::dynamic_bytes()
}

impl<T> Shared<T> {
    /// Returns the array that begins at element `i`.
    #[inline(always)]
    #[must_use]
    pub fn at(self, i: u32) -> Self {
        Self(self.0.wrapping_add(i.wrapping_mul(size_of::<T>() as u32)), PhantomData)
    }

    /// Returns a handle to these bytes as elements of another type.
    #[inline(always)]
    #[must_use]
    pub fn cast<U>(self) -> Shared<U> {
        Shared(self.0, PhantomData)
    }
}

macro_rules! accesses {
    ($($doc:literal $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        #[doc = $doc]
        ///
        /// # Safety
        /// The element is inside the block's shared memory and aligned, and no other
        /// thread accesses it at the same time if either writes (without a barrier, a
        /// [`sync_warp`](crate::warp::sync_warp) or an atomic between).
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name(self, i: u32 $(, $arg: $ty)*) $(-> $ret)? {
            // SAFETY: the callee has this function's contract.
            unsafe { imp::$name(self.at(i).0 $(, $arg)*) }
        }
    )*};
}

macro_rules! atomics {
    ($($doc:literal $name:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        #[doc = $doc]
        ///
        /// # Safety
        /// The element is inside the block's shared memory and aligned, and is accessed
        /// only by atomic and volatile operations at the same time.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name(self, i: u32 $(, $arg: $ty)*) $(-> $ret)? {
            // SAFETY: the callee has this function's contract.
            unsafe { imp::$name(self.at(i).0 $(, $arg)*) }
        }
    )*};
}

impl<T: Word> Shared<T> {
    accesses! {
        "Reads element `i`. May be merged or hoisted between barriers and stores: do not poll with it." get() -> T;
        "Sets element `i`." set(value: T);
    }
    atomics! {
        "Reads element `i` again at each call; for polling, and for words that others change atomically."
            get_volatile() -> T;
        "Sets element `i`, for words that others poll or change atomically." set_volatile(value: T);
    }
}

impl Shared<u32> {
    accesses! {
        "Reads elements `i` to `i + 3` in one 128-bit load; the address is a multiple of 16." get4() -> [u32; 4];
        "Sets elements `i` to `i + 3` in one 128-bit store; the address is a multiple of 16." set4(values: [u32; 4]);
    }
}

impl Shared<u64> {
    accesses! {
        "Reads elements `i` and `i + 1` in one 128-bit load; the address is a multiple of 16." get2() -> [u64; 2];
        "Sets elements `i` and `i + 1` in one 128-bit store; the address is a multiple of 16." set2(values: [u64; 2]);
    }
}

impl<T: AtomicWord> Shared<T> {
    atomics! {
        "Adds `value` to element `i`, wrapping, and returns the old value." fetch_add(value: T) -> T;
        "ANDs `value` to element `i` and returns the old value." fetch_and(value: T) -> T;
        "ORs `value` to element `i` and returns the old value." fetch_or(value: T) -> T;
        "XORs `value` to element `i` and returns the old value." fetch_xor(value: T) -> T;
        "Takes the minimum of element `i` and `value` and returns the old value." fetch_min(value: T) -> T;
        "Takes the maximum of element `i` and `value` and returns the old value." fetch_max(value: T) -> T;
        "Sets element `i` and returns the old value." exchange(value: T) -> T;
        "Sets element `i` to `new` if it is `current`, and returns the old value."
            compare_exchange(current: T, new: T) -> T;
        "Adds `value` to element `i`, wrapping." reduce_add(value: T);
        "ANDs `value` to element `i`." reduce_and(value: T);
        "ORs `value` to element `i`." reduce_or(value: T);
        "XORs `value` to element `i`." reduce_xor(value: T);
        "Takes the minimum of element `i` and `value`." reduce_min(value: T);
        "Takes the maximum of element `i` and `value`." reduce_max(value: T);
    }
}
