//! Lookups of many keys, in batches. Each stage is a loop over a batch; hashes and buckets are computed in vectors,
//! where the processor has them. While the lines of a batch are on their way, the keys of the one before are compared.
//!
//! | stage | work | reads | prefetches |
//! | --- | --- | --- | --- |
//! | group | hashes the keys | | |
//! | bucket | places the keys | pilots | lines of the buckets and of their values |
//! | slot | compares the keys of the batch before | buckets | |

use bytemuck::Pod;
use warpset_base::bitmap::Bitmap;
use warpset_base::key::Key;
use warpset_base::processor::prefetch;
use warpset_base::{parallel, with_vectors};
use warpset_core::static_set::{self, BUCKET_WORDS, Shape};

use crate::key::Line;
use crate::{Layout, MapValue, StaticKey, Value};

/// Keys of a batch: the bits of a word of answers.
const BATCH: usize = 64;
/// Nanoseconds per key of a batch.
const LOOKUP_NS: f64 = 10.0;

/// Parts of a set that lookups of many keys read.
pub(crate) struct Lookup<'a, K, V> {
    pub(crate) layout: Layout<K, V>,
    pub(crate) pilots: &'a [u8],
    pub(crate) keys: &'a [u64],
    pub(crate) values: &'a [u64],
}

impl<K: StaticKey, V: Value> Clone for Lookup<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: StaticKey, V: Value> Copy for Lookup<'_, K, V> {}

/// A batch between stages.
#[derive(Clone, Copy)]
struct Batch<K> {
    keys: [K; BATCH],
    /// Groups, then buckets, then slots.
    at: [usize; BATCH],
}

/// Prefetches the values of a bucket.
#[inline(always)]
pub(crate) fn prefetch_values<K: StaticKey, V: Value>(values: &[u64], bucket: usize) {
    let bytes = K::SLOTS * V::BYTES;
    for line in 0..bytes.div_ceil(64) {
        prefetch(values, (bucket * bytes + 64 * line) / 8);
    }
}

/// Computes the hashes and groups of keys.
fn find_groups<K: StaticKey>(
    shape: Shape,
    spread: u64,
    keys: &[K; BATCH],
    hashes: &mut [u64; BATCH],
    groups: &mut [usize; BATCH],
) {
    with_vectors!(each_group[K: StaticKey][K](
        shape: Shape, spread: u64, keys: &[K; BATCH], hashes: &mut [u64; BATCH], groups: &mut [usize; BATCH]
    ))
}

#[inline(always)]
fn each_group<K: StaticKey>(
    shape: Shape,
    spread: u64,
    keys: &[K; BATCH],
    hashes: &mut [u64; BATCH],
    groups: &mut [usize; BATCH],
) {
    for ((key, hash), group) in keys.iter().zip(hashes).zip(groups) {
        *hash = static_set::hash(key.to_word(), spread);
        *group = shape.group(*hash) as usize;
    }
}

/// Computes the buckets of keys by their hashes and the pilots of their groups.
fn find_buckets(shape: Shape, hashes: &[u64; BATCH], pilots: &[u8; BATCH], buckets: &mut [usize; BATCH]) {
    with_vectors!(each_bucket(
        shape: Shape, hashes: &[u64; BATCH], pilots: &[u8; BATCH], buckets: &mut [usize; BATCH]
    ))
}

#[inline(always)]
fn each_bucket(shape: Shape, hashes: &[u64; BATCH], pilots: &[u8; BATCH], buckets: &mut [usize; BATCH]) {
    for ((&hash, &pilot), bucket) in hashes.iter().zip(pilots).zip(buckets) {
        *bucket = shape.bucket(hash, pilot.into()) as usize;
    }
}

impl<'a, K: StaticKey, V: Value> Lookup<'a, K, V> {
    /// Passes the slots of all keys to `take`, [`BATCH`] at a time, with the position of the first one, and one bit per
    /// key that tells whether it is in the set; slots of absent keys mean nothing. `key_of` returns the key of the set
    /// that an item may be.
    #[inline]
    fn slots<Q>(self, items: &[Q], key_of: &impl Fn(&Q) -> Option<K>, mut take: impl FnMut(usize, &[usize], u64)) {
        if self.layout.is_empty() {
            for (i, items) in items.chunks(BATCH).enumerate() {
                take(i * BATCH, &[0; BATCH][..items.len()], 0);
            }
            return;
        }
        let mut two = [Batch { keys: [K::zeroed(); BATCH], at: [0; BATCH] }; 2];
        for i in 0..items.len().div_ceil(BATCH) + 1 {
            if let Some(items) = items.chunks(BATCH).nth(i) {
                self.to_buckets(&mut two[i % 2], items, key_of);
            }
            let before = i.wrapping_sub(1);
            if let Some(items) = items.chunks(BATCH).nth(before) {
                let batch = &mut two[before % 2];
                let found = self.to_slots(batch);
                let is_key = |item| u64::from(key_of(item).is_some());
                let keys = items.iter().rev().fold(0, |bits, item| bits << 1 | is_key(item));
                take(before * BATCH, &batch.at[..items.len()], found & keys);
            }
        }
    }

