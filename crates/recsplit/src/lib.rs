//! Minimal perfect hashing with RecSplit.
//!
//! A minimal perfect hash function maps `n` known keys to `0..n`, each to its own number, in 1.5 to 3 bits per key, without
//! storing the keys.
//!
//! ```
//! use warpset_recsplit::RecSplit;
//!
//! let keys: Vec<u64> = (0..10_000).map(|i| i * i).collect();
//! let function = RecSplit::builder().leaf_size(8).bucket_size(100).build_from(&keys)?;
//! let mut values = vec![0; keys.len()];
//! for &key in &keys {
//!     values[function.get(key) as usize] = key;
//! }
//! assert!(keys.iter().all(|key| values[function.get(key) as usize] == *key));
//! assert!(function.bits_per_key() < 2.0);
//! # Ok::<(), warpset_recsplit::Error>(())
//! ```
//!
//! Sources: Esposito, Mueller Graf, Vigna, "RecSplit: Minimal Perfect Hashing via Recursive Splitting", ALENEX 2020; D. Bez,
//! "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022.

mod batch;
mod bit_vec;
mod borrowed;
mod build;
mod builder;
mod cost;
mod elias_fano;
mod encode;
mod error;
mod find;
mod format;
mod function;
pub mod gpu;
mod mapped;
mod processor;
mod progress;
mod query;
mod shape_tables;
mod static_filter;
mod storage;
mod view;
mod windows;

pub use build::external::{External, KeyFile, KeySource};
pub use builder::Builder;
pub use cost::Estimate;
pub use error::Error;
pub use find::Simd;
pub use function::{RecSplit, Space};
pub use mapped::{MappedRecSplit, MappedStaticFilter};
pub use progress::{Progress, Stage, Verdict};
pub use static_filter::{StaticFilter, StaticFilterView};
pub use view::View;
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::FileError;
pub use warpset_base::filter::{Filter, LengthMismatch};
pub use warpset_base::key::{Bytes, Hash128, Hashed, Key, as_hashed};
pub use warpset_core::recsplit::{Method, Remix, TreeShape};
