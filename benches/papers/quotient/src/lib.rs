//! Quotient filters built and changed exactly as published, as yardsticks of the library's own methods. All give the
//! same bytes.
//!
//! Source: Geil, Farach-Colton, Owens, "Quotient Filters: Approximate Membership Queries on the GPU", IPDPS 2018:
//! sections IV-B to IV-D for the standard quotient filter (algorithms 3 to 7), V-B and V-C for the one with rank and
//! select (algorithm 9). Files name the departures.
//!
//! ```
//! use papers_quotient::{StandardBuild, build_from_device, insert_device};
//! use warpset_gpu::Device;
//! use warpset_quotient::StandardBuilder;
//!
//! let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
//! let keys = device.from_slice(&[2u64, 3, 5, 7])?;
//! let builder = StandardBuilder::with_bits(10, 8);
//! let mut filter = build_from_device(&builder.on(&device), keys.as_slice(), StandardBuild::ParallelMerging)?;
//! assert!(filter.to_host()? == builder.build_from(&[2u64, 3, 5, 7])?);
//!
//! assert_eq!(insert_device(&mut filter, device.from_slice(&[11u64])?.as_slice())?, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt::Debug;

use warpset_gpu::{DeviceVec, Stream};
use warpset_quotient::gpu::methods::{Change, Fingerprints, Update, check_fit, scan, zeroed_words};
use warpset_quotient::gpu::{DeviceBuilder, DeviceKeys, DeviceSlotKind, QuotientFilter};
use warpset_quotient::{Error, Key, Layout, RankSelect, Standard};

mod builds;
pub mod host;
mod regions;
mod superclusters;
#[cfg(test)]
mod tests;

/// Runs the body with the vector of fingerprints: of `u32` or of `u64`.
macro_rules! with_width {
    ($fingerprints:expr, |$items:ident| $body:expr) => {
        match $fingerprints {
            warpset_quotient::gpu::methods::Fingerprints::Narrow($items) => $body,
            warpset_quotient::gpu::methods::Fingerprints::Wide($items) => $body,
        }
    };
}
use with_width;

/// Layout methods of the standard quotient filter, for ascending fingerprints.
///
/// Measured rates of each on a GPU are in `docs/performance/quotient.md`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StandardBuild {
    /// The library's: an associative scan gives each item its slot in one pass.
    #[default]
    Scan,
    /// Algorithm 4: segments, at first one per run, are merged in pairs until there is one.
    ParallelMerging,
    /// Algorithm 5: each run that the one before it reaches into moves, until there is none.
    SequentialShifting,
    /// Algorithm 6: segments of `q` slots are laid out on their own, and again after what reached into them, until
    /// nothing changes.
    SegmentedLayouts,
    /// Algorithm 3 from an empty filter: in each round one fingerprint is inserted into each supercluster. Filters of
    /// 2^32 slots and more are built by [`StandardBuild::Scan`] instead.
    SuperclusterInserts,
}

impl StandardBuild {
    /// All methods.
    pub const ALL: [StandardBuild; 5] = [
        StandardBuild::Scan,
        StandardBuild::ParallelMerging,
        StandardBuild::SequentialShifting,
        StandardBuild::SegmentedLayouts,
        StandardBuild::SuperclusterInserts,
    ];
}

/// Layout methods of the rank-and-select quotient filter, for ascending fingerprints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RankSelectBuild {
    /// The library's: an associative scan gives each item its slot in one pass.
    #[default]
    Scan,
    /// Insertion by regions (section V-B, algorithm 9) into an empty filter, one thread per region.
    RegionInserts,
}

/// Words of a filter and the number of stored fingerprints.
type Built = (DeviceVec<u64>, u64);

/// Slots with methods of the paper: [`Standard`] and [`RankSelect`].
pub trait PaperSlots: DeviceSlotKind {
    /// Layout methods.
    type Build: Copy + Debug;

    /// Whether the paper's updates take an ascending batch.
    const SORTS: bool;

    /// Lays out ascending fingerprints. Waits; on an error work may still be queued.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from`].
    fn lay_out(stream: &Stream, layout: &Layout, sorted: &Fingerprints, method: Self::Build) -> Result<Built, Error>;

    /// Inserts or removes a batch. Returns the number of fingerprints stored or removed, and the number without a
    /// slot. Waits.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    fn change_batch(
        stream: &Stream,
        layout: &Layout,
        words: &mut DeviceVec<u64>,
        batch: &Fingerprints,
        change: Change,
    ) -> Result<(u64, u64), Error>;
}

impl PaperSlots for Standard {
    type Build = StandardBuild;
    const SORTS: bool = false;

