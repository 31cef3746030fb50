//! Builds: sorted hashes divide into shards, and each shard is built by itself.
//!
//! The result is independent of the order of the keys and of the number of threads: groups are placed by their size and
//! number, each pilot is the smallest that fits, and the keys of a bucket are in the order of their hashes.

use bytemuck::Zeroable;
use warpset_base::parallel;
use warpset_base::sort::{Sorted, sorted_by_hash};
use warpset_base::words::AlignedWords;
use warpset_core::static_set::{BUCKET_WORDS, hash, spread};

use crate::{Error, Layout, StaticKey, StaticMap, Value};

mod shard;

use shard::{Scratch, Shard};

/// Seeds to try. Random keys hardly ever need a second one.
pub(crate) const ATTEMPTS: u32 = 8;

/// Hash of a key, and its value.
#[derive(Clone, Copy, Zeroable)]
pub(crate) struct Element<V> {
    hash: u64,
    value: V,
}

/// Builds a map of the keys of all lists; `value_of` returns the value of the key at a position among all of them.
pub(crate) fn build<K: StaticKey, V: Value>(
    lists: &[&[K]],
    value_of: impl Fn(usize) -> V + Sync,
    seed: u64,
) -> Result<StaticMap<K, V>, Error> {
    let mut distinct = 0;
    for attempt in 0..ATTEMPTS {
        let seed = seed.wrapping_add(attempt.into());
        let elements = sorted(lists, &value_of, seed)?;
        distinct = elements.len() as u64;
        let layout = Layout::new(distinct, seed)?;
        let mut words = AlignedWords::zeroed(layout.words())?.in_huge_pages();
        if place(&layout, &elements, words.as_mut_slice()) {
            return StaticMap::from_parts(layout, words);
        }
    }
    Err(Error::NoSeed { keys: distinct, seed, attempts: ATTEMPTS })
}

/// Returns the elements of different keys, ascending by hash; of equal keys the last one.
fn sorted<K: StaticKey, V: Value>(
    lists: &[&[K]],
    value_of: &(impl Fn(usize) -> V + Sync),
    seed: u64,
) -> Result<Vec<Element<V>>, Error> {
    let spread = spread(seed);
    let element = |i: usize, key: &K| Element { hash: hash(key.to_word(), spread), value: value_of(i) };
    let Sorted { mut items, has_repeats } = sorted_by_hash(lists, element, |element| element.hash)?;
    if has_repeats {
        keep_last(&mut items);
    }
    Ok(items)
}

/// Keeps the last of equal hashes.
fn keep_last<V: Copy>(elements: &mut Vec<Element<V>>) {
    let mut kept = 0;
    for i in 0..elements.len() {
        if elements.get(i + 1).is_none_or(|next| next.hash != elements[i].hash) {
            elements[kept] = elements[i];
            kept += 1;
        }
    }
    elements.truncate(kept);
}

/// Places all elements, ascending by hash, in words that are zero; returns whether every shard found pilots.
fn place<K: StaticKey, V: Value>(layout: &Layout<K, V>, elements: &[Element<V>], words: &mut [u64]) -> bool {
    if layout.is_empty() {
        return true;
    }
    let shape = layout.shape();
    let (pilots, words) = words.split_at_mut(layout.pilot_words() as usize);
    let (keys, mut values) = words.split_at_mut(layout.key_words() as usize);
    let pilots = &mut bytemuck::cast_slice_mut::<u64, u8>(pilots)[..shape.all_groups() as usize];
    let parts = pilots.chunks_mut(shape.groups as usize).zip(keys.chunks_mut(shape.buckets as usize * BUCKET_WORDS));
    let value_words = layout.shard_slots() * V::BYTES / 8;
    let mut rest = elements;
    let shards = parts.enumerate().map(|(number, (pilots, keys))| {
        let (here, after) = rest.split_at(rest.partition_point(|element| shape.shard(element.hash) <= number as u64));
        rest = after;
        let (here_values, after) = std::mem::take(&mut values).split_at_mut(value_words);
        values = after;
        (here, Shard { number: number as u64, pilots, keys, values: here_values })
    });
    let placed = parallel::map_with(Scratch::default, shards, |scratch, (elements, shard)| {
        shard.place(layout, elements, scratch)
    });
    placed.into_iter().all(|placed| placed)
}
