//! Stable merge of two sorted runs: of equal keys those of the first run come first.
//!
//! A block merges one tile of the output, and in it every thread the same number of items. Both find the beginning and
//! end of their parts of the runs by merge path ([`crate::primitives::merge_path`]). The tile's items are loaded into
//! shared memory; each thread merges its items into registers one by one; they are written through shared memory, so
//! that all accesses to global memory are to neighbouring places. Keys without values move 16 bytes at a time
//! ([`vectors`]).
//!
//! The beginnings of the tiles are found by [`merge_splits`] before the merge, or, for short inputs, where another
//! launch would cost more than it saves, by the block's first two warps.

pub mod search;
pub mod vectors;

use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, Word, allow, thread, warp};

use crate::primitives::merge_path::MergeKey;
#[cfg(feature = "bodies")]
use crate::primitives::merge_path::{Tile, crossing_by_thread, crossing_by_warp, crossing_in_shared, goes_first};
use crate::primitives::tile_shape::launch_shape;
use vectors::{Part, Vectors};

/// Sorted run of keys, with one value per key.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Run<K, V> {
    keys: Global<K>,
    values: Global<V>,
    len: usize,
}

/// Threads per block of the kernels that find splits.
pub const SPLIT_BLOCK: u32 = 128;

/// Flag: an earlier launch has found the splits.
pub const SPLITS_KNOWN: u32 = 1;
/// Flag: the merged keys begin at a multiple of 16 bytes.
pub const OUT_ALIGNED: u32 = 2;
/// Shift of the two bits in the kernels' `flags` for the number of keys between the last multiple of 16 bytes and the
/// first run.
pub const A_SKEW_SHIFT: u32 = 4;
/// Shift of the bits in the kernels' `flags` for the number of keys between the last multiple of 16 bytes and the
/// second run.
pub const B_SKEW_SHIFT: u32 = 6;

/// Returns the bytes of dynamic shared memory for tiles of `threads * items` items, and for the places that a thread
/// may read beyond the end of an incomplete tile.
#[cfg(not(target_arch = "nvptx64"))]
const fn shared_bytes<K: Vectors, V>(threads: u32, items: u32, pairs: bool) -> u32 {
    if pairs {
        values_at::<K>(threads, items) + (threads * items + items + 1) * size_of::<V>() as u32
    } else {
        (threads * items + items + 1 + vectors::slack::<K>()) * size_of::<K>() as u32
    }
}

/// Returns the place of the values in shared memory.
const fn values_at<K>(threads: u32, items: u32) -> u32 {
    ((threads * items + items + 1) * size_of::<K>() as u32).next_multiple_of(16)
}

/// Merges a tile of keys: parts of the runs to `out`, which begins at a multiple of 16 bytes if `aligned`.
///
/// # Safety
/// - The contracts of the methods that it calls, with [`shared_bytes`] of dynamic shared memory.
/// - All threads call this together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn merge_tile_of_keys<K: Vectors, const THREADS: u32, const ITEMS: usize>(
    tile: Tile<THREADS, ITEMS>,
    a: Part<K>,
    b: Part<K>,
    mask: K,
    out: GlobalMut<K>,
    aligned: bool,
) {
    let keys: Shared<K> = shared::dynamic(0);
    // SAFETY: barriers separate writing the tile, reading it and writing it again; the rest is the contract of this
    // function.
    unsafe {
        let (a_at, b_at) = vectors::load(tile, a, b, keys);
        thread::sync_threads();
        let mut merged = [K::default(); ITEMS];
        // There are no values, and none is read.
        let loaded = Loaded { keys, values: keys, mask };
        merge_part::<K, K, THREADS, ITEMS, false>(tile, loaded, a_at, b_at, &mut merged, &mut [K::default(); ITEMS]);
        thread::sync_threads();
        if aligned && tile.len == THREADS * ITEMS as u32 {
            vectors::store(tile, keys, merged, out);
        } else {
            tile.store::<K, false>(keys, merged, out);
        }
    }
}

