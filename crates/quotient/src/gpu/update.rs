//! Batches of insertions and removals.

use super::fingerprints::{Fingerprints, Misfits};
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact};
use crate::key::as_hashed;
use crate::slot_kind::Change;
use crate::{Error, Key};

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Inserts all keys; returns how many more fingerprints are stored than before.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::OverflowRegionFull`] if they do not all fit; then nothing has been written.
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.update_bulk(keys, Change::Insert)
    }

    /// [`QuotientFilter::insert_bulk`] for keys on the device.
    pub fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        self.insert_device_with(keys, S::UpdateMethod::default())
    }

    /// [`QuotientFilter::insert_device`] by a method of choice. Methods that work in place do so on a copy unless it is
    /// clear from the start that the batch fits.
    pub fn insert_device_with<K: DeviceKeys>(&mut self, keys: K, method: S::UpdateMethod) -> Result<u64, Error> {
        self.update_device(keys, Change::Insert, method)
    }

    /// [`QuotientFilter::insert_bulk`] for fingerprints, in any order.
    pub fn insert_fingerprints_bulk(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        self.update_fingerprints(fingerprints, Change::Insert)
    }

    /// Removes the fingerprints of all keys; returns how many fewer fingerprints are stored than before.
    ///
    /// Each key removes one copy of its fingerprint if there is one, and else nothing: in a set, keys with equal
    /// fingerprints remove it together; in a multiset, they remove as many copies as there are keys.
    pub fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.update_bulk(keys, Change::Remove)
    }

    /// [`QuotientFilter::remove_bulk`] for keys on the device.
    pub fn remove_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        self.remove_device_with(keys, S::UpdateMethod::default())
    }

    /// [`QuotientFilter::remove_device`] by a method of choice.
    pub fn remove_device_with<K: DeviceKeys>(&mut self, keys: K, method: S::UpdateMethod) -> Result<u64, Error> {
        self.update_device(keys, Change::Remove, method)
    }

    /// [`QuotientFilter::remove_bulk`] for fingerprints, in any order.
    pub fn remove_fingerprints_bulk(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        self.update_fingerprints(fingerprints, Change::Remove)
    }

    /// Whether there is nothing to remove from an empty filter.
    fn changes_nothing(&self, change: Change) -> bool {
        change == Change::Remove && self.items == 0
    }

    fn update_bulk<K: Key>(&mut self, keys: &[K], change: Change) -> Result<u64, Error> {
        if !self.layout.exact {
            return self.update_hashed(keys, change);
        }
        let hashes = match change {
            Change::Insert => exact::hashes(&self.layout, keys)?,
            Change::Remove => exact::some_hashes(&self.layout, keys).0,
        };
        self.update_hashed(&hashes, change)
    }

    /// The same; no key is an integer of an exact filter.
    fn update_hashed<K: Key>(&mut self, keys: &[K], change: Change) -> Result<u64, Error> {
        if keys.is_empty() || self.changes_nothing(change) {
            return Ok(0);
        }
        let (stream, layout) = (self.ready_stream()?, self.layout);
        let batch = |stream: &_| Fingerprints::of_host_keys(&layout, stream, keys);
        S::update(self, &stream, keys.len(), batch, change, S::UpdateMethod::default())
    }

    fn update_device<K: DeviceKeys>(&mut self, keys: K, change: Change, method: S::UpdateMethod) -> Result<u64, Error> {
        if keys.count() == 0 {
            return Ok(0);
        }
        self.device.expect_same(keys.device(), "changing a quotient filter")?;
        if self.changes_nothing(change) {
            return Ok(0);
        }
        let (stream, layout) = (self.ready_stream()?, self.layout);
        // SAFETY: the keys are borrowed until the stream has been waited for, below on an error.
        let misfits = || if change == Change::Insert { Misfits::Refused } else { Misfits::Dropped };
        // SAFETY: as above.
        let batch = |stream: &_| unsafe { Fingerprints::of_device_keys(&layout, stream, keys, misfits()) };
        let changed = S::update(self, &stream, keys.count(), batch, change, method);
        if changed.is_err() {
            stream.synchronize()?;
        }
        changed
    }

    /// Fingerprints travel as hashes that have them.
    fn update_fingerprints(&mut self, fingerprints: &[u64], change: Change) -> Result<u64, Error> {
        self.layout.check_fingerprints(fingerprints)?;
        let dropped = 64 - self.layout.fingerprint_bits();
        let hashes: Vec<u64> = fingerprints.iter().map(|fingerprint| fingerprint << dropped).collect();
        self.update_hashed(as_hashed(&hashes), change)
    }
}
