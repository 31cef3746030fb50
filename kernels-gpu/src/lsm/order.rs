//! Interleaving order of a tree's elements: all elements of all levels in ascending order of keys, the newest of equal
//! keys first. A range is found by one search in it, instead of one per level, and listed without comparing keys.
//!
//! Each element has an *entry*, which gives its level and its place there. 32 elements form a *strip*, with a *row*:
//! the number of elements of each level between the beginning of the piece and the strip. 1024 elements form a *piece*,
//! with a *split*: the place of its first element in each level. So element `i` is at place `split + row + rank` of its
//! level.
//!
//! ```text
//! elements  | piece 0                                   | piece 1        ...
//!           | strip 0 | strip 1 | ... | strip 31        | strip 32 | ...
//! splits    one place per piece and level
//! rows      one count per strip and level
//! entries   one per element:
//!
//!   15           9 8              5 4            0
//!  +--------------+----------------+--------------+
//!  |   fraction   | level's number | rank         |    the number has 4 bits for up to 16 levels, otherwise 5
//!  +--------------+----------------+--------------+
//! ```
//!
//! The *rank* is the number of earlier elements of the strip in the same level. The *fraction* is the position of the
//! key between the first key of its strip and that of the next, in steps so small that few elements of a strip share
//! one. The first keys of all strips have an index, as the keys of a level do ([`nodes`](super::nodes)). A search finds
//! the strip by the index, and the element by the fractions; it reads the key of an element only if its fraction equals
//! that of the search key. This takes 16 bits per element, and per level 16 bits per strip and 32 bits per piece.
//!
//! The visibility of elements is stored in words as for levels ([`visibility`](super::visibility)), in the sequence of
//! the order.

use core::marker::PhantomData;
use core::ops::Not;

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, ShuffleWord};

use crate::lsm::levels::{LevelKey, Levels, Span};
use crate::lsm::nodes::Index;
use crate::lsm::visibility::Visibility;

/// Elements per strip.
pub const STRIP: usize = 32;
/// Elements per piece.
pub const PIECE: usize = 1024;
/// Elements of a long range that a warp lists at a time.
pub const TASK: usize = 4096;
/// Bits of a rank.
pub const RANK_BITS: u32 = STRIP.trailing_zeros();
/// Words per entry of the list of long queries: the query's number; and the beginning of its tasks among those of all
/// queries, or of its own elements.
pub const LONG_WORDS: usize = 2;
/// Bit of a visible element in the word of an element of a query's own order.
pub const VISIBLE: u64 = 1;
/// Shift of the level's number in such a word.
pub const NUMBER_SHIFT: u32 = 1;
/// Shift of the place in the level, which has the bits above.
pub const PLACE_SHIFT: u32 = 6;

/// Rows of 32 elements whose accesses overlap.
const ROWS: usize = 4;

/// Key that is exchanged between lanes.
pub trait RangeKey: LevelKey + ShuffleWord + Not<Output = Self> {
    /// Returns the position of the key between `from` (at most the key) and `to` (at least the key): a number of at
    /// most `bits` bits that increases with the key.
    #[inline(always)]
    fn fraction(self, from: Self, to: Self, bits: u32) -> u32 {
        self.steps_from(from, to.bits_from(from).saturating_sub(bits))
    }
}
impl<K: LevelKey + ShuffleWord + Not<Output = K>> RangeKey for K {}

/// Returns the bits of an entry for the number of a level.
#[inline(always)]
pub const fn number_bits(levels: u32) -> u32 {
    if levels <= 16 { 4 } else { 5 }
}

/// Addresses of the parts of an order, and its number of elements.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct OrderTable {
    /// 16 bits per element, in whole strips.
    pub entries: u64,
    /// 16 bits per strip and level, [`width`](Self::width) per strip.
    pub rows: u64,
    /// 32 bits per piece and level, [`width`](Self::width) per piece.
    pub splits: u64,
    /// First key of each strip, and the last key.
    pub firsts: u64,
    /// Index of all of these except the last.
    pub index: u64,
    /// Words of visibility, or 0 if all elements are visible.
    pub visible: u64,
    /// Number of elements.
    pub len: u64,
    /// Number of levels.
    pub levels: u32,
    /// Number of levels that rows and splits are sized for, as a power of two.
    pub width_bits: u32,
}

