//! Frame of a search: counts of buckets by size, the root of each bucket, and the check that all leaves have a number.

use warpset_simt::{Global, GlobalMut, atomic, shared, thread};

#[cfg(feature = "bodies")]
use crate::recsplit::append::append;
#[cfg(feature = "bodies")]
use crate::recsplit::nodes::fail;
use crate::recsplit::nodes::{Item, NO_LIST};

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// Returns the bytes of shared memory of [`recsplit_sizes`] for counts of sizes below `rows`.
pub const fn sizes_shared_bytes(rows: u32) -> u32 {
    4 * rows
}

kernel! {
    /// Counts the buckets of each size in `sizes`; larger buckets than the largest size count as one more than it.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, [`sizes_shared_bytes`] of `rows` bytes of shared memory;
    ///   `rows` is `largest + 2`, or 0 to count without shared memory.
    /// - `bounds`: valid for `buckets + 1` reads, not written while the kernel runs, ascending.
    /// - `sizes`: `largest + 2` words, accessed by atomics alone while the kernel runs.
    #[launch_bounds(256)]
    pub unsafe fn recsplit_sizes(
        bounds: Global<u32>, buckets: usize, largest: u32, rows: u32, sizes: GlobalMut<u32>,
    ) {
        let counts = shared::dynamic::<u32>(0);
        let own = thread::thread_idx_x();
        // SAFETY: this kernel's contract: `bucket < buckets`, rows and sizes are below `largest + 2`; all threads of
        // the block reach the barriers.
        unsafe {
            let mut row = own;
            while row < rows {
                counts.set(row, 0);
                row += BLOCK;
            }
            thread::sync_threads();
            for bucket in thread::grid_stride(buckets) {
                let keys = bounds.read_nc(bucket + 1) - bounds.read_nc(bucket);
                let size = keys.min(largest + 1);
                if rows > 0 {
                    counts.reduce_add(size, 1);
                } else {
                    atomic::reduce_add(sizes.at(size as usize), 1);
                }
            }
            thread::sync_threads();
            let mut row = own;
            while row < rows {
                let count = counts.get_volatile(row);
                if count != 0 {
                    atomic::reduce_add(sizes.at(row as usize), count);
                }
                row += BLOCK;
            }
        }
    }
}

kernel! {
    /// Puts the root of each bucket into the list of its size.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads.
    /// - `bounds`: valid for `buckets + 1` reads, `first_number` for `buckets`, not written while the kernel runs;
    ///   `bounds` ascends.
    /// - `lists`: the list of each size of a bucket, or [`NO_LIST`]; `higher`, `cursors` and `items`: as for
    ///   [`append`].
    #[launch_bounds(256)]
    pub unsafe fn recsplit_roots(
        bounds: Global<u32>, buckets: usize, first_number: Global<u32>, lists: Global<u32>, higher: u32,
        cursors: GlobalMut<u32>, items: GlobalMut<u32>,
    ) {
        let mut base = (thread::block_idx_x() * BLOCK) as usize;
        while base < buckets {
            let bucket = base + thread::thread_idx_x() as usize;
            let (mut item, mut list) = (Item::default(), NO_LIST);
            // SAFETY: this kernel's contract; `bucket < buckets` where it is read; whole warps append.
            unsafe {
                if bucket < buckets {
                    item.first = bounds.read_nc(bucket);
                    item.keys = bounds.read_nc(bucket + 1) - item.first;
                    item.place = first_number.read_nc(bucket);
                    list = lists.read_nc(item.keys as usize);
                }
                append(list, higher, item, cursors, items);
            }
            base += (thread::grid_dim_x() * BLOCK) as usize;
        }
    }
}

kernel! {
    /// Keeps the least of the items of a list whose number is all ones.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size.
    /// - `items`: valid for the `count` items from `first` on; `numbers`: valid at their places; neither is written
    ///   while the kernel runs.
    /// - `failure`: as for [`fail`].
    #[launch_bounds(256)]
    pub unsafe fn recsplit_check(
        items: Global<u32>, first: usize, count: usize, numbers: Global<u64>, failure: GlobalMut<u32>,
    ) {
        for i in thread::grid_stride(count) {
            // SAFETY: this kernel's contract.
            unsafe {
                let item = Item::read(items, first + i);
                if item.keys != 0 && numbers.read(item.place as usize) == u64::MAX {
                    fail(failure, item);
                }
            }
        }
    }
}
