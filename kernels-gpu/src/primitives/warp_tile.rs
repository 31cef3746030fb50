//! Tiles of items: global memory is read and written in full 128-bit accesses, and each thread holds consecutive items.
//!
//! A warp owns 32 times as many consecutive items as a thread. It moves them between global memory and its part of the
//! shared memory with neighbouring lanes at neighbouring *quads* (16 bytes), and between shared memory and registers
//! with each lane at a row of its own. Rows are an odd number of quads apart, so that the eight lanes that shared
//! memory serves at a time meet different banks.

use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK, WARP_SIZE};
use warpset_simt::{Global, GlobalMut, opaque};

/// Items of arrays: one, two or four 32-bit words.
pub trait Item: Copy + 'static {
    /// Words per item.
    const WORDS: usize;
    /// Returns the item with these words, the lowest first.
    fn from_words(word: impl Fn(usize) -> u32) -> Self;
    /// Returns the word with this number.
    fn word(self, number: usize) -> u32;
}

macro_rules! items {
    ($($item:ty: $words:literal, |$word:ident| $from:expr, |$value:ident, $number:ident| $to:expr;)*) => {$(
        const _: () = assert!(size_of::<$item>() == 4 * $words);
        impl Item for $item {
            const WORDS: usize = $words;
            #[inline(always)]
            fn from_words($word: impl Fn(usize) -> u32) -> Self {
                $from
            }
            #[inline(always)]
            fn word(self, $number: usize) -> u32 {
                let $value = self;
                $to
            }
        }
    )*};
}

#[inline(always)]
fn join(word: impl Fn(usize) -> u32) -> u64 {
    (word(1) as u64) << 32 | word(0) as u64
}

items! {
    u32: 1, |word| word(0), |value, _number| value;
    i32: 1, |word| word(0) as i32, |value, _number| value as u32;
    f32: 1, |word| f32::from_bits(word(0)), |value, _number| value.to_bits();
    u64: 2, |word| join(word), |value, number| (value >> (32 * number)) as u32;
    i64: 2, |word| join(word) as i64, |value, number| (value >> (32 * number)) as u32;
    f64: 2, |word| f64::from_bits(join(word)), |value, number| (value.to_bits() >> (32 * number)) as u32;
    [u32; 2]: 2, |word| [word(0), word(1)], |value, number| value[number];
    u128: 4, |word| (join(|k| word(2 + k)) as u128) << 64 | join(&word) as u128, |value, number| (value >> (32 * number)) as u32;
}

/// Returns the bytes of shared memory that a warp needs for rows of `quads` quads.
pub const fn warp_bytes(quads: usize) -> u32 {
    (WARP_SIZE as usize * row_quads(quads) * 16) as u32
}

/// Returns the quads between consecutive rows.
const fn row_quads(quads: usize) -> usize {
    quads | 1
}

/// Returns the words between consecutive rows.
const fn row_words(quads: usize) -> u32 {
    row_quads(quads) as u32 * 4
}

/// Returns the word of shared memory with quad `q * 32 + lane` of a warp.
#[cfg(feature = "bodies")]
#[inline(always)]
fn quad_at<const QUADS: usize>(q: usize, lane: u32) -> u32 {
    let quads = QUADS as u32;
    (q as u32 * (32 / quads) + lane / quads) * row_words(QUADS) + lane % quads * 4
}

/// Returns the word of shared memory with word `w * 32 + lane` of a warp.
#[cfg(feature = "bodies")]
#[inline(always)]
fn word_at<const QUADS: usize>(w: u32, lane: u32) -> u32 {
    let quads = QUADS as u32;
    (w * (8 / quads) + lane / 4 / quads) * row_words(QUADS) + lane / 4 % quads * 4 + lane % 4
}

