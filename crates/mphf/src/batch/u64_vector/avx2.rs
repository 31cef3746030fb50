//! Vectors of eight lanes in two registers of AVX2.
//!
//! Ones are counted word by word for the lists, and by halves of bytes elsewhere.

use super::{LANES, Lanes, Mask, VECTORS, Vector, Vectors, pairs_bmi2, products};
use std::arch::x86_64::*;
use std::ops::{Add, BitAnd, BitOr, BitXor, Not, Sub};
use warpset_base::key::Hash128;
use warpset_base::processor::Pdep;

/// AVX2, and `pdep` for selection.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(Pdep);

impl Avx2 {
    /// Proves that the processor has the instructions.
    ///
    /// # Safety
    /// - The processor has the instructions that [`crate::processor::has_fast_pdep`] tests.
    #[inline(always)]
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: the processor has BMI2, by this function's contract.
        Self(unsafe { Pdep::assume() })
    }
}

/// Two registers. They are made from an [`Avx2`] or other registers, so the processor has the instructions.
#[derive(Clone, Copy)]
pub(crate) struct Registers(__m256i, __m256i);

/// Registers with all bits of some lanes.
#[derive(Clone, Copy)]
pub(crate) struct Whole(Registers);

macro_rules! operators {
    ($($operator:ident $name:ident $instruction:ident;)*) => {$(
        impl $operator for Registers {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                // SAFETY: a register exists only where the processor has the instructions.
                unsafe { Self($instruction(self.0, other.0), $instruction(self.1, other.1)) }
            }
        }
    )*};
}

operators! {
    Add add _mm256_add_epi64;
    Sub sub _mm256_sub_epi64;
    BitAnd bitand _mm256_and_si256;
    BitOr bitor _mm256_or_si256;
    BitXor bitxor _mm256_xor_si256;
}

impl BitAnd for Whole {
    type Output = Self;
    #[inline(always)]
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Whole {
    type Output = Self;
    #[inline(always)]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Not for Whole {
    type Output = Self;
    #[inline(always)]
    fn not(self) -> Self {
        Self(self.0 ^ Registers::of(u64::MAX))
    }
}

impl Mask for Whole {
    #[inline(always)]
    fn bits(self) -> u8 {
        // SAFETY: a register exists only where the processor has the instructions.
        unsafe {
            let low = _mm256_movemask_pd(_mm256_castsi256_pd(self.0.0));
            let high = _mm256_movemask_pd(_mm256_castsi256_pd(self.0.1));
            (low | high << 4) as u8
        }
    }
}

products!("avx2", __m256i, ymm_reg);

/// Counts the ones of each lane by halves of bytes.
#[target_feature(enable = "avx2")]
#[inline]
fn ones(x: __m256i) -> __m256i {
    let counts = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
    let half = _mm256_set1_epi8(15);
    let low = _mm256_shuffle_epi8(counts, _mm256_and_si256(x, half));
    let high = _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16::<4>(x), half));
    _mm256_sad_epu8(_mm256_add_epi8(low, high), _mm256_setzero_si256())
}

/// Offset that makes floats of numbers below 2^52: a float with such a number as its lowest bits is 2^52 more.
const FLOAT: u64 = 0x4330_0000_0000_0000;

/// Converts numbers below 2^50 to floats.
#[target_feature(enable = "avx2")]
#[inline]
fn floats(x: __m256i) -> __m256d {
    let float = _mm256_set1_epi64x(FLOAT as i64);
    _mm256_sub_pd(_mm256_castsi256_pd(_mm256_or_si256(x, float)), _mm256_castsi256_pd(float))
}

/// Returns the whole parts of floats below 2^50.
#[target_feature(enable = "avx2")]
#[inline]
fn wholes(x: __m256d) -> __m256i {
    let float = _mm256_set1_epi64x(FLOAT as i64);
    let sum = _mm256_add_pd(_mm256_floor_pd(x), _mm256_castsi256_pd(float));
    _mm256_xor_si256(_mm256_castpd_si256(sum), float)
}

