//! Ranges of keys: how many live in each, and which (sections III-E, IV-C and IV-D of the paper).
//!
//! Departure from the paper: a task merges the pieces of the levels, which are sorted already, instead of sorting the candidates of all
//! queries by segments. Where one level alone has keys in the range, and no two of them are equal, there is nothing to
//! validate.

use std::ops::{Bound, RangeBounds};

use warpset_base::parallel;
use warpset_base::words::zeroed_vec;

use super::few::{FEW, append_few};
use super::lookup::lower_bound;
use super::scan::Range;
use crate::fences::{Fences, prefetch};
use crate::level::Sorted;
use crate::merge::{Folder, PART, count_live, merge_live, split};
use crate::run::Run;
use crate::{OrderedKey, Value};

/// Queries of a task.
const TASK: usize = 64;
/// Levels that a single range searches together.
const TOGETHER: usize = 32;
/// A range of more candidates is cut among threads.
const LARGE: usize = 8 * PART;

/// The elements of several ranges of keys, one after the other, and where each begins: made by `range_bulk`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges<K, V> {
    /// Where the elements of each range begin; one more than ranges, the last one is the number of all elements.
    pub offsets: Vec<u64>,
    /// The keys, ascending within a range.
    pub keys: Vec<K>,
    /// The value of each key.
    pub values: Vec<V>,
}

impl<K, V> Ranges<K, V> {
    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys and values of range `i`.
    ///
    /// # Panics
    /// If there is no range `i`.
    pub fn get(&self, i: usize) -> (&[K], &[V]) {
        let places = self.offsets[i] as usize..self.offsets[i + 1] as usize;
        (&self.keys[places.clone()], &self.values[places])
    }
}

/// The least and the largest key of a range, unless it is empty.
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

/// Where the elements of a range that begin at `begin` are in a level.
fn places<K: OrderedKey, V: Value, S: Sorted<K, V>>(level: &S, begin: usize, largest: K) -> std::ops::Range<usize> {
    let keys = level.run().keys;
    if largest == K::MAX {
        return begin..keys.len();
    }
    // Most ranges are short: in steps that double, then by halving.
    let rest = &keys[begin..];
    let mut step = 4;
    while step < rest.len() && rest[step] <= largest {
        step *= 4;
    }
    let near = &rest[..rest.len().min(step)];
    begin..begin + near.partition_point(|&key| key <= largest)
}

/// The pieces of the levels in a range, which begin where `begin` says for each level, and whether all their elements live
/// for sure.
fn pieces<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    ends: Option<(K, K)>,
    begin: impl Fn(usize, K) -> usize,
    pieces: &mut Vec<Run<'a, K, V>>,
) -> bool {
    pieces.clear();
    let Some((least, largest)) = ends else { return true };
    let mut from = None;
    for (i, level) in levels.iter().enumerate() {
        let places = places(level, begin(i, least), largest);
        if !places.is_empty() {
            pieces.push(level.run().slice(places));
            from = Some(level);
        }
    }
    match (&pieces[..], from) {
        ([], _) | (_, None) => true,
        ([piece], Some(level)) => {
            !piece.has_tombstones() && (ascends(piece.keys) || level.derived().is_distinct(level.run().keys))
        }
        _ => false,
    }
}

/// Where each level's elements of a group of ranges begin: the ranges of a task go down the fences of a level together.
struct Begins {
    /// By level, then by range.
    places: Vec<usize>,
    ranges: usize,
}

