//! Loads, stores and atomics of each scalar type.
use core::arch::asm;
use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

pub trait Word: Copy + 'static {
    /// Reads `*pointer` through the read-only cache.
    ///
    /// # Safety
    /// `pointer` is valid for reads, and no thread writes the word while the kernel runs.
    unsafe fn load_nc(pointer: *const Self) -> Self;
    /// Reads an element of shared memory.
    ///
    /// # Safety
    /// The element at `address` is in the block's shared memory.
    unsafe fn load_shared(address: u32) -> Self;
    /// Writes an element of shared memory.
    ///
    /// # Safety
    /// The element at `address` is in the block's shared memory.
    unsafe fn store_shared(address: u32, value: Self);
    /// Reads an element of shared memory in every execution.
    ///
    /// # Safety
    /// The element at `address` is in the block's shared memory.
    unsafe fn load_shared_volatile(address: u32) -> Self;
    /// Writes an element of shared memory in every execution.
    ///
    /// # Safety
    /// The element at `address` is in the block's shared memory.
    unsafe fn store_shared_volatile(address: u32, value: Self);
}

/// The value of a register as the scalar: narrow types travel in 32-bit registers.
macro_rules! word {
    ($($ty:ty, $carrier:ty, $reg:ident, $suffix:literal;)*) => {$(
        impl Word for $ty {
            #[inline(always)]
            unsafe fn load_nc(pointer: *const Self) -> Self {
                let value: $carrier;
                // SAFETY: `pointer` is valid, by this function's contract.
                unsafe {
                    asm!(concat!("ld.global.nc.", $suffix, " {v}, [{p}];"), v = out($reg) value, p = in(reg64) pointer,
                         options(pure, readonly, nostack, preserves_flags));
                }
                value as $ty
            }
            #[inline(always)]
            unsafe fn load_shared(address: u32) -> Self {
                let value: $carrier;
                // SAFETY: `address` is valid, by this function's contract.
                unsafe {
                    asm!(concat!("ld.shared.", $suffix, " {v}, [{a}];"), v = out($reg) value, a = in(reg32) address,
                         options(pure, readonly, nostack, preserves_flags));
                }
                value as $ty
            }
            #[inline(always)]
            unsafe fn store_shared(address: u32, value: Self) {
                // SAFETY: `address` is valid, by this function's contract.
                unsafe {
                    asm!(concat!("st.shared.", $suffix, " [{a}], {v};"), v = in($reg) value as $carrier,
                         a = in(reg32) address, options(nostack, preserves_flags));
                }
            }
            #[inline(always)]
            unsafe fn load_shared_volatile(address: u32) -> Self {
                let value: $carrier;
                // SAFETY: `address` is valid, by this function's contract.
                unsafe {
                    asm!(concat!("ld.volatile.shared.", $suffix, " {v}, [{a}];"), v = out($reg) value,
                         a = in(reg32) address, options(nostack, preserves_flags));
                }
                value as $ty
            }
            #[inline(always)]
            unsafe fn store_shared_volatile(address: u32, value: Self) {
                // SAFETY: `address` is valid, by this function's contract.
                unsafe {
                    asm!(concat!("st.volatile.shared.", $suffix, " [{a}], {v};"), v = in($reg) value as $carrier,
                         a = in(reg32) address, options(nostack, preserves_flags));
                }
            }
        }
    )*};
}

word! {
    u8, u32, reg32, "u8";
    i8, i32, reg32, "s8";
    u16, u32, reg32, "u16";
    i16, i32, reg32, "s16";
    u32, u32, reg32, "u32";
    i32, i32, reg32, "s32";
    f32, f32, reg32, "f32";
    u64, u64, reg64, "u64";
    i64, i64, reg64, "s64";
    f64, f64, reg64, "f64";
}

