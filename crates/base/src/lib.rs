//! Host code that Warpset's structures share: keys and their hashes ([`key`]), the traits of filters ([`filter`]),
//! answers as bits ([`bitmap`]), selections of a batch's keys ([`stencil`]), work on all threads ([`parallel`]), a
//! radix sort ([`sort`]), memory aligned to cache lines ([`words`]), saved files ([`mod@file`]), and
//! processor features and prefetches ([`processor`]).
//!
//! Programs use this crate through the structures, which re-export the names their users need. Versions are those of
//! `warpset`, and follow its promise.
//!
//! ```
//! use warpset_base::key::{Key, Seed};
//!
//! // Integers hash by their value, whatever their type; strings by their bytes.
//! assert_eq!(Seed::new(7).hash(&5u8), Seed::new(7).hash(&5i64));
//! assert_ne!(Seed::new(7).hash("5"), Seed::new(7).hash(&5u8));
//! ```
//!
//! Errors: [`file::FileError`] for saved files, [`filter::LengthMismatch`] for slices of different lengths,
//! [`words::OutOfMemory`] for allocations. The format of saved files is on the page of [`mod@file`].

#![warn(clippy::missing_errors_doc)]

pub mod bitmap;
mod debug;
pub mod file;
pub mod filter;
pub mod key;
mod length;
pub mod number;
pub mod parallel;
pub mod processor;
pub mod sort;
pub mod stencil;
#[doc(hidden)]
pub mod testing;
mod vectors;
pub mod words;

#[cfg(target_endian = "big")]
compile_error!("saved files are little-endian, and this crate reads them in place");
