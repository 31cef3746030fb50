//! Short segments: each block sorts those that begin in its window.

use super::{SHORT, TILE, WINDOW};
use crate::primitives::block_sort::BlockSort;
use crate::primitives::ranking::{DIGIT_BITS, DIGITS, Digit, SortKey};
use crate::primitives::warp_tile::Item;
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

/// Bound of the lengths of segments that are sorted by counting.
const DENSE: u32 = 128;
/// Items per thread of such a block.
#[cfg(feature = "bodies")]
const ROWS: usize = (WINDOW + DENSE as usize).div_ceil(SHORT_BLOCK as usize);

/// Returns the keys in 16 bytes.
const fn per_quad<K>() -> u32 {
    16 / size_of::<K>() as u32
}

/// Returns the bytes for the items of such a block, if each segment begins at a multiple of 16 bytes.
const fn padded_bytes<K>() -> u32 {
    (WINDOW as u32 + DENSE + WINDOW as u32 * (per_quad::<K>() - 1)) * size_of::<K>() as u32 + 16
}

/// Bytes for the first items of segments.
const STARTS_BYTES: u32 = (WINDOW as u32 + 1) * 4;

const _: () = assert!(
    padded_bytes::<u32>() + STARTS_BYTES <= BlockSort::<u32, WARPS, { TILE as u32 }>::STAGING_BYTES
        && padded_bytes::<u64>() + STARTS_BYTES <= BlockSort::<u64, WARPS, { TILE as u32 }>::STAGING_BYTES
        && padded_bytes::<u128>() + STARTS_BYTES <= BlockSort::<u128, WARPS, { TILE as u32 }>::STAGING_BYTES
);

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
    /// The block's [`Items`].
    misc: Shared<u32>,
}

/// Items of a block.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
struct Items {
    /// First item, relative to the window, if there is any.
    first: u32,
    count: u32,
    segments: u32,
    /// Whether segments are shorter than [`DENSE`]: no three words of the bitmap in a row are empty.
    dense: bool,
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

    /// Reads the bitmap of the window and finds the block's items, by the first warp.
    ///
    /// # Safety
    /// - All threads of the block arrive.
    /// - `words` holds `total` words.
    #[inline(always)]
    unsafe fn load(self, words: Global<u32>, total: usize, window: u32) -> Items {
        let t = thread::thread_idx_x();
        // SAFETY: words are read below `total`; shared indices stay in their arrays; barriers separate writing from
        // reading; all threads reach barriers, the first warp as a whole searches, scan and votes.
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
                let count = end - first;
                // Four words per lane, from the first item on.
                let lane = warp::lane_id();
                let mut words = [0; 4];
                let mut own = 0;
                for u in 0..4 {
                    let k = 4 * lane + u as u32;
                    if 32 * k < count {
                        let (at, shift) = (first / 32 + k, first % 32);
                        let (low, high) = (self.raw.get(at) as u64, self.raw.get(at + 1) as u64);
                        words[u] = ((high << 32 | low) >> shift) as u32;
                        if count - 32 * k < 32 {
                            words[u] &= (1 << (count - 32 * k)) - 1;
                        }
                    }
                    own += words[u].count_ones();
                }
                let inclusive = warp::inclusive_scan_add(warp::FULL_MASK, own);
                let mut before = inclusive - own;
                for u in 0..4 {
                    self.begins.set(4 * lane + u as u32, words[u]);
                    self.before.set(4 * lane + u as u32, before);
                    before += words[u].count_ones();
                }
                let next = [0, 1].map(|u| warp::shuffle_down(warp::FULL_MASK, words[u], 1));
                let empty = [words[0], words[1], words[2], words[3], next[0], next[1]].map(|word| word == 0);
                let mut gap = false;
                for u in 0..4 {
                    gap |= empty[u] & empty[u + 1] & empty[u + 2] & (32 * (4 * lane + u as u32 + 3) <= count);
                }
                let gap = warp::any(warp::FULL_MASK, gap);
                if lane == 31 {
                    self.misc.set(0, first);
                    self.misc.set(1, count);
                    self.misc.set(2, inclusive);
                    self.misc.set(3, u32::from(gap));
                }
            }
            thread::sync_threads();
            Items {
                first: self.misc.get(0),
                count: self.misc.get(1),
                segments: self.misc.get(2),
                dense: self.misc.get(3) == 0,
            }
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

