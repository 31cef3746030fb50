//! Ranges of keys: counts and lists of the live elements (sections III-E, IV-C and IV-D of the paper).
//!
//! Departure from the paper: a task merges the pieces of the levels, which are already sorted; the paper sorts the
//! candidates of all queries by segments. If only one level has keys in the range, and no two of them are equal, there
//! is nothing to validate.

use std::ops::{Bound, RangeBounds};

use warpset_base::parallel;
use warpset_base::words::{OutOfMemory, zeroed_vec};

use super::few::{FEW, few_into};
use super::scan::Range;
use crate::gains::Gains;
use crate::level::Sorted;
use crate::merge::{Folder, PART, close_gaps, merge_live_into, split};
use crate::run::Run;
use crate::search_tree::SearchTree;
use crate::search_tree::by_best;
use crate::{OrderedKey, Value};
use warpset_base::processor::prefetch;

/// Queries per task.
const TASK: usize = 64;
/// Levels that a single range searches together.
const TOGETHER: usize = 32;
/// Smallest number of candidates of a range that is cut among threads.
const LARGE: usize = 8 * PART;

/// Elements of several ranges of keys, one range after the other: the result of `range_bulk`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges<K, V> {
    /// Offset of each range, and the number of all elements at the end.
    pub offsets: Vec<u64>,
    /// Keys, ascending within a range.
    pub keys: Vec<K>,
    /// Value of each key.
    pub values: Vec<V>,
}

impl<K, V> Default for Ranges<K, V> {
    fn default() -> Self {
        Ranges { offsets: Vec::new(), keys: Vec::new(), values: Vec::new() }
    }
}

impl<K, V> Ranges<K, V> {
    /// Returns the number of ranges.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys and values of range `i`.
    ///
    /// # Panics
    /// If there is no range `i`.
    pub fn get(&self, i: usize) -> (&[K], &[V]) {
        let places = self.offsets[i] as usize..self.offsets[i + 1] as usize;
        (&self.keys[places.clone()], &self.values[places])
    }
}

impl<K: OrderedKey, V: Value> Ranges<K, V> {
    /// Makes places for this number of ranges and elements; offsets are zero, elements unspecified. Changes nothing if
    /// memory runs out.
    fn make_room(&mut self, ranges: usize, elements: usize) -> Result<(), OutOfMemory> {
        let keys = if self.keys.capacity() < elements { Some(zeroed_vec(elements as u64)?) } else { None };
        let values = if self.values.capacity() < elements { Some(V::zeroed_vec(elements)?) } else { None };
        if self.offsets.capacity() <= ranges {
            self.offsets = zeroed_vec(ranges as u64 + 1)?;
        }
        self.keys = keys.unwrap_or(std::mem::take(&mut self.keys));
        self.values = values.unwrap_or(std::mem::take(&mut self.values));
        self.keys.resize(elements, K::MIN);
        self.values.resize(elements, V::NONE);
        self.offsets.clear();
        self.offsets.resize(ranges + 1, 0);
        Ok(())
    }
}

/// Returns the least and the largest key of a range, or `None` if it is empty.
pub(crate) fn ends<K: OrderedKey>(range: &impl RangeBounds<K>) -> Option<(K, K)> {
    let least = match range.start_bound() {
        Bound::Included(&key) => key,
        Bound::Excluded(&key) => key.above()?,
        Bound::Unbounded => K::MIN,
    };
    let largest = match range.end_bound() {
        Bound::Included(&key) => key,
        Bound::Excluded(&key) => key.below()?,
        Bound::Unbounded => K::MAX,
    };
    (least <= largest).then_some((least, largest))
}

/// Returns the pieces of the levels at these places, and whether all their elements are certainly live.
fn pieces<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    places: impl Iterator<Item = Places>,
    pieces: &mut Vec<Run<'a, K, V>>,
) -> bool {
    pieces.clear();
    let mut from = None;
    for (level, places) in levels.iter().zip(places) {
        if !places.is_empty() {
            pieces.push(level.run().slice(places));
            from = Some(level);
        }
    }
    match (&pieces[..], from) {
        ([], _) | (_, None) => true,
        ([piece], Some(level)) => {
            !piece.has_tombstones() && (ascends(piece.keys) || level.search_index().is_distinct(level.run().keys))
        }
        _ => false,
    }
}

/// Places of the elements of a range in a level.
type Places = std::ops::Range<usize>;

