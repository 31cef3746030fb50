//! The indices of a thread, and the barriers of its block.
use crate::target::thread as imp;

macro_rules! indices {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[inline(always)]
        #[must_use]
        pub fn $name() -> u32 {
            imp::$name()
        }
    )*};
}

indices! {
    /// This thread's x index in its block.
    thread_idx_x;
    /// This thread's y index in its block.
    thread_idx_y;
    /// This thread's z index in its block.
    thread_idx_z;
    /// This block's x index in the grid.
    block_idx_x;
    /// This block's y index in the grid.
    block_idx_y;
    /// This block's z index in the grid.
    block_idx_z;
    /// Threads of a block along x.
    block_dim_x;
    /// Threads of a block along y.
    block_dim_y;
    /// Threads of a block along z.
    block_dim_z;
    /// Blocks of the grid along x.
    grid_dim_x;
    /// Blocks of the grid along y.
    grid_dim_y;
    /// Blocks of the grid along z.
    grid_dim_z;
}

/// Returns `block_idx_x * block_dim_x + thread_idx_x`, which wraps past 2³² threads.
#[inline(always)]
#[must_use]
pub fn index_1d() -> u32 {
    block_idx_x().wrapping_mul(block_dim_x()).wrapping_add(thread_idx_x())
}

/// Iterates over the indices below `n` that belong to this thread of a 1-D grid: its own, then one per whole grid
/// further.
#[inline(always)]
#[must_use]
pub fn grid_stride(n: usize) -> GridStride {
    GridStride {
        next: block_idx_x() as usize * block_dim_x() as usize + thread_idx_x() as usize,
        end: n,
        step: grid_dim_x() as usize * block_dim_x() as usize,
    }
}

/// The iterator that [`grid_stride`] returns.
#[derive(Clone, Debug)]
pub struct GridStride {
    next: usize,
    end: usize,
    step: usize,
}

impl Iterator for GridStride {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        let i = self.next;
        if i < self.end {
            self.next = i.wrapping_add(self.step);
            Some(i)
        } else {
            None
        }
    }
}

/// Waits for all threads of the block; orders their accesses to shared and global memory.
///
/// Every thread of the block must reach the same call. (A divergent call is reported
/// by the emulator and undefined on the device.)
#[inline(always)]
#[track_caller]
pub fn sync_threads() {
    imp::sync_threads();
}

/// Meets at a barrier like [`sync_threads`], and counts the threads whose `predicate` is true.
#[inline(always)]
#[track_caller]
#[must_use]
pub fn sync_threads_count(predicate: bool) -> u32 {
    imp::sync_threads_count(predicate)
}

/// Meets at a barrier like [`sync_threads`], and returns whether every `predicate` is true.
#[inline(always)]
#[track_caller]
#[must_use]
pub fn sync_threads_and(predicate: bool) -> bool {
    imp::sync_threads_and(predicate)
}

/// Meets at a barrier like [`sync_threads`], and returns whether any `predicate` is true.
#[inline(always)]
#[track_caller]
#[must_use]
pub fn sync_threads_or(predicate: bool) -> bool {
    imp::sync_threads_or(predicate)
}

/// Belongs into every loop that waits for another thread. Does nothing on the device; the emulator runs other threads
/// here, and reports a deadlock if all of them wait.
#[inline(always)]
#[track_caller]
pub fn spin_hint() {
    imp::spin_hint();
}

/// Sleeps for about `nanoseconds` (0 to twice that). On the emulator a [`spin_hint`].
#[inline(always)]
#[track_caller]
pub fn nanosleep(nanoseconds: u32) {
    imp::nanosleep(nanoseconds);
}

/// Reads a counter of processor cycles, for delays and measurements. On the emulator it counts scheduling steps.
#[inline(always)]
#[must_use]
pub fn clock() -> u32 {
    imp::clock()
}

/// Ends the whole launch with an error. On the emulator this thread panics.
#[inline(always)]
#[track_caller]
pub fn trap() -> ! {
    imp::trap()
}
