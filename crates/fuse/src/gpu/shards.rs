//! Building shards: hashes sorted by shard, then a thread block per shard.

use warpset_gpu::{LaunchConfig, Stream};
use warpset_kernels::fuse::keys::fuse_shard_begins;
use warpset_kernels::fuse::shards::{BLOCK, fuse_shards_four, fuse_shards_three, shared_bytes};
use warpset_primitives::sort::By;
use warpset_simt::GlobalMut;

use super::DeviceWidth;
use super::build::{Items, Share, grid};
use crate::{Arity, Error, Layout};

/// Builds these shards in `out`, a zero per slot, with a byte per shard in `seeds`; whether that was possible. Waits.
pub(super) fn build<F: DeviceWidth>(
    stream: &Stream,
    share: &Share,
    items: &mut Items,
    out: GlobalMut<F>,
    seeds: GlobalMut<u8>,
) -> Result<bool, Error> {
    let Share { layout: Layout { graph, shards, arity, .. }, graphs } = share.clone();
    // The high half says the shard.
    items.sort(stream, By::ascending().bits(32..64))?;
    let mut begins = stream.alloc_uninit::<u64>(shards as usize + 1)?;
    let mut failed = stream.alloc_zeroed::<u32>(1)?;
    let (hashes, (contents, given), failed_at) = (items.hashes.global(), items.contents(), failed.global_mut());
    let config = LaunchConfig::new(share.count() as u32, BLOCK).shared(shared_bytes(share.layout.graph_slots() as u32));
    // SAFETY: all memory is this build's own, used in the order of the stream alone: places for the shards' begins,
    // their slots and their seeds.
    unsafe {
        fuse_shard_begins { hashes, n: items.hashes.len(), shards, begins: begins.global_mut() }
            .launch(stream, grid(shards as usize + 1))?;
        // Places of the shards here; no key belongs to another one.
        let begins = begins.global().at(graphs.start as usize);
        match arity {
            Arity::Three => {
                fuse_shards_three::<F> { hashes, begins, graph, contents, given, out, seeds, failed: failed_at }
                    .launch(stream, config)?
            }
            Arity::Four => {
                fuse_shards_four::<F> { hashes, begins, graph, contents, given, out, seeds, failed: failed_at }
                    .launch(stream, config)?
            }
        }
    }
    Ok(stream.download_first(&failed)? == 0)
}
