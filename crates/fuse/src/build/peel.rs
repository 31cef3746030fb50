//! Peeling one graph in rounds, on one thread, and assigning contents in the reverse order.
//!
//! A slot is free if exactly one remaining key has it. In a round, every free slot takes its key, unless the key has
//! another free slot before it; then all these keys leave the graph, which frees slots for the next round. No slot of a
//! key that leaves in a round is taken by another key of the same round, so keys of one round can have any order.

use warpset_base::words::{OutOfMemory, zeroed_vec};
use warpset_core::fuse::Graph;

use super::item::Item;
use crate::width::Slot;

/// Keys that leave the graph before slots that they freed are listed. (One loop would do both, but where the list goes
/// on depends on every slot read before, and a core that takes a write to an unknown place for one to a slot waits.)
pub(super) const REMOVED: usize = 64;

/// State of the slots of a graph, and the order in which they took their keys.
#[derive(Default)]
pub(crate) struct Peeler<T> {
    /// Remaining keys of each slot.
    counts: Vec<u8>,
    /// The exclusive or of their hashes, and of their values.
    hashes: Vec<T>,
    /// Whether some slot had more keys than are counted, which only equal keys do.
    overflown: bool,
    /// Slots that took a key, round by round.
    order: Vec<u32>,
    taken: usize,
    free: Vec<u32>,
    next: Vec<u32>,
}

/// Keys of a part of the slots, as [`Peeler::parts`] hands them out.
pub(crate) struct Part<'a, T> {
    counts: &'a mut [u8],
    hashes: &'a mut [T],
    /// The first slot of the part.
    first: u32,
}

/// Adds a key to its slots; returns whether a count ran over.
#[inline(always)]
fn add<const ARITY: usize, T: Item>(counts: &mut [u8], hashes: &mut [T], graph: Graph, first: u32, item: T) -> bool {
    let (mut overflown, hash) = (false, item.hash());
    let start = graph.first(hash);
    for j in 0..ARITY {
        let position = (graph.position::<ARITY>(start, hash, j) - first) as usize;
        let count = counts[position].wrapping_add(1);
        overflown |= count == 0;
        counts[position] = count;
        hashes[position] ^= item;
    }
    overflown
}

impl<T: Item> Part<'_, T> {
    /// Adds keys with all slots in this part; reports whether a count ran over.
    pub(crate) fn add<const ARITY: usize>(&mut self, graph: Graph, hashes: &[T]) -> bool {
        let mut overflown = false;
        for &hash in hashes {
            overflown |= add::<ARITY, T>(self.counts, self.hashes, graph, self.first, hash);
        }
        overflown
    }
}

/// Distance in a list of slots at which the hash of a slot is prefetched.
const FIRST_AHEAD: usize = 32;
/// Distance at which the slots of its key are prefetched.
const SECOND_AHEAD: usize = 12;
/// Slots from which on a graph does not fit in the cache of a core.
const FAR: usize = 1 << 16;

/// Prefetches the memory of later slots in a list: the hashes first, then the slots of their keys, by `others`.
#[inline(always)]
fn ahead<const ARITY: usize, T: Item, O>(graph: Graph, list: &[u32], i: usize, hashes: &[T], others: &[O]) {
    let last = list.len() - 1;
    prefetch(hashes, list[(i + FIRST_AHEAD).min(last)]);
    let hash = hashes[list[(i + SECOND_AHEAD).min(last)] as usize].hash();
    let start = graph.first(hash);
    (0..ARITY).for_each(|j| prefetch(others, graph.position::<ARITY>(start, hash, j)));
}

/// Prefetches the cache line of a slot.
#[inline(always)]
fn prefetch<T>(slots: &[T], slot: u32) {
    warpset_base::processor::prefetch(slots, slot as usize);
}

impl<T: Item> Peeler<T> {
    fn is_far(&self) -> bool {
        self.counts.len() >= FAR
    }

