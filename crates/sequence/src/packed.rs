//! Sequences in two bits per base.

#[cfg(target_arch = "x86_64")]
mod avx512;

use std::mem::MaybeUninit;

use warpset_core::minimizer::codes_of_eight;

/// Packed sequences: 32 positions per word of 64 bits, the first lowest, 2 bits each: A 0, C 1, T 2, G 3. One more bit
/// per position is set where there is no base.
///
/// Each sequence begins with a new word, and at least one position without a base follows it, so that no window has
/// bases of two sequences. A sequence of `n` letters takes `n / 32 + 1` words, rounded down, of 12 bytes.
///
/// ```
/// use warpset_sequence::{Minimizers, Packed};
///
/// let mut packed = Packed::new();
/// assert_eq!(packed.push(b"ACGTTGCATTNGACCAGT"), 0..1);
/// assert_eq!(packed.push(b"ACTGGTCNAATGCAACGT"), 1..2);
/// let minimizers = Minimizers::new(5, 3)?;
/// let positions: Vec<usize> = minimizers.find_packed(&packed).iter().map(|found| found.position).collect();
/// assert!(positions.iter().any(|&position| position < 32) && positions.iter().any(|&position| position >= 32));
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    bases: Vec<u64>,
    breaks: Vec<u32>,
}

impl Packed {
    /// Creates an empty list of sequences.
    pub fn new() -> Packed {
        Packed::default()
    }

    /// Removes all sequences and keeps the memory.
    pub fn clear(&mut self) {
        self.bases.clear();
        self.breaks.clear();
    }

    /// Adds a sequence: A, C, G, T in either case; any other letter is a position without a base. Returns its range of
    /// words: letter `i` is position `32 * words.start + i`.
    pub fn push(&mut self, letters: &[u8]) -> std::ops::Range<usize> {
        let (start, words) = (self.bases.len(), letters.len() / 32 + 1);
        self.bases.reserve(words);
        self.breaks.reserve(words);
        let (bases, breaks) = (self.bases.spare_capacity_mut(), self.breaks.spare_capacity_mut());
        pack_into(letters, &mut bases[..words], &mut breaks[..words]);
        // SAFETY: `reserve` above made room for these words, and `pack_into` has written all of them.
        unsafe {
            self.bases.set_len(start + words);
            self.breaks.set_len(start + words);
        }
        start..start + words
    }

    /// Adds the first `len` positions of packed words, with the positions of `breaks` as those without a base.
    pub(crate) fn push_packed(&mut self, bases: &[u64], breaks: Option<&[u32]>, len: usize) -> std::ops::Range<usize> {
        let (start, words) = (self.bases.len(), len.div_ceil(32));
        self.bases.extend_from_slice(&bases[..words]);
        match breaks {
            Some(breaks) => self.breaks.extend_from_slice(&breaks[..words]),
            None => self.breaks.resize(start + words, 0),
        }
        match (self.bases.last_mut(), self.breaks.last_mut(), len % 32) {
            (Some(bases), Some(breaks), used @ 1..) => {
                *bases &= !(!0 << (2 * used));
                *breaks |= !0 << used;
            }
            _ => {
                self.bases.push(0);
                self.breaks.push(!0);
            }
        }
        start..self.bases.len()
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.bases.is_empty()
    }

    /// Returns the number of words of 32 positions.
    pub fn words(&self) -> usize {
        self.bases.len()
    }

    /// Borrows the bases, one word per 32 positions.
    pub fn bases(&self) -> &[u64] {
        &self.bases
    }

    /// Borrows one bit per position, set where there is no base.
    pub fn breaks(&self) -> &[u32] {
        &self.breaks
    }
}

/// Packs a sequence into its `letters.len() / 32 + 1` words, and writes all of them.
fn pack_into(letters: &[u8], bases: &mut [MaybeUninit<u64>], breaks: &mut [MaybeUninit<u32>]) {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::minimizers::lanes::{Avx2, Avx512, Lanes};
        if let Some(avx512) = Avx512::detect() {
            return avx512::pack_into(avx512, letters, bases, breaks);
        }
        if let Some(avx2) = Avx2::detect() {
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn fast(letters: &[u8], bases: &mut [MaybeUninit<u64>], breaks: &mut [MaybeUninit<u32>], avx2: Avx2) {
                pack_by(letters, bases, breaks, |letters| avx2.pack(letters));
            }
            // SAFETY: a value of `Avx2` exists only if the processor has the instructions.
            return unsafe { fast(letters, bases, breaks, avx2) };
        }
    }
    pack_by(letters, bases, breaks, pack);
}

