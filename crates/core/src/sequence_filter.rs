//! Sequence filter: addressing and bit patterns of a Bloom filter with blocks chosen by minimizers.
//!
//! A k-mer is found if all of its `k - s + 1` s-mers are. An s-mer is two bits of one 32-bit word in a block of 256
//! bits. S-mers have at most 32 bases, k-mers up to 31 bases more. The minimizer of the s-mer, the least
//! [hash](Span::hash) of its m-mers, chooses the block, so that neighbouring s-mers mostly share a block: `(s - m + 2)
//! / 2` of them on average.
//!
//! ```text
//! word[i]   u32  the 16 bases from position i on, the first lowest; for l < 16 a mask keeps the first l
//! other[i]  u32  their reverse complement
//! hash of the l bases at i:   u * v mod 2^32
//!     u = first * A + last * B + C    first, last: the first and the last min(l, 16) bases
//!     v = the same of the reverse complement, which begins with the complements of the last bases
//! block = ((least hash of the s-mer's m-mers) * D mod 2^32) * blocks >> 32
//! hash of the s-mer:  31..29 word of the block, 28..24 a bit in it, 23..19 another
//! ```
//!
//! The product is equal for both strands, needs neither comparison nor selection, and is not linear in the bases.
//!
//! Sources: Dortmann, Vieth, Schmidt, "cuSBF: A Minimizer-Aware Bloom Filter for Genomic Sequence Data on Modern GPUs",
//! arXiv 2606.24417, abstract, and Conchon-Kerjan, Rouze, Robidou, Ingels, Limasset, "Super Bloom: Fast and precise
//! filter for streaming k-mer queries", bioRxiv 2026.03.17.712354, abstract (blocks by minimizers, with findere);
//! Robidou, Peterlongo, "findere: fast and precise approximate membership query", SPIRE 2021 (k-mers by their s-mers).
//! Departures: the minimizer that chooses a block is that of the s-mer, not of the k-mer. So an s-mer is stored once,
//! while blocks of k-mers store s-mers at their borders twice; and a k-mer at a border is looked up in two blocks,
//! which are seldom both overfull. Both bits of an s-mer lie in one word, which is one access.

use crate::minimizer::{MOST_K, complement};

/// Least number of bases per k-mer.
pub const LEAST_K: u32 = 9;
/// Largest number of bases per s-mer, and of s-mers per k-mer.
pub const MOST_S: u32 = 32;
/// Least number of bases per minimizer.
pub const LEAST_M: u32 = 4;
/// Bits per block.
pub const BLOCK_BITS: u64 = 256;
/// 64-bit words per block.
pub const BLOCK_WORDS: usize = 4;
/// Largest number of blocks that a hash of 32 bits can address: 128 GiB.
pub const MAX_BLOCKS: u64 = 1 << 32;
/// Bits set per s-mer.
pub const BITS_PER_SMER: u32 = 2;

/// Bases per word.
const WORD: u32 = 16;
const A: u32 = 0x9e37_79b1;
const B: u32 = 0x85eb_ca77;
const C: u32 = 0x27d4_eb2f;
const D: u32 = 0xc2b2_ae3d;

/// Lengths of k-mers, s-mers and minimizers of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Shape {
    k: u32,
    s: u32,
    m: u32,
}

const _: () = assert!(size_of::<Shape>() == 12);

impl Shape {
    /// Creates a shape with `LEAST_M <= m <= s <= k`, `LEAST_K <= k <= MOST_K`, and `s` and the number of s-mers per
    /// k-mer at most `MOST_S`; `None` for other lengths.
    pub const fn new(k: u32, s: u32, m: u32) -> Option<Shape> {
        if k < LEAST_K || k > MOST_K || s > k || s > MOST_S || k - s >= MOST_S || m > s || m < LEAST_M {
            return None;
        }
        Some(Shape { k, s, m })
    }

