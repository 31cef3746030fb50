//! The *order* of a tree's elements: of each element, in ascending order of keys and of equal keys the newest first, one
//! byte that says which level it is of and whether it is [visible](super::visibility). With it a range is listed without
//! comparing keys: its elements are side by side in the order, and where they are in their levels follows from counting.
//!
//! ```text
//!    7        6     5   4                0
//!  +---------+---------+------------------+
//!  | visible |    0    | number of level  |
//!  +---------+---------+------------------+
//! ```
//!
//! The place of a range's first element in the order is the sum of those of all levels. The order is cut into *pieces*,
//! and for each piece and level there is a *split*: how many elements of all levels before this one, and of this one
//! before the piece, there are. So a long range can be listed by many warps, a piece each.
//!
//! Merging is done once for all queries, and not for each: the levels' keys are read once more when the order is made,
//! and it takes one byte per element.

use core::ops::Not;

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, ShuffleWord};

use crate::lsm::levels::{LevelKey, Levels, Span};
use crate::lsm::visibility::Visibility;

/// Elements of a piece.
pub const PIECE: usize = 8192;
/// The bit of visible elements.
pub const VISIBLE: u32 = 0x80;
/// The bits of the level's number.
pub const NUMBER: u32 = 31;
/// Words of the list of long queries for each: its number; and where its pieces begin among those of all of them, or
/// where its own order begins.
pub const LONG_WORDS: usize = 2;

/// Rows of 32 elements that are on their way at a time.
const ROWS: usize = 4;

/// A key that travels between lanes.
pub trait RangeKey: LevelKey + ShuffleWord + Not<Output = Self> {}
impl RangeKey for u32 {}
impl RangeKey for u64 {}

/// The pieces in which `total` elements lie, at least one, of which the first is element `first` of the order.
#[inline(always)]
pub const fn pieces(first: u64, total: u64) -> u64 {
    (first + total).div_ceil(PIECE as u64) - first / PIECE as u64
}

