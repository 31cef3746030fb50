//! The *order* of a tree's elements: how its levels interleave, in ascending order of keys and of equal keys the newest
//! first. With it a range is found by one search and not by one in each level, and listed without comparing keys.
//!
//! Each element has an *entry*, from which follows where it stands in which level. 32 elements are a *strip*, whose
//! *row* says how many elements of each level the piece has before it; 1024 are a *piece*, whose *split* says where its
//! elements begin in each level. So element `i` is at place `split + row + rank` of its level.
//!
//! ```text
//!   15           9 8              5 4            0
//!  +--------------+----------------+--------------+
//!  |   fraction   | level's number | rank         |    the number takes 4 bits up to 16 levels, otherwise 5
//!  +--------------+----------------+--------------+
//! ```
//!
//! The *rank* is how many elements of its level the strip has before it. The *fraction* is how far the key is from the
//! first key of its strip to that of the next, in so many steps that few elements of a strip have the same. The strips'
//! first keys lie side by side, with an index as levels have one ([`nodes`](super::nodes)): it leads to the strip, and
//! the fractions to the element, whose key is read only if its fraction is that of the key that is looked for.
//!
//! Which elements are visible, words say as for levels ([`visibility`](super::visibility)), in the sequence of the
//! order.

use core::marker::PhantomData;
use core::ops::Not;

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, ShuffleWord};

use crate::lsm::levels::{LevelKey, Levels, Span};
use crate::lsm::nodes::Index;
use crate::lsm::visibility::Visibility;

/// Elements of a strip.
pub const STRIP: usize = 32;
/// Elements of a piece.
pub const PIECE: usize = 1024;
/// Elements of a long range that a warp lists at a time.
pub const TASK: usize = 4096;
/// Bits of a rank.
pub const RANK_BITS: u32 = STRIP.trailing_zeros();
/// Words of the list of long queries for each: its number; and where its tasks begin among those of all of them, or
/// where its own elements begin.
pub const LONG_WORDS: usize = 2;
/// In the word of an element of a query's own order: it is visible.
pub const VISIBLE: u64 = 1;
/// Where such a word has the level's number, and where the place in the level.
pub const NUMBER_SHIFT: u32 = 1;
/// The place takes the bits above.
pub const PLACE_SHIFT: u32 = 6;

/// Rows of 32 elements that are on their way at a time.
const ROWS: usize = 4;

/// A key that travels between lanes.
pub trait RangeKey: LevelKey + ShuffleWord + Not<Output = Self> {
    /// How far the key is from `from`, which is not above it, to `to`, which is not below it: a number of at most
    /// `bits` bits, that ascends with the key.
    #[inline(always)]
    fn fraction(self, from: Self, to: Self, bits: u32) -> u32 {
        self.steps_from(from, to.bits_from(from).saturating_sub(bits))
    }
}
impl<K: LevelKey + ShuffleWord + Not<Output = K>> RangeKey for K {}

/// Bits of an entry that have the number of a level.
#[inline(always)]
pub const fn number_bits(levels: u32) -> u32 {
    if levels <= 16 { 4 } else { 5 }
}

/// Where the parts of an order begin, and how many elements it has.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct OrderTable {
    /// 16 bits per element, in whole strips.
    pub entries: u64,
    /// 16 bits per strip and level, [`width`](Self::width) for each strip.
    pub rows: u64,
    /// 32 bits per piece and level, as many for each piece.
    pub splits: u64,
    /// The first key of each strip, and the last key.
    pub firsts: u64,
    /// The index of all of these but the last.
    pub index: u64,
    /// Words of visibility, or 0 if all elements are visible.
    pub visible: u64,
    /// Elements.
    pub len: u64,
    /// Levels.
    pub levels: u32,
    /// As a power of two, how many levels rows and splits have room for.
    pub width_bits: u32,
}

impl OrderTable {
    /// The table of an order that has no memory yet: of `len` elements, fewer than 2^32, in so many levels.
    pub const fn new(len: u64, levels: u32) -> Self {
        let width_bits = levels.next_power_of_two().trailing_zeros();
        Self { entries: 0, rows: 0, splits: 0, firsts: 0, index: 0, visible: 0, len, levels, width_bits }
    }