/// Two words of 64 bits in one access.
macro_rules! two_words {
    (@load $name:ident, $pointer:ty, $reg:ident, $op:literal, $($option:ident)*) => {
        #[inline(always)]
        unsafe fn $name(pointer: $pointer) -> Self {
            let (low, high): (u64, u64);
            // SAFETY: `pointer` is valid, by this function's contract.
            unsafe {
                asm!(concat!($op, " {{{l}, {h}}}, [{p}];"), l = out(reg64) low, h = out(reg64) high,
                     p = in($reg) pointer, options($($option,)* nostack, preserves_flags));
            }
            u128::from(high) << 64 | u128::from(low)
        }
    };
    (@store $name:ident, $op:literal) => {
        #[inline(always)]
        unsafe fn $name(address: u32, value: Self) {
            // SAFETY: `address` is valid, by this function's contract.
            unsafe {
                asm!(concat!($op, " [{a}], {{{l}, {h}}};"), a = in(reg32) address, l = in(reg64) value as u64,
                     h = in(reg64) (value >> 64) as u64, options(nostack, preserves_flags));
            }
        }
    };
}

impl Word for u128 {
    two_words!(@load load_nc, *const Self, reg64, "ld.global.nc.v2.u64", pure readonly);
    two_words!(@load load_shared, u32, reg32, "ld.shared.v2.u64", pure readonly);
    two_words!(@store store_shared, "st.shared.v2.u64");
    two_words!(@load load_shared_volatile, u32, reg32, "ld.volatile.shared.v2.u64",);
    two_words!(@store store_shared_volatile, "st.volatile.shared.v2.u64");
}

pub trait ShuffleWord: Word {
    /// Applies `f` to each part of 32 bits.
    fn by_halves(self, f: impl Fn(u32) -> u32) -> Self;
}

macro_rules! shuffle_32 {
    ($($ty:ty, $to:expr, $from:expr;)*) => {$(
        impl ShuffleWord for $ty {
            #[inline(always)]
            fn by_halves(self, f: impl Fn(u32) -> u32) -> Self {
                $from(f($to(self)))
            }
        }
    )*};
}

macro_rules! shuffle_64 {
    ($($ty:ty, $to:expr, $from:expr;)*) => {$(
        impl ShuffleWord for $ty {
            #[inline(always)]
            fn by_halves(self, f: impl Fn(u32) -> u32) -> Self {
                let bits: u64 = $to(self);
                let low = f(bits as u32);
                let high = f((bits >> 32) as u32);
                $from(u64::from(high) << 32 | u64::from(low))
            }
        }
    )*};
}

shuffle_32! {
    u32, |x| x, |x| x;
    i32, |x| x as u32, |x| x as i32;
    f32, f32::to_bits, f32::from_bits;
}

impl ShuffleWord for u128 {
    #[inline(always)]
    fn by_halves(self, f: impl Fn(u32) -> u32) -> Self {
        let low = (self as u64).by_halves(&f);
        let high = ((self >> 64) as u64).by_halves(&f);
        u128::from(high) << 64 | u128::from(low)
    }
}

shuffle_64! {
    u64, |x| x, |x| x;
    i64, |x| x as u64, |x| x as i64;
    f64, f64::to_bits, f64::from_bits;
}

pub trait MatchWord: Word {
    fn bits(self) -> u64;
}

macro_rules! match_word {
    ($($ty:ty, $unsigned:ty;)*) => {$(
        impl MatchWord for $ty {
            #[inline(always)]
            fn bits(self) -> u64 {
                self as $unsigned as u64
            }
        }
    )*};
}

match_word! { u32, u32; i32, u32; u64, u64; i64, u64; }

