//! Lists of ranges: keys and values, in ascending order.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU",
//! IPDPS 2018, section IV-D. The paper copies the candidates of all queries to memory, sorts each query's, and drops
//! stale ones. Departures: levels are already sorted, and an [`order`](super::order) describes how they interleave.
//!
//! Ranges have been counted, by [`lsm_spans`](super::spans), [`lsm_locate`](super::spans::lsm_locate) or
//! [`lsm_count`](super::count), so the place of each in the output is known. Queries of up to 32 elements share the
//! lanes of a warp; a longer query, or a part of one, has a warp of its own:
//! - [`lsm_list_located`] and [`lsm_list_tasks`] with an order of all elements;
//! - otherwise [`lsm_list`], with a group of lanes per query, one lane per level; and [`lsm_list_long`], for trees of
//!   one level, or by orders that have been made for these queries.

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, thread};

use crate::lsm::groups::{self, WARPS};
#[cfg(feature = "bodies")]
use crate::lsm::groups::{Groups, kept_span};
use crate::lsm::levels::{Levels, Span};
use crate::lsm::order::{LONG_WORDS, Order, OrderTable, Output, TASK};
use crate::lsm::short::SHORT;
#[cfg(feature = "bodies")]
use crate::lsm::short::Short;
use crate::lsm::visibility::Visibility;

