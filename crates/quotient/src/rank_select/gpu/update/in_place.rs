//! Ascending batches applied in place, in rounds.

use warpset_gpu::{DeviceVec, GpuError, LaunchConfig, Stream};
use warpset_kernels::quotient::rank_select::in_place::{
    BLOCK, quotient_rank_select_begins, quotient_rank_select_insert_groups, quotient_rank_select_remove_groups,
};

use super::{Filter, UpdateWord, crossover, rebuild};
use crate::Error;
use crate::gpu::fingerprints::{compact, parameters};
use crate::slot_kind::Change;

/// Changes the filter in rounds, of which removals take one; the batch is ascending. What is left after
/// [`ROUNDS`](crossover::ROUNDS) is merged. Returns by how many fingerprints the filter changed; `None` if the batch does
/// not fit, and then, as on an error, the filter may have been changed.
pub(super) fn change<W: UpdateWord>(
    filter: &mut Filter,
    stream: &Stream,
    mut batch: DeviceVec<W>,
    change: Change,
) -> Result<Option<u64>, Error> {
    let mut n = batch.len();
    let (layout, before, inserts) = (filter.layout, filter.items, change == Change::Insert);
    let mut begins = stream.alloc_uninit::<u64>(n)?;
    let mut others = stream.alloc_uninit::<W>(if inserts { n } else { 0 })?;
    let mut left = stream.alloc_uninit::<u64>(if inserts { n.div_ceil(64) } else { 0 })?;
    let mut changed = stream.alloc_uninit::<u64>(3)?;
    let mut count = stream.alloc_uninit::<u64>(1)?;
    let (blocks, parameters) = (layout.blocks, parameters(&layout));
    for round in 1.. {
        stream.fill_bytes(&mut changed, 0)?;
        if inserts {
            stream.fill_bytes(&mut left, 0)?;
        }
        let grid = LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK);
        let (words, fingerprints, removes) = (filter.words.global_mut(), batch.slice(..n).global(), !inserts as u32);
        // SAFETY: the words are a sound filter and no other work accesses them; the vectors have the lengths that the kernels
        // ask for, and are freed in the order of the stream; the batch is ascending.
        unsafe {
            let (words_read, out) = (words.as_const(), begins.global_mut());
            quotient_rank_select_begins { fingerprints, n, words: words_read, blocks, parameters, removes, out }
                .launch(stream, grid)?;
            let (begins, changed) = (begins.global(), changed.global_mut());
            if inserts {
                let left = left.global_mut();
                quotient_rank_select_insert_groups {
                    fingerprints,
                    n,
                    words,
                    blocks,
                    parameters,
                    begins,
                    left,
                    changed,
                }
                .launch(stream, grid)?;
            } else {
                quotient_rank_select_remove_groups { fingerprints, n, words, blocks, parameters, begins, changed }
                    .launch(stream, grid)?;
            }
        }
        let mut counts = [0; 3];
        stream.download(&changed, &mut counts)?;
        let [done, failed, over] = counts;
        filter.items = if inserts { filter.items + done } else { filter.items - done };
        if failed > 0 {
            return Ok(None);
        }
        if over == 0 {
            break;
        }
        n = compact(stream, &batch, &left, &mut others, &mut count, n)?;
        std::mem::swap(&mut batch, &mut others);
        if round >= crossover::ROUNDS {
            let mut rest = stream.alloc_uninit::<W>(n)?;
            stream.copy(&mut rest, batch.slice(..n))?;
            match rebuild(filter, stream, &W::fingerprints(rest), change) {
                // Without memory for that it goes on as before.
                Err(Error::Gpu(GpuError::OutOfMemory { .. })) => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
    }
    Ok(Some(filter.items.abs_diff(before)))
}
