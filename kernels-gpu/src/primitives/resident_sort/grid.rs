//! Cooperation of the blocks of a resident grid: they wait for each other, and sum their counts.

use warpset_simt::shared::Shared;
use warpset_simt::{GlobalMut, ShuffleWord, atomic, fence, thread};

use super::interval::bounds_of_block;
use super::{COUNT_WORDS, ROW};
use crate::primitives::ranking::{DIGITS, SortKey};

/// Barrier of the grid, in two steps.
#[derive(Clone, Copy)]
pub(super) struct GridBarrier {
    arrived: GlobalMut<u32>,
    waits: u32,
}

impl GridBarrier {
    /// Returns a barrier at a word that is zero before the launch, which alone uses it.
    #[inline(always)]
    pub(super) fn new(arrived: GlobalMut<u32>) -> Self {
        GridBarrier { arrived, waits: 0 }
    }

    /// Signals to the other blocks that this one's writes are done.
    ///
    /// # Safety
    /// All threads of the block call this together; the word is zero before the launch, which alone uses it.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn arrive(self) {
        thread::sync_threads();
        if thread::thread_idx_x() == 0 {
            fence::device();
            // SAFETY: the contract of this function.
            unsafe { atomic::reduce_add(self.arrived, 1) };
        }
    }

    /// Waits until all blocks have arrived as often as this one.
    ///
    /// # Safety
    /// The contract of [`arrive`](Self::arrive), which has been called before; all blocks of the grid are resident.
    #[inline(always)]
    #[track_caller]
    pub(super) unsafe fn wait(&mut self) {
        self.waits += 1;
        if thread::thread_idx_x() == 0 {
            // SAFETY: the contract of this function.
            while unsafe { atomic::load_relaxed(self.arrived) } < self.waits * thread::grid_dim_x() {
                thread::spin_hint();
            }
            fence::device();
        }
        thread::sync_threads();
    }
}

/// Returns the least and the greatest of the blocks' values, for keys without atomic comparisons. Each block writes its
/// own to its second row of the matrix, which the first exchange does not use.
///
/// # Safety
/// - All threads of a block of `WARPS` warps call this together, in all blocks of the grid, before the first exchange;
///   there are at most as many blocks as threads of a block.
/// - `matrix` has a row of [`COUNT_WORDS`] for each block.
/// - `scratch` satisfies the contract of [`bounds_of_block`], and `own` are its results.
#[inline(always)]
pub(super) unsafe fn bounds_of_grid<K: SortKey + ShuffleWord, const WARPS: u32>(
    own: (K, K),
    barrier: &mut GridBarrier,
    matrix: GlobalMut<u32>,
    scratch: Shared<K>,
) -> (K, K) {
    let (t, blocks) = (thread::thread_idx_x(), thread::grid_dim_x());
    let table: GlobalMut<K> = matrix.at((COUNT_WORDS / 2 * blocks) as usize).cast();
    // SAFETY: each block has two keys, which it alone writes; a barrier of the grid separates these writes from the
    // reads of other blocks, and barriers of the block separate the uses of scratch.
    unsafe {
        if t == 0 {
            table.write(2 * thread::block_idx_x() as usize, own.0);
            table.write(2 * thread::block_idx_x() as usize + 1, own.1);
        }
        barrier.arrive();
        barrier.wait();
        let mut bounds = own;
        if t < blocks {
            bounds = (table.read(2 * t as usize), table.read(2 * t as usize + 1));
        }
        bounds_of_block::<K, WARPS>(bounds, scratch)
    }
}

/// Returns the counts of this thread's digit in the whole grid, and in earlier blocks; for the first [`DIGITS`]
/// threads.
///
/// # Safety
/// - All threads of a block of `THREADS` call this together.
/// - `counts` has a row per block, which no thread writes meanwhile.
/// - `sums` is shared memory for `4 * THREADS` words, which nothing else uses.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn add_up<const THREADS: u32>(counts: GlobalMut<u32>, sums: Shared<u32>) -> (u32, u32) {
    const IN_FLIGHT: u32 = 8;
    let t = thread::thread_idx_x();
    let (blocks, own) = (thread::grid_dim_x(), thread::block_idx_x());
    let (column, group, groups) = (t % ROW, t / ROW, THREADS / ROW);
    let (mut all, mut before) = ([0; 2], [0; 2]);
    // SAFETY: rows are below the grid; each thread has four words of its own, and a barrier separates their writes from
    // reads.
    unsafe {
        let mut first = group;
        while first < blocks {
            let mut words = [0; IN_FLIGHT as usize];
            for u in 0..IN_FLIGHT {
                let row = first + u * groups;
                if row < blocks {
                    words[u as usize] = counts.read((row * ROW + column) as usize);
                }
            }
            for u in 0..IN_FLIGHT {
                let word = words[u as usize];
                let (low, high) = (word & 0xffff, word >> 16);
                all = [all[0] + low, all[1] + high];
                if first + u * groups < own {
                    before = [before[0] + low, before[1] + high];
                }
            }
            first += IN_FLIGHT * groups;
        }
        let others = sums.at(2 * THREADS);
        for half in 0..2 {
            sums.set(group * DIGITS + 2 * column + half, all[half as usize]);
            others.set(group * DIGITS + 2 * column + half, before[half as usize]);
        }
        thread::sync_threads();
        let (mut all, mut before) = (0, 0);
        if t < DIGITS {
            for g in 0..groups {
                all += sums.get(g * DIGITS + t);
                before += others.get(g * DIGITS + t);
            }
        }
        (all, before)
    }
}
