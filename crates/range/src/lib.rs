//! Range filters: approximate sets of ordered keys that answer whether any key lies between two bounds. They take some
//! 10 to 20 bits per key, and store no keys.
//!
//! ```
//! use warpset_range::RangeFilter;
//!
//! let keys: Vec<u64> = (0..100_000).map(|i| i * i * 1_000).collect();
//! let filter = RangeFilter::<u64>::builder().fpr_at(0.01, 100).build_from(&keys)?;
//! assert!(filter.may_contain(8_900..9_100) && filter.contains(9_000));
//! assert!(filter.fpr_of(100) <= 0.01 && filter.bits_per_key() < 15.6);
//! # Ok::<(), warpset_range::Error>(())
//! ```
//!
//! A "no" is certain. A range of `l` keys without a key of the filter gets a "yes" with probability at most
//! `l / 2^(B-2)` at `B` [bits per key](Builder::bits_per_key), whatever the keys and the range: also next to keys,
//! where filters of prefixes fail. Ranges longer than `2^(B-2)` are mostly taken for occupied.
//!
//! Source: Costa, Ferragina, Vinciguerra, "Grafite: Taming Adversarial Queries with Optimal Range Filters", SIGMOD
//! 2024. Codes and lookups, with departures: [`warpset_core::range`].
//!
//! | keys | order | distance that counts |
//! | --- | --- | --- |
//! | `u8` to `u128`, `i8` to `i128` | of the integers | of the integers |
//! | `f32`, `f64` | total order, as of `f64::total_cmp` | of the neighbours in that order |
//! | byte strings and strings | lexicographic | of the first [`PREFIX_BYTES`] bytes as an integer |
//!
//! **Byte strings** count by their first 16 bytes, shorter ones as if zeros followed. There are no false negatives;
//! strings that agree in these bytes are one key.
//!
//! [`DynamicRangeFilter`] answers the same for keys that are inserted and removed.
//!
//! **Cost.** A lookup reads two places of a table of 0.15 bits per key, and two cache lines. Bulk methods and builds
//! use the current rayon pool; run them inside `ThreadPool::install` to bound their threads.
//!
//! **Files.** `save`, `load` and `map` use the words in memory, with a checksum.
//!
//! **Errors.** [`Error`] names cause and remedy.

#![warn(clippy::missing_errors_doc)]

mod build;
mod builder;
mod dynamic;
mod error;
mod filter;
mod format;
#[cfg(feature = "gpu")]
pub mod gpu;
mod key;
mod layout;
mod lookup;
#[cfg(feature = "mmap")]
mod mapped;
mod view;

#[cfg(target_endian = "big")]
compile_error!("saved filters are little-endian, and this crate reads them in place");

pub use builder::Builder;
#[cfg(feature = "mmap")]
pub use dynamic::MappedDynamicRangeFilter;
pub use dynamic::{DynamicBuilder, DynamicRangeFilter, DynamicRangeFilterView};
pub use error::Error;
pub use filter::RangeFilter;
pub use key::{KeyOf, PREFIX_BYTES, RangeKey};
pub use layout::Layout;
#[cfg(feature = "mmap")]
pub use mapped::MappedRangeFilter;
pub use view::RangeFilterView;
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::FileError;
pub use warpset_base::filter::LengthMismatch;
pub use warpset_base::words::OutOfMemory;

#[cfg(test)]
mod tests;
