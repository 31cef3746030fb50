//! Building shards of a binary fuse filter: a thread block peels a shard in its shared memory.
//!
//! A slot has a cell of 32 bits ([`warpset_core::fuse::cell`]), and a place of 16 bits in a list of slots that became
//! free, which grows round by round. Slots that took a key in a round stay in the list, and their cells keep its
//! number. So the list, from its end, is the order in which fingerprints are assigned. A cell without remaining keys is
//! zero, so fingerprints, or other contents, go into the cells.

use warpset_core::fuse::cell::{MOST_IN_SHARD, in_shard, split_in_shard};
use warpset_core::fuse::hash::within_shard;
use warpset_core::fuse::{Graph, SHARD_ROUNDS, SHARD_SEEDS, SHARD_SLOTS};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, thread};

use crate::fuse::slot::{Contents, Slot};

/// Threads of a block.
pub const BLOCK: u32 = 512;
/// The place of a slot in the list that took no key.
const NONE: u16 = u16::MAX;
const _: () = assert!(SHARD_SLOTS < NONE as u32);

/// Returns the bytes of shared memory for shards of `slots` slots: cells, the list, the ends of rounds, and some words.
pub const fn shared_bytes(slots: u32) -> u32 {
    let lists = 4 * slots + 2 * slots.next_multiple_of(2) + 2 * SHARD_ROUNDS;
    lists + 4 * WORDS
}

/// Words after the lists.
const WORDS: u32 = 3;
/// Counter of the place of the next free slot.
const CURSOR: u32 = 0;
/// Whether a slot has more keys than can be counted.
const OVERFLOWN: u32 = 1;
/// Counter of the keys that took a slot.
const TAKEN: u32 = 2;

/// The shared memory of a block.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Memory {
    cells: Shared<u32>,
    free: Shared<u16>,
    ends: Shared<u16>,
    words: Shared<u32>,
}

#[cfg(feature = "bodies")]
impl Memory {
    #[inline(always)]
    fn of(slots: u32) -> Memory {
        let ends = 4 * slots + 2 * slots.next_multiple_of(2);
        Memory {
            cells: shared::dynamic(0),
            free: shared::dynamic(4 * slots),
            ends: shared::dynamic(ends),
            words: shared::dynamic(ends + 2 * SHARD_ROUNDS),
        }
    }
}

/// The hashes of a shard's keys under one of its seeds.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Keys {
    hashes: Global<u64>,
    first: usize,
    count: u32,
    seed: u8,
}

#[cfg(feature = "bodies")]
impl Keys {
    /// Returns the hash of key `i`.
    ///
    /// # Safety
    /// - `i` is below the number of keys.
    #[inline(always)]
    unsafe fn hash(self, i: u32) -> u64 {
        // SAFETY: the caller keeps `i` in range.
        within_shard(unsafe { self.hashes.read_nc(self.first + i as usize) }, self.seed)
    }
}

/// Adds all keys to the cells, and lists the slots that have one.
///
/// # Safety
/// - All threads of the block call this together; `memory` is for `slots` slots, the number of the graph's.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn fill<const ARITY: usize>(memory: Memory, slots: u32, graph: Graph, keys: Keys) {
    let Memory { cells, free, words, .. } = memory;
    let (own, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    // SAFETY: slots and keys are in range; cells are changed by atomics alone between the barriers; a slot has one
    // place in the list.
    unsafe {
        let mut slot = own;
        while slot < slots {
            cells.set(slot, 0);
            slot += threads;
        }
        if own < WORDS {
            words.set(own, 0);
        }
        thread::sync_threads();
        let mut i = own;
        while i < keys.count {
            let positions = graph.positions::<ARITY>(keys.hash(i));
            for j in 0..ARITY {
                let before = cells.fetch_add(positions[j], in_shard(i));
                if split_in_shard(before).0 >= MOST_IN_SHARD {
                    words.set_volatile(OVERFLOWN, 1);
                }
            }
            i += threads;
        }
        thread::sync_threads();
        let mut slot = own;
        while slot < slots {
            if split_in_shard(cells.get(slot)).0 == 1 {
                free.set(words.fetch_add(CURSOR, 1), slot as u16);
            }
            slot += threads;
        }
        thread::sync_threads();
    }
}

