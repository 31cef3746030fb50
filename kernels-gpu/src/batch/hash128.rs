//! 128-bit hash of the i-th key in a kernel, for functions that number keys.

use super::keys::{HashFunction, KeyClass, KeyKind, word_at};
use warpset_core::recsplit::Hash128;
use warpset_simt::Global;

/// Returns the hash of key `i` under `seed`. Existing hashes ([`KeyClass::Hashes128`]) are used unchanged under seed 0.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind, which no thread writes while the kernel runs; hashes of 128 bits
/// begin at a multiple of 16 bytes.
#[inline(always)]
pub unsafe fn hash128_at(keys: Global<u64>, kind: KeyKind, seed: u64, i: usize) -> Hash128 {
    // SAFETY: `keys` points to keys of this kind, by the contract of this function.
    unsafe {
        match kind.class {
            KeyClass::Hashes128 => {
                let [high, low] = keys.read2_nc(2 * i);
                Hash128 { high, low }.under(seed)
            }
            KeyClass::U32 | KeyClass::I32 | KeyClass::U64 | KeyClass::Hashes => {
                let word = word_at(keys, kind.class, i);
                match kind.function {
                    HashFunction::WideShort => Hash128::of_integer_short(word, seed),
                    _ => Hash128::of_integer(word, seed),
                }
            }
        }
    }
}
