//! A tile of a merge of many runs, in shared memory.
//!
//! Its parts of the runs lie side by side, and neighbours are merged as the host's tree says, one depth of the tree at
//! a time, from one of two buffers to the other: what stands `d` merges away from the last one is in buffer `d % 2`. A
//! part that is short stays out of most merges. With the keys travels where in the tile an item came from (its
//! *place*) and its status bit, in 16 bits; values do not move until the end.

use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{ShuffleWord, Word, thread};

use super::runs::{Entry, RUNS, at_address};
use crate::primitives::merge_path::{MergeKey, crossing_in_shared, goes_first};

/// The bit of a place that is the item's status.
pub(super) const STATUS: u32 = 1 << 15;

/// Items that a thread has on their way from memory at a time.
const BATCH: usize = 4;

/// The most depths of a tree.
pub const MOST_ROUNDS: u32 = 8;

/// Where things stand in shared memory, in bytes.
pub(super) struct Layout {
    other_keys: u32,
    places: u32,
    other_places: u32,
    values: u32,
    plan: u32,
    /// Words for what a kernel does after the merge.
    pub(super) rest: u32,
}

/// Both buffers of keys and places, with room for what a thread looks at beyond the end, values, and the plan.
pub(super) const fn layout<K, V>(threads: u32, items: u32, pairs: bool) -> Layout {
    let tile = threads * items;
    let room = tile + items + 1;
    let other_keys = (room * size_of::<K>() as u32).next_multiple_of(16);
    let places = 2 * other_keys;
    let other_places = places + (room * 2).next_multiple_of(16);
    let values = other_places + (room * 2).next_multiple_of(16);
    let plan = values + if pairs { (tile * size_of::<V>() as u32).next_multiple_of(16) } else { 0 };
    Layout { other_keys, places, other_places, values, plan, rest: plan + PLAN_BYTES }
}

/// What one warp works out for the block.
#[derive(Clone, Copy)]
struct Plan {
    /// For each run: addresses of keys, values and status bits, and what is added to a place in the tile.
    runs: Shared<u64>,
    /// For each merge: where its parts begin and end in the tile, and its first thread.
    nodes: Shared<u32>,
    /// For each depth: its first merge, how many there are, and their threads.
    depths: Shared<u32>,
    /// Where each run's part begins in the tile, and the tile's end.
    begins: Shared<u32>,
}

const NODES_AT: u32 = RUNS as u32 * 32;
const DEPTHS_AT: u32 = NODES_AT + RUNS as u32 * 16;
const BEGINS_AT: u32 = DEPTHS_AT + MOST_ROUNDS * 16;
const PLAN_BYTES: u32 = (BEGINS_AT + (RUNS as u32 + 1) * 4).next_multiple_of(16);

impl Plan {
    #[inline(always)]
    fn at(offset: u32) -> Plan {
        Plan {
            runs: shared::dynamic(offset),
            nodes: shared::dynamic(offset + NODES_AT),
            depths: shared::dynamic(offset + DEPTHS_AT),
            begins: shared::dynamic(offset + BEGINS_AT),
        }
    }

