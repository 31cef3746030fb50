//! Key redistribution: the keys of solved splittings go to their children, and the children to their lists.
//!
//! Source: D. Bez, "Perfect Hash Function Generation on the GPU with RecSplit", master's thesis, KIT 2022, section
//! 5.6.3. The order of keys within a child depends on the order of threads; it cannot change a number, because a
//! candidate solves a node by the set of its keys.

use warpset_core::recsplit::candidate::{Candidate, child_of_hash};
use warpset_core::recsplit::hash;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, thread};

#[cfg(feature = "bodies")]
use crate::recsplit::append::append;
use crate::recsplit::nodes::{Item, Mix, NO_LIST};
#[cfg(feature = "bodies")]
use crate::recsplit::nodes::{fail, node};

/// The most threads of a block.
pub const MOST_THREADS: u32 = 256;
/// Keys that fit the block's shared memory; larger nodes use memory of the device.
pub const KEYS_IN_SHARED: u32 = 2048;

/// Returns the bytes of shared memory for nodes of up to `keys` keys.
pub const fn shared_bytes(keys: u32) -> u32 {
    64 + 8 * if keys > KEYS_IN_SHARED { KEYS_IN_SHARED } else { keys }
}

kernel! {
    /// Moves the keys of each splitting of a list to its children, and appends these to their lists. A block takes a
    /// node.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of whole warps, at most [`MOST_THREADS`], [`shared_bytes`] of shared memory
    ///   for the largest node of the list.
    /// - `items`: valid for the `count` items from `first` on, which are written before the launch, and for the
    ///   children's items after the `cursors`, as for [`append`]; the two do not overlap.
    /// - `nodes`, `lists`: rows and lists for all sizes of nodes, not written while the kernel runs.
    /// - `lows`: the keys of all items; no two items share keys, and this launch alone uses them. So is `other`, as
    ///   long as `lows`, if a node has more than [`KEYS_IN_SHARED`] keys.
    /// - `numbers`: valid for the places of all items, and not written while the kernel runs.
    /// - `failure`: as for [`fail`].
    #[launch_bounds(256)]
    pub unsafe fn recsplit_distribute<M>(
        items: GlobalMut<u32>, first: usize, count: usize, nodes: Global<u32>, lists: Global<u32>, higher: u32,
        cursors: GlobalMut<u32>, start: M, lows: GlobalMut<u64>, other: GlobalMut<u64>, numbers: Global<u64>,
        failure: GlobalMut<u32>,
    ) for [u32 => recsplit_distribute_32, u64 => recsplit_distribute_64] {
        let start = start.seed();
        let (own, threads) = (thread::thread_idx_x(), thread::block_dim_x());
        let places: Shared<u32> = shared::dynamic(0);
        let in_shared: Shared<u64> = shared::dynamic(64);
        let mut index = thread::block_idx_x() as usize;
        while index < count {
            // SAFETY: this kernel's contract; all threads of the block have the same item, so they reach the barriers
            // together; keys are moved after all have been copied; there are counters for the most children, 9.
            unsafe {
                let item = Item::read(items.as_const(), first + index);
                if item.keys == 0 {
                    index += thread::grid_dim_x() as usize;
                    continue;
                }
                let row = node(nodes, item.keys);
                let number = numbers.read(item.place as usize);
                if number == u64::MAX {
                    if own == 0 {
                        fail(failure, item);
                    }
                } else {
                    let (unit, groups) = (row.unit as u32, row.groups as u32);
                    let candidate = Candidate::of(number, &row);
                    let fits = item.keys <= KEYS_IN_SHARED;
                    if own < 16 {
                        places.set(own, own * unit);
                    }
                    let mut i = own;
                    while i < item.keys {
                        let at = (item.first + i) as usize;
                        let key = lows.read(at);
                        if fits {
                            in_shared.set(i, key);
                        } else {
                            other.write(at, key);
                        }
                        i += threads;
                    }
                    thread::sync_threads();
                    let mut i = own;
                    while i < item.keys {
                        let key =
                            if fits { in_shared.get(i) } else { other.read((item.first + i) as usize) };
                        let hash = hash::trial_hash(M::REMIX, key, start, candidate.trial);
                        let rotation = candidate.rotation(hash::group_of(key, groups), row.radix as u32);
                        let place = places.fetch_add(child_of_hash(hash, &row, rotation), 1);
                        lows.write((item.first + place) as usize, key);
                        i += threads;
                    }
                    if own < 32 {
                        let last = row.fanout as u32 - 1;
                        let (mut child, mut list) = (Item::default(), NO_LIST);
                        if own <= last {
                            child.first = item.first + own * unit;
                            child.keys = if own == last { item.keys - last * unit } else { unit };
                            let of_child = if own == 0 { 0 } else { node(nodes, unit).nodes as u32 };
                            child.place = item.place + 1 + own * of_child;
                            list = lists.read_nc(child.keys as usize);
                        }
                        append(list, higher, child, cursors, items);
                    }
                }
                thread::sync_threads();
            }
            index += thread::grid_dim_x() as usize;
        }
    }
}
