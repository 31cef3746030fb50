//! Steps on host slices, on the threads of the current rayon pool: primitives of the same names, and loops.

use std::ops::Range;

use bytemuck::Pod;
use warpset_base::parallel;
use warpset_base::words::zeroed_vec;

use super::element::{PackedKey, PairValue};
use super::primitives;
use super::steps::{Batch, Does, Levels, Memory, Pair, PairMut, Sorted, Steps};
use crate::Error;

/// Queries per task, as many as per warp.
const QUERIES: usize = 32;
/// Elements per task that only copies.
const ITEMS: usize = 1 << 14;

/// Host memory.
pub(crate) struct Host;

impl Memory for Host {
    type Array<T: Pod> = Vec<T>;
    type Slice<'a, T: Pod> = &'a [T];
    type SliceMut<'a, T: Pod> = &'a mut [T];

    fn uninit<T: Pod>(&self, len: usize) -> Result<Vec<T>, Error> {
        self.zeroed(len)
    }

    fn zeroed<T: Pod>(&self, len: usize) -> Result<Vec<T>, Error> {
        Ok(zeroed_vec(len as u64)?)
    }

    fn part<T: Pod>(array: &Vec<T>, places: Range<usize>) -> &[T] {
        &array[places]
    }

    fn part_mut<T: Pod>(array: &mut Vec<T>, places: Range<usize>) -> &mut [T] {
        &mut array[places]
    }

    fn reborrow<'a, T: Pod>(slice: &'a mut &mut [T]) -> &'a mut [T] {
        slice
    }

    fn len<T: Pod>(slice: &[T]) -> usize {
        slice.len()
    }

    fn copy<T: Pod>(&self, from: &[T], to: &mut [T]) -> Result<(), Error> {
        to.copy_from_slice(from);
        Ok(())
    }

    fn clear<T: Pod>(&self, to: &mut [T]) -> Result<(), Error> {
        to.fill(T::zeroed());
        Ok(())
    }

    fn word(&self, array: &Vec<u64>, place: usize) -> Result<u64, Error> {
        Ok(array[place])
    }
}

/// Finds an element of the levels by its key, from the newest level on.
pub(super) fn find<K: PackedKey, V: PairValue>(levels: &Levels<'_, K, V, Host>, query: K) -> Option<V> {
    let (keys, values) = levels.elements;
    for level in levels.counter.full() {
        let first = levels.counter.offset(level);
        let of_level = &keys[first..first + levels.counter.len(level)];
        let place = of_level.partition_point(|variable| variable.original() < query);
        if let Some(variable) = of_level.get(place).filter(|variable| variable.original() == query) {
            return variable.is_regular().then(|| values[first + place]);
        }
    }
    None
}

/// Whether element `i` of a query's candidates is the first of its key, and regular.
fn is_valid<K: PackedKey>(keys: &[K], i: usize) -> bool {
    keys[i].is_regular() && (i == 0 || keys[i - 1].original() != keys[i].original())
}

/// Cuts a slice at the ends of segments or of queries' results.
fn cut<T>(mut items: &mut [T], ends: impl Iterator<Item = u64>) -> Vec<&mut [T]> {
    let mut at = 0;
    ends.map(|end| {
        let (part, rest) = std::mem::take(&mut items).split_at_mut((end - at) as usize);
        (items, at) = (rest, end);
        part
    })
    .collect()
}

/// Returns the places of a query's candidates in the one array, level by level.
fn pieces<K: PackedKey, V: PairValue>(
    levels: &Levels<'_, K, V, Host>,
    (lower, offsets): (&[u64], &[u64]),
    query: usize,
) -> impl Iterator<Item = Range<usize>> {
    let counter = levels.counter;
    counter.full().enumerate().map(move |(i, level)| {
        let at = query * counter.full_count() + i;
        let first = counter.offset(level) + lower[at] as usize;
        first..first + (offsets[at + 1] - offsets[at]) as usize
    })
}

