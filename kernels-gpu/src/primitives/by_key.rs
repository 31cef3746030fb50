//! Reduction by key and run-length encoding: each run of equal neighbouring keys becomes one key and one value, in a
//! single pass.
//!
//! A scan by [`ByRun`] gives each item the number of earlier runs, which is the place of its run's key, and the
//! combined value of its run so far. Where a run begins, the value of the previous run is complete.

use warpset_core::scan::{BitOr, ByRun, Max, Min, Operator, Runs, Sum};
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK, WARP_SIZE};
use warpset_simt::{Global, GlobalMut, thread};
#[cfg(not(target_arch = "nvptx64"))]
use warpset_simt::{LaunchConfig, Launcher};

use crate::block::{self, Value};
use crate::look_back::{self, Published};
use crate::primitives::warp_tile::{self, Item};

/// Threads per block.
pub const BLOCK: u32 = WARPS * WARP_SIZE;
/// Items per tile.
pub const TILE: usize = BLOCK as usize * ITEMS;
/// Flag: keys and values begin at multiples of 16 bytes.
pub const VECTORS: u32 = 2;

const WARPS: u32 = 8;
/// Items per thread.
const ITEMS: usize = 8;
/// Returns the number of groups of four words that a thread loads, if an item has `words` words.
#[doc(hidden)]
pub const fn quads(words: usize) -> usize {
    ITEMS * words / 4
}

// Rows for each warp; the ticket, padded; the prefix of the tile; the warps' totals.
const fn row_bytes<K: Item>() -> u32 {
    warp_tile::warp_bytes(quads(if K::WORDS > 2 { K::WORDS } else { 2 }))
}
const fn ticket_at<K: Item>() -> u32 {
    WARPS * row_bytes::<K>()
}
const fn prefix_at<K: Item>() -> u32 {
    ticket_at::<K>() + 16
}
const fn scratch_at<K: Item>() -> u32 {
    prefix_at::<K>() + 32
}
/// Returns the bytes of dynamic shared memory for keys of this type.
pub const fn shared_bytes<K: Item>() -> u32 {
    scratch_at::<K>() + WARPS * 16
}
/// Words of look-back per tile.
pub const LOOK_BACK_WORDS: usize = 2;

/// Source of the values of a run's items.
pub trait Source<V>: Copy {
    /// Loads the values of a thread's items.
    ///
    /// # Safety
    /// The contract of [`warp_tile::load`].
    unsafe fn load(self, first: usize, n: usize, vectors: bool, rows: Shared<u32>) -> [V; ITEMS];
}

/// Array of values, `QUADS` quads per thread.
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct Array<V, const QUADS: usize>(pub Global<V>);

#[cfg(feature = "bodies")]
impl<V: Item, const QUADS: usize> Source<V> for Array<V, QUADS> {
    #[inline(always)]
    unsafe fn load(self, first: usize, n: usize, vectors: bool, rows: Shared<u32>) -> [V; ITEMS] {
        // SAFETY: the contract of this function.
        unsafe { warp_tile::load::<V, ITEMS, QUADS>(self.0, first, n, vectors, rows) }
    }
}

/// A one per item: the value of a run is its length.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
#[doc(hidden)]
pub struct Ones;

#[cfg(feature = "bodies")]
impl Source<u64> for Ones {
    #[inline(always)]
    unsafe fn load(self, _: usize, _: usize, _: bool, _: Shared<u32>) -> [u64; ITEMS] {
        [1; ITEMS]
    }
}

