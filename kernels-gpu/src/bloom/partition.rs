//! Kernels of test-and-insert by parts that are the same for all Bloom filters: see [`parts`](crate::bloom::parts).

use crate::batch::keys::{Hasher, WithHasher, with_hasher};
use crate::batch::results;
use crate::block;
use crate::bloom::claims::EMPTY;
use crate::bloom::parts::{MAX_BITS, Parts};
use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 512;
/// Keys of a tile: one thread block groups them.
pub const TILE: usize = ITEMS * BLOCK as usize;
/// Dynamic shared memory of the grouping, in bytes.
pub const GROUP_SHARED_BYTES: u32 = MISC_AT + 128;

const ITEMS: usize = 16;
/// Keys of which a thread reads the hashes at once.
const AT_ONCE: usize = 4;
const WARPS: u32 = BLOCK / 32;
/// Neighbouring parts that a thread scans the counts of, and the threads that do.
const OWN: u32 = 8;
const SCANNING: u32 = (1 << MAX_BITS) / OWN;
/// Parts in which a thread reserves room.
const RESERVED: u32 = (1u32 << MAX_BITS).div_ceil(BLOCK);
// Shared memory: hashes and numbers of the tile's keys by part; a word per part, and one more; the scan's.
const NUMBERS_AT: u32 = TILE as u32 * 8;
const RUNS_AT: u32 = NUMBERS_AT + TILE as u32 * 4;
const MISC_AT: u32 = RUNS_AT + (4 << MAX_BITS) + 16;

const _: () = assert!(ITEMS < 32 && ITEMS % AT_ONCE == 0 && SCANNING <= BLOCK);

/// Groups one tile.
struct Group {
    n: usize,
    form: u32,
    out: GlobalMut<u64>,
    parts: Parts,
    counts: GlobalMut<u32>,
    grouped: GlobalMut<u64>,
}

