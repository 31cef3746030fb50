//! Items in reverse order, for sorts that reverse the order of equal ones.

use warpset_simt::{Global, GlobalMut, thread};

/// Threads per block.
pub const REVERSE_BLOCK: u32 = 256;

kernel! {
    /// Writes keys and values in reverse order.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `keys`, `values`: valid for `n` reads, values of `value_words` words of 32 bits (0, 1 or 2), not written while
    ///   the kernel runs.
    /// - `out_keys`, `out_values`: valid for `n` writes, used by this launch alone.
    pub unsafe fn radix_sort_reverse<K>(
        keys: Global<K>, values: Global<u32>, n: usize, value_words: u32, out_keys: GlobalMut<K>,
        out_values: GlobalMut<u32>,
    ) for [u32 => radix_sort_reverse_u32, u64 => radix_sort_reverse_u64, u128 => radix_sort_reverse_u128] {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, hence `n - 1 - i < n`.
            unsafe {
                out_keys.write(i, keys.read_nc(n - 1 - i));
                if value_words == 1 {
                    out_values.write(i, values.read_nc(n - 1 - i));
                } else if value_words == 2 {
                    out_values.cast::<u64>().write(i, values.cast::<u64>().read_nc(n - 1 - i));
                }
            }
        }
    }
}
