//! Neighbours in the order of the keys: the smallest live key from a key on, and the largest live key up to one.

use warpset_base::parallel;

use super::lookup::lower_bound;
use crate::level::Sorted;
use crate::{OrderedKey, Value};

/// Keys per task.
const TASK: usize = 64;

/// Returns the live element with the smallest key that is not below `key`.
pub(crate) fn first_from<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], key: K) -> Option<(K, V)> {
    let mut places: Vec<usize> = levels.iter().map(|level| lower_bound(level, key)).collect();
    loop {
        // Levels come newest first, and so do elements of one key within a level, so the first of equal keys is the
        // newest.
        let candidates = levels.iter().zip(&places).filter_map(|(level, &place)| {
            let run = level.run();
            run.keys.get(place).map(|&key| (key, run, place))
        });
        let (key, run, place) = candidates.min_by_key(|&(key, ..)| key)?;
        if !run.is_tombstone(place) {
            return Some((key, run.values[place]));
        }
        let after = key.above()?;
        for (level, place) in levels.iter().zip(&mut places) {
            if level.run().keys.get(*place) == Some(&key) {
                *place = lower_bound(level, after).max(*place + 1);
            }
        }
    }
}

/// Returns the live element with the largest key that is not above `key`.
pub(crate) fn last_to<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], key: K) -> Option<(K, V)> {
    let end = |level: &S| key.above().map_or(level.run().len(), |above| lower_bound(level, above));
    let mut ends: Vec<usize> = levels.iter().map(end).collect();
    loop {
        let last = |(level, &end): (&S, &usize)| end.checked_sub(1).map(|place| level.run().keys[place]);
        let key = levels.iter().zip(&ends).filter_map(last).max()?;
        let mut newest = None;
        for (level, end) in levels.iter().zip(&mut ends) {
            let run = level.run();
            if *end > 0 && run.keys[*end - 1] == key {
                *end = lower_bound(level, key).min(*end - 1);
                newest = newest.or(Some((run, *end)));
            }
        }
        if let Some((run, place)) = newest.filter(|(run, place)| !run.is_tombstone(*place)) {
            return Some((key, run.values[place]));
        }
    }
}

/// Returns the live element with the smallest key above `key`.
pub(crate) fn successor<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], key: K) -> Option<(K, V)> {
    first_from(levels, key.above()?)
}

/// Returns the live element with the largest key below `key`.
pub(crate) fn predecessor<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], key: K) -> Option<(K, V)> {
    last_to(levels, key.below()?)
}

/// Runs one of these queries for many keys.
pub(crate) fn bulk<K: OrderedKey, V: Value, S: Sorted<K, V> + Sync>(
    levels: &[S],
    keys: &[K],
    neighbour: impl Fn(&[S], K) -> Option<(K, V)> + Sync,
) -> Vec<Option<(K, V)>> {
    for level in levels {
        level.search_index().prepare(level.run().keys, keys.len(), false);
    }
    let mut neighbours = vec![None; keys.len()];
    parallel::for_each(neighbours.chunks_mut(TASK).zip(keys.chunks(TASK)), |(neighbours, keys)| {
        neighbours.iter_mut().zip(keys).for_each(|(to, &key)| *to = neighbour(levels, key));
    });
    neighbours
}