    /// Returns lengths that suit `kmers` different k-mers of `k` bases: s-mers of `k - 4` bases, or longer if s-mers of
    /// that length would be found by chance in a filter of this size, but at most [`MOST_S`]; and minimizers by
    /// [`minimizer_for`](Shape::minimizer_for).
    pub const fn for_kmers(k: u32, kmers: u64) -> Option<Shape> {
        if k < LEAST_K || k > MOST_K {
            return None;
        }
        let bits = u64::BITS - kmers.leading_zeros();
        let s = at_least(k - 4, (bits + 6) / 2);
        let most = if k < MOST_S { k } else { MOST_S };
        let s = if s < most { s } else { most };
        Shape::new(k, s, Shape::minimizer_for(s, kmers))
    }

    /// Returns the length of minimizers that suits `kmers` different k-mers with s-mers of `s` bases: the shortest with
    /// at least twice as many canonical m-mers as k-mers, since short minimizers make long runs.
    pub const fn minimizer_for(s: u32, kmers: u64) -> u32 {
        let half = (u64::BITS - kmers.leading_zeros()).div_ceil(2);
        let m = at_least(if half + 2 < 16 { half + 2 } else { at_least(16, half + 1) }, LEAST_M);
        if m < s { m } else { at_least(s.saturating_sub(1), LEAST_M) }
    }

    /// Returns the bases per k-mer.
    #[inline(always)]
    pub const fn k(self) -> u32 {
        self.k
    }

    /// Returns the bases per s-mer, at most those of a k-mer.
    #[inline(always)]
    pub const fn s(self) -> u32 {
        self.s
    }

    /// Returns the bases per minimizer, at most those of an s-mer.
    #[inline(always)]
    pub const fn m(self) -> u32 {
        self.m
    }

    /// Returns the m-mers per s-mer.
    #[inline(always)]
    pub const fn window(self) -> u32 {
        self.s - self.m + 1
    }

    /// Returns the s-mers per k-mer.
    #[inline(always)]
    pub const fn smers(self) -> u32 {
        self.k - self.s + 1
    }

    /// Returns the span by which m-mers are hashed.
    #[inline(always)]
    pub const fn minimizer_span(self) -> Span {
        Span::new(self.m)
    }

    /// Returns the span by which s-mers are hashed.
    #[inline(always)]
    pub const fn smer_span(self) -> Span {
        Span::new(self.s)
    }
}

const fn at_least(value: u32, least: u32) -> u32 {
    if value < least { least } else { value }
}

/// Sixteen bases at one position, on both strands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Both {
    /// Bases, the first lowest.
    pub word: u32,
    /// Reverse complement; its lowest base is the complement of the last one.
    pub other: u32,
}

impl Both {
    /// Returns both strands of sixteen bases, two bits each, the first base in the lowest bits.
    #[inline(always)]
    pub const fn of(word: u32) -> Both {
        Both { word, other: reverse_complement(word) }
    }
}

/// Returns the reverse complement of sixteen bases.
#[inline(always)]
pub const fn reverse_complement(word: u32) -> u32 {
    const COMPLEMENT: u32 = 0x5555_5555 * complement(0) as u32;
    // Pairs within nibbles, nibbles within bytes, then bytes: steps that vectors have instructions for.
    let word = (word & 0x3333_3333) << 2 | word >> 2 & 0x3333_3333;
    let word = (word & 0x0f0f_0f0f) << 4 | word >> 4 & 0x0f0f_0f0f;
    word.swap_bytes() ^ COMPLEMENT
}

/// Stretch of up to 32 bases, and the places of its first and last sixteen or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    bases: u32,
}

impl Span {
    #[inline(always)]
    const fn new(bases: u32) -> Span {
        Span { bases }
    }

    /// Returns the distance of the last sixteen bases from the first one; 0 for at most sixteen bases.
    #[inline(always)]
    pub const fn offset(self) -> u32 {
        self.bases.saturating_sub(WORD)
    }

    /// Returns the bits of a word that hold no base of the span.
    #[inline(always)]
    const fn unused(self) -> u32 {
        2 * WORD.saturating_sub(self.bases)
    }

    /// Returns the hash of the bases: `first` are the sixteen bases from the first one on, `last` the sixteen that are
    /// [`offset`](Span::offset) later.
    #[inline(always)]
    pub const fn hash(self, first: Both, last: Both) -> u32 {
        let unused = self.unused();
        if unused == 0 {
            return mix(first.word, last.word).wrapping_mul(mix(last.other, first.other));
        }
        let mask = u32::MAX >> unused;
        // The reverse complement of fewer than sixteen bases lies in the upper part of its word; other bases are below
        // it.
        let u = mix(first.word & mask, last.word & mask);
        let v = mix(last.other >> unused, first.other >> unused);
        u.wrapping_mul(v)
    }
}

