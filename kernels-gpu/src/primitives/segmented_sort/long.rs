//! Long segments: passes of onesweep over the tiles of all of them.

use crate::block;
use crate::primitives::onesweep_tile::{self, PassShape};
use crate::primitives::ranking::{DIGITS, Digit, LookBack, SortKey};
use warpset_core::scan::Sum;
use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, Word, atomic, thread};

/// Threads per block of the histogram.
pub const COUNT_BLOCK: u32 = 512;
/// Dynamic shared memory of the histogram, in bytes.
pub const COUNT_SHARED_BYTES: u32 = 16 * DIGITS * 4;

/// Tile of a long segment.
#[cfg(feature = "bodies")]
struct Tile {
    /// Number of the long segment.
    segment: u32,
    /// Number of the tile in it.
    number: u32,
    /// Beginning of the segment.
    begin: u64,
    /// Beginning of the tile.
    first: u64,
    /// Number of items.
    valid: u32,
}

#[cfg(feature = "bodies")]
impl Tile {
    /// Reads tile `at` of the list.
    ///
    /// # Safety
    /// `long` and `tiles` are the outputs of [`segmented_sort_find`](super::segmented_sort_find), and `at` is below the
    /// number of tiles.
    #[inline(always)]
    unsafe fn read(long: Global<u64>, tiles: Global<u64>, at: u32, tile_items: u32) -> Tile {
        // SAFETY: the contract of this function.
        unsafe {
            let entry = tiles.read_nc(at as usize);
            let (segment, number) = (entry as u32, (entry >> 32) as u32);
            let begin = long.read_nc(2 * segment as usize);
            let skipped = number as u64 * tile_items as u64;
            let left = long.read_nc(2 * segment as usize + 1) - skipped;
            let valid = if left < tile_items as u64 { left as u32 } else { tile_items };
            Tile { segment, number, begin, first: begin + skipped, valid }
        }
    }
}

/// Counts all digits of every long segment.
///
/// # Safety
/// The contract of the kernels that call it.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn count<K: SortKey, const MAX: u32>(
    keys: Global<K>,
    begin: u32,
    bits: u32,
    passes: u32,
    flip: u32,
    tile_items: u32,
    long: Global<u64>,
    tiles: Global<u64>,
    found: Global<u64>,
    counts: GlobalMut<u64>,
) {
    let shared_counts: Shared<u32> = shared::dynamic(0);
    let t = thread::thread_idx_x();
    // SAFETY: shared indices stay below `passes * DIGITS`; barriers, which all threads reach, separate clearing,
    // counting and summing; items are those of the tile.
    unsafe {
        let number = found.read_nc(0) as u32;
        let mut at = thread::block_idx_x();
        while at < number {
            let tile = Tile::read(long, tiles, at, tile_items);
            let mut i = t;
            while i < passes * DIGITS {
                shared_counts.set(i, 0);
                i += COUNT_BLOCK;
            }
            thread::sync_threads();
            let keys = keys.at(tile.first as usize);
            let mut i = t;
            while i < tile.valid {
                let key = keys.read_nc(i as usize);
                for p in 0..MAX {
                    if p < passes {
                        let digit = Digit::of_pass(begin, bits, p, passes, flip);
                        shared_counts.reduce_add(p * DIGITS + digit.of(key), 1);
                    }
                }
                i += COUNT_BLOCK;
            }
            thread::sync_threads();
            let mut i = t;
            while i < passes * DIGITS {
                let count = shared_counts.get(i);
                if count != 0 {
                    let row = tile.segment as usize * (passes * DIGITS) as usize;
                    atomic::reduce_add(counts.at(row + i as usize), count as u64);
                }
                i += COUNT_BLOCK;
            }
            thread::sync_threads();
            at += thread::grid_dim_x();
        }
    }
}

macro_rules! count_kernels {
    ($($name:ident: $key:ty, $max:literal;)*) => {$(
        kernel! {
            #[doc = concat!("Counts the digits of long segments of `", stringify!($key), "` keys.")]
            ///
            /// # Safety
            /// - Launch: 1-D, blocks of [`COUNT_BLOCK`] threads, [`COUNT_SHARED_BYTES`] of dynamic shared memory.
            /// - `long`, `tiles`, `found`: the outputs of [`segmented_sort_find`](super::segmented_sort_find), with
            ///   tiles of `tile_items`; `keys`: valid for all items, not written while the kernel runs.
            /// - `begin + bits` is at most the key's width; `passes` at least `bits / 8` and at most its bytes.
            /// - `counts`: [`DIGITS`] words per pass and long segment, zero at the start, used by this launch alone.
            #[launch_bounds(512, 2)]
            pub unsafe fn $name(
                keys: Global<$key>, begin: u32, bits: u32, passes: u32, flip: u32, tile_items: u32, long: Global<u64>,
                tiles: Global<u64>, found: Global<u64>, counts: GlobalMut<u64>,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    count::<$key, $max>(keys, begin, bits, passes, flip, tile_items, long, tiles, found, counts)
                }
            }
        }
    )*};
}
count_kernels! {
    segmented_sort_count_u32: u32, 4;
    segmented_sort_count_u64: u64, 8;
    segmented_sort_count_u128: u128, 16;
}

