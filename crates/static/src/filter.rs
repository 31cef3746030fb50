//! The trait of filters, for code that works with any of them.

use warpset_base::filter::{Filter, Take};
use warpset_base::key::Key;

use crate::{Error, StaticKey, StaticMap, StaticMapView, Value};

macro_rules! filters {
    ($($(#[$attribute:meta])* $filter:ty, |$this:ident| $view:expr;)*) => {$(
        /// Asks for keys of any type. Integers count by their value in 64 bits, signed ones with their sign; a key that
        /// is no integer, or has another value than every key of the set's type, is not in the set.
        $(#[$attribute])*
        impl<K: StaticKey, V: Value> Filter for $filter {
            type Error = Error;

            fn answer_bulk<Q: Key>(&self, keys: &[Q], take: &mut Take<'_>) -> Result<(), Error> {
                let $this = self;
                take(0, $view.lookup().bits_of(keys).as_words());
                Ok(())
            }
            fn memory_bytes(&self) -> u64 {
                let $this = self;
                $view.memory_bytes()
            }
            fn contains(&self, key: impl Key) -> Result<bool, Error> {
                let $this = self;
                Ok(key.word().and_then(K::of_word).is_some_and(|key| $view.contains(key)))
            }
        }
    )*};
}
filters! {
    StaticMap<K, V>, |map| map.view();
    StaticMapView<'_, K, V>, |view| view;
    #[cfg(feature = "mmap")]
    crate::MappedStaticMap<K, V>, |map| map.view();
}

warpset_base::queries_of_view! {
    [K: StaticKey, V: Value] StaticMap<K, V>;
    #[cfg(feature = "mmap")] [K: StaticKey, V: Value] crate::MappedStaticMap<K, V>;
    => {
        /// Number of keys.
        fn len(&self) -> u64;
        /// Whether there are no keys.
        fn is_empty(&self) -> bool;
        /// Places for keys, used and free: the bound that all numbers are below.
        fn slots(&self) -> u64;
        /// Bytes of memory that pilots, keys and values take.
        fn memory_bytes(&self) -> u64;
        /// Bits of memory per key, values included.
        fn bits_per_key(&self) -> f64;
        /// The share of slots that hold keys.
        fn load_factor(&self) -> f64;
        /// The seed that the keys were placed under: that of the builder, or the first after it that placed all.
        fn seed(&self) -> u64;
        /// Whether the key is in the set.
        fn contains(&self, key: K) -> bool;
        /// The number of a key, if it is in the set: below [`slots`](Self::slots), and its own. Numbers are the same on
        /// every backend.
        fn number(&self, key: K) -> Option<u64>;
        /// The [`number`](Self::number) of each key.
        fn number_bulk(&self, keys: &[K]) -> Vec<Option<u64>>;
        /// [`number_bulk`](Self::number_bulk) into a slice of the same length: which keys have a number; the others get
        /// zero.
        ///
        /// # Errors
        /// [`Error::LengthMismatch`].
        fn number_bulk_into(&self, keys: &[K], numbers: &mut [u64]) -> Result<crate::Bitmap, Error>;
        /// The key with this number, if there is one.
        fn key_at(&self, number: u64) -> Option<K>;
        /// All keys, in the order of their numbers.
        fn keys(&self) -> crate::Keys<'_, K, V>;
    }
}

warpset_base::queries_of_view! {
    [K: StaticKey, V: crate::MapValue] StaticMap<K, V>;
    #[cfg(feature = "mmap")] [K: StaticKey, V: crate::MapValue] crate::MappedStaticMap<K, V>;
    => {
        /// The value of a key, if it is in the map.
        fn get(&self, key: K) -> Option<V>;
        /// The value of each key, in the order of the keys.
        fn get_bulk(&self, keys: &[K]) -> Vec<Option<V>>;
        /// [`get_bulk`](Self::get_bulk) into a slice of the same length: which keys have a value; the others get zero.
        ///
        /// # Errors
        /// [`Error::LengthMismatch`].
        fn get_bulk_into(&self, keys: &[K], values: &mut [V]) -> Result<crate::Bitmap, Error>;
        /// All keys with their values, in the order of the keys' numbers.
        fn iter(&self) -> crate::Iter<'_, K, V>;
    }
}
