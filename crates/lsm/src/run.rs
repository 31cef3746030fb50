//! Sorted runs of elements: borrowed parts of levels ([`Run`]), and results of batches and merges ([`Elements`]).

use warpset_base::words::{AlignedWords, OutOfMemory, advise_huge_pages, zeroed_vec};

use crate::element::units;
use crate::{OrderedKey, Value};

/// Elements in the order of their keys; of equal keys the newest first.
#[derive(Clone, Copy)]
pub struct Run<'a, K, V> {
    pub keys: &'a [K],
    /// One value per key.
    pub values: &'a [V],
    /// Bitmap in which bit `first_bit + i` marks element `i` as a tombstone; absent if there is no tombstone.
    tombstones: Option<&'a [u32]>,
    first_bit: usize,
}

impl<'a, K: OrderedKey, V: Value> Run<'a, K, V> {
    pub(crate) fn new(keys: &'a [K], values: &'a [V], tombstones: Option<&'a [u32]>) -> Self {
        debug_assert_eq!(keys.len(), values.len());
        Run { keys, values, tombstones, first_bit: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Whether there is a bitmap of tombstones.
    pub(crate) fn has_tombstones(&self) -> bool {
        self.tombstones.is_some()
    }

    #[inline]
    pub(crate) fn is_tombstone(&self, i: usize) -> bool {
        let bit = self.first_bit + i;
        self.tombstones.is_some_and(|words| words[bit / 32] >> (bit % 32) & 1 == 1)
    }

    /// Returns the elements at these places.
    pub(crate) fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Run {
            keys: &self.keys[range.clone()],
            values: &self.values[range.clone()],
            tombstones: self.tombstones,
            first_bit: self.first_bit + range.start,
        }
    }

    /// Returns the elements without their values.
    pub(crate) fn without_values(&self) -> Run<'a, K, ()> {
        let Run { keys, tombstones, first_bit, .. } = *self;
        Run { keys, values: units(keys.len()), tombstones, first_bit }
    }

    /// Counts the keys below `key`.
    pub(crate) fn lower_bound(&self, key: K) -> usize {
        self.keys.partition_point(|&other| other < key)
    }

    /// Counts the keys that are not above `key`.
    pub(crate) fn upper_bound(&self, key: K) -> usize {
        self.keys.partition_point(|&other| other <= key)
    }
}

/// Elements in memory of their own, sorted as in a [`Run`].
pub struct Elements<K, V> {
    pub keys: AlignedWords<K>,
    pub values: Vec<V>,
    /// Bitmap in whole words; bits past the last element are zero. Absent if no element is a tombstone.
    pub tombstones: Option<Vec<u32>>,
}

impl<K: OrderedKey, V: Value> Elements<K, V> {
    /// Returns `len` zero elements, with a bitmap if `tombstones`.
    pub(crate) fn zeroed(len: usize, tombstones: bool) -> Result<Self, OutOfMemory> {
        let mut values = V::zeroed_vec(len)?;
        advise_huge_pages(&mut values);
        Ok(Elements {
            keys: AlignedWords::zeroed(len as u64)?.in_huge_pages(),
            values,
            tombstones: if tombstones { Some(zeroed_vec(len.div_ceil(32) as u64)?) } else { None },
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    pub(crate) fn run(&self) -> Run<'_, K, V> {
        Run::new(self.keys.as_slice(), &self.values, self.tombstones.as_deref())
    }
}
