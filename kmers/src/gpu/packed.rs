//! Packing of bases in two bits each, in the format of the kernels ([`warpset_kernels::kmers::letters`]).

use crate::roll::{code, is_base, is_white};

/// One bit per byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Packed sequences: 32 positions per word, and one more bit per position, set where there is no base.
#[derive(Clone, Debug)]
pub struct Packed {
    bases: Vec<u64>,
    breaks: Vec<u32>,
    /// Used positions of the last word, below 32; the others are breaks.
    taken: u32,
}

impl Default for Packed {
    fn default() -> Packed {
        Packed::new()
    }
}

impl Packed {
    /// Creates an empty list of sequences.
    pub fn new() -> Packed {
        Packed::with_capacity(0)
    }

    /// Creates an empty list with memory for `words` words.
    pub(crate) fn with_capacity(words: usize) -> Packed {
        Packed { bases: Vec::with_capacity(words), breaks: Vec::with_capacity(words), taken: 0 }
    }

    /// Adds a sequence: A, C, G, T, U in either case. White space is skipped; any other letter begins a new sequence.
    pub fn push(&mut self, letters: &[u8]) {
        let (chunks, rest) = letters.as_chunks::<8>();
        for &chunk in chunks {
            match codes_of_eight(u64::from_le_bytes(chunk)) {
                Some(codes) => self.put(codes, 0, 8),
                None => chunk.iter().for_each(|&letter| self.put_letter(letter)),
            }
        }
        rest.iter().for_each(|&letter| self.put_letter(letter));
        self.put(0, 1, 1);
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.bases.is_empty()
    }

    /// Returns the number of words of 32 positions.
    pub fn words(&self) -> usize {
        self.bases.len()
    }

    /// Borrows the bases, the first base of a word lowest.
    pub(crate) fn bases(&self) -> &[u64] {
        &self.bases
    }

    /// Borrows one bit per position, set where there is no base.
    pub(crate) fn breaks(&self) -> &[u32] {
        &self.breaks
    }

    #[inline]
    fn put_letter(&mut self, letter: u8) {
        if is_base(letter) {
            self.put(code(letter), 0, 1);
        } else if !is_white(letter) {
            self.put(0, 1, 1);
        }
    }

    /// Appends up to 8 positions.
    #[inline]
    fn put(&mut self, codes: u64, breaks: u32, count: u32) {
        if self.taken == 0 {
            self.bases.push(0);
            self.breaks.push(!0);
        }
        let place = self.taken;
        // New positions are breaks already, so only the bits of bases have to be cleared.
        let not_broken = (!breaks as u64 & !(!0 << count)) << place;
        let codes = (codes as u128) << (2 * place);
        if let (Some(bases), Some(broken)) = (self.bases.last_mut(), self.breaks.last_mut()) {
            *bases |= codes as u64;
            *broken &= !(not_broken as u32);
        }
        self.taken = (place + count) % 32;
        if place + count > 32 {
            self.bases.push((codes >> 64) as u64);
            self.breaks.push(!((not_broken >> 32) as u32));
        }
    }
}

/// Returns the codes of eight bases, the first lowest, if all eight letters are bases.
///
/// Bits 1 and 2 of the letters A, C, T, G are 0 to 3 in this order, in both cases; bit 2 added to bit 1 by exclusive or
/// gives the order of the codes. The letter of the code then shows whether the given letter was one of the four.
#[inline(always)]
fn codes_of_eight(letters: u64) -> Option<u64> {
    let codes = (letters >> 1 ^ letters >> 2) & (3 * ONES);
    let (low, high) = (codes & ONES, codes >> 1 & ONES);
    let wanted = ONES * 0x41 + low * 2 + high * 6 + (low & high) * 11;
    if letters & (ONES * 0xdf) != wanted {
        return None;
    }
    let codes = (codes | codes >> 6) & 0x000f_000f_000f_000f;
    let codes = (codes | codes >> 12) & 0x0000_00ff_0000_00ff;
    Some((codes | codes >> 24) & 0xffff)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{K, Roll};

    /// Returns all canonical k-mers in order, read back from the packed positions.
    fn kmers(packed: &Packed, k: u32) -> Vec<u64> {
        let mut letters = Vec::new();
        for (bases, breaks) in packed.bases().iter().zip(packed.breaks()) {
            for i in 0..32 {
                let base = b"ACGT"[(bases >> (2 * i) & 3) as usize];
                letters.push(if breaks >> i & 1 == 1 { b'-' } else { base });
            }
        }
        let mut kmers = Vec::new();
        Roll::of(K::new(k).unwrap()).each(&letters, |kmer| kmers.push(kmer));
        kmers
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn packed_sequences_have_their_kmers(
            sequences in prop::collection::vec("[ACGTacgt]{0,70}[ACGTacgtNnRX@!\\-\r\n]{0,20}[ACGT\n]{0,80}", 0..6),
        ) {
            let mut packed = Packed::new();
            sequences.iter().for_each(|sequence| packed.push(sequence.as_bytes()));
            prop_assert_eq!(packed.words(), packed.breaks().len());
            for k in [1, 5, 32] {
                let mut wanted = Vec::<u64>::new();
                for sequence in &sequences {
                    Roll::of(K::new(k).unwrap()).each(sequence.as_bytes(), |kmer| wanted.push(kmer));
                }
                prop_assert_eq!(kmers(&packed, k), wanted);
            }
        }
    }

    #[test]
    fn eight_letters_at_once_are_as_one_by_one() {
        for letter in 0..=255u8 {
            for place in 0..8 {
                let mut eight = *b"ACGTacgt";
                eight[place] = letter;
                let each =
                    eight.iter().enumerate().map(|(i, &letter)| is_base(letter).then(|| code(letter) << (2 * i)));
                // U is left to the slow path.
                let each = each.map(|code| code.filter(|_| letter & 0xdf != b'U'));
                let wanted = each.collect::<Option<Vec<u64>>>().map(|codes| codes.iter().sum());
                assert_eq!(codes_of_eight(u64::from_le_bytes(eight)), wanted, "{letter} {place}");
            }
        }
    }

    #[test]
    fn sequences_end_at_any_place_of_a_word() {
        for len in 0..70 {
            let mut packed = Packed::new();
            packed.push(&vec![b'C'; len]);
            packed.push(b"GG");
            assert_eq!(packed.words(), (len + 4).div_ceil(32), "{len}");
            assert_eq!(kmers(&packed, 1), [vec![1; len], vec![1; 2]].concat());
        }
        assert!(Packed::new().is_empty());
    }
}
