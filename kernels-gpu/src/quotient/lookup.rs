//! Lookups of a sorted batch in a standard quotient filter (section IV-A of Geil, Farach-Colton, Owens, IPDPS 2018):
//! fingerprints with the places of their keys, and, once they are sorted, the answers, each to its place.

use warpset_core::quotient::slots::bytes_of_slot;
use warpset_simt::{Global, GlobalMut, thread};

use crate::batch::keys;
use crate::quotient::answers::contains_sorted;
use crate::quotient::memory::{Fingerprint, Parameters, ReadOnly};
use crate::quotient::windows::{self, PackedWindows};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

kernel! {
    /// Whether each of the sorted fingerprints is stored, in a filter of packed slots.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`], 16-byte aligned, not written while the
    ///   kernel runs.
    /// - `fields`: [`windows::fields`] of its remainders.
    /// - `fingerprints`: `n`, of 64 bits if they are `wide` and else of 32, not written while the kernel runs; so
    ///   `places`, different ones below `n`, which for `results::COUNT` are not read.
    /// - `out`: `results::words(form, n)` words, used by this launch alone; zero at the start for `results::BITS`; for
    ///   `results::COUNT`, others may add to it.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_lookup_sorted_packed(
        words: Global<u64>, slots: u64, parameters: u32, fields: u64, fingerprints: Global<u64>, wide: u32,
        places: Global<u32>, n: usize, form: u32, out: GlobalMut<u64>,
    ) {
        let parameters = Parameters(parameters);
        let slots = PackedWindows::<false, _>::new(ReadOnly(words), slots, parameters.split().remainder_bits, fields);
        let is_stored = |quotient, remainder| windows::contains(&slots, quotient, remainder);
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { contains_sorted(is_stored, parameters, fingerprints, wide, places, n, form, out) }
    }
}

kernel! {
    /// [`quotient_lookup_sorted_packed`] for slots of whole bytes.
    ///
    /// # Safety
    /// As there.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_lookup_sorted_bytes(
        words: Global<u64>, slots: u64, parameters: u32, fingerprints: Global<u64>, wide: u32, places: Global<u32>,
        n: usize, form: u32, out: GlobalMut<u64>,
    ) {
        let parameters = Parameters(parameters);
        let (words, bits) = (ReadOnly(words), parameters.split().remainder_bits);
        let is_stored = |quotient, remainder| {
            if bytes_of_slot(bits) == 1 {
                windows::in_single_bytes(words, slots, quotient, remainder)
            } else {
                windows::in_wide_slots(words, slots, bits, quotient, remainder)
            }
        };
        // SAFETY: the caller keeps this kernel's contract; the width is the same for all threads.
        unsafe { contains_sorted(is_stored, parameters, fingerprints, wide, places, n, form, out) }
    }
}

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
    /// The fingerprint of each key, as `F`, and the key's place.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block; `n` below 2^32.
    /// - `keys`: `n` keys of `kind`, `keys::HASH` or one of `keys::MIX_U64`, `MIX_U32` and `MIX_I32`, not written while the kernel runs.
    /// - `out`, `places`: `n` each, used by this launch alone; fingerprints of these [`Parameters`] fit.
    pub unsafe fn quotient_lookup_hash<F>(
        keys: Global<u64>, kind: u32, spread: u64, n: usize, parameters: u32, out: GlobalMut<F>,
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
