//! Errors, with causes and remedies.

use std::io;
use std::path::PathBuf;

use warpset_base::number::count;

/// Error of counting, indexing, screening, merging or listing k-mers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Number of bases per k-mer outside of 1 to `most`.
    #[error("k is {k}: choose 1 to {most} bases")]
    InvalidK {
        /// Requested number.
        k: u32,
        /// Largest number here: 63, and 32 for k-mers in numbers of 64 bits.
        most: u32,
    },
    /// Table of k-mers of more than 32 bases requested on a device.
    #[error("tables of {k}-mers, which have more than 32 bases, are on the CPU only: pass no device")]
    LongOnDevice {
        /// Bases per k-mer.
        k: u32,
    },
    /// File that could not be opened or read, or damaged compressed stream.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// File.
        path: PathBuf,
        /// Error of the system or the decompressor.
        source: io::Error,
    },
    /// File that could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// File.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// File that is neither FASTA nor FASTQ, or ends within a record.
    #[error("{} is not sound FASTA or FASTQ, plain, gzip or Zstandard: {reason}; mend the file or fetch it again", path.display())]
    NotSequence {
        /// File.
        path: PathBuf,
        /// Fault, and its place.
        reason: String,
    },
    /// File of another kind than the one that is needed.
    #[error("{} is {found}; {needed}", path.display())]
    OtherKind {
        /// File.
        path: PathBuf,
        /// Kind of the file.
        found: &'static str,
        /// Needed kind, and a way to get it.
        needed: String,
    },
    /// Call without files.
    #[error("no input: name FASTA or FASTQ files, or `-` for the standard input")]
    NoInput,
    /// Input without any k-mer.
    #[error("the input has no {k} bases A, C, G or T in a row: choose a smaller k, or check the input")]
    NoKmers {
        /// Bases per k-mer.
        k: u32,
    },
    /// Input whose minimizers or k-mers are all left out.
    #[error("the input has no {what} but those that are left out: leave out fewer files, or check the input")]
    AllLeftOut {
        /// "minimizers" or "k-mers".
        what: &'static str,
    },
    /// Budget that is too small to begin with.
    #[error(
        "{asked} bytes of memory are too few to begin with on {}: allow {least}, or fewer threads",
        count(*threads as u64, "thread")
    )]
    BudgetTooSmall {
        /// Budget.
        asked: u64,
        /// Least budget for this number of threads.
        least: u64,
        /// Threads, each of which needs memory.
        threads: usize,
    },
    /// Result that does not fit into the budget.
    #[error(
        "{kmers} different k-mers need {needed} bytes of memory, {allowed} are allowed: allow more, or count fewer files at a \
         time"
    )]
    OverBudget {
        /// Different k-mers so far.
        kmers: u64,
        /// Bytes that they take, with the table if it was to be built.
        needed: u64,
        /// Budget.
        allowed: u64,
    },
    /// More different k-mers of so few bases than any table can hold.
    #[error(
        "{kmers} different {k}-mers are more than a table holds: choose k up to 16 or above {k}, or a higher --min-count"
    )]
    TooManyKmers {
        /// Different k-mers.
        kmers: u64,
        /// Bases per k-mer.
        k: u32,
    },
    /// Sound file or filter that is no table of k-mers.
    #[error("{} is no table of k-mers: pass what `kmers count` or `kmers merge` wrote", path.display())]
    NotTable {
        /// File, or "the filter".
        path: PathBuf,
    },
    /// Table that could not be read or written; the error names its file.
    #[error(transparent)]
    Table(Box<warpset_quotient::Error>),
    /// Tables of different k.
    #[error("one table has {left}-mers, the other {right}-mers: count both with the same k")]
    DifferentK {
        /// Bases per k-mer of the first.
        left: u32,
        /// Bases per k-mer of the other.
        right: u32,
    },
    /// Windows with an even number of k-mers, or k-mers with an even number of bases.
    #[error(
        "windows of {w} {k}-mers: choose an odd k from 1 to 63 and an odd w from 1 to 63, so that both strands have the same \
         minimizers"
    )]
    InvalidWindow {
        /// Bases per k-mer.
        k: u32,
        /// K-mers per window.
        w: u32,
    },
    /// File that is no index, or a damaged one.
    #[error("{} cannot be used as an index: {reason}", path.display())]
    NotIndex {
        /// File.
        path: PathBuf,
        /// Fault.
        reason: String,
    },
    /// File that is no set of labels, or a damaged one.
    #[error("{} cannot be used as labels: {reason}", path.display())]
    NotLabels {
        /// File.
        path: PathBuf,
        /// Fault.
        reason: String,
    },
    /// More genomes than a label can tell apart.
    #[error(
        "{genomes} genomes, where labels tell up to 255 apart: join those of one kind in one file, or label fewer at a time"
    )]
    TooManyGenomes {
        /// Number of genomes.
        genomes: usize,
    },
    /// Indexes of different windows.
    #[error("{} has windows of {found_w} {found_k}-mers, not of {w} {k}-mers: index its sequences with the same -k and -w", path.display())]
    DifferentWindow {
        /// File.
        path: PathBuf,
        /// Bases per k-mer of the file.
        found_k: u32,
        /// K-mers per window of the file.
        found_w: u32,
        /// Bases per k-mer of the other indexes, or as requested.
        k: u32,
        /// K-mers per window of the other indexes.
        w: u32,
    },
    /// Filter given where its minimizers are needed, which it no longer has.
    #[error("{} is a filter, which cannot be taken apart: pass an exact index, or the sequences", path.display())]
    OnlyFilter {
        /// File.
        path: PathBuf,
    },
    /// File without sequences for a sequence filter, which is built from sequences only, and leaves out sequences or
    /// tables.
    #[error("{} has no k-mers that a sequence filter can take: pass its sequences", path.display())]
    NotKmers {
        /// File.
        path: PathBuf,
    },
    /// Index for Deacon, which reads minimizers only, requested of a sequence filter.
    #[error("a sequence filter holds all k-mers, and Deacon reads minimizers: make an index of another kind for it")]
    NotForDeacon,
    /// Filter of k-mers of more than 32 bases requested for Deacon, which has none.
    #[error("Deacon has filters of k up to 32, not of {k}: make an exact index for it")]
    LongFilterForDeacon {
        /// Bases per k-mer.
        k: u32,
    },
    /// Windows that Deacon refuses.
    #[error("Deacon reads indexes of k up to 61 and k + w up to 96, not of k = {k} and w = {w}: choose smaller ones")]
    WindowForDeacon {
        /// Bases per k-mer.
        k: u32,
        /// K-mers per window.
        w: u32,
    },
    /// Index that could not be built, read or written; the error names its file if there is one.
    #[error(transparent)]
    Index(Box<dyn std::error::Error + Send + Sync>),
    /// Rule by which no read or every read would match.
    #[error("{hits} hits and a share of {share}: choose at least one hit, and a share from 0 to 1")]
    InvalidRule {
        /// Least number of hits.
        hits: u64,
        /// Least share.
        share: f64,
    },
    /// Files of mates with different numbers of reads.
    #[error("{} ends after {reads} reads, and {} goes on: fetch both files of mates again", path.display(), mates.display())]
    Unpaired {
        /// Shorter file.
        path: PathBuf,
        /// File of the mates.
        mates: PathBuf,
        /// Reads of the shorter file.
        reads: u64,
    },
    /// File of interleaved mates with an odd number of reads.
    #[error("{} has {reads} reads, an odd number: the last one has no mate; fetch the file again, or screen single reads", path.display())]
    OddReads {
        /// File.
        path: PathBuf,
        /// Number of reads.
        reads: u64,
    },
    /// Pair of reads with names of different reads.
    #[error(
        "pair {pair} is {name:?} in {} and {other:?} in {}, which are no mates: fetch the files again, or pass --any-mates if \
         they are", path.display(), mates.display()
    )]
    OtherMate {
        /// File of the first read.
        path: PathBuf,
        /// File of the second read.
        mates: PathBuf,
        /// Number of the pair, from 1 on.
        pair: u64,
        /// Name of the first read.
        name: String,
        /// Name of the second read.
        other: String,
    },
    /// Odd number of files where mates are in pairs of files.
    #[error("{files} files cannot be read in pairs: name the two files of mates one after the other")]
    OddFiles {
        /// Number of files.
        files: usize,
    },
    /// File for second mates, but reads are single.
    #[error("{} is for second mates, and reads are single ones: pass pairs, or leave it out", path.display())]
    NoMates {
        /// File.
        path: PathBuf,
    },
    /// Query that is not one k-mer of this `k`.
    #[error("{kmer:?} is no {k}-mer: pass {k} letters A, C, G or T")]
    NotKmer {
        /// Letters of the query.
        kmer: String,
        /// Bases per k-mer.
        k: u32,
    },
    /// Stop by the [progress callback](crate::Progress::calling).
    #[error("the progress callback stopped the reading after {bytes} bytes: let it go on to get an answer")]
    Interrupted {
        /// Bytes read so far.
        bytes: u64,
    },
    /// File that would be read and written at the same time, or written twice.
    #[error(transparent)]
    SameFile(#[from] warpset_base::file::SameFile),
    /// Output with an ending of a form that is not written.
    #[error("{} would not be what its name says: {written}; name a file with another ending than .{ending}", path.display())]
    WrongEnding {
        /// File.
        path: PathBuf,
        /// Ending of its name.
        ending: String,
        /// Forms that can be written.
        written: &'static str,
    },
    /// Threads that could not be started.
    #[error("cannot start {threads} threads: ask for fewer")]
    Threads {
        /// Requested threads.
        threads: usize,
    },
    /// Index that does not fit into the memory of a device.
    #[error(
        "an index of {bytes} bytes, where the device has {free} free: make a smaller one with `--kind fuse16` or `fuse32`, or \
         screen with `--backend cpu`"
    )]
    IndexTooLarge {
        /// Bytes of the index.
        bytes: u64,
        /// Free bytes of device memory.
        free: u64,
    },
    /// Table or labels with a device: their k-mers are looked up on the CPU.
    #[error("tables and labels are looked up on the CPU: pass `--backend cpu`, or make an index with `kmers index`")]
    TableOnDevice,
    /// Reads that could not be decided on a device.
    #[error(transparent)]
    Sequence(Box<warpset_sequence::Error>),
    /// Device that could not be opened, or refusal of an allocation, a copy or a launch.
    #[error(transparent)]
    Device(Box<warpset_gpu::GpuError>),
    /// Work that could not be queued on the device.
    #[error(transparent)]
    Primitives(Box<warpset_primitives::Error>),
    /// Table that could not be built, in most cases because memory ran out.
    #[error(transparent)]
    Filter(Box<warpset_quotient::Error>),
}

impl Error {
    /// Whether there is no device, or not enough memory on it, so that the CPU should be used.
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
    /// Wraps an error of the parts of an index.
    pub(crate) fn of_index(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Index(error.into())
    }
}

impl Error {
    /// Wraps an error of memory for a table.
    pub(crate) fn of_table(error: warpset_base::words::OutOfMemory) -> Error {
        Error::Filter(Box::new(error.into()))
    }
}

impl From<warpset_base::words::OutOfMemory> for Error {
    fn from(error: warpset_base::words::OutOfMemory) -> Error {
        Error::of_index(error)
    }
}

// Boxed, so that results stay small.
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
