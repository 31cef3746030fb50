//! Filters rewritten from their own fingerprints and an ascending batch.

use warpset_core::quotient::combine::Combination;
use warpset_core::quotient::slots::Container;
use warpset_gpu::{DeviceSlice, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::update::rebuild::{self, SHARED_BYTES, THREADS, TILE_BLOCKS, quotient_update_rebuild};
use warpset_kernels::quotient::update::rebuild_relative::{
    MAX_SLOTS, MIN_QUOTIENT_BITS, quotient_update_insert_bytes, quotient_update_insert_packed,
    quotient_update_remove_bytes, quotient_update_remove_packed,
};
use warpset_primitives::LookBack;
use warpset_simt::KernelInfo;

use crate::cpu::check_fit;
use crate::gpu::fingerprints::parameters;
use crate::gpu::zeroed_words;
use crate::slot_kind::Change;
use crate::standard::gpu::standard_word::StandardWord;
use crate::{Error, Layout};

/// Whether a batch of `n` is combined by places relative to a tile: of few bits, so that it is faster.
fn is_relative(layout: &Layout, n: usize) -> bool {
    layout.quotient_bits() >= MIN_QUOTIENT_BITS && layout.slots() < MAX_SLOTS && n < 1 << 32
}

/// The kernel of [`rebuilt`] for a batch of `n`.
pub(super) fn kernel<W: StandardWord>(layout: &Layout, n: usize, change: Change) -> &'static KernelInfo {
    if !is_relative(layout, n) {
        return quotient_update_rebuild::<W>::INFO;
    }
    match (change, layout.container()) {
        (Change::Insert, Container::Packed) => quotient_update_insert_packed::<W>::INFO,
        (Change::Insert, Container::Bytes) => quotient_update_insert_bytes::<W>::INFO,
        (Change::Remove, Container::Packed) => quotient_update_remove_packed::<W>::INFO,
        (Change::Remove, Container::Bytes) => quotient_update_remove_bytes::<W>::INFO,
    }
}

/// What `old`, words of this layout, and an ascending batch make, in other words; and how many fingerprints that are. In one
/// pass. Waits, because only the result shows whether it fits.
pub(super) fn rebuilt<W: StandardWord>(
    stream: &Stream,
    layout: &Layout,
    old: &DeviceVec<u64>,
    batch: DeviceSlice<'_, W>,
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
    let (n, batch, new) = (batch.len(), batch.global(), words.global_mut());
    let config = LaunchConfig::new(tiles as u32, THREADS).shared(SHARED_BYTES);
    macro_rules! launch {
        ($kernel:ident $(, $rule:ident: $value:expr)?) => {
            $kernel { old, slots, parameters, batch, n, $($rule: $value,)? look_back, ticket, words: new, totals }
                .launch(stream, config)
        };
    }
    // SAFETY: the old words are a sound filter and borrowed; the new ones are those of its layout, zero, and no other work
    // accesses them or the scratch memory; the batch is ascending, and lives until the copy has been waited for.
    unsafe {
        if !is_relative {
            launch!(quotient_update_rebuild, rule: combination as u32)?;
        } else {
            match (change, layout.container()) {
                (Change::Insert, Container::Packed) => launch!(quotient_update_insert_packed)?,
                (Change::Insert, Container::Bytes) => launch!(quotient_update_insert_bytes)?,
                (Change::Remove, Container::Packed) => launch!(quotient_update_remove_packed)?,
                (Change::Remove, Container::Bytes) => launch!(quotient_update_remove_bytes)?,
            }
        }
    }
    let mut totals = [0; 2];
    scratch.download_results(stream, &mut totals)?;
    let [items, end] = totals;
    check_fit(layout, items, end)?;
    Ok((words, items))
}
