//! A warp writes the visible elements of parts of several levels in ascending order of keys: chunk by chunk, each
//! merged in shared memory.
//!
//! A chunk is what all levels have up to some key. Each level offers as much of its part as the level's share of the
//! chunk is, and some elements more; the least of the last keys offered by levels that go on bounds the chunk, so no
//! level has more elements in it than it offered. Their visible elements come to shared memory as runs: keys, and for
//! each the number of its level and its place. [`run_merge`](super::run_merge) leaves two runs. The last merge only
//! finds out which of them each place of the result is of, as a bit per place; then lanes go through the places side by
//! side, and copy keys and values to the output.

use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut};

use crate::lsm::levels::{Levels, Span};
use crate::lsm::run_merge::{
    CHUNK, ListKey, PLACE_BITS, ROOM, Room, Run, SHORTER, WORDS, arrange, least, merge_all, path, upper_bound_in_shared,
};
use crate::lsm::visibility::Visibility;

/// What each level offers beyond its share of the chunk, so that small levels, of which a share is an element or two,
/// do not make it short.
const SLACK: usize = 4;
/// What is shared, so that the shorter runs keep their limit with all that levels offer beyond their share.
const SHARED: usize = 2 * (SHORTER - 32 * SLACK);
const _: () = assert!(SHARED + 32 * SLACK <= CHUNK);
/// [`SHARED`] where no run is the longest by far.
const SHARED_EVENLY: usize = SHORTER - 32 * SLACK;

/// Steps of a lane in the last merge.
const LAST_STEPS: usize = CHUNK.div_ceil(32) | 1;
const _: () = assert!(LAST_STEPS * 32 >= CHUNK && LAST_STEPS < 64);
/// Rows of 32 elements that are loaded at a time.
const ROWS: u32 = 8;
/// Elements per lane that are copied at a time.
const COPIES: u32 = 4;

/// Bytes of shared memory of a warp: bits, keys, places.
#[must_use]
pub const fn shared_bytes<K>() -> u32 {
    ((WORDS + 2).next_multiple_of(4) * 4 + ROOM * (size_of::<K>() as u32 + 2)).next_multiple_of(16)
}

/// Where elements go.
#[derive(Clone, Copy)]
pub struct Output<K> {
    /// Their keys.
    pub keys: GlobalMut<K>,
    /// Their values.
    pub values: GlobalMut<u32>,
    /// Words of 32 bits of a value: 0, 1 or 2.
    pub value_words: u32,
}

impl<K: ListKey> Output<K> {
    /// Value `i` of those at an address, in the lower bits of a word.
    ///
    /// # Safety
    /// It is there, and nothing writes it meanwhile.
    #[inline(always)]
    #[track_caller]
    unsafe fn value(self, values: u64, i: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            if self.value_words == 1 {
                Global::<u32>::at_address(values, i + 1).read_nc(i) as u64
            } else if self.value_words == 2 {
                Global::<u64>::at_address(values, i + 1).read_nc(i)
            } else {
                0
            }
        }
    }

    /// Writes an element.
    ///
    /// # Safety
    /// The outputs are valid at place `to`, which nothing else accesses.
    #[inline(always)]
    #[track_caller]
    unsafe fn put(self, to: usize, key: K, value: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            self.keys.write(to, key);
            if self.value_words == 1 {
                self.values.write(to, value as u32);
            } else if self.value_words == 2 {
                self.values.cast::<u64>().write(to, value);
            }
        }
    }
}

/// The lane's level's part of a chunk.
#[derive(Clone, Copy)]
struct Part {
    /// The elements that it offers.
    span: Span,
    /// Visible elements before them, as [`Visibility::rank`] counts.
    before: u32,
    /// Where its words of visibility begin.
    first: usize,
}

