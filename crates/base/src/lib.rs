//! What the structures of Warpset have in common on the host: keys and how they are hashed ([`key`]), what every filter
//! can do ([`filter`]), answers as bits ([`bitmap`]), for which keys of a batch an operation is meant ([`stencil`]),
//! work in parts on all threads ([`parallel`]), a radix sort ([`sort`]), memory aligned to cache lines ([`words`]),
//! saved files ([`mod@file`]), and what the processor can do ([`processor`]).
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
pub mod words;

#[cfg(target_endian = "big")]
compile_error!("saved files are little-endian, and this crate reads them in place");
