//! Sort of each segment of an array: many short segments per block, long ones by passes over all of them.
//!
//! One launch marks the beginnings of segments in a bitmap, and lists the long ones. Then each block of [`short`](self)
//! takes the short segments that begin in its window of [`WINDOW`] items, at most [`TILE`] items in all, and sorts them
//! by key and then by segment, stably, in shared memory. Long segments are cut into tiles that do not cross their
//! borders. These tiles pass through onesweep (see [`crate::primitives::radix_sort`]) together, each segment with its
//! own digit counts and look-back.
//!
//! The combination is this project's own; the parts are Adinets and Merrill's ("Onesweep", 2022).

mod long;
mod short;

use warpset_simt::{Global, GlobalMut, atomic, thread, warp};

pub use long::*;
pub use short::*;

/// Threads per block of the launch that finds segments.
pub const FIND_BLOCK: u32 = 256;
/// Items per window; segments that begin in a window belong to its block.
pub const WINDOW: usize = 2048;
/// Largest number of items of a short segment.
pub const SHORT: usize = 2048;
/// Largest number of items of a block: those of its window, and a whole segment after it.
pub const TILE: usize = WINDOW + SHORT;

kernel! {
    /// Marks the beginnings of segments, and lists the long ones.
    ///
    /// A long segment has two words of `long` (its beginning and its length), and one word of `tiles` per tile: the
    /// number of the tile and of the long segment (`tile << 32 | segment`). `found` counts both: tiles in the low half,
    /// segments in the high half.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`FIND_BLOCK`] threads.
    /// - `offsets`: `segments + 1` ascending words, not written while the kernel runs: segment `s` is
    ///   `offsets[s]..offsets[s + 1]`.
    /// - `begins`: a bit for each item and one more, in words of 32, zero at the start, only accessed atomically.
    /// - `long`: two words per [`SHORT`] items; `tiles`: one word per tile of `tile_items` of the long segments;
    ///   `found`: one word, zero; all used by this launch alone.
    #[launch_bounds(256, 4)]
    pub unsafe fn segmented_sort_find(
        offsets: Global<u64>, segments: usize, tile_items: u32, begins: GlobalMut<u32>, long: GlobalMut<u64>,
        tiles: GlobalMut<u64>, found: GlobalMut<u64>,
    ) {
        let step = thread::grid_dim_x() as usize * FIND_BLOCK as usize;
        let mut s = thread::block_idx_x() as usize * FIND_BLOCK as usize + thread::thread_idx_x() as usize;
        let lane = warp::lane_id();
        // Whole warps loop together; offsets after the last one have no bit to mark.
        while s - lane as usize <= segments {
            // SAFETY: offsets are read up to `segments`; bits are at most the number of items; each long segment gets
            // words of its own from `found`. Whole warps reach the collectives.
            unsafe {
                let begin = offsets.read_nc(if s < segments { s } else { segments });
                // Neighbours often share a word: the last one of them marks for all.
                let word = begin / 32;
                let previous = warp::shuffle_up(warp::FULL_MASK, word, 1);
                let heads = warp::ballot(warp::FULL_MASK, lane == 0 || previous != word);
                let first = 31 - (heads & (warp::lane_mask_lt() | warp::lane_mask_eq())).leading_zeros();
                let mut bits = 1 << (begin % 32);
                let mut distance = 1;
                while distance < 32 {
                    let before = warp::shuffle_up(warp::FULL_MASK, bits, distance);
                    bits |= if lane >= first + distance { before } else { 0 };
                    distance *= 2;
                }
                if lane == 31 || heads >> (lane + 1) & 1 != 0 {
                    atomic::reduce_or(begins.at(word as usize), bits);
                }
                if s >= segments {
                    s += step;
                    continue;
                }
                let len = offsets.read_nc(s + 1) - begin;
                if len > SHORT as u64 {
                    let count = len.div_ceil(tile_items as u64);
                    let before = atomic::fetch_add(found, 1 << 32 | count);
                    let (segment, first) = (before >> 32, before as u32);
                    long.write(2 * segment as usize, begin);
                    long.write(2 * segment as usize + 1, len);
                    for tile in 0..count {
                        tiles.write(first as usize + tile as usize, tile << 32 | segment);
                    }
                }
            }
            s += step;
        }
    }
}
