//! Lookups over borrowed words: of a set in memory, or of a saved one in a memory-mapped file.

use std::fmt;

use warpset_base::filter::same_length;
use warpset_core::static_set::{BUCKET_WORDS, Shape, place};

use crate::key::Line;
use crate::lookup::{Lookup, prefetch_values};
use crate::tags;
use crate::{Bitmap, Error, Iter, Keys, Layout, MapValue, StaticKey, Value};
use warpset_base::processor::prefetch;
use warpset_base::words::in_huge_pages;

/// Borrowed words of a [`StaticMap`](crate::StaticMap), or of saved bytes, with every lookup.
///
/// ```
/// use warpset_static::{StaticMap, StaticMapView};
///
/// let saved = StaticMap::<u64, u64>::builder().build_from(&[1, 2], &[10, 20])?.to_bytes();
/// let words: Vec<u64> = bytemuck::pod_collect_to_vec(&saved); // at a multiple of 8
/// let view = StaticMapView::<u64, u64>::from_bytes(bytemuck::cast_slice(&words))?;
/// assert_eq!(view.get(2), Some(20));
/// # Ok::<(), warpset_static::Error>(())
/// ```
pub struct StaticMapView<'a, K: StaticKey, V: Value> {
    layout: Layout<K, V>,
    pilots: &'a [u8],
    keys: &'a [u64],
    values: &'a [u64],
    /// Tags of all slots, or none.
    tags: &'a [u64],
}

/// Borrowed words of a [`StaticSet`](crate::StaticSet), or of saved bytes, with every lookup.
pub type StaticSetView<'a, K> = StaticMapView<'a, K, ()>;

impl<K: StaticKey, V: Value> Clone for StaticMapView<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: StaticKey, V: Value> Copy for StaticMapView<'_, K, V> {}

impl<'a, K: StaticKey, V: Value> StaticMapView<'a, K, V> {
    /// Joins `words` and the layout that they were made for; `tags` are [`tags::of`] them, or empty.
    #[inline]
    pub(crate) fn new(layout: Layout<K, V>, words: &'a [u64], tags: &'a [u64]) -> Self {
        debug_assert_eq!(words.len() as u64, layout.words());
        let (pilots, words) = words.split_at(layout.pilot_words() as usize);
        let (keys, values) = words.split_at(layout.key_words() as usize);
        StaticMapView { layout, pilots: bytemuck::cast_slice(pilots), keys, values, tags }
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout<K, V> {
        &self.layout
    }

    /// Returns the number of keys.
    #[allow(clippy::len_without_is_empty, reason = "it is there")]
    pub fn len(&self) -> u64 {
        self.layout.len()
    }

    /// Whether there are no keys.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.layout.is_empty()
    }

    /// Returns the places for keys, used and free: all numbers are below.
    pub fn slots(&self) -> u64 {
        self.layout.slots()
    }

    /// Returns the bytes of pilots, keys and values, and of tags where there are some.
    pub fn memory_bytes(&self) -> u64 {
        8 * (self.layout.words() + self.tags.len() as u64)
    }