/// Processes one tile of a reduction by key.
///
/// # Safety
/// - Launch: 1-D, `n.div_ceil(TILE)` blocks of [`BLOCK`] threads, [`shared_bytes`] of dynamic shared memory; `n > 0`.
/// - `keys`, `values`: `n` of each, not written while the kernel runs, at multiples of 16 bytes if `flags` say so.
/// - `look_back`: [`LOOK_BACK_WORDS`] per tile, at a multiple of 16 bytes, and `counter` one word: zero at the start,
///   used by this launch alone.
/// - `out_keys`, `out_values`: one place per run; `runs`: one place. Nothing else accesses any of them.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn reduce_by_key<O, K, S, const KEY_QUADS: usize>(
    keys: Global<K>,
    values: S,
    n: usize,
    flags: u32,
    look_back: GlobalMut<u64>,
    counter: GlobalMut<u32>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<O::Value>,
    runs: GlobalMut<u64>,
) where
    O: Operator<Value: Value>,
    Runs<O::Value>: Published,
    K: Item + Value + PartialEq,
    S: Source<O::Value>,
{
    let t = thread::thread_idx_x();
    let lane = t % WARP_SIZE;
    let rows: Shared<u32> = shared::dynamic(t / WARP_SIZE * const { row_bytes::<K>() });
    let vectors = flags & VECTORS != 0;
    // SAFETY: each warp has rows of its own, and is done with the keys' before it loads values; the other shared words
    // satisfy the contracts of the called functions; the ticket makes `tile` unique. The place of a run is the number
    // of earlier runs, so places are distinct and below the number of runs.
    unsafe {
        let tile = look_back::ticket(counter, shared::dynamic(const { ticket_at::<K>() }));
        let warp_first = tile * TILE + (t / WARP_SIZE) as usize * (WARP_SIZE as usize * ITEMS);
        let own: [K; ITEMS] = warp_tile::load::<_, ITEMS, KEY_QUADS>(keys, warp_first, n, vectors, rows);
        warp::sync_warp(FULL_MASK);
        let values = values.load(warp_first, n, vectors, rows);
        let first = warp_first + lane as usize * ITEMS;
        // The key before a thread's first is its neighbour's last; before a warp's first it is read again.
        let mut previous = own[ITEMS - 1].shuffle_up(1);
        if lane == 0 && first > 0 && first < n {
            previous = keys.read(first - 1);
        }
        let mut heads = 0u32;
        for i in 0..ITEMS {
            if first + i < n && (own[i] != previous || first + i == 0) {
                heads |= 1 << i;
            }
            previous = own[i];
        }
        let lift = |i: usize| {
            let value = if first + i < n { values[i] } else { O::IDENTITY };
            Runs { heads: u64::from(heads >> i & 1), value }
        };
        let mut total = lift(0);
        for i in 1..ITEMS {
            total = ByRun::<O>::combine(total, lift(i));
        }
        let (before, aggregate) =
            block::exclusive_scan::<ByRun<O>, WARPS>(total, shared::dynamic(const { scratch_at::<K>() }));
        let prefix =
            look_back::tile_prefix::<ByRun<O>>(look_back, tile, aggregate, shared::dynamic(const { prefix_at::<K>() }));
        let mut before = ByRun::<O>::combine(prefix, before);
        for i in 0..ITEMS {
            if heads >> i & 1 != 0 {
                out_keys.write(before.heads as usize, own[i]);
                if before.heads > 0 {
                    out_values.write(before.heads as usize - 1, before.value);
                }
            }
            before = ByRun::<O>::combine(before, lift(i));
            if first + i == n - 1 {
                out_values.write(before.heads as usize - 1, before.value);
                runs.write(0, before.heads);
            }
        }
    }
}

/// Operator with kernels of reductions by key for values with keys of type `K`: see
/// [`by_key_kernels!`](crate::by_key_kernels).
#[cfg(not(target_arch = "nvptx64"))]
pub trait ByKeyKernels<K>: Operator {
    /// Launches a reduction by key.
    ///
    /// # Safety
    /// The contract of [`reduce_by_key`].
    #[allow(clippy::too_many_arguments)]
    unsafe fn launch_by_key<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        keys: Global<K>,
        values: Global<Self::Value>,
        n: usize,
        flags: u32,
        look_back: GlobalMut<u64>,
        counter: GlobalMut<u32>,
        out_keys: GlobalMut<K>,
        out_values: GlobalMut<Self::Value>,
        runs: GlobalMut<u64>,
    ) -> Result<(), L::Error>;
}

/// Keys with kernels of run-length encoding.
#[cfg(not(target_arch = "nvptx64"))]
pub trait EncodeKernels: Item {
    /// Launches a run-length encoding.
    ///
    /// # Safety
    /// The contract of [`reduce_by_key`].
    #[allow(clippy::too_many_arguments)]
    unsafe fn launch_encode<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        keys: Global<Self>,
        n: usize,
        flags: u32,
        look_back: GlobalMut<u64>,
        counter: GlobalMut<u32>,
        out_keys: GlobalMut<Self>,
        lengths: GlobalMut<u64>,
        runs: GlobalMut<u64>,
    ) -> Result<(), L::Error>;
}