impl Begins {
    /// `with_values`: the values there are asked for ahead.
    fn of<K: OrderedKey, V: Value, S: Sorted<K, V>>(
        levels: &[S],
        ends: &[Option<(K, K)>],
        with_values: bool,
    ) -> Begins {
        let leasts: Vec<K> = ends.iter().map(|ends| ends.map_or(K::MIN, |(least, _)| least)).collect();
        let mut places = vec![0; levels.len() * leasts.len()];
        for (level, places) in levels.iter().zip(places.chunks_mut(leasts.len().max(1))) {
            let keys = level.run().keys;
            match level.derived().fences() {
                Some(fences) => fences.lower_bounds(keys, &leasts, places),
                None => places.iter_mut().zip(&leasts).for_each(|(place, &key)| *place = level.run().lower_bound(key)),
            }
            if with_values {
                places.iter().for_each(|&place| prefetch(level.run().values, place));
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

/// Where the elements that are not below `least` begin, in up to [`TOGETHER`] levels.
fn begins_of_one<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], least: K) -> [usize; TOGETHER] {
    let mut begins = [0; TOGETHER];
    let mut searched: [(&[K], Option<&Fences<K>>); TOGETHER] = [(&[], None); TOGETHER];
    let count = levels.len().min(TOGETHER);
    for (searched, level) in searched.iter_mut().zip(levels) {
        let keys = level.run().keys;
        *searched = (keys, level.derived().fences_for_one(keys));
    }
    Fences::lower_bounds_in_all(&searched[..count], least, &mut begins[..count]);
    for (&begin, level) in begins.iter().zip(levels) {
        prefetch(level.run().values, begin);
    }
    begins
}

/// [`pieces`] of a single range.
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

/// How many keys of a range have a value.
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
        let (mut live, mut units) = (Vec::new(), Vec::new());
        append_few(&keys, &mut live, &mut units);
        return live.len() as u64;
    }
    folder.live(&keys).0.len() as u64
}

/// [`count`] of many ranges.
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
        let begins = Begins::of(levels, &ends, false);
        for (i, (&ends, count)) in ends.iter().zip(counts).enumerate() {
            let all_live = pieces(levels, ends, |level, _| begins.at(level, i), found);
            *count = count_pieces(found, all_live, folder);
        }
    });
}

/// The live elements of many ranges.
pub(crate) fn range_bulk<K: OrderedKey, V: Value, S: Sorted<K, V> + Sync, R: RangeBounds<K> + Sync>(
    levels: &[S],
    ranges: &[R],
) -> Result<Ranges<K, V>, crate::Error> {
    prepare(levels, ranges.len());
    if let [level] = levels
        && !level.run().has_tombstones()
        && level.derived().is_distinct(level.run().keys)
    {
        return copy_bulk(level, ranges);
    }
    let scratch = || (Vec::new(), Folder::default());
    let parts = parallel::map_with(scratch, ranges.chunks(TASK), |(found, folder), ranges| {
        let mut part = Ranges { offsets: Vec::with_capacity(ranges.len()), keys: Vec::new(), values: Vec::new() };
        let ends: Vec<Option<(K, K)>> = ranges.iter().map(ends).collect();
        let begins = Begins::of(levels, &ends, true);
        for (i, &ends) in ends.iter().enumerate() {
            part.offsets.push(part.keys.len() as u64);
            let all_live = pieces(levels, ends, |level, _| begins.at(level, i), found);
            append(found, all_live, folder, &mut part)?;
        }
        Ok(part)
    });
    let parts = parts.into_iter().collect::<Result<Vec<Ranges<K, V>>, crate::Error>>()?;
    let mut all = Ranges { offsets: Vec::with_capacity(ranges.len() + 1), keys: Vec::new(), values: Vec::new() };
    let mut len = 0;
    for part in &parts {
        all.offsets.extend(part.offsets.iter().map(|offset| offset + len));
        len += part.keys.len() as u64;
    }
    all.offsets.push(len);
    all.keys = zeroed_vec(len)?;
    all.values = V::zeroed_vec(len as usize)?;
    let (mut keys, mut values) = (&mut all.keys[..], &mut all.values[..]);
    let mut targets = Vec::with_capacity(parts.len());
    for part in &parts {
        let (to_keys, other_keys) = keys.split_at_mut(part.keys.len());
        let (to_values, other_values) = values.split_at_mut(part.keys.len());
        targets.push((to_keys, to_values));
        (keys, values) = (other_keys, other_values);
    }
    parallel::for_each(targets.into_iter().zip(parts), |((keys, values), part)| {
        keys.copy_from_slice(&part.keys);
        values.copy_from_slice(&part.values);
    });
    Ok(all)
}

