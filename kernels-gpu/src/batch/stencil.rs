//! Masks of answers: a stencil clears the answers of keys that it does not select.
//!
//! Lookups answer for all keys; one of these kernels runs after them. A warp of a lookup waits for its slowest lane in
//! any case, and the bits of a stencil are few beside the blocks of a filter.

use crate::batch::results;
use warpset_simt::{Global, GlobalMut, thread, warp};

/// Threads per block.
pub const BLOCK: u32 = 256;

kernel! {
    /// Masks bits by bits, word by word.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `answers`: valid for `words` words, and nothing else accesses it while the kernel runs.
    /// - `stencil`: valid for `words` words, which nothing writes while the kernel runs.
    pub unsafe fn stencil_and(answers: GlobalMut<u64>, stencil: Global<u64>, words: usize) {
        for i in thread::grid_stride(words) {
            // SAFETY: `i < words` belongs to this thread.
            unsafe { answers.write(i, answers.read(i) & stencil.read_nc(i)) };
        }
    }

    /// Masks either form of `n` answers, one thread per key.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, one thread per key, no shared memory.
    /// - `answers`: answers to `n` keys in the form `form`, bytes or bits; nothing else accesses them while the kernel
    ///   runs.
    /// - `stencil`: one byte per key (0 is a no) or, if `stencil_form` is `BITS`, one bit per key; nothing writes it
    ///   while the kernel runs.
    #[launch_bounds(256)]
    pub unsafe fn stencil_apply(
        answers: GlobalMut<u64>, form: u32, stencil: Global<u64>, stencil_form: u32, n: usize,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n` for every read; all threads reach the barrier and `put`.
        unsafe {
            let is_meant = i < n && selects(stencil, stencil_form, i);
            let yes = is_meant && results::get(form, answers, i);
            warp::sync_warp(warp::FULL_MASK); // one word of `answers` holds bits of all lanes
            results::put(form, answers, i, n, yes);
        }
    }

    /// Overwrites words where a stencil does not select the key, one thread per key.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, one thread per key, no shared memory.
    /// - `words`: `n`, and nothing else accesses them while the kernel runs.
    /// - `stencil`: as for `stencil_apply`.
    #[launch_bounds(256)]
    pub unsafe fn stencil_fill(
        words: GlobalMut<u64>, value: u64, stencil: Global<u64>, stencil_form: u32, n: usize,
    ) {
        let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
        // SAFETY: `i < n`.
        unsafe {
            if i < n && !selects(stencil, stencil_form, i) {
                words.write(i, value);
            }
        }
    }
}

/// Whether a stencil, bytes or bits, selects key `i`.
///
/// # Safety
/// The stencil has a byte or bit for key `i`, and nothing writes it while the kernel runs.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn selects(stencil: Global<u64>, form: u32, i: usize) -> bool {
    // SAFETY: the contract of this function.
    unsafe {
        if form == results::BITS {
            stencil.cast::<u32>().read_nc(i / 32) >> (i % 32) & 1 != 0
        } else {
            stencil.cast::<u8>().read_nc(i) != 0
        }
    }
}
