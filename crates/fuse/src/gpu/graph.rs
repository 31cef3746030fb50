//! Building one graph: rounds of two launches until no slot is free, then one launch per round to assign fingerprints,
//! in the reverse order.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::fuse::graph::{
    BLOCK, fuse_graph_add, fuse_graph_assign, fuse_graph_count, fuse_graph_free, fuse_graph_remove, fuse_graph_take,
};
use warpset_primitives::sort::By;
use warpset_simt::GlobalMut;

use super::DeviceWidth;
use super::build::{Items, grid};
use crate::{Error, Layout};

/// Rounds per batch, after which the host asks whether slots are still free: in the first batch, and at most; each
/// batch in between has twice the rounds of the one before.
const FIRST_ROUNDS: u32 = 8;
const MOST_ROUNDS: u32 = 128;
/// Bits of hashes by which they are sorted, so that neighbouring threads meet neighbouring slots.
const SORTED_BITS: std::ops::Range<u32> = 48..64;

/// Rounds queued together.
struct Batch {
    /// Two more words than rounds.
    ends: DeviceVec<u32>,
    rounds: u32,
    /// Blocks of each launch.
    blocks: u32,
}

/// Builds the graph in `out`, a zero per slot; whether that was possible. Waits.
pub(super) fn build<F: DeviceWidth>(
    stream: &Stream,
    layout: &Layout,
    items: &mut Items,
    out: GlobalMut<F>,
) -> Result<bool, Error> {
    let (graph, slots, arity) = (layout.graph, layout.slots() as usize, layout.arity as u32);
    let n = layout.keys as usize;
    items.sort(stream, By::ascending().bits(SORTED_BITS))?;
    let mut cells = stream.alloc_zeroed::<u64>(slots)?;
    let mut free = stream.alloc_uninit::<u32>(slots)?;
    let mut failed = stream.alloc_zeroed::<u32>(1)?;
    let mut rounds = FIRST_ROUNDS;
    let mut ends = stream.alloc_zeroed::<u32>(rounds as usize + 2)?;
    let (hashes, (contents, given)) = (items.hashes.global(), items.contents());
    // SAFETY: all memory is this build's own, used in the order of the stream alone: a cell and a place per slot.
    unsafe {
        fuse_graph_add { hashes, n, graph, arity, cells: cells.global_mut(), failed: failed.global_mut() }
            .launch(stream, grid(n))?;
        fuse_graph_free { cells: cells.global(), slots, free: free.global_mut(), end: ends.global_mut().at(1) }
            .launch(stream, grid(slots))?;
    }
    if stream.download_first(&failed)? != 0 {
        return Ok(false);
    }
    let mut listed = 0;
    stream.download(ends.slice(1..2), std::slice::from_mut(&mut listed))?;
    let mut batches: Vec<Batch> = Vec::new();
    let mut last_round = listed;
    while last_round > 0 {
        let blocks = blocks_for(stream, last_round);
        let config = LaunchConfig::new(blocks, BLOCK);
        for round in 0..rounds {
            // SAFETY: as above; rounds follow each other on the stream, and each slot is listed once.
            unsafe {
                let (cells, free, ends) = (cells.global_mut(), free.global_mut(), ends.global_mut());
                fuse_graph_take { hashes, graph, arity, cells, free, ends, round }.launch(stream, config)?;
                fuse_graph_remove { hashes, graph, arity, cells, free, ends, round }.launch(stream, config)?;
            }
        }
        let mut last = [0; 2];
        stream.download(ends.slice(rounds as usize..), &mut last)?;
        (last_round, listed) = (last[1] - last[0], last[1]);
        batches.push(Batch { ends, rounds, blocks });
        rounds = (2 * rounds).min(MOST_ROUNDS);
        ends = stream.alloc_zeroed::<u32>(rounds as usize + 2)?;
        stream.upload(ends.slice_mut(..2), &last)?;
    }
    let mut taken = stream.alloc_zeroed::<u64>(1)?;
    if listed > 0 {
        let (free, listed) = (free.global(), listed as usize);
        // SAFETY: as above; that many slots are listed.
        unsafe { fuse_graph_count { free, n: listed, taken: taken.global_mut() }.launch(stream, grid(listed))? };
    }
    if stream.download_first(&taken)? != n as u64 {
        return Ok(false);
    }
    for Batch { ends, rounds, blocks } in batches.iter().rev() {
        for round in (0..*rounds).rev() {
            let (cells, free, ends) = (cells.global_mut(), free.global(), ends.global());
            // SAFETY: as above; rounds come in the reverse order.
            unsafe {
                fuse_graph_assign::<F> { hashes, graph, arity, cells, free, ends, round, contents, given, out }
                    .launch(stream, LaunchConfig::new(*blocks, BLOCK))?;
            }
        }
    }
    stream.synchronize()?;
    Ok(true)
}

/// Returns the number of thread blocks for rounds of that many slots; later rounds of a batch have fewer slots, or a
/// few more.
fn blocks_for(stream: &Stream, slots: u32) -> u32 {
    /// Blocks of a multiprocessor that hide each other's waiting.
    const RESIDENT: u32 = 8;
    let most = stream.device().properties().multiprocessors.max(1) * RESIDENT;
    slots.div_ceil(BLOCK).clamp(1, most)
}

#[cfg(test)]
mod tests {
    use warpset_core::fuse::cell::MOST_IN_GRAPH;
    use warpset_core::fuse::graph::Graph;

    use super::*;

    #[test]
    fn full_counters_are_noticed() {
        let stream = warpset_gpu::testing::deferred(1).new_stream().unwrap();
        let graph = Graph { starts: 4, segment_bits: 2 };
        for (n, full) in [(MOST_IN_GRAPH as usize, 0), (MOST_IN_GRAPH as usize + 1, 1)] {
            let hashes = stream.alloc_zeroed::<u64>(n).unwrap();
            let mut cells = stream.alloc_zeroed::<u64>(graph.slots(3) as usize).unwrap();
            let mut failed = stream.alloc_zeroed::<u32>(1).unwrap();
            let (hashes, cells) = (hashes.global(), cells.global_mut());
            let kernel = fuse_graph_add { hashes, n, graph, arity: 3, cells, failed: failed.global_mut() };
            // SAFETY: a hash per key and a cell per slot, used by this stream alone.
            unsafe { kernel.launch(&stream, grid(n)).unwrap() };
            assert_eq!(stream.download_first(&failed).unwrap(), full, "{n} keys");
        }
    }
}