    /// Makes room for a graph of `slots` slots and `keys` keys, and removes all keys.
    pub(crate) fn clear(&mut self, slots: u64, keys: u64) -> Result<(), OutOfMemory> {
        fn fit<P: bytemuck::Pod>(list: &mut Vec<P>, len: u64) -> Result<(), OutOfMemory> {
            if (list.len() as u64) < len {
                *list = zeroed_vec(len)?;
            }
            Ok(())
        }
        if self.counts.len() as u64 != slots {
            (self.counts, self.hashes) = (zeroed_vec(slots)?, zeroed_vec(slots)?);
        } else {
            self.counts.fill(0);
            self.hashes.fill(T::zeroed());
        }
        // Every key takes one slot at most, and a round has at most all slots; one more place for what does not count.
        fit(&mut self.order, keys.min(slots) + 1)?;
        fit(&mut self.free, slots + 1)?;
        fit(&mut self.next, slots + 1)?;
        (self.overflown, self.taken) = (false, 0);
        Ok(())
    }

    /// Adds keys.
    pub(crate) fn add<const ARITY: usize>(&mut self, graph: Graph, hashes: impl IntoIterator<Item = T>) {
        let mut overflown = false;
        for hash in hashes {
            overflown |= add::<ARITY, T>(&mut self.counts, &mut self.hashes, graph, 0, hash);
        }
        self.overflown |= overflown;
    }

