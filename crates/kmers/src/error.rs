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
    /// A file could not be opened or read, or its gzip stream is damaged.
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
    #[error("{} is not sound FASTA or FASTQ, plain or gzip: {reason}; mend the file or fetch it again", path.display())]
    NotSequence {
        /// The file.
        path: PathBuf,
        /// What the parser said.
        reason: String,
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
    #[error("{} is named twice: name another file for the output", path.display())]
    SameFile {
        /// The file.
        path: PathBuf,
    },
    /// The threads could not be started.
    #[error("cannot start {threads} threads: ask for fewer")]
    Threads {
        /// Threads asked for.
        threads: usize,
    },
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
from! {
    warpset_gpu::GpuError => Device;
    warpset_primitives::Error => Primitives;
    warpset_quotient::Error => Filter;
}
