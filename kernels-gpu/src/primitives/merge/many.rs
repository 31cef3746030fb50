//! Merging up to eight sorted runs in one pass over memory, stable: of equal keys those of earlier runs come first.
//!
//! A block merges one tile of the output. What each run contributes is found beforehand, one warp per tile
//! ([`merge_many_splits`]); the block loads these parts side by side into shared memory and merges
//! neighbours there, in rounds, until one is left: each item passes through global memory once, whatever the number of
//! runs.
//!
//! A split into more than two runs is a selection in sorted arrays. The warp takes four places of each run at a time
//! that part it in five, and ranks all 32 among each other: that bounds the rank of each from below and above, and what
//! is surely among the first items, or surely not, is settled. The greatest of the places has at least as many items
//! before it as the least may have at most, so each round settles one of the two, and on the way to small parts most.
//! The idea of narrowing all runs at once by a few of their items is that of Varman, Scheufler, Iyer and Ricard,
//! "Merging Multiple Lists on Hierarchical-Memory Multiprocessors", J. Parallel and Distributed Computing 12, 1991;
//! departure: 32 places per round instead of one per run, so that a warp waits for memory less often.

use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, ShuffleWord, Word, thread};

use crate::primitives::merge_path::{MergeKey, crossing_in_shared, goes_first};
use crate::primitives::tile_shape::launch_shape;

/// The most runs.
pub const RUNS: usize = 8;
/// Threads of a block of the kernels that find splits: a warp finds one.
pub const SPLIT_BLOCK: u32 = 128;

/// Places that a warp tries in each run at a time.
const PLACES: usize = 4;

/// The run of that number.
#[inline(always)]
fn choose<T: Copy>(runs: [T; RUNS], number: u32) -> T {
    let mut chosen = runs[0];
    for r in 1..RUNS {
        chosen = if number >= r as u32 { runs[r] } else { chosen };
    }
    chosen
}

/// How many of the first `rank` items of the merge come from the run of number `lane / 4`; by one warp.
///
/// # Safety
/// - All lanes of the warp come here together with the same arguments.
/// - The runs are valid for as many reads and not written meanwhile.
/// - `rank` is at most the sum of their lengths.
#[inline(always)]
#[track_caller]
unsafe fn split_by_warp<K: MergeKey + ShuffleWord>(
    runs: [Global<K>; RUNS],
    lengths: [usize; RUNS],
    mut rank: u64,
    mask: K,
) -> usize {
    let lane = warp::lane_id();
    let own = lane / PLACES as u32;
    let j = u64::from(lane % PLACES as u32);
    let run = choose(runs, own);
    // Of the run, `low` items are surely among the first, and those from `low + open` on surely not.
    let (mut low, mut open) = (0u64, choose(lengths, own) as u64);
    // SAFETY: places are below the length of their run; the whole warp comes through each round together, since the
    // ballot that ends them is the same for all.
    unsafe {
        loop {
            let offset = if open <= PLACES as u64 { j } else { (j + 1) * open / (PLACES as u64 + 1) };
            let here = offset < open;
            let tried = warp::ballot(FULL_MASK, here);
            if tried == 0 {
                return low as usize;
            }
            let mut key = K::default();
            if here {
                key = run.read_nc((low + offset) as usize) & mask;
            }
            // How many open items are at or before this lane's, at least and at most.
            let (mut least, mut most) = (0, 0);
            for r in 0..RUNS as u32 {
                let mut before = 0;
                let mut not_after = warp::shuffle_idx(FULL_MASK, open, r * PLACES as u32);
                for q in 0..PLACES as u32 {
                    let other = r * PLACES as u32 + q;
                    let other_key = warp::shuffle_idx(FULL_MASK, key, other);
                    let other_offset = warp::shuffle_idx(FULL_MASK, offset, other);
                    let exists = tried >> other & 1 != 0;
                    let first = (other_key < key) | ((other_key == key) & (other <= lane));
                    if exists & first {
                        before = other_offset + 1;
                    }
                    if exists & !first & (other_offset < not_after) {
                        not_after = other_offset;
                    }
                }
                least += before;
                most += if r == own { before } else { not_after };
            }
            let inside = warp::ballot(FULL_MASK, here & (most <= rank)) >> (own * PLACES as u32) & 15;
            let outside = warp::ballot(FULL_MASK, here & (least > rank)) >> (own * PLACES as u32) & 15;
            // Places of a run are in order, so those inside come first and those outside last.
            let last_inside = inside.count_ones().saturating_sub(1);
            let first_outside = (outside | 8).trailing_zeros();
            let inside_offset = warp::shuffle_idx(FULL_MASK, offset, own * PLACES as u32 + last_inside);
            let outside_offset = warp::shuffle_idx(FULL_MASK, offset, own * PLACES as u32 + first_outside);
            let settled = if inside == 0 { 0 } else { inside_offset + 1 };
            let end = if outside == 0 { open } else { outside_offset };
            low += settled;
            open = end - settled;
            // One lane of each run stands for it.
            let mut sum = settled;
            let mut distance = PLACES as u32;
            while distance < 32 {
                sum += warp::shuffle_xor(FULL_MASK, sum, distance);
                distance *= 2;
            }
            rank -= sum;
        }
    }
}

