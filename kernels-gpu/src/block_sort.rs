//! A block sorts the items that it holds, digit by digit through shared memory.

use crate::ranking::{self, DIGITS, Key};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{thread, warp};

/// The shared memory of a block of `WARPS` warps with `ITEMS` items a thread: counters, a few words, keys, origins.
#[derive(Clone, Copy)]
pub struct BlockSort<K, const WARPS: u32, const ITEMS: usize> {
    counters: Shared<u32>,
    sums: Shared<u32>,
    keys: Shared<K>,
    origins: Shared<u16>,
}

impl<K: Key, const WARPS: u32, const ITEMS: usize> BlockSort<K, WARPS, ITEMS> {
    const TILE: u32 = 32 * WARPS * ITEMS as u32;
    const SUMS_AT: u32 = WARPS * DIGITS * 4;
    const KEYS_AT: u32 = Self::SUMS_AT + 128;
    const ORIGINS_AT: u32 = Self::KEYS_AT + Self::TILE * size_of::<K>() as u32;
    /// Bytes that it takes.
    pub const SHARED_BYTES: u32 = Self::ORIGINS_AT + Self::TILE * 2;

    /// In the dynamic shared memory, from its start.
    #[inline(always)]
    pub fn in_shared_memory() -> Self {
        Self {
            counters: shared::dynamic(0),
            sums: shared::dynamic(Self::SUMS_AT),
            keys: shared::dynamic(Self::KEYS_AT),
            origins: shared::dynamic(Self::ORIGINS_AT),
        }
    }

    /// The place of this thread's item `i` when each thread has `rows` items.
    #[inline(always)]
    pub fn place(rows: u32, i: usize) -> u32 {
        (thread::thread_idx_x() / 32 * rows + i as u32) * 32 + warp::lane_id()
    }

    /// One stable pass over a digit. `rows` items of each thread take part, at most `ITEMS`; with `ORIGINS`, each item
    /// has a number of 16 bits beside its key. Two barriers pass before shared memory other than the counters is written,
    /// and none after it has been read.
    ///
    /// # Safety
    /// All threads of the block arrive with the same `rows`; the memory is nobody else's; digits are below [`DIGITS`].
    #[inline(always)]
    pub unsafe fn pass<const ORIGINS: bool>(
        self,
        keys: &mut [K; ITEMS],
        origins: &mut [u32; ITEMS],
        rows: u32,
        digit_of: impl Fn(K, u32) -> u32,
    ) {
        let row = self.counters.at(thread::thread_idx_x() / 32 * DIGITS);
        // SAFETY: a row is its warp's own between the barriers around the sums; places are those of a sorted tile, so
        // they are below `TILE` and differ.
        unsafe {
            ranking::clear_row(row);
            for i in 0..ITEMS {
                if (i as u32) < rows {
                    row.reduce_add(digit_of(keys[i], origins[i]), 1);
                }
            }
            thread::sync_threads();
            ranking::place_digits::<WARPS>(self.counters, WARPS, self.sums, |_| ());
            thread::sync_threads();
            for i in 0..ITEMS {
                if (i as u32) < rows {
                    let rank = ranking::rank(row, digit_of(keys[i], origins[i]));
                    self.keys.set(rank, keys[i]);
                    if ORIGINS {
                        self.origins.set(rank, origins[i] as u16);
                    }
                }
            }
            thread::sync_threads();
            for i in 0..ITEMS {
                if (i as u32) < rows {
                    keys[i] = self.keys.get(Self::place(rows, i));
                    if ORIGINS {
                        origins[i] = self.origins.get(Self::place(rows, i)) as u32;
                    }
                }
            }
        }
    }
}
