//! Minimizers of host sequences.

#[cfg(target_arch = "x86_64")]
mod across;
#[cfg(target_arch = "x86_64")]
mod blocks;
#[cfg(target_arch = "x86_64")]
pub(crate) mod lanes;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod text;

use std::marker::PhantomData;

use warpset_core::minimizer::{self, Kmer, Scheme, code};

use crate::{Error, Packed};

/// Search for the canonical minimizers of sequences.
///
/// A *window* is `w` consecutive k-mers. Each window selects one k-mer, and neighbouring windows mostly select the
/// same: of random bases, two k-mers in `w + 1` are minimizers. Equal stretches of two sequences have equal minimizers,
/// on either strand if `k + w - 1` is odd. A window selects the k-mer with the least hash. If several are least, it
/// selects the leftmost if more than half of its bases are G or T, and otherwise the rightmost
/// ([`warpset_core::minimizer`]).
///
/// Minimizers are listed in the order of the windows, one for each run of windows that select the same k-mer. In
/// repeats, where a window has several least k-mers, a later window may select an earlier one: positions are not
/// always ascending, and one may occur twice. Sort the positions if their order matters:
///
/// ```
/// use warpset_sequence::Minimizers;
///
/// let mut positions = Vec::new();
/// Minimizers::new(31, 15)?.positions_into(&b"ACGT".repeat(12), &mut positions);
/// assert_eq!(positions, [14, 15, 2, 3]);
/// positions.sort_unstable();
/// positions.dedup();
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
///
/// Letters are A, C, G, T in either case. A window has no other letter, so remove line ends before. A sequence shorter
/// than a window has no minimizers.
///
/// ```
/// use warpset_sequence::Minimizers;
///
/// let minimizers = Minimizers::new(31, 15)?;
/// let genome = b"GATTACACCGGTTAACTTGCATGCACGATCGGCTAGCTAAGCTAGCTTTGCGACGACTTACG";
/// for found in minimizers.find(genome) {
///     println!("{} {:x}", found.position, found.kmer);
/// }
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
///
/// K-mers of more than 32 bases are numbers of 128 bits:
///
/// ```
/// use warpset_sequence::{Minimizers, Scheme};
///
/// let scheme = Scheme::new(41, 15).expect("k up to 63, w up to 64");
/// let mut kmers: Vec<u128> = Vec::new();
/// Minimizers::<u128>::with_scheme(scheme)?.kmers_into(&b"ACGTTGCA".repeat(10), &mut kmers);
/// # Ok::<(), warpset_sequence::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Minimizers<K = u64> {
    scheme: Scheme,
    kmers: PhantomData<K>,
}

/// K-mer that some window selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Minimizer<K = u64> {
    /// Position of the k-mer in the sequence.
    pub position: usize,
    /// The smaller of the k-mer and its reverse complement, 2 bits per base, the first base lowest: A 0, C 1, T 2, G 3.
    pub kmer: K,
}

impl Minimizers {
    /// Creates a search with windows of `w` k-mers and the default hash of the crate `simd-minimizers`.
    ///
    /// # Errors
    /// [`Error::InvalidScheme`] unless `k` is from 1 to 32 (a k-mer is a number of 64 bits), and `w` from 1 to 64.
    pub fn new(k: u32, w: u32) -> Result<Minimizers, Error> {
        Minimizers::with_scheme(Scheme::new(k, w).ok_or(Error::InvalidScheme { k, w })?)
    }

    /// Creates a search with the windows and the hash of Deacon, for its indexes.
    ///
    /// # Errors
    /// [`Error::InvalidScheme`] as for [`new`](Minimizers::new).
    pub fn deacon(k: u32, w: u32) -> Result<Minimizers, Error> {
        Ok(Minimizers::new(k, w)?.rotated_by(minimizer::DEACON_ROTATION))
    }
}

impl<K: Kmer> Minimizers<K> {
    /// Creates a search with these parameters.
    ///
    /// # Errors
    /// [`Error::InvalidScheme`] if the parameters are impossible, or numbers `K` do not hold that many bases: `u64`
    /// holds 32, `u128` all.
    pub fn with_scheme(scheme: Scheme) -> Result<Minimizers<K>, Error> {
        let Scheme { k, w, rotation } = scheme;
        match Scheme::new(k, w) {
            Some(scheme) if k <= K::MOST_K => {
                Ok(Minimizers { scheme: scheme.rotated_by(rotation), kmers: PhantomData })
            }
            _ => Err(Error::InvalidScheme { k, w }),
        }
    }

    /// Rotates the hash by another number of bits per base, taken modulo 32.
    pub fn rotated_by(self, rotation: u32) -> Minimizers<K> {
        Minimizers { scheme: self.scheme.rotated_by(rotation), ..self }
    }

    /// Returns the parameters by which minimizers are selected.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Finds the minimizers of a sequence, in the order of the windows, in time proportional to its length.
    pub fn find(&self, letters: &[u8]) -> Vec<Minimizer<K>> {
        let mut found = Vec::new();
        self.visit(letters, |position, kmer| found.push(Minimizer { position, kmer }));
        found
    }

