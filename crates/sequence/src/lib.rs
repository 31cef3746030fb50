//! Canonical minimizers of DNA, for CPU and GPU.
//!
//! | type | what it does |
//! | --- | --- |
//! | [`Minimizers`] | finds the minimizers of sequences, as positions or as canonical k-mers |
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
//! Which k-mers are minimizers, and what letters and k-mers are as numbers: [`warpset_core::minimizer`].

#![warn(clippy::missing_errors_doc)]

mod error;
mod minimizers;
mod packed;

pub use error::Error;
pub use minimizers::{Minimizer, Minimizers};
pub use packed::Packed;
