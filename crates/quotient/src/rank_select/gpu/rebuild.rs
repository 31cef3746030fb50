//! Filters rewritten from their own fingerprints and an ascending batch.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::rank_select::rebuild::{
    BLOCK, MAX_SLOTS, MIN_QUOTIENT_BITS, TILE_BLOCKS, look_back_words, quotient_rank_select_rebuild, shared_bytes,
};
use warpset_primitives::LookBack;

use crate::cpu::rewrite::check_fit;
use crate::gpu::fingerprints::{Fingerprints, with_width};
use crate::gpu::launch::{parameters, zeroed_words};
use crate::slot_kind::Change;
use crate::{Error, Layout};

/// Fewest slots per inserted key for which one pass is faster than extracting, merging and laying out, as measured
/// (`docs/performance/quotient.md`): nearly all tiles have nothing to merge.
const INSERT_SLOTS_PER_KEY: u64 = 4096;

/// Whether a batch of `n` is tried in one pass.
pub(super) fn is_in_one_pass(layout: &Layout, n: usize, change: Change) -> bool {
    let is_small = (n as u64).saturating_mul(INSERT_SLOTS_PER_KEY) <= layout.slots();
    let has_kernel = layout.quotient_bits() >= MIN_QUOTIENT_BITS && layout.slots() < MAX_SLOTS;
    has_kernel && (change == Change::Remove || is_small)
}

/// Merges an ascending batch with `old`, words of this layout, into new words, or takes the batch out of them, in one
/// pass. Returns the words and their number of fingerprints, or `None` if a tile is too crowded. Layout and batch have
/// been accepted by [`is_in_one_pass`]. Waits, because only the result shows whether it fits.
pub(super) fn rebuilt(
    stream: &Stream,
    layout: &Layout,
    old: &DeviceVec<u64>,
    batch: &Fingerprints,
    change: Change,
) -> Result<Option<(DeviceVec<u64>, u64)>, Error> {
    let mut words = zeroed_words(layout, stream)?;
    let tiles = (layout.quotients() / 64).div_ceil(TILE_BLOCKS) as usize;
    let mut scratch = LookBack::with_results(stream, look_back_words(tiles), 3)?;
    let (look_back, ticket, totals) = (scratch.words(), scratch.ticket(), scratch.results());
    let (old, slots, parameters) = (old.global(), layout.slots(), parameters(layout));
    let (n, new) = (batch.len(), words.global_mut());
    let removes = (change == Change::Remove) as u32;
    let config = LaunchConfig::new(tiles as u32, BLOCK).shared(shared_bytes(batch.bytes_per_item()));
    // SAFETY: the old words are a sound filter and borrowed; the new ones are those of its layout, zero, and no other
    // work accesses them or the scratch memory, which is zero; the batch is ascending, and lives until the copy has
    // been waited for.
    with_width!(batch, |batch| unsafe {
        quotient_rank_select_rebuild {
            old,
            slots,
            parameters,
            batch: batch.global(),
            n,
            removes,
            look_back,
            ticket,
            words: new,
            totals,
        }
        .launch(stream, config)?;
    });
    let mut totals = [0; 3];
    scratch.download_results(stream, &mut totals)?;
    let [items, end, gave_up] = totals;
    if gave_up != 0 {
        return Ok(None);
    }
    check_fit(layout, items, end)?;
    Ok(Some((words, items)))
}
