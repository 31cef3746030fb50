//! Lookups: level by level, the newest first, until one contains the key (section III-D of the paper).
//!
//! In batches, 64 keys pass through the levels together. Keys that the filter of a level does not exclude descend its
//! search tree, with prefetched cache lines.

use warpset_base::parallel;

use crate::element::filter_hash;
use crate::level::Sorted;
use crate::run::Run;
use crate::search_index::Filter;
use crate::search_tree::SearchTree;
use crate::search_tree::{Compare, by_best, each};
use crate::{OrderedKey, Value};
use warpset_base::processor::prefetch;
use warpset_base::words::in_huge_pages;

/// Keys that pass through the levels together; one word of a bitmap.
const GROUP: usize = 64;
/// Nanoseconds per key of a batch.
const LOOKUP_NS: f64 = 40.0;
/// Numbers of the keys of a group.
const EACH: [u8; GROUP] = {
    let mut numbers = [0; GROUP];
    let mut i = 0;
    while i < GROUP {
        numbers[i] = i as u8;
        i += 1;
    }
    numbers
};

/// Returns the place of the first key of a level that is not below `key`.
pub(crate) fn lower_bound<K: OrderedKey, V: Value, S: Sorted<K, V>>(level: &S, key: K) -> usize {
    let run = level.run();
    match level.search_index().tree_for_one(run.keys) {
        Some(tree) => tree.lower_bound(run.keys, key),
        None => run.lower_bound(key),
    }
}

/// Returns the value of a key.
pub(crate) fn get<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], key: K) -> Option<V> {
    if let [level] = levels {
        // The search is as fast as the filter.
        let run = level.run();
        let place = find(run, level.search_index().tree_for_one(run.keys), key)?;
        return (!run.is_tombstone(place)).then(|| run.values[place]);
    }
    let hash = filter_hash(key);
    for levels in levels.chunks(GROUP) {
        // All filters are asked before the first search, so that their memory accesses overlap and no branch depends on
        // the level of the key.
        let mut candidates = 0;
        for (i, level) in levels.iter().enumerate() {
            let passes = level.search_index().filter().is_none_or(|filter| filter.contains(hash));
            candidates |= u64::from(passes) << i;
        }
        while candidates != 0 {
            let level = &levels[candidates.trailing_zeros() as usize];
            candidates &= candidates - 1;
            let run = level.run();
            if let Some(place) = find(run, level.search_index().tree_for_get(run.keys), key) {
                return (!run.is_tombstone(place)).then(|| run.values[place]);
            }
        }
    }
    None
}

/// Returns the place of the newest element of a key.
#[inline]
fn find<K: OrderedKey, V: Value>(run: Run<'_, K, V>, tree: Option<&SearchTree<K>>, key: K) -> Option<usize> {
    let place = match tree {
        Some(tree) => tree.lower_bound_ahead(run.keys, key, |node| prefetch(run.values, node)),
        None => run.lower_bound(key),
    };
    (run.keys.get(place) == Some(&key)).then_some(place)
}

/// Level with its search data, as a batch uses it.
struct Indexed<'a, K, V> {
    run: Run<'a, K, V>,
    tree: Option<&'a SearchTree<K>>,
    filter: Option<&'a Filter>,
}

fn prepare<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], asked: usize) -> Vec<Indexed<'_, K, V>> {
    let indexed = levels.iter().map(|level| {
        let run = level.run();
        let (tree, filter) = level.search_index().prepare(run.keys, asked, levels.len() > 1);
        Indexed { run, tree, filter }
    });
    indexed.collect()
}

/// Answers for up to 64 keys: a bit per key with a value, and the values.
struct GroupAnswers<V> {
    found: u64,
    values: [V; GROUP],
}

