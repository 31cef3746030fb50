//! Arithmetic and loads for look-ups in lanes of 64 bits: plain Rust without branches, which becomes vectors.

use super::Row;
use super::batch::BATCH;
use crate::read::Select;

/// A number for each look-up of a batch, aligned as vectors like it.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Lane([u64; BATCH]);

impl Lane {
    pub(crate) const ZERO: Self = Self([0; BATCH]);
}

impl std::ops::Deref for Lane {
    type Target = [u64; BATCH];

    #[inline(always)]
    fn deref(&self) -> &[u64; BATCH] {
        &self.0
    }
}

impl std::ops::DerefMut for Lane {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u64; BATCH] {
        &mut self.0
    }
}

/// [`Select::pairs`].
#[inline(always)]
pub(crate) fn pairs(words: &Lane, ranks: &Lane, select: impl Select) -> Lane {
    let mut ones = Lane::ZERO;
    select.pairs(words, ranks, &mut ones);
    ones
}

/// The low half of a lane.
pub(crate) const LOW: u64 = 0xffff_ffff;

/// The fields of a row's word 1.
#[derive(Clone, Copy)]
pub(crate) struct Fields {
    pub scale: u64,
    pub golomb: u64,
    pub last: u64,
    pub groups: u64,
    pub radix: u64,
}

impl Fields {
    #[inline(always)]
    pub(crate) fn of(word: u64) -> Self {
        // In the order of `Row`, little-endian.
        Self {
            scale: word & LOW,
            golomb: word >> 32 & 0xff,
            last: word >> 40 & 0xff,
            groups: word >> 48 & 0xff,
            radix: word >> 56,
        }
    }
}

/// Rows and words, for loads in lanes.
#[derive(Clone, Copy)]
pub(crate) struct Memory<'a> {
    pub rows: &'a [Row],
    pub words: &'a [u64],
}

impl Memory<'_> {
    /// One of the four words of the row of nodes with `keys` keys.
    #[inline(always)]
    pub(crate) fn row<const WORD: usize>(self, keys: u64) -> u64 {
        const { assert!(WORD < 4) };
        let index = (keys as usize).min(self.rows.len() - 1);
        // SAFETY: the index is within the rows, of which there is one at least, and each is 32 bytes of integers without
        // padding, aligned for words.
        unsafe { *self.rows.as_ptr().cast::<u64>().add(index * 4 + WORD) }
    }

    /// The word at `index`, or the last one.
    #[inline(always)]
    pub(crate) fn word(self, index: u64) -> u64 {
        let index = (index as usize).min(self.words.len() - 1);
        // SAFETY: the index is within the words, of which there is one at least.
        unsafe { *self.words.as_ptr().add(index) }
    }

    /// [`crate::read::bits_from`], but bits of the last word past the end.
    #[inline(always)]
    pub(crate) fn bits_from(self, at: u64) -> u64 {
        let byte = (at >> 3).min(self.words.len() as u64 * 8 - 8);
        // SAFETY: the eight bytes are within the words, of which there is one at least.
        let bits = unsafe { self.words.as_ptr().cast::<u8>().add(byte as usize).cast::<u64>().read_unaligned() };
        bits >> (at & 7)
    }
}

/// The product of the low halves.
#[inline(always)]
pub(crate) fn multiply(a: u64, b: u64) -> u64 {
    (a & LOW) * (b & LOW)
}

/// Numbers that a code can stand for; more come of damaged words only.
pub(crate) const MOST_STORED: u64 = (1 << 39) - 1;

/// The whole part of what is made of numbers up to [`MOST_STORED`] by multiplication with fractions and radices.
#[inline(always)]
pub(crate) fn whole(x: f64) -> u64 {
    debug_assert!((0.0..1e15).contains(&x));
    // SAFETY: not negative, finite and below 2^50.
    unsafe { x.to_int_unchecked() }
}

/// Two ones of a word.
#[derive(Clone, Copy)]
pub(crate) struct Pair {
    /// Position of the second.
    pub second: u64,
    /// Zeros between.
    pub zeros: u64,
    /// Whether there are two.
    pub found: bool,
}

impl Pair {
    /// The two ones of a word that has no others.
    #[inline(always)]
    pub(crate) fn of(ones: u64) -> Self {
        let second = ones & ones.wrapping_sub(1);
        let first = ones ^ second;
        Self {
            second: u64::from(second.wrapping_sub(1).count_ones()),
            zeros: u64::from(second.wrapping_sub(first << 1).count_ones()),
            found: second != 0,
        }
    }
}

/// Words in which ones are, and their ranks there.
pub(crate) struct Within {
    pub words: Lane,
    pub ranks: Lane,
    /// Where the words begin.
    pub starts: Lane,
    /// Whether the one is within.
    pub found: [u8; BATCH],
}

/// The windows of at least 57 bits that begin at positions `from`. The ones with `ranks` ones between them and there are
/// within if they are near enough.
#[inline(always)]
pub(crate) fn windows_of(memory: Memory, from: &Lane, ranks: &Lane) -> Within {
    let mut within = Within { words: Lane::ZERO, ranks: Lane::ZERO, starts: *from, found: [1; BATCH] };
    let [mut words, mut rests]: [Lane; 2] = [Lane::ZERO; 2];
    for i in 0..BATCH {
        words[i] = memory.bits_from(from[i]);
        rests[i] = ranks[i].min(63);
    }
    (within.words, within.ranks) = (words, rests);
    within
}