/// Makes the kernels of reductions by key, and [`ByKeyKernels`] of the operators. For operators outside this crate see
/// [`scan_kernels!`](crate::scan_kernels).
#[macro_export]
macro_rules! by_key_kernels {
    (#![module($at:expr)] $($name:ident: $key:ty => $operator:ty;)*) => {$(
        $crate::kernel! {
            #![module($at)]

            #[doc = concat!("Reduces values by `", stringify!($operator), "`, one result per run of equal `",
                stringify!($key), "` keys.")]
            ///
            /// # Safety
            /// The contract of the function `reduce_by_key` of `warpset_kernels::primitives::by_key`.
            #[launch_bounds(256, 2)]
            pub unsafe fn $name(
                keys: $crate::simt::Global<$key>,
                values: $crate::simt::Global<<$operator as $crate::operators::Operator>::Value>, n: usize, flags: u32,
                look_back: $crate::simt::GlobalMut<u64>, counter: $crate::simt::GlobalMut<u32>,
                out_keys: $crate::simt::GlobalMut<$key>,
                out_values: $crate::simt::GlobalMut<<$operator as $crate::operators::Operator>::Value>,
                runs: $crate::simt::GlobalMut<u64>,
            ) {
                type Value = <$operator as $crate::operators::Operator>::Value;
                const KEY_QUADS: usize = $crate::primitives::by_key::quads(<$key as $crate::primitives::warp_tile::Item>::WORDS);
                const QUADS: usize = $crate::primitives::by_key::quads(<Value as $crate::primitives::warp_tile::Item>::WORDS);
                let values = $crate::primitives::by_key::Array::<Value, QUADS>(values);
                // SAFETY: the contract of this kernel.
                unsafe {
                    $crate::primitives::by_key::reduce_by_key::<$operator, $key, _, KEY_QUADS>(
                        keys, values, n, flags, look_back, counter, out_keys, out_values, runs,
                    )
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::primitives::by_key::ByKeyKernels<$key> for $operator {
            unsafe fn launch_by_key<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, keys: $crate::simt::Global<$key>,
                values: $crate::simt::Global<Self::Value>, n: usize, flags: u32,
                look_back: $crate::simt::GlobalMut<u64>, counter: $crate::simt::GlobalMut<u32>,
                out_keys: $crate::simt::GlobalMut<$key>, out_values: $crate::simt::GlobalMut<Self::Value>,
                runs: $crate::simt::GlobalMut<u64>,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe {
                    $name { keys, values, n, flags, look_back, counter, out_keys, out_values, runs }
                        .launch(launcher, config)
                }
            }
        }
    )*};
    ($($name:ident: $key:ty => $operator:ty;)*) => { $crate::by_key_kernels! { #![module($crate::module_at)] $($name: $key => $operator;)* } };
}

#[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_by_key"))]
by_key_kernels! {
    by_u32_sum_u32: u32 => Sum<u32>;
    by_u32_sum_u64: u32 => Sum<u64>;
    by_u32_sum_i64: u32 => Sum<i64>;
    by_u32_max_u32: u32 => Max<u32>;
    by_u32_max_u64: u32 => Max<u64>;
    by_u32_max_i64: u32 => Max<i64>;
    by_u32_min_u32: u32 => Min<u32>;
    by_u32_min_u64: u32 => Min<u64>;
    by_u32_min_i64: u32 => Min<i64>;
    by_u32_or_u32: u32 => BitOr<u32>;
    by_u32_or_u64: u32 => BitOr<u64>;
    by_u64_sum_u32: u64 => Sum<u32>;
    by_u64_sum_u64: u64 => Sum<u64>;
    by_u64_sum_i64: u64 => Sum<i64>;
    by_u64_max_u32: u64 => Max<u32>;
    by_u64_max_u64: u64 => Max<u64>;
    by_u64_max_i64: u64 => Max<i64>;
    by_u64_min_u32: u64 => Min<u32>;
    by_u64_min_u64: u64 => Min<u64>;
    by_u64_min_i64: u64 => Min<i64>;
    by_u64_or_u32: u64 => BitOr<u32>;
    by_u64_or_u64: u64 => BitOr<u64>;
    by_u128_sum_u32: u128 => Sum<u32>;
    by_u128_sum_u64: u128 => Sum<u64>;
    by_u128_sum_i64: u128 => Sum<i64>;
    by_u128_max_u32: u128 => Max<u32>;
    by_u128_max_u64: u128 => Max<u64>;
    by_u128_max_i64: u128 => Max<i64>;
    by_u128_min_u32: u128 => Min<u32>;
    by_u128_min_u64: u128 => Min<u64>;
    by_u128_min_i64: u128 => Min<i64>;
    by_u128_or_u32: u128 => BitOr<u32>;
    by_u128_or_u64: u128 => BitOr<u64>;
}

macro_rules! encode_kernels {
    ($($name:ident: $key:ty;)*) => {$(
        kernel! {
            #[doc = concat!("Encodes runs of equal `", stringify!($key), "` keys by their lengths.")]
            ///
            /// # Safety
            /// The contract of [`reduce_by_key`].
            #[launch_bounds(256, 2)]
            pub unsafe fn $name(
                keys: Global<$key>, n: usize, flags: u32, look_back: GlobalMut<u64>, counter: GlobalMut<u32>,
                out_keys: GlobalMut<$key>, lengths: GlobalMut<u64>, runs: GlobalMut<u64>,
            ) {
                const KEY_QUADS: usize = quads(<$key as Item>::WORDS);
                // SAFETY: the contract of this kernel.
                unsafe {
                    reduce_by_key::<Sum<u64>, $key, _, KEY_QUADS>(
                        keys, Ones, n, flags, look_back, counter, out_keys, lengths, runs,
                    )
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl EncodeKernels for $key {
            unsafe fn launch_encode<L: Launcher>(
                launcher: &L, config: LaunchConfig, keys: Global<$key>, n: usize, flags: u32,
                look_back: GlobalMut<u64>, counter: GlobalMut<u32>, out_keys: GlobalMut<$key>,
                lengths: GlobalMut<u64>, runs: GlobalMut<u64>,
            ) -> Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe {
                    $name { keys, n, flags, look_back, counter, out_keys, lengths, runs }.launch(launcher, config)
                }
            }
        }
    )*};
}
#[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_by_key"))]
encode_kernels! {
    encode_u32: u32;
    encode_u64: u64;
    encode_u128: u128;
}
