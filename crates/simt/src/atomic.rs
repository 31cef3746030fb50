//! Atomic operations on global memory, at device scope.
//!
//! Each works on the word that its handle points at: `atomic::fetch_or(words.at(i), bit)`.
//! All read-modify-writes are relaxed (the device's compiler drops any other
//! ordering): put a [`fence`](crate::fence) where one is needed. The `reduce_*` forms
//! return nothing and are cheaper on the device.
use crate::target::atomic as imp;
use crate::{AtomicWord, Global, GlobalMut};

/// A handle that [`load_relaxed`] and [`load_acquire`] can read: [`Global`] or [`GlobalMut`]. Sealed.
pub trait Place: private::Place {}
impl<P: private::Place> Place for P {}

mod private {
    use super::{AtomicWord, Global, GlobalMut};
    pub trait Place: Copy {
        type Word: AtomicWord;
        fn place(self) -> Global<Self::Word>;
    }
    impl<T: AtomicWord> Place for Global<T> {
        type Word = T;
        #[inline(always)]
        fn place(self) -> Global<T> {
            self
        }
    }
    impl<T: AtomicWord> Place for GlobalMut<T> {
        type Word = T;
        #[inline(always)]
        fn place(self) -> Global<T> {
            self.as_const()
        }
    }
}

macro_rules! read_modify_write {
    ($($doc:literal $name:ident $(, $reduce:ident)?;)*) => {$(
        #[doc = concat!($doc, " Returns the old value.")]
        ///
        /// # Safety
        /// `word` points at a valid, aligned word that is accessed only by atomic operations
        /// at the same time.
        #[inline(always)]
        #[track_caller]
        pub unsafe fn $name<T: AtomicWord>(word: GlobalMut<T>, value: T) -> T {
            // SAFETY: the callee has this function's contract.
            unsafe { imp::$name(word.0, value) }
        }

        $(
            #[doc = concat!("[`", stringify!($name), "`] without a result.")]
            ///
            /// # Safety
            /// As for the form with a result.
            #[inline(always)]
            #[track_caller]
            pub unsafe fn $reduce<T: AtomicWord>(word: GlobalMut<T>, value: T) {
                // SAFETY: the callee has this function's contract.
                unsafe { imp::$reduce(word.0, value) }
            }
        )?
    )*};
}

read_modify_write! {
    "Adds `value`, wrapping." fetch_add, reduce_add;
    "ANDs with `value`." fetch_and, reduce_and;
    "ORs with `value`." fetch_or, reduce_or;
    "XORs with `value`." fetch_xor, reduce_xor;
    "Takes the minimum with `value`." fetch_min, reduce_min;
    "Takes the maximum with `value`." fetch_max, reduce_max;
    "Sets to `value`." exchange;
}

/// Sets the word to `new` if it is `current`. Returns the old value.
///
/// # Safety
/// `word` points at a valid, aligned word that is accessed only by atomic operations
/// at the same time.
#[inline(always)]
#[track_caller]
pub unsafe fn compare_exchange<T: AtomicWord>(word: GlobalMut<T>, current: T, new: T) -> T {
    // SAFETY: the callee has this function's contract.
    unsafe { imp::compare_exchange(word.0, current, new) }
}

/// Reads the word, relaxed. Good for polling: never merged or hoisted.
///
/// # Safety
/// `word` points at a valid, aligned word; while the operation runs, other threads write it only by atomic operations.
#[inline(always)]
#[track_caller]
pub unsafe fn load_relaxed<P: Place>(word: P) -> P::Word {
    // SAFETY: the callee has this function's contract.
    unsafe { imp::load_relaxed(word.place().0) }
}

/// Reads the word. Writes before the [`store_release`] of the value read are visible afterwards.
///
/// # Safety
/// As for [`load_relaxed`].
#[inline(always)]
#[track_caller]
pub unsafe fn load_acquire<P: Place>(word: P) -> P::Word {
    // SAFETY: the callee has this function's contract.
    unsafe { imp::load_acquire(word.place().0) }
}

/// Sets the word, relaxed.
///
/// # Safety
/// `word` points at a valid, aligned word that is accessed only by atomic operations
/// at the same time.
#[inline(always)]
#[track_caller]
pub unsafe fn store_relaxed<T: AtomicWord>(word: GlobalMut<T>, value: T) {
    // SAFETY: the callee has this function's contract.
    unsafe { imp::store_relaxed(word.0, value) }
}

/// Sets the word after everything that this thread wrote before, for the threads that read it by [`load_acquire`].
///
/// # Safety
/// As for [`store_relaxed`].
#[inline(always)]
#[track_caller]
pub unsafe fn store_release<T: AtomicWord>(word: GlobalMut<T>, value: T) {
    // SAFETY: the callee has this function's contract.
    unsafe { imp::store_release(word.0, value) }
}

/// Reads two neighbouring words in one 128-bit access, each as by [`load_relaxed`]: both are whole, but the two need
/// not be of the same moment.
///
/// # Safety
/// As for [`load_relaxed`], for both; the address is a multiple of 16.
#[inline(always)]
#[track_caller]
pub unsafe fn load_relaxed2<P: Place<Word = u64>>(words: P) -> [u64; 2] {
    // SAFETY: the callee has this function's contract.
    unsafe { imp::load_relaxed2(words.place().0) }
}

/// Sets two neighbouring words in one 128-bit access, each as by [`store_relaxed`]: another thread may see one of them
/// without the other.
///
/// # Safety
/// As for [`store_relaxed`], for both; the address is a multiple of 16.
#[inline(always)]
#[track_caller]
pub unsafe fn store_relaxed2(words: GlobalMut<u64>, values: [u64; 2]) {
    // SAFETY: the callee has this function's contract.
    unsafe { imp::store_relaxed2(words.0, values) }
}
