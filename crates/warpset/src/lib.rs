//! Fast sets, counters, ordered maps and perfect-hash tables for millions of keys, on CPUs and NVIDIA GPUs, in pure
//! Rust.
//!
//! ```
//! use warpset::prelude::*;
//!
//! let mut seen = SplitBlockBloom::builder(1_000_000).fpr(0.01).build()?;
//! assert!(seen.test_and_insert("https://example.org/"));
//! assert!(!seen.test_and_insert("https://example.org/"));
//! # Ok::<(), warpset::bloom::Error>(())
//! ```
//!
//! | type | description | use it to |
//! | --- | --- | --- |
//! | [`SplitBlockBloom`] | Parquet's split-block Bloom filter, bit for bit | test membership fast, at 0.1 to 1 % false positives |
//! | [`BlockedBloom`] | Bloom filter with blocks of 64 to 1024 bits | choose between speed and bits per key |
//! | [`RaoBloom`] | Rao's two-level Bloom filter | reproduce the paper; get a classic filter's rate |
//! | [`StandardQuotientFilter`] | quotient filter | remove keys, merge sizes, grow without the keys |
//! | [`RankSelectQuotientFilter`] | quotient filter with rank and select | do so in full filters; count keys, also exactly |
//! | [`Maplet`] | quotient filter with values beside fingerprints | keep a value per key, without the keys |
//! | [`BinaryFuse8`] and wider | binary fuse filter | test known keys in 9, 18 or 36 bits each; exchange with others |
//! | [`StaticFunction`] | values of known keys, without the keys | look values up in 1.08 to 1.24 times their bits |
//! | [`RangeFilter`] | sorted hashes that keep the order of near keys | ask whether any key lies between two |
//! | [`DynamicRangeFilter`] | quotient filter that keeps the order of near keys | do so while keys come and go |
//! | [`SequenceFilter`] | Bloom filter of k-mers, blocks by minimizers | screen reads by the k-mers of genomes |
//! | [`Lsm`] | ordered dictionary, log-structured | update in batches, count events, look up, list ranges |
//! | [`SortedArray`] | ordered dictionary in one sorted array | look up faster, update seldom |
//! | [`RecSplit`] | minimal perfect hash function, 1.53 to 3 bits per key | number known keys `0..n` |
//! | [`Placement`] | minimal perfect hash function, 1.95 bits per key | number known keys, with the fastest lookups |
//! | [`Consensus`] | minimal perfect hash function, 1.46 to 2 bits per key | number known keys in less space |
//! | [`StaticFilter`] | fingerprints on top of such a function | number known keys and reject most others |
//! | [`StaticSet`] | exact set of integers that never changes | test membership without false positives |
//! | [`StaticMap`] | exact map of integers that never changes | look up the values of known keys |
//! | [`Minimizers`] | canonical minimizers of DNA | sample k-mers of reads and genomes |
//!
//! The [`guide`] leads from the choice of a structure to a pipeline on a GPU; it lists the operations of each
//! structure, and the promises. [`prelude`] exports the names that most programs need.
//!
//! Each structure is built by its `builder`, and by the same builder in device memory after `.on(&device)`
//! ([`gpu::Device`]). The suffix of a method tells the place of the keys: no suffix for one key; `_bulk` for a host
//! slice, which is processed on all cores or copied to the device; `_device` for device memory; `_async` for device
//! memory and a stream, on which the work is queued. All backends give the same answers.
//!
//! **Cost.** The page of each type lists bits per key and the cost of its operations. Bulk methods use the current
//! rayon pool; a single lookup reads one cache line of a blocked filter or a static set, a few of other filters and
//! functions, and searches every level of a dictionary.
//!
//! **Files.** `save`, `load`, `to_bytes` and `from_bytes` write and read one format on every backend; `map` and a view
//! (`SplitBlockBloomView` and others) answer queries from the saved bytes in place.
//!
//! **Errors.** Each structure's crate has one `Error`, whose messages name cause and remedy; operations on a device
//! contain a [`gpu::GpuError`]. Invalid input never panics. After an error the structure is unchanged, with the few
//! exceptions that the guide lists.
//!
//! | feature | adds |
//! | --- | --- |
//! | `bloom`, `fuse`, `lsm`, `quotient`, `mphf`, `range`, `sequence`, `static` | one structure each, for the CPU (default) |
//! | `gpu` | the types in device memory ([`gpu`], [`primitives`]) |
//! | `emulator` | `gpu`, and emulated devices, on which kernels run in tests on any machine |
//! | `cuda` | `gpu`, and NVIDIA devices, whose driver is loaded at run time (default) |
//! | `mmap` | `map`: queries of saved structures in memory-mapped files (default) |
//! | `serde` | structures that can be saved, as values of serde |
//! | `cust` | exchange of contexts, streams and memory with the crate `cust` |
//!
//! [`SplitBlockBloom`]: bloom::SplitBlockBloom
//! [`BlockedBloom`]: bloom::BlockedBloom
//! [`RaoBloom`]: bloom::RaoBloom
//! [`StandardQuotientFilter`]: quotient::StandardQuotientFilter
//! [`RankSelectQuotientFilter`]: quotient::RankSelectQuotientFilter
//! [`Maplet`]: quotient::Maplet
//! [`BinaryFuse8`]: fuse::BinaryFuse8
//! [`StaticFunction`]: fuse::StaticFunction
//! [`Lsm`]: lsm::Lsm
//! [`SortedArray`]: lsm::SortedArray
//! [`RecSplit`]: mphf::RecSplit
//! [`Consensus`]: mphf::Consensus
//! [`Placement`]: mphf::Placement
//! [`StaticFilter`]: mphf::StaticFilter
//! [`RangeFilter`]: range::RangeFilter
//! [`DynamicRangeFilter`]: range::DynamicRangeFilter
//! [`Minimizers`]: sequence::Minimizers
//! [`SequenceFilter`]: sequence::SequenceFilter
//! [`StaticSet`]: static_sets::StaticSet
//! [`StaticMap`]: static_sets::StaticMap

