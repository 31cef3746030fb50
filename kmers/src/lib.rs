//! Exact counts of canonical k-mers in FASTA and FASTQ: the library behind the program `kmers`.
//!
//! | type | use it to |
//! | --- | --- |
//! | [`Settings`], [`count_files`] | count k-mers; the result is a [`Table`] |
//! | [`Indexing`] | build an [`Index`] of minimizers or of all k-mers |
//! | [`label_files`] | build [`Labels`], which know the genome of a k-mer |
//! | [`Screening`] | separate reads that match a table, an index or labels from others; find the genomes of reads |
//!
//! ```
//! use warpset_kmers::{Settings, Table, count_bytes};
//!
//! let fasta = b">a\nACGTTGCAACGT\n";
//! let table: Table = count_bytes(fasta, &Settings::new(4)?)?;
//! assert_eq!(table.count(b"ACGT")?, 2); // its own reverse complement
//! assert_eq!(table.count(b"TTGC")?, table.count(b"GCAA")?); // the same k-mer on the other strand
//! # Ok::<(), warpset_kmers::Error>(())
//! ```
//!
//! A *canonical* k-mer is the smaller of `k` bases and their reverse complement, each base in 2 bits, A < C < G < T.
//! K-mers of up to 32 bases are numbers of 64 bits, and longer ones, up to 63, of 128 ([`Word`]).
//!
//! Counts are kept in a [`Table`]: an exact quotient filter with counters, or above 32 bases an ascending list.
//!
//! Tables and indexes have `save` and `load`, indexes also `map`. [`Error`] names the file, the cause and the remedy.
//! Use of the program, its costs and its limits: `docs/kmers.md`.

#![warn(clippy::missing_errors_doc)]

mod chunks;
mod count;
mod error;
mod feed;
mod filling;
pub mod gpu;
mod index;
mod labels;
mod long;
mod odd;
mod packing;
mod parts;
mod pieces;
mod progress;
mod reads;
mod recognise;
mod roll;
mod screen;
mod settings;
mod super_kmers;
mod table;
mod wide;
mod word;

pub use count::{count_bytes, count_files, count_sequences};
pub use error::Error;
pub use index::{Index, IndexKind, Indexing};
pub use labels::{Label, Labels, label_files};
pub use odd::OddLetters;
pub use packing::Packing;
pub use progress::Progress;
pub use recognise::checksum;
pub use roll::{K, Roll, canonical, letters};
pub use screen::{Pairing, Rule, Screened, Screening};
pub use settings::{BackendChoice, Settings};
pub use table::Table;
pub use word::Word;
