//! Supercluster inserts and deletes (algorithms 3 and 7).

use warpset_core::scan::Sum;
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::quotient_update::superclusters::quotient_update_flag;
use warpset_primitives::{scan, select};

use super::Change;
use super::widths::{Labels, Target, Width};
use crate::Error;
use crate::standard::gpu::StandardQuotientFilter;
use crate::standard::gpu::fingerprints::{grid, parameters};

impl StandardQuotientFilter {
    /// In rounds: superclusters are flagged and labelled, the batch bids for them, one fingerprint is worked off in each,
    /// and those that lost are compacted. The batch is sure to fit.
    pub(super) fn by_superclusters<W: Width>(
        &mut self,
        stream: &Stream,
        mut batch: DeviceVec<W>,
        change: Change,
    ) -> Result<(), Error> {
        let (slots, blocks) = (self.layout.slots(), self.layout.blocks as usize);
        let mut n = batch.len();
        let mut others = stream.alloc_uninit::<W>(n)?;
        let mut flags = stream.alloc_uninit::<u64>(blocks)?;
        let mut labels = stream.alloc_uninit::<u32>(blocks)?;
        let mut winners = stream.alloc_uninit::<u32>(slots as usize + 1)?;
        let mut left = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        let mut changed = stream.alloc_zeroed::<u64>(1)?;
        let mut count = stream.alloc_uninit::<u64>(1)?;
        let target = Target {
            words: self.words.global_mut(),
            slots,
            parameters: parameters(&self.layout),
            removes: change == Change::Remove,
        };
        while n > 0 {
            let (words, removes) = (target.words.as_const(), target.removes as u32);
            // SAFETY: the filter is sound and this call's alone; the vectors have the lengths that the kernels ask for, and
            // are freed in the order of the stream; an insertion is sure to find its slot.
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
        self.count_change(stream, &changed, change)
    }

    /// Waits for the number of fingerprints that a batch has stored or removed.
    pub(super) fn count_change(
        &mut self,
        stream: &Stream,
        changed: &DeviceVec<u64>,
        change: Change,
    ) -> Result<(), Error> {
        let mut count = [0];
        stream.download(changed, &mut count)?;
        match change {
            Change::Insert => self.items += count[0],
            Change::Remove => self.items -= count[0],
        }
        Ok(())
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
