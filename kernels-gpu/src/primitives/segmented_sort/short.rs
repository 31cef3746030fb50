//! Short segments: each block sorts those that begin in its window.

use super::{SHORT, TILE, WINDOW};
use crate::block;
use crate::primitives::block_sort::BlockSort;
use crate::primitives::ranking::{DIGIT_BITS, Digit, SortKey};
use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, Word, thread, warp};

/// Threads per block.
pub const SHORT_BLOCK: u32 = 512;
/// Dynamic shared memory for `u32` keys, in bytes.
pub const SHORT_SHARED_BYTES_U32: u32 = shared_bytes(BlockSort::<u32, WARPS, { TILE as u32 }>::SHARED_BYTES);
/// Dynamic shared memory for `u64` and `u128` keys, in bytes.
pub const SHORT_SHARED_BYTES_U64: u32 = shared_bytes(BlockSort::<u64, WARPS, { TILE as u32 }>::SHARED_BYTES);

const _: () = assert!(
    BlockSort::<u128, WARPS, { TILE as u32 }>::SHARED_BYTES == BlockSort::<u64, WARPS, { TILE as u32 }>::SHARED_BYTES
);

const WARPS: u32 = SHORT_BLOCK / 32;
/// Words of the bitmap per tile.
const WORDS: u32 = TILE as u32 / 32;
/// Words of the bitmap per window.
const WINDOW_WORDS: u32 = WINDOW as u32 / 32;

// After the block sort's memory: the bitmap as read (one word more than a tile, and one that stays zero), the bitmap
// from the first segment on, the number of segments before each word, and a few words.
const fn shared_bytes(block_sort: u32) -> u32 {
    block_sort + (WORDS + 2 + WORDS + WORDS + 32) * 4
}

/// Beginnings of a block's segments, relative to its window.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Bitmap {
    /// A bit per item of the window and of a short segment after it.
    raw: Shared<u32>,
    /// These bits from the block's first item on, zero after the last one.
    begins: Shared<u32>,
    /// Number of bits before each word of `begins`.
    before: Shared<u32>,
    /// First item, one past the last, and sums.
    misc: Shared<u32>,
}

/// Returns the first set bit of `word(k)` for `k` in `from..to`, as a place; `!0` if there is none. By one warp.
///
/// # Safety
/// All lanes of the warp arrive together.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn first_set(from: u32, to: u32, word: impl Fn(u32) -> u32) -> u32 {
    let mut k = from;
    while k < to {
        let at = k + warp::lane_id();
        let bits = if at < to { word(at) } else { 0 };
        // SAFETY: the loop is uniform in the warp.
        let found = unsafe { warp::ballot(warp::FULL_MASK, bits != 0) };
        if found != 0 {
            let place = at * 32 + bits.trailing_zeros();
            // SAFETY: as above.
            return unsafe { warp::shuffle_idx(warp::FULL_MASK, place, found.trailing_zeros()) };
        }
        k += 32;
    }
    !0
}

/// Returns the last set bit of `word(k)` for `k` below `to`, as a place; there is one. By one warp.
///
/// # Safety
/// All lanes of the warp arrive together.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn last_set(to: u32, word: impl Fn(u32) -> u32) -> u32 {
    let mut k = to;
    loop {
        // Lane 0 has the last word of the 32 before `k`.
        let at = k.wrapping_sub(1 + warp::lane_id());
        let bits = if at < to { word(at) } else { 0 };
        // SAFETY: the loop is uniform in the warp.
        let found = unsafe { warp::ballot(warp::FULL_MASK, bits != 0) };
        if found != 0 {
            let place = at.wrapping_mul(32).wrapping_add(31).wrapping_sub(bits.leading_zeros());
            // SAFETY: as above.
            return unsafe { warp::shuffle_idx(warp::FULL_MASK, place, found.trailing_zeros()) };
        }
        k = k.wrapping_sub(32);
    }
}

#[cfg(feature = "bodies")]
impl Bitmap {
    #[inline(always)]
    fn behind(block_sort: u32) -> Bitmap {
        let at = |word: u32| shared::dynamic(block_sort + 4 * word);
        Bitmap { raw: at(0), begins: at(WORDS + 2), before: at(2 * WORDS + 2), misc: at(3 * WORDS + 2) }
    }

