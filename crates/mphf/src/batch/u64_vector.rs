//! Vectors of eight lanes of 64 bits, with the operations of batched lookups.

pub(crate) mod avx2;
pub(crate) mod avx512;
#[cfg(test)]
pub(crate) mod portable;

use super::BATCH;
use std::ops::{Add, BitAnd, BitOr, BitXor, Not, Sub};
use warpset_base::key::Hash128;
use warpset_core::bits::Select;

/// Lanes of a vector.
pub(crate) const LANES: usize = 8;
/// Vectors of a batch.
pub(crate) const VECTORS: usize = BATCH / LANES;

/// One number per lookup of a batch, aligned to cache lines, so that no vector crosses one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Lanes([[u64; LANES]; VECTORS]);

impl Lanes {
    pub(crate) const ZERO: Self = Self([[0; LANES]; VECTORS]);

    #[inline(always)]
    pub(crate) fn get<T: Vectors>(&self, vectors: T, v: usize) -> T::V {
        vectors.load(&self.0[v])
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, v: usize, to: impl Vector) {
        to.store(&mut self.0[v]);
    }
}

impl std::ops::Deref for Lanes {
    type Target = [u64];

    #[inline(always)]
    fn deref(&self) -> &[u64] {
        self.0.as_flattened()
    }
}

impl std::ops::DerefMut for Lanes {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64] {
        self.0.as_flattened_mut()
    }
}

/// A set of lanes.
pub(crate) trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> + Not<Output = Self> {
    /// Returns one bit per lane.
    fn bits(self) -> u8;
}

impl Mask for u8 {
    #[inline(always)]
    fn bits(self) -> u8 {
        self
    }
}

/// Eight numbers of 64 bits. Arithmetic wraps.
pub(crate) trait Vector:
    Copy + Add<Output = Self> + Sub<Output = Self> + BitAnd<Output = Self> + BitOr<Output = Self> + BitXor<Output = Self>
{
    type Mask: Mask;

    fn store(self, to: &mut [u64; LANES]);
    /// Returns `self & !other`.
    fn without(self, other: Self) -> Self;
    fn shl<const BY: u32>(self) -> Self;
    fn shr<const BY: u32>(self) -> Self;
    /// Shifts that keep the sign.
    fn shr_signed<const BY: u32>(self) -> Self;
    /// Shifts each lane by its own count; 64 and more give zero.
    fn shl_by(self, by: Self) -> Self;
    /// Shifts each lane by its own count; 64 and more give zero.
    fn shr_by(self, by: Self) -> Self;
    /// Multiplies the low halves.
    fn times(self, other: Self) -> Self;
    /// Multiplies the low halves as signed numbers.
    fn times_signed(self, other: Self) -> Self;
    /// Multiplies all 64 bits, in three times the time of the others.
    fn times_all(self, other: Self) -> Self;
    fn count_ones(self) -> Self;
    /// Returns the lanes that are below those of `other`.
    fn below(self, other: Self) -> Self::Mask;
    /// Returns the lanes that equal those of `other`.
    fn equals(self, other: Self) -> Self::Mask;
    /// Selects the lanes of `mask`, and the other ones from `other`.
    fn or_else(self, mask: Self::Mask, other: Self) -> Self;
    /// Selects the lanes of `mask`, and zeros elsewhere.
    fn only(self, mask: Self::Mask) -> Self;
    /// Returns the whole parts of products with the floats of the bits `fractions`. Lanes and products are below 2^50.
    fn quotient(self, fractions: Self) -> Self;
    /// Returns the whole parts of `radix` times the fractional parts of these products.
    fn digit(self, fractions: Self, radix: Self) -> Self;
    /// Adds 16 bits each.
    fn add_16(self, other: Self) -> Self;
    /// Adds bytes `2 i` and `2 i + 1` in 16 bits each. Bytes are at most 64.
    fn byte_pairs(self) -> Self;
    /// Repeats the lowest 16 bits four times.
    fn low_16_times_4(self) -> Self;

    /// Counts the zeros below the lowest one; 64 if there is none. `one` is 1 in all lanes.
    #[inline(always)]
    fn trailing_zeros(self, one: Self) -> Self {
        (self - one).without(self).count_ones()
    }
}

