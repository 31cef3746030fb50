//! Insertion by regions (section V-B, algorithm 9), and removal.

use papers_kernels::quotient::regions::{
    BLOCK, quotient_rank_select_insert_regions, quotient_rank_select_queues, quotient_rank_select_remove_regions,
};
use warpset_gpu::{DeviceVec, LaunchConfig, Stream};

use warpset_quotient::gpu::methods::{Change, Fingerprints, parameters};
use warpset_quotient::{Error, Layout};

use crate::with_width;

/// Changes words of this layout by an ascending batch: sixteen iterations per launch, and larger regions for the next,
/// until all queues are empty. Returns the number of fingerprints stored or removed, and the number without a slot.
pub(crate) fn change(
    stream: &Stream,
    layout: &Layout,
    words: &mut DeviceVec<u64>,
    batch: &Fingerprints,
    change: Change,
) -> Result<(u64, u64), Error> {
    let (n, blocks, parameters) = (batch.len(), layout.slots() / 64, parameters(layout));
    let mut queues = stream.alloc_uninit::<u32>(blocks as usize)?;
    stream.fill_bytes(&mut queues, 0xff)?;
    let mut changed = stream.alloc_zeroed::<u64>(3)?;
    let (words, changed_to, queues) = (words.global_mut(), changed.global_mut(), queues.global_mut());
    let config = |threads: u64| LaunchConfig::new(threads.div_ceil(BLOCK as u64) as u32, BLOCK);
    // SAFETY: there is a queue per block; the batch is ascending.
    with_width!(batch, |batch| unsafe {
        let fingerprints = batch.global();
        quotient_rank_select_queues { fingerprints, n, parameters, queues }.launch(stream, config(n as u64))?;
    });
    let (mut size, mut more_before) = (1, 0);
    loop {
        let grid = config(blocks.div_ceil(size));
        // SAFETY: the words are a sound filter and no other work accesses them or the queues, which are freed in the
        // order of the stream.
        with_width!(batch, |batch| unsafe {
            let fingerprints = batch.global();
            macro_rules! change {
                ($kernel:ident) => {
                    $kernel { fingerprints, n, words, blocks, parameters, size, queues, changed: changed_to }
                        .launch(stream, grid)?
                };
            }
            match change {
                Change::Insert => change!(quotient_rank_select_insert_regions),
                Change::Remove => change!(quotient_rank_select_remove_regions),
            }
        });
        let mut counts = [0; 3];
        stream.download(&changed, &mut counts)?;
        let [done, failed, more] = counts;
        if more == more_before {
            return Ok((done, failed));
        }
        more_before = more;
        size = (size + 1).min(blocks);
    }
}
