//! Search bucket by bucket, for [`Strategy::By`](crate::recsplit::gpu::Strategy::By): the parts for a method of another
//! crate. Any release may change them.

use warpset_core::recsplit::Remix;
use warpset_gpu::{DeviceSlice, DeviceVec, GpuError, Stream};

use super::launches::{AllKeys, Part, Work};
use super::{DeviceTrees, Plan};
use crate::recsplit::gpu::node_lists::List;

/// Buckets of a search.
pub struct BucketSearch<'a> {
    pub(super) stream: &'a Stream,
    pub(super) trees: &'a DeviceTrees,
    pub(super) all: AllKeys,
    pub(super) bounds: &'a DeviceVec<u32>,
    pub(super) first_number: &'a DeviceVec<u32>,
    pub(super) known: &'a [u32],
}

/// Lists of nodes of one bucket.
pub struct BucketPlan<'a> {
    plan: Plan,
    parts: Vec<(&'a List, Part)>,
}

/// Memory and launches for one bucket at a time.
pub struct BucketWork<'a> {
    search: &'a BucketSearch<'a>,
    stream: &'a Stream,
    work: Work<'a>,
}

impl BucketSearch<'_> {
    /// Returns the stream that waits for all work before the search ends.
    pub fn stream(&self) -> &Stream {
        self.stream
    }

    /// Returns the ends of the buckets' keys, after a first 0.
    pub fn bounds(&self) -> &DeviceVec<u32> {
        self.bounds
    }

    /// Returns the number of buckets by number of keys.
    pub fn sizes(&self) -> &[u32] {
        self.known
    }

    /// Returns the plan of a bucket of `keys` keys, fewer than [`sizes`](Self::sizes) has.
    pub fn plan(&self, keys: usize) -> BucketPlan<'_> {
        let mut one = vec![0; keys + 1];
        one[keys] = 1;
        let plan = Plan::new(self.trees, &one);
        BucketPlan { parts: plan.parts(self.trees).collect(), plan }
    }

    /// Allocates work for buckets of at most `items` nodes on `stream`.
    ///
    /// # Safety
    /// - Before the search returns, [`BucketSearch::stream`] is made to wait for `stream`, also after an error.
    /// - Each bucket is solved at most once, by the plan of its number of keys.
    ///
    /// # Errors
    /// Memory of the device.
    pub unsafe fn work<'a>(&'a self, stream: &'a Stream, items: usize) -> Result<BucketWork<'a>, GpuError> {
        // SAFETY: `find` keeps keys and numbers of all buckets allocated until the search's stream has passed, and that
        // stream waits for this one; each bucket is solved once, by this function's contract.
        let mut work = unsafe { Work::new(stream, self.trees, self.all, items)? };
        work.is_alone = false;
        Ok(BucketWork { search: self, stream, work })
    }
}

impl BucketPlan<'_> {
    /// Returns the number of nodes; 0 if there is nothing to search.
    pub fn items(&self) -> usize {
        self.plan.items
    }

    /// Returns the first node of each list.
    pub fn firsts(&self) -> &[u32] {
        &self.plan.firsts
    }
}

impl BucketWork<'_> {
    /// Queues the search of a bucket by the plan of its number of keys; `firsts` is a copy of
    /// [`BucketPlan::firsts`] on the device.
    ///
    /// # Errors
    /// Failed launches.
    pub fn solve(
        &mut self,
        bucket: usize,
        plan: &BucketPlan<'_>,
        firsts: DeviceSlice<'_, u32>,
    ) -> Result<(), GpuError> {
        let (search, work) = (self.search, &mut self.work);
        self.stream.copy(&mut work.cursors, firsts)?;
        self.stream.fill_bytes(&mut work.taken, 0)?;
        work.roots(search.bounds.slice(bucket..bucket + 2), search.first_number.slice(bucket..bucket + 1))?;
        plan.parts.iter().try_for_each(|&(list, part)| match search.trees.trees.remix {
            Remix::Bits32 => work.solve::<u32>(list, part),
            Remix::Bits64 => work.solve::<u64>(list, part),
        })
    }
}
