//! Insertion by regions (section V-B, algorithm 9), and removal likewise.

use warpset_gpu::{DeviceVec, LaunchConfig, Stream};
use warpset_kernels::quotient::rank_select::regions::{
    BLOCK, quotient_rank_select_insert_regions, quotient_rank_select_queues, quotient_rank_select_remove_regions,
};

use super::{Filter, UpdateWord};
use crate::gpu::fingerprints::{Fingerprints, parameters, with_width};
use crate::gpu::zeroed_words;
use crate::slot_kind::Change;
use crate::{Error, Layout};

/// Changes the filter; the batch is ascending. Returns by how many fingerprints the filter changed; `None` if the batch does
/// not fit, and then, as on an error, the filter may have been changed.
pub(super) fn change<W: UpdateWord>(
    filter: &mut Filter,
    stream: &Stream,
    batch: &DeviceVec<W>,
    change: Change,
) -> Result<Option<u64>, Error> {
    let Worked { done, failed } = work_off(stream, &filter.layout, &mut filter.words, batch, change)?;
    filter.items = if change == Change::Insert { filter.items + done } else { filter.items - done };
    Ok((failed == 0).then_some(done))
}

/// Words of this layout that hold ascending fingerprints, and how many are stored; `None` if they do not fit, or are too many
/// for this way.
pub(in crate::rank_select::gpu) fn fill(
    stream: &Stream,
    layout: &Layout,
    sorted: &Fingerprints,
) -> Result<Option<(DeviceVec<u64>, u64)>, Error> {
    if sorted.len() >= u32::MAX as usize || layout.blocks >= 1 << 32 {
        return Ok(None);
    }
    let mut words = zeroed_words(layout, stream)?;
    if sorted.len() == 0 {
        stream.synchronize()?;
        return Ok(Some((words, 0)));
    }
    let Worked { done, failed } =
        with_width!(sorted, |batch| work_off(stream, layout, &mut words, batch, Change::Insert)?);
    Ok((failed == 0 && done <= layout.limit).then_some((words, done)))
}

/// What became of a batch.
struct Worked {
    /// Fingerprints stored, or removed.
    done: u64,
    /// Those for which there was no slot.
    failed: u64,
}

/// Sixteen iterations per launch, and larger regions for the next, until all queues are empty.
fn work_off<W: UpdateWord>(
    stream: &Stream,
    layout: &Layout,
    words: &mut DeviceVec<u64>,
    batch: &DeviceVec<W>,
    change: Change,
) -> Result<Worked, Error> {
    let (n, blocks, parameters) = (batch.len(), layout.blocks, parameters(layout));
    let mut queues = stream.alloc_uninit::<u32>(blocks as usize)?;
    stream.fill_bytes(&mut queues, 0xff)?;
    let mut changed = stream.alloc_zeroed::<u64>(3)?;
    let (fingerprints, words) = (batch.global(), words.global_mut());
    let config = |threads: u64| LaunchConfig::new(threads.div_ceil(BLOCK as u64) as u32, BLOCK);
    // SAFETY: there is a queue per block; the batch is ascending.
    unsafe {
        quotient_rank_select_queues { fingerprints, n, parameters, queues: queues.global_mut() }
            .launch(stream, config(n as u64))?;
    }
    let (mut size, mut more_before) = (1, 0);
    loop {
        let (queues, changed_to, grid) = (queues.global_mut(), changed.global_mut(), config(blocks.div_ceil(size)));
        // SAFETY: the words are a sound filter and no other work accesses them or the queues, which are freed in the order of
        // the stream.
        unsafe {
            match change {
                Change::Insert => quotient_rank_select_insert_regions {
                    fingerprints,
                    n,
                    words,
                    blocks,
                    parameters,
                    size,
                    queues,
                    changed: changed_to,
                }
                .launch(stream, grid)?,
                Change::Remove => quotient_rank_select_remove_regions {
                    fingerprints,
                    n,
                    words,
                    blocks,
                    parameters,
                    size,
                    queues,
                    changed: changed_to,
                }
                .launch(stream, grid)?,
            }
        }
        let mut counts = [0; 3];
        stream.download(&changed, &mut counts)?;
        let [done, failed, more] = counts;
        if more == more_before {
            return Ok(Worked { done, failed });
        }
        more_before = more;
        size = (size + 1).min(blocks);
    }
}
