//! Tile of a onesweep pass: read from global memory into registers, sorted by one digit, written to its places in the
//! output.

use crate::primitives::ranking::{self, DIGITS, Digit, SortKey};
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, Word, atomic, thread, warp};

// A pass's shared memory: the beginning of each digit's run in the output, the warps' counters, a few words, the tile.
const COUNTERS_AT: u32 = DIGITS * 8;

const fn misc_at(threads: u32) -> u32 {
    COUNTERS_AT + threads / 32 * DIGITS * 4
}

const fn tile_at(threads: u32) -> u32 {
    misc_at(threads) + 128
}

// The few words: a sum for each of at most 16 warps, and these.
const TICKET: u32 = 16;
const SHIFT: u32 = 17;

/// Shape of a pass: threads and items of a tile, bytes of dynamic shared memory.
#[derive(Clone, Copy, Debug)]
pub struct PassShape {
    /// Threads per block.
    pub threads: u32,
    /// Items per tile.
    pub tile: usize,
    /// Dynamic shared memory, in bytes.
    pub shared_bytes: u32,
}

impl PassShape {
    /// Returns the shape of `threads` with `items` items each; `payload_bytes` is 0 without payloads.
    pub const fn new(threads: u32, items: u32, key_bytes: u32, payload_bytes: u32) -> PassShape {
        let bytes = if key_bytes > payload_bytes { key_bytes } else { payload_bytes };
        PassShape {
            threads,
            tile: (threads * items) as usize,
            shared_bytes: tile_at(threads) + threads * items * bytes,
        }
    }
}

/// Returns a word of shared memory that [`scatter_tile`] does not use, for the caller's ticket.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn ticket_word<const WARPS: u32>() -> Shared<u32> {
    shared::dynamic::<u32>(misc_at(WARPS * 32)).at(TICKET)
}

/// Takes the block's next ticket, through a word of shared memory that [`scatter_tile`] does not use.
///
/// # Safety
/// All threads of the block call this together; `ticket` is one word that is only accessed atomically.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn take_ticket<const WARPS: u32>(ticket: GlobalMut<u32>) -> u32 {
    let word = ticket_word::<WARPS>();
    // SAFETY: the contract of this function; a barrier separates the write from the reads.
    unsafe {
        if thread::thread_idx_x() == 0 {
            word.set(0, atomic::fetch_add(ticket, 1));
        }
        thread::sync_threads();
        word.get(0)
    }
}

/// Moves a tile of `valid` items, which begins at `from`, sorted by `digit`. Thread `d` of the first [`DIGITS`] passes
/// the tile's count of digit `d` to `publish`, early, and later to `place`, which returns the place in `to` of the
/// first of these items. There is no barrier after the last access to shared memory.
///
/// # Safety
/// - All threads of a block of `WARPS` warps arrive, after a barrier since the shared memory was last used; it has the
///   size of the [`PassShape`].
/// - `from` is valid for `valid` items, at least 1 and at most `32 * WARPS * ITEMS`, not written while the kernel runs.
/// - From each result of `place` on, `to` is valid for the count that `place` got, and nothing else accesses these
///   places; the payloads likewise, if there are any.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn scatter_tile<K: SortKey, V: Word + Default, const PAYLOAD: bool, const WARPS: u32, const ITEMS: usize>(
    from: (Global<K>, Global<V>),
    to: (GlobalMut<K>, GlobalMut<V>),
    valid: u32,
    digit: Digit,
    publish: impl FnOnce(u32),
    place: impl FnOnce(u32) -> u64,
) {
    let threads = WARPS * 32;
    let tile_items = threads * ITEMS as u32;
    let runs: Shared<u64> = shared::dynamic(0);
    let counters: Shared<u32> = shared::dynamic(COUNTERS_AT);
    let misc: Shared<u32> = shared::dynamic(misc_at(threads));
    let sorted: Shared<K> = shared::dynamic(tile_at(threads));
    let sorted_values: Shared<V> = shared::dynamic(tile_at(threads));
    let t = thread::thread_idx_x();
    let row = counters.at(t / 32 * DIGITS);
    let (from, from_values) = from;
    let (to, to_values) = to;
    // SAFETY: shared indices stay inside the arrays (digits below `DIGITS`, places below the tile's length). A barrier
    // separates any two accesses of different threads to one word, except for the rows, each of which belongs to one
    // warp while it counts and ranks. Items are read below `valid`, and the items of a digit are written from its
    // `place` on. All threads reach every barrier and vote.
    unsafe {
        ranking::clear_row(row);
        if t == 0 {
            misc.set(SHIFT, digit.shift);
        }
        let first = t / 32 * (32 * ITEMS as u32) + warp::lane_id();

        // Places past the end get the last digit: they rank after everything, and no later tile reads these counts.
        let mut keys = [digit.last::<K>(); ITEMS];
        if valid == tile_items {
            for i in 0..ITEMS {
                keys[i] = from.read_nc((first + i as u32 * 32) as usize);
            }
        } else {
            for i in 0..ITEMS {
                let at = first + i as u32 * 32;
                if at < valid {
                    keys[i] = from.read_nc(at as usize);
                }
            }
        }
        for i in 0..ITEMS {
            row.reduce_add(digit.of(keys[i]), 1);
        }
        thread::sync_threads();
        let (count, start) = ranking::place_digits::<WARPS>(counters, WARPS, misc, publish);
        thread::sync_threads();

        // After the volatile read the shift is unknown to compiler and assembler: they recompute digits, in three
        // instructions, instead of keeping them in registers since the counting.
        let digit = Digit { shift: misc.get_volatile(SHIFT), ..digit };
        let mut ranks = [0u32; ITEMS]; // two of 16 bits a register
        for i in 0..ITEMS {
            let rank = ranking::rank(row, digit.of(keys[i]));
            sorted.set(rank, keys[i]);
            if PAYLOAD {
                ranks[i / 2] |= rank << (16 * (i % 2));
            }
        }

        let digit = Digit { shift: misc.get_volatile(SHIFT), ..digit };
        // Payloads are loaded while the block looks back.
        let mut values = [V::default(); ITEMS];
        if PAYLOAD {
            for i in 0..ITEMS {
                let at = first + i as u32 * 32;
                if at < valid {
                    values[i] = from_values.read_nc(at as usize);
                }
            }
        }
        if t < DIGITS {
            runs.set(t, place(count).wrapping_sub(start as u64));
        }
        thread::sync_threads();

        let mut digits = [0u32; ITEMS]; // four a register
        for i in 0..ITEMS {
            let at = t + i as u32 * threads;
            if at < valid {
                let key = sorted.get(at);
                let d = digit.of(key);
                to.write(runs.get(d).wrapping_add(at as u64) as usize, key);
                if PAYLOAD {
                    digits[i / 4] |= d << (8 * (i % 4));
                }
            }
        }
        if PAYLOAD {
            thread::sync_threads();
            for i in 0..ITEMS {
                sorted_values.set(ranks[i / 2] >> (16 * (i % 2)) & 0xffff, values[i]);
            }
            thread::sync_threads();
            for i in 0..ITEMS {
                let at = t + i as u32 * threads;
                if at < valid {
                    let d = digits[i / 4] >> (8 * (i % 4)) & 0xff;
                    to_values.write(runs.get(d).wrapping_add(at as u64) as usize, sorted_values.get(at));
                }
            }
        }
    }
}