/// Merges a tile of keys with values: parts of the runs in global memory to the outputs.
///
/// # Safety
/// - The contracts of the methods that it calls, with [`shared_bytes`] of dynamic shared memory.
/// - All threads call this together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn merge_tile_of_pairs<
    K: MergeKey,
    V: Word + Default,
    const THREADS: u32,
    const ITEMS: usize,
    const FULL: bool,
>(
    tile: Tile<THREADS, ITEMS>,
    a: Run<K, V>,
    b: Run<K, V>,
    mask: K,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
) {
    let keys: Shared<K> = shared::dynamic(0);
    let values: Shared<V> = shared::dynamic(values_at::<K>(THREADS, ITEMS as u32));
    // SAFETY: barriers separate writing the tile, reading it and writing it again; the rest is the contract of this
    // function.
    unsafe {
        let a_and_b = tile.load::<K, FULL>(a.keys, b.keys);
        let loaded_values = tile.load::<V, FULL>(a.values, b.values);
        tile.put::<V, FULL>(values, loaded_values);
        tile.put::<K, FULL>(keys, a_and_b);
        thread::sync_threads();
        let mut merged = [K::default(); ITEMS];
        let mut merged_values = [V::default(); ITEMS];
        let loaded = Loaded { keys, values, mask };
        merge_part::<K, V, THREADS, ITEMS, true>(tile, loaded, 0, tile.a_len, &mut merged, &mut merged_values);
        thread::sync_threads();
        tile.store::<K, FULL>(keys, merged, out_keys);
        tile.store::<V, FULL>(values, merged_values, out_values);
    }
}

/// Merges the thread's part of the tile; the runs' parts begin at `a_at` and `b_at`.
///
/// # Safety
/// - The tile is in shared memory, and nothing writes it meanwhile.
/// - After it there are `ITEMS + 1` more places.
/// - All lanes of the warp call this together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn merge_part<K: MergeKey, V: Word, const THREADS: u32, const ITEMS: usize, const PAIRS: bool>(
    tile: Tile<THREADS, ITEMS>,
    loaded: Loaded<K, V>,
    a_at: u32,
    b_at: u32,
    merged: &mut [K; ITEMS],
    merged_values: &mut [V; ITEMS],
) {
    let (a_len, b_len) = (tile.a_len, tile.len - tile.a_len);
    let (a_end, b_end) = (a_at + a_len, b_at + b_len);
    let diagonal = (tile.t * ITEMS as u32).min(tile.len);
    // SAFETY: a thread's first places are inside its tile, and it reads at most `ITEMS` places further, which exist.
    unsafe {
        let runs = ((loaded.keys.at(a_at), a_len), (loaded.keys.at(b_at), b_len));
        let from_a = crossing_in_shared(runs.0, runs.1, diagonal, loaded.mask);
        let (at_a, at_b) = (a_at + from_a, b_at + diagonal - from_a);
        let room = at_a + ITEMS as u32 <= a_end && at_b + ITEMS as u32 <= b_end;
        if warp::all(warp::FULL_MASK, room) {
            serial::<K, V, ITEMS, PAIRS, false>(loaded, (at_a, a_end), (at_b, b_end), merged, merged_values);
        } else {
            serial::<K, V, ITEMS, PAIRS, true>(loaded, (at_a, a_end), (at_b, b_end), merged, merged_values);
        }
    }
}

/// Keys and values of a tile in shared memory, and the bits by which keys are compared.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Loaded<K, V> {
    keys: Shared<K>,
    values: Shared<V>,
    mask: K,
}

