//! Peeling one shard in rounds, in the cache of a core.
//!
//! The order of peeling is that of [`peel`](super::peel). All positions fit 16 bits, so the slots of a key are one
//! word, computed once; a slot's cell of 32 bits has the number of its remaining keys and the sum of their indices, as
//! on devices ([`cell`](warpset_core::fuse::cell)), and one addition changes both.

use warpset_base::with_vectors;
use warpset_base::words::{OutOfMemory, zeroed_vec};
use warpset_core::fuse::cell::{MOST_IN_SHARD, in_shard, split_in_shard};
use warpset_core::fuse::hash::within_shard;
use warpset_core::fuse::{Graph, SHARD_ROUNDS, SHARD_SLOTS};

use super::item::Item;
use super::peel::REMOVED;
use crate::lookup::first_by_halves;
use crate::width::Slot;

/// Slots of a shard, and so its keys, at most.
const MOST: usize = SHARD_SLOTS as usize;

/// State of the slots of a shard, and the order in which they took their keys.
pub(super) struct ShardPeeler<F> {
    /// Number of remaining keys of each slot, and the sum of their indices. (As many as there are values of a position,
    /// so that no access needs a check.)
    cells: Box<[u32; 1 << 16]>,
    /// Slots of each key, 16 bits each.
    slots: Box<[u64; MOST]>,
    contents: Box<[F; MOST]>,
    /// Slots that took a key, in the high halves, and its index, round by round; one more place for what does not
    /// count, as in the lists below.
    order: Box<[u32; MOST + 1]>,
    taken: usize,
    free: Box<[u16; MOST + 1]>,
    next: Box<[u16; MOST + 1]>,
}

/// Allocates an array of zeros.
fn zeros<T: bytemuck::Pod, const N: usize>() -> Result<Box<[T; N]>, OutOfMemory> {
    zeroed_vec(N as u64)?.try_into().map_err(|_| OutOfMemory { bytes: (N * size_of::<T>()) as u64 })
}

/// Returns slot `j` of a key.
#[inline(always)]
fn slot_of(slots: u64, j: usize) -> u16 {
    (slots >> (16 * j)) as u16
}

/// Computes slots and contents of keys from their hashes in the filter.
fn locate<const ARITY: usize, T: Item, F: Slot>(
    graph: Graph,
    items: &[T],
    (seed, value_bits): (u8, u32),
    slots: &mut [u64],
    contents: &mut [F],
) {
    with_vectors!(locate_each[const ARITY: usize, T: Item, F: Slot][ARITY, T, F](
        graph: Graph, items: &[T], seed: u8, value_bits: u32, slots: &mut [u64], contents: &mut [F]
    ))
}

#[inline(always)]
fn locate_each<const ARITY: usize, T: Item, F: Slot>(
    graph: Graph,
    items: &[T],
    seed: u8,
    value_bits: u32,
    slots: &mut [u64],
    contents: &mut [F],
) {
    for ((&item, slots), to) in items.iter().zip(slots).zip(contents) {
        let hash = within_shard(item.hash(), seed);
        let first = first_by_halves(graph, hash);
        let slot = |j| u64::from(graph.position::<ARITY>(first, hash, j)) << (16 * j);
        *slots = (0..ARITY).fold(0, |slots, j| slots | slot(j));
        *to = item.content(hash, value_bits);
    }
}

/// Whether a slot has exactly one remaining key.
#[inline(always)]
fn is_single(cell: u32) -> bool {
    split_in_shard(cell).0 == 1
}

/// Returns which of at most 64 slots have exactly one remaining key, one bit per slot.
fn singles_of(cells: &[u32]) -> u64 {
    with_vectors!(each_single(cells: &[u32]) -> u64)
}

#[inline(always)]
fn each_single(cells: &[u32]) -> u64 {
    cells.iter().enumerate().fold(0, |bits, (i, &cell)| bits | u64::from(is_single(cell)) << i)
}

