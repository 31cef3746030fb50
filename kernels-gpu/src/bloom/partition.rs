//! Kernels of test-and-insert by parts that all Bloom filters share: see
//! [`batch_partition`](crate::bloom::batch_partition).
//!
//! A thread block groups the absent keys of a tile. First it leaves out most keys that an equal key precedes, so that
//! frequent keys fill no part. Within the tile it finds them by a table in shared memory in which a hash has one place;
//! in tiles with many equal keys also across tiles by [`recent_hashes`](crate::bloom::recent_hashes). Both miss some;
//! the part finds the rest.
//!
//! The kind of key is a launch argument here too, and loops over a thread's keys stay loops: five copies of this
//! kernel, one per kind, would take the driver's compiler half a second.

#[cfg(feature = "bodies")]
use crate::batch::keys::word_at;
use crate::batch::keys::{HashFunction, KeyClass, KeyKind};
use crate::batch::results;
use crate::block;
use crate::bloom::batch_partition::{MAX_BITS, Parts};
use crate::bloom::claims::EMPTY;
#[cfg(feature = "bodies")]
use crate::bloom::recent_hashes::Recent;
use warpset_core::hash;
use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, opaque, thread};

/// Threads of a block, in every kernel of this module.
pub const BLOCK: u32 = 512;
/// Keys of a tile: one thread block groups them.
pub const TILE: usize = ITEMS * BLOCK as usize;
/// Dynamic shared memory of the grouping, in bytes.
pub const GROUP_SHARED_BYTES: u32 = MISC_AT + 128;

const ITEMS: usize = 16;
/// Keys per thread with hashes read at once.
const AT_ONCE: usize = 4;
const WARPS: u32 = BLOCK / 32;
/// Neighbouring parts that a thread scans the counts of, and the threads that do.
const OWN: u32 = 8;
const SCANNING: u32 = (1 << MAX_BITS) / OWN;
/// Parts in which a thread reserves room.
const RESERVED: u32 = (1u32 << MAX_BITS).div_ceil(BLOCK);
/// A tile reads the hashes of earlier tiles if at least this many of its threads have a key that occurs twice in it: of
/// 2^24 keys that occur four times each, tiles have six such keys.
const MANY: u32 = 8;
/// Places of the table that finds equal keys of a tile.
const PLACES: u32 = TILE as u32;
const FREE: u32 = !0;
// Shared memory: hashes of the tile's keys; the table of equal keys, and later the numbers of the keys by part; a word
// per part, and one more; the scan's.
const NUMBERS_AT: u32 = TILE as u32 * 8;
const RUNS_AT: u32 = NUMBERS_AT + PLACES * 4;
const MISC_AT: u32 = RUNS_AT + (4 << MAX_BITS) + 16;

const _: () = assert!(ITEMS < 32 && ITEMS % AT_ONCE == 0 && SCANNING <= BLOCK && PLACES.is_power_of_two());

/// The keys of a batch.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Keys {
    keys: Global<u64>,
    kind: KeyKind,
    spread: u64,
    n: usize,
}

#[cfg(feature = "bodies")]
impl Keys {
    /// Returns the hashes of key `first` and of those every [`BLOCK`] after it, as far as there are keys; all loads in
    /// flight.
    ///
    /// # Safety
    /// There are `n` keys of the kind.
    #[inline(always)]
    unsafe fn hashes(self, first: usize) -> [u64; AT_ONCE] {
        let mut words = [0; AT_ONCE];
        for u in 0..AT_ONCE {
            let i = first + u * BLOCK as usize;
            if i < self.n {
                // SAFETY: `i < n`.
                words[u] = unsafe { word_at(self.keys, self.kind.class, i) };
            }
        }
        match (self.kind.class, self.kind.function) {
            (KeyClass::Hashes | KeyClass::Hashes128, _) => {}
            (_, HashFunction::Xxh64 | HashFunction::Int32) => {
                for u in 0..AT_ONCE {
                    words[u] = hash::xxh64_u64(words[u], 0);
                }
            }
            (_, HashFunction::Seeded | HashFunction::Wide | HashFunction::WideShort | HashFunction::Permutation) => {
                for u in 0..AT_ONCE {
                    words[u] = hash::mix_spread(words[u], self.spread);
                }
            }
        }
        words
    }
}

