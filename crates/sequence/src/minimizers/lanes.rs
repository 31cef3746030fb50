//! Vectors of positions: AVX2 with 8 lanes, AVX-512 with 16.

use std::arch::x86_64::*;

/// Instructions on vectors of 32-bit values. A value of such a type exists only if the processor has the instructions.
/// Its functions are fast where they are inlined into a function that is compiled for these.
pub(crate) trait Lanes: Copy {
    /// Values per vector.
    const LEN: usize;
    /// Vector of `LEN` values.
    type Vector: Copy;

    /// Detects the instructions on this processor.
    fn detect() -> Option<Self>;
    /// Loads `LEN` values from `at` on.
    fn load(self, from: &[u32], at: usize) -> Self::Vector;
    /// Stores `LEN` values from `at` on.
    fn store(self, to: &mut [u32], at: usize, values: Self::Vector);
    /// Loads `LEN` bytes from `at` on, and widens each to a value.
    fn bytes(self, from: &[u8], at: usize) -> Self::Vector;
    /// Sets all lanes to one value.
    fn splat(self, value: u32) -> Self::Vector;
    /// Combines by exclusive or.
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Combines by and.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Combines by or.
    fn or(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Adds, wrapping.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Takes the smaller value of each lane.
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Rotates left by `by` bits, below 32.
    fn rotate_left(self, a: Self::Vector, by: Self::Vector) -> Self::Vector;
    /// Rotates right by `by` bits, below 32.
    fn rotate_right(self, a: Self::Vector, by: Self::Vector) -> Self::Vector;
    /// Selects `a` where `x` is greater than `y`, both below 2^31, and `b` elsewhere.
    fn greater(self, x: Self::Vector, y: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Picks for each lane the value of the lane with the given number, below 8.
    fn pick(self, values: Self::Vector, lanes: Self::Vector) -> Self::Vector;
    /// Scans by exclusive or, inclusively.
    fn scan(self, a: Self::Vector) -> Self::Vector;
    /// Broadcasts the last value to all lanes.
    fn last(self, a: Self::Vector) -> Self::Vector;
    /// Returns one bit per lane, set if `a` and `b` differ and `a` is not `none`.
    fn anew(self, a: Self::Vector, b: Self::Vector, none: Self::Vector) -> u32;
    /// Stores the values of lanes whose bit is set, side by side from `at` on. The places after them, up to `LEN` in
    /// all, get any values.
    fn compress(self, to: &mut [u32], at: usize, values: Self::Vector, lanes: u32);
}

/// AVX2, with the instructions that count and extract bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(());

/// AVX-512 as all processors with it have, with AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(());

/// Borrows `N` items from `at` on, or panics.
#[inline(always)]
fn items<T, const N: usize>(from: &[T], at: usize) -> &[T; N] {
    from[at..at + N].try_into().expect("as many items")
}

#[inline(always)]
fn items_mut<T, const N: usize>(to: &mut [T], at: usize) -> &mut [T; N] {
    (&mut to[at..at + N]).try_into().expect("as many items")
}

impl Lanes for Avx2 {
    const LEN: usize = 8;
    type Vector = __m256i;

    #[inline]
    fn detect() -> Option<Avx2> {
        let has = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        has.then_some(Avx2(()))
    }

    #[inline(always)]
    fn load(self, from: &[u32], at: usize) -> __m256i {
        let from: &[u32; 8] = items(from, at);
        // SAFETY: `from` is an array of eight `u32`, 32 bytes; `self` exists only if the processor has the instruction.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, to: &mut [u32], at: usize, values: __m256i) {
        let to: &mut [u32; 8] = items_mut(to, at);
        // SAFETY: `to` is an array of eight `u32`, 32 bytes; `self` exists only if the processor has the instruction.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), values) }
    }

    #[inline(always)]
    fn bytes(self, from: &[u8], at: usize) -> __m256i {
        let from: &[u8; 8] = items(from, at);
        // SAFETY: `from` is an array of eight bytes; `self` exists only if the processor has the instructions.
        unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn splat(self, value: u32) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm256_set1_epi32(value as i32) }
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm256_or_si256(a, b) }
    }

    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    fn min(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm256_min_epu32(a, b) }
    }

    #[inline(always)]
    fn rotate_left(self, a: __m256i, by: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instructions; a shift by 32 gives zero.
        unsafe {
            let other = _mm256_sub_epi32(_mm256_set1_epi32(32), by);
            _mm256_or_si256(_mm256_sllv_epi32(a, by), _mm256_srlv_epi32(a, other))
        }
    }

    #[inline(always)]
    fn rotate_right(self, a: __m256i, by: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instructions; a shift by 32 gives zero.
        unsafe {
            let other = _mm256_sub_epi32(_mm256_set1_epi32(32), by);
            _mm256_or_si256(_mm256_srlv_epi32(a, by), _mm256_sllv_epi32(a, other))
        }
    }

    #[inline(always)]
    fn greater(self, x: __m256i, y: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instructions.
        unsafe { _mm256_blendv_epi8(b, a, _mm256_cmpgt_epi32(x, y)) }
    }

    #[inline(always)]
    fn pick(self, values: __m256i, lanes: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm256_permutevar8x32_epi32(values, lanes) }
    }

    #[inline(always)]
    fn scan(self, a: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instructions.
        unsafe {
            let a = _mm256_xor_si256(a, _mm256_slli_si256::<4>(a));
            let a = _mm256_xor_si256(a, _mm256_slli_si256::<8>(a));
            // The last value of the lower half, in all lanes of the upper half.
            let half = _mm256_shuffle_epi32::<0xff>(_mm256_permute2x128_si256::<0x08>(a, a));
            _mm256_xor_si256(a, half)
        }
    }

    #[inline(always)]
    fn last(self, a: __m256i) -> __m256i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm256_permutevar8x32_epi32(a, _mm256_set1_epi32(7)) }
    }

    #[inline(always)]
    fn anew(self, a: __m256i, b: __m256i, none: __m256i) -> u32 {
        // SAFETY: `self` exists only where the processor has the instructions.
        unsafe {
            let not = _mm256_or_si256(_mm256_cmpeq_epi32(a, b), _mm256_cmpeq_epi32(a, none));
            !_mm256_movemask_ps(_mm256_castsi256_ps(not)) as u32 & 0xff
        }
    }

    #[inline(always)]
    fn compress(self, to: &mut [u32], at: usize, values: __m256i, lanes: u32) {
        let order = u64::from_le_bytes(ONES_OF[lanes as usize & 0xff]);
        // SAFETY: `self` exists only where the processor has the instructions.
        let chosen =
            unsafe { _mm256_permutevar8x32_epi32(values, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(order as i64))) };
        self.store(to, at, chosen);
    }
}

