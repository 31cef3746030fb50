//! Ordered dictionaries that take updates in batches, for CPU and GPU.
//!
//! | type | an update of `b` elements | a lookup | for |
//! | --- | --- | --- | --- |
//! | [`Lsm`] | sorts the batch, and merges it with the levels that it fills up: O(log(n / b)) per element | in each level until one has the key | many updates |
//! | [`SortedArray`] | sorts the batch, and merges it with everything: O(n / b) per element | in one array | few updates |
//!
//! Both hold keys `u32` or `u64`, in their order, with values `u32`, `u64` or none (`()`). The log-structured merge tree is
//! that of Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU", IPDPS
//! 2018; what is different, and why, is in `docs/lsm.md`.
//!
//! ```
//! use warpset_lsm::Lsm;
//!
//! let mut prices = Lsm::<u32, u64>::builder().build()?;
//! prices.insert_bulk(&[30, 10, 20], &[300, 100, 200])?;
//! prices.remove_bulk(&[20])?;
//! prices.insert(10, 111)?;
//!
//! assert_eq!(prices.get_bulk(&[10, 20, 30]), [Some(111), None, Some(300)]);
//! assert_eq!(prices.count_range(..=10), 1);
//! assert_eq!(prices.iter().collect::<Vec<_>>(), [(10, 111), (30, 300)]);
//! assert_eq!(prices.successor(10), Some((30, 300)));
//! # Ok::<(), warpset_lsm::Error>(())
//! ```
//!
//! Methods that end in `_bulk` use the current rayon pool; run them inside `ThreadPool::install` to bound their threads.

mod batch;
mod builder;
pub mod cpu;
mod derived;
mod dictionary;
mod element;
mod error;
mod fences;
pub mod form;
mod format;
pub mod gpu;
mod invariants;
mod level;
mod merge;
pub mod published;
mod query;
mod run;
mod view;

#[cfg(target_endian = "big")]
compile_error!("saved dictionaries are little-endian, and this crate reads them in place");

pub use builder::{Builder, CleanupPolicy, DEFAULT_BATCH_SIZE, SortedArrayBuilder};
pub use cpu::{Lsm, Snapshot, SortedArray};
pub use dictionary::Dictionary;
pub use element::{OrderedKey, Value, units};
pub use error::Error;
pub use level::LevelIndex;
pub use query::range::Ranges;
pub use query::scan::Range;
pub use view::View;
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::{FORMAT_VERSION, FileError, HEADER_BYTES};
pub use warpset_base::words::OutOfMemory;
