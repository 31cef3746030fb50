//! Merge of many runs without stale items: only the first of equal keys is kept, and it is also dropped if its status
//! bit marks it as removed.
//!
//! A tile is merged as in [`super`]. An item is the first of its key if the previous one in the tile has another key;
//! for the first item of a tile the previous one is the greatest of the items before the tile's parts of the runs. The
//! number of kept items of earlier tiles comes by decoupled look-back ([`crate::look_back`]), so items are written
//! directly to their final places.

use warpset_core::scan::Count;
use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{Global, GlobalMut, ShuffleWord, Word, atomic, thread};

#[cfg(feature = "bodies")]
use super::part_of_lane;
#[cfg(feature = "bodies")]
use super::runs::{Entry, at_address};
use super::tile::layout;
#[cfg(feature = "bodies")]
use super::tile::merge_tile;
use crate::look_back;
use crate::primitives::merge_path::MergeKey;
use crate::primitives::tile_shape::launch_shape;

/// Status flag: a run has status bits.
pub const MARKED: u32 = 1;
/// Status flag: items are kept whatever their status bit.
pub const KEEP_MARKED: u32 = 2;

/// After the tile: the key before it (16 bytes), whether there is one (8), the ticket (8), the count of earlier tiles
/// (16), and the kept items of each chunk of 32.
const CHUNKS_AT: u32 = 48;

/// Returns the bytes after the tile, before marks.
const fn rest_bytes(threads: u32, items: u32) -> u32 {
    (CHUNKS_AT + threads * items / 32 * 4).next_multiple_of(16)
}

/// Returns the bytes of dynamic shared memory without status bits.
#[cfg(not(target_arch = "nvptx64"))]
const fn shared_bytes<K, V>(threads: u32, items: u32, pairs: bool) -> u32 {
    layout::<K, V>(threads, items, pairs).shared_bytes(rest_bytes(threads, items))
}

/// Returns the greatest compared part over the lanes that have one.
///
/// # Safety
/// All lanes of the warp call this together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn greatest<K: MergeKey + ShuffleWord>(mut key: K) -> K {
    let mut distance = 1;
    while distance < 32 {
        // SAFETY: the loop is uniform in the warp.
        let other = unsafe { warp::shuffle_xor(FULL_MASK, key, distance) };
        key = if other > key { other } else { key };
        distance *= 2;
    }
    key
}

/// Merges the block's tile and keeps the newest items.
///
/// # Safety
/// The contract of [`merge_newest_u32`].
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn merge_newest<
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
    tiles: u32,
    words: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    (out_status, status): (GlobalMut<u32>, u32),
    count: GlobalMut<u64>,
) {
    let rest = layout::<K, V>(THREADS, ITEMS as u32, PAIRS).rest;
    let (marked, keep_marked) = (status & MARKED != 0, status & MARKED != 0 && status & KEEP_MARKED != 0);
    let before: Shared<K> = shared::dynamic(rest);
    let exists: Shared<u32> = shared::dynamic(rest + 16);
    let chunks: Shared<u32> = shared::dynamic(rest + CHUNKS_AT);
    let (t, lane) = (thread::thread_idx_x(), warp::lane_id());
    let chunk_of = |u: usize| t / 32 + u as u32 * (THREADS / 32);
    // SAFETY: the contract of this function. The ticket makes `tile` unique; barriers separate writes to shared memory
    // from reads by other threads, and all threads reach them and each vote; an item's place is the number of kept ones
    // before it; words of status bits that several warps share are changed by atomics.
    unsafe {
        let tile = look_back::ticket(ticket, shared::dynamic(rest + 24));
        let lane_run = || {
            let entry = Entry::read(table, lane);
            let part = part_of_lane(splits, tile, group);
            let any = warp::ballot(FULL_MASK, part.0 != 0) != 0;
            let mut key = K::default();
            if part.0 != 0 {
                key = at_address::<K>(entry.keys).read_nc(part.0 as usize - 1) & mask;
            }
            let key = greatest(key);
            if lane == 0 {
                before.set(0, key);
                exists.set(0, u32::from(any));
            }
            (entry, part)
        };
        let marks_at = rest + rest_bytes(THREADS, ITEMS as u32);
        let (merged, len) = merge_tile::<K, V, THREADS, ITEMS, PAIRS>(lane_run, odd, rounds, mask, marked, marks_at);
        let mut kept = [0; ITEMS];
        for u in 0..ITEMS {
            let i = t + u as u32 * THREADS;
            let mut keep = false;
            if i < len {
                let key = merged.keys.get(i) & mask;
                let differs = if i == 0 {
                    exists.get(0) == 0 || before.get(0) != key
                } else {
                    merged.keys.get(i - 1) & mask != key
                };
                keep = differs;
                if marked && !keep_marked {
                    keep &= merged.marks.get(i) == 0;
                }
            }
            kept[u] = warp::ballot(FULL_MASK, keep);
            if lane == 0 {
                chunks.set(chunk_of(u), kept[u].count_ones());
            }
        }
        thread::sync_threads();
        let mut total = 0;
        if t < 32 {
            // Each lane sums neighbouring chunks.
            let per_lane = const { (THREADS * ITEMS as u32 / 32).div_ceil(32) };
            let (first, all) = (lane * per_lane, THREADS * ITEMS as u32 / 32);
            let mut own = 0;
            for c in 0..per_lane {
                if first + c < all {
                    own += chunks.get(first + c);
                }
            }
            let inclusive = warp::inclusive_scan_add(FULL_MASK, own);
            total = warp::shuffle_idx(FULL_MASK, inclusive, 31);
            let mut next = inclusive - own;
            for c in 0..per_lane {
                if first + c < all {
                    let of_chunk = chunks.get(first + c);
                    chunks.set(first + c, next);
                    next += of_chunk;
                }
            }
        }
        let aggregate = Count(u64::from(total));
        let slot = shared::dynamic(rest + 32);
        let prefix = look_back::tile_prefix::<Sum<Count>>(words, tile, aggregate, slot).0;
        if t == 0 && tile + 1 == tiles as usize {
            count.write(0, prefix + u64::from(total));
        }
        for u in 0..ITEMS {
            let i = t + u as u32 * THREADS;
            let rank = (kept[u] & warp::lane_mask_lt()).count_ones();
            let first = prefix + u64::from(chunks.get(chunk_of(u)));
            let mut bit = 0;
            if kept[u] & warp::lane_mask_eq() != 0 {
                let to = (first + u64::from(rank)) as usize;
                out_keys.write(to, merged.keys.get(i));
                if PAIRS {
                    out_values.write(to, merged.values.get(i));
                }
                if keep_marked {
                    bit = u32::from(merged.marks.get(i)) << rank;
                }
            }
            if keep_marked {
                let bits = u64::from(warp::reduce_or(FULL_MASK, bit)) << (first % 32);
                for half in 0..2 {
                    let bits = (bits >> (32 * half)) as u32;
                    if lane == 0 && bits != 0 {
                        atomic::reduce_or(out_status.at((first / 32) as usize + half), bits);
                    }
                }
            }
        }
    }
}