    /// Levels that rows and splits have room for.
    #[inline(always)]
    pub const fn width(self) -> usize {
        1 << self.width_bits
    }
}

/// The order of a tree's elements.
#[derive(Clone, Copy)]
pub struct Order<K> {
    table: OrderTable,
    levels: Levels,
    number_bits: u32,
    key: PhantomData<K>,
}

#[cfg(feature = "bodies")]
impl<K: RangeKey> Order<K> {
    /// The order that begins where `table` says, of these levels.
    ///
    /// # Safety
    /// While it is used, it is as `lsm_order` and `lsm_order_splits` left it for the levels, the index and the words of
    /// visibility are made for it, and nothing writes any of them.
    #[inline(always)]
    pub unsafe fn new(table: OrderTable, levels: Levels) -> Self {
        Self { table, levels, number_bits: number_bits(table.levels), key: PhantomData }
    }

    /// Which elements are visible: ranks and bits by the first word, number 0.
    #[inline(always)]
    pub fn visibility(self) -> Visibility {
        let words = Global::at_address(self.table.visible, self.table.len as usize / STRIP + 2);
        // SAFETY: `new`'s caller vouches for the words, if there are any.
        unsafe { Visibility::new(words, self.table.visible == 0) }
    }

    /// The entry of element `i`.
    ///
    /// # Safety
    /// There is one.
    #[inline(always)]
    #[track_caller]
    unsafe fn entry(self, i: u32) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { Global::<u16>::at_address(self.table.entries, i as usize + 1).read_nc(i as usize) as u32 }
    }

    /// The number of the level of element `i`, whose entry this is, and its place there.
    ///
    /// # Safety
    /// It is.
    #[inline(always)]
    #[track_caller]
    unsafe fn element(self, i: u32, entry: u32) -> (u32, u32) {
        let number = entry >> RANK_BITS & ((1 << self.number_bits) - 1);
        let row = (((i / STRIP as u32) << self.table.width_bits) + number) as usize;
        let split = (((i / PIECE as u32) << self.table.width_bits) + number) as usize;
        // SAFETY: there is a row for each strip and a split for each piece.
        unsafe {
            let row = Global::<u16>::at_address(self.table.rows, row + 1).read_nc(row);
            let split = Global::<u32>::at_address(self.table.splits, split + 1).read_nc(split);
            (number, split + row as u32 + (entry & (STRIP as u32 - 1)))
        }
    }

    /// The elements with keys from `first` to `last`.
    #[inline(always)]
    pub fn between(self, first: K, last: K) -> Span {
        if first > last {
            return Span::EMPTY;
        }
        let strips = (self.table.len as usize).div_ceil(STRIP);
        let firsts = Global::<K>::at_address(self.table.firsts, strips + 1);
        // SAFETY: `new`'s caller vouches for the keys, their index, and the rest.
        unsafe {
            let strips = Index::new(firsts, strips, self.table.index).between(first, last);
            Span { low: self.before::<false>(strips.low, first), high: self.before::<true>(strips.high, last) }
        }
    }

    /// The number of elements that belong before `key`, with `OR_EQUAL` those that have it too, where that is so of the
    /// first element of that many strips.
    ///
    /// # Safety
    /// It is so of that many strips and no more.
    #[inline(always)]
    unsafe fn before<const OR_EQUAL: bool>(self, strips: usize, key: K) -> usize {
        if strips == 0 {
            return 0;
        }
        // All elements of earlier strips belong before the key, none of later ones does.
        let strip = strips - 1;
        let begin = strip * STRIP;
        let len = (self.table.len as usize - begin).min(STRIP) as u32;
        let firsts = Global::<K>::at_address(self.table.firsts, strip + 2);
        let entries = Global::<u32>::at_address(self.table.entries, (begin + STRIP) / 2).at(begin / 2);
        // SAFETY: there is a first key for each strip, and one more; entries come in whole strips, which begin at
        // multiples of 64 bytes; an element whose key is read is one of the strip.
        unsafe {
            let (from, to) = (firsts.read_nc(strip), firsts.read_nc(strip + 1));
            if key > to {
                return begin + len as usize; // Only in the last strip.
            }
            let shift = RANK_BITS + self.number_bits;
            let fraction = key.fraction(from, to, 16 - shift);
            let (least, end) = (fraction << shift, (fraction + 1) << shift);
            let (mut low, mut high) = (0, 0);
            for i in 0..STRIP / 8 {
                let words = entries.read4_nc(4 * i);
                for u in 0..4 {
                    low += (words[u] & 0xffff < least) as u32 + (words[u] >> 16 < least) as u32;
                    high += ((words[u] & 0xffff) < end) as u32 + (words[u] >> 16 < end) as u32;
                }
            }
            // What comes after the last element is not one.
            high = high.min(len);
            while low < high {
                let middle = (low + high) / 2;
                let i = begin as u32 + middle;
                let (number, place) = self.element(i, self.entry(i));
                let other = self.levels.keys::<K>(number).read_nc(place as usize);
                let goes_before = other < key || OR_EQUAL & (other == key);
                low = if goes_before { middle + 1 } else { low };
                high = if goes_before { high } else { middle };
            }
            begin + low as usize
        }
    }

    /// Copies those of the elements `at` these places of the order that are wanted and visible, to where `base` and the
    /// number of visible elements before them in the order add up to. The others are read as well: without branches all
    /// reads of a kind are on their way together.
    ///
    /// # Safety
    /// The order has all these elements; the outputs are valid where those go that are copied, and nothing else
    /// accesses them.
    #[inline(always)]
    #[track_caller]
    unsafe fn copy(self, at: [u32; ROWS], mut is_wanted: [bool; ROWS], base: [usize; ROWS], out: Output<K>) {
        let visibility = self.visibility();
        let mut entries = [0; ROWS];
        let mut elements = [(0, 0); ROWS];
        let mut to = base;
        // SAFETY: the caller's promise.
        unsafe {
            for u in 0..ROWS {
                entries[u] = self.entry(at[u]);
            }
            if visibility.is_all() {
                for u in 0..ROWS {
                    to[u] = to[u].wrapping_add(at[u] as usize);
                }
            } else {
                for u in 0..ROWS {
                    let (rank, bit) = visibility.rank_and_bit(0, at[u] as usize);
                    to[u] = to[u].wrapping_add(rank as usize);
                    is_wanted[u] &= bit;
                }
            }
            for u in 0..ROWS {
                let (number, place) = self.element(at[u], entries[u]);
                elements[u] = (number, place as usize);
            }
            out.copy(self.levels, elements, is_wanted, to);
        }
    }

    /// Writes the visible ones of `len` elements from `first` on to `out` from place `to` on.
    ///
    /// # Safety
    /// All lanes of the warp come here together, with the same arguments; the order has these elements; the outputs are
    /// valid for as many writes as there are visible elements, and nothing else accesses them.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn list(self, first: u32, len: u32, out: Output<K>, to: usize) {
        // SAFETY: the element is there.
        let to = to.wrapping_sub(unsafe { self.visibility().rank(0, first as usize) } as usize);
        let mut base = 0;
        while base < len {
            let (mut at, mut is_wanted) = ([0; ROWS], [false; ROWS]);
            for u in 0..ROWS {
                let i = base + 32 * u as u32 + lane_id();
                (at[u], is_wanted[u]) = (first + i.min(len - 1), i < len);
            }
            // SAFETY: these are among the caller's.
            unsafe { self.copy(at, is_wanted, [to; ROWS], out) };
            base += 32 * ROWS as u32;
        }
    }

    /// Writes the visible ones of a few elements for each lane, `len` from `first` on, to `out` from place `to` on.
    ///
    /// # Safety
    /// As [`list`](Self::list), for each lane's arguments; all lanes together have fewer than 2^31 elements.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn list_of_lanes(self, first: u32, len: u32, out: Output<K>, to: usize) {
        // SAFETY: the caller's lanes all come here, and to each exchange; a lane's element is one of the lane that has
        // it, which is the first whose end is after it.
        unsafe {
            let end = warp::inclusive_scan_add(FULL_MASK, len);
            let total = warp::shuffle_idx(FULL_MASK, end, 31);
            // What the number of an element over all lanes has to be added to.
            let places = first.wrapping_sub(end - len);
            let rank = if len == 0 { 0 } else { self.visibility().rank(0, first as usize) };
            let to = to.wrapping_sub(rank as usize) as u64;
            let mut base = 0;
            while base < total {
                let (mut at, mut is_wanted, mut to_of) = ([0; ROWS], [false; ROWS], [0; ROWS]);
                for u in 0..ROWS {
                    let i = base + 32 * u as u32 + lane_id();
                    is_wanted[u] = i < total;
                    let i = i.min(total - 1);
                    let source = first_above(end, i);
                    at[u] = warp::shuffle_idx(FULL_MASK, places, source).wrapping_add(i);
                    to_of[u] = warp::shuffle_idx(FULL_MASK, to, source) as usize;
                }
                self.copy(at, is_wanted, to_of, out);
                base += 32 * ROWS as u32;
            }
        }
    }
}

