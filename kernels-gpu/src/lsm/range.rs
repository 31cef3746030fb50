//! Counts and ranges in a log-structured merge tree: one warp per query.
//!
//! Source: Ashkiani, Li, Farach-Colton, Amenta, Owens, "GPU LSM: A Dynamic Dictionary Data Structure for the GPU", IPDPS
//! 2018, sections III-E, IV-C and IV-D. The paper copies the candidates of all queries to memory, sorts each query's, and
//! drops what is stale. Departures: levels are sorted already, so a warp merges what a query asks of them in shared
//! memory, a chunk at a time; a count needs no order at all, only to know whether a newer level has the key.
//!
//! Each lane stands for a level, and knows where it lies while the warp goes through its queries. With few levels a warp
//! takes several queries at a time, a group of lanes each, to find where their elements begin and end. Then, one query
//! after the other:
//! - up to 32 elements: each lane takes one, and compares it with those of all other lanes;
//! - a count of more: levels from the newest to the oldest; a small Bloom filter in shared memory holds the keys of those
//!   passed, and what it may hold is looked up in them;
//! - a range of more: [`super::chunks`].
//!
//! A range is counted first, because its place in the output depends on all before it. [`lsm_count`] can keep what it
//! found of the levels for [`lsm_range`]: one word per query and level.

use warpset_simt::shared::{self, Shared};
use warpset_simt::warp::{self, FULL_MASK, lane_id};
use warpset_simt::{Global, GlobalMut, allow, thread};

use crate::lsm::chunks::{self, Output, RangeKey};
use crate::lsm::levels::{IndexedLevel, Levels, Span, lower_bound};

/// Threads of a block, in both kernels.
pub const BLOCK: u32 = 256;
/// Warps of a block.
pub const WARPS: u32 = BLOCK / 32;
/// Words of 32 bits of a warp's filter of keys.
const SEEN_WORDS: u32 = 1024;
/// Elements that a lane loads before it looks at one.
const AT_ONCE: u32 = 4;
/// Bytes of dynamic shared memory of a block of [`lsm_count`].
pub const COUNT_SHARED_BYTES: u32 = WARPS * SEEN_WORDS * 4;

/// Bits of a kept span that hold its length; the others hold where it begins.
const LEN_BITS: u32 = 24;
/// The length that stands for all that are longer.
const LONG: u64 = (1 << LEN_BITS) - 1;

/// How a warp goes through its queries: a group of lanes for each of those that it takes at a time, a lane for each level.
#[derive(Clone, Copy)]
struct Groups {
    /// Lanes of a group: a power of two.
    lanes: u32,
    /// Levels.
    count: u32,
}

impl Groups {
    #[inline(always)]
    fn new(count: u32) -> Self {
        Self { lanes: count.max(1).next_power_of_two(), count }
    }

    /// Queries at a time.
    #[inline(always)]
    fn queries(self) -> u32 {
        32 / self.lanes
    }

    /// Which of the queries at a time the lane's group has.
    #[inline(always)]
    fn group(self) -> u32 {
        lane_id() / self.lanes
    }

    /// The lane's level, unless it is beyond the last.
    #[inline(always)]
    fn level(self) -> u32 {
        lane_id() % self.lanes
    }

