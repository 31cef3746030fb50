//! How a warp goes through queries for ranges: a group of lanes for each of those that it takes at a time, one lane per
//! level, which finds where the query's elements begin and end there.

use warpset_simt::Global;
use warpset_simt::warp::{self, FULL_MASK, lane_id};

use crate::lsm::levels::{IndexedLevel, LevelKey, Levels, Span};

/// Threads of a block.
pub const BLOCK: u32 = 256;
/// Warps of a block.
pub const WARPS: u32 = BLOCK / 32;

/// Bits of a kept span that hold its length; the others hold where it begins.
const LEN_BITS: u32 = 24;
/// The length that stands for all that are longer.
const LONG: u64 = (1 << LEN_BITS) - 1;

/// A span as one word; of a longer one than it can hold only where it begins.
#[inline(always)]
pub fn pack(span: Span) -> u64 {
    (span.low as u64) << LEN_BITS | (span.count() as u64).min(LONG)
}

/// The span of a word, if the word holds it.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn unpack(word: u64) -> Option<Span> {
    let low = (word >> LEN_BITS) as usize;
    if word & LONG == LONG { None } else { Some(Span { low, high: low + (word & LONG) as usize }) }
}

/// How a warp goes through its queries: a group of lanes for each of those that it takes at a time, a lane for each
/// level.
#[cfg(feature = "bodies")]
#[derive(Clone, Copy)]
pub struct Groups {
    /// Lanes of a group: a power of two.
    pub lanes: u32,
    /// Levels.
    pub count: u32,
}

#[cfg(feature = "bodies")]
impl Groups {
    /// Groups for a tree of that many levels.
    #[inline(always)]
    pub fn new(count: u32) -> Self {
        Self { lanes: count.max(1).next_power_of_two(), count }
    }

    /// Queries at a time.
    #[inline(always)]
    pub fn queries(self) -> u32 {
        32 / self.lanes
    }

    /// Which of the queries at a time the lane's group has.
    #[inline(always)]
    pub fn group(self) -> u32 {
        lane_id() / self.lanes
    }

    /// The lane's level, unless it is beyond the last.
    #[inline(always)]
    pub fn level(self) -> u32 {
        lane_id() % self.lanes
    }

    /// The elements of the lane's query, at most `LEVELS << 26`: what is longer counts as that long.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn total(self, span: Span) -> u32 {
        // SAFETY: the caller's promise is the same.
        unsafe { self.sum(span.count().min(1 << 26) as u32) }
    }

    /// The sum over the lanes of the lane's group, wrapping.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn sum(self, value: u32) -> u32 {
        let mut sum = value;
        let mut distance = 1;
        while distance < self.lanes {
            // SAFETY: the caller's lanes all come here.
            sum = sum.wrapping_add(unsafe { warp::shuffle_xor(FULL_MASK, sum, distance) });
            distance *= 2;
        }
        sum
    }

    /// [`sum`](Self::sum) of numbers that may be large.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn sum_wide(self, value: usize) -> u64 {
        let mut sum = value as u64;
        let mut distance = 1;
        while distance < self.lanes {
            // SAFETY: the caller's lanes all come here.
            sum += unsafe { warp::shuffle_xor(FULL_MASK, sum, distance) };
            distance *= 2;
        }
        sum
    }

    /// The spans of a group, level by level from lane 0 on.
    ///
    /// # Safety
    /// All lanes of the warp come here together, with the same `group`.
    #[inline(always)]
    #[track_caller]
    pub unsafe fn spread(self, span: Span, group: u32) -> Span {
        let from = group * self.lanes + self.level();
        // SAFETY: the caller's lanes all come here.
        let (low, len) = unsafe {
            (
                warp::shuffle_idx(FULL_MASK, span.low as u64, from),
                warp::shuffle_idx(FULL_MASK, span.count() as u64, from),
            )
        };
        if lane_id() < self.count { Span { low: low as usize, high: (low + len) as usize } } else { Span::EMPTY }
    }
}

/// The elements of the lane's level with keys from `first` to `last`.
#[cfg(feature = "bodies")]
#[inline(always)]
pub fn span_of<K: LevelKey>(level: IndexedLevel<K>, first: K, last: K) -> Span {
    if first > last { Span::EMPTY } else { level.between(first, last) }
}

/// The elements of a query in level `own`: as they were kept, or found again.
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
    // SAFETY: the caller's promise.
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
