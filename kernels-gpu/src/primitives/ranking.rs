//! Digits, ranks within a tile, and look-back over digit counts: shared by sorting and grouping.
//!
//! A tile is the items that one block holds in registers, warp-striped: item `i` of a lane is 32 places after item `i -
//! 1`, so a loop over `i` passes over a warp's part of the tile in order. Each warp has a row of counters in shared
//! memory, one per digit; a stable rank is the row's counter plus the number of equal digits in lower lanes.
//!
//! Source: Adinets and Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort for GPUs", 2022 (warp-level
//! ranking, look-back by digit); Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back",
//! 2016. Departures: all lanes of a digit read its counter and the last one writes it, which saves a shuffle of its
//!       value; look-back loads several predecessors at a time.

use crate::block;
use warpset_core::scan::Sum;
use warpset_simt::shared::Shared;

use warpset_simt::{AtomicWord, GlobalMut, Word, atomic, thread, warp};

/// Largest number of bits of a digit.
pub const DIGIT_BITS: u32 = 8;
/// Values of a digit, and counters of a row.
pub const DIGITS: u32 = 1 << DIGIT_BITS;

/// Word that keys are sorted by.
pub trait SortKey: Word + Ord {
    /// Returns the low 32 bits of `self >> shift`; `shift` is below the width.
    fn shifted(self, shift: u32) -> u32;
    /// Returns the key's low 64 bits as a number.
    fn wide(self) -> u64;
    /// Returns the key with these low 64 bits, as far as it has them; its other bits are zero.
    fn from_wide(wide: u64) -> Self;
    /// Returns the number of bits up to the highest set one.
    fn significant_bits(self) -> u32;
    /// Returns the difference to a key that is not greater.
    fn minus(self, other: Self) -> Self;
    /// Returns the key that repeats `bits`.
    fn splat(bits: u32) -> Self;
    /// Returns `count` plus one if the key at a place goes before another one; of equal keys the one at the lower place
    /// goes first.
    #[inline(always)]
    fn count_before(self, place: u32, other: Self, other_place: u32, count: u32) -> u32 {
        count + u32::from((self < other) | ((self == other) & (place < other_place)))
    }
    /// Returns the compared part of the key: `bits` bits from `begin` on, complemented if `flip` is all ones and not
    /// zero.
    fn masked(self, begin: u32, bits: u32, flip: u32) -> Self;
}

impl SortKey for u32 {
    #[inline(always)]
    fn shifted(self, shift: u32) -> u32 {
        self >> shift
    }
    #[inline(always)]
    fn wide(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn from_wide(wide: u64) -> u32 {
        wide as u32
    }
    #[inline(always)]
    fn significant_bits(self) -> u32 {
        u32::BITS - self.leading_zeros()
    }
    #[inline(always)]
    fn minus(self, other: u32) -> u32 {
        self.wrapping_sub(other)
    }
    #[inline(always)]
    fn splat(bits: u32) -> u32 {
        bits
    }
    /// Compares 64 bits, and adds under the predicate: LLVM makes two instructions of the addition.
    #[inline(always)]
    fn count_before(self, place: u32, other: u32, other_place: u32, mut count: u32) -> u32 {
        let (own, other) = ((self as u64) << 32 | place as u64, (other as u64) << 32 | other_place as u64);
        #[cfg(target_arch = "nvptx64")]
        // SAFETY: arithmetic on registers.
        unsafe {
            core::arch::asm!("{{ .reg .pred p; setp.lt.u64 p, {a}, {b}; @p add.u32 {c}, {c}, 1; }}", a = in(reg64) own,
                b = in(reg64) other, c = inout(reg32) count, options(pure, nomem, nostack, preserves_flags));
        }
        #[cfg(not(target_arch = "nvptx64"))]
        {
            count += u32::from(own < other);
        }
        count
    }
    #[inline(always)]
    fn masked(self, begin: u32, bits: u32, flip: u32) -> u32 {
        if bits == 0 { 0 } else { (self ^ flip) >> begin & (!0 >> (32 - bits)) }
    }
}

impl SortKey for u64 {
    #[inline(always)]
    fn shifted(self, shift: u32) -> u32 {
        (self >> shift) as u32
    }
    #[inline(always)]
    fn wide(self) -> u64 {
        self
    }
    #[inline(always)]
    fn from_wide(wide: u64) -> u64 {
        wide
    }
    #[inline(always)]
    fn significant_bits(self) -> u32 {
        u64::BITS - self.leading_zeros()
    }
    #[inline(always)]
    fn minus(self, other: u64) -> u64 {
        self.wrapping_sub(other)
    }
    #[inline(always)]
    fn splat(bits: u32) -> u64 {
        (bits as u64) << 32 | bits as u64
    }
    #[inline(always)]
    fn masked(self, begin: u32, bits: u32, flip: u32) -> u64 {
        if bits == 0 { 0 } else { (self ^ u64::splat(flip)) >> begin & (!0 >> (64 - bits)) }
    }
}

impl SortKey for u128 {
    #[inline(always)]
    fn shifted(self, shift: u32) -> u32 {
        // Two neighbouring words of 32 bits, selected without branches, and one shift.
        let (low, high) = (self as u64, (self >> 64) as u64);
        let middle = low >> 32 | high << 32;
        let (from_even, from_odd) = if shift < 64 { (low, middle) } else { (high, high >> 32) };
        ((if shift & 32 == 0 { from_even } else { from_odd }) >> (shift % 32)) as u32
    }
    #[inline(always)]
    fn wide(self) -> u64 {
        self as u64
    }
    #[inline(always)]
    fn from_wide(wide: u64) -> u128 {
        wide as u128
    }
    #[inline(always)]
    fn significant_bits(self) -> u32 {
        u128::BITS - self.leading_zeros()
    }
    #[inline(always)]
    fn minus(self, other: u128) -> u128 {
        self.wrapping_sub(other)
    }
    #[inline(always)]
    fn splat(bits: u32) -> u128 {
        let half = u64::splat(bits) as u128;
        half << 64 | half
    }
    #[inline(always)]
    fn masked(self, begin: u32, bits: u32, flip: u32) -> u128 {
        if bits == 0 { 0 } else { (self ^ u128::splat(flip)) >> begin & (!0 >> (128 - bits)) }
    }
}

/// Bits of a key, in ascending or descending order.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Digit {
    /// Lowest bit.
    pub shift: u32,
    /// Mask of the bits, at most [`DIGIT_BITS`].
    pub mask: u32,
    /// All ones to sort in descending order, zero otherwise.
    pub flip: u32,
}