/// Copies pieces one after the other.
fn copy_pieces<T: Pod>(from: &[T], pieces: impl Iterator<Item = Range<usize>>, mut to: &mut [T]) {
    for piece in pieces {
        let (here, rest) = std::mem::take(&mut to).split_at_mut(piece.len());
        here.copy_from_slice(&from[piece]);
        to = rest;
    }
}

/// Writes the start of each query's candidates, and the end of the last ones.
fn write_segments(full: usize, offsets: &[u64], segments: &mut [u64]) {
    segments.iter_mut().enumerate().for_each(|(query, segment)| *segment = offsets[query * full]);
}

impl<K: PackedKey, V: PairValue> Steps<K, V> for Host {
    unsafe fn pack(
        &self,
        batch: &Batch<'_, K, V, Self>,
        (out_keys, out_values): PairMut<'_, K, V, Self>,
        largest: &mut Vec<u64>,
    ) -> Result<(), Error> {
        let keys = batch.keys;
        let n = keys.len();
        let too_large = |keys: &[K]| keys.iter().filter(|&&key| key > K::MAX_KEY).map(|key| key.to_u64()).max();
        largest[0] = parallel::map(keys.chunks(ITEMS), too_large).into_iter().flatten().max().unwrap_or(0);
        let parts = (0..).step_by(ITEMS).zip(out_keys.chunks_mut(ITEMS).zip(out_values.chunks_mut(ITEMS)));
        parallel::for_each(parts, |(first, (out_keys, out_values))| {
            for (i, (out_key, out_value)) in (first..).zip(out_keys.iter_mut().zip(out_values)) {
                let from = if i < n { n - 1 - i } else { n - 1 };
                let value = match batch.does {
                    Does::Insert(values) => Some(values[from]),
                    Does::Remove => None,
                    Does::Both(values, removed) => (removed[from] == 0).then(|| values[from]),
                };
                *out_key = K::pack(keys[from], value.is_some());
                *out_value = value.unwrap_or(V::NONE);
            }
        });
        Ok(())
    }

    unsafe fn sort(&self, (keys, values): PairMut<'_, K, V, Self>) -> Result<(), Error> {
        primitives::sort_pairs(keys, values, 0);
        Ok(())
    }

    unsafe fn merge(
        &self,
        newer: Pair<'_, K, V, Self>,
        older: Pair<'_, K, V, Self>,
        (out_keys, out_values): PairMut<'_, K, V, Self>,
    ) -> Result<(), Error> {
        primitives::merge_pairs(newer, older, out_keys, out_values);
        Ok(())
    }

    unsafe fn look_up(
        &self,
        levels: &Levels<'_, K, V, Self>,
        queries: &[K],
        values: &mut [V],
        found: &mut [u64],
    ) -> Result<(), Error> {
        let parts = queries.chunks(64).zip(values.chunks_mut(64)).zip(found);
        parallel::for_each_small(QUERIES, parts, |((queries, values), word)| {
            *word = 0;
            for (i, (&query, value)) in queries.iter().zip(values).enumerate() {
                let element = find(levels, query);
                *value = element.unwrap_or(V::NONE);
                *word |= u64::from(element.is_some()) << i;
            }
        });
        Ok(())
    }

    unsafe fn needles(&self, queries: &[K], needles: &mut [K], places: &mut [u32]) -> Result<(), Error> {
        let parts = needles.chunks_mut(ITEMS).zip(queries.chunks(ITEMS)).zip(places.chunks_mut(ITEMS));
        parallel::for_each((0..).step_by(ITEMS).zip(parts), |(first, ((needles, queries), places))| {
            needles.iter_mut().zip(queries).for_each(|(needle, &query)| *needle = K::pack(query, false));
            places.iter_mut().zip(first..).for_each(|(place, i)| *place = i);
        });
        Ok(())
    }

    unsafe fn sort_needles(&self, needles: &mut [K], places: &mut [u32]) -> Result<(), Error> {
        primitives::sort_pairs(needles, places, 1);
        Ok(())
    }

