//! Making the [order](super::order) of elements: of a whole tree, from a merge of all levels; or of what single queries
//! ask of a tree that has none, by searching for each element in all other levels.

use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, thread};

use crate::lsm::groups::{BLOCK, WARPS, kept_span};
use crate::lsm::levels::{Levels, Span, lower_bound, upper_bound};
use crate::lsm::order::{LONG_WORDS, NUMBER, PIECE, VISIBLE, alike};
use crate::lsm::visibility::Visibility;

/// Elements that a thread of [`lsm_order`] puts into a word.
const PER_WORD: usize = 4;
/// Elements that a block of it takes at a time.
const AT_ONCE: usize = BLOCK as usize * PER_WORD;
const _: () = assert!(PIECE % AT_ONCE == 0);
/// Bytes of dynamic shared memory of a block of it.
pub const SHARED_BYTES: u32 = 32 * 4;

kernel! {
    /// The order of merged elements, and how many each piece has of each level.
    ///
    /// # Safety
    /// - Launch: 1-D, `pieces` blocks of [`BLOCK`] threads with [`SHARED_BYTES`] of dynamic shared memory, one for each
    ///   [`PIECE`] elements.
    /// - `keys`, `numbers`: valid for `n` reads, in ascending order of keys and of equal keys the newest first; the
    ///   lower bits of a number are that of the element's level, of `levels`.
    /// - `removed`: valid for a bit per element in words of 32, set for tombstones, unless `has_removed` is 0.
    /// - `order`: valid for one byte per element, in whole words; `counts` for one word per level and piece, those of a
    ///   level side by side; both used by this launch alone.
    #[launch_bounds(256, 6)]
    pub unsafe fn lsm_order<K>(
        keys: Global<K>, numbers: Global<u32>, removed: Global<u32>, has_removed: u32, n: usize, levels: u32, pieces: u32,
        order: GlobalMut<u32>, counts: GlobalMut<u32>,
    ) for [u32 => lsm_order_u32, u64 => lsm_order_u64] {
        let t = thread::thread_idx_x();
        let piece = thread::block_idx_x();
        let found: Shared<u32> = shared::dynamic(0);
        let mut of_lane = 0;
        // SAFETY: the caller keeps this kernel's contract; all threads come to each vote and barrier; elements below `n`
        // are read; each word is one thread's.
        unsafe {
            if t < 32 {
                found.set(t, 0);
            }
            thread::sync_threads();
            let turns = (n - piece as usize * PIECE).min(PIECE).div_ceil(AT_ONCE);
            for turn in 0..turns {
                let first = piece as usize * PIECE + turn * AT_ONCE + t as usize * PER_WORD;
                let mut word = 0;
                let mut last = if first != 0 && first < n { keys.read_nc(first - 1) } else { K::default() };
                let bits = if has_removed != 0 && first < n { removed.read_nc(first / 32) >> (first % 32) } else { 0 };
                for u in 0..PER_WORD {
                    let i = first + u;
                    let mut number = 0;
                    if i < n {
                        let key = keys.read_nc(i);
                        number = numbers.read_nc(i) & NUMBER;
                        let visible = (i == 0 || key != last) && bits >> u & 1 == 0;
                        word |= (number | if visible { VISIBLE } else { 0 }) << (8 * u);
                        last = key;
                    }
                    of_lane += alike(number, i < n, levels).1.count_ones();
                }
                if first < n {
                    order.write(first / PER_WORD, word);
                }
            }
            found.reduce_add(lane_id(), of_lane);
            thread::sync_threads();
            if t < levels {
                counts.write((t * pieces + piece) as usize, found.get_volatile(t));
            }
        }
    }

    /// The order of the elements of each long query.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads.
    /// - `table`, `levels`, `visible`, `known`, `lows`, `highs`, `spans`, `kept`: as for [`super::list::lsm_list`].
    /// - `long`: a list of `long_len` queries, and where in `order` they begin; not written while the kernel runs.
    /// - `order`: valid for one byte for each element that one of these queries has in one of the levels, used by this
    ///   launch alone.
    #[launch_bounds(256, 4)]
    pub unsafe fn lsm_order_queries<K>(
        table: Global<u64>, levels: u32, visible: Global<u64>, known: u32, lows: Global<K>, highs: Global<K>,
        spans: Global<u64>, kept: u32, long: Global<u64>, long_len: u32, order: GlobalMut<u8>,
    ) for [u32 => lsm_order_queries_u32, u64 => lsm_order_queries_u64] {
        let own = lane_id();
        // SAFETY: the caller keeps this kernel's contract.
        let (tree, visibility) = unsafe { (Levels::new(table), Visibility::when_known(visible, known)) };
        let mut item = thread::block_idx_x() * WARPS + thread::thread_idx_x() / 32;
        while item < long_len {
            // SAFETY: the caller keeps this kernel's contract; the item is the same for the warp, so all lanes come to
            // each exchange; places are inside the query's spans, and no two elements have the same place in the order.
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
                            order.write(begin + place, (number | if is_visible { VISIBLE } else { 0 }) as u8);
                        }
                        base += 32;
                    }
                }
            }
            item += thread::grid_dim_x() * WARPS;
        }
    }
}
