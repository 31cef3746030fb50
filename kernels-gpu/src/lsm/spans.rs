//! Counts of ranges with known visibility: two bounds per level, and the numbers of visible elements before them.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU",
//! IPDPS 2018, section III-E: without duplicates and deletions a count is a difference of indices. Departure: with
//! [`visibility`](super::visibility) the same holds for trees with both.
//!
//! A group of lanes has a query, one lane per level ([`lsm_spans`]). With an [order](super::order) of all elements, one
//! thread has a query, and searches only in the order ([`lsm_locate`]).

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, thread};

use crate::lsm::groups::{self, WARPS};
#[cfg(feature = "bodies")]
use crate::lsm::groups::{Groups, span_of};
use crate::lsm::levels::{Levels, Span};
use crate::lsm::order::{Order, OrderTable, TASK};
#[cfg(feature = "bodies")]
use crate::lsm::short::note_long;
use crate::lsm::short::{BY_TASKS, SHORT};
use crate::lsm::visibility::Visibility;

kernel! {
    /// Counts the visible elements of each range.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](groups::BLOCK) threads.
    /// - `table`: as for [`Levels::new`], with `levels` levels.
    /// - `visible`: as for [`Visibility::new`]; `all` is 1 if all elements are visible, or shall be counted as visible,
    ///   otherwise 0.
    /// - `lows`, `highs`: valid for `n` reads, not written while the kernel runs: both ends belong to the range.
    /// - `counts`: valid for `n` writes, used by this launch alone. Unless `keep` is 0, `spans` is valid for `n *
    ///   levels` writes. Unless `list` is 0, `long` is valid for [`LONG_WORDS`](super::order::LONG_WORDS) words per
    ///   query, and `long_count` for two words, initially zero. With [`BY_TASKS`], the first word gets the number of
    ///   long queries in its upper half and the number of their tasks in its lower half; with
    ///   [`BY_QUERIES`](super::short::BY_QUERIES), the first gets the number of long queries in its upper half, and the
    ///   second the number of their elements. All of these are used by this launch alone.
    #[launch_bounds(256, 5)]
    pub unsafe fn lsm_spans<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, all: u32, lows: Global<K>, highs: Global<K>, n: usize,
        counts: GlobalMut<u64>, keep: u32, spans: GlobalMut<u64>, list: u32, long: GlobalMut<u64>,
        long_count: GlobalMut<u64>,
    ) for [
        u32 => lsm_spans_u32, #[launch_bounds(256, 4)] u64 => lsm_spans_u64,
        #[launch_bounds(256, 2)] u128 => lsm_spans_u128
    ] {
        let groups = Groups::new(levels);
        let own = groups.level();
        let has_level = own < levels;
        // SAFETY: the contract of this kernel; lanes without a level read that of the newest, and do not search.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::new(visible, all != 0)) };
        let number = if has_level { own } else { 0 };
        let level = tree.level::<K>(number).indexed();
        let first = tree.first_visible(number);
        let at_a_time = groups.queries() as usize;
        let warp_in_block = (thread::thread_idx_x() / 32) as usize;
        let mut base = (thread::block_idx_x() as usize * WARPS as usize + warp_in_block) * at_a_time;
        while base < n {
            // SAFETY: the contract of this kernel; `query < n` for every access; `base` and the groups are equal in all
            // lanes.
            unsafe {
                let query = base + groups.group() as usize;
                let is_asked = has_level && query < n;
                let mut span = Span::EMPTY;
                if is_asked {
                    span = span_of(level, lows.read_nc(query), highs.read_nc(query));
                }
                let mut count = span.count() as u32;
                if !visibility.is_all() && count != 0 {
                    count = visibility.rank(first, span.high).wrapping_sub(visibility.rank(first, span.low));
                }
                let count = groups.sum(count);
                if own == 0 && query < n {
                    counts.write(query, count as u64);
                }
                if keep != 0 && is_asked {
                    spans.write(query * levels as usize + own as usize, groups::pack(span));
                }
                let is_long = list != 0 && groups.total(span) > SHORT;
                if warp::any(FULL_MASK, is_long) {
                    let total = groups.sum_wide(span.count());
                    let units = if list == BY_TASKS { total.div_ceil(TASK as u64) } else { total };
                    note_long(is_long && own == 0, query, units, list, long, long_count);
                }
            }
            base += thread::grid_dim_x() as usize * WARPS as usize * at_a_time;
        }
    }

    /// Counts the visible elements of each range, by the order of all elements.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](groups::BLOCK) threads.
    /// - `table`: as for [`Levels::new`]; `order`: as for [`Order::new`], of these levels.
    /// - `lows`, `highs`, `counts`, `list`, `long`, `long_count`: as for [`lsm_spans`].
    /// - `located`: valid for `n` writes, used by this launch alone, unless `keep` is 0: the place of each query's
    ///   first element in the order, in the upper half, and the number of its elements.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_locate<K>(
        table: Global<u64>, order: OrderTable, lows: Global<K>, highs: Global<K>, n: usize, counts: GlobalMut<u64>, keep: u32,
        located: GlobalMut<u64>, list: u32, long: GlobalMut<u64>, long_count: GlobalMut<u64>,
    ) for [
        u32 => lsm_locate_u32, #[launch_bounds(256, 3)] u64 => lsm_locate_u64,
        #[launch_bounds(256, 2)] u128 => lsm_locate_u128
    ] {
        // SAFETY: the contract of this kernel.
        let order = unsafe { Order::<K>::new(order, Levels::new(table)) };
        let step = (thread::grid_dim_x() * groups::BLOCK) as usize;
        let mut query = thread::index_1d() as usize;
        while query - (lane_id() as usize) < n {
            // SAFETY: the contract of this kernel; `query < n` for every access; the whole warp reaches the vote.
            unsafe {
                let mut span = Span::EMPTY;
                if query < n {
                    span = order.between(lows.read_nc(query), highs.read_nc(query));
                    let visibility = order.visibility();
                    let mut count = span.count();
                    if !visibility.is_all() && count != 0 {
                        count = visibility.rank(0, span.high).wrapping_sub(visibility.rank(0, span.low)) as usize;
                    }
                    counts.write(query, count as u64);
                    if keep != 0 {
                        located.write(query, (span.low as u64) << 32 | span.count() as u64);
                    }
                }
                if list != 0 {
                    let tasks = span.count().div_ceil(TASK) as u64;
                    note_long(span.count() > SHORT as usize, query, tasks, BY_TASKS, long, long_count);
                }
            }
            query += step;
        }
    }
}