/// Merges `ITEMS` items from `at_a` and `at_b` on. With `BOUNDED`, a run may end before.
///
/// # Safety
/// The tile may be read up to `ITEMS` places after the thread's first.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn serial<K: MergeKey, V: Word, const ITEMS: usize, const PAIRS: bool, const BOUNDED: bool>(
    Loaded { keys, values, mask }: Loaded<K, V>,
    (mut at_a, a_end): (u32, u32),
    (mut at_b, b_end): (u32, u32),
    merged: &mut [K; ITEMS],
    merged_values: &mut [V; ITEMS],
) {
    // SAFETY: the contract of this function: each round advances by one place in one of the runs.
    unsafe {
        let (mut first, mut second) = (keys.get(at_a), keys.get(at_b));
        for u in 0..ITEMS {
            // Without branches: neighbouring threads take different sides.
            let mut from_a = goes_first(first, second, mask);
            if BOUNDED {
                from_a = (at_b >= b_end) | ((at_a < a_end) & from_a);
            }
            let place = if from_a { at_a } else { at_b };
            merged[u] = if from_a { first } else { second };
            if PAIRS {
                merged_values[u] = values.get(place);
            }
            let next = place + 1;
            let key = keys.get(next);
            at_a = if from_a { next } else { at_a };
            at_b = if from_a { at_b } else { next };
            first = if from_a { key } else { first };
            second = if from_a { second } else { key };
        }
    }
}

/// Merges the block's tile of the output.
///
/// # Safety
/// The contract of [`merge_u32`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn merge<K: Vectors, V: Word + Default, const THREADS: u32, const ITEMS: usize, const PAIRS: bool>(
    a: Run<K, V>,
    b: Run<K, V>,
    mask: K,
    splits: Global<u64>,
    flags: u32,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
) {
    if PAIRS && THREADS * ITEMS as u32 == 256 * 11 {
        // Two registers on sm_80, where four blocks per multiprocessor leave 64; none on later ones.
        allow::spill();
    }
    let tile_items = THREADS * ITEMS as u32;
    let t = thread::thread_idx_x();
    let tile = thread::block_idx_x() as usize;
    let start = tile * tile_items as usize;
    let len = (a.len + b.len - start).min(tile_items as usize) as u32;
    // SAFETY: `start + len` is at most the sum of the lengths, so crossings are inside the runs, and the parts between
    // two consecutive ones have `len` items in all. Two barriers separate the uses of shared memory here from later
    // ones, and all threads reach them.
    unsafe {
        let (a_start, a_end);
        if flags & SPLITS_KNOWN != 0 {
            a_start = splits.read_nc(tile) as usize;
            a_end = splits.read_nc(tile + 1) as usize;
        } else {
            let ends: Shared<u64> = shared::dynamic(0);
            let which = t / 32;
            if which < 2 {
                let diagonal = start + which as usize * len as usize;
                let crossing = crossing_by_warp(a.keys, a.len, b.keys, b.len, diagonal, mask);
                if warp::lane_id() == 0 {
                    ends.set(which, crossing as u64);
                }
            }
            thread::sync_threads();
            a_start = ends.get(0) as usize;
            a_end = ends.get(1) as usize;
            thread::sync_threads();
        }
        let b_start = start - a_start;
        let tile = Tile::<THREADS, ITEMS> { t, a_len: (a_end - a_start) as u32, len };
        let (out_keys, out_values) = (out_keys.at(start), out_values.at(start));
        if !PAIRS {
            let skew = |shift: u32| flags >> shift & 3;
            let a = Part { run: a.keys, run_len: a.len, start: a_start, run_skew: skew(A_SKEW_SHIFT) };
            let b = Part { run: b.keys, run_len: b.len, start: b_start, run_skew: skew(B_SKEW_SHIFT) };
            merge_tile_of_keys(tile, a, b, mask, out_keys, flags & OUT_ALIGNED != 0);
            return;
        }
        let part = |run: Run<K, V>, first: usize| Run { keys: run.keys.at(first), values: run.values.at(first), ..run };
        let (a, b) = (part(a, a_start), part(b, b_start));
        if len == tile_items {
            merge_tile_of_pairs::<K, V, THREADS, ITEMS, true>(tile, a, b, mask, out_keys, out_values);
        } else {
            merge_tile_of_pairs::<K, V, THREADS, ITEMS, false>(tile, a, b, mask, out_keys, out_values);
        }
    }
}

