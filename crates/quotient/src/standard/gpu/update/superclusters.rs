//! Supercluster inserts and deletes (algorithms 3 and 7).

use warpset_core::scan::Sum;
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::quotient::update::superclusters::quotient_update_flag;
use warpset_primitives::{scan, select};

use super::Change;
use super::widths::{Labels, Target, Width};
use crate::Error;
use crate::standard::gpu::StandardQuotientFilter;
use crate::standard::gpu::fingerprints::{grid, parameters};

impl StandardQuotientFilter {
    /// Changes words of this layout in rounds: superclusters are flagged and labelled, the batch bids for them, one
    /// fingerprint is worked off in each, and those that lost are compacted.
    pub(super) fn by_superclusters<W: Width>(
        &self,
        stream: &Stream,
        words: &mut DeviceVec<u64>,
        mut batch: DeviceVec<W>,
        change: Change,
    ) -> Result<Changed, Error> {
        let (slots, blocks) = (self.layout.slots(), self.layout.blocks as usize);
        let mut n = batch.len();
        let mut others = stream.alloc_uninit::<W>(n)?;
        let mut flags = stream.alloc_uninit::<u64>(blocks)?;
        let mut labels = stream.alloc_uninit::<u32>(blocks)?;
        let mut winners = stream.alloc_uninit::<u32>(slots as usize + 1)?;
        let mut left = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        let mut changed = stream.alloc_zeroed::<u64>(2)?;
        let mut count = stream.alloc_uninit::<u64>(1)?;
        let target = Target {
            words: words.global_mut(),
            slots,
            parameters: parameters(&self.layout),
            removes: change == Change::Remove,
        };
        while n > 0 {
            let (words, removes) = (target.words.as_const(), target.removes as u32);
            // SAFETY: the words are a sound filter and this call's alone; the vectors have the lengths that the kernels ask for, and
            // are freed in the order of the stream.
            unsafe {
                let (flags, counts) = (flags.global_mut(), labels.global_mut());
                quotient_update_flag::launch(
                    stream,
                    grid(blocks),
                    words,
                    slots,
                    target.parameters,
                    removes,
                    flags,
                    counts,
                )?;
                scan::exclusive_in_place::<Sum<u32>>(stream, labels.as_mut_slice())?;
                let by = Labels { flags: flags.as_const(), labels: labels.global(), winners: winners.global_mut() };
                let left = left.global_mut().cast();
                W::work_off_winners(stream, batch.slice(..n).global(), target, by, left, changed.global_mut())?;
            }
            n = compact(stream, &batch, &left, &mut others, &mut count, n)?;
            std::mem::swap(&mut batch, &mut others);
        }
        Changed::wait(stream, &changed)
    }
}

/// What became of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changed {
    /// Fingerprints stored, or removed.
    pub(super) done: u64,
    /// Fingerprints for which there was no slot.
    pub(super) failed: u64,
}

impl Changed {
    /// Waits for the two counts of a kernel.
    pub(super) fn wait(stream: &Stream, counts: &DeviceVec<u64>) -> Result<Changed, Error> {
        let mut words = [0; 2];
        stream.download(counts, &mut words)?;
        Ok(Changed { done: words[0], failed: words[1] })
    }
}

/// Those of the first `n` items of a batch whose bit is set go to the start of `others`; waits for their number.
pub(super) fn compact<W: Width>(
    stream: &Stream,
    batch: &DeviceVec<W>,
    left: &DeviceVec<u64>,
    others: &mut DeviceVec<W>,
    count: &mut DeviceVec<u64>,
    n: usize,
) -> Result<usize, Error> {
    // SAFETY: there is a bit an item; all live until the number has been waited for.
    unsafe {
        let left = left.slice(..n.div_ceil(64));
        select::select(stream, batch.slice(..n), left, others.slice_mut(..n), count.as_mut_slice())?;
    }
    let mut number = [0];
    stream.download(&*count, &mut number)?;
    Ok(number[0] as usize)
}