/// Where things stand in shared memory, in bytes.
struct Layout {
    places: u32,
    values: u32,
    starts: u32,
    ends: u32,
}

/// Keys with room for what a thread looks at after the end, then where each came from, values, and for each run where
/// in memory and in the tile it begins.
const fn layout<K, V>(threads: u32, items: u32, pairs: bool) -> Layout {
    let tile = threads * items;
    let places = ((tile + items + 1) * size_of::<K>() as u32).next_multiple_of(16);
    let values = places + if pairs { (tile + items + 1) * 4 } else { 0 }.next_multiple_of(16);
    let starts = values + if pairs { tile * size_of::<V>() as u32 } else { 0 }.next_multiple_of(16);
    let ends = starts + RUNS as u32 * 8;
    Layout { places, values, starts, ends }
}

/// Bytes of dynamic shared memory.
#[cfg(not(target_arch = "nvptx64"))]
const fn shared_bytes<K, V>(threads: u32, items: u32, pairs: bool) -> u32 {
    layout::<K, V>(threads, items, pairs).ends + (RUNS as u32 + 1) * 4
}

/// Merges the block's tile.
///
/// # Safety
/// As [`merge_many_u32`].
#[inline(always)]
unsafe fn merge_many<K: MergeKey, V: Word + Default, const THREADS: u32, const ITEMS: usize, const PAIRS: bool>(
    runs: [Global<K>; RUNS],
    run_values: [Global<V>; RUNS],
    rounds: u32,
    mask: K,
    splits: Global<u64>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
) {
    let at = layout::<K, V>(THREADS, ITEMS as u32, PAIRS);
    let keys: Shared<K> = shared::dynamic(0);
    let places: Shared<u32> = shared::dynamic(at.places);
    let values: Shared<V> = shared::dynamic(at.values);
    let starts: Shared<u64> = shared::dynamic(at.starts);
    let ends: Shared<u32> = shared::dynamic(at.ends); // of the runs before, in the tile; then the tile's own
    let t = thread::thread_idx_x();
    let tile = thread::block_idx_x() as usize;
    let out_start = tile * (THREADS as usize * ITEMS);
    // SAFETY: splits are inside the runs, and differ between neighbouring tiles by what the tile holds; a thread's
    // places are inside the tile, and it looks at most `ITEMS` places further, for which there is room; barriers stand
    // between accesses of different threads to the same shared memory, and all threads reach them and each vote; places
    // in the output are below the sum of the lengths, each one thread's.
    unsafe {
        if t < 32 {
            let mut start = 0;
            let mut items = 0;
            if t < RUNS as u32 {
                start = splits.read_nc(tile * RUNS + t as usize);
                items = (splits.read_nc((tile + 1) * RUNS + t as usize) - start) as u32;
            }
            let end = warp::inclusive_scan_add(FULL_MASK, items);
            if t < RUNS as u32 {
                starts.set(t, start.wrapping_sub(u64::from(end - items)));
                ends.set(t + 1, end);
            }
            if t == 0 {
                ends.set(0, 0);
            }
        }
        thread::sync_threads();
        let len = ends.get(RUNS as u32);
        let mut loaded = [K::default(); ITEMS];
        let mut loaded_values = [V::default(); ITEMS];
        for u in 0..ITEMS {
            let i = t + u as u32 * THREADS;
            if i < len {
                let mut number = 0;
                for r in 1..RUNS as u32 {
                    number += u32::from(ends.get(r) <= i);
                }
                let place = starts.get(number).wrapping_add(u64::from(i)) as usize;
                loaded[u] = choose(runs, number).read_nc(place);
                if PAIRS {
                    loaded_values[u] = choose(run_values, number).read_nc(place);
                }
            }
        }
        for u in 0..ITEMS {
            let i = t + u as u32 * THREADS;
            if i < len {
                keys.set(i, loaded[u]);
                if PAIRS {
                    places.set(i, i);
                    values.set(i, loaded_values[u]);
                }
            }
        }
        thread::sync_threads();
        for round in 0..rounds {
            let mut merged = [K::default(); ITEMS];
            let mut merged_places = [0; ITEMS];
            let first = (t * ITEMS as u32).min(len);
            // Runs `pair << round + 1` on, as many as `1 << round` twice.
            let border = |number: u32| ends.get((number << round).min(RUNS as u32));
            let mut pair = 0;
            while pair < RUNS as u32 / 2 && border(2 * pair + 2) <= first && border(2 * pair + 2) < len {
                pair += 1;
            }
            let (begin, mut a_end, mut b_end) = (border(2 * pair), border(2 * pair + 1), border(2 * pair + 2));
            let mut at_a = begin
                + crossing_in_shared(
                    (keys.at(begin), a_end - begin),
                    (keys.at(a_end), b_end - a_end),
                    first - begin,
                    mask,
                );
            let mut at_b = a_end + first - at_a;
            let (mut x, mut y) = (keys.get(at_a), keys.get(at_b));
            for u in 0..ITEMS {
                // The next pair that has items, if there is one.
                while (at_a == a_end) & (at_b == b_end) & (b_end < len) {
                    pair += 1;
                    (at_a, at_b) = (b_end, border(2 * pair + 1));
                    (a_end, b_end) = (at_b, border(2 * pair + 2));
                    (x, y) = (keys.get(at_a), keys.get(at_b));
                }
                let from_a = (at_b >= b_end) | ((at_a < a_end) & goes_first(x, y, mask));
                let place = if from_a { at_a } else { at_b };
                merged[u] = if from_a { x } else { y };
                if PAIRS {
                    merged_places[u] = places.get(place);
                }
                let next = place + 1;
                let key = keys.get(next);
                at_a = if from_a { next } else { at_a };
                at_b = if from_a { at_b } else { next };
                x = if from_a { key } else { x };
                y = if from_a { y } else { key };
            }
            thread::sync_threads();
            for u in 0..ITEMS {
                let i = t * ITEMS as u32 + u as u32;
                keys.set(i, merged[u]);
                if PAIRS {
                    places.set(i, merged_places[u]);
                }
            }
            thread::sync_threads();
        }
        for u in 0..ITEMS {
            let i = t + u as u32 * THREADS;
            if i < len {
                out_keys.write(out_start + i as usize, keys.get(i));
                if PAIRS {
                    out_values.write(out_start + i as usize, values.get(places.get(i)));
                }
            }
        }
    }
}

