//! Fingerprints of a static filter, one thread per key.

#[cfg(feature = "bodies")]
use crate::batch::hash128::hash128_at;
use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::recsplit::memory::put;
use warpset_core::recsplit::fingerprint::fingerprint;
use warpset_simt::{Global, GlobalMut, thread};

/// Threads of a block.
pub const BLOCK: u32 = 256;

kernel! {
    /// Writes the fingerprint of every key to the place of its number.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `keys`: `n` keys of a kind that `hash128_at` takes; `numbers`: one per key. Nothing writes them while the
    ///   kernel runs.
    /// - `words`: valid for `width` bits per number, 1 to 32; zero there at the start, and only accessed atomically.
    pub unsafe fn recsplit_fingerprints(
        keys: Global<u64>, kind: KeyKind, seed: u64, n: usize, numbers: Global<u64>, width: u32, words: GlobalMut<u64>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; the bits of a number are within the words.
            unsafe {
                let hash = hash128_at(keys, kind, seed, i);
                put(words, numbers.read_nc(i) * width as u64, fingerprint(hash, width));
            }
        }
    }
}
