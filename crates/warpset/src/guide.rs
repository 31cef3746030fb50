//! [`SplitBlockBloom`]: crate::bloom::SplitBlockBloom
//! [`BlockedBloom`]: crate::bloom::BlockedBloom
//! [`RaoBloom`]: crate::bloom::RaoBloom
//! [`StandardQuotientFilter`]: crate::quotient::StandardQuotientFilter
//! [`RankSelectQuotientFilter`]: crate::quotient::RankSelectQuotientFilter
//! [`Maplet`]: crate::quotient::Maplet
//! [`BinaryFuse8`]: crate::fuse::BinaryFuse8
//! [`BinaryFuse16`]: crate::fuse::BinaryFuse16
//! [`BinaryFuse32`]: crate::fuse::BinaryFuse32
//! [`StaticFunction`]: crate::fuse::StaticFunction
//! [`RangeFilter`]: crate::range::RangeFilter
//! [`DynamicRangeFilter`]: crate::range::DynamicRangeFilter
//! [`SequenceFilter`]: crate::sequence::SequenceFilter
//! [binary fuse filter]: crate::fuse
//! [sequence filter]: crate::sequence
//! [`StaticFilter`]: crate::mphf::StaticFilter
//! [`StaticSet`]: crate::static_sets::StaticSet
//! [`StaticMap`]: crate::static_sets::StaticMap
//! [`Lsm`]: crate::lsm::Lsm
//! [`SortedArray`]: crate::lsm::SortedArray
//! [`RecSplit`]: crate::mphf::RecSplit
//! [`Consensus`]: crate::mphf::Consensus
//! [`Placement`]: crate::mphf::Placement
//! [Bloom filters]: crate::bloom
//! [static filters]: crate::mphf::StaticFilter
//! [dictionaries]: crate::lsm
//! [perfect hashing]: crate::mphf
//! [left on one device]: https://github.com/warpset/warpset/blob/main/docs/log/devices.md
//! [ranges on devices]: crate::range::RangeFilter
//! [dictionaries on devices]: crate::lsm::gpu::ShardedLsm
//! [devices]: crate::gpu::Devices
//! [host memory]: crate::bloom::gpu
//! [integers as keys]: crate::bloom::Key
//! [exact sets]: crate::static_sets
//! [all structures]: crate
//! [two devices]: https://github.com/warpset/warpset/blob/main/docs/log/devices.md
//! [performance]: https://github.com/warpset/warpset/blob/main/docs/performance.md
//! [where others are faster]: https://github.com/warpset/warpset/blob/main/docs/performance/losses.md
//! [counters]: crate::quotient::Duplicates
#![doc = include_str!("../guide.md")]
// The page comes from `docs`, where its links name other pages; the first definition of a link counts.
