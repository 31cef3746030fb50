//! Packed sequences with their starts: two bits per base.

use crate::Packed;

/// Packed sequences ([`Packed`]) with the start of each.
///
/// Takes 3 bits per letter, and up to 32 more positions per sequence. Filters also take letters; packed sequences need
/// less memory, and are packed only once for several uses.
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
/// assert_eq!(filter.count_bulk(&reads)?[0].found, 6);
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PackedSequences {
    packed: Packed,
    /// First word and number of letters of each sequence.
    sequences: Vec<(usize, usize)>,
}

impl PackedSequences {
    /// Creates an empty list of sequences.
    pub fn new() -> PackedSequences {
        PackedSequences::default()
    }

    /// Adds a sequence of letters: A, C, G, T in either case. Windows with other letters are no k-mers.
    pub fn push(&mut self, letters: &[u8]) {
        let words = self.packed.push(letters);
        self.sequences.push((words.start, letters.len()));
    }

    /// Adds a sequence of `len` bases with two bits each, the first base of a word lowest: A 0, C 1, T 2, G 3.
    ///
    /// # Panics
    /// If there are fewer than `len.div_ceil(32)` words.
    pub fn push_packed(&mut self, words: &[u64], len: usize) {
        self.push_words(words, None, len);
    }

    /// Adds the first `len` positions of packed words.
    pub(crate) fn push_words(&mut self, bases: &[u64], breaks: Option<&[u32]>, len: usize) {
        let words = self.packed.push_packed(bases, breaks, len);
        self.sequences.push((words.start, len));
    }

    /// Removes all sequences and keeps the memory.
    pub fn clear(&mut self) {
        self.packed.clear();
        self.sequences.clear();
    }

    /// Returns the number of sequences.
    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// Returns the number of letters of sequence `i`.
    ///
    /// # Panics
    /// If there is no sequence `i`.
    pub fn letters(&self, i: usize) -> usize {
        self.sequences[i].1
    }

    /// Returns the first word of sequence `i`. Its letter `j` is position `j % 32` of word `j / 32` from there on.
    ///
    /// # Panics
    /// If there is no sequence `i`.
    pub fn first_word(&self, i: usize) -> usize {
        self.sequences[i].0
    }

    /// Borrows the bases, 32 positions per word.
    pub fn bases(&self) -> &[u64] {
        self.packed.bases()
    }

    /// Borrows the bits of positions without a base, 32 per word.
    pub fn breaks(&self) -> &[u32] {
        self.packed.breaks()
    }
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
        fn letters_are_read_back(
            sequences in prop::collection::vec("[ACGTacgt]{0,70}[ACGTNn\\-@\n]{0,9}[ACGT]{0,64}", 0..5),
        ) {
            let mut packed = PackedSequences::new();
            sequences.iter().for_each(|sequence| packed.push(sequence.as_bytes()));
            prop_assert_eq!(packed.len(), sequences.len());
            for (i, sequence) in sequences.iter().enumerate() {
                let wanted: Vec<Option<u8>> =
                    sequence.bytes().map(|byte| minimizer::is_base(byte).then(|| minimizer::code(byte))).collect();
                prop_assert_eq!(letters(&packed, i), wanted);
                // At least one position without a base follows each sequence.
                let end = 32 * packed.first_word(i) + packed.letters(i);
                prop_assert!(packed.breaks()[end / 32] >> (end % 32) & 1 == 1);
                // Packed again, from the words of the first one.
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
