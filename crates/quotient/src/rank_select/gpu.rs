//! The slots of the rank-and-select quotient filter on devices.

use warpset_gpu::batch::Answers;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::rank_select::build::quotient_rank_select_build;
use warpset_kernels::quotient::rank_select::counted::{
    quotient_rank_select_build_counted, quotient_rank_select_count_counted, quotient_rank_select_count_counted_paired,
    quotient_rank_select_expand, quotient_rank_select_extract_counted,
};
use warpset_kernels::quotient::rank_select::extract::{
    BLOCK, TILE_BLOCKS, look_back_words, quotient_rank_select_extract, shared_bytes,
};
use warpset_kernels::quotient::rank_select::lookup::{quotient_rank_select_count, quotient_rank_select_count_paired};
use warpset_kernels::quotient::rank_select::rebuild::quotient_rank_select_rebuild;
use warpset_primitives::LookBack;
use warpset_simt::{EntryOf, Global, GlobalMut, KernelInfo};

use crate::gpu::counts::Counts;
use crate::gpu::fingerprints::{FingerprintWord, Fingerprints, parameters};
use crate::gpu::scan::{Arguments, ScanKernel, scan};
use crate::gpu::{DeviceSlotKind, LookupMethod, QuotientFilter};
use crate::slot_kind::{Change, Tally};
use crate::{Error, Layout, RankSelect};

mod ask;
mod counted;
mod lookup;
mod rebuild;
mod update;

pub use ask::RankSelectQuery;
pub use update::UpdateMethod;

/// A word that holds a fingerprint, for which rank-and-select quotient filters have all their kernels.
pub trait RankSelectWord:
    EntryOf<quotient_rank_select_build<Self>>
    + EntryOf<quotient_rank_select_extract<Self>>
    + EntryOf<quotient_rank_select_rebuild<Self>>
    + EntryOf<quotient_rank_select_expand<Self>>
    + EntryOf<quotient_rank_select_build_counted<Self>>
    + EntryOf<quotient_rank_select_extract_counted<Self>>
    + Sized
{
}

impl RankSelectWord for u32 {}
impl RankSelectWord for u64 {}

/// How ascending fingerprints are laid out in a rank-and-select quotient filter on a device. All give the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuildMethod {
    /// An associative scan gives each item its slot in one pass, as in a standard quotient filter.
    #[default]
    Scan,
    /// The paper's insertion by regions (section V-B, algorithm 9) into an empty filter, one thread per region.
    RegionInserts,
}

impl DeviceSlotKind for RankSelect {
    type BuildMethod = BuildMethod;
    type UpdateMethod = UpdateMethod;

    fn layout_kernels<F: FingerprintWord>(method: BuildMethod) -> Vec<&'static KernelInfo> {
        match method {
            BuildMethod::Scan => vec![quotient_rank_select_build::<F>::INFO],
            // It is there to be compared: each launch loads what it needs.
            _ => vec![],
        }
    }

    fn counted_kernels<F: FingerprintWord>() -> Vec<&'static KernelInfo> {
        vec![quotient_rank_select_build_counted::<F>::INFO, quotient_rank_select_expand::<F>::INFO]
    }

    fn extract_kernel<F: FingerprintWord>() -> &'static KernelInfo {
        quotient_rank_select_extract::<F>::INFO
    }

    fn lay_out(
        stream: &Stream,
        layout: &Layout,
        sorted: &Fingerprints,
        method: BuildMethod,
    ) -> Result<(DeviceVec<u64>, u64), Error> {
        match method {
            BuildMethod::Scan => scan::<RankSelect>(stream, layout, sorted),
            BuildMethod::RegionInserts => match update::fill_by_regions(stream, layout, sorted)? {
                Some(filled) => Ok(filled),
                // It says why they do not fit.
                None => scan::<RankSelect>(stream, layout, sorted),
            },
        }
    }

    unsafe fn extract<F: FingerprintWord>(
        stream: &Stream,
        layout: &Layout,
        words: Global<u64>,
        items: u64,
        dropped: u32,
        out: GlobalMut<F>,
    ) -> Result<(), Error> {
        let tiles = layout.blocks.div_ceil(TILE_BLOCKS) as usize;
        let mut scratch = LookBack::new(stream, look_back_words(tiles))?;
        let (look_back, ticket) = (scratch.words(), scratch.ticket());
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(shared_bytes(size_of::<F>()));
        let (slots, parameters) = (layout.slots(), parameters(layout));
        // SAFETY: scratch is zero, this call's own, and freed in the order of the stream; the rest is the caller's promise.
        unsafe {
            quotient_rank_select_extract { words, slots, parameters, dropped, look_back, ticket, out, n: items }
                .launch(stream, config)?;
        }
        Ok(())
    }

    unsafe fn look_up(
        filter: &QuotientFilter<RankSelect>,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { lookup::look_up(filter, stream, keys, n, answers, method) }
    }

    fn extract_counts(
        filter: &QuotientFilter<RankSelect>,
        stream: &Stream,
        dropped: u32,
        room: Fingerprints,
    ) -> Result<Counts, Error> {
        counted::extract(filter, stream, dropped, room)
    }

    fn lay_out_counts(stream: &Stream, layout: &Layout, counts: &Counts) -> Result<(DeviceVec<u64>, Tally), Error> {
        counted::lay_out(stream, layout, counts)
    }

    fn counts_kernels(layout: &Layout, _: u64) -> Vec<&'static KernelInfo> {
        let counted = layout.is_counted();
        vec![match (counted, layout.remainder_bits() % 2) {
            (false, 1) => quotient_rank_select_count_paired::INFO,
            (false, _) => quotient_rank_select_count::INFO,
            (true, 0) => quotient_rank_select_count_counted_paired::INFO,
            (true, _) => quotient_rank_select_count_counted::INFO,
        }]
    }

    /// Counts are taken in the slots.
    fn prepass_of_counts(_: &QuotientFilter<RankSelect>, _: &Stream) -> Result<Option<Fingerprints>, Error> {
        Ok(None)
    }

    unsafe fn counts(
        filter: &QuotientFilter<RankSelect>,
        stream: &Stream,
        _: Option<&Fingerprints>,
        keys: KeySlice,
        n: usize,
        counts: GlobalMut<u64>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { lookup::count(filter, stream, keys, n, counts) }
    }

    fn update(
        filter: &mut QuotientFilter<RankSelect>,
        stream: &Stream,
        n: usize,
        batch: impl Fn(&Stream) -> Result<Fingerprints, Error>,
        change: Change,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        if filter.layout.is_counted() {
            let sorted = batch(stream)?.sorted(&filter.layout, stream)?;
            let batch = Counts::of_sorted(&filter.layout, stream, &sorted)?;
            return filter.recount(stream, &batch, change);
        }
        update::update(filter, stream, n, batch, change, method)
    }
}

impl ScanKernel for RankSelect {
    unsafe fn launch<F: FingerprintWord>(
        stream: &Stream,
        config: LaunchConfig,
        arguments: Arguments<F>,
    ) -> Result<(), Error> {
        let Arguments { fingerprints, n, parameters, slots, look_back, ticket, words, totals } = arguments;
        // SAFETY: the caller's promise is the same.
        unsafe {
            quotient_rank_select_build { fingerprints, n, parameters, slots, look_back, ticket, words, totals }
                .launch(stream, config)?;
        }
        Ok(())
    }
}

#[cfg(all(test, not(warpset_host_tests)))]
mod tests;
