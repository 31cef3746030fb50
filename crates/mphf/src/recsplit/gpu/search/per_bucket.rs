//! Search in the order of the thesis: bucket by bucket, each on one of many streams, a few launches per level of its
//! tree.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, section
//! 5.10. [`Strategy::PerBucket`] names the departures.

use super::launches::{AllKeys, Part, Work};
use super::{DeviceTrees, Plan, SearchMix};
use crate::recsplit::gpu::Strategy;
use crate::recsplit::gpu::node_lists::List;
use rayon::prelude::*;
use warpset_gpu::{DeviceVec, GpuError, Stream};

/// Buckets to solve at the same time, each on a stream of its own.
const STREAMS: usize = 128;
/// Threads of the host that queue launches, each for its share of the streams (section 6.1). The emulator runs a launch
/// when it is queued, and has one thread.
const THREADS: usize = 8;

/// Lists of the buckets of one size.
struct OfSize<'a> {
    parts: Vec<(&'a List, Part)>,
    /// Start of its lists in the table of all sizes.
    row: usize,
}

/// Solves the trees of all buckets, `known[k]` of them with `k` keys. `stream` waits for all of it.
///
/// # Safety
/// The conditions of [`Work::new`], of this stream.
pub(super) unsafe fn find<M: SearchMix>(
    stream: &Stream,
    trees: &DeviceTrees,
    all: AllKeys,
    (bounds, first_number): (&DeviceVec<u32>, &DeviceVec<u32>),
    known: &[u32],
) -> Result<(), GpuError> {
    let lists = trees.lists.all().len();
    let (mut firsts, mut most_items) = (Vec::new(), 0);
    let mut plans = Vec::with_capacity(known.len());
    for (keys, &count) in known.iter().enumerate() {
        plans.push((count > 0).then(|| {
            let mut one = vec![0; keys + 1];
            one[keys] = 1;
            Plan::new(trees, &one)
        }));
    }
    let of_sizes: Vec<Option<OfSize<'_>>> = plans
        .iter()
        .map(|plan| {
            let plan = plan.as_ref().filter(|plan| plan.items > 0)?;
            let row = firsts.len();
            firsts.extend_from_slice(&plan.firsts);
            most_items = most_items.max(plan.items);
            Some(OfSize { parts: plan.parts(trees).collect(), row })
        })
        .collect();
    let firsts = stream.from_slice(&firsts)?;
    let mut ends = vec![0; bounds.len()];
    stream.download(bounds, &mut ends)?;
    let searched = |of: &[u32]| of_sizes[(of[1] - of[0]) as usize].as_ref();
    let buckets = ends.windows(2).map(searched).enumerate();
    let buckets: Vec<_> = buckets.filter_map(|(bucket, of_size)| Some((bucket, of_size?))).collect();

    let device = stream.device();
    let streams = (0..STREAMS.min(bounds.len() - 1)).map(|_| device.new_stream());
    let streams = streams.collect::<Result<Vec<_>, _>>()?;
    let queue = |streams: &[Stream], buckets: &[(usize, &OfSize<'_>)]| {
        let mut works = Vec::with_capacity(streams.len());
        for own in streams {
            own.wait_for(stream)?;
            // SAFETY: this function's contract; each bucket belongs to one stream, and `stream` waits for it.
            works.push(unsafe { Work::new(own, trees, Strategy::PerBucket, all, most_items)? });
        }
        let turns = works.len();
        for (turn, &(bucket, of_size)) in buckets.iter().enumerate() {
            let (own, work) = (&streams[turn % turns], &mut works[turn % turns]);
            own.copy(&mut work.cursors, firsts.slice(of_size.row..of_size.row + lists))?;
            own.fill_bytes(&mut work.taken, 0)?;
            work.roots(bounds.slice(bucket..bucket + 2), first_number.slice(bucket..bucket + 1))?;
            of_size.parts.iter().try_for_each(|&(list, part)| work.solve::<M>(list, part))?;
        }
        Ok(())
    };
    let threads = if device.is_emulator() { 1 } else { THREADS };
    let of_threads = streams.par_chunks(streams.len().div_ceil(threads).max(1));
    let buckets_each = buckets.len().div_ceil(of_threads.len().max(1)).max(1);
    let queued = of_threads.zip(buckets.par_chunks(buckets_each));
    let queued = queued.try_for_each(|(streams, buckets)| queue(streams, buckets));
    // The queued work uses memory of the caller.
    let waits = streams.iter().map(|own| stream.wait_for(own)).collect::<Vec<_>>();
    queued.and(waits.into_iter().collect())
}
