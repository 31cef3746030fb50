//! Minimizers of host sequences.

mod scalar;

use warpset_core::minimizer::{self, Scheme, canonical, code};

use crate::Error;

/// Finds the canonical minimizers of sequences.
///
/// A window is `w` consecutive k-mers. Of each window one k-mer is taken, and neighbouring windows mostly take the same:
/// of random bases two k-mers in `w + 1` are minimizers. Equal stretches of two sequences have equal minimizers, on
/// either strand if `k + w - 1` is odd. The least k-mer by a hash is taken; of several least ones the leftmost if more
/// than half of the window's bases are G or T, and otherwise the rightmost ([`warpset_core::minimizer`]).
///
/// Letters are A, C, G, T in either case. No window has another letter in it, so line ends have to be taken out before.
/// A sequence shorter than a window has no minimizers.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Minimizers {
    scheme: Scheme,
}

/// A k-mer that some window took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Minimizer {
    /// Where the k-mer begins in the sequence.
    pub position: usize,
    /// The smaller of the k-mer and its reverse complement, 2 bits per base, the first base lowest: A 0, C 1, T 2, G 3.
    pub kmer: u64,
}

impl Minimizers {
    /// Windows of `w` k-mers, with the hash that the crate `simd-minimizers` takes unless told otherwise.
    ///
    /// # Errors
    /// [`Error::InvalidScheme`] unless `k` is from 1 to 32 (a k-mer is a number of 64 bits), and `w` from 1 to 64.
    pub fn new(k: u32, w: u32) -> Result<Minimizers, Error> {
        let scheme = Scheme::new(k, w).ok_or(Error::InvalidScheme { k, w })?;
        Ok(Minimizers { scheme })
    }

    /// The windows and the hash of Deacon, whose indexes have these minimizers.
    ///
    /// # Errors
    /// [`Error::InvalidScheme`] as for [`new`](Minimizers::new).
    pub fn deacon(k: u32, w: u32) -> Result<Minimizers, Error> {
        Ok(Minimizers::new(k, w)?.rotated_by(minimizer::DEACON_ROTATION))
    }

    /// Rotates the hash by another number of bits per base, taken modulo 32.
    pub fn rotated_by(self, rotation: u32) -> Minimizers {
        Minimizers { scheme: self.scheme.rotated_by(rotation) }
    }

    /// What minimizers are chosen by.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The minimizers of a sequence, by their positions. Takes time in proportion to its length.
    pub fn find(&self, letters: &[u8]) -> Vec<Minimizer> {
        let mut found = Vec::new();
        self.visit(letters, |position, kmer| found.push(Minimizer { position, kmer }));
        found
    }

    /// Appends the positions of the minimizers, ascending.
    pub fn positions_into(&self, letters: &[u8], positions: &mut Vec<usize>) {
        self.visit(letters, |position, _| positions.push(position));
    }

    /// Appends the canonical k-mers of the minimizers, by their positions.
    pub fn kmers_into(&self, letters: &[u8], kmers: &mut Vec<u64>) {
        self.visit(letters, |_, kmer| kmers.push(kmer));
    }

    fn visit(&self, letters: &[u8], mut visit: impl FnMut(usize, u64)) {
        let k = self.scheme.k;
        let mut first = 0;
        for run in letters.split(|&letter| !minimizer::is_base(letter)) {
            scalar::positions(run, self.scheme, |position| {
                let bases = run[position..position + k as usize].iter();
                let kmer = bases.rev().fold(0, |kmer, &base| kmer << 2 | u64::from(code(base)));
                visit(first + position, canonical(kmer, k));
            });
            first += run.len() + 1;
        }
    }
}
