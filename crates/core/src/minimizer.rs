//! Canonical minimizers of DNA: bases, k-mers, hashes and the selection within a window, one copy for every backend.
//!
//! A *window* is `w` consecutive k-mers, so `k + w - 1` bases. Its *minimizer* is the k-mer with the least [`order`] of
//! its [hash](Strands). If several have the least order, it is the leftmost of them if the window is on its *canonical
//! strand*, that is, if more than half of its bases are G or T; else the rightmost. A k-mer and its reverse complement
//! have one hash, and of a window with an odd number of bases either the window or its reverse complement is canonical.
//! So both strands of DNA select the same k-mer in every window. With an even number `k + w - 1` this holds except in
//! windows with exactly as many G and T as A and C *and* several least k-mers: these select the rightmost.
//!
//! ```text
//! base    2 bits, bits 1 and 2 of its letter in ASCII: A 0, C 1, T 2, G 3; its complement is `base ^ 2`
//! k-mer   u64, or u128 above 32 bases; 2 bits per base, the first base lowest
//! hash    u32, the sum of both strands' hashes; the order is that of its upper 16 bits
//! ```
//!
//! Sources: Roberts, Hayes, Hunt, Mount, Yorke, "Reducing storage requirements for biological sequence comparison",
//! Bioinformatics 2004 (minimizers); Mohamadi, Chu, Vandervalk, Birol, "ntHash", Bioinformatics 2016 (the hash); Groot
//! Koerkamp, Martayan, "SimdMinimizers", SEA 2025 (32 bits of ntHash, its sum over both strands, the strand of a
//! window, the order by 16 bits). Positions and k-mers equal those of the crate `simd-minimizers` 3.1 and, with
//! [`DEACON_ROTATION`], of Deacon 0.19. Departure: the hash of a k-mer is computed from two prefixes of the sequence
//! ([`Prefix`]) where that is faster than rolling.

use core::fmt::Debug;
use core::hash::Hash;
use core::ops::{BitAnd, BitOr, Not, Shl, Shr};

/// Largest number of bases per k-mer: its value has 126 bits.
pub const MOST_K: u32 = 63;
/// Largest number of k-mers per window.
pub const MOST_W: u32 = 64;
/// Default rotation of the hash, in bits per base. With it few bits of neighbouring k-mers are related.
pub const ROTATION: u32 = 7;
/// Rotation of Deacon's hash, in bits per base.
pub const DEACON_ROTATION: u32 = 1;

/// Hash of each base: the lower halves of ntHash's seeds.
const SEEDS: [u32; 4] = [0x95c6_0474, 0x62a0_2b4c, 0x8257_2324, 0x4be2_4456];
/// Letter of each base.
const LETTERS: [u8; 4] = *b"ACTG";

/// Parameters by which minimizers are selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Scheme {
    /// Bases per k-mer, 1 to [`MOST_K`].
    pub k: u32,
    /// K-mers per window, 1 to [`MOST_W`].
    pub w: u32,
    /// Rotation of the hash in bits per base, below 32.
    pub rotation: u32,
}

const _: () = assert!(size_of::<Scheme>() == 12);

impl Scheme {
    /// Creates a scheme with windows of `w` k-mers and [`ROTATION`]; `None` unless `k` is 1 to [`MOST_K`] and `w` 1 to
    /// [`MOST_W`].
    pub const fn new(k: u32, w: u32) -> Option<Scheme> {
        if k == 0 || k > MOST_K || w == 0 || w > MOST_W {
            return None;
        }
        Some(Scheme { k, w, rotation: ROTATION })
    }

    /// Returns the scheme with another rotation of hashes, taken modulo 32.
    pub const fn rotated_by(self, rotation: u32) -> Scheme {
        Scheme { rotation: rotation % 32, ..self }
    }

    /// Returns the bases per window.
    #[inline(always)]
    pub const fn window(self) -> u32 {
        self.k + self.w - 1
    }

