//! Genomes as sets of k-mers.
//!
//! A *canonical* k-mer is the smaller of a window of k bases and its reverse complement, so both
//! strands of DNA give the same key. Bases take 2 bits each, A < C < G < T: 31 of them fit a `u64`.

use std::io::Read;
use std::path::Path;

use super::keys::KeySpace;
use super::{InputError, read_maybe_gzip};

/// Bases in a k-mer: the longest odd window in 64 bits. Odd, so that none is its own complement.
pub const K: usize = 31;

/// Returns the canonical k-mers of a sequence, in order, one per window of [`K`] bases. Skips windows with a letter
/// other than A, C, G, T (either case).
pub fn canonical_kmers(sequence: &[u8]) -> impl Iterator<Item = u64> + '_ {
    const MASK: u64 = (1 << (2 * K)) - 1;
    let (mut forward, mut reverse, mut length) = (0u64, 0u64, 0);
    sequence.iter().filter_map(move |letter| {
        let base = match letter {
            b'A' | b'a' => 0,
            b'C' | b'c' => 1,
            b'G' | b'g' => 2,
            b'T' | b't' => 3,
            _ => {
                length = 0;
                return None;
            }
        };
        forward = (forward << 2 | base) & MASK;
        reverse = reverse >> 2 | (3 - base) << (2 * (K - 1)); // the complement of base b is 3 - b
        length += 1;
        (length >= K).then(|| forward.min(reverse))
    })
}

/// Generates random letters A, C, G, T.
pub fn random_letters(bases: usize, seed: u64) -> Vec<u8> {
    let words = KeySpace::new(seed).stream(0).u64_keys(bases.div_ceil(32));
    let letters = |word: &u64| std::array::from_fn::<u8, 32, _>(|i| b"ACGT"[(word >> (2 * i) & 3) as usize]);
    let mut letters: Vec<u8> = words.iter().flat_map(letters).collect();
    letters.truncate(bases);
    letters
}

/// A genome, cut into canonical k-mers.
#[derive(Clone, Debug)]
pub struct Genome {
    /// Name of the file, or of the shipped genome.
    pub name: String,
    /// One k-mer per window, in the order of the sequence; a k-mer that occurs twice is here twice.
    pub kmers: Vec<u64>,
    /// The distinct k-mers, sorted.
    pub distinct: Vec<u64>,
}

impl Genome {
    /// Reads FASTA or FASTQ, already decompressed. `path` is for messages.
    pub fn read(name: &str, path: &Path, input: impl Read + Send) -> Result<Self, InputError> {
        let broken = |error: needletail::errors::ParseError| InputError::NotSequence {
            path: path.to_owned(),
            reason: error.to_string(),
        };
        let mut kmers = Vec::new();
        let mut reader = needletail::parse_fastx_reader(input).map_err(broken)?;
        while let Some(record) = reader.next() {
            kmers.extend(canonical_kmers(&record.map_err(broken)?.seq()));
        }
        if kmers.is_empty() {
            let wanted = "windows of 31 bases A, C, G or T";
            return Err(InputError::NoKeys { path: path.to_owned(), wanted });
        }
        let mut distinct = kmers.clone();
        rayon::slice::ParallelSliceMut::par_sort_unstable(&mut distinct[..]);
        distinct.dedup();
        Ok(Self { name: name.to_owned(), kmers, distinct })
    }

    /// Reads a FASTA or FASTQ file, plain or gzip.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        Self::read(&name, path, read_maybe_gzip(path)?)
    }

    /// Splits this genome's distinct k-mers by whether `other` has them: (shared, absent).
    pub fn screen(&self, other: &Genome) -> (Vec<u64>, Vec<u64>) {
        let mut theirs = other.distinct.iter().copied().peekable();
        self.distinct.iter().partition(|&&kmer| {
            while theirs.next_if(|&their| their < kmer).is_some() {}
            theirs.peek() == Some(&kmer)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Compares with needletail's k-mers, which are cut window by window.
        #[test]
        fn agrees_with_needletail(sequence in "[ACGTacgtN]{0,20}[ACGT]{0,80}[NacgtX-]{0,3}[ACGT]{0,80}") {
            let expected = needletail::bitkmer::BitNuclKmer::new(sequence.as_bytes(), K as u8, true);
            let expected: Vec<u64> = expected.map(|(_, (kmer, _), _)| kmer).collect();
            prop_assert_eq!(canonical_kmers(sequence.as_bytes()).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn both_strands_give_the_same_kmers(sequence in "[ACGT]{31,200}") {
            let complement = |base: char| match base { 'A' => 'T', 'C' => 'G', 'G' => 'C', _ => 'A' };
            let other: String = sequence.chars().rev().map(complement).collect();
            let mut kmers: Vec<u64> = canonical_kmers(other.as_bytes()).collect();
            kmers.reverse();
            prop_assert_eq!(canonical_kmers(sequence.as_bytes()).collect::<Vec<_>>(), kmers);
        }
    }

    #[test]
    fn bad_files_are_errors() {
        let read = |bytes: &'static [u8]| Genome::read("x", Path::new("x"), bytes);
        assert!(matches!(read(b""), Err(InputError::NotSequence { .. })));
        assert!(matches!(read(b"hello world\n"), Err(InputError::NotSequence { .. })));
        assert!(matches!(read(b">short\nACGT\n"), Err(InputError::NoKeys { .. })));
        let long: &[u8] = b">a\nACGTACGTACGTACGTACGTAC\nGTACGTACGTACGT\n>b\r\nACGT\r\n";
        assert_eq!(read(long).unwrap().kmers.len(), 36 - 30);
    }
}
