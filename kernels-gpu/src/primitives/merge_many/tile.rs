//! A tile of a merge of many runs, in shared memory.
//!
//! Its parts of the runs lie side by side, and neighbours are merged as the host's tree says, one depth of the tree at
//! a time, from one of two buffers to the other: what stands `d` merges away from the last one is in buffer `d % 2`. A
//! part that is short stays out of most merges. With the keys travels where in the tile an item came from (its
//! *place*) and its status bit, in 16 bits; values do not move until the end.

use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{ShuffleWord, Word, thread};

use super::runs::{Entry, at_address};
use crate::primitives::merge_path::{MergeKey, crossing_in_shared, goes_first};

/// The bit of a place that is the item's status.
pub(super) const STATUS: u32 = 1 << 15;

/// Chunks of 32 items that a warp loads at a time.
const BATCH: usize = 4;

/// Where things stand in shared memory, in bytes.
pub(super) struct Layout {
    other_keys: u32,
    places: u32,
    other_places: u32,
    values: u32,
    /// Words for what a kernel does after the merge.
    pub(super) rest: u32,
}

/// Both buffers of keys and places, with room for what a thread looks at beyond the end, and values.
pub(super) const fn layout<K, V>(threads: u32, items: u32, pairs: bool) -> Layout {
    let tile = threads * items;
    let room = tile + items + 1;
    let other_keys = (room * size_of::<K>() as u32).next_multiple_of(16);
    let places = 2 * other_keys;
    let other_places = places + (room * 2).next_multiple_of(16);
    let values = other_places + (room * 2).next_multiple_of(16);
    let rest = values + if pairs { (tile * size_of::<V>() as u32).next_multiple_of(16) } else { 0 };
    Layout { other_keys, places, other_places, values, rest }
}

/// A tile that has been merged.
#[derive(Clone, Copy)]
pub(super) struct Merged<K, V> {
    /// In order.
    pub keys: Shared<K>,
    /// Where in `values` an item's value is, and its status bit; only if they travelled.
    pub places: Shared<u16>,
    /// By places.
    pub values: Shared<V>,
    /// How many items there are.
    pub len: u32,
}

/// One of two buffers.
#[derive(Clone, Copy)]
struct Buffers<K> {
    keys: [Shared<K>; 2],
    places: [Shared<u16>; 2],
}

impl<K> Buffers<K> {
    #[inline(always)]
    fn of(self, depth: u32) -> (Shared<K>, Shared<u16>) {
        let odd = depth % 2 == 1;
        (if odd { self.keys[1] } else { self.keys[0] }, if odd { self.places[1] } else { self.places[0] })
    }
}

/// Loads and merges the block's tile, of which each run's part goes from `start` to `end` of the run of the lane's
/// number. `odd` has a bit for each run that is an odd number of merges away from the end, `rounds` is the greatest
/// number of merges; `carry` says whether places are needed.
///
/// # Safety
/// - All threads of a block of `THREADS` threads come here together, each warp with the same parts, which are
///   `THREADS * ITEMS` items at most, valid for reads and sorted, and which nothing writes meanwhile; bitmaps too.
/// - Nodes are a tree over all runs that have items, its depths below `rounds`.
/// - Dynamic shared memory begins with the [`layout`], and nothing else accesses that.
#[inline(always)]
#[track_caller]
pub(super) unsafe fn merge_tile<
    K: MergeKey + ShuffleWord,
    V: Word + Default,
    const THREADS: u32,
    const ITEMS: usize,
    const PAIRS: bool,