    /// Whether both strands select the same k-mers in every window.
    pub const fn is_strand_symmetric(self) -> bool {
        self.window() % 2 == 1
    }

    /// Whether a window with `gs_and_ts` letters G or T selects the leftmost of several least k-mers, not the
    /// rightmost.
    #[inline(always)]
    pub const fn takes_leftmost(self, gs_and_ts: u32) -> bool {
        2 * gs_and_ts > self.window()
    }
}

/// Returns the code of a base in two bits; of another letter the code of some base.
#[inline(always)]
pub const fn code(letter: u8) -> u8 {
    letter >> 1 & 3
}

/// Whether a letter is A, C, G or T, in either case.
#[inline(always)]
pub const fn is_base(letter: u8) -> bool {
    letter & !0x20 == LETTERS[code(letter) as usize]
}

/// Returns the letter of a base, in upper case.
#[inline(always)]
pub const fn letter(base: u8) -> u8 {
    LETTERS[base as usize & 3]
}

/// Returns the complement of a base.
#[inline(always)]
pub const fn complement(base: u8) -> u8 {
    base ^ 2
}

/// Returns the hash of one base.
#[inline(always)]
pub const fn seed(base: u8) -> u32 {
    seeds(base).0
}

/// Returns the hash of a base, and that of its complement, by selection: a table would be read from device memory.
#[inline(always)]
const fn seeds(base: u8) -> (u32, u32) {
    let (low, high) = if base & 1 == 0 { (SEEDS[0], SEEDS[2]) } else { (SEEDS[1], SEEDS[3]) };
    if base & 2 == 0 { (low, high) } else { (high, low) }
}

/// One bit per byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Returns the codes of eight letters, two bits each, and one bit per letter that is no base; the first letter is the
/// lowest byte. A letter that is no base has an arbitrary code.
#[inline(always)]
pub const fn codes_of_eight(letters: u64) -> (u16, u8) {
    let (low, high) = (letters >> 1 & ONES, letters >> 2 & ONES);
    // The letter with this code: bit 0 is set except in T, bit 4 only in T, and bits 1 and 2 are the code.
    let t = high & !low;
    let known = (0x40 * ONES) | t << 4 | (t ^ ONES) | low << 1 | high << 2;
    let differs = (letters ^ known) & !(0x20 * ONES);
    let broken = ((((differs & (0x7f * ONES)) + 0x7f * ONES) | differs) >> 7) & ONES;
    let codes = low | high << 1;
    let codes = (codes | codes >> 6) & 0x000f_000f_000f_000f;
    let codes = (codes | codes >> 12) & 0x0000_00ff_0000_00ff;
    // The product moves bit 0 of byte `i` to bit `56 + i`.
    ((codes | codes >> 24) as u16, (broken.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8)
}

/// Returns the upper half of a hash, by which k-mers are compared.
#[inline(always)]
pub const fn order(hash: u32) -> u32 {
    hash >> 16
}

/// Returns the reverse complement of a k-mer of `k` bases.
#[inline(always)]
pub const fn reverse_complement(kmer: u64, k: u32) -> u64 {
    let pairs = if cfg!(target_arch = "nvptx64") {
        // Reversing all bits puts the last base first, and swaps the two bits of each base.
        let turned = kmer.reverse_bits();
        (turned & 0x5555_5555_5555_5555) << 1 | (turned >> 1) & 0x5555_5555_5555_5555
    } else {
        // Host processors reverse bytes in one instruction, but not bits.
        let bytes = kmer.swap_bytes();
        let halves = (bytes & 0x0f0f_0f0f_0f0f_0f0f) << 4 | (bytes >> 4) & 0x0f0f_0f0f_0f0f_0f0f;
        (halves & 0x3333_3333_3333_3333) << 2 | (halves >> 2) & 0x3333_3333_3333_3333
    };
    (pairs ^ 0xaaaa_aaaa_aaaa_aaaa) >> (64 - 2 * k)
}

/// Returns the smaller of a k-mer and its reverse complement: its value in sets, also in those of Deacon.
#[inline(always)]
pub const fn canonical(kmer: u64, k: u32) -> u64 {
    let other = reverse_complement(kmer, k);
    if kmer < other { kmer } else { other }
}

/// Number that holds the bases of a k-mer, 2 bits each: `u64` up to 32 bases, `u128` up to [`MOST_K`].
pub trait Kmer:
    Copy
    + Debug
    + Default
    + Hash
    + Ord
    + Send
    + Sync
    + From<u64>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + Not<Output = Self>
    + Shl<u32, Output = Self>
    + Shr<u32, Output = Self>
    + 'static
{
    /// Largest number of bases.
    const MOST_K: u32;

    /// Returns the bits of `k` bases, 1 to [`MOST_K`](Kmer::MOST_K).
    fn mask(k: u32) -> Self;

    /// Returns the low 64 bits.
    fn low(self) -> u64;

    /// Returns the reverse complement of a k-mer of `k` bases.
    fn reverse_complement(self, k: u32) -> Self;

    /// Returns the smaller of a k-mer and its reverse complement.
    #[inline(always)]
    fn canonical(self, k: u32) -> Self {
        self.min(self.reverse_complement(k))
    }
}

impl Kmer for u64 {
    const MOST_K: u32 = 32;

    #[inline(always)]
    fn mask(k: u32) -> u64 {
        !0 >> (64 - 2 * k)
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self
    }

    #[inline(always)]
    fn reverse_complement(self, k: u32) -> u64 {
        reverse_complement(self, k)
    }
}

impl Kmer for u128 {
    const MOST_K: u32 = MOST_K;

    #[inline(always)]
    fn mask(k: u32) -> u128 {
        !0 >> (128 - 2 * k)
    }

    #[inline(always)]
    fn low(self) -> u64 {
        self as u64
    }

    #[inline(always)]
    fn reverse_complement(self, k: u32) -> u128 {
        let half = |bases: u64| u128::from(reverse_complement(bases, 32));
        (half(self as u64) << 64 | half((self >> 64) as u64)) >> (128 - 2 * k)
    }
}

/// Hashes of a window of `k` bases on both strands while it moves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Strands {
    forward: u32,
    reverse: u32,
}

