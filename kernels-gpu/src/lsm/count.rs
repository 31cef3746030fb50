//! Counts of ranges in trees of unknown visibility: one warp per query.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU",
//! IPDPS 2018, sections III-E and IV-C. The paper copies the candidates of all queries to memory, sorts each query's,
//! and drops stale ones. Departure: a count needs no order, only whether a newer level has the key.
//!
//! Each lane has one level, and keeps its addresses while the warp processes its queries. With few levels, a warp
//! searches for several queries at a time, one group of lanes each. Then, for one query after the other:
//! - up to 32 elements: each lane takes one, and compares it with those of all other lanes;
//! - more: levels are processed from the newest to the oldest. A small Bloom filter in shared memory holds the keys of
//!   processed levels; an element that it may hold is searched in these levels.
//!
//! [`lsm_count`] can keep the spans that it finds for listing: one word per query and level.

use warpset_core::lsm::Number;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, allow, thread};

use crate::lsm::groups::{self, WARPS};
#[cfg(feature = "bodies")]
use crate::lsm::groups::{Groups, span_of};
#[cfg(feature = "bodies")]
use crate::lsm::levels::lower_bound;
use crate::lsm::levels::{Levels, Span, number};
use crate::lsm::order::RangeKey;
use crate::lsm::short::{BY_QUERIES, SHORT};
#[cfg(feature = "bodies")]
use crate::lsm::short::{Short, note_long};

/// Words of 32 bits of a warp's filter of keys.
const SEEN_WORDS: u32 = 1024;
/// Elements that a lane loads before it processes the first.
const AT_ONCE: u32 = 4;
/// Bytes of dynamic shared memory of a block of [`lsm_count`].
pub const SHARED_BYTES: u32 = WARPS * SEEN_WORDS * 4;

/// Whether any level before `level` has the key in its span of the query.
///
/// # Safety
/// All lanes of the warp call this together, with the same `level`, each with its level's span; lanes with `wanted` get
/// an answer.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn is_in_newer<K: RangeKey>(levels: Levels, span: Span, level: u32, key: K, wanted: bool) -> bool {
    let mut found = false;
    for newer in 0..level {
        // SAFETY: all lanes call this together; places are inside the level.
        unsafe {
            let low = warp::shuffle_idx(FULL_MASK, span.low as u64, newer) as usize;
            let high = warp::shuffle_idx(FULL_MASK, span.high as u64, newer) as usize;
            if wanted & !found {
                let keys = levels.keys::<K>(newer);
                let place = lower_bound(keys, low, high, key);
                found = place < high && keys.read_nc(place) == key;
            }
        }
    }
    found
}

/// Counts the valid elements of a query with more than 32.
///
/// # Safety
/// - All lanes of the warp call this together, each with its level's span.
/// - `seen`: [`SEEN_WORDS`] words of shared memory, the warp's own.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn count_many<K: RangeKey>(levels: Levels, count: u32, span: Span, total: u32, seen: Shared<u32>) -> u64 {
    let lane = lane_id();
    // One word per element, up to the size of the filter.
    let words = total.min(SEEN_WORDS).next_power_of_two();
    let shift = 32 - words.trailing_zeros();
    let mut all_valid = 0u64;
    // SAFETY: all lanes call this together, and each loop has the same number of rounds in all lanes. Bits of the
    // filter are below `words` words; warp barriers separate clearing, adding and testing. Elements are inside their
    // level.
    unsafe {
        let mut w = lane;
        while w < words {
            seen.set(w, 0);
            w += 32;
        }
        warp::sync_warp(FULL_MASK);
        let occupied = warp::ballot(FULL_MASK, span.count() != 0);
        for number in 0..count {
            if occupied >> number & 1 == 0 {
                continue;
            }
            let mut base = warp::shuffle_idx(FULL_MASK, span.low as u64, number) as usize;
            let high = warp::shuffle_idx(FULL_MASK, span.high as u64, number) as usize;
            let is_newest = occupied & ((1 << number) - 1) == 0;
            let is_oldest = occupied >> number == 1;
            let level_keys = levels.keys::<K>(number);
            let tombstones = levels.tombstones(number);
            // The key of the element before those at `base`; initially one that differs from the first.
            let mut last = !level_keys.read_nc(base);
            while base < high {
                let here = level_keys.at(base);
                let left = (high - base).min(32 * AT_ONCE as usize) as u32;
                let mut keys = [K::default(); AT_ONCE as usize];
                for u in 0..AT_ONCE {
                    if u * 32 + lane < left {
                        keys[u as usize] = here.read_nc((u * 32 + lane) as usize);
                    }
                }
                let mut valid = 0;
                // Bit `u`: the filter may hold the lane's element `u`.
                let mut uncertain = 0u32;
                for u in 0..AT_ONCE {
                    if u * 32 >= left {
                        break;
                    }
                    let i = u * 32 + lane;
                    let key = keys[u as usize];
                    let before = warp::shuffle_up(FULL_MASK, key, 1);
                    let newest = (i < left) & (if lane == 0 { last } else { before } != key);
                    last = warp::shuffle_idx(FULL_MASK, key, 31);
                    let (word, bits) = bits_of(key, shift);
                    let maybe = !is_newest && seen.get_volatile(word) & bits == bits;
                    if !is_oldest & newest {
                        seen.reduce_or(word, bits);
                    }
                    let live = newest && !tombstones.is_one(base + i as usize);
                    valid += warp::ballot(FULL_MASK, live & !maybe).count_ones();
                    uncertain |= ((live & maybe) as u32) << u;
                }
                while warp::any(FULL_MASK, uncertain != 0) {
                    let i = (uncertain.trailing_zeros() % AT_ONCE) * 32 + lane;
                    let wanted = uncertain != 0;
                    let key = if wanted { here.read_nc(i as usize) } else { K::default() };
                    let found = is_in_newer(levels, span, number, key, wanted);
                    valid += warp::ballot(FULL_MASK, wanted & !found).count_ones();
                    uncertain &= uncertain.wrapping_sub(1);
                }
                all_valid += valid as u64;
                base += 32 * AT_ONCE as usize;
            }
            warp::sync_warp(FULL_MASK);
        }
        warp::sync_warp(FULL_MASK);
    }
    all_valid
}

