//! One radix pass over 64-bit hashes: histogram, scan of the digits, and a single-pass scatter.
//!
//! The scatter is "onesweep" (Adinets and Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs",
//! 2022): every tile ranks its hashes in shared memory, learns by decoupled look-back (Merrill and Garland, 2016) the
//! number of hashes of each digit in earlier tiles, and writes each digit's hashes in one run. The pass is stable, so
//! passes over successive digits sort.
//!
//! If the order within a digit does not matter, [`radix_group`] ranks by shared-memory atomics instead.
//!
//! Departures: keys are hashed while they are loaded, in the histogram and again in the scatter, because reading a key
//! twice costs less than writing its hash once more; the look-back words are 64 bits wide, so one pass takes more than
//! 2^30 keys; and the departures of [`ranking`], which sorting shares.

use crate::batch::keys::{Hasher, KeyKind};
#[cfg(feature = "bodies")]
use crate::batch::keys::{WithHasher, with_hasher};
use crate::block;
use crate::primitives::ranking::{self, LookBack};
use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads per block, in every kernel of this module.
pub const BLOCK: u32 = 256;
/// Largest number of digits of a pass: 8 bits.
pub const MAX_DIGITS: u32 = ranking::DIGITS;
/// Hashes of one tile of the stable scatter.
pub const TILE: usize = BLOCK as usize * ITEMS;
/// Hashes of one tile of the scatter that does not keep order.
pub const GROUP_TILE: usize = BLOCK as usize * GROUP_ITEMS;
/// Dynamic shared memory of the histogram, in bytes.
pub const HISTOGRAM_SHARED_BYTES: u32 = WARPS * MAX_DIGITS * 4;
/// Dynamic shared memory of the stable scatter, in bytes.
pub const PASS_SHARED_BYTES: u32 = shared_bytes(TILE, WARPS);
/// Dynamic shared memory of the scatter that does not keep order, in bytes.
pub const GROUP_SHARED_BYTES: u32 = shared_bytes(GROUP_TILE, 1);

const ITEMS: usize = 12;
const GROUP_ITEMS: usize = 12;
const WARPS: u32 = BLOCK / 32;
// The scatter's shared memory: the beginning of each digit's run in the output, the sorted tile, rows of counters (one
// per warp if the order is kept, otherwise one per block), and a few words.
const HASHES_AT: u32 = MAX_DIGITS * 8;

const fn counters_at(tile: usize) -> u32 {
    HASHES_AT + tile as u32 * 8
}

const fn misc_at(tile: usize, rows: u32) -> u32 {
    counters_at(tile) + rows * MAX_DIGITS * 4
}

const fn shared_bytes(tile: usize, rows: u32) -> u32 {
    misc_at(tile, rows) + 64
}

#[cfg(feature = "bodies")]
#[inline(always)]
fn digit_of(hash: u64, shift: u32, bits: u32) -> u32 {
    (hash >> shift) as u32 & ((1 << bits) - 1)
}

/// Counts digits; grid-stride.
#[cfg(feature = "bodies")]
struct Histogram {
    n: usize,
    shift: u32,
    bits: u32,
    counts: GlobalMut<u64>,
}

#[cfg(feature = "bodies")]
impl WithHasher for Histogram {
    #[inline(always)]
    unsafe fn run<H: Hasher>(self, hasher: H) {
        let digits = 1 << self.bits;
        let rows: Shared<u32> = shared::dynamic(0);
        let t = thread::thread_idx_x();
        let row = t / 32 * MAX_DIGITS;
        // SAFETY: shared indices stay below `WARPS * MAX_DIGITS`; each lane zeroes words of its own warp's row, and
        // barriers separate zeroing, counting and adding up; `t < digits`, the length of `counts`, which is only
        // accessed atomically; `i < n`.
        unsafe {
            let mut d = t % 32;
            while d < digits {
                rows.set(row + d, 0);
                d += 32;
            }
            warp::sync_warp(warp::FULL_MASK);
            // Four loads in flight per thread.
            let step = thread::grid_dim_x() as usize * BLOCK as usize;
            let mut i = thread::block_idx_x() as usize * BLOCK as usize + t as usize;
            while i + 3 * step < self.n {
                let mut hashes = [0; 4];
                for u in 0..4 {
                    hashes[u] = hasher.hash(i + u * step);
                }
                for u in 0..4 {
                    rows.reduce_add(row + digit_of(hashes[u], self.shift, self.bits), 1);
                }
                i += 4 * step;
            }
            while i < self.n {
                rows.reduce_add(row + digit_of(hasher.hash(i), self.shift, self.bits), 1);
                i += step;
            }
            thread::sync_threads();
            if t < digits {
                let mut count = 0;
                for w in 0..WARPS {
                    count += rows.get(w * MAX_DIGITS + t);
                }
                if count != 0 {
                    atomic::reduce_add(self.counts.at(t as usize), count as u64);
                }
            }
        }
    }
}

