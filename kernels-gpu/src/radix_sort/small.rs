//! Inputs that one block holds: all passes in one launch, through shared memory.

use crate::block_sort::BlockSort;
use crate::ranking::{Digit, Key};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, Word, kernel, thread};

/// Threads of the block.
pub const SMALL_BLOCK: u32 = 512;
/// Items that it sorts at most.
pub const SMALL_ITEMS: usize = SMALL_BLOCK as usize * ITEMS;
/// Dynamic shared memory, in bytes.
pub const SMALL_SHARED_BYTES: u32 = BlockSort::<u64, { SMALL_BLOCK / 32 }, ITEMS>::SHARED_BYTES;

const ITEMS: usize = 8;

/// Sorts everything.
///
/// # Safety
/// As the kernels state.
#[inline(always)]
unsafe fn sort<K: Key, V: Word, const PAYLOAD: bool>(
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
    type Sort<K> = BlockSort<K, { SMALL_BLOCK / 32 }, ITEMS>;
    let block: Sort<K> = BlockSort::in_shared_memory();
    let rows = n.div_ceil(SMALL_BLOCK);
    let place = |i| Sort::<K>::place(rows, i);
    // SAFETY: items are read and written below `n`, read before the first barrier (payloads: before one that all pass)
    // and written after it; the payloads' shared memory is used after a barrier behind the last pass.
    unsafe {
        let mut sorted = [K::splat(!flip); ITEMS];
        let mut origins = [0; ITEMS];
        for i in 0..ITEMS {
            origins[i] = place(i);
            if (i as u32) < rows && place(i) < n {
                sorted[i] = keys.read(place(i) as usize);
            }
        }
        for p in 0..passes {
            let digit = Digit::of_pass(begin, bits, p, passes, flip);
            block.pass::<PAYLOAD>(&mut sorted, &mut origins, rows, |key, _| digit.of(key));
        }
        for i in 0..ITEMS {
            if (i as u32) < rows && place(i) < n {
                out_keys.write(place(i) as usize, sorted[i]);
            }
        }
        if PAYLOAD {
            let staged: Shared<V> = shared::dynamic(0);
            thread::sync_threads();
            for i in 0..ITEMS {
                if (i as u32) < rows && place(i) < n {
                    staged.set(place(i), values.read(place(i) as usize));
                }
            }
            thread::sync_threads();
            for i in 0..ITEMS {
                if (i as u32) < rows && place(i) < n {
                    out_values.write(place(i) as usize, staged.get(origins[i]));
                }
            }
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
            /// - `keys`, `out_keys`: valid for `n > 0` items, at most [`SMALL_ITEMS`]; the same or apart; nobody else writes
            ///   the former or touches the latter. `values`, `out_values` likewise, if the kernel has payloads.
            /// - `begin + bits` is at most the key's width, and `passes` at least 1 and `bits / 8`.
            #[launch_bounds(512, 1)]
            pub unsafe fn $name(
                keys: Global<$key>, values: Global<$value>, out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
                n: u32, begin: u32, bits: u32, passes: u32, flip: u32,
            ) {
                // SAFETY: the caller keeps this kernel's contract.
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
}
