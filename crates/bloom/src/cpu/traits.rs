//! Operations on many keys, by the traits of filters.

use warpset_base::filter::{Take, same_length};
use warpset_core::bloom::TEST_AND_INSERT_BATCH;

use super::{Bloom, insert};
use crate::layout::engine::OneBlock;
use crate::{Error, Filter, Insert, Key, Layout, TestAndInsert, View};

impl<L: Layout> Filter for View<'_, L> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        take(0, &self.bits(keys));
        Ok(())
    }
    fn any_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<bool, Error> {
        Ok(self.any(keys))
    }
    warpset_base::by_inherent! {
        fn memory_bytes(&self) -> u64;
        fn contains(&self, key: impl Key) -> Result<bool, Error> as Ok;
    }
}
warpset_base::filters_by_view! {
    Error;
    [L: Layout] Bloom<L>;
    #[cfg(feature = "mmap")]
    [L: Layout] crate::Mapped<L>;
}

/// Filters in which a key has one block.
impl<L: OneBlock> Insert for Bloom<L> {
    type Inserted = ();

    /// Inserts all keys. With several threads, the keys are distributed to stripes of blocks first, so that no two
    /// threads write one block.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        insert::insert_bulk(&self.layout, self.words.as_mut_slice(), keys);
        Ok(())
    }
    fn clear(&mut self) -> Result<(), Error> {
        self.reset();
        Ok(())
    }
    warpset_base::by_inherent! {
        fn insert(&mut self, key: impl Key) -> Result<(), Error> as Ok;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl<L: OneBlock> TestAndInsert for Bloom<L> {
    fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        for (keys, new) in keys.chunks(TEST_AND_INSERT_BATCH).zip(new.chunks_mut(TEST_AND_INSERT_BATCH)) {
            insert::test_and_insert_step(&self.layout, self.words.as_mut_slice(), keys, new);
        }
        Ok(())
    }
}
