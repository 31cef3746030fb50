//! Building a binary fuse filter of one graph: all blocks peel it in rounds over lists of slots that became free.
//!
//! A slot has a cell of 64 bits ([`warpset_core::fuse::cell`]), and at most one place of 32 bits in a list that grows
//! round by round; the slots of a round are neighbours. A round takes two launches, because all keys of a round see the
//! graph of its start. Rounds come in batches, each with an array `ends`: round `r` of a batch has the places from
//! `ends[r]` to before `ends[r + 1]`.

use warpset_core::fuse::Graph;
use warpset_core::fuse::cell::{MOST_IN_GRAPH, in_graph, split_in_graph};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

use crate::fuse::slot::{Contents, NONE, Slot};

/// Threads of a block, in all kernels here.
pub const BLOCK: u32 = 256;

/// Returns this thread's index in the grid and the number of threads in the grid.
#[cfg(feature = "bodies")]
#[inline(always)]
fn place_in_grid() -> (usize, usize) {
    let first = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    (first, thread::grid_dim_x() as usize * BLOCK as usize)
}

/// Appends a slot to the list if it is this lane's turn.
///
/// # Safety
/// - All lanes of the warp call this together.
/// - `cursor`: the place of the next slot, accessed by atomics alone while the kernel runs; `free`: valid for it.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn append(appends: bool, slot: u32, cursor: GlobalMut<u32>, free: GlobalMut<u32>) {
    // SAFETY: this function's contract; each lane that appends has a place of its own.
    unsafe {
        let lanes = warp::ballot(warp::FULL_MASK, appends);
        if lanes == 0 {
            return;
        }
        let mut place = 0;
        if warp::lane_id() == lanes.trailing_zeros() {
            place = atomic::fetch_add(cursor, lanes.count_ones());
        }
        let place = warp::shuffle_idx(warp::FULL_MASK, place, lanes.trailing_zeros());
        if appends {
            free.write((place + (lanes & warp::lane_mask_lt()).count_ones()) as usize, slot);
        }
    }
}

/// A graph that is peeled: the hashes of its keys, sorted or not, and its cells.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Peeled {
    hashes: Global<u64>,
    graph: Graph,
    cells: GlobalMut<u64>,
}

#[cfg(feature = "bodies")]
impl Peeled {
    /// Returns the slots of the one key that `slot` has.
    ///
    /// # Safety
    /// The slot has one key; only its other slots change while the kernel runs.
    #[inline(always)]
    #[track_caller]
    unsafe fn key_of<const ARITY: usize>(self, slot: u32) -> (u32, u64, [u32; ARITY]) {
        // SAFETY: the sum of one number is that of a key.
        unsafe {
            let key = split_in_graph(atomic::load_relaxed(self.cells.at(slot as usize))).1;
            let hash = self.hashes.read_nc(key as usize);
            (key, hash, self.graph.positions::<ARITY>(hash))
        }
    }

    /// Whether a free slot takes its key: unless the key is gone, or has a free slot before it.
    ///
    /// # Safety
    /// Nothing writes the cells while the kernel runs.
    #[inline(always)]
    unsafe fn takes<const ARITY: usize>(self, slot: u32) -> bool {
        // SAFETY: as the caller says; all slots are those of the graph.
        unsafe {
            let has_one = |slot: u32| split_in_graph(atomic::load_relaxed(self.cells.at(slot as usize))).0 == 1;
            if !has_one(slot) {
                return false;
            }
            let (_, _, positions) = self.key_of::<ARITY>(slot);
            let mut takes = true;
            for j in 0..ARITY {
                if positions[j] < slot && has_one(positions[j]) {
                    takes = false;
                }
            }
            takes
        }
    }

    /// Removes the key of `slot`, if it has one, from its other slots, and appends slots that became free.
    ///
    /// # Safety
    /// - As for [`append`].
    /// - Each slot that took a key of this round occurs once.
    #[inline(always)]
    unsafe fn remove<const ARITY: usize>(self, slot: u32, cursor: GlobalMut<u32>, free: GlobalMut<u32>) {
        // SAFETY: this function's contract; the key's number and slots are in range.
        unsafe {
            let mut positions = [slot; ARITY];
            let mut key = 0;
            if slot != NONE {
                (key, _, positions) = self.key_of::<ARITY>(slot);
            }
            for j in 0..ARITY {
                let other = positions[j];
                let mut is_free = false;
                if other != slot {
                    let before = atomic::fetch_add(self.cells.at(other as usize), in_graph(key).wrapping_neg());
                    is_free = split_in_graph(before).0 == 2;
                }
                append(is_free, other, cursor, free);
            }
        }
    }

