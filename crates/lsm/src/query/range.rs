//! Ranges of keys: counts and lists of the live elements (sections III-E, IV-C and IV-D of the paper).
//!
//! Departure from the paper: a task merges the pieces of the levels, which are already sorted; the paper sorts the
//! candidates of all queries by segments. If only one level has keys in the range, and no two of them are equal, there
//! is nothing to validate.

use std::ops::{Bound, RangeBounds};

use warpset_base::parallel;
use warpset_base::words::{OutOfMemory, zeroed_vec};

use super::few::{FEW, few_into};
use super::lookup::lower_bound;
use super::scan::Range;
use crate::level::Sorted;
use crate::merge::{Folder, PART, close_gaps, count_live, merge_live_into, split};
use crate::run::Run;
use crate::search_tree::by_best;
use crate::search_tree::{SearchTree, prefetch};
use crate::{OrderedKey, Value};

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

/// Returns the places of a range in a level, given that its elements start at `begin`.
fn places<K: OrderedKey, V: Value, S: Sorted<K, V>>(level: &S, begin: usize, largest: K) -> std::ops::Range<usize> {
    let keys = level.run().keys;
    if largest == K::MAX {
        return begin..keys.len();
    }
    // Most ranges are short, so steps double before halving.
    let rest = &keys[begin..];
    let mut step = 4;
    while step < rest.len() && rest[step] <= largest {
        step *= 4;
    }
    let near = &rest[..rest.len().min(step)];
    begin..begin + near.partition_point(|&key| key <= largest)
}

/// Returns the pieces of the levels in a range, and whether all their elements are certainly live. `begin` gives the
/// start of the range in each level.
fn pieces<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    ends: Option<(K, K)>,
    begin: impl Fn(usize, K) -> usize,
    pieces: &mut Vec<Run<'a, K, V>>,
) -> bool {
    let Some((least, largest)) = ends else {
        pieces.clear();
        return true;
    };
    let place = |(i, level)| places(level, begin(i, least), largest);
    pieces_at(levels, levels.iter().enumerate().map(place), pieces)
}

/// Returns the [`pieces`] at these places of the levels.
fn pieces_at<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    places: impl Iterator<Item = std::ops::Range<usize>>,
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

/// Starts of the elements of a group of ranges in each level: the ranges of a task descend the search tree of a level
/// together.
struct Begins {
    /// Places by level, then by range.
    places: Vec<usize>,
    ranges: usize,
}

impl Begins {
    fn of<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], ends: &[Option<(K, K)>]) -> Begins {
        let leasts: Vec<K> = ends.iter().map(|ends| ends.map_or(K::MIN, |(least, _)| least)).collect();
        let mut places = vec![0; levels.len() * leasts.len()];
        for (level, places) in levels.iter().zip(places.chunks_mut(leasts.len().max(1))) {
            let keys = level.run().keys;
            match level.search_index().tree() {
                Some(tree) => by_best!(|by| tree.lower_bounds_by(by, keys, &leasts, places)),
                None => places.iter_mut().zip(&leasts).for_each(|(place, &key)| *place = level.run().lower_bound(key)),
            }
        }
        Begins { places, ranges: leasts.len() }
    }

    fn at(&self, level: usize, range: usize) -> usize {
        self.places[level * self.ranges + range]
    }
}

/// Whether these few keys are all different.
fn ascends<K: OrderedKey>(keys: &[K]) -> bool {
    keys.len() <= 32 && keys.windows(2).all(|two| two[0] < two[1])
}

/// Returns the place of the first element that is not below `least` in each of up to [`TOGETHER`] levels.
fn begins_of_one<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], least: K) -> [usize; TOGETHER] {
    let mut begins = [0; TOGETHER];
    let mut searched: [(&[K], Option<&SearchTree<K>>); TOGETHER] = [(&[], None); TOGETHER];
    let count = levels.len().min(TOGETHER);
    for (searched, level) in searched.iter_mut().zip(levels) {
        let keys = level.run().keys;
        *searched = (keys, level.search_index().tree_for_one(keys));
    }
    SearchTree::lower_bounds_in_all(&searched[..count], least, &mut begins[..count]);
    for (&begin, level) in begins.iter().zip(levels) {
        prefetch(level.run().values, begin);
    }
    begins
}

/// Returns the [`pieces`] of a single range.
fn pieces_of_one<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    range: &impl RangeBounds<K>,
) -> (Vec<Run<'a, K, V>>, bool) {
    let mut found = Vec::with_capacity(levels.len());
    let ends = ends(range);
    let begins = ends.map_or([0; TOGETHER], |(least, _)| begins_of_one(levels, least));
    let begin = |level: usize, least| begins.get(level).copied().unwrap_or_else(|| lower_bound(&levels[level], least));
    let all_live = pieces(levels, ends, begin, &mut found);
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
    let (found, all_live) = pieces_of_one(levels, range);
    count_pieces(&found, all_live, &mut Folder::default())
}

fn count_pieces<K: OrderedKey, V: Value>(found: &[Run<'_, K, V>], all_live: bool, folder: &mut Folder<K, ()>) -> u64 {
    let candidates: usize = found.iter().map(Run::len).sum();
    if all_live {
        return candidates as u64;
    }
    if candidates > LARGE {
        return count_live(found);
    }
    let keys: Vec<Run<'_, K, ()>> = found.iter().map(Run::without_values).collect();
    if candidates <= FEW {
        return few_into(&keys, &mut [K::MIN; FEW], &mut [(); FEW]) as u64;
    }
    folder.live(&keys).0.len() as u64
}

/// Counts the keys of many ranges, as [`count`] does.
pub(crate) fn count_bulk<K: OrderedKey, V: Value, S: Sorted<K, V> + Sync, R: RangeBounds<K> + Sync>(
    levels: &[S],
    ranges: &[R],
    counts: &mut [u64],
) {
    prepare(levels, ranges.len());
    let tasks = ranges.chunks(TASK).zip(counts.chunks_mut(TASK));
    let scratch = || (Vec::new(), Folder::default());
    parallel::map_with(scratch, tasks, |(found, folder), (ranges, counts)| {
        let ends: Vec<Option<(K, K)>> = ranges.iter().map(ends).collect();
        let begins = Begins::of(levels, &ends);
        for (i, (&ends, count)) in ends.iter().zip(counts).enumerate() {
            let all_live = pieces(levels, ends, |level, _| begins.at(level, i), found);
            *count = count_pieces(found, all_live, folder);
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
    let find = |ranges: &[R]| {
        let ends: Vec<Option<(K, K)>> = ranges.iter().map(ends).collect();
        let begins = Begins::of(levels, &ends);
        let mut found = Vec::with_capacity(levels.len() * ends.len());
        for (i, ends) in ends.iter().enumerate() {
            let place = |(at, level)| ends.map_or(0..0, |(_, largest)| places(level, begins.at(at, i), largest));
            found.extend(levels.iter().enumerate().map(place));
        }
        found
    };
    // One list per task: by range, then by level.
    let found: Vec<Vec<std::ops::Range<usize>>> = parallel::map(ranges.chunks(TASK), find);
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
            let all_live = pieces_at(levels, places.iter().cloned(), pieces);
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