impl<F: Slot> ShardPeeler<F> {
    pub(super) fn new() -> Result<ShardPeeler<F>, OutOfMemory> {
        Ok(ShardPeeler {
            cells: zeros()?,
            slots: zeros()?,
            contents: zeros()?,
            order: zeros()?,
            taken: 0,
            free: zeros()?,
            next: zeros()?,
        })
    }

    /// Peels the graph of these keys, no more than there are slots, whether all keys took slots.
    /// `given`: the shard's seed, and the bits of a value.
    pub(super) fn peel<const ARITY: usize, T: Item>(&mut self, graph: Graph, items: &[T], given: (u8, u32)) -> bool {
        let ShardPeeler { cells, slots, contents, order, free, next, .. } = self;
        locate::<ARITY, T, F>(graph, items, given, slots.as_mut_slice(), contents.as_mut_slice());
        let cells_used = graph.slots(ARITY as u32) as usize;
        cells[..cells_used].fill(0);
        let mut seen = 0;
        for (key, &slots) in slots.iter().enumerate().take(items.len()) {
            for j in 0..ARITY {
                let cell = &mut cells[usize::from(slot_of(slots, j))];
                *cell = cell.wrapping_add(in_shard(key as u32));
                seen |= *cell;
            }
        }
        // A count that passes the limit sets this bit on the way.
        if seen & (in_shard(0) * (MOST_IN_SHARD + 1)) != 0 {
            return false;
        }
        let (mut count, mut changed) = (0, [[(0, 0); ARITY]; REMOVED]);
        for (first, cells) in (0..).step_by(64).zip(cells[..cells_used].chunks(64)) {
            let mut singles = singles_of(cells);
            while singles != 0 {
                free[count] = first + singles.trailing_zeros() as u16;
                singles &= singles - 1;
                count += 1;
            }
        }
        let (mut taken, mut rounds) = (0, 0);
        while count > 0 {
            if rounds == SHARD_ROUNDS {
                return false;
            }
            rounds += 1;
            let first = taken;
            // Without branches, which would go either way: what does not count is overwritten.
            for &slot in &free[..count] {
                let cell = cells[usize::from(slot)];
                // An arbitrary key if the slot has none left.
                let key = split_in_shard(cell).1 % SHARD_SLOTS;
                let slots = slots[key as usize];
                let is_free_before = |j| {
                    // The slots of a key ascend.
                    let other = slot_of(slots, j);
                    (other < slot) & is_single(cells[usize::from(other)])
                };
                let leaves_it = (0..ARITY - 1).fold(!is_single(cell), |any, j| any | is_free_before(j));
                order[taken] = u32::from(slot) << 16 | key;
                taken += usize::from(!leaves_it);
            }
            count = 0;
            for order in order[first..taken].chunks(REMOVED) {
                for (&took, changed) in order.iter().zip(&mut changed) {
                    let key = took % SHARD_SLOTS;
                    let slots = slots[key as usize];
                    for (j, changed) in changed.iter_mut().enumerate() {
                        let other = slot_of(slots, j);
                        let cell = &mut cells[usize::from(other)];
                        *cell = cell.wrapping_sub(in_shard(key));
                        *changed = (other, u16::from(is_single(*cell)));
                    }
                }
                for &(other, is_free) in changed[..order.len()].as_flattened() {
                    next[count] = other;
                    count += usize::from(is_free);
                }
            }
            std::mem::swap(free, next);
        }
        self.taken = taken;
        taken == items.len()
    }

    /// Writes the contents of the peeled graph to its slots, which are zero.
    pub(super) fn assign<const ARITY: usize>(&self, slots: &mut [F]) {
        for &took in self.order[..self.taken].iter().rev() {
            let key = (took % SHARD_SLOTS) as usize;
            // The slot itself is zero so far.
            let value = |value, j| value ^ slots[usize::from(slot_of(self.slots[key], j))];
            slots[(took >> 16) as usize] = (0..ARITY).fold(self.contents[key], value);
        }
    }
}