/// Returns the places of ranges in each level, by range, then by level. All ranges descend the search tree of a level
/// together.
fn places_of_many<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], ends: &[Option<(K, K)>]) -> Vec<Places> {
    let asked: Vec<K> = ends
        .iter()
        .map(|ends| ends.map_or(K::MIN, |(least, _)| least))
        .chain(ends.iter().map(|ends| ends.map_or(K::MIN, |(_, largest)| largest.above().unwrap_or(K::MAX))))
        .collect();
    let mut bounds = vec![0; asked.len()];
    let mut places = vec![0..0; levels.len() * ends.len()];
    for (number, level) in levels.iter().enumerate() {
        let run = level.run();
        match level.search_index().tree() {
            Some(tree) => by_best!(|by| tree.lower_bounds_by(by, run.keys, &asked, &mut bounds)),
            None => bounds.iter_mut().zip(&asked).for_each(|(bound, &key)| *bound = run.lower_bound(key)),
        }
        let (begins, afters) = bounds.split_at(ends.len());
        let places = places.iter_mut().skip(number).step_by(levels.len());
        for (((places, &begin), &after), ends) in places.zip(begins).zip(afters).zip(ends) {
            let is_open = ends.is_some_and(|(_, largest)| largest == K::MAX);
            *places = begin..if is_open { run.len() } else { after.max(begin) };
        }
    }
    places
}

/// Whether these few keys are all different.
fn ascends<K: OrderedKey>(keys: &[K]) -> bool {
    keys.len() <= 32 && keys.windows(2).all(|two| two[0] < two[1])
}

/// Returns the places of one range in each level.
fn places_of_one<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], range: &impl RangeBounds<K>) -> Vec<Places> {
    let mut places = Vec::with_capacity(levels.len());
    let Some((least, largest)) = ends(range) else {
        places.resize(levels.len(), 0..0);
        return places;
    };
    for levels in levels.chunks(TOGETHER) {
        let mut searched: [(&[K], Option<&SearchTree<K>>); TOGETHER] = [(&[], None); TOGETHER];
        let searched = &mut searched[..levels.len()];
        for (searched, level) in searched.iter_mut().zip(levels) {
            let keys = level.run().keys;
            *searched = (keys, level.search_index().tree_for_one(keys));
        }
        let mut bounds = [[0; 2]; TOGETHER];
        let bounds = &mut bounds[..levels.len()];
        SearchTree::lower_bounds_in_all(searched, [least, largest.above().unwrap_or(K::MAX)], bounds);
        for (&mut [begin, after], level) in bounds.iter_mut().zip(levels) {
            let run = level.run();
            prefetch(run.values, begin);
            places.push(begin..if largest == K::MAX { run.len() } else { after.max(begin) });
        }
    }
    places
}

/// Returns the [`pieces`] of a single range.
fn pieces_of_one<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    range: &impl RangeBounds<K>,
) -> (Vec<Run<'a, K, V>>, bool) {
    let mut found = Vec::with_capacity(levels.len());
    let all_live = pieces(levels, places_of_one(levels, range).into_iter(), &mut found);
    (found, all_live)
}

/// Iterates over the live elements of a range.
pub(crate) fn range<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    range: &impl RangeBounds<K>,
) -> Range<'a, K, V> {
    Range::new(pieces_of_one(levels, range).0)
}

/// Counts the keys of a range that have a value.
pub(crate) fn count<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], range: &impl RangeBounds<K>) -> u64 {
    count_at(levels, &places_of_one(levels, range))
}

/// Counts the keys at these places of the levels that have a value.
fn count_at<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], places: &[Places]) -> u64 {
    let each = || levels.iter().zip(places).enumerate().filter(|(_, (_, places))| !places.is_empty());
    let between = |gains: &Gains, places: &Places| gains.below(places.end) - gains.below(places.start);
    let known = each().map(|(number, (level, places))| {
        let gains = level.search_index().gains_for(level.run(), &levels[number + 1..], places.len());
        gains.map(|gains| between(gains, places))
    });
    let count = known.sum::<Option<i64>>().unwrap_or_else(|| {
        if places.iter().map(ExactSizeIterator::len).sum::<usize>() <= FEW {
            let pieces: Vec<_> =
                each().map(|(_, (level, at))| level.run().without_values().slice(at.clone())).collect();
            return few_into(&pieces, &mut [K::MIN; FEW], &mut [(); FEW]) as i64;
        }
        let gained = each().map(|(number, (level, places))| match level.search_index().gains() {
            Some(gains) => between(gains, places),
            None => Gains::of(level.run().slice(places.clone()), &levels[number + 1..]).below(places.len()),
        });
        gained.sum()
    });
    // In a damaged file that was opened unverified, keys may be unsorted.
    count.max(0) as u64
}

