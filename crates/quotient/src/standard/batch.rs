//! Operations on many keys: in place, each thread in its own part of the filter, or by writing the filter anew.

use rayon::prelude::*;
use warpset_core::quotient::slots::{BLOCK_SLOTS, ByteSlots, Container, PackedSlots, Slots};
use warpset_core::quotient::standard::{self as core, Inserted};
use warpset_primitives::cpu::sort::sort_by_rank;

use super::packed::{Change, PackedMut};
use super::source::{self, Combined, Rule, Sorted};
use super::{BuildMethod, paper_builds, rebuild, with_slots};
use crate::{Error, Key, Layout, StandardQuotientFilter};

/// A batch is inserted in place while the filter has at least so many slots a key; else the filter is written anew.
const INSERT_IN_PLACE_SLOTS_PER_KEY: u64 = 4;
/// The same for removals.
const REMOVE_IN_PLACE_SLOTS_PER_KEY: u64 = 6;
/// Blocks of the smallest part that a thread takes.
const LEAST_PART_BLOCKS: u64 = 64;

/// Works off the fingerprints of a part of a filter, whose first slot is `first`; those whose clusters reach out of the
/// part are left, and returned with the number of those that were stored or removed.
fn work_in_part(layout: &Layout, words: &mut [u64], first: u64, batch: &[u64], change: Change) -> (u64, Vec<u64>) {
    let split = layout.split;
    let mut left = Vec::new();
    let done = match layout.container {
        Container::Packed => {
            PackedMut::new(words, split).work_off(batch, first, change, |fingerprint| left.push(fingerprint))
        }
        Container::Bytes => {
            let len = words.len() as u64 / layout.block_words() * BLOCK_SLOTS;
            let mut slots = ByteSlots::new(words, len, split.remainder_bits);
            let mut done = 0;
            for &fingerprint in batch {
                let (quotient, remainder) = (split.quotient(fingerprint) - first, split.remainder(fingerprint));
                let changed = match change {
                    _ if !core::is_inside(&slots, quotient) => None,
                    Change::Insert { duplicates } => match core::insert(&mut slots, quotient, remainder, duplicates) {
                        Inserted::Stored => Some(true),
                        Inserted::Present => Some(false),
                        Inserted::NoSlot => None,
                    },
                    Change::Remove => Some(core::remove(&mut slots, quotient, remainder)),
                };
                match changed {
                    Some(changed) => done += changed as u64,
                    None => left.push(fingerprint),
                }
            }
            done
        }
    };
    (done, left)
}

/// Bulk operations.
impl StandardQuotientFilter {
    /// A filter of these keys, built at once: sorted, laid out, written.
    pub fn build_from<K: Key>(layout: Layout, keys: &[K]) -> Result<StandardQuotientFilter, Error> {
        let sorted = sorted_fingerprints(&layout, keys);
        rebuild::build(layout, &Sorted(&sorted))
    }

    /// [`StandardQuotientFilter::build_from`] by a method of choice; all give the same bytes. Those of the paper are
    /// worked off step by step, on this thread.
    pub fn build_with_method<K: Key>(
        layout: Layout,
        keys: &[K],
        method: BuildMethod,
    ) -> Result<StandardQuotientFilter, Error> {
        paper_builds::build(method, layout, sorted_fingerprints(&layout, keys))
    }

    /// A filter of these fingerprints, in any order.
    pub fn from_fingerprints(layout: Layout, fingerprints: &[u64]) -> Result<StandardQuotientFilter, Error> {
        let sorted = checked(&layout, fingerprints)?;
        rebuild::build(layout, &Sorted(&sorted))
    }

