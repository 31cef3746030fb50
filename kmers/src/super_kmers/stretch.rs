//! Super-k-mers in 128 bits, or in 256 for k-mers of more than 32 bases.
//!
//! ```text
//! | k-mers, 6 bits | zeros | bases, the last one lowest |
//! ```

use std::sync::atomic::AtomicU64;

use warpset_core::minimizer::{Kmer, MOST_K};

use super::{MOST_M, Words};
use crate::word::sealed::Word as _;
use crate::word::{MOST_SHORT, Word};

/// Bits for the number of k-mers.
const LEN_BITS: u32 = 6;

/// Key of a hash table, which begins with a product of the key and a constant.
pub(crate) trait Key: Copy + Default + PartialEq {
    fn hash(self) -> u64;
}
impl Key for u64 {
    #[inline(always)]
    fn hash(self) -> u64 {
        self.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

impl Key for u128 {
    #[inline(always)]
    fn hash(self) -> u64 {
        ((self >> 64) as u64).wrapping_add((self as u64).hash()).rotate_left(32).hash()
    }
}

impl Key for Wide {
    #[inline(always)]
    fn hash(self) -> u64 {
        self.high
            .hash()
            .wrapping_add((self.low >> 64) as u64)
            .hash()
            .rotate_left(32)
            .wrapping_add(self.low as u64)
            .hash()
    }
}

/// Super-k-mer: its bases, and above them the number of its k-mers.
pub(crate) trait Stretch: Key {
    /// Numbers that hold its k-mers.
    type Kmer: Word + Key;
    /// Words of 64 bits.
    const WORDS: usize;
    /// Bytes.
    const BYTES: u64 = 8 * Self::WORDS as u64;
    /// Most k-mers: m-mers per k-mer.
    const MOST: usize;

    /// Makes a super-k-mer of `len` k-mers and `bases` bases from packed bases, the first one lowest; these begin at a
    /// bit of the first byte, and there are 32 bytes.
    fn of(packed: &[u8], bit: u32, bases: usize, len: usize) -> Self;

    /// Appends its words to a bin.
    fn push(self, words: &mut Words, bin: usize, taken: &AtomicU64);

    /// Reads its words.
    fn read(words: &[u64]) -> Self;

    /// Returns the same super-k-mer for one and its reverse complement.
    fn canonical(self, k: u32) -> Self;

    /// Returns the number of its k-mers, its first k-mer, and the low bits, with the bases of the other k-mers.
    fn parts(self, k: u32) -> (u32, Self::Kmer, Self::Kmer);
}

/// Returns 16 bytes of packed bases as a number.
#[inline(always)]
fn bases_at(packed: &[u8], at: usize) -> u128 {
    u128::from_le_bytes(*packed[at..].first_chunk().expect("padding as long as a super-k-mer"))
}

/// Returns the reverse complement of 64 bases, the last one lowest.
#[inline(always)]
fn complement_all(bases: u128) -> u128 {
    // This complement of a base has one other bit than that of the function.
    bases.reverse_complement(64) ^ (!0 / 3)
}

/// Returns the reverse complement of `len` bases, at most 64, the last one lowest.
#[inline(always)]
fn complement(bases: u128, len: u32) -> u128 {
    complement_all(bases) >> (128 - 2 * len)
}

impl Stretch for u128 {
    type Kmer = u64;
    const WORDS: usize = 2;
    const MOST: usize = (MOST_SHORT - MOST_M + 1) as usize;

    #[inline(always)]
    fn of(packed: &[u8], bit: u32, bases: usize, len: usize) -> u128 {
        // The complement of bases in ascending order is the reverse complement in descending order.
        let bases = !(bases_at(packed, 0) >> bit) & !(!0 << (2 * bases));
        bases | (len as u128) << (128 - LEN_BITS)
    }

    #[inline(always)]
    fn push(self, words: &mut Words, bin: usize, taken: &AtomicU64) {
        words.push(bin, [(self >> 64) as u64, self as u64], taken);
    }

    #[inline(always)]
    fn read(words: &[u64]) -> u128 {
        u128::from(words[0]) << 64 | u128::from(words[1])
    }

    #[inline(always)]
    fn canonical(self, k: u32) -> u128 {
        let (len, bases) = ((self >> (128 - LEN_BITS)) as u32, self << LEN_BITS >> LEN_BITS);
        bases.min(complement(bases, len + k - 1)) | self & !0 << (128 - LEN_BITS)
    }

    #[inline(always)]
    fn parts(self, k: u32) -> (u32, u64, u64) {
        let len = (self >> (128 - LEN_BITS)) as u32;
        (len, (self >> (2 * len - 2)) as u64 & u64::mask(k), self as u64)
    }
}

/// Super-k-mer of up to 125 bases.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub(crate) struct Wide {
    high: u128,
    low: u128,
}

impl Wide {
    /// Shifts by less than 256 bits, and at least one.
    #[inline(always)]
    fn shifted(self, bits: u32) -> Wide {
        match bits {
            ..128 => Wide { high: self.high >> bits, low: self.low >> bits | self.high << (128 - bits) },
            _ => Wide { high: 0, low: self.high >> (bits - 128) },
        }
    }
}

impl Stretch for Wide {
    type Kmer = u128;
    const WORDS: usize = 4;
    const MOST: usize = (MOST_K - MOST_M + 1) as usize;