    /// Returns the bits of memory per key, values included.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.len().max(1) as f64
    }

    /// Returns the share of slots that hold keys.
    pub fn load_factor(&self) -> f64 {
        self.len() as f64 / self.slots().max(1) as f64
    }

    /// Returns the seed that the keys were placed under: that of the builder, or the first after it that placed all.
    pub fn seed(&self) -> u64 {
        self.layout.seed()
    }

    /// Returns the bucket of a key; the set is not empty.
    #[inline(always)]
    pub(crate) fn bucket_of(&self, key: K) -> usize {
        self.bucket_of_hash(self.layout.hash(key))
    }

    /// Returns the bucket of a hash. One product gives its shard and its bits below them, instead of two shifts by a
    /// variable, which are slow on x86-64.
    #[inline(always)]
    fn bucket_of_hash(&self, hash: u64) -> usize {
        let shape = self.layout.shape();
        let product = u128::from(hash) * u128::from(shape.shards());
        let (shard, below) = ((product >> 64) as u64, product as u64);
        let group = Shape { shard_bits: 0, ..shape }.group_in_shard(below);
        let pilot = self.pilots[(shard * u64::from(shape.groups)) as usize + group as usize];
        shard as usize * shape.buckets as usize + place(hash as u32, pilot.into(), shape.buckets) as usize
    }

    #[inline(always)]
    pub(crate) fn line(&self, bucket: usize) -> &'a Line {
        self.keys[bucket * BUCKET_WORDS..].first_chunk().expect("buckets are whole lines")
    }

    /// Returns the slot of a key, if it is in the set.
    #[inline(always)]
    fn slot_of(&self, key: K) -> Option<usize> {
        if self.is_empty() {
            return None;
        }
        let hash = self.layout.hash(key);
        let bucket = self.bucket_of_hash(hash);
        prefetch(self.keys, bucket * BUCKET_WORDS);
        prefetch_values::<K, V>(self.values, bucket);
        if self.tags.is_empty() {
            let found = K::find(self.line(bucket), key);
            return (found != 0).then(|| bucket * K::SLOTS + K::first_slot(found));
        }
        let mut candidates = tags::equal::<K>(self.tags, bucket, hash);
        while candidates != 0 {
            let slot = bucket * K::SLOTS + candidates.trailing_zeros() as usize;
            if bytemuck::cast_slice::<u64, K>(self.keys)[slot] == key {
                return Some(slot);
            }
            candidates &= candidates - 1;
        }
        None
    }

    /// Returns the parts for lookups of many keys.
    pub(crate) fn lookup(&self) -> Lookup<'a, K, V> {
        Lookup { layout: self.layout, pilots: self.pilots, keys: self.keys, values: self.values }
    }

    /// Whether the key is in the set.
    #[inline]
    pub fn contains(&self, key: K) -> bool {
        self.slot_of(key).is_some()
    }

    /// Returns the number of a key, if it is in the set: unique, and below [`slots`](Self::slots). Numbers are the same
    /// on every backend.
    #[inline]
    pub fn number(&self, key: K) -> Option<u64> {
        self.slot_of(key).map(|slot| slot as u64)
    }

    /// Returns the [`number`](Self::number) of each key.
    pub fn number_bulk(&self, keys: &[K]) -> Vec<Option<u64>> {
        let mut numbers = in_huge_pages(vec![None; keys.len()]);
        self.lookup().numbers(keys, &mut numbers, |number, slot| *number = slot);
        numbers
    }

    /// Writes the numbers of [`number_bulk`](Self::number_bulk) to a slice of equal length, and returns which keys have
    /// one; the others get zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn number_bulk_into(&self, keys: &[K], numbers: &mut [u64]) -> Result<Bitmap, Error> {
        same_length(keys.len(), numbers.len())?;
        Ok(self.lookup().numbers_and_bits(keys, numbers))
    }

    /// Returns the key with this number, if there is one.
    pub fn key_at(&self, number: u64) -> Option<K> {
        if number >= self.slots() {
            return None;
        }
        let (bucket, slot) = (number as usize / K::SLOTS, number as usize % K::SLOTS);
        let held: &[K] = bytemuck::cast_slice(self.line(bucket));
        // Free slots repeat the first key of their bucket, and a key of another bucket fills empty ones.
        let is_held = if slot == 0 { self.bucket_of(held[0]) == bucket } else { held[slot] != held[0] };
        is_held.then(|| held[slot])
    }

    /// Returns the value in a slot.
    #[inline(always)]
    pub(crate) fn value_at(&self, slot: usize) -> V {
        V::at(self.values, slot)
    }

    /// Returns all keys, in the order of their numbers.
    pub fn keys(&self) -> Keys<'a, K, V> {
        Keys::new(*self)
    }
}

impl<'a, K: StaticKey, V: MapValue> StaticMapView<'a, K, V> {
    /// Returns the value of a key, if it is in the map.
    #[inline]
    pub fn get(&self, key: K) -> Option<V> {
        self.slot_of(key).map(|slot| self.value_at(slot))
    }

    /// Returns the value of each key, in the order of the keys.
    pub fn get_bulk(&self, keys: &[K]) -> Vec<Option<V>> {
        let mut values = in_huge_pages(vec![None; keys.len()]);
        self.lookup().get(keys, &mut values, |place, value| *place = value);
        values
    }

    /// Writes the values of [`get_bulk`](Self::get_bulk) to a slice of equal length, and returns which keys have one;
    /// the others get zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`].
    pub fn get_bulk_into(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap, Error> {
        same_length(keys.len(), values.len())?;
        Ok(self.lookup().values_and_bits(keys, values))
    }

    /// Returns all keys with their values, in the order of the keys' numbers.
    pub fn iter(&self) -> Iter<'a, K, V> {
        Iter::new(*self)
    }
}

impl<K: StaticKey, V: Value> fmt::Debug for StaticMapView<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticMapView").field("layout", &self.layout).finish_non_exhaustive()
    }
}
