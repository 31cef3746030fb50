//! Ascending batches applied in place, each thread in its own part of the slots.

use warpset_base::parallel;
use warpset_core::quotient::slots::BLOCK_SLOTS;

use super::QuotientFilter;
use crate::slot_kind::{Change, Changed, Counts, SlotKind};

/// Least number of blocks of a thread's part.
const LEAST_PART_BLOCKS: u64 = 64;
/// Parts per thread, so that unequal parts even out.
const PARTS_PER_THREAD: u64 = 8;
/// Nanoseconds per key.
const KEY_NS: f64 = 50.0;

impl<S: SlotKind> QuotientFilter<S> {
    /// Whether every fingerprint of an ascending batch is certain to find an empty slot, with one left over at the end.
    ///
    /// An insertion takes the first empty slot after its cluster. So all of them find one if, for each block, the later
    /// slots include more empty ones than the batch has fingerprints from that block on. Blocks are checked from the
    /// end backwards, until there are enough empty slots for the whole batch.
    pub(super) fn has_slots_for(&self, batch: &[u64]) -> bool {
        let (layout, split, count) = (&self.layout, self.layout.split, batch.len() as u64);
        let (mut empty, mut before) = (0, batch.len());
        for block in (0..layout.blocks).rev() {
            while before > 0 && split.quotient(batch[before - 1]) >= block * BLOCK_SLOTS {
                before -= 1;
            }
            let from_here = count - before as u64;
            if from_here > 0 && from_here >= empty {
                return false;
            }
            empty += u64::from(S::empty_slots(layout, self.words(), block));
            if empty > count {
                break;
            }
        }
        true
    }

    /// Applies an ascending batch, for which there must be slots. Returns the stored or removed amount.
    ///
    /// The filter is divided into parts at multiples of 64 slots. A fingerprint with its whole cluster in a part is
    /// applied by the part's thread, and the few others afterwards.
    pub(super) fn change_in_place(&mut self, batch: &[u64], change: Change) -> Counts {
        let layout = self.layout;
        let split = layout.split;
        let threads = parallel::threads_of(batch.len(), KEY_NS) as u64;
        let parts = if threads == 1 { 1 } else { PARTS_PER_THREAD * threads };
        let part_blocks = layout.blocks.div_ceil(parts).max(LEAST_PART_BLOCKS);
        let part_slots = part_blocks * BLOCK_SLOTS;
        let part_words = (part_blocks * layout.block_words()) as usize;
        let parts = self.words.as_mut_slice().chunks_mut(part_words).enumerate();
        let results: Vec<(Counts, Vec<u64>)> = parallel::map(parts, |(i, words)| {
            let first = i as u64 * part_slots;
            let at = |slot: u64| batch.partition_point(|&fingerprint| split.quotient(fingerprint) < slot);
            let part = &batch[at(first)..at(first + part_slots)];
            let mut left = Vec::new();
            let done = S::change_part(&layout, words, first, part, change, |fingerprint| left.push(fingerprint));
            (done, left)
        });
        let mut done = Counts::default();
        for (count, left) in &results {
            done += *count;
            for &fingerprint in left {
                let words = self.words.as_mut_slice();
                if layout.is_counted() {
                    done += S::recount(&layout, words, fingerprint, 1, change).unwrap_or_default();
                } else {
                    let changed = S::change(&layout, words, fingerprint, change);
                    done += u64::from(changed == Changed::Done).into();
                }
            }
        }
        done
    }
}
