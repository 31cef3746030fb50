//! The fingerprint of a kernel's i-th key: the high bits of its hash, or, in an exact filter, a bijection of an integer.
//!
//! Which of them is part of the kind of keys, a launch argument, as the kind of hash is
//! ([`batch::keys`](crate::batch::keys)): the branch is the same for all threads.

use warpset_core::bits::lowest;
use warpset_core::hash::permute::permute;
use warpset_core::quotient::Split;
use warpset_simt::Global;

use crate::batch::keys::{self, MIX_I32, MIX_U32, MIX_U64};

/// Added to the kind of keys: they belong to an exact filter. The spread is then that of the bijections.
const EXACT: u32 = 16;
/// Added to [`EXACT`]: these keys are no integers.
const NONE: u32 = 32;

/// `u64` keys (and `i64`, which have the same words) of an exact filter.
pub const EXACT_U64: u32 = MIX_U64 | EXACT;
/// `u32` keys of an exact filter, as the `u64` of the same value.
pub const EXACT_U32: u32 = MIX_U32 | EXACT;
/// `i32` keys of an exact filter, as the `i64` of the same value.
pub const EXACT_I32: u32 = MIX_I32 | EXACT;
/// Keys of an exact filter that are no integers, and have no fingerprint there.
pub const EXACT_NONE: u32 = MIX_U64 | EXACT | NONE;

/// The fingerprint of key `i`: none where the filter is exact, and the key no integer of as many bits.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind: `keys::HASH`, one that starts with `MIX`, or one of those here.
#[inline(always)]
pub unsafe fn fingerprint_at(keys: Global<u64>, kind: u32, spread: u64, split: Split, i: usize) -> Option<u64> {
    // SAFETY: the caller says what `keys` points to.
    unsafe {
        if kind & EXACT == 0 {
            return Some(split.fingerprint(keys::mix_at(keys, kind, spread, i)));
        }
        let (word, bits) = (keys::word_at(keys, kind, i), split.fingerprint_bits());
        (kind & NONE == 0 && word <= lowest(bits)).then(|| permute(word, bits, spread))
    }
}