#[inline(always)]
const fn mix(first: u32, last: u32) -> u32 {
    first.wrapping_mul(A).wrapping_add(last.wrapping_mul(B)).wrapping_add(C)
}

/// Returns the block, below `blocks`, of s-mers with this least hash of m-mers; `blocks` is from 1 to [`MAX_BLOCKS`].
#[inline(always)]
pub const fn block_of(least: u32, blocks: u64) -> u64 {
    // `x * blocks >> 32`, with a factor of 32 bits.
    let (x, last) = (least.wrapping_mul(D) as u64, blocks.wrapping_sub(1) as u32);
    (x * last as u64 + x) >> 32
}

/// Returns the 32-bit word, below 8, of an s-mer with this hash.
#[inline(always)]
pub const fn word_of(hash: u32) -> u32 {
    hash >> 29
}

/// Returns the bits of an s-mer with this hash in its word.
#[inline(always)]
pub const fn mask_of(hash: u32) -> u32 {
    1 << (hash >> 24 & 31) | 1 << (hash >> 19 & 31)
}

/// Returns one bit per position, set if the `len` bits from there on are all set, `len` from 1 to 32. Correct for the
/// lower half of `bits`; the upper half is treated as if zeros followed.
#[inline(always)]
pub const fn all_of(bits: u64, len: u32) -> u64 {
    let (mut all, mut have) = (bits, 1);
    while 2 * have <= len {
        all &= all >> have;
        have *= 2;
    }
    all & all >> (len - have)
}

/// Returns one bit per position of a word, set if a k-mer of `k` bases begins there; `breaks` has one bit per position
/// without a base, of that word and the two after it.
#[inline(always)]
pub const fn kmers_of(breaks: [u32; 3], k: u32) -> u32 {
    let bases = !(breaks[0] as u64 | (breaks[1] as u64) << 32);
    if k <= 32 {
        return all_of(bases, k) as u32;
    }
    // A k-mer is its first 32 bases, and those from its base `k - 32` on.
    let next = all_of(!(breaks[1] as u64 | (breaks[2] as u64) << 32), 32);
    let all = all_of(bases, 32) & 0xffff_ffff | next << 32;
    (all & all >> (k - 32)) as u32
}

