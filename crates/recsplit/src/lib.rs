//! Minimal perfect hashing with RecSplit.
//!
//! A minimal perfect hash function maps `n` known keys to `0..n`, each to its own number, in 1.5 to 3 bits a key, without
//! storing the keys.
//!
//! ```
//! use warpset_recsplit::{Builder, RecSplit};
//!
//! let keys: Vec<u64> = (0..10_000).map(|i| i * i).collect();
//! let function: RecSplit = Builder::new().leaf_size(8).bucket_size(100).build(&keys)?;
//! let mut values = vec![0; keys.len()];
//! for &key in &keys {
//!     values[function.get(&key) as usize] = key;
//! }
//! assert!(keys.iter().all(|key| values[function.get(key) as usize] == *key));
//! assert!(function.bits_per_key() < 2.0);
//! # Ok::<(), warpset_recsplit::Error>(())
//! ```
//!
//! Sources: Esposito, Mueller Graf, Vigna, "RecSplit: Minimal Perfect Hashing via Recursive Splitting", ALENEX 2020; D. Bez,
//! "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022.

mod bits;
mod builder;
mod cost;
mod elias_fano;
mod engine;
mod error;
mod external;
mod filter;
mod format;
mod function;
mod key;
mod query;
mod read;
mod room;
mod search;
mod spread;
mod stage;
mod store;
mod table;
mod tree;

pub use builder::{Builder, Progress, Stage};
pub use cost::Estimate;
pub use error::Error;
pub use external::{External, KeyFile, KeySource};
pub use filter::StaticFilter;
pub use function::{RecSplit, Space, Words};
pub use key::{Bytes, Hash128, Key};
pub use search::Simd;
pub use store::Mapped;
pub use warpset_base::file::FileError;
pub use warpset_core::recsplit::{Method, Remix, Shape};
