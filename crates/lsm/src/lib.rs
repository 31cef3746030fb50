//! Ordered dictionaries that take updates in batches, for CPU and GPU.
//!
//! | type | update of a batch of `b` | lookup | use for |
//! | --- | --- | --- | --- |
//! | [`Lsm`] | sort, merge with the levels it fills: O(log(n / b)) per element | in few levels | many updates |
//! | [`SortedArray`] | sort, merge with everything: O(n / b) per element | in one array | few updates |
//! | [`Snapshot`] | none: keeps the state at [`snapshot`](cpu::Dictionary::snapshot) | like its source | readers |
//!
//! Keys are integers of 4, 8 or 16 bytes or strings of up to 16 bytes ([`OrderedKey`]), in their order; values are
//! plain old data of up to 32 bytes ([`Value`]), or none (`()`). The log-structured merge tree is that of Ashkiani, Li,
//! Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU", IPDPS 2018; `docs/lsm.md`
//! lists the differences and their reasons.
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
//! Updates can combine with existing values: [`upsert_bulk`](cpu::Dictionary::upsert_bulk) by a sum or another
//! operator.
//!
//! Methods that end in `_bulk` use the current rayon pool; run them inside `ThreadPool::install` to bound their
//! threads.
//!
//! **Files.** `save` and `load` use a format with a checksum; [`View`] and `map` answer queries in place.
//!
//! **Errors.** After an [`Error`] the dictionary is unchanged; the message says what helps.

#![warn(clippy::missing_errors_doc)]

mod batch;
mod builder;
pub mod cpu;
mod element;
mod error;
mod format;
mod gains;
#[cfg(feature = "gpu")]
pub mod gpu;
mod invariants;
mod level;
#[cfg(feature = "mmap")]
mod mapped;
mod merge;
mod ordered_map;
mod policy;
mod query;
mod run;
mod search_index;
mod search_tree;
mod settings;
mod upsert;
mod view;

#[cfg(target_endian = "big")]
compile_error!("saved dictionaries are little-endian, and this crate reads them in place");

pub use builder::{Builder, SortedArrayBuilder};
pub use cpu::{Lsm, Snapshot, SortedArray};
pub use element::{OrderedKey, Value};
pub use error::Error;
#[cfg(feature = "mmap")]
pub use mapped::{Mapped, MappedLsm, MappedSortedArray};
pub use ordered_map::OrderedMap;
pub use policy::{ArrayPolicy, MergePolicy, ReadOnlyPolicy, TreePolicy};
pub use query::range::Ranges;
pub use query::scan::Range;
pub use settings::{CleanupPolicy, DEFAULT_BATCH_SIZE};
pub use upsert::Counter;
pub use view::{LsmView, SortedArrayView, View};
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::FileError;
pub use warpset_base::words::OutOfMemory;
pub use warpset_core::scan::{BitOr, Max, Min, Operator, Sum};