macro_rules! merge_many_kernels {
    ($($name:ident: $key:ty, $value:ty, pairs $pairs:literal, $threads:literal x $items:literal, $blocks:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Merges up to eight runs of `", stringify!($key), "` in tiles of ", stringify!($threads),
                " times ", stringify!($items), " items; with values (`", stringify!($value), "`): ", stringify!($pairs), ".")]
            ///
            /// # Safety
            /// - Launch: 1-D, one block per tile, shaped as its `SHAPE` says; there is at least one item.
            /// - Runs: valid for as many reads as the splits say, sorted by the bits of `mask`, not written while the
            ///   kernel runs; so the values, if there are any. There are at most `1 << rounds` runs; the others have no
            ///   items, and whatever address.
            /// - `splits`: for each tile, and for the end, how many items of each of the eight runs stand before.
            /// - `out_keys` and, if there are values, `out_values`: valid for as many writes as there are items,
            ///   overlap nothing else, nothing else accesses them.
            #[launch_bounds($threads, $blocks)]
            pub unsafe fn $name(
                k0: Global<$key>, k1: Global<$key>, k2: Global<$key>, k3: Global<$key>,
                k4: Global<$key>, k5: Global<$key>, k6: Global<$key>, k7: Global<$key>,
                v0: Global<$value>, v1: Global<$value>, v2: Global<$value>, v3: Global<$value>,
                v4: Global<$value>, v5: Global<$value>, v6: Global<$value>, v7: Global<$value>,
                rounds: u32, mask: $key, splits: Global<u64>,
                out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
            ) {
                let runs = [k0, k1, k2, k3, k4, k5, k6, k7];
                let values = [v0, v1, v2, v3, v4, v5, v6, v7];
                // SAFETY: the caller keeps this kernel's contract.
                unsafe {
                    merge_many::<$key, $value, $threads, $items, $pairs>(
                        runs, values, rounds, mask, splits, out_keys, out_values,
                    )
                }
            }
        }

        launch_shape!($name: $threads, $items, shared_bytes::<$key, $value>($threads, $items, $pairs));
    )*};
}
merge_many_kernels! {
    merge_many_u32: u32, u32, pairs false, 256 x 15, 4;
    merge_many_u64: u64, u64, pairs false, 256 x 11, 4;
    merge_many_u32_u32: u32, u32, pairs true, 256 x 11, 3;
    merge_many_u32_u64: u32, u64, pairs true, 256 x 9, 3;
    merge_many_u64_u32: u64, u32, pairs true, 256 x 9, 3;
    merge_many_u64_u64: u64, u64, pairs true, 256 x 9, 3;
}

