//! Batches of insertions and removals.

use warpset_core::bits::Portable;
use warpset_core::quotient::rank_select::Blocks;
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::quotient::rank_select::in_place::{
    quotient_rank_select_begins, quotient_rank_select_insert_groups, quotient_rank_select_remove_groups,
};
use warpset_kernels::quotient::rank_select::regions::{
    quotient_rank_select_insert_regions, quotient_rank_select_queues, quotient_rank_select_remove_regions,
};
use warpset_primitives::select;
use warpset_simt::EntryOf;

use super::rebuild::{is_in_one_pass, rebuild};
use crate::gpu::QuotientFilter;
use crate::gpu::fingerprints::{Fingerprints, with_width};
use crate::gpu::kernels::of_update as of_any_update;
use crate::slot_kind::Change;
use crate::{Error, RankSelect};

mod crossover;
mod in_place;
mod kernels;
mod regions;

pub(super) use regions::fill as fill_by_regions;

type Filter = QuotientFilter<RankSelect>;

/// How a batch is inserted into a rank-and-select quotient filter on a device, or removed from it. All give the same bytes.
/// Insertions in place take memory for a copy of the filter, unless it is clear from the start that the batch fits.
/// Batches of nearly 2^32 keys are always rebuilt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpdateMethod {
    /// One of the others, by the size of the batch and of the filter and by its load, as measured
    /// (see `docs/performance-log.md`).
    #[default]
    Automatic,
    /// The paper's (section V-B, algorithm 9): the sorted batch stands in queues, one per block. One thread per region of
    /// the filter works off its queues as far as nothing reaches out of the region. Regions are one block at first, and
    /// grow.
    Regions,
    /// The sorted batch walks to its superclusters, and one thread changes each. What would reach into the next one of the
    /// batch follows in the next round; what insertions have left after some rounds is merged.
    InPlace,
    /// The filter is rewritten from its own fingerprints and the sorted batch: in one pass, or extracted, combined and laid
    /// out, where that is faster.
    Rebuild,
}

/// A word that holds a fingerprint, for which there are the kernels of updates.
pub(super) trait UpdateWord:
    select::Item
    + EntryOf<quotient_rank_select_begins<Self>>
    + EntryOf<quotient_rank_select_insert_groups<Self>>
    + EntryOf<quotient_rank_select_remove_groups<Self>>
    + EntryOf<quotient_rank_select_queues<Self>>
    + EntryOf<quotient_rank_select_insert_regions<Self>>
    + EntryOf<quotient_rank_select_remove_regions<Self>>
{
    /// These, whatever their width is.
    fn fingerprints(words: DeviceVec<Self>) -> Fingerprints;
}

impl UpdateWord for u32 {
    fn fingerprints(words: DeviceVec<u32>) -> Fingerprints {
        Fingerprints::Narrow(words)
    }
}

impl UpdateWord for u64 {
    fn fingerprints(words: DeviceVec<u64>) -> Fingerprints {
        Fingerprints::Wide(words)
    }
}

/// See [`DeviceSlotKind::update`](crate::gpu::DeviceSlotKind::update).
pub(super) fn update(
    filter: &mut Filter,
    stream: &Stream,
    n: usize,
    batch: impl Fn(&Stream) -> Result<Fingerprints, Error>,
    change: Change,
    method: UpdateMethod,
) -> Result<u64, Error> {
    let method = method_for(filter, n, change, method);
    let kernels = if method == UpdateMethod::Rebuild && !is_in_one_pass(&filter.layout, n, change) {
        of_any_update(filter, change, n)
    } else {
        kernels::of_update(&filter.layout, n, change, method)
    };
    stream.device().with_kernels(&kernels, || {
        let sorted = batch(stream)?.sorted(&filter.layout, stream)?;
        if method == UpdateMethod::Rebuild {
            return rebuild(filter, stream, &sorted, change);
        }
        if change == Change::Remove || surely_fits(filter, stream, n as u64)? {
            if let Some(changed) = in_words(filter, stream, sorted, change, method)? {
                return Ok(changed);
            }
        } else {
            let mut words = stream.alloc_uninit::<u64>(filter.words.len())?;
            stream.copy(&mut words, &filter.words)?;
            let before = filter.items;
            match in_words(filter, stream, sorted, change, method) {
                Ok(Some(changed)) if filter.items <= filter.layout.limit => return Ok(changed),
                _ => (filter.words, filter.items) = (words, before),
            }
        }
        // Rebuilding says why it does not fit.
        rebuild(filter, stream, &batch(stream)?.sorted(&filter.layout, stream)?, change)
    })
}

/// Changes the words as they are; the batch is ascending. Returns by how many fingerprints the filter changed; on an error,
/// and where there is `None` because the batch does not fit, the filter may have been changed.
fn in_words(
    filter: &mut Filter,
    stream: &Stream,
    batch: Fingerprints,
    change: Change,
    method: UpdateMethod,
) -> Result<Option<u64>, Error> {
    match method {
        UpdateMethod::Regions => with_width!(batch, |batch| regions::change(filter, stream, &batch, change)),
        _ => with_width!(batch, |batch| in_place::change(filter, stream, batch, change)),
    }
}

/// The method that is taken: the fastest where none is asked for, and one that can count that far.
fn method_for(filter: &Filter, keys: usize, change: Change, asked: UpdateMethod) -> UpdateMethod {
    // Threads, and places in queues, are counted in 32 bits.
    if keys >= u32::MAX as usize || filter.layout.blocks >= 1 << 32 {
        return UpdateMethod::Rebuild;
    }
    match asked {
        UpdateMethod::Automatic => {
            let removes = change == Change::Remove;
            crossover::update_method(keys as u64, filter.layout.slots(), filter.load_factor(), removes)
        }
        other => other,
    }
}

/// Whether this many fingerprints fit whatever they are. Waits.
fn surely_fits(filter: &Filter, stream: &Stream, keys: u64) -> Result<bool, Error> {
    let layout = &filter.layout;
    if filter.items.saturating_add(keys) > layout.limit {
        return Ok(false);
    }
    // From the block of the last quotient on, all items together are one slot further per key at most.
    let block = (layout.quotients() - 1) / 64;
    let from = block * layout.block_words();
    let mut tail = vec![0; (layout.words() - from) as usize];
    stream.download(filter.words.slice(from as usize..), &mut tail)?;
    let blocks = Blocks::new(&tail[..], layout.blocks - block, layout.remainder_bits());
    let free = block * 64 + blocks.free_after(layout.quotients() - 1 - block * 64, Portable);
    Ok(free.max(layout.quotients()) + keys < layout.slots())
}

#[cfg(all(test, not(warpset_host_tests)))]
mod tests;
