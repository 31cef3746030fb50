//! Building shards: hashes sorted by shard, then a thread block per shard.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::fuse::keys::fuse_shard_begins;
use warpset_kernels::fuse::shards::{BLOCK, fuse_shards_four, fuse_shards_three, shared_bytes};
use warpset_primitives::sort::By;

use super::DeviceWidth;
use super::build::{grid, sort};
use crate::{Arity, Error, Layout};

/// Builds all shards in `words`, which are zero; whether that was possible. Waits.
pub(super) fn build<F: DeviceWidth>(
    stream: &Stream,
    layout: &Layout,
    hashes: &mut DeviceVec<u64>,
    words: &mut DeviceVec<u64>,
) -> Result<bool, Error> {
    let (graph, shards) = (layout.graph, layout.shards);
    // The high half says the shard.
    sort(stream, hashes, By::ascending().bits(32..64))?;
    let mut begins = stream.alloc_uninit::<u64>(shards as usize + 1)?;
    let mut failed = stream.alloc_zeroed::<u32>(1)?;
    let seeds = words.global_mut().at(layout.slot_words() as usize).cast();
    let (hashes, out, failed_at) = (hashes.global(), words.global_mut().cast(), failed.global_mut());
    let config = LaunchConfig::new(shards as u32, BLOCK).shared(shared_bytes(layout.graph_slots() as u32));
    // SAFETY: all memory is this build's own, used in the order of the stream alone: places for the shards' begins,
    // their slots and their seeds.
    unsafe {
        fuse_shard_begins { hashes, n: layout.keys as usize, shards, begins: begins.global_mut() }
            .launch(stream, grid(shards as usize + 1))?;
        let begins = begins.global();
        match layout.arity {
            Arity::Three => fuse_shards_three::<F> { hashes, begins, graph, out, seeds, failed: failed_at }
                .launch(stream, config)?,
            Arity::Four => {
                fuse_shards_four::<F> { hashes, begins, graph, out, seeds, failed: failed_at }.launch(stream, config)?
            }
        }
    }
    Ok(stream.download_first(&failed)? == 0)
}
