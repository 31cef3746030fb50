//! Supercluster inserts and deletes (algorithms 3 and 7).

use warpset_core::scan::Sum;
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::quotient::update::superclusters::{
    quotient_update_bid, quotient_update_flag, quotient_update_insert_winners, quotient_update_remove_winners,
};
use warpset_primitives::scan;

use super::Changed;
use crate::gpu::fingerprints::{Fingerprints, compact, grid, parameters, with_width};
use crate::slot_kind::Change;
use crate::standard::gpu::standard_word::StandardWord;
use crate::{Error, Layout};

/// Fills the words of an empty filter with fingerprints, fewer than 2^32.
pub(in crate::standard::gpu) fn fill_by_superclusters(
    stream: &Stream,
    layout: &Layout,
    words: &mut DeviceVec<u64>,
    batch: Fingerprints,
) -> Result<Changed, Error> {
    with_width!(batch, |batch| change_by_superclusters(stream, layout, words, batch, Change::Insert))
}

/// Changes words of this layout in rounds: superclusters are flagged and labelled, the batch bids for them, one
/// fingerprint is inserted or removed in each, and those that lost are compacted.
pub(super) fn change_by_superclusters<W: StandardWord>(
    stream: &Stream,
    layout: &Layout,
    words: &mut DeviceVec<u64>,
    mut batch: DeviceVec<W>,
    change: Change,
) -> Result<Changed, Error> {
    let (slots, blocks) = (layout.slots(), layout.blocks as usize);
    let mut n = batch.len();
    let mut others = stream.alloc_uninit::<W>(n)?;
    let mut flags = stream.alloc_uninit::<u64>(blocks)?;
    let mut labels = stream.alloc_uninit::<u32>(blocks)?;
    let mut winners = stream.alloc_uninit::<u32>(slots as usize + 1)?;
    let mut left = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
    let mut changed = stream.alloc_zeroed::<u64>(2)?;
    let mut count = stream.alloc_uninit::<u64>(1)?;
    let (words, parameters) = (words.global_mut(), parameters(layout));
    let removes = change == Change::Remove;
    while n > 0 {
        // SAFETY: the words are a sound filter and no other work accesses them; the vectors have the lengths that the
        // kernels ask for, and are freed in the order of the stream.
        unsafe {
            quotient_update_flag {
                words: words.as_const(),
                slots,
                parameters,
                removes: removes as u32,
                flags: flags.global_mut(),
                counts: labels.global_mut(),
            }
            .launch(stream, grid(blocks))?;
            scan::exclusive_in_place_async::<Sum<u32>>(stream, labels.as_mut_slice())?;
            let (fingerprints, flags, labels) = (batch.slice(..n).global(), flags.global(), labels.global());
            quotient_update_bid { fingerprints, n, parameters, flags, labels, winners: winners.global_mut() }
                .launch(stream, grid(n))?;
            let (winners, left, changed) = (winners.global(), left.global_mut().cast(), changed.global_mut());
            if removes {
                quotient_update_remove_winners {
                    fingerprints,
                    n,
                    words,
                    slots,
                    parameters,
                    flags,
                    labels,
                    winners,
                    left,
                    changed,
                }
                .launch(stream, grid(n))?;
            } else {
                quotient_update_insert_winners {
                    fingerprints,
                    n,
                    words,
                    slots,
                    parameters,
                    flags,
                    labels,
                    winners,
                    left,
                    changed,
                }
                .launch(stream, grid(n))?;
            }
        }
        n = compact(stream, &batch, &left, &mut others, &mut count, n)?;
        std::mem::swap(&mut batch, &mut others);
    }
    Changed::wait(stream, &changed)
}