kernel! {
    /// Lists the visible keys of each range of up to 32 elements, and their values, from the range's offset on.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](groups::BLOCK) threads.
    /// - `table`: as for [`Levels::new`], with `levels` levels of values of `value_words` words of 32 bits, 0, 1 or 2.
    /// - `visible`, `known`: as for [`Visibility::when_known`].
    /// - `lows`, `highs`: valid for `n` reads, not written while the kernel runs: both ends belong to the range.
    /// - `spans`: the spans that counting kept of these queries, not written while the kernel runs, unless `kept` is 0.
    /// - `offsets`: valid for `n` reads: the number of visible elements of earlier ranges.
    /// - `keys`, `values`: valid for one write per visible element of all ranges, used only by this launch and
    ///   [`lsm_list_long`].
    #[launch_bounds(256, 5)]
    pub unsafe fn lsm_list<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, known: u32, lows: Global<K>, highs: Global<K>, n: usize,
        spans: Global<u64>, kept: u32, offsets: Global<u64>, keys: GlobalMut<K>, values: GlobalMut<u32>, value_words: u32,
    ) for [
        u32 => lsm_list_u32, #[launch_bounds(256, 4)] u64 => lsm_list_u64,
        #[launch_bounds(256, 3)] u128 => lsm_list_u128
    ] {
        let warp_in_block = thread::thread_idx_x() / 32;
        let lane = lane_id();
        let groups = Groups::new(levels);
        // SAFETY: the contract of this kernel.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::when_known(visible, known)) };
        let own = groups.level();
        let at_a_time = groups.queries() as usize;
        let mut base = (thread::block_idx_x() as usize * WARPS as usize + warp_in_block as usize) * at_a_time;
        while base < n {
            // SAFETY: the contract of this kernel; `query < n` for every read; `base`, the groups and sums are equal in
            // all lanes. A visible element's place in the output is the query's offset plus the number of visible
            // elements with smaller keys.
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

    /// Lists the visible keys of each range of up to 32 elements, and their values, by the order of all elements.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](groups::BLOCK) threads.
    /// - `table`: as for [`Levels::new`], of levels whose values have `value_words` words of 32 bits, 0, 1 or 2;
    ///   `order`: as for [`Order::new`].
    /// - `located`: the results that [`lsm_locate`](super::spans::lsm_locate) kept of these `n` queries, not written
    ///   while the kernel runs.
    /// - `offsets`, `keys`, `values`: as for [`lsm_list`]; the outputs are used by this launch and [`lsm_list_tasks`]
    ///   alone.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_list_located<K>(
        table: Global<u64>, order: OrderTable, located: Global<u64>, n: usize, offsets: Global<u64>, keys: GlobalMut<K>,
        values: GlobalMut<u32>, value_words: u32,
    ) for [
        u32 => lsm_list_located_u32, u64 => lsm_list_located_u64, #[launch_bounds(256, 3)] u128 => lsm_list_located_u128
    ] {
        // SAFETY: the contract of this kernel.
        let order = unsafe { Order::<K>::new(order, Levels::new(table)) };
        let out = Output { keys, values, value_words };
        let step = (thread::grid_dim_x() * groups::BLOCK) as usize;
        let mut query = thread::index_1d() as usize;
        while query - (lane_id() as usize) < n {
            // SAFETY: the contract of this kernel; `query < n` for every read; the whole warp lists the elements of its
            // lanes, each from its query's offset on.
            unsafe {
                let (mut first, mut len, mut to) = (0, 0, 0);
                if query < n {
                    let word = located.read_nc(query);
                    (first, len) = ((word >> 32) as u32, word as u32);
                    to = offsets.read_nc(query) as usize;
                }
                order.list_of_lanes(first, if len <= SHORT { len } else { 0 }, out, to);
            }
            query += step;
        }
    }

    /// Lists the visible keys of each range of more than 32 elements, and their values, by the order of all elements.
    ///
    /// # Safety
    /// - Launch and other arguments: as for [`lsm_list_located`].
    /// - `long`, `long_len`, `tasks`, `owners`: as for [`lsm_list_long`].
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_list_tasks<K>(
        table: Global<u64>, order: OrderTable, located: Global<u64>, long: Global<u64>, long_len: u32, tasks: u32,
        owners: Global<u32>, offsets: Global<u64>, keys: GlobalMut<K>, values: GlobalMut<u32>, value_words: u32,
    ) for [u32 => lsm_list_tasks_u32, u64 => lsm_list_tasks_u64, u128 => lsm_list_tasks_u128] {
        // SAFETY: the contract of this kernel.
        let order = unsafe { Order::<K>::new(order, Levels::new(table)) };
        let out = Output { keys, values, value_words };
        let mut item = thread::block_idx_x() * WARPS + thread::thread_idx_x() / 32;
        while item < tasks {
            // SAFETY: the contract of this kernel. The item is equal in all lanes; the number of elements before a task
            // in its query is the number of elements written before it.
            unsafe {
                let entry = if tasks == long_len { item } else { owners.read_nc(item as usize) };
                let query = long.read_nc(entry as usize * LONG_WORDS) as usize;
                let begin = long.read_nc(entry as usize * LONG_WORDS + 1) as u32;
                let word = located.read_nc(query);
                let before = (item - begin) * TASK as u32;
                let (start, len) = ((word >> 32) as u32, (word as u32 - before).min(TASK as u32));
                let first = start + before;
                let visibility = order.visibility();
                let written = visibility.rank(0, first as usize).wrapping_sub(visibility.rank(0, start as usize));
                order.list(first, len, out, offsets.read_nc(query) as usize + written as usize);
            }
            item += thread::grid_dim_x() * WARPS;
        }
    }

    /// Writes for each task of the long queries the number of its list entry.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid.
    /// - `long`: as for [`lsm_list_long`], with `tasks` tasks.
    /// - `owners`: valid for `tasks` writes, used by this launch alone.
    pub unsafe fn lsm_owners(long: Global<u64>, long_len: u32, tasks: u32, owners: GlobalMut<u32>) {
        // 32 threads per query.
        for i in thread::grid_stride(long_len as usize * 32) {
            let entry = i / 32;
            // SAFETY: the contract of this kernel; tasks of an entry end where those of the next begin.
            unsafe {
                let begin_of = |entry: usize| long.read_nc(entry * LONG_WORDS + 1) as usize;
                let end = if entry + 1 < long_len as usize { begin_of(entry + 1) } else { tasks as usize };
                let mut task = begin_of(entry) + i % 32;
                while task < end {
                    owners.write(task, entry as u32);
                    task += 32;
                }
            }
        }
    }

    /// Lists the visible keys of each range of more than 32 elements, and their values, from the range's offset on.
    ///
    /// # Safety
    /// - Launch and other arguments: as for [`lsm_list`].
    /// - `long`: the `long_len` queries that counting has found, not written while the kernel runs: with `tasks` tasks,
    ///   of a tree of one level with known visibility; or, if `tasks` is 0, with orders of their own. `owners`: one per
    ///   task, the output of [`lsm_owners`], unless each query has one task.
    /// - `order`: the output of [`lsm_order_queries`](super::ordering::lsm_order_queries) for these queries; not read
    ///   with tasks.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_list_long<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, known: u32, lows: Global<K>, highs: Global<K>,
        spans: Global<u64>, kept: u32, long: Global<u64>, long_len: u32, tasks: u32, owners: Global<u32>, order: Global<u64>,
        offsets: Global<u64>, keys: GlobalMut<K>, values: GlobalMut<u32>, value_words: u32,
    ) for [
        u32 => lsm_list_long_u32, #[launch_bounds(256, 3)] u64 => lsm_list_long_u64,
        #[launch_bounds(256, 2)] u128 => lsm_list_long_u128
    ] {
        let own = lane_id();
        // SAFETY: the contract of this kernel.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::when_known(visible, known)) };
        let out = Output { keys, values, value_words };
        let items = if tasks == 0 { long_len } else { tasks };
        let mut item = thread::block_idx_x() * WARPS + thread::thread_idx_x() / 32;
        while item < items {
            // SAFETY: the contract of this kernel. The item is equal in all lanes; the number of elements before a task
            // in its query is the number of elements written before it.
            unsafe {
                let entry = if tasks == 0 || tasks == long_len { item } else { owners.read_nc(item as usize) };
                let query = long.read_nc(entry as usize * LONG_WORDS) as usize;
                let begin = long.read_nc(entry as usize * LONG_WORDS + 1) as usize;
                let mut here = Span::EMPTY;
                if own < levels {
                    here = kept_span(tree, levels, own, spans, kept, query, lows, highs);
                }
                let to = offsets.read_nc(query) as usize;
                let occupied = warp::ballot(FULL_MASK, here.count() != 0);
                if let (Some(visibility), true) = (visibility, occupied & occupied.wrapping_sub(1) == 0) {
                    let number = occupied.trailing_zeros() % 32;
                    let low = warp::shuffle_idx(FULL_MASK, here.low as u64, number) as usize;
                    let high = warp::shuffle_idx(FULL_MASK, here.high as u64, number) as usize;
                    let (mut span, mut written) = (Span { low, high }, 0);
                    if tasks != 0 {
                        let before = (item as usize - begin) * TASK;
                        span = Span { low: low + before, high: high.min(low + before + TASK) };
                        let first = tree.first_visible(number);
                        written = visibility.rank(first, span.low).wrapping_sub(visibility.rank(first, low));
                    }
                    out.list_span(tree, visibility, number, span, to + written as usize);
                } else {
                    let len = reduce_add(here.count());
                    out.list_own(tree, order.at(begin), len, to);
                }
            }
            item += thread::grid_dim_x() * WARPS;
        }
    }
}

/// Returns the sum over the lanes.
///
/// # Safety
/// All lanes of the warp call this together.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
unsafe fn reduce_add(value: usize) -> usize {
    let mut sum = value as u64;
    let mut distance = 16;
    while distance > 0 {
        // SAFETY: all lanes call this together.
        sum += unsafe { warp::shuffle_xor(FULL_MASK, sum, distance) };
        distance /= 2;
    }
    sum as usize
}
