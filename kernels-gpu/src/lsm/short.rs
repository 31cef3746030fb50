//! Short queries of ranges: the elements of several queries side by side in a warp, one per lane.

use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{GlobalMut, atomic};

#[cfg(feature = "bodies")]
use crate::lsm::groups::Groups;
use crate::lsm::levels::{Levels, Span};
#[cfg(feature = "bodies")]
use crate::lsm::order::first_above;
use crate::lsm::order::{LONG_WORDS, RangeKey};
use crate::lsm::visibility::Visibility;

/// Largest number of elements of a short query, one lane each.
pub const SHORT: u32 = 32;

/// Longer queries are listed by tasks: the interleaving of their elements is known.
pub const BY_TASKS: u32 = 1;
/// Longer queries are listed by an order of each query.
pub const BY_QUERIES: u32 = 2;

/// Elements of several short queries, one per lane, newest levels first.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Window<K> {
    /// Number of elements of all queries.
    pub len: u32,
    /// Lane of the group and level of the lane's element.
    pub source: u32,
    /// Lane with the first element of the lane's query.
    pub first: u32,
    /// Number of elements of the lane's query.
    pub total: u32,
    /// Largest number of elements of a query.
    pub longest: u32,
    /// Key of the lane's element.
    pub key: K,
    /// Place of the element in its level.
    pub place: usize,
    /// Lanes with elements that are live and the newest of their key.
    pub valid: u32,
}

#[cfg(feature = "bodies")]
impl<K> Window<K> {
    /// Whether the lane has an element.
    #[inline(always)]
    pub fn has_element(self) -> bool {
        lane_id() < self.len
    }

    /// Returns the lanes with valid elements of the lane's query.
    #[inline(always)]
    pub fn valid_of_query(self) -> u32 {
        // A lane with an element has 1 to 32 in its query.
        let lanes = u32::MAX >> ((32 - self.total) & 31);
        self.valid & lanes << (self.first & 31)
    }
}

/// Short queries among those that a warp processes at a time.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Short {
    groups: Groups,
    /// Span of the lane, empty if its query is not short.
    span: Span,
    /// Elements of all lanes up to this one.
    end: u32,
    /// Elements of the lane's query, and of all queries up to it.
    total: u32,
    query_end: u32,
}

#[cfg(feature = "bodies")]
impl Short {
    /// Returns the short queries; `total` is the number of elements of the lane's query.
    ///
    /// # Safety
    /// All lanes of the warp call this together.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn new(groups: Groups, span: Span, total: u32) -> Self {
        let is_short = total <= SHORT;
        let span = if is_short { span } else { Span::EMPTY };
        let total = if is_short { total } else { 0 };
        // SAFETY: all lanes call this together.
        unsafe {
            let end = warp::inclusive_scan_add(FULL_MASK, span.count() as u32);
            let query_end = warp::shuffle_idx(FULL_MASK, end, lane_id() | (groups.lanes - 1));
            Self { groups, span, end, total, query_end }
        }
    }

    /// Returns the next whole queries, from element `base` on, that fit into the lanes, one element each; none if there
    /// is no element. Known visibility is read; otherwise elements are compared.
    ///
    /// # Safety
    /// All lanes of the warp call this together; a query begins at `base`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn window<K: RangeKey>(self, levels: Levels, known: Option<Visibility>, base: u32) -> Window<K> {
        let lane = lane_id();
        // SAFETY: all lanes call this together, and each loop has the same number of rounds in all lanes. A lane's
        // element is in the level of the first lane whose end is after it, and there is one.
        unsafe {
            let fits = warp::ballot(FULL_MASK, self.query_end <= base + 32);
            let last = 31 - fits.leading_zeros();
            let len = warp::shuffle_idx(FULL_MASK, self.query_end, last) - base;
            let source = first_above(self.end, base + lane);
            let start = warp::shuffle_idx(FULL_MASK, self.end - self.span.count() as u32, source);
            let low = warp::shuffle_idx(FULL_MASK, self.span.low as u64, source) as usize;
            let total = warp::shuffle_idx(FULL_MASK, self.total, source);
            let first = warp::shuffle_idx(FULL_MASK, self.query_end - self.total, source).wrapping_sub(base);
            let has_element = lane < len;
            let longest = warp::reduce_max(FULL_MASK, if has_element { total } else { 0 });
            let place = low + (base + lane).wrapping_sub(start) as usize;
            let (mut key, mut live) = (K::default(), false);
            if has_element {
                let number = source % self.groups.lanes;
                key = levels.keys::<K>(number).read_nc(place);
                live = match known {
                    Some(visibility) => visibility.is_visible(levels, number, place),
                    None => !levels.tombstones(number).is_one(place),
                };
            }
            let compared = if known.is_none() { longest } else { 0 };
            for i in 0..compared {
                // An earlier lane of the same query has a newer element.
                let other = first.wrapping_add(i);
                let is_older = warp::shuffle_idx(FULL_MASK, key, other & 31) == key;
                live &= !(is_older & (other < lane));
            }
            let valid = warp::ballot(FULL_MASK, live);
            Window { len, source, first, total, longest, key, place, valid }
        }
    }
}

/// Adds the long queries of the warp to their list: with each lane's tasks, or its query's elements.
///
/// # Safety
/// - All lanes of the warp call this together, with the same `list`; `long` and `long_count` are as for
///   [`lsm_spans`](super::spans::lsm_spans).
/// - Each query is added once.
#[cfg(feature = "bodies")]
#[inline(always)]
#[track_caller]
pub unsafe fn note_long(
    is_long: bool,
    query: usize,
    units: u64,
    list: u32,
    long: GlobalMut<u64>,
    long_count: GlobalMut<u64>,
) {
    // SAFETY: all lanes call this together; a place belongs to one lane.
    unsafe {
        let queries = warp::ballot(FULL_MASK, is_long);
        if queries == 0 {
            return;
        }
        // One place in the list for all queries of the warp.
        let units = if is_long { units } else { 0 };
        let (mut end, mut distance) = (units, 1);
        while distance < 32 {
            let before = warp::shuffle_up(FULL_MASK, end, distance);
            end += if lane_id() >= distance { before } else { 0 };
            distance *= 2;
        }
        let all = warp::shuffle_idx(FULL_MASK, end, 31);
        let (mut place, mut begin) = (0, 0);
        if lane_id() == 0 {
            let queries = (queries.count_ones() as u64) << 32;
            if list == BY_TASKS {
                place = atomic::fetch_add(long_count, queries | all);
                begin = place & u32::MAX as u64;
            } else {
                place = atomic::fetch_add(long_count, queries);
                begin = atomic::fetch_add(long_count.at(1), all);
            }
        }
        let (place, begin) = (warp::shuffle_idx(FULL_MASK, place, 0), warp::shuffle_idx(FULL_MASK, begin, 0));
        if is_long {
            let before = (queries & warp::lane_mask_lt()).count_ones();
            let entry = long.at(((place >> 32) as usize + before as usize) * LONG_WORDS);
            entry.write(0, query as u64);
            entry.write(1, begin + (end - units));
        }
    }
}