/// Peels a filled graph; how many rounds that took, or `None` if some keys are left.
///
/// # Safety
/// As for [`fill`], which has run.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn peel<const ARITY: usize>(memory: Memory, graph: Graph, keys: Keys) -> Option<u32> {
    let Memory { cells, free, ends, words } = memory;
    let (own, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let (mut begin, mut rounds, mut taken) = (0, 0, 0);
    // SAFETY: what all threads read of `words` was written before a barrier and is written again after another one, so
    // they go through the same rounds; in a round cells are read first, and changed by atomics after a barrier, when
    // nothing reads but the cells that took a key, which have no other; no slot is listed twice, so there is a place.
    unsafe {
        if words.get_volatile(OVERFLOWN) != 0 {
            return None;
        }
        let mut end = words.get_volatile(CURSOR);
        while begin < end {
            if rounds == SHARD_ROUNDS {
                return None;
            }
            if own == 0 {
                ends.set(rounds, end as u16);
            }
            let mut i = begin + own;
            while i < end {
                let slot = free.get(i) as u32;
                let (count, key) = split_in_shard(cells.get(slot));
                let mut takes = count == 1;
                if takes {
                    let positions = graph.positions::<ARITY>(keys.hash(key));
                    for j in 0..ARITY {
                        let other = positions[j];
                        if other < slot && split_in_shard(cells.get(other)).0 == 1 {
                            takes = false;
                        }
                    }
                }
                if takes {
                    taken += 1;
                } else {
                    free.set(i, NONE);
                }
                i += threads;
            }
            thread::sync_threads();
            let mut i = begin + own;
            while i < end {
                let slot = free.get(i);
                if slot != NONE {
                    let slot = slot as u32;
                    let key = split_in_shard(cells.get_volatile(slot)).1;
                    let positions = graph.positions::<ARITY>(keys.hash(key));
                    for j in 0..ARITY {
                        let other = positions[j];
                        if other != slot {
                            let before = cells.fetch_add(other, in_shard(key).wrapping_neg());
                            if split_in_shard(before).0 == 2 {
                                free.set(words.fetch_add(CURSOR, 1), other as u16);
                            }
                        }
                    }
                }
                i += threads;
            }
            thread::sync_threads();
            begin = end;
            end = words.get_volatile(CURSOR);
            rounds += 1;
        }
        if taken > 0 {
            words.fetch_add(TAKEN, taken);
        }
        thread::sync_threads();
        let all = words.get_volatile(TAKEN) == keys.count;
        // The next attempt clears the words.
        thread::sync_threads();
        all.then_some(rounds)
    }
}

