//! The traits that all filters share.

use warpset_base::filter::{Count, Filter, Insert, Remove, TestAndInsert};

use warpset_gpu::batch::Hashing;
use warpset_primitives::DeviceInsert;

use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, hashing};
use crate::cpu::test_and_insert::new_keys;
use crate::{Error, Key};

impl<S: DeviceSlotKind> Count for QuotientFilter<S> {
    fn count_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<u64>, Error> {
        self.count_bulk(keys)
    }
}

impl<S: DeviceSlotKind> Insert for QuotientFilter<S> {
    fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        self.insert_bulk(keys).map(|_| ())
    }

    warpset_base::by_inherent! {
        fn clear(&mut self) -> Result<(), Error>;
        fn merge(&mut self, other: &Self) -> Result<(), Error>;
    }
}

impl<S: DeviceSlotKind> DeviceInsert for QuotientFilter<S> {
    /// How many more fingerprints are stored than before.
    type Inserted = u64;

    fn hashing(&self) -> Hashing {
        hashing(&self.layout)
    }

    fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        self.insert_device(keys)
    }
}

/// The batch is looked up and inserted on the device; which of equal fingerprints came first is found on the host.
impl<S: DeviceSlotKind> TestAndInsert for QuotientFilter<S> {
    fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let there = self.contains_bitmap_bulk(keys)?;
        self.insert_bulk(keys)?;
        Ok(new_keys(&self.layout, keys, &there))
    }
}

impl<S: DeviceSlotKind> Remove for QuotientFilter<S> {
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.remove_bulk(keys)
    }
}