    fn lay_out(stream: &Stream, layout: &Layout, sorted: &Fingerprints, method: StandardBuild) -> Result<Built, Error> {
        match method {
            StandardBuild::Scan => scan::<Standard>(stream, layout, sorted),
            StandardBuild::SuperclusterInserts => by_insertions::<Standard>(stream, layout, sorted),
            _ => builds::build(method, stream, layout, sorted),
        }
    }

    fn change_batch(
        stream: &Stream,
        layout: &Layout,
        words: &mut DeviceVec<u64>,
        batch: &Fingerprints,
        change: Change,
    ) -> Result<(u64, u64), Error> {
        superclusters::change(stream, layout, words, batch, change)
    }
}

impl PaperSlots for RankSelect {
    type Build = RankSelectBuild;
    const SORTS: bool = true;

    fn lay_out(
        stream: &Stream,
        layout: &Layout,
        sorted: &Fingerprints,
        method: RankSelectBuild,
    ) -> Result<Built, Error> {
        match method {
            RankSelectBuild::Scan => scan::<RankSelect>(stream, layout, sorted),
            RankSelectBuild::RegionInserts => by_insertions::<RankSelect>(stream, layout, sorted),
        }
    }

    fn change_batch(
        stream: &Stream,
        layout: &Layout,
        words: &mut DeviceVec<u64>,
        batch: &Fingerprints,
        change: Change,
    ) -> Result<(u64, u64), Error> {
        regions::change(stream, layout, words, batch, change)
    }
}

/// Builds a filter of host keys by a layout method.
///
/// # Errors
/// The errors of [`DeviceBuilder::build_from`].
pub fn build_from<S: PaperSlots, K: Key>(
    builder: &DeviceBuilder<S>,
    keys: &[K],
    method: S::Build,
) -> Result<QuotientFilter<S>, Error> {
    builder.build_from_by(keys, &|stream, layout, sorted| S::lay_out(stream, layout, sorted, method))
}

/// Builds a filter of keys on the device by a layout method.
///
/// # Errors
/// The errors of [`DeviceBuilder::build_from_device`].
pub fn build_from_device<S: PaperSlots, K: DeviceKeys>(
    builder: &DeviceBuilder<S>,
    keys: K,
    method: S::Build,
) -> Result<QuotientFilter<S>, Error> {
    builder.build_from_device_by(keys, &|stream, layout, sorted| S::lay_out(stream, layout, sorted, method))
}

/// Inserts keys on the device as the paper does. For a standard filter there are rounds: a pass over the filter labels
/// its superclusters, and one fingerprint is inserted into each (algorithm 3). For a rank-and-select filter the sorted
/// batch is in queues, one per block, which one thread per region works off (algorithm 9). Returns the growth of the
/// number of fingerprints. Cases that `UpdateMethod::InPlace` excludes are done by rewriting the filter.
///
/// # Errors
/// The errors of [`QuotientFilter::insert_device_with`].
pub fn insert_device<S: PaperSlots, K: DeviceKeys>(filter: &mut QuotientFilter<S>, keys: K) -> Result<u64, Error> {
    filter.change_device_by(keys, Change::Insert, Update { sorts: S::SORTS, change: &S::change_batch })
}

/// Removes the fingerprints of keys on the device as the paper does ([`insert_device`], algorithm 7). Returns the
/// number of removed fingerprints.
///
/// # Errors
/// The errors of [`QuotientFilter::remove_device_with`].
pub fn remove_device<S: PaperSlots, K: DeviceKeys>(filter: &mut QuotientFilter<S>, keys: K) -> Result<u64, Error> {
    filter.change_device_by(keys, Change::Remove, Update { sorts: S::SORTS, change: &S::change_batch })
}

/// Lays out ascending fingerprints by the paper's insertions into an empty filter.
fn by_insertions<S: PaperSlots>(stream: &Stream, layout: &Layout, sorted: &Fingerprints) -> Result<Built, Error> {
    let n = sorted.len();
    if n > 0 && n < u32::MAX as usize && layout.slots() < S::MOST_SLOTS_IN_PLACE {
        let unique;
        let sorted = if n as u64 > layout.limit() {
            // The filter is a set, or the builder would have refused them. Fingerprints that do not fit would take a
            // round each.
            unique = sorted.unique(layout, stream)?;
            check_fit(layout, unique.len() as u64, 0)?;
            &unique
        } else {
            sorted
        };
        let mut words = zeroed_words(layout, stream)?;
        let (done, failed) = S::change_batch(stream, layout, &mut words, sorted, Change::Insert)?;
        if failed == 0 && done <= layout.limit() {
            return Ok((words, done));
        }
    }
    // The scan reports why they do not fit.
    scan::<S>(stream, layout, sorted)
}
