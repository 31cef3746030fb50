//! Slots of the rank-and-select quotient filter on devices.

use warpset_gpu::batch::Answers;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::rank_select::build::quotient_rank_select_build;
use warpset_kernels::quotient::rank_select::extract::{
    BLOCK, TILE_BLOCKS, look_back_words, quotient_rank_select_extract, shared_bytes,
};
use warpset_primitives::LookBack;
use warpset_simt::{Global, GlobalMut};

use crate::gpu::counted_fingerprints::CountedFingerprints;
use crate::gpu::fingerprints::{Fingerprints, with_width};
use crate::gpu::launch::parameters;
use crate::gpu::scan::Arguments;
use crate::gpu::slot_kind::{Asked, DeviceSlots};
use crate::gpu::update::crossover::InPlaceRule;
use crate::gpu::update::in_place::Round;
use crate::gpu::{DeviceSlotKind, LookupMethod, QuotientFilter};
use crate::slot_kind::{Change, Counts};
use crate::{Error, Layout, RankSelect};

mod counted;
mod device_query;
mod in_place;
mod lookup;
mod rebuild;

pub use device_query::RankSelectQuery;

/// Rank-and-select quotient filter on a device.
type Filter = QuotientFilter<RankSelect>;

impl DeviceSlotKind for RankSelect {}

impl DeviceSlots for RankSelect {
    const IN_PLACE: &'static [InPlaceRule] = &in_place::RULES;
    /// The limit of 2^32 blocks.
    const MOST_SLOTS_IN_PLACE: u64 = 1 << 38;

    unsafe fn launch_scan(
        stream: &Stream,
        config: LaunchConfig,
        sorted: &Fingerprints,
        arguments: Arguments,
    ) -> Result<(), Error> {
        let Arguments { parameters, slots, look_back, ticket, words, totals } = arguments;
        // SAFETY: the fingerprints give their own length; the rest is the contract of this method.
        with_width!(sorted, |sorted| unsafe {
            let (fingerprints, n) = (sorted.global(), sorted.len());
            quotient_rank_select_build { fingerprints, n, parameters, slots, look_back, ticket, words, totals }
                .launch(stream, config)?;
        });
        Ok(())
    }

    unsafe fn extract(
        stream: &Stream,
        layout: &Layout,
        words: Global<u64>,
        items: u64,
        dropped: u32,
        out: &mut Fingerprints,
    ) -> Result<(), Error> {
        let tiles = layout.blocks.div_ceil(TILE_BLOCKS) as usize;
        let mut scratch = LookBack::new(stream, look_back_words(tiles))?;
        let (look_back, ticket) = (scratch.words(), scratch.ticket());
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(shared_bytes(out.bytes_per_item()));
        let (slots, parameters) = (layout.slots(), parameters(layout));
        // SAFETY: scratch is zero, this call's own, and freed in the order of the stream; the rest is the contract of
        // this method.
        with_width!(out, |out| unsafe {
            let out = out.global_mut();
            quotient_rank_select_extract { words, slots, parameters, dropped, look_back, ticket, out, n: items }
                .launch(stream, config)?;
        });
        Ok(())
    }

    unsafe fn look_up(filter: &Filter, asked: Asked<'_>, answers: Answers, method: LookupMethod) -> Result<(), Error> {
        // SAFETY: the contract is the same.
        unsafe { lookup::look_up(filter, asked, answers, method) }
    }

    fn extract_counts(
        filter: &Filter,
        stream: &Stream,
        dropped: u32,
        room: Fingerprints,
    ) -> Result<CountedFingerprints, Error> {
        counted::extract(filter, stream, dropped, room)
    }

    fn lay_out_counts(
        stream: &Stream,
        layout: &Layout,
        counts: &CountedFingerprints,
    ) -> Result<(DeviceVec<u64>, Counts), Error> {
        counted::lay_out(stream, layout, counts)
    }

    /// Returns nothing: copies are counted in the slots.
    fn prepass_of_counts(_: &Filter, _: &Stream) -> Result<Option<Fingerprints>, Error> {
        Ok(None)
    }

    unsafe fn counts(
        filter: &Filter,
        asked: Asked<'_>,
        _: Option<&Fingerprints>,
        counts: GlobalMut<u64>,
    ) -> Result<(), Error> {
        // SAFETY: the contract is the same.
        unsafe { lookup::count(filter, asked, counts) }
    }

    fn free_after_quotients(layout: &Layout, tail: &[u64], first_slot: u64) -> u64 {
        in_place::free_after_quotients(layout, tail, first_slot)
    }

    unsafe fn change_round(round: Round<'_>) -> Result<(), Error> {
        // SAFETY: the contract is the same.
        unsafe { in_place::change_round(round) }
    }

    fn rebuilt(
        stream: &Stream,
        layout: &Layout,
        old: &DeviceVec<u64>,
        batch: &Fingerprints,
        change: Change,
    ) -> Result<Option<(DeviceVec<u64>, u64)>, Error> {
        if !rebuild::is_in_one_pass(layout, batch.len(), change) {
            return Ok(None);
        }
        rebuild::rebuilt(stream, layout, old, batch, change)
    }
}

#[cfg(test)]
mod tests;
