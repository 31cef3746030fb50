//! Flipped lookups: for many nearly sorted queries, the elements of the levels search for their queries.
//!
//! Idea: the flipped indexing of FliX (arXiv 2604.16725), in which buckets search for their queries instead of queries
//! for their bucket. Departures: the structure is a tree of levels; the elements between the least and the greatest
//! query of a *tile* are found by two searches per level. A tile with queries that are too far apart searches as
//! [`lsm_lookup`](super::lookup::lsm_lookup) does.
//!
//! A block has a tile of [`TILE`] queries. It puts them into *slots* in shared memory: intervals of keys of equal
//! width, about two per query. Then its warps pass over the elements of all levels between the least and the greatest
//! query, in order, each element once. An element looks into its slot, and a visible one with the key of a query writes
//! its value there. Elements are read in whole sectors, and each only for one tile, except at the ends of tiles.
//!
//! Levels with too many elements per query of the tile are searched by the queries that no other level has answered.
//! If many queries share a slot, queries search all levels.

use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, ShuffleWord, allow, atomic, thread};

use crate::block;
use crate::lsm::levels::{LevelKey, Levels};
use crate::lsm::table::LEVELS;
use crate::lsm::visibility::Visibility;

/// Threads per block.
pub const BLOCK: u32 = 256;
/// Queries per tile.
pub const TILE: u32 = BLOCK * ROWS;

const WARPS: u32 = BLOCK / 32;
/// Queries per thread.
const ROWS: u32 = 8;
const LOG_SLOTS: u32 = 12;
const SLOTS: u32 = 1 << LOG_SLOTS;
/// Rows of four neighbouring slots per lane that a thread adds up.
const SLOT_ROWS: u32 = SLOTS / (4 * BLOCK);
/// Largest number of queries of a slot that an element is compared with.
const CROWDED: u32 = 32;
/// Rows of 32 elements that a warp reads at a time.
const CHUNK_ROWS: usize = 4;

// Shared memory: sums of a scan; bounds of each warp's queries; the tile's elements of each level; the levels that
// queries search; one bit per place, set if its query is answered; the end of each slot; the queries in the order of
// slots; the place of each query; answers.
const BOUNDS_AT: u32 = 128;
const SPANS_AT: u32 = BOUNDS_AT + 2 * WARPS * size_of::<u128>() as u32;
const SEARCHED_AT: u32 = SPANS_AT + 2 * LEVELS as u32 * 4;
const ANSWERED_AT: u32 = SEARCHED_AT + 16;
const SLOTS_AT: u32 = ANSWERED_AT + TILE / 8;
const KEYS_AT: u32 = SLOTS_AT + 4 * SLOTS;

const fn places_at<K>() -> u32 {
    KEYS_AT + TILE * size_of::<K>() as u32
}

const fn values_at<K>() -> u32 {
    places_at::<K>() + 2 * TILE
}

/// Returns the bytes of dynamic shared memory of a block, for values of `value_words` words of 32 bits.
#[must_use]
pub const fn shared_bytes<K>(value_words: u32) -> u32 {
    values_at::<K>() + 4 * value_words * TILE
}

/// Interval of the queries of a tile, cut into slots.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Slots<K> {
    least: K,
    shift: u32,
}

#[cfg(feature = "bodies")]
impl<K: LevelKey> Slots<K> {
    #[inline(always)]
    fn new(least: K, greatest: K) -> Self {
        Slots { least, shift: greatest.bits_from(least).saturating_sub(LOG_SLOTS) }
    }

    /// Returns the slot of a key inside the interval.
    #[inline(always)]
    fn of(self, key: K) -> u32 {
        key.steps_from(self.least, self.shift)
    }
}

/// Returns the least and the greatest key over the threads of the block. One barrier.
///
/// # Safety
/// All threads of the block call this together; nothing else accesses the shared memory for bounds until the next
/// barrier.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn bounds<K: LevelKey + ShuffleWord>(mut least: K, mut greatest: K) -> (K, K) {
    let scratch: Shared<K> = shared::dynamic(BOUNDS_AT);
    let warp = thread::thread_idx_x() / 32;
    // SAFETY: whole warps reach the shuffles; there are two places per warp, and a barrier before other threads read
    // them.
    unsafe {
        let mut distance = 1;
        while distance < 32 {
            least = least.min(warp::shuffle_xor(FULL_MASK, least, distance));
            greatest = greatest.max(warp::shuffle_xor(FULL_MASK, greatest, distance));
            distance *= 2;
        }
        if lane_id() == 0 {
            scratch.set(warp, least);
            scratch.set(WARPS + warp, greatest);
        }
        thread::sync_threads();
        for other in 0..WARPS {
            least = least.min(scratch.get(other));
            greatest = greatest.max(scratch.get(WARPS + other));
        }
        (least, greatest)
    }
}