/// Returns one bit per position, set if an s-mer of a k-mer begins there. `kmers` has the positions at which k-mers
/// begin, the 32 positions before these and these; a k-mer has `smers` s-mers.
#[inline(always)]
pub const fn smers_of(kmers: u64, smers: u32) -> u32 {
    let (mut any, mut have) = (kmers, 1);
    while 2 * have <= smers {
        any |= any << have;
        have *= 2;
    }
    ((any | any << (smers - have)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::finalise;
    use crate::minimizer;

    fn words() -> impl Iterator<Item = u64> {
        (0..300).map(finalise).chain([0, !0, 0x1b1b_1b1b_1b1b_1b1b])
    }

    #[test]
    fn reverse_complements_are_those_of_kmers() {
        for word in words() {
            let other = minimizer::reverse_complement(word & 0xffff_ffff, 16);
            assert_eq!(u64::from(reverse_complement(word as u32)), other);
        }
    }

    /// Hashes a span of bases given as a number, with arbitrary bits after it.
    fn hash(bases: u64, span: Span, after: u32) -> u32 {
        let at = |position: u32| Both::of((bases as u128 | u128::from(after) << 64).wrapping_shr(2 * position) as u32);
        span.hash(at(0), at(span.offset()))
    }

    #[test]
    fn both_strands_hash_alike_and_others_do_not_count() {
        for l in LEAST_M..=32 {
            let span = Span::new(l);
            for word in words() {
                let bases = word & (!0 >> (64 - 2 * l));
                let wanted = hash(bases, span, 0);
                assert_eq!(hash(minimizer::reverse_complement(bases, l), span, 0), wanted, "{l} {bases:x}");
                assert_eq!(hash(word, span, word as u32), wanted, "{l} {bases:x}");
            }
        }
    }

    #[test]
    fn hashes_differ_and_spread() {
        for l in [8, 13, 16, 17, 26, 32] {
            let (span, mut words_hit) = (Span::new(l), [0u32; 8]);
            for i in 0..8000 {
                words_hit[word_of(hash(finalise(i) & (!0 >> (64 - 2 * l)), span, 0)) as usize] += 1;
            }
            assert!(words_hit.iter().all(|n| (800..1200).contains(n)), "{l} {words_hit:?}");
        }
    }

    #[test]
    fn lengths_have_bounds_and_defaults() {
        for (k, s, m) in
            [(8, 8, 4), (64, 33, 10), (63, 31, 10), (40, 33, 10), (31, 32, 10), (31, 20, 21), (31, 20, 3), (0, 0, 0)]
        {
            assert!(Shape::new(k, s, m).is_none(), "{k} {s} {m}");
        }
        for k in LEAST_K..=MOST_K {
            for log in 0..64 {
                let shape = Shape::for_kmers(k, 1 << log).unwrap();
                assert!(Shape::new(k, shape.s(), shape.m()) == Some(shape), "{shape:?}");
            }
        }
        let shape = Shape::for_kmers(31, 100_000_000).unwrap();
        assert_eq!((shape.s(), shape.m(), shape.window(), shape.smers()), (27, 16, 12, 5));
        assert_eq!(Shape::for_kmers(9, 1000).unwrap().s(), 8);
        assert!(Shape::for_kmers(8, 1).is_none() && Shape::for_kmers(64, 1).is_none());
        let shape = Shape::for_kmers(63, 100_000_000).unwrap();
        assert_eq!((shape.s(), shape.m(), shape.smers()), (32, 16, 32));
    }

    #[test]
    fn blocks_stay_in_range() {
        for blocks in [1, 2, 1 << 24, (1 << 24) + 1, MAX_BLOCKS - 1, MAX_BLOCKS] {
            for least in [0, 1, u32::MAX, 0x8000_0000, 77] {
                let wanted = (u128::from(least.wrapping_mul(D)) * u128::from(blocks)) >> 32;
                assert!(block_of(least, blocks) < blocks && u128::from(block_of(least, blocks)) == wanted);
            }
        }
        // Different blocks, where a number of bits no longer fits into 32 bits.
        assert_ne!(block_of(1, MAX_BLOCKS), block_of(2, MAX_BLOCKS));
    }

    #[test]
    fn kmers_begin_before_as_many_bases() {
        let breaks = |i: u64| (0..3).map(move |j| finalise(3 * i + j) & finalise(i << 20 | j) & finalise(i << 40 | j));
        for i in 0..200 {
            // Few breaks, so that there are runs of all lengths.
            let words: [u64; 3] = core::array::from_fn(|j| breaks(i).nth(j).unwrap() & finalise(i << 50) & 0x0421_8010);
            let words = words.map(|word| word as u32);
            let is_base = |at: u32| words.get(at as usize / 32).is_some_and(|word| word >> (at % 32) & 1 == 0);
            for k in 1..=MOST_K {
                let wanted = (0..32).fold(0, |all, at| all | u32::from((at..at + k).all(is_base)) << at);
                assert_eq!(kmers_of(words, k), wanted, "{k} {words:x?}");
            }
        }
    }

    #[test]
    fn runs_of_bits() {
        for len in 1..=32 {
            for bits in words().map(|word| word | word.rotate_left(3) | word.rotate_left(17)) {
                let wanted =
                    (0..32).filter(|i| (0..len).all(|j| bits >> (i + j) & 1 == 1)).fold(0, |all, i| all | 1 << i);
                assert_eq!(all_of(bits, len) & 0xffff_ffff, wanted, "{len} {bits:x}");
                let wanted =
                    (0..32).filter(|i| (0..len).any(|j| bits >> (32 + i - j) & 1 == 1)).fold(0, |all, i| all | 1 << i);
                assert_eq!(smers_of(bits, len), wanted, "{len} {bits:x}");
            }
        }
    }
}
