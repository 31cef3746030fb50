//! Canonical k-mers from letters: both strands at once, base by base.

use warpset_core::minimizer::{Kmer, MOST_K};

use crate::Error;
use crate::word::{MOST_SHORT, Word};

/// Bases per k-mer: 1 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct K(u32);

impl K {
    /// Creates a number of bases per k-mer.
    ///
    /// # Errors
    /// [`Error::InvalidK`] unless `k` is 1 to 63.
    pub fn new(k: u32) -> Result<K, Error> {
        if (1..=MOST_K).contains(&k) { Ok(K(k)) } else { Err(Error::InvalidK { k, most: MOST_K }) }
    }

    /// Whether k-mers take numbers of 128 bits: those of more than 32 bases.
    pub fn is_long(self) -> bool {
        self.0 > MOST_SHORT
    }

    /// Returns the number if numbers of the type `W` hold such k-mers.
    pub(crate) fn within<W: Kmer>(self) -> Result<K, Error> {
        if self.0 <= W::MOST_K { Ok(self) } else { Err(Error::InvalidK { k: self.0, most: W::MOST_K }) }
    }

    /// Creates a stand-in for code that only cuts sequences, such that each window of `letters` letters is whole in
    /// some piece; it may be longer than a k-mer.
    pub(crate) fn of_window(letters: usize) -> K {
        K(letters as u32)
    }

    /// Returns the number.
    pub fn get(self) -> u32 {
        self.0
    }
}

/// Code of a letter that is no base, and ends the k-mer.
pub(crate) const BREAK: u8 = 4;
/// Code of white space within a sequence, which is skipped.
const SKIP: u8 = 5;

/// Code of each byte: a base, A < C < G < T, so that the complement of `b` is `3 - b`; or one of the two above. U is T.
pub(crate) const CODES: [u8; 256] = {
    let mut codes = [BREAK; 256];
    let mut base = 0;
    while base < 5 {
        let (letter, code) = (b"ACGTU"[base], if base < 4 { base as u8 } else { 3 });
        codes[letter as usize] = code;
        codes[letter.to_ascii_lowercase() as usize] = code;
        base += 1;
    }
    let mut white = 0;
    while white < 4 {
        codes[b"\n\r \t"[white] as usize] = SKIP;
        white += 1;
    }
    codes
};

/// Whether a byte is a line end, a space or a tab.
pub(crate) fn is_white(letter: u8) -> bool {
    CODES[letter as usize] == SKIP
}

/// Whether a byte is a base.
#[inline(always)]
pub(crate) fn is_base(letter: u8) -> bool {
    CODES[letter as usize] < BREAK
}

/// Returns the two bits of a base.
#[inline(always)]
pub(crate) fn code(base: u8) -> u64 {
    u64::from(CODES[base as usize])
}

/// Window over letters that arrive in pieces; it moves by one base at a time and gives k-mers as numbers of the type
/// `W`, `u64` or `u128`.
#[derive(Clone, Copy, Debug)]
pub struct Roll<W = u64> {
    k: u32,
    mask: W,
    /// Complement of each base, as the last base of the other strand: a shift of 128 bits takes longer than a lookup.
    complements: [W; 4],
    forward: W,
    reverse: W,
    length: u32,
}

impl<W: Word> Roll<W> {
    /// Creates a window before the first letter.
    ///
    /// # Errors
    /// [`Error::InvalidK`] if `u64` is to hold more than 32 bases.
    pub fn new(k: K) -> Result<Roll<W>, Error> {
        Ok(Roll::of(k.within::<W>()?))
    }

    /// Creates a window for k-mers that `W` holds.
    pub(crate) fn of(k: K) -> Roll<W> {
        let (k, none) = (k.get(), W::default());
        let complements = [3, 2, 1, 0].map(|base| W::from(base) << (2 * (k - 1)));
        Roll { k, mask: W::mask(k), complements, forward: none, reverse: none, length: 0 }
    }

    /// Begins another sequence.
    pub fn restart(&mut self) {
        self.length = 0;
    }

    /// Visits the canonical k-mer of every window that ends within `letters`: A, C, G, T, U in either case. White space
    /// is skipped; any other letter begins a new sequence.
    #[inline(always)]
    pub fn each(&mut self, letters: &[u8], mut visit: impl FnMut(W)) {
        let Roll { k, mask, complements, mut forward, mut reverse, mut length } = *self;
        for &letter in letters {
            let code = CODES[letter as usize];
            if code >= BREAK {
                length = if code == SKIP { length } else { 0 };
                continue;
            }
            forward = (forward << 2 | W::from(code.into())) & mask;
            reverse = reverse >> 2 | complements[code as usize];
            length += 1;
            if length >= k {
                length = k; // no overflow, however long the sequence
                visit(forward.min(reverse));
            }
        }
        (self.forward, self.reverse, self.length) = (forward, reverse, length);
    }
}

