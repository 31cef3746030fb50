//! Ranges: keys and values, in ascending order.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU",
//! IPDPS 2018, section IV-D. The paper copies the candidates of all queries to memory, sorts each query's, and drops
//! what is stale. Departures: levels are sorted already, and an [`order`] says how they interleave.
//!
//! Ranges have been counted, by [`lsm_spans`](super::spans) or [`lsm_count`](super::count), so that the place of each in
//! the output is known. Queries of up to 32 elements share the lanes of a warp ([`lsm_list`]): a group of lanes has a
//! query, a lane each of its levels. Of the others a warp has a query, or a piece of one ([`lsm_list_pieces`]).

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, allow, thread};

use crate::lsm::groups::{Groups, WARPS, kept_span};
use crate::lsm::levels::{Levels, Span};
use crate::lsm::order::{self, LONG_WORDS, Output, PIECE};
use crate::lsm::short::Short;
use crate::lsm::visibility::Visibility;

kernel! {
    /// The visible keys of each range of up to 32 elements, and their values, from the range's offset on.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](groups::BLOCK) threads.
    /// - `table`: as for [`Levels::new`], it has `levels` levels, whose values have `value_words` words of 32 bits, 0, 1
    ///   or 2.
    /// - `visible`, `known`: as for [`Visibility::when_known`].
    /// - `lows`, `highs`: valid for `n` reads, not written while the kernel runs: both ends belong to the range.
    /// - `spans`: what counting kept of these queries, not written while the kernel runs, unless `kept` is 0.
    /// - `offsets`: valid for `n` reads: how many visible elements the ranges before have.
    /// - `keys`, `values`: valid for as many writes as all ranges have visible elements, used by this launch and
    ///   [`lsm_list_pieces`] alone.
    #[launch_bounds(256, 5)]
    pub unsafe fn lsm_list<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, known: u32, lows: Global<K>, highs: Global<K>, n: usize,
        spans: Global<u64>, kept: u32, offsets: Global<u64>, keys: GlobalMut<K>, values: GlobalMut<u32>, value_words: u32,
    ) for [u32 => lsm_list_u32, #[launch_bounds(256, 4)] u64 => lsm_list_u64] {
        let warp_in_block = thread::thread_idx_x() / 32;
        let lane = lane_id();
        let groups = Groups::new(levels);
        // SAFETY: the caller keeps the kernel's contract.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::when_known(visible, known)) };
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
                        here = kept_span(tree, levels, own, spans, kept, query, lows, highs);
                    }
                }
                let total = groups.total(here);
                let short = Short::new(groups, here, total);
                let mut first = 0;
                loop {
                    let window = short.window::<K>(tree, visibility, first);
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

    /// Says for each piece of the long queries which entry of their list it is of.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid.
    /// - `long`: as for [`lsm_list_pieces`], with `parts` pieces.
    /// - `owners`: valid for `parts` writes, used by this launch alone.
    pub unsafe fn lsm_owners(long: Global<u64>, long_len: u32, parts: u32, owners: GlobalMut<u32>) {
        // 32 threads per query.
        for i in thread::grid_stride(long_len as usize * 32) {
            let entry = i / 32;
            // SAFETY: the caller keeps this kernel's contract; pieces of an entry end where those of the next begin.
            unsafe {
                let begin_of = |entry: usize| long.read_nc(entry * LONG_WORDS + 1) as usize;
                let end = if entry + 1 < long_len as usize { begin_of(entry + 1) } else { parts as usize };
                let mut piece = begin_of(entry) + i % 32;
                while piece < end {
                    owners.write(piece, entry as u32);
                    piece += 32;
                }
            }
        }
    }

    /// The visible keys of each range of more than 32 elements, and their values, from the range's offset on.
    ///
    /// # Safety
    /// - Launch and other arguments: as for [`lsm_list`].
    /// - `long`: the `long_len` queries that counting has found, not written while the kernel runs: with `parts` pieces
    ///   of the tree's order; or, if `parts` is 0, with orders of their own. `owners`: of each piece, as [`lsm_owners`]
    ///   left them, unless each query has one.
    /// - `order`: that of the tree, of `pieces` pieces, whose `splits` these are; a tree of one level, all of whose
    ///   visible elements are known, needs neither. Or the order of these queries, as
    ///   [`lsm_order_queries`](super::ordering::lsm_order_queries) left it.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_list_pieces<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, known: u32, lows: Global<K>, highs: Global<K>,
        spans: Global<u64>, kept: u32, long: Global<u64>, long_len: u32, parts: u32, owners: Global<u32>, order: Global<u8>, splits: Global<u32>,
        pieces: u32, offsets: Global<u64>, keys: GlobalMut<K>, values: GlobalMut<u32>, value_words: u32,
    ) for [u32 => lsm_list_pieces_u32, u64 => lsm_list_pieces_u64] {
        // Some registers on sm_80; none on later ones.
        allow::spill();
        let own = lane_id();
        // SAFETY: the caller keeps the kernel's contract.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::when_known(visible, known)) };
        let out = Output { keys, values, value_words };
        let items = if parts == 0 { long_len } else { parts };
        let mut item = thread::block_idx_x() * WARPS + thread::thread_idx_x() / 32;
        while item < items {
            // SAFETY: the caller keeps the kernel's contract. The item is the same for the warp; what is before a piece
            // in its query is as much as is written before it.
            unsafe {
                let entry = if parts == 0 || parts == long_len { item } else { owners.read_nc(item as usize) };
                let query = long.read_nc(entry as usize * LONG_WORDS) as usize;
                let begin = long.read_nc(entry as usize * LONG_WORDS + 1) as usize;
                let mut here = Span::EMPTY;
                if own < levels {
                    here = kept_span(tree, levels, own, spans, kept, query, lows, highs);
                }
                let mut to = offsets.read_nc(query) as usize;
                let occupied = warp::ballot(FULL_MASK, here.count() != 0);
                // Where the piece begins in the order, its elements, and the first of them of the lane's level.
                let (mut from, mut place) = (begin, here.low);
                let count = here.count();
                // A tree with an order has fewer than 2^32 elements.
                let mut len =
                    if parts != 0 { warp::reduce_add(FULL_MASK, count as u32) as usize } else { reduce_add(count) };
                if parts != 0 {
                    let first = warp::reduce_add(FULL_MASK, here.low as u32) as usize;
                    let number = item as usize - begin;
                    let end = (first + len).min((first / PIECE + number + 1) * PIECE);
                    from = if number == 0 { first } else { (first / PIECE + number) * PIECE };
                    len = end - from;
                    if number != 0 {
                        // Elements of all levels before this one count as before the split.
                        let below = warp::inclusive_scan_add(FULL_MASK, if own < levels { tree.len(own) as u32 } else { 0 });
                        let mut before = 0u32;
                        if own < levels {
                            let of_level = below - tree.len(own) as u32;
                            place = from;
                            if levels > 1 {
                                let split = own as usize * pieces as usize + first / PIECE + number;
                                place = splits.read_nc(split).wrapping_sub(of_level) as usize;
                            }
                            before = (place - here.low) as u32;
                            if let Some(visibility) = visibility {
                                let first = tree.first_visible(own);
                                before = visibility.rank(first, place).wrapping_sub(visibility.rank(first, here.low));
                            }
                        }
                        to += warp::reduce_add(FULL_MASK, before) as usize;
                    }
                }
                if let (Some(visibility), true) = (visibility, occupied & occupied.wrapping_sub(1) == 0) {
                    let number = occupied.trailing_zeros() % 32;
                    let low = warp::shuffle_idx(FULL_MASK, place as u64, number) as usize;
                    order::copy(tree, visibility, number, Span { low, high: low + len }, out, to);
                } else {
                    order::write(tree, levels, order.at(from), len, place, out, to);
                }
            }
            item += thread::grid_dim_x() * WARPS;
        }
    }
}

/// The sum over the lanes.
///
/// # Safety
/// All lanes of the warp come here together.
#[inline(always)]
#[track_caller]
unsafe fn reduce_add(value: usize) -> usize {
    let mut sum = value as u64;
    let mut distance = 16;
    while distance > 0 {
        // SAFETY: the caller's lanes all come here.
        sum += unsafe { warp::shuffle_xor(FULL_MASK, sum, distance) };
        distance /= 2;
    }
    sum as usize
}