/// [`range_bulk`] of a level that is alone and whose elements all live: they are copied once, to where they belong.
fn copy_bulk<K: OrderedKey, V: Value, S: Sorted<K, V> + Sync, R: RangeBounds<K> + Sync>(
    level: &S,
    ranges: &[R],
) -> Result<Ranges<K, V>, crate::Error> {
    let found = |ranges: &[R]| -> Vec<std::ops::Range<usize>> {
        let ends: Vec<Option<(K, K)>> = ranges.iter().map(ends).collect();
        let begins = Begins::of(std::slice::from_ref(level), &ends, true);
        let place =
            |(i, ends): (usize, &Option<(K, K)>)| ends.map(|(_, largest)| places(level, begins.at(0, i), largest));
        ends.iter().enumerate().map(|range| place(range).unwrap_or(0..0)).collect()
    };
    let found: Vec<Vec<std::ops::Range<usize>>> = parallel::map(ranges.chunks(TASK), found);
    let mut all = Ranges { offsets: Vec::with_capacity(ranges.len() + 1), keys: Vec::new(), values: Vec::new() };
    let mut len = 0;
    for places in found.iter().flatten() {
        all.offsets.push(len);
        len += places.len() as u64;
    }
    all.offsets.push(len);
    all.keys = zeroed_vec(len)?;
    all.values = V::zeroed_vec(len as usize)?;
    let lengths: Vec<usize> = found.iter().map(|places| places.iter().map(ExactSizeIterator::len).sum()).collect();
    let targets = split(&mut all.keys, &lengths).into_iter().zip(split(&mut all.values, &lengths));
    parallel::for_each(targets.zip(found), |((mut keys, mut values), found)| {
        for places in found {
            let piece = level.run().slice(places);
            let (to_keys, other_keys) = std::mem::take(&mut keys).split_at_mut(piece.len());
            let (to_values, other_values) = std::mem::take(&mut values).split_at_mut(piece.len());
            copy(piece.keys, to_keys);
            copy(piece.values, to_values);
            (keys, values) = (other_keys, other_values);
        }
    });
    Ok(all)
}

/// Copies items, many of them on all threads.
fn copy<T: Copy + Send + Sync>(from: &[T], to: &mut [T]) {
    if from.len() > LARGE {
        parallel::for_each(to.chunks_mut(PART).zip(from.chunks(PART)), |(to, from)| to.copy_from_slice(from));
    } else {
        to.copy_from_slice(from);
    }
}

/// Adds the live elements of the pieces of one range.
fn append<K: OrderedKey, V: Value>(
    found: &[Run<'_, K, V>],
    all_live: bool,
    folder: &mut Folder<K, V>,
    to: &mut Ranges<K, V>,
) -> Result<(), crate::Error> {
    let candidates: usize = found.iter().map(Run::len).sum();
    if let (true, [piece]) = (all_live, found) {
        to.keys.extend_from_slice(piece.keys);
        to.values.extend_from_slice(piece.values);
    } else if candidates <= FEW {
        append_few(found, &mut to.keys, &mut to.values);
    } else if candidates > LARGE {
        let live = merge_live(found)?;
        to.keys.extend_from_slice(live.keys.as_slice());
        to.values.extend_from_slice(&live.values);
    } else {
        let (keys, values) = folder.live(found);
        to.keys.extend_from_slice(keys);
        to.values.extend_from_slice(values);
    }
    Ok(())
}

/// Builds the fences that this many ranges are worth.
fn prepare<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], ranges: usize) {
    for level in levels {
        level.derived().prepare(level.run().keys, ranges, false);
    }
}
