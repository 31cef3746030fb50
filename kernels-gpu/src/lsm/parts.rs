//! Queries for ranges that are too long for [`super::short`] are listed by parts, a warp each. Of up to [`MOST`]
//! elements the query is one part. Of more, every 1024th element that a level has in the query, from its first on, is a
//! *splitter*, and from each there is a part to the next splitter of whatever level. So no level has more than 1024
//! elements in a part, and the number of parts is known before any of them is. Parts have no order: where a part's
//! elements go in the output follows from how many visible elements are before its first key. Of splitters with equal
//! keys, only the first has a part: that of the newest level, and of that level the first.

use warpset_simt::warp::{self, FULL_MASK, lane_id};

use crate::lsm::levels::{Levels, Span};
use crate::lsm::run_merge::{ListKey, least};
use crate::lsm::visibility::Visibility;

/// Elements of a level from one splitter to the next.
const PIECE: usize = 1024;
/// A query of more elements than this is cut.
pub const MOST: u32 = 8192;

/// Words of the list of queries that are listed by parts for each: its number, and where its parts begin among those of
/// all of them.
pub const LONG_WORDS: usize = 2;

/// Whether a query of this many elements has several parts.
#[inline(always)]
pub const fn is_cut(total: u32) -> bool {
    total > MOST
}

/// The splitters of a level with that many elements in the query.
#[inline(always)]
pub const fn pieces(count: usize) -> usize {
    count.div_ceil(PIECE)
}

/// The first splitter of a span at or after `place`, or one past the span.
#[inline(always)]
const fn splitter_from(span: Span, place: usize) -> usize {
    span.low + (place - span.low).div_ceil(PIECE) * PIECE
}

/// A part: the lane's level's elements in it, and how many visible elements of the query are before them, over all
/// levels. The spans are empty if the splitter has no part.
///
/// # Safety
/// - All lanes of the warp come here together, each with the query's span of its level, if it has one, otherwise an
///   empty one.
/// - `splitter` is below the sum of the levels' [`pieces`], and the same for all lanes.
#[inline(always)]
#[track_caller]
pub unsafe fn part<K: ListKey>(levels: Levels, visibility: Visibility, span: Span, splitter: u32) -> (Span, u64) {
    let lane = lane_id();
    // SAFETY: the caller's lanes all come here. The splitter is an element of the first level whose pieces end after
    // it. Lanes with elements have a level; a place that is read is inside their span.
    unsafe {
        let own = pieces(span.count()) as u32;
        let end = warp::inclusive_scan_add(FULL_MASK, own);
        let level = warp::ballot(FULL_MASK, end <= splitter).count_ones();
        let begin = warp::shuffle_idx(FULL_MASK, end - own, level);
        let at = warp::shuffle_idx(FULL_MASK, span.low as u64, level) as usize + (splitter - begin) as usize * PIECE;
        let key = levels.keys::<K>(level).read_nc(at);
        let mut here = Span::EMPTY;
        let (mut next, mut goes_on, mut comes_first) = (K::default(), false, false);
        if span.count() != 0 {
            let own = levels.level::<K>(lane).indexed();
            let equal = own.between(key, key);
            let first = splitter_from(span, equal.low.max(span.low));
            // Another splitter with this key, of a newer level, or before this one.
            comes_first = first < equal.high && first < span.high && (lane < level || lane == level && first < at);
            here.low = equal.low.max(span.low).min(span.high);
            let after = splitter_from(span, equal.high.max(span.low));
            goes_on = after < span.high;
            if goes_on {
                next = own.keys().read_nc(after);
            }
            here.high = span.high;
        }
        let comes_first = warp::any(FULL_MASK, comes_first);
        let any_goes_on = warp::any(FULL_MASK, goes_on);
        let bound = least(next, goes_on);
        let mut before = 0;
        if span.count() != 0 {
            if any_goes_on {
                here.high = levels.level::<K>(lane).indexed().lower_bound(bound).min(span.high).max(here.low);
            }
            let first = levels.first_visible(lane);
            before = visibility.rank(first, here.low).wrapping_sub(visibility.rank(first, span.low));
        }
        let before = warp::reduce_add(FULL_MASK, before);
        if comes_first {
            here = Span::EMPTY;
        }
        (here, before as u64)
    }
}
