//! Lookups (section IV-B): the individual approach, and the steps of the bulk approach besides sorting and searching.

use warpset_simt::{Global, GlobalMut, Word, atomic, thread, warp};

use super::layout::{Counter, KeyVariable, lower_bound};

/// Returns the value of a key, from the levels in one array.
///
/// # Safety
/// `keys` and `values` are valid for reads of all levels of `counter`, which are sorted, and not written while the
/// kernel runs.
#[inline(always)]
#[track_caller]
unsafe fn find<K: KeyVariable, V: Word>(keys: Global<K>, values: Global<V>, counter: Counter, query: K) -> Option<V> {
    if query > K::MAX_KEY {
        return None;
    }
    for level in counter.full() {
        let (first, len) = (counter.offset(level), counter.len(level));
        // SAFETY: the level is full, and a place below its length is read.
        unsafe {
            let place = lower_bound(keys, first, first + len, K::pack(query, false));
            if place < first + len {
                let variable = keys.read_nc(place);
                if variable.original() == query {
                    return if variable.is_regular() { Some(values.read_nc(place)) } else { None };
                }
            }
        }
    }
    None
}

kernel! {
    /// Looks up by the individual approach: one thread per query, a lower-bound search in each full level from the
    /// smallest on, until one has the key. Bit `i % 32` of word `i / 32` of `found` says whether query `i` has a value.
    /// Value `i` is that value, or zero.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of a multiple of 32 threads.
    /// - `keys`, `values`: valid for all levels of the counter of `batch` and `batches`, which are sorted; `queries`:
    ///   for `n` reads; no thread writes them while the kernel runs.
    /// - `out_values`: for `n` writes, `found`: for `n` bits in whole words, used by this launch alone.
    pub unsafe fn published_lookup<K, V>(
        keys: Global<K>, values: Global<V>, batch: usize, batches: u64, queries: Global<K>, n: usize,
        out_values: GlobalMut<V>, found: GlobalMut<u32>,
    ) for [
        (u32, u32) => published_lookup_u32_u32, (u32, u64) => published_lookup_u32_u64,
        (u64, u32) => published_lookup_u64_u32, (u64, u64) => published_lookup_u64_u64
    ] {
        let lane = warp::lane_id() as usize;
        let threads = thread::grid_dim_x() as usize * thread::block_dim_x() as usize;
        let mut first = thread::index_1d() as usize - lane;
        while first < n {
            let i = first + lane;
            // SAFETY: `i < n` where anything is read or written; all lanes reach the vote; a warp writes its own word.
            unsafe {
                let mut is_found = false;
                if i < n {
                    let value = find(keys, values, Counter { batch, batches }, queries.read_nc(i));
                    is_found = value.is_some();
                    out_values.write(i, value.unwrap_or(0));
                }
                let bits = warp::ballot(warp::FULL_MASK, is_found);
                if lane == 0 {
                    found.write(first / 32, bits);
                }
            }
            first += threads;
        }
    }

    /// Makes the input of the bulk approach's sort: the least key variable of each query, and its place.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `queries`: valid for `n <= 2^32` reads, not written while the kernel runs; `needles`, `places`: for `n`
    ///   writes, used by this launch alone.
    pub unsafe fn published_needles<K>(queries: Global<K>, n: usize, needles: GlobalMut<K>, places: GlobalMut<u32>)
    for [u32 => published_needles_u32, u64 => published_needles_u64] {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`.
            unsafe {
                needles.write(i, K::pack(queries.read_nc(i), false));
                places.write(i, i as u32);
            }
        }
    }

    /// Decides the sorted queries with a key in a level; `bounds` are their lower bounds in it.
    ///
    /// # Safety
    /// - Launch: 1-D, any number of blocks of any size.
    /// - `keys`, `values`: valid for the `len` elements of the level; `bounds`, `needles`, `places`, `queries`: for `n`
    ///   reads, the sorted output of [`published_needles`] for these queries; no thread writes them while the kernel
    ///   runs.
    /// - `decided`, `out_values`: for `n` elements, `found`: for `n` bits in whole words; used by this launch alone.
    pub unsafe fn published_resolve<K, V>(
        keys: Global<K>, values: Global<V>, len: usize, bounds: Global<u64>, needles: Global<K>, places: Global<u32>,
        queries: Global<K>, n: usize, decided: GlobalMut<u8>, out_values: GlobalMut<V>, found: GlobalMut<u32>,
    ) for [
        (u32, u32) => published_resolve_u32_u32, (u32, u64) => published_resolve_u32_u64,
        (u64, u32) => published_resolve_u64_u32, (u64, u64) => published_resolve_u64_u64
    ] {
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`; a bound is read where it is below `len`; a place is below `n`, and each occurs once.
            unsafe {
                let bound = bounds.read_nc(i) as usize;
                if bound >= len || decided.read(i) != 0 {
                    continue;
                }
                let variable = keys.read_nc(bound);
                let place = places.read_nc(i) as usize;
                // A query with a set highest bit has the needle of another key.
                if variable.original() != needles.read_nc(i).original() || queries.read_nc(place) > K::MAX_KEY {
                    continue;
                }
                decided.write(i, 1);
                if variable.is_regular() {
                    out_values.write(place, values.read_nc(bound));
                    atomic::reduce_or(found.at(place / 32), 1 << (place % 32));
                }
            }
        }
    }
}