    /// The elements of the lane's query, at most `LEVELS << 26`: what is longer counts as that long.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    unsafe fn total(self, span: Span) -> u32 {
        let mut total = span.count().min(1 << 26) as u32;
        let mut distance = 1;
        while distance < self.lanes {
            // SAFETY: the caller's lanes all come here.
            total += unsafe { warp::shuffle_xor(FULL_MASK, total, distance) };
            distance *= 2;
        }
        total
    }

    /// The spans of a group, level by level from lane 0 on.
    ///
    /// # Safety
    /// All lanes of the warp come here together, with the same `group`.
    #[inline(always)]
    #[track_caller]
    unsafe fn spread(self, span: Span, group: u32) -> Span {
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

/// Of the lane's level, the elements with keys from `first` to `last`.
#[inline(always)]
fn span_of<K: RangeKey>(level: IndexedLevel<K>, first: K, last: K) -> Span {
    if first > last { Span::EMPTY } else { level.between(first, last) }
}

/// Short queries have at most this many elements: a lane each.
const SHORT: u32 = 32;

/// The elements of several short queries, one per lane, newest levels first.
#[derive(Clone, Copy)]
struct Window<K> {
    /// Elements, over all queries.
    len: u32,
    /// The lane of the group and level that the lane's element is of.
    source: u32,
    /// Which lane has the first element of the lane's query, and how many there are.
    first: u32,
    total: u32,
    /// The most elements of a query.
    longest: u32,
    key: K,
    /// Where the element stands in its level.
    place: usize,
    /// The lanes whose elements are the newest of their key, and live.
    valid: u32,
}

impl<K> Window<K> {
    /// Whether the lane has an element.
    #[inline(always)]
    fn has_element(self) -> bool {
        lane_id() < self.len
    }

    /// The lanes with valid elements of the lane's query.
    #[inline(always)]
    fn valid_of_query(self) -> u32 {
        // A lane with an element has at least one and at most 32 in its query.
        let lanes = u32::MAX >> ((32 - self.total) & 31);
        self.valid & lanes << (self.first & 31)
    }
}

/// The short queries among those that a warp has at a time.
#[derive(Clone, Copy)]
struct Short {
    groups: Groups,
    /// The lane's span, empty if its query is not short.
    span: Span,
    /// The elements of all lanes up to this one.
    end: u32,
    /// The elements of the lane's query, and of all queries up to it.
    total: u32,
    query_end: u32,
}

impl Short {
    /// `total` is the number of elements of the lane's query.
    ///
    /// # Safety
    /// All lanes of the warp come here together.
    #[inline(always)]
    #[track_caller]
    unsafe fn new(groups: Groups, span: Span, total: u32) -> Self {
        let is_short = total <= SHORT;
        let span = if is_short { span } else { Span::EMPTY };
        let total = if is_short { total } else { 0 };
        // SAFETY: the caller's lanes all come here.
        unsafe {
            let end = warp::inclusive_scan_add(FULL_MASK, span.count() as u32);
            let query_end = warp::shuffle_idx(FULL_MASK, end, lane_id() | (groups.lanes - 1));
            Self { groups, span, end, total, query_end }
        }
    }

    /// As many whole queries, from element `base` on, as the lanes can take an element each; none if there is no element.
    ///
    /// # Safety
    /// All lanes of the warp come here together; a query begins at `base`.
    #[inline(always)]
    #[track_caller]
    unsafe fn window<K: RangeKey>(self, levels: Levels, base: u32) -> Window<K> {
        let lane = lane_id();
        // SAFETY: the caller's lanes all come here, and each loop goes as often for all; a lane with an element has it in
        // the level of the first lane whose end is after it, and there is one.
        unsafe {
            let fits = warp::ballot(FULL_MASK, self.query_end <= base + 32);
            let last = 31 - fits.leading_zeros();
            let len = warp::shuffle_idx(FULL_MASK, self.query_end, last) - base;
            let source = chunks::first_above(self.end, base + lane);
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
                live = !levels.tombstones(number).is_one(place);
            }
            for i in 0..longest {
                // A lane before, of the same query, has a newer element.
                let other = first.wrapping_add(i);
                let is_older = warp::shuffle_idx(FULL_MASK, key, other & 31) == key;
                live &= !(is_older & (other < lane));
            }
            let valid = warp::ballot(FULL_MASK, live);
            Window { len, source, first, total, longest, key, place, valid }
        }
    }
}

/// Whether any of the levels before `level` has the key in the query's span of it.
///
/// # Safety
/// All lanes of the warp come here together, with the same `level`, and each with its level's span; lanes with `wanted`
/// get an answer.
#[inline(always)]
#[track_caller]
unsafe fn is_in_newer<K: RangeKey>(levels: Levels, span: Span, level: u32, key: K, wanted: bool) -> bool {
    let mut found = false;
    for newer in 0..level {
        // SAFETY: the caller's lanes all come here; places are inside the level.
        unsafe {
            let low = warp::shuffle_idx(FULL_MASK, span.low as u64, newer) as usize;
            let high = warp::shuffle_idx(FULL_MASK, span.high as u64, newer) as usize;
            if wanted & !found {
                let keys = levels.keys::<K>(newer);
                let place = lower_bound(keys, low, high, key);
                found = place < high && keys.read_nc(place) == key;
            }
        }
    }
    found
}