/// The first lane whose `value` is above `i`, or lane 31; values ascend.
///
/// # Safety
/// All lanes of the warp come here together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub(super) unsafe fn first_above(value: u32, i: u32) -> u32 {
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

#[cfg(feature = "bodies")]
impl<K: RangeKey> Output<K> {
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

    /// Copies the elements that are wanted, each by its level's number and its place there, to places `to`.
    ///
    /// # Safety
    /// The levels have all these elements; the outputs are valid where those go that are wanted, and nothing else
    /// accesses them.
    #[inline(always)]
    #[track_caller]
    unsafe fn copy(self, levels: Levels, elements: [(u32, usize); ROWS], is_wanted: [bool; ROWS], to: [usize; ROWS]) {
        let (mut keys, mut values) = ([K::default(); ROWS], [0; ROWS]);
        // SAFETY: the caller's promise. All are on their way before the first is written.
        unsafe {
            for u in 0..ROWS {
                keys[u] = levels.keys::<K>(elements[u].0).read_nc(elements[u].1);
            }
            if self.value_words == 1 {
                for u in 0..ROWS {
                    let (number, place) = elements[u];
                    values[u] =
                        Global::<u32>::at_address(levels.values_address(number), place + 1).read_nc(place) as u64;
                }
            } else if self.value_words == 2 {
                for u in 0..ROWS {
                    let (number, place) = elements[u];
                    values[u] = Global::<u64>::at_address(levels.values_address(number), place + 1).read_nc(place);
                }
            }
            for u in 0..ROWS {
                if is_wanted[u] {
                    self.put(to[u], keys[u], values[u]);
                }
            }
        }
    }