/// Loads the hashes of a tile, warp-striped, so that rank order is input order.
#[cfg(feature = "bodies")]
struct LoadTile<'a, const ITEMS: usize> {
    tile_start: usize,
    first: u32,
    valid: u32,
    hashes: &'a mut [u64; ITEMS],
}

#[cfg(feature = "bodies")]
impl<const ITEMS: usize> WithHasher for LoadTile<'_, ITEMS> {
    #[inline(always)]
    unsafe fn run<H: Hasher>(self, hasher: H) {
        // SAFETY: `tile_start + valid` is at most the number of keys.
        unsafe {
            if self.valid == BLOCK * ITEMS as u32 {
                for i in 0..ITEMS {
                    self.hashes[i] = hasher.hash(self.tile_start + (self.first + i as u32 * 32) as usize);
                }
            } else {
                for i in 0..ITEMS {
                    let at = self.first + i as u32 * 32;
                    self.hashes[i] = if at < self.valid { hasher.hash(self.tile_start + at as usize) } else { !0 };
                }
            }
        }
    }
}

kernel! {
    /// Counts the digits `hash >> shift & ((1 << bits) - 1)` of the keys' hashes.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`] threads, [`HISTOGRAM_SHARED_BYTES`] of dynamic shared memory.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs.
    /// - `counts`: valid for `1 << bits` words, `bits <= 8`, only accessed atomically while the kernel runs.
    #[launch_bounds(256, 8)]
    pub unsafe fn radix_histogram(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, shift: u32, bits: u32, counts: GlobalMut<u64>,
    ) {
        // SAFETY: the contract of this kernel, which is that of `Histogram`.
        unsafe { with_hasher(keys, kind, spread, Histogram { n, shift, bits, counts }) }
    }
}

/// Scatters one tile, as described at the head of the module.
///
/// # Safety
/// The contract of [`radix_pass`] and [`radix_group`].
#[cfg(feature = "bodies")]
#[inline(always)]
#[allow(clippy::too_many_arguments)] // a kernel's
unsafe fn scatter<const ITEMS: usize, const STABLE: bool>(
    keys: Global<u64>,
    kind: KeyKind,
    spread: u64,
    n: usize,
    shift: u32,
    bits: u32,
    starts: Global<u64>,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    out: GlobalMut<u64>,
) {
    let digits = 1u32 << bits;
    let tile_size = BLOCK as usize * ITEMS;
    let rows = if STABLE { WARPS } else { 1 };
    let runs: Shared<u64> = shared::dynamic(0);
    let sorted: Shared<u64> = shared::dynamic(HASHES_AT);
    let counters: Shared<u32> = shared::dynamic(counters_at(tile_size));
    let misc: Shared<u32> = shared::dynamic(misc_at(tile_size, rows));
    let t = thread::thread_idx_x();
    let lane = warp::lane_id();
    let warp_index = t / 32;
    let row = if STABLE { warp_index * MAX_DIGITS } else { 0 };
    // SAFETY: shared indices stay inside the four arrays (digits below `MAX_DIGITS`, positions below `TILE`), and a
    // barrier separates any two accesses of different threads to one word. The ticket makes `tile` unique, so only this
    // block writes its look-back words. Positions in `out` come from the exact digit counts of all `n` hashes, so they
    // are below `n` and distinct. All threads reach every barrier and every vote.
    unsafe {
        if t == 0 {
            misc.set(WARPS, atomic::fetch_add(ticket, 1));
            misc.set(WARPS + 1, shift);
        }
        if STABLE || warp_index == 0 {
            ranking::clear_row(counters.at(row));
        }
        thread::sync_threads();
        let tile = misc.get(WARPS);
        let tile_start = tile as usize * tile_size;
        let valid = if n - tile_start < tile_size { (n - tile_start) as u32 } else { tile_size as u32 };

        // Places past the end have all bits set and so the last digit: they rank after everything, and no later tile
        // reads this one's counts.
        let first = warp_index * (32 * ITEMS as u32) + lane;
        let mut hashes = [!0u64; ITEMS];
        with_hasher(keys, kind, spread, LoadTile { tile_start, first, valid, hashes: &mut hashes });

        // Rank within the warp, in input order, or within the block, in any order.
        let mut ranks = [0u32; ITEMS]; // two of 16 bits a register
        for i in 0..ITEMS {
            let digit = digit_of(hashes[i], shift, bits);
            let mut rank = 0;
            if STABLE {
                rank = ranking::rank(counters.at(row), digit);
            } else if first + i as u32 * 32 < valid {
                rank = counters.fetch_add(digit, 1);
            }
            ranks[i / 2] |= rank << (16 * (i % 2));
        }
        thread::sync_threads();

        // Thread `t` owns digit `t`.
        let look_back = LookBack::new(look_back, digits);
        let publish = |count| {
            if t < digits {
                look_back.publish(tile, t, u64::from(count));
            }
        };
        let (count, start) = ranking::place_digits::<WARPS>(counters, rows, misc, publish);
        thread::sync_threads();
        // After the volatile read the shift is unknown to the assembler, which therefore keeps no digits in registers
        // since the ranking.
        let shift = misc.get_volatile(WARPS + 1);
        for i in 0..ITEMS {
            let digit = digit_of(hashes[i], shift, bits);
            if STABLE || first + (i as u32) * 32 < valid {
                sorted.set(counters.get(row + digit) + (ranks[i / 2] >> (16 * (i % 2)) & 0xffff), hashes[i]);
            }
        }
        if t < digits {
            let before = look_back.before(tile, t, u64::from(count));
            runs.set(t, (starts.read_nc(t as usize) + before).wrapping_sub(u64::from(start)));
        }
        thread::sync_threads();
        for i in 0..ITEMS as u32 {
            let at = t + i * BLOCK;
            if at < valid {
                let hash = sorted.get(at);
                let run = runs.get(digit_of(hash, shift, bits));
                out.write(run.wrapping_add(at as u64) as usize, hash);
            }
        }
    }
}

