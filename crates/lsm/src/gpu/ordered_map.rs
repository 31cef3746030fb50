//! [`OrderedMap`] of trees and sorted arrays in device memory.

use std::ops::RangeBounds;

use super::{DeviceKey, DeviceValue, Dictionary};
use crate::policy::MergePolicy;
use crate::{Error, OrderedMap, Ranges};

impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> OrderedMap<K, V> for Dictionary<K, V, P> {
    fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        self.insert_bulk(keys, values)
    }
    fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error> {
        self.remove_bulk(keys)
    }
    fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error> {
        self.update_bulk(keys, values, removed)
    }
    fn cleanup(&mut self) -> Result<(), Error> {
        self.cleanup()
    }
    fn clear(&mut self) -> Result<(), Error> {
        self.clear()
    }
    fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error> {
        self.get_bulk(keys)
    }
    fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        self.contains_bulk(keys)
    }
    fn count_range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Vec<u64>, Error> {
        self.count_range_bulk(ranges)
    }
    fn range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error> {
        self.range_bulk(ranges)
    }
    fn successor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> {
        self.successor_bulk(keys)
    }
    fn predecessor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error> {
        self.predecessor_bulk(keys)
    }
    fn first_key_value(&self) -> Result<Option<(K, V)>, Error> {
        self.first_key_value()
    }
    fn last_key_value(&self) -> Result<Option<(K, V)>, Error> {
        self.last_key_value()
    }
    fn len(&self) -> Result<u64, Error> {
        self.len()
    }
    fn is_empty(&self) -> Result<bool, Error> {
        self.is_empty()
    }
    fn resident_len(&self) -> u64 {
        self.resident_len()
    }
    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}
