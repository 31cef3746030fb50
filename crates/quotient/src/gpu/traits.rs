//! The traits that all filters share.

use warpset_base::filter::{Count, Insert, Remove};

use super::{DeviceSlotKind, QuotientFilter};
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

    fn clear(&mut self) -> Result<(), Error> {
        self.clear()
    }

    fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.merge(other)
    }
}

impl<S: DeviceSlotKind> Remove for QuotientFilter<S> {
    fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.remove_bulk(keys)
    }
}
