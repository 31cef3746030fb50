//! Lookups in a log-structured merge tree.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU",
//! IPDPS 2018, section IV-B: one thread per key, levels from the newest to the oldest; the first element with the key
//! decides. Departures: a filter tells whether a level may hold the key, and an index leads to its neighbours. A level
//! without both is searched by halving, as in the paper. With known visibility, levels are searched from the oldest on,
//! which has half of the keys: the visible element of a key is the answer in any level.
//!
//! Keys may come sorted, with their places among the queries. Then neighbours fall into the same sectors of an index
//! and of keys, but not of a filter, which is not used. [`lsm_scatter`] moves answers of [`flipped`](super::flipped)
//! lookups to such places.

use warpset_core::lsm::filter_hash;
use warpset_simt::{Global, GlobalMut, allow, atomic, thread};

use crate::batch::results;
use crate::lsm::levels::{LevelKey, Levels, number};
use crate::lsm::table::Addresses;
use crate::lsm::visibility::{ALL, UNKNOWN, Visibility};

/// Threads per block.
pub const BLOCK: u32 = 256;
/// Filters that are read before the first search, from the oldest level on.
const AT_ONCE: u32 = 2;

/// Queries per thread of [`lsm_scatter`].
pub const SCATTERED: usize = 4;

/// Returns the level and place of the newest element of the key, unless it is a tombstone.
#[cfg(feature = "bodies")]
#[inline(always)]
fn find_newest<K: LevelKey>(levels: Levels, count: u32, key: K) -> Option<(u32, usize)> {
    let hash = filter_hash(number(key));
    // The levels that may hold the key; all filters are read before the first search, so that their reads overlap.
    let mut candidates = 0u32;
    for number in 0..count {
        candidates |= (levels.may_hold(number, hash) as u32) << number;
    }
    while candidates != 0 {
        let number = candidates.trailing_zeros();
        candidates &= candidates - 1;
        if let Some(place) = levels.place_of(number, key) {
            // SAFETY: the place is in the level.
            return if unsafe { levels.tombstones(number).is_one(place) } { None } else { Some((number, place)) };
        }
    }
    None
}

/// Returns the level and place of the visible element of the key. Reads filters unless keys come sorted.
#[cfg(feature = "bodies")]
#[inline(always)]
fn find_visible<K: LevelKey>(
    levels: Levels,
    count: u32,
    key: K,
    visibility: Visibility,
    by_filters: bool,
) -> Option<(u32, usize)> {
    let hash = filter_hash(number(key));
    let mut end = count;
    while end > 0 {
        let begin = end.saturating_sub(AT_ONCE);
        let mut candidates = 0u32;
        for number in begin..end {
            candidates |= ((!by_filters || levels.may_hold(number, hash)) as u32) << number;
        }
        while candidates != 0 {
            let number = 31 - candidates.leading_zeros();
            candidates &= !(1 << number);
            if let Some(place) = levels.place_of(number, key) {
                // SAFETY: the place is in the level.
                if unsafe { visibility.is_visible(levels, number, place) } {
                    return Some((number, place));
                }
            }
        }
        end = begin;
    }
    None
}

