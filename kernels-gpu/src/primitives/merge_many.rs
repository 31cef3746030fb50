//! Stable merge of up to 32 sorted runs in one pass over memory: of equal keys those of earlier runs come first.
//!
//! A block merges one tile of the output. The part of each run in it is found beforehand, by a group of lanes per tile
//! ([`split`]). The block loads these parts side by side into shared memory and merges neighbours there (`tile`) until
//! one is left: each item passes through global memory once, whatever the number of runs.
//!
//! [`newest`] keeps only the first of equal keys, in the same pass.

pub mod newest;
pub mod runs;
#[cfg(feature = "bodies")]
pub mod split;
mod tile;

use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, ShuffleWord, Word, thread};

use crate::primitives::merge_path::MergeKey;
use crate::primitives::tile_shape::launch_shape;
#[cfg(feature = "bodies")]
use runs::Entry;
use runs::Runs;
use tile::layout;
#[cfg(feature = "bodies")]
use tile::merge_tile;

/// Tiles between consecutive splits that are found first, for many tiles.
pub const SPLIT_STEP: u32 = 16;
/// Threads per block of the kernel that finds splits.
pub const SPLIT_BLOCK: u32 = 128;

/// Returns the bytes of dynamic shared memory without status bits.
#[cfg(not(target_arch = "nvptx64"))]
const fn shared_bytes<K, V>(threads: u32, items: u32, pairs: bool) -> u32 {
    layout::<K, V>(threads, items, pairs).shared_bytes(0)
}

/// Returns the part of a tile in the run numbered as the lane.
///
/// # Safety
/// `splits` has `group` words for each tile and for the end, written by a launch before.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn part_of_lane(splits: Global<u64>, tile: usize, group: u32) -> (u64, u64) {
    let lane = warp::lane_id();
    if lane >= group {
        return (0, 0);
    }
    let at = tile * group as usize + lane as usize;
    // SAFETY: the contract of this function.
    unsafe { (splits.read_nc(at), splits.read_nc(at + group as usize)) }
}

/// Merges the block's tile.
///
/// # Safety
/// The contract of [`merge_many_u32`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn merge_many<
    K: MergeKey + ShuffleWord,
    V: Word + Default,
    const THREADS: u32,
    const ITEMS: usize,
    const PAIRS: bool,
>(
    table: Global<u64>,
    splits: Global<u64>,
    (group, odd, rounds): (u32, u32, u32),
    mask: K,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    (out_status, with_status): (GlobalMut<u32>, u32),
) {
    let tile = thread::block_idx_x() as usize;
    let start = tile * (THREADS as usize * ITEMS);
    let t = thread::thread_idx_x();
    let marks_at = layout::<K, V>(THREADS, ITEMS as u32, PAIRS).rest;
    // SAFETY: the contract of this function; places of a tile in the outputs follow those of earlier tiles, which are
    // complete; each word of status bits belongs to one warp, and all threads reach each vote.
    unsafe {
        let lane_run = || (Entry::read(table, warp::lane_id()), part_of_lane(splits, tile, group));
        let marked = with_status != 0;
        let (merged, len) = merge_tile::<K, V, THREADS, ITEMS, PAIRS>(lane_run, odd, rounds, mask, marked, marks_at);
        let (out_keys, out_values) = (out_keys.at(start), out_values.at(start));
        for u in 0..ITEMS {
            let i = t + u as u32 * THREADS;
            let mut mark = 0;
            if i < len {
                out_keys.write(i as usize, merged.keys.get(i));
                if PAIRS {
                    out_values.write(i as usize, merged.values.get(i));
                }
                if marked {
                    mark = merged.marks.get(i);
                }
            }
            if marked {
                let bits = warp::ballot(FULL_MASK, mark != 0);
                if t % 32 == 0 && i < len {
                    out_status.write((start + i as usize) / 32, bits);
                }
            }
        }
    }
}

