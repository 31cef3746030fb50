//! Traits of all filters.

use warpset_base::filter::{Filter, Insert, Remove, TestAndInsert, same_length};

use warpset_gpu::batch::Hashing;
use warpset_primitives::DeviceInsert;

use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, hashing};
use crate::cpu::test_and_insert::new_keys;
use crate::slot_kind::Change;
use crate::{Error, Key};

impl<S: DeviceSlotKind> Insert for QuotientFilter<S> {
    /// Number of fingerprints added.
    type Inserted = u64;

    /// Inserts all keys. Returns the number of fingerprints added.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::OverflowRegionFull`] if they do not all fit, [`Error::KeyTooWide`] if the
    /// filter is exact and a key has too many bits; the filter is unchanged then.
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.update_bulk(keys, Change::Insert)
    }

    warpset_base::by_inherent! {
        fn clear(&mut self) -> Result<(), Error>;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl<S: DeviceSlotKind> DeviceInsert for QuotientFilter<S> {
    fn hashing(&self) -> Hashing {
        hashing(&self.layout)
    }

    fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        self.insert_device(keys)
    }
}

/// The batch is looked up and inserted on the device; the host finds which of equal fingerprints came first.
impl<S: DeviceSlotKind> TestAndInsert for QuotientFilter<S> {
    fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        let there = self.contains_bitmap_bulk(keys)?;
        self.insert_bulk(keys)?;
        new_keys(&self.layout, keys, &there, new);
        Ok(())
    }
}

impl<S: DeviceSlotKind> Remove for QuotientFilter<S> {
    /// Removes the fingerprints of all keys. Returns the number of fingerprints removed.
    ///
    /// Each key removes one copy of its fingerprint if there is one. In a set, keys with equal fingerprints remove it
    /// together; in a multiset, they remove one copy per key.
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.update_bulk(keys, Change::Remove)
    }
}