kernel! {
    /// Writes the keys' hashes grouped by digit, in input order within each digit.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(TILE)` blocks of [`BLOCK`] threads, [`PASS_SHARED_BYTES`] of dynamic shared memory;
    ///   `n > 0`, `0 < bits <= 8`, `shift + bits <= 64`.
    /// - `keys`: `n` keys of `kind`, not written while the kernel runs.
    /// - `starts`: `1 << bits` words, the exclusive sums of this input's digit counts.
    /// - `look_back`: `1 << bits` words per block, and `ticket` one word: zero at the start, used by this launch alone.
    /// - `out`: valid for `n` writes, overlaps nothing else, nothing else accesses it.
    #[launch_bounds(256, 3)]
    pub unsafe fn radix_pass(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, shift: u32, bits: u32, starts: Global<u64>,
        look_back: GlobalMut<u64>, ticket: GlobalMut<u32>, out: GlobalMut<u64>,
    ) {
        // SAFETY: the contract of this kernel.
        unsafe {
            scatter::<ITEMS, true>(keys, kind, spread, n, shift, bits, starts, look_back, ticket, out)
        }
    }
}

kernel! {
    /// Writes the keys' hashes grouped by digit as [`radix_pass`] does, without the order within each digit: faster,
    /// but only valid as a single pass.
    ///
    /// # Safety
    /// The contract of [`radix_pass`], with `n.div_ceil(GROUP_TILE)` blocks and [`GROUP_SHARED_BYTES`] of dynamic
    /// shared memory.
    #[launch_bounds(256, 4)]
    pub unsafe fn radix_group(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, shift: u32, bits: u32, starts: Global<u64>,
        look_back: GlobalMut<u64>, ticket: GlobalMut<u32>, out: GlobalMut<u64>,
    ) {
        // SAFETY: the contract of this kernel.
        unsafe {
            scatter::<GROUP_ITEMS, false>(keys, kind, spread, n, shift, bits, starts, look_back, ticket, out)
        }
    }
}

kernel! {
    /// Replaces the counts of the digits by their exclusive sums.
    ///
    /// # Safety
    /// - Launch: one block of [`BLOCK`] threads, 64 bytes of dynamic shared memory.
    /// - `counts`: valid for `digits` reads and writes, `digits <= BLOCK`; nothing else accesses it.
    #[launch_bounds(256, 1)]
    pub unsafe fn radix_scan(counts: GlobalMut<u64>, digits: u32) {
        let t = thread::thread_idx_x();
        // SAFETY: `t < digits` guards `counts`; all threads take part in the scan, whose shared memory is used by
        // nothing else.
        unsafe {
            let count = if t < digits { counts.read(t as usize) } else { 0 };
            let (before, _) = block::exclusive_scan::<Sum<u64>, WARPS>(count, shared::dynamic(0));
            if t < digits {
                counts.write(t as usize, before);
            }
        }
    }
}
