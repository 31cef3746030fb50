//! Tile of a merge of many runs, in shared memory.
//!
//! Its parts of the runs are side by side, and neighbours are merged by the host's tree, one depth at a time, from one
//! of two buffers to the other: items that are `d` merges away from the last one are in buffer `d % 2`. A short part
//! takes part in few merges. Values move with their keys, and so does, if there are status bits, a *mark* per item.

use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK};
use warpset_simt::{ShuffleWord, Word, thread};

use super::runs::RUNS;
#[cfg(feature = "bodies")]
use super::runs::{Entry, at_address};
use crate::primitives::merge_path::MergeKey;
#[cfg(feature = "bodies")]
use crate::primitives::merge_path::{crossing_in_shared, goes_first};

/// Items per chunk, which one warp loads, with all loads of a lane in flight.
const CHUNK: u32 = 32 * PER_LANE;
const PER_LANE: u32 = 4;

/// Largest depth of a tree.
pub const MOST_ROUNDS: u32 = 8;

/// Places in shared memory, in bytes.
pub(super) struct Layout {
    other_keys: u32,
    values: u32,
    other_values: u32,
    plan: u32,
    /// Words for the kernel after the merge.
    pub(super) rest: u32,
    /// Bytes per buffer of marks; there are two buffers or none.
    marks: u32,
}

impl Layout {
    /// Returns the bytes of shared memory, with `rest` bytes for the kernel; marks, if needed, come at the end.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(super) const fn shared_bytes(&self, rest: u32) -> u32 {
        self.rest + rest.next_multiple_of(16)
    }

    /// Returns the bytes of the marks.
    #[cfg(not(target_arch = "nvptx64"))]
    pub(super) const fn marks_bytes(&self) -> u32 {
        2 * self.marks
    }
}

/// Returns the layout: both buffers of keys and values, with the places that a thread may read beyond the end, and the
/// plan.
pub(super) const fn layout<K, V>(threads: u32, items: u32, pairs: bool) -> Layout {
    let tile = threads * items;
    let room = tile + items + 1;
    let other_keys = (room * size_of::<K>() as u32).next_multiple_of(16);
    let values = 2 * other_keys;
    let values_bytes = if pairs { (room * size_of::<V>() as u32).next_multiple_of(16) } else { 0 };
    let plan = values + 2 * values_bytes;
    let marks = room.next_multiple_of(16);
    Layout { other_keys, values, other_values: values + values_bytes, plan, rest: plan + PLAN_BYTES, marks }
}

/// Plan of the merges, which one warp computes for the block.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Plan {
    /// For each run: addresses of keys, values and status bits, and the offset from a place of the run to one in the
    /// tile.
    runs: Shared<u64>,
    /// For each merge: beginning and end of its parts in the tile, and its first thread.
    nodes: Shared<u32>,
    /// For each depth: its first merge, the number of merges, their threads, and the items per thread.
    depths: Shared<u32>,
    /// Beginning of each run's part in the tile, and the tile's end.
    begins: Shared<u32>,
    /// Chunks of all earlier runs for each run, and of all runs.
    chunks: Shared<u32>,
}

const NODES_AT: u32 = RUNS as u32 * 32;
const DEPTHS_AT: u32 = NODES_AT + RUNS as u32 * 16;
const BEGINS_AT: u32 = DEPTHS_AT + MOST_ROUNDS * 16;
const CHUNKS_AT: u32 = BEGINS_AT + (RUNS as u32 + 1) * 4;
const PLAN_BYTES: u32 = (CHUNKS_AT + (RUNS as u32 + 1) * 4).next_multiple_of(16);

#[cfg(feature = "bodies")]
impl Plan {
    #[inline(always)]
    fn at(offset: u32) -> Plan {
        Plan {
            runs: shared::dynamic(offset),
            nodes: shared::dynamic(offset + NODES_AT),
            depths: shared::dynamic(offset + DEPTHS_AT),
            begins: shared::dynamic(offset + BEGINS_AT),
            chunks: shared::dynamic(offset + CHUNKS_AT),
        }
    }

