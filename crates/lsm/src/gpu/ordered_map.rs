//! [`OrderedMap`] of trees and sorted arrays in device memory, on one device and divided among several.

use std::ops::RangeBounds;

use crate::gpu::sharded::ShardedDictionary;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary};
use crate::policy::MergePolicy;
use crate::{Error, OrderedMap, Ranges};

macro_rules! ordered_map {
    ($dictionary:ident) => {
        impl<K: DeviceKey, V: DeviceValue, P: MergePolicy> OrderedMap<K, V> for $dictionary<K, V, P> {
            warpset_base::by_inherent! {
                fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error>;
                fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error>;
                fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error>;
                fn cleanup(&mut self) -> Result<(), Error>;
                fn clear(&mut self) -> Result<(), Error>;
                fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error>;
                fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error>;
                fn count_range_bulk[R: RangeBounds<K> + Sync](&self, ranges: &[R]) -> Result<Vec<u64>, Error>;
                fn range_bulk[R: RangeBounds<K> + Sync](&self, ranges: &[R]) -> Result<Ranges<K, V>, Error>;
                fn successor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error>;
                fn predecessor_bulk(&self, keys: &[K]) -> Result<Vec<Option<(K, V)>>, Error>;
                fn first_key_value(&self) -> Result<Option<(K, V)>, Error>;
                fn last_key_value(&self) -> Result<Option<(K, V)>, Error>;
                fn len(&self) -> Result<u64, Error>;
                fn is_empty(&self) -> Result<bool, Error>;
                fn resident_len(&self) -> u64;
                fn memory_bytes(&self) -> u64;
            }
        }
    };
}

ordered_map!(Dictionary);
ordered_map!(ShardedDictionary);
