//! Words of standard quotient filters, laid out from ascending fingerprints.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::build::{self as kernels, BLOCK, SHARED_BYTES, quotient_build};
use warpset_primitives::LookBack;

use super::standard_word::StandardWord;
use super::update::fill_by_superclusters;
use crate::cpu::check_fit;
use crate::gpu::build::check_count;
use crate::gpu::fingerprints::{Fingerprints, parameters, with_width};
use crate::gpu::zeroed_words;
use crate::{Error, Layout};

/// [`BuildMethod::SuperclusterInserts`](crate::BuildMethod::SuperclusterInserts).
pub(super) fn supercluster_inserts(
    stream: &Stream,
    layout: &Layout,
    sorted: &Fingerprints,
) -> Result<(DeviceVec<u64>, u64), Error> {
    if layout.slots() < 1 << 32 && sorted.len() < 1 << 32 {
        let unique;
        let sorted = if sorted.len() as u64 > layout.limit {
            // Of a set, or the caller would have refused them: what does not fit would take a round each to find out.
            unique = sorted.unique(layout, stream)?;
            check_fit(layout, unique.len() as u64, 0)?;
            &unique
        } else {
            sorted
        };
        let mut words = zeroed_words(layout, stream)?;
        let filled = fill_by_superclusters(stream, layout, &mut words, sorted.copied(layout, stream)?)?;
        if filled.failed == 0 && filled.done <= layout.limit {
            return Ok((words, filled.done));
        }
    }
    // It says why they do not fit.
    scan(stream, layout, sorted)
}

/// [`BuildMethod::Scan`].
pub(super) fn scan(stream: &Stream, layout: &Layout, sorted: &Fingerprints) -> Result<(DeviceVec<u64>, u64), Error> {
    let n = sorted.len();
    let mut words = zeroed_words(layout, stream)?;
    let mut totals = [0u64; 2];
    if n > 0 {
        let (tile, most) = match sorted {
            Fingerprints::Narrow(_) => (<u32 as StandardWord>::TILE, <u32 as StandardWord>::MOST),
            Fingerprints::Wide(_) => (<u64 as StandardWord>::TILE, <u64 as StandardWord>::MOST),
        };
        if n > most {
            // Far fewer fit, so there is no result but for one in which most are repetitions.
            check_count(layout, n)?;
            let unique = sorted.unique(layout, stream)?;
            check_fit(layout, unique.len() as u64, 0)?;
            return scan(stream, layout, &unique);
        }
        let tiles = n.div_ceil(tile);
        let mut scratch = LookBack::with_results(stream, kernels::look_back_words(tiles), 2)?;
        let (look_back, ticket, out) = (scratch.words(), scratch.ticket(), scratch.results());
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
        let (parameters, slots, target) = (parameters(layout), layout.slots(), words.global_mut());
        // SAFETY: the words are those of the layout, zero, and no other work accesses them or the scratch memory;
        // fingerprints are ascending, and live until the copy has been waited for.
        with_width!(sorted, |items| unsafe {
            quotient_build {
                fingerprints: items.global(),
                n,
                parameters,
                slots,
                look_back,
                ticket,
                words: target,
                totals: out,
            }
            .launch(stream, config)
        })?;
        scratch.download_results(stream, &mut totals)?;
    } else {
        stream.synchronize()?;
    }
    let [items, end] = totals;
    check_fit(layout, items, end)?;
    Ok((words, items))
}
