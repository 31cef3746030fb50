//! Ascending batches applied in place, in rounds.

use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::quotient::update::in_place::{
    quotient_update_insert_sorted, quotient_update_regions, quotient_update_remove_sorted,
};

use super::Changed;
use crate::gpu::fingerprints::{compact, grid, parameters};
use crate::slot_kind::Change;
use crate::standard::gpu::crossover;
use crate::standard::gpu::standard_word::StandardWord;
use crate::{Error, Layout};

/// What insertions in place have left: a vector, and how many of its first items.
pub(super) type Left<W> = Option<(DeviceVec<W>, usize)>;

/// Changes words of this layout in rounds, of which removals take one; the batch is ascending. What is left after
/// [`ROUNDS`](crossover::ROUNDS) is returned.
pub(super) fn change_in_place<W: StandardWord>(
    stream: &Stream,
    layout: &Layout,
    words: &mut DeviceVec<u64>,
    mut batch: DeviceVec<W>,
    change: Change,
) -> Result<(Changed, Left<W>), Error> {
    let mut n = batch.len();
    let inserts = change == Change::Insert;
    let mut regions = stream.alloc_uninit::<u64>(n)?;
    let mut others = stream.alloc_uninit::<W>(if inserts { n } else { 0 })?;
    let mut left = stream.alloc_uninit::<u64>(if inserts { n.div_ceil(64) } else { 0 })?;
    let mut changed = stream.alloc_zeroed::<u64>(2)?;
    let mut count = stream.alloc_uninit::<u64>(1)?;
    let (words, slots, parameters) = (words.global_mut(), layout.slots(), parameters(layout));
    for _ in 0..crossover::ROUNDS {
        // SAFETY: the words are a sound filter and no other work accesses them; the vectors have the lengths that the kernels
        // ask for, and are freed in the order of the stream; the batch is ascending.
        unsafe {
            let fingerprints = batch.slice(..n).global();
            quotient_update_regions {
                fingerprints,
                n,
                words: words.as_const(),
                slots,
                parameters,
                removes: !inserts as u32,
                out: regions.global_mut(),
            }
            .launch(stream, grid(n))?;
            let (regions, changed) = (regions.global(), changed.global_mut());
            if inserts {
                let left = left.global_mut().cast();
                quotient_update_insert_sorted { fingerprints, n, words, slots, parameters, regions, left, changed }
                    .launch(stream, grid(n))?;
            } else {
                quotient_update_remove_sorted { fingerprints, n, words, slots, parameters, regions, changed }
                    .launch(stream, grid(n))?;
            }
        }
        n = if inserts { compact(stream, &batch, &left, &mut others, &mut count, n)? } else { 0 };
        std::mem::swap(&mut batch, &mut others);
        if n == 0 {
            break;
        }
    }
    Ok((Changed::wait(stream, &changed)?, (n > 0).then_some((batch, n))))
}