const _: () = assert!(size_of::<Digit>() == 12);

impl Digit {
    /// Returns digit `pass` of `passes` that divide `bits` bits from bit `begin` on.
    #[inline(always)]
    pub fn of_pass(begin: u32, bits: u32, pass: u32, passes: u32, flip: u32) -> Digit {
        let from = pass * bits / passes;
        let to = (pass + 1) * bits / passes;
        Digit { shift: begin + from, mask: (1 << (to - from)) - 1, flip }
    }

    /// Returns the digit of `key`.
    #[inline(always)]
    pub fn of<K: SortKey>(self, key: K) -> u32 {
        (key.shifted(self.shift) ^ self.flip) & self.mask
    }

    /// Returns a key with the greatest digit.
    #[inline(always)]
    pub fn last<K: SortKey>(self) -> K {
        K::splat(!self.flip)
    }
}

/// Returns the rank of this lane's item after the items of its digit in the warp's `row`, and counts the item.
///
/// # Safety
/// - All lanes of the warp arrive together.
/// - `row` holds [`DIGITS`] words that no other warp accesses meanwhile.
/// - `digit` is below [`DIGITS`].
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn rank(row: Shared<u32>, digit: u32) -> u32 {
    // SAFETY: indices are below `DIGITS`; warp barriers stand before and after the write of the one lane of each digit
    // that writes.
    unsafe {
        let peers = warp::match_low_byte(warp::FULL_MASK, digit);
        let rank = row.get(digit) + (peers & warp::lane_mask_lt()).count_ones();
        warp::sync_warp(warp::FULL_MASK);
        if peers & warp::lane_mask_gt() == 0 {
            row.set(digit, rank + 1);
        }
        warp::sync_warp(warp::FULL_MASK);
        rank
    }
}

/// Zeroes the warp's `row`.
///
/// # Safety
/// - All lanes of the warp arrive together.
/// - `row` holds [`DIGITS`] words, aligned to 16 bytes, that no other warp accesses meanwhile.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn clear_row(row: Shared<u32>) {
    let lane = warp::lane_id();
    // SAFETY: 32 lanes have 8 words each of the `DIGITS`.
    unsafe {
        row.set4(4 * lane, [0; 4]);
        row.set4(128 + 4 * lane, [0; 4]);
        warp::sync_warp(warp::FULL_MASK);
    }
}

/// Turns the counts in `rows` rows of counters into places in the tile sorted by digit: the place of the first item of
/// each warp and digit. For the first [`DIGITS`] threads, returns the tile's count of digit `thread_idx_x` and the
/// place of its first item, after passing the count to `publish`.
///
/// # Safety
/// - All threads of a block of `WARPS` warps arrive, after a barrier that follows the counting.
/// - `counters` holds `rows` rows of [`DIGITS`] words and `sums` one word per warp, which nothing else accesses before
///   a further barrier.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn place_digits<const WARPS: u32>(
    counters: Shared<u32>,
    rows: u32,
    sums: Shared<u32>,
    publish: impl FnOnce(u32),
) -> (u32, u32) {
    let t = thread::thread_idx_x();
    // SAFETY: thread `t` accesses only column `t`; all threads reach the sum.
    unsafe {
        let mut count = 0;
        if t < DIGITS {
            for w in 0..rows {
                count += counters.get(w * DIGITS + t);
            }
            publish(count);
        }
        let (start, _) = block::exclusive_scan::<Sum<u32>, WARPS>(count, sums);
        if t < DIGITS {
            let mut next = start;
            for w in 0..rows {
                let own = counters.get(w * DIGITS + t);
                counters.set(w * DIGITS + t, next);
                next += own;
            }
        }
        (count, start)
    }
}

