//! The paper's layouts of a filter: slots are found by one of them, and then written.
//!
//! Source: section IV-C. As in the paper, repetitions are removed first if the filter drops them.

use papers_kernels::quotient::builds::{
    BLOCK, WRITE_ITEMS, quotient_layout, quotient_quotients, quotient_starts, quotient_write, segments,
};
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_primitives::non_associative::{
    NextSlot, NonAssociativeKernels, parallel_merging_async, sequential_shifting_async,
};
use warpset_primitives::sort::SortKey;
use warpset_simt::EntryOf;

use warpset_quotient::gpu::methods::{Fingerprints, check_fit, grid, parameters, zeroed_words};
use warpset_quotient::{Duplicates, Error, Layout};

use crate::StandardBuild;

/// Word for a fingerprint or its slot.
trait Word:
    SortKey
    + EntryOf<quotient_quotients<Self>>
    + EntryOf<quotient_starts<Self>>
    + EntryOf<quotient_layout<Self>>
    + EntryOf<quotient_write<Self>>
    + Into<u64>
{
    /// Scan of the paper, over slots of this width.
    type NextSlot: NonAssociativeKernels<Item = Self, Value = Self>;
}

impl Word for u32 {
    type NextSlot = NextSlot<u32>;
}

impl Word for u64 {
    type NextSlot = NextSlot<u64>;
}

/// Lays out ascending fingerprints by algorithm 4, 5 or 6. Returns the words and the number of fingerprints. Waits.
pub(crate) fn build(
    method: StandardBuild,
    stream: &Stream,
    layout: &Layout,
    sorted: &Fingerprints,
) -> Result<(DeviceVec<u64>, u64), Error> {
    let unique;
    let sorted = if layout.duplicates() == Duplicates::Kept || sorted.len() == 0 {
        sorted
    } else {
        unique = sorted.unique(layout, stream)?;
        &unique
    };
    let items = sorted.len() as u64;
    check_fit(layout, items, 0)?;
    let words = match sorted {
        Fingerprints::Narrow(sorted) => write(method, stream, layout, sorted)?,
        Fingerprints::Wide(sorted) => write(method, stream, layout, sorted)?,
    };
    stream.synchronize()?;
    Ok((words, items))
}

/// Writes the words of a filter of these fingerprints, which are not too many.
fn write<F: Word>(
    method: StandardBuild,
    stream: &Stream,
    layout: &Layout,
    sorted: &DeviceVec<F>,
) -> Result<DeviceVec<u64>, Error> {
    let n = sorted.len();
    let mut words = zeroed_words(layout, stream)?;
    if n == 0 {
        return Ok(words);
    }
    let slots = match method {
        StandardBuild::SegmentedLayouts => segmented_layouts(stream, layout, sorted)?,
        _ => scan_quotients(method, stream, layout, sorted)?,
    };
    let mut last = [F::zeroed()];
    stream.download(slots.slice(n - 1..), &mut last)?;
    check_fit(layout, n as u64, last[0].into() + 1)?;
    let config = LaunchConfig::new(n.div_ceil(WRITE_ITEMS * BLOCK as usize) as u32, BLOCK);
    // SAFETY: fingerprints are ascending, and all their slots, which ascend too, are the filter's; its words are zero,
    // and no other work accesses them.
    unsafe {
        quotient_write {
            fingerprints: sorted.global(),
            slots: slots.global(),
            n,
            parameters: parameters(layout),
            words: words.global_mut(),
        }
        .launch(stream, config)?;
    }
    Ok(words)
}

/// Finds slots by algorithms 4 and 5: a quotient is the canonical slot, and a slot is the larger of one more than the
/// slot before and the canonical one.
fn scan_quotients<F: Word>(
    method: StandardBuild,
    stream: &Stream,
    layout: &Layout,
    sorted: &DeviceVec<F>,
) -> Result<DeviceVec<F>, Error> {
    let n = sorted.len();
    let mut quotients = stream.alloc_uninit::<F>(n)?;
    let mut slots = stream.alloc_uninit::<F>(n)?;
    // SAFETY: all have a place per item; the new ones are this call's own, and freed in the order of the stream.
    unsafe {
        let (fingerprints, out) = (sorted.global(), quotients.global_mut());
        quotient_quotients { fingerprints, n, parameters: parameters(layout), out }.launch(stream, grid(n))?;
        let (quotients, slots) = (quotients.as_slice(), slots.as_mut_slice());
        if method == StandardBuild::ParallelMerging {
            parallel_merging_async::<F::NextSlot>(stream, quotients, slots)?;
        } else {
            sequential_shifting_async::<F::NextSlot>(stream, quotients, slots)?;
        }
    }
    Ok(slots)
}

/// Finds slots by algorithm 6: one thread per segment of `q` slots lays out the segment's items after the items that
/// reached into it in the iteration before, until nothing changes.
fn segmented_layouts<F: Word>(stream: &Stream, layout: &Layout, sorted: &DeviceVec<F>) -> Result<DeviceVec<F>, Error> {
    let n = sorted.len();
    let segments = segments::count(layout.quotient_bits()) as usize;
    let parameters = parameters(layout);
    let mut slots = stream.alloc_uninit::<F>(n)?;
    let mut starts = stream.alloc_uninit::<u64>(segments + 1)?;
    let mut from = stream.alloc_zeroed::<u64>(segments)?;
    let mut to = stream.alloc_zeroed::<u64>(segments)?;
    let mut change = stream.alloc_uninit::<u32>(1)?;
    let config = grid(segments);
    // SAFETY: there is a place per segment, or per fingerprint; all but the fingerprints is this call's own, and freed
    // in the order of the stream. The first and the last iteration of the loop differ in what they write.
    unsafe {
        let fingerprints = sorted.global();
        quotient_starts { fingerprints, n, parameters, segments, starts: starts.global_mut() }
            .launch(stream, grid(segments + 1))?;
        let mut last_round = false;
        loop {
            stream.fill_bytes(&mut change, 0)?;
            let (incoming, outgoing) = (from.global(), to.global_mut());
            let (starts, changed, slots) = (starts.global(), change.global_mut(), slots.global_mut());
            quotient_layout {
                fingerprints,
                parameters,
                starts,
                segments,
                incoming,
                outgoing,
                change: changed,
                slots,
                last_round: last_round as u32,
            }
            .launch(stream, config)?;
            if last_round {
                break;
            }
            std::mem::swap(&mut from, &mut to);
            let mut changes = [0];
            stream.download(&change, &mut changes)?;
            last_round = changes[0] == 0;
        }
    }
    Ok(slots)
}