    /// Returns the slots from `first` on, in parts of `len`, to which several threads add keys at the same time.
    pub(crate) fn parts(&mut self, first: usize, len: usize) -> impl Iterator<Item = Part<'_, T>> {
        let first = first.min(self.counts.len());
        let parts = self.counts[first..].chunks_mut(len).zip(self.hashes[first..].chunks_mut(len));
        parts.enumerate().map(move |(i, (counts, hashes))| Part { counts, hashes, first: (first + i * len) as u32 })
    }

    /// Records that a count ran over.
    pub(crate) fn overflow(&mut self) {
        self.overflown = true;
    }

    /// Peels the graph; returns whether all of its `keys` keys took slots.
    pub(crate) fn peel<const ARITY: usize>(&mut self, graph: Graph, keys: u64) -> bool {
        let is_far = self.is_far();
        if self.overflown || keys >= self.order.len() as u64 {
            return false;
        }
        let Peeler { counts, hashes, order, free, next, .. } = self;
        let mut count = 0;
        for (slot, &keys) in counts.iter().enumerate() {
            free[count] = slot as u32;
            count += usize::from(keys == 1);
        }
        let (mut taken, mut changed) = (0, [[(0, 0); ARITY]; REMOVED]);
        while count > 0 {
            let first = taken;
            // Without branches, which would be mispredicted: what does not count is overwritten.
            for (i, &slot) in free[..count].iter().enumerate() {
                if is_far {
                    ahead::<ARITY, T, u8>(graph, &free[..count], i, hashes, counts);
                }
                // A slot without keys has the hash zero, and the slots of that hash exist too.
                let hash = hashes[slot as usize].hash();
                let start = graph.first(hash);
                let is_free_before = |j| {
                    // The slots of a key ascend.
                    let other = graph.position::<ARITY>(start, hash, j);
                    (other < slot) & (counts[other as usize] == 1)
                };
                let leaves_it = (0..ARITY - 1).fold(counts[slot as usize] != 1, |any, j| any | is_free_before(j));
                order[taken] = slot;
                taken += usize::from(!leaves_it);
            }
            count = 0;
            let leaving = &order[first..taken];
            for from in (0..leaving.len()).step_by(REMOVED) {
                let to = leaving.len().min(from + REMOVED);
                for (i, changed) in (from..to).zip(&mut changed) {
                    if is_far {
                        ahead::<ARITY, T, T>(graph, leaving, i, hashes, hashes);
                        prefetch(counts, leaving[(i + FIRST_AHEAD).min(leaving.len() - 1)]);
                    }
                    let slot = leaving[i] as usize;
                    let item = hashes[slot];
                    let hash = item.hash();
                    let start = graph.first(hash);
                    for (j, changed) in changed.iter_mut().enumerate() {
                        let other = graph.position::<ARITY>(start, hash, j);
                        let left = counts[other as usize].wrapping_sub(1);
                        counts[other as usize] = left;
                        hashes[other as usize] ^= item;
                        *changed = (other, u32::from(left == 1));
                    }
                    // It keeps the key that it took.
                    counts[slot] = 1;
                    hashes[slot] = item;
                }
                for &(other, is_free) in changed[..to - from].as_flattened() {
                    next[count] = other;
                    count += is_free as usize;
                }
            }
            std::mem::swap(free, next);
        }
        self.taken = taken;
        taken as u64 == keys
    }

    /// Writes the contents of a peeled graph to `slots`, which are zero and have the graph's number. A content has
    /// `value_bits` of a value.
    pub(crate) fn assign<const ARITY: usize, F: Slot>(&self, graph: Graph, value_bits: u32, slots: &mut [F]) {
        let (order, is_far) = (&self.order[..self.taken], self.is_far());
        for (i, &slot) in order.iter().enumerate().rev() {
            if is_far {
                prefetch(&self.hashes, order[i.saturating_sub(FIRST_AHEAD)]);
                let next = order[i.saturating_sub(SECOND_AHEAD)];
                let hash = self.hashes[next as usize].hash();
                let start = graph.first(hash);
                (0..ARITY).for_each(|j| prefetch(slots, graph.position::<ARITY>(start, hash, j)));
            }
            // A slot that took a key still has it, and no other.
            let item = self.hashes[slot as usize];
            let hash = item.hash();
            let mut value: F = item.content(hash, value_bits);
            // The slot itself is zero so far.
            let start = graph.first(hash);
            for j in 0..ARITY {
                value = value ^ slots[graph.position::<ARITY>(start, hash, j) as usize];
            }
            slots[slot as usize] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use warpset_core::fuse::hash::{fingerprint, mix};

    use super::*;

    fn peels<const ARITY: usize>(graph: Graph, keys: u64, seed: u64) -> Option<Vec<u16>> {
        let hashes = (0..keys).map(|key| mix(key, seed));
        let slots = graph.slots(ARITY as u32);
        let mut peeler = Peeler::default();
        peeler.clear(slots, keys).unwrap();
        peeler.add::<ARITY>(graph, hashes.clone());
        if !peeler.peel::<ARITY>(graph, keys) {
            return None;
        }
        let mut values = vec![0u16; slots as usize];
        peeler.assign::<ARITY, u16>(graph, 0, &mut values);
        for hash in hashes {
            let sum = graph.positions::<ARITY>(hash).iter().fold(0, |sum, &at| sum ^ values[at as usize]);
            assert_eq!(sum, fingerprint(hash) as u16);
        }
        Some(values)
    }

    #[test]
    fn every_key_has_its_fingerprint() {
        let graph = Graph { starts: 40 << 6, segment_bits: 6 };
        let done = (0..20).filter(|&seed| peels::<3>(graph, 1900, seed << 40).is_some()).count();
        assert!(done > 10, "{done}");
        let done = (0..20).filter(|&seed| peels::<4>(graph, 1900, seed << 40).is_some()).count();
        assert!(done > 10, "{done}");
        assert!(peels::<3>(graph, 2800, 1).is_none());
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let graph = Graph { starts: 12 << 5, segment_bits: 5 };
        let hashes: Vec<u64> = (0..250).map(|key| mix(key, 4 << 40)).collect();
        let build = |hashes: &mut dyn Iterator<Item = u64>| {
            let mut peeler = Peeler::default();
            peeler.clear(graph.slots(3), 250).unwrap();
            peeler.add::<3>(graph, hashes);
            assert!(peeler.peel::<3>(graph, 250));
            let mut slots = vec![0u32; graph.slots(3) as usize];
            peeler.assign::<3, u32>(graph, 0, &mut slots);
            slots
        };
        let forwards = build(&mut hashes.iter().copied());
        assert!(forwards == build(&mut hashes.iter().rev().copied()));
    }

    #[test]
    fn equal_keys_are_never_peeled() {
        let graph = Graph { starts: 40 << 6, segment_bits: 6 };
        for copies in [2, 255, 256, 257, 512, 513, 1000] {
            let mut peeler = Peeler::<u64>::default();
            peeler.clear(graph.slots(3), copies).unwrap();
            peeler.add::<3>(graph, std::iter::repeat_n(mix(7, 3), copies as usize));
            assert!(!peeler.peel::<3>(graph, copies), "{copies}");
        }
    }
}
