//! Kernels of the standard quotient filter: lookup.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018, section
//! IV-A: one thread a key.

use warpset_core::quotient::Split;
use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, Slots};
use warpset_core::quotient::standard as core;
use warpset_simt::{Global, GlobalMut, kernel, thread};

use crate::quotient_memory::{Parameters, ReadOnly};
use crate::{keys, results};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

/// Answers for one key a thread.
///
/// # Safety
/// As [`quotient_standard_contains`].
#[inline(always)]
unsafe fn contains<S: Slots>(
    slots: S,
    split: Split,
    keys: Global<u64>,
    kind: u32,
    spread: u64,
    n: usize,
    form: u32,
    out: GlobalMut<u64>,
) {
    let i = thread::index_1d() as usize;
    let mut yes = false;
    // SAFETY: `i < n` where it is read; all threads arrive at `put`.
    unsafe {
        if i < n {
            let fingerprint = split.fingerprint(keys::mix_at(keys, kind, spread, i));
            yes = core::contains(&slots, split.quotient(fingerprint), split.remainder(fingerprint));
        }
        results::put(form, out, i, n, yes);
    }
}

kernel! {
    /// Whether each key may be in the filter.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `words`: a sound filter of `slots` slots with these [`Parameters`], not written meanwhile.
    /// - `keys`: `n` keys of `kind`, one of `keys::HASH`, `MIX_U64` and `MIX_U32`, not written meanwhile.
    /// - `out`: `results::words(form, n)` words, nobody else's; for `results::COUNT`, others may add to it.
    #[launch_bounds(256, 4)]
    pub unsafe fn quotient_standard_contains(
        words: Global<u64>, slots: u64, parameters: u32, keys: Global<u64>, kind: u32, spread: u64, n: usize, form: u32,
        out: GlobalMut<u64>,
    ) {
        let parameters = Parameters(parameters);
        let split = parameters.split();
        let words = ReadOnly(words);
        // SAFETY: the caller keeps this kernel's contract; the container is the same for all threads.
        unsafe {
            match parameters.container() {
                Container::Bytes => {
                    let slots = ByteSlots::new(words, slots, split.remainder_bits);
                    contains(slots, split, keys, kind, spread, n, form, out);
                }
                Container::Packed => {
                    let slots = PackedSlots::new(words, slots, split.remainder_bits);
                    contains(slots, split, keys, kind, spread, n, form, out);
                }
            }
        }
    }
}
