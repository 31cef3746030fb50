//! Construction of the [order](super::order) of elements: of a whole tree, from a merge of all levels; or of single
//! queries to a tree without one, by searching for each element in all other levels.

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, thread};

use crate::lsm::groups::WARPS;
#[cfg(feature = "bodies")]
use crate::lsm::groups::kept_span;
use crate::lsm::levels::{Levels, Span};
#[cfg(feature = "bodies")]
use crate::lsm::levels::{lower_bound, upper_bound};
#[cfg(feature = "bodies")]
use crate::lsm::order::alike;
use crate::lsm::order::{
    LONG_WORDS, NUMBER_SHIFT, OrderTable, PIECE, PLACE_SHIFT, RANK_BITS, RangeKey, STRIP, VISIBLE, number_bits,
};
use crate::lsm::visibility::Visibility;

/// Bits of a merged element's word that hold the number of its level.
const NUMBER: u32 = 31;

kernel! {
    /// Writes the order of merged elements without its splits, the number of elements per piece and level, and the
    /// first key of each strip.
    ///
    /// # Safety
    /// - Launch: 1-D, blocks of [`BLOCK`](super::groups::BLOCK) threads, a warp for each [`PIECE`] elements.
    /// - `table`: that of an order of `n` elements, at least one; its entries and rows are used by this launch alone,
    ///   the rest is not accessed.
    /// - `keys`, `numbers`: valid for `n` reads, in ascending order of keys and of equal keys the newest first; the
    ///   lower bits of a number are the number of the element's level.
    /// - `removed`: valid for a bit per element in words of 32, set for tombstones, unless `has_removed` is 0.
    /// - `entries`, `rows`: those of the table.
    /// - `firsts`: valid for a key per strip and one more; `counts` for one word per level and piece, those of a level
    ///   side by side; `visible`, unless `all` is 1, for a bit per element in words of 32; all used by this launch
    ///   alone.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_order<K>(
        table: OrderTable, keys: Global<K>, numbers: Global<u32>, removed: Global<u32>, has_removed: u32,
        entries: GlobalMut<u16>, rows: GlobalMut<u16>, firsts: GlobalMut<K>, counts: GlobalMut<u32>, all: u32, visible: GlobalMut<u32>,
    ) for [u32 => lsm_order_u32, u64 => lsm_order_u64, #[launch_bounds(256, 3)] u128 => lsm_order_u128] {
        let (lane, n) = (lane_id(), table.len as usize);
        let (width, shift) = (table.width(), RANK_BITS + number_bits(table.levels));
        let pieces = n.div_ceil(PIECE);
        let piece = (thread::block_idx_x() * WARPS + thread::thread_idx_x() / 32) as usize;
        if piece >= pieces {
            return;
        }
        // Elements of the lane's level between the beginning of the piece and the strip.
        let mut before = 0;
        let end = ((piece + 1) * PIECE).min(n);
        let mut begin = piece * PIECE;
        // SAFETY: the contract of this kernel; the whole warp reaches each vote; only elements below `n` are read;
        // entries have places for whole strips.
        unsafe {
            while begin < end {
                let i = begin + lane as usize;
                let next = (begin + STRIP).min(n - 1);
                let (from, to) = (keys.read_nc(begin), keys.read_nc(next));
                let (mut key, mut number, mut is_visible) = (from, 0, false);
                if i < n {
                    key = keys.read_nc(i);
                    number = numbers.read_nc(i) & NUMBER;
                    let is_newest = i == 0 || keys.read_nc(i - 1) != key;
                    is_visible = is_newest && (has_removed == 0 || removed.read_nc(i / 32) >> (i % 32) & 1 == 0);
                }
                let (same, of_lane) = alike(number, i < n);
                let rank = (same & warp::lane_mask_lt()).count_ones();
                let fraction = key.fraction(from, to, 16 - shift);
                let entry = if i < n { fraction << shift | number << RANK_BITS | rank } else { u16::MAX as u32 };
                entries.write(i, entry as u16);
                let strip = begin / STRIP;
                if (lane as usize) < width {
                    rows.write(strip * width + lane as usize, before as u16);
                }
                before += of_lane.count_ones();
                let bits = warp::ballot(FULL_MASK, is_visible);
                if lane == 0 {
                    firsts.write(strip, from);
                    if all == 0 {
                        visible.write(strip, bits);
                    }
                    if begin + STRIP >= n {
                        firsts.write(strip + 1, to);
                    }
                }
                begin += STRIP;
            }
            if lane < table.levels {
                counts.write(lane as usize * pieces + piece, before);
            }
        }
    }

    /// Writes the splits of an order: the place of the first element of each piece in each level.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid.
    /// - `counts`: exclusive prefix sums of the output of [`lsm_order`], level by level and piece by piece; not written
    ///   while the kernel runs.
    /// - `splits`: valid for `width` words per piece, at least `levels`, used by this launch alone.
    pub unsafe fn lsm_order_splits(counts: Global<u32>, pieces: usize, levels: u32, width: usize, splits: GlobalMut<u32>) {
        for i in thread::grid_stride(pieces * width) {
            let (piece, number) = (i / width, i % width);
            // SAFETY: level and piece are below their numbers.
            unsafe {
                let mut split = 0;
                if number < levels as usize {
                    split = counts.read_nc(number * pieces + piece) - counts.read_nc(number * pieces);
                }
                splits.write(i, split);
            }
        }
    }

    /// Writes the order of the elements of each long query.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`](super::groups::BLOCK) threads.
    /// - `table`, `levels`, `visible`, `known`, `lows`, `highs`, `spans`, `kept`: as for [`super::list::lsm_list`].
    /// - `long`: a list of `long_len` queries with their beginnings in `order`; not written while the kernel runs.
    /// - `order`: valid for one word per element of these queries in all levels, used by this launch alone.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_order_queries<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, known: u32, lows: Global<K>, highs: Global<K>,
        spans: Global<u64>, kept: u32, long: Global<u64>, long_len: u32, order: GlobalMut<u64>,
    ) for [
        u32 => lsm_order_queries_u32, u64 => lsm_order_queries_u64,
        #[launch_bounds(256, 3)] u128 => lsm_order_queries_u128
    ] {
        let own = lane_id();
        // SAFETY: the contract of this kernel.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::when_known(visible, known)) };
        let mut item = thread::block_idx_x() * WARPS + thread::thread_idx_x() / 32;
        while item < long_len {
            // SAFETY: the contract of this kernel; the item is equal in all lanes, so all reach each exchange; places
            // are inside the query's spans, and no two elements have the same place in the order.
            unsafe {
                let query = long.read_nc(item as usize * LONG_WORDS) as usize;
                let begin = long.read_nc(item as usize * LONG_WORDS + 1) as usize;
                let mut here = Span::EMPTY;
                if own < levels {
                    here = kept_span(tree, levels, own, spans, kept, query, lows, highs);
                }
                let of_level = |number: u32| Span {
                    low: warp::shuffle_idx(FULL_MASK, here.low as u64, number) as usize,
                    high: warp::shuffle_idx(FULL_MASK, here.high as u64, number) as usize,
                };
                for number in 0..levels {
                    let Span { low, high } = of_level(number);
                    let keys = tree.keys::<K>(number);
                    let mut base = low;
                    while base < high {
                        let i = base + own as usize;
                        let is_element = i < high;
                        let key = if is_element { keys.read_nc(i) } else { K::default() };
                        let mut is_visible = is_element;
                        if is_element {
                            is_visible = match visibility {
                                Some(visibility) => visibility.is_visible(tree, number, i),
                                None => {
                                    (i == low || keys.read_nc(i - 1) != key) && !tree.tombstones(number).is_one(i)
                                }
                            };
                        }
                        let mut place = i - low;
                        for other in 0..levels {
                            let Span { low, high } = of_level(other);
                            if other == number || low == high {
                                continue;
                            }
                            if is_element {
                                let there = tree.keys::<K>(other);
                                if other < number {
                                    let after = upper_bound(there, low, high, key);
                                    let is_hidden = after > low && there.read_nc(after - 1) == key;
                                    is_visible &= visibility.is_some() || !is_hidden;
                                    place += after - low;
                                } else {
                                    place += lower_bound(there, low, high, key) - low;
                                }
                            }
                        }
                        if is_element {
                            let element = (i as u64) << PLACE_SHIFT | (number as u64) << NUMBER_SHIFT;
                            order.write(begin + place, element | if is_visible { VISIBLE } else { 0 });
                        }
                        base += 32;
                    }
                }
            }
            item += thread::grid_dim_x() * WARPS;
        }
    }
}
