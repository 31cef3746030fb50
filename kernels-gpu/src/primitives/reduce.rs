//! Reductions of a whole array, in one read.
//!
//! Every warp combines consecutive items of its own in registers; blocks combine their warps, and the block that ends
//! last combines the blocks. All in input order, so the operator need not be commutative.

use warpset_core::scan::{Max, Min, Operator, Sum};
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::WARP_SIZE;
use warpset_simt::{Global, GlobalMut, atomic, fence, thread};
#[cfg(not(target_arch = "nvptx64"))]
use warpset_simt::{LaunchConfig, Launcher};

use crate::block::{self, Value};
use crate::look_back::{self, INCLUSIVE, Published};
use crate::primitives::warp_tile::{self, Item};

/// Threads per block.
pub const BLOCK: u32 = WARPS * WARP_SIZE;
/// Resident blocks per multiprocessor, as the launch bounds require.
pub const RESIDENT: u32 = 4;
/// Flag: the input begins at a multiple of 16 bytes.
pub const VECTORS: u32 = 2;

/// Warps per block.
#[doc(hidden)]
pub const WARPS: u32 = 8;
/// Quads (16 bytes) of input per thread at a time.
#[doc(hidden)]
pub const QUADS: usize = 4;

/// Returns the number of items that a warp takes at a time.
pub const fn warp_items<T: Item>() -> usize {
    WARP_SIZE as usize * QUADS * 4 / T::WORDS
}

/// Returns the bytes of dynamic shared memory of a reduction of values of type `V`.
pub const fn shared_bytes<V: Value>() -> u32 {
    SCRATCH_AT + block::scratch_bytes::<V>(WARPS)
}

// Rows for each warp; whether the block is the last; the warps' values.
const LAST_AT: u32 = WARPS * warp_tile::warp_bytes(QUADS);
const SCRATCH_AT: u32 = LAST_AT + 16;

/// Reduces an array.
///
/// # Safety
/// - Launch: 1-D, blocks of [`BLOCK`] threads, [`shared_bytes`] of dynamic shared memory.
/// - `input`: `n > 0` items, not written while the kernel runs. `per_warp`: a multiple of [`warp_items`]; that many
///   items times the warps of the grid are `n` or more.
/// - `partial`: the look-back words of one value per block, at a multiple of 16 bytes, and `finished` one word: zero at
///   the start, used by this launch alone. `out`: one place, used by this launch alone.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn reduce<O: Operator<Value: Published + Item>, const ITEMS: usize>(
    input: Global<O::Value>,
    n: usize,
    per_warp: usize,
    flags: u32,
    partial: GlobalMut<u64>,
    finished: GlobalMut<u32>,
    out: GlobalMut<O::Value>,
) {
    let t = thread::thread_idx_x();
    let block_index = thread::block_idx_x();
    let blocks = thread::grid_dim_x();
    let lane = t % WARP_SIZE;
    let rows: Shared<u32> = shared::dynamic(t / WARP_SIZE * warp_tile::warp_bytes(QUADS));
    let last: Shared<u32> = shared::dynamic(LAST_AT);
    let scratch: Shared<u32> = shared::dynamic(SCRATCH_AT);
    // SAFETY: each warp has rows of its own; barriers separate the uses of the other shared words; items are read below
    // `n`. A block publishes before it counts itself, and the block that counts last reads after that, with fences.
    unsafe {
        let mut first = (block_index as usize * WARPS as usize + (t / WARP_SIZE) as usize) * per_warp;
        let end = if first + per_warp < n { first + per_warp } else { n };
        let mut sum = O::IDENTITY;
        while first < end {
            let items: [O::Value; ITEMS] =
                warp_tile::load::<_, ITEMS, QUADS>(input, first, n, flags & VECTORS != 0, rows);
            let own = first + lane as usize * ITEMS;
            let mut total = O::IDENTITY;
            for i in 0..ITEMS {
                if own + i < end {
                    total = O::combine(total, items[i]);
                }
            }
            // Only the last lane's value is used from here on.
            sum = O::combine(sum, block::warp_inclusive_scan::<O>(total).shuffle_idx(WARP_SIZE - 1));
            first += WARP_SIZE as usize * ITEMS;
            warpset_simt::warp::sync_warp(warpset_simt::warp::FULL_MASK);
        }
        let of_warp = if lane == 0 { sum } else { O::IDENTITY };
        let sum = block::reduce::<O, WARPS>(of_warp, scratch);
        if blocks == 1 {
            if t == 0 {
                out.write(0, sum);
            }
            return;
        }
        if t == 0 {
            look_back::publish(partial, block_index as usize, INCLUSIVE, sum);
            fence::device();
            last.set(0, u32::from(atomic::fetch_add(finished, 1) == blocks - 1));
        }
        thread::sync_threads();
        if last.get(0) != 0 {
            fence::device();
            // Each thread takes consecutive blocks.
            let per_thread = blocks.div_ceil(BLOCK);
            let mut sum = O::IDENTITY;
            for i in 0..per_thread {
                let at = t * per_thread + i;
                if at < blocks {
                    sum = O::combine(sum, look_back::published(partial, at as usize));
                }
            }
            let all = block::reduce::<O, WARPS>(sum, scratch);
            if t == 0 {
                out.write(0, all);
            }
        }
    }
}

