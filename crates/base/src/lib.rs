//! What the filters of Warpset have in common on the host: keys and how they are hashed ([`key`]), memory aligned to
//! cache lines ([`words`]), and saved files ([`mod@file`]).
//!
//! Users meet this crate through the filters, which re-export [`key::Key`], [`key::Hashed`], [`key::Bytes`] and
//! [`file::FileError`].

pub mod file;
pub mod key;
pub mod words;

#[cfg(target_endian = "big")]
compile_error!("saved files are little-endian, and this crate reads them in place");
