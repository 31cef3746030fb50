//! Queries over borrowed words of a maplet in memory or of a saved one.

use std::fmt;

use warpset_base::filter::{Filter, Take, same_length};
use warpset_base::parallel;
use warpset_base::words::in_huge_pages;

use super::{Maplet, MapletLayout};
use crate::cpu::fingerprint_source::{Each, stored};
use crate::rank_select::{first_prefixed, first_prefixed_each, for_each_prefixed};
use crate::slot_kind::Copies;
use crate::{Error, Key, RankSelect, View};

/// Nanoseconds per key of a batch of lookups.
const LOOKUP_NS: f64 = 20.0;

/// A maplet's parameters and a borrow of its words. It answers queries and owns nothing.
#[derive(Clone, Copy)]
pub struct MapletView<'a> {
    layout: MapletLayout,
    /// View of the filter with the pairs.
    pairs: View<'a, RankSelect>,
}

impl<'a> MapletView<'a> {
    /// Makes a view; `pairs` has the layout for pairs.
    pub(crate) fn new(layout: MapletLayout, pairs: View<'a, RankSelect>) -> MapletView<'a> {
        MapletView { layout, pairs }
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &MapletLayout {
        &self.layout
    }

    /// Returns the words, little-endian, block by block: the memory image that every backend shares.
    pub fn words(&self) -> &'a [u64] {
        self.pairs.words()
    }

    /// Returns the number of stored values, copies included.
    pub fn len(&self) -> u64 {
        self.pairs.len()
    }

    /// Whether no value is stored.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the bytes of memory of the slots.
    pub fn memory_bytes(&self) -> u64 {
        self.pairs.memory_bytes()
    }

    /// Returns the bits of memory per stored value, copies included.
    pub fn bits_per_key(&self) -> f64 {
        self.pairs.bits_per_key()
    }

    /// Returns the slots in use as a share of the quotients.
    pub fn load_factor(&self) -> f64 {
        self.pairs.load_factor()
    }

    /// Returns the pair of a key's fingerprint and zero.
    #[inline]
    fn pair(&self, key: impl Key) -> Option<u64> {
        self.layout.keys.fingerprint(key).map(|fingerprint| self.layout.join(fingerprint, 0))
    }

    /// Whether the key may have a value. Never false for a key that was inserted and not removed.
    #[inline]
    pub fn contains(&self, key: impl Key) -> bool {
        self.get(key).is_some()
    }

    /// Returns the value of a key: the least one if its fingerprint has several.
    #[inline]
    pub fn get(&self, key: impl Key) -> Option<u64> {
        first_prefixed(self.pairs.layout(), self.words(), self.pair(key)?, self.layout.value_bits)
    }

    /// Returns the different values of a key's fingerprint in ascending order.
    pub fn values(&self, key: impl Key) -> Vec<u64> {
        self.value_counts(key).into_iter().map(|(value, _)| value).collect()
    }

    /// Returns the different values of a key's fingerprint in ascending order, with their numbers of copies.
    pub fn value_counts(&self, key: impl Key) -> Vec<(u64, u64)> {
        let mut all: Vec<(u64, u64)> = Vec::new();
        let Some(pair) = self.pair(key) else { return all };
        self.for_each_value(pair, |value, copies| match all.last_mut() {
            Some(last) if last.0 == value => last.1 += copies,
            _ => all.push((value, copies)),
        });
        all
    }

    /// Visits the stored values of the fingerprint of a pair in ascending order, with their copies; equal values may
    /// follow each other.
    pub(super) fn for_each_value(&self, pair: u64, visit: impl FnMut(u64, u64)) {
        for_each_prefixed(self.pairs.layout(), self.words(), pair, self.layout.value_bits, visit);
    }

    /// Returns the value of each key, in the order of the keys, as [`MapletView::get`] does.
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Vec<Option<u64>> {
        let mut answers = in_huge_pages(vec![None; keys.len()]);
        self.fill(keys, &mut answers);
        answers
    }

    /// Writes the value of each key to a slice of the same length.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one place per key.
    pub fn get_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [Option<u64>]) -> Result<(), Error> {
        same_length(keys.len(), answers.len())?;
        self.fill(keys, answers);
        Ok(())
    }

    fn fill<K: Key>(&self, keys: &[K], answers: &mut [Option<u64>]) {
        parallel::answer(keys, answers, (LOOKUP_NS, 1), |keys, answers| {
            self.get_each(keys, |i, value| answers[i] = value);
        });
    }

    fn get_each<K: Key>(&self, keys: &[K], mut take: impl FnMut(usize, Option<u64>)) {
        let (layout, of) = (&self.layout, self.layout.keys.fingerprints_of());
        // No number marks a key without a fingerprint if pairs have 64 bits.
        if layout.keys.exact && self.pairs.layout().fingerprint_bits() == 64 {
            return keys.iter().enumerate().for_each(|(i, key)| take(i, self.get(key)));
        }
        let pair = |i: usize| of.or_none(&keys[i]) << layout.value_bits;
        first_prefixed_each(self.pairs.layout(), self.words(), layout.value_bits, keys.len(), pair, take);
    }