    /// Appends the positions of the minimizers in the order of the windows.
    pub fn positions_into(&self, letters: &[u8], positions: &mut Vec<usize>) {
        self.visit(letters, |position, _| positions.push(position));
    }

    /// Appends the canonical k-mers of the minimizers in the order of the windows.
    pub fn kmers_into(&self, letters: &[u8], kmers: &mut Vec<K>) {
        self.visit(letters, |_, kmer| kmers.push(kmer));
    }

    /// Appends the canonical k-mers of the minimizers of many sequences, sequence by sequence in the order of
    /// the windows, and to `ends` the end of each sequence in `kmers`. With AVX-512 this takes at most half the time of
    /// [`kmers_into`](Minimizers::kmers_into), because sixteen sequences, or parts of them, are processed side by side.
    ///
    /// ```
    /// use warpset_sequence::Minimizers;
    ///
    /// let (mut kmers, mut ends) = (Vec::new(), Vec::new());
    /// Minimizers::new(5, 3)?.kmers_bulk_into(&["ACGTTGCATTCGACCAGT", "ACGT", "GATTACA"], &mut kmers, &mut ends);
    /// assert_eq!((ends[1], ends[2]), (ends[0], kmers.len())); // none of the second
    /// # Ok::<(), warpset_sequence::Error>(())
    /// ```
    pub fn kmers_bulk_into<S: AsRef<[u8]>>(&self, sequences: &[S], kmers: &mut Vec<K>, ends: &mut Vec<usize>) {
        #[cfg(target_arch = "x86_64")]
        {
            use lanes::Lanes;
            if let Some(lanes) = lanes::Avx512::detect() {
                return across::kmers_of(lanes, self.scheme, sequences, kmers, ends);
            }
        }
        for letters in sequences {
            self.kmers_into(letters.as_ref(), kmers);
            ends.push(kmers.len());
        }
    }

    /// Finds the minimizers of packed sequences, in the order of the windows. Positions count on from one sequence to
    /// the next.
    pub fn find_packed(&self, packed: &Packed) -> Vec<Minimizer<K>> {
        let mut found = Vec::new();
        self.visit_packed(packed, |position, kmer| found.push(Minimizer { position, kmer }));
        found
    }

    /// Appends the canonical k-mers of the minimizers of packed sequences in the order of the windows.
    pub fn kmers_packed_into(&self, packed: &Packed, kmers: &mut Vec<K>) {
        self.visit_packed(packed, |_, kmer| kmers.push(kmer));
    }

    fn visit_packed(&self, packed: &Packed, visit: impl FnMut(usize, K)) {
        #[cfg(target_arch = "x86_64")]
        {
            use lanes::Lanes;
            let text = text::PackedText(packed);
            if let Some(lanes) = lanes::Avx512::detect() {
                return blocks::visit_avx512(lanes, &text, self.scheme, visit);
            }
            if let Some(lanes) = lanes::Avx2::detect() {
                return blocks::visit_avx2(lanes, &text, self.scheme, visit);
            }
        }
        self.visit_scalar(&unpacked(packed), visit);
    }

    fn visit(&self, letters: &[u8], visit: impl FnMut(usize, K)) {
        #[cfg(target_arch = "x86_64")]
        {
            use lanes::Lanes;
            let text = text::Letters(letters);
            if let Some(lanes) = lanes::Avx512::detect() {
                return blocks::visit_avx512(lanes, &text, self.scheme, visit);
            }
            if let Some(lanes) = lanes::Avx2::detect() {
                return blocks::visit_avx2(lanes, &text, self.scheme, visit);
            }
        }
        self.visit_scalar(letters, visit);
    }

    /// Visits the minimizers one base at a time, without vector instructions.
    fn visit_scalar(&self, letters: &[u8], mut visit: impl FnMut(usize, K)) {
        let k = self.scheme.k;
        let mut first = 0;
        for run in letters.split(|&letter| !minimizer::is_base(letter)) {
            scalar::positions(run, self.scheme, |position| {
                let bases = run[position..position + k as usize].iter();
                let kmer = bases.rev().fold(K::default(), |kmer, &base| kmer << 2 | K::from(code(base).into()));
                visit(first + position, kmer.canonical(k));
            });
            first += run.len() + 1;
        }
    }
}

