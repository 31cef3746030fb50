//! Order in which a search visits the buckets.

use warpset_gpu::GpuError;

use super::search::BucketSearch;

/// Order in which a device searches the trees of buckets. Words and kernels are the same; the number of launches and
/// the work per launch differ.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// The nodes of all buckets are in lists, one for each level and way of searching, and a launch solves a list:
    /// some 30 launches, whatever the number of buckets.
    #[default]
    AllBuckets,
    /// A method of another crate, which solves every bucket once. Progress is reported when it returns.
    By(fn(&BucketSearch<'_>) -> Result<(), GpuError>),
}
