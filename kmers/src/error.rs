//! Everything that can go wrong, with its cause and its remedy.

use std::io;
use std::path::PathBuf;

/// Why k-mers were not counted, screened, merged or listed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A k-mer has 1 to 32 bases, 2 bits each.
    #[error("k is {k}: choose 1 to 32 bases")]
    InvalidK {
        /// What was asked for.
        k: u32,
    },
    /// A file could not be opened or read, or its compressed stream is damaged.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system or the decompressor said.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is neither FASTA nor FASTQ, or breaks off within a record.
    #[error("{} is not sound FASTA or FASTQ, plain, gzip or Zstandard: {reason}; mend the file or fetch it again", path.display())]
    NotSequence {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        reason: String,
    },
    /// A file is of another kind than the one that is needed.
    #[error("{} is {found}; {needed}", path.display())]
    OtherKind {
        /// The file.
        path: PathBuf,
        /// Kind of file that it is.
        found: &'static str,
        /// Kind that is needed, and its source.
        needed: String,
    },
    /// No file was named.
    #[error("no input: name FASTA or FASTQ files, or `-` for the standard input")]
    NoInput,
    /// The input has no k-mer at all.
    #[error("the input has no {k} bases A, C, G or T in a row: choose a smaller k, or check the input")]
    NoKmers {
        /// Bases per k-mer.
        k: u32,
    },
    /// The budget does not hold even what counting begins with.
    #[error("{asked} bytes of memory are too few to begin with on {threads} threads: allow {least}, or fewer threads")]
    BudgetTooSmall {
        /// The budget.
        asked: u64,
        /// The least that will do.
        least: u64,
        /// The threads that each need some.
        threads: usize,
    },
    /// The result does not fit into the budget.
    #[error(
        "{kmers} different k-mers need {needed} bytes of memory, {allowed} are allowed: allow more, or count fewer files at a \
         time"
    )]
    OverBudget {
        /// Different k-mers so far.
        kmers: u64,
        /// Bytes that they take, with the table where it was to be made.
        needed: u64,
        /// The budget.
        allowed: u64,
    },
    /// No table has room for that many different k-mers of so few bases.
    #[error(
        "{kmers} different {k}-mers are more than a table holds: choose k up to 16 or above {k}, or a higher --min-count"
    )]
    TooManyKmers {
        /// Different k-mers.
        kmers: u64,
        /// Bases per k-mer.
        k: u32,
    },
    /// A file or a filter is sound, but no table of k-mers.
    #[error("{} is no table of k-mers: pass what `kmers count` or `kmers merge` wrote", path.display())]
    NotTable {
        /// The file; "the filter" where there is none.
        path: PathBuf,
    },
    /// A table could not be read or written; the error names its file.
    #[error(transparent)]
    Table(Box<warpset_quotient::Error>),
    /// Tables of different k do not go together.
    #[error("one table has {left}-mers, the other {right}-mers: count both with the same k")]
    DifferentK {
        /// Bases per k-mer of the first.
        left: u32,
        /// Bases per k-mer of the other.
        right: u32,
    },
    /// An index has windows of an odd number of k-mers, of an odd number of bases each.
    #[error(
        "windows of {w} {k}-mers: choose an odd k from 1 to 31 and an odd w from 1 to 63, so that both strands have the same \
         minimizers"
    )]
    InvalidWindow {
        /// Bases per k-mer.
        k: u32,
        /// K-mers per window.
        w: u32,
    },
    /// A file is no index, or a damaged one.
    #[error("{} cannot be used as an index: {reason}", path.display())]
    NotIndex {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Indexes of different windows do not go together.
    #[error("{} has windows of {found_w} {found_k}-mers, not of {w} {k}-mers: index its sequences with the same -k and -w", path.display())]
    DifferentWindow {
        /// The file.
        path: PathBuf,
        /// Bases per k-mer of the file.
        found_k: u32,
        /// K-mers per window of the file.
        found_w: u32,
        /// Bases per k-mer of the others, or as asked for.
        k: u32,
        /// K-mers per window of the others.
        w: u32,
    },
    /// A filter does not have its minimizers any more.
    #[error("{} is a filter, which cannot be taken apart: pass an exact index, or the sequences", path.display())]
    OnlyFilter {
        /// The file.
        path: PathBuf,
    },
    /// A sequence filter is made of sequences, and leaves out those of others, or of tables.
    #[error("{} has no k-mers that a sequence filter can take: pass its sequences", path.display())]
    NotKmers {
        /// The file.
        path: PathBuf,
    },
    /// Deacon reads minimizers only.
    #[error("a sequence filter holds all k-mers, and Deacon reads minimizers: make an index of another kind for it")]
    NotForDeacon,
    /// An index could not be built, read or written; the error names its file where there is one.
    #[error(transparent)]
    Index(Box<dyn std::error::Error + Send + Sync>),
    /// No read matches by such a rule, or all do.
    #[error("{hits} hits and a share of {share}: choose at least one hit, and a share from 0 to 1")]
    InvalidRule {
        /// The least number of hits.
        hits: u64,
        /// The least share.
        share: f64,
    },
    /// Two files of mates do not have the same number of reads.
    #[error("{} ends after {reads} reads, and {} goes on: fetch both files of mates again", path.display(), mates.display())]
    Unpaired {
        /// The shorter file.
        path: PathBuf,
        /// The file of their mates.
        mates: PathBuf,
        /// Its reads.
        reads: u64,
    },
    /// A file of interleaved mates has an odd number of reads.
    #[error("{} has {reads} reads, an odd number: the last one has no mate; fetch the file again, or screen single reads", path.display())]
    OddReads {
        /// The file.
        path: PathBuf,
        /// Its reads.
        reads: u64,
    },
    /// Two reads of a pair have names of different reads.
    #[error(
        "pair {pair} is {name:?} in {} and {other:?} in {}, which are no mates: fetch the files again, or pass --any-mates if \
         they are", path.display(), mates.display()
    )]
    OtherMate {
        /// The file of the first read.
        path: PathBuf,
        /// The file of the second read.
        mates: PathBuf,
        /// Number of the pair, from 1 on.
        pair: u64,
        /// Name of the first read.
        name: String,
        /// Name of the second read.
        other: String,
    },
    /// Files of mates are named in pairs.
    #[error("{files} files cannot be read in pairs: name the two files of mates one after the other")]
    OddFiles {
        /// Files that were named.
        files: usize,
    },
    /// Mates are written apart only if they are read in pairs.
    #[error("{} is for second mates, and reads are single ones: pass pairs, or leave it out", path.display())]
    NoMates {
        /// The file.
        path: PathBuf,
    },
    /// A k-mer was asked for that is none of the table's.
    #[error("{kmer:?} is no {k}-mer: pass {k} letters A, C, G or T")]
    NotKmer {
        /// What was asked for.
        kmer: String,
        /// Bases per k-mer.
        k: u32,
    },
    /// The [progress callback](crate::Progress::calling) stopped it.
    #[error("the progress callback stopped the reading after {bytes} bytes: let it go on to get an answer")]
    Interrupted {
        /// Bytes that had been read.
        bytes: u64,
    },
    /// A file would be read and written at the same time, or written twice.
    #[error(transparent)]
    SameFile(#[from] warpset_base::file::SameFile),
    /// A name of an output ends as those of files that are packed in a way that is not written.
    #[error("{} would not be what its name says: {written}; name a file with another ending than .{ending}", path.display())]
    WrongEnding {
        /// The file.
        path: PathBuf,
        /// The end of its name.
        ending: String,
        /// Forms that can be written.
        written: &'static str,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads: ask for fewer")]
    Threads {
        /// Threads asked for.
        threads: usize,
    },
    /// An index does not fit into the memory of a device.
    #[error(
        "an index of {bytes} bytes, where the device has {free} free: make a smaller one with `--kind fuse16` or `fuse32`, or \
         screen with `--backend cpu`"
    )]
    IndexTooLarge {
        /// Bytes of the index.
        bytes: u64,
        /// Bytes of device memory that are free.
        free: u64,
    },
    /// Tables of k-mers are looked up on the CPU.
    #[error("tables of k-mers are screened by on the CPU: pass `--backend cpu`, or make an index with `kmers index`")]
    TableOnDevice,
    /// Reads could not be decided on a device.
    #[error(transparent)]
    Sequence(Box<warpset_sequence::Error>),
    /// The device could not be opened, or refused an allocation, a copy or a launch.
    #[error(transparent)]
    Device(Box<warpset_gpu::GpuError>),
    /// Work on the device could not be queued.
    #[error(transparent)]
    Primitives(Box<warpset_primitives::Error>),
    /// The table could not be built, most likely for want of memory.
    #[error(transparent)]
    Filter(Box<warpset_quotient::Error>),
}

