//! The traits that all filters share.

use warpset_base::filter::{Count, Filter, Insert, Remove, Take, TestAndInsert};

use super::QuotientFilter;
use crate::slot_kind::SlotKind;
use crate::{Error, Key, View};

/// The traits of queries, for a type that has inherent methods of the same names.
macro_rules! queries {
    ($($(#[$attribute:meta])* $filter:ty;)*) => {$(
        $(#[$attribute])*
        impl<S: SlotKind> Filter for $filter {
            type Error = Error;

            fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
                take(0, self.contains_bitmap_bulk(keys).as_words());
                Ok(())
            }

            warpset_base::by_inherent! {
                fn contains_bulk_into[K: Key](&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error>;
                fn memory_bytes(&self) -> u64;
                fn contains(&self, key: impl Key) -> Result<bool, Error> as Ok;
            }
        }

        $(#[$attribute])*
        impl<S: SlotKind> Count for $filter {
            fn count_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<u64>, Error> {
                Ok(self.count_bulk(keys))
            }
        }
    )*};
}
queries! {
    QuotientFilter<S>;
    View<'_, S>;
    #[cfg(feature = "mmap")]
    crate::Mapped<S>;
}

impl<S: SlotKind> Insert for QuotientFilter<S> {
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        self.insert_bulk(keys).map(|_| ())
    }

    fn insert(&mut self, key: impl Key) -> Result<(), Error> {
        self.insert(key).map(|_| ())
    }

    warpset_base::by_inherent! {
        fn clear(&mut self) -> Result<(), Error> as Ok;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl<S: SlotKind> TestAndInsert for QuotientFilter<S> {
    fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        self.test_and_insert_bulk(keys)
    }
}

impl<S: SlotKind> Remove for QuotientFilter<S> {
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        Ok(self.remove_bulk(keys))
    }
}
