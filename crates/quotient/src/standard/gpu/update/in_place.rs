//! Ascending batches worked off in place.

use warpset_core::quotient::slots::{ByteSlots, Container, PackedSlots, Slots};
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::quotient::update::in_place::{
    quotient_update_insert_sorted, quotient_update_regions, quotient_update_remove_sorted,
};

use super::superclusters::{Changed, compact};
use super::{Change, UpdateMethod, crossover};
use crate::Error;
use crate::standard::gpu::StandardQuotientFilter;
use crate::standard::gpu::fingerprints::{grid, parameters};
use crate::standard::gpu::width::Width;
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

    /// Changes words of this layout in rounds, of which removals take one; the batch is ascending. What is left after
    /// [`ROUNDS`](crossover::ROUNDS) comes back.
    fn in_place<W: Width>(
        &self,
        stream: &Stream,
        words: &mut DeviceVec<u64>,
        mut batch: DeviceVec<W>,
        change: Change,
    ) -> Result<(Changed, DeviceVec<W>, usize), Error> {
        let mut n = batch.len();
        let inserts = change == Change::Insert;
        let mut regions = stream.alloc_uninit::<u64>(n)?;
        let mut others = stream.alloc_uninit::<W>(if inserts { n } else { 0 })?;
        let mut left = stream.alloc_uninit::<u64>(if inserts { n.div_ceil(64) } else { 0 })?;
        let mut changed = stream.alloc_zeroed::<u64>(2)?;
        let mut count = stream.alloc_uninit::<u64>(1)?;
        let (words, slots, parameters) = (words.global_mut(), self.layout.slots(), parameters(&self.layout));
        for _ in 0..crossover::ROUNDS {
            // SAFETY: the words are a sound filter and this call's alone; the vectors have the lengths that the kernels ask
            // for, and are freed in the order of the stream; the batch is ascending.
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
        Ok((Changed::wait(stream, &changed)?, batch, n))
    }

    /// Works off a batch by a method; ascending unless by superclusters. Says how many fingerprints that stored or removed;
    /// `None` if it does not fit and nothing has been written, but not why.
    pub(super) fn apply<W: Width>(
        &mut self,
        stream: &Stream,
        batch: DeviceVec<W>,
        change: Change,
        method: UpdateMethod,
    ) -> Result<Option<u64>, Error> {
        let before = self.items;
        if !method.is_in_place() {
            (self.words, self.items) = self.rebuilt(stream, &self.words, batch.as_slice(), change)?;
            return Ok(Some(self.items.abs_diff(before)));
        }
        // What may turn out not to fit is tried on a copy.
        let is_copy = change == Change::Insert && !self.surely_fits(stream, batch.len() as u64)?;
        let mut copy = stream.alloc_uninit::<u64>(if is_copy { self.words.len() } else { 0 })?;
        if is_copy {
            stream.copy(&mut copy, &self.words)?;
        }
        let mut words = if is_copy { copy } else { std::mem::replace(&mut self.words, copy) };
        let outcome = self.change_words(stream, &mut words, batch, change, method);
        match outcome {
            Ok(Some(items)) => {
                (self.words, self.items) = (words, items);
                Ok(Some(items.abs_diff(before)))
            }
            other => {
                if !is_copy {
                    self.words = words;
                }
                other
            }
        }
    }

    /// Changes words with this filter's fingerprints in place; says how many there are then.
    fn change_words<W: Width>(
        &self,
        stream: &Stream,
        words: &mut DeviceVec<u64>,
        batch: DeviceVec<W>,
        change: Change,
        method: UpdateMethod,
    ) -> Result<Option<u64>, Error> {
        let (changed, left) = if method == UpdateMethod::Superclusters {
            (self.by_superclusters(stream, words, batch, change)?, None)
        } else {
            let (changed, left, n) = self.in_place(stream, words, batch, change)?;
            (changed, (n > 0).then_some((left, n)))
        };
        if change == Change::Remove {
            return Ok(Some(self.items - changed.done));
        }
        let mut items = self.items + changed.done;
        if let (Some((left, n)), 0) = (left, changed.failed) {
            (*words, items) = self.rebuilt(stream, words, left.slice(..n), change)?;
        }
        Ok((changed.failed == 0 && items <= self.layout.limit).then_some(items))
    }
}
