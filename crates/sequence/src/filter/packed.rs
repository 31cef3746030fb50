//! Sequences of two bits per base.

use warpset_core::sequence_filter::codes_of;

/// Sequences with two bits per base, and a bit per position that says whether there is one.
///
/// ```text
/// bases   u64  32 positions, 2 bits each, the first lowest: A 0, C 1, T 2, G 3 (bits 1 and 2 of the letters)
/// breaks  u32  the same 32 positions, a bit each: set where there is no base
/// ```
///
/// Each sequence begins with a word, and a break follows its last base. Takes 3 bits per letter, and up to 32 positions
/// per sequence. Filters take sequences of letters too; packed ones take less memory, and are packed once if they are
/// used several times.
///
/// ```
/// use warpset_sequence::{PackedSequences, SequenceFilter};
///
/// let mut reads = PackedSequences::new();
/// reads.push(b"ACGTTGCAACGTACGNTACAGATTACA");
/// reads.push_packed(&[0b11_10_01_00], 4); // A, C, T, G
/// assert_eq!((reads.len(), reads.letters(0), reads.letters(1)), (2, 27, 4));
///
/// let filter = SequenceFilter::builder(100).k(11).build_from(&reads)?;
/// assert_eq!(filter.count_bulk(&reads)[0].found, 8);
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedSequences {
    bases: Vec<u64>,
    breaks: Vec<u32>,
    /// The first word of each sequence, and its letters.
    sequences: Vec<(usize, usize)>,
}

impl PackedSequences {
    /// Without sequences.
    pub fn new() -> PackedSequences {
        PackedSequences::default()
    }

    /// Adds a sequence of letters: A, C, G, T in either case. No k-mer has another letter in it.
    pub fn push(&mut self, letters: &[u8]) {
        self.begin(letters.len());
        pack(letters, &mut self.bases, &mut self.breaks);
        self.end(letters.len());
    }

    /// Adds a sequence of `len` bases with two bits each, the first base of a word lowest: A 0, C 1, T 2, G 3.
    ///
    /// # Panics
    /// If there are fewer than `len.div_ceil(32)` words.
    pub fn push_packed(&mut self, words: &[u64], len: usize) {
        self.push_words(&words[..len.div_ceil(32)], None, len);
    }

    /// Adds `len` positions of words that begin with the first one.
    pub(crate) fn push_words(&mut self, bases: &[u64], breaks: Option<&[u32]>, len: usize) {
        self.begin(len);
        self.bases.extend_from_slice(bases);
        match breaks {
            Some(breaks) => self.breaks.extend_from_slice(breaks),
            None => self.breaks.resize(self.bases.len(), 0),
        }
        if let (Some(bases), Some(breaks), used @ 1..) = (self.bases.last_mut(), self.breaks.last_mut(), len % 32) {
            *bases &= !(!0 << (2 * used));
            *breaks |= !0 << used;
        }
        self.end(len);
    }

    fn begin(&mut self, len: usize) {
        self.sequences.push((self.bases.len(), len));
    }

    /// A break after the last base.
    fn end(&mut self, len: usize) {
        if len.is_multiple_of(32) {
            self.bases.push(0);
            self.breaks.push(!0);
        }
    }

    /// Removes all sequences and keeps the memory.
    pub fn clear(&mut self) {
        self.bases.clear();
        self.breaks.clear();
        self.sequences.clear();
    }

    /// How many sequences there are.
    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// Letters of sequence `i`.
    ///
    /// # Panics
    /// If there is no sequence `i`.
    pub fn letters(&self, i: usize) -> usize {
        self.sequences[i].1
    }

    /// The word with which sequence `i` begins; its letter `j` is position `j % 32` of word `j / 32` from there on.
    ///
    /// # Panics
    /// If there is no sequence `i`.
    pub fn first_word(&self, i: usize) -> usize {
        self.sequences[i].0
    }

    /// The bases, 32 positions per word.
    pub fn bases(&self) -> &[u64] {
        &self.bases
    }

