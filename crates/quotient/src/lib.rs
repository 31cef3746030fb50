//! Quotient filters: approximate sets and multisets that can also forget, merge and resize.
//!
//! ```
//! use warpset_quotient::{Duplicates, Filter, Insert, Remove, StandardQuotientFilter};
//!
//! let builder = StandardQuotientFilter::builder(1_000_000).fpr(0.01).duplicates(Duplicates::Kept);
//! let mut filter = builder.build()?;
//! let keys: Vec<u64> = (0..1_000_000).collect();
//! filter.insert_bulk(&keys)?;
//! assert_eq!(filter.count_contained_bulk(&keys)?, keys.len());
//!
//! filter.remove_bulk(&keys[..500_000])?;
//! assert_eq!(filter.count_contained_bulk(&keys[500_000..])?, 500_000);
//! # Ok::<(), warpset_quotient::Error>(())
//! ```
//!
//! A filter stores a *fingerprint* of every key, the high bits of its hash, without loss: a false positive is a key
//! whose fingerprint equals that of another. So a filter can list its fingerprints, be merged with others, and grow or
//! shrink, and it does all of that without the keys.
//!
//! | you want | take |
//! | --- | --- |
//! | lookups that cost the same at any load, up to 0.95; single lookups | [`RankSelectQuotientFilter`] |
//! | to count keys that repeat often, in little space | [`RankSelectQuotientFilter`] with [`Duplicates::Counted`] |
//! | a value per key, without the keys | [`Maplet`], by [`Builder::values`] |
//! | integers without false positives, listed again by their keys | [`RankSelectQuotientFilter`] with [`Builder::exact`] |
//! | large batches into half-empty filters on a GPU; the paper's structure | [`StandardQuotientFilter`] |
//!
//! Both are one type, [`QuotientFilter`], over the kind of its slots ([`SlotKind`]): building, batches, merging,
//! resizing, files and views are the same for both. [`Duplicates`] says whether a filter is a set or a multiset. Where
//! keys are only ever added and known in number, a Bloom filter is faster at rates of 0.1% and more.
//!
//! **Cost.** Memory per key is the remainder and 2.125 to 3 bits of metadata, divided by the load. An operation on a
//! key reads the metadata and the remainders near its quotient: a few cache lines. Bulk methods use the current rayon
//! pool; run them inside `ThreadPool::install` to bound their threads.
//!
//! **Files.** `save`, `load` and `map` use one format for both kinds, with a checksum; a filter in a mapped file
//! answers queries in place.
//!
//! **Errors.** After an [`Error`] of a host filter, the filter is unchanged. The message says what helps; a full filter
//! grows by `double`.

#![warn(clippy::missing_errors_doc)]

mod builder;
mod cpu;
mod error;
mod format;
#[cfg(feature = "gpu")]
pub mod gpu;
mod layout;
mod maplet;
#[cfg(feature = "mmap")]
mod mapped;
mod rank_select;
mod rates;
mod resize;
mod slot_kind;
mod standard;
mod view;

#[cfg(target_endian = "big")]
compile_error!("the memory image of the filters is little-endian, and this crate reads it in place");

pub use builder::{Builder, DEFAULT_FPR};
pub use cpu::QuotientFilter;
pub use error::Error;
pub use layout::{Duplicates, Layout};
#[cfg(feature = "mmap")]
pub use maplet::MappedMaplet;
pub use maplet::{Maplet, MapletBuilder, MapletLayout, MapletView};
#[cfg(feature = "mmap")]
pub use mapped::{Mapped, MappedRankSelectQuotientFilter, MappedStandardQuotientFilter};
pub use rank_select::RankSelect;
pub use slot_kind::SlotKind;
pub use standard::Standard;
pub use view::View;
pub use warpset_base::bitmap::Bitmap;
pub use warpset_base::file::FileError;
pub use warpset_base::filter::{Count, Filter, Insert, LengthMismatch, Remove, TestAndInsert};
use warpset_base::key;
pub use warpset_base::key::{Bytes, Hashed, Key, as_hashed};
pub use warpset_base::words::OutOfMemory;
pub use warpset_core::quotient::slots::Container;
pub use warpset_core::scan::{BitOr, Max, Min, Operator, Sum};

/// The standard quotient filter: three metadata bits per slot, `r + 3` bits in all for remainders of `r` bits. Filled
/// to its default limit, 0.9 of the slots, it takes 11.1 bits per key for a rate of false positives of 1 %, 14.4 for
/// 0.1 %.
///
/// ```
/// use warpset_quotient::{Duplicates, StandardQuotientFilter};
///
/// let mut filter = StandardQuotientFilter::builder(1000).duplicates(Duplicates::Kept).build()?;
/// filter.insert("filter")?;
/// assert!(filter.contains("filter") && filter.remove("filter"));
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
pub type StandardQuotientFilter = QuotientFilter<Standard>;
/// Settings of a [`StandardQuotientFilter`].
pub type StandardBuilder = Builder<Standard>;
/// A borrow of the words of a [`StandardQuotientFilter`] that answers queries.
pub type StandardQuotientFilterView<'a> = View<'a, Standard>;

/// The rank-and-select quotient filter: two metadata bits per slot and an offset per 64, `r + 3` bits per slot in all
/// for remainders of `r` bits. Lookups cost the same at any load up to 0.95, its default.
///
/// ```
/// use warpset_quotient::RankSelectQuotientFilter;
///
/// let keys: Vec<u64> = (0..1_000_000).collect();
/// let mut filter = RankSelectQuotientFilter::builder(1_000_000).fpr(0.01).build_from(&keys)?;
/// assert!(filter.contains(7u64) && filter.remove(7u64));
/// # Ok::<(), warpset_quotient::Error>(())
/// ```
pub type RankSelectQuotientFilter = QuotientFilter<RankSelect>;
/// Settings of a [`RankSelectQuotientFilter`].
pub type RankSelectBuilder = Builder<RankSelect>;
/// A borrow of the words of a [`RankSelectQuotientFilter`] that answers queries.
pub type RankSelectQuotientFilterView<'a> = View<'a, RankSelect>;