    /// Reads the bitmap of the window and finds the block's items. Returns the first one, their number, and the number
    /// of segments; `(_, 0, 0)` if there are none.
    ///
    /// # Safety
    /// - All threads of the block arrive.
    /// - `words` holds `total` words.
    #[inline(always)]
    unsafe fn load(self, words: Global<u32>, total: usize, window: u32) -> (u32, u32, u32) {
        let t = thread::thread_idx_x();
        // SAFETY: words are read below `total`; shared indices stay in their arrays; barriers separate writing from
        // reading; all threads reach barriers and the scan, whole warps the searches.
        unsafe {
            if t < WORDS + 2 {
                let at = window as usize * WINDOW_WORDS as usize + t as usize;
                self.raw.set(t, if t <= WORDS && at < total { words.read_nc(at) } else { 0 });
            }
            thread::sync_threads();
            if t < 32 {
                let first = first_set(0, WINDOW_WORDS, |k| self.raw.get(k));
                let mut end = first;
                if first != !0 {
                    let last = last_set(WINDOW_WORDS, |k| self.raw.get(k));
                    // Bits after the last one, to the end of a short segment.
                    let behind = first_set(last / 32, last / 32 + SHORT as u32 / 32 + 1, |k| {
                        let word = self.raw.get(k);
                        if k == last / 32 { word & (!1u32).wrapping_shl(last % 32) } else { word }
                    });
                    end = if behind != !0 && behind - last <= SHORT as u32 { behind } else { last };
                }
                if t == 0 {
                    self.misc.set(0, first);
                    self.misc.set(1, end);
                }
            }
            thread::sync_threads();
            let (first, end) = (self.misc.get(0), self.misc.get(1));
            let count = end - first;
            if count == 0 {
                return (first, 0, 0);
            }
            let mut bits = 0;
            if t < WORDS && 32 * t < count {
                let (k, shift) = (first / 32 + t, first % 32);
                let (low, high) = (self.raw.get(k) as u64, self.raw.get(k + 1) as u64);
                bits = ((high << 32 | low) >> shift) as u32;
                if count - 32 * t < 32 {
                    bits &= (1 << (count - 32 * t)) - 1;
                }
            }
            let scratch = self.misc.at(8);
            let (before, segments) = block::exclusive_scan::<Sum<u32>, WARPS>(bits.count_ones(), scratch);
            if t < WORDS {
                self.begins.set(t, bits);
                self.before.set(t, before);
            }
            thread::sync_threads();
            (first, count, segments)
        }
    }

    /// Returns the number of item `i`'s segment among the block's.
    ///
    /// # Safety
    /// - [`load`](Self::load) has been called.
    /// - `i` is below its count.
    #[inline(always)]
    unsafe fn segment_of(self, i: u32) -> u32 {
        // SAFETY: `i / 32` is below `WORDS`.
        unsafe {
            let upto = self.begins.get(i / 32) & (!0 >> (31 - i % 32));
            self.before.get(i / 32) + upto.count_ones() - 1
        }
    }

    /// Returns the beginning and end of item `i`'s segment, if only the last word of the bitmap may be empty.
    ///
    /// # Safety
    /// The contract of [`segment_of`](Self::segment_of), with `count` items.
    #[inline(always)]
    unsafe fn bounds_of(self, i: u32, count: u32) -> (u32, u32) {
        let (k, bit) = (i / 32, i % 32);
        // SAFETY: `k` is below `WORDS`; there is a word before it unless a segment begins at or before `i` in it; the
        // word after it is read only below `count`.
        unsafe {
            let word = self.begins.get(k);
            let upto = word & (!0 >> (31 - bit));
            let begin = match upto {
                0 => 32 * k - 1 - self.begins.get(k - 1).leading_zeros(),
                _ => 32 * k + 31 - upto.leading_zeros(),
            };
            let behind = word & (!1u32).wrapping_shl(bit);
            let end = if behind != 0 {
                32 * k + behind.trailing_zeros()
            } else {
                let next = if 32 * (k + 1) < count { self.begins.get(k + 1) } else { 0 };
                if next != 0 { 32 * (k + 1) + next.trailing_zeros() } else { count }
            };
            (begin, end)
        }
    }
}

