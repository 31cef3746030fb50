//! The real input that ships with the repository, inside the executable: sources and licences are
//! in `data/README.md`.

use std::path::Path;

use super::genome::Genome;
use super::text::Lines;
use super::{InputError, maybe_gzip};

/// Loads the genome of Escherichia coli K-12 MG1655: 4,639,645 k-mers, 4,554,207 distinct.
pub fn mg1655() -> Result<Genome, InputError> {
    genome("E. coli MG1655", include_bytes!("../../../../data/ecoli-mg1655.fasta.gz"))
}

/// Loads the genome of Escherichia coli DH1: 4,630,677 k-mers, 4,538,929 distinct; MG1655 has 4,530,537 of these.
pub fn dh1() -> Result<Genome, InputError> {
    genome("E. coli DH1", include_bytes!("../../../../data/ecoli-dh1.fasta.gz"))
}

/// Loads 104,334 English words, each also in [`words_large`].
pub fn words() -> Result<Lines, InputError> {
    lines("words", include_bytes!("../../../../data/words.gz"))
}

/// Loads 170,421 English words.
pub fn words_large() -> Result<Lines, InputError> {
    lines("words-large", include_bytes!("../../../../data/words-large.gz"))
}

fn genome(name: &str, bytes: &'static [u8]) -> Result<Genome, InputError> {
    let path = Path::new(name);
    let input = maybe_gzip(bytes).map_err(|source| InputError::Read { path: path.to_owned(), source })?;
    Genome::read(name, path, input)
}

fn lines(name: &str, bytes: &'static [u8]) -> Result<Lines, InputError> {
    maybe_gzip(bytes).and_then(Lines::read).map_err(|source| InputError::Read { path: name.into(), source })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn genomes_have_their_known_kmers() {
        let (mg1655, dh1) = (mg1655().unwrap(), dh1().unwrap());
        assert_eq!((mg1655.kmers.len(), mg1655.distinct.len()), (4_639_645, 4_554_207));
        assert_eq!((dh1.kmers.len(), dh1.distinct.len()), (4_630_677, 4_538_929));
        let (shared, absent) = dh1.screen(&mg1655);
        assert_eq!((shared.len(), absent.len()), (4_530_537, 4_538_929 - 4_530_537));
        assert!(shared.iter().step_by(1000).all(|kmer| mg1655.distinct.binary_search(kmer).is_ok()));
        assert!(absent.iter().all(|kmer| mg1655.distinct.binary_search(kmer).is_err()));
    }

    #[test]
    fn word_lists_are_nested() {
        let (small, large) = (words().unwrap(), words_large().unwrap());
        assert_eq!((small.slices().len(), large.slices().len()), (104_334, 170_421));
        let large: HashSet<&[u8]> = large.slices().into_iter().collect();
        assert_eq!(large.len(), 170_421);
        assert!(small.slices().iter().all(|word| large.contains(word)));
    }
}