/// Runs one digit's pass over the long segments, tile by tile.
///
/// # Safety
/// The contract of the kernels that call it.
#[cfg(feature = "bodies")]
#[inline(always)]
unsafe fn pass<K: SortKey, V: Word + Default, const PAYLOAD: bool, const WARPS: u32, const ITEMS: usize>(
    from: (Global<K>, Global<V>),
    to: (GlobalMut<K>, GlobalMut<V>),
    digit: Digit,
    pass: u32,
    passes: u32,
    long: Global<u64>,
    tiles: Global<u64>,
    found: Global<u64>,
    counts: Global<u64>,
    look_back: GlobalMut<u64>,
    next_look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
) {
    let tile_items = WARPS * 32 * ITEMS as u32;
    let t = thread::thread_idx_x();
    // SAFETY: tickets make `at` unique, so this block alone publishes its row, and clears the same row of the next
    // pass. Items are read within the tile; places come from exact counts of the segment's items, so they are in it and
    // distinct. All threads reach every barrier; one separates two uses of shared memory.
    unsafe {
        let number = found.read_nc(0) as u32;
        loop {
            let at = onesweep_tile::take_ticket::<WARPS>(ticket);
            if at >= number {
                return;
            }
            let Tile { segment, number, begin, first, valid } = Tile::read(long, tiles, at, tile_items);
            let mut total = 0;
            if t < DIGITS {
                total =
                    counts.read_nc((segment as usize * passes as usize + pass as usize) * DIGITS as usize + t as usize);
                next_look_back.write(at as usize * DIGITS as usize + t as usize, 0);
            }
            let (start, _) = block::exclusive_scan::<Sum<u64>, WARPS>(total, shared::dynamic(0));
            // The segment's rows: a tile finds the rows of earlier ones by its number.
            let rows = LookBack::new(look_back.at((at - number) as usize * DIGITS as usize), DIGITS);
            onesweep_tile::scatter_tile::<K, V, PAYLOAD, WARPS, ITEMS>(
                (from.0.at(first as usize), from.1.at(if PAYLOAD { first as usize } else { 0 })),
                to,
                valid,
                digit,
                |count| rows.publish(number, t, count as u64),
                |count| begin + start + rows.before(number, t, count as u64),
            );
            thread::sync_threads();
        }
    }
}

macro_rules! long_kernels {
    ($($name:ident, $shape:ident: $key:ty, $value:ty, $payload:literal, $threads:literal x $items:literal, $blocks:literal;)*) => {$(
        /// Shape of the kernel of the same name.
        pub const $shape: PassShape = PassShape::new(
            $threads, $items, size_of::<$key>() as u32, if $payload { size_of::<$value>() as u32 } else { 0 },
        );

        kernel! {
            #[doc = concat!("One pass over long segments of `", stringify!($key), "` keys.")]
            ///
            /// # Safety
            /// - Launch: 1-D, any number of blocks of the kernel's shape.
            /// - `long`, `tiles`, `found`: the outputs of [`segmented_sort_find`](super::segmented_sort_find), with
            ///   tiles of the kernel's shape; `counts`: the output of the launch that counts.
            /// - `keys`: valid for all items, not written while the kernel runs; `out_keys`: valid for all items,
            ///   overlaps nothing else, and nothing else accesses long segments there. Payloads likewise, if the kernel
            ///   has them.
            /// - `look_back`, `next_look_back`: a row of [`DIGITS`] words for each tile, used by this launch alone; the
            ///   former zero.
            /// - `ticket`: one word, zero, used by this launch alone.
            #[launch_bounds($threads, $blocks)]
            pub unsafe fn $name(
                keys: Global<$key>, values: Global<$value>, out_keys: GlobalMut<$key>, out_values: GlobalMut<$value>,
                digit: Digit, at: u32, passes: u32, long: Global<u64>, tiles: Global<u64>,
                found: Global<u64>, counts: Global<u64>, look_back: GlobalMut<u64>, next_look_back: GlobalMut<u64>,
                ticket: GlobalMut<u32>,
            ) {
                // SAFETY: the contract of this kernel.
                unsafe {
                    pass::<$key, $value, $payload, { $threads / 32 }, $items>(
                        (keys, values), (out_keys, out_values), digit, at, passes, long, tiles,
                        found, counts, look_back, next_look_back, ticket,
                    )
                }
            }
        }
    )*};
}
long_kernels! {
    segmented_sort_pass_u32, LONG_U32: u32, u32, false, 256 x 16, 4;
    segmented_sort_pass_u32_u32, LONG_U32_U32: u32, u32, true, 256 x 16, 3;
    segmented_sort_pass_u32_u64, LONG_U32_U64: u32, u64, true, 256 x 12, 3;
    segmented_sort_pass_u64, LONG_U64: u64, u32, false, 256 x 16, 3;
    segmented_sort_pass_u64_u32, LONG_U64_U32: u64, u32, true, 256 x 12, 3;
    segmented_sort_pass_u64_u64, LONG_U64_U64: u64, u64, true, 256 x 12, 3;
    segmented_sort_pass_u128, LONG_U128: u128, u32, false, 256 x 8, 3;
    segmented_sort_pass_u128_u32, LONG_U128_U32: u128, u32, true, 256 x 8, 3;
    segmented_sort_pass_u128_u64, LONG_U128_U64: u128, u64, true, 256 x 8, 3;
}
