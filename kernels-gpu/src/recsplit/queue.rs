//! Queues of a list's nodes. Searches differ tenfold in length, so each worker takes the next node when it is done.

use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, atomic, thread};

/// Returns the next node for the calling block.
///
/// # Safety
/// All threads of the block come here together; `next` counts the nodes that are taken, by atomics alone; no other
/// thread uses the word `slot` of shared memory.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn of_block(next: GlobalMut<u32>, slot: Shared<u32>) -> usize {
    // SAFETY: this function's contract; barriers precede and follow the write.
    unsafe {
        thread::sync_threads();
        if thread::thread_idx_x() == 0 {
            slot.set(0, atomic::fetch_add(next, 1));
        }
        thread::sync_threads();
        slot.get_volatile(0) as usize
    }
}

/// A list of nodes that blocks take one after the other.
#[derive(Clone, Copy)]
pub struct List {
    /// The items of all lists.
    pub items: Global<u32>,
    /// The list's first item.
    pub first: usize,
    /// Number of its items.
    pub count: usize,
    /// Counter of nodes taken, from 0 on, accessed by atomics alone.
    pub next: GlobalMut<u32>,
}

/// Runs `body` for every node of a [`List`] that the calling block takes. `team` blocks take a node together; without
/// teams (`team` is 1) a block takes the next node. For use in an `unsafe` block.
///
/// A macro, because the kernels that search are short of registers: with a function that takes a closure, the compiler
/// orders their code differently, and `ptxas` spills.
///
/// # Safety
/// - All threads of the grid, a multiple of `team` blocks, come here together and leave the body together.
/// - The items are valid for reading, and nothing writes them meanwhile; no other thread uses the word `slot` of shared
///   memory.
macro_rules! each_node {
    ($list:expr, team $team:expr, $slot:expr, |$item:ident| $body:block) => {
        let crate::recsplit::queue::List { items, first, count, next } = $list;
        let teams = (::warpset_simt::thread::grid_dim_x() / $team) as usize;
        let mut index = (::warpset_simt::thread::block_idx_x() / $team) as usize;
        loop {
            if $team == 1 {
                index = crate::recsplit::queue::of_block(next, $slot);
            }
            if index >= count {
                break;
            }
            let $item = crate::recsplit::nodes::Item::read(items, first + index);
            index += teams;
            if $item.keys == 0 {
                continue;
            }
            $body
        }
    };
}
pub(crate) use each_node;

/// Nodes of a group of lanes: several at a time, so that short searches do not wait for the counter.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Queue {
    next: GlobalMut<u32>,
    /// Nodes to take at a time.
    step: u32,
    count: u32,
    /// Nodes that have been taken and not begun.
    from: u32,
    to: u32,
}

#[cfg(feature = "bodies")]
impl Queue {
    /// Makes the queue of a list of `count` nodes; `step` of them are taken at a time.
    #[inline(always)]
    pub fn new(next: GlobalMut<u32>, count: usize, step: u32) -> Self {
        Self { next, step, count: count as u32, from: 0, to: 0 }
    }

    /// Returns the next node for a group of lanes that `wants` one.
    ///
    /// # Safety
    /// All lanes of the warp come here together, those of a group with the same `wants` and the same `leader`, which is
    /// one of them; `next` counts the nodes taken, by atomics alone.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn take(&mut self, wants: bool, leader: u32) -> Option<usize> {
        // After the last node no more are taken.
        let asks = wants && self.from == self.to && self.to < self.count + (self.to == 0) as u32;
        let mut first = 0;
        // SAFETY: this function's contract.
        unsafe {
            if asks && warp::lane_id() == leader {
                first = atomic::fetch_add(self.next, self.step);
            }
            first = warp::shuffle_idx(FULL_MASK, first, leader);
        }
        if asks {
            self.from = first.min(self.count);
            self.to = first.saturating_add(self.step).min(self.count);
        }
        if !wants || self.from == self.to {
            return None;
        }
        self.from += 1;
        Some(self.from as usize - 1)
    }
}