#[target_feature(enable = "avx2")]
#[inline]
fn quotient(x: __m256i, fractions: __m256i) -> __m256i {
    wholes(_mm256_mul_pd(floats(x), _mm256_castsi256_pd(fractions)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn digit(x: __m256i, fractions: __m256i, radix: __m256i) -> __m256i {
    let product = _mm256_mul_pd(floats(x), _mm256_castsi256_pd(fractions));
    let fraction = _mm256_sub_pd(product, _mm256_floor_pd(product));
    wholes(_mm256_mul_pd(floats(radix), fraction))
}

#[target_feature(enable = "avx2")]
#[inline]
fn low_16_times_4(x: __m256i) -> __m256i {
    let bytes = _mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 8, 9, 8, 9, 8, 9, 8, 9);
    _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(bytes))
}

#[target_feature(enable = "avx2")]
#[inline]
fn byte_pairs(x: __m256i) -> __m256i {
    _mm256_maddubs_epi16(x, _mm256_set1_epi8(1))
}

/// Loads eight bytes from each of the places on, which count `SCALE` bytes from the start of the words; zero if not
/// `within`.
///
/// # Safety
/// - Eight bytes from each place that is `within` are inside the words.
/// - The processor has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn gather<const SCALE: i32>(words: &[u64], Registers(a, b): Registers, Whole(within): Whole) -> Registers {
    let (zero, words) = (_mm256_setzero_si256(), words.as_ptr().cast());
    // SAFETY: this function's contract.
    unsafe {
        Registers(
            _mm256_mask_i64gather_epi64::<SCALE>(zero, words, a, within.0),
            _mm256_mask_i64gather_epi64::<SCALE>(zero, words, b, within.1),
        )
    }
}

/// Loads the numbers of 32 bits at each index; zero if not `within`.
///
/// # Safety
/// - The numbers at all indices that are `within` are readable, counted from `numbers`.
/// - The processor has AVX2.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn gather_halves(numbers: *const i32, Registers(a, b): Registers, Whole(within): Whole) -> Registers {
    let low_halves = _mm256_setr_epi32(0, 2, 4, 6, 0, 0, 0, 0);
    let mask = |of| _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(of, low_halves));
    let (zero, mask_a, mask_b) = (_mm_setzero_si128(), mask(within.0), mask(within.1));
    // SAFETY: this function's contract.
    unsafe {
        Registers(
            _mm256_cvtepu32_epi64(_mm256_mask_i64gather_epi32::<4>(zero, numbers, a, mask_a)),
            _mm256_cvtepu32_epi64(_mm256_mask_i64gather_epi32::<4>(zero, numbers, b, mask_b)),
        )
    }
}

/// Methods of some vectors, with one function for each half.
macro_rules! methods {
    ($($name:ident($($other:ident),*) $function:ident;)*) => {$(
        #[inline(always)]
        fn $name(self $(, $other: Self)*) -> Self {
            // SAFETY: a register exists only where the processor has the instructions.
            unsafe { Self($function(self.0 $(, $other.0)*), $function(self.1 $(, $other.1)*)) }
        }
    )*};
}

impl Registers {
    /// Broadcasts `x`. Other registers exist, so the processor has AVX2.
    #[inline(always)]
    fn of(x: u64) -> Self {
        // SAFETY: this is called only if registers exist.
        let half = unsafe { _mm256_set1_epi64x(x as i64) };
        Self(half, half)
    }
}

impl Vector for Registers {
    type Mask = Whole;

    methods! {
        shl_by(by) _mm256_sllv_epi64;
        shr_by(by) _mm256_srlv_epi64;
        times(other) unsigned_product;
        times_signed(other) signed_product;
        count_ones() ones;
        quotient(fractions) quotient;
        digit(fractions, radix) digit;
        add_16(other) _mm256_add_epi16;
        byte_pairs() byte_pairs;
        low_16_times_4() low_16_times_4;
    }

    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        // SAFETY: the array has eight words; a register exists only where the processor has the instructions.
        unsafe {
            let to = to.as_mut_ptr().cast::<__m256i>();
            _mm256_storeu_si256(to, self.0);
            _mm256_storeu_si256(to.add(1), self.1);
        }
    }
    #[inline(always)]
    fn without(self, other: Self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        unsafe { Self(_mm256_andnot_si256(other.0, self.0), _mm256_andnot_si256(other.1, self.1)) }
    }
    #[inline(always)]
    fn shl<const BY: u32>(self) -> Self {
        // The instruction takes its count as another type.
        self.shl_by(Self::of(BY.into()))
    }
    #[inline(always)]
    fn shr<const BY: u32>(self) -> Self {
        self.shr_by(Self::of(BY.into()))
    }
    #[inline(always)]
    fn shr_signed<const BY: u32>(self) -> Self {
        const HIGHEST: u64 = 1 << 63;
        (self ^ Self::of(HIGHEST)).shr::<BY>() - Self::of(HIGHEST >> BY)
    }
    #[inline(always)]
    fn times_all(self, other: Self) -> Self {
        let crossed = self.shr::<32>().times(other) + self.times(other.shr::<32>());
        self.times(other) + crossed.shl::<32>()
    }
    #[inline(always)]
    fn below(self, other: Self) -> Whole {
        let (a, b) = (self ^ Self::of(1 << 63), other ^ Self::of(1 << 63));
        // SAFETY: a register exists only where the processor has the instructions.
        Whole(unsafe { Self(_mm256_cmpgt_epi64(b.0, a.0), _mm256_cmpgt_epi64(b.1, a.1)) })
    }
    #[inline(always)]
    fn equals(self, other: Self) -> Whole {
        // SAFETY: a register exists only where the processor has the instructions.
        Whole(unsafe { Self(_mm256_cmpeq_epi64(self.0, other.0), _mm256_cmpeq_epi64(self.1, other.1)) })
    }
    #[inline(always)]
    fn or_else(self, Whole(mask): Whole, other: Self) -> Self {
        // SAFETY: a register exists only where the processor has the instructions.
        unsafe { Self(_mm256_blendv_epi8(other.0, self.0, mask.0), _mm256_blendv_epi8(other.1, self.1, mask.1)) }
    }
    #[inline(always)]
    fn only(self, Whole(mask): Whole) -> Self {
        self & mask
    }
}