    /// Where there is no base, 32 positions per word.
    pub fn breaks(&self) -> &[u32] {
        &self.breaks
    }
}

/// Appends letters, the last word filled up with breaks.
fn pack(letters: &[u8], bases: &mut Vec<u64>, breaks: &mut Vec<u32>) {
    let (whole, rest) = letters.as_chunks::<32>();
    let (first, words) = (bases.len(), whole.len());
    bases.resize(first + words, 0);
    breaks.resize(first + words, 0);
    pack_words(whole, &mut bases[first..], &mut breaks[first..]);
    if !rest.is_empty() {
        let mut last = [[0u8; 32]];
        last[0][..rest.len()].copy_from_slice(rest);
        let (mut word, mut broken) = ([0], [0]);
        pack_words(&last, &mut word, &mut broken);
        bases.push(word[0] & !(!0 << (2 * rest.len())));
        breaks.push(broken[0]); // a byte of zero is no base
    }
}

/// Packs whole words, which are as many as there are places.
fn pack_words(letters: &[[u8; 32]], bases: &mut [u64], breaks: &mut [u32]) {
    #[inline(always)]
    fn each(letters: &[[u8; 32]], bases: &mut [u64], breaks: &mut [u32]) {
        for ((letters, bases), breaks) in letters.iter().zip(bases).zip(breaks) {
            let fours = letters.as_chunks::<4>().0;
            let (mut codes, mut broken) = ([0u8; 8], 0);
            for i in 0..8 {
                let (code, no_base) = codes_of(u32::from_le_bytes(fours[i]));
                codes[i] = code as u8;
                broken |= no_base << (4 * i);
            }
            (*bases, *breaks) = (u64::from_le_bytes(codes), broken);
        }
    }
    super::probes::with_vectors!(each(letters: &[[u8; 32]], bases: &mut [u64], breaks: &mut [u32]));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use warpset_core::minimizer;

    use super::*;

    fn letters(packed: &PackedSequences, i: usize) -> Vec<Option<u8>> {
        (0..packed.letters(i))
            .map(|j| {
                let word = packed.first_word(i) + j / 32;
                let is_base = packed.breaks()[word] >> (j % 32) & 1 == 0;
                is_base.then(|| (packed.bases()[word] >> (2 * (j % 32))) as u8 & 3)
            })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn letters_are_read_back(sequences in prop::collection::vec("[ACGTacgt]{0,70}[ACGTNn\\-@\n]{0,9}[ACGT]{0,64}", 0..5)) {
            let mut packed = PackedSequences::new();
            sequences.iter().for_each(|sequence| packed.push(sequence.as_bytes()));
            prop_assert_eq!(packed.len(), sequences.len());
            for (i, sequence) in sequences.iter().enumerate() {
                let wanted: Vec<Option<u8>> =
                    sequence.bytes().map(|byte| minimizer::is_base(byte).then(|| minimizer::code(byte))).collect();
                prop_assert_eq!(letters(&packed, i), wanted);
                // A break follows.
                let end = 32 * packed.first_word(i) + packed.letters(i);
                prop_assert!(packed.breaks()[end / 32] >> (end % 32) & 1 == 1);
                // The same from words.
                let first = packed.first_word(i);
                let words = first..first + sequence.len().div_ceil(32);
                let mut again = PackedSequences::new();
                again.push_words(&packed.bases()[words.clone()], Some(&packed.breaks()[words]), sequence.len());
                prop_assert_eq!(letters(&again, 0), letters(&packed, i));
            }
        }
    }

    #[test]
    fn packed_bases_have_no_breaks_within() {
        for len in [0, 1, 31, 32, 33, 64, 100] {
            let mut packed = PackedSequences::new();
            packed.push_packed(&[!0; 4], len);
            packed.push(b"A");
            assert_eq!(letters(&packed, 0), vec![Some(3); len]);
            assert_eq!(letters(&packed, 1), [Some(0)]);
        }
    }
}
