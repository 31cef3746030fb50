//! The traits that all filters share.

use warpset_base::bitmap::Bitmap;
use warpset_base::filter::{Count, Filter, Insert, Remove};

use super::QuotientFilter;
use crate::slot_kind::SlotKind;
use crate::{Error, Key, View};

/// The traits of queries, for a type that has inherent methods of the same names.
macro_rules! queries {
    ($($filter:ty;)*) => {$(
        impl<S: SlotKind> Filter for $filter {
            type Error = Error;

            fn contains_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
                self.contains_bulk_into(keys, answers)
            }

            fn contains_bitmap_bulk<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Error> {
                Ok(self.contains_bitmap_bulk(keys))
            }

            fn memory_bytes(&self) -> u64 {
                self.memory_bytes()
            }

            fn count_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
                Ok(self.count_contained_bulk(keys))
            }
        }

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
}

impl<S: SlotKind> Insert for QuotientFilter<S> {
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        self.insert_bulk(keys).map(|_| ())
    }

    fn clear(&mut self) -> Result<(), Error> {
        self.clear();
        Ok(())
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.merge(other)
    }
}

impl<S: SlotKind> Remove for QuotientFilter<S> {
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        Ok(self.remove_bulk(keys))
    }
}