impl OrderTable {
    /// Returns the table of an order without memory yet, of `len` elements, fewer than 2^32, in `levels` levels.
    pub const fn new(len: u64, levels: u32) -> Self {
        let width_bits = levels.next_power_of_two().trailing_zeros();
        Self { entries: 0, rows: 0, splits: 0, firsts: 0, index: 0, visible: 0, len, levels, width_bits }
    }

    /// Returns the number of levels that rows and splits are sized for.
    #[inline(always)]
    pub const fn width(self) -> usize {
        1 << self.width_bits
    }
}

/// Interleaving order of a tree's elements.
#[derive(Clone, Copy)]
pub struct Order<K> {
    table: OrderTable,
    levels: Levels,
    number_bits: u32,
    key: PhantomData<K>,
}

#[cfg(feature = "bodies")]
impl<K: RangeKey> Order<K> {
    /// Returns the order described by `table`, of these levels.
    ///
    /// # Safety
    /// While it is used: entries, rows and splits are the outputs of `lsm_order` and `lsm_order_splits` for the levels,
    /// the index and the words of visibility are made for the order, and nothing writes any of them.
    #[inline(always)]
    pub unsafe fn new(table: OrderTable, levels: Levels) -> Self {
        Self { table, levels, number_bits: number_bits(table.levels), key: PhantomData }
    }

    /// Returns the visibility of the elements: ranks and bits are relative to the first word, number 0.
    #[inline(always)]
    pub fn visibility(self) -> Visibility {
        let words = Global::at_address(self.table.visible, self.table.len as usize / STRIP + 2);
        // SAFETY: the words, if any, are valid by the contract of `new`.
        unsafe { Visibility::new(words, self.table.visible == 0) }
    }

    /// Returns the entry of element `i`.
    ///
    /// # Safety
    /// `i` is below the number of elements.
    #[inline(always)]
    #[track_caller]
    unsafe fn entry(self, i: u32) -> u32 {
        // SAFETY: the contract of this function.
        unsafe { Global::<u16>::at_address(self.table.entries, i as usize + 1).read_nc(i as usize) as u32 }
    }

    /// Returns the level of element `i`, given its entry, and its place there.
    ///
    /// # Safety
    /// `entry` is the entry of element `i`.
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

    /// Returns the elements with keys from `first` to `last`.
    #[inline(always)]
    pub fn between(self, first: K, last: K) -> Span {
        if first > last {
            return Span::EMPTY;
        }
        let strips = (self.table.len as usize).div_ceil(STRIP);
        let firsts = Global::<K>::at_address(self.table.firsts, strips + 1);
        // SAFETY: keys, index and the rest are valid by the contract of `new`.
        unsafe {
            let strips = Index::new(firsts, strips, self.table.index).between(first, last);
            Span { low: self.before::<false>(strips.low, first), high: self.before::<true>(strips.high, last) }
        }
    }