    unsafe fn sorted_search(&self, level: &[K], needles: &[K], bounds: &mut [u64]) -> Result<(), Error> {
        primitives::lower_bound_sorted(level, needles, bounds);
        Ok(())
    }

    unsafe fn resolve(
        &self,
        (keys, level_values): Pair<'_, K, V, Self>,
        sorted: Sorted<'_, K, Self>,
        queries: &[K],
        values: &mut [V],
        found: &mut [u64],
    ) -> Result<(), Error> {
        let Sorted { needles, places, bounds, decided } = sorted;
        for (i, decided) in decided.iter_mut().enumerate().filter(|(_, decided)| **decided == 0) {
            let (bound, place) = (bounds[i] as usize, places[i] as usize);
            let is_here = keys.get(bound).is_some_and(|variable| variable.original() == needles[i].original());
            // A query with a set highest bit has the needle of another key.
            if !is_here || queries[place] > K::MAX_KEY {
                continue;
            }
            *decided = 1;
            if keys[bound].is_regular() {
                values[place] = level_values[bound];
                found[place / 64] |= 1 << (place % 64);
            }
        }
        Ok(())
    }

    unsafe fn initial_count_estimate(
        &self,
        levels: &Levels<'_, K, V, Self>,
        (lows, highs): (&[K], &[K]),
        lower: &mut [u64],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        let (counter, keys) = (levels.counter, levels.elements.0);
        let full = counter.full_count().max(1);
        let places = lower.chunks_mut(full).zip(counts.chunks_mut(full));
        parallel::for_each_small(QUERIES, places.zip(lows).zip(highs), |(((lower, counts), &low), &high)| {
            for ((lower, count), level) in lower.iter_mut().zip(counts).zip(counter.full()) {
                let first = counter.offset(level);
                let of_level = &keys[first..first + counter.len(level)];
                (*lower, *count) = (0, 0);
                if low <= high {
                    let begin = of_level.partition_point(|variable| variable.original() < low);
                    *lower = begin as u64;
                    *count = of_level[begin..].partition_point(|variable| variable.original() <= high) as u64;
                }
            }
        });
        Ok(())
    }

    unsafe fn scanning_stage(&self, counts: &mut [u64]) -> Result<(), Error> {
        primitives::exclusive_sum(counts);
        Ok(())
    }

    unsafe fn initial_key_storage(
        &self,
        levels: &Levels<'_, K, V, Self>,
        estimate: (&[u64], &[u64]),
        out: &mut [K],
        segments: &mut [u64],
    ) -> Result<(), Error> {
        write_segments(levels.counter.full_count(), estimate.1, segments);
        let parts = cut(out, segments[1..].iter().copied());
        parallel::for_each_small(QUERIES, parts.into_iter().enumerate(), |(query, part)| {
            copy_pieces(levels.elements.0, pieces(levels, estimate, query), part);
        });
        Ok(())
    }

    unsafe fn initial_pair_storage(
        &self,
        levels: &Levels<'_, K, V, Self>,
        estimate: (&[u64], &[u64]),
        (out_keys, out_values): PairMut<'_, K, V, Self>,
        segments: &mut [u64],
    ) -> Result<(), Error> {
        // SAFETY: the same contract, without values.
        unsafe { Steps::<K, V>::initial_key_storage(self, levels, estimate, out_keys, segments)? };
        let parts = cut(out_values, segments[1..].iter().copied());
        parallel::for_each_small(QUERIES, parts.into_iter().enumerate(), |(query, part)| {
            copy_pieces(levels.elements.1, pieces(levels, estimate, query), part);
        });
        Ok(())
    }

    unsafe fn segmented_sort_keys(&self, from: &[K], segments: &[u64], to: &mut [K]) -> Result<(), Error> {
        let parts = cut(to, segments[1..].iter().copied()).into_iter().zip(segments);
        parallel::for_each(parts, |(to, &begin)| {
            to.copy_from_slice(&from[begin as usize..][..to.len()]);
            primitives::sort_keys(to, 1);
        });
        Ok(())
    }

