//! Ranges where it is known which elements are visible: keys and values, in ascending order.
//!
//! [`lsm_spans`](super::spans) has counted. Queries of up to 32 elements share the lanes of a warp ([`lsm_list`]): a
//! group of lanes has a query, a lane each of its levels. Of the others a warp has a query, or a part of one
//! ([`lsm_list_parts`]).

use warpset_simt::shared;
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, allow, thread};

use crate::lsm::groups::{self, Groups, WARPS, span_of};
use crate::lsm::levels::{LevelKey, Levels, Span};
use crate::lsm::parts::{self, LONG_WORDS};
use crate::lsm::runs::{self, Output};
use crate::lsm::short::Short;
use crate::lsm::visibility::Visibility;

/// Bytes of dynamic shared memory of a block of [`lsm_list_parts`] with keys of type `K`.
#[must_use]
pub const fn shared_bytes<K>() -> u32 {
    WARPS * runs::shared_bytes::<K>()
}

/// The elements of a query in the lane's level: as they were kept, or found again.
///
/// # Safety
/// [`Levels::new`]'s contract; `query` has a low and a high end, and a span of the level if any were kept.
#[inline(always)]
unsafe fn span<K: LevelKey>(
    tree: Levels,
    levels: u32,
    own: u32,
    spans: Global<u64>,
    kept: u32,
    query: usize,
    lows: Global<K>,
    highs: Global<K>,
) -> Span {
    // SAFETY: the caller's promise.
    unsafe {
        let mut span = None;
        if kept != 0 {
            span = groups::unpack(spans.read_nc(query * levels as usize + own as usize));
        }
        match span {
            Some(span) => span,
            None => span_of(tree.level::<K>(own).indexed(), lows.read_nc(query), highs.read_nc(query)),
        }
    }
}

kernel! {
    /// The visible keys of each range of up to 32 elements, and their values, from the range's offset on.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](groups::BLOCK) threads.
    /// - `table`, `levels`, `visible`, `all`, `lows`, `highs`: as for [`lsm_spans`](super::spans::lsm_spans); values
    ///   have `value_words` words of 32 bits, 0, 1 or 2.
    /// - `spans`: what it kept of these queries, not written while the kernel runs, unless `kept` is 0.
    /// - `offsets`: valid for `n` reads: how many visible elements the ranges before have.
    /// - `keys`, `values`: valid for as many writes as all ranges have visible elements, used by this launch and
    ///   [`lsm_list_parts`] alone.
    #[launch_bounds(256, 5)]
    pub unsafe fn lsm_list<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, all: u32, lows: Global<K>, highs: Global<K>, n: usize,
        spans: Global<u64>, kept: u32, offsets: Global<u64>, keys: GlobalMut<K>, values: GlobalMut<u32>, value_words: u32,
    ) for [u32 => lsm_list_u32, #[launch_bounds(256, 4)] u64 => lsm_list_u64] {
        let warp_in_block = thread::thread_idx_x() / 32;
        let lane = lane_id();
        let groups = Groups::new(levels);
        // SAFETY: the caller keeps the kernel's contract.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::new(visible, all != 0)) };
        let own = groups.level();
        let at_a_time = groups.queries() as usize;
        let mut base = (thread::block_idx_x() as usize * WARPS as usize + warp_in_block as usize) * at_a_time;
        while base < n {
            // SAFETY: the caller keeps the kernel's contract; `query < n` where it is read; `base`, the groups and sums
            // are the same for the warp; a visible element's place in the output is the query's offset and the number
            // of visible ones with smaller keys.
            unsafe {
                let query = base + groups.group() as usize;
                let mut here = Span::EMPTY;
                let mut offset = 0;
                if query < n {
                    offset = offsets.read_nc(query);
                    if own < levels {
                        here = span(tree, levels, own, spans, kept, query, lows, highs);
                    }
                }
                let total = groups.total(here);
                let short = Short::new(groups, here, total);
                let mut first = 0;
                loop {
                    let window = short.window::<K>(tree, Some(visibility), first);
                    if window.len == 0 {
                        break;
                    }
                    let of_query = window.valid_of_query();
                    let mut rank = 0;
                    for i in 0..window.longest {
                        let other = window.first.wrapping_add(i) & 31;
                        let smaller = warp::shuffle_idx(FULL_MASK, window.key, other) < window.key;
                        rank += (smaller & (of_query >> other & 1 != 0) & (i < window.total)) as usize;
                    }
                    let to = warp::shuffle_idx(FULL_MASK, offset, window.source) as usize + rank;
                    if window.valid >> lane & 1 != 0 {
                        keys.write(to, window.key);
                        tree.copy_value(window.source % groups.lanes, window.place, value_words, values, to);
                    }
                    first += window.len;
                }
            }
            base += thread::grid_dim_x() as usize * WARPS as usize * at_a_time;
        }
    }

    /// The visible keys of each range of more than 32 elements, and their values, from the range's offset on.
    ///
    /// # Safety
    /// - Launch: as for [`lsm_list`], with [`shared_bytes`] of dynamic shared memory; so are other arguments.
    /// - `long`: the `long_len` queries that [`lsm_spans`](super::spans::lsm_spans) found, which have `parts` parts;
    ///   not written while the kernel runs.
    #[launch_bounds(256, 3)]
    pub unsafe fn lsm_list_parts<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, all: u32, lows: Global<K>, highs: Global<K>,
        spans: Global<u64>, kept: u32, long: Global<u64>, long_len: u32, parts: u32, offsets: Global<u64>, keys: GlobalMut<K>,
        values: GlobalMut<u32>, value_words: u32,
    ) for [u32 => lsm_list_parts_u32, #[launch_bounds(256, 2)] u64 => lsm_list_parts_u64] {
        // Nine registers.
        allow::spill();
        let warp_in_block = thread::thread_idx_x() / 32;
        let own = lane_id();
        // SAFETY: the caller keeps the kernel's contract.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::new(visible, all != 0)) };
        let out = Output { keys, values, value_words };
        let mut item = thread::block_idx_x() * WARPS + warp_in_block;
        while item < parts {
            // SAFETY: the caller keeps the kernel's contract. The item is the same for the warp, and belongs to the
            // last query whose parts begin at or before it; what is before a part in its query is as much as is written
            // before it.
            unsafe {
                // Where no query is cut, each has one part.
                let (mut low, mut high) = if parts == long_len { (item, item + 1) } else { (0, long_len) };
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    let begins = long.read_nc(middle as usize * LONG_WORDS + 1) <= item as u64;
                    low = if begins { middle } else { low };
                    high = if begins { high } else { middle };
                }
                let query = long.read_nc(low as usize * LONG_WORDS) as usize;
                let splitter = item - long.read_nc(low as usize * LONG_WORDS + 1) as u32;
                let mut here = Span::EMPTY;
                if own < levels {
                    here = span(tree, levels, own, spans, kept, query, lows, highs);
                }
                let total = warp::reduce_add(FULL_MASK, here.count().min(1 << 26) as u32);
                let (span, before) =
                    if parts::is_cut(total) { parts::part::<K>(tree, visibility, here, splitter) } else { (here, 0) };
                let to = (offsets.read_nc(query) + before) as usize;
                let room = shared::dynamic(warp_in_block * runs::shared_bytes::<K>());
                runs::write::<K>(tree, levels, visibility, span, room, out, to);
            }
            item += thread::grid_dim_x() * WARPS;
        }
    }
}
