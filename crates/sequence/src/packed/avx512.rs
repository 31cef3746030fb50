//! Packing of 64 letters at a time by AVX-512.
//!
//! Bits 1 and 2 of a letter are its code. A test of each gives one bit per letter, and two deposits interleave these
//! bits.

use std::arch::x86_64::*;
use std::mem::MaybeUninit;

use crate::minimizers::lanes::Avx512;

/// Packs a sequence into its `letters.len() / 32 + 1` words, and writes all of them.
pub(super) fn pack_into(_: Avx512, letters: &[u8], bases: &mut [MaybeUninit<u64>], breaks: &mut [MaybeUninit<u32>]) {
    // SAFETY: a value of `Avx512` exists only if the processor has the instructions.
    unsafe { pack(letters, bases, breaks) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn pack(letters: &[u8], bases: &mut [MaybeUninit<u64>], breaks: &mut [MaybeUninit<u32>]) {
    let words = letters.len() / 32 + 1;
    let (whole, rest) = letters.as_chunks::<64>();
    let (bases, breaks) = (&mut bases[..words], &mut breaks[..words]);
    let (bases, last_bases) = bases.split_at_mut(2 * whole.len());
    let (breaks, last_breaks) = breaks.split_at_mut(2 * whole.len());
    let (bases, breaks) = (bases.as_chunks_mut::<2>().0, breaks.as_chunks_mut::<2>().0);
    // A counting loop: iterator adapters are compiled without the instructions of this function, and called.
    let mut i = 0;
    while i < whole.len() {
        // SAFETY: `whole[i]` is an array of 64 bytes.
        let (pair, broken) = codes(unsafe { _mm512_loadu_si512(whole[i].as_ptr().cast()) });
        bases[i] = [MaybeUninit::new(pair[0]), MaybeUninit::new(pair[1])];
        breaks[i] = [MaybeUninit::new(broken as u32), MaybeUninit::new((broken >> 32) as u32)];
        i += 1;
    }
    // Zeros are no bases: at least one of them follows the sequence. No byte past the end is read.
    let there = !(!0 << rest.len());
    // SAFETY: the mask has one bit per byte of `rest`, and no other byte is read.
    let (pair, broken) = codes(unsafe { _mm512_maskz_loadu_epi8(there, rest.as_ptr().cast()) });
    last_bases[0].write(pair[0]);
    last_breaks[0].write(broken as u32);
    if let ([_, bases], [_, breaks]) = (last_bases, last_breaks) {
        bases.write(pair[1]);
        breaks.write((broken >> 32) as u32);
    }
}

/// Returns the codes of 64 letters, and one bit per letter that is no base.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi1,bmi2,lzcnt,popcnt")]
fn codes(letters: __m512i) -> ([u64; 2], u64) {
    const ODD: u64 = 0x5555_5555_5555_5555;
    let low = _mm512_test_epi8_mask(letters, _mm512_set1_epi8(2));
    let high = _mm512_test_epi8_mask(letters, _mm512_set1_epi8(4));
    // Table by the lower half of a byte: the letter with that half, or a byte that does not have it.
    let bases = _mm_setr_epi8(1, b'A' as i8, 0, b'C' as i8, b'T' as i8, 0, 0, b'G' as i8, 0, 0, 0, 0, 0, 0, 0, 0);
    let wanted = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bases), letters);
    let broken = _mm512_cmpneq_epi8_mask(wanted, _mm512_and_si512(letters, _mm512_set1_epi8(!0x20)));
    let first = _pdep_u64(low, ODD) | _pdep_u64(high, !ODD);
    let second = _pdep_u64(low >> 32, ODD) | _pdep_u64(high >> 32, !ODD);
    ([first, second], broken)
}