    /// Writes the visible ones of `len` elements, a word each as `lsm_order_queries` leaves it, from place `to` on.
    ///
    /// # Safety
    /// - All lanes of the warp come here together, with the same arguments.
    /// - The levels have these elements, and the words are valid for reads, and nothing writes them meanwhile.
    /// - The outputs are valid for as many writes as there are visible elements, and nothing else accesses them.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn list_own(self, levels: Levels, order: Global<u64>, len: usize, mut to: usize) {
        let mut base = 0;
        // SAFETY: the caller's lanes all come here, and the loop goes as often for all; what is read is an element.
        unsafe {
            while base < len {
                let (mut words, mut places) = ([0; ROWS], [0; ROWS]);
                let (mut is_wanted, mut elements) = ([false; ROWS], [(0, 0); ROWS]);
                for u in 0..ROWS {
                    let i = base + 32 * u + lane_id() as usize;
                    (words[u], is_wanted[u]) = (order.read_nc(i.min(len - 1)), i < len);
                }
                for u in 0..ROWS {
                    is_wanted[u] &= words[u] & VISIBLE != 0;
                    let all = warp::ballot(FULL_MASK, is_wanted[u]);
                    elements[u] = ((words[u] >> NUMBER_SHIFT) as u32 & 31, (words[u] >> PLACE_SHIFT) as usize);
                    places[u] = to + (all & warp::lane_mask_lt()).count_ones() as usize;
                    to += all.count_ones() as usize;
                }
                self.copy(levels, elements, is_wanted, places);
                base += 32 * ROWS;
            }
        }
    }

    /// Copies the visible elements of a span of level `number` from place `to` on.
    ///
    /// # Safety
    /// As [`list_own`](Self::list_own), for the elements of the span; it is known which are visible.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn list_span(self, levels: Levels, visibility: Visibility, number: u32, span: Span, to: usize) {
        let (low, count) = (span.low, span.count());
        let first = levels.first_visible(number);
        let mut base = 0;
        // SAFETY: places that are read are inside the span, and there is room for what is visible.
        unsafe {
            let before = visibility.rank(first, low);
            while base < count {
                let (mut places, mut is_wanted) = ([0; ROWS], [false; ROWS]);
                let mut elements = [(number, 0); ROWS];
                for u in 0..ROWS {
                    let i = base + 32 * u + lane_id() as usize;
                    (places[u], is_wanted[u]) = (to + i, i < count);
                    elements[u].1 = low + i.min(count - 1);
                }
                if !visibility.is_all() {
                    for u in 0..ROWS {
                        let (rank, bit) = visibility.rank_and_bit(first, elements[u].1);
                        places[u] = to + rank.wrapping_sub(before) as usize;
                        is_wanted[u] &= bit;
                    }
                }
                self.copy(levels, elements, is_wanted, places);
                base += 32 * ROWS;
            }
        }
    }
}