macro_rules! merge_many_kernels {
    ($($name:ident: $key:ty, $value:ty, pairs $pairs:literal, $threads:literal x $items:literal, $blocks:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Merges runs of `", stringify!($key), "` in tiles of ", stringify!($threads),
                " times ", stringify!($items), " items; with values (`", stringify!($value), "`): ", stringify!($pairs), ".")]
            ///
            /// # Safety
            /// - Launch: 1-D, one block per tile, shaped as its `SHAPE` says, with `STATUS_BYTES` more of shared memory
            ///   if `with_status` is not 0; there is at least one item.
            /// - `table`: the output of [`merge_many_splits`], for runs that are valid for the reads of the splits,
            ///   sorted by the bits of `mask`, and not written while the kernel runs; values and status bits likewise.
            /// - `splits`: for each tile, and for the end, the number of earlier items of each of `group` runs.
            /// - The table's nodes are a tree over all runs, in which runs with a bit in `odd` are an odd number of
            ///   merges away from the root, and none is more than `rounds`.
            /// - `out_keys` and, if there are values, `out_values`: valid for one write per item; if `with_status` is
            ///   not 0, `out_status` for a bit per item, in whole words; they overlap nothing else, nothing else
            ///   accesses them.
            #[launch_bounds($threads, $blocks)]
            pub unsafe fn $name(
                table: Global<u64>, splits: Global<u64>, group: u32, odd: u32, rounds: u32, mask: $key,
                out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>, out_status: GlobalMut<u32>, with_status: u32,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    merge_many::<$key, $value, $threads, $items, $pairs>(
                        table, splits, (group, odd, rounds), mask, out_keys, out_values, (out_status, with_status),
                    )
                }
            }
        }

        launch_shape!($name: $threads, $items, shared_bytes::<$key, $value>($threads, $items, $pairs));
        #[cfg(not(target_arch = "nvptx64"))]
        impl $name {
            /// Bytes of shared memory for status bits.
            pub const STATUS_BYTES: u32 = layout::<$key, $value>($threads, $items, $pairs).marks_bytes();
        }
        const _: () = assert!($threads * $items % 32 == 0);
    )*};
}
merge_many_kernels! {
    merge_many_u32: u32, u32, pairs false, 384 x 11, 3;
    merge_many_u64: u64, u64, pairs false, 384 x 9, 3;
    merge_many_u32_u32: u32, u32, pairs true, 352 x 11, 3;
    merge_many_u32_u64: u32, u64, pairs true, 384 x 7, 3;
    merge_many_u64_u32: u64, u32, pairs true, 384 x 7, 3;
    merge_many_u64_u64: u64, u64, pairs true, 384 x 5, 3;
    merge_many_u128: u128, u32, pairs false, 384 x 5, 3;
    merge_many_u128_u32: u128, u32, pairs true, 384 x 3, 3;
    merge_many_u128_u64: u128, u64, pairs true, 384 x 3, 3;
}

kernel! {
    /// Finds the number of `K` of each run before every `step`-th tile, and before the end, and writes the table of the
    /// runs. With `between` above 0, computes the tiles between known splits.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`SPLIT_BLOCK`] threads, `group` of them per split: `tiles.div_ceil(step) + 1`, or one
    ///   for each tile if `between` is not 0, after a launch with the same arguments where it is 0.
    /// - `runs`: at most `group`, a power of two from 8 to 32; their keys are sorted by the bits of `mask`, `total`
    ///   together, and not written meanwhile.
    /// - `splits`: valid for `group * (tiles + 1)` writes, `table` for [`TABLE_WORDS`](runs::TABLE_WORDS); nothing else
    ///   accesses them.
    #[launch_bounds(128, 8)]
    pub unsafe fn merge_many_splits<K>(
        runs: Runs, group: u32, total: u64, mask: K, tile_items: u32, tiles: u32, step: u32, between: u32,
        splits: GlobalMut<u64>, table: GlobalMut<u64>,
    ) for [u32 => merge_many_splits_u32, u64 => merge_many_splits_u64, u128 => merge_many_splits_u128] {
        let t = thread::thread_idx_x();
        // SAFETY: the contract of this kernel; the whole warp reaches the search; groups beyond the last split search
        // for the end and do not write; each lane has one place, which is not read.
        unsafe {
            if between == 0 && thread::block_idx_x() == 0 && t < warp::WARP_SIZE {
                runs.write_to(table, t);
            }
            let split = thread::block_idx_x() * (SPLIT_BLOCK / group) + t / group;
            let last = if between != 0 { tiles } else { tiles.div_ceil(step) };
            let tile = if between != 0 { split.min(tiles) } else { split.min(last) * step };
            let tile = tile.min(tiles);
            let rank = tile as u64 * tile_items as u64;
            let rank = if rank < total { rank } else { total };
            let number = t % group;
            let (keys, len) = runs.run::<K>(number);
            let place = |tile: u32| tile as usize * group as usize + number as usize;
            let mut bounds = (0, len);
            let mut known = split > last;
            if between != 0 {
                let before = tile / step * step;
                bounds = (splits.read(place(before)), splits.read(place((before + step).min(tiles))));
                known |= tile == before || tile == tiles;
            }
            let found = split::split_by_group(keys, bounds, rank, group, mask);
            if !known {
                splits.write(place(tile), found);
            }
        }
    }
}
