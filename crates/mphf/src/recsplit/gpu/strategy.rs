//! Order in which a search visits the buckets.

use warpset_gpu::GpuError;

use super::search::BucketSearch;

/// Order in which a device searches the trees of buckets. Words and kernels are the same; the number of launches and
/// the work per launch differ.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Strategy {
    /// Lists of the nodes of all buckets, one per level and search method; a launch solves a list: some 30 launches,
    /// whatever the number of buckets.
    #[default]
    AllBuckets,
    /// A method of another crate, which solves every bucket once. Progress is reported when it returns.
    By(fn(&BucketSearch<'_>) -> Result<(), GpuError>),
}
