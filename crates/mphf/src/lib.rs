//! Minimal perfect hashing with RecSplit, Consensus and placement.
//!
//! A minimal perfect hash function maps `n` known keys to `0..n`, each to its own number, in 1.46 to 3 bits per key. It
//! does not store the keys.
//!
//! ```
//! use warpset_mphf::RecSplit;
//!
//! let keys: Vec<u64> = (0..10_000).map(|i| i * i).collect();
//! let function = RecSplit::builder().leaf_size(8).bucket_size(100).build_from(&keys)?;
//! let mut values = vec![0; keys.len()];
//! for &key in &keys {
//!     values[function.get(key) as usize] = key;
//! }
//! assert!(keys.iter().all(|key| values[function.get(key) as usize] == *key));
//! assert!(function.bits_per_key() < 2.0);
//! # Ok::<(), warpset_mphf::Error>(())
//! ```
//!
//! | you want | take |
//! | --- | --- |
//! | a dense array of values, and every key that is asked is one of the set | [`Consensus`] |
//! | a function that is not minimal, or gives several keys one number | [`RecSplit`] |
//! | a number for every member, and most other keys rejected: one in `2^bits` passes | [`StaticFilter`] |
//! | exact values of known strings | [`StringMap`] |
//! | any of these from a file, without a copy | [`MappedConsensus`], [`MappedRecSplit`], [`MappedStaticFilter`], which `map` opens |
//! | any of these over borrowed bytes | [`ConsensusView`], [`RecSplitView`], [`StaticFilterView`] |
//! | keys that do not fit in memory | [`Builder::external`], over a [`KeySource`] such as [`KeyFile`] |
//! | yes or no alone, for known keys | a binary fuse filter, crate `warpset-fuse`: smaller and faster than a [`StaticFilter`] |
//! | the fastest lookups, at 1.95 bits per key or more | [`Placement`] |
//!
//! **Cost.** [`Builder::for_space`] takes the bits per key and chooses the settings. Leaf size, overhead and bucket
//! size trade build time for space by hand, and [`Builder::estimate`] predicts both. A lookup reads a few cache lines.
//!
//! **Files.** `save`, `load` and `map` use the words in memory, with a checksum.
//!
//! **Errors.** [`Error`] names cause and remedy.
//!
//! Sources: Esposito, Mueller Graf, Vigna, "RecSplit: Minimal Perfect Hashing via Recursive Splitting", ALENEX 2020; D.
//! Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022; H.-P. Lehmann, P.
//! Sanders, S. Walzer, J. Ziegler, "Combined Search and Encoding for Seeds, with an Application to Minimal Perfect
//! Hashing", ESA 2025.

#![warn(clippy::missing_errors_doc)]

mod batch;
mod bit_vec;
mod build;
mod builder;
mod bulk;
mod consensus;
mod elias_fano;
mod error;
mod estimate;
mod format;
mod function;
#[cfg(feature = "gpu")]
pub mod gpu;
mod kind;
#[cfg(test)]
mod kind_tests;
mod number;
mod placement;
mod processor;
mod progress;
mod recsplit;
mod static_filter;
mod stored;
mod string_map;
mod u32_vector;
mod windows;

pub use build::external::{External, KeyFile, KeySource};
pub use builder::Builder;
#[cfg(feature = "mmap")]
pub use consensus::MappedConsensus;
pub use consensus::{Consensus, ConsensusKind, ConsensusView};
pub use error::Error;
pub use estimate::Estimate;
pub use function::{Function, PerfectHash, Space};
pub use kind::{HashKind, Kind};
pub use number::Number;
#[cfg(feature = "mmap")]
pub use placement::MappedPlacement;
pub use placement::{Placement, PlacementKind, PlacementView};
pub use progress::{Progress, ProgressAction, Stage};
#[cfg(feature = "mmap")]
pub use recsplit::MappedRecSplit;
pub use recsplit::{RecSplit, RecSplitKind, RecSplitView, Simd};
#[cfg(feature = "mmap")]
pub use static_filter::MappedStaticFilter;
pub use static_filter::{Fingerprints, StaticFilter, StaticFilterView};
#[cfg(feature = "mmap")]
pub use stored::Mapped;
pub use stored::{StoredFunction, StoredParts};
#[cfg(feature = "mmap")]
pub use string_map::MappedStringMap;
pub use string_map::{StringMap, StringMapView, Strings};
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::FileError;
pub use warpset_base::filter::{Filter, LengthMismatch};
pub use warpset_base::key::{Bytes, Hash128, Hashed, Key, as_hashed};
pub use warpset_core::recsplit::{Method, Remix, TreeShape};
