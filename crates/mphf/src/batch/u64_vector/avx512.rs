//! Vectors of eight lanes in registers of AVX-512.

use super::{LANES, Lanes, VECTORS, Vector, Vectors, pairs_bmi2, products};
use std::arch::x86_64::*;
use std::ops::{Add, BitAnd, BitOr, BitXor, Sub};
use warpset_base::key::Hash128;
use warpset_base::processor::Pdep;

/// AVX-512, and `pdep` for selection.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(Pdep);

impl Avx512 {
    /// Proves that the processor has the instructions.
    ///
    /// # Safety
    /// - The processor has BMI2 and the instructions that [`crate::processor::has_avx512`] tests.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: the processor has BMI2, by this function's contract.
        Self(unsafe { Pdep::assume() })
    }
}

/// A register. It is made from an [`Avx512`] or another register, so the processor has the instructions.
#[derive(Clone, Copy)]
pub(crate) struct Register(__m512i);

macro_rules! operators {
    ($($operator:ident $name:ident $instruction:ident;)*) => {$(
        impl $operator for Register {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                // SAFETY: a register exists only where the processor has the instructions.
                Self(unsafe { $instruction(self.0, other.0) })
            }
        }
    )*};
}

operators! {
    Add add _mm512_add_epi64;
    Sub sub _mm512_sub_epi64;
    BitAnd bitand _mm512_and_si512;
    BitOr bitor _mm512_or_si512;
    BitXor bitxor _mm512_xor_si512;
}

products!("avx512f", __m512i, zmm_reg);

/// Methods of one argument or of two vectors, one instruction each.
macro_rules! methods {
    ($($name:ident($($other:ident)?) $instruction:ident;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $other: Self)?) -> Self {
            // SAFETY: a register exists only where the processor has the instructions.
            Self(unsafe { $instruction(self.0 $(, $other.0)?) })
        }
    )*};
}

impl Vector for Register {
    type Mask = u8;

    methods! {
        shl_by(by) _mm512_sllv_epi64;
        shr_by(by) _mm512_srlv_epi64;
        times(other) unsigned_product;
        times_signed(other) signed_product;
        times_all(other) _mm512_mullo_epi64;
        count_ones() _mm512_popcnt_epi64;
    }

    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        // SAFETY: the array has eight words; a register exists only where the processor has the instructions.
        unsafe { _mm512_storeu_epi64(to.as_mut_ptr().cast(), self.0) };
    }
    #[inline(always)]
    fn without(self, other: Self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        Self(unsafe { _mm512_andnot_si512(other.0, self.0) })
    }
    #[inline(always)]
    fn shl<const BY: u32>(self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        Self(unsafe { _mm512_slli_epi64::<BY>(self.0) })
    }
    #[inline(always)]
    fn shr<const BY: u32>(self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        Self(unsafe { _mm512_srli_epi64::<BY>(self.0) })
    }
    #[inline(always)]
    fn shr_signed<const BY: u32>(self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        Self(unsafe { _mm512_srai_epi64::<BY>(self.0) })
    }
    #[inline(always)]
    fn below(self, other: Self) -> u8 {
        // SAFETY: a register exists only where the processor has the instructions.
        unsafe { _mm512_cmplt_epu64_mask(self.0, other.0) }
    }
    #[inline(always)]
    fn equals(self, other: Self) -> u8 {
        // SAFETY: a register exists only where the processor has the instructions.
        unsafe { _mm512_cmpeq_epi64_mask(self.0, other.0) }
    }
    #[inline(always)]
    fn or_else(self, mask: u8, other: Self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        Self(unsafe { _mm512_mask_mov_epi64(other.0, mask, self.0) })
    }
    #[inline(always)]
    fn only(self, mask: u8) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        Self(unsafe { _mm512_maskz_mov_epi64(mask, self.0) })
    }
    #[inline(always)]
    fn quotient(self, fractions: Self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        unsafe {
            let product = _mm512_mul_pd(_mm512_cvtepu64_pd(self.0), _mm512_castsi512_pd(fractions.0));
            Self(_mm512_cvttpd_epu64(product))
        }
    }
    #[inline(always)]
    fn digit(self, fractions: Self, radix: Self) -> Self {
        /// Mode of the remainder of rounding to zero, exceptions suppressed.
        const FRACTIONAL: i32 = 0b1011;
        // SAFETY: a register exists only where the processor has the instructions.
        unsafe {
            let product = _mm512_mul_pd(_mm512_cvtepu64_pd(self.0), _mm512_castsi512_pd(fractions.0));
            radix.quotient(Self(_mm512_castpd_si512(_mm512_reduce_pd::<FRACTIONAL>(product))))
        }
    }
    #[inline(always)]
    fn add_16(self, other: Self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        Self(unsafe { _mm512_add_epi16(self.0, other.0) })
    }
    #[inline(always)]
    fn byte_pairs(self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        Self(unsafe { _mm512_maddubs_epi16(self.0, _mm512_set1_epi8(1)) })
    }
    #[inline(always)]
    fn low_16_times_4(self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        unsafe {
            let bytes = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 8, 9, 8, 9, 8, 9, 8, 9));
            Self(_mm512_shuffle_epi8(self.0, bytes))
        }
    }
}

