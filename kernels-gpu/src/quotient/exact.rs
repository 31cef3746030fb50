//! Keys of exact filters: check for fingerprints, and the way back from fingerprints to keys.

use warpset_core::hash::permute::unpermute;
use warpset_simt::{Global, GlobalMut, thread};

use crate::batch::keys::KeyKind;
use crate::batch::results;
#[cfg(feature = "bodies")]
use crate::quotient::keys::fingerprint_at;
use crate::quotient::memory::Parameters;

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

kernel! {
    /// Reports for each key whether it has a fingerprint, as a bit, or counts those that have one.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs.
    /// - `out`: `results::words(form, n)` words, used by this launch alone; for `results::COUNT`, others may add to it.
    pub unsafe fn quotient_exact_fits(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, parameters: u32, form: u32, out: GlobalMut<u64>,
    ) {
        let i = thread::index_1d() as usize;
        // SAFETY: `i < n` where it is read; all threads arrive at `put`.
        unsafe {
            let fits = i < n && fingerprint_at(keys, kind, spread, Parameters(parameters).split(), i).is_some();
            results::put(form, out, i, n, fits);
        }
    }
}

kernel! {
    /// Sets the answer for each key without a fingerprint to zero.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs.
    /// - `out`: `n` words, used by this launch alone.
    pub unsafe fn quotient_exact_clear(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, parameters: u32, out: GlobalMut<u64>,
    ) {
        let i = thread::index_1d() as usize;
        // SAFETY: `i < n` where it is read and written.
        unsafe {
            if i < n && fingerprint_at(keys, kind, spread, Parameters(parameters).split(), i).is_none() {
                out.write(i, 0);
            }
        }
    }
}

kernel! {
    /// Replaces each fingerprint of `bits` bits by its key.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block.
    /// - `fingerprints`: `n`, used by this launch alone.
    pub unsafe fn quotient_exact_keys(fingerprints: GlobalMut<u64>, n: usize, bits: u32, spread: u64) {
        let i = thread::index_1d() as usize;
        if i < n {
            // SAFETY: `i < n`.
            unsafe { fingerprints.write(i, unpermute(fingerprints.read(i), bits, spread)) };
        }
    }
}