/// Computes the beginning of each slot from its number of queries; returns whether a slot has too many. Two barriers.
///
/// # Safety
/// All threads of the block call this together, after a barrier; nothing else accesses the slots and the shared memory
/// for sums meanwhile.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn add_up(slots: Shared<u32>) -> bool {
    const ROW: u32 = 4 * 32;
    let own = slots.at(thread::thread_idx_x() / 32 * SLOT_ROWS * ROW + 4 * lane_id());
    // SAFETY: each thread has its own slots; whole warps reach the warp operations.
    unsafe {
        let (mut all, mut most) = (0, 0);
        for row in 0..SLOT_ROWS {
            let [a, b, c, d] = own.get4(row * ROW);
            all += a + b + c + d;
            most = most.max(a).max(b).max(c).max(d);
        }
        let of_warp = warp::reduce_add(FULL_MASK, all);
        let first = if lane_id() == 0 { of_warp } else { 0 };
        let (before, _) = block::exclusive_scan::<Sum<u32>, WARPS>(first, shared::dynamic(0));
        let mut before = warp::shuffle_idx(FULL_MASK, before, 0);
        for row in 0..SLOT_ROWS {
            let [a, b, c, d] = own.get4(row * ROW);
            let all = a + b + c + d;
            let through = warp::inclusive_scan_add(FULL_MASK, all);
            let next = before + through - all;
            own.set4(row * ROW, [next, next + a, next + a + b, next + a + b + c]);
            before += warp::shuffle_idx(FULL_MASK, through, 31);
        }
        thread::sync_threads_or(most > CROWDED)
    }
}

/// Queries of a tile in their slots, and their answers so far.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Slotted<K> {
    slots: Slots<K>,
    /// End of each slot.
    ends: Shared<u32>,
    keys: Shared<K>,
    answered: Shared<u32>,
    values: Shared<u32>,
    value_words: u32,
}

#[cfg(feature = "bodies")]
impl<K: LevelKey> Slotted<K> {
    /// Returns the first place with a query of this key, or the end of its slot if there is none; and that end.
    ///
    /// # Safety
    /// The key is between the least and the greatest query; all queries are in their slots.
    #[inline(always)]
    unsafe fn find(self, key: K) -> (u32, u32) {
        let slot = self.slots.of(key);
        // SAFETY: the slot is below their number, and places before its end are those of queries.
        unsafe {
            let end = self.ends.get(slot);
            let mut place = if slot == 0 { 0 } else { self.ends.get(slot - 1) };
            while place < end && self.keys.get(place) != key {
                place += 1;
            }
            (place, end)
        }
    }

    /// Answers all queries of this key from `place` to `end` by a value, which is in `narrow` or in `wide`, depending
    /// on its size.
    ///
    /// # Safety
    /// The contract of [`find`](Self::find), which returned the places; values have the tile's number of words, one or
    /// two; no other thread answers these queries.
    #[inline(always)]
    unsafe fn answer(self, (mut place, end): (u32, u32), key: K, narrow: u32, wide: u64) {
        // SAFETY: places are those of queries; bits are changed atomically.
        unsafe {
            while place < end {
                if self.keys.get(place) == key {
                    self.answered.reduce_or(place / 32, 1 << (place % 32));
                    if self.value_words == 1 {
                        self.values.set(place, narrow);
                    } else if self.value_words == 2 {
                        self.values.cast::<u64>().set(place, wide);
                    }
                }
                place += 1;
            }
        }
    }

