//! Binary fuse filters: approximate sets of keys that are known when the filter is built. They take 9 bits per key at a
//! false-positive rate of 2^-8, 18 bits at 2^-16 and 36 bits at 2^-32.
//!
//! ```
//! use warpset_fuse::{BinaryFuse16, Filter};
//!
//! let keys: Vec<u64> = (0..1_000_000).collect();
//! let filter = BinaryFuse16::builder().build_from(&keys)?;
//! assert_eq!(filter.count_contained_bulk(&keys)?, keys.len());
//! assert!(filter.bits_per_key() < 18.2);
//! # Ok::<(), warpset_fuse::Error>(())
//! ```
//!
//! Source: Graf, Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", ACM Journal of Experimental
//! Algorithmics 27, 2022. A filter of one graph is their array, bit for bit: arrays built by the crate `xorf` and by
//! the C header `xor_singleheader` are read ([`BinaryFuse::from_xorf`], [`BinaryFuse::from_c_bytes`]) and written.
//!
//! | you want | take |
//! | --- | --- |
//! | small filters, and to exchange them with other programs | [`BinaryFuse8`], [`BinaryFuse16`] or [`BinaryFuse32`] with the default settings |
//! | fewer bits still, 8.6 per key for 8 bits | [`Builder::for_space`] |
//! | builds on many cores or on a GPU | [`Builder::for_build`]: [`Form::Sharded`] |
//! | to build from more keys than fit in memory | [`Builder::external`] |
//! | a value for each key, without storing keys | [`StaticFunction`] |
//! | less than some hundred keys | a Bloom filter, which is smaller |
//! | to add keys later | a Bloom filter; to remove some, a quotient filter |
//!
//! Integers are keys by their values, bytes and strings by XXH64. Keys that repeat count once.
//!
//! **Cost.** A lookup reads three slots, or four with [`Arity::Four`], from as many cache lines. Bulk methods and
//! builds use the current rayon pool; run them inside `ThreadPool::install` to bound their threads.
//!
//! **Files.** `save`, `load` and `map` use a format of their own, with a checksum.
//!
//! **Errors.** [`Error`] names cause and remedy.

#![warn(clippy::missing_errors_doc)]

mod build;
mod builder;
mod cpu;
mod error;
mod function;
#[cfg(feature = "gpu")]
pub mod gpu;
mod image;
mod interchange;
mod layout;
mod lookup;
#[cfg(feature = "mmap")]
mod mapped;
#[cfg(feature = "serde")]
mod serde;
#[cfg(test)]
mod testing;
mod view;
mod width;

#[cfg(target_endian = "big")]
compile_error!("the memory image of the filters is little-endian, and this crate reads it in place");

pub use build::external::External;
#[doc(hidden)]
pub use build::word_of;
pub use builder::Builder;
pub use cpu::BinaryFuse;
pub use error::Error;
#[cfg(feature = "mmap")]
pub use function::MappedStaticFunction;
pub use function::{FunctionBuilder, FunctionExternal, FunctionValue, StaticFunction, StaticFunctionView};
pub use interchange::{Bincode, CWidth, XorfArray, XorfDescriptor};
pub use layout::{Arity, Form, Layout};
#[cfg(feature = "mmap")]
pub use mapped::{Mapped, MappedBinaryFuse8, MappedBinaryFuse16, MappedBinaryFuse32};
pub use view::View;
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::FileError;
pub use warpset_base::filter::{Filter, LengthMismatch};
pub use warpset_base::key::{Bytes, Hashed, Key, as_hashed};
pub use warpset_base::words::OutOfMemory;
pub use width::{Width, bits_for};

/// A binary fuse filter with fingerprints of 8 bits: 9.02 bits per key, a rate of false positives of 0.4%.
///
/// ```
/// use warpset_fuse::BinaryFuse8;
///
/// let filter = BinaryFuse8::builder().build_from(&["north", "south", "north"])?;
/// assert!(filter.contains("north") && filter.len() == 2);
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
pub type BinaryFuse8 = BinaryFuse<u8>;
/// A binary fuse filter with fingerprints of 16 bits: 18.04 bits per key, a rate of false positives of 0.0015%.
///
/// ```
/// use warpset_fuse::BinaryFuse16;
///
/// let keys: Vec<u64> = (0..1000).collect();
/// let filter = BinaryFuse16::builder().seed(7).build_from(&keys)?;
/// assert!(keys.iter().all(|&key| filter.contains(key)));
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
pub type BinaryFuse16 = BinaryFuse<u16>;
/// A binary fuse filter with fingerprints of 32 bits: 36.07 bits per key, a rate of false positives of 2^-32.
///
/// ```
/// use warpset_fuse::BinaryFuse32;
///
/// let filter = BinaryFuse32::builder().build_from(&[2u64, 3, 5, 7])?;
/// assert!(filter.contains(7u64) && !filter.contains(4u64));
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
pub type BinaryFuse32 = BinaryFuse<u32>;
/// A borrow of the words of a [`BinaryFuse8`] that answers queries.
pub type BinaryFuse8View<'a> = View<'a, u8>;
/// A borrow of the words of a [`BinaryFuse16`] that answers queries.
pub type BinaryFuse16View<'a> = View<'a, u16>;
/// A borrow of the words of a [`BinaryFuse32`] that answers queries.
pub type BinaryFuse32View<'a> = View<'a, u32>;