    /// Computes the plan by one warp. Each lane has the run and the merge of its number.
    ///
    /// # Safety
    /// - All lanes of the warp call this together; the plan is in shared memory, which nothing else accesses before a
    ///   barrier.
    /// - `run` and its part satisfy the contract of [`merge_tile`]; `rounds` is at most [`MOST_ROUNDS`].
    #[inline(always)]
    #[track_caller]
    unsafe fn draw_up<const THREADS: u32, const ITEMS: usize>(self, run: Entry, (start, end): (u64, u64), rounds: u32) {
        let lane = warp::lane_id();
        // SAFETY: each lane writes its own places; shuffles, votes and loops are uniform in the warp.
        unsafe {
            let own = (end - start) as u32;
            let ends = warp::inclusive_scan_add(FULL_MASK, own);
            let begin = ends - own;
            let words = [run.keys, run.values, run.status, start.wrapping_sub(u64::from(begin))];
            for w in 0..4 {
                self.runs.set(4 * lane + w, words[w as usize]);
            }
            self.begins.set(lane, begin);
            let chunks = own.div_ceil(CHUNK);
            let chunks_end = warp::inclusive_scan_add(FULL_MASK, chunks);
            self.chunks.set(lane, chunks_end - chunks);
            if lane == 31 {
                self.begins.set(32, ends);
                self.chunks.set(32, chunks_end);
            }
            let node = run.node;
            let position = |number: u32| {
                let last = warp::shuffle_idx(FULL_MASK, ends, number.wrapping_sub(1));
                if number == 0 { 0 } else { last }
            };
            let (begin, middle, end) = (position(node & 0xff), position(node >> 8 & 0xff), position(node >> 16 & 0xff));
            // Few items are divided among all threads, since the block waits for the slowest one. Lane `d` computes
            // that for depth `d`.
            let len = if node != 0 { end - begin } else { 0 };
            let (mut items, mut nodes) = (0, 0);
            for depth in 0..rounds {
                let here = (node != 0) & (node >> 24 == depth);
                let (all, count) = (
                    warp::reduce_add(FULL_MASK, if here { len } else { 0 }),
                    warp::ballot(FULL_MASK, here).count_ones(),
                );
                (items, nodes) = if lane == depth { (all, count) } else { (items, nodes) };
            }
            let per_thread = items.div_ceil(THREADS - nodes).clamp(1, ITEMS as u32);
            // At least one thread per merge, so that their first threads differ.
            let of_node = warp::shuffle_idx(FULL_MASK, per_thread, node >> 24);
            let threads = if node != 0 { len.div_ceil(of_node).max(1) } else { 0 };
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
                if lane == depth {
                    self.depths.set4(4 * depth, [first, last + 1 - first, total, per_thread]);
                }
            }
            self.nodes.set4(4 * lane, [begin, middle, end, first_thread]);
        }
    }
}

/// Merged tile, or a buffer of one that is being merged.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub(super) struct Items<K, V> {
    /// Keys, in order.
    pub keys: Shared<K>,
    /// Values, if there are any.
    pub values: Shared<V>,
    /// Status bits, 0 or 1 per item; only if marks are moved.
    pub marks: Shared<u8>,
}

#[cfg(feature = "bodies")]
impl<K: Word, V: Word> Items<K, V> {
    /// Copies an item from another buffer, without its key.
    ///
    /// # Safety
    /// Both places are in their buffers; nothing writes the source or accesses the target meanwhile.
    #[inline(always)]
    #[track_caller]
    unsafe fn take<const PAIRS: bool>(self, i: u32, from: Self, place: u32, marked: bool) {
        // SAFETY: the contract of this function.
        unsafe {
            if PAIRS {
                self.values.set(i, from.values.get(place));
            }
            if marked {
                self.marks.set(i, from.marks.get(place));
            }
        }
    }
}

