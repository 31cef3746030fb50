//! Engine without the emulator: functions for kernels type-check on the host, and panic if host code calls them.
use super::memory::Raw;
use super::operation::{AccessKind, Atomic, BarrierOp, Collective, Order, Scope, Shape};
use super::word::AtomicWord;

/// Stand-in for the running thread, which does not exist without the emulator.
pub struct Engine {
    pub shape: Shape,
}

impl Engine {
    pub fn steps(&self) -> u64 {
        trap()
    }

    pub fn shared_bytes(&self) -> u32 {
        trap()
    }
}

pub fn with<R>(_: impl FnOnce(&mut Engine) -> R) -> R {
    trap()
}

#[track_caller]
pub fn trap() -> ! {
    panic!("this function is for kernels, which the host runs with the feature `emulator` of warpset-simt only")
}

macro_rules! operations {
    ($($name:ident $(<$word:ident>)? ($($ty:ty),*) $(-> $ret:ty)?;)*) => {$(
        #[track_caller]
        pub fn $name $(<$word: AtomicWord>)? ($(_: $ty),*) $(-> $ret)? {
            trap()
        }
    )*};
}

operations! {
    barrier(BarrierOp, bool) -> u32;
    check_pair(Raw<u64>);
    collective(Collective, u32, u64, u32) -> u64;
    fence(Scope);
    global_access(usize, usize, usize, usize, usize, usize, AccessKind);
    global_atomic<T>(Raw<T>, Atomic<T>, Order, bool) -> T;
    preempt();
    shared_access(u32, usize, AccessKind) -> *mut u8;
    shared_atomic<T>(u32, Atomic<T>) -> T;
    shared_volatile(u32, bool);
    spin();
}
