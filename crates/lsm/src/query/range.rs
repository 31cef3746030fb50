//! Ranges of keys: how many live in each, and which (sections III-E, IV-C and IV-D of the paper).
//!
//! Departure from the paper: a task merges the pieces of the levels, which are sorted already, instead of sorting the candidates of all
//! queries by segments. Where one level alone has keys in the range, and no two of them are equal, there is nothing to
//! validate.

use std::ops::{Bound, RangeBounds};

use rayon::prelude::*;
use warpset_base::words::zeroed_vec;

use super::lookup::lower_bound;
use super::scan::Range;
use crate::level::Sorted;
use crate::merge::{Folder, PART, count_live, merge_live};
use crate::run::Run;
use crate::{OrderedKey, Value};

/// Queries of a task.
const TASK: usize = 64;
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

/// Where the elements of a range are in a level.
fn places<K: OrderedKey, V: Value, S: Sorted<K, V>>(level: &S, (least, largest): (K, K)) -> std::ops::Range<usize> {
    let keys = level.run().keys;
    let begin = if least == K::MIN { 0 } else { lower_bound(level, least) };
    if largest == K::MAX {
        return begin..keys.len();
    }
    // Most ranges are short: in steps that double, then by halving.
    let rest = &keys[begin..];
    let mut step = 16;
    while step < rest.len() && rest[step] <= largest {
        step *= 4;
    }
    let near = &rest[..rest.len().min(step)];
    begin..begin + near.partition_point(|&key| key <= largest)
}

/// The pieces of the levels in a range, and whether all their elements live for sure.
fn pieces<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    range: &impl RangeBounds<K>,
    pieces: &mut Vec<Run<'a, K, V>>,
) -> bool {
    pieces.clear();
    let Some(ends) = ends(range) else { return true };
    let mut from = None;
    for level in levels {
        let places = places(level, ends);
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

/// Whether these few keys are all different.
fn ascends<K: OrderedKey>(keys: &[K]) -> bool {
    keys.len() <= 32 && keys.windows(2).all(|two| two[0] < two[1])
}

/// Iterates over the live elements of a range.
pub(crate) fn range<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    range: &impl RangeBounds<K>,
) -> Range<'a, K, V> {
    let mut found = Vec::new();
    pieces(levels, range, &mut found);
    Range::new(found)
}

/// How many keys of a range have a value.
pub(crate) fn count<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], range: &impl RangeBounds<K>) -> u64 {
    count_with(levels, range, &mut Vec::new(), &mut Folder::default())
}

fn count_with<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    range: &impl RangeBounds<K>,
    found: &mut Vec<Run<'a, K, V>>,
    folder: &mut Folder<K, ()>,
) -> u64 {
    let all_live = pieces(levels, range, found);
    let candidates: usize = found.iter().map(Run::len).sum();
    if all_live {
        return candidates as u64;
    }
    if candidates > LARGE {
        return count_live(found);
    }
    let keys: Vec<Run<'_, K, ()>> = found.iter().map(Run::without_values).collect();
    folder.live(&keys).0.len() as u64
}

/// [`count`] of many ranges.
pub(crate) fn count_bulk<K: OrderedKey, V: Value, S: Sorted<K, V> + Sync, R: RangeBounds<K> + Sync>(
    levels: &[S],
    ranges: &[R],
    counts: &mut [u64],
) {
    prepare(levels, ranges.len());
    let tasks = ranges.par_chunks(TASK).zip(counts.par_chunks_mut(TASK));
    let scratch = || (Vec::new(), Folder::default());
    tasks.for_each_init(scratch, |(found, folder), (ranges, counts)| {
        for (range, count) in ranges.iter().zip(counts) {
            *count = count_with(levels, range, found, folder);
        }
    });
}

/// The live elements of many ranges.
pub(crate) fn range_bulk<K: OrderedKey, V: Value, S: Sorted<K, V> + Sync, R: RangeBounds<K> + Sync>(
    levels: &[S],
    ranges: &[R],
) -> Result<Ranges<K, V>, crate::Error> {
    prepare(levels, ranges.len());
    let scratch = || (Vec::new(), Folder::default());
    let parts: Result<Vec<Ranges<K, V>>, crate::Error> = ranges
        .par_chunks(TASK)
        .map_init(scratch, |(found, folder), ranges| {
            let mut part = Ranges { offsets: Vec::with_capacity(ranges.len()), keys: Vec::new(), values: Vec::new() };
            for range in ranges {
                part.offsets.push(part.keys.len() as u64);
                append(levels, range, found, folder, &mut part)?;
            }
            Ok(part)
        })
        .collect();
    let parts = parts?;
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
    targets.into_par_iter().zip(parts).for_each(|((keys, values), part)| {
        keys.copy_from_slice(&part.keys);
        values.copy_from_slice(&part.values);
    });
    Ok(all)
}

/// Adds the live elements of one range.
fn append<'a, K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &'a [S],
    range: &impl RangeBounds<K>,
    found: &mut Vec<Run<'a, K, V>>,
    folder: &mut Folder<K, V>,
    to: &mut Ranges<K, V>,
) -> Result<(), crate::Error> {
    let all_live = pieces(levels, range, found);
    if let (true, [piece]) = (all_live, &found[..]) {
        to.keys.extend_from_slice(piece.keys);
        to.values.extend_from_slice(piece.values);
    } else if found.iter().map(Run::len).sum::<usize>() > LARGE {
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