/// Writes the visible elements of the lanes' spans, ascending, to `out` from place `to` on.
///
/// # Safety
/// - All lanes of the warp come here together, each with the span of its level, of which there are `count`, if it has
///   one, otherwise an empty one.
/// - `bytes`: [`shared_bytes`] of shared memory, a multiple of 16 from its start, the warp's own.
/// - The outputs are valid for as many writes as there are visible elements, and nothing else accesses them.
#[inline(always)]
#[track_caller]
pub unsafe fn write<K: ListKey>(
    levels: Levels,
    count: u32,
    visibility: Visibility,
    mut span: Span,
    bytes: Shared<u8>,
    out: Output<K>,
    mut to: usize,
) {
    let room = Room::<K>::new(bytes);
    let first = levels.first_visible(lane_id());
    // SAFETY: the caller's lanes all come here, and what ends loops is the same for all. Places are inside the levels'
    // spans. A chunk has at most `CHUNK` elements. As many elements are written as are visible.
    unsafe {
        loop {
            let own = span.count().min(1 << 26) as u32;
            let occupied = warp::ballot(FULL_MASK, own != 0);
            if occupied == 0 {
                return;
            }
            if occupied & (occupied - 1) == 0 {
                copy(levels, visibility, occupied.trailing_zeros(), span, out, to);
                return;
            }
            let left = warp::reduce_add(FULL_MASK, own) as usize;
            let longest = warp::reduce_max(FULL_MASK, own) as usize;
            // What the level offers; it has more if the chunk does not end the query.
            let is_even = left - longest > SHORTER && left < 2 * (left - longest);
            let is_last = left <= CHUNK && left - longest <= SHORTER;
            let shared = if is_even { SHARED_EVENLY } else { SHARED };
            let part = own as usize;
            let offered = if is_last { part } else { part.min(part * shared / left + SLACK) };
            let offer = Span { low: span.low, high: span.low + offered };
            let before = visibility.rank(first, offer.low);
            let visible = visibility.rank(first, offer.high).wrapping_sub(before);
            let chunk = Part { span: offer, before, first };
            let (start, grouped) = arrange(visible, count);
            load(levels, visibility, chunk, start, room);
            let mut taken = visible;
            span.low = offer.high;
            if !is_last {
                let goes_on = offer.high < span.high;
                let last = if goes_on { levels.keys::<K>(lane_id()).read_nc(offer.high - 1) } else { K::default() };
                let bound = least(last, goes_on);
                taken = upper_bound_in_shared(room.keys, start, visible, bound);
                if taken < visible {
                    // What is between the last taken and the next visible one is hidden.
                    span.low = offer.low + (room.places.get(start + taken) as usize & ((1 << PLACE_BITS) - 1));
                }
                warp::sync_warp(FULL_MASK);
            }
            let run = Run { start, len: taken };
            let merged = merge_all(room, run, visible, grouped);
            write_last(levels, offer.low, room, merged, out, to);
            to += (merged.0.len + merged.1.len) as usize;
        }
    }
}

/// Copies the visible elements of lane `number`'s span.
///
/// # Safety
/// As [`write`].
#[inline(always)]
#[track_caller]
unsafe fn copy<K: ListKey>(levels: Levels, visibility: Visibility, number: u32, span: Span, out: Output<K>, to: usize) {
    let lane = lane_id() as usize;
    // SAFETY: the caller's lanes all come here; places that are read are inside the span, and there is room for what is
    // visible.
    unsafe {
        let low = warp::shuffle_idx(FULL_MASK, span.low as u64, number) as usize;
        let count = warp::shuffle_idx(FULL_MASK, span.count() as u64, number) as usize;
        let keys = levels.keys::<K>(number).at(low);
        let values = levels.values_address(number);
        let first = levels.first_visible(number);
        let before = visibility.rank(first, low);
        let mut base = lane;
        while base < count {
            // All are on their way before the first is written.
            let mut loaded = [(K::default(), 0); COPIES as usize];
            for u in 0..COPIES as usize {
                let i = base + 32 * u;
                if i < count {
                    loaded[u] = (keys.read_nc(i), out.value(values, low + i));
                }
            }
            for u in 0..COPIES as usize {
                let i = base + 32 * u;
                if i < count {
                    let (mut at, mut visible) = (to + i, true);
                    if !visibility.is_all() {
                        let (rank, bit) = rank_from(visibility, first, low + i, before);
                        (at, visible) = (to + rank as usize, bit);
                    }
                    if visible {
                        out.put(at, loaded[u].0, loaded[u].1);
                    }
                }
            }
            base += 32 * COPIES as usize;
        }
    }
}