    /// Whether a segment begins at item `i`.
    ///
    /// # Safety
    /// The contract of [`segment_of`](Self::segment_of).
    #[inline(always)]
    unsafe fn begins_at(self, i: u32) -> bool {
        // SAFETY: `i / 32` is below `WORDS`.
        unsafe { self.begins.get(i / 32) >> (i % 32) & 1 != 0 }
    }
}

/// Sorts the items of a block whose segments are shorter than [`DENSE`]: each item counts the smaller ones of its
/// segment.
///
/// Segments begin at multiples of 16 bytes in shared memory, with greatest keys behind them, so that a thread compares
/// its item with 16 bytes of keys per access.
///
/// # Safety
/// - All threads of the block arrive, after [`Bitmap::load`], which has found these items.
/// - The arrays begin at the block's first item, and satisfy the contract of the kernels.
/// - `padded` is shared memory for [`padded_bytes`] and [`STARTS_BYTES`], which nothing else accesses.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn count_smaller<K: SortKey + Item, V: Word + Default, const PAYLOAD: bool>(
    (keys, values): (Global<K>, Global<V>),
    (out_keys, out_values): (GlobalMut<K>, GlobalMut<V>),
    (begin, bits, flip): (u32, u32, u32),
    padded: Shared<K>,
    bitmap: Bitmap,
    Items { count, segments, .. }: Items,
) {
    let per_quad = const { per_quad::<K>() };
    let t = thread::thread_idx_x();
    // First item of each segment, and the end.
    let starts: Shared<u32> = padded.cast().at(const { padded_bytes::<K>() / 4 });
    // First place of a segment in the padded memory.
    let place_of = |from: u32, segment: u32| (from + (per_quad - 1) * (segment + 1)) / per_quad * per_quad;
    // SAFETY: items are read and written below `count`, segments below their number; places of a segment follow those
    // of earlier ones, within `padded_bytes`; barriers separate writes to shared memory from reads.
    unsafe {
        let (mut loaded, mut segment) = ([K::splat(0); ROWS], [0; ROWS]);
        for i in 0..ROWS {
            let at = i as u32 * SHORT_BLOCK + t;
            if at < count {
                loaded[i] = keys.read_nc(at as usize);
            }
        }
        for i in 0..ROWS {
            let at = i as u32 * SHORT_BLOCK + t;
            if at < count {
                segment[i] = bitmap.segment_of(at);
                if bitmap.begins_at(at) {
                    starts.set(segment[i], at);
                }
            }
        }
        if t == 0 {
            starts.set(segments, count);
        }
        thread::sync_threads();
        for i in 0..ROWS {
            let at = i as u32 * SHORT_BLOCK + t;
            if at < count {
                let (from, to) = (starts.get(segment[i]), starts.get(segment[i] + 1));
                let first = place_of(from, segment[i]);
                padded.set(first + at - from, loaded[i].masked(begin, bits, flip));
                if at + 1 == to {
                    let mut behind = to - from;
                    while behind % per_quad != 0 {
                        padded.set(first + behind, K::splat(!0));
                        behind += 1;
                    }
                }
            }
        }
        thread::sync_threads();
        for i in 0..ROWS {
            let at = i as u32 * SHORT_BLOCK + t;
            if at < count {
                // These arrive while keys are compared; keeping them from before takes too many registers.
                let key = keys.read_nc(at as usize);
                let mut value = V::default();
                if PAYLOAD {
                    value = values.read_nc(at as usize);
                }
                let (from, to) = (starts.get(segment[i]), starts.get(segment[i] + 1));
                let first = place_of(from, segment[i]);
                let own = padded.get(first + at - from);
                let quads: Shared<u32> = padded.at(first).cast();
                // Places in the segment, all greater by the keys of a quad, so that their differences are not negative.
                let own_place = at - from + per_quad;
                let (mut place, mut compared) = (from, per_quad);
                while compared < to - from + per_quad {
                    let words = quads.get4((compared - per_quad) * K::WORDS as u32);
                    for u in 0..per_quad {
                        let other = K::from_words(|word| words[u as usize * K::WORDS + word]);
                        place = other.count_before(compared, own, own_place - u, place);
                    }
                    compared += per_quad;
                }
                out_keys.write(place as usize, key);
                if PAYLOAD {
                    out_values.write(place as usize, value);
                }
            }
        }
    }
}