impl Vectors for Avx512 {
    type V = Register;
    type Select = Pdep;

    #[inline(always)]
    fn select(self) -> Pdep {
        self.0
    }
    #[inline(always)]
    fn splat(self, x: u64) -> Register {
        // SAFETY: a value of this type exists only where the processor has the instructions.
        Register(unsafe { _mm512_set1_epi64(x as i64) })
    }
    #[inline(always)]
    fn load(self, from: &[u64; LANES]) -> Register {
        // SAFETY: the array has eight words; a value of this type exists only where the processor has the instructions.
        Register(unsafe { _mm512_loadu_epi64(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn words(self, words: &[u64], index: Register) -> Register {
        let within = index.below(self.splat(words.len() as u64));
        // SAFETY: only words within are loaded; a value of this type exists only where the processor has the
        // instructions.
        Register(unsafe {
            _mm512_mask_i64gather_epi64::<8>(_mm512_setzero_si512(), within, index.0, words.as_ptr().cast())
        })
    }
    #[inline(always)]
    fn halves(self, words: &[u64], index: Register) -> Register {
        let within = index.below(self.splat(words.len() as u64 * 2));
        // SAFETY: only halves within are loaded; a value of this type exists only where the processor has the
        // instructions.
        Register(unsafe {
            let zero = _mm256_setzero_si256();
            let halves = _mm512_mask_i64gather_epi32::<4>(zero, within, index.0, words.as_ptr().cast());
            _mm512_cvtepu32_epi64(halves)
        })
    }
    #[inline(always)]
    fn bytes(self, words: &[u64], at: Register) -> Register {
        let within = at.below(self.splat((words.len() as u64 * 8).saturating_sub(8)));
        // SAFETY: only bytes within are loaded; a value of this type exists only where the processor has the
        // instructions.
        Register(unsafe {
            _mm512_mask_i64gather_epi64::<1>(_mm512_setzero_si512(), within, at.0, words.as_ptr().cast())
        })
    }
    #[inline(always)]
    fn look_up(self, table: &[u32; 32], index: Register) -> Register {
        // SAFETY: the table has 32 entries; a value of this type exists only where the processor has the instructions.
        Register(unsafe {
            let (low, high) =
                (_mm512_loadu_epi32(table.as_ptr().cast()), _mm512_loadu_epi32(table[16..].as_ptr().cast()));
            // Only even lanes of 32 bits are kept.
            _mm512_maskz_permutex2var_epi32(0x5555, low, index.0, high)
        })
    }
    #[inline(always)]
    fn hashes(self, hashes: &[Hash128; LANES]) -> (Register, Register) {
        // SAFETY: eight hashes are sixteen words, each high half before its low half; a value of this type exists only
        // where the processor has the instructions.
        unsafe {
            let words = hashes.as_ptr().cast::<i64>();
            let (first, second) = (_mm512_loadu_epi64(words), _mm512_loadu_epi64(words.add(8)));
            let high = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
            let low = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
            (
                Register(_mm512_permutex2var_epi64(first, high, second)),
                Register(_mm512_permutex2var_epi64(first, low, second)),
            )
        }
    }
    /// Takes one load and one count per key; the counts of eight keys are collected byte by byte and then transposed.
    #[inline(always)]
    fn counts(self, words: &[u64], firsts: &Lanes, masks: &Lanes, counts: &mut Lanes) {
        /// Place `8 a + b` is `8 b + a`.
        static TRANSPOSED: [u8; 64] = {
            let mut places = [0; 64];
            let mut i = 0;
            while i < 64 {
                places[i] = (i % 8 * 8 + i / 8) as u8;
                i += 1;
            }
            places
        };
        assert!(words.len() >= 8);
        let last = self.splat(words.len() as u64 - 8);
        let mut starts = Lanes::ZERO;
        for v in 0..VECTORS {
            let first = firsts.get(self, v);
            starts.set(v, first.or_else(first.below(last), last));
        }
        for v in 0..VECTORS {
            let mut all = self.splat(0).0;
            // SAFETY: the starts are at most `last`, and eight words follow there; the table has 64 bytes; a value of
            // this type exists only where the processor has the instructions.
            let transposed = unsafe {
                for i in LANES * v..LANES * (v + 1) {
                    let some = _mm512_loadu_epi64(words.as_ptr().add(starts[i] as usize).cast());
                    let some = _mm512_mask_and_epi64(some, 1, some, _mm512_set1_epi64(masks[i] as i64));
                    // The count enters as the highest byte, and the others move down.
                    all = _mm512_shrdi_epi64::<8>(all, _mm512_popcnt_epi64(some));
                }
                _mm512_permutexvar_epi8(_mm512_loadu_epi8(TRANSPOSED.as_ptr().cast()), all)
            };
            counts.set(v, Register(transposed));
        }
    }
    #[inline(always)]
    fn pairs(self, words: &Lanes, ranks: &Lanes, ones: &mut Lanes) {
        // SAFETY: a value of this type exists only where the processor has BMI2.
        unsafe { pairs_bmi2(words, ranks, ones) };
    }
}
