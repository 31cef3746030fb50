//! Labels: the genome of each k-mer of up to 255 genomes, without the k-mers.
//!
//! A label is the number of the only genome with a k-mer, or zero for k-mers of several genomes. A static function maps
//! k-mers to labels, with fingerprints that reject most other k-mers.

mod format;

use std::fmt;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use warpset_base::words::zeroed_vec;
use warpset_fuse::{Arity, Form, FunctionBuilder, StaticFunction};
use warpset_kernels::kmers::number::Number as _;

use crate::count::{Counts, label};
use crate::pieces::Text;
use crate::roll::canonical;
use crate::word::{Word, short};
use crate::{Error, K, Settings};

/// Most genomes of one set of labels.
pub(crate) const MOST_GENOMES: usize = u8::MAX as usize;

/// Returns the bytes of memory per k-mer while labels are built, beside the function: k-mers, the keys of long ones,
/// labels, and the graph.
const fn build_bytes<W: Word>() -> u64 {
    let kmers = size_of::<W>() as u64;
    kmers + if kmers > 8 { 8 } else { 0 } + 1 + 20
}

/// Genome of a k-mer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The only genome with the k-mer: an index into [`Labels::genomes`].
    Genome(usize),
    /// Several genomes have the k-mer.
    Several,
}

/// Map from the canonical k-mers of up to 255 genomes to the genome that has them.
///
/// The k-mers are not stored. Of others, a share of `2^-filter_bits` gets some label; all labels of a genome's own
/// k-mers are right.
///
/// - **Memory**: 1.18 times the bits of a label and of the filter per different k-mer: 15.3 bits for one genome, 23.5
///   for 255, with the usual 12 bits of the filter.
/// - **Screening**: [`Screening::by_labels`](crate::Screening::by_labels) finds the genomes of reads.
///
/// ```
/// use warpset_kmers::{Label, Labels, Settings, label_files};
///
/// # let folder = tempfile::tempdir()?;
/// # let [one, other, saved] = ["one.fa", "other.fa", "genomes.labels"].map(|name| folder.path().join(name));
/// # std::fs::write(&one, ">one\nGATTACACC\n")?;
/// # std::fs::write(&other, ">other\nTTGGTGTAACG\n")?;
/// let labels: Labels = label_files(&[one, other], &Settings::new(5)?, 12)?;
/// assert_eq!(labels.get(b"GATTA")?, Some(Label::Genome(0)));
/// assert_eq!(labels.get(b"GTTAC")?, labels.get(b"GTAAC")?); // the same k-mer on the other strand
/// assert_eq!(labels.get(b"CACCA")?, Some(Label::Genome(1)));
/// assert_eq!(labels.get(b"ACACC")?, Some(Label::Several));
/// labels.save(&saved)?;
/// assert_eq!(Labels::load(&saved)?, labels);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Labels {
    k: K,
    genomes: Vec<String>,
    /// Number of k-mers per label.
    kmers: Vec<u64>,
    /// Seed of the keys of long k-mers; 0 for short ones.
    seed: u64,
    function: StaticFunction<u8>,
}

/// Labels the k-mers of genomes, one per file: FASTA and FASTQ, plain, gzip or Zstandard; `-` is the standard input.
///
/// Other k-mers get a label with probability `2^-filter_bits`; `filter_bits` is at most 32. Takes `k`, memory, threads
/// and progress from the settings, and runs on the CPU. Memory for a time: that of counting, and then 29
/// bytes per different k-mer beside the function, 45 above 32 bases.
///
/// # Errors
/// [`Error::NoInput`], [`Error::TooManyGenomes`]; [`Error::NoKmers`] if no genome has any; [`Error::Index`] for too
/// many bits, or if memory runs out; the errors of [`count_files`](crate::count_files).
pub fn label_files(genomes: &[PathBuf], settings: &Settings, filter_bits: u32) -> Result<Labels, Error> {
    match genomes.len() {
        0 => return Err(Error::NoInput),
        1..=MOST_GENOMES => {}
        genomes => return Err(Error::TooManyGenomes { genomes }),
    }
    let builder = StaticFunction::<u8>::builder().value_bits((genomes.len() as u64).ilog2() + 1).filtered(filter_bits);
    let builder = builder.arity(Arity::Four).form(Form::Sharded);
    builder.layout(1)?;
    let texts: Vec<Text<'_>> = genomes.iter().map(|path| Text::File(path)).collect();
    let mut kmers = vec![0; genomes.len() + 1];
    let (seed, function) = match settings.k.is_long() {
        true => build::<u128>(&texts, settings, &builder, &mut kmers)?,
        false => build::<u64>(&texts, settings, &builder, &mut kmers)?,
    };
    let genomes = genomes.iter().map(|path| name_of(path)).collect();
    Ok(Labels { k: settings.k, genomes, kmers, seed, function })
}

