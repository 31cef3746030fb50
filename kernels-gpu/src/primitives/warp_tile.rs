//! Tiles of items: global memory read and written in full 128-bit accesses, each thread holding consecutive items.
//!
//! A warp owns 32 times as many consecutive items as a thread. It moves them between global memory and its part of the
//! shared memory with neighbouring lanes at neighbouring *quads* (16 bytes), and between shared memory and registers
//! with each lane at a row of its own. Rows are an odd number of quads apart, so that the eight lanes that shared
//! memory serves at a time meet different banks.

use warpset_simt::shared::Shared;
use warpset_simt::warp::{self, FULL_MASK, WARP_SIZE};
use warpset_simt::{Global, GlobalMut, opaque};

/// What arrays hold: one or two 32-bit words.
pub trait Item: Copy + 'static {
    /// Words of an item: its size / 4.
    const WORDS: usize;
    /// The item of these words; the second counts only if there are two.
    fn from_words(low: u32, high: u32) -> Self;
    /// Its words; the second is 0 if there is one.
    fn to_words(self) -> (u32, u32);
}

macro_rules! items {
    ($($item:ty: $words:literal, |$low:ident, $high:ident| $from:expr, |$value:ident| $to:expr;)*) => {$(
        const _: () = assert!(size_of::<$item>() == 4 * $words);
        impl Item for $item {
            const WORDS: usize = $words;
            #[inline(always)]
            fn from_words($low: u32, $high: u32) -> Self {
                $from
            }
            #[inline(always)]
            fn to_words(self) -> (u32, u32) {
                let $value = self;
                $to
            }
        }
    )*};
}

const fn join(low: u32, high: u32) -> u64 {
    (high as u64) << 32 | low as u64
}

items! {
    u32: 1, |low, _high| low, |value| (value, 0);
    i32: 1, |low, _high| low as i32, |value| (value as u32, 0);
    f32: 1, |low, _high| f32::from_bits(low), |value| (value.to_bits(), 0);
    u64: 2, |low, high| join(low, high), |value| (value as u32, (value >> 32) as u32);
    i64: 2, |low, high| join(low, high) as i64, |value| (value as u32, (value >> 32) as u32);
    f64: 2, |low, high| f64::from_bits(join(low, high)), |value| {
        let bits = value.to_bits();
        (bits as u32, (bits >> 32) as u32)
    };
    [u32; 2]: 2, |low, high| [low, high], |value| (value[0], value[1]);
}

/// Bytes of shared memory that a warp needs for rows of `quads` quads.
pub const fn warp_bytes(quads: usize) -> u32 {
    (WARP_SIZE as usize * row_quads(quads) * 16) as u32
}

/// Quads from a row to the next.
const fn row_quads(quads: usize) -> usize {
    quads | 1
}

/// Words from a row to the next.
const fn row_words(quads: usize) -> u32 {
    row_quads(quads) as u32 * 4
}

/// The word of shared memory at which quad `q * 32 + lane` of a warp stands.
#[inline(always)]
fn quad_at<const QUADS: usize>(q: usize, lane: u32) -> u32 {
    let quads = QUADS as u32;
    (q as u32 * (32 / quads) + lane / quads) * row_words(QUADS) + lane % quads * 4
}

/// The word of shared memory at which word `w * 32 + lane` of a warp stands.
#[inline(always)]
fn word_at<const QUADS: usize>(w: u32, lane: u32) -> u32 {
    let quads = QUADS as u32;
    (w * (8 / quads) + lane / 4 / quads) * row_words(QUADS) + lane / 4 % quads * 4 + lane % 4
}

/// Items `first..` of an array of `n`, `ITEMS` consecutive ones a lane in the order of lanes; by one warp. Places past
/// the end give items of zero bits. `vectors`: whether the array begins at a multiple of 16 bytes.
///
/// # Safety
/// - All lanes come here together. `first` is a multiple of 4, and the same for all, as are `n` and `vectors`.
/// - `QUADS * 16` is the size of `ITEMS` items; `QUADS` divides 8. `rows` is [`warp_bytes`] of shared memory at a
///   multiple of 16, the warp's own.
/// - The array holds `n` items; nothing writes those of the warp at the same time.
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
    // SAFETY: the caller's promise; quads are within the warp's items, which are within the array or skipped; lanes
    // write disjoint quads, and a warp barrier stands before they read them.
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
        let mut items = [T::from_words(0, 0); ITEMS];
        for i in 0..ITEMS {
            items[i] = T::from_words(word(i * T::WORDS), word(i * T::WORDS + T::WORDS - 1));
        }
        items
    }
}

/// Writes what [`load`] reads, except past the end.
///
/// # Safety
/// - The contract of [`load`], and nothing else accesses these items meanwhile.
/// - What the warp read from `rows` before, it is done with.
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
    let word = |k: usize| {
        let (low, high) = items[k / T::WORDS].to_words();
        if k % T::WORDS == 0 { low } else { high }
    };
    let words: GlobalMut<u32> = array.cast();
    // SAFETY: as in `load`; a warp barrier stands between what lanes read of the rows before, and what they write, and
    // between that and what they read.
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
