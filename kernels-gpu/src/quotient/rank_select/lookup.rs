//! Lookups and counts in rank-and-select quotient filters.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018,
//! section V-A: one thread per key. [`search`](super::search) is the search for a run.

use warpset_simt::{Global, GlobalMut, allow, thread};

use crate::batch::keys::KeyKind;
#[cfg(feature = "bodies")]
use crate::quotient::answers::{contains, contains_sorted};
#[cfg(feature = "bodies")]
use crate::quotient::keys::fingerprint_at;
use crate::quotient::memory::{Parameters, ReadOnly};
use crate::quotient::rank_select::search::Runs;

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

/// Declares kernels for keys in any order.
macro_rules! unsorted {
    ($($kernel:ident: $paired:literal, $remainders:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Whether each key may be in a filter with remainders of ", $remainders, ".")]
            ///
            /// # Safety
            /// - Launch: 1-D, `n.div_ceil(BLOCK)` thread blocks of [`BLOCK`] threads.
            /// - `words`: a sound filter of `blocks` blocks with these [`Parameters`], 16-byte aligned, not written
            ///   while the kernel runs.
            /// - `fields`: [`fields`](warpset_core::quotient::rank_select::fields) of its remainders.
            /// - `keys`: `n` keys of `kind`, one that [`fingerprint_at`] takes, not written while the kernel runs.
            /// - `out`: `results::words(form, n)` words, used by this launch alone; for `results::COUNT`, others may
            ///   add to it.
            #[launch_bounds(256, 8)]
            pub unsafe fn $kernel(
                words: Global<u64>, blocks: u64, parameters: u32, fields: u64, keys: Global<u64>, kind: KeyKind,
                spread: u64, n: usize, form: u32, out: GlobalMut<u64>,
            ) {
                let parameters = Parameters(parameters);
                let bits = parameters.split().remainder_bits;
                let runs = Runs::<$paired, false, _>::new(ReadOnly(words), blocks, bits, fields);
                let is_stored = |quotient, remainder| runs.contains(quotient, remainder);
                // SAFETY: the caller keeps this kernel's contract.
                unsafe { contains(is_stored, parameters, keys, kind, spread, n, form, out) }
            }
        }
    )*};
}
unsorted! {
    quotient_rank_select_contains: false, "any number of bits";
    quotient_rank_select_contains_paired: true, "an odd number of bits";
}

kernel! {
    /// Reports whether each of the sorted fingerprints is stored.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per fingerprint, [`BLOCK`] threads per thread block.
    /// - `words`, `blocks`, `parameters`, `fields`: as for [`quotient_rank_select_contains`].
    /// - `fingerprints`, `wide`, `places`, `out`: as for `quotient_lookup_sorted_packed`.
    #[launch_bounds(256, 8)]
    pub unsafe fn quotient_rank_select_contains_sorted(
        words: Global<u64>, blocks: u64, parameters: u32, fields: u64, fingerprints: Global<u64>, wide: u32,
        places: Global<u32>, n: usize, form: u32, out: GlobalMut<u64>,
    ) {
        let parameters = Parameters(parameters);
        let runs = Runs::<false, false, _>::new(ReadOnly(words), blocks, parameters.split().remainder_bits, fields);
        let is_stored = |quotient, remainder| runs.contains(quotient, remainder);
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { contains_sorted(is_stored, parameters, fingerprints, wide, places, n, form, out) }
    }
}

/// Declares kernels of counts.
macro_rules! counts {
    ($($kernel:ident: $paired:literal, $remainders:literal;)*) => {$(
        kernel! {
            #[doc = concat!("How many copies of each key's fingerprint are stored in a filter with remainders of ", $remainders, ".")]
            ///
            /// # Safety
            /// The contract of [`quotient_rank_select_contains`]; `out` has `n` words, used by this launch alone.
            #[launch_bounds(256, 8)]
            pub unsafe fn $kernel(
                words: Global<u64>, blocks: u64, parameters: u32, fields: u64, keys: Global<u64>, kind: KeyKind,
                spread: u64, n: usize, out: GlobalMut<u64>,
            ) {
                allow::spill(); // one or two registers, where the assembler is that of CUDA 12.9 or 13.0
                let split = Parameters(parameters).split();
                let i = thread::index_1d() as usize;
                if i < n {
                    let runs = Runs::<$paired, false, _>::new(ReadOnly(words), blocks, split.remainder_bits, fields);
                    let count = |item| runs.count(split.quotient(item), split.remainder(item));
                    // SAFETY: `i < n`.
                    unsafe { out.write(i, fingerprint_at(keys, kind, spread, split, i).map_or(0, count)) };
                }
            }
        }
    )*};
}
counts! {
    quotient_rank_select_count: false, "any number of bits";
    quotient_rank_select_count_paired: true, "an odd number of bits";
}