macro_rules! atomic_trait {
    (global: $($global:ident)*; shared: $($shared:ident)*; reduce: $($reduce:ident)*;) => {
        pub trait AtomicWord: Word {
            $(
                /// # Safety
                /// `pointer` is to a valid word of global memory.
                unsafe fn $global(pointer: *mut Self, value: Self) -> Self;
            )*
            /// Exchanges the word if it equals `current`.
            ///
            /// # Safety
            /// `pointer` is valid and aligned, and only accessed atomically.
            unsafe fn compare_exchange(pointer: *mut Self, current: Self, new: Self) -> Self;
            /// Loads the word.
            ///
            /// # Safety
            /// `pointer` is valid and aligned, and only accessed atomically.
            unsafe fn load_relaxed(pointer: *const Self) -> Self;
            /// Loads the word and acquires.
            ///
            /// # Safety
            /// `pointer` is valid and aligned, and only accessed atomically.
            unsafe fn load_acquire(pointer: *const Self) -> Self;
            /// Stores the word.
            ///
            /// # Safety
            /// `pointer` is valid and aligned, and only accessed atomically.
            unsafe fn store_relaxed(pointer: *mut Self, value: Self);
            /// Stores the word and releases.
            ///
            /// # Safety
            /// `pointer` is valid and aligned, and only accessed atomically.
            unsafe fn store_release(pointer: *mut Self, value: Self);
            $(
                /// # Safety
                /// `address` is a word of shared memory.
                unsafe fn $shared(address: u32, value: Self) -> Self;
            )*
            /// Exchanges the element of shared memory if it equals `current`.
            ///
            /// # Safety
            /// The element at `address` is in the block's shared memory, aligned, and only accessed atomically.
            unsafe fn shared_compare_exchange(address: u32, current: Self, new: Self) -> Self;
            $(
                /// # Safety
                /// The element at `address` is in the block's shared memory, aligned, and only accessed atomically.
                unsafe fn $reduce(address: u32, value: Self);
            )*
        }
    };
}

atomic_trait! {
    global: fetch_add fetch_and fetch_or fetch_xor fetch_min fetch_max exchange;
    shared: shared_fetch_add shared_fetch_and shared_fetch_or shared_fetch_xor shared_fetch_min shared_fetch_max
        shared_exchange;
    reduce: shared_reduce_add shared_reduce_and shared_reduce_or shared_reduce_xor shared_reduce_min
        shared_reduce_max;
}

