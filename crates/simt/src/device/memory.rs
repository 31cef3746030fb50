//! Global memory. A handle is one pointer, so that LLVM keeps its address space.
use super::word::Word;
use core::arch::asm;

#[repr(transparent)]
pub struct Raw<T>(*mut T);

impl<T> Clone for Raw<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Raw<T> {}

impl<T> Raw<T> {
    #[inline(always)]
    pub fn pointer(self) -> *mut T {
        self.0
    }
}

#[inline(always)]
pub fn at_address<T>(address: u64, _len: usize) -> Raw<T> {
    Raw(core::ptr::with_exposed_provenance_mut(address as usize))
}

#[inline(always)]
pub fn at<T>(raw: Raw<T>, i: usize) -> Raw<T> {
    Raw(raw.0.wrapping_add(i))
}

#[inline(always)]
pub fn cast<T, U>(raw: Raw<T>) -> Raw<U> {
    Raw(raw.0.cast())
}

/// Reads element `i`.
///
/// # Safety
/// The contract of [`Global::read`](crate::Global::read).
#[inline(always)]
pub unsafe fn read<T: Copy>(raw: Raw<T>, i: usize) -> T {
    // SAFETY: `i` is below the length, by this function's contract.
    unsafe { *raw.0.add(i) }
}

/// Sets element `i`.
///
/// # Safety
/// The contract of [`GlobalMut::write`](crate::GlobalMut::write).
#[inline(always)]
pub unsafe fn write<T: Copy>(raw: Raw<T>, i: usize, value: T) {
    // SAFETY: `i` is below the length, by this function's contract.
    unsafe { *raw.0.add(i) = value }
}

/// Reads element `i` through the read-only cache.
///
/// # Safety
/// The contract of [`Global::read_nc`](crate::Global::read_nc).
#[inline(always)]
pub unsafe fn read_nc<T: Word>(raw: Raw<T>, i: usize) -> T {
    // SAFETY: `i` is below the length, and no thread writes the element, by this function's contract.
    unsafe { T::load_nc(raw.0.add(i)) }
}

/// Prefetches element `i`.
///
/// # Safety
/// The contract of [`Global::prefetch_l2`](crate::Global::prefetch_l2).
#[inline(always)]
pub unsafe fn prefetch_l2<T>(raw: Raw<T>, i: usize) {
    // SAFETY: `i` is below the length, by this function's contract, so the address is inside an allocation.
    unsafe { asm!("prefetch.global.L2 [{p}];", p = in(reg64) raw.0.add(i), options(nostack, preserves_flags)) };
}

macro_rules! vector {
    ($ty:ty, $reg:ident, $n:literal, $load:ident, $nc:ident, $store:ident, $suffix:literal, $regs:literal, $($v:ident),*) => {
        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $load(raw: Raw<$ty>, i: usize) -> [$ty; $n] {
            $(let $v: $ty;)*
            // SAFETY: the elements are valid and aligned, by this function's contract.
            unsafe {
                asm!(concat!("ld.global.", $suffix, " ", $regs, ", [{p}];"), p = in(reg64) raw.0.add(i),
                     $($v = out($reg) $v,)* options(pure, readonly, nostack, preserves_flags));
            }
            [$($v),*]
        }

        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $nc(raw: Raw<$ty>, i: usize) -> [$ty; $n] {
            $(let $v: $ty;)*
            // SAFETY: the elements are valid, aligned and not written, by this function's contract.
            unsafe {
                asm!(concat!("ld.global.nc.", $suffix, " ", $regs, ", [{p}];"), p = in(reg64) raw.0.add(i),
                     $($v = out($reg) $v,)* options(pure, readonly, nostack, preserves_flags));
            }
            [$($v),*]
        }

        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $store(raw: Raw<$ty>, i: usize, [$($v),*]: [$ty; $n]) {
            // SAFETY: the elements are valid and aligned, by this function's contract.
            unsafe {
                asm!(concat!("st.global.", $suffix, " [{p}], ", $regs, ";"), p = in(reg64) raw.0.add(i),
                     $($v = in($reg) $v,)* options(nostack, preserves_flags));
            }
        }
    };
}

vector!(u32, reg32, 4, read4, read4_nc, write4, "v4.u32", "{{{a}, {b}, {c}, {d}}}", a, b, c, d);
vector!(u64, reg64, 2, read2, read2_nc, write2, "v2.u64", "{{{a}, {b}}}", a, b);

/// Reads two elements once.
///
/// # Safety
/// The contract of [`Global::read2_nc_once`](crate::Global::read2_nc_once).
#[inline(always)]
pub unsafe fn read2_nc_once(raw: Raw<u64>, i: usize) -> [u64; 2] {
    let (a, b): (u64, u64);
    // SAFETY: the elements are valid, aligned and not written, by this function's contract.
    unsafe {
        asm!(
            "{{",
            ".reg .b64 policy;",
            "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;",
            "ld.global.nc.L2::cache_hint.v2.u64 {{{a}, {b}}}, [{p}], policy;",
            "}}",
            p = in(reg64) raw.0.add(i), a = out(reg64) a, b = out(reg64) b,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    [a, b]
}