macro_rules! merge_kernels {
    ($($name:ident: $key:ty, $value:ty, pairs $pairs:literal, $threads:literal x $items:literal, $blocks:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Merges runs of `", stringify!($key), "` in tiles of ", stringify!($threads), " times ",
                stringify!($items), " items; with values (`", stringify!($value), "`): ", stringify!($pairs), ".")]
            ///
            /// # Safety
            /// - Launch: 1-D, one block per tile, shaped as its `SHAPE` says; there is at least one item.
            /// - `a_keys` and `b_keys`: valid for `a_len` and `b_len` reads, sorted by the bits of `mask`, not written
            ///   meanwhile; `a_values` and `b_values` likewise, if there are values.
            /// - `splits`: if `flags` has [`SPLITS_KNOWN`], the number of items of the first run before each tile and
            ///   before the end.
            /// - `flags` are true; without values, they also contain the distances of the runs from multiples of 16
            ///   bytes.
            /// - `out_keys` and, if there are values, `out_values`: valid for `a_len + b_len` writes, overlap nothing
            ///   else, nothing else accesses them.
            #[launch_bounds($threads, $blocks)]
            pub unsafe fn $name(
                a_keys: Global<$key>, a_values: Global<$value>, a_len: usize,
                b_keys: Global<$key>, b_values: Global<$value>, b_len: usize,
                mask: $key, splits: Global<u64>, flags: u32,
                out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
            ) {
                let a = Run { keys: a_keys, values: a_values, len: a_len };
                let b = Run { keys: b_keys, values: b_values, len: b_len };
                // SAFETY: the contract of this kernel.
                unsafe {
                    merge::<$key, $value, $threads, $items, $pairs>(a, b, mask, splits, flags, out_keys, out_values)
                }
            }
        }

        launch_shape!($name: $threads, $items, shared_bytes::<$key, $value>($threads, $items, $pairs));
    )*};
}
merge_kernels! {
    merge_u32: u32, u32, pairs false, 256 x 23, 6;
    merge_u32_short: u32, u32, pairs false, 128 x 9, 8;
    merge_u64: u64, u64, pairs false, 256 x 15, 4;
    merge_u64_short: u64, u64, pairs false, 128 x 9, 8;
    merge_u32_u32: u32, u32, pairs true, 256 x 11, 4;
    merge_u32_u32_short: u32, u32, pairs true, 128 x 9, 8;
    merge_u32_u64: u32, u64, pairs true, 256 x 9, 4;
    merge_u32_u64_short: u32, u64, pairs true, 128 x 9, 8;
    merge_u64_u32: u64, u32, pairs true, 256 x 9, 4;
    merge_u64_u32_short: u64, u32, pairs true, 128 x 9, 8;
    merge_u64_u64: u64, u64, pairs true, 256 x 7, 4;
    merge_u64_u64_short: u64, u64, pairs true, 128 x 7, 8;
    merge_u128: u128, u128, pairs false, 256 x 7, 4;
    merge_u128_short: u128, u128, pairs false, 128 x 5, 8;
    merge_u128_u32: u128, u32, pairs true, 256 x 5, 4;
    merge_u128_u32_short: u128, u32, pairs true, 128 x 5, 8;
    merge_u128_u64: u128, u64, pairs true, 256 x 5, 4;
    merge_u128_u64_short: u128, u64, pairs true, 128 x 5, 8;
}

kernel! {
    /// Finds the number of `K` of the first run before each tile, and before the end.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`SPLIT_BLOCK`] threads, a thread for each of `tiles + 1` splits.
    /// - The runs: as for [`merge_u32`].
    /// - `splits`: valid for `tiles + 1` writes, nothing else accesses it.
    #[launch_bounds(128)]
    pub unsafe fn merge_splits<K>(
        a: Global<K>, a_len: usize, b: Global<K>, b_len: usize, mask: K, tile_items: usize, tiles: usize,
        splits: GlobalMut<u64>,
    ) for [u32 => merge_splits_u32, u64 => merge_splits_u64, u128 => merge_splits_u128] {
        let tile = thread::block_idx_x() as usize * SPLIT_BLOCK as usize + thread::thread_idx_x() as usize;
        if tile <= tiles {
            let diagonal = (tile * tile_items).min(a_len + b_len);
            // SAFETY: the contract of this kernel; one place per thread.
            unsafe {
                splits.write(tile, crossing_by_thread(a, a_len, b, b_len, diagonal, mask) as u64);
            }
        }
    }
}
