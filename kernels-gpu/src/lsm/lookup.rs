//! Lookups in a log-structured merge tree.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU", IPDPS
//! 2018, section IV-B: one thread per key, levels from the newest to the oldest, the first element of the key decides.
//! Departures: a filter says which levels may hold the key, and an index leads to the few elements where it would stand.
//! A level that has neither is searched by halving, as in the paper.

use warpset_core::lsm::filter_hash;
use warpset_simt::{Global, GlobalMut, thread};

use crate::batch::results;
use crate::lsm::levels::{LevelKey, Levels};
use crate::lsm::table::Addresses;

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// The newest element of the key, if it is not a tombstone: its level and its place there.
#[inline(always)]
fn find<K: LevelKey>(levels: Levels, count: u32, key: K) -> Option<(u32, usize)> {
    let hash = filter_hash(key.into());
    // The levels that may hold the key; all filters are asked before the first search, so that their reads overlap.
    let mut candidates = 0u32;
    for number in 0..count {
        candidates |= (levels.may_hold(number, hash) as u32) << number;
    }
    while candidates != 0 {
        let number = candidates.trailing_zeros();
        candidates &= candidates - 1;
        let level = levels.level::<K>(number);
        let place = level.indexed().lower_bound(key);
        // SAFETY: `place` is below the length where it is read.
        unsafe {
            if place < level.len && level.keys.read_nc(place) == key {
                return if levels.tombstones(number).is_one(place) { None } else { Some((number, place)) };
            }
        }
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
        // SAFETY: one level per thread, of as many as there are threads.
        unsafe { levels.write_to(table, thread::thread_idx_x()) }
    }

    /// Looks up queries: bit `i % 64` of word `i / 64` of `found` becomes 1 if query `i` has a value, which then is at place
    /// `i` of `out_values`; otherwise both become 0, and so do bits past the last query.
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(BLOCK)` blocks of [`BLOCK`] threads.
    /// - `table`: as for [`Levels::new`]; it has `levels` levels.
    /// - `queries`: valid for `n` reads, not written while the kernel runs.
    /// - `out_values`: valid for `n` values of `value_words` words of 32 bits, 0, 1 or 2; `found`: for
    ///   `results::words(results::BITS, n)` words; both used by this launch alone.
    #[launch_bounds(256, 6)]
    pub unsafe fn lsm_lookup<K>(
        table: Global<u64>, levels: u32, queries: Global<K>, n: usize, out_values: GlobalMut<u32>, value_words: u32,
        found: GlobalMut<u64>,
    ) for [u32 => lsm_lookup_u32, u64 => lsm_lookup_u64] {
        let i = thread::index_1d() as usize;
        // SAFETY: the caller keeps this kernel's contract; `i < n` where a query is read and answered; all threads come to
        // `put`.
        unsafe {
            let tree = Levels::new(table);
            let element = if i < n { find(tree, levels, queries.read_nc(i)) } else { None };
            match element {
                Some((number, place)) => tree.copy_value(number, place, value_words, out_values, i),
                None if i < n && value_words == 1 => out_values.write(i, 0),
                None if i < n && value_words == 2 => out_values.cast::<u64>().write(i, 0),
                None => {}
            }
            results::put(results::BITS, found, i, n, element.is_some());
        }
    }
}