/// The lanes whose elements are of the same level as the lane's; and those whose elements are of the level that has the
/// lane's number. Lanes without an element have none.
///
/// # Safety
/// All lanes of the warp come here together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn alike(number: u32, has_element: bool) -> (u32, u32) {
    let lane = lane_id();
    // SAFETY: the caller's lanes all come here.
    unsafe {
        let active = warp::ballot(FULL_MASK, has_element);
        let (mut same, mut of_lane) = (active, active);
        for bit in 0..5 {
            let set = warp::ballot(FULL_MASK, number >> bit & 1 != 0);
            same &= if number >> bit & 1 != 0 { set } else { !set };
            of_lane &= if lane >> bit & 1 != 0 { set } else { !set };
        }
        (same, of_lane)
    }
}

#[cfg(all(test, not(target_arch = "nvptx64")))]
mod tests {
    use super::*;

    #[test]
    fn fractions_ascend_and_have_as_many_bits() {
        fn check<K: RangeKey + core::fmt::Debug>(from: K, to: K, keys: &[K]) {
            for bits in [6, 7] {
                let fractions: [u32; 2] = [from.fraction(from, to, bits), to.fraction(from, to, bits)];
                assert!(fractions[0] == 0 && fractions[1] < 1 << bits);
                // At least half of the steps are there, if there are as many keys.
                let is_wide = keys.len() > 1 << bits;
                assert!(!is_wide || fractions[1] >= 1 << (bits - 1), "{from:?} {to:?}");
                let mut last = 0;
                for &key in keys {
                    let fraction = key.fraction(from, to, bits);
                    assert!(last <= fraction && fraction <= fractions[1], "{from:?} {to:?} {key:?}");
                    last = fraction;
                }
            }
        }
        for (from, to) in [(0, 0), (7, 7), (0, 1), (5, 68), (0, u32::MAX), (1 << 31, u32::MAX), (9, 9 + 200)] {
            let steps = (to - from).min(1000);
            let keys: [u32; 1001] = core::array::from_fn(|i| from + ((to - from) as u64 * i as u64 / 1000) as u32);
            check(from, to, if steps == 1000 { &keys } else { &keys[..1] });
            let wide: [u64; 1001] = core::array::from_fn(|i| (keys[i] as u64) << 32 | keys[i] as u64);
            check(wide[0], (to as u64) << 32 | to as u64, if steps == 1000 { &wide } else { &wide[..1] });
            let widest = wide.map(|key| (key as u128) << 64 | key as u128);
            check(widest[0], widest[1000], if steps == 1000 { &widest } else { &widest[..1] });
        }
    }
}
