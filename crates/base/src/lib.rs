//! Host code that Warpset's structures share: keys and their hashes ([`key`]), the traits of filters ([`filter`]),
//! answers as bits ([`bitmap`]), selections of a batch's keys ([`stencil`]), work on all threads ([`parallel`]), a
//! radix sort ([`sort`]), memory aligned to cache lines ([`words`]), saved files ([`mod@file`]), and detection of
//! processor features ([`processor`]).
//!
//! Users meet this crate through the structures, which re-export what they need of it. Versions are those of `warpset`,
//! and follow its promise.

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
pub mod words;

#[cfg(target_endian = "big")]
compile_error!("saved files are little-endian, and this crate reads them in place");