/// How many visible elements there are since `before`, and whether this one is.
///
/// # Safety
/// As [`Visibility::rank_and_bit`].
#[inline(always)]
#[track_caller]
unsafe fn rank_from(visibility: Visibility, first: usize, i: usize, before: u32) -> (u32, bool) {
    // SAFETY: the caller's promise is the same.
    let (rank, visible) = unsafe { visibility.rank_and_bit(first, i) };
    (rank.wrapping_sub(before), visible)
}

/// Brings the visible elements of the parts to shared memory, where `start` says.
///
/// # Safety
/// As for [`write`]; the runs are inside the room.
#[inline(always)]
#[track_caller]
unsafe fn load<K: ListKey>(levels: Levels, visibility: Visibility, part: Part, start: u32, room: Room<K>) {
    let lane = lane_id();
    let len = part.span.count() as u32;
    // SAFETY: the caller's lanes all come here; row `i` belongs to the first level whose rows end after it; one lane
    // per place; the barrier separates writing from what follows.
    unsafe {
        let end = warp::inclusive_scan_add(FULL_MASK, len.div_ceil(32));
        let rows = warp::shuffle_idx(FULL_MASK, end, 31);
        let begin = end - len.div_ceil(32);
        let address = levels.keys_address(lane) + part.span.low as u64 * size_of::<K>() as u64;
        let mut base = 0;
        while base < rows {
            let mut keys = [K::default(); ROWS as usize];
            let mut from = [(0, 0); ROWS as usize];
            for u in 0..ROWS {
                let row = base + u;
                let number = warp::ballot(FULL_MASK, end <= row).count_ones() % 32;
                let i = (row - warp::shuffle_idx(FULL_MASK, begin, number)) * 32 + lane;
                let address = warp::shuffle_idx(FULL_MASK, address, number);
                let here = row < rows && i < warp::shuffle_idx(FULL_MASK, len, number);
                if here {
                    keys[u as usize] = Global::at_address(address, i as usize + 1).read_nc(i as usize);
                }
                let mut to = warp::shuffle_idx(FULL_MASK, start, number);
                let mut visible = here;
                if visibility.is_all() {
                    to += i;
                } else {
                    let low = warp::shuffle_idx(FULL_MASK, part.span.low as u64, number) as usize;
                    let before = warp::shuffle_idx(FULL_MASK, part.before, number);
                    let first = warp::shuffle_idx(FULL_MASK, part.first as u64, number) as usize;
                    if here {
                        let (rank, bit) = rank_from(visibility, first, low + i as usize, before);
                        to += rank;
                        visible = bit;
                    }
                }
                from[u as usize] = (if visible { to } else { u32::MAX }, number << PLACE_BITS | i);
            }
            for u in 0..ROWS as usize {
                let (to, place) = from[u];
                if to != u32::MAX {
                    room.keys.set(to, keys[u]);
                    room.places.set(to, place as u16);
                }
            }
            base += ROWS;
        }
        warp::sync_warp(FULL_MASK);
    }
}

