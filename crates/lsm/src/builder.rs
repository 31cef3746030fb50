//! Builders of dictionaries in host memory.

use std::marker::PhantomData;

use crate::cpu::{self, Lsm, SortedArray};
use crate::policy::{ArrayPolicy, TreePolicy};
use crate::settings::{CleanupPolicy, Settings};
use crate::{Error, OrderedKey, Value};

/// Settings of an [`Lsm`]; each setter states its default.
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder<K, V> {
    pub(crate) settings: Settings,
    elements: PhantomData<(K, V)>,
}

impl<K: OrderedKey, V: Value> Default for Builder<K, V> {
    fn default() -> Self {
        Builder { settings: Settings::default(), elements: PhantomData }
    }
}

impl<K: OrderedKey, V: Value> Lsm<K, V> {
    /// Starts the settings for a dictionary.
    pub fn builder() -> Builder<K, V> {
        Builder::default()
    }
}

impl<K: OrderedKey, V: Value> Builder<K, V> {
    /// Sets the expected number of elements per batch, a power of two. Larger values make updates cheaper, and queries
    /// too, because there are fewer levels. Batches of any length are accepted; much shorter ones gather in smaller
    /// levels first. Default: 65536.
    pub fn batch_size(mut self, batch_size: u64) -> Self {
        self.settings.batch_size = batch_size;
        self
    }

    /// Sets the time at which tombstones and stale elements are dropped. Default: [`CleanupPolicy::StaleShare`] of one
    /// half.
    pub fn cleanup(mut self, policy: CleanupPolicy) -> Self {
        self.settings.cleanup = policy;
        self
    }

    /// Checks every setting and returns an empty dictionary.
    ///
    /// # Errors
    /// [`Error::InvalidBatchSize`], [`Error::InvalidStaleShare`], [`Error::NoBatches`].
    pub fn build(&self) -> Result<Lsm<K, V>, Error> {
        Ok(cpu::Dictionary::empty(TreePolicy::new(self.settings.check()?)))
    }

    /// Builds a dictionary of one level from one value per key, by one sort. The last one of equal keys counts.
    ///
    /// # Errors
    /// The errors of [`Builder::build`]; [`Error::LengthMismatch`], [`Error::OutOfMemory`].
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<Lsm<K, V>, Error> {
        cpu::Dictionary::from_pairs(TreePolicy::new(self.settings.check()?), keys, values)
    }
}

/// Settings of a [`SortedArray`].
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct SortedArrayBuilder<K, V>(PhantomData<(K, V)>);

impl<K, V> Default for SortedArrayBuilder<K, V> {
    fn default() -> Self {
        SortedArrayBuilder(PhantomData)
    }
}

impl<K: OrderedKey, V: Value> SortedArray<K, V> {
    /// Starts the settings for a sorted array.
    pub fn builder() -> SortedArrayBuilder<K, V> {
        SortedArrayBuilder::default()
    }
}

impl<K: OrderedKey, V: Value> SortedArrayBuilder<K, V> {
    /// Returns an empty array.
    ///
    /// # Errors
    /// None: the signature is that of [`Builder::build`].
    pub fn build(&self) -> Result<SortedArray<K, V>, Error> {
        Ok(cpu::Dictionary::empty(ArrayPolicy))
    }

    /// Builds an array from one value per key. The last one of equal keys counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::OutOfMemory`].
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<SortedArray<K, V>, Error> {
        cpu::Dictionary::from_pairs(ArrayPolicy, keys, values)
    }
}
