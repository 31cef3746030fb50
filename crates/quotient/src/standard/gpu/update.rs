//! Batches of insertions and removals.

use warpset_gpu::{DeviceSlice, Stream};
use warpset_kernels::batch::keys::KeySlice;

use super::fingerprints::{Fingerprints, fingerprints_of};
use super::keys::{Uploaded, key_slice};
use super::{DeviceKey, StandardQuotientFilter, crossover};
use crate::{Error, Key};

mod in_place;
mod rebuild;
mod superclusters;

/// How a batch is inserted into a filter on a device, or removed from it. All give the same bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UpdateMethod {
    /// One of the others, by the size of the batch and of the filter and by its load, as measured
    /// (see `docs/performance-log.md`).
    #[default]
    Automatic,
    /// The paper's (algorithms 3 and 7): in rounds, each a pass over the filter that labels its superclusters, and one
    /// fingerprint worked off in each. As many rounds as fingerprints belong to one supercluster.
    Superclusters,
    /// In rounds too, but the batch is sorted and walks to its superclusters, so that a round costs as much as the batch
    /// is large. A removal takes one round; what an insertion has left after 24 is
    /// merged.
    InPlace,
    /// The filter is written anew from its own fingerprints and the sorted batch, in one pass.
    Rebuild,
}

impl UpdateMethod {
    fn is_in_place(self) -> bool {
        matches!(self, UpdateMethod::Superclusters | UpdateMethod::InPlace)
    }
}

/// What a batch does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Insert,
    Remove,
}

impl StandardQuotientFilter {
    /// Inserts all keys; says how many fingerprints are stored more than before.
    ///
    /// # Errors
    /// [`Error::Full`] or [`Error::OverflowRegionFull`] if they do not all fit; then nothing has been written.
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.update_from_host(keys, Change::Insert)
    }

    /// [`StandardQuotientFilter::insert_bulk`] for keys on the device.
    pub fn insert_device<K: DeviceKey>(&mut self, keys: DeviceSlice<'_, K>) -> Result<u64, Error> {
        self.insert_device_with(keys, UpdateMethod::Automatic)
    }

    /// [`StandardQuotientFilter::insert_device`] by a method of choice. Methods that work in place do so on a copy
    /// unless it is clear from the start that the batch fits. Batches and filters of 2^32 keys or slots are always rebuilt.
    pub fn insert_device_with<K: DeviceKey>(
        &mut self,
        keys: DeviceSlice<'_, K>,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        self.update_on_device(keys, Change::Insert, method)
    }

    /// Removes the fingerprints of all keys; says how many fingerprints are stored less than before.
    ///
    /// Each key removes one copy of its fingerprint if there is one, and else nothing: in a set, keys with equal
    /// fingerprints remove it together; in a multiset, they remove as many copies as there are keys.
    pub fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        self.update_from_host(keys, Change::Remove)
    }

    /// [`StandardQuotientFilter::remove_bulk`] for keys on the device.
    pub fn remove_device<K: DeviceKey>(&mut self, keys: DeviceSlice<'_, K>) -> Result<u64, Error> {
        self.remove_device_with(keys, UpdateMethod::Automatic)
    }

    /// [`StandardQuotientFilter::remove_device`] by a method of choice.
    pub fn remove_device_with<K: DeviceKey>(
        &mut self,
        keys: DeviceSlice<'_, K>,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        self.update_on_device(keys, Change::Remove, method)
    }

    fn update_from_host<K: Key>(&mut self, keys: &[K], change: Change) -> Result<u64, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let uploaded = Uploaded::new(&stream, &self.layout, keys)?;
        // SAFETY: the keys live until the update has been waited for.
        unsafe { self.update(&stream, uploaded.keys(&self.layout), uploaded.n, change, UpdateMethod::Automatic) }
    }

    fn update_on_device<K: DeviceKey>(
        &mut self,
        keys: DeviceSlice<'_, K>,
        change: Change,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        // SAFETY: the keys are borrowed until the update has been waited for.
        unsafe { self.update(&stream, key_slice(&self.layout, keys), keys.len(), change, method) }
    }

    /// Waits for the end.
    ///
    /// # Safety
    /// The keys stay allocated and unwritten until then.
    unsafe fn update(
        &mut self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        change: Change,
        method: UpdateMethod,
    ) -> Result<u64, Error> {
        if n == 0 || change == Change::Remove && self.items == 0 {
            return Ok(0);
        }
        let method = match method {
            UpdateMethod::Automatic => {
                crossover::update_method(n as u64, self.layout.slots(), self.load_factor(), change == Change::Remove)
            }
            other => other,
        };
        // Threads, and labels of superclusters, are counted in 32 bits.
        let countable = n < 1 << 32 && self.layout.slots() < 1 << 32;
        let mut method = if countable { method } else { UpdateMethod::Rebuild };
        loop {
            // SAFETY: the caller's promise is the same.
            let mut batch = unsafe { fingerprints_of(stream, &self.layout, keys, n)? };
            if method != UpdateMethod::Superclusters {
                batch.sort(&self.layout, stream)?;
            }
            let changed = match batch {
                Fingerprints::Narrow(batch) => self.apply(stream, batch, change, method)?,
                Fingerprints::Wide(batch) => self.apply(stream, batch, change, method)?,
            };
            match changed {
                Some(changed) => return Ok(changed),
                // Rebuilding says why it does not fit.
                None => method = UpdateMethod::Rebuild,
            }
        }
    }

    /// Supercluster inserts of fingerprints that fit, fewer than 2^32.
    pub(super) fn fill_by_superclusters(&mut self, stream: &Stream, batch: Fingerprints) -> Result<(), Error> {
        let changed = match batch {
            Fingerprints::Narrow(batch) => self.apply(stream, batch, Change::Insert, UpdateMethod::Superclusters)?,
            Fingerprints::Wide(batch) => self.apply(stream, batch, Change::Insert, UpdateMethod::Superclusters)?,
        };
        debug_assert!(changed.is_some(), "the caller has made sure of a slot for each");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
