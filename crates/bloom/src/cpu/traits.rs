//! The traits of filters, by the inherent methods.

use super::{Bloom, RaoBloom};
use crate::layout::engine::OneBlock;
use crate::{Bitmap, Error, Filter, Insert, Key, Layout, TestAndInsert, View};

impl<L: Layout> Filter for Bloom<L> {
    type Error = Error;

    fn contains_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        self.contains_bulk_into(keys, answers)
    }
    fn contains_bitmap_bulk<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Error> {
        Ok(self.contains_bitmap_bulk(keys))
    }
    fn count_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
        Ok(self.count_contained_bulk(keys))
    }
    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl<L: Layout> Filter for View<'_, L> {
    type Error = Error;

    fn contains_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        self.contains_bulk_into(keys, answers)
    }
    fn contains_bitmap_bulk<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Error> {
        Ok(self.contains_bitmap_bulk(keys))
    }
    fn count_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
        Ok(self.count_contained_bulk(keys))
    }
    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl<L: OneBlock> Insert for Bloom<L> {
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        self.insert_bulk(keys);
        Ok(())
    }
    fn clear(&mut self) -> Result<(), Error> {
        self.clear();
        Ok(())
    }
    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.merge(other)
    }
}

impl Insert for RaoBloom {
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        self.insert_bulk(keys)
    }
    fn clear(&mut self) -> Result<(), Error> {
        self.clear();
        Ok(())
    }
    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.merge(other)
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