/// Loads items `first..` of an array of `n`, `ITEMS` consecutive ones per lane in the order of lanes; by one warp.
/// Places past the end give items of zero bits. `vectors`: whether the array begins at a multiple of 16 bytes.
///
/// # Safety
/// - All lanes call this together. `first` is a multiple of 4, and the same for all, as are `n` and `vectors`.
/// - `QUADS * 16` is the size of `ITEMS` items; `QUADS` divides 8. `rows` is [`warp_bytes`] of shared memory at a
///   multiple of 16, the warp's own.
/// - The array holds `n` items; nothing writes those of the warp at the same time.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn load<T: Item, const ITEMS: usize, const QUADS: usize>(
    array: Global<T>,
    first: usize,
    n: usize,
    vectors: bool,
    rows: Shared<u32>,
) -> [T; ITEMS] {
    const { assert!(QUADS * 4 == ITEMS * T::WORDS && 8 % QUADS == 0) };
    let lane = warp::lane_id();
    let words: Global<u32> = array.cast();
    // SAFETY: the contract of this function; quads are within the warp's items, which are within the array or skipped;
    // lanes write disjoint quads, and a warp barrier separates these writes from reads.
    unsafe {
        if vectors && first + 32 * ITEMS <= n {
            let from = words.at(first * T::WORDS);
            let mut quads = [[0; 4]; QUADS];
            for q in 0..QUADS {
                quads[q] = from.read4((q as u32 * 32 + lane) as usize * 4);
            }
            for q in 0..QUADS {
                rows.set4(quad_at::<QUADS>(q, lane), quads[q]);
            }
        } else {
            let end = n * T::WORDS;
            let mut w = 0;
            // The bound is opaque so that the loop stays rolled: it is the rare case, and must not cost registers.
            while w < opaque(QUADS as u32 * 4) {
                let at = first * T::WORDS + (w * 32 + lane) as usize;
                let value = if at < end { words.read(at) } else { 0 };
                rows.set(word_at::<QUADS>(w, lane), value);
                w += 1;
            }
        }
        warp::sync_warp(FULL_MASK);
        let mut quads = [[0; 4]; QUADS];
        for q in 0..QUADS {
            quads[q] = rows.get4(lane * row_words(QUADS) + q as u32 * 4);
        }
        let word = |k: usize| quads[k / 4][k % 4];
        let mut items = [T::from_words(|_| 0); ITEMS];
        for i in 0..ITEMS {
            items[i] = T::from_words(|k| word(i * T::WORDS + k));
        }
        items
    }
}

/// Writes the items that [`load`] reads, except past the end.
///
/// # Safety
/// - The contract of [`load`], and nothing else accesses these items meanwhile.
/// - The warp has finished earlier reads of `rows`.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn store<T: Item, const ITEMS: usize, const QUADS: usize>(
    array: GlobalMut<T>,
    first: usize,
    n: usize,
    vectors: bool,
    items: [T; ITEMS],
    rows: Shared<u32>,
) {
    const { assert!(QUADS * 4 == ITEMS * T::WORDS && 8 % QUADS == 0) };
    let lane = warp::lane_id();
    let word = |k: usize| items[k / T::WORDS].word(k % T::WORDS);
    let words: GlobalMut<u32> = array.cast();
    // SAFETY: as in `load`; warp barriers separate earlier reads of the rows from these writes, and these writes from
    // later reads.
    unsafe {
        warp::sync_warp(FULL_MASK);
        for q in 0..QUADS {
            rows.set4(
                lane * row_words(QUADS) + q as u32 * 4,
                [word(4 * q), word(4 * q + 1), word(4 * q + 2), word(4 * q + 3)],
            );
        }
        warp::sync_warp(FULL_MASK);
        if vectors && first + 32 * ITEMS <= n {
            let to = words.at(first * T::WORDS);
            for q in 0..QUADS {
                let quad = rows.get4(quad_at::<QUADS>(q, lane));
                to.write4((q as u32 * 32 + lane) as usize * 4, quad);
            }
        } else {
            let end = n * T::WORDS;
            let mut w = 0;
            while w < opaque(QUADS as u32 * 4) {
                let at = first * T::WORDS + (w * 32 + lane) as usize;
                if at < end {
                    words.write(at, rows.get(word_at::<QUADS>(w, lane)));
                }
                w += 1;
            }
        }
    }
}