/// Puts contents into the cells of a peeled graph.
///
/// # Safety
/// The conditions of [`fill`]; [`peel`] took `rounds`; `contents` are those of all keys.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn assign<const ARITY: usize, F: Slot>(
    memory: Memory,
    graph: Graph,
    keys: Keys,
    contents: Contents,
    rounds: u32,
) {
    let Memory { cells, free, ends, .. } = memory;
    let (own, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let mut round = rounds;
    // SAFETY: by the contract, `ends` has an entry per round, and `free` the number of places that the last entry says;
    // slots of the list and of keys are below the graph's, the number of `cells`. One thread writes each slot. A key's
    // other slots have no keys, or took theirs in a later round, which the barrier at its end has made visible.
    unsafe {
        while round > 0 {
            round -= 1;
            let begin = if round == 0 { 0 } else { ends.get(round - 1) as u32 };
            let end = ends.get(round) as u32;
            let mut i = begin + own;
            while i < end {
                let slot = free.get(i);
                if slot != NONE {
                    let slot = slot as u32;
                    let key = split_in_shard(cells.get(slot)).1;
                    let hash = keys.hash(key);
                    let positions = graph.positions::<ARITY>(hash);
                    let mut value: F = contents.of(keys.first + key as usize, hash);
                    for j in 0..ARITY {
                        let other = positions[j];
                        if other != slot {
                            value = value ^ F::of(cells.get(other));
                        }
                    }
                    cells.set(slot, value.into());
                }
                i += threads;
            }
            thread::sync_threads();
        }
    }
}

/// Builds the shard of this block.
///
/// # Safety
/// The contract of the kernels below.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn build<const ARITY: usize, F: Slot>(
    hashes: Global<u64>,
    begins: Global<u64>,
    graph: Graph,
    contents: Contents,
    out: GlobalMut<F>,
    seeds: GlobalMut<u8>,
    failed: GlobalMut<u32>,
) {
    let shard = thread::block_idx_x() as usize;
    let (own, threads) = (thread::thread_idx_x(), thread::block_dim_x());
    let slots = graph.slots(ARITY as u32) as u32;
    let memory = Memory::of(slots);
    // SAFETY: the contract is that of this kernel; all threads have the same shard and the same results of `peel`, so
    // they reach the barriers together.
    unsafe {
        let (first, end) = (begins.read_nc(shard), begins.read_nc(shard + 1));
        let mut rounds = None;
        let mut seed = 0;
        if end - first <= slots as u64 {
            while seed < SHARD_SEEDS {
                let keys = Keys { hashes, first: first as usize, count: (end - first) as u32, seed: seed as u8 };
                fill::<ARITY>(memory, slots, graph, keys);
                rounds = peel::<ARITY>(memory, graph, keys);
                if let Some(rounds) = rounds {
                    assign::<ARITY, F>(memory, graph, keys, contents, rounds);
                    break;
                }
                // Before the cells are cleared.
                thread::sync_threads();
                seed += 1;
            }
        }
        if rounds.is_none() {
            if own == 0 {
                atomic::fetch_or(failed, 1);
            }
            return;
        }
        let mut slot = own;
        while slot < slots {
            out.write(shard * slots as usize + slot as usize, F::of(memory.cells.get(slot)));
            slot += threads;
        }
        if own == 0 {
            seeds.write(shard, seed as u8);
        }
    }
}

kernel! {
    /// Builds three-wise shards with contents of type `F`, one per block.
    ///
    /// # Safety
    /// - Launch: 1-D, one block of [`BLOCK`] threads per shard, [`shared_bytes`] of shared memory for the graph's
    ///   slots, at most `SHARD_SLOTS`.
    /// - `hashes`, `begins`: the hashes of shard `s` are those from `begins[s]` to before `begins[s + 1]`; neither is
    ///   written while the kernel runs.
    /// - `contents`: if `given`, one per hash, not written while the kernel runs; else fingerprints are stored.
    /// - `out`: the graph's slots for each shard; `seeds`: a byte for each; used by this launch alone.
    /// - `failed`: a word that is accessed by atomics alone; becomes 1 if a shard could not be built.
    #[launch_bounds(512, 2)]
    pub unsafe fn fuse_shards_three<F>(
        hashes: Global<u64>, begins: Global<u64>, graph: Graph, contents: Global<u32>, given: u32, out: GlobalMut<F>,
        seeds: GlobalMut<u8>, failed: GlobalMut<u32>,
    ) for [u8 => fuse_shards_three_u8, u16 => fuse_shards_three_u16, u32 => fuse_shards_three_u32] {
        // SAFETY: this kernel's contract.
        unsafe { build::<3, F>(hashes, begins, graph, Contents { contents, given: given != 0 }, out, seeds, failed) }
    }
}

kernel! {
    /// Builds four-wise shards with contents of type `F`, one per block.
    ///
    /// # Safety
    /// As for [`fuse_shards_three`].
    #[launch_bounds(512, 2)]
    pub unsafe fn fuse_shards_four<F>(
        hashes: Global<u64>, begins: Global<u64>, graph: Graph, contents: Global<u32>, given: u32, out: GlobalMut<F>,
        seeds: GlobalMut<u8>, failed: GlobalMut<u32>,
    ) for [u8 => fuse_shards_four_u8, u16 => fuse_shards_four_u16, u32 => fuse_shards_four_u32] {
        // SAFETY: this kernel's contract.
        unsafe { build::<4, F>(hashes, begins, graph, Contents { contents, given: given != 0 }, out, seeds, failed) }
    }
}