/// Numbers of the bits that are set in a byte.
const ONES_OF: [[u8; 8]; 256] = {
    let mut ones_of = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                ones_of[byte][count] = bit;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    ones_of
};

impl Lanes for Avx512 {
    const LEN: usize = 16;
    type Vector = __m512i;

    #[inline]
    fn detect() -> Option<Avx512> {
        let has = Avx2::detect().is_some()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        has.then_some(Avx512(()))
    }

    #[inline(always)]
    fn load(self, from: &[u32], at: usize) -> __m512i {
        let from: &[u32; 16] = items(from, at);
        // SAFETY: `from` is an array of sixteen `u32`, 64 bytes; `self` exists only if the processor has the
        // instruction.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, to: &mut [u32], at: usize, values: __m512i) {
        let to: &mut [u32; 16] = items_mut(to, at);
        // SAFETY: `to` is an array of sixteen `u32`, 64 bytes; `self` exists only if the processor has the instruction.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), values) }
    }

    #[inline(always)]
    fn bytes(self, from: &[u8], at: usize) -> __m512i {
        let from: &[u8; 16] = items(from, at);
        // SAFETY: `from` is an array of sixteen bytes; `self` exists only if the processor has the instructions.
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(from.as_ptr().cast())) }
    }

    #[inline(always)]
    fn splat(self, value: u32) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_set1_epi32(value as i32) }
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    fn min(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_min_epu32(a, b) }
    }

    #[inline(always)]
    fn rotate_left(self, a: __m512i, by: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_rolv_epi32(a, by) }
    }

    #[inline(always)]
    fn rotate_right(self, a: __m512i, by: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_rorv_epi32(a, by) }
    }

    #[inline(always)]
    fn greater(self, x: __m512i, y: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instructions.
        unsafe { _mm512_mask_blend_epi32(_mm512_cmpgt_epu32_mask(x, y), b, a) }
    }

    #[inline(always)]
    fn pick(self, values: __m512i, lanes: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_permutexvar_epi32(lanes, values) }
    }

    #[inline(always)]
    fn scan(self, a: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instructions.
        unsafe {
            let zero = _mm512_setzero_si512();
            let a = _mm512_xor_si512(a, _mm512_alignr_epi32::<15>(a, zero));
            let a = _mm512_xor_si512(a, _mm512_alignr_epi32::<14>(a, zero));
            let a = _mm512_xor_si512(a, _mm512_alignr_epi32::<12>(a, zero));
            _mm512_xor_si512(a, _mm512_alignr_epi32::<8>(a, zero))
        }
    }

    #[inline(always)]
    fn last(self, a: __m512i) -> __m512i {
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _mm512_permutexvar_epi32(_mm512_set1_epi32(15), a) }
    }

    #[inline(always)]
    fn anew(self, a: __m512i, b: __m512i, none: __m512i) -> u32 {
        // SAFETY: `self` exists only where the processor has the instructions.
        unsafe { u32::from(_mm512_cmpneq_epu32_mask(a, b) & _mm512_cmpneq_epu32_mask(a, none)) }
    }

    #[inline(always)]
    fn compress(self, to: &mut [u32], at: usize, values: __m512i, lanes: u32) {
        // SAFETY: `self` exists only where the processor has the instruction.
        let chosen = unsafe { _mm512_maskz_compress_epi32(lanes as u16, values) };
        self.store(to, at, chosen);
    }
}