/// How many elements of a query of more than 32 are valid.
///
/// # Safety
/// - All lanes of the warp come here together, each with its level's span.
/// - `seen`: [`SEEN_WORDS`] words of shared memory, the warp's own.
#[inline(always)]
#[track_caller]
unsafe fn count_many<K: RangeKey>(levels: Levels, count: u32, span: Span, total: u32, seen: Shared<u32>) -> u64 {
    let lane = lane_id();
    // One word per element, as far as there is room.
    let words = total.min(SEEN_WORDS).next_power_of_two();
    let shift = 32 - words.trailing_zeros();
    let mut all_valid = 0u64;
    // SAFETY: the caller's lanes all come here, and each loop goes as often for all. Bits of the filter are below `words`
    // words; barriers of the warp separate clearing, adding and asking. Elements are inside their level.
    unsafe {
        let mut w = lane;
        while w < words {
            seen.set(w, 0);
            w += 32;
        }
        warp::sync_warp(FULL_MASK);
        let occupied = warp::ballot(FULL_MASK, span.count() != 0);
        for number in 0..count {
            if occupied >> number & 1 == 0 {
                continue;
            }
            let mut base = warp::shuffle_idx(FULL_MASK, span.low as u64, number) as usize;
            let high = warp::shuffle_idx(FULL_MASK, span.high as u64, number) as usize;
            let is_newest = occupied & ((1 << number) - 1) == 0;
            let is_oldest = occupied >> number == 1;
            let level_keys = levels.keys::<K>(number);
            let tombstones = levels.tombstones(number);
            // Of the element before those at `base`; what no element has, to begin with.
            let mut last = !level_keys.read_nc(base);
            while base < high {
                let here = level_keys.at(base);
                let left = (high - base).min(32 * AT_ONCE as usize) as u32;
                let mut keys = [K::default(); AT_ONCE as usize];
                for u in 0..AT_ONCE {
                    if u * 32 + lane < left {
                        keys[u as usize] = here.read_nc((u * 32 + lane) as usize);
                    }
                }
                let mut valid = 0;
                // Bit `u`: the filter may hold the lane's element `u`.
                let mut uncertain = 0u32;
                for u in 0..AT_ONCE {
                    if u * 32 >= left {
                        break;
                    }
                    let i = u * 32 + lane;
                    let key = keys[u as usize];
                    let before = warp::shuffle_up(FULL_MASK, key, 1);
                    let newest = (i < left) & (if lane == 0 { last } else { before } != key);
                    last = warp::shuffle_idx(FULL_MASK, key, 31);
                    let (word, bits) = bits_of(key.into(), shift);
                    let maybe = !is_newest && seen.get_volatile(word) & bits == bits;
                    if !is_oldest & newest {
                        seen.reduce_or(word, bits);
                    }
                    let live = newest && !tombstones.is_one(base + i as usize);
                    valid += warp::ballot(FULL_MASK, live & !maybe).count_ones();
                    uncertain |= ((live & maybe) as u32) << u;
                }
                while warp::any(FULL_MASK, uncertain != 0) {
                    let i = (uncertain.trailing_zeros() % AT_ONCE) * 32 + lane;
                    let wanted = uncertain != 0;
                    let key = if wanted { here.read_nc(i as usize) } else { K::default() };
                    let found = is_in_newer(levels, span, number, key, wanted);
                    valid += warp::ballot(FULL_MASK, wanted & !found).count_ones();
                    uncertain &= uncertain.wrapping_sub(1);
                }
                all_valid += valid as u64;
                base += 32 * AT_ONCE as usize;
            }
            warp::sync_warp(FULL_MASK);
        }
        warp::sync_warp(FULL_MASK);
    }
    all_valid
}

