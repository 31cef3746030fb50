//! Labels: the genome of each k-mer of up to 255 genomes, without the k-mers.
//!
//! A label is the number of the only genome with a k-mer, or zero for k-mers of several genomes. A static function maps
//! k-mers to labels, with fingerprints that reject most other k-mers.

mod format;

use std::fmt;
use std::path::{Path, PathBuf};

use warpset_base::words::zeroed_vec;
use warpset_fuse::{Arity, Form, StaticFunction};

use crate::count::label;
use crate::pieces::Text;
use crate::roll::canonical;
use crate::{Error, K, Settings};

/// Most genomes of one set of labels.
pub(crate) const MOST_GENOMES: usize = u8::MAX as usize;
/// Bytes of memory per k-mer while labels are built, beside the function: k-mers, labels, and the graph.
const BUILD_BYTES: u64 = 8 + 1 + 20;

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
    function: StaticFunction<u8>,
}

/// Labels the k-mers of genomes, one per file: FASTA and FASTQ, plain, gzip or Zstandard; `-` is the standard input.
///
/// Other k-mers get a label with probability `2^-filter_bits`; `filter_bits` is at most 32. Takes `k`, memory, threads
/// and progress from the settings, and runs on the CPU. Memory for a time: that of counting, and then 29
/// bytes per different k-mer beside the function.
///
/// # Errors
/// [`Error::InvalidK`] for more than 32 bases; [`Error::NoInput`], [`Error::TooManyGenomes`]; [`Error::NoKmers`] if no
/// genome has any; [`Error::Index`] for too many bits, or if memory runs out; the errors of
/// [`count_files`](crate::count_files).
pub fn label_files(genomes: &[PathBuf], settings: &Settings, filter_bits: u32) -> Result<Labels, Error> {
    settings.k.within::<u64>()?;
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
    let function = label(&texts, settings, |different, labelled| {
        if different == 0 {
            return Err(Error::NoKmers { k: settings.k.get() });
        }
        let needed = BUILD_BYTES * different + 8 * builder.layout(different)?.words();
        if let Some(allowed) = settings.memory.filter(|&allowed| needed > allowed) {
            return Err(Error::OverBudget { kmers: different, needed, allowed });
        }
        let (mut keys, mut values) = (zeroed_vec::<u64>(different)?, zeroed_vec::<u8>(different)?);
        for ((kmer, genome), (key, value)) in labelled.zip(keys.iter_mut().zip(&mut values)) {
            // The number of several genomes is above all others.
            (*key, *value) = (kmer, u8::try_from(genome).unwrap_or(0));
            kmers[usize::from(*value)] += 1;
        }
        Ok(builder.build_from(&keys, &values)?)
    })?;
    let genomes = genomes.iter().map(|path| name_of(path)).collect();
    Ok(Labels { k: settings.k, genomes, kmers, function })
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

    /// Borrows the function from canonical k-mers, in 2 bits per base, A < C < G < T, to numbers of genomes from 1 on,
    /// and 0 for k-mers of several genomes.
    pub fn function(&self) -> &StaticFunction<u8> {
        &self.function
    }

    /// Returns the label of a k-mer or its reverse complement: `None` if no genome has it, except with probability
    /// [`fpr`](Labels::fpr).
    ///
    /// # Errors
    /// [`Error::NotKmer`] unless `kmer` is [`Labels::k`] letters A, C, G or T.
    pub fn get(&self, kmer: &[u8]) -> Result<Option<Label>, Error> {
        let number = self.function.get(canonical::<u64>(kmer, self.k)?).map(usize::from);
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