/// Loads and merges the block's tile; returns the items and their number. Each run's part goes from `start` to `end` of
/// the run numbered as the lane; only the first warp's lanes need `run` and part. `odd` has a bit for each run that is
/// an odd number of merges away from the root, `rounds` is the greatest number of merges; `marked` tells whether any
/// run has status bits.
///
/// # Safety
/// - All threads of a block of `THREADS` threads call this together. The parts are `THREADS * ITEMS` items at most,
///   valid for reads and sorted, and nothing writes them meanwhile; bitmaps likewise.
/// - Nodes are a tree over all runs that have items, its depths below `rounds`, at most [`MOST_ROUNDS`].
/// - Dynamic shared memory begins with the [`layout`], and nothing else accesses that; if `marked`, the marks are at
///   `marks_at`.
#[cfg(feature = "bodies")]
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
    marked: bool,
    marks_at: u32,
) -> (Items<K, V>, u32) {
    let at = layout::<K, V>(THREADS, ITEMS as u32, PAIRS);
    let even = Items { keys: shared::dynamic(0), values: shared::dynamic(at.values), marks: shared::dynamic(marks_at) };
    let other = Items {
        keys: shared::dynamic(at.other_keys),
        values: shared::dynamic(at.other_values),
        marks: shared::dynamic(marks_at + at.marks),
    };
    let buffer = |depth: u32| {
        let odd = depth % 2 == 1;
        Items {
            keys: if odd { other.keys } else { even.keys },
            values: if odd { other.values } else { even.values },
            marks: if odd { other.marks } else { even.marks },
        }
    };
    let plan = Plan::at(at.plan);
    let t = thread::thread_idx_x();
    let lane = warp::lane_id();
    // SAFETY: whole warps reach shuffles and votes, all threads barriers; each item is loaded by one thread to its own
    // place; a merge writes the places of its parts in the other buffer, each thread its own; a thread reads at most
    // `ITEMS` places beyond a part, which exist.
    unsafe {
        if t < 32 {
            let (run, part) = lane_run();
            plan.draw_up::<THREADS, ITEMS>(run, part, rounds);
        }
        thread::sync_threads();
        let len = plan.begins.get(32);
        let (begins, first_chunk, chunks) = (plan.begins.get(lane + 1), plan.chunks.get(lane), plan.chunks.get(32));
        let mut chunk = t / 32;
        while chunk < chunks {
            // The last run whose chunks begin at or before this one; runs without items come before one with items.
            let number = warp::ballot(FULL_MASK, first_chunk <= chunk).count_ones() - 1;
            let end = warp::shuffle_idx(FULL_MASK, begins, number);
            let begin = plan.begins.get(number) + (chunk - plan.chunks.get(number)) * CHUNK + lane;
            let run = plan.runs.at(4 * number);
            let [keys_at, values_at] = run.get2(0);
            let [status_at, delta] = run.get2(2);
            let from = delta.wrapping_add(u64::from(begin)) as usize;
            let (from_keys, from_values) = (at_address::<K>(keys_at).at(from), at_address::<V>(values_at));
            let mut keys = [K::default(); PER_LANE as usize];
            let mut values = [V::default(); PER_LANE as usize];
            for u in 0..PER_LANE {
                if begin + 32 * u < end {
                    keys[u as usize] = from_keys.read_nc(32 * u as usize);
                    if PAIRS {
                        values[u as usize] = from_values.read_nc(from + 32 * u as usize);
                    }
                }
            }
            let to = buffer(odd >> number & 1);
            for u in 0..PER_LANE {
                if begin + 32 * u < end {
                    to.keys.set(begin + 32 * u, keys[u as usize]);
                    if PAIRS {
                        to.values.set(begin + 32 * u, values[u as usize]);
                    }
                    if marked {
                        let mut mark = 0;
                        if status_at != 0 {
                            let i = from + 32 * u as usize;
                            mark = (at_address::<u32>(status_at).read_nc(i / 32) >> (i % 32) & 1) as u8;
                        }
                        to.marks.set(begin + 32 * u, mark);
                    }
                }
            }
            chunk += THREADS / 32;
        }
        thread::sync_threads();

        let mut depth = rounds;
        while depth > 0 {
            depth -= 1;
            let [first, nodes, total, per_thread] = plan.depths.get4(4 * depth);
            let mut own = t;
            while own - lane < total {
                let mut number = first;
                for n in first + 1..first + nodes {
                    number = if plan.nodes.get(4 * n + 3) <= own { n } else { number };
                }
                let [begin, middle, end, first_thread] = plan.nodes.get4(4 * number);
                let diagonal = ((own - first_thread) * per_thread).min(end - begin);
                let part = Part { begin, middle, end, diagonal, per_thread };
                merge_part::<K, V, ITEMS, PAIRS>(buffer(depth + 1), buffer(depth), part, mask, marked);
                own += THREADS;
            }
            thread::sync_threads();
        }
        (even, len)
    }
}