    /// Offers all elements of the lane's level from `low` to `high`.
    ///
    /// # Safety
    /// The keys are between the least and the greatest query, and all queries are in their slots; values have the
    /// tile's number of words. All warps of the block call this, as whole warps.
    #[inline(always)]
    unsafe fn offer_all(self, tree: Levels, visibility: Visibility, low: u32, high: u32) {
        const CHUNK: usize = 32 * CHUNK_ROWS;
        // Rows begin at multiples of 32 elements, so that a row consists of whole sectors.
        let start = low / 32;
        let chunks = if high > low { (high.div_ceil(32) - start).div_ceil(CHUNK_ROWS as u32) } else { 0 };
        // SAFETY: the loop is the same for the whole warp, whose lanes have the levels; elements from `low` to `high`
        // are in their level; only one visible element has a key.
        unsafe {
            let end = warp::inclusive_scan_add(FULL_MASK, chunks);
            let all = warp::shuffle_idx(FULL_MASK, end, 31);
            let mut chunk = thread::thread_idx_x() / 32;
            while chunk < all {
                // The last level with chunks that begins at or before this one.
                let begun = warp::ballot(FULL_MASK, chunks != 0 && end - chunks <= chunk);
                let number = 31 - begun.leading_zeros();
                let first = warp::shuffle_idx(FULL_MASK, end - chunks, number);
                let low = warp::shuffle_idx(FULL_MASK, low, number) as usize;
                let high = warp::shuffle_idx(FULL_MASK, high, number) as usize;
                let from = low / 32 * 32 + (chunk - first) as usize * CHUNK + lane_id() as usize;
                let keys = tree.keys::<K>(number);
                let mut loaded = [K::default(); CHUNK_ROWS];
                for row in 0..CHUNK_ROWS {
                    let i = from + 32 * row;
                    if low <= i && i < high {
                        loaded[row] = keys.read_nc(i);
                    }
                }
                // All rows find their queries before the first reads a value, so that these reads overlap too.
                let mut places = [(0, 0); CHUNK_ROWS];
                for row in 0..CHUNK_ROWS {
                    let i = from + 32 * row;
                    if low <= i && i < high {
                        places[row] = self.find(loaded[row]);
                    }
                }
                let address = tree.values_address(number);
                let (mut narrow, mut wide) = ([0; CHUNK_ROWS], [0; CHUNK_ROWS]);
                let mut visible = [false; CHUNK_ROWS];
                for row in 0..CHUNK_ROWS {
                    let i = from + 32 * row;
                    if places[row].0 < places[row].1 {
                        visible[row] = visibility.is_visible(tree, number, i);
                        if self.value_words == 1 {
                            narrow[row] = Global::<u32>::at_address(address, i + 1).read_nc(i);
                        } else if self.value_words == 2 {
                            wide[row] = Global::<u64>::at_address(address, i + 1).read_nc(i);
                        }
                    }
                }
                for row in 0..CHUNK_ROWS {
                    if visible[row] {
                        self.answer(places[row], loaded[row], narrow[row], wide[row]);
                    }
                }
                chunk += WARPS;
            }
        }
    }
}

/// Searches the levels with a set bit, from the oldest on, for the visible element of a key.
///
/// # Safety
/// The contracts of [`Levels::new`] and [`Visibility::new`]; the levels exist.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn search<K: LevelKey>(tree: Levels, visibility: Visibility, mut levels: u32, key: K) -> Option<(u32, usize)> {
    while levels != 0 {
        let number = 31 - levels.leading_zeros();
        levels &= !(1 << number);
        if let Some(place) = tree.place_of(number, key) {
            // SAFETY: the place is in the level.
            if unsafe { visibility.is_visible(tree, number, place) } {
                return Some((number, place));
            }
        }
    }
    None
}

