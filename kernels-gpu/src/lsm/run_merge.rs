//! Runs in a warp's shared memory, and how they are merged there: what [`super::runs`] does between loading and
//! writing.
//!
//! Keys are all different, so the order of equal ones does not matter, and runs can be merged in any order. They lie
//! side by side, the shortest first. Runs that have 32 elements together are ordered by comparing all with all. Then
//! the shortest run is merged with the next one, in place, until two are left, so that with levels that double, an
//! element takes part in two merges on average.
//!
//! A merge: each lane finds where its part of the result begins by the merge path, and goes on element by element
//! (Odeh, Green, Mwassi, Shmueli, Birk, "Merge Path", 2012). A run ends with the greatest key, which no comparison
//! passes.

use core::ops::Not;

use warpset_simt::ShuffleWord;
use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK, lane_id};

use crate::lsm::levels::LevelKey;

/// A key that travels between lanes and lies in shared memory.
pub trait ListKey: LevelKey + ShuffleWord + Not<Output = Self> {}
impl ListKey for u32 {}
impl ListKey for u64 {}

/// Elements of a chunk at most.
pub const CHUNK: usize = 1120;
/// Elements of all runs but the longest at most: what a merge in place holds in registers.
pub const SHORTER: usize = CHUNK / 2;
/// Places of shared memory: each run ends with a key that is none.
pub const ROOM: u32 = (CHUNK as u32 + 34).next_multiple_of(4);
/// Steps of a lane in a merge in place: odd, so that lanes write to different banks.
pub const STEPS: usize = SHORTER.div_ceil(32) | 1;
const _: () = assert!(STEPS * 32 >= SHORTER);
/// Words of bits: one per place of the last merge's result, and what the last lane's bits may reach past them.
pub const WORDS: u32 = (CHUNK as u32).div_ceil(32);
/// Bits of a place that say where in its level's part of the chunk an element stands; the others are the level's
/// number.
pub const PLACE_BITS: u32 = 11;
const _: () = assert!(CHUNK < 1 << PLACE_BITS);

/// The least key of those lanes that have one; any key if none has.
///
/// # Safety
/// All lanes of the warp come here together.
#[inline(always)]
#[track_caller]
pub unsafe fn least<K: ListKey>(key: K, has: bool) -> K {
    let mut least = if has { key } else { !K::default() };
    let mut distance = 16;
    while distance > 0 {
        // SAFETY: the caller's lanes all come here.
        let other = unsafe { warp::shuffle_xor(FULL_MASK, least, distance) };
        least = if other < least { other } else { least };
        distance /= 2;
    }
    least
}

/// A warp's shared memory.
#[derive(Clone, Copy)]
pub struct Room<K> {
    /// Bits of the last merge, one per place.
    pub bits: Shared<u32>,
    /// The keys of the runs.
    pub keys: Shared<K>,
    /// Level and place of each.
    pub places: Shared<u16>,
}

impl<K> Room<K> {
    /// Lays the room out at `bytes`, which has space for [`WORDS`] and two more words, and [`ROOM`] keys and places.
    #[inline(always)]
    pub fn new(bytes: Shared<u8>) -> Self {
        let keys = bytes.at((WORDS + 2).next_multiple_of(4) * 4).cast::<K>();
        Self { bits: bytes.cast(), keys, places: keys.at(ROOM).cast() }
    }
}

/// A run in shared memory.
#[derive(Clone, Copy)]
pub struct Run {
    /// Its first place.
    pub start: u32,
    /// Elements.
    pub len: u32,
}

