//! Layout of a set's words: pilots, buckets of keys, values.

use std::marker::PhantomData;

use warpset_base::file::{FIELDS, FileError, FileKind, SavedType};
use warpset_core::static_set::{BUCKET_WORDS, MOST_KEYS, MOST_SHARD_BITS, Shape, hash, spread};

use crate::{Error, StaticKey, Value};

/// Parameters of a set or map: number of keys, seed, and the numbers of shards, groups and buckets.
///
/// ```text
/// words   pilots: a byte per group, zeros up to a multiple of 64 bytes
///         keys: 64 bytes per bucket
///         values: a value per slot
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout<K, V> {
    len: u64,
    seed: u64,
    spread: u64,
    shape: Shape,
    /// Words of the pilots.
    pilot_words: u64,
    elements: PhantomData<fn() -> (K, V)>,
}

impl<K: StaticKey, V: Value> Layout<K, V> {
    /// Makes the layout for this number of different keys.
    pub(crate) fn new(keys: u64, seed: u64) -> Result<Layout<K, V>, Error> {
        let shape = Shape::for_keys(keys, K::SLOTS as u32).ok_or(Error::TooManyKeys { keys, most: MOST_KEYS })?;
        Ok(Layout::of_shape(keys, seed, shape))
    }

    fn of_shape(len: u64, seed: u64, shape: Shape) -> Layout<K, V> {
        let pilot_words = shape.all_groups().div_ceil(8).next_multiple_of(BUCKET_WORDS as u64);
        Layout { len, seed, spread: spread(seed), shape, pilot_words, elements: PhantomData }
    }

    /// Returns the number of keys.
    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no keys.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the seed that the keys were placed under.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the numbers of shards, groups and buckets.
    #[inline]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the hash of a key.
    #[inline(always)]
    pub(crate) fn hash(&self, key: K) -> u64 {
        hash(key.to_word(), self.spread)
    }

    /// Returns the seed prepared for hashes.
    #[inline(always)]
    pub(crate) fn spread(&self) -> u64 {
        self.spread
    }

    /// Returns the places for keys, used and free: all numbers of keys are below.
    pub fn slots(&self) -> u64 {
        self.shape.all_buckets() * K::SLOTS as u64
    }

    /// Returns the slots of one shard.
    pub(crate) fn shard_slots(&self) -> usize {
        self.shape.buckets as usize * K::SLOTS
    }

    /// Returns the words of the pilots.
    #[inline(always)]
    pub(crate) fn pilot_words(&self) -> u64 {
        self.pilot_words
    }

    /// Returns the words of the buckets.
    #[inline(always)]
    pub(crate) fn key_words(&self) -> u64 {
        self.shape.all_buckets() * BUCKET_WORDS as u64
    }

    /// Returns the words of the values.
    pub(crate) fn value_words(&self) -> u64 {
        self.slots() * V::BYTES as u64 / 8
    }

    /// Returns the words of all parts.
    pub fn words(&self) -> u64 {
        self.pilot_words() + self.key_words() + self.value_words()
    }

    /// Returns the positions of the pilots, buckets and values of this many shards in words of their own.
    #[cfg(feature = "gpu")]
    pub(crate) fn places_of(&self, shards: u64) -> [std::ops::Range<usize>; 3] {
        let pilots = (shards * u64::from(self.shape.groups)).div_ceil(8).next_multiple_of(BUCKET_WORDS as u64);
        let keys = pilots + self.key_words() / self.shape.shards() * shards;
        let values = keys + self.value_words() / self.shape.shards() * shards;
        [0..pilots as usize, pilots as usize..keys as usize, keys as usize..values as usize]
    }

    /// Returns the parameters for a header.
    pub(crate) fn to_fields(self) -> [u64; FIELDS] {
        let Shape { shard_bits, groups, buckets } = self.shape;
        let [key, value] = Self::ELEMENTS;
        [key, value, self.len, self.seed, shard_bits.into(), groups.into(), buckets.into(), 0]
    }

    /// Parses the parameters of a header, if a set of these types can have them.
    pub(crate) fn from_fields(fields: [u64; FIELDS]) -> Result<Layout<K, V>, Error> {
        let [key, value, len, seed, shard_bits, groups, buckets, unused] = fields;
        let invalid = |field, value| Err(FileError::InvalidHeader { field, value }.into());
        if ![4, 8].contains(&key) {
            return invalid("bytes of a key", key);
        }
        if ![0, 4, 8].contains(&value) {
            return invalid("bytes of a value", value);
        }
        let saved = |elements| SavedType { number: FileKind::STATIC_MAP.number, elements: Some(elements) };
        let (expected, found) = (saved(Self::ELEMENTS), saved([key, value]));
        if found != expected {
            return Err(FileError::WrongStructure { expected, found }.into());
        }
        if shard_bits > MOST_SHARD_BITS.into() {
            return invalid("bits of the shards", shard_bits);
        }
        // Counts below 2^32 per shard keep all products below within 64 bits.
        let Some(groups) = u32::try_from(groups).ok().filter(|&groups| (groups == 0) == (len == 0)) else {
            return invalid("groups of a shard", groups);
        };
        let all = |count: u64| count << shard_bits;
        let Some(buckets) = u32::try_from(buckets).ok().filter(|&count| all(count.into()) <= u32::MAX.into()) else {
            return invalid("buckets of a shard", buckets);
        };
        let shape = Shape { shard_bits: shard_bits as u32, groups, buckets };
        let layout = Layout::of_shape(len, seed, shape);
        if len > layout.slots() || (len == 0) != (buckets == 0) {
            return invalid("number of keys", len);
        }
        if unused != 0 {
            return invalid("unused parameters", unused);
        }
        Ok(layout)
    }

    const ELEMENTS: [u64; 2] = [size_of::<K>() as u64, V::BYTES as u64];
}
