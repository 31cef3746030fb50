//! Count and range: a warp merges the pieces of all levels for one query, one lane per level.
//!
//! Departure from the paper (sections IV-C and IV-D), which copies the candidates of all queries and sorts them by segments: the
//! pieces are sorted already, so they are merged as they are read, and nothing is stored but the results. A step finds the least
//! key that a lane stands at; the newest level that has it decides whether it lives; all lanes with that key go past it. Once
//! one level is left, the warp takes 32 of its elements per step.

use warpset_simt::{Global, GlobalMut, thread, warp};

use super::table::{Level, LevelKey};

/// Threads of a block.
pub const BLOCK: u32 = 256;

const FULL_MASK: u32 = u32::MAX;

/// Where results of a query go; nothing is written while they are only counted.
#[derive(Clone, Copy)]
struct Out<K> {
    keys: GlobalMut<K>,
    values: GlobalMut<u32>,
    value_words: u32,
    first: usize,
}

/// How many elements from `low` to `high` live; writes them if asked to.
///
/// # Safety
/// As [`lsm_range`]; all lanes of a warp come here with the same arguments, but for the level, which is that of the lane.
#[inline(always)]
unsafe fn merge<K: LevelKey, const WRITE: bool>(level: Level<K>, low: K, high: K, out: Out<K>) -> usize {
    let lane = warp::lane_id();
    // SAFETY: places below `end` are in the level; each result has its place; all lanes come to the collectives, because the
    // conditions of the loop are the same for all of them.
    unsafe {
        let (mut at, mut end) = (0, 0);
        if low <= high {
            at = level.lower_bound(0, low);
            end = at;
            // Most ranges are short: in steps that double, then by halving.
            let mut step = 1;
            while end + step <= level.len && level.keys.read_nc(end + step - 1) <= high {
                end += step;
                step *= 2;
            }
            let mut left = step.min(level.len - end);
            while left > 0 {
                let half = left / 2;
                let inside = level.keys.read_nc(end + half) <= high;
                end = if inside { end + half + 1 } else { end };
                left = if inside { left - half - 1 } else { half };
            }
        }
        let mut key = if at < end { level.keys.read_nc(at) } else { K::LARGEST };
        let mut live = 0;
        let mut holders = warp::ballot(FULL_MASK, at < end);
        while holders & holders.wrapping_sub(1) != 0 {
            let least = key.least_of_warp();
            let is_least = at < end && key == least;
            let newest = warp::ballot(FULL_MASK, is_least).trailing_zeros();
            let lives = lane == newest && !level.is_tombstone(at);
            if WRITE && lives {
                out.keys.write(out.first + live, least);
                level.copy_value(at, out.value_words, out.values, out.first + live);
            }
            live += usize::from(warp::any(FULL_MASK, lives));
            if is_least {
                while at < end && key == least {
                    at += 1;
                    key = if at < end { level.keys.read_nc(at) } else { K::LARGEST };
                }
            }
            holders = warp::ballot(FULL_MASK, at < end);
        }
        if holders != 0 {
            live += rest::<K, WRITE>(level, at, end, holders.trailing_zeros(), Out { first: out.first + live, ..out });
        }
        live
    }
}

/// [`merge`] of what is left in the level of lane `holder`, from `at` to `end` there: no other level has an element left.
///
/// # Safety
/// As for [`merge`].
#[inline(always)]
unsafe fn rest<K: LevelKey, const WRITE: bool>(
    level: Level<K>,
    at: usize,
    end: usize,
    holder: u32,
    out: Out<K>,
) -> usize {
    // SAFETY: as in `merge`; the level is that of the holder, for all lanes.
    unsafe {
        let level = level.of_lane(holder);
        let first = warp::shuffle_idx(FULL_MASK, at as u64, holder) as usize;
        let end = warp::shuffle_idx(FULL_MASK, end as u64, holder) as usize;
        let mut live = 0;
        let mut begin = first;
        while begin < end {
            let i = begin + warp::lane_id() as usize;
            let mut key = K::LARGEST;
            let mut lives = false;
            if i < end {
                key = level.keys.read_nc(i);
                lives = (i == first || level.keys.read_nc(i - 1) != key) && !level.is_tombstone(i);
            }
            let bits = warp::ballot(FULL_MASK, lives);
            if WRITE && lives {
                let to = out.first + live + (bits & warp::lane_mask_lt()).count_ones() as usize;
                out.keys.write(to, key);
                level.copy_value(i, out.value_words, out.values, to);
            }
            live += bits.count_ones() as usize;
            begin += 32;
        }
        live
    }
}