    /// Inserts all keys; says how many fingerprints are stored more than before.
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.insert_sorted(sorted_fingerprints(&self.layout, keys))
    }

    /// [`StandardQuotientFilter::insert_bulk`] for fingerprints, in any order.
    pub fn insert_fingerprints(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        self.insert_sorted(checked(&self.layout, fingerprints)?)
    }

    /// Removes the fingerprints of all keys; says how many fingerprints are stored less than before.
    ///
    /// Each key removes one copy of its fingerprint if there is one, and else nothing: in a set, keys with equal
    /// fingerprints remove it together; in a multiset, they remove as many copies as there are keys.
    pub fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> u64 {
        let sorted = sorted_fingerprints(&self.layout, keys);
        self.remove_sorted(sorted)
    }

    /// [`StandardQuotientFilter::remove_bulk`] for fingerprints, in any order.
    pub fn remove_fingerprints(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        let sorted = checked(&self.layout, fingerprints)?;
        Ok(self.remove_sorted(sorted))
    }

    /// The paper's serial insertion: one key after the other, in the order given, on this thread.
    ///
    /// On an error, the keys before the one that failed are in the filter.
    pub fn insert_one_by_one<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        let (before, seed) = (self.items, self.seed());
        for key in keys {
            self.insert_fingerprint(self.layout.fingerprint_with(seed, key))?;
        }
        Ok(self.items - before)
    }

    /// The paper's serial removal: one key after the other, in the order given, on this thread.
    pub fn remove_one_by_one<K: Key>(&mut self, keys: &[K]) -> u64 {
        let (before, seed) = (self.items, self.seed());
        for key in keys {
            self.remove_fingerprint(self.layout.fingerprint_with(seed, key));
        }
        before - self.items
    }

    /// Adds all fingerprints of another filter: as a set, or with all repetitions if this one keeps duplicates.
    ///
    /// The other may have any number of slots, container and load limit; its fingerprints must have at least as many
    /// bits, and lose those that are too many.
    pub fn merge(&mut self, other: &StandardQuotientFilter) -> Result<(), Error> {
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        let (a, b) = (source::stored(self.view(), 0), source::stored(other.view(), dropped));
        *self = rebuild::build(self.layout, &Combined { rule: Rule::Sum, a, b })?;
        Ok(())
    }

    /// Removes the fingerprints of another filter: each cancels one copy of its like.
    pub fn subtract(&mut self, other: &StandardQuotientFilter) -> Result<(), Error> {
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        let (a, b) = (source::stored(self.view(), 0), source::stored(other.view(), dropped));
        *self = rebuild::build(self.layout, &Combined { rule: Rule::Difference, a, b })?;
        Ok(())
    }

    /// How many fingerprints are in both filters; in multisets, with the smaller of the two multiplicities.
    ///
    /// A filter whose fingerprints have more bits loses those that are too many.
    pub fn intersection_count(&self, other: &StandardQuotientFilter) -> Result<u64, Error> {
        if self.layout.fingerprint_bits() > other.layout.fingerprint_bits() {
            return other.intersection_count(self);
        }
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        let (a, b) = (source::stored(self.view(), 0), source::stored(other.view(), dropped));
        Ok(source::count(&Combined { rule: Rule::Common, a, b }, self.layout.last_fingerprint()))
    }

    /// How many fingerprints are in at least one of the filters; in multisets, with the larger of the two
    /// multiplicities.
    pub fn union_count(&self, other: &StandardQuotientFilter) -> Result<u64, Error> {
        if self.layout.fingerprint_bits() > other.layout.fingerprint_bits() {
            return other.union_count(self);
        }
        let common = self.intersection_count(other)?;
        let dropped = self.layout.bits_to_drop(&other.layout)?;
        // Different fingerprints can become equal when they lose bits.
        let theirs = if dropped == 0 || self.layout.keeps_duplicates() {
            other.items
        } else {
            source::count_distinct(&source::stored(other.view(), dropped), self.layout.last_fingerprint())
        };
        Ok(self.items + theirs - common)
    }

    /// The same fingerprints with quotients of another width: a quotient bit more is a remainder bit less, so that the
    /// rate of false positives stays, and twice as many keys fit.
    pub fn resized(&self, quotient_bits: u32) -> Result<StandardQuotientFilter, Error> {
        let layout = self.layout.with_quotient_bits(quotient_bits)?;
        rebuild::build(layout, &source::stored(self.view(), 0))
    }

    /// Makes room for twice as many keys: moves one bit from the remainders to the quotients.
    pub fn double(&mut self) -> Result<(), Error> {
        *self = self.resized(self.layout.quotient_bits() + 1)?;
        Ok(())
    }

    /// Halves the number of slots: moves one bit from the quotients to the remainders.
    pub fn halve(&mut self) -> Result<(), Error> {
        *self = self.resized(self.layout.quotient_bits() - 1)?;
        Ok(())
    }

    /// The same fingerprints in another container.
    pub fn with_container(&self, container: Container) -> Result<StandardQuotientFilter, Error> {
        rebuild::build(Layout { container, ..self.layout }, &source::stored(self.view(), 0))
    }

    fn insert_sorted(&mut self, mut batch: Vec<u64>) -> Result<u64, Error> {
        if !self.layout.keeps_duplicates() {
            batch.dedup();
        }
        let (count, before) = (batch.len() as u64, self.items);
        if batch.is_empty() {
            return Ok(0);
        }
        // In place nothing may fail half-way, so only where all of them surely fit.
        let small = count <= self.layout.slots() / INSERT_IN_PLACE_SLOTS_PER_KEY;
        let fits = small && self.items + count <= self.layout.limit && self.has_room_behind(&batch);
        if fits {
            self.items += self.work_in_place(&batch, Change::Insert { duplicates: self.layout.keeps_duplicates() });
        } else {
            let (a, b) = (source::stored(self.view(), 0), Sorted(&batch));
            *self = rebuild::build(self.layout, &Combined { rule: Rule::Sum, a, b })?;
        }
        Ok(self.items - before)
    }

    fn remove_sorted(&mut self, batch: Vec<u64>) -> u64 {
        let before = self.items;
        if batch.is_empty() || self.items == 0 {
            return 0;
        }
        if batch.len() as u64 > self.layout.slots() / REMOVE_IN_PLACE_SLOTS_PER_KEY {
            let (a, b) = (source::stored(self.view(), 0), Sorted(&batch));
            // Fewer fingerprints fit where more did; without memory for a second filter, this one is changed in place.
            if let Ok(rebuilt) = rebuild::build(self.layout, &Combined { rule: Rule::Difference, a, b }) {
                *self = rebuilt;
                return before - self.items;
            }
        }
        self.items -= self.work_in_place(&batch, Change::Remove);
        before - self.items
    }

    /// Whether every fingerprint of an ascending batch surely finds an empty slot, with one left over at the end.
    ///
    /// An insertion takes the first empty slot behind its cluster. So all of them find one if, for each block, the slots
    /// behind it have more empty ones than the batch has fingerprints for it and what is behind it. That is looked at from
    /// the end backwards, until there are enough for the whole batch.
    fn has_room_behind(&self, batch: &[u64]) -> bool {
        let (split, count) = (self.layout.split, batch.len() as u64);
        with_slots!(&self.layout, self.words.as_slice(), self.layout.slots(), |slots| {
            let (mut empty, mut before) = (0, batch.len());
            for block in (0..self.layout.blocks).rev() {
                while before > 0 && split.quotient(batch[before - 1]) >= block * BLOCK_SLOTS {
                    before -= 1;
                }
                let behind = count - before as u64;
                if behind > 0 && behind >= empty {
                    return false;
                }
                let [occupieds, _, shifteds] = slots.metadata_words(block);
                empty += u64::from((occupieds | shifteds).count_zeros());
                if empty > count {
                    break;
                }
            }
            true
        })
    }

    /// Works off an ascending batch; says how many fingerprints were stored or removed.
    ///
    /// The filter is cut into parts at multiples of 64 slots; a fingerprint whose cluster lies wholly in a part is worked
    /// off by the part's thread, and the few others afterwards.
    fn work_in_place(&mut self, batch: &[u64], change: Change) -> u64 {
        let layout = self.layout;
        let split = layout.split;
        let threads = rayon::current_num_threads() as u64;
        let parts = if threads == 1 || batch.len() < 256 { 1 } else { 8 * threads };
        let part_blocks = layout.blocks.div_ceil(parts).max(LEAST_PART_BLOCKS);
        let part_slots = part_blocks * BLOCK_SLOTS;
        let part_words = (part_blocks * layout.block_words()) as usize;
        let results: Vec<(u64, Vec<u64>)> = self
            .words
            .as_mut_slice()
            .par_chunks_mut(part_words)
            .enumerate()
            .map(|(i, chunk)| {
                let first = i as u64 * part_slots;
                let at = |slot: u64| batch.partition_point(|&fingerprint| split.quotient(fingerprint) < slot);
                let batch = &batch[at(first)..at(first + part_slots)];
                work_in_part(&layout, chunk, first, batch, change)
            })
            .collect();
        let mut done = 0;
        for (count, left) in &results {
            done += count;
            for &fingerprint in left {
                // The caller has made sure of a slot.
                done += match change {
                    Change::Insert { .. } => (self.store(fingerprint) == Inserted::Stored) as u64,
                    Change::Remove => self.take_out(fingerprint) as u64,
                };
            }
        }
        done
    }
}

/// The fingerprints of the keys in ascending order.
fn sorted_fingerprints<K: Key>(layout: &Layout, keys: &[K]) -> Vec<u64> {
    let seed = crate::key::Seed::new(layout.seed);
    let mut fingerprints: Vec<u64> =
        keys.par_iter().with_min_len(1 << 12).map(|key| layout.fingerprint_with(seed, key)).collect();
    sort_by_rank(&mut fingerprints, layout.fingerprint_bits(), |fingerprint| fingerprint);
    fingerprints
}

/// The fingerprints in ascending order, or an error if one has too many bits.
fn checked(layout: &Layout, fingerprints: &[u64]) -> Result<Vec<u64>, Error> {
    let last = layout.last_fingerprint();
    if let Some(&fingerprint) = fingerprints.iter().find(|fingerprint| **fingerprint > last) {
        return Err(Error::InvalidFingerprint { fingerprint, bits: layout.fingerprint_bits() });
    }
    let mut sorted = fingerprints.to_vec();
    sort_by_rank(&mut sorted, layout.fingerprint_bits(), |fingerprint| fingerprint);
    Ok(sorted)
}
