//! Arithmetic shared by the CPU backend, the emulator and the GPU kernels, written once.
//!
//! No function allocates, starts threads, or accesses memory other than its arguments: a rayon loop and a kernel both
//! call these functions on keys, hashes and words. The crate builds for `nvptx64-nvidia-cuda` too. Functions are total
//! or state their condition, so the crate has no error type; it writes no files.
//!
//! Each structure's modules have a feature, so that a program compiles those of its structures.
//!
//! Programs use this crate through the structures, which re-export the names their users need. Versions are those of
//! `warpset`, and follow its promise.
//!
//! ```
//! use warpset_core::hash::{mix, mix_spread, spread_seed};
//!
//! // The host and a kernel compute the same hash; the kernel takes the prepared seed.
//! assert_eq!(mix(42, 7), mix_spread(42, spread_seed(7)));
//! ```
//!
//! - [`bits`]: ranks, selection, packed fields, walks over words.
//! - [`hash`]: hashes of integers and byte strings.
//! - [`bloom`]: addressing and bit patterns of the Bloom filters.
//! - [`lsm`]: capacities of levels and bits of their filters.
//! - [`minimizer`]: bases, k-mers and canonical minimizers of DNA.
//! - [`scan`]: operators of scans, associative and not.
//! - [`quotient`]: fingerprints, slots and walks of the quotient filters.
//! - [`range`]: codes of range filters, and lookups in their list.
//! - [`recsplit`]: trial hashes and splitting trees of RecSplit.
//! - [`consensus`]: seeds and trees of Consensus.
//! - [`placement`]: segments, seeds and slots of placement.
//! - [`sequence_filter`]: shapes, hashes and bits of sequence filters.
//! - [`static_set`]: shards, groups and buckets of exact static sets.
#![no_std]
#![forbid(unsafe_code)]

pub mod bits;
#[cfg(feature = "bloom")]
pub mod bloom;
#[cfg(feature = "recsplit")]
pub mod consensus;
#[cfg(feature = "fuse")]
pub mod fuse;
pub mod hash;
#[cfg(feature = "lsm")]
pub mod lsm;
#[cfg(feature = "sequence")]
pub mod minimizer;
#[cfg(feature = "recsplit")]
pub mod placement;
#[cfg(feature = "quotient")]
pub mod quotient;
#[cfg(feature = "range")]
pub mod range;
pub mod recsplit;
pub mod scan;
#[cfg(feature = "sequence")]
pub mod sequence_filter;
#[cfg(feature = "static")]
pub mod static_set;
