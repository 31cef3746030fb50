//! Filters rewritten from their own fingerprints and an ascending batch.

use warpset_core::quotient::combine::Combination;
use warpset_core::quotient::slots::Container;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::standard::update::rebuild::{
    self, SHARED_BYTES, THREADS, TILE_BLOCKS, quotient_update_rebuild,
};
use warpset_kernels::quotient::standard::update::rebuild_relative::{
    MAX_SLOTS, MIN_QUOTIENT_BITS, quotient_update_insert_bytes, quotient_update_insert_packed,
    quotient_update_remove_bytes, quotient_update_remove_packed,
};
use warpset_primitives::LookBack;

use crate::cpu::rewrite::check_fit;
use crate::gpu::fingerprints::{Fingerprints, with_width};
use crate::gpu::launch::{parameters, zeroed_words};
use crate::slot_kind::Change;
use crate::{Error, Layout};

/// Whether a batch of `n` is combined by places relative to a tile, which have fewer bits and so are faster.
fn is_relative(layout: &Layout, n: usize) -> bool {
    layout.quotient_bits() >= MIN_QUOTIENT_BITS && layout.slots() < MAX_SLOTS && n < 1 << 32
}

/// Merges an ascending batch with `old`, words of this layout, into new words, or takes the batch out of them, in one
/// pass. Returns the words and their number of fingerprints. Waits, because only the result shows whether it fits.
pub(super) fn rebuilt(
    stream: &Stream,
    layout: &Layout,
    old: &DeviceVec<u64>,
    batch: &Fingerprints,
    change: Change,
) -> Result<(DeviceVec<u64>, u64), Error> {
    let combination = match change {
        Change::Remove => Combination::Difference,
        Change::Insert if layout.keeps_duplicates() => Combination::Sum,
        Change::Insert => Combination::Union,
    };
    let is_relative = is_relative(layout, batch.len());
    let mut words = zeroed_words(layout, stream)?;
    let tiles = layout.quotients().div_ceil(64).div_ceil(TILE_BLOCKS) as usize;
    let mut scratch = LookBack::with_results(stream, rebuild::look_back_words(tiles), 2)?;
    let (look_back, ticket, totals) = (scratch.words(), scratch.ticket(), scratch.results());
    let (old, slots, parameters) = (old.global(), layout.slots(), parameters(layout));
    let (n, new) = (batch.len(), words.global_mut());
    let config = LaunchConfig::new(tiles as u32, THREADS).shared(SHARED_BYTES);
    macro_rules! launch {
        ($batch:ident, $kernel:ident $(, $rule:ident: $value:expr)?) => {
            $kernel { old, slots, parameters, batch: $batch, n, $($rule: $value,)? look_back, ticket, words: new, totals }
                .launch(stream, config)
        };
    }
    // SAFETY: the old words are a sound filter and borrowed; the new ones are those of its layout, zero, and no other
    // work accesses them or the scratch memory; the batch is ascending, and lives until the copy has been waited for.
    with_width!(batch, |batch| unsafe {
        let batch = batch.global();
        if !is_relative {
            launch!(batch, quotient_update_rebuild, rule: combination as u32)?;
        } else {
            match (change, layout.container()) {
                (Change::Insert, Container::Packed) => launch!(batch, quotient_update_insert_packed)?,
                (Change::Insert, Container::Bytes) => launch!(batch, quotient_update_insert_bytes)?,
                (Change::Remove, Container::Packed) => launch!(batch, quotient_update_remove_packed)?,
                (Change::Remove, Container::Bytes) => launch!(batch, quotient_update_remove_bytes)?,
            }
        }
    });
    let mut totals = [0; 2];
    scratch.download_results(stream, &mut totals)?;
    let [items, end] = totals;
    check_fit(layout, items, end)?;
    Ok((words, items))
}