/// The word of a key in a warp's filter of `2^(32 - shift)` words, and its four bits there.
#[inline(always)]
fn bits_of(key: u64, shift: u32) -> (u32, u32) {
    let hash = ((key as u32) ^ (key >> 32) as u32).wrapping_mul(0x9e37_79b9);
    // The word has the high bits, ten at most.
    let bits = 1 << (hash >> 17 & 31) | 1 << (hash >> 12 & 31) | 1 << (hash >> 7 & 31) | 1 << (hash >> 2 & 31);
    (hash >> shift, bits)
}

kernel! {
    /// How many keys of each range are in the tree.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, [`COUNT_SHARED_BYTES`] of dynamic shared memory.
    /// - `table`: as for [`Levels::new`], it has `levels` levels.
    /// - `lows`, `highs`: valid for `n` reads, not written while the kernel runs: both ends belong to the range.
    /// - `counts`: valid for `n` writes, used by this launch alone; so are `spans`, for `n * levels`, unless `keep` is 0.
    #[launch_bounds(256, 3)]
    pub unsafe fn lsm_count<K>(
        table: Global<u64>, levels: u32, lows: Global<K>, highs: Global<K>, n: usize, counts: GlobalMut<u64>,
        spans: GlobalMut<u64>, keep: u32,
    ) for [u32 => lsm_count_u32, #[launch_bounds(256, 2)] u64 => lsm_count_u64] {
        // Four registers on sm_80; none on later ones.
        allow::spill();
        let warp_in_block = thread::thread_idx_x() / 32;
        let seen = shared::dynamic(warp_in_block * (SEEN_WORDS * 4));
        let groups = Groups::new(levels);
        // SAFETY: the caller keeps this kernel's contract; lanes without a level have that of the newest.
        let tree = unsafe { Levels::new(table) };
        let own = groups.level();
        let has_level = own < levels;
        if levels == 0 {
            return none(n, counts);
        }
        let level = tree.level::<K>(if has_level { own } else { 0 }).indexed();
        let at_a_time = groups.queries() as usize;
        let mut base = (thread::block_idx_x() as usize * WARPS as usize + warp_in_block as usize) * at_a_time;
        while base < n {
            // SAFETY: the caller keeps this kernel's contract; `query < n` where it is read or written; `base`, the
            // groups and sums are the same for the warp.
            unsafe {
                let query = base + groups.group() as usize;
                let mut spans_here = Span::EMPTY;
                if has_level && query < n {
                    spans_here = span_of(level, lows.read_nc(query), highs.read_nc(query));
                    if keep != 0 {
                        let len = (spans_here.count() as u64).min(LONG);
                        spans.write(query * levels as usize + own as usize, (spans_here.low as u64) << LEN_BITS | len);
                    }
                }
                let total = groups.total(spans_here);
                if total == 0 && own == 0 && query < n {
                    counts.write(query, 0);
                }
                let short = Short::new(groups, spans_here, total);
                let mut element = 0;
                loop {
                    let window = short.window::<K>(tree, element);
                    if window.len == 0 {
                        break;
                    }
                    if window.has_element() && window.first == lane_id() {
                        let query = base + (window.source / groups.lanes) as usize;
                        counts.write(query, window.valid_of_query().count_ones() as u64);
                    }
                    element += window.len;
                }
                let mut long = warp::ballot(FULL_MASK, total > SHORT && own == 0);
                while long != 0 {
                    let group = long.trailing_zeros() / groups.lanes;
                    long &= long - 1;
                    let span = groups.spread(spans_here, group);
                    let total = warp::shuffle_idx(FULL_MASK, total, group * groups.lanes);
                    let valid = count_many::<K>(tree, levels, span, total, seen);
                    if lane_id() == 0 {
                        counts.write(base + group as usize, valid);
                    }
                }
            }
            base += thread::grid_dim_x() as usize * WARPS as usize * at_a_time;
        }
    }
}