/// The lanes whose elements are of the same level as the lane's; and those whose elements are of the level that has the
/// lane's number. Lanes without an element have none.
///
/// # Safety
/// All lanes of the warp come here together, with the same number of levels, `count`.
#[inline(always)]
#[track_caller]
pub unsafe fn alike(number: u32, has_element: bool, count: u32) -> (u32, u32) {
    let lane = lane_id();
    // SAFETY: the caller's lanes all come here, and to the last bit if one does.
    unsafe {
        let active = warp::ballot(FULL_MASK, has_element);
        let (mut same, mut of_lane) = (active, active);
        for bit in 0..4 {
            let set = warp::ballot(FULL_MASK, number >> bit & 1 != 0);
            same &= if number >> bit & 1 != 0 { set } else { !set };
            of_lane &= if lane >> bit & 1 != 0 { set } else { !set };
        }
        if count > 16 {
            let set = warp::ballot(FULL_MASK, number >> 4 & 1 != 0);
            same &= if number >> 4 & 1 != 0 { set } else { !set };
            of_lane &= if lane >> 4 & 1 != 0 { set } else { !set };
        } else {
            of_lane = if lane < 16 { of_lane } else { 0 };
        }
        (same, of_lane)
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

impl<K: RangeKey> Output<K> {
    /// The value at an address, in the lower bits of a word.
    ///
    /// # Safety
    /// It is there, and nothing writes it meanwhile.
    #[inline(always)]
    #[track_caller]
    unsafe fn value(self, address: u64) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            if self.value_words == 1 {
                Global::<u32>::at_address(address, 1).read_nc(0) as u64
            } else if self.value_words == 2 {
                Global::<u64>::at_address(address, 1).read_nc(0)
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

/// Writes the visible ones of `len` elements, whose `order` this is, to `out` from place `to` on.
///
/// # Safety
/// - All lanes of the warp come here together; lanes below `count` have at `place` where the first of these elements is
///   that their level has.
/// - The order is that of the levels' elements, valid for `len` reads, and nothing writes it meanwhile.
/// - The outputs are valid for as many writes as there are visible elements, and nothing else accesses them.
#[inline(always)]
#[track_caller]
pub unsafe fn write<K: RangeKey>(
    levels: Levels,
    count: u32,
    order: Global<u8>,
    len: usize,
    place: usize,
    out: Output<K>,
    mut to: usize,
) {
    let lane = lane_id();
    let (key_bytes, value_bytes) = (size_of::<K>() as u64, 4 * out.value_words as u64);
    // The lane's level's next element: where its key is, and where its value is.
    let (mut keys, mut values) = (0, 0);
    if lane < count {
        keys = levels.keys_address(lane) + place as u64 * key_bytes;
        values = levels.values_address(lane) + place as u64 * value_bytes;
    }
    let mut base = lane as usize;
    // SAFETY: the caller's lanes all come here, and the loop goes as often for all; an element that is read is in its
    // level, since the order says so; as many are written as are visible.
    unsafe {
        while base - (lane as usize) < len {
            let mut bytes = [0u32; ROWS];
            for u in 0..ROWS {
                if base + 32 * u < len {
                    bytes[u] = order.read(base + 32 * u) as u32;
                }
            }
            // All are on their way before the first is written.
            let mut loaded = [(K::default(), 0); ROWS];
            let mut places = [usize::MAX; ROWS];
            for u in 0..ROWS {
                let number = bytes[u] & NUMBER;
                let (same, of_lane) = alike(number, base + 32 * u < len, count);
                let before = (same & warp::lane_mask_lt()).count_ones() as u64;
                let key = warp::shuffle_idx(FULL_MASK, keys, number) + before * key_bytes;
                let value = warp::shuffle_idx(FULL_MASK, values, number) + before * value_bytes;
                let passed = of_lane.count_ones() as u64;
                keys += passed * key_bytes;
                values += passed * value_bytes;
                // A lane without an element has no bits.
                let visible = bytes[u] & VISIBLE != 0;
                let all = warp::ballot(FULL_MASK, visible);
                if visible {
                    places[u] = to + (all & warp::lane_mask_lt()).count_ones() as usize;
                    loaded[u] = (Global::at_address(key, 1).read_nc(0), out.value(value));
                }
                to += all.count_ones() as usize;
            }
            for u in 0..ROWS {
                if places[u] != usize::MAX {
                    out.put(places[u], loaded[u].0, loaded[u].1);
                }
            }
            base += 32 * ROWS;
        }
    }
}

/// Copies the visible elements of a span of level `number` to `out` from place `to` on.
///
/// # Safety
/// As [`write()`]; `number`, `span` and `to` are the same for all lanes; it is known which elements are visible.
#[inline(always)]
#[track_caller]
pub unsafe fn copy<K: RangeKey>(
    levels: Levels,
    visibility: Visibility,
    number: u32,
    span: Span,
    out: Output<K>,
    to: usize,
) {
    let (low, count) = (span.low, span.count());
    // SAFETY: places that are read are inside the span, and there is room for what is visible.
    unsafe {
        let keys = levels.keys::<K>(number).at(low);
        let value_bytes = 4 * out.value_words as u64;
        let values = levels.values_address(number) + low as u64 * value_bytes;
        let first = levels.first_visible(number);
        let before = visibility.rank(first, low);
        let mut base = lane_id() as usize;
        while base < count {
            // All are on their way before the first is written.
            let mut loaded = [(K::default(), 0); ROWS];
            for u in 0..ROWS {
                let i = base + 32 * u;
                if i < count {
                    loaded[u] = (keys.read_nc(i), out.value(values + i as u64 * value_bytes));
                }
            }
            for u in 0..ROWS {
                let i = base + 32 * u;
                if i < count {
                    let (mut at, mut visible) = (to + i, true);
                    if !visibility.is_all() {
                        let (rank, bit) = visibility.rank_and_bit(first, low + i);
                        (at, visible) = (to + rank.wrapping_sub(before) as usize, bit);
                    }
                    if visible {
                        out.put(at, loaded[u].0, loaded[u].1);
                    }
                }
            }
            base += 32 * ROWS;
        }
    }
}
