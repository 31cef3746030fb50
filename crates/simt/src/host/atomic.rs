//! Atomics on global memory. Host atomics underneath, because other host threads may
//! run launches on the same buffers.
use super::engine;
use super::memory::{self, Raw};
use super::operation::{Atomic, Order};
use super::word::{AtomicWord, Modify};

macro_rules! read_modify_write {
    ($($name:ident $(, $reduce:ident)? = $op:ident;)*) => {$(
        /// # Safety
        /// The contract of the public function of this name.
        #[track_caller]
        pub unsafe fn $name<T: AtomicWord>(word: Raw<T>, value: T) -> T {
            engine::global_atomic(word, Atomic::Modify(Modify::$op, value), Order::Relaxed, false)
        }
        $(
            /// # Safety
            /// The contract of the public function of this name.
            #[track_caller]
            pub unsafe fn $reduce<T: AtomicWord>(word: Raw<T>, value: T) {
                engine::global_atomic(word, Atomic::Modify(Modify::$op, value), Order::Relaxed, true);
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

/// Exchanges the word if it equals `current`.
///
/// # Safety
/// The contract of the public function of this name.
#[track_caller]
pub unsafe fn compare_exchange<T: AtomicWord>(word: Raw<T>, current: T, new: T) -> T {
    engine::global_atomic(word, Atomic::CompareExchange(current, new), Order::Relaxed, false)
}

/// Loads the word.
///
/// # Safety
/// The contract of the public function of this name.
#[track_caller]
pub unsafe fn load_relaxed<T: AtomicWord>(word: Raw<T>) -> T {
    engine::global_atomic(word, Atomic::Load, Order::Relaxed, false)
}

/// Loads the word and acquires.
///
/// # Safety
/// The contract of the public function of this name.
#[track_caller]
pub unsafe fn load_acquire<T: AtomicWord>(word: Raw<T>) -> T {
    engine::global_atomic(word, Atomic::Load, Order::Ordered, false)
}

/// Stores the word.
///
/// # Safety
/// The contract of the public function of this name.
#[track_caller]
pub unsafe fn store_relaxed<T: AtomicWord>(word: Raw<T>, value: T) {
    engine::global_atomic(word, Atomic::Store(value), Order::Relaxed, true);
}

/// Stores the word and releases.
///
/// # Safety
/// The contract of the public function of this name.
#[track_caller]
pub unsafe fn store_release<T: AtomicWord>(word: Raw<T>, value: T) {
    engine::global_atomic(word, Atomic::Store(value), Order::Ordered, false);
}

/// Loads two words.
///
/// # Safety
/// The contract of the public function of this name.
#[track_caller]
pub unsafe fn load_relaxed2(words: Raw<u64>) -> [u64; 2] {
    engine::check_pair(words);
    [0, 1].map(|i| engine::global_atomic(memory::at(words, i), Atomic::Load, Order::Relaxed, false))
}

/// Stores two words.
///
/// # Safety
/// The contract of the public function of this name.
#[track_caller]
pub unsafe fn store_relaxed2(words: Raw<u64>, values: [u64; 2]) {
    engine::check_pair(words);
    for (i, value) in values.into_iter().enumerate() {
        engine::global_atomic(memory::at(words, i), Atomic::Store(value), Order::Relaxed, true);
    }
}
