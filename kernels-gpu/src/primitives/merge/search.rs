//! Search: places of needles among sorted keys.
//!
//! Unsorted needles are searched by halving, four of them in step per thread, so that four reads are in flight. Sorted
//! needles are merged with the keys ([`crate::primitives::merge_path`]), which reads both once: a needle's place is the
//! number of keys before it.

use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, thread};

use crate::primitives::merge_path::MergeKey;
#[cfg(feature = "bodies")]
use crate::primitives::merge_path::{Tile, crossing_in_shared, goes_first};
use crate::primitives::tile_shape::launch_shape;

/// Threads per block of the kernels for unsorted needles.
pub const BLOCK: u32 = 256;
/// Needles per thread and step.
pub const NEEDLES: usize = 4;

/// Whether `key` is before `needle`: it is below the needle or, for an upper bound, equal to it.
#[cfg(feature = "bodies")]
#[inline(always)]
fn before<K: MergeKey, const UPPER: bool>(key: K, needle: K, mask: K) -> bool {
    if UPPER { goes_first(key, needle, mask) } else { !goes_first(needle, key, mask) }
}

/// Searches for unsorted needles; grid-stride.
///
/// # Safety
/// The contract of [`lower_bound`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn search<K: MergeKey, const UPPER: bool>(
    keys: Global<K>,
    n: usize,
    needles: Global<K>,
    count: usize,
    mask: K,
    out: GlobalMut<u64>,
) {
    let threads = thread::grid_dim_x() as usize * BLOCK as usize;
    let mut first = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    while first < count {
        let mut wanted = [K::default(); NEEDLES];
        let mut places = [0; NEEDLES];
        for u in 0..NEEDLES {
            let i = first + u * threads;
            if i < count {
                // SAFETY: below the number of needles.
                wanted[u] = unsafe { needles.read_nc(i) };
            }
        }
        // The bound is in `places[u]..=places[u] + left`.
        let mut left = n;
        while left > 0 {
            let half = left.div_ceil(2);
            for u in 0..NEEDLES {
                // SAFETY: `half` is at least 1, and there are `left` more keys after the place, at least `half`.
                let key = unsafe { keys.read_nc(places[u] + half - 1) };
                places[u] += if before::<K, UPPER>(key, wanted[u], mask) { half } else { 0 };
            }
            left -= half;
        }
        for u in 0..NEEDLES {
            let i = first + u * threads;
            if i < count {
                // SAFETY: one place per needle.
                unsafe { out.write(i, places[u] as u64) };
            }
        }
        first += NEEDLES * threads;
    }
}

/// Returns the bytes of dynamic shared memory for tiles of `threads * items` keys and needles: these, and the needles'
/// places.
#[cfg(not(target_arch = "nvptx64"))]
const fn shared_bytes<K>(threads: u32, items: u32) -> u32 {
    places_at::<K>(threads, items) + threads * items * 4
}

/// Returns the place of the needles' places in shared memory.
const fn places_at<K>(threads: u32, items: u32) -> u32 {
    ((threads * items + items + 1) * size_of::<K>() as u32).next_multiple_of(16)
}

/// Searches for sorted needles: the block's tile of their merge with the keys. The first run is the keys for an upper
/// bound and the needles for a lower one, because a needle comes after the keys that equal it, or before.
///
/// # Safety
/// The contract of [`lower_bound_sorted`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn search_sorted<K: MergeKey, const THREADS: u32, const ITEMS: usize, const UPPER: bool>(
    keys: Global<K>,
    n: usize,
    needles: Global<K>,
    count: usize,
    mask: K,
    splits: Global<u64>,
    out: GlobalMut<u64>,
) {
    let tile_items = THREADS * ITEMS as u32;
    let tile = thread::block_idx_x() as usize;
    let start = tile * tile_items as usize;
    let len = (n + count - start).min(tile_items as usize) as u32;
    // SAFETY: splits are inside the runs, and the parts between two consecutive ones have `len` items in all.
    unsafe {
        let (a_start, a_end) = (splits.read_nc(tile) as usize, splits.read_nc(tile + 1) as usize);
        let b_start = start - a_start;
        let (a, b) = if UPPER { (keys, needles) } else { (needles, keys) };
        let (keys_start, needles_start) = if UPPER { (a_start, b_start) } else { (b_start, a_start) };
        let tile = Tile::<THREADS, ITEMS> { t: thread::thread_idx_x(), a_len: (a_end - a_start) as u32, len };
        let (a, b, out) = (a.at(a_start), b.at(b_start), out.at(needles_start));
        if len == tile_items {
            search_tile::<K, THREADS, ITEMS, UPPER, true>(tile, a, b, mask, keys_start, out);
        } else {
            search_tile::<K, THREADS, ITEMS, UPPER, false>(tile, a, b, mask, keys_start, out);
        }
    }
}

