//! How a kernel gets the 128-bit hash of its i-th key, for functions that number keys.

use super::keys::{KeyClass, KeyKind, word_at};
use warpset_core::recsplit::Hash128;
use warpset_simt::Global;

/// The hash of key `i` under `seed`. Ready-made hashes ([`KeyClass::Hashes128`]) are taken as they are under seed 0.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind, which no thread writes while the kernel runs; hashes of 128 bits
/// begin at a multiple of 16 bytes.
#[inline(always)]
pub unsafe fn hash128_at(keys: Global<u64>, kind: KeyKind, seed: u64, i: usize) -> Hash128 {
    // SAFETY: the caller says what `keys` points to.
    unsafe {
        match kind.class {
            KeyClass::Hashes128 => {
                let [high, low] = keys.read2_nc(2 * i);
                Hash128 { high, low }.under(seed)
            }
            KeyClass::U32 | KeyClass::I32 | KeyClass::U64 | KeyClass::Hashes => {
                Hash128::of_integer(word_at(keys, kind.class, i), seed)
            }
        }
    }
}