/// The counts of a tree without levels.
#[inline(always)]
fn none(n: usize, counts: GlobalMut<u64>) {
    for i in thread::grid_stride(n) {
        // SAFETY: the kernel's caller says that there are `n` counts, and each is one thread's.
        unsafe { counts.write(i, 0) };
    }
}

kernel! {
    /// The keys of each range and their values, in ascending order, from the range's offset on.
    ///
    /// # Safety
    /// - Launch: 1-D, any grid of blocks of [`BLOCK`] threads, [`range_shared_bytes`] of dynamic shared memory.
    /// - `table`, `levels`, `lows`, `highs`: as for [`lsm_count`]; values have `value_words` words of 32 bits, 0, 1 or 2.
    /// - `spans`: what [`lsm_count`] kept of these queries, unless `kept` is 0.
    /// - `offsets`: valid for `n` reads: how many keys the ranges before have, as [`lsm_count`] says.
    /// - `keys`, `values`: valid for as many writes as all ranges have keys, used by this launch alone.
    #[launch_bounds(256, 3)]
    pub unsafe fn lsm_range<K>(
        table: Global<u64>, levels: u32, lows: Global<K>, highs: Global<K>, n: usize, spans: Global<u64>, kept: u32,
        offsets: Global<u64>, keys: GlobalMut<K>, values: GlobalMut<u32>, value_words: u32,
    ) for [u32 => lsm_range_u32, u64 => lsm_range_u64] {
        let warp_in_block = thread::thread_idx_x() / 32;
        let lane = lane_id();
        let groups = Groups::new(levels);
        // SAFETY: the caller keeps the kernel's contract.
        let tree = unsafe { Levels::new(table) };
        let own = groups.level();
        let at_a_time = groups.queries() as usize;
        let mut base = (thread::block_idx_x() as usize * WARPS as usize + warp_in_block as usize) * at_a_time;
        while base < n {
            // SAFETY: the caller keeps the kernel's contract; `query < n` where it is read; `base`, the groups and sums are
            // the same for the warp; a valid element's place in the output is the query's offset and the number of valid
            // ones with smaller keys.
            unsafe {
                let query = base + groups.group() as usize;
                let mut spans_here = Span::EMPTY;
                let mut offset_here = 0;
                if query < n {
                    offset_here = offsets.read_nc(query);
                    if own < levels {
                        let mut span = LONG;
                        if kept != 0 {
                            span = spans.read_nc(query * levels as usize + own as usize);
                        }
                        let low = (span >> LEN_BITS) as usize;
                        spans_here = Span { low, high: low + (span & LONG) as usize };
                        if span & LONG == LONG {
                            let level = tree.level::<K>(own).indexed();
                            spans_here = span_of(level, lows.read_nc(query), highs.read_nc(query));
                        }
                    }
                }
                let total = groups.total(spans_here);
                let short = Short::new(groups, spans_here, total);
                let mut first = 0;
                loop {
                    let window = short.window::<K>(tree, first);
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
                    let to = warp::shuffle_idx(FULL_MASK, offset_here, window.source) as usize + rank;
                    if window.valid >> lane & 1 != 0 {
                        keys.write(to, window.key);
                        tree.copy_value(window.source % groups.lanes, window.place, value_words, values, to);
                    }
                    first += window.len;
                }
                let mut long = warp::ballot(FULL_MASK, total > SHORT && own == 0);
                while long != 0 {
                    let group = long.trailing_zeros() / groups.lanes;
                    long &= long - 1;
                    let span = groups.spread(spans_here, group);
                    let to = warp::shuffle_idx(FULL_MASK, offset_here, group * groups.lanes) as usize;
                    let room = shared::dynamic(warp_in_block * chunks::shared_bytes::<K>());
                    chunks::write::<K>(tree, span, room, Output { keys, values, value_words }, to);
                }
            }
            base += thread::grid_dim_x() as usize * WARPS as usize * at_a_time;
        }
    }
}

/// Bytes of dynamic shared memory of a block of [`lsm_range`] with keys of type `K`.
#[must_use]
pub const fn range_shared_bytes<K: RangeKey>() -> u32 {
    WARPS * chunks::shared_bytes::<K>()
}