macro_rules! merge_newest_kernels {
    ($($name:ident: $key:ty, $value:ty, pairs $pairs:literal, $threads:literal x $items:literal, $blocks:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Merges runs of `", stringify!($key), "` in tiles of ", stringify!($threads),
                " times ", stringify!($items), " items and keeps the first of equal keys, unless its status bit is set; ",
                "with values (`", stringify!($value), "`): ", stringify!($pairs), ".")]
            ///
            /// # Safety
            /// - The contract of [`merge_many_u32`](super::merge_many_u32), but for the outputs.
            /// - `look_back`: one word per tile, and `ticket` one word: zero at the start, used by this launch alone.
            /// - `status` has [`MARKED`] if a run has status bits; then the launch has `STATUS_BYTES` more of shared
            ///   memory.
            /// - `out_keys` and, if there are values, `out_values`: valid for one write per kept item; if `status` has
            ///   [`MARKED`] and [`KEEP_MARKED`], `out_status` is valid for a bit per kept item, initially zero. They
            ///   overlap nothing else, nothing else accesses them.
            /// - `count`: one word, set to the number of items that are kept; used by this launch alone.
            #[launch_bounds($threads, $blocks)]
            pub unsafe fn $name(
                table: Global<u64>, splits: Global<u64>, group: u32, odd: u32, rounds: u32, mask: $key, tiles: u32,
                look_back: GlobalMut<u64>, ticket: GlobalMut<u32>, out_keys: GlobalMut<$key>,
                out_values: GlobalMut<$value>, out_status: GlobalMut<u32>, status: u32, count: GlobalMut<u64>,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    merge_newest::<$key, $value, $threads, $items, $pairs>(
                        table, splits, (group, odd, rounds), mask, tiles, look_back, ticket, out_keys, out_values,
                        (out_status, status), count,
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
    )*};
}
merge_newest_kernels! {
    merge_newest_u32: u32, u32, pairs false, 384 x 11, 3;
    merge_newest_u64: u64, u64, pairs false, 384 x 9, 3;
    merge_newest_u32_u32: u32, u32, pairs true, 352 x 11, 3;
    merge_newest_u32_u64: u32, u64, pairs true, 384 x 7, 3;
    merge_newest_u64_u32: u64, u32, pairs true, 384 x 7, 3;
    merge_newest_u64_u64: u64, u64, pairs true, 384 x 5, 3;
    merge_newest_u128: u128, u32, pairs false, 384 x 5, 3;
    merge_newest_u128_u32: u128, u32, pairs true, 384 x 3, 3;
    merge_newest_u128_u64: u128, u64, pairs true, 384 x 3, 3;
}
