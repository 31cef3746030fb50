//! Filters rewritten from their own fingerprints and an ascending batch.

use warpset_gpu::{DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::rank_select::rebuild::{
    BLOCK, MAX_SLOTS, MIN_QUOTIENT_BITS, TILE_BLOCKS, look_back_words, quotient_rank_select_rebuild, shared_bytes,
};
use warpset_primitives::LookBack;

use crate::cpu::check_fit;
use crate::gpu::QuotientFilter;
use crate::gpu::fingerprints::{FingerprintWord, Fingerprints, parameters, with_width};
use crate::gpu::zeroed_words;
use crate::slot_kind::Change;
use crate::{Error, Layout, RankSelect};

/// The fewest slots per inserted key for which one pass is faster than extracting, merging and laying out, as measured
/// (`docs/performance-log.md`): where nearly all tiles have nothing to merge.
const INSERT_SLOTS_PER_KEY: u64 = 4096;

/// Whether a batch of `n` is tried in one pass.
pub(super) fn is_in_one_pass(layout: &Layout, n: usize, change: Change) -> bool {
    let is_small = (n as u64).saturating_mul(INSERT_SLOTS_PER_KEY) <= layout.slots();
    let has_kernel = layout.quotient_bits() >= MIN_QUOTIENT_BITS && layout.slots() < MAX_SLOTS;
    has_kernel && (change == Change::Remove || is_small)
}

/// Rewrites a filter with an ascending batch: in one pass, or by extracting, combining and laying out, where that is faster
/// and where tiles are crowded. Returns by how many the fingerprints changed; waits.
pub(super) fn rebuild(
    filter: &mut QuotientFilter<RankSelect>,
    stream: &Stream,
    batch: &Fingerprints,
    change: Change,
) -> Result<u64, Error> {
    if is_in_one_pass(filter.layout(), batch.len(), change)
        && let Some(changed) = in_one_pass(filter, stream, batch, change)?
    {
        return Ok(changed);
    }
    filter.rewrite_with(stream, batch, change)
}

/// The same in one pass; `None` if a tile is too crowded, and the filter is as it was.
pub(super) fn in_one_pass(
    filter: &mut QuotientFilter<RankSelect>,
    stream: &Stream,
    batch: &Fingerprints,
    change: Change,
) -> Result<Option<u64>, Error> {
    let (layout, before) = (*filter.layout(), filter.items);
    let rebuilt = with_width!(batch, |items| rebuilt(stream, &layout, &filter.words, items.as_slice(), change)?);
    let Some(rebuilt) = rebuilt else { return Ok(None) };
    (filter.words, filter.items) = rebuilt;
    Ok(Some(filter.items.abs_diff(before)))
}

/// What `old`, words of this layout, for which there is the kernel, and an ascending batch make, in other words; and how many fingerprints that are. `None`
/// if the kernel has not room for some part of them. Waits, because only the result shows whether it fits.
fn rebuilt<F: FingerprintWord>(
    stream: &Stream,
    layout: &Layout,
    old: &DeviceVec<u64>,
    batch: DeviceSlice<'_, F>,
    change: Change,
) -> Result<Option<(DeviceVec<u64>, u64)>, Error> {
    let mut words = zeroed_words(layout, stream)?;
    let tiles = (layout.quotients() / 64).div_ceil(TILE_BLOCKS) as usize;
    let mut scratch = LookBack::with_results(stream, look_back_words(tiles), 3)?;
    let (look_back, ticket, totals) = (scratch.words(), scratch.ticket(), scratch.results());
    let (old, slots, parameters) = (old.global(), layout.slots(), parameters(layout));
    let (n, batch, new) = (batch.len(), batch.global(), words.global_mut());
    let removes = (change == Change::Remove) as u32;
    let config = LaunchConfig::new(tiles as u32, BLOCK).shared(shared_bytes(size_of::<F>()));
    // SAFETY: the old words are a sound filter and borrowed; the new ones are those of its layout, zero, and no other work
    // accesses them or the scratch memory, which is zero; the batch is ascending, and lives until the copy has been waited
    // for.
    unsafe {
        quotient_rank_select_rebuild {
            old,
            slots,
            parameters,
            batch,
            n,
            removes,
            look_back,
            ticket,
            words: new,
            totals,
        }
        .launch(stream, config)?;
    }
    let mut totals = [0; 3];
    scratch.download_results(stream, &mut totals)?;
    let [items, end, gave_up] = totals;
    if gave_up != 0 {
        return Ok(None);
    }
    check_fit(layout, items, end)?;
    Ok(Some((words, items)))
}
