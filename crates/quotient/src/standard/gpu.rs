//! The slots of the standard quotient filter on devices.

use warpset_gpu::batch::Answers;
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::build::quotient_build;
use warpset_kernels::quotient::extract::{BLOCK, SHARED_BYTES, TILE_BLOCKS, look_back_words, quotient_extract};
use warpset_primitives::LookBack;
use warpset_simt::{Global, GlobalMut, KernelInfo};

use crate::gpu::fingerprints::{FingerprintWord, Fingerprints, parameters};
use crate::gpu::{DeviceSlotKind, LookupMethod, QuotientFilter};
use crate::slot_kind::Change;
use crate::{BuildMethod, Error, Layout, Standard};

mod build;
mod crossover;
mod lookup;
mod paper_builds;
pub(crate) mod standard_word;
mod update;

pub use update::UpdateMethod;

/// A standard quotient filter on a device.
type Filter = QuotientFilter<Standard>;

impl DeviceSlotKind for Standard {
    type BuildMethod = BuildMethod;
    type UpdateMethod = UpdateMethod;

    fn layout_kernels<F: FingerprintWord>(method: BuildMethod) -> Vec<&'static KernelInfo> {
        match method {
            BuildMethod::Scan => vec![quotient_build::<F>::INFO],
            // They are there to be compared: each launch loads what it needs.
            _ => vec![],
        }
    }

    fn extract_kernel<F: FingerprintWord>() -> &'static KernelInfo {
        quotient_extract::<F>::INFO
    }

    fn lay_out(
        stream: &Stream,
        layout: &Layout,
        sorted: &Fingerprints,
        method: BuildMethod,
    ) -> Result<(DeviceVec<u64>, u64), Error> {
        match method {
            BuildMethod::Scan => build::scan(stream, layout, sorted),
            BuildMethod::SuperclusterInserts => build::supercluster_inserts(stream, layout, sorted),
            _ => paper_builds::build(method, stream, layout, sorted),
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
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
        let (slots, parameters) = (layout.slots(), parameters(layout));
        // SAFETY: scratch is zero, this call's own, and freed in the order of the stream; the rest is the caller's promise.
        unsafe {
            quotient_extract { words, slots, parameters, dropped, look_back, ticket, out, n: items }
                .launch(stream, config)?;
        }
        Ok(())
    }

    unsafe fn look_up(
        filter: &Filter,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { filter.look_up_keys(stream, keys, n, answers, method) }
    }

    fn update(
        filter: &mut Filter,
        stream: &Stream,
        n: usize,
        batch: impl Fn(&Stream) -> Result<Fingerprints, Error>,
        change: Change,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        filter.update_by(stream, n, batch, change, method)
    }
}
