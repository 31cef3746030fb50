//! Vectors of eight lanes in plain Rust, which the others are tested against.

use super::{LANES, Lanes, Vector, Vectors};
use std::ops::{Add, BitAnd, BitOr, BitXor, Sub};
use warpset_base::key::Hash128;
use warpset_core::bits::Select;

/// No instructions but the target's own.
#[derive(Clone, Copy)]
pub(crate) struct Plain<S>(pub S);

/// Eight lanes of [`Plain`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Array(pub [u64; LANES]);

impl Array {
    #[inline(always)]
    fn with(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }

    #[inline(always)]
    fn lanes(self, other: Self, f: impl Fn(u64, u64) -> bool) -> u8 {
        (0..LANES).fold(0, |mask, i| mask | u8::from(f(self.0[i], other.0[i])) << i)
    }
}

macro_rules! operators {
    ($($operator:ident $name:ident $of:expr;)*) => {$(
        impl $operator for Array {
            type Output = Self;
            #[inline(always)]
            fn $name(self, other: Self) -> Self {
                self.with(other, $of)
            }
        }
    )*};
}

operators! {
    Add add u64::wrapping_add;
    Sub sub u64::wrapping_sub;
    BitAnd bitand |a, b| a & b;
    BitOr bitor |a, b| a | b;
    BitXor bitxor |a, b| a ^ b;
}

impl Vector for Array {
    type Mask = u8;

    #[inline(always)]
    fn store(self, to: &mut [u64; LANES]) {
        *to = self.0;
    }
    #[inline(always)]
    fn without(self, other: Self) -> Self {
        self.with(other, |a, b| a & !b)
    }
    #[inline(always)]
    fn shl<const BY: u32>(self) -> Self {
        self.with(self, |a, _| a << BY)
    }
    #[inline(always)]
    fn shr<const BY: u32>(self) -> Self {
        self.with(self, |a, _| a >> BY)
    }
    #[inline(always)]
    fn shr_signed<const BY: u32>(self) -> Self {
        self.with(self, |a, _| (a as i64 >> BY) as u64)
    }
    #[inline(always)]
    fn shl_by(self, by: Self) -> Self {
        self.with(by, |a, by| if by < 64 { a << by } else { 0 })
    }
    #[inline(always)]
    fn shr_by(self, by: Self) -> Self {
        self.with(by, |a, by| if by < 64 { a >> by } else { 0 })
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        self.with(other, |a, b| (a & 0xffff_ffff) * (b & 0xffff_ffff))
    }
    #[inline(always)]
    fn times_signed(self, other: Self) -> Self {
        self.with(other, |a, b| (i64::from(a as i32) * i64::from(b as i32)) as u64)
    }
    #[inline(always)]
    fn times_all(self, other: Self) -> Self {
        self.with(other, u64::wrapping_mul)
    }
    #[inline(always)]
    fn count_ones(self) -> Self {
        self.with(self, |a, _| a.count_ones().into())
    }
    #[inline(always)]
    fn below(self, other: Self) -> u8 {
        self.lanes(other, |a, b| a < b)
    }
    #[inline(always)]
    fn equals(self, other: Self) -> u8 {
        self.lanes(other, |a, b| a == b)
    }
    #[inline(always)]
    fn or_else(self, mask: u8, other: Self) -> Self {
        Self(std::array::from_fn(|i| if mask >> i & 1 == 1 { self.0[i] } else { other.0[i] }))
    }
    #[inline(always)]
    fn only(self, mask: u8) -> Self {
        self.or_else(mask, Self([0; LANES]))
    }
    #[inline(always)]
    fn quotient(self, fractions: Self) -> Self {
        self.with(fractions, |a, fraction| (a as f64 * f64::from_bits(fraction)) as u64)
    }
    #[inline(always)]
    fn digit(self, fractions: Self, radix: Self) -> Self {
        let parts = self.with(fractions, |a, fraction| (a as f64 * f64::from_bits(fraction)).fract().to_bits());
        radix.quotient(parts)
    }
    #[inline(always)]
    fn add_16(self, other: Self) -> Self {
        const HIGH: u64 = 0x8000_8000_8000_8000;
        self.with(other, |a, b| ((a & !HIGH) + (b & !HIGH)) ^ (a ^ b) & HIGH)
    }
    #[inline(always)]
    fn byte_pairs(self) -> Self {
        const BYTES: u64 = 0x00ff_00ff_00ff_00ff;
        self.with(self, |a, _| (a & BYTES) + (a >> 8 & BYTES))
    }
    #[inline(always)]
    fn low_16_times_4(self) -> Self {
        self.with(self, |a, _| (a & 0xffff) * 0x0001_0001_0001_0001)
    }
}

impl<S: Select> Vectors for Plain<S> {
    type V = Array;
    type Select = S;

    #[inline(always)]
    fn select(self) -> S {
        self.0
    }
    #[inline(always)]
    fn splat(self, x: u64) -> Array {
        Array([x; LANES])
    }
    #[inline(always)]
    fn load(self, from: &[u64; LANES]) -> Array {
        Array(*from)
    }
    #[inline(always)]
    fn words(self, words: &[u64], index: Array) -> Array {
        Array(index.0.map(|i| words.get(i as usize).copied().unwrap_or(0)))
    }
    #[inline(always)]
    fn halves(self, words: &[u64], index: Array) -> Array {
        self.words(words, index.shr::<1>()).with(index, |word, i| word >> (32 * (i & 1)) & 0xffff_ffff)
    }
    #[inline(always)]
    fn bytes(self, words: &[u64], at: Array) -> Array {
        Array(at.0.map(|at| crate::windows::bits_from(words, at.saturating_mul(8))))
    }
    #[inline(always)]
    fn look_up(self, table: &[u32; 32], index: Array) -> Array {
        Array(index.0.map(|i| table[i as usize % 32].into()))
    }
    #[inline(always)]
    fn hashes(self, hashes: &[Hash128; LANES]) -> (Array, Array) {
        (Array(hashes.map(|hash| hash.high)), Array(hashes.map(|hash| hash.low)))
    }
    #[inline(always)]
    fn counts(self, words: &[u64], firsts: &Lanes, masks: &Lanes, counts: &mut Lanes) {
        for ((counts, &first), &mask) in counts.iter_mut().zip(firsts.iter()).zip(masks.iter()) {
            let first = first.min(words.len() as u64 - 8) as usize;
            let of = |i| words[first + i] & if i == 0 { mask } else { u64::MAX };
            *counts = u64::from_le_bytes(std::array::from_fn(|i| of(i).count_ones() as u8));
        }
    }
    #[inline(always)]
    fn pairs(self, words: &Lanes, ranks: &Lanes, ones: &mut Lanes) {
        for ((ones, &word), &rank) in ones.iter_mut().zip(words.iter()).zip(ranks.iter()) {
            *ones = self.0.pair(word, rank as u32 % 64);
        }
    }
}
