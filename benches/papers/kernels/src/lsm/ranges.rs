//! Count and range queries (sections IV-C and IV-D): stages 1, 3 and 5. The scan and the segmented sort between them
//! are primitives.
//!
//! There is one thread per query. In stages 3 and 5 the threads of a warp process their 32 queries together, one after
//! the other, so that neighbours access neighbouring elements.

use warpset_simt::{Global, GlobalMut, Word, thread, warp};

use super::layout::{Counter, KeyVariable, lower_bound, upper_bound};

/// Runs `work` on the queries of a warp, 32 at a time.
#[inline(always)]
fn for_each_warp_of_queries(n: usize, mut work: impl FnMut(usize, usize)) {
    let warps = thread::grid_dim_x() as usize * thread::block_dim_x() as usize / 32;
    let mut warp = thread::index_1d() as usize / 32;
    while 32 * warp < n {
        let queries = n - 32 * warp;
        work(32 * warp, if queries < 32 { queries } else { 32 });
        warp += warps;
    }
}

/// Arguments of stage 3 besides the elements.
#[derive(Clone, Copy)]
struct Storage {
    counter: Counter,
    lower: Global<u64>,
    offsets: Global<u64>,
    n: usize,
    segments: GlobalMut<u64>,
}

/// Copies the candidates of each query, level by level, by `copy(from, to)`.
///
/// # Safety
/// The contract of [`published_store_pairs`].
#[inline(always)]
#[track_caller]
unsafe fn store(storage: Storage, mut copy: impl FnMut(usize, usize)) {
    let Storage { counter, lower, offsets, n, segments } = storage;
    let (levels, lane) = (counter.full_count(), warp::lane_id() as usize);
    for_each_warp_of_queries(n, |first, queries| {
        for query in first..first + queries {
            for (i, level) in counter.full().enumerate() {
                // SAFETY: there is an offset for each query and level, and one more.
                let (from, to, end) = unsafe {
                    let at = query * levels + i;
                    (lower.read_nc(at) as usize, offsets.read_nc(at) as usize, offsets.read_nc(at + 1) as usize)
                };
                let from = counter.offset(level) + from;
                let mut k = lane;
                while k < end - to {
                    copy(from + k, to + k);
                    k += 32;
                }
            }
        }
        if lane < queries {
            // SAFETY: the lane's query is one of the `n`; the last one writes the end, too.
            unsafe {
                segments.write(first + lane, offsets.read_nc((first + lane) * levels));
                if first + lane + 1 == n {
                    segments.write(n, offsets.read_nc(n * levels));
                }
            }
        }
    });
}

/// Counts the valid elements of each query, and passes every element to `each(i, variable, is_valid)`.
///
/// # Safety
/// The contract of [`published_mark_valid`].
#[inline(always)]
#[track_caller]
unsafe fn validate<K: KeyVariable>(
    keys: Global<K>,
    segments: Global<u64>,
    n: usize,
    counts: GlobalMut<u64>,
    mut each: impl FnMut(usize, K, bool),
) {
    let lane = warp::lane_id() as usize;
    for_each_warp_of_queries(n, |first, queries| {
        let mut count = 0u64;
        for query in 0..queries {
            // SAFETY: segments have an end after the last one; elements are read within one; all lanes reach the votes.
            unsafe {
                let begin = segments.read_nc(first + query) as usize;
                let end = segments.read_nc(first + query + 1) as usize;
                let mut valid = 0u64;
                let mut at = begin;
                while at < end {
                    let i = at + lane;
                    let mut is_valid = false;
                    if i < end {
                        let variable = keys.read_nc(i);
                        let is_first = i == begin || keys.read_nc(i - 1).original() != variable.original();
                        is_valid = is_first && variable.is_regular();
                        each(i, variable, is_valid);
                    }
                    valid += warp::ballot(warp::FULL_MASK, is_valid).count_ones() as u64;
                    at += 32;
                }
                count = if lane == query { valid } else { count };
            }
        }
        if lane < queries {
            // SAFETY: a place for each query.
            unsafe { counts.write(first + lane, count) };
        }
    });
}