/// Operator with a kernel of reductions: see [`reduce_kernels!`](crate::reduce_kernels).
#[cfg(not(target_arch = "nvptx64"))]
pub trait ReduceKernels: Operator<Value: Published + Item> {
    /// Launches a reduction.
    ///
    /// # Safety
    /// The contract of [`reduce`].
    #[allow(clippy::too_many_arguments)]
    unsafe fn launch_reduce<L: Launcher>(
        launcher: &L,
        config: LaunchConfig,
        input: Global<Self::Value>,
        n: usize,
        per_warp: usize,
        flags: u32,
        partial: GlobalMut<u64>,
        finished: GlobalMut<u32>,
        out: GlobalMut<Self::Value>,
    ) -> Result<(), L::Error>;
}

/// Makes the kernels of reductions by operators, and implements [`ReduceKernels`]. For operators outside this crate see
/// [`scan_kernels!`](crate::scan_kernels).
#[macro_export]
macro_rules! reduce_kernels {
    (#![module($at:expr)] $($reduce:ident: $operator:ty;)*) => {$(
        $crate::kernel! {
            #![module($at)]

            #[doc = concat!("Reduces by `", stringify!($operator), "`.")]
            ///
            /// # Safety
            /// The contract of the function `reduce` of `warpset_kernels::primitives::reduce`.
            #[launch_bounds(256, 4)]
            pub unsafe fn $reduce(
                input: $crate::simt::Global<<$operator as $crate::operators::Operator>::Value>, n: usize,
                per_warp: usize, flags: u32, partial: $crate::simt::GlobalMut<u64>,
                finished: $crate::simt::GlobalMut<u32>,
                out: $crate::simt::GlobalMut<<$operator as $crate::operators::Operator>::Value>,
            ) {
                type Value = <$operator as $crate::operators::Operator>::Value;
                const ITEMS: usize = $crate::primitives::reduce::QUADS * 4 / <Value as $crate::primitives::warp_tile::Item>::WORDS;
                // SAFETY: the contract of this kernel.
                unsafe {
                    $crate::primitives::reduce::reduce::<$operator, ITEMS>(input, n, per_warp, flags, partial, finished, out)
                }
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl $crate::primitives::reduce::ReduceKernels for $operator {
            unsafe fn launch_reduce<L: $crate::simt::Launcher>(
                launcher: &L, config: $crate::simt::LaunchConfig, input: $crate::simt::Global<Self::Value>, n: usize,
                per_warp: usize, flags: u32, partial: $crate::simt::GlobalMut<u64>,
                finished: $crate::simt::GlobalMut<u32>, out: $crate::simt::GlobalMut<Self::Value>,
            ) -> ::core::result::Result<(), L::Error> {
                // SAFETY: the contract of this kernel.
                unsafe { $reduce { input, n, per_warp, flags, partial, finished, out }.launch(launcher, config) }
            }
        }
    )*};
    ($($reduce:ident: $operator:ty;)*) => { $crate::reduce_kernels! { #![module($crate::module_at)] $($reduce: $operator;)* } };
}

#[cfg(any(not(target_arch = "nvptx64"), warpset_module = "primitives_reduce"))]
reduce_kernels! {
    reduce_sum_u32: Sum<u32>;
    reduce_sum_u64: Sum<u64>;
    reduce_sum_i64: Sum<i64>;
    reduce_max_u32: Max<u32>;
    reduce_max_u64: Max<u64>;
    reduce_max_i64: Max<i64>;
    reduce_min_u32: Min<u32>;
    reduce_min_u64: Min<u64>;
    reduce_min_i64: Min<i64>;
}