/// Returns the place of a hash in the table of equal keys; independent of its part, and such that hashes that meet in
/// one tile do not meet in all.
#[cfg(feature = "bodies")]
#[inline(always)]
fn place_of(hash: u64, tile: u32) -> u32 {
    let factor = 0xd6e8_feb8_6659_fd93 + 2 * tile as u64; // odd
    (hash.wrapping_mul(factor) >> (64 - PLACES.trailing_zeros())) as u32
}

kernel! {
    /// Turns the answers of a lookup around, "absent" for "present", and writes hash and index of each absent key to
    /// its part, in any order, as far as there is room. Leaves out, and answers "not absent" to, some of the keys that
    /// an equal one precedes.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(TILE)` blocks of [`BLOCK`] threads, [`GROUP_SHARED_BYTES`] of dynamic shared memory.
    /// - `keys`: `n` keys of `kind` with the function `Xxh64` or `Seeded`, not written while the kernel runs; at most
    ///   [`TILE`]` << `[`TILE_BITS`](crate::bloom::recent_hashes::TILE_BITS).
    /// - `out`: the answers, as bytes or bits; nothing else accesses them.
    /// - `parts`: 1 to [`MAX_BITS`] bits, a capacity of at most
    ///   [`MAX_CAPACITY`](crate::bloom::batch_partition::MAX_CAPACITY).
    /// - `counts`: valid for [`Parts::counts`] words, zero at the start; `grouped`: for `2 * capacity` words per part,
    ///   16-byte aligned; `recent`, `recent_bits`: as [`Recent::new`] asks. All are used by this launch alone.
    #[launch_bounds(512, 2)]
    pub unsafe fn partition_absent(
        keys: Global<u64>, kind: KeyKind, spread: u64, n: usize, form: u32, out: GlobalMut<u64>, parts: Parts,
        counts: GlobalMut<u32>, grouped: GlobalMut<u64>, recent: GlobalMut<u64>, recent_bits: u32,
    ) {
        let keys = Keys { keys, kind, spread, n };
        let recent = Recent::new(recent, recent_bits);
        let t = thread::thread_idx_x();
        let tile = thread::block_idx_x();
        let tile_start = tile as usize * TILE;
        let first = tile_start + t as usize;
        let number = 1 << parts.bits;
        let items = opaque(ITEMS as u32) as usize; // unknown to the compiler, which would unroll the loops
        let hashes_here: Shared<u64> = shared::dynamic(0);
        let equals: Shared<u32> = shared::dynamic(NUMBERS_AT);
        let numbers: Shared<u32> = equals;
        let runs: Shared<u32> = shared::dynamic(RUNS_AT);
        // SAFETY: hashes are asked of keys below `n`; parts are below their number, that of the words in `runs` but
        // one; numbers and places in the tile are below `TILE`, and a number's hash is read where it was written.
        // Barriers separate what writes hashes, `equals`, `runs` and `numbers` from what reads or rewrites them; writes
        // that meet are atomic. All threads reach `put`, the scan and the barriers. A place in a part is reserved for
        // one key, and below the capacity.
        unsafe {
            if t < SCANNING {
                runs.set4(OWN * t, [0; 4]);
                runs.set4(OWN * t + 4, [0; 4]);
            }
            let mut at = 4 * t;
            while at < PLACES {
                equals.set4(at, [FREE; 4]);
                at += 4 * BLOCK;
            }

            // The absent keys, a bit each.
            let mut absent = 0u32;
            let mut j = 0;
            while j < items && tile_start + j * (BLOCK as usize) < n {
                for u in 0..AT_ONCE {
                    let i = first + (j + u) * BLOCK as usize;
                    if i < n && !results::get(form, out, i) {
                        absent |= 1 << (j + u);
                    }
                }
                j += AT_ONCE;
            }
            let some = thread::sync_threads_count(absent != 0) != 0;

            // Their hashes. In the table of equal keys the first arrival takes the place of its hash.
            let mut j = 0;
            while j < items && absent >> j != 0 {
                let hashes = keys.hashes(first + j * BLOCK as usize);
                for u in 0..AT_ONCE {
                    if absent >> (j + u) & 1 != 0 {
                        let own = (j + u) as u32 * BLOCK + t;
                        hashes_here.set(own, hashes[u]);
                        equals.compare_exchange(place_of(hashes[u], tile), FREE, own);
                    }
                }
                j += AT_ONCE;
            }
            thread::sync_threads();

            // Among keys equal to the one in their place the smallest number wins it.
            let (mut equal, mut smaller, mut twice) = (0u32, 0u32, false);
            let mut j = 0;
            while j < items && absent >> j != 0 {
                for u in 0..AT_ONCE {
                    if absent >> (j + u) & 1 != 0 {
                        let own = (j + u) as u32 * BLOCK + t;
                        let hash = hashes_here.get(own);
                        let held = equals.get(place_of(hash, tile));
                        if held == own {
                            equal |= 1 << (j + u);
                        } else if hashes_here.get(held) == hash {
                            equal |= 1 << (j + u);
                            twice = true;
                            if own < held {
                                smaller |= 1 << (j + u);
                            }
                        }
                    }
                }
                j += AT_ONCE;
            }
            let ask = thread::sync_threads_count(twice) >= MANY;
            let mut j = 0;
            while smaller >> j != 0 {
                if smaller >> j & 1 != 0 {
                    let own = j * BLOCK + t;
                    equals.reduce_min(place_of(hashes_here.get(own), tile), own);
                }
                j += 1;
            }
            thread::sync_threads();

            // Leaves out what an equal key precedes, and counts the rest by part.
            let mut j = 0;
            while j < items && tile_start + j * (BLOCK as usize) < n {
                let mut hashes = [0; AT_ONCE];
                let mut held = [0; AT_ONCE];
                for u in 0..AT_ONCE {
                    if absent >> (j + u) & 1 != 0 {
                        let own = (j + u) as u32 * BLOCK + t;
                        hashes[u] = hashes_here.get(own);
                        if equal >> (j + u) & 1 != 0 && equals.get(place_of(hashes[u], tile)) != own {
                            absent &= !(1 << (j + u));
                        } else if ask {
                            held[u] = recent.held(hashes[u]);
                        }
                    }
                }
                for u in 0..AT_ONCE {
                    if absent >> (j + u) & 1 != 0 {
                        if ask && recent.comes_again(held[u], hashes[u], tile) {
                            absent &= !(1 << (j + u));
                        } else {
                            runs.reduce_add(parts.of(hashes[u]), 1);
                        }
                    }
                }
                for u in 0..AT_ONCE {
                    let i = first + (j + u) * BLOCK as usize;
                    results::put(form, out, i, n, absent >> (j + u) & 1 != 0);
                }
                j += AT_ONCE;
            }
            if !some {
                return; // all threads
            }
            thread::sync_threads();

            // Starts of the runs in the tile.
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
            while j < items && absent >> j != 0 {
                for u in 0..AT_ONCE {
                    if absent >> (j + u) & 1 != 0 {
                        let own = (j + u) as u32 * BLOCK + t;
                        numbers.set(runs.fetch_add(parts.of(hashes_here.get(own)), 1), own);
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
                let own = numbers.get(at);
                let hash = hashes_here.get(own);
                let part = parts.of(hash);
                let place = runs.get(part).wrapping_add(at);
                if place < parts.capacity {
                    let to = part as usize * parts.capacity as usize + place as usize;
                    grouped.write2(2 * to, [hash, (tile_start + own as usize) as u64]);
                }
                at += BLOCK;
            }
        }
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