/// Vector of 32 bytes.
#[derive(Clone, Copy)]
pub(super) struct Bytes(__m256i);

impl Avx2 {
    /// Returns AVX2, which every set of instructions here includes.
    #[inline(always)]
    pub(super) fn of(_: impl Lanes) -> Avx2 {
        Avx2(())
    }

    /// Loads 32 bytes from `at` on.
    #[inline(always)]
    pub(super) fn load_bytes(self, from: &[u8], at: usize) -> Bytes {
        let from: &[u8; 32] = items(from, at);
        // SAFETY: `from` is an array of 32 bytes; `self` exists only if the processor has the instruction.
        Bytes(unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }

    /// Stores 32 bytes from `at` on.
    #[inline(always)]
    pub(super) fn store_bytes(self, to: &mut [u8], at: usize, bytes: Bytes) {
        let to: &mut [u8; 32] = items_mut(to, at);
        // SAFETY: `to` is an array of 32 bytes; `self` exists only if the processor has the instruction.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), bytes.0) }
    }

    /// Adds bytes, saturating at 255.
    #[inline(always)]
    pub(super) fn add_bytes(self, a: Bytes, b: Bytes) -> Bytes {
        // SAFETY: `self` exists only where the processor has the instruction.
        Bytes(unsafe { _mm256_adds_epu8(a.0, b.0) })
    }

    /// Returns the code of each letter, and its count: 1 for G and T, 0 for A and C, and `other` for a letter that is
    /// no base.
    #[inline(always)]
    pub(super) fn bases(self, letters: Bytes, other: u8) -> (Bytes, Bytes) {
        // SAFETY: `self` exists only where the processor has the instructions.
        unsafe {
            let letters = letters.0;
            // No instruction shifts bytes: bits of the byte above enter, and are masked.
            let code = _mm256_and_si256(_mm256_srli_epi16::<1>(letters), _mm256_set1_epi8(3));
            let count = _mm256_and_si256(_mm256_srli_epi16::<2>(letters), _mm256_set1_epi8(1));
            // The letter of each code; equal to the given letter, in either case, if that is a base.
            let table = _mm256_broadcastsi128_si256(_mm_setr_epi8(
                b'A' as i8, b'C' as i8, b'T' as i8, b'G' as i8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            ));
            let upper = _mm256_and_si256(letters, _mm256_set1_epi8(!0x20));
            let known = _mm256_cmpeq_epi8(_mm256_shuffle_epi8(table, code), upper);
            (Bytes(code), Bytes(_mm256_blendv_epi8(_mm256_set1_epi8(other as i8), count, known)))
        }
    }

    /// Packs the codes of 8 bases in two bits each.
    #[inline(always)]
    pub(super) fn pack_eight(self, codes: &[u8], at: usize) -> u16 {
        let codes = u64::from_le_bytes(*items(codes, at));
        // SAFETY: `self` exists only where the processor has the instruction.
        unsafe { _pext_u64(codes, 0x0303_0303_0303_0303) as u16 }
    }

    /// Packs the codes of 32 letters in 2 bits each, and one bit per letter that is no base.
    #[inline(always)]
    pub(crate) fn pack(self, letters: &[u8; 32]) -> (u64, u32) {
        let (codes, counts) = self.bases(self.load_bytes(letters, 0), 0x80);
        let mut bytes = [0; 32];
        self.store_bytes(&mut bytes, 0, codes);
        let bases = (0..4).fold(0, |bases, i| bases | u64::from(self.pack_eight(&bytes, 8 * i)) << (16 * i));
        // SAFETY: `self` exists only where the processor has the instruction.
        (bases, unsafe { _mm256_movemask_epi8(counts.0) } as u32)
    }

    /// Unpacks the codes of 32 bases to a byte each, and their counts as in `bases`, from one bit per position without
    /// a base.
    #[inline(always)]
    pub(super) fn unpack(self, bases: u64, breaks: u32, other: u8) -> (Bytes, Bytes) {
        // SAFETY: `self` exists only where the processor has the instructions.
        unsafe {
            let eight = |i: u32| _pdep_u64(bases >> (16 * i), 0x0303_0303_0303_0303) as i64;
            let codes = _mm256_setr_epi64x(eight(0), eight(1), eight(2), eight(3));
            let counts = _mm256_and_si256(_mm256_srli_epi16::<1>(codes), _mm256_set1_epi8(1));
            // Byte `i` gets the byte of `breaks` that contains its bit.
            let spread = _mm256_shuffle_epi8(
                _mm256_set1_epi32(breaks as i32),
                _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303),
            );
            let bit = _mm256_set1_epi64x(0x8040_2010_0804_0201u64 as i64);
            let is_break = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
            (Bytes(codes), Bytes(_mm256_blendv_epi8(counts, _mm256_set1_epi8(other as i8), is_break)))
        }
    }
}
