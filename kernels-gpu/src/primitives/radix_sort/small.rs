//! Sort of inputs that one block holds: all passes in one launch, through shared memory.

use crate::primitives::block_sort::BlockSort;
use crate::primitives::ranking::{Digit, SortKey};
use warpset_simt::{Global, GlobalMut, Word, thread};

/// Threads of the block.
pub const SMALL_BLOCK: u32 = 32 * WARPS;
/// Largest number of items.
pub const SMALL_ITEMS: usize = TILE as usize;
/// Dynamic shared memory, in bytes.
pub const SMALL_SHARED_BYTES: u32 = BlockSort::<u64, WARPS, TILE>::SHARED_BYTES;

// Keys of 16 bytes take no more.
const _: () = assert!(BlockSort::<u128, WARPS, TILE>::SHARED_BYTES <= SMALL_SHARED_BYTES);

const WARPS: u32 = 16;
const TILE: u32 = 4096;

/// Sorts everything.
///
/// # Safety
/// The contract of the kernels that call it.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn sort<K: SortKey, V: Word, const PAYLOAD: bool>(
    keys: Global<K>,
    values: Global<V>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    n: u32,
    begin: u32,
    bits: u32,
    passes: u32,
    flip: u32,
) {
    type Sort<K> = BlockSort<K, WARPS, TILE>;
    let mut block: Sort<K> = BlockSort::in_shared_memory();
    let rows = n.div_ceil(SMALL_BLOCK);
    // SAFETY: items are read and written below `n`, read before the first barrier (payloads: before one that all reach)
    // and written after it; the payloads' shared memory is used after a barrier that follows its last read.
    unsafe {
        Sort::<K>::for_each(rows, |place| {
            // Places past the end stay after all items.
            let key = if place < n { keys.read(place as usize) } else { K::splat(!flip) };
            block.set(place, key);
        });
        thread::sync_threads();
        for p in 0..passes {
            let digit = Digit::of_pass(begin, bits, p, passes, flip);
            block = block.pass::<PAYLOAD>(rows, |key, _| digit.of(key));
        }
        Sort::<K>::for_each(rows, |place| {
            if place < n {
                out_keys.write(place as usize, block.get(place).0);
            }
        });
        if PAYLOAD {
            let staged = block.staging::<V>();
            thread::sync_threads();
            Sort::<K>::for_each(rows, |place| {
                if place < n {
                    staged.set(place, values.read(place as usize));
                }
            });
            thread::sync_threads();
            Sort::<K>::for_each(rows, |place| {
                if place < n {
                    out_values.write(place as usize, staged.get(block.get(place).1));
                }
            });
        }
    }
}

macro_rules! small_kernels {
    ($($name:ident: $key:ty, $value:ty, $payload:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Sorts a few `", stringify!($key), "` keys.")]
            ///
            /// # Safety
            /// - Launch: one block of [`SMALL_BLOCK`] threads, [`SMALL_SHARED_BYTES`] of dynamic shared memory.
            /// - `keys`, `out_keys`: valid for `n > 0` items, at most [`SMALL_ITEMS`]; the same or apart; nothing else
            ///   writes the former or touches the latter. `values`, `out_values` likewise, if the kernel has payloads.
            /// - `begin + bits` is at most the key's width, and `passes` at least 1 and `bits / 8`.
            #[launch_bounds(512, 1)]
            pub unsafe fn $name(
                keys: Global<$key>, values: Global<$value>, out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
                n: u32, begin: u32, bits: u32, passes: u32, flip: u32,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    sort::<$key, $value, $payload>(
                        keys, values, out_keys, out_values, n, begin, bits, passes, flip,
                    )
                }
            }
        }
    )*};
}
small_kernels! {
    radix_sort_small_u32: u32, u32, false;
    radix_sort_small_u32_u32: u32, u32, true;
    radix_sort_small_u32_u64: u32, u64, true;
    radix_sort_small_u64: u64, u32, false;
    radix_sort_small_u64_u32: u64, u32, true;
    radix_sort_small_u64_u64: u64, u64, true;
    radix_sort_small_u128: u128, u32, false;
    radix_sort_small_u128_u32: u128, u32, true;
    radix_sort_small_u128_u64: u128, u64, true;
}