kernel! {
    /// Estimates counts, in stage 1: for each query and full level the lower bound of its first key, and the number of
    /// elements from there to the upper bound of its last key. A query's levels are adjacent.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `keys`: valid for all levels of the counter of `batch` and `batches`, which are sorted; `lows`, `highs`: for
    ///   `n` reads; no thread writes them while the kernel runs.
    /// - `lower`, `counts`: for `n` words per full level, used by this launch alone.
    pub unsafe fn published_estimate<K>(
        keys: Global<K>, batch: usize, batches: u64, lows: Global<K>, highs: Global<K>, n: usize,
        lower: GlobalMut<u64>, counts: GlobalMut<u64>,
    ) for [u32 => published_estimate_u32, u64 => published_estimate_u64] {
        let counter = Counter { batch, batches };
        let levels = counter.full_count();
        for query in thread::grid_stride(n) {
            // SAFETY: `query < n`; levels are full where they are searched.
            unsafe {
                let (low, high) = (lows.read_nc(query), highs.read_nc(query));
                let high = if high > K::MAX_KEY { K::MAX_KEY } else { high };
                for (i, level) in counter.full().enumerate() {
                    let (first, len) = (counter.offset(level), counter.len(level));
                    let (mut begin, mut end) = (first, first);
                    if low <= high {
                        begin = lower_bound(keys, first, first + len, K::pack(low, false));
                        end = upper_bound(keys, begin, first + len, K::pack(high, true));
                    }
                    lower.write(query * levels + i, (begin - first) as u64);
                    counts.write(query * levels + i, (end - begin) as u64);
                }
            }
        }
    }

    /// Stores candidate keys, in stage 3 of a count: the candidates of each query adjacent, the newest level first, and
    /// the start of those of each query.
    ///
    /// # Safety
    /// The contract of [`published_store_pairs`], without values.
    pub unsafe fn published_store_keys<K>(
        keys: Global<K>, batch: usize, batches: u64, lower: Global<u64>, offsets: Global<u64>, n: usize,
        out_keys: GlobalMut<K>, segments: GlobalMut<u64>,
    ) for [u32 => published_store_keys_u32, u64 => published_store_keys_u64] {
        let storage = Storage { counter: Counter { batch, batches }, lower, offsets, n, segments };
        // SAFETY: the contract is the same; a candidate is in its level and has its own place.
        unsafe { store(storage, |from, to| out_keys.write(to, keys.read_nc(from))) };
    }

    /// Stores candidates with their values, in stage 3 of a range, like [`published_store_keys`].
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of a multiple of 32 threads.
    /// - `keys`, `values`: valid for all levels of the counter of `batch` and `batches`; `lower`: what
    ///   [`published_estimate`] wrote for these levels, `offsets`: its counts after an exclusive scan, with their sum
    ///   at the end; no thread writes them while the kernel runs.
    /// - `out_keys`, `out_values`: for as many writes as that sum, `segments`: for `n + 1`; used by this launch alone.
    pub unsafe fn published_store_pairs<K, V>(
        keys: Global<K>, values: Global<V>, batch: usize, batches: u64, lower: Global<u64>, offsets: Global<u64>,
        n: usize, out_keys: GlobalMut<K>, out_values: GlobalMut<V>, segments: GlobalMut<u64>,
    ) for [
        (u32, u32) => published_store_pairs_u32_u32, (u32, u64) => published_store_pairs_u32_u64,
        (u64, u32) => published_store_pairs_u64_u32, (u64, u64) => published_store_pairs_u64_u64
    ] {
        let storage = Storage { counter: Counter { batch, batches }, lower, offsets, n, segments };
        // SAFETY: as for keys alone.
        unsafe {
            store(storage, |from, to| {
                out_keys.write(to, keys.read_nc(from));
                out_values.write(to, values.read_nc(from));
            });
        }
    }

    /// Counts elements, in stage 5 of a count: for each query the first elements of a key that are regular.
    ///
    /// # Safety
    /// The contract of [`published_mark_valid`], without `marked`.
    pub unsafe fn published_final_count<K>(keys: Global<K>, segments: Global<u64>, n: usize, counts: GlobalMut<u64>)
    for [u32 => published_final_count_u32, u64 => published_final_count_u64] {
        // SAFETY: the contract is the same.
        unsafe { validate(keys, segments, n, counts, |_, _, _| {}) };
    }

    /// Marks valid elements, in the first half of stage 5 of a range: counts like [`published_final_count`], and writes
    /// key variables with a status bit that says whether the element is valid.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of a multiple of 32 threads.
    /// - `segments`: `n + 1` ascending offsets; `keys`: valid up to the last one, sorted in each segment, the newest of
    ///   equal ones first; no thread writes them while the kernel runs.
    /// - `counts`: for `n` words, `marked`: as long as `keys`, used by this launch alone.
    pub unsafe fn published_mark_valid<K>(
        keys: Global<K>, segments: Global<u64>, n: usize, counts: GlobalMut<u64>, marked: GlobalMut<K>,
    ) for [u32 => published_mark_valid_u32, u64 => published_mark_valid_u64] {
        // SAFETY: the contract is the same; `validate` passes places within segments, each once.
        unsafe {
            validate(keys, segments, n, counts, |i, variable, is_valid| {
                marked.write(i, K::pack(variable.original(), is_valid));
            });
        }
    }

    /// Compacts segments, in the second half of stage 5 of a range: original keys and values of marked elements, those
    /// of query `q` from `offsets[q]` on.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of a multiple of 32 threads.
    /// - `marked` and `segments`: of [`published_mark_valid`]; `values`: as long; `offsets`: its counts after an
    ///   exclusive scan; no thread writes them while the kernel runs.
    /// - `out_keys`, `out_values`: for as many writes as are marked, used by this launch alone.
    pub unsafe fn published_compact<K, V>(
        marked: Global<K>, values: Global<V>, segments: Global<u64>, offsets: Global<u64>, n: usize,
        out_keys: GlobalMut<K>, out_values: GlobalMut<V>,
    ) for [
        (u32, u32) => published_compact_u32_u32, (u32, u64) => published_compact_u32_u64,
        (u64, u32) => published_compact_u64_u32, (u64, u64) => published_compact_u64_u64
    ] {
        // SAFETY: the contract is the same.
        unsafe { compact(marked, values, segments, offsets, n, out_keys, out_values) };
    }
}

