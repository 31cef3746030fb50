//! A warp writes the valid elements of parts of several levels in ascending order of keys: chunk by chunk, each merged
//! in shared memory.
//!
//! A chunk is what all levels have below some key. Each level offers the key that stands as far into its part as the
//! level's share of the chunk goes, and some places further; the least of these keys bounds the chunk, so no level has
//! more elements in it than it offered, and all elements of one key are in one chunk. The levels' elements lie side by
//! side in shared memory, newest level first, and neighbours are merged, in rounds, until one run is left, stable: of
//! equal keys the first is the newest.

use core::ops::Not;

use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{GlobalMut, ShuffleWord};

use crate::lsm::levels::{LevelKey, Levels, Span, upper_bound};

/// A key that travels between lanes.
pub trait RangeKey: LevelKey + ShuffleWord + Element + Not<Output = Self> {}
impl RangeKey for u32 {}
impl RangeKey for u64 {}

/// The sum over the lanes.
///
/// # Safety
/// All lanes of the warp come here together.
#[inline(always)]
#[track_caller]
pub unsafe fn sum(value: usize) -> usize {
    let mut sum = value as u64;
    let mut distance = 16;
    while distance > 0 {
        // SAFETY: the caller's lanes all come here.
        sum += unsafe { warp::shuffle_xor(FULL_MASK, sum, distance) };
        distance /= 2;
    }
    sum as usize
}

/// Elements of a chunk at most.
const CHUNK: usize = 512;
/// What each level offers beyond its share of the chunk, so that small levels, of which a share is an element or two,
/// do not make it short.
const SLACK: usize = 4;
/// What is shared: all 32 levels together offer no more than a chunk.
const SHARED: usize = CHUNK - 32 * SLACK;

/// Words of shared memory for one array of a chunk: a lane looks one place beyond the end.
const ROOM: u32 = (CHUNK as u32 + 1).next_multiple_of(4);

/// Elements that a lane loads before it looks at one.
const AT_ONCE: usize = 4;

/// Bytes of shared memory of a warp: elements, twice; where runs end and begin.
#[must_use]
pub const fn shared_bytes<K: RangeKey>() -> u32 {
    (2 * buffer_bytes::<K>() + 33 * 4 + 32 * 4).next_multiple_of(16)
}

/// Bytes of a chunk's keys and places.
const fn buffer_bytes<K>() -> u32 {
    ROOM * (size_of::<K>() as u32 + 4)
}

/// How shared memory holds elements of a type of keys: a key each, and where it came from, the number of the level in
/// the upper half and the place in its part in the lower one.
pub trait Element: Sized {
    /// Element `i`.
    ///
    /// # Safety
    /// It is inside the buffer, and nothing writes it meanwhile.
    unsafe fn get(bytes: Shared<u8>, i: u32) -> (Self, u32);
    /// The key of element `i`.
    ///
    /// # Safety
    /// As [`get`](Self::get).
    unsafe fn key(bytes: Shared<u8>, i: u32) -> Self;
    /// Sets element `i`.
    ///
    /// # Safety
    /// It is inside the buffer, and nothing else accesses it meanwhile.
    unsafe fn set(bytes: Shared<u8>, i: u32, element: (Self, u32));
}

/// Key and place in one word: the place in the lower half.
impl Element for u32 {
    #[inline(always)]
    #[track_caller]
    unsafe fn get(bytes: Shared<u8>, i: u32) -> (Self, u32) {
        // SAFETY: the caller's promise.
        let word = unsafe { bytes.cast::<u64>().get(i) };
        ((word >> 32) as u32, word as u32)
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn key(bytes: Shared<u8>, i: u32) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::get(bytes, i).0 }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn set(bytes: Shared<u8>, i: u32, (key, place): (Self, u32)) {
        // SAFETY: the caller's promise.
        unsafe { bytes.cast::<u64>().set(i, (key as u64) << 32 | place as u64) }
    }
}