/// Returns the word of a key in a warp's filter of `2^(32 - shift)` words, and its four bits there.
#[cfg(feature = "bodies")]
#[inline(always)]
fn bits_of<K: RangeKey>(key: K, shift: u32) -> (u32, u32) {
    let key = number(key).folded();
    let hash = ((key as u32) ^ (key >> 32) as u32).wrapping_mul(0x9e37_79b9);
    // The high bits, ten at most, give the word.
    let bits = 1 << (hash >> 17 & 31) | 1 << (hash >> 12 & 31) | 1 << (hash >> 7 & 31) | 1 << (hash >> 2 & 31);
    (hash >> shift, bits)
}

kernel! {
    /// Counts the keys of each range that are in the tree.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](groups::BLOCK) threads, [`SHARED_BYTES`] of dynamic shared
    ///   memory.
    /// - `table`: as for [`Levels::new`], with `levels` levels.
    /// - `lows`, `highs`: valid for `n` reads, not written while the kernel runs: both ends belong to the range.
    /// - `counts`: valid for `n` writes, used by this launch alone; so are `spans`, for `n * levels`, unless `keep` is
    ///   0, and unless `list` is 0, `long` and `long_count`, as for [`lsm_spans`](super::spans::lsm_spans) with
    ///   [`BY_QUERIES`](super::short::BY_QUERIES).
    #[launch_bounds(256, 3)]
    pub unsafe fn lsm_count<K>(
        table: Global<u64>, levels: u32, lows: Global<K>, highs: Global<K>, n: usize, counts: GlobalMut<u64>,
        spans: GlobalMut<u64>, keep: u32, list: u32, long: GlobalMut<u64>, long_count: GlobalMut<u64>,
    ) for [
        u32 => lsm_count_u32, #[launch_bounds(256, 2)] u64 => lsm_count_u64,
        #[launch_bounds(256, 2)] u128 => lsm_count_u128
    ] {
        // Four registers on sm_80; none on later ones.
        allow::spill();
        let warp_in_block = thread::thread_idx_x() / 32;
        let seen = shared::dynamic(warp_in_block * (SEEN_WORDS * 4));
        let groups = Groups::new(levels);
        // SAFETY: the contract of this kernel; lanes without a level read that of the newest.
        let tree = unsafe { Levels::new(table) };
        let own = groups.level();
        let has_level = own < levels;
        if levels == 0 {
            return none(n, counts);
        }
        let level = tree.level::<K>(if has_level { own } else { 0 }).indexed();
        let at_a_time = groups.queries() as usize;
        let mut base = (thread::block_idx_x() as usize * WARPS as usize + warp_in_block as usize) * at_a_time;
        while base < n {
            // SAFETY: the contract of this kernel; `query < n` for every access; `base`, the groups and sums are equal
            // in all lanes.
            unsafe {
                let query = base + groups.group() as usize;
                let mut spans_here = Span::EMPTY;
                if has_level && query < n {
                    spans_here = span_of(level, lows.read_nc(query), highs.read_nc(query));
                    if keep != 0 {
                        spans.write(query * levels as usize + own as usize, groups::pack(spans_here));
                    }
                }
                let total = groups.total(spans_here);
                if total == 0 && own == 0 && query < n {
                    counts.write(query, 0);
                }
                let is_long = list != 0 && total > SHORT;
                if warp::any(FULL_MASK, is_long) {
                    let units = groups.sum_wide(spans_here.count());
                    note_long(is_long && own == 0, query, units, BY_QUERIES, long, long_count);
                }
                let short = Short::new(groups, spans_here, total);
                let mut element = 0;
                loop {
                    let window = short.window::<K>(tree, None, element);
                    if window.len == 0 {
                        break;
                    }
                    if window.has_element() && window.first == lane_id() {
                        let query = base + (window.source / groups.lanes) as usize;
                        counts.write(query, window.valid_of_query().count_ones() as u64);
                    }
                    element += window.len;
                }
                let mut long = warp::ballot(FULL_MASK, total > SHORT && own == 0);
                while long != 0 {
                    let group = long.trailing_zeros() / groups.lanes;
                    long &= long - 1;
                    let span = groups.spread(spans_here, group);
                    let total = warp::shuffle_idx(FULL_MASK, total, group * groups.lanes);
                    let valid = count_many::<K>(tree, levels, span, total, seen);
                    if lane_id() == 0 {
                        counts.write(base + group as usize, valid);
                    }
                }
            }
            base += thread::grid_dim_x() as usize * WARPS as usize * at_a_time;
        }
    }
}

/// Writes the counts of a tree without levels.
#[cfg(feature = "bodies")]
#[inline(always)]
fn none(n: usize, counts: GlobalMut<u64>) {
    for i in thread::grid_stride(n) {
        // SAFETY: there are `n` counts by the contract of the kernel, and each belongs to one thread.
        unsafe { counts.write(i, 0) };
    }
}
