//! Shared memory by `ld.shared` and `st.shared` on 32-bit addresses.
use super::word::{AtomicWord, Word};
use core::arch::{asm, global_asm};

global_asm!(".extern .shared .align 128 .b8 WARPSET_SHARED[];");

unsafe extern "C" {
    #[link_name = "llvm.nvvm.read.ptx.sreg.dynamic_smem_size"]
    fn dynamic_smem_size() -> u32;
}

#[inline(always)]
pub fn dynamic_base() -> u32 {
    let base: u32;
    // SAFETY: takes an address.
    unsafe { asm!("mov.u32 {}, WARPSET_SHARED;", out(reg32) base, options(pure, nomem, nostack, preserves_flags)) };
    base
}

#[inline(always)]
pub fn dynamic_bytes() -> u32 {
    // SAFETY: reads a special register.
    unsafe { dynamic_smem_size() }
}

macro_rules! forward {
    ($bound:ident: $($name:ident as $method:ident ($($arg:ident),*) $(-> $ret:ident)?;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $name<T: $bound>(address: u32 $(, $arg: T)*) $(-> $ret)? {
            // SAFETY: the element at `address` is valid, by this function's contract.
            unsafe { T::$method(address $(, $arg)*) }
        }
    )*};
}

forward! { Word:
    get as load_shared() -> T;
    set as store_shared(value);
    get_volatile as load_shared_volatile() -> T;
    set_volatile as store_shared_volatile(value);
}

forward! { AtomicWord:
    fetch_add as shared_fetch_add(value) -> T;
    fetch_and as shared_fetch_and(value) -> T;
    fetch_or as shared_fetch_or(value) -> T;
    fetch_xor as shared_fetch_xor(value) -> T;
    fetch_min as shared_fetch_min(value) -> T;
    fetch_max as shared_fetch_max(value) -> T;
    exchange as shared_exchange(value) -> T;
    compare_exchange as shared_compare_exchange(current, new) -> T;
    reduce_add as shared_reduce_add(value);
    reduce_and as shared_reduce_and(value);
    reduce_or as shared_reduce_or(value);
    reduce_xor as shared_reduce_xor(value);
    reduce_min as shared_reduce_min(value);
    reduce_max as shared_reduce_max(value);
}

macro_rules! vector {
    ($ty:ty, $reg:ident, $n:literal, $get:ident, $set:ident, $suffix:literal, $regs:literal, $($v:ident),*) => {
        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $get(address: u32) -> [$ty; $n] {
            $(let $v: $ty;)*
            // SAFETY: the elements are valid and aligned, by this function's contract.
            unsafe {
                asm!(concat!("ld.shared.", $suffix, " ", $regs, ", [{p}];"), p = in(reg32) address,
                     $($v = out($reg) $v,)* options(pure, readonly, nostack, preserves_flags));
            }
            [$($v),*]
        }

        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $set(address: u32, [$($v),*]: [$ty; $n]) {
            // SAFETY: the elements are valid and aligned, by this function's contract.
            unsafe {
                asm!(concat!("st.shared.", $suffix, " [{p}], ", $regs, ";"), p = in(reg32) address,
                     $($v = in($reg) $v,)* options(nostack, preserves_flags));
            }
        }
    };
}

vector!(u32, reg32, 4, get4, set4, "v4.u32", "{{{a}, {b}, {c}, {d}}}", a, b, c, d);
vector!(u64, reg64, 2, get2, set2, "v2.u64", "{{{a}, {b}}}", a, b);