kernel! {
    /// Sets `descends` to 1 if the queries do not ascend.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid.
    /// - `queries`: valid for `n` reads, not written while the kernel runs.
    /// - `descends`: valid for one word, used by this launch alone.
    pub unsafe fn lsm_descends<K>(queries: Global<K>, n: usize, descends: GlobalMut<u32>)
    for [u32 => lsm_descends_u32, u64 => lsm_descends_u64, u128 => lsm_descends_u128] {
        let mut found = false;
        for i in thread::grid_stride(n) {
            // SAFETY: `i < n`, and the previous query is read only if there is one.
            found |= i > 0 && unsafe { queries.read_nc(i) < queries.read_nc(i - 1) };
        }
        if found {
            // SAFETY: there is one word; all writers write the same.
            unsafe { atomic::reduce_or(descends, 1) };
        }
    }

    /// Looks up nearly sorted queries, with the results of [`lsm_lookup`](super::lookup::lsm_lookup).
    ///
    /// # Safety
    /// - Launch: 1-D, `n.div_ceil(TILE)` blocks of [`BLOCK`] threads, with [`shared_bytes`] of dynamic shared memory.
    /// - `table`: as for [`Levels::new`]; it has `levels` levels of fewer than 2^32 elements.
    /// - `visible`: as for [`Visibility::new`]; `all` is 1 if all elements are visible, otherwise 0.
    /// - `queries`: valid for `n` reads, not written while the kernel runs.
    /// - `out_values`: valid for `n` values of `value_words` words of 32 bits, 0, 1 or 2; `found`: for two words per 64
    ///   queries; both used by this launch alone.
    /// - `most`: largest number of elements of a level per query of a tile for which elements search for queries; does
    ///   not affect answers.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_lookup_flipped<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, all: u32, most: u32, queries: Global<K>, n: usize,
        out_values: GlobalMut<u32>, value_words: u32, found: GlobalMut<u32>,
    ) for [
        u32 => lsm_lookup_flipped_u32, #[launch_bounds(256, 3)] u64 => lsm_lookup_flipped_u64,
        #[launch_bounds(256, 2)] u128 => lsm_lookup_flipped_u128
    ] {
        // Three registers on sm_90; none on others.
        allow::spill();
        let (t, lane) = (thread::thread_idx_x(), lane_id());
        let base = thread::block_idx_x() as usize * TILE as usize;
        let len = (n - base).min(TILE as usize) as u32;
        let spans: Shared<u32> = shared::dynamic(SPANS_AT);
        let searched: Shared<u32> = shared::dynamic(SEARCHED_AT);
        let answered: Shared<u32> = shared::dynamic(ANSWERED_AT);
        let ends: Shared<u32> = shared::dynamic(SLOTS_AT);
        let keys: Shared<K> = shared::dynamic(KEYS_AT);
        let place_of: Shared<u16> = shared::dynamic(places_at::<K>());
        let values: Shared<u32> = shared::dynamic(values_at::<K>());
        // SAFETY: the contract of this kernel. Queries are below `len`, slots and places below their number; each query
        // has its own place, and its answer belongs to one thread. Accesses of different threads to the same words are
        // atomic, or separated by a barrier that all threads reach. The first warp has all levels.
        unsafe {
            let (tree, visibility) = (Levels::new(table), Visibility::new(visible, all != 0));
            let mut own = [K::default(); ROWS as usize];
            let (mut least, mut greatest) = (queries.read_nc(base), queries.read_nc(base));
            for u in 0..ROWS {
                let q = u * BLOCK + t;
                if q < len {
                    own[u as usize] = queries.read_nc(base + q as usize);
                }
            }
            for u in 0..ROWS {
                if u * BLOCK + t < len {
                    (least, greatest) = (least.min(own[u as usize]), greatest.max(own[u as usize]));
                }
            }
            for row in 0..SLOT_ROWS {
                ends.set4(4 * (row * BLOCK + t), [0; 4]);
            }
            if t < TILE / 32 {
                answered.set(t, 0);
            }
            let (least, greatest) = bounds(least, greatest);
            let slots = Slots::new(least, greatest);
            if t < 32 {
                let (mut low, mut high) = (0, 0);
                if lane < levels {
                    let span = tree.level::<K>(lane).indexed().between(least, greatest);
                    (low, high) = (span.low as u32, span.high as u32);
                }
                let is_long = (high - low) as u64 > most as u64 * len as u64;
                spans.set(lane, low);
                spans.set(LEVELS as u32 + lane, if is_long { low } else { high });
                let (any, long) = (warp::ballot(FULL_MASK, high > low), warp::ballot(FULL_MASK, is_long));
                if lane == 0 {
                    searched.set(0, any);
                    searched.set(1, long);
                }
            }
            for u in 0..ROWS {
                if u * BLOCK + t < len {
                    ends.reduce_add(slots.of(own[u as usize]), 1);
                }
            }
            thread::sync_threads();
            let crowded = add_up(ends);
            let searched = searched.get(crowded as u32 ^ 1);
            if !crowded {
                for u in 0..ROWS {
                    if u * BLOCK + t < len {
                        let place = ends.fetch_add(slots.of(own[u as usize]), 1);
                        keys.set(place, own[u as usize]);
                        place_of.set(u * BLOCK + t, place as u16);
                    }
                }
                thread::sync_threads();
                let slotted = Slotted { slots, ends, keys, answered, values, value_words };
                slotted.offer_all(tree, visibility, spans.get(lane), spans.get(LEVELS as u32 + lane));
                thread::sync_threads();
            }
            let mut q = t;
            while q - lane < len {
                let i = base + q as usize;
                let mut is_found = false;
                if q < len {
                    let mut place = 0;
                    if !crowded {
                        place = place_of.get(q) as u32;
                        is_found = answered.get(place / 32) >> (place % 32) & 1 != 0;
                    }
                    let mut element = None;
                    if !is_found && searched != 0 {
                        element = search(tree, visibility, searched, queries.read_nc(i));
                    }
                    if let Some((number, place)) = element {
                        tree.copy_value(number, place, value_words, out_values, i);
                        is_found = true;
                    } else if value_words == 1 {
                        out_values.write(i, if is_found { values.get(place) } else { 0 });
                    } else if value_words == 2 {
                        let value = if is_found { values.cast::<u64>().get(place) } else { 0 };
                        out_values.cast::<u64>().write(i, value);
                    }
                }
                let bits = warp::ballot(FULL_MASK, is_found);
                if lane == 0 {
                    found.write(i / 32, bits);
                }
                q += BLOCK;
            }
            // The second half of the last word of 64 bits.
            if t == 0 && n.div_ceil(32) % 2 != 0 && base + len as usize == n {
                found.write(n.div_ceil(32), 0);
            }
        }
    }
}