impl Error {
    /// Whether there is no device, or not enough memory on it, so that the CPU is the answer.
    pub(crate) fn asks_for_cpu(&self) -> bool {
        let why = match self {
            Error::IndexTooLarge { .. } => return true,
            Error::Device(why) => why,
            Error::Primitives(error) => match &**error {
                warpset_primitives::Error::Gpu(why) => why,
                _ => return false,
            },
            Error::Filter(error) => match &**error {
                warpset_quotient::Error::Gpu(why) => why,
                _ => return false,
            },
            _ => return false,
        };
        why.is_unavailable() || why.is_out_of_memory()
    }
}

impl Error {
    /// An error of what an index is made of.
    pub(crate) fn of_index(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Index(error.into())
    }
}

impl From<warpset_base::words::OutOfMemory> for Error {
    fn from(error: warpset_base::words::OutOfMemory) -> Error {
        Error::of_index(error)
    }
}

// In boxes, so that results stay small.
macro_rules! from {
    ($($source:ty => $variant:ident;)*) => {$(
        impl From<$source> for Error {
            fn from(source: $source) -> Self {
                Error::$variant(Box::new(source))
            }
        }
    )*};
}
impl From<warpset_sequence::Error> for Error {
    fn from(error: warpset_sequence::Error) -> Error {
        match error {
            warpset_sequence::Error::Gpu(error) => error.into(),
            other => Error::Sequence(Box::new(other)),
        }
    }
}

impl From<warpset_static::Error> for Error {
    fn from(error: warpset_static::Error) -> Error {
        match error {
            warpset_static::Error::Gpu(error) => error.into(),
            other => Error::Index(Box::new(other)),
        }
    }
}

impl From<warpset_fuse::Error> for Error {
    fn from(error: warpset_fuse::Error) -> Error {
        match error {
            warpset_fuse::Error::Gpu(error) => error.into(),
            other => Error::Index(Box::new(other)),
        }
    }
}

from! {
    warpset_gpu::GpuError => Device;
    warpset_primitives::Error => Primitives;
    warpset_quotient::Error => Filter;
}