/// Returns the canonical k-mer of `k` letters: A, C, G, T, U in either case.
///
/// # Errors
/// [`Error::NotKmer`] for other letters, or another number of them; [`Error::InvalidK`] if `u64` is to hold more than
/// 32 bases.
pub fn canonical<W: Word>(kmer: &[u8], k: K) -> Result<W, Error> {
    let mut found = None;
    if kmer.len() == k.get() as usize {
        Roll::new(k)?.each(kmer, |kmer| found = Some(kmer));
    }
    found.ok_or_else(|| Error::NotKmer { kmer: String::from_utf8_lossy(kmer).into(), k: k.get() })
}

/// Returns the letters of a k-mer.
pub fn letters<W: Word>(kmer: W, k: K) -> String {
    // Bases that the number has no room for are A.
    let base = |i: u32| if 2 * i < W::BITS { (kmer >> (2 * i)).low() & 3 } else { 0 };
    (0..k.get()).rev().map(|i| char::from(b"ACGT"[base(i) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes k-mers window by window.
    fn plain(sequence: &[u8], k: usize) -> Vec<u128> {
        let upper = |letter: &u8| if letter & 0xdf == b'U' { b'T' } else { letter.to_ascii_uppercase() };
        let base = |letter: &u8| b"ACGT".iter().position(|base| *base == upper(letter)).map(|b| b as u128);
        let sequence: Vec<Option<u128>> =
            sequence.iter().filter(|letter| !b"\r\n \t".contains(letter)).map(base).collect();
        let number = |bases: &mut dyn Iterator<Item = u128>| bases.fold(0, |kmer, base| kmer << 2 | base);
        sequence
            .windows(k)
            .filter_map(|window| window.iter().copied().collect::<Option<Vec<u128>>>())
            .map(|window| {
                let forward = number(&mut window.iter().copied());
                forward.min(number(&mut window.iter().rev().map(|base| 3 - base)))
            })
            .collect()
    }

    /// Rolls through pieces of a sequence, with numbers of 128 bits and, if they suffice, of 64.
    fn rolled_in(pieces: &[&[u8]], k: u32) -> Vec<u128> {
        let k = K::new(k).unwrap();
        let (mut roll, mut kmers) = (Roll::new(k).unwrap(), Vec::<u128>::new());
        pieces.iter().for_each(|piece| roll.each(piece, |kmer| kmers.push(kmer)));
        let Ok(mut roll) = Roll::<u64>::new(k) else {
            assert!(k.is_long());
            return kmers;
        };
        let mut short = Vec::new();
        pieces.iter().for_each(|piece| roll.each(piece, |kmer| short.push(u128::from(kmer))));
        assert_eq!(short, kmers);
        kmers
    }

    fn rolled(sequence: &[u8], k: u32) -> Vec<u128> {
        rolled_in(&[sequence], k)
    }

    fn complement(sequence: &str) -> String {
        let of = |letter| match letter {
            'A' => 'T',
            'C' => 'G',
            'G' => 'C',
            _ => 'A',
        };
        sequence.chars().rev().map(of).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn windows(sequence in "[ACGTacgt]{0,40}[ACGTUacgtuNnRX\\-\r\n \t]{0,20}[ACGT\n]{0,80}", cut in 0usize..200) {
            for k in 1..=MOST_K {
                let wanted = plain(sequence.as_bytes(), k as usize);
                prop_assert_eq!(&rolled(sequence.as_bytes(), k), &wanted);
                // In two pieces.
                let (first, second) = sequence.as_bytes().split_at(cut.min(sequence.len()));
                prop_assert_eq!(rolled_in(&[first, second], k), wanted);
            }
        }

        #[test]
        fn both_strands_have_the_same_kmers(sequence in "[ACGT]{1,100}") {
            for k in [1, 2, 31, 32, 33, 48, 62, 63] {
                let mut other = rolled(complement(&sequence).as_bytes(), k);
                other.reverse();
                prop_assert_eq!(rolled(sequence.as_bytes(), k), other);
            }
        }

        #[test]
        fn kmers_are_spelled(sequence in "[ACGT]{63}") {
            for k in [1u32, 2, 31, 32, 33, 55, 63] {
                let window = &sequence[..k as usize];
                let spelled = letters(rolled(window.as_bytes(), k)[0], K::new(k).unwrap());
                prop_assert!(spelled == window.min(&complement(window)));
            }
        }
    }

    #[test]
    fn palindromes_and_extremes() {
        assert_eq!(rolled(b"ACGT", 4), [0b00_01_10_11]);
        assert_eq!(rolled(b"acgt", 4), rolled(b"ACGT", 4));
        assert_eq!(rolled(b"AT", 2), [0b00_11]);
        assert_eq!(rolled(b"ACGTN", 1), [0, 1, 1, 0]);
        assert_eq!(rolled(&[b'T'; 33], 32), [0, 0]);
        assert_eq!(rolled(&[b'G'; 32], 32), [0x5555_5555_5555_5555]);
        assert_eq!(rolled(b"GATC", 2), [0b10_00, 0b00_11, 0b10_00]);
        assert!(rolled(b"ACNGT", 3).is_empty() && rolled(b"", 1).is_empty());
        assert_eq!(rolled(&[b'T'; 64], 63), [0, 0]);
        assert_eq!(rolled(&b"AT".repeat(31), 62), [u128::mask(62) / 5]);
        for k in [0, 64] {
            assert!(matches!(K::new(k), Err(Error::InvalidK { .. })));
        }
    }
}