/// The level of this lane; an empty one for lanes past the last level.
///
/// # Safety
/// As [`lsm_count`].
#[inline(always)]
unsafe fn level_of_lane<K: LevelKey>(table: Global<u64>, levels: u32) -> Level<K> {
    let lane = warp::lane_id();
    // SAFETY: a lane for each place of the table.
    let level = unsafe { Level::<K>::read(table, lane) };
    Level { len: if lane < levels { level.len } else { 0 }, ..level }
}

/// The number of this warp in the grid, and how many there are.
#[inline(always)]
fn warps() -> (usize, usize) {
    (thread::index_1d() as usize / 32, thread::grid_dim_x() as usize * (BLOCK as usize / 32))
}

/// # Safety
/// As [`lsm_count`].
#[inline(always)]
unsafe fn count<K: LevelKey>(
    table: Global<u64>,
    levels: u32,
    lows: Global<K>,
    highs: Global<K>,
    n: usize,
    counts: GlobalMut<u64>,
) {
    // SAFETY: `query < n`; the caller answers for the rest.
    unsafe {
        let level = level_of_lane::<K>(table, levels);
        let (mut query, step) = warps();
        while query < n {
            let out = Out { keys: counts.cast(), values: counts.cast(), value_words: 0, first: 0 };
            let live = merge::<K, false>(level, lows.read_nc(query), highs.read_nc(query), out);
            if warp::lane_id() == 0 {
                counts.write(query, live as u64);
            }
            query += step;
        }
    }
}

/// # Safety
/// As [`lsm_range`].
#[inline(always)]
unsafe fn range<K: LevelKey>(
    table: Global<u64>,
    levels: u32,
    lows: Global<K>,
    highs: Global<K>,
    n: usize,
    offsets: Global<u64>,
    keys: GlobalMut<K>,
    values: GlobalMut<u32>,
    value_words: u32,
) {
    // SAFETY: `query < n`; the caller answers for the rest.
    unsafe {
        let level = level_of_lane::<K>(table, levels);
        let (mut query, step) = warps();
        while query < n {
            let out = Out { keys, values, value_words, first: offsets.read_nc(query) as usize };
            merge::<K, true>(level, lows.read_nc(query), highs.read_nc(query), out);
            query += step;
        }
    }
}

kernel! {
    /// Counts the elements of each range that live.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of [`BLOCK`] threads; a warp takes a query at a time.
    /// - `table`: as `lsm_publish` left it; its first `levels` levels are valid, sorted, and not written while the kernel runs.
    /// - `lows` and `highs`: valid for `n` reads, not written while the kernel runs.
    /// - `counts`: valid for `n` words, used by this launch alone.
    #[launch_bounds(256, 5)]
    pub unsafe fn lsm_count<K>(
        table: Global<u64>, levels: u32, lows: Global<K>, highs: Global<K>, n: usize, counts: GlobalMut<u64>,
    ) for [u32 => lsm_count_u32, u64 => lsm_count_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { count::<K>(table, levels, lows, highs, n, counts) }
    }
}

kernel! {
    /// Writes the elements of each range that live, ascending.
    ///
    /// # Safety
    /// - As for [`lsm_count`].
    /// - `offsets`: for each query the place of its first result; valid for `n` reads, not written while the kernel runs.
    /// - `keys` and `values`: valid for as many results as [`lsm_count`] counts, from each offset on, without overlap; values are of
    ///   `value_words` words of 32 bits, 0, 1 or 2; used by this launch alone.
    #[launch_bounds(256, 5)]
    pub unsafe fn lsm_range<K>(
        table: Global<u64>, levels: u32, lows: Global<K>, highs: Global<K>, n: usize, offsets: Global<u64>,
        keys: GlobalMut<K>, values: GlobalMut<u32>, value_words: u32,
    ) for [u32 => lsm_range_u32, u64 => lsm_range_u64] {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { range::<K>(table, levels, lows, highs, n, offsets, keys, values, value_words) }
    }
}