/// Packs a sequence into its words, 32 letters at a time.
#[inline(always)]
fn pack_by(
    letters: &[u8],
    bases: &mut [MaybeUninit<u64>],
    breaks: &mut [MaybeUninit<u32>],
    pack: impl Fn(&[u8; 32]) -> (u64, u32),
) {
    let (whole, rest) = letters.as_chunks::<32>();
    // Zeros are no bases: at least one of them follows the sequence.
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    let mut word = 0;
    while word <= whole.len() {
        let (codes, broken) = pack(whole.get(word).unwrap_or(&last));
        bases[word].write(codes);
        breaks[word].write(broken);
        word += 1;
    }
}

/// Packs the codes of 32 letters, and one bit per letter that is no base.
fn pack(letters: &[u8; 32]) -> (u64, u32) {
    let (mut bases, mut breaks) = (0, 0);
    for (i, eight) in letters.as_chunks::<8>().0.iter().enumerate() {
        let (codes, broken) = codes_of_eight(u64::from_le_bytes(*eight));
        bases |= u64::from(codes) << (16 * i);
        breaks |= u32::from(broken) << (8 * i);
    }
    (bases, breaks)
}

#[cfg(test)]
mod tests {
    use warpset_core::minimizer::{code, is_base};

    use super::*;

    fn packed_by(letters: &[u8], pack: impl Fn(&[u8; 32]) -> (u64, u32)) -> Packed {
        let words = letters.len() / 32 + 1;
        let (mut bases, mut breaks) = (vec![MaybeUninit::uninit(); words], vec![MaybeUninit::uninit(); words]);
        pack_by(letters, &mut bases, &mut breaks, pack);
        // SAFETY: `pack_by` has written all words.
        let written = |bases: MaybeUninit<u64>| unsafe { bases.assume_init() };
        // SAFETY: `pack_by` has written all words.
        let broken = |breaks: MaybeUninit<u32>| unsafe { breaks.assume_init() };
        Packed { bases: bases.into_iter().map(written).collect(), breaks: breaks.into_iter().map(broken).collect() }
    }

    #[test]
    fn letters_are_where_they_should_be() {
        let letters: Vec<u8> = (0..300u64)
            .map(|i| match warpset_core::hash::finalise(i) {
                any if any >> 32 & 7 == 0 => (any >> 40) as u8,
                base => b"ACGTacgt"[(base & 7) as usize],
            })
            .collect();
        let mut packed = Packed::new();
        for len in 0..letters.len() {
            let words = packed.push(&letters[..len]);
            assert_eq!(words.len(), len / 32 + 1);
            for i in 0..32 * words.len() {
                let (word, place) = (words.start + i / 32, i % 32);
                let broken = packed.breaks()[word] >> place & 1 == 1;
                let base = letters[..len].get(i).filter(|&&letter| is_base(letter)).map(|&letter| code(letter));
                assert_eq!(broken, base.is_none(), "{len} {i}");
                assert!(base.is_none_or(|base| (packed.bases()[word] >> (2 * place)) as u8 & 3 == base));
            }
            let portable = packed_by(&letters[..len], pack);
            assert_eq!(portable.breaks(), &packed.breaks()[words.clone()]);
            #[cfg(target_arch = "x86_64")]
            if let Some(avx2) = <crate::minimizers::lanes::Avx2 as crate::minimizers::lanes::Lanes>::detect() {
                let by_avx2 = packed_by(&letters[..len], |letters| avx2.pack(letters));
                assert!(by_avx2.bases() == &packed.bases()[words.clone()] && by_avx2.breaks == portable.breaks);
            }
            for (i, &breaks) in portable.breaks().iter().enumerate() {
                let masked =
                    |bases: u64| (0..32).filter(|at| breaks >> at & 1 == 0).map(move |at| bases >> (2 * at) & 3);
                assert!(masked(portable.bases()[i]).eq(masked(packed.bases()[words.start + i])));
            }
        }
        packed.clear();
        assert!(packed.is_empty() && packed.words() == 0);
    }

    #[test]
    fn packed_words_end_at_their_length() {
        for len in 0..100 {
            let mut packed = Packed::new();
            assert_eq!(packed.push_packed(&[!0; 4], None, len), 0..len / 32 + 1);
            assert!(
                (0..32 * packed.words()).all(|i| (packed.breaks()[i / 32] >> (i % 32) & 1 == 1) == (i >= len)),
                "{len}"
            );
        }
    }
}
