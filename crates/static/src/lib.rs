//! Exact sets and maps of integers that never change, for CPU and GPU.
//!
//! | type | what it answers | memory |
//! | --- | --- | --- |
//! | [`StaticSet<u64>`](StaticSet) | whether a key is in the set, and its number | 72.4 bits per key |
//! | [`StaticSet<u32>`](StaticSet) | the same | 36.2 bits per key |
//! | [`StaticMap<K, V>`](StaticMap) | the value of a key, `u32` or `u64` | 1.1 values more per key |
//!
//! No answer is wrong: a lookup compares whole keys. It reads one byte of a table that stays in a cache (1.33 bits per
//! key of 64 bits, 1 bit per key of 32 bits), and one cache line. Every value of a key is a key like any other. Sets of up
//! to 15 million keys in host memory have 9 bits per key more, with which most lookups of absent keys need no line.
//!
//! ```
//! use warpset_static::{Filter, StaticMap, StaticSet};
//!
//! let primes = StaticSet::<u64>::builder().build_from(&[2, 3, 5, 7])?;
//! assert_eq!(primes.contains_bulk(&[1, 2, 3, 4])?, [false, true, true, false]);
//!
//! let squares = StaticMap::<u32, u64>::builder().build_from(&[2, 3], &[4, 9])?;
//! assert_eq!((squares.get(3), squares.get(4)), (Some(9), None));
//! # Ok::<(), warpset_static::Error>(())
//! ```
//!
//! Construction and lookup: [`warpset_core::static_set`]. Alternatives that were considered: `docs/static.md`.
//!
//! **Files.** `save`, `load` and `map` use the words in memory, with a checksum.
//!
//! **Errors.** [`Error`] names cause and remedy.
//!
//! Methods that end in `_bulk` use the current rayon pool; run them inside `ThreadPool::install` to bound their
//! threads.

#![warn(clippy::missing_errors_doc)]

mod build;
mod builder;
mod error;
mod filter;
mod format;
#[cfg(feature = "gpu")]
pub mod gpu;
mod iter;
mod key;
mod layout;
mod lookup;
mod map;
#[cfg(feature = "mmap")]
mod mapped;
mod tags;
mod view;

#[cfg(target_endian = "big")]
compile_error!("saved sets are little-endian, and this crate reads them in place");

pub use builder::Builder;
pub use error::Error;
pub use iter::{Iter, Keys};
pub use key::{MapValue, StaticKey, Value};
pub use layout::Layout;
pub use map::{StaticMap, StaticSet};
#[cfg(feature = "mmap")]
pub use mapped::{MappedStaticMap, MappedStaticSet};
pub use view::{StaticMapView, StaticSetView};
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::FileError;
pub use warpset_base::filter::{Filter, LengthMismatch};
pub use warpset_base::key::Key;
pub use warpset_base::words::OutOfMemory;