>(
    run: Entry,
    (start, end): (u64, u64),
    odd: u32,
    rounds: u32,
    mask: K,
    carry: bool,
) -> Merged<K, V> {
    let at = layout::<K, V>(THREADS, ITEMS as u32, PAIRS);
    let buffers = Buffers {
        keys: [shared::dynamic(0), shared::dynamic(at.other_keys)],
        places: [shared::dynamic(at.places), shared::dynamic(at.other_places)],
    };
    let values: Shared<V> = shared::dynamic(at.values);
    let t = thread::thread_idx_x();
    let lane = warp::lane_id();
    let (warp_index, warps) = (t / 32, THREADS / 32);
    // SAFETY: shuffles and votes are reached by whole warps, barriers by all threads; each item is loaded by one thread
    // to the place that is its own; a merge writes the places of its parts in the other buffer, each thread its own; a
    // thread looks at most `ITEMS` places beyond a part, for which there is room.
    unsafe {
        // Items and chunks of the runs before, in one scan: a chunk is up to 32 neighbours of one run.
        let own = (end - start) as u32;
        let packed = own.div_ceil(32) << 16 | own;
        let scanned = warp::inclusive_scan_add(FULL_MASK, packed);
        let sums = warp::shuffle_idx(FULL_MASK, scanned, 31);
        let (len, chunks) = (sums & 0xffff, sums >> 16);
        let before = scanned - packed;
        let first_chunk = before >> 16;
        let with_status = warp::ballot(FULL_MASK, run.status != 0);

        let mut chunk = warp_index;
        while chunk < chunks {
            let mut keys = [K::default(); BATCH];
            let mut loaded = [V::default(); BATCH];
            let mut places = [u32::MAX; BATCH];
            for u in 0..BATCH {
                let c = chunk + u as u32 * warps;
                if c < chunks {
                    // The last run that begins at or before the chunk; those without items come before one that has.
                    let number = warp::ballot(FULL_MASK, first_chunk <= c).count_ones() - 1;
                    let of_run = warp::shuffle_idx(FULL_MASK, before, number);
                    let offset = (c - (of_run >> 16)) * 32 + lane;
                    let items = warp::shuffle_idx(FULL_MASK, own, number);
                    let from = warp::shuffle_idx(FULL_MASK, start, number) + u64::from(offset);
                    let there = offset < items;
                    let at = warp::shuffle_idx(FULL_MASK, run.keys, number);
                    if there {
                        keys[u] = at_address::<K>(at).read_nc(from as usize);
                        places[u] = (odd >> number & 1) << 16 | ((of_run & 0xffff) + offset);
                    }
                    if PAIRS {
                        let at = warp::shuffle_idx(FULL_MASK, run.values, number);
                        if there {
                            loaded[u] = at_address::<V>(at).read_nc(from as usize);
                        }
                    }
                    if with_status >> number & 1 != 0 {
                        let at = warp::shuffle_idx(FULL_MASK, run.status, number);
                        if there && at_address::<u32>(at).read_nc((from / 32) as usize) >> (from % 32) & 1 != 0 {
                            places[u] |= STATUS;
                        }
                    }
                }
            }
            for u in 0..BATCH {
                if places[u] != u32::MAX {
                    let place = places[u] & (STATUS - 1);
                    let (to, to_places) = buffers.of(places[u] >> 16);
                    to.set(place, keys[u]);
                    if PAIRS {
                        values.set(place, loaded[u]);
                    }
                    if carry {
                        to_places.set(place, places[u] as u16);
                    }
                }
            }
            chunk += BATCH as u32 * warps;
        }

        // The merge of the lane's number: where its parts begin and end in the tile, and which threads merge it, at
        // least one. Those of a depth are neighbours.
        let node = run.node;
        let position = |number: u32| {
            let last = warp::shuffle_idx(FULL_MASK, scanned, number.wrapping_sub(1)) & 0xffff;
            if number == 0 { 0 } else { last }
        };
        let (node_begin, node_middle, node_end) =
            (position(node & 0xff), position(node >> 8 & 0xff), position(node >> 16 & 0xff));
        let is_node = node != 0;
        let threads = if is_node { (node_end - node_begin).div_ceil(ITEMS as u32).max(1) } else { 0 };
        let threads_end = warp::inclusive_scan_add(FULL_MASK, threads);
        thread::sync_threads();

        let mut depth = rounds;
        while depth > 0 {
            depth -= 1;
            let nodes = warp::ballot(FULL_MASK, is_node & (node >> 24 == depth));
            let first = nodes.trailing_zeros();
            let last = 31 - nodes.leading_zeros();
            let base = warp::shuffle_idx(FULL_MASK, threads_end - threads, first);
            let total = warp::shuffle_idx(FULL_MASK, threads_end, last) - base;
            let mut round = 0;
            while round + warp_index * 32 < total {
                let own = round + t;
                let mut number = first;
                for n in first..last {
                    let end = warp::shuffle_idx(FULL_MASK, threads_end, n) - base;
                    number = if end <= own { n + 1 } else { number };
                }
                let of_node = warp::shuffle_idx(FULL_MASK, threads_end - threads, number) - base;
                let begin = warp::shuffle_idx(FULL_MASK, node_begin, number);
                let middle = warp::shuffle_idx(FULL_MASK, node_middle, number);
                let end = warp::shuffle_idx(FULL_MASK, node_end, number);
                let diagonal = ((own - of_node) * ITEMS as u32).min(end - begin);
                let part = Part { begin, middle, end, diagonal };
                merge_part::<K, ITEMS>(buffers.of(depth + 1), buffers.of(depth), part, mask, carry);
                round += THREADS;
            }
            thread::sync_threads();
        }
        let (keys, places) = buffers.of(0);
        Merged { keys, places, values, len }
    }
}

