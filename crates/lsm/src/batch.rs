//! A batch becomes a sorted run: of equal keys tombstones first, then the insertion that came last in the batch.
//!
//! Hence a removal wins over the insertions of its key in the same batch (the paper's rule 6), and of several
//! insertions the last one counts (the paper lets any of them count). Elements that become stale stay until a cleanup.

use warpset_base::parallel;
use warpset_base::sort::sort_by_rank;
use warpset_base::words::OutOfMemory;

use crate::merge::merge_live;
use crate::run::Elements;
use crate::{OrderedKey, Value};

/// Longest batch that the calling thread sorts by itself, before another thread would have woken up.
const SHORT: usize = 1 << 10;
/// Elements that a task copies or compares.
const PART: usize = 1 << 14;

/// Returns insertions, one value per key.
pub(crate) fn insertions<K: OrderedKey, V: Value>(keys: &[K], values: &[V]) -> Result<Elements<K, V>, OutOfMemory> {
    let mut sorted = Elements::zeroed(keys.len(), false)?;
    if ascends(keys) {
        sorted.keys.as_mut_slice().copy_from_slice(keys);
        sorted.values.copy_from_slice(values);
        return Ok(sorted);
    }
    if keys.len() <= SHORT {
        let mut items: Vec<(K, V)> = keys.iter().copied().zip(values.iter().copied()).rev().collect();
        sort_pairs(&mut items);
        let places = sorted.keys.as_mut_slice().iter_mut().zip(&mut sorted.values);
        places.zip(items).for_each(|((key, value), item)| (*key, *value) = item);
        return Ok(sorted);
    }
    let mut items = bytemuck::zeroed_vec::<(K, V)>(keys.len());
    let parts = items.chunks_mut(PART).zip(keys.rchunks(PART)).zip(values.rchunks(PART));
    parallel::for_each(parts, |((items, keys), values)| {
        let reversed = keys.iter().zip(values).rev();
        items.iter_mut().zip(reversed).for_each(|(item, (key, value))| *item = (*key, *value));
    });
    sort_pairs(&mut items);
    let places = sorted.keys.as_mut_slice().chunks_mut(PART).zip(sorted.values.chunks_mut(PART));
    parallel::for_each(places.zip(items.chunks(PART)), |((keys, values), items)| {
        keys.iter_mut().zip(values).zip(items).for_each(|((key, value), item)| (*key, *value) = *item);
    });
    Ok(sorted)
}

/// Returns tombstones of `keys`.
pub(crate) fn removals<K: OrderedKey, V: Value>(keys: &[K]) -> Result<Elements<K, V>, OutOfMemory> {
    let mut sorted = Elements::zeroed(keys.len(), true)?;
    let to = sorted.keys.as_mut_slice();
    to.copy_from_slice(keys);
    if !ascends(keys) {
        sort_by_key(to, |key| key);
    }
    for (i, word) in sorted.tombstones.iter_mut().flatten().enumerate() {
        *word = match keys.len() - 32 * i {
            rest @ 1..32 => (1 << rest) - 1,
            _ => u32::MAX,
        };
    }
    Ok(sorted)
}

/// Returns removals where `removed` is set and insertions elsewhere; values of removals are ignored. All three slices
/// have one length.
pub(crate) fn mixed<K: OrderedKey, V: Value>(
    keys: &[K],
    values: &[V],
    removed: &[bool],
) -> Result<Elements<K, V>, OutOfMemory> {
    if !removed.contains(&true) {
        return insertions(keys, values);
    }
    let mut sorted = Elements::zeroed(keys.len(), true)?;
    let mut items: Vec<(K, V, bool)> = Vec::with_capacity(keys.len());
    let places = |removal: bool| (0..keys.len()).filter(move |&i| removed[i] == removal);
    items.extend(places(true).map(|i| (keys[i], V::NONE, true)));
    items.extend(places(false).rev().map(|i| (keys[i], values[i], false)));
    sort_by_key(&mut items, |(key, ..)| key);
    let (to_keys, to_values) = (sorted.keys.as_mut_slice(), &mut sorted.values);
    let to_bits = sorted.tombstones.get_or_insert_default();
    for (i, (key, value, removal)) in items.into_iter().enumerate() {
        (to_keys[i], to_values[i]) = (key, value);
        to_bits[i / 32] |= u32::from(removal) << (i % 32);
    }
    Ok(sorted)
}

/// Sorts keys with values by key, stable.
fn sort_pairs<K: OrderedKey, V: Value>(items: &mut [(K, V)]) {
    sort_by_key(items, |(key, _)| key);
}

/// Sorts items by their keys, stable.
fn sort_by_key<T: Copy + Send + Sync, K: OrderedKey>(items: &mut [T], key: impl Fn(T) -> K + Sync) {
    let bits = 8 * size_of::<K>() as u32;
    // A constant, so that only one of the two sorts is compiled.
    if const { size_of::<K>() <= size_of::<u64>() } {
        sort_by_rank(items, bits, |item| key(item).to_u64());
    } else {
        sort_by_rank(items, bits, |item| key(item).to_u128());
    }
}

/// Whether keys ascend strictly, so that no sort is needed.
fn ascends<K: OrderedKey>(keys: &[K]) -> bool {
    if keys.len() <= SHORT {
        return keys.windows(2).all(|two| two[0] < two[1]);
    }
    // Most batches are unsorted, and already their first keys show it.
    let ascends = |keys: &[K]| keys.windows(2).all(|two| two[0] < two[1]);
    ascends(&keys[..SHORT]) && {
        let parts = (0..keys.len()).step_by(PART);
        let parts = parallel::map(parts, |begin| ascends(&keys[begin..keys.len().min(begin + PART + 1)]));
        parts.into_iter().all(|ascends| ascends)
    }
}

/// Returns insertions that all live: the last one of equal keys.
pub(crate) fn live_insertions<K: OrderedKey, V: Value>(
    keys: &[K],
    values: &[V],
) -> Result<Elements<K, V>, OutOfMemory> {
    let sorted = insertions(keys, values)?;
    if ascends(sorted.keys.as_slice()) { Ok(sorted) } else { merge_live(&[sorted.run()]) }
}
