//! Atomics on global memory.
use super::memory::Raw;
use super::word::AtomicWord;
use core::arch::asm;

macro_rules! read_modify_write {
    ($($name:ident $(, $reduce:ident)?;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $name<T: AtomicWord>(word: Raw<T>, value: T) -> T {
            // SAFETY: the word is valid, by this function's contract.
            unsafe { T::$name(word.pointer(), value) }
        }
        $(
            /// # Safety
            /// The contract of the public function of this name.
            #[inline(always)]
            pub unsafe fn $reduce<T: AtomicWord>(word: Raw<T>, value: T) {
                // SAFETY: the word is valid, by this function's contract. ptxas makes a RED of an unused result.
                unsafe { T::$name(word.pointer(), value) };
            }
        )?
    )*};
}

read_modify_write! {
    fetch_add, reduce_add;
    fetch_and, reduce_and;
    fetch_or, reduce_or;
    fetch_xor, reduce_xor;
    fetch_min, reduce_min;
    fetch_max, reduce_max;
    exchange;
}

/// Exchanges the word if it equals `current`.
///
/// # Safety
/// The contract of the public function of this name.
#[inline(always)]
pub unsafe fn compare_exchange<T: AtomicWord>(word: Raw<T>, current: T, new: T) -> T {
    // SAFETY: the word is valid, by this function's contract.
    unsafe { T::compare_exchange(word.pointer(), current, new) }
}

macro_rules! loads {
    ($($name:ident;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $name<T: AtomicWord>(word: Raw<T>) -> T {
            // SAFETY: the word is valid, by this function's contract.
            unsafe { T::$name(word.pointer()) }
        }
    )*};
}

macro_rules! stores {
    ($($name:ident;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[inline(always)]
        pub unsafe fn $name<T: AtomicWord>(word: Raw<T>, value: T) {
            // SAFETY: the word is valid, by this function's contract.
            unsafe { T::$name(word.pointer(), value) }
        }
    )*};
}

loads! { load_relaxed; load_acquire; }
stores! { store_relaxed; store_release; }

/// Loads two words.
///
/// # Safety
/// The contract of the public function of this name.
#[inline(always)]
pub unsafe fn load_relaxed2(words: Raw<u64>) -> [u64; 2] {
    let (a, b);
    // SAFETY: the words are valid and aligned, by this function's contract. Not `pure`: a poll must not be hoisted.
    unsafe {
        asm!("ld.relaxed.gpu.global.v2.u64 {{{a}, {b}}}, [{p}];", p = in(reg64) words.pointer(), a = out(reg64) a,
             b = out(reg64) b, options(nostack, preserves_flags));
    }
    [a, b]
}

/// Stores two words.
///
/// # Safety
/// The contract of the public function of this name.
#[inline(always)]
pub unsafe fn store_relaxed2(words: Raw<u64>, [a, b]: [u64; 2]) {
    // SAFETY: the words are valid and aligned, by this function's contract.
    unsafe {
        asm!("st.relaxed.gpu.global.v2.u64 [{p}], {{{a}, {b}}};", p = in(reg64) words.pointer(), a = in(reg64) a,
             b = in(reg64) b, options(nostack, preserves_flags));
    }
}