impl WithHasher for Group {
    #[inline(always)]
    unsafe fn run<H: Hasher>(self, hasher: H) {
        let Group { n, form, out, parts, counts, grouped } = self;
        let t = thread::thread_idx_x();
        let tile = thread::block_idx_x() as usize * TILE;
        let first = tile + t as usize;
        let number = 1 << parts.bits;
        let hashes_here: Shared<u64> = shared::dynamic(0);
        let numbers: Shared<u32> = shared::dynamic(NUMBERS_AT);
        let runs: Shared<u32> = shared::dynamic(RUNS_AT);
        // SAFETY: hashes are asked of keys below `n`; parts are below their number, that of the words in `runs` but one,
        // and places in the tile below `TILE`. Barriers separate zeroing, counting, scanning, reserving, placing, and the
        // change of `runs`; all threads reach `put`, the scan and the barriers. A place in a part is reserved for one key, and
        // below the capacity.
        unsafe {
            if t < SCANNING {
                runs.set4(OWN * t, [0; 4]);
                runs.set4(OWN * t + 4, [0; 4]);
            }
            thread::sync_threads();

            // The absent keys, a bit each; several loads in flight per thread.
            let mut absent = 0u32;
            let mut j = 0;
            while j < ITEMS && tile + j * (BLOCK as usize) < n {
                let mut hashes = [0; AT_ONCE];
                let mut marks = [false; AT_ONCE];
                for u in 0..AT_ONCE {
                    let i = first + (j + u) * BLOCK as usize;
                    if i < n {
                        hashes[u] = hasher.hash(i);
                        marks[u] = !results::get(form, out, i);
                    }
                }
                warp::sync_warp(warp::FULL_MASK); // one word of `out` holds bits of all lanes
                for u in 0..AT_ONCE {
                    results::put(form, out, first + (j + u) * BLOCK as usize, n, marks[u]);
                    if marks[u] {
                        absent |= 1 << (j + u);
                        runs.reduce_add(parts.of(hashes[u]), 1);
                    }
                }
                j += AT_ONCE;
            }
            thread::sync_threads();

            // Where the runs begin in the tile.
            let (mut a, mut b) = ([0; 4], [0; 4]);
            if t < SCANNING {
                (a, b) = (runs.get4(OWN * t), runs.get4(OWN * t + 4));
            }
            let own = [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]];
            let mut sum = 0;
            for k in 0..OWN as usize {
                sum += own[k];
            }
            let (before, all) = block::exclusive_scan::<Sum<u32>, WARPS>(sum, shared::dynamic(MISC_AT));
            if t < SCANNING {
                let mut starts = [before; OWN as usize];
                for k in 1..OWN as usize {
                    starts[k] = starts[k - 1] + own[k - 1];
                }
                runs.set4(OWN * t, [starts[0], starts[1], starts[2], starts[3]]);
                runs.set4(OWN * t + 4, [starts[4], starts[5], starts[6], starts[7]]);
            }
            if t == 0 {
                runs.set(1 << MAX_BITS, all);
            }
            thread::sync_threads();

            // Reserves room in the parts, and brings the keys of a run together.
            let mut shifts = [0u32; RESERVED as usize];
            for k in 0..RESERVED {
                let part = t + k * BLOCK;
                if part < number {
                    let count = runs.get(part + 1) - runs.get(part);
                    shifts[k as usize] = atomic::fetch_add(counts.at(part as usize), count);
                }
            }
            let mut most = 0;
            for k in 0..RESERVED {
                let part = t + k * BLOCK;
                if part < number {
                    let start = runs.get(part);
                    let end = shifts[k as usize] + runs.get(part + 1) - start;
                    most = if most < end { end } else { most };
                    shifts[k as usize] = shifts[k as usize].wrapping_sub(start);
                }
            }
            if most > parts.capacity {
                atomic::store_relaxed(counts.at(number as usize), 1);
            }
            thread::sync_threads();
            let mut j = 0;
            while j < ITEMS && absent >> j != 0 {
                let mut hashes = [0; AT_ONCE];
                for u in 0..AT_ONCE {
                    if absent >> (j + u) & 1 != 0 {
                        hashes[u] = hasher.hash(first + (j + u) * BLOCK as usize);
                    }
                }
                for u in 0..AT_ONCE {
                    if absent >> (j + u) & 1 != 0 {
                        let at = runs.fetch_add(parts.of(hashes[u]), 1);
                        hashes_here.set(at, hashes[u]);
                        numbers.set(at, (j + u) as u32 * BLOCK + t);
                    }
                }
                j += AT_ONCE;
            }
            thread::sync_threads();
            for k in 0..RESERVED {
                let part = t + k * BLOCK;
                if part < number {
                    runs.set(part, shifts[k as usize]);
                }
            }
            thread::sync_threads();

            let mut at = t;
            while at < all {
                let hash = hashes_here.get(at);
                let part = parts.of(hash);
                let place = runs.get(part).wrapping_add(at);
                if place < parts.capacity {
                    let to = part as usize * parts.capacity as usize + place as usize;
                    grouped.write2(2 * to, [hash, (tile + numbers.get(at) as usize) as u64]);
                }
                at += BLOCK;
            }
        }
    }
}

kernel! {
    /// Turns the answers of a lookup around, "absent" for "present", and writes hash and index of each absent key to its
    /// part, in any order, as far as there is room.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(TILE)` blocks of [`BLOCK`] threads, [`GROUP_SHARED_BYTES`] of dynamic shared memory.
    /// - `keys`: `n` keys of the kind (see [`crate::batch::keys`]; none that starts with `INT32`), not written while the
    ///   kernel runs.
    /// - `out`: the answers, as bytes or bits; nothing else accesses them.
    /// - `parts`: 1 to [`MAX_BITS`] bits, a capacity of at most
    ///   [`MAX_CAPACITY`](crate::bloom::parts::MAX_CAPACITY).
    /// - `counts`: valid for [`Parts::counts`] words, zero at the start; `grouped`: for `2 * capacity` words per part,
    ///   16-byte aligned. Both are used by this launch alone.
    #[launch_bounds(512, 2)]
    pub unsafe fn partition_absent(
        keys: Global<u64>, kind: u32, spread: u64, n: usize, form: u32, out: GlobalMut<u64>, parts: Parts,
        counts: GlobalMut<u32>, grouped: GlobalMut<u64>,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { with_hasher(keys, kind, spread, Group { n, form, out, parts, counts, grouped }) }
    }

    /// Empties a table of claims, if a part overflowed.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid and block size, no shared memory.
    /// - `table`: valid for `n` words; nothing else accesses it. `counts`: what [`partition_absent`] has counted.
    pub unsafe fn partition_clear_claims(table: GlobalMut<u64>, n: usize, parts: Parts, counts: Global<u32>) {
        // SAFETY: `i < n` belongs to this thread.
        unsafe {
            if !parts.all_fit(counts) {
                for i in thread::grid_stride(n) {
                    table.write(i, EMPTY);
                }
            }
        }
    }
}
