//! Fingerprint of a kernel's i-th key: the high bits of its hash or, in an exact filter, a bijection of an integer.

use warpset_core::bits::lowest;
use warpset_core::hash::permute::permute;
use warpset_core::quotient::Split;
use warpset_simt::Global;

use crate::batch::keys::{self, HashFunction, KeyClass, KeyKind};

/// Returns the fingerprint of key `i`, or `None` if the filter is exact and the key is not an integer of at most that
/// many bits.
///
/// # Safety
/// `keys` points to more than `i` keys of that kind; the class is not [`KeyClass::Hashes128`], and the function is
/// [`HashFunction::Seeded`] or [`HashFunction::Permutation`].
#[inline(always)]
pub unsafe fn fingerprint_at(keys: Global<u64>, kind: KeyKind, spread: u64, split: Split, i: usize) -> Option<u64> {
    use {HashFunction::*, KeyClass::*};
    // SAFETY: the caller says what `keys` points to.
    unsafe {
        match kind.function {
            Seeded | Xxh64 | Int32 | Wide | WideShort => Some(split.fingerprint(keys::mix_at(keys, kind, spread, i))),
            Permutation => {
                let (word, bits) = (keys::word_at(keys, kind.class, i), split.fingerprint_bits());
                let is_integer = match kind.class {
                    U32 | I32 | U64 => true,
                    Hashes | Hashes128 => false,
                };
                (is_integer && word <= lowest(bits)).then(|| permute(word, bits, spread))
            }
        }
    }
}