/// Orders the lanes' runs by length: where the lane's run begins, and the elements of the first runs that have 32
/// together, at place 0 and side by side. The others have a place between them.
///
/// # Safety
/// All lanes of the warp come here together; only the first `count` have elements.
#[inline(always)]
#[track_caller]
pub unsafe fn arrange(len: u32, count: u32) -> (u32, u32) {
    let lane = lane_id();
    let (mut before, mut runs) = (0, 0);
    for other in 0..count {
        // SAFETY: the caller's lanes all come here.
        let other_len = unsafe { warp::shuffle_idx(FULL_MASK, len, other) };
        let is_before = (other_len < len) | ((other_len == len) & (other < lane));
        before += if is_before { other_len } else { 0 };
        runs += is_before as u32;
    }
    // SAFETY: as above; a run outside the group comes after all of the group.
    unsafe {
        let in_group = before + len <= 32;
        let group = warp::ballot(FULL_MASK, in_group && lane < count).count_ones();
        let grouped = warp::reduce_max(FULL_MASK, if in_group { before + len } else { 0 });
        (if in_group { before } else { before + (runs - group) + 1 }, grouped)
    }
}

/// The number of keys not greater among the `len` keys from `start` on.
///
/// # Safety
/// They ascend, and nothing writes them meanwhile.
#[inline(always)]
#[track_caller]
pub unsafe fn upper_bound_in_shared<K: ListKey>(keys: Shared<K>, start: u32, len: u32, key: K) -> u32 {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = (low + high) / 2;
        // SAFETY: `middle` is below `len`.
        let not_greater = unsafe { keys.get(start + middle) } <= key;
        low = if not_greater { middle + 1 } else { low };
        high = if not_greater { high } else { middle };
    }
    low
}

/// Merges all runs but the longest; that merge's result, and the longest.
///
/// # Safety
/// All lanes of the warp come here together, each with its run as [`arrange`] placed it when it had `arranged`
/// elements, of which it may have lost the last; `grouped` is what the group had.
#[inline(always)]
#[track_caller]
pub unsafe fn merge_all<K: ListKey>(room: Room<K>, run: Run, arranged: u32, grouped: u32) -> (Run, Run) {
    let lane = lane_id();
    // SAFETY: the caller's lanes all come here, and each loop goes as often for all; runs are inside the room.
    unsafe {
        // The group begins at place 0, and has no gaps until runs lose elements.
        let in_group = run.start + arranged <= grouped;
        let mut merged = Run { start: 0, len: 0 };
        if grouped != 0 {
            // Which places of the group still count.
            let mut lost = 0u32;
            if in_group && arranged > run.len {
                lost = (u32::MAX >> (32 - (arranged - run.len))) << (run.start + run.len);
            }
            let lost = warp::reduce_or(FULL_MASK, lost);
            let kept = (u32::MAX >> (32 - grouped)) & !lost;
            merged.len = kept.count_ones();
            order_group(room, grouped, kept);
        }
        let mut left = warp::ballot(FULL_MASK, !in_group && run.len != 0);
        loop {
            if left == 0 {
                // The place after an empty run is written too.
                return (merged, Run { start: merged.start + merged.len + 1, len: 0 });
            }
            // The next run is the one that begins first.
            let start = warp::reduce_min(FULL_MASK, if left >> lane & 1 != 0 { run.start } else { u32::MAX });
            let next = warp::ballot(FULL_MASK, left >> lane & 1 != 0 && run.start == start).trailing_zeros() % 32;
            left &= !(1 << next);
            let next = Run { start, len: warp::shuffle_idx(FULL_MASK, run.len, next) };
            if left == 0 {
                return (merged, next);
            }
            if merged.len == 0 {
                merged = next;
            } else {
                merged = merge_in_place(room, merged, next);
            }
        }
    }
}

/// Puts the elements at the places of `kept`, which are below `len`, at most 32, in order, from place 0 on.
///
/// # Safety
/// All lanes of the warp come here together; the elements are there.
#[inline(always)]
#[track_caller]
pub unsafe fn order_group<K: ListKey>(room: Room<K>, len: u32, kept: u32) {
    let lane = lane_id();
    // SAFETY: the caller's lanes all come here; places are below `len`, and each lane writes one of its own, because
    // keys differ; barriers separate reading and writing.
    unsafe {
        let is_kept = kept >> lane & 1 != 0;
        let (mut key, mut place) = (K::default(), 0);
        if lane < len {
            (key, place) = (room.keys.get(lane), room.places.get(lane));
        }
        let mut rank = 0;
        for other in 0..len {
            let smaller = warp::shuffle_idx(FULL_MASK, key, other) < key;
            rank += (smaller & (kept >> other & 1 != 0)) as u32;
        }
        warp::sync_warp(FULL_MASK);
        if is_kept {
            room.keys.set(rank, key);
            room.places.set(rank, place);
        }
        warp::sync_warp(FULL_MASK);
    }
}