/// Instructions of a kind of vectors: a value exists only if the processor has them.
pub(crate) trait Vectors: Copy {
    type V: Vector;
    type Select: Select;

    /// Returns the way to select ones of a single word.
    fn select(self) -> Self::Select;
    fn splat(self, x: u64) -> Self::V;
    fn load(self, from: &[u64; LANES]) -> Self::V;
    /// Returns the words at `index`, zero past the end.
    fn words(self, words: &[u64], index: Self::V) -> Self::V;
    /// Returns the 32-bit halves of words at `index`, which counts halves, zero past the end.
    fn halves(self, words: &[u64], index: Self::V) -> Self::V;
    /// Returns the eight bytes from byte `at` of the words on, zero from eight bytes before the end on.
    fn bytes(self, words: &[u64], at: Self::V) -> Self::V;
    /// Returns the entries of `table` for the lowest five bits of `index`.
    fn look_up(self, table: &[u32; 32], index: Self::V) -> Self::V;
    /// Splits hashes into the high and the low halves.
    fn hashes(self, hashes: &[Hash128; LANES]) -> (Self::V, Self::V);
    /// Counts the ones in each of the eight words from each of `firsts` on, a byte each; in the first one only those of
    /// the mask. If fewer than eight words follow, the last eight words are counted. There are at least eight words.
    fn counts(self, words: &[u64], firsts: &Lanes, masks: &Lanes, counts: &mut Lanes);
    /// Computes [`warpset_core::bits::Select::pair`] per lane; ranks from 64 on give any result.
    fn pairs(self, words: &Lanes, ranks: &Lanes, ones: &mut Lanes);
}

/// Computes [`Vectors::pairs`] with `pdep`. Not inlined, so words and ranks go through memory, which is cheaper than
/// taking registers apart and joining them again.
///
/// # Safety
/// - The processor has BMI2.
#[target_feature(enable = "bmi2")]
#[inline(never)]
pub(super) unsafe fn pairs_bmi2(words: &Lanes, ranks: &Lanes, ones: &mut Lanes) {
    for i in 0..LANES * VECTORS {
        ones[i] = std::arch::x86_64::_pdep_u64(3_u64.wrapping_shl(ranks[i] as u32), words[i]);
    }
}

/// Makes two functions for products of low halves, as instructions opaque to the compiler. If it knows that only half
/// of a result matters, it uses products of all 64 bits, which take three times as long or are several instructions.
macro_rules! products {
    ($feature:literal, $register:ty, $class:ident) => {
        products!($feature, $register, $class, unsigned_product, "vpmuludq");
        products!($feature, $register, $class, signed_product, "vpmuldq");
    };
    ($feature:literal, $register:ty, $class:ident, $name:ident, $instruction:literal) => {
        #[target_feature(enable = $feature)]
        #[inline]
        fn $name(a: $register, b: $register) -> $register {
            let product;
            // SAFETY: the instruction reads and writes registers only.
            unsafe {
                std::arch::asm!(
                    concat!($instruction, " {0}, {1}, {2}"),
                    out($class) product,
                    in($class) a,
                    in($class) b,
                    options(pure, nomem, nostack, preserves_flags)
                )
            };
            product
        }
    };
}
pub(super) use products;

#[cfg(test)]
mod tests {
    use super::avx2::Avx2;
    use super::avx512::Avx512;
    use super::portable::{Array, Plain};
    use super::*;
    use warpset_core::bits::Portable;

