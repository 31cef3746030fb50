//! Builders of sets and maps.

use std::marker::PhantomData;

use warpset_base::filter::LengthMismatch;

use crate::build::build;
use crate::{Error, MapValue, StaticKey, StaticMap, StaticSet, Value};

/// Settings of a [`StaticMap`] or [`StaticSet`]; each setter states its default.
#[derive(Clone, Copy, Debug)]
#[must_use = "a builder does nothing until `build_from`"]
pub struct Builder<K, V> {
    pub(crate) seed: u64,
    elements: PhantomData<fn() -> (K, V)>,
}

impl<K: StaticKey, V: Value> StaticMap<K, V> {
    /// Returns the default settings for a set or map.
    pub fn builder() -> Builder<K, V> {
        Builder { seed: 0, elements: PhantomData }
    }
}

impl<K: StaticKey, V: Value> Builder<K, V> {
    /// Sets the first seed to place keys under; if some find no place, the next seeds are tried. The same keys, values
    /// and seed make the same bytes on every backend. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

impl<K: StaticKey> Builder<K, ()> {
    /// Builds the set of these keys, on all threads of the current rayon pool; equal keys count once. Takes 8 bytes per
    /// key besides the set, 16 if many are equal.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::TooManyKeys`] for more than 2^34; [`Error::NoSeed`] for keys that were chosen
    /// against the seed.
    pub fn build_from(&self, keys: &[K]) -> Result<StaticSet<K>, Error> {
        self.build_from_lists(&[keys])
    }

    /// Builds the set of the keys of all lists, as [`build_from`](Builder::build_from) does of one.
    ///
    /// # Errors
    /// The errors of [`build_from`](Builder::build_from).
    ///
    /// ```
    /// use warpset_static::StaticSet;
    ///
    /// let set = StaticSet::builder().build_from_lists(&[[3_u64, 5], [5, 8]])?;
    /// assert_eq!(set.len(), 3);
    /// # Ok::<(), warpset_static::Error>(())
    /// ```
    pub fn build_from_lists(&self, lists: &[impl AsRef<[K]>]) -> Result<StaticSet<K>, Error> {
        let lists: Vec<&[K]> = lists.iter().map(AsRef::as_ref).collect();
        build(&lists, |_| (), self.seed)
    }
}

impl<K: StaticKey, V: MapValue> Builder<K, V> {
    /// Builds the map of these keys, one value per key, on all threads of the current rayon pool. Of equal keys the
    /// last one counts. Takes 16 bytes per key besides the map, 32 if many are equal.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::OutOfMemory`]; [`Error::TooManyKeys`] for more than 2^34;
    /// [`Error::NoSeed`] for keys that were chosen against the seed.
    pub fn build_from(&self, keys: &[K], values: &[V]) -> Result<StaticMap<K, V>, Error> {
        LengthMismatch::unless_equal("values for keys", keys.len(), values.len())?;
        build(&[keys], |i| values[i], self.seed)
    }
}
