//! Functions and filters in device memory: built there or copied there, and looked up by kernels. The words equal those
//! of the CPU for the same keys and settings.
//!
//! Keys in host memory are staged through pinned memory in chunks; keys in device memory are read where they are.
//! Operations on device memory wait, or, with names that end in `_async`, are queued on the caller's stream.

mod buckets;
mod build;
#[cfg(test)]
mod build_tests;
mod builder;
mod device_build;
mod filter_build;
mod function;
mod join;
mod key_store;
mod kind;
mod lists;
#[cfg(test)]
mod lookup_tests;
mod plan;
#[cfg(test)]
mod several_tests;
mod source;
mod stage_timer;
mod static_filter;
mod stored;
mod tables;
#[cfg(test)]
mod test_kinds;

#[doc(hidden)]
pub use crate::recsplit::gpu::{BucketPlan, BucketSearch, BucketWork, Strategy};
use crate::{ConsensusKind, Fingerprints, Function, PlacementKind, RecSplitKind};
pub(crate) use buckets::{Sorted, covering};
pub use builder::{BackendBuilder, DeviceBuilder};
pub(crate) use device_build::SearchProgress;
pub(crate) use function::Numbers;
pub use kind::DeviceHashKind;
pub(crate) use kind::{EncodedBuckets, sealed};
pub(crate) use plan::AttemptError;
pub use stored::StoredFunction;
pub(crate) use tables::{Tables, device_lookups, one_thread_each};
pub use warpset_gpu::batch::{DeviceKey, DeviceKeys128, DeviceStrings, Offset, StringVec};
pub use warpset_primitives::DeviceFilter;

/// A perfect hash function of the kind `M` in device memory: the words of the host's, looked up by kernels.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_mphf::RecSplit;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let function = RecSplit::builder().build_from(&["one", "two", "three"])?;
/// let on_device = function.to_device(&device)?;
/// assert_eq!((on_device.len(), on_device.values()), (3, 3));
/// assert!(on_device.to_host()? == function);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type PerfectHash<M> = StoredFunction<Function<M>>;

/// [`crate::RecSplit`] in device memory.
pub type RecSplit = PerfectHash<RecSplitKind>;

/// [`crate::Consensus`] in device memory.
pub type Consensus = PerfectHash<ConsensusKind>;

/// [`crate::Placement`] in device memory. The host places keys also in builds on devices.
pub type Placement = PerfectHash<PlacementKind>;

/// A static filter around a function of the kind `M` in device memory: the words of the host's, looked up by kernels.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_mphf::{Filter, StaticFilter};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let filter = StaticFilter::builder().width(16).build_from(&["one", "two", "three"])?.to_device(&device)?;
/// assert_eq!(filter.contains_bulk(&["three", "one"])?, [true, true]);
/// assert!(filter.get_bulk(&["two"])?[0].is_some_and(|number| number < 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub type StaticFilter<M = ConsensusKind> = StoredFunction<Fingerprints<M>>;
