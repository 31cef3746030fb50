//! Canonical k-mers from letters: both strands at once, base by base.

use crate::Error;

/// Bases per k-mer: 1 to 32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct K(u32);

impl K {
    /// Creates a number of bases per k-mer.
    ///
    /// # Errors
    /// [`Error::InvalidK`] unless `k` is 1 to 32.
    pub fn new(k: u32) -> Result<K, Error> {
        if (1..=32).contains(&k) { Ok(K(k)) } else { Err(Error::InvalidK { k }) }
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

/// Window over letters that arrive in pieces; it moves by one base at a time and gives k-mers.
#[derive(Clone, Copy, Debug)]
pub struct Roll {
    k: u32,
    mask: u64,
    shift: u32,
    forward: u64,
    reverse: u64,
    length: u32,
}

impl Roll {
    /// Creates a window before the first letter.
    pub fn new(k: K) -> Roll {
        let k = k.get();
        Roll { k, mask: !0 >> (64 - 2 * k), shift: 2 * (k - 1), forward: 0, reverse: 0, length: 0 }
    }

    /// Begins another sequence.
    pub fn restart(&mut self) {
        self.length = 0;
    }

    /// Visits the canonical k-mer of every window that ends within `letters`: A, C, G, T, U in either case. White space
    /// is skipped; any other letter begins a new sequence.
    #[inline(always)]
    pub fn each(&mut self, letters: &[u8], mut visit: impl FnMut(u64)) {
        let Roll { k, mask, shift, mut forward, mut reverse, mut length } = *self;
        for &letter in letters {
            let code = CODES[letter as usize];
            if code >= BREAK {
                length = if code == SKIP { length } else { 0 };
                continue;
            }
            let base = u64::from(code);
            forward = (forward << 2 | base) & mask;
            reverse = reverse >> 2 | (3 - base) << shift;
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
/// [`Error::NotKmer`] for other letters, or another number of them.
pub fn canonical(kmer: &[u8], k: K) -> Result<u64, Error> {
    let mut found = None;
    if kmer.len() == k.get() as usize {
        Roll::new(k).each(kmer, |kmer| found = Some(kmer));
    }
    found.ok_or_else(|| Error::NotKmer { kmer: String::from_utf8_lossy(kmer).into(), k: k.get() })
}

/// Returns the letters of a k-mer.
pub fn letters(kmer: u64, k: K) -> String {
    (0..k.get()).rev().map(|i| char::from(b"ACGT"[(kmer >> (2 * i) & 3) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes k-mers window by window.
    fn plain(sequence: &[u8], k: usize) -> Vec<u64> {
        let upper = |letter: &u8| if letter & 0xdf == b'U' { b'T' } else { letter.to_ascii_uppercase() };
        let base = |letter: &u8| b"ACGT".iter().position(|base| *base == upper(letter)).map(|b| b as u64);
        let sequence: Vec<Option<u64>> =
            sequence.iter().filter(|letter| !b"\r\n \t".contains(letter)).map(base).collect();
        let number = |bases: &mut dyn Iterator<Item = u64>| bases.fold(0u64, |kmer, base| kmer << 2 | base);
        sequence
            .windows(k)
            .filter_map(|window| window.iter().copied().collect::<Option<Vec<u64>>>())
            .map(|window| {
                let forward = number(&mut window.iter().copied());
                forward.min(number(&mut window.iter().rev().map(|base| 3 - base)))
            })
            .collect()
    }

    fn rolled(sequence: &[u8], k: u32) -> Vec<u64> {
        let mut kmers = Vec::new();
        Roll::new(K::new(k).unwrap()).each(sequence, |kmer| kmers.push(kmer));
        kmers
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
            for k in [1, 2, 3, 16, 31, 32] {
                let wanted = plain(sequence.as_bytes(), k as usize);
                prop_assert_eq!(&rolled(sequence.as_bytes(), k), &wanted);
                // In two pieces.
                let (first, second) = sequence.as_bytes().split_at(cut.min(sequence.len()));
                let (mut roll, mut kmers) = (Roll::new(K::new(k).unwrap()), Vec::new());
                roll.each(first, |kmer| kmers.push(kmer));
                roll.each(second, |kmer| kmers.push(kmer));
                prop_assert_eq!(kmers, wanted);
            }
        }

        #[test]
        fn both_strands_have_the_same_kmers(sequence in "[ACGT]{1,100}") {
            for k in [1, 2, 31, 32] {
                let mut other = rolled(complement(&sequence).as_bytes(), k);
                other.reverse();
                prop_assert_eq!(rolled(sequence.as_bytes(), k), other);
            }
        }

        #[test]
        fn kmers_are_spelled(sequence in "[ACGT]{32}") {
            for k in [1u32, 2, 31, 32] {
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
        for k in [0, 33] {
            assert!(matches!(K::new(k), Err(Error::InvalidK { .. })));
        }
    }
}