kernel! {
    /// How many `K` of each run stand before each tile, and before the end.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`SPLIT_BLOCK`] threads, a warp for each of `tiles + 1` splits.
    /// - Runs: valid for `n0`, `n1` and so on reads, `total` together, sorted by the bits of `mask`, not
    ///   written meanwhile.
    /// - `splits`: valid for `8 * (tiles + 1)` writes, nothing else accesses it.
    #[launch_bounds(128)]
    pub unsafe fn merge_many_splits<K>(
        k0: Global<K>, k1: Global<K>, k2: Global<K>, k3: Global<K>,
        k4: Global<K>, k5: Global<K>, k6: Global<K>, k7: Global<K>,
        n0: usize, n1: usize, n2: usize, n3: usize, n4: usize, n5: usize, n6: usize, n7: usize,
        total: usize, mask: K, tile_items: usize, tiles: usize, splits: GlobalMut<u64>,
    ) for [u32 => merge_many_splits_u32, u64 => merge_many_splits_u64] {
        let warps = SPLIT_BLOCK as usize / 32;
        let tile = thread::block_idx_x() as usize * warps + thread::thread_idx_x() as usize / 32;
        if tile <= tiles {
            let rank = (tile * tile_items).min(total) as u64;
            let (runs, lengths) = ([k0, k1, k2, k3, k4, k5, k6, k7], [n0, n1, n2, n3, n4, n5, n6, n7]);
            let lane = warp::lane_id() as usize;
            // SAFETY: the caller keeps this kernel's contract; the whole warp has the same tile; one place per
            // lane.
            unsafe {
                let split = split_by_warp(runs, lengths, rank, mask);
                if lane % PLACES == 0 {
                    splits.write(tile * RUNS + lane / PLACES, split as u64);
                }
            }
        }
    }
}