/// The words of the ones with `ranks` ones between them and positions `from`, among the next `8 * N` words, `N` being 1 or 2.
///
/// Ones are counted in all words; sums of pairs of words stand beside each other in 16 bits each, and are compared with the
/// rank by one subtraction.
#[inline(always)]
pub(crate) fn words_of<const N: usize>(memory: Memory, from: &Lane, ranks: &Lane, select: impl Select) -> Within {
    const { assert!(N == 1 || N == 2) };
    const ONES: u64 = 0x0001_0001_0001_0001;
    const BYTES: u64 = 0xff * ONES;
    const HIGH: u64 = ONES << 15;
    let last = memory.words.len() as u64;
    let [mut firsts, mut seconds, mut totals]: [Lane; 3] = [Lane::ZERO; 3];
    let mut fits = [0_u8; BATCH];
    for i in 0..BATCH {
        let first = from[i] >> 6;
        let fit = first.wrapping_add(8 * N as u64) <= last;
        firsts[i] = if fit { first } else { 0 };
        fits[i] = u8::from(fit);
    }
    let [mut counts, mut more]: [Lane; 2] = [Lane::ZERO; 2];
    select.counts(memory.words, &firsts, &mut counts);
    if N == 2 {
        for i in 0..BATCH {
            seconds[i] = firsts[i] + 8;
        }
        select.counts(memory.words, &seconds, &mut more);
    }
    /// Sums of two bytes, of four, and so on.
    #[inline(always)]
    fn sums(counts: u64) -> u64 {
        let pairs = (counts & BYTES) + (counts >> 8 & BYTES);
        let fours = pairs + (pairs << 16);
        fours + (fours << 32)
    }
    for i in 0..BATCH {
        totals[i] = sums(counts[i]) >> 48;
    }
    let mut within = Within { words: Lane::ZERO, ranks: Lane::ZERO, starts: Lane::ZERO, found: [0; BATCH] };
    let [mut words, mut rests, mut starts]: [Lane; 3] = [Lane::ZERO; 3];
    let mut found = [0; BATCH];
    for i in 0..BATCH {
        // Ones before `from` are in the first word.
        let before = u64::from((memory.word(firsts[i]) & !(u64::MAX << (from[i] & 63))).count_ones());
        let rank = ranks[i].min(0x7000) + before;
        let further = N == 2 && rank >= totals[i];
        let rank = if further { rank - totals[i] } else { rank };
        let (counts, first) = if further { (more[i], firsts[i] + 8) } else { (counts[i], firsts[i]) };
        let sums = sums(counts);
        let two = rank | rank << 16;
        let four = two | two << 32;
        // The high bit of each pair of words that is passed.
        let pair = u64::from(((four | HIGH).wrapping_sub(sums) & HIGH).count_ones());
        let pairs = (16 * pair) & 63;
        let before = sums << 16 >> pairs;
        let rest = rank.wrapping_sub(before & 0xffff);
        let low = counts >> pairs & 0xff;
        let beyond = rest >= low;
        let at = first + 2 * pair + u64::from(beyond);
        words[i] = memory.word(at);
        rests[i] = rest.wrapping_sub(if beyond { low } else { 0 }) & 63;
        starts[i] = at << 6;
        found[i] = fits[i] & u8::from(rank < sums >> 48);
    }
    (within.words, within.ranks, within.starts, within.found) = (words, rests, starts, found);
    within
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Portable, bits_from, scan};

    #[test]
    fn pairs_come_apart() {
        for (first, second) in [(0, 1), (0, 63), (5, 9), (62, 63), (17, 40)] {
            let pair = Pair::of(1_u64 << first | 1 << second);
            assert_eq!((pair.second, pair.zeros, pair.found), (second, second - first - 1, true));
        }
        assert!(!Pair::of(0).found && !Pair::of(1 << 20).found);
    }

    #[test]
    fn reads_as_one_by_one() {
        let words: Vec<u64> = (0..40_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) & (i << 60 | 0xff0f)).collect();
        let memory = Memory { rows: &[], words: &words };
        for from in (0..41 * 64).step_by(7).chain([1 << 40]) {
            if from < 39 * 64 {
                assert_eq!(memory.bits_from(from), bits_from(&words, from));
            }
            for rank in (0..300).step_by(BATCH).chain([1 << 14, 1 << 32]) {
                finds_within::<1>(memory, from, rank);
                finds_within::<2>(memory, from, rank);
            }
        }
    }

    fn finds_within<const N: usize>(memory: Memory, from: u64, rank: u64) {
        let ranks = Lane(std::array::from_fn(|i| rank + i as u64));
        let within = words_of::<N>(memory, &Lane([from; BATCH]), &ranks, Portable);
        let ones = pairs(&within.words, &within.ranks, Portable);
        let (first, len) = (from / 64, memory.words.len() as u64);
        for i in 0..BATCH {
            let one_by_one = scan::<1>(memory.words, from, ranks[i].min(1 << 20) as u32, Portable);
            if within.found[i] == 1 {
                let position = within.starts[i] + u64::from(ones[i].trailing_zeros());
                assert_eq!(position, one_by_one, "{from} {}", ranks[i]);
            } else {
                let end = first + 8 * N as u64;
                assert!(one_by_one >= end * 64 || end > len);
            }
        }
    }
}