    /// Iterates over the stored fingerprints with their values, in ascending order, copies included.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> + use<'a> {
        let layout = self.layout;
        self.pairs.fingerprints().map(move |pair| (layout.fingerprint_of(pair), layout.value_of(pair)))
    }

    /// Iterates over the different stored fingerprints with their values, in ascending order, with their numbers of
    /// copies.
    pub fn pair_counts(&self) -> impl Iterator<Item = ((u64, u64), u64)> + use<'a> {
        let layout = self.layout;
        let all = Each(stored::<RankSelect, Copies>(self.pairs, 0).read_from(0));
        all.map(move |item| ((layout.fingerprint_of(item.fingerprint), layout.value_of(item.fingerprint)), item.copies))
    }

    /// Iterates over the keys of an exact maplet with their values, copies included, in no order.
    ///
    /// # Errors
    /// [`Error::NotExact`] if it is not.
    pub fn entries(&self) -> Result<impl Iterator<Item = (u64, u64)> + use<'a>, Error> {
        let layout = self.layout;
        if !layout.keys.exact {
            return Err(Error::NotExact);
        }
        Ok(self.pairs().map(move |(fingerprint, value)| (layout.keys.key_of(fingerprint), value)))
    }

    /// Returns the expected rate with `keys` different keys: the probability that a key that was not inserted has a
    /// value, and that an inserted one has a value of another key besides its own.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        self.layout.expected_fpr(keys)
    }
}

impl fmt::Debug for MapletView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapletView").field("layout", &self.layout).field("len", &self.len()).finish()
    }
}

warpset_base::queries_of_view! {
    [] Maplet;
    #[cfg(feature = "mmap")]
    [] super::MappedMaplet;
    => {
        /// Returns the number of stored values, copies included.
        fn len(&self) -> u64;
        /// Whether no value is stored.
        fn is_empty(&self) -> bool;
        /// Returns the slots in use as a share of the quotients.
        fn load_factor(&self) -> f64;
        /// Returns the bytes of memory of the slots.
        fn memory_bytes(&self) -> u64;
        /// Returns the bits of memory per stored value, copies included.
        fn bits_per_key(&self) -> f64;
        /// Whether the key may have a value. Never false for a key that was inserted and not removed.
        fn contains(&self, key: impl Key) -> bool;
        /// Returns the value of a key: the least one if its fingerprint has several.
        fn get(&self, key: impl Key) -> Option<u64>;
        /// Returns the value of each key, in the order of the keys, as `get` does.
        fn get_bulk<K>(&self, keys: &[K]) -> Vec<Option<u64>>;
        /// Writes the value of each key to a slice of the same length.
        ///
        /// # Errors
        /// [`Error::LengthMismatch`] if there is not one place per key.
        fn get_bulk_into<K>(&self, keys: &[K], answers: &mut [Option<u64>]) -> Result<(), Error>;
        /// Returns the different values of a key's fingerprint in ascending order.
        fn values(&self, key: impl Key) -> Vec<u64>;
        /// Returns the different values of a key's fingerprint in ascending order, with their numbers of copies.
        fn value_counts(&self, key: impl Key) -> Vec<(u64, u64)>;
        /// Iterates over the stored fingerprints with their values, in ascending order, copies included.
        fn pairs(&self) -> impl Iterator<Item = (u64, u64)> + '_;
        /// Iterates over the different stored fingerprints with their values, with their numbers of copies.
        fn pair_counts(&self) -> impl Iterator<Item = ((u64, u64), u64)> + '_;
        /// Iterates over the keys of an exact maplet with their values, copies included, in no order.
        ///
        /// # Errors
        /// [`Error::NotExact`] if it is not.
        fn entries(&self) -> Result<impl Iterator<Item = (u64, u64)> + '_, Error>;
        /// Returns the expected rate with `keys` different keys: the probability that a key that was not inserted has
        /// a value, and that an inserted one has a value of another key besides its own.
        fn expected_fpr(&self, keys: u64) -> f64;
    }
}

impl Filter for MapletView<'_> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        let mut words = vec![0u64; keys.len().div_ceil(64)];
        parallel::answer(keys, &mut words, (LOOKUP_NS, 64), |keys, words| {
            self.get_each(keys, |i, value| words[i / 64] |= u64::from(value.is_some()) << (i % 64));
        });
        take(0, &words);
        Ok(())
    }
    warpset_base::by_inherent! {
        fn memory_bytes(&self) -> u64;
        fn contains(&self, key: impl Key) -> Result<bool, Error> as Ok;
    }
}
warpset_base::filters_by_view! {
    Error;
    [] Maplet;
    #[cfg(feature = "mmap")]
    [] super::MappedMaplet;
}