/// Counts the keys of many ranges, as [`count`] does.
pub(crate) fn count_bulk<K: OrderedKey, V: Value, S: Sorted<K, V> + Sync, R: RangeBounds<K> + Sync>(
    levels: &[S],
    ranges: &[R],
    counts: &mut [u64],
) {
    prepare(levels, ranges.len());
    parallel::for_each(ranges.chunks(TASK).zip(counts.chunks_mut(TASK)), |(ranges, counts)| {
        let ends: Vec<Option<(K, K)>> = ranges.iter().map(ends).collect();
        let places = places_of_many(levels, &ends);
        for (places, count) in places.chunks(levels.len().max(1)).zip(counts) {
            *count = count_at(levels, places);
        }
    });
}

/// Writes the live elements of many ranges to memory that is reused if it suffices. First every range is searched,
/// which bounds the number of elements; then each task merges its ranges to their final places.
pub(crate) fn range_bulk_into<K: OrderedKey, V: Value, S: Sorted<K, V> + Sync, R: RangeBounds<K> + Sync>(
    levels: &[S],
    ranges: &[R],
    to: &mut Ranges<K, V>,
) -> Result<(), crate::Error> {
    prepare(levels, ranges.len());
    let find = |ranges: &[R]| places_of_many(levels, &ranges.iter().map(ends).collect::<Vec<_>>());
    // One list per task: by range, then by level.
    let found: Vec<Vec<Places>> = parallel::map(ranges.chunks(TASK), find);
    let candidates: Vec<usize> = found.iter().map(|places| places.iter().map(ExactSizeIterator::len).sum()).collect();
    to.make_room(ranges.len(), candidates.iter().sum())?;
    let targets = split(&mut to.keys, &candidates).into_iter().zip(split(&mut to.values, &candidates));
    let tasks = found.iter().zip(targets).zip(to.offsets[1..].chunks_mut(TASK));
    let scratch = || (Vec::new(), Folder::default());
    let live = parallel::map_with(scratch, tasks, |(pieces, folder), ((found, (keys, values)), ends)| {
        let by_range = found.chunks(levels.len().max(1));
        for (places, level) in by_range.clone().flat_map(|places| places.iter().zip(levels)) {
            prefetch(level.run().keys, places.start);
            prefetch(level.run().values, places.start);
        }
        let mut len = 0;
        for (places, end) in by_range.zip(ends) {
            let all_live = self::pieces(levels, places.iter().cloned(), pieces);
            len += live_into(pieces, all_live, folder, &mut keys[len..], &mut values[len..]);
            *end = len as u64;
        }
        len
    });
    close_gaps(&mut to.keys, &candidates, &live);
    let len = close_gaps(&mut to.values, &candidates, &live);
    to.keys.truncate(len);
    to.values.truncate(len);
    let mut before = 0;
    for (ends, live) in to.offsets[1..].chunks_mut(TASK).zip(live) {
        ends.iter_mut().for_each(|end| *end += before);
        before += live as u64;
    }
    Ok(())
}

/// Returns the keys of a range that have a value.
pub(crate) fn keys_in<K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &[S],
    range: &impl RangeBounds<K>,
) -> Result<Vec<K>, crate::Error> {
    let (found, all_live) = pieces_of_one(levels, range);
    let found: Vec<Run<'_, K, ()>> = found.iter().map(Run::without_values).collect();
    let candidates = found.iter().map(Run::len).sum();
    let (mut keys, mut units) = (zeroed_vec(candidates as u64)?, vec![(); candidates]);
    let live = live_into(&found, all_live, &mut Folder::default(), &mut keys, &mut units);
    keys.truncate(live);
    Ok(keys)
}

/// Copies items; large copies use all threads.
fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T]) {
    if from.len() > LARGE {
        parallel::for_each(to.chunks_mut(PART).zip(from.chunks(PART)), |(to, from)| to.copy_from_slice(from));
    } else {
        to.copy_from_slice(from);
    }
}

/// Writes the live elements of the pieces of one range to the front of `keys` and `values`, which have a place for each
/// element of the pieces, and returns their number.
fn live_into<K: OrderedKey, V: Value>(
    found: &[Run<'_, K, V>],
    all_live: bool,
    folder: &mut Folder<K, V>,
    keys: &mut [K],
    values: &mut [V],
) -> usize {
    let candidates: usize = found.iter().map(Run::len).sum();
    let (keys, values) = (&mut keys[..candidates], &mut values[..candidates]);
    match found {
        [piece] if all_live => {
            copy(piece.keys, keys);
            copy(piece.values, values);
            candidates
        }
        _ if candidates <= FEW => few_into(found, keys, values),
        _ if candidates > LARGE => merge_live_into(found, keys, values),
        _ => folder.live_into(found, keys, values),
    }
}

/// Builds the search trees that pay off for this number of ranges.
fn prepare<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], ranges: usize) {
    for level in levels {
        level.search_index().prepare(level.run().keys, ranges, false);
    }
}