#[cfg(feature = "bloom")]
pub use warpset_bloom as bloom;
#[cfg(feature = "cust")]
pub use warpset_cust as cust;
#[cfg(feature = "fuse")]
pub use warpset_fuse as fuse;
#[cfg(feature = "gpu")]
pub use warpset_gpu as gpu;
#[cfg(feature = "lsm")]
pub use warpset_lsm as lsm;
#[cfg(feature = "mphf")]
pub use warpset_mphf as mphf;
#[cfg(feature = "gpu")]
pub use warpset_primitives as primitives;
#[cfg(feature = "quotient")]
pub use warpset_quotient as quotient;
#[cfg(feature = "range")]
pub use warpset_range as range;
#[cfg(feature = "sequence")]
pub use warpset_sequence as sequence;
#[cfg(feature = "static")]
pub use warpset_static as static_sets;

#[cfg(all(
    feature = "bloom",
    feature = "fuse",
    feature = "gpu",
    feature = "lsm",
    feature = "mmap",
    feature = "quotient",
    feature = "mphf",
    feature = "range",
    feature = "sequence",
    feature = "static"
))]
pub mod guide;

/// Names that most programs need: `use warpset::prelude::*;`
pub mod prelude {
    pub use warpset_base::filter::{Count, Filter, Insert, Remove, TestAndInsert};
    pub use warpset_base::key::{Bytes, Hashed, Key};

    #[cfg(feature = "bloom")]
    pub use crate::bloom::{
        BlockedBloom, BlockedBloomView, RaoBloom, RaoBloomView, SplitBlockBloom, SplitBlockBloomView,
    };
    #[cfg(all(feature = "bloom", feature = "mmap"))]
    pub use crate::bloom::{MappedBlockedBloom, MappedRaoBloom, MappedSplitBlockBloom};
    #[cfg(feature = "fuse")]
    pub use crate::fuse::{
        BinaryFuse8, BinaryFuse8View, BinaryFuse16, BinaryFuse16View, BinaryFuse32, BinaryFuse32View, StaticFunction,
        StaticFunctionView,
    };
    #[cfg(all(feature = "fuse", feature = "mmap"))]
    pub use crate::fuse::{MappedBinaryFuse8, MappedBinaryFuse16, MappedBinaryFuse32, MappedStaticFunction};
    #[cfg(feature = "gpu")]
    pub use crate::gpu::{Backend, Device, Devices, batch::DeviceKeys};
    #[cfg(feature = "lsm")]
    pub use crate::lsm::{
        BitOr, CleanupPolicy, Lsm, LsmView, Max, Min, Operator, OrderedMap, Snapshot, SortedArray, SortedArrayView, Sum,
    };
    #[cfg(all(feature = "lsm", feature = "mmap"))]
    pub use crate::lsm::{MappedLsm, MappedSortedArray};
    #[cfg(feature = "mphf")]
    pub use crate::mphf::{
        Consensus, ConsensusKind, ConsensusView, Placement, PlacementKind, PlacementView, RecSplit, RecSplitKind,
        RecSplitView, StaticFilter, StaticFilterView, StringMap, StringMapView,
    };
    #[cfg(all(feature = "mphf", feature = "mmap"))]
    pub use crate::mphf::{MappedConsensus, MappedPlacement, MappedRecSplit, MappedStaticFilter, MappedStringMap};
    #[cfg(feature = "gpu")]
    pub use crate::primitives::{DeviceFilter, DeviceInsert};
    #[cfg(feature = "quotient")]
    pub use crate::quotient::{
        Duplicates, Maplet, MapletView, RankSelectQuotientFilter, RankSelectQuotientFilterView, StandardQuotientFilter,
        StandardQuotientFilterView,
    };
    #[cfg(all(feature = "quotient", feature = "mmap"))]
    pub use crate::quotient::{MappedMaplet, MappedRankSelectQuotientFilter, MappedStandardQuotientFilter};
    #[cfg(feature = "range")]
    pub use crate::range::{DynamicRangeFilter, DynamicRangeFilterView, RangeFilter, RangeFilterView};
    #[cfg(all(feature = "range", feature = "mmap"))]
    pub use crate::range::{MappedDynamicRangeFilter, MappedRangeFilter};
    #[cfg(all(feature = "sequence", feature = "mmap"))]
    pub use crate::sequence::MappedSequenceFilter;
    #[cfg(feature = "sequence")]
    pub use crate::sequence::{Minimizers, PackedSequences, SequenceFilter, SequenceFilterView, Threshold};
    #[cfg(all(feature = "static", feature = "mmap"))]
    pub use crate::static_sets::{MappedStaticMap, MappedStaticSet};
    #[cfg(feature = "static")]
    pub use crate::static_sets::{StaticMap, StaticMapView, StaticSet, StaticSetView};
}

#[cfg(all(doctest, feature = "bloom", feature = "gpu", feature = "quotient"))]
pub mod promises;

/// The program of the README, which is a page of the repository and no page of this documentation.
#[cfg(all(doctest, feature = "bloom"))]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The programs of the page for users of other libraries, likewise.
#[cfg(all(doctest, feature = "bloom", feature = "fuse", feature = "mphf", feature = "static"))]
#[doc = include_str!("../migration.md")]
pub struct Migration;
