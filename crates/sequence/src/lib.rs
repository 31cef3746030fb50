//! Canonical minimizers of DNA, and filters of k-mers, for CPU and GPU.
//!
//! | type | what it does |
//! | --- | --- |
//! | [`Minimizers`] | finds the minimizers of sequences, as positions or as canonical k-mers |
//! | [`SequenceFilter`] | set of k-mers of sequences with false positives; tells which k-mers of other sequences it contains |
//!
//! ```
//! use warpset_sequence::Minimizers;
//!
//! let minimizers = Minimizers::new(5, 3)?;
//! let found = minimizers.find(b"ACGTTGCATTNGACCAGT");
//! let other = minimizers.find(b"ACTGGTCNAATGCAACGT"); // the other strand
//! assert!(found.iter().map(|m| m.kmer).eq(other.iter().rev().map(|m| m.kmer)));
//! # Ok::<(), warpset_sequence::Error>(())
//! ```
//!
//! **Cost.** Time is proportional to the number of bases. A filter takes 16 bits per k-mer by default; methods for many
//! sequences use the current rayon pool.
//!
//! **Files.** Filters have `save`, `load` and `map`, with a checksum; minimizers are plain numbers.
//!
//! **Errors.** After an [`Error`] of the host nothing has changed.
//!
//! Definition of minimizers, and codes of letters and k-mers: [`warpset_core::minimizer`].

#![warn(clippy::missing_errors_doc)]

mod error;
mod filter;
#[cfg(feature = "gpu")]
pub mod gpu;
mod minimizers;
mod packed;

#[cfg(target_endian = "big")]
compile_error!("the memory image of the filters is little-endian, and this crate reads it in place");

pub use error::Error;
#[cfg(feature = "mmap")]
pub use filter::MappedSequenceFilter;
pub use filter::{
    Builder, DEFAULT_BITS_PER_KEY, DEFAULT_K, Hits, Layout, PackedSequences, SequenceFilter, SequenceFilterView,
    Sequences, Threshold,
};
pub use minimizers::{Minimizer, Minimizers};
pub use packed::Packed;
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::FileError;
pub use warpset_base::filter::LengthMismatch;
pub use warpset_base::words::OutOfMemory;
pub use warpset_core::minimizer::{Kmer, Scheme, needed_hits};