/// Builds the function of the k-mers of genomes, in numbers of the type `W`, and adds up k-mers by labels. Returns also
/// the seed of keys.
fn build<W: Counts>(
    genomes: &[Text<'_>],
    settings: &Settings,
    builder: &FunctionBuilder<u8>,
    of_labels: &mut [u64],
) -> Result<(u64, StaticFunction<u8>), Error> {
    label(genomes, settings, |different, labelled| {
        if different == 0 {
            return Err(Error::NoKmers { k: settings.k.get() });
        }
        let needed = build_bytes::<W>() * different + 8 * builder.layout(different)?.words();
        if let Some(allowed) = settings.memory.filter(|&allowed| needed > allowed) {
            return Err(Error::OverBudget { kmers: different, needed, allowed });
        }
        let (mut kmers, mut values) = (zeroed_vec::<W>(different)?, zeroed_vec::<u8>(different)?);
        for ((kmer, genome), (to, value)) in labelled.zip(kmers.iter_mut().zip(&mut values)) {
            // The number of several genomes is above all others.
            (*to, *value) = (kmer, u8::try_from(genome).unwrap_or(0));
            of_labels[usize::from(*value)] += 1;
        }
        function_of(builder, &kmers, &values, W::key)
    })
}

/// Builds the function of different k-mers by the first seed with which all of their keys differ, and returns the seed.
/// Two of 10^9 long k-mers have equal keys under one seed of 37; two of 10^10, under 14 of 15.
fn function_of<W: Word>(
    builder: &FunctionBuilder<u8>,
    kmers: &[W],
    values: &[u8],
    key: impl Fn(W, u64) -> u64 + Sync,
) -> Result<(u64, StaticFunction<u8>), Error> {
    if let Some(kmers) = short(kmers) {
        return Ok((0, builder.build_from(kmers, values)?));
    }
    let (mut keys, mut seed) = (zeroed_vec::<u64>(kmers.len() as u64)?, 0);
    loop {
        keys.par_iter_mut().zip(kmers).for_each(|(to, &kmer)| *to = key(kmer, seed));
        match builder.build_from(&keys, values) {
            Ok(function) if function.len() == kmers.len() as u64 => return Ok((seed, function)),
            Ok(_) | Err(warpset_fuse::Error::TwoValues { .. }) => seed += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the name of a genome: its path, without characters that end fields or lines.
fn name_of(path: &Path) -> String {
    path.to_string_lossy().replace(char::is_control, "?")
}

impl Labels {
    /// Returns the bases per k-mer.
    pub fn k(&self) -> K {
        self.k
    }

    /// Returns the paths of the genomes, as given when they were labelled.
    pub fn genomes(&self) -> &[String] {
        &self.genomes
    }

    /// Returns the number of different k-mers.
    pub fn len(&self) -> u64 {
        self.function.len()
    }

    /// Whether there are no k-mers; they are refused, so this is false.
    pub fn is_empty(&self) -> bool {
        self.function.is_empty()
    }

    /// Returns the number of different k-mers with this label.
    ///
    /// # Panics
    /// If there is no such genome.
    pub fn kmers(&self, label: Label) -> u64 {
        match label {
            Label::Several => self.kmers[0],
            Label::Genome(genome) => self.kmers[genome + 1],
        }
    }

    /// Returns the probability that a k-mer of no genome gets a label.
    pub fn fpr(&self) -> f64 {
        self.function.fpr()
    }

    /// Returns the bytes of memory of the function.
    pub fn memory_bytes(&self) -> u64 {
        self.function.memory_bytes()
    }

    /// Borrows the function from [keys](Labels::key) to numbers of genomes from 1 on, and 0 for k-mers of several
    /// genomes.
    pub fn function(&self) -> &StaticFunction<u8> {
        &self.function
    }

    /// Returns the key of a canonical k-mer, in 2 bits per base, A < C < G < T: the k-mer itself up to 32 bases, and
    /// otherwise a hash, which differs for all k-mers of the genomes.
    pub fn key<W: Word>(&self, kmer: W) -> u64 {
        if self.k.is_long() { kmer.wide().key(self.seed) } else { kmer.low() }
    }

    /// Returns the number of the genome of each canonical k-mer, which `W` is chosen for.
    pub(crate) fn numbers<W: Word>(&self, kmers: &[W]) -> Vec<Option<u8>> {
        match short(kmers) {
            Some(keys) => self.function.get_bulk(keys),
            None => self.function.get_bulk(&kmers.iter().map(|kmer| kmer.key(self.seed)).collect::<Vec<u64>>()),
        }
    }

    /// Returns the label of a k-mer or its reverse complement: `None` if no genome has it, except with probability
    /// [`fpr`](Labels::fpr).
    ///
    /// # Errors
    /// [`Error::NotKmer`] unless `kmer` is [`Labels::k`] letters A, C, G or T.
    pub fn get(&self, kmer: &[u8]) -> Result<Option<Label>, Error> {
        let number = self.function.get(self.key(canonical::<u128>(kmer, self.k)?)).map(usize::from);
        Ok(number.filter(|&number| number <= self.genomes.len()).map(|number| match number {
            0 => Label::Several,
            number => Label::Genome(number - 1),
        }))
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Labels").field("k", &self.k).field("genomes", &self.genomes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that seeds under which k-mers have equal keys are passed over, with equal and with different values.
    #[test]
    fn keys_of_long_kmers_differ() {
        let kmers: Vec<u128> = (0..1000).map(|i| u128::from(warpset_core::hash::finalise(i)) << 60 | 5).collect();
        let values: Vec<u8> = (0..1000).map(|i| i as u8 % 3).collect();
        let builder = StaticFunction::<u8>::builder().value_bits(2).filtered(32).form(Form::Sharded);
        let key = |kmer: u128, seed| match seed {
            0 if kmer == kmers[999] => kmers[997].key(0), // another value
            1 if kmer == kmers[999] => kmers[996].key(1), // the same value
            2 => 7,
            _ => kmer.key(seed),
        };
        let (seed, function) = function_of(&builder, &kmers, &values, key).unwrap();
        assert_eq!((seed, function.len()), (3, 1000));
        for (kmer, value) in kmers.iter().zip(values) {
            assert_eq!(function.get(kmer.key(3)), Some(value));
        }
    }
}