/// Wrapping sums and bit operations are those of the unsigned type; order is the type's own.
macro_rules! atomic_word {
    ($($ty:ty, $atomic:ident, $reg:ident, $load:literal, $bits:literal, $add:literal, $order:literal;)*) => {$(
        impl AtomicWord for $ty {
            atomic_word!(@global $atomic, fetch_add fetch_add, fetch_and fetch_and, fetch_or fetch_or,
                fetch_xor fetch_xor, fetch_min fetch_min, fetch_max fetch_max, exchange swap);

            #[inline(always)]
            unsafe fn compare_exchange(pointer: *mut Self, current: Self, new: Self) -> Self {
                let old: $ty;
                // SAFETY: `pointer` is valid, by this function's contract.
                unsafe {
                    asm!(concat!("atom.relaxed.gpu.global.cas.", $bits, " {o}, [{p}], {c}, {n};"), o = out($reg) old,
                         p = in(reg64) pointer, c = in($reg) current, n = in($reg) new,
                         options(nostack, preserves_flags));
                }
                old
            }
            atomic_word!(@load $reg, load_relaxed, concat!("ld.relaxed.gpu.global.", $load));
            atomic_word!(@load $reg, load_acquire, concat!("ld.acquire.gpu.global.", $load));
            atomic_word!(@store $reg, store_relaxed, concat!("st.relaxed.gpu.global.", $load));
            atomic_word!(@store $reg, store_release, concat!("st.release.gpu.global.", $load));

            atomic_word!(@shared $reg, shared_fetch_add shared_reduce_add, "add", $add);
            atomic_word!(@shared $reg, shared_fetch_and shared_reduce_and, "and", $bits);
            atomic_word!(@shared $reg, shared_fetch_or shared_reduce_or, "or", $bits);
            atomic_word!(@shared $reg, shared_fetch_xor shared_reduce_xor, "xor", $bits);
            atomic_word!(@shared $reg, shared_fetch_min shared_reduce_min, "min", $order);
            atomic_word!(@shared $reg, shared_fetch_max shared_reduce_max, "max", $order);

            #[inline(always)]
            unsafe fn shared_exchange(address: u32, value: Self) -> Self {
                let old: $ty;
                // SAFETY: `address` is valid, by this function's contract.
                unsafe {
                    asm!(concat!("atom.relaxed.cta.shared.exch.", $bits, " {o}, [{a}], {v};"), o = out($reg) old,
                         a = in(reg32) address, v = in($reg) value, options(nostack, preserves_flags));
                }
                old
            }
            #[inline(always)]
            unsafe fn shared_compare_exchange(address: u32, current: Self, new: Self) -> Self {
                let old: $ty;
                // SAFETY: `address` is valid, by this function's contract.
                unsafe {
                    asm!(concat!("atom.relaxed.cta.shared.cas.", $bits, " {o}, [{a}], {c}, {n};"), o = out($reg) old,
                         a = in(reg32) address, c = in($reg) current, n = in($reg) new,
                         options(nostack, preserves_flags));
                }
                old
            }
        }
    )*};
    (@global $atomic:ident, $($name:ident $method:ident),*) => {$(
        #[inline(always)]
        unsafe fn $name(pointer: *mut Self, value: Self) -> Self {
            // SAFETY: `pointer` is valid, by this function's contract.
            unsafe { $atomic::from_ptr(pointer) }.$method(value, Relaxed)
        }
    )*};
    (@load $reg:ident, $name:ident, $op:expr) => {
        #[inline(always)]
        unsafe fn $name(pointer: *const Self) -> Self {
            let value: Self;
            // SAFETY: `pointer` is valid, by this function's contract. Not `pure`: a poll must not be hoisted.
            unsafe {
                asm!(concat!($op, " {v}, [{p}];"), v = out($reg) value, p = in(reg64) pointer,
                     options(nostack, preserves_flags));
            }
            value
        }
    };
    (@store $reg:ident, $name:ident, $op:expr) => {
        #[inline(always)]
        unsafe fn $name(pointer: *mut Self, value: Self) {
            // SAFETY: `pointer` is valid, by this function's contract.
            unsafe {
                asm!(concat!($op, " [{p}], {v};"), v = in($reg) value, p = in(reg64) pointer,
                     options(nostack, preserves_flags));
            }
        }
    };
    (@shared $reg:ident, $fetch:ident $reduce:ident, $op:literal, $suffix:literal) => {
        #[inline(always)]
        unsafe fn $fetch(address: u32, value: Self) -> Self {
            let old: Self;
            // SAFETY: `address` is valid, by this function's contract.
            unsafe {
                asm!(concat!("atom.relaxed.cta.shared.", $op, ".", $suffix, " {o}, [{a}], {v};"), o = out($reg) old,
                     a = in(reg32) address, v = in($reg) value, options(nostack, preserves_flags));
            }
            old
        }
        #[inline(always)]
        unsafe fn $reduce(address: u32, value: Self) {
            // SAFETY: `address` is valid, by this function's contract.
            unsafe {
                asm!(concat!("red.relaxed.cta.shared.", $op, ".", $suffix, " [{a}], {v};"), a = in(reg32) address,
                     v = in($reg) value, options(nostack, preserves_flags));
            }
        }
    };
}

atomic_word! {
    u32, AtomicU32, reg32, "u32", "b32", "u32", "u32";
    i32, AtomicI32, reg32, "s32", "b32", "s32", "s32";
    u64, AtomicU64, reg64, "u64", "b64", "u64", "u64";
    i64, AtomicI64, reg64, "s64", "b64", "u64", "s64";
}
