//! RecSplit on a GPU bucket by bucket, as in its thesis: a yardstick of the library's search of all buckets at once.
//! Both build the same function.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, section
//! 5.10. There are 128 streams, on which eight threads of the host queue buckets in turn. On its stream a bucket has a
//! few launches for each level of its tree, with one block per node. Some ten launches per bucket take about 20
//! microseconds, and each level waits for its longest search. `docs/performance/recsplit.md` has figures.
//!
//! Departures:
//! - The thesis's kernels move the keys of a splitting to its children at the end of the search; here another launch
//!   does.
//! - The thesis has a launch for each node of the higher levels.
//! - In the thesis a block of 512 threads takes a leaf; here several blocks with together 512 threads share it.
//! - Its blocks have 64 threads in the higher levels; here they have 256.
//! - It copies keys and numbers of each bucket over the bus, and encodes on the host.
//!
//! The driver has 8 work queues unless `CUDA_DEVICE_MAX_CONNECTIONS` is set before the device is opened; the thesis
//! takes 32. Progress is reported when all buckets have been searched.
//!
//! ```
//! use warpset_gpu::Device;
//! use warpset_mphf::RecSplit;
//!
//! let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
//! let keys: Vec<u64> = (0..100).collect();
//! let builder = RecSplit::builder();
//! let function = builder.on(&device).strategy(papers_mphf::PER_BUCKET).build_from(&keys)?;
//! assert!(function.to_host()? == builder.build_from(&keys)?);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use rayon::prelude::*;
use warpset_gpu::{GpuError, Stream};
use warpset_mphf::gpu::{BucketPlan, BucketSearch, Strategy};

/// Order of the thesis, for [`DeviceBuilder::strategy`](warpset_mphf::gpu::DeviceBuilder::strategy).
pub const PER_BUCKET: Strategy = Strategy::By(solve);

/// Buckets solved at the same time, each on its own stream.
const STREAMS: usize = 128;
/// Threads of the host that queue launches, each on its share of the streams (section 6.1). The emulator runs a launch
/// where it is queued, and has one.
const THREADS: usize = 8;

/// Solves the trees of all buckets.
fn solve(search: &BucketSearch<'_>) -> Result<(), GpuError> {
    let (stream, bounds) = (search.stream(), search.bounds());
    // A plan exists per number of keys, with the place of its lists in the table of all.
    let (mut firsts, mut most_items) = (Vec::new(), 0);
    let plans: Vec<Option<(BucketPlan<'_>, usize)>> = (0..)
        .zip(search.sizes())
        .map(|(keys, &count)| {
            let plan = (count > 0).then(|| search.plan(keys)).filter(|plan| plan.items() > 0)?;
            let row = firsts.len();
            firsts.extend_from_slice(plan.firsts());
            most_items = most_items.max(plan.items());
            Some((plan, row))
        })
        .collect();
    let firsts = stream.from_slice(&firsts)?;
    let mut ends = vec![0; bounds.len()];
    stream.download(bounds, &mut ends)?;
    let plan_of = |ends: &[u32]| plans[(ends[1] - ends[0]) as usize].as_ref();
    let buckets: Vec<_> =
        ends.windows(2).map(plan_of).enumerate().filter_map(|(bucket, plan)| Some((bucket, plan?))).collect();

    let device = stream.device();
    let streams = (0..STREAMS.min(bounds.len() - 1)).map(|_| device.new_stream());
    let streams = streams.collect::<Result<Vec<_>, _>>()?;
    let queue = |streams: &[Stream], buckets: &[(usize, &(BucketPlan<'_>, usize))]| {
        let mut works = Vec::with_capacity(streams.len());
        for own in streams {
            own.wait_for(stream)?;
            // SAFETY: `stream` waits for all of `streams` below, whether or not the queueing failed; a bucket is in one
            // thread's share once, and `plan_of` chose its plan.
            works.push(unsafe { search.work(own, most_items)? });
        }
        let turns = works.len();
        for (turn, &(bucket, (plan, row))) in buckets.iter().enumerate() {
            works[turn % turns].solve(bucket, plan, firsts.slice(*row..row + plan.firsts().len()))?;
        }
        Ok(())
    };
    let threads = if device.is_emulator() { 1 } else { THREADS };
    let of_threads = streams.par_chunks(streams.len().div_ceil(threads).max(1));
    let buckets_each = buckets.len().div_ceil(of_threads.len().max(1)).max(1);
    let queued = of_threads.zip(buckets.par_chunks(buckets_each));
    let queued = queued.try_for_each(|(streams, buckets)| queue(streams, buckets));
    // Launches that were queued before an error use memory of the search.
    let waits = streams.iter().map(|own| stream.wait_for(own)).collect::<Vec<_>>();
    queued.and(waits.into_iter().collect())
}

#[cfg(test)]
mod tests;
