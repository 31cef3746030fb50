//! Quotient filters: approximate sets and multisets that can also forget, merge and resize.
//!
//! ```
//! use warpset_quotient::{Duplicates, StandardQuotientFilter};
//!
//! let builder = StandardQuotientFilter::builder(1_000_000).fpr(0.01).duplicates(Duplicates::Kept);
//! let mut filter = builder.build()?;
//! let keys: Vec<u64> = (0..1_000_000).collect();
//! filter.insert_bulk(&keys)?;
//! assert_eq!(filter.count_contained(&keys), keys.len());
//!
//! filter.remove_bulk(&keys[..500_000]);
//! assert_eq!(filter.count_contained(&keys[500_000..]), 500_000);
//! # Ok::<(), warpset_quotient::Error>(())
//! ```
//!
//! A filter stores a *fingerprint* of every key, the high bits of its hash, without loss: a false positive is a key whose
//! fingerprint equals that of another. So a filter can list its fingerprints, be merged with others, and grow or shrink,
//! and it does all of that without the keys.
//!
//! Bulk methods use the current rayon pool; run them inside `ThreadPool::install` to bound their threads.

mod builder;
mod error;
mod fpr;
mod layout;
pub mod standard;

#[cfg(target_endian = "big")]
compile_error!("the memory image of the filters is little-endian, and this crate reads it in place");

pub use builder::{Builder, DEFAULT_FPR, DEFAULT_MAX_LOAD};
pub use error::Error;
pub use layout::{Duplicates, Layout};
pub use standard::{BuildMethod, StandardQuotientFilter, View};
pub use warpset_base::file::{FORMAT_VERSION, FileError, HEADER_BYTES};
use warpset_base::key;
pub use warpset_base::key::{Bytes, Hashed, Key};
pub use warpset_base::words::OutOfMemory;

/// Filters in device memory.
pub mod gpu {
    pub use crate::standard::gpu::{DeviceKey, LookupMethod, StandardQuotientFilter, UpdateMethod};
}
pub use warpset_core::quotient::slots::Container;

type Words = warpset_base::words::Words<u64>;