    /// Returns the rank of `key` (with `OR_EQUAL`: after equal keys), given the number of strips whose first element
    /// precedes it.
    ///
    /// # Safety
    /// `strips` is that number.
    #[inline(always)]
    unsafe fn before<const OR_EQUAL: bool>(self, strips: usize, key: K) -> usize {
        if strips == 0 {
            return 0;
        }
        // All elements of earlier strips precede the key, none of later ones does.
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
            // Entries past the last element are not elements.
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

    /// Copies the wanted and visible ones of the elements `at` these places of the order. The target of an element is
    /// `base` plus the number of visible elements before it in the order. The other elements are read as well: without
    /// branches, all reads of a kind overlap.
    ///
    /// # Safety
    /// The order has all these elements; the outputs are valid at the targets of copied elements, and nothing else
    /// accesses them.
    #[inline(always)]
    #[track_caller]
    unsafe fn copy(self, at: [u32; ROWS], mut is_wanted: [bool; ROWS], base: [usize; ROWS], out: Output<K>) {
        let visibility = self.visibility();
        let mut entries = [0; ROWS];
        let mut elements = [(0, 0); ROWS];
        let mut to = base;
        // SAFETY: the contract of this function.
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
    /// All lanes of the warp call this together, with the same arguments; the order has these elements; the outputs are
    /// valid for one write per visible element, and nothing else accesses them.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn list(self, first: u32, len: u32, out: Output<K>, to: usize) {
        // SAFETY: the element exists.
        let to = to.wrapping_sub(unsafe { self.visibility().rank(0, first as usize) } as usize);
        let mut base = 0;
        while base < len {
            let (mut at, mut is_wanted) = ([0; ROWS], [false; ROWS]);
            for u in 0..ROWS {
                let i = base + 32 * u as u32 + lane_id();
                (at[u], is_wanted[u]) = (first + i.min(len - 1), i < len);
            }
            // SAFETY: these elements are covered by the contract of this function.
            unsafe { self.copy(at, is_wanted, [to; ROWS], out) };
            base += 32 * ROWS as u32;
        }
    }

    /// Writes for each lane the visible ones of a few elements, `len` from `first` on, to `out` from place `to` on.
    ///
    /// # Safety
    /// The contract of [`list`](Self::list), for each lane's arguments; all lanes together have fewer than 2^31
    /// elements.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn list_of_lanes(self, first: u32, len: u32, out: Output<K>, to: usize) {
        // SAFETY: all lanes call this together, and reach each exchange; the element of a step belongs to the first
        // lane whose end is after it.
        unsafe {
            let end = warp::inclusive_scan_add(FULL_MASK, len);
            let total = warp::shuffle_idx(FULL_MASK, end, 31);
            // Offset that turns the number of an element over all lanes into its place.
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

/// Returns the first lane with a `value` above `i`, or lane 31; values ascend.
///
/// # Safety
/// All lanes of the warp call this together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub(super) unsafe fn first_above(value: u32, i: u32) -> u32 {
    let mut lane = 0;
    let mut step = 16;
    while step > 0 {
        // SAFETY: all lanes call this together; lane numbers stay below 32.
        let before = unsafe { warp::shuffle_idx(FULL_MASK, value, lane + step - 1) };
        lane += if before <= i { step } else { 0 };
        step /= 2;
    }
    lane
}

/// Output of elements.
#[derive(Clone, Copy)]
pub struct Output<K> {
    /// Keys.
    pub keys: GlobalMut<K>,
    /// Values.
    pub values: GlobalMut<u32>,
    /// Words of 32 bits per value: 0, 1 or 2.
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
        // SAFETY: the contract of this function.
        unsafe {
            self.keys.write(to, key);
            if self.value_words == 1 {
                self.values.write(to, value as u32);
            } else if self.value_words == 2 {
                self.values.cast::<u64>().write(to, value);
            }
        }
    }

    /// Copies the wanted elements, each given by its level's number and its place there, to places `to`.
    ///
    /// # Safety
    /// The levels have all these elements; the outputs are valid at the targets of wanted elements, and nothing else
    /// accesses them.
    #[inline(always)]
    #[track_caller]
    unsafe fn copy(self, levels: Levels, elements: [(u32, usize); ROWS], is_wanted: [bool; ROWS], to: [usize; ROWS]) {
        let (mut keys, mut values) = ([K::default(); ROWS], [0; ROWS]);
        // SAFETY: the contract of this function. All reads are issued before the first write.
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

    /// Writes the visible ones of `len` elements, one word each from `lsm_order_queries`, from place `to` on.
    ///
    /// # Safety
    /// - All lanes of the warp call this together, with the same arguments.
    /// - The levels have these elements, and the words are valid for reads, and nothing writes them meanwhile.
    /// - The outputs are valid for one write per visible element, and nothing else accesses them.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn list_own(self, levels: Levels, order: Global<u64>, len: usize, mut to: usize) {
        let mut base = 0;
        // SAFETY: all lanes call this together, and the loop has the same number of rounds in all lanes; only elements
        // are read.
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
    /// The contract of [`list_own`](Self::list_own), for the elements of the span; their visibility is known.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn list_span(self, levels: Levels, visibility: Visibility, number: u32, span: Span, to: usize) {
        let (low, count) = (span.low, span.count());
        let first = levels.first_visible(number);
        let mut base = 0;
        // SAFETY: places that are read are inside the span, and there is a place for each visible element.
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

/// Returns the lanes with elements of the lane's level, and the lanes with elements of the level numbered as the lane.
/// Lanes without an element are in neither.
///
/// # Safety
/// All lanes of the warp call this together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn alike(number: u32, has_element: bool) -> (u32, u32) {
    let lane = lane_id();
    // SAFETY: all lanes call this together.
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
                // At least half of the steps are used, if there are as many keys.
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