    unsafe fn segmented_sort_pairs(
        &self,
        (keys, values): Pair<'_, K, V, Self>,
        segments: &[u64],
        (to_keys, to_values): PairMut<'_, K, V, Self>,
    ) -> Result<(), Error> {
        let ends = || segments[1..].iter().copied();
        let parts = cut(to_keys, ends()).into_iter().zip(cut(to_values, ends()));
        parallel::for_each(parts.zip(segments), |((to_keys, to_values), &begin)| {
            to_keys.copy_from_slice(&keys[begin as usize..][..to_keys.len()]);
            to_values.copy_from_slice(&values[begin as usize..][..to_values.len()]);
            primitives::sort_pairs(to_keys, to_values, 1);
        });
        Ok(())
    }

    unsafe fn final_counting(&self, keys: &[K], segments: &[u64], counts: &mut [u64]) -> Result<(), Error> {
        parallel::for_each_small(QUERIES, counts.iter_mut().enumerate(), |(query, count)| {
            let segment = &keys[segments[query] as usize..segments[query + 1] as usize];
            *count = (0..segment.len()).filter(|&i| is_valid(segment, i)).count() as u64;
        });
        Ok(())
    }

    unsafe fn mark_valid(
        &self,
        keys: &[K],
        segments: &[u64],
        counts: &mut [u64],
        marked: &mut [K],
    ) -> Result<(), Error> {
        let parts = cut(marked, segments[1..].iter().copied());
        parallel::for_each_small(QUERIES, parts.into_iter().zip(counts).enumerate(), |(query, (marked, count))| {
            let segment = &keys[segments[query] as usize..segments[query + 1] as usize];
            *count = 0;
            for (i, marked) in marked.iter_mut().enumerate() {
                let is_valid = is_valid(segment, i);
                *marked = K::pack(segment[i].original(), is_valid);
                *count += u64::from(is_valid);
            }
        });
        Ok(())
    }

    unsafe fn segmented_compaction(
        &self,
        (marked, values): Pair<'_, K, V, Self>,
        segments: &[u64],
        offsets: &[u64],
        (out_keys, out_values): PairMut<'_, K, V, Self>,
    ) -> Result<(), Error> {
        let end = out_keys.len() as u64;
        let ends = || offsets[1..].iter().copied().chain([end]);
        let parts = cut(out_keys, ends()).into_iter().zip(cut(out_values, ends()));
        parallel::for_each_small(QUERIES, parts.enumerate(), |(query, (keys, values_out))| {
            let places = segments[query] as usize..segments[query + 1] as usize;
            let valid = places.filter(|&i| marked[i].is_regular());
            for ((key, value), i) in keys.iter_mut().zip(values_out).zip(valid) {
                (*key, *value) = (marked[i].original(), values[i]);
            }
        });
        Ok(())
    }

    unsafe fn mark_stale(&self, keys: &[K], valid: &mut [u64]) -> Result<(), Error> {
        parallel::for_each_small(QUERIES, valid.iter_mut().enumerate(), |(word, bits)| {
            let places = 64 * word..keys.len().min(64 * (word + 1));
            *bits = places.fold(0, |bits, i| bits | u64::from(is_valid(keys, i)) << (i % 64));
        });
        Ok(())
    }

    unsafe fn compact(
        &self,
        (keys, values): Pair<'_, K, V, Self>,
        valid: &[u64],
        (out_keys, out_values): PairMut<'_, K, V, Self>,
        count: &mut Vec<u64>,
    ) -> Result<(), Error> {
        primitives::select(values, valid, out_values);
        count[0] = primitives::select(keys, valid, out_keys) as u64;
        Ok(())
    }

    unsafe fn placebos(&self, out: &mut [K]) -> Result<(), Error> {
        out.fill(K::PLACEBO);
        Ok(())
    }
}
