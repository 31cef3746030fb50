//! Trait of filters, for code that works with any of them.

use warpset_base::filter::{Filter, Take};
use warpset_base::key::Key;

use crate::{Error, StaticKey, StaticMap, StaticMapView, Value};

/// Accepts keys of any type. Integers count by their value in 64 bits, signed ones with their sign. A key that is no
/// integer, or has a value outside the set's type, is not in the set.
impl<K: StaticKey, V: Value> Filter for StaticMapView<'_, K, V> {
    type Error = Error;

    fn answer_bulk<Q: Key>(&self, keys: &[Q], take: &mut Take<'_>) -> Result<(), Error> {
        take(0, self.lookup().bits_of(keys).as_words());
        Ok(())
    }
    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
    fn contains(&self, key: impl Key) -> Result<bool, Error> {
        Ok(key.word().and_then(K::of_word).is_some_and(|key| self.contains(key)))
    }
}
warpset_base::filters_by_view! {
    Error;
    /// Accepts keys of any type, as [`StaticMapView`] does.
    [K: StaticKey, V: Value] StaticMap<K, V>;
    /// Accepts keys of any type, as [`StaticMapView`] does.
    #[cfg(feature = "mmap")]
    [K: StaticKey, V: Value] crate::MappedStaticMap<K, V>;
}

warpset_base::queries_of_view! {
    [K: StaticKey, V: Value] StaticMap<K, V>;
    #[cfg(feature = "mmap")] [K: StaticKey, V: Value] crate::MappedStaticMap<K, V>;
    => {
        /// Returns the number of keys.
        fn len(&self) -> u64;
        /// Whether there are no keys.
        fn is_empty(&self) -> bool;
        /// Returns the places for keys, used and free: all numbers are below.
        fn slots(&self) -> u64;
        /// Returns the bytes of pilots, keys and values.
        fn memory_bytes(&self) -> u64;
        /// Returns the bits of memory per key, values included.
        fn bits_per_key(&self) -> f64;
        /// Returns the share of slots that hold keys.
        fn load_factor(&self) -> f64;
        /// Returns the seed that the keys were placed under: that of the builder, or the first after it that placed
        /// all.
        fn seed(&self) -> u64;
        /// Whether the key is in the set.
        fn contains(&self, key: K) -> bool;
        /// Returns the number of a key, if it is in the set: unique, and below [`slots`](Self::slots). Numbers are the
        /// same on every backend.
        fn number(&self, key: K) -> Option<u64>;
        /// Returns the [`number`](Self::number) of each key.
        fn number_bulk(&self, keys: &[K]) -> Vec<Option<u64>>;
        /// Writes the numbers of [`number_bulk`](Self::number_bulk) to a slice of equal length, and returns which keys
        /// have one; the others get zero.
        ///
        /// # Errors
        /// [`Error::LengthMismatch`].
        fn number_bulk_into(&self, keys: &[K], numbers: &mut [u64]) -> Result<crate::Bitmap, Error>;
        /// Returns the key with this number, if there is one.
        fn key_at(&self, number: u64) -> Option<K>;
        /// Returns all keys, in the order of their numbers.
        fn keys(&self) -> crate::Keys<'_, K, V>;
    }
}

warpset_base::queries_of_view! {
    [K: StaticKey, V: crate::MapValue] StaticMap<K, V>;
    #[cfg(feature = "mmap")] [K: StaticKey, V: crate::MapValue] crate::MappedStaticMap<K, V>;
    => {
        /// Returns the value of a key, if it is in the map.
        fn get(&self, key: K) -> Option<V>;
        /// Returns the value of each key, in the order of the keys.
        fn get_bulk(&self, keys: &[K]) -> Vec<Option<V>>;
        /// Writes the values of [`get_bulk`](Self::get_bulk) to a slice of equal length, and returns which keys have
        /// one; the others get zero.
        ///
        /// # Errors
        /// [`Error::LengthMismatch`].
        fn get_bulk_into(&self, keys: &[K], values: &mut [V]) -> Result<crate::Bitmap, Error>;
        /// Returns all keys with their values, in the order of the keys' numbers.
        fn iter(&self) -> crate::Iter<'_, K, V>;
    }
}
