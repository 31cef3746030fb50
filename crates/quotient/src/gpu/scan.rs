//! Ascending fingerprints laid out by one scan, whatever the kind of slots.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::layout::{BLOCK, SHARED_BYTES, look_back_words};
use warpset_primitives::LookBack;
use warpset_simt::{Global, GlobalMut};

use super::build::check_count;
use super::fingerprints::{FingerprintWord, Fingerprints, parameters, with_width};
use super::zeroed_words;
use crate::cpu::check_fit;
use crate::{Error, Layout};

/// The arguments of a kernel that lays out fingerprints: those of `warpset_kernels::quotient::layout::lay_out`.
pub(crate) struct Arguments<F> {
    pub(crate) fingerprints: Global<F>,
    pub(crate) n: usize,
    pub(crate) parameters: u32,
    pub(crate) slots: u64,
    pub(crate) look_back: GlobalMut<u64>,
    pub(crate) ticket: GlobalMut<u32>,
    pub(crate) words: GlobalMut<u64>,
    pub(crate) totals: GlobalMut<u64>,
}

/// The kernel of a kind of slots that lays out fingerprints.
pub(crate) trait ScanKernel {
    /// Queues it.
    ///
    /// # Safety
    /// As `warpset_kernels::quotient::layout::lay_out`, until `stream` has passed it.
    unsafe fn launch<F: FingerprintWord>(
        stream: &Stream,
        config: LaunchConfig,
        arguments: Arguments<F>,
    ) -> Result<(), Error>;
}

/// Words in which ascending fingerprints are laid out, and how many are stored. Waits; on an error before that work may
/// still be queued.
pub(crate) fn scan<K: ScanKernel>(
    stream: &Stream,
    layout: &Layout,
    sorted: &Fingerprints,
) -> Result<(DeviceVec<u64>, u64), Error> {
    let n = sorted.len();
    let mut words = zeroed_words(layout, stream)?;
    let mut totals = [0u64; 2];
    if n > 0 {
        let (tile, most) = match sorted {
            Fingerprints::Narrow(_) => (<u32 as FingerprintWord>::TILE, <u32 as FingerprintWord>::MOST),
            Fingerprints::Wide(_) => (<u64 as FingerprintWord>::TILE, <u64 as FingerprintWord>::MOST),
        };
        if n > most {
            // Far fewer fit, so there is no result but for one in which most are repetitions.
            check_count(layout, n)?;
            let unique = sorted.unique(layout, stream)?;
            check_fit(layout, unique.len() as u64, 0)?;
            return scan::<K>(stream, layout, &unique);
        }
        let tiles = n.div_ceil(tile);
        let mut scratch = LookBack::with_results(stream, look_back_words(tiles), 2)?;
        let (look_back, ticket, out) = (scratch.words(), scratch.ticket(), scratch.results());
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
        let (parameters, slots, target) = (parameters(layout), layout.slots(), words.global_mut());
        // SAFETY: the words are those of the layout, zero, and no other work accesses them or the scratch memory;
        // fingerprints are ascending, and live until the copy has been waited for.
        with_width!(sorted, |items| unsafe {
            let fingerprints = items.global();
            let arguments =
                Arguments { fingerprints, n, parameters, slots, look_back, ticket, words: target, totals: out };
            K::launch(stream, config, arguments)
        })?;
        scratch.download_results(stream, &mut totals)?;
    } else {
        stream.synchronize()?;
    }
    let [items, end] = totals;
    check_fit(layout, items, end)?;
    Ok((words, items))
}
