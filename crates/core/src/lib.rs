//! Arithmetic shared by the CPU backend, the emulator and the GPU kernels, written once.
//!
//! Nothing here allocates, starts threads, or touches memory that it was not handed: a rayon loop and a kernel both call
//! these functions on keys, hashes and words. Everything builds for `nvptx64-nvidia-cuda` too.
//!
//! - [`hash`]: hashes of integers and byte strings.
//! - [`bloom`]: addressing and bit patterns of the Bloom filters.
//! - [`scan`]: operators of scans, associative and not.
//! - [`quotient`]: fingerprints, slots and walks of the quotient filters.
//! - [`recsplit`]: trial hashes, splitting trees and bit vectors of RecSplit.
#![no_std]
#![forbid(unsafe_code)]

pub mod bloom;
pub mod hash;
pub mod quotient;
pub mod recsplit;
pub mod scan;
