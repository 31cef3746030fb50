//! The part of a kind of perfect hash functions on devices.

use warpset_gpu::batch::Answers;
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_simt::{Global, GlobalMut};

use super::buckets::Sorted;
use super::device_build::SearchProgress;
use super::function::Numbers;
use super::plan::AttemptError;
use crate::build::Settings;
use crate::function::Parameters;
use crate::{Error, HashKind};
use std::fmt::Debug;

/// A [kind](HashKind) that has kernels. Sealed; [`RecSplitKind`](crate::RecSplitKind),
/// [`ConsensusKind`](crate::ConsensusKind) and [`PlacementKind`](crate::PlacementKind) implement it.
pub trait DeviceHashKind: HashKind + sealed::DeviceHashKind {}

pub(crate) mod sealed {
    use super::*;

    /// Operations of a kind on devices.
    pub trait DeviceHashKind: crate::kind::sealed::HashKind {
        /// Options of searches on devices only.
        type DeviceOptions: Copy + Debug + Default + Send + Sync;
        /// Tables that all searches on one device share.
        type DeviceSearch;
        /// Codes of a range of buckets, not yet bits.
        type Found: EncodedBuckets + Send;
        /// Tables for lookups, besides words.
        type DeviceTables: Send + Sync;

        /// Prepares searches for codes on the device of `stream`.
        ///
        /// # Errors
        /// Memory of the device.
        fn device_search(
            stream: &Stream,
            settings: &Settings<Self>,
            search: &Self::Search,
            options: Self::DeviceOptions,
        ) -> Result<Self::DeviceSearch, Error>;

        /// Returns the number of keys of the largest bucket that can be searched.
        fn largest(search: &Self::DeviceSearch) -> u32;

        /// Finds the codes of buckets. Writes the number of keys before the end of each bucket to `keys_before`, which
        /// has a word per bucket; `base` keys precede these buckets. Waits.
        ///
        /// # Errors
        /// Memory of the device, failed launches, an interruption; buckets without a code.
        fn find(
            search: &Self::DeviceSearch,
            stream: &Stream,
            sorted: Sorted,
            base: u64,
            keys_before: DeviceSliceMut<'_, u64>,
            reported: &mut SearchProgress<'_>,
        ) -> Result<Self::Found, AttemptError>;

        /// Makes the tables for lookups in a function of `words` words; `width` bits of fingerprints follow, or none.
        ///
        /// # Errors
        /// Memory of the device.
        fn device_tables(
            device: &Device,
            parameters: &Parameters<Self>,
            words: u64,
            width: u32,
        ) -> Result<Self::DeviceTables, Error>;

        /// Queues the numbers of `n > 0` keys, or a table's items at their numbers.
        ///
        /// # Safety
        /// - `words` are those of a function, and the tables were made from them.
        /// - `keys` are valid for `n` keys, and `numbers` has `n` places; its table has an item per number, and at
        ///   least one.
        /// - Until the stream has passed this work, all stay allocated; nothing writes keys and table, and nothing else
        ///   accesses the numbers.
        ///
        /// # Errors
        /// Memory of the device, and failed launches.
        unsafe fn queue_numbers(
            tables: &Self::DeviceTables,
            stream: &Stream,
            words: Global<u64>,
            keys: KeySlice,
            n: usize,
            numbers: Numbers,
        ) -> Result<(), Error>;

        /// Queues whether `n > 0` keys may be members, and their numbers.
        ///
        /// # Safety
        /// - `words` are those of a function, and the tables were made from them; `fingerprints` words of fingerprints
        ///   follow.
        /// - `keys` are valid for `n` keys; `answers` and `numbers`, if requested, have `n` places.
        /// - Until the stream has passed this work, all stay allocated; nothing writes the keys, and nothing else
        ///   accesses the answers.
        ///
        /// # Errors
        /// Memory of the device, and failed launches.
        #[expect(clippy::too_many_arguments, reason = "the arguments of a launch")]
        unsafe fn queue_answers(
            tables: &Self::DeviceTables,
            stream: &Stream,
            words: Global<u64>,
            fingerprints: u64,
            keys: KeySlice,
            n: usize,
            answers: Answers,
            numbers: Numbers,
        ) -> Result<(), Error>;
    }
}

/// Codes of consecutive buckets, found on a device and not yet bits.
pub trait EncodedBuckets {
    /// Returns the number of keys of the largest bucket.
    fn largest(&self) -> u32;

    /// Queues the sums of bits. The first word of `bits_before` has the bits before the first bucket; the following
    /// words get the bits before the end of each bucket. Lowers `least`, the least number of bits of a bucket by its
    /// number of keys.
    ///
    /// # Safety
    /// All of these stay allocated until `stream` has passed this work, and nothing else accesses what is written.
    ///
    /// # Errors
    /// Memory of the device, and failed launches.
    unsafe fn queue_bits(
        &self,
        stream: &Stream,
        bits_before: DeviceSliceMut<'_, u64>,
        least: &mut DeviceVec<u64>,
    ) -> Result<(), Error>;

    /// Queues the writing of the bits to `words`; their first bit is number `origin` of all.
    ///
    /// # Safety
    /// - [`EncodedBuckets::queue_bits`] has made `bits_before`. `words` are valid for all bits from `origin` on, and
    ///   zero except for bits of others.
    /// - All of these stay allocated until `stream` has passed this work, and nothing else accesses the words.
    ///
    /// # Errors
    /// Memory of the device, and failed launches.
    unsafe fn queue_words(
        &self,
        stream: &Stream,
        bits_before: DeviceSlice<'_, u64>,
        origin: u64,
        words: GlobalMut<u64>,
    ) -> Result<(), Error>;
}
