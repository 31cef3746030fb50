//! AVX-512 and AVX2 vectors.

use super::{U32Vector, lanes_below};
use std::arch::x86_64::*;

/// Sixteen lanes. Needs AVX-512 F, BW, DQ, VL and VPOPCNTDQ.
#[derive(Clone, Copy)]
pub(crate) struct V512(__m512i);

// SAFETY: every pointer is used for 16 unaligned lanes, by the trait's contract, which also requires the instructions.
unsafe impl U32Vector for V512 {
    const N: usize = 16;
    type Table = Self;

    #[inline(always)]
    unsafe fn splat(x: u32) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_set1_epi32(x as i32) })
    }
    #[inline(always)]
    unsafe fn iota() -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) })
    }
    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: `from` is valid for 16 reads, by the trait's contract.
        Self(unsafe { _mm512_loadu_si512(from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: `to` is valid for 16 writes, by the trait's contract.
        unsafe { _mm512_storeu_si512(to.cast(), self.0) };
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_add_epi32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_sub_epi32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_mullo_epi32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_and_si512(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_or_si512(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_xor_si512(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn xor3(self, b: Self, c: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_ternarylogic_epi32::<0x96>(self.0, b.0, c.0) })
    }
    #[inline(always)]
    unsafe fn shr<const BY: u32>(self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_srli_epi32::<BY>(self.0) })
    }
    #[inline(always)]
    unsafe fn shlv(self, by: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_sllv_epi32(self.0, by.0) })
    }
    #[inline(always)]
    unsafe fn shrv(self, by: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_srlv_epi32(self.0, by.0) })
    }
    #[inline(always)]
    unsafe fn mul_high_halves(self, other: Self) -> Self {
        // SAFETY: AVX-512 BW, by the trait's contract.
        Self(unsafe { _mm512_mulhi_epu16(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn eq(self, other: Self) -> u32 {
        // SAFETY: AVX-512 F, by the trait's contract.
        u32::from(unsafe { _mm512_cmpeq_epi32_mask(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn less(self, other: Self) -> u32 {
        // SAFETY: AVX-512 F, by the trait's contract.
        u32::from(unsafe { _mm512_cmplt_epu32_mask(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn add_if_less(self, a: Self, b: Self, step: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_mask_add_epi32(self.0, _mm512_cmplt_epu32_mask(a.0, b.0), self.0, step.0) })
    }
    #[inline(always)]
    unsafe fn count_ones(self) -> Self {
        // SAFETY: AVX-512 VPOPCNTDQ, by the trait's contract.
        Self(unsafe { _mm512_popcnt_epi32(self.0) })
    }
    #[inline(always)]
    unsafe fn table(words: &[u32; 16]) -> Self {
        // SAFETY: `words` has 16 words.
        unsafe { Self::load(words.as_ptr()) }
    }
    #[inline(always)]
    unsafe fn look_up(table: Self, index: Self) -> Self {
        // SAFETY: AVX-512 F, by the trait's contract.
        Self(unsafe { _mm512_permutexvar_epi32(index.0, table.0) })
    }
    #[inline(always)]
    unsafe fn compress(self, mask: u32, to: *mut u32) {
        // SAFETY: `to` is valid for 16 writes, by the trait's contract. Compressing in a register and storing all of it
        // is much faster than a compressing store on some processors.
        unsafe { _mm512_storeu_si512(to.cast(), _mm512_maskz_compress_epi32(mask as u16, self.0)) };
    }
}

/// Eight lanes. Needs AVX2.
#[derive(Clone, Copy)]
pub(crate) struct V256(__m256i);

// SAFETY: every pointer is used for 8 unaligned lanes, by the trait's contract, which also requires the instructions.
unsafe impl U32Vector for V256 {
    const N: usize = 8;
    type Table = (Self, Self);

    #[inline(always)]
    unsafe fn splat(x: u32) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_set1_epi32(x as i32) })
    }
    #[inline(always)]
    unsafe fn iota() -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7) })
    }
    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self {
        // SAFETY: `from` is valid for 8 reads, by the trait's contract.
        Self(unsafe { _mm256_loadu_si256(from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut u32) {
        // SAFETY: `to` is valid for 8 writes, by the trait's contract.
        unsafe { _mm256_storeu_si256(to.cast(), self.0) };
    }
    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_add_epi32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn sub(self, other: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_sub_epi32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn mul(self, other: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_mullo_epi32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn and(self, other: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_and_si256(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn or(self, other: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_or_si256(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_xor_si256(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn shr<const BY: u32>(self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_srl_epi32(self.0, _mm_cvtsi32_si128(BY as i32)) })
    }
    #[inline(always)]
    unsafe fn shlv(self, by: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_sllv_epi32(self.0, by.0) })
    }
    #[inline(always)]
    unsafe fn shrv(self, by: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_srlv_epi32(self.0, by.0) })
    }
    #[inline(always)]
    unsafe fn mul_high_halves(self, other: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        Self(unsafe { _mm256_mulhi_epu16(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn eq(self, other: Self) -> u32 {
        // SAFETY: AVX2, by the trait's contract.
        unsafe { _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(self.0, other.0))) as u32 }
    }
    #[inline(always)]
    unsafe fn less(self, other: Self) -> u32 {
        // SAFETY: AVX2, by the trait's contract. There is no unsigned comparison: `a < b` unless `max(a, b) == a`.
        unsafe {
            let not_less = _mm256_cmpeq_epi32(_mm256_max_epu32(self.0, other.0), self.0);
            !_mm256_movemask_ps(_mm256_castsi256_ps(not_less)) as u32 & lanes_below(8)
        }
    }
    #[inline(always)]
    unsafe fn add_if_less(self, a: Self, b: Self, step: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract. There is no unsigned comparison: `a < b` unless `max(a, b) == a`.
        unsafe {
            let not_less = _mm256_cmpeq_epi32(_mm256_max_epu32(a.0, b.0), a.0);
            Self(_mm256_add_epi32(self.0, _mm256_andnot_si256(not_less, step.0)))
        }
    }
    #[inline(always)]
    unsafe fn count_ones(self) -> Self {
        // SAFETY: AVX2, by the trait's contract.
        unsafe {
            let nibbles = _mm256_set1_epi8(15);
            let ones = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
            let low = _mm256_shuffle_epi8(ones, _mm256_and_si256(self.0, nibbles));
            let high = _mm256_shuffle_epi8(ones, _mm256_and_si256(_mm256_srli_epi32::<4>(self.0), nibbles));
            let pairs = _mm256_maddubs_epi16(_mm256_add_epi8(low, high), _mm256_set1_epi8(1));
            Self(_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
        }
    }
    #[inline(always)]
    unsafe fn table(words: &[u32; 16]) -> (Self, Self) {
        // SAFETY: `words` has 16 words.
        unsafe { (Self::load(words.as_ptr()), Self::load(words.as_ptr().add(8))) }
    }
    #[inline(always)]
    unsafe fn look_up(table: (Self, Self), index: Self) -> Self {
        // SAFETY: AVX2, by the trait's contract. Bit 3 of the index, moved to the sign, picks the half.
        unsafe {
            let first = _mm256_permutevar8x32_epi32(table.0.0, index.0);
            let second = _mm256_permutevar8x32_epi32(table.1.0, index.0);
            let half = _mm256_slli_epi32::<28>(index.0);
            Self(_mm256_castps_si256(_mm256_blendv_ps(
                _mm256_castsi256_ps(first),
                _mm256_castsi256_ps(second),
                _mm256_castsi256_ps(half),
            )))
        }
    }
    #[inline(always)]
    unsafe fn compress(self, mask: u32, to: *mut u32) {
        // SAFETY: AVX2 and 8 valid words at `to`, by the trait's contract.
        unsafe {
            let lanes = _mm_cvtsi64_si128(LANES_OF[mask as usize % 256] as i64);
            let packed = _mm256_permutevar8x32_epi32(self.0, _mm256_cvtepu8_epi32(lanes));
            _mm256_storeu_si256(to.cast(), packed);
        }
    }
}

/// Lanes of each mask, one byte each, from the lowest on.
static LANES_OF: [u64; 256] = {
    let mut lanes = [0; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut count) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                lanes[mask] |= lane << (8 * count);
                count += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    lanes
};
