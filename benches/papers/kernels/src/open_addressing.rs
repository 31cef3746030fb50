//! Hash table by open addressing, the usual set of integers in CUDA programs, for comparison with static sets.
//!
//! Slots are in windows of 32 bytes, a sector of memory, which one thread reads at once. A key goes to the first free
//! slot from its own window on, and a lookup ends at a window with a free slot. At half load most lookups end in the
//! first one.

use warpset_core::hash::finalise;
use warpset_simt::{Global, GlobalMut, atomic, thread};

/// Threads of a block.
pub const BLOCK: u32 = 256;
/// Slots per window.
pub const WINDOW: usize = 4;
/// Mark of a free slot; no key may have this value.
pub const FREE: u64 = u64::MAX;

/// Returns the window of a key.
#[inline(always)]
fn window_of(key: u64, windows: u64) -> usize {
    ((finalise(key) as u128 * windows as u128) >> 64) as usize
}

kernel! {
    /// Inserts `n` keys.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `table`: `windows > 0` windows with more free slots than there are keys, only accessed atomically while the
    ///   kernel runs.
    /// - `keys`: valid for `n` reads, none [`FREE`], not written while the kernel runs.
    pub unsafe fn open_addressing_insert(table: GlobalMut<u64>, windows: u64, keys: Global<u64>, n: usize) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; windows are below their number; there is a free slot, so the search ends.
            unsafe {
                let key = keys.read_nc(i);
                let mut window = window_of(key, windows);
                'search: loop {
                    for slot in window * WINDOW..(window + 1) * WINDOW {
                        let held = atomic::load_relaxed(table.at(slot));
                        let held = if held == FREE { atomic::compare_exchange(table.at(slot), FREE, key) } else { held };
                        if held == FREE || held == key {
                            break 'search;
                        }
                    }
                    window = if window + 1 == windows as usize { 0 } else { window + 1 };
                }
            }
        }
    }

    /// Looks up `n` keys, one per thread: byte `i` of `out` becomes 1 if key `i` is in the table, else 0.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `table`: `windows > 0` windows with at least one free slot, 16-byte aligned, not written while the kernel
    ///   runs.
    /// - `keys`: valid for `n` reads, not written while the kernel runs; `out`: `n` bytes, used by this launch alone.
    pub unsafe fn open_addressing_contains(
        table: Global<u64>, windows: u64, keys: Global<u64>, n: usize, out: GlobalMut<u8>,
    ) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; windows are below their number.
            unsafe {
                let key = keys.read_nc(i);
                let mut window = window_of(key, windows);
                let found = loop {
                    let [a, b] = table.read2_nc(window * WINDOW);
                    let [c, d] = table.read2_nc(window * WINDOW + 2);
                    if a == key || b == key || c == key || d == key {
                        break true;
                    }
                    if d == FREE {
                        break false;
                    }
                    window = if window + 1 == windows as usize { 0 } else { window + 1 };
                };
                out.write(i, found as u8);
            }
        }
    }
}
