//! Detection of copies of keys in a sorted batch: without copies, a dictionary can be built from it without dropping
//! elements.

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, atomic, thread};

/// Threads per block.
pub const BLOCK: u32 = 256;

kernel! {
    /// Adds to `copies` the number of elements with the key of the previous element.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of [`BLOCK`] threads.
    /// - `keys`: valid for `n` reads, not written while the kernel runs.
    /// - `copies`: valid for one word, only accessed atomically while the kernel runs.
    pub unsafe fn lsm_copies<K>(keys: Global<K>, n: usize, copies: GlobalMut<u64>)
    for [u32 => lsm_copies_u32, u64 => lsm_copies_u64, u128 => lsm_copies_u128] {
        let mut found = 0u32;
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and the previous element is read only if there is one.
            found += unsafe { i > 0 && keys.read_nc(i) == keys.read_nc(i - 1) } as u32;
        }
        // SAFETY: all lanes have left the loop; there is one word.
        unsafe {
            let found = warp::reduce_add(FULL_MASK, found);
            if lane_id() == 0 && found != 0 {
                atomic::reduce_add(copies, found as u64);
            }
        }
    }
}
