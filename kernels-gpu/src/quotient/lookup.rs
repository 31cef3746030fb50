//! Kernels around lookups of a sorted batch (section IV-A of Geil, Farach-Colton, Owens, "Quotient Filters: Approximate
//! Membership Queries on the GPU", IPDPS 2018): fingerprints with the places of their keys, and cleared answers.

use warpset_simt::{Global, GlobalMut, thread};

use crate::batch::keys::{self, KeyKind};
use crate::quotient::memory::{Fingerprint, Parameters};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

kernel! {
    /// Clears the bits of answers.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per word, [`BLOCK`] threads per block.
    /// - `out`: `words` words, used by this launch alone.
    pub unsafe fn quotient_lookup_clear(out: GlobalMut<u64>, words: usize) {
        let i = thread::index_1d() as usize;
        if i < words {
            // SAFETY: as the caller says.
            unsafe { out.write(i, 0) };
        }
    }
}

kernel! {
    /// Hashes keys to fingerprints of type `F`, and writes their places.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block; `n` below 2^32.
    /// - `keys`: `n` keys of `kind`, whose function is `Seeded`, not written while the kernel runs.
    /// - `out`, `places`: `n` each, used by this launch alone; `F` is wide enough for fingerprints of these
    ///   [`Parameters`].
    pub unsafe fn quotient_lookup_hash<F>(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, parameters: u32, out: GlobalMut<F>,
        places: GlobalMut<u32>,
    ) for [u32 => quotient_lookup_hash_u32, u64 => quotient_lookup_hash_u64] {
        let split = Parameters(parameters).split();
        let i = thread::index_1d();
        if (i as usize) < n {
            // SAFETY: `i < n`.
            unsafe {
                let hash = keys::mix_at(keys, kind, spread, i as usize);
                out.write(i as usize, F::of(split.fingerprint(hash)));
                places.write(i as usize, i);
            }
        }
    }
}
