//! Arithmetic shared by the CPU backend, the emulator and the GPU kernels, written once.
//!
//! Nothing here allocates, starts threads, or touches memory that it was not handed: a rayon loop and a kernel both
//! call these functions on keys, hashes and words. Everything builds for `nvptx64-nvidia-cuda` too.
//!
//! Users meet this crate through the structures, which re-export what they need of it. Versions are those of `warpset`,
//! and follow its promise.
//!
//! - [`bits`]: ranks, selection, packed fields, walks over words.
//! - [`hash`]: hashes of integers and byte strings.
//! - [`bloom`]: addressing and bit patterns of the Bloom filters.
//! - [`lsm`]: capacities of levels and bits of their filters.
//! - [`minimizer`]: bases, k-mers and canonical minimizers of DNA.
//! - [`scan`]: operators of scans, associative and not.
//! - [`quotient`]: fingerprints, slots and walks of the quotient filters.
//! - [`recsplit`]: trial hashes and splitting trees of RecSplit.
//! - [`consensus`]: seeds and trees of Consensus.
//! - [`sequence_filter`]: shapes, hashes and bits of sequence filters.
//! - [`static_set`]: shards, groups and buckets of exact static sets.
#![no_std]
#![forbid(unsafe_code)]

pub mod bits;
pub mod bloom;
pub mod consensus;
pub mod fuse;
pub mod hash;
pub mod lsm;
pub mod minimizer;
pub mod quotient;
pub mod recsplit;
pub mod scan;
pub mod sequence_filter;
pub mod static_set;
