//! The traits of filters, by the inherent methods.

use warpset_base::filter::Take;

use super::{Bloom, RaoBloom};
use crate::layout::engine::OneBlock;
use crate::{Error, Filter, Insert, Key, Layout, TestAndInsert, View};

/// The trait of queries, for types that have inherent methods of the same names.
macro_rules! queries {
    ($($(#[$attribute:meta])* $filter:ty;)*) => {$(
        $(#[$attribute])*
        impl<L: Layout> Filter for $filter {
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
    )*};
}
queries! {
    Bloom<L>;
    View<'_, L>;
    #[cfg(feature = "mmap")]
    crate::Mapped<L>;
}

impl<L: OneBlock> Insert for Bloom<L> {
    warpset_base::by_inherent! {
        fn insert_bulk[K: Key](&mut self, keys: &[K]) -> Result<(), Error> as Ok;
        fn insert(&mut self, key: impl Key) -> Result<(), Error> as Ok;
        fn clear(&mut self) -> Result<(), Error> as Ok;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl Insert for RaoBloom {
    warpset_base::by_inherent! {
        fn insert_bulk[K: Key](&mut self, keys: &[K]) -> Result<(), Error>;
        fn clear(&mut self) -> Result<(), Error> as Ok;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl<L: OneBlock> TestAndInsert for Bloom<L> {
    fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        Ok(self.test_and_insert_bulk(keys))
    }
}

impl TestAndInsert for RaoBloom {
    fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        self.test_and_insert_bulk(keys)
    }
}
