//! Selection: the items whose bit is set in a bitmap, in input order, in a single pass.
//!
//! Tiles learn by decoupled look-back (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back",
//! 2016) how many items the tiles before them keep.

use warpset_simt::shared::{self, Shared};
use warpset_simt::{Global, GlobalMut, atomic, kernel, thread, warp};

/// Threads of a block.
pub const BLOCK: u32 = 256;
/// Items of a tile.
pub const TILE: usize = TILE_WORDS as usize * 32;
/// Dynamic shared memory, in bytes.
pub const SHARED_BYTES: u32 = (TILE_WORDS + WARPS + 8) * 4;

const WARPS: u32 = BLOCK / 32;
/// Words of the bitmap in a tile: half as many as threads, 16 a warp.
const TILE_WORDS: u32 = 128;
const WARP_WORDS: u32 = TILE_WORDS / WARPS;

// A look-back word: two flag bits over a 62-bit count. Zero means that nothing is known yet.
const AGGREGATE: u64 = 1 << 62;
const INCLUSIVE: u64 = 2 << 62;
const COUNT: u64 = AGGREGATE - 1;

/// How many items the tiles before `tile` keep; by one warp.
///
/// # Safety
/// All lanes of the warp arrive together; `look_back` holds a word for each tile up to `tile`.
#[inline(always)]
unsafe fn kept_before(tile: usize, look_back: GlobalMut<u64>) -> u64 {
    let lane = warp::lane_id() as usize;
    let mut sum = 0;
    let mut end = tile; // tiles below `end` are still to be added
    // SAFETY: indices are below `tile`; loops and votes are the same for the whole warp.
    unsafe {
        loop {
            let mut word = INCLUSIVE;
            if lane < end {
                word = atomic::load_relaxed(look_back.at(end - 1 - lane));
            }
            while warp::any(warp::FULL_MASK, word == 0) {
                thread::spin_hint();
                if word == 0 {
                    word = atomic::load_relaxed(look_back.at(end - 1 - lane));
                }
            }
            let inclusive = warp::ballot(warp::FULL_MASK, word & INCLUSIVE != 0);
            let nearest = if inclusive == 0 { 31 } else { inclusive.trailing_zeros() };
            let mut part = if lane <= nearest as usize { word & COUNT } else { 0 };
            let mut distance = 16;
            while distance > 0 {
                part += warp::shuffle_xor(warp::FULL_MASK, part, distance);
                distance /= 2;
            }
            sum += part;
            if inclusive != 0 {
                return sum;
            }
            end -= 32;
        }
    }
}

