//! Scans and reductions of a warp and of a block by any [`Operator`].

use warpset_core::scan::{Count, Flagged, Lift, Operator, Runs};
use warpset_simt::shared::Shared;
use warpset_simt::thread;
use warpset_simt::warp::{self, FULL_MASK, WARP_SIZE};

/// A value that lanes and shared memory can pass on.
pub trait Value: Copy + 'static {
    /// Bytes in shared memory, a multiple of 4; of 8 where the value has a field of 64 bits.
    const SHARED_BYTES: u32;

    /// Returns the value of the lane `delta` before, or its own if there is none.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    unsafe fn shuffle_up(self, delta: u32) -> Self;
    /// Returns the value of the lane `delta` after, or its own if there is none.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    unsafe fn shuffle_down(self, delta: u32) -> Self;
    /// Returns the value of `lane`, below 32.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    unsafe fn shuffle_idx(self, lane: u32) -> Self;
    /// Writes it to `at`.
    ///
    /// # Safety
    /// `at` has room for the value, aligned as [`SHARED_BYTES`](Self::SHARED_BYTES) requires, and no other thread
    /// accesses it at that time.
    unsafe fn to_shared(self, at: Shared<u32>);
    /// Reads it from `at`.
    ///
    /// # Safety
    /// A value was written there, and no other thread writes there at that time.
    unsafe fn from_shared(at: Shared<u32>) -> Self;
}