    /// Writes the content of the key that `slot` took.
    ///
    /// # Safety
    /// - Slots of keys taken in later rounds have their contents, and slots of no key are zero; the slot is this
    ///   thread's.
    /// - `contents` are those of the graph's keys.
    #[inline(always)]
    unsafe fn assign<const ARITY: usize, F: Slot>(self, slot: u32, contents: Contents, out: GlobalMut<F>) {
        // SAFETY: as the caller says.
        unsafe {
            let (key, hash, positions) = self.key_of::<ARITY>(slot);
            let mut value: F = contents.of(key as usize, hash);
            for j in 0..ARITY {
                if positions[j] != slot {
                    value = value ^ out.read(positions[j] as usize);
                }
            }
            out.write(slot as usize, value);
        }
    }
}

/// Adds key `i` to its slots; whether one of them has more keys than can be counted.
///
/// # Safety
/// - The key exists, and the graph's cells are accessed by atomics alone.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn add<const ARITY: usize>(hash: u64, i: u32, graph: Graph, cells: GlobalMut<u64>) -> bool {
    let positions = graph.positions::<ARITY>(hash);
    let mut overflown = false;
    for j in 0..ARITY {
        // SAFETY: positions are slots of the graph.
        let before = unsafe { atomic::fetch_add(cells.at(positions[j] as usize), in_graph(i)) };
        overflown |= split_in_graph(before).0 >= MOST_IN_GRAPH;
    }
    overflown
}

kernel! {
    /// Adds all keys to their slots.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per key, [`BLOCK`] threads per block; `n` below 2^32, `arity` 3 or 4.
    /// - `hashes`: `n` words, not written while the kernel runs.
    /// - `cells`: a word per slot of the graph, zero before, accessed by this launch alone.
    /// - `failed`: accessed by atomics alone; becomes 1 if a slot has more keys than can be counted.
    pub unsafe fn fuse_graph_add(
        hashes: Global<u64>, n: usize, graph: Graph, arity: u32, cells: GlobalMut<u64>, failed: GlobalMut<u32>,
    ) {
        let (i, _) = place_in_grid();
        if i < n {
            // SAFETY: `i < n`.
            unsafe {
                let hash = hashes.read_nc(i);
                let overflown = if arity == 3 {
                    add::<3>(hash, i as u32, graph, cells)
                } else {
                    add::<4>(hash, i as u32, graph, cells)
                };
                if overflown {
                    atomic::fetch_or(failed, 1);
                }
            }
        }
    }
}

kernel! {
    /// Lists the slots that have one key.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per slot, [`BLOCK`] threads per block.
    /// - `cells`: `slots` words, not written while the kernel runs.
    /// - `free`: a place per slot; `end`: the place of the next one, 0 before; used by this launch alone.
    pub unsafe fn fuse_graph_free(cells: Global<u64>, slots: usize, free: GlobalMut<u32>, end: GlobalMut<u32>) {
        let (i, _) = place_in_grid();
        // SAFETY: `i < slots` where it is read; whole warps reach `append`.
        unsafe {
            let is_free = i < slots && split_in_graph(cells.read_nc(i)).0 == 1;
            append(is_free, i as u32, end, free);
        }
    }
}

kernel! {
    /// Takes keys, the first half of a round: replaces free slots that take no key by [`NONE`], and begins the next
    /// round's places.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads; `arity` 3 or 4.
    /// - `hashes`, `cells`: of the graph as the last round left it, not written while the kernel runs.
    /// - `free`: valid for the places of this round; `ends`: for `round + 3` words; used by this launch alone.
    pub unsafe fn fuse_graph_take(
        hashes: Global<u64>, graph: Graph, arity: u32, cells: GlobalMut<u64>, free: GlobalMut<u32>,
        ends: GlobalMut<u32>, round: u32,
    ) {
        let peeled = Peeled { hashes, graph, cells };
        let (own, threads) = place_in_grid();
        // SAFETY: each place belongs to one thread; the end of the next round is written by one.
        unsafe {
            let (begin, end) = (ends.read(round as usize), ends.read(round as usize + 1));
            if own == 0 {
                ends.write(round as usize + 2, end);
            }
            let mut i = begin as usize + own;
            while i < end as usize {
                let slot = free.read(i);
                let takes = if arity == 3 { peeled.takes::<3>(slot) } else { peeled.takes::<4>(slot) };
                if !takes {
                    free.write(i, NONE);
                }
                i += threads;
            }
        }
    }
}