/// One tile; `item_at` gives the item at any place below `n`.
///
/// # Safety
/// As [`select_u32`].
#[inline(always)]
unsafe fn select<T: warpset_simt::Word>(
    item_at: impl Fn(usize) -> T,
    n: usize,
    bitmap: Global<u32>,
    look_back: GlobalMut<u64>,
    ticket: GlobalMut<u32>,
    out: GlobalMut<T>,
    selected: GlobalMut<u64>,
) {
    let starts: Shared<u32> = shared::dynamic(0); // one a word of the tile
    let sums: Shared<u32> = shared::dynamic(TILE_WORDS * 4); // one a warp
    let misc: Shared<u64> = shared::dynamic((TILE_WORDS + WARPS) * 4); // what the tiles before keep
    let number: Shared<u32> = shared::dynamic((TILE_WORDS + WARPS + 4) * 4); // the tile
    let t = thread::thread_idx_x();
    let lane = warp::lane_id();
    let warp_index = t / 32;
    // SAFETY: shared indices stay inside the four arrays, and a barrier stands between accesses of different threads to
    // one word; the ticket makes `tile` unique; words are read below `n.div_ceil(32)` and items below `n`; a kept item's
    // place is the number of kept items before it, so places differ and stay within `out`. All threads reach every
    // barrier and vote.
    unsafe {
        if t == 0 {
            number.set(0, atomic::fetch_add(ticket, 1));
        }
        thread::sync_threads();
        let tile = number.get(0) as usize;
        let first_word = tile * TILE_WORDS as usize;
        let all_words = n.div_ceil(32);

        let mut count = 0;
        if t < TILE_WORDS && first_word + (t as usize) < all_words {
            let at = first_word + t as usize;
            let mut word = bitmap.read_nc(at);
            if at == all_words - 1 && n % 32 != 0 {
                word &= (1 << (n % 32)) - 1;
            }
            count = word.count_ones();
        }
        let inclusive = warp::inclusive_scan_add(warp::FULL_MASK, count);
        if lane == 31 {
            sums.set(warp_index, inclusive);
        }
        thread::sync_threads();
        let mut start = inclusive - count;
        let mut total = 0;
        for w in 0..WARPS {
            let sum = sums.get(w);
            if w < warp_index {
                start += sum;
            }
            total += sum;
        }
        if t < TILE_WORDS {
            starts.set(t, start);
        }
        if warp_index == 0 {
            if lane == 0 {
                let flag = if tile == 0 { INCLUSIVE } else { AGGREGATE };
                atomic::store_relaxed(look_back.at(tile), flag | total as u64);
            }
            let before = if tile == 0 { 0 } else { kept_before(tile, look_back) };
            if lane == 0 {
                if tile != 0 {
                    atomic::store_relaxed(look_back.at(tile), INCLUSIVE | (before + total as u64));
                }
                misc.set(0, before);
                if first_word + TILE_WORDS as usize >= all_words {
                    selected.write(0, before + total as u64);
                }
            }
        }
        thread::sync_threads();
        let before = misc.get(0);
        for w in 0..WARP_WORDS {
            let in_tile = warp_index * WARP_WORDS + w;
            let at = first_word + in_tile as usize;
            let item = at * 32 + lane as usize;
            if item < n {
                let word = bitmap.read_nc(at);
                if word >> lane & 1 != 0 {
                    let rank = starts.get(in_tile) + (word & warp::lane_mask_lt()).count_ones();
                    out.write((before + rank as u64) as usize, item_at(item));
                }
            }
        }
    }
}

macro_rules! select_kernels {
    ($($name:ident: $item:ty;)*) => {$(
        kernel! {
            #[doc = concat!("Copies the `", stringify!($item), "` items whose bit is set, in order.")]
            ///
            /// # Safety
            /// - Launch: 1-D, `n.div_ceil(TILE)` blocks of [`BLOCK`] threads, [`SHARED_BYTES`] of dynamic shared memory;
            ///   `n > 0`.
            /// - `items`: valid for `n` reads; `bitmap`: for `n.div_ceil(32)` words; neither is written meanwhile.
            /// - `look_back`: one word a block, and `ticket` one word: zero at the start, nobody else's.
            /// - `out`: valid for as many writes as bits are set, overlaps nothing else, nobody else touches it.
            /// - `selected`: one word, set to that number; nobody else's.
            #[launch_bounds(256, 8)]
            pub unsafe fn $name(
                items: Global<$item>, n: usize, bitmap: Global<u32>, look_back: GlobalMut<u64>, ticket: GlobalMut<u32>,
                out: GlobalMut<$item>, selected: GlobalMut<u64>,
            ) {
                // SAFETY: the caller keeps this kernel's contract; `select` asks for items below `n`.
                unsafe { select(|i| items.read_nc(i), n, bitmap, look_back, ticket, out, selected) }
            }
        }
    )*};
}
select_kernels! {
    select_u32: u32;
    select_u64: u64;
}

kernel! {
    /// Writes the places whose bit is set, in order.
    ///
    /// # Safety
    /// As for [`select_u64`], without items.
    #[launch_bounds(256, 8)]
    pub unsafe fn select_indices(
        n: usize, bitmap: Global<u32>, look_back: GlobalMut<u64>, ticket: GlobalMut<u32>, out: GlobalMut<u64>,
        selected: GlobalMut<u64>,
    ) {
        // SAFETY: the caller keeps this kernel's contract.
        unsafe { select(|i| i as u64, n, bitmap, look_back, ticket, out, selected) }
    }
}
