//! Warpset for C. The header `include/warpset.h` is the documentation of the functions; cbindgen generates it from
//! these sources, and a test compares both.
//!
//! A structure of any type is an [`object::Object`] behind a handle; `object` defines the table of operations, and each
//! other module implements it for the types of one crate. The functions of C are in the modules named after their first
//! word.
//!
//! # Safety
//! One contract for all functions, which the header begins with: pointers are NULL or valid for the items that the
//! function describes, handles are those of this library and not freed, and nothing else writes to arguments during a
//! call. Each function checks pointers for NULL and alignment, handles for their type, lengths for the size of memory,
//! and catches panics.

#![allow(clippy::missing_safety_doc, reason = "one contract for all functions, above")]

mod arrow;
mod bloom;
mod building;
mod capabilities;
mod device;
mod elements;
mod error;
mod filter;
mod function;
mod fuse;
mod handle;
mod keys;
mod lsm;
mod map;
mod mphf;
mod object;
mod opening;
mod options;
mod quotient;
mod range;
mod ranges;
mod rows;
mod sequence;
mod sequences;
mod settled;
mod static_sets;
mod structure;

use std::ffi::c_char;

use crate::error::{Failure, guard, warpset_status};

/// Version of the binary interface of this header. Functions and fields are only added within one version.
pub const WARPSET_ABI_VERSION: u32 = 1;

/// Returns the version of the binary interface of the library, to be compared with `WARPSET_ABI_VERSION`. No status.
#[unsafe(no_mangle)]
pub extern "C" fn warpset_abi_version() -> u32 {
    WARPSET_ABI_VERSION
}

/// Returns the version of the library, such as "0.1.0". No status.
#[unsafe(no_mangle)]
pub extern "C" fn warpset_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Sets the number of threads for large batches and builds, before the first of them. Default: those of the machine.
/// Batches of a few thousand keys run on the caller's thread.
#[unsafe(no_mangle)]
pub extern "C" fn warpset_set_threads(threads: usize) -> warpset_status {
    guard(|| {
        let threads = warpset_base::parallel::threads_for(threads, u64::MAX);
        let name = |number| format!("warpset-{number}");
        let built = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build_global();
        built.map_err(|_| Failure::value("the threads have been started already: set their number first"))
    })
}

#[cfg(test)]
mod tests;