kernel! {
    /// Removes keys, the second half of a round: taken keys leave their other slots, and slots that became free are
    /// listed.
    ///
    /// # Safety
    /// As for [`fuse_graph_take`], which has run for this round, but for cells, which are accessed by this launch
    /// alone; `free` is valid for all slots.
    pub unsafe fn fuse_graph_remove(
        hashes: Global<u64>, graph: Graph, arity: u32, cells: GlobalMut<u64>, free: GlobalMut<u32>,
        ends: GlobalMut<u32>, round: u32,
    ) {
        let peeled = Peeled { hashes, graph, cells };
        let (own, threads) = place_in_grid();
        // SAFETY: each place belongs to one thread; lanes of a warp go through the loop together, as their places
        // differ by less than a warp.
        unsafe {
            let (begin, end) = (ends.read(round as usize), ends.read(round as usize + 1));
            let cursor = ends.at(round as usize + 2);
            let lane = warp::lane_id() as usize;
            let mut first = begin as usize + own - lane;
            while first < end as usize {
                let i = first + lane;
                let slot = if i < end as usize { free.read(i) } else { NONE };
                if arity == 3 {
                    peeled.remove::<3>(slot, cursor, free);
                } else {
                    peeled.remove::<4>(slot, cursor, free);
                }
                first += threads;
            }
        }
    }
}

kernel! {
    /// Counts the slots in the list that took a key, added to `taken`.
    ///
    /// # Safety
    /// - Launch: 1-D, one thread per place, [`BLOCK`] threads per block.
    /// - `free`: `n` places, not written while the kernel runs; `taken`: accessed by atomics alone.
    pub unsafe fn fuse_graph_count(free: Global<u32>, n: usize, taken: GlobalMut<u64>) {
        let (i, _) = place_in_grid();
        // SAFETY: `i < n` where it is read; all threads reach the barrier.
        unsafe {
            let count = thread::sync_threads_count(i < n && free.read_nc(i) != NONE);
            if thread::thread_idx_x() == 0 && count > 0 {
                atomic::fetch_add(taken, count as u64);
            }
        }
    }
}

kernel! {
    /// Writes the contents, of type `F`, of the keys taken in a round: fingerprints, or with `given` those in
    /// `contents`.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads; `arity` 3 or 4.
    /// - `hashes`, `cells`, `free`, `ends`: of the peeled graph, not written while the kernel runs; `contents`: if
    ///   `given`, one per key, not written either.
    /// - `out`: the graph's slots, zero before this kernel ran for the last round; it has run for all later ones. Used
    ///   by this launch alone.
    pub unsafe fn fuse_graph_assign<F>(
        hashes: Global<u64>, graph: Graph, arity: u32, cells: GlobalMut<u64>, free: Global<u32>, ends: Global<u32>,
        round: u32, contents: Global<u32>, given: u32, out: GlobalMut<F>,
    ) for [u8 => fuse_graph_assign_u8, u16 => fuse_graph_assign_u16, u32 => fuse_graph_assign_u32] {
        let peeled = Peeled { hashes, graph, cells };
        let contents = Contents { contents, given: given != 0 };
        let (own, threads) = place_in_grid();
        // SAFETY: by the contract, `ends` has an entry for `round` and for the next one, `free` has the number of
        // places that these say, and slots are below the graph's. Each place of the list, and so each slot, belongs to
        // one thread.
        unsafe {
            let (begin, end) = (ends.read(round as usize), ends.read(round as usize + 1));
            let mut i = begin as usize + own;
            while i < end as usize {
                let slot = free.read_nc(i);
                if slot != NONE {
                    if arity == 3 {
                        peeled.assign::<3, F>(slot, contents, out);
                    } else {
                        peeled.assign::<4, F>(slot, contents, out);
                    }
                }
                i += threads;
            }
        }
    }
}
