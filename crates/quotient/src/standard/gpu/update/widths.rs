//! The kernels of updates, for fingerprints of both widths.

use warpset_core::quotient::combine::Combination;
use warpset_gpu::{GpuError, LaunchConfig, Stream};
use warpset_kernels::quotient::update::{in_place, rebuild, rebuild_near, superclusters};
use warpset_primitives::select;
use warpset_simt::{Global, GlobalMut};

use crate::standard::gpu::fingerprints::grid;

/// A filter that is changed in place.
#[derive(Clone, Copy)]
pub(super) struct Target {
    pub(super) words: GlobalMut<u64>,
    pub(super) slots: u64,
    pub(super) parameters: u32,
    pub(super) removes: bool,
}

/// What superclusters are found by: see [`superclusters`].
#[derive(Clone, Copy)]
pub(super) struct Labels {
    pub(super) flags: Global<u64>,
    pub(super) labels: Global<u32>,
    pub(super) winners: GlobalMut<u32>,
}

/// What a filter is written anew from, and where to.
#[derive(Clone, Copy)]
pub(super) struct Anew {
    pub(super) old: Global<u64>,
    pub(super) slots: u64,
    pub(super) parameters: u32,
    pub(super) combination: Combination,
    /// Whether the filter and the batch are what the kernels of [`rebuild_near`] ask for.
    pub(super) is_near: bool,
    pub(super) look_back: GlobalMut<u64>,
    pub(super) ticket: GlobalMut<u32>,
    pub(super) words: GlobalMut<u64>,
    pub(super) totals: GlobalMut<u64>,
}

/// Fingerprints of 32 or 64 bits.
pub(in crate::standard::gpu) trait Width: select::Item {
    /// Queues the bidding of a batch, and what the winners do.
    ///
    /// # Safety
    /// As the kernels of [`superclusters`] ask.
    unsafe fn work_off_winners(
        stream: &Stream,
        batch: Global<Self>,
        target: Target,
        labels: Labels,
        left: GlobalMut<u32>,
        changed: GlobalMut<u64>,
    ) -> Result<(), GpuError>;

    /// Queues a round in place of an ascending batch; `left` is written by insertions only.
    ///
    /// # Safety
    /// As the kernels of [`in_place`] ask.
    unsafe fn work_in_place(
        stream: &Stream,
        batch: Global<Self>,
        target: Target,
        regions: GlobalMut<u64>,
        left: GlobalMut<u32>,
        changed: GlobalMut<u64>,
    ) -> Result<(), GpuError>;

    /// Queues the writing of a filter from another and an ascending batch.
    ///
    /// # Safety
    /// As the kernels of [`rebuild`] ask.
    unsafe fn write_anew(
        stream: &Stream,
        config: LaunchConfig,
        batch: Global<Self>,
        anew: Anew,
    ) -> Result<(), GpuError>;
}

macro_rules! widths {
    ($($word:ty: $bid:ident, $insert_winners:ident, $remove_winners:ident, $regions:ident, $insert_sorted:ident,
        $remove_sorted:ident, $rebuild:ident, $insert_near:ident, $remove_near:ident;)*) => {$(
        impl Width for $word {
            unsafe fn work_off_winners(
                stream: &Stream,
                batch: Global<$word>,
                target: Target,
                labels: Labels,
                left: GlobalMut<u32>,
                changed: GlobalMut<u64>,
            ) -> Result<(), GpuError> {
                use superclusters::{$bid as bid, $insert_winners as insert, $remove_winners as remove};
                let (n, Target { words, slots, parameters, removes }) = (batch.len(), target);
                let Labels { flags, labels, winners } = labels;
                // SAFETY: a thread a fingerprint; the rest is the caller's promise.
                unsafe {
                    bid::launch(stream, grid(n), batch, n, parameters, flags, labels, winners)?;
                    let winners = winners.as_const();
                    if removes {
                        remove::launch(
                            stream, grid(n), batch, n, words, slots, parameters, flags, labels, winners, left, changed,
                        )
                    } else {
                        insert::launch(
                            stream, grid(n), batch, n, words, slots, parameters, flags, labels, winners, left, changed,
                        )
                    }
                }
            }

            unsafe fn work_in_place(
                stream: &Stream,
                batch: Global<$word>,
                target: Target,
                regions: GlobalMut<u64>,
                left: GlobalMut<u32>,
                changed: GlobalMut<u64>,
            ) -> Result<(), GpuError> {
                use in_place::{$insert_sorted as insert, $regions as find, $remove_sorted as remove};
                let (n, Target { words, slots, parameters, removes }) = (batch.len(), target);
                // SAFETY: a thread a fingerprint; the rest is the caller's promise.
                unsafe {
                    find::launch(
                        stream, grid(n), batch, n, words.as_const(), slots, parameters, removes as u32, regions,
                    )?;
                    let regions = regions.as_const();
                    if removes {
                        remove::launch(stream, grid(n), batch, n, words, slots, parameters, regions, changed)
                    } else {
                        insert::launch(stream, grid(n), batch, n, words, slots, parameters, regions, left, changed)
                    }
                }
            }

            unsafe fn write_anew(
                stream: &Stream,
                config: LaunchConfig,
                batch: Global<$word>,
                anew: Anew,
            ) -> Result<(), GpuError> {
                let Anew { old, slots, parameters, combination, is_near, look_back, ticket, words, totals } = anew;
                let n = batch.len();
                // SAFETY: the caller's promise is the same.
                unsafe {
                    if is_near {
                        return if combination == Combination::Difference {
                            rebuild_near::$remove_near::launch(
                                stream, config, old, slots, parameters, batch, n, look_back, ticket, words, totals,
                            )
                        } else {
                            rebuild_near::$insert_near::launch(
                                stream, config, old, slots, parameters, batch, n, look_back, ticket, words, totals,
                            )
                        };
                    }
                    let rule = combination as u32;
                    rebuild::$rebuild::launch(
                        stream, config, old, slots, parameters, batch, n, rule, look_back, ticket, words, totals,
                    )
                }
            }
        }
    )*};
}
widths! {
    u32: quotient_update_bid_u32, quotient_update_insert_winners_u32, quotient_update_remove_winners_u32,
        quotient_update_regions_u32, quotient_update_insert_sorted_u32, quotient_update_remove_sorted_u32,
        quotient_update_rebuild_u32, quotient_update_insert_near_u32, quotient_update_remove_near_u32;
    u64: quotient_update_bid_u64, quotient_update_insert_winners_u64, quotient_update_remove_winners_u64,
        quotient_update_regions_u64, quotient_update_insert_sorted_u64, quotient_update_remove_sorted_u64,
        quotient_update_rebuild_u64, quotient_update_insert_near_u64, quotient_update_remove_near_u64;
}