    /// Works it out; by one warp. Each lane has the run and the merge of its number.
    ///
    /// # Safety
    /// - All lanes of the warp come here together; the plan is in shared memory, which nothing else accesses before a
    ///   barrier.
    /// - `run` and its part are as [`merge_tile`] says; `rounds` is at most [`MOST_ROUNDS`].
    #[inline(always)]
    #[track_caller]
    unsafe fn draw_up<const ITEMS: usize>(self, run: Entry, (start, end): (u64, u64), rounds: u32) {
        let lane = warp::lane_id();
        // SAFETY: each lane writes what is its own; shuffles, votes and loops are the same for the whole warp.
        unsafe {
            let own = (end - start) as u32;
            let ends = warp::inclusive_scan_add(FULL_MASK, own);
            let begin = ends - own;
            let words = [run.keys, run.values, run.status, start.wrapping_sub(u64::from(begin))];
            for w in 0..4 {
                self.runs.set(4 * lane + w, words[w as usize]);
            }
            self.begins.set(lane, begin);
            if lane == 31 {
                self.begins.set(32, ends);
            }
            let node = run.node;
            let position = |number: u32| {
                let last = warp::shuffle_idx(FULL_MASK, ends, number.wrapping_sub(1));
                if number == 0 { 0 } else { last }
            };
            let (begin, middle, end) = (position(node & 0xff), position(node >> 8 & 0xff), position(node >> 16 & 0xff));
            // At least one thread for each merge, so that their first ones differ.
            let threads = if node != 0 { (end - begin).div_ceil(ITEMS as u32).max(1) } else { 0 };
            let threads_end = warp::inclusive_scan_add(FULL_MASK, threads);
            let mut first_thread = threads_end - threads;
            for depth in 0..rounds {
                let nodes = warp::ballot(FULL_MASK, (node != 0) & (node >> 24 == depth));
                let (first, last) = (nodes.trailing_zeros(), 31 - nodes.leading_zeros());
                let base = warp::shuffle_idx(FULL_MASK, threads_end - threads, first);
                let total = warp::shuffle_idx(FULL_MASK, threads_end, last) - base;
                if node >> 24 == depth {
                    first_thread -= base;
                }
                if lane == 0 {
                    let words = [first, last + 1 - first, total, 0];
                    self.depths.set4(4 * depth, words);
                }
            }
            self.nodes.set4(4 * lane, [begin, middle, end, first_thread]);
        }
    }
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
/// number: the first warp's lanes know `run` and part, other warps need not. `odd` has a bit for each run that is an odd
/// number of merges away from the end, `rounds` is the greatest number of merges; `carry` says whether places are needed.
///
/// # Safety
/// - All threads of a block of `THREADS` threads come here together. The parts are `THREADS * ITEMS` items at most,
///   valid for reads and sorted, and nothing writes them meanwhile; bitmaps too.
/// - Nodes are a tree over all runs that have items, its depths below `rounds`, at most [`MOST_ROUNDS`].
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
    lane_run: impl FnOnce() -> (Entry, (u64, u64)),
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
    let plan = Plan::at(at.plan);
    let t = thread::thread_idx_x();
    let lane = warp::lane_id();
    // SAFETY: shuffles and votes are reached by whole warps, barriers by all threads; each item is loaded by one thread
    // to the place that is its own; a merge writes the places of its parts in the other buffer, each thread its own; a
    // thread looks at most `ITEMS` places beyond a part, for which there is room.
    unsafe {
        if t < 32 {
            let (run, part) = lane_run();
            plan.draw_up::<ITEMS>(run, part, rounds);
        }
        thread::sync_threads();
        let len = plan.begins.get(32);
        let begin = plan.begins.get(lane);
        let mut u = 0;
        while u < ITEMS as u32 {
            let mut keys = [K::default(); BATCH];
            let mut loaded = [V::default(); BATCH];
            let mut places = [u32::MAX; BATCH];
            for b in 0..BATCH as u32 {
                let first = t - lane + (u + b) * THREADS;
                if u + b < ITEMS as u32 && first < len {
                    let place = first + lane;
                    // The last run that begins at or before the place; those without items come before one that has.
                    let mut number = warp::ballot(FULL_MASK, begin <= first).count_ones() - 1;
                    let mut borders = warp::ballot(FULL_MASK, (begin > first) & (begin < len) & (begin < first + 32));
                    while borders != 0 {
                        let next = borders.trailing_zeros();
                        number = if warp::shuffle_idx(FULL_MASK, begin, next) <= place { next } else { number };
                        borders &= borders - 1;
                    }
                    if place < len {
                        let run = plan.runs.at(4 * number);
                        let [keys_at, values_at] = run.get2(0);
                        let [status_at, delta] = run.get2(2);
                        let from = delta.wrapping_add(u64::from(place));
                        keys[b as usize] = at_address::<K>(keys_at).read_nc(from as usize);
                        if PAIRS {
                            loaded[b as usize] = at_address::<V>(values_at).read_nc(from as usize);
                        }
                        places[b as usize] = (odd >> number & 1) << 16 | place;
                        if carry && status_at != 0 {
                            let word = at_address::<u32>(status_at).read_nc((from / 32) as usize);
                            places[b as usize] |= if word >> (from % 32) & 1 != 0 { STATUS } else { 0 };
                        }
                    }
                }
            }
            for b in 0..BATCH {
                if places[b] != u32::MAX {
                    let place = places[b] & (STATUS - 1);
                    let (to, to_places) = buffers.of(places[b] >> 16);
                    to.set(place, keys[b]);
                    if PAIRS {
                        values.set(place, loaded[b]);
                    }
                    if carry {
                        to_places.set(place, places[b] as u16);
                    }
                }
            }
            u += BATCH as u32;
        }
        thread::sync_threads();

        let mut depth = rounds;
        while depth > 0 {
            depth -= 1;
            let [first, nodes, total, _] = plan.depths.get4(4 * depth);
            let mut own = t;
            while own - lane < total {
                let mut number = first;
                for n in first + 1..first + nodes {
                    number = if plan.nodes.get(4 * n + 3) <= own { n } else { number };
                }
                let [begin, middle, end, first_thread] = plan.nodes.get4(4 * number);
                let diagonal = ((own - first_thread) * ITEMS as u32).min(end - begin);
                let part = Part { begin, middle, end, diagonal };
                merge_part::<K, ITEMS>(buffers.of(depth + 1), buffers.of(depth), part, mask, carry);
                own += THREADS;
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
