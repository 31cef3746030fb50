//! Batches of insertions.

use warpset_gpu::{DeviceSlice, Stream};
use warpset_kernels::keys::KeySlice;

use super::fingerprints::sorted_fingerprints;
use super::keys::{Uploaded, key_slice};
use super::{DeviceKey, StandardQuotientFilter};
use crate::{Error, Key};

impl StandardQuotientFilter {
    /// Inserts all keys; says how many fingerprints are stored more than before.
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let uploaded = Uploaded::new(&stream, &self.layout, keys)?;
        // SAFETY: the keys live until the layout has been waited for.
        unsafe { self.insert(&stream, uploaded.keys(&self.layout), uploaded.n) }
    }

    /// [`StandardQuotientFilter::insert_bulk`] for keys on the device.
    pub fn insert_bulk_device<K: DeviceKey>(&mut self, keys: DeviceSlice<'_, K>) -> Result<u64, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        // SAFETY: the keys are borrowed until the layout has been waited for.
        unsafe { self.insert(&stream, key_slice(&self.layout, keys), keys.len()) }
    }

    /// Merge and rebuild (section IV-E).
    ///
    /// # Safety
    /// The keys stay allocated and unwritten until `stream` has passed.
    unsafe fn insert(&mut self, stream: &Stream, keys: KeySlice, n: usize) -> Result<u64, Error> {
        if n == 0 {
            return Ok(0);
        }
        // SAFETY: the caller's promise is the same.
        let batch = unsafe { sorted_fingerprints(stream, &self.layout, keys, n)? };
        self.add(stream, &batch)
    }
}
