//! The join of several devices' bits and sums.

#[cfg(feature = "bodies")]
use crate::recsplit::memory::put;
use warpset_simt::{Global, GlobalMut, thread};

/// Threads of a block.
pub const BLOCK: u32 = 256;

kernel! {
    /// Combines `from`, `n` words, by `or` with the bits of `words` from `at` on, one thread per word.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `from`: valid for `n` words, not written while the kernel runs.
    /// - `words`: valid for the bits from `at` to that of the last one in `from`, and only accessed atomically.
    pub unsafe fn recsplit_join(from: Global<u64>, n: usize, at: u64, words: GlobalMut<u64>) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; words are accessed for ones only, and these have a place.
            unsafe { put(words, at + 64 * i as u64, from.read_nc(i)) };
        }
    }

    /// Adds `base` to each of `n` sums, one thread per sum.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `sums`: valid for `n` words, used by this launch alone.
    pub unsafe fn recsplit_add(sums: GlobalMut<u64>, n: usize, base: u64) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n` belongs to this thread.
            unsafe { sums.write(i, sums.read(i) + base) };
        }
    }
}