    /// Returns numbers of all sizes.
    fn numbers() -> impl Iterator<Item = [u64; LANES]> {
        let mut state = 7_u64;
        (0..400).map(move |_| {
            std::array::from_fn(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state ^ state >> 29) >> (state >> 58)
            })
        })
    }

    fn array(vector: impl Vector) -> [u64; LANES] {
        let mut lanes = [0; LANES];
        vector.store(&mut lanes);
        lanes
    }

    /// Returns the results of every operation for some numbers.
    fn all<T: Vectors>(vectors: T, a: [u64; LANES], b: [u64; LANES]) -> (Vec<[u64; LANES]>, Vec<u8>) {
        let words: Vec<u64> = (1..40_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ a[0]).collect();
        let (x, y) = (vectors.load(&a), vectors.load(&b));
        let some = x.shr::<40>();
        let fractions = vectors.load(&b.map(|b| (1.0 / (b % 1000 + 1) as f64).to_bits()));
        let table: [u32; 32] = std::array::from_fn(|i| (a[i % 8] >> (i / 8)) as u32);
        let index = y & vectors.splat(63);
        let hashes = std::array::from_fn(|i| Hash128 { high: a[i], low: b[i] });
        let (high, low) = vectors.hashes(&hashes);
        let (mut rows, mut ranks) = (Lanes::ZERO, Lanes::ZERO);
        for v in 0..VECTORS {
            rows.set(v, x + vectors.splat(v as u64));
            ranks.set(v, index);
        }
        let results = [
            x + y,
            x - y,
            x & y,
            x | y,
            x ^ y,
            x.without(y),
            x.shl::<3>(),
            x.shr::<17>(),
            x.shr_signed::<16>(),
            x.shl_by(index + index),
            x.shr_by(index + index),
            x.times(y),
            x.times_all(y),
            x.times_signed(y),
            x.count_ones(),
            x.trailing_zeros(vectors.splat(1)),
            x.or_else(index.below(some), y),
            x.only(!(index.below(some) & x.equals(x))),
            some.quotient(fractions),
            some.digit(fractions, index),
            (x & vectors.splat(0x4040_4040_4040_4040)).byte_pairs(),
            x.low_16_times_4(),
            x.add_16(y),
            vectors.words(&words, index),
            vectors.halves(&words, index + index),
            vectors.bytes(&words, index + index + index + index + index),
            vectors.words(&words, x),
            vectors.halves(&words, x),
            vectors.bytes(&words, x),
            vectors.look_up(&table, x),
            high,
            low,
        ];
        let mut results = results.map(array).to_vec();
        let [mut pairs, mut counts]: [Lanes; 2] = [Lanes::ZERO; 2];
        vectors.pairs(&rows, &ranks, &mut pairs);
        vectors.counts(&words, &ranks, &rows, &mut counts);
        results.extend(pairs.as_chunks().0);
        results.extend(counts.as_chunks().0);
        vectors.counts(&words, &rows, &ranks, &mut counts);
        results.extend(counts.as_chunks().0);
        (results, [x.below(y), x.equals(y), x.equals(x), x.below(y) | y.below(x)].map(Mask::bits).to_vec())
    }

    fn does_what_plain_code_does(vectors: impl Vectors) {
        for (a, b) in numbers().zip(numbers().skip(1)) {
            assert_eq!(all(vectors, a, b), all(Plain(Portable), a, b));
        }
    }

    #[test]
    fn avx2() {
        if crate::processor::has_fast_pdep() {
            // SAFETY: the processor has the instructions.
            does_what_plain_code_does(unsafe { Avx2::new() });
        }
    }

    #[test]
    fn avx512() {
        if crate::processor::has_fast_pdep() && crate::processor::has_avx512() {
            // SAFETY: the processor has the instructions.
            does_what_plain_code_does(unsafe { Avx512::new() });
        }
    }

    #[test]
    fn plain_lanes() {
        let vectors = Plain(Portable);
        assert_eq!(Array([1030; LANES]).digit(vectors.splat(0.01_f64.to_bits()), vectors.splat(10)).0, [3; LANES]);
        assert_eq!(Array([0x0102_0304_4040_0001; LANES]).byte_pairs().0, [0x0003_0007_0080_0001; LANES]);
        assert_eq!(
            Array([0, 1, 8, 24, 1 << 63, 6, 7, 5]).trailing_zeros(vectors.splat(1)).0,
            [64, 0, 3, 3, 63, 1, 0, 0]
        );
    }
}
