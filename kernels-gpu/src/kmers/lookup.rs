//! Lookups of k-mers of more than 32 bases: exact ones among ascending words ([`Cut`]), and keys for filters of 64-bit
//! keys.

use warpset_simt::{Global, GlobalMut, thread};

use super::cut::Cut;
use super::number::Number;

/// Threads per block in all kernels here.
pub const BLOCK: u32 = 256;

kernel! {
    /// Answers for each of `n` k-mers of `k` bases whether a set has it: 1 or 0.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, [`BLOCK`] threads per block, no shared memory.
    /// - `k` is 33 to 63; k-mers have `2 * k` bits.
    /// - `words`: the end of each part of `Cut::new(2 * k)` among the words of all k-mers, ascending, and then these
    ///   words; valid for all of them, and not written while the kernel runs.
    /// - `kmers`: valid for `n` reads, not written while the kernel runs.
    /// - `answers`: valid for `n` writes; no other thread accesses them while the kernel runs.
    pub unsafe fn kmers_contains(
        words: Global<u128>, k: u32, kmers: Global<u128>, n: usize, answers: GlobalMut<u8>,
    ) {
        let cut: Cut<u128> = Cut::new(2 * k);
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`. A part is below the number of parts; its places begin at the end of the part before and
            // end at its own, so they are places of words, and `find` reads no others.
            unsafe {
                let fingerprint = kmers.read_nc(i).fingerprint(2 * k);
                let part = cut.part(fingerprint);
                let begin = if part == 0 { 0 } else { words.read_nc(part - 1) as usize };
                let places = begin..words.read_nc(part) as usize;
                let guess = cut.guess(fingerprint, &places);
                let found = cut.find(fingerprint, places, guess, |place| words.read_nc(cut.parts() + place));
                answers.write(i, found.is_some() as u8);
            }
        }
    }

    /// Writes the key of each of `n` k-mers of more than 32 bases ([`Number::key`]), under seed 0.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid, [`BLOCK`] threads per block, no shared memory.
    /// - `kmers`: valid for `n` reads, not written while the kernel runs.
    /// - `keys`: valid for `n` writes; no other thread accesses them while the kernel runs.
    pub unsafe fn kmers_keys(kmers: Global<u128>, n: usize, keys: GlobalMut<u64>) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            unsafe { keys.write(i, kmers.read_nc(i).key(0)) };
        }
    }
}