/// Searches one tile, and writes the places of its needles to the start of `out`.
///
/// # Safety
/// - The contract of the caller.
/// - The parts have the lengths of the tile.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn search_tile<K: MergeKey, const THREADS: u32, const ITEMS: usize, const UPPER: bool, const FULL: bool>(
    tile: Tile<THREADS, ITEMS>,
    a: Global<K>,
    b: Global<K>,
    mask: K,
    keys_start: usize,
    out: GlobalMut<u64>,
) {
    let Tile { t, a_len, len } = tile;
    let merged: Shared<K> = shared::dynamic(0);
    let places: Shared<u32> = shared::dynamic(places_at::<K>(THREADS, ITEMS as u32));
    // SAFETY: barriers separate writing the tile from reading it, and writing the places, one per needle, from reading
    // them. A thread reads at most `ITEMS` places after its first, which exist. All threads reach the barriers.
    unsafe {
        let loaded = tile.load::<K, FULL>(a, b);
        tile.put::<K, FULL>(merged, loaded);
        thread::sync_threads();
        let diagonal = (t * ITEMS as u32).min(len);
        let mut at_a = crossing_in_shared((merged, a_len), (merged.at(a_len), len - a_len), diagonal, mask);
        let mut at_b = a_len + diagonal - at_a;
        let (mut first, mut second) = (merged.get(at_a), merged.get(at_b));
        for _ in 0..ITEMS {
            let from_a = (at_b >= len) | ((at_a < a_len) & goes_first(first, second, mask));
            let (needle, place) = if UPPER { (at_b - a_len, at_a) } else { (at_a, at_b - a_len) };
            if from_a != UPPER && (FULL || at_a < a_len || at_b < len) {
                places.set(needle, place);
            }
            let next = if from_a { at_a } else { at_b } + 1;
            let key = merged.get(next);
            at_a = if from_a { next } else { at_a };
            at_b = if from_a { at_b } else { next };
            first = if from_a { key } else { first };
            second = if from_a { second } else { key };
        }
        thread::sync_threads();
        let needles = if UPPER { len - a_len } else { a_len };
        let mut i = t;
        while i < needles {
            out.write(i as usize, (keys_start + places.get(i) as usize) as u64);
            i += THREADS;
        }
    }
}

/// Returns the items per thread of the kernels for sorted needles, for keys of this size.
const fn items<K>() -> usize {
    match size_of::<K>() {
        4 => 15,
        8 => 11,
        _ => 7,
    }
}

macro_rules! search_kernels {
    ($($name:ident: $entry_u32:ident $entry_u64:ident $entry_u128:ident,
        $sorted:ident: $sorted_u32:ident $sorted_u64:ident $sorted_u128:ident;
        $bound:literal, $upper:literal;)*) => {$(
        kernel! {
            #[doc = concat!("The ", $bound, " bounds of needles in any order.")]
            ///
            /// # Safety
            /// - Launch: 1-D, any number of blocks of [`BLOCK`] threads.
            /// - `keys` and `needles`: valid for `n` and `count` reads, not written while the kernel runs; the keys are
            ///   sorted by the bits of `mask`.
            /// - `out`: valid for `count` writes, overlaps nothing else, nothing else accesses it.
            pub unsafe fn $name<K>(
                keys: Global<K>, n: usize, needles: Global<K>, count: usize, mask: K, out: GlobalMut<u64>,
            ) for [
                #[launch_bounds(256, 6)] u32 => $entry_u32,
                #[launch_bounds(256, 6)] u64 => $entry_u64,
                #[launch_bounds(256, 4)] u128 => $entry_u128,
            ] {
                // SAFETY: the contract of this kernel.
                unsafe { search::<K, $upper>(keys, n, needles, count, mask, out) }
            }
        }

        kernel! {
            #[doc = concat!("The ", $bound, " bounds of sorted needles.")]
            ///
            /// # Safety
            /// - Launch: 1-D, one block per tile of keys and needles, shaped as its `SHAPE` says; there is at least one
            ///   of them.
            /// - `keys` and `needles`: valid for `n` and `count` reads, sorted by the bits of `mask`, not written while
            ///   the kernel runs.
            /// - `splits`: the number of items of the first run (the keys for an upper bound, the needles for a lower
            ///   one) before each tile and before the end.
            /// - `out`: valid for `count` writes, overlaps nothing else, nothing else accesses it.
            #[launch_bounds(256, 4)]
            pub unsafe fn $sorted<K>(
                keys: Global<K>, n: usize, needles: Global<K>, count: usize, mask: K, splits: Global<u64>,
                out: GlobalMut<u64>,
            ) for [u32 => $sorted_u32, u64 => $sorted_u64, u128 => $sorted_u128] {
                // SAFETY: the contract of this kernel.
                unsafe { search_sorted::<K, 256, { items::<K>() }, $upper>(keys, n, needles, count, mask, splits, out) }
            }
        }

        launch_shape!($sorted<K>: 256, items::<K>() as u32, shared_bytes::<K>(256, items::<K>() as u32));
    )*};
}
search_kernels! {
    lower_bound: lower_bound_u32 lower_bound_u64 lower_bound_u128,
        lower_bound_sorted: lower_bound_sorted_u32 lower_bound_sorted_u64 lower_bound_sorted_u128;
        "lower", false;
    upper_bound: upper_bound_u32 upper_bound_u64 upper_bound_u128,
        upper_bound_sorted: upper_bound_sorted_u32 upper_bound_sorted_u64 upper_bound_sorted_u128;
        "upper", true;
}