/// Returns one letter per position, zero where there is no base.
fn unpacked(packed: &Packed) -> Vec<u8> {
    let words = packed.bases().iter().zip(packed.breaks());
    let letters = |(&bases, &breaks): (&u64, &u32)| {
        (0..32).map(move |i| if breaks >> i & 1 == 0 { minimizer::letter((bases >> (2 * i)) as u8) } else { 0 })
    };
    words.flat_map(letters).collect()
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::lanes::Lanes;
    use super::*;

    fn search<K: Kmer>(k: u32, w: u32) -> Minimizers<K> {
        Minimizers::with_scheme(Scheme::new(k, w).unwrap()).unwrap()
    }

    #[test]
    fn all_instructions_find_the_same() {
        compare_instructions::<u64>(&[(1, 1), (7, 5), (31, 15), (32, 64), (15, 4), (2, 33)]);
        compare_instructions::<u128>(&[(7, 5), (33, 1), (41, 15), (48, 16), (61, 15), (62, 7), (63, 64)]);
    }

    /// Compares all instruction sets of this processor, on letters and on packed bases.
    fn compare_instructions<K: Kmer>(schemes: &[(u32, u32)]) {
        let letter = |i: u64| match warpset_core::hash::finalise(i) {
            any if any % 700 == 0 => b'N',
            any if i % 5000 < 1000 => b"AT"[(any >> 20 & 1) as usize],
            any => b"ACGTacgt"[(any >> 20 & 7) as usize],
        };
        let letters: Vec<u8> = (0..6000).map(letter).collect();
        for &(k, w) in schemes {
            let minimizers = search::<K>(k, w);
            let scheme = minimizers.scheme();
            for len in (0..300).chain([1023, 1024, 1025, 1120, 2200, 6000]) {
                let text = &letters[6000 - len..];
                let mut packed = Packed::new();
                packed.push(text);
                let mut wanted = Vec::new();
                minimizers.visit_scalar(text, |position, kmer| wanted.push((position, kmer)));
                let (letters, packed) = (text::Letters(text), text::PackedText(&packed));
                let mut found = Vec::new();
                if let Some(lanes) = lanes::Avx2::detect() {
                    blocks::visit_avx2(lanes, &letters, scheme, |position, kmer| found.push((position, kmer)));
                    assert_eq!(std::mem::take(&mut found), wanted, "{k} {w} {len}");
                    blocks::visit_avx2(lanes, &packed, scheme, |position, kmer| found.push((position, kmer)));
                    assert_eq!(std::mem::take(&mut found), wanted, "{k} {w} {len}");
                }
                if let Some(lanes) = lanes::Avx512::detect() {
                    blocks::visit_avx512(lanes, &letters, scheme, |position, kmer| found.push((position, kmer)));
                    assert_eq!(std::mem::take(&mut found), wanted, "{k} {w} {len}");
                    blocks::visit_avx512(lanes, &packed, scheme, |position, kmer| found.push((position, kmer)));
                    assert_eq!(std::mem::take(&mut found), wanted, "{k} {w} {len}");
                }
                minimizers.visit_scalar(&unpacked(packed.0), |position, kmer| found.push((position, kmer)));
                assert_eq!(found, wanted, "{k} {w} {len}");
            }
        }
    }

    #[test]
    fn many_sequences_are_as_one_after_the_other() {
        let short = [(1, 1), (7, 5), (31, 15), (32, 64), (15, 4), (2, 33), (21, 1), (16, 16)];
        compare_many::<u64>(&short);
        compare_many::<u128>(&[(16, 16), (33, 15), (41, 15), (48, 1), (49, 3), (61, 15), (63, 64)]);
    }

    /// Compares the bulk search with one search per sequence: equal and different lengths, letters that are no bases,
    /// repeats, also longer ones than a piece.
    fn compare_many<K: Kmer>(schemes: &[(u32, u32)]) {
        let letter = |i: u64| match warpset_core::hash::finalise(i) {
            any if any % 3000 == 0 => b'N',
            any if i % 9000 < 700 => b"AT"[(any >> 20 & 1) as usize],
            _ if i % 9000 < 1000 => b"CAG"[i as usize % 3],
            any => b"ACGTacgt"[(any >> 20 & 7) as usize],
        };
        let letters: Vec<u8> = (0..40_000).map(letter).collect();
        let lengths = |i: usize, kind: usize| match kind {
            0 => 150,
            1 => warpset_core::hash::finalise(i as u64) as usize % 300,
            2 => [0, 1, 30, 31, 32, 64, 65, 1023, 1024, 1025, 3000][i % 11],
            _ => 7000 + i,
        };
        for &(k, w) in schemes {
            for minimizers in [search::<K>(k, w), search::<K>(k, w).rotated_by(minimizer::DEACON_ROTATION)] {
                for (kind, count) in [(0, 100), (1, 100), (2, 33), (3, 5), (0, 3), (0, 0)] {
                    let mut begin = 0;
                    let sequences: Vec<&[u8]> = (0..count)
                        .map(|i| {
                            let len = lengths(i, kind);
                            begin = (begin + 77) % (letters.len() - len);
                            &letters[begin..begin + len]
                        })
                        .collect();
                    let (mut wanted, mut wanted_ends) = (vec![K::from(7)], Vec::new());
                    for letters in &sequences {
                        minimizers.visit_scalar(letters, |_, kmer| wanted.push(kmer));
                        wanted_ends.push(wanted.len());
                    }
                    let (mut found, mut ends) = (vec![K::from(7)], Vec::new());
                    minimizers.kmers_bulk_into(&sequences, &mut found, &mut ends);
                    assert!(found == wanted && ends == wanted_ends, "{k} {w} {kind} {count}");
                }
            }
        }
    }
}