impl Vectors for Avx2 {
    type V = Registers;
    type Select = Pdep;

    #[inline(always)]
    fn select(self) -> Pdep {
        self.0
    }
    #[inline(always)]
    fn splat(self, x: u64) -> Registers {
        Registers::of(x)
    }
    #[inline(always)]
    fn load(self, from: &[u64; LANES]) -> Registers {
        // SAFETY: the array has eight words; a value of this type exists only where the processor has the instructions.
        unsafe {
            let from = from.as_ptr().cast::<__m256i>();
            Registers(_mm256_loadu_si256(from), _mm256_loadu_si256(from.add(1)))
        }
    }
    #[inline(always)]
    fn words(self, words: &[u64], index: Registers) -> Registers {
        let within = index.below(self.splat(words.len() as u64));
        // SAFETY: only words within are loaded; a value of this type exists only where the processor has the
        // instructions.
        unsafe { gather::<8>(words, index, within) }
    }
    #[inline(always)]
    fn halves(self, words: &[u64], index: Registers) -> Registers {
        let within = index.below(self.splat(words.len() as u64 * 2));
        // SAFETY: only halves within are loaded; a value of this type exists only where the processor has the
        // instructions.
        unsafe { gather_halves(words.as_ptr().cast(), index, within) }
    }
    #[inline(always)]
    fn bytes(self, words: &[u64], at: Registers) -> Registers {
        let within = at.below(self.splat((words.len() as u64 * 8).saturating_sub(8)));
        // SAFETY: only bytes within are loaded; a value of this type exists only where the processor has the
        // instructions.
        unsafe { gather::<1>(words, at, within) }
    }
    #[inline(always)]
    fn look_up(self, table: &[u32; 32], index: Registers) -> Registers {
        let (index, all) = (index & self.splat(31), Whole(self.splat(u64::MAX)));
        // SAFETY: the table has 32 entries; a value of this type exists only where the processor has the instructions.
        unsafe { gather_halves(table.as_ptr().cast(), index, all) }
    }
    #[inline(always)]
    fn hashes(self, hashes: &[Hash128; LANES]) -> (Registers, Registers) {
        let [mut high, mut low] = [[0; LANES]; 2];
        for i in 0..LANES {
            (high[i], low[i]) = (hashes[i].high, hashes[i].low);
        }
        (self.load(&high), self.load(&low))
    }
    #[inline(always)]
    fn counts(self, words: &[u64], firsts: &Lanes, masks: &Lanes, counts: &mut Lanes) {
        // SAFETY: a value of this type exists only where the processor has the instructions.
        unsafe { self::counts(words, firsts, masks, counts) };
    }
    #[inline(always)]
    fn pairs(self, words: &Lanes, ranks: &Lanes, ones: &mut Lanes) {
        // SAFETY: a value of this type exists only where the processor has the instructions.
        unsafe { pairs_bmi2(words, ranks, ones) };
    }
}

/// Counts like [`Vectors::counts`], word by word. A separate function without AVX2: with it the compiler would count in
/// registers, and assemble each of them from four words.
#[target_feature(enable = "popcnt")]
#[inline(never)]
fn counts(words: &[u64], firsts: &Lanes, masks: &Lanes, counts: &mut Lanes) {
    assert!(words.len() >= 8);
    let last = words.len() as u64 - 8;
    for i in 0..LANES * VECTORS {
        let first = firsts[i].min(last) as usize;
        let mut all = u64::from((words[first] & masks[i]).count_ones());
        for j in 1..8 {
            all |= u64::from(words[first + j].count_ones()) << (8 * j);
        }
        counts[i] = all;
    }
}
