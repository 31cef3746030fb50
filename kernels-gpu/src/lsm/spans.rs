//! Counts of ranges where it is known which elements are visible: two bounds per level, and the numbers of visible
//! elements before them.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU",
//! IPDPS 2018, section III-E: without duplicates and deletions a count is the difference of indices. Departure:
//! [`visibility`](super::visibility) makes it so with both.
//!
//! A group of lanes has a query, a lane each of its levels ([`lsm_spans`]); or, where there is an [order](super::order)
//! of all elements, a thread has a query, and searches in that alone ([`lsm_locate`]).

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
    /// How many visible elements each range has.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](groups::BLOCK) threads.
    /// - `table`: as for [`Levels::new`], it has `levels` levels.
    /// - `visible`: as for [`Visibility::new`]; `all` is 1 if all elements are visible, or shall count so, otherwise 0.
    /// - `lows`, `highs`: valid for `n` reads, not written while the kernel runs: both ends belong to the range.
    /// - `counts`: valid for `n` writes, used by this launch alone. So are `spans`, for `n * levels`, unless `keep` is
    ///   0, and unless `list` is 0, `long`, for [`LONG_WORDS`](super::order::LONG_WORDS) per query, and `long_count`,
    ///   two words that are zero before: with [`BY_TASKS`], the long queries in the upper half of the first, and their
    ///   tasks in its lower one; with [`BY_QUERIES`](super::short::BY_QUERIES), the long queries in the upper half of
    ///   the first, and in the second how many elements they have.
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
        // SAFETY: the caller keeps this kernel's contract; lanes without a level have that of the newest, and do not
        // ask.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::new(visible, all != 0)) };
        let number = if has_level { own } else { 0 };
        let level = tree.level::<K>(number).indexed();
        let first = tree.first_visible(number);
        let at_a_time = groups.queries() as usize;
        let warp_in_block = (thread::thread_idx_x() / 32) as usize;
        let mut base = (thread::block_idx_x() as usize * WARPS as usize + warp_in_block) * at_a_time;
        while base < n {
            // SAFETY: the caller keeps this kernel's contract; `query < n` where it is read or written; `base` and the
            // groups are the same for the warp.
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

    /// How many visible elements each range has, by the order of all elements.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](groups::BLOCK) threads.
    /// - `table`: as for [`Levels::new`]; `order`: as for [`Order::new`], of these levels.
    /// - `lows`, `highs`, `counts`, `list`, `long`, `long_count`: as for [`lsm_spans`].
    /// - `located`: valid for `n` writes, used by this launch alone, unless `keep` is 0: where in the order the
    ///   elements of each query begin, in the upper half, and how many there are.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_locate<K>(
        table: Global<u64>, order: OrderTable, lows: Global<K>, highs: Global<K>, n: usize, counts: GlobalMut<u64>, keep: u32,
        located: GlobalMut<u64>, list: u32, long: GlobalMut<u64>, long_count: GlobalMut<u64>,
    ) for [
        u32 => lsm_locate_u32, #[launch_bounds(256, 3)] u64 => lsm_locate_u64,
        #[launch_bounds(256, 2)] u128 => lsm_locate_u128
    ] {
        // SAFETY: the caller keeps this kernel's contract.
        let order = unsafe { Order::<K>::new(order, Levels::new(table)) };
        let step = (thread::grid_dim_x() * groups::BLOCK) as usize;
        let mut query = thread::index_1d() as usize;
        while query - (lane_id() as usize) < n {
            // SAFETY: the caller keeps this kernel's contract; `query < n` where it is read or written; the whole warp
            // comes to the vote.
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