fn look_up_group<K: OrderedKey, V: Value>(levels: &[Indexed<'_, K, V>], keys: &[K]) -> GroupAnswers<V> {
    by_best!(|by| look_up_group_by(by, levels, keys))
}

#[inline(always)]
fn look_up_group_by<K: OrderedKey, V: Value>(
    by: impl Compare,
    levels: &[Indexed<'_, K, V>],
    keys: &[K],
) -> GroupAnswers<V> {
    let mut answers = GroupAnswers { found: 0, values: [V::NONE; GROUP] };
    let mut hashes = [0; GROUP];
    if levels.iter().any(|level| level.filter.is_some()) {
        hashes.iter_mut().zip(keys).for_each(|(hash, &key)| *hash = filter_hash(key));
    }
    // Bit `i`: no level so far contains key `i`.
    let all = if keys.len() == GROUP { u64::MAX } else { (1 << keys.len()) - 1 };
    let mut waiting = all;
    for level in levels {
        let run = &level.run;
        let (Some(&first), Some(&last)) = (run.keys.first(), run.keys.last()) else { continue };
        let mut asked = 0;
        for (i, &key) in keys.iter().enumerate() {
            asked |= u64::from(first <= key && key <= last) << i;
        }
        asked &= waiting;
        if let Some(filter) = level.filter {
            asked = by.filter(filter.words(), &hashes, asked);
        }
        // Usually a dictionary of one level searches for all of them.
        let (mut some, mut some_keys, mut count) = ([0u8; GROUP], [K::MIN; GROUP], 0);
        let is_whole = asked == all;
        if !is_whole {
            each(asked, |i| {
                (some[count], some_keys[count]) = (i as u8, keys[i]);
                count += 1;
            });
        }
        let (numbers, asked_keys) =
            if is_whole { (&EACH[..keys.len()], keys) } else { (&some[..count], &some_keys[..count]) };
        let mut places = [0; GROUP];
        match level.tree {
            Some(tree) => tree.lower_bounds_by(by, run.keys, asked_keys, &mut places),
            None => places.iter_mut().zip(asked_keys).for_each(|(place, &key)| *place = run.lower_bound(key)),
        }
        let mut hits = 0;
        for (at, (&place, &key)) in places.iter().zip(asked_keys).enumerate() {
            let hit = run.keys.get(place) == Some(&key);
            hits |= u64::from(hit) << at;
            if hit {
                prefetch(run.values, place);
            }
        }
        each(hits, |at| {
            let i = numbers[at] as usize;
            waiting &= !(1 << i);
            if !run.is_tombstone(places[at]) {
                answers.found |= 1 << i;
                answers.values[i] = run.values[places[at]];
            }
        });
        if waiting == 0 {
            break;
        }
    }
    answers
}

/// Looks up all keys. Calls `answer` with the answers of every group of 64 and their places in `targets`, which has one
/// per key.
fn look_up<K: OrderedKey, V: Value, S: Sorted<K, V>, T: Send>(
    levels: &[S],
    keys: &[K],
    targets: &mut [T],
    answer: impl Fn(&GroupAnswers<V>, &mut [T]) + Sync,
) {
    debug_assert_eq!(keys.len(), targets.len());
    let levels = prepare(levels, keys.len());
    let task = |(keys, targets): (&[K], &mut [T])| {
        for (keys, targets) in keys.chunks(GROUP).zip(targets.chunks_mut(GROUP)) {
            answer(&look_up_group(&levels, keys), targets);
        }
    };
    let len = parallel::task_len(keys.len(), LOOKUP_NS);
    parallel::for_each(keys.chunks(len).zip(targets.chunks_mut(len)), task);
}

/// Looks up as [`look_up`] does, with one word per group for the bits of keys with a value.
fn look_up_bits<K: OrderedKey, V: Value, S: Sorted<K, V>, T: Send>(
    levels: &[S],
    keys: &[K],
    targets: &mut [T],
    words: &mut [u64],
    answer: impl Fn(&GroupAnswers<V>, &mut [T]) + Sync,
) {
    let levels = prepare(levels, keys.len());
    let task = |((keys, targets), words): ((&[K], &mut [T]), &mut [u64])| {
        for ((keys, targets), word) in keys.chunks(GROUP).zip(targets.chunks_mut(GROUP)).zip(words) {
            let answers = look_up_group(&levels, keys);
            answer(&answers, targets);
            *word = answers.found;
        }
    };
    let len = parallel::task_len(keys.len(), LOOKUP_NS);
    parallel::for_each(keys.chunks(len).zip(targets.chunks_mut(len)).zip(words.chunks_mut(len.div_ceil(GROUP))), task);
}

/// Returns the values of keys.
pub(crate) fn get_bulk<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], keys: &[K]) -> Vec<Option<V>> {
    let mut values = in_huge_pages(vec![None; keys.len()]);
    look_up(levels, keys, &mut values, |answers, targets| {
        for (i, target) in targets.iter_mut().enumerate() {
            *target = (answers.found >> i & 1 == 1).then_some(answers.values[i]);
        }
    });
    values
}

/// Writes one value per key to `values`, and one bit per key, set if it has a value, to `words`.
pub(crate) fn get_bulk_into<K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &[S],
    keys: &[K],
    values: &mut [V],
    words: &mut [u64],
) {
    let answer = |answers: &GroupAnswers<V>, to: &mut [V]| to.copy_from_slice(&answers.values[..to.len()]);
    look_up_bits(levels, keys, values, words, answer);
}

/// Writes to `answers`, one per key, whether the key has a value.
pub(crate) fn contains_bulk_into<K: OrderedKey, V: Value, S: Sorted<K, V>>(
    levels: &[S],
    keys: &[K],
    answers: &mut [bool],
) {
    look_up(levels, keys, answers, |answers, targets| {
        targets.iter_mut().enumerate().for_each(|(i, target)| *target = answers.found >> i & 1 == 1);
    });
}

/// Returns one bit per key, set if it has a value.
pub(crate) fn contains_words<K: OrderedKey, V: Value, S: Sorted<K, V>>(levels: &[S], keys: &[K]) -> Vec<u64> {
    let mut words = vec![0; keys.len().div_ceil(GROUP)];
    look_up_bits(levels, keys, &mut vec![(); keys.len()], &mut words, |_, _| {});
    words
}
