//! What the structures of Warpset have in common on the host: keys and how they are hashed ([`key`]), memory aligned to
//! cache lines ([`words`]), saved files ([`mod@file`]), and what the processor can do.
//!
//! Users meet this crate through the filters, which re-export [`key::Key`], [`key::Hashed`], [`key::Bytes`] and
//! [`file::FileError`].

pub mod file;
pub mod key;
#[cfg(target_arch = "x86_64")]
pub mod processor;
pub mod words;

#[cfg(target_endian = "big")]
compile_error!("saved files are little-endian, and this crate reads them in place");
