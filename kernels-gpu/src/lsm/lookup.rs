//! Lookups in a log-structured merge tree: one thread per query goes through the levels, the newest first, with a binary search
//! in each (sections III-D and IV-B of the paper: the individual approach).

use warpset_simt::{Global, GlobalMut, thread, warp};

use super::table::{Level, LevelKey, Levels};

/// Threads of a block.
pub const BLOCK: u32 = 256;

/// The level and the place of a key's newest element.
///
/// # Safety
/// As for [`Level::read`], for `levels` levels.
#[inline(always)]
unsafe fn newest<K: LevelKey>(table: Global<u64>, levels: u32, key: K) -> Option<(Level<K>, usize)> {
    for i in 0..levels {
        // SAFETY: the caller's promise; a place below the length has a key.
        unsafe {
            let level = Level::<K>::read(table, i);
            let place = level.lower_bound(0, key);
            if place < level.len && level.keys.read_nc(place) == key {
                return Some((level, place));
            }
        }
    }
    None
}

/// # Safety
/// As [`lsm_lookup`].
#[inline(always)]
unsafe fn look_up<K: LevelKey>(
    table: Global<u64>,
    levels: u32,
    queries: Global<K>,
    n: usize,
    out_values: GlobalMut<u32>,
    value_words: u32,
    found: GlobalMut<u32>,
) {
    let lane = warp::lane_id() as usize;
    let threads = thread::grid_dim_x() as usize * BLOCK as usize;
    // The first query of the warp, so that all its lanes come to the vote.
    let mut first = thread::index_1d() as usize - lane;
    while first < n {
        let i = first + lane;
        let mut has_value = false;
        // SAFETY: `i < n` where a query is read or answered; all lanes vote; the caller answers for the rest.
        unsafe {
            if i < n {
                if let Some((level, place)) = newest(table, levels, queries.read_nc(i)) {
                    has_value = !level.is_tombstone(place);
                    if has_value {
                        level.copy_value(place, value_words, out_values, i);
                    }
                }
                if !has_value {
                    if value_words == 1 {
                        out_values.write(i, 0);
                    } else if value_words == 2 {
                        out_values.cast::<u64>().write(i, 0);
                    }
                }
            }
            let bits = warp::ballot(u32::MAX, has_value);
            if lane == 0 {
                found.write(first / 32, bits);
            }
        }
        first += threads;
    }
}

kernel! {
    /// Writes the table of the levels.
    ///
    /// # Safety
    /// - Launch: one block of 32 threads.
    /// - `table`: valid for [`TABLE_WORDS`](super::table::TABLE_WORDS) words, used by this launch alone.
    pub unsafe fn lsm_publish(levels: Levels, table: GlobalMut<u64>) {
        // SAFETY: one level per thread, of as many as there are threads.
        unsafe { levels.write_to(table, thread::thread_idx_x()) }
    }
}

kernel! {
    /// Looks up queries: bit `i % 32` of word `i / 32` of `found` becomes 1 if query `i` has a value, which then is at place `i`
    /// of `out_values`; otherwise both become 0, and so do bits past the last query.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of [`BLOCK`] threads.
    /// - `table`: as [`lsm_publish`] left it; its first `levels` levels are valid, sorted, and not written while the kernel runs.
    /// - `queries`: valid for `n` reads, not written while the kernel runs.
    /// - `out_values`: valid for `n` values of `value_words` words of 32 bits, 0, 1 or 2; `found`: for `n` bits in whole words; both
    ///   used by this launch alone.
    #[launch_bounds(256, 6)]
    pub unsafe fn lsm_lookup<K>(
        table: Global<u64>, levels: u32, queries: Global<K>, n: usize, out_values: GlobalMut<u32>, value_words: u32,
        found: GlobalMut<u32>,
    ) for [u32 => lsm_lookup_u32, u64 => lsm_lookup_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { look_up::<K>(table, levels, queries, n, out_values, value_words, found) }
    }
}