macro_rules! scalars {
    ($($scalar:ty)*) => {$(
        impl Value for $scalar {
            const SHARED_BYTES: u32 = size_of::<$scalar>() as u32;
            #[inline(always)]
            #[track_caller]
            unsafe fn shuffle_up(self, delta: u32) -> Self {
                // SAFETY: the callee has this function's contract.
                unsafe { warp::shuffle_up(FULL_MASK, self, delta) }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn shuffle_down(self, delta: u32) -> Self {
                // SAFETY: the callee has this function's contract.
                unsafe { warp::shuffle_down(FULL_MASK, self, delta) }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn shuffle_idx(self, lane: u32) -> Self {
                // SAFETY: the callee has this function's contract.
                unsafe { warp::shuffle_idx(FULL_MASK, self, lane) }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn to_shared(self, at: Shared<u32>) {
                // SAFETY: the callee has this function's contract.
                unsafe { at.cast::<$scalar>().set(0, self) }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn from_shared(at: Shared<u32>) -> Self {
                // SAFETY: the callee has this function's contract.
                unsafe { at.cast::<$scalar>().get(0) }
            }
        }
    )*};
}
scalars! { u32 i32 f32 u64 i64 f64 }

/// Two halves of 64 bits, which need no more than their alignment.
impl Value for u128 {
    const SHARED_BYTES: u32 = 16;
    #[inline(always)]
    #[track_caller]
    unsafe fn shuffle_up(self, delta: u32) -> Self {
        // SAFETY: the callee has this function's contract.
        unsafe { warp::shuffle_up(FULL_MASK, self, delta) }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn shuffle_down(self, delta: u32) -> Self {
        // SAFETY: the callee has this function's contract.
        unsafe { warp::shuffle_down(FULL_MASK, self, delta) }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn shuffle_idx(self, lane: u32) -> Self {
        // SAFETY: the callee has this function's contract.
        unsafe { warp::shuffle_idx(FULL_MASK, self, lane) }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn to_shared(self, at: Shared<u32>) {
        // SAFETY: the 16 bytes from `at` on are valid and aligned to 8, by this function's contract.
        unsafe {
            at.cast::<u64>().set(0, self as u64);
            at.cast::<u64>().set(1, (self >> 64) as u64);
        }
    }
    #[inline(always)]
    #[track_caller]
    unsafe fn from_shared(at: Shared<u32>) -> Self {
        // SAFETY: the 16 bytes from `at` on are valid and aligned to 8, by this function's contract.
        unsafe { u128::from(at.cast::<u64>().get(1)) << 64 | u128::from(at.cast::<u64>().get(0)) }
    }
}

/// Field by field: each with its conversions to and from a scalar, and its offset in shared memory.
macro_rules! fields {
    ([$($generic:ident)?] $value:ty, $bytes:expr; $($field:tt: $scalar:ty, $to:expr, $from:expr, at $offset:expr;)*) => {
        impl $(<$generic: Value>)? Value for $value {
            const SHARED_BYTES: u32 = $bytes;
            #[inline(always)]
            #[track_caller]
            unsafe fn shuffle_up(self, delta: u32) -> Self {
                // SAFETY: the callee has this function's contract.
                unsafe { Self { $($field: $from(<$scalar>::shuffle_up($to(self.$field), delta)),)* } }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn shuffle_down(self, delta: u32) -> Self {
                // SAFETY: the callee has this function's contract.
                unsafe { Self { $($field: $from(<$scalar>::shuffle_down($to(self.$field), delta)),)* } }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn shuffle_idx(self, lane: u32) -> Self {
                // SAFETY: the callee has this function's contract.
                unsafe { Self { $($field: $from(<$scalar>::shuffle_idx($to(self.$field), lane)),)* } }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn to_shared(self, at: Shared<u32>) {
                // SAFETY: the value's bytes are valid, by this function's contract; the fields lie side by side in
                // them.
                unsafe { $(<$scalar>::to_shared($to(self.$field), at.at($offset / 4));)* }
            }
            #[inline(always)]
            #[track_caller]
            unsafe fn from_shared(at: Shared<u32>) -> Self {
                // SAFETY: the value's bytes are valid, by this function's contract; the fields lie side by side in
                // them.
                unsafe { Self { $($field: $from(<$scalar>::from_shared(at.at($offset / 4))),)* } }
            }
        }
    };
}
fields! { [] Count, 8; 0: u64, |x| x, |x| x, at 0; }
fields! { [V] Lift<V>, 2 * V::SHARED_BYTES; floor: V, |x| x, |x| x, at 0; add: V, |x| x, |x| x, at V::SHARED_BYTES; }
fields! {
    [V] Flagged<V>, 2 * V::SHARED_BYTES;
    value: V, |x| x, |x| x, at 0; head: u32, u32::from, |x: u32| x != 0, at V::SHARED_BYTES;
}
// Every value takes the room of 64 bits.
fields! { [V] Runs<V>, 8 + 8; heads: u64, |x| x, |x| x, at 0; value: V, |x| x, |x| x, at 8; }

/// Scans the values over the warp, inclusive of this lane's.
///
/// # Safety
/// All lanes of the warp come here together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn warp_inclusive_scan<O: Operator<Value: Value>>(mut value: O::Value) -> O::Value {
    let lane = warp::lane_id();
    let mut delta = 1;
    while delta < WARP_SIZE {
        // SAFETY: the whole warp comes here, the same number of times.
        let before = unsafe { value.shuffle_up(delta) };
        if lane >= delta {
            value = O::combine(before, value);
        }
        delta *= 2;
    }
    value
}

/// Scans the values over the warp, exclusive of this lane's; returns the total too.
///
/// # Safety
/// All lanes of the warp come here together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn warp_exclusive_scan<O: Operator<Value: Value>>(value: O::Value) -> (O::Value, O::Value) {
    // SAFETY: the callee has this function's contract.
    unsafe {
        let inclusive = warp_inclusive_scan::<O>(value);
        let mut exclusive = inclusive.shuffle_up(1);
        if warp::lane_id() == 0 {
            exclusive = O::IDENTITY;
        }
        (exclusive, inclusive.shuffle_idx(31))
    }
}

/// Returns the bytes of shared memory that [`exclusive_scan`] and [`reduce`] need for values of type `V` in a block of
/// `WARPS` warps.
pub const fn scratch_bytes<V: Value>(warps: u32) -> u32 {
    warps * V::SHARED_BYTES
}

/// Scans the totals of the warps, exclusive of this warp's; returns the block's total too. The last lane of each warp
/// gives its `total`.
///
/// # Safety
/// The contract of [`exclusive_scan`].
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn across_warps<O: Operator<Value: Value>, const WARPS: u32>(
    total: O::Value,
    scratch: Shared<u32>,
) -> (O::Value, O::Value) {
    let warp_index = thread::thread_idx_x() / WARP_SIZE;
    let words = O::Value::SHARED_BYTES / 4;
    let (mut before, mut all) = (O::IDENTITY, O::IDENTITY);
    // SAFETY: `scratch` has the room named in the contract. A barrier separates the writes, one per warp, from the
    // reads. If there are too many warps for each lane to read all, each warp scans their values, with all of its
    // lanes.
    unsafe {
        if warp::lane_id() == WARP_SIZE - 1 {
            total.to_shared(scratch.at(warp_index * words));
        }
        thread::sync_threads();
        if WARPS <= 8 {
            for w in 0..WARPS {
                if w == warp_index {
                    before = all;
                }
                all = O::combine(all, O::Value::from_shared(scratch.at(w * words)));
            }
        } else {
            let lane = warp::lane_id();
            let mut value = O::IDENTITY;
            if lane < WARPS {
                value = O::Value::from_shared(scratch.at(lane * words));
            }
            let (exclusive, total) = warp_exclusive_scan::<O>(value);
            before = exclusive.shuffle_idx(warp_index);
            all = total;
        }
    }
    (before, all)
}

/// Scans the values over the block's threads, exclusive of this one's; returns the total too. One barrier.
///
/// # Safety
/// - All threads of a one-dimensional block of `WARPS` full warps (at most 32) come here together.
/// - `scratch` is [`scratch_bytes`] of shared memory, aligned to 8 bytes, that nothing else accesses meanwhile and
///   until the next barrier.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn exclusive_scan<O: Operator<Value: Value>, const WARPS: u32>(
    value: O::Value,
    scratch: Shared<u32>,
) -> (O::Value, O::Value) {
    // SAFETY: the callee has this function's contract.
    unsafe {
        let inclusive = warp_inclusive_scan::<O>(value);
        let mut exclusive = inclusive.shuffle_up(1);
        if warp::lane_id() == 0 {
            exclusive = O::IDENTITY;
        }
        let (before, all) = across_warps::<O, WARPS>(inclusive, scratch);
        (O::combine(before, exclusive), all)
    }
}

/// Combines the values of all threads of the block, in their order. One barrier.
///
/// # Safety
/// The contract of [`exclusive_scan`].
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn reduce<O: Operator<Value: Value>, const WARPS: u32>(value: O::Value, scratch: Shared<u32>) -> O::Value {
    // SAFETY: the callee has this function's contract.
    unsafe { across_warps::<O, WARPS>(warp_inclusive_scan::<O>(value), scratch).1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look_back::Published;
    use crate::look_back::tests::{packed, read, unpacked, write};
    use warpset_core::scan::{ByRun, Max, Segmented, Sum};
    use warpset_simt::emulator::{Config, Emulator};
    use warpset_simt::{Global, GlobalMut, LaunchConfig, shared};

    /// Writes each thread's exclusive value, and the block's total by scan and by reduction.
    #[inline(always)]
    unsafe fn run<O: Operator<Value: Published>, const WARPS: u32>(x: Global<u64>, y: GlobalMut<u64>) {
        let t = thread::thread_idx_x() as usize;
        // SAFETY: one value per thread, and three places per thread in the output; a barrier between both uses of the
        // scratch.
        unsafe {
            let value = read(x, t);
            let (before, all) = exclusive_scan::<O, WARPS>(value, shared::dynamic(0));
            thread::sync_threads();
            let reduced = reduce::<O, WARPS>(value, shared::dynamic(0));
            write(y, 3 * t, before);
            write(y, 3 * t + 1, all);
            write(y, 3 * t + 2, reduced);
        }
    }

    macro_rules! block_kernels {
        ($($name:ident: $operator:ty, $warps:literal;)*) => {
            kernel! {
                $(
                    /// Runs [`run`].
                    ///
                    /// # Safety
                    /// The contract of [`run`]: `$warps` warps, `x` one value per thread, `y` three.
                    pub unsafe fn $name(
                        x: Global<u64>, y: GlobalMut<u64>,
                    ) {
                        // SAFETY: the callee has this function's contract.
                        unsafe { run::<$operator, $warps>(x, y) }
                    }
                )*
            }

            $(
                #[test]
                fn $name() {
                    let threads = 32 * $warps as u32;
                    for seed in 0..3u64 {
                        let random = |i: u32| warpset_core::hash::mix(u64::from(i), seed);
                        let values: Vec<_> = (0..threads).map(|i| Sample::sample(random(i))).collect();
                        let emulator = Emulator::new(Config::seeded(seed));
                        let x = emulator.buffer_from(&packed(&values));
                        let y = emulator.buffer_from(&packed(&values.repeat(3)));
                        let bytes = scratch_bytes::<<$operator as Operator>::Value>($warps);
                        let config = LaunchConfig::new(1, threads).shared(bytes);
                        // SAFETY: sizes according to the kernel's contract.
                        unsafe { super::tests::$name { x: x.global(), y: y.global_mut() }.launch(&emulator, config) }.unwrap();
                        let all = values.iter().copied().fold(<$operator>::IDENTITY, <$operator>::combine);
                        let mut before = <$operator>::IDENTITY;
                        for (&value, found) in values.iter().zip(unpacked::<<$operator as Operator>::Value>(&y.to_vec()).chunks(3)) {
                            assert_eq!(found, [before, all, all]);
                            before = <$operator>::combine(before, value);
                        }
                    }
                }
            )*
        };
    }

    trait Sample {
        fn sample(random: u64) -> Self;
    }
    impl Sample for u32 {
        fn sample(random: u64) -> Self {
            random as u32
        }
    }
    impl Sample for i64 {
        fn sample(random: u64) -> Self {
            random as i64
        }
    }
    impl Sample for Flagged<u64> {
        fn sample(random: u64) -> Self {
            Flagged { head: random % 5 == 0, value: random }
        }
    }
    impl Sample for Runs<u32> {
        fn sample(random: u64) -> Self {
            Runs { heads: random % 3 / 2, value: random as u32 }
        }
    }

    block_kernels! {
        one_warp: Sum<u32>, 1;
        eight_warps: Max<i64>, 8;
        flagged_values: Segmented<Sum<u64>>, 7;
        runs: ByRun<Sum<u32>>, 16;
        full_blocks: Sum<u32>, 32;
    }
}