/// Two parts, side by side, and where in their merge a thread begins.
#[derive(Clone, Copy)]
struct Part {
    begin: u32,
    middle: u32,
    end: u32,
    diagonal: u32,
}

/// Merges the thread's items of two parts, from one buffer to the other.
///
/// # Safety
/// - All lanes of the warp come here together.
/// - The parts are in the buffer, sorted, and nothing writes there meanwhile.
/// - The thread's places in the other one are its own.
#[inline(always)]
#[track_caller]
unsafe fn merge_part<K: MergeKey, const ITEMS: usize>(
    from: (Shared<K>, Shared<u16>),
    to: (Shared<K>, Shared<u16>),
    Part { begin, middle, end, diagonal }: Part,
    mask: K,
    carry: bool,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let runs = ((from.0.at(begin), middle - begin), (from.0.at(middle), end - middle));
        let from_a = crossing_in_shared(runs.0, runs.1, diagonal, mask);
        let (at_a, at_b) = (begin + from_a, middle + diagonal - from_a);
        let out = begin + diagonal;
        let count = end - out;
        let room = (at_a + ITEMS as u32 <= middle) & (at_b + ITEMS as u32 <= end);
        let (a, b) = ((at_a, middle), (at_b, end));
        if warp::all(FULL_MASK, room) {
            serial::<K, ITEMS, false>(from, to, a, b, out, count, mask, carry);
        } else {
            serial::<K, ITEMS, true>(from, to, a, b, out, count, mask, carry);
        }
    }
}

/// Merges up to `ITEMS` items, `count` at most. `BOUNDED` says that a part may end before.
///
/// # Safety
/// As [`merge_part`].
#[inline(always)]
#[track_caller]
unsafe fn serial<K: MergeKey, const ITEMS: usize, const BOUNDED: bool>(
    (keys, places): (Shared<K>, Shared<u16>),
    (to, to_places): (Shared<K>, Shared<u16>),
    (mut at_a, a_end): (u32, u32),
    (mut at_b, b_end): (u32, u32),
    out: u32,
    count: u32,
    mask: K,
    carry: bool,
) {
    // SAFETY: the caller's promise: each round goes one place further in one of the parts.
    unsafe {
        let (mut first, mut second) = (keys.get(at_a), keys.get(at_b));
        for u in 0..ITEMS as u32 {
            // Without branches: neighbouring threads differ in what they take.
            let mut from_a = goes_first(first, second, mask);
            if BOUNDED {
                from_a = (at_b >= b_end) | ((at_a < a_end) & from_a);
            }
            let place = if from_a { at_a } else { at_b };
            let key = if from_a { first } else { second };
            if !BOUNDED || u < count {
                to.set(out + u, key);
                if carry {
                    to_places.set(out + u, places.get(place));
                }
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