/// Keys, then places.
impl Element for u64 {
    #[inline(always)]
    #[track_caller]
    unsafe fn get(bytes: Shared<u8>, i: u32) -> (Self, u32) {
        // SAFETY: the caller's promise.
        unsafe { (Self::key(bytes, i), bytes.at(ROOM * 8).cast::<u32>().get(i)) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn key(bytes: Shared<u8>, i: u32) -> Self {
        // SAFETY: the caller's promise.
        unsafe { bytes.cast::<u64>().get(i) }
    }

    #[inline(always)]
    #[track_caller]
    unsafe fn set(bytes: Shared<u8>, i: u32, (key, place): (Self, u32)) {
        // SAFETY: the caller's promise.
        unsafe {
            bytes.cast::<u64>().set(i, key);
            bytes.at(ROOM * 8).cast::<u32>().set(i, place);
        }
    }
}

/// The least key of those lanes that have one.
///
/// # Safety
/// All lanes of the warp come here together; at least one has a key.
#[inline(always)]
#[track_caller]
unsafe fn least<K: RangeKey>(key: K, has: bool) -> K {
    let mut least = key;
    let mut has = has;
    let mut distance = 16;
    while distance > 0 {
        // SAFETY: the caller's lanes all come here.
        unsafe {
            let other = warp::shuffle_xor(FULL_MASK, least, distance);
            let other_has = warp::shuffle_xor(FULL_MASK, has as u32, distance) != 0;
            let take = other_has & (!has | (other < least));
            least = if take { other } else { least };
            has |= other_has;
        }
        distance /= 2;
    }
    least
}

/// A warp's shared memory.
#[derive(Clone, Copy)]
struct Room {
    /// The elements.
    from: Shared<u8>,
    /// Where the next round of merges writes.
    to: Shared<u8>,
    /// Where run `i - 1` ends, if runs lie side by side.
    ends: Shared<u32>,
    /// How much further run `i` lies before the first round.
    skips: Shared<u32>,
}

impl Room {
    #[inline(always)]
    fn new<K>(bytes: Shared<u8>) -> Self {
        let buffer = buffer_bytes::<K>();
        let ends = bytes.at(2 * buffer).cast();
        Self { from: bytes, to: bytes.at(buffer), ends, skips: ends.at(33) }
    }
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

/// Writes the valid elements of the lanes' spans, ascending, to `out` from place `to` on.
///
/// # Safety
/// - All lanes of the warp come here together, each with the span of its level, if it has one, otherwise an empty one.
/// - `bytes`: [`shared_bytes`] of shared memory, a multiple of 16 from its start, the warp's own.
/// - The outputs are valid for as many writes as there are valid elements, and nothing else accesses them.
#[inline(always)]
#[track_caller]
pub unsafe fn write<K: RangeKey>(levels: Levels, mut span: Span, bytes: Shared<u8>, out: Output<K>, mut to: usize) {
    let lane = lane_id();
    let room = Room::new::<K>(bytes);
    // SAFETY: the caller's lanes all come here, and what ends loops is the same for all. Places are inside the levels'
    // spans. A chunk has at most `CHUNK` elements. As many elements are written as are valid.
    unsafe {
        loop {
            let left = sum(span.count());
            if left == 0 {
                break;
            }
            // What the level offers; it has more if the chunk does not end the query.
            let part = span.count();
            let offered = if left > CHUNK { part.min(part * SHARED / left + SLACK) } else { part };
            let start = load::<K>(levels, span.low, offered as u32, room);
            let mut taken = offered as u32;
            if left > CHUNK {
                let goes_on = offered < part;
                // The level's next key after what it offers would do as well, and is not in shared memory.
                let last = if taken != 0 { K::key(room.from, start + taken - 1) } else { K::default() };
                let bound = least(last, goes_on);
                taken = lower_bound_in_shared(room.from, start, taken, bound);
                if warp::ballot(FULL_MASK, taken != 0) == 0 {
                    // All levels go on with this key, or a greater one, and one offered nothing else.
                    let first = if offered != 0 { K::key(room.from, start) } else { K::default() };
                    let has = warp::ballot(FULL_MASK, offered != 0 && first == bound);
                    let live = lane == has.trailing_zeros() && !levels.tombstones(lane).is_one(span.low);
                    if live {
                        out.keys.write(to, bound);
                        levels.copy_value(lane, span.low, out.value_words, out.values, to);
                    }
                    to += warp::any(FULL_MASK, live) as usize;
                    if has >> lane & 1 != 0 {
                        span.low = upper_bound(levels.level::<K>(lane).keys, span.low, span.high, bound);
                    }
                    warp::sync_warp(FULL_MASK);
                    continue;
                }
            }
            let (runs, len) = cut(start, taken, room);
            let merged = merge_rounds::<K>(runs, len, room);
            to += write_chunk::<K>(levels, span.low, len, merged, out, to);
            span.low += taken as usize;
        }
    }
}

/// The number of smaller ones among the `len` keys from `start` on.
///
/// # Safety
/// They ascend, and nothing writes them meanwhile.
#[inline(always)]
#[track_caller]
unsafe fn lower_bound_in_shared<K: RangeKey>(elements: Shared<u8>, start: u32, len: u32, key: K) -> u32 {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = (low + high) / 2;
        // SAFETY: `middle` is below `len`.
        let less = unsafe { K::key(elements, start + middle) } < key;
        low = if less { middle + 1 } else { low };
        high = if less { high } else { middle };
    }
    low
}

/// Brings the first `part` elements of each lane's level, from `low` on, to shared memory, side by side; where the
/// lane's begin.
///
/// # Safety
/// As for [`write`]; the parts are inside the levels and together at most [`CHUNK`].
#[inline(always)]
#[track_caller]
unsafe fn load<K: RangeKey>(levels: Levels, low: usize, part: u32, room: Room) -> u32 {
    let lane = lane_id();
    // SAFETY: the caller's lanes all come here, as often for all; place `i` belongs to the first level that ends after
    // it; one lane per place; the barrier separates writing from what follows.
    unsafe {
        let end = warp::inclusive_scan_add(FULL_MASK, part);
        let len = warp::shuffle_idx(FULL_MASK, end, 31);
        let mut base = 0;
        while base < len {
            let mut elements = [(K::default(), 0); AT_ONCE];
            for u in 0..AT_ONCE {
                let i = base + u as u32 * 32 + lane;
                let number = first_above(end, i);
                let start = warp::shuffle_idx(FULL_MASK, end - part, number);
                let first = warp::shuffle_idx(FULL_MASK, low as u64, number) as usize;
                if i < len {
                    elements[u].0 = levels.keys::<K>(number).read_nc(first + (i - start) as usize);
                    elements[u].1 = number << 16 | (i - start);
                }
            }
            for u in 0..AT_ONCE {
                let i = base + u as u32 * 32 + lane;
                if i < len {
                    K::set(room.from, i, elements[u]);
                }
            }
            base += AT_ONCE as u32 * 32;
        }
        warp::sync_warp(FULL_MASK);
        end - part
    }
}

/// The first lane whose `value` is above `i`, or lane 31; values ascend.
///
/// # Safety
/// All lanes of the warp come here together.
#[inline(always)]
#[track_caller]
pub unsafe fn first_above(value: u32, i: u32) -> u32 {
    let mut lane = 0;
    let mut step = 16;
    while step > 0 {
        // SAFETY: the caller's lanes all come here; lane numbers stay below 32.
        let before = unsafe { warp::shuffle_idx(FULL_MASK, value, lane + step - 1) };
        lane += if before <= i { step } else { 0 };
        step /= 2;
    }
    lane
}

/// Says where the runs are that take part: the first `taken` elements of each lane's level, which begin at `start`. The
/// numbers of runs and of elements.
///
/// # Safety
/// [`load`] has run; all lanes of the warp come here together.
#[inline(always)]
#[track_caller]
unsafe fn cut(start: u32, taken: u32, room: Room) -> (u32, u32) {
    let lane = lane_id();
    // SAFETY: the caller's lanes all come here; there are at most 32 runs; the barrier separates writing from reading.
    unsafe {
        let end = warp::inclusive_scan_add(FULL_MASK, taken);
        let occupied = warp::ballot(FULL_MASK, taken != 0);
        let run = (occupied & warp::lane_mask_lt()).count_ones();
        if taken != 0 {
            room.ends.set(run + 1, end);
            room.skips.set(run, start - (end - taken));
        }
        if lane == 0 {
            room.ends.set(0, 0);
        }
        let len = warp::shuffle_idx(FULL_MASK, end, 31);
        warp::sync_warp(FULL_MASK);
        (occupied.count_ones(), len)
    }
}

/// Merges neighbouring runs, in rounds, until there is one; where it is, and how much further than the start.
///
/// # Safety
/// [`cut`] has run, and told these numbers; all lanes of the warp come here together.
#[inline(always)]
#[track_caller]
unsafe fn merge_rounds<K: RangeKey>(runs: u32, len: u32, mut room: Room) -> (Shared<u8>, u32) {
    let per_lane = len.div_ceil(32);
    let first = (lane_id() * per_lane).min(len);
    let end = (first + per_lane).min(len);
    let mut width = 1;
    // SAFETY: places are below `len`, or one beyond their run, for which there is room; each lane writes places of its
    // own; barriers separate the rounds.
    unsafe {
        if runs == 1 {
            return (room.from, room.skips.get(0));
        }
        while width < runs {
            let border = |run: u32| room.ends.get(run.min(runs));
            // Runs lie side by side after the first round.
            let skip = |run: u32| if width == 1 && run < runs { room.skips.get(run) } else { 0 };
            let mut pair = 0;
            while border(pair + 2 * width) <= first && border(pair + 2 * width) < len {
                pair += 2 * width;
            }
            let mut i = first;
            while i < end {
                // The lane's part of this pair: `i` to `part_end`, and from there on the next pair's.
                let (begin, middle, pair_end) = (border(pair), border(pair + width), border(pair + 2 * width));
                let (skip_a, skip_b) = (skip(pair), skip(pair + width));
                let from_a = crossing::<K>(
                    room.from,
                    (begin + skip_a, middle - begin),
                    (middle + skip_b, pair_end - middle),
                    i - begin,
                );
                let (mut at_a, mut at_b) = (begin + skip_a + from_a, middle + skip_b + (i - begin - from_a));
                let (a_end, b_end) = (middle + skip_a, pair_end + skip_b);
                let (mut x, mut y) = (K::get(room.from, at_a), K::get(room.from, at_b));
                let part_end = end.min(pair_end);
                while i < part_end {
                    let take_a = (at_b >= b_end) | ((at_a < a_end) & (x.0 <= y.0));
                    K::set(room.to, i, if take_a { x } else { y });
                    let next = if take_a { at_a } else { at_b } + 1;
                    let element = K::get(room.from, next);
                    at_a = if take_a { next } else { at_a };
                    at_b = if take_a { at_b } else { next };
                    x = if take_a { element } else { x };
                    y = if take_a { y } else { element };
                    i += 1;
                }
                pair += 2 * width;
            }
            warp::sync_warp(FULL_MASK);
            room = Room { from: room.to, to: room.from, ..room };
            width *= 2;
        }
    }
    (room.from, 0)
}

/// How many of the first `diagonal` elements of the merge of two runs, each a place and a length, come from the first.
///
/// # Safety
/// The runs are there, nothing writes them meanwhile, and `diagonal` is at most the sum of their lengths.
#[inline(always)]
#[track_caller]
unsafe fn crossing<K: RangeKey>(
    elements: Shared<u8>,
    (a, a_len): (u32, u32),
    (b, b_len): (u32, u32),
    diagonal: u32,
) -> u32 {
    let mut low = diagonal.saturating_sub(b_len);
    let mut high = diagonal.min(a_len);
    while low < high {
        let middle = (low + high) / 2;
        // SAFETY: `low <= middle < high` keeps both places inside their runs.
        let goes_on = unsafe { K::key(elements, a + middle) <= K::key(elements, b + diagonal - 1 - middle) };
        low = if goes_on { middle + 1 } else { low };
        high = if goes_on { high } else { middle };
    }
    low
}

/// Writes the valid elements of the merged chunk, which begins some places after the start of a buffer; how many they
/// are.
///
/// # Safety
/// As for [`write`]; the chunk of `len` elements is merged, and `low` says where each lane's part of it begins.
#[inline(always)]
#[track_caller]
unsafe fn write_chunk<K: RangeKey>(
    levels: Levels,
    low: usize,
    len: u32,
    (elements, skip): (Shared<u8>, u32),
    out: Output<K>,
    to: usize,
) -> usize {
    let lane = lane_id();
    let mut written = 0;
    let mut base = 0;
    // SAFETY: the caller's lanes all come here, and `len` is the same for all; places are below `len` where they are
    // read; the barrier at the end separates reading this chunk and loading the next.
    unsafe {
        while base < len {
            let i = base + lane;
            let here = i < len;
            let at = skip + if here { i } else { 0 };
            let (key, place) = K::get(elements, at);
            let number = place >> 16;
            let element = warp::shuffle_idx(FULL_MASK, low as u64, number) as usize + (place & 0xffff) as usize;
            let newest = here && (i == 0 || K::key(elements, at - 1) != key);
            let valid = newest && !levels.tombstones(number).is_one(element);
            let all = warp::ballot(FULL_MASK, valid);
            if valid {
                let to = to + written + (all & warp::lane_mask_lt()).count_ones() as usize;
                out.keys.write(to, key);
                levels.copy_value(number, element, out.value_words, out.values, to);
            }
            written += all.count_ones() as usize;
            base += 32;
        }
        warp::sync_warp(FULL_MASK);
    }
    written
}
