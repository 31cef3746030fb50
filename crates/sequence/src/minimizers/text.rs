//! Sources of bases: letters or packed words.

use super::blocks::BREAK;
use super::lanes::Avx2;
use crate::Packed;

/// Positions with or without a base.
pub(super) trait Text {
    /// Returns the number of positions.
    fn len(&self) -> usize;

    /// Writes the code of each of `len` positions from `first` on, any code below 4 if there is no base; and its count:
    /// 1 for G and T, 0 for A and C, [`BREAK`] for no base. Writes up to 32 more places.
    fn load(&self, bytes: Avx2, first: usize, len: usize, codes: &mut [u8], counts: &mut [u8]);
}

/// Letters of ASCII.
pub(super) struct Letters<'a>(pub(super) &'a [u8]);

impl Text for Letters<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline(always)]
    fn load(&self, bytes: Avx2, first: usize, len: usize, codes: &mut [u8], counts: &mut [u8]) {
        let letters = &self.0[first..first + len];
        let whole = len - len % 32;
        for at in (0..whole).step_by(32) {
            load_32(bytes, letters, at, codes, counts, at);
        }
        let mut padded = [0; 32];
        padded[..len - whole].copy_from_slice(&letters[whole..]);
        load_32(bytes, &padded, 0, codes, counts, whole);
    }
}

/// Writes codes and counts of 32 letters from `from` on. Not a closure: closures are compiled without the instructions.
#[inline(always)]
fn load_32(bytes: Avx2, letters: &[u8], from: usize, codes: &mut [u8], counts: &mut [u8], at: usize) {
    let (code, count) = bytes.bases(bytes.load_bytes(letters, from), BREAK);
    bytes.store_bytes(codes, at, code);
    bytes.store_bytes(counts, at, count);
}

/// Packed bases: 32 positions per word, and one bit per position without a base.
pub(super) struct PackedText<'a>(pub(super) &'a Packed);

impl Text for PackedText<'_> {
    fn len(&self) -> usize {
        32 * self.0.words()
    }

    /// Writes codes and counts of whole words: blocks begin at multiples of 32.
    #[inline(always)]
    fn load(&self, bytes: Avx2, first: usize, len: usize, codes: &mut [u8], counts: &mut [u8]) {
        let words = first / 32..(first + len).div_ceil(32);
        let bases = self.0.bases()[words.clone()].iter().zip(&self.0.breaks()[words]);
        for (at, (&bases, &breaks)) in bases.enumerate() {
            let (code, count) = bytes.unpack(bases, breaks, BREAK);
            bytes.store_bytes(codes, 32 * at, code);
            bytes.store_bytes(counts, 32 * at, count);
        }
    }
}
