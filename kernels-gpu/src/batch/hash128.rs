//! How a kernel gets the 128-bit hash of its i-th key, for functions that number keys. The kinds are told apart at run time, as those
//! of [`super::keys`].

use super::keys::{NARROW, SIGNED, word_at};
use warpset_core::recsplit::Hash128;
use warpset_simt::Global;

/// Integers of 64 bits.
pub const U64: u32 = 0;
/// Unsigned integers of 32 bits, hashed as those of 64 bits of the same value.
pub const U32: u32 = NARROW;
/// Signed integers of 32 bits, hashed as those of 64 bits of the same value.
pub const I32: u32 = NARROW | SIGNED;
/// Ready-made hashes: two words per key, the high half first. With seed 0 they are taken as they are.
pub const READY: u32 = 16;

/// The hash of key `i` under `seed`.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind, which no thread writes while the kernel runs; ready-made hashes begin at a
/// multiple of 16 bytes.
#[inline(always)]
pub unsafe fn hash128_at(keys: Global<u64>, kind: u32, seed: u64, i: usize) -> Hash128 {
    // SAFETY: the caller says what `keys` points to.
    unsafe {
        if kind == READY {
            let [high, low] = keys.read2_nc(2 * i);
            return Hash128 { high, low }.under(seed);
        }
        Hash128::of_integer(word_at(keys, kind, i), seed)
    }
}
