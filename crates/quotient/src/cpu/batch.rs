//! Insertion and removal of many keys: small batches in place, others by rewriting the filter.

use warpset_base::parallel;
use warpset_core::quotient::combine::Combination;
use warpset_core::quotient::slots::BLOCK_SLOTS;

use super::QuotientFilter;
use super::fingerprint_source::{self, Combined, Item, Sorted};
use super::fingerprints::{checked_and_sorted, sorted_fingerprints};
use super::rewrite::{MOST_COPIES, lay_out};
use crate::slot_kind::{Change, Copies, SlotKind};
use crate::{Error, Key, Layout};

/// Least number of slots per key for an insertion in place; for fewer the filter is rewritten.
const INSERT_IN_PLACE_SLOTS_PER_KEY: u64 = 4;
/// Least number of slots per key for a removal in place.
pub(super) const REMOVE_IN_PLACE_SLOTS_PER_KEY: u64 = 6;
/// Fingerprints of a batch for which the cost in place is estimated.
const SAMPLES: usize = 64;
/// Most blocks that are looked at for one of them.
const MOST_BLOCKS: u64 = 256;
/// Blocks that most changes move anyway.
const NEAR_BLOCKS: u64 = 4;
/// Cost of moving the slots of a further block, relative to that of a change.
const BLOCK_COST: f64 = 0.4;