impl Strands {
    /// Adds the next base. After `k` bases, and if each base [leaves](Strands::leave) before the `k`-th base after it
    /// enters, [`hash`](Strands::hash) is that of the last `k` bases.
    #[inline(always)]
    pub const fn enter(&mut self, base: u8, scheme: Scheme) {
        let Scheme { k, rotation, .. } = scheme;
        self.forward = self.forward.rotate_left(rotation) ^ seed(base);
        let last = seed(complement(base)).rotate_left((k - 1) * rotation);
        self.reverse = self.reverse.rotate_right(rotation) ^ last;
    }

    /// Removes the first base of the k-mer.
    #[inline(always)]
    pub const fn leave(&mut self, base: u8, scheme: Scheme) {
        let Scheme { k, rotation, .. } = scheme;
        self.forward ^= seed(base).rotate_left((k - 1) * rotation);
        self.reverse ^= seed(complement(base));
    }

    /// Returns the hash of the k-mer, which equals that of its reverse complement.
    #[inline(always)]
    pub const fn hash(self) -> u32 {
        self.forward.wrapping_add(self.reverse)
    }
}

/// Returns the hash of one k-mer.
pub fn hash<K: Kmer>(kmer: K, scheme: Scheme) -> u32 {
    let mut strands = Strands::default();
    (0..scheme.k).for_each(|i| strands.enter((kmer >> (2 * i)).low() as u8 & 3, scheme));
    strands.hash()
}

/// Hash of the bases before a position. Two of them give the hash of the k-mer between them, so that all hashes come
/// from one scan by exclusive or, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prefix {
    /// Exclusive or of the seeds, rotated right by `rotation` per position.
    pub forward: u32,
    /// Exclusive or of the complements' seeds, rotated left by `rotation` per position.
    pub reverse: u32,
}

