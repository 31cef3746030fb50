//! Kernels of the standard quotient filter: lookup.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section IV-A: one thread per key. [`windows`] is the access to slots.

use warpset_core::quotient::slots::bytes_of_slot;
use warpset_simt::{Global, GlobalMut};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::quotient::answers::{contains, contains_sorted};
use crate::quotient::memory::{Parameters, ReadOnly};
use crate::quotient::standard::windows;
#[cfg(feature = "bodies")]
use crate::quotient::standard::windows::PackedWindows;

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

/// Declares kernels for packed slots.
macro_rules! packed {
    ($($kernel:ident: $paired:literal, $remainders:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Whether each key may be in a filter of packed slots, with remainders of ", $remainders, ".")]
            ///
            /// # Safety
            /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
            /// - `words`: a sound filter of `slots` slots with these [`Parameters`], 16-byte aligned, not written while
            ///   the kernel runs.
            /// - `fields`: [`windows::fields`] of its remainders.
            /// - `keys`: `n` keys of `kind`, whose function is `Seeded`, not written while the kernel
            ///   runs.
            /// - `out`: `results::words(form, n)` words, used by this launch alone; for `results::COUNT`, others may
            ///   add to it.
            #[launch_bounds(256, 6)]
            pub unsafe fn $kernel(
                words: Global<u64>, slots: u64, parameters: u32, fields: u64, keys: Global<u64>, kind: KeyKind,
                spread: u64, n: usize, form: u32, out: GlobalMut<u64>,
            ) {
                let parameters = Parameters(parameters);
                let bits = parameters.split().remainder_bits;
                let slots = PackedWindows::<$paired, _>::new(ReadOnly(words), slots, bits, fields);
                let is_stored = |quotient, remainder| windows::contains(&slots, quotient, remainder);
                // SAFETY: the caller keeps this kernel's contract.
                unsafe { contains(is_stored, parameters, keys, kind, spread, n, form, out) }
            }
        }
    )*};
}
packed! {
    quotient_standard_contains_packed: false, "any number of bits";
    quotient_standard_contains_paired: true, "an odd number of bits";
}

kernel! {
    /// Looks up keys like [`quotient_standard_contains_packed`], in slots of one byte.
    ///
    /// # Safety
    /// The contract of [`quotient_standard_contains_packed`].
    #[launch_bounds(256, 7)]
    pub unsafe fn quotient_standard_contains_bytes(
        words: Global<u64>, slots: u64, parameters: u32, keys: Global<u64>, kind: KeyKind, spread: u64, n: usize,
        form: u32, out: GlobalMut<u64>,
    ) {
        let is_stored = |quotient, remainder| {
            windows::in_single_bytes(ReadOnly(words), slots, quotient, remainder)
        };
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { contains(is_stored, Parameters(parameters), keys, kind, spread, n, form, out) }
    }
}

kernel! {
    /// Looks up keys like [`quotient_standard_contains_packed`], in slots of two bytes and more.
    ///
    /// # Safety
    /// The contract of [`quotient_standard_contains_packed`].
    #[launch_bounds(256, 5)]
    pub unsafe fn quotient_standard_contains_wide(
        words: Global<u64>, slots: u64, parameters: u32, keys: Global<u64>, kind: KeyKind, spread: u64, n: usize,
        form: u32, out: GlobalMut<u64>,
    ) {
        let parameters = Parameters(parameters);
        let bits = parameters.split().remainder_bits;
        let is_stored = |quotient, remainder| {
            windows::in_wide_slots(ReadOnly(words), slots, bits, quotient, remainder)
        };
        // SAFETY: the caller keeps this kernel's contract; the width is the same for all threads.
        unsafe { contains(is_stored, parameters, keys, kind, spread, n, form, out) }
    }
}

kernel! {
    /// Reports whether each of the sorted fingerprints is stored, in a filter of packed slots.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per block.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`], 16-byte aligned, not written while the
    ///   kernel runs.
    /// - `fields`: [`windows::fields`] of its remainders.
    /// - `fingerprints`: `n`, of 64 bits if they are `wide`, otherwise of 32, not written while the kernel runs. The
    ///   same holds for `places`, which are different and below `n`; `results::COUNT` does not read them.
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
    /// Looks up fingerprints like [`quotient_lookup_sorted_packed`], in slots of whole bytes.
    ///
    /// # Safety
    /// The contract of [`quotient_lookup_sorted_packed`].
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