/// Clears the words that passes over the long segments need, each block its part: a row of digit counts per pass and
/// segment, and a row of look-back words per tile.
///
/// # Safety
/// The contract of the kernels, for these words.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn clear_rows(found: Global<u64>, passes: u32, counts: GlobalMut<u64>, look_back: GlobalMut<u64>) {
    // SAFETY: the contract of this function.
    unsafe {
        let found = found.read_nc(0);
        let mut row = thread::block_idx_x() * (SHORT_BLOCK / DIGITS) + thread::thread_idx_x() / DIGITS;
        let (counted, tiles) = ((found >> 32) as u32 * passes, found as u32);
        while row < counted + tiles {
            let (words, row_of) = if row < counted { (counts, row) } else { (look_back, row - counted) };
            words.write(row_of as usize * DIGITS as usize + (thread::thread_idx_x() % DIGITS) as usize, 0);
            row += thread::grid_dim_x() * (SHORT_BLOCK / DIGITS);
        }
    }
}

/// Sorts the short segments of a window.
///
/// # Safety
/// The contract of the kernels that call it.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn sort<K: SortKey + Item, V: Word + Default, const PAYLOAD: bool>(
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
    (found, counts, look_back): (Global<u64>, GlobalMut<u64>, GlobalMut<u64>),
) {
    type Sort<K> = BlockSort<K, WARPS, { TILE as u32 }>;
    let mut block: Sort<K> = BlockSort::in_shared_memory();
    let bitmap = Bitmap::behind(Sort::<K>::SHARED_BYTES);
    let window = thread::block_idx_x();
    // SAFETY: items are read and written below `count` from `first` on, and belong to this block; barriers separate the
    // uses of shared memory, and all threads reach them, as `count`, `segments` and `dense` are uniform.
    unsafe {
        let items = bitmap.load(words, total, window);
        clear_rows(found, passes, counts, look_back);
        let Items { first, count, segments, dense } = items;
        if count == 0 {
            return;
        }
        let first = window as usize * WINDOW + first as usize;
        let (keys, out_keys) = (keys.at(first), out_keys.at(first));
        if dense {
            let (values, out_values) =
                if PAYLOAD { (values.at(first), out_values.at(first)) } else { (values, out_values) };
            return count_smaller::<K, V, PAYLOAD>(
                (keys, values),
                (out_keys, out_values),
                (begin, bits, flip),
                block.staging(),
                bitmap,
                items,
            );
        }
        let rows = count.div_ceil(SHORT_BLOCK);
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
            /// - `found`: the output of that launch.
            /// - `counts`: a row of 256 words per pass and long segment; `look_back`: one per tile. This launch clears
            ///   them, and nothing else accesses them meanwhile.
            #[launch_bounds(512, $blocks)]
            pub unsafe fn $name(
                keys: Global<$key>, values: Global<$value>, out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
                begin: u32, bits: u32, passes: u32, flip: u32, begins: Global<u32>, words: usize, found: Global<u64>,
                counts: GlobalMut<u64>, look_back: GlobalMut<u64>,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    sort::<$key, $value, $payload>(
                        keys, values, out_keys, out_values, begin, bits, passes, flip, begins, words,
                        (found, counts, look_back),
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