impl<S: SlotKind> QuotientFilter<S> {
    /// Builds a filter of these keys: they are hashed, sorted and laid out.
    pub(crate) fn from_keys<K: Key>(layout: Layout, keys: &[K]) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_sorted(layout, &sorted_fingerprints(&layout, keys)?)
    }

    /// Builds a filter of these fingerprints, in any order.
    pub(crate) fn from_fingerprints(layout: Layout, fingerprints: &[u64]) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_sorted(layout, &checked_and_sorted(&layout, fingerprints)?)
    }

    /// Builds a filter of ascending fingerprints.
    fn from_sorted(layout: Layout, sorted: &[u64]) -> Result<QuotientFilter<S>, Error> {
        if layout.is_counted() { lay_out(layout, &Sorted(&counted(sorted))) } else { lay_out(layout, &Sorted(sorted)) }
    }

    /// Inserts fingerprints in any order. Returns the number of fingerprints added.
    ///
    /// # Errors
    /// The errors of [`Insert::insert_bulk`](crate::Insert::insert_bulk), and [`Error::InvalidFingerprint`] if one has
    /// too many bits.
    pub fn insert_fingerprints_bulk(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        self.insert_sorted(checked_and_sorted(&self.layout, fingerprints)?)
    }

    /// Removes fingerprints, in any order, as [`Remove::remove_bulk`](crate::Remove::remove_bulk) does those of keys.
    ///
    /// # Errors
    /// [`Error::InvalidFingerprint`] if one has too many bits; then nothing has been changed.
    pub fn remove_fingerprints_bulk(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        Ok(self.remove_sorted(&checked_and_sorted(&self.layout, fingerprints)?))
    }

    pub(super) fn insert_sorted(&mut self, mut batch: Vec<u64>) -> Result<u64, Error> {
        if !self.layout.keeps_duplicates() {
            batch.dedup();
        }
        let (count, before) = (batch.len() as u64, self.held.copies);
        if batch.is_empty() {
            return Ok(0);
        }
        // In place nothing may fail half-way, so all fingerprints have to fit for certain: a copy takes at most one
        // more slot.
        let most = self.layout.slots() / INSERT_IN_PLACE_SLOTS_PER_KEY;
        let fits = || {
            self.held.slots + count <= self.layout.limit && before + count <= MOST_COPIES && self.has_slots_for(&batch)
        };
        if !(self.changes_few_slots(&batch, most) && fits()) {
            match self.combined_with(Combination::Sum, &batch) {
                // Without memory for a second filter, this one is changed in place.
                Err(Error::OutOfMemory(_)) if count <= most && fits() => {}
                rewritten => {
                    *self = rewritten?;
                    return Ok(self.held.copies - before);
                }
            }
        }
        let stored = self.change_in_place(&batch, Change::Insert);
        self.held += stored;
        Ok(self.held.copies - before)
    }

    /// Whether an ascending batch costs less in place than by a rewrite. A rewrite costs as much as `most` changes near
    /// an empty slot. Others move all blocks up to an empty slot, and each block costs [`BLOCK_COST`] of that.
    fn changes_few_slots(&self, batch: &[u64], most: u64) -> bool {
        let (layout, count) = (&self.layout, batch.len() as u64);
        let cost = |count: u64, blocks: u64| count as f64 + blocks as f64 * BLOCK_COST;
        if count > most || cost(count, count * MOST_BLOCKS) <= most as f64 {
            return count <= most;
        }
        let far_blocks = |&fingerprint: &u64| {
            let first = layout.split.quotient(fingerprint) / BLOCK_SLOTS;
            let blocks = first..layout.blocks.min(first + MOST_BLOCKS);
            let full = blocks.take_while(|&block| S::empty_slots(layout, self.words(), block) == 0).count() as u64;
            full.saturating_sub(NEAR_BLOCKS)
        };
        let samples = batch.iter().step_by(batch.len().div_ceil(SAMPLES));
        let (sampled, blocks) =
            samples.fold((0, 0), |(sampled, blocks), sample| (sampled + 1, blocks + far_blocks(sample)));
        cost(sampled, blocks) * count as f64 <= (most * sampled) as f64
    }

    pub(crate) fn remove_sorted(&mut self, batch: &[u64]) -> u64 {
        let before = self.held.copies;
        if batch.is_empty() || before == 0 {
            return 0;
        }
        if !self.changes_few_slots(batch, self.layout.slots() / REMOVE_IN_PLACE_SLOTS_PER_KEY) {
            // Fewer fingerprints always fit. Without memory for a second filter, this one is changed in place.
            if let Ok(rewritten) = self.combined_with(Combination::Difference, batch) {
                *self = rewritten;
                return before - self.held.copies;
            }
        }
        let removed = self.change_in_place(batch, Change::Remove);
        self.held -= removed;
        before - self.held.copies
    }

    /// Removes fingerprints that are stored and inserts others, in a filter without counters; both batches ascend.
    ///
    /// # Errors
    /// The errors of [`Insert::insert_bulk`](crate::Insert::insert_bulk); the filter is unchanged then.
    pub(crate) fn replace_sorted(&mut self, removed: &[u64], added: &[u64]) -> Result<(), Error> {
        let (changes, added_slots) = ((removed.len() + added.len()) as u64, added.len() as u64);
        if changes == 0 {
            return Ok(());
        }
        // In place nothing may fail half-way, so the slots before the removal have to do.
        let fits = changes <= self.layout.slots() / REMOVE_IN_PLACE_SLOTS_PER_KEY
            && self.held.slots + added_slots - removed.len() as u64 <= self.layout.limit
            && self.has_slots_for(added);
        if fits {
            let taken = self.change_in_place(removed, Change::Remove);
            self.held -= taken;
            let stored = self.change_in_place(added, Change::Insert);
            self.held += stored;
            return Ok(());
        }
        let stored = fingerprint_source::stored::<S, u64>(self.view(), 0);
        let first = Combined { combination: Combination::Difference, first: stored, second: Sorted(removed) };
        *self = lay_out(self.layout, &Combined { combination: Combination::Sum, first, second: Sorted(added) })?;
        Ok(())
    }

    /// Builds the combination of this filter and an ascending batch.
    fn combined_with(&self, combination: Combination, batch: &[u64]) -> Result<QuotientFilter<S>, Error> {
        if self.layout.is_counted() {
            return self.combined_with_counted(combination, &counted(batch));
        }
        let (first, second) = (fingerprint_source::stored::<S, u64>(self.view(), 0), Sorted(batch));
        lay_out(self.layout, &Combined { combination, first, second })
    }

    /// Builds the combination of this filter, which has counters, and an ascending batch with each fingerprint once,
    /// with its copies.
    pub(super) fn combined_with_counted(
        &self,
        combination: Combination,
        batch: &[Copies],
    ) -> Result<QuotientFilter<S>, Error> {
        let (first, second) = (fingerprint_source::stored::<S, Copies>(self.view(), 0), Sorted(batch));
        lay_out(self.layout, &Combined { combination, first, second })
    }
}

/// Replaces equal ascending fingerprints by one with their number, or with the sum of their copies.
pub(super) fn counted<T: Item>(sorted: &[T]) -> Vec<Copies> {
    let of = |chunk: &[T]| Copies {
        fingerprint: chunk[0].fingerprint(),
        copies: chunk.iter().map(|item| item.copies()).sum(),
    };
    let equal = |a: &T, b: &T| a.fingerprint() == b.fingerprint();
    // Parts end where the fingerprint changes.
    let step = sorted.len().div_ceil(rayon::current_num_threads()).max(1 << 14);
    let ends: Vec<usize> = (step..sorted.len())
        .step_by(step)
        .map(|at| at + sorted[at..].partition_point(|other| equal(other, &sorted[at])))
        .chain([sorted.len()])
        .collect();
    let parts: Vec<Vec<Copies>> = parallel::map(ends.iter().enumerate(), |(i, &end)| {
        let first = if i == 0 { 0 } else { ends[i - 1] };
        sorted[first.min(end)..end].chunk_by(equal).map(of).collect()
    });
    parts.concat()
}