/// Sorts the short segments of a window.
///
/// # Safety
/// The contract of the kernels that call it.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn sort<K: SortKey, V: Word, const PAYLOAD: bool>(
    keys: Global<K>,
    values: Global<V>,
    out_keys: GlobalMut<K>,
    out_values: GlobalMut<V>,
    begin: u32,
    bits: u32,
    passes: u32,
    flip: u32,
    words: Global<u32>,
    total: usize,
) {
    type Sort<K> = BlockSort<K, WARPS, { TILE as u32 }>;
    let mut block: Sort<K> = BlockSort::in_shared_memory();
    let bitmap = Bitmap::behind(Sort::<K>::SHARED_BYTES);
    let window = thread::block_idx_x();
    // SAFETY: items are read and written below `count` from `first` on, and belong to this block; barriers separate the
    // uses of shared memory, and all threads reach them, as `count` and `segments` are uniform.
    unsafe {
        let (first, count, segments) = bitmap.load(words, total, window);
        if count == 0 {
            return;
        }
        let first = window as usize * WINDOW + first as usize;
        let (keys, out_keys) = (keys.at(first), out_keys.at(first));
        let rows = count.div_ceil(SHORT_BLOCK);
        let t = thread::thread_idx_x();
        let dense = thread::sync_threads_and(32 * (t + 1) >= count || bitmap.begins.get(t) != 0);
        if dense {
            // Segments are shorter than 96: each item counts the items of its segment before it.
            for i in 0..rows {
                let at = i * SHORT_BLOCK + t;
                if at < count {
                    block.set(at, keys.read_nc(at as usize).masked(begin, bits, flip));
                }
            }
            thread::sync_threads();
            for i in 0..rows {
                let at = i * SHORT_BLOCK + t;
                if at < count {
                    let own = block.get(at).0;
                    let (from, to) = bitmap.bounds_of(at, count);
                    let mut place = from;
                    for j in from..to {
                        let other = block.get(j).0;
                        place += (other < own || (other == own && j < at)) as u32;
                    }
                    out_keys.write(place as usize, keys.read_nc(at as usize));
                    if PAYLOAD {
                        out_values.write(first + place as usize, values.read_nc(first + at as usize));
                    }
                }
            }
            return;
        }
        Sort::<K>::for_each(rows, |place| {
            // Places past the end stay after all items.
            let key = if place < count { keys.read_nc(place as usize) } else { K::splat(!flip) };
            block.set(place, key);
        });
        thread::sync_threads();
        for p in 0..passes {
            let digit = Digit::of_pass(begin, bits, p, passes, flip);
            block = block.pass::<true>(rows, |key, _| digit.of(key));
        }
        // Then by segment.
        let mut shift = 0;
        while segments > 1 && (segments - 1) >> shift != 0 {
            block = block.pass::<true>(rows, |_, origin| {
                let segment = if origin < count { bitmap.segment_of(origin) } else { !0 };
                segment >> shift & 0xff
            });
            shift += DIGIT_BITS;
        }
        Sort::<K>::for_each(rows, |place| {
            if place < count {
                out_keys.write(place as usize, block.get(place).0);
            }
        });
        if PAYLOAD {
            let (values, out_values) = (values.at(first), out_values.at(first));
            let staged = block.staging::<V>();
            thread::sync_threads();
            Sort::<K>::for_each(rows, |place| {
                if place < count {
                    staged.set(place, values.read_nc(place as usize));
                }
            });
            thread::sync_threads();
            Sort::<K>::for_each(rows, |place| {
                if place < count {
                    out_values.write(place as usize, staged.get(block.get(place).1));
                }
            });
        }
    }
}

macro_rules! short_kernels {
    ($($name:ident: $key:ty, $value:ty, $payload:literal, $blocks:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Sorts the short segments of `", stringify!($key), "` keys.")]
            ///
            /// # Safety
            /// - Launch: 1-D, one block of [`SHORT_BLOCK`] threads per [`WINDOW`] items, with the dynamic shared memory
            ///   for the key.
            /// - `begins`: `words` words, the output of [`segmented_sort_find`](super::segmented_sort_find).
            /// - `keys`: valid for one read per bit except the last, not written while the kernel runs; `out_keys`:
            ///   valid for the same number of writes, overlaps nothing else, and nothing else accesses short segments
            ///   there. `values`, `out_values` likewise, if the kernel has payloads.
            /// - `begin + bits` is at most the key's width, and `passes` at least `bits / 8`.
            #[launch_bounds(512, $blocks)]
            pub unsafe fn $name(
                keys: Global<$key>, values: Global<$value>, out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
                begin: u32, bits: u32, passes: u32, flip: u32, begins: Global<u32>, words: usize,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    sort::<$key, $value, $payload>(
                        keys, values, out_keys, out_values, begin, bits, passes, flip, begins, words,
                    )
                }
            }
        }
    )*};
}
short_kernels! {
    segmented_sort_short_u32: u32, u32, false, 3;
    segmented_sort_short_u32_u32: u32, u32, true, 3;
    segmented_sort_short_u32_u64: u32, u64, true, 3;
    segmented_sort_short_u64: u64, u32, false, 2;
    segmented_sort_short_u64_u32: u64, u32, true, 2;
    segmented_sort_short_u64_u64: u64, u64, true, 2;
    segmented_sort_short_u128: u128, u32, false, 2;
    segmented_sort_short_u128_u32: u128, u32, true, 2;
    segmented_sort_short_u128_u64: u128, u64, true, 2;
}