kernel! {
    /// Writes the table of the levels.
    ///
    /// # Safety
    /// - Launch: one block of 32 threads.
    /// - `table`: valid for [`TABLE_WORDS`](super::table::TABLE_WORDS) words, used by this launch alone.
    pub unsafe fn lsm_publish(levels: Addresses, table: GlobalMut<u64>) {
        // SAFETY: one level per thread; there are as many levels in the table as threads.
        unsafe { levels.write_to(table, thread::thread_idx_x()) }
    }

    /// Looks up queries. Bit `i % 64` of word `i / 64` of `found` becomes 1 if query `i` has a value, which is written
    /// to place `i` of `out_values`; otherwise both become 0. Bits past the last query become 0.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `table`: as for [`Levels::new`], with `levels` levels.
    /// - `known`: [`UNKNOWN`], [`ALL`] or [`WORDS`](super::visibility::WORDS); with these `visible` is as for
    ///   [`Visibility::new`].
    /// - `queries`: valid for `n` reads, not written while the kernel runs.
    /// - `out_values`: valid for `n` values of `value_words` words of 32 bits, 0, 1 or 2; `found`: for
    ///   `results::words(results::BITS, n)` words; both used by this launch alone.
    #[launch_bounds(256, 6)]
    pub unsafe fn lsm_lookup<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, known: u32, queries: Global<K>, n: usize,
        out_values: GlobalMut<u32>, value_words: u32, found: GlobalMut<u64>,
    ) for [
        u32 => lsm_lookup_u32, #[launch_bounds(256, 4)] u64 => lsm_lookup_u64,
        #[launch_bounds(256, 4)] u128 => lsm_lookup_u128
    ] {
        // Two registers on sm_80; none on later ones.
        allow::spill();
        let i = thread::index_1d() as usize;
        // SAFETY: the contract of this kernel; `i < n` for every query that is read and answered; all threads reach
        // `put`.
        unsafe {
            let tree = Levels::new(table);
            let mut element = None;
            if i < n {
                let key = queries.read_nc(i);
                element = if known == UNKNOWN {
                    find_newest(tree, levels, key)
                } else {
                    find_visible(tree, levels, key, Visibility::new(visible, known == ALL), true)
                };
            }
            match element {
                Some((number, place)) => tree.copy_value(number, place, value_words, out_values, i),
                None if i < n && value_words == 1 => out_values.write(i, 0),
                None if i < n && value_words == 2 => out_values.cast::<u64>().write(i, 0),
                None => {}
            }
            results::put(results::BITS, found, i, n, element.is_some());
        }
    }

    /// Writes the numbers from 0 on.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid.
    /// - `out`: valid for `n` writes, at most 2^32, used by this launch alone.
    pub unsafe fn lsm_places(out: GlobalMut<u32>, n: usize) {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            unsafe { out.write(i, i as u32) };
        }
    }

    /// Looks up nearly sorted queries as [`lsm_lookup`] does: `queries[i]` is query number `places[i]`.
    ///
    /// # Safety
    /// The contract of [`lsm_lookup`], and:
    /// - `known` is not [`UNKNOWN`].
    /// - `places`: valid for `n` reads, a permutation of the numbers below `n`; not written while the kernel runs.
    /// - `found`: initially all zero.
    #[launch_bounds(256, 6)]
    pub unsafe fn lsm_lookup_sorted<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, known: u32, queries: Global<K>, places: Global<u32>, n: usize,
        out_values: GlobalMut<u32>, value_words: u32, found: GlobalMut<u32>,
    ) for [
        u32 => lsm_lookup_sorted_u32, #[launch_bounds(256, 4)] u64 => lsm_lookup_sorted_u64,
        #[launch_bounds(256, 4)] u128 => lsm_lookup_sorted_u128
    ] {
        let i = thread::index_1d() as usize;
        // SAFETY: the contract of this kernel; `i < n` for every query that is read; each place belongs to one thread.
        unsafe {
            if i < n {
                let (tree, visibility) = (Levels::new(table), Visibility::new(visible, known == ALL));
                let element = find_visible(tree, levels, queries.read_nc(i), visibility, false);
                let to = places.read_nc(i) as usize;
                match element {
                    Some((number, place)) => {
                        tree.copy_value(number, place, value_words, out_values, to);
                        atomic::reduce_or(found.at(to / 32), 1 << (to % 32));
                    }
                    None if value_words == 1 => out_values.write(to, 0),
                    None if value_words == 2 => out_values.cast::<u64>().write(to, 0),
                    None => {}
                }
            }
        }
    }

    /// Scatters answers: that of query `i` to place `places[i]`. Places are processed by *windows* of `window`, one
    /// after the other, so that the writes to a window stay in the cache until its sectors are full.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(window) * n.div_ceil(BLOCK * SCATTERED)` blocks of [`BLOCK`] threads.
    /// - `places`: valid for `n` reads, a permutation of the numbers below `n`; `values`, of `value_words` words of 32
    ///   bits, 0, 1 or 2, and `found`, a bit per query, are the answers of [`lsm_lookup`]; none is written while the
    ///   kernel runs.
    /// - `out_values`: valid for `n` values; `out_found`: valid for `n` bits in words of 32 bits, initially all zero;
    ///   both used by this launch alone.
    pub unsafe fn lsm_scatter(
        places: Global<u32>, values: Global<u32>, value_words: u32, found: Global<u32>, n: usize, window: usize,
        out_values: GlobalMut<u32>, out_found: GlobalMut<u32>,
    ) {
        let tiles = n.div_ceil(BLOCK as usize * SCATTERED);
        let first = thread::block_idx_x() as usize / tiles * window;
        let base = thread::block_idx_x() as usize % tiles * (BLOCK as usize * SCATTERED) + thread::thread_idx_x() as usize;
        let mut to = [!0; SCATTERED];
        // SAFETY: the contract of this kernel; queries are below `n` for every read; each place belongs to one thread.
        unsafe {
            for u in 0..SCATTERED {
                let i = base + u * BLOCK as usize;
                if i < n {
                    let place = places.read_nc(i) as usize;
                    to[u] = if place.wrapping_sub(first) < window { place } else { !0 };
                }
            }
            let (mut narrow, mut wide, mut bits) = ([0; SCATTERED], [0; SCATTERED], [0; SCATTERED]);
            for u in 0..SCATTERED {
                let i = base + u * BLOCK as usize;
                if to[u] != !0 {
                    bits[u] = found.read_nc(i / 32) >> (i % 32) & 1;
                    if value_words == 1 {
                        narrow[u] = values.read_nc(i);
                    } else if value_words == 2 {
                        wide[u] = values.cast::<u64>().read_nc(i);
                    }
                }
            }
            for u in 0..SCATTERED {
                if to[u] != !0 {
                    if bits[u] != 0 {
                        atomic::reduce_or(out_found.at(to[u] / 32), 1 << (to[u] % 32));
                    }
                    if value_words == 1 {
                        out_values.write(to[u], narrow[u]);
                    } else if value_words == 2 {
                        out_values.cast::<u64>().write(to[u], wide[u]);
                    }
                }
            }
        }
    }
}
