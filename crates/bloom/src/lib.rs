//! Bloom filters for CPU and GPU, with one memory image.
//!
//! | type | block | bits per key at 1% | for |
//! | --- | --- | --- | --- |
//! | [`SplitBlockBloom`] | 256 bits | 10.5 | Parquet files; the fastest at rates around 1% |
//! | [`BlockedBloom`] | 64 to 1024 bits | 10.1 (512-bit blocks) | any rate, any trade of speed for bits |
//! | [`RaoBloom`] | a bucket of kilobytes | 10.6 (two choices: 12) | the paper's two-level filter; low rates |
//!
//! ```
//! use warpset_bloom::{Filter, Insert, SplitBlockBloom};
//!
//! let mut filter = SplitBlockBloom::builder(1_000_000).fpr(0.01).build()?;
//! let keys: Vec<u64> = (0..1_000_000).collect();
//! filter.insert_bulk(&keys)?;
//! assert_eq!(filter.count_contained_bulk(&keys)?, keys.len());
//!
//! let bytes = filter.to_bytes();
//! assert_eq!(SplitBlockBloom::from_bytes(&bytes)?, filter);
//! # Ok::<(), warpset_bloom::Error>(())
//! ```
//!
//! A filter answers "no" only for keys that were not inserted. It answers "yes" for all inserted keys and for a small
//! fraction of the others: the rate of false positives. Keys cannot be removed.
//!
//! **Cost.** An operation on a key accesses one block, which is one or two cache lines; in a [`RaoBloom`] it is a line
//! per bit of the key. Bulk methods use the current rayon pool; run them inside `ThreadPool::install` to
//! bound their threads. Insertion needs `&mut self`, so no query sees a filter that is half built;
//! [`shared`](cpu::Bloom::shared) lends one to threads that insert at the same time.
//!
//! **Files.** `save`, `load` and `map` use Warpset's own format, with a checksum. Split-block filters also exchange the
//! bytes of Parquet files and Milvus, and [`SparkBloom`] those of Spark.
//!
//! **Errors.** [`Error`] contains the refused number; its message says what helps.

#![warn(clippy::missing_errors_doc)]

mod builder;
pub mod cpu;
mod error;
mod filter;
mod format;
#[cfg(feature = "gpu")]
pub mod gpu;
mod layout;
#[cfg(feature = "mmap")]
mod mapped;
pub mod rates;
mod spark;
mod view;

#[cfg(target_endian = "big")]
compile_error!("the memory image of the filters is little-endian, and this crate reads it in place");

pub use builder::{BlockedBuilder, Builder, DEFAULT_FPR, RaoBuilder, SplitBlockBuilder};
pub use cpu::{BlockedBloom, RaoBloom, SharedBloom, SplitBlockBloom};
pub use error::{AskedSize, Error};
pub use filter::BloomFilter;
pub use format::milvus::MilvusHeader;
pub use format::parquet::PhysicalType;
pub use layout::{BlockedLayout, FirstLevel, Layout, RaoLayout, SplitBlockLayout};
#[cfg(feature = "mmap")]
pub use mapped::{Mapped, MappedBlockedBloom, MappedRaoBloom, MappedSplitBlockBloom};
pub use spark::{SparkBloom, SparkBloomView, SparkBuilder, SparkHash, SparkKey, SparkVersion};
pub use view::{BlockedBloomView, RaoBloomView, SplitBlockBloomView, View};
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::FileError;
pub use warpset_base::filter::{Filter, Insert, LengthMismatch, TestAndInsert};
use warpset_base::key;
pub use warpset_base::key::{Bytes, Hash128, Hashed, Key, as_hashed};
pub use warpset_base::stencil::Stencil;
pub use warpset_base::words::OutOfMemory;
pub use warpset_core::bloom::{TEST_AND_INSERT_BATCH, blocked::BlockShape, rao::BucketShape};
pub use warpset_core::hash::string::StringHash;

use warpset_base::words::AlignedWords;
