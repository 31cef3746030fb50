//! Layout of ascending fingerprints by one scan, for every kind of slots.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::layout::{BLOCK, MOST_U32, SHARED_BYTES, TILE_U32, TILE_U64, look_back_words};
use warpset_primitives::LookBack;
use warpset_simt::GlobalMut;

use super::DeviceSlotKind;
use super::fingerprints::Fingerprints;
use super::launch::{parameters, zeroed_words};
use crate::cpu::rewrite::check_fit;
use crate::{Duplicates, Error, Layout};

/// Arguments of a kernel that lays out fingerprints, after the fingerprints: those of
/// `warpset_kernels::quotient::layout::lay_out`.
pub struct Arguments {
    pub parameters: u32,
    pub slots: u64,
    pub look_back: GlobalMut<u64>,
    pub ticket: GlobalMut<u32>,
    pub words: GlobalMut<u64>,
    pub totals: GlobalMut<u64>,
}

/// Returns the fingerprints per thread block, and the most that are laid out at once.
pub(crate) fn tile_and_most(sorted: &Fingerprints) -> (usize, usize) {
    match sorted {
        Fingerprints::Narrow(_) => (TILE_U32, MOST_U32),
        Fingerprints::Wide(_) => (TILE_U64, usize::MAX),
    }
}

/// Lays out ascending fingerprints. Returns the words and the number of stored fingerprints. Waits; after an error work
/// may still be queued.
///
/// # Errors
/// [`Error::Full`] or [`Error::OverflowRegionFull`] if they do not fit, [`Error::Gpu`].
pub fn scan<S: DeviceSlotKind>(
    stream: &Stream,
    layout: &Layout,
    sorted: &Fingerprints,
) -> Result<(DeviceVec<u64>, u64), Error> {
    let n = sorted.len();
    let mut words = zeroed_words(layout, stream)?;
    let mut totals = [0u64; 2];
    if n > 0 {
        let (tile, most) = tile_and_most(sorted);
        if n > most {
            // Far fewer fit, so there is a result only if most are repetitions.
            check_count(layout, n)?;
            let unique = sorted.unique(layout, stream)?;
            check_fit(layout, unique.len() as u64, 0)?;
            return scan::<S>(stream, layout, &unique);
        }
        let tiles = n.div_ceil(tile);
        let mut scratch = LookBack::with_results(stream, look_back_words(tiles), 2)?;
        let (look_back, ticket, out) = (scratch.words(), scratch.ticket(), scratch.results());
        let config = LaunchConfig::new(tiles as u32, BLOCK).shared(SHARED_BYTES);
        let (parameters, slots, words) = (parameters(layout), layout.slots(), words.global_mut());
        let arguments = Arguments { parameters, slots, look_back, ticket, words, totals: out };
        // SAFETY: the words are those of the layout, zero, and no other work accesses them or the scratch memory;
        // fingerprints are ascending, and live until the copy has been waited for.
        unsafe { S::launch_scan(stream, config, sorted, arguments)? };
        scratch.download_results(stream, &mut totals)?;
    } else {
        stream.synchronize()?;
    }
    let [items, end] = totals;
    check_fit(layout, items, end)?;
    Ok((words, items))
}

/// Refuses more keys than fit: in a multiset each takes a slot.
pub(super) fn check_count(layout: &Layout, keys: usize) -> Result<(), Error> {
    let items = keys as u64;
    if layout.duplicates == Duplicates::Kept && items > layout.limit {
        return Err(layout.full(items));
    }
    Ok(())
}