/// Look-back word: two flag bits above a count. Zero means that nothing is known yet.
pub trait CountWord: AtomicWord + Default {
    /// Flag of a tile's own count.
    const AGGREGATE: Self;
    /// Flag of the count of the tile and all earlier ones.
    const INCLUSIVE: Self;
    /// Largest count beside the flags.
    const COUNT: Self;
    /// Returns the word of a flag and a count.
    fn word(flag: Self, count: Self) -> Self;
    /// Returns whether the word is not zero, its count, and whether it is inclusive.
    fn parts(self) -> (bool, Self, bool);
    /// Returns the sum.
    fn plus(self, other: Self) -> Self;
}

macro_rules! count_words {
    ($($word:ty)*) => {$(
        impl CountWord for $word {
            const AGGREGATE: $word = 1 << (<$word>::BITS - 2);
            const INCLUSIVE: $word = 2 << (<$word>::BITS - 2);
            const COUNT: $word = Self::AGGREGATE - 1;
            #[inline(always)]
            fn word(flag: $word, count: $word) -> $word {
                flag | count
            }
            #[inline(always)]
            fn parts(self) -> (bool, $word, bool) {
                (self != 0, self & Self::COUNT, self & Self::INCLUSIVE != 0)
            }
            #[inline(always)]
            fn plus(self, other: $word) -> $word {
                self + other
            }
        }
    )*};
}
count_words! { u32 u64 }

/// Largest number of items of a launch with 32-bit look-back words.
pub const LOOK_BACK_ITEMS: usize = <u32 as CountWord>::COUNT as usize;

/// Rows that a thread loads before it reads the first.
const WINDOW: usize = 4;

/// Look-back words: one row per tile, one word per digit.
#[derive(Clone, Copy)]
pub struct LookBack<C> {
    words: GlobalMut<C>,
    digits: u32,
}

#[cfg(feature = "bodies")]
impl<C: CountWord> LookBack<C> {
    /// Returns the rows of `digits` words that begin at `words`, zero before the first tile publishes.
    #[inline(always)]
    pub fn new(words: GlobalMut<C>, digits: u32) -> Self {
        LookBack { words, digits }
    }

    #[inline(always)]
    fn word(self, tile: u32, digit: u32) -> GlobalMut<C> {
        self.words.at(tile as usize * self.digits as usize + digit as usize)
    }

    /// Publishes the tile's count of `digit`; that of tile 0 is already inclusive.
    ///
    /// # Safety
    /// The tile's row is part of the array, and this thread alone publishes this word.
    #[inline(always)]
    pub unsafe fn publish(self, tile: u32, digit: u32, count: C) {
        let flag = if tile == 0 { C::INCLUSIVE } else { C::AGGREGATE };
        // SAFETY: the contract of this function; the word is only accessed atomically.
        unsafe { atomic::store_relaxed(self.word(tile, digit), C::word(flag, count)) }
    }

    /// Returns the count of `digit` in all earlier tiles, and publishes its sum with this tile's `count`.
    ///
    /// # Safety
    /// - The contract of [`publish`](Self::publish), which this thread has called.
    /// - Every earlier tile publishes without waiting for this one.
    #[inline(always)]
    pub unsafe fn before(self, tile: u32, digit: u32, count: C) -> C {
        let mut before = C::default();
        if tile == 0 {
            return before;
        }
        let mut next = tile - 1; // the nearest row that is still to be added
        let mut done = false;
        // SAFETY: rows are below `tile`; words are only accessed atomically.
        unsafe {
            while !done {
                let mut window = [C::INCLUSIVE; WINDOW];
                for k in 0..WINDOW {
                    // Row 0 is repeated for rows below it; it ends the walk before it could count twice.
                    window[k] = atomic::load_relaxed(self.word(next.saturating_sub(k as u32), digit));
                }
                let mut all_known = true;
                let first = next;
                for k in 0..WINDOW {
                    let (known, count, inclusive) = window[k].parts();
                    all_known &= known;
                    if all_known && !done {
                        before = before.plus(count);
                        done = inclusive;
                        next = first.wrapping_sub(k as u32 + 1);
                    }
                }
                if next == first {
                    thread::spin_hint();
                }
            }
            atomic::store_relaxed(self.word(tile, digit), C::word(C::INCLUSIVE, before.plus(count)));
        }
        before
    }
}