/// Where the lane's part of a merge begins and ends in the result, and how many elements of the first run are before
/// it.
///
/// # Safety
/// All lanes of the warp come here together, and the runs are there; each has a place after it, which nothing uses.
#[inline(always)]
#[track_caller]
pub unsafe fn path<K: ListKey>(room: Room<K>, a: Run, b: Run, per_lane: u32) -> (u32, u32, u32) {
    let lane = lane_id();
    // SAFETY: the caller's promise; `low <= middle < high` keeps both places inside their runs.
    unsafe {
        if lane == 0 {
            room.keys.set(a.start + a.len, !K::default());
            room.keys.set(b.start + b.len, !K::default());
        }
        warp::sync_warp(FULL_MASK);
        let begin = (lane * per_lane).min(a.len + b.len);
        let end = (begin + per_lane).min(a.len + b.len);
        let (mut low, mut high) = (begin.saturating_sub(b.len), begin.min(a.len));
        while low < high {
            let middle = (low + high) / 2;
            let goes_on = room.keys.get(a.start + middle) < room.keys.get(b.start + begin - 1 - middle);
            low = if goes_on { middle + 1 } else { low };
            high = if goes_on { high } else { middle };
        }
        (begin, end, low)
    }
}

/// Merges two runs, of at most [`SHORTER`] elements together; the result begins where the first begins.
///
/// # Safety
/// As [`path`]; the first run lies before the second.
#[inline(always)]
#[track_caller]
pub unsafe fn merge_in_place<K: ListKey>(room: Room<K>, a: Run, b: Run) -> Run {
    let per_lane = (a.len + b.len).div_ceil(32) | 1;
    // SAFETY: the caller's promise is the same. As many steps as are needed, from few choices, so that loops unroll.
    unsafe {
        match per_lane {
            0..=3 => merge_steps::<K, 3>(room, a, b, per_lane),
            4..=5 => merge_steps::<K, 5>(room, a, b, per_lane),
            6..=9 => merge_steps::<K, 9>(room, a, b, per_lane),
            _ => merge_steps::<K, STEPS>(room, a, b, per_lane),
        }
    }
}

/// [`merge_in_place`] with `per_lane` steps, at most `MOST`, per lane.
///
/// # Safety
/// As [`merge_in_place`].
#[inline(always)]
#[track_caller]
unsafe fn merge_steps<K: ListKey, const MOST: usize>(room: Room<K>, a: Run, b: Run, per_lane: u32) -> Run {
    let mut keys = [K::default(); MOST];
    let mut places = [0u16; MOST];
    // SAFETY: the caller's lanes all come here; places are inside the runs, or one after them; each lane writes places
    // of its own, between barriers.
    unsafe {
        let (begin, end, from_a) = path(room, a, b, per_lane);
        let a_end = a.start + a.len;
        let (mut at_a, mut at_b) = (a.start + from_a, b.start + begin - from_a);
        let (mut x, mut y) = (room.keys.get(at_a), room.keys.get(at_b));
        for step in 0..MOST {
            if begin + (step as u32) < end {
                let take_b = (y < x) | (at_a >= a_end);
                let at = if take_b { at_b } else { at_a };
                keys[step] = if take_b { y } else { x };
                places[step] = room.places.get(at);
                let next = room.keys.get(at + 1);
                at_a += !take_b as u32;
                at_b += take_b as u32;
                x = if take_b { x } else { next };
                y = if take_b { next } else { y };
            }
        }
        warp::sync_warp(FULL_MASK);
        for step in 0..MOST {
            if begin + (step as u32) < end {
                room.keys.set(a.start + begin + step as u32, keys[step]);
                room.places.set(a.start + begin + step as u32, places[step]);
            }
        }
        warp::sync_warp(FULL_MASK);
    }
    Run { start: a.start, len: a.len + b.len }
}
