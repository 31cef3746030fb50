//! Groups of lanes for queries of ranges: a warp processes several queries at a time, one group each, with one lane per
//! level that finds the query's elements there.

use warpset_simt::Global;
use warpset_simt::warp::{self, FULL_MASK, lane_id};

use crate::lsm::levels::{IndexedLevel, LevelKey, Levels, Span};

/// Threads per block.
pub const BLOCK: u32 = 256;
/// Warps per block.
pub const WARPS: u32 = BLOCK / 32;

/// Bits of a kept span for its length; the other bits hold its beginning.
const LEN_BITS: u32 = 24;
/// Length of all spans that are longer.
const LONG: u64 = (1 << LEN_BITS) - 1;

/// Packs a span into one word; a span too long for that keeps only its beginning.
#[inline(always)]
pub fn pack(span: Span) -> u64 {
    (span.low as u64) << LEN_BITS | (span.count() as u64).min(LONG)
}

/// Unpacks the span of a word, unless it was too long.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn unpack(word: u64) -> Option<Span> {
    let low = (word >> LEN_BITS) as usize;
    if word & LONG == LONG { None } else { Some(Span { low, high: low + (word & LONG) as usize }) }
}

/// Division of a warp into groups: one per query at a time, with a lane per level.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Groups {
    /// Lanes per group: a power of two.
    pub lanes: u32,
    /// Number of levels.
    pub count: u32,
}

#[cfg(feature = "bodies")]
impl Groups {
    /// Returns the groups for a tree of `count` levels.
    #[inline(always)]
    pub fn new(count: u32) -> Self {
        Self { lanes: count.max(1).next_power_of_two(), count }
    }

    /// Returns the number of queries at a time.
    #[inline(always)]
    pub fn queries(self) -> u32 {
        32 / self.lanes
    }

    /// Returns the number of the lane's group, which is that of its query.
    #[inline(always)]
    pub fn group(self) -> u32 {
        lane_id() / self.lanes
    }

    /// Returns the lane's level; numbers from `count` on are not levels.
    #[inline(always)]
    pub fn level(self) -> u32 {
        lane_id() % self.lanes
    }

    /// Returns the number of elements of the lane's query, at most `LEVELS << 26`; longer spans count as that long.
    ///
    /// # Safety
    /// All lanes of the warp call this together.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn total(self, span: Span) -> u32 {
        // SAFETY: the contract of this function.
        unsafe { self.sum(span.count().min(1 << 26) as u32) }
    }

    /// Returns the sum over the lanes of the lane's group, wrapping.
    ///
    /// # Safety
    /// All lanes of the warp call this together.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn sum(self, value: u32) -> u32 {
        let mut sum = value;
        let mut distance = 1;
        while distance < self.lanes {
            // SAFETY: all lanes call this together.
            sum = sum.wrapping_add(unsafe { warp::shuffle_xor(FULL_MASK, sum, distance) });
            distance *= 2;
        }
        sum
    }

    /// Returns the [`sum`](Self::sum) of numbers that may be large.
    ///
    /// # Safety
    /// All lanes of the warp call this together.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn sum_wide(self, value: usize) -> u64 {
        let mut sum = value as u64;
        let mut distance = 1;
        while distance < self.lanes {
            // SAFETY: all lanes call this together.
            sum += unsafe { warp::shuffle_xor(FULL_MASK, sum, distance) };
            distance *= 2;
        }
        sum
    }

    /// Returns the spans of a group, level by level from lane 0 on.
    ///
    /// # Safety
    /// All lanes of the warp call this together, with the same `group`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn spread(self, span: Span, group: u32) -> Span {
        let from = group * self.lanes + self.level();
        // SAFETY: all lanes call this together.
        let (low, len) = unsafe {
            (
                warp::shuffle_idx(FULL_MASK, span.low as u64, from),
                warp::shuffle_idx(FULL_MASK, span.count() as u64, from),
            )
        };
        if lane_id() < self.count { Span { low: low as usize, high: (low + len) as usize } } else { Span::EMPTY }
    }
}

/// Returns the elements of the lane's level with keys from `first` to `last`.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn span_of<K: LevelKey>(level: IndexedLevel<K>, first: K, last: K) -> Span {
    if first > last { Span::EMPTY } else { level.between(first, last) }
}

/// Returns the elements of a query in level `own`: the kept span, or a new search.
///
/// # Safety
/// [`Levels::new`]'s contract; `query` has a low and a high end, and, if `kept` is not 0, a span of each of the
/// `levels` levels.
#[cfg(feature = "bodies")]
#[inline(always)]
pub unsafe fn kept_span<K: LevelKey>(
    tree: Levels,
    levels: u32,
    own: u32,
    spans: Global<u64>,
    kept: u32,
    query: usize,
    lows: Global<K>,
    highs: Global<K>,
) -> Span {
    // SAFETY: the contract of this function.
    unsafe {
        let mut span = None;
        if kept != 0 {
            span = unpack(spans.read_nc(query * levels as usize + own as usize));
        }
        match span {
            Some(span) => span,
            None => span_of(tree.level::<K>(own).indexed(), lows.read_nc(query), highs.read_nc(query)),
        }
    }
}