    #[inline(always)]
    fn to_buckets<Q>(self, batch: &mut Batch<K>, items: &[Q], key_of: &impl Fn(&Q) -> Option<K>) {
        let shape = self.layout.shape();
        // Without a key any key: its answer is dropped.
        batch.keys.iter_mut().zip(items).for_each(|(to, item)| *to = key_of(item).unwrap_or(K::zeroed()));
        let (mut hashes, mut pilots) = ([0; BATCH], [0; BATCH]);
        find_groups(shape, self.layout.spread(), &batch.keys, &mut hashes, &mut batch.at);
        pilots.iter_mut().zip(&batch.at).for_each(|(pilot, &group)| *pilot = self.pilots[group]);
        find_buckets(shape, &hashes, &pilots, &mut batch.at);
        for &bucket in &batch.at {
            prefetch(self.keys, bucket * BUCKET_WORDS);
            prefetch_values::<K, V>(self.values, bucket);
        }
    }

    /// Replaces buckets by slots, and returns one bit per key that is in the set.
    #[inline(always)]
    fn to_slots(self, batch: &mut Batch<K>) -> u64 {
        batch.at.iter_mut().zip(&batch.keys).rev().fold(0, |bits, (at, &key)| {
            let line: &Line = self.keys[*at * BUCKET_WORDS..].first_chunk().expect("buckets are whole lines");
            let found = K::find(line, key);
            *at = *at * K::SLOTS + K::first_slot(found);
            bits << 1 | u64::from(found != 0)
        })
    }

    /// Returns one bit per item, on all threads.
    pub(crate) fn bits<Q: Sync>(self, items: &[Q], key_of: impl Fn(&Q) -> Option<K> + Sync) -> Bitmap {
        let mut words = vec![0; items.len().div_ceil(64)];
        parallel::answer(items, &mut words, (LOOKUP_NS, 64), |items, words| {
            self.slots(items, &key_of, |first, _, found| words[first / BATCH] = found);
        });
        Bitmap::from_words(words, items.len())
    }

    /// Returns the [`bits`](Self::bits) of keys of any type: keys outside the set's type are absent.
    pub(crate) fn bits_of<Q: Key>(self, keys: &[Q]) -> Bitmap {
        self.bits(keys, |key| key.word().and_then(K::of_word))
    }

    /// Passes the number of each key to `put`; the slices have equal lengths.
    pub(crate) fn numbers<A: Send>(self, keys: &[K], numbers: &mut [A], put: impl Fn(&mut A, Option<u64>) + Sync) {
        parallel::answer(keys, numbers, (LOOKUP_NS, 1), |keys, numbers| {
            self.slots(keys, &|&key| Some(key), |first, slots, found| {
                for (i, (number, &slot)) in numbers[first..].iter_mut().zip(slots).enumerate() {
                    put(number, (found >> i & 1 == 1).then_some(slot as u64));
                }
            });
        });
    }

    /// Returns which keys have a number, and writes the numbers; the slices have equal lengths.
    pub(crate) fn numbers_and_bits(self, keys: &[K], numbers: &mut [u64]) -> Bitmap {
        self.with_bits(keys, numbers, |slot| slot as u64)
    }

    /// Returns which keys are in the set, and writes the result of `of` for their slots; the slices have equal lengths.
    fn with_bits<A: Pod + Send>(self, keys: &[K], out: &mut [A], of: impl Fn(usize) -> A + Sync) -> Bitmap {
        let mut words = vec![0; keys.len().div_ceil(64)];
        let task = parallel::task_len(keys.len(), LOOKUP_NS);
        let tasks = keys.chunks(task).zip(out.chunks_mut(task)).zip(words.chunks_mut(task.div_ceil(64)));
        parallel::for_each(tasks, |((keys, out), words)| {
            self.slots(keys, &|&key| Some(key), |first, slots, found| {
                words[first / BATCH] = found;
                for (i, (out, &slot)) in out[first..].iter_mut().zip(slots).enumerate() {
                    *out = if found >> i & 1 == 1 { of(slot) } else { A::zeroed() };
                }
            });
        });
        Bitmap::from_words(words, keys.len())
    }
}

impl<K: StaticKey, V: MapValue> Lookup<'_, K, V> {
    /// Passes the value of each key to `put`; the slices have equal lengths.
    pub(crate) fn get<A: Send>(self, keys: &[K], values: &mut [A], put: impl Fn(&mut A, Option<V>) + Sync) {
        parallel::answer(keys, values, (LOOKUP_NS, 1), |keys, values| {
            self.slots(keys, &|&key| Some(key), |first, slots, found| {
                for (i, (value, &slot)) in values[first..].iter_mut().zip(slots).enumerate() {
                    put(value, (found >> i & 1 == 1).then(|| V::at(self.values, slot)));
                }
            });
        });
    }

    /// Returns which keys have a value, and writes the values; the slices have equal lengths.
    pub(crate) fn values_and_bits(self, keys: &[K], values: &mut [V]) -> Bitmap {
        self.with_bits(keys, values, |slot| V::at(self.values, slot))
    }
}