impl Prefix {
    /// Returns the term of the base at a position.
    #[inline(always)]
    pub const fn term(base: u8, position: u32, rotation: u32) -> Prefix {
        let turn = position.wrapping_mul(rotation);
        Prefix { forward: seed(base).rotate_right(turn % 32), reverse: seed(complement(base)).rotate_left(turn % 32) }
    }

    /// Combines both by exclusive or.
    #[inline(always)]
    pub const fn with(self, other: Prefix) -> Prefix {
        Prefix { forward: self.forward ^ other.forward, reverse: self.reverse ^ other.reverse }
    }

    /// Returns the hash of the k-mer that begins at `position`; `self` has all terms before it, and `end` those of its
    /// bases too.
    #[inline(always)]
    pub const fn hash(self, end: Prefix, position: u32, scheme: Scheme) -> u32 {
        let between = self.with(end);
        let turn = position.wrapping_mul(scheme.rotation);
        let last = turn.wrapping_add((scheme.k - 1) * scheme.rotation);
        between.forward.rotate_left(last % 32).wrapping_add(between.reverse.rotate_right(turn % 32))
    }
}

/// Returns the hits that a read of `total` different minimizers needs to match, by Deacon's rule: at least one, at
/// least `hits`, and at least the least number whose quotient by `total` is not below `share`, in floating point, on
/// every backend. The number does not fall as `total` grows. A read without minimizers never matches.
#[inline(always)]
pub const fn needed_hits(hits: u64, share: f64, total: u64) -> u64 {
    if total == 0 {
        return u64::MAX;
    }
    let below = (share * total as f64) as u64;
    let by_share = if (below as f64 / total as f64) < share { below + 1 } else { below };
    let by_share = if by_share == 0 { 1 } else { by_share };
    if by_share > hits { by_share } else { hits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheme(k: u32, w: u32, rotation: u32) -> Scheme {
        Scheme::new(k, w).unwrap().rotated_by(rotation)
    }

    fn kmers() -> impl Iterator<Item = u64> {
        (0..200).map(crate::hash::finalise).chain([0, !0, 0x1b1b_1b1b_1b1b_1b1b])
    }

    #[test]
    fn letters_are_bases_in_either_case() {
        for byte in 0..=255u8 {
            assert_eq!(is_base(byte), b"ACGTacgt".contains(&byte), "{byte}");
            if is_base(byte) {
                assert_eq!(letter(code(byte)), byte.to_ascii_uppercase());
            }
        }
        for (base, other) in [(b'A', b'T'), (b'C', b'G'), (b'G', b'C'), (b'T', b'A')] {
            assert_eq!(letter(complement(code(base))), other);
        }
    }

    #[test]
    fn eight_letters_are_as_one_by_one() {
        for byte in 0..=255u8 {
            for place in 0..8 {
                let mut letters = *b"ACGTtgca";
                letters[place] = byte;
                let (codes, broken) = codes_of_eight(u64::from_le_bytes(letters));
                for (i, &letter) in letters.iter().enumerate() {
                    assert_eq!(broken >> i & 1 == 0, is_base(letter), "{byte} {place}");
                    assert!(!is_base(letter) || (codes >> (2 * i)) as u8 & 3 == code(letter), "{byte} {place}");
                }
            }
        }
    }

    #[test]
    fn hits_that_are_enough() {
        assert_eq!(needed_hits(2, 0.01, 0), u64::MAX);
        assert_eq!((needed_hits(2, 0.01, 1), needed_hits(2, 0.01, 200), needed_hits(2, 0.01, 201)), (2, 2, 3));
        // A tenth of thirty is three, although the product is a little larger.
        assert_eq!((needed_hits(0, 0.0, 0), needed_hits(0, 0.0, 1), needed_hits(0, 0.0, 9)), (u64::MAX, 1, 1));
        assert_eq!((needed_hits(1, 0.1, 30), needed_hits(1, 0.49, 5), needed_hits(1, 0.0, 5)), (3, 3, 1));
        for share in [0.0, 0.01, 0.1, 0.5, 0.99, 1.0] {
            assert!((1..20_000).map(|total| needed_hits(1, share, total)).is_sorted(), "{share}");
        }
    }

    /// Compares with the reverse complement base by base.
    #[test]
    fn reverse_complements() {
        for k in 1..=32 {
            for kmer in kmers().map(|kmer| kmer & (!0 >> (64 - 2 * k))) {
                let base = |i: u32| (kmer >> (2 * i)) as u8 & 3;
                let wanted = (0..k).fold(0, |other, i| other << 2 | u64::from(complement(base(i))));
                assert_eq!(reverse_complement(kmer, k), wanted, "{k} {kmer:x}");
                assert_eq!(reverse_complement(wanted, k), kmer);
                assert_eq!([canonical(kmer, k), canonical(wanted, k)], [kmer.min(wanted); 2]);
            }
        }
        for k in 1..=MOST_K {
            for (low, high) in kmers().zip(kmers().skip(7)) {
                let kmer = (u128::from(high) << 64 | u128::from(low)) & u128::mask(k);
                let base = |i: u32| (kmer >> (2 * i)) as u8 & 3;
                let wanted = (0..k).fold(0, |other, i| other << 2 | u128::from(complement(base(i))));
                assert_eq!(kmer.reverse_complement(k), wanted, "{k} {kmer:x}");
                assert_eq!([kmer.canonical(k), wanted.canonical(k)], [kmer.min(wanted); 2]);
                assert!(k > 32 || wanted == u128::from(reverse_complement(kmer.low(), k)));
            }
        }
    }

    #[test]
    fn both_strands_hash_alike() {
        for k in 1..=32 {
            for rotation in [0, 1, 7, 31] {
                let scheme = scheme(k, 5, rotation);
                for kmer in kmers().map(|kmer| kmer & (!0 >> (64 - 2 * k))) {
                    assert_eq!(
                        hash(kmer, scheme),
                        hash(reverse_complement(kmer, k), scheme),
                        "{k} {rotation} {kmer:x}"
                    );
                }
            }
        }
    }

    /// Compares hashes that are rolled, from prefixes, and of single k-mers.
    #[test]
    fn hashes_of_a_sequence() {
        let bases: [u8; 200] = core::array::from_fn(|i| crate::hash::finalise(i as u64) as u8 & 3);
        for k in [1, 2, 15, 31, 32] {
            for rotation in [1, 7] {
                let scheme = scheme(k, 1, rotation);
                let k = k as usize;
                let mut prefixes = [Prefix::default(); 201];
                for (i, &base) in bases.iter().enumerate() {
                    prefixes[i + 1] = prefixes[i].with(Prefix::term(base, i as u32, rotation));
                }
                let mut strands = Strands::default();
                for (end, &base) in bases.iter().enumerate() {
                    strands.enter(base, scheme);
                    let Some(start) = (end + 1).checked_sub(k) else { continue };
                    let kmer = (start..=end).rev().fold(0u64, |kmer, i| kmer << 2 | u64::from(bases[i]));
                    let wanted = hash(kmer, scheme);
                    assert_eq!(strands.hash(), wanted, "{k} {start}");
                    assert_eq!(prefixes[start].hash(prefixes[end + 1], start as u32, scheme), wanted, "{k} {start}");
                    strands.leave(bases[start], scheme);
                }
            }
        }
    }

    #[test]
    fn schemes_have_bounds() {
        for (k, w) in [(0, 1), (64, 1), (1, 0), (1, 65)] {
            assert!(Scheme::new(k, w).is_none());
        }
        assert!(scheme(31, 15, 1).is_strand_symmetric() && scheme(31, 15, 1).window() == 45);
        assert!(!scheme(31, 16, 1).is_strand_symmetric());
        assert!(scheme(31, 15, 1).takes_leftmost(23) && !scheme(31, 15, 1).takes_leftmost(22));
    }
}
