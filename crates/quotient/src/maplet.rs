//! Maplets: values beside fingerprints, without the keys.
//!
//! A maplet is a quotient filter with longer remainders: the low bits of each are a value. So the items of a run are
//! ordered by fingerprint and then by value, and a set of pairs has one arrangement in slots.
//!
//! ```text
//!  item of the filter | quotient_bits | remainder_bits | value_bits |   64 bits at most
//!                     |<------ fingerprint of a key -->|            |
//! ```
//!
//! The slots, their writer, builds, batches, growth, counters and validation are those of the filter. What a maplet
//! adds are lookups that compare remainders without their values, and updates that combine values.
//!
//! Source: Bender, Conway, Farach-Colton, Johnson, Pandey, "The Case for Maplets", arXiv 2510.05518: a maplet returns
//! the value of a stored key exactly, unless its fingerprint is that of another key.

use warpset_core::bits::lowest;
use warpset_core::quotient::Split;
use warpset_core::quotient::slots::BLOCK_SLOTS;

use crate::{Builder, Error, Key, Layout, RankSelect};

mod cpu;
mod format;
#[cfg(feature = "gpu")]
pub(crate) mod gpu;
mod view;

pub use cpu::Maplet;
#[cfg(feature = "mmap")]
pub use format::MappedMaplet;
pub use view::MapletView;

/// Parameters of a [`Maplet`]: those of its fingerprints, and the bits of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapletLayout {
    keys: Layout,
    value_bits: u32,
}

impl MapletLayout {
    pub(crate) fn new(keys: Layout, value_bits: u32) -> Result<MapletLayout, Error> {
        match Split::new(keys.quotient_bits(), keys.remainder_bits().saturating_add(value_bits)) {
            Some(_) if value_bits > 0 => Ok(MapletLayout { keys, value_bits }),
            _ => Err(Error::no_value_bits(&keys, value_bits)),
        }
    }

    /// Returns the parameters of the fingerprints: bits, seed, limit, duplicates.
    pub fn keys(&self) -> &Layout {
        &self.keys
    }

    /// Returns the bits of a value.
    pub fn value_bits(&self) -> u32 {
        self.value_bits
    }

    /// Returns the number of 64-bit words of all slots.
    pub fn words(&self) -> u64 {
        self.pairs().words()
    }

    /// Returns the rate of [`Maplet::expected_fpr`].
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        if self.keys.exact { 0.0 } else { crate::rates::expected(keys, self.keys.fingerprint_bits()) }
    }

    /// Returns the layout of the filter with the pairs of fingerprints and values.
    pub(crate) fn pairs(&self) -> Layout {
        let Split { quotient_bits, remainder_bits } = self.keys.split;
        let split = Split { quotient_bits, remainder_bits: remainder_bits + self.value_bits };
        Layout { split, exact: false, ..self.keys }
    }

    /// Returns the fingerprint of a pair.
    pub(crate) fn fingerprint_of(&self, pair: u64) -> u64 {
        pair >> self.value_bits
    }

    /// Returns the value of a pair.
    pub(crate) fn value_of(&self, pair: u64) -> u64 {
        pair & lowest(self.value_bits)
    }

    /// Returns the pair of a fingerprint and a value, whose excess bits are dropped.
    pub(crate) fn join(&self, fingerprint: u64, value: u64) -> u64 {
        fingerprint << self.value_bits | self.value_of(value)
    }

    /// Refuses a value with too many bits.
    pub(crate) fn check_value(&self, value: u64) -> Result<u64, Error> {
        if self.value_of(value) == value {
            Ok(value)
        } else {
            Err(Error::ValueTooWide { value, bits: self.value_bits })
        }
    }

    /// Refuses operators on counted pairs.
    pub(crate) fn check_combines(&self) -> Result<(), Error> {
        if self.keys.is_counted() { Err(Error::CountedValues) } else { Ok(()) }
    }

    /// Returns the number of low bits that the other's fingerprints lose when its pairs are merged into this maplet.
    pub(crate) fn bits_to_drop(&self, other: &MapletLayout) -> Result<u32, Error> {
        let (left, right) = (self.value_bits.into(), other.value_bits.into());
        if left != right {
            return Err(Error::Incompatible { field: "value bits", left, right });
        }
        self.keys.bits_to_drop(&other.keys)
    }
}

/// [`Builder`] of maplets, made by [`Builder::values`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct MapletBuilder {
    settings: Builder<RankSelect>,
}

impl Builder<RankSelect> {
    /// Stores a value of that many bits beside each fingerprint: the filter becomes a [`Maplet`]. A fingerprint and a
    /// value have at most 64 bits together.
    ///
    /// ```
    /// use warpset_quotient::RankSelectQuotientFilter;
    ///
    /// let builder = RankSelectQuotientFilter::builder(1000).fpr(1e-4).values(16);
    /// let shard_of = builder.build_from(&["north", "south"], &[17u16, 40_000])?;
    /// assert_eq!(shard_of.get("south"), Some(40_000));
    /// assert_eq!(shard_of.get("west"), None);
    /// # Ok::<(), warpset_quotient::Error>(())
    /// ```
    pub fn values(mut self, value_bits: u32) -> MapletBuilder {
        self.value_bits = value_bits;
        MapletBuilder { settings: self }
    }
}

impl MapletBuilder {
    /// Makes a builder for a known layout, such as that of another maplet.
    pub fn with_layout(layout: MapletLayout) -> MapletBuilder {
        Builder::with_layout(layout.keys).values(layout.value_bits)
    }

    /// Checks every setting and returns the layout.
    ///
    /// # Errors
    /// The errors of [`Builder::layout`]; [`Error::InvalidValueBits`] if values have no bits or too many beside their
    /// fingerprints.
    pub fn layout(&self) -> Result<MapletLayout, Error> {
        MapletLayout::new(self.settings.layout()?, self.settings.value_bits)
    }

    /// Checks every setting, then allocates an empty maplet.
    ///
    /// # Errors
    /// The errors of [`MapletBuilder::layout`]; [`Error::OutOfMemory`].
    pub fn build(&self) -> Result<Maplet, Error> {
        Maplet::with_layout(self.layout()?)
    }

    /// Builds a maplet of these keys with `values[i]` for key `i`.
    ///
    /// # Errors
    /// The errors of [`MapletBuilder::build`] and of [`Maplet::insert_bulk`].
    pub fn build_from<K: Key, V: Copy + Into<u64> + Sync>(&self, keys: &[K], values: &[V]) -> Result<Maplet, Error> {
        Maplet::from_keys(self.layout()?, keys, values)
    }
}

/// Returns the words of all slots with `value_bits` more per slot; `None` if there is no such layout.
pub(crate) fn words_with_values(keys: &Layout, value_bits: u32) -> Option<u64> {
    if value_bits > 0 {
        MapletLayout::new(*keys, value_bits).ok()?;
    }
    Some(keys.words() + keys.slots() / BLOCK_SLOTS * u64::from(value_bits))
}

#[cfg(test)]
mod tests;