/// Compacts segments for [`published_compact`].
///
/// # Safety
/// The contract of [`published_compact`].
#[inline(always)]
#[track_caller]
unsafe fn compact<K: KeyVariable, V: Word>(
    marked: Global<K>,
    values: Global<V>,
    segments: Global<u64>,
    offsets: Global<u64>,
    n: usize,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
) {
    let lane = warp::lane_id() as usize;
    for_each_warp_of_queries(n, |first, queries| {
        for query in first..first + queries {
            // SAFETY: segments have an end after the last one, and elements are read within one; all lanes reach the
            // votes; each marked element has its own place.
            unsafe {
                let end = segments.read_nc(query + 1) as usize;
                let (mut at, mut to) = (segments.read_nc(query) as usize, offsets.read_nc(query) as usize);
                while at < end {
                    let i = at + lane;
                    let variable = if i < end { marked.read_nc(i) } else { K::default() };
                    let bits = warp::ballot(warp::FULL_MASK, variable.is_regular());
                    if variable.is_regular() {
                        let place = to + (bits & warp::lane_mask_lt()).count_ones() as usize;
                        out_keys.write(place, variable.original());
                        out_values.write(place, values.read_nc(i));
                    }
                    to += bits.count_ones() as usize;
                    at += 32;
                }
            }
        }
    });
}