/// Merges the last two runs into the output.
///
/// # Safety
/// As [`path`] and [`write`]; `low` is where the lane's level's part of the chunk begins.
#[inline(always)]
#[track_caller]
unsafe fn write_last<K: ListKey>(
    levels: Levels,
    low: usize,
    room: Room<K>,
    (a, b): (Run, Run),
    out: Output<K>,
    to: usize,
) {
    let lane = lane_id();
    let len = a.len + b.len;
    let value_bytes = 4 * out.value_words as u64;
    // SAFETY: the caller's lanes all come here, and each loop goes as often for all; places are inside the runs, or one
    // after them; barriers separate writing and reading of the bits, and reading this chunk and loading the next.
    unsafe {
        let values = levels.values_address(lane) + low as u64 * value_bytes;
        if lane < WORDS + 2 {
            room.bits.set(lane, 0);
        }
        if lane + 32 < WORDS + 2 {
            room.bits.set(lane + 32, 0);
        }
        let per_lane = len.div_ceil(32) | 1;
        let (begin, end, from_a) = path(room, a, b, per_lane);
        if a.len != 0 && b.len != 0 {
            let a_end = a.start + a.len;
            let (mut at_a, mut at_b) = (a.start + from_a, b.start + begin - from_a);
            let (mut x, mut y) = (room.keys.get(at_a), room.keys.get(at_b));
            let mut bits = 0u64;
            for step in 0..LAST_STEPS {
                if step as u32 >= per_lane {
                    break;
                }
                let take_b = (y < x) | (at_a >= a_end);
                bits |= (take_b as u64) << step;
                if begin + (step as u32) < end {
                    let next = room.keys.get(if take_b { at_b } else { at_a } + 1);
                    at_a += !take_b as u32;
                    at_b += take_b as u32;
                    x = if take_b { x } else { next };
                    y = if take_b { next } else { y };
                }
            }
            // The bits of the lane's places, over up to three words.
            let own = end - begin;
            if own != 0 {
                bits &= u64::MAX >> (64 - own);
                let shift = begin % 32;
                let (lower, upper) = (bits << shift, if shift == 0 { 0 } else { bits >> (64 - shift) });
                room.bits.reduce_or(begin / 32, lower as u32);
                room.bits.reduce_or(begin / 32 + 1, (lower >> 32) as u32);
                if upper != 0 {
                    room.bits.reduce_or(begin / 32 + 2, upper as u32);
                }
            }
            warp::sync_warp(FULL_MASK);
        }
        let bits =
            [room.bits.get_volatile(lane), if lane + 32 < WORDS + 2 { room.bits.get_volatile(lane + 32) } else { 0 }];
        // All places are of the second run if there is no first one.
        let bits = if a.len == 0 { [u32::MAX; 2] } else { bits };
        let ends = warp::inclusive_scan_add(FULL_MASK, bits[0].count_ones());
        let before = [ends - bits[0].count_ones(), warp::inclusive_scan_add(FULL_MASK, bits[1].count_ones())];
        let before = [before[0], before[1] - bits[1].count_ones() + warp::shuffle_idx(FULL_MASK, ends, 31)];
        let mut base = 0;
        while base < len {
            let mut elements = [(K::default(), 0); COPIES as usize];
            for u in 0..COPIES {
                let word = base / 32 + u;
                let (bits, before) = if word < 32 { (bits[0], before[0]) } else { (bits[1], before[1]) };
                let bits = warp::shuffle_idx(FULL_MASK, bits, word % 32);
                let in_b = warp::shuffle_idx(FULL_MASK, before, word % 32) + (bits & warp::lane_mask_lt()).count_ones();
                let i = word * 32 + lane;
                let from_b = (bits >> lane & 1).wrapping_neg();
                let at_a = (a.start + i).wrapping_sub(in_b);
                let at = at_a ^ ((at_a ^ (b.start + in_b)) & from_b);
                if i < len {
                    elements[u as usize] = (room.keys.get(at), room.places.get(at) as u32);
                }
            }
            // All values are on their way before the first is written.
            let mut loaded = [0; COPIES as usize];
            for u in 0..COPIES {
                let place = elements[u as usize].1;
                let values = warp::shuffle_idx(FULL_MASK, values, place >> PLACE_BITS);
                if base + 32 * u + lane < len {
                    loaded[u as usize] = out.value(values, (place & ((1 << PLACE_BITS) - 1)) as usize);
                }
            }
            for u in 0..COPIES {
                let i = base + 32 * u + lane;
                if i < len {
                    out.put(to + i as usize, elements[u as usize].0, loaded[u as usize]);
                }
            }
            base += 32 * COPIES;
        }
        warp::sync_warp(FULL_MASK);
    }
}