/// Two parts, side by side, and the thread's beginning in their merge.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Part {
    begin: u32,
    middle: u32,
    end: u32,
    diagonal: u32,
    /// Largest number of items that it merges.
    per_thread: u32,
}

/// Merges the thread's items of two parts, from one buffer to the other.
///
/// # Safety
/// - All lanes of the warp call this together.
/// - The parts are in the buffer, sorted, and nothing writes there meanwhile.
/// - The thread's places in the other buffer belong to it.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn merge_part<K: MergeKey, V: Word, const ITEMS: usize, const PAIRS: bool>(
    from: Items<K, V>,
    to: Items<K, V>,
    Part { begin, middle, end, diagonal, per_thread }: Part,
    mask: K,
    marked: bool,
) {
    // SAFETY: the contract of this function.
    unsafe {
        let runs = ((from.keys.at(begin), middle - begin), (from.keys.at(middle), end - middle));
        let from_a = crossing_in_shared(runs.0, runs.1, diagonal, mask);
        let (at_a, at_b) = (begin + from_a, middle + diagonal - from_a);
        let out = begin + diagonal;
        let count = end - out;
        if per_thread < ITEMS as u32 {
            // All threads of the block take this branch, or none.
            return few::<K, V, PAIRS>(from, to, (at_a, middle), (at_b, end), out, count.min(per_thread), mask, marked);
        }
        let room = (at_a + ITEMS as u32 <= middle) & (at_b + ITEMS as u32 <= end);
        let (a, b) = ((at_a, middle), (at_b, end));
        if warp::all(FULL_MASK, room) {
            serial::<K, V, ITEMS, PAIRS, false>(from, to, a, b, out, count, mask, marked);
        } else {
            serial::<K, V, ITEMS, PAIRS, true>(from, to, a, b, out, count, mask, marked);
        }
    }
}

/// Merges `count` items.
///
/// # Safety
/// The contract of [`merge_part`].
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn few<K: MergeKey, V: Word, const PAIRS: bool>(
    from: Items<K, V>,
    to: Items<K, V>,
    (mut at_a, a_end): (u32, u32),
    (mut at_b, b_end): (u32, u32),
    out: u32,
    count: u32,
    mask: K,
    marked: bool,
) {
    // SAFETY: the contract of this function: each round advances by one place in one of the parts.
    unsafe {
        for u in 0..count {
            let (first, second) = (from.keys.get(at_a), from.keys.get(at_b));
            let from_a = (at_b >= b_end) | ((at_a < a_end) & goes_first(first, second, mask));
            let place = if from_a { at_a } else { at_b };
            to.keys.set(out + u, if from_a { first } else { second });
            to.take::<PAIRS>(out + u, from, place, marked);
            at_a += u32::from(from_a);
            at_b += u32::from(!from_a);
        }
    }
}

/// Merges up to `ITEMS` items, `count` at most. With `BOUNDED`, a part may end before.
///
/// # Safety
/// The contract of [`merge_part`].
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn serial<K: MergeKey, V: Word, const ITEMS: usize, const PAIRS: bool, const BOUNDED: bool>(
    from: Items<K, V>,
    to: Items<K, V>,
    (mut at_a, a_end): (u32, u32),
    (mut at_b, b_end): (u32, u32),
    out: u32,
    count: u32,
    mask: K,
    marked: bool,
) {
    let keys = from.keys;
    // SAFETY: the contract of this function: each round advances by one place in one of the parts.
    unsafe {
        let (mut first, mut second) = (keys.get(at_a), keys.get(at_b));
        for u in 0..ITEMS as u32 {
            // Without branches: neighbouring threads take different sides.
            let mut from_a = goes_first(first, second, mask);
            if BOUNDED {
                from_a = (at_b >= b_end) | ((at_a < a_end) & from_a);
            }
            let place = if from_a { at_a } else { at_b };
            let key = if from_a { first } else { second };
            if !BOUNDED || u < count {
                to.keys.set(out + u, key);
                to.take::<PAIRS>(out + u, from, place, marked);
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
