//! Ascending batches applied to the words in place, in rounds.

use warpset_gpu::{GpuError, Stream};
use warpset_simt::GlobalMut;

use crate::gpu::fingerprints::Fingerprints;
use crate::gpu::{DeviceSlotKind, QuotientFilter};
use crate::slot_kind::Change;
use crate::{Error, Layout};

/// Rounds of an insertion before the rest is merged.
const ROUNDS: usize = 24;

/// Arguments of a round.
#[derive(Clone, Copy)]
pub struct Round<'a> {
    pub stream: &'a Stream,
    pub layout: &'a Layout,
    /// Words of the filter.
    pub words: GlobalMut<u64>,
    /// Ascending fingerprints; the first `n > 0` are applied.
    pub batch: &'a Fingerprints,
    pub n: usize,
    pub change: Change,
    /// Scratch memory, one word per fingerprint.
    pub begins: GlobalMut<u64>,
    /// One bit per fingerprint, zero at the start. An insertion sets those that have to wait for the next round.
    pub left: GlobalMut<u64>,
    /// Three words. The number of fingerprints stored or removed is added to the first, and the number without a slot
    /// to the second. The third may be written.
    pub changed: GlobalMut<u64>,
}

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Changes the words in place, in rounds; a removal takes one. The batch ascends and is not empty. The rest of an
    /// insertion after [`ROUNDS`] is merged. Returns the change of the number of fingerprints, or `None` if the batch
    /// does not fit. Then, and on an error, part of it may be stored.
    pub(super) fn change_in_place(
        &mut self,
        stream: &Stream,
        batch: &Fingerprints,
        change: Change,
    ) -> Result<Option<u64>, Error> {
        let (layout, before, inserts) = (self.layout, self.items, change == Change::Insert);
        let mut n = batch.len();
        let mut begins = stream.alloc_uninit::<u64>(n)?;
        let mut left = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        let mut changed = stream.alloc_zeroed::<u64>(3)?;
        // `rest` is the batch after a round, and `spare` is memory for the rest after the next one.
        let (mut rest, mut spare): (Option<Fingerprints>, Option<Fingerprints>) = (None, None);
        for round in 1.. {
            let now = rest.as_ref().unwrap_or(batch);
            if inserts && spare.is_none() {
                spare = Some(Fingerprints::alloc(&layout, stream, n)?);
            }
            stream.fill_bytes(&mut left, 0)?;
            let round_now = Round {
                stream,
                layout: &layout,
                words: self.words.global_mut(),
                batch: now,
                n,
                change,
                begins: begins.global_mut(),
                left: left.global_mut(),
                changed: changed.global_mut(),
            };
            // SAFETY: the words are a sound filter of this layout, and no other work accesses them; the vectors have
            // the lengths that are asked for, and are freed in the order of the stream; the batch is ascending.
            unsafe { S::change_round(round_now)? };
            let kept = match &mut spare {
                Some(spare) => now.keep(stream, n, &left, spare, changed.slice_mut(2..)),
                None => Ok(()),
            };
            let mut counts = [0; 3];
            stream.download(&changed, &mut counts)?;
            let [done, failed, waiting] = counts;
            self.items = if inserts { before + done } else { before - done };
            kept?;
            if failed > 0 {
                return Ok(None);
            }
            if !inserts || waiting == 0 {
                break;
            }
            n = waiting as usize;
            std::mem::swap(&mut rest, &mut spare);
            if round >= ROUNDS
                && let Some(rest) = &rest
            {
                match rest.first(stream, n).and_then(|rest| self.rebuild(stream, &rest, change)) {
                    // Without memory for the merge, rounds continue.
                    Err(Error::Gpu(GpuError::OutOfMemory { .. })) => {}
                    Err(error) => return Err(error),
                    Ok(_) => break,
                }
            }
        }
        Ok(Some(self.items.abs_diff(before)))
    }

    /// Whether any batch of this many fingerprints fits. Waits.
    pub(super) fn surely_fits(&self, stream: &Stream, keys: u64) -> Result<bool, Error> {
        let layout = &self.layout;
        if self.slots_used().saturating_add(keys) > layout.limit {
            return Ok(false);
        }
        // From the block of the last quotient on, all items together move by at most one slot per key.
        let block = (layout.quotients() - 1) / 64;
        let from = block * layout.block_words();
        let mut tail = vec![0; (layout.words() - from) as usize];
        stream.download(self.words.slice(from as usize..), &mut tail)?;
        let free = 64 * block + S::free_after_quotients(layout, &tail, 64 * block);
        Ok(free.max(layout.quotients()) + keys < layout.slots())
    }
}
