//! Ascending batches worked off in place.

use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, Slots};
use warpset_gpu::{DeviceVec, Stream};

use super::superclusters::compact;
use super::widths::{Target, Width};
use super::{Change, UpdateMethod, crossover};
use crate::Error;
use crate::standard::gpu::StandardQuotientFilter;
use crate::standard::gpu::fingerprints::parameters;
use crate::standard::with_slots;

impl StandardQuotientFilter {
    /// Whether so many fingerprints fit whatever they are.
    pub(super) fn surely_fits(&self, stream: &Stream, keys: u64) -> Result<bool, Error> {
        let layout = &self.layout;
        if self.items.saturating_add(keys) > layout.limit {
            return Ok(false);
        }
        // What lies behind the quotients; where there are fewer than 64 of them, all.
        let first_block = layout.quotients() / 64;
        let from = first_block * layout.block_words();
        let mut tail = vec![0; (layout.words() - from) as usize];
        stream.download(self.words.slice(from as usize..), &mut tail)?;
        let (first, len) = (first_block * 64, layout.slots() - first_block * 64);
        let empty = with_slots!(layout, tail.as_slice(), len, |slots| slots.empty_from(layout.quotients() - first));
        Ok(first + empty + keys < layout.slots())
    }

    /// In rounds; the batch is ascending and sure to fit. One round for removals.
    pub(super) fn in_place<W: Width>(
        &mut self,
        stream: &Stream,
        mut batch: DeviceVec<W>,
        change: Change,
    ) -> Result<(), Error> {
        let mut n = batch.len();
        let inserts = change == Change::Insert;
        let mut regions = stream.alloc_uninit::<u64>(n)?;
        let mut others = stream.alloc_uninit::<W>(if inserts { n } else { 0 })?;
        let mut left = stream.alloc_uninit::<u64>(if inserts { n.div_ceil(64) } else { 0 })?;
        let mut changed = stream.alloc_zeroed::<u64>(1)?;
        let mut count = stream.alloc_uninit::<u64>(1)?;
        let target = Target {
            words: self.words.global_mut(),
            slots: self.layout.slots(),
            parameters: parameters(&self.layout),
            removes: !inserts,
        };
        for _ in 0..crossover::ROUNDS {
            let (regions, left_bits) = (regions.global_mut(), left.global_mut().cast());
            // SAFETY: the filter is sound and this call's alone; the vectors have the lengths that the kernels ask for, and
            // are freed in the order of the stream; the batch is ascending and sure to fit.
            unsafe {
                W::work_in_place(stream, batch.slice(..n).global(), target, regions, left_bits, changed.global_mut())?;
            }
            if !inserts {
                n = 0;
                break;
            }
            n = compact(stream, &batch, &left, &mut others, &mut count, n)?;
            std::mem::swap(&mut batch, &mut others);
            if n == 0 {
                break;
            }
        }
        self.count_change(stream, &changed, change)?;
        if n > 0 {
            self.rebuild(stream, batch.slice(..n), change)?;
        }
        Ok(())
    }

    /// Works off a batch by a method; ascending unless by superclusters. Says how many fingerprints that stored or
    /// removed.
    pub(super) fn apply<W: Width>(
        &mut self,
        stream: &Stream,
        batch: DeviceVec<W>,
        change: Change,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        let before = self.items;
        match method {
            UpdateMethod::Superclusters => self.by_superclusters(stream, batch, change)?,
            UpdateMethod::InPlace => self.in_place(stream, batch, change)?,
            UpdateMethod::Rebuild | UpdateMethod::Automatic => self.rebuild(stream, batch.as_slice(), change)?,
        }
        Ok(self.items.abs_diff(before))
    }
}