    #[inline(always)]
    fn of(packed: &[u8], bit: u32, bases: usize, len: usize) -> Wide {
        let (low, high) = (bases_at(packed, 0), bases_at(packed, 16));
        let mask = Wide { high: !0, low: !0 }.shifted(256 - 2 * bases as u32);
        // A shift by 128 bits in two steps.
        let (low, high) = (low >> bit | high << 1 << (127 - bit), high >> bit);
        Wide { high: !high & mask.high | (len as u128) << (128 - LEN_BITS), low: !low & mask.low }
    }

    #[inline(always)]
    fn push(self, words: &mut Words, bin: usize, taken: &AtomicU64) {
        let Wide { high, low } = self;
        words.push(bin, [(high >> 64) as u64, high as u64, (low >> 64) as u64, low as u64], taken);
    }

    #[inline(always)]
    fn read(words: &[u64]) -> Wide {
        Wide { high: u128::read(&words[..2]), low: u128::read(&words[2..4]) }
    }

    #[inline(always)]
    fn canonical(self, k: u32) -> Wide {
        let len = self.high & !0 << (128 - LEN_BITS);
        let bases = Wide { high: self.high & !len, low: self.low };
        let all = Wide { high: complement_all(bases.low), low: complement_all(bases.high) };
        let other = all.shifted(256 - 2 * ((len >> (128 - LEN_BITS)) as u32 + k - 1));
        let least = if bases < other { bases } else { other };
        Wide { high: least.high | len, ..least }
    }

    #[inline(always)]
    fn parts(self, k: u32) -> (u32, u128, u128) {
        let len = (self.high >> (128 - LEN_BITS)) as u32;
        let first = if len > 1 { self.shifted(2 * len - 2).low } else { self.low };
        (len, first & u128::mask(k), self.low)
    }
}

/// Visits the canonical k-mers of a super-k-mer.
#[inline(always)]
pub(super) fn each_kmer<S: Stretch>(stretch: S, k: u32, mut visit: impl FnMut(S::Kmer)) {
    let (len, mut forward, rest) = stretch.parts(k);
    let (mask, shift) = (S::Kmer::mask(k), 2 * (k - 1));
    let mut reverse = S::Kmer::of(complement(forward.wide(), k));
    visit(forward.min(reverse));
    for i in (0..len - 1).rev() {
        let base = (rest >> (2 * i)).low() & 3;
        forward = (forward << 2 | S::Kmer::from(base)) & mask;
        reverse = reverse >> 2 | S::Kmer::from(3 - base) << shift;
        visit(forward.min(reverse));
    }
}
