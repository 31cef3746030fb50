//! Slots of the standard quotient filter on devices.

use warpset_gpu::batch::Answers;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::standard::build::quotient_build;
use warpset_kernels::quotient::standard::extract::{
    BLOCK, SHARED_BYTES, TILE_BLOCKS, look_back_words, quotient_extract,
};
use warpset_primitives::LookBack;
use warpset_simt::{Global, GlobalMut};

use crate::gpu::fingerprints::{Fingerprints, with_width};
use crate::gpu::launch::parameters;
use crate::gpu::scan::Arguments;
use crate::gpu::slot_kind::{Asked, DeviceSlots};
use crate::gpu::update::crossover::InPlaceRule;
use crate::gpu::update::in_place::Round;
use crate::gpu::{DeviceSlotKind, LookupMethod, QuotientFilter};
use crate::slot_kind::Change;
use crate::{Error, Layout, Standard};

mod crossover;
mod in_place;
mod lookup;
mod rebuild;

/// Standard quotient filter on a device.
type Filter = QuotientFilter<Standard>;

impl DeviceSlotKind for Standard {}

impl DeviceSlots for Standard {
    const IN_PLACE: &'static [InPlaceRule] = &in_place::RULES;
    const MOST_SLOTS_IN_PLACE: u64 = 1 << 32;

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
            quotient_build { fingerprints, n, parameters, slots, look_back, ticket, words, totals }
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
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
        let (slots, parameters) = (layout.slots(), parameters(layout));
        // SAFETY: scratch is zero, this call's own, and freed in the order of the stream; the rest is the contract of
        // this method.
        with_width!(out, |out| unsafe {
            let out = out.global_mut();
            quotient_extract { words, slots, parameters, dropped, look_back, ticket, out, n: items }
                .launch(stream, config)?;
        });
        Ok(())
    }

    unsafe fn look_up(filter: &Filter, asked: Asked<'_>, answers: Answers, method: LookupMethod) -> Result<(), Error> {
        // SAFETY: the contract is the same.
        unsafe { filter.look_up_keys(asked, answers, method) }
    }

    /// Extracts all fingerprints, in which copies are counted.
    fn prepass_of_counts(filter: &Filter, stream: &Stream) -> Result<Option<Fingerprints>, Error> {
        filter.extract(stream).map(Some)
    }

    unsafe fn counts(
        filter: &Filter,
        asked: Asked<'_>,
        stored: Option<&Fingerprints>,
        counts: GlobalMut<u64>,
    ) -> Result<(), Error> {
        let stored = stored.expect("the prepass gives all fingerprints");
        // SAFETY: the contract is the same.
        unsafe { filter.count_among(asked, stored, counts) }
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
        rebuild::rebuilt(stream, layout, old, batch, change).map(Some)
    }
}
