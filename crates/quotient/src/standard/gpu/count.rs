//! Fingerprints in the place of keys, and how often each is stored.

use warpset_primitives::{KeyMask, search};

use super::StandardQuotientFilter;
use super::build::check_fingerprints;
use super::fingerprints::{Fingerprints, fingerprints_of, with_widths};
use super::keys::Uploaded;
use crate::{Error, Hashed, Key};

/// Keys that are counted at a time.
const CHUNK: usize = 1 << 24;

impl StandardQuotientFilter {
    /// [`StandardQuotientFilter::insert_bulk`] for fingerprints, in any order.
    pub fn insert_fingerprints_bulk(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        self.insert_bulk(&self.hashes_of(fingerprints)?)
    }

    /// [`StandardQuotientFilter::remove_bulk`] for fingerprints, in any order.
    pub fn remove_fingerprints_bulk(&mut self, fingerprints: &[u64]) -> Result<u64, Error> {
        self.remove_bulk(&self.hashes_of(fingerprints)?)
    }

    /// How many copies of each key's fingerprint are stored.
    ///
    /// All fingerprints are taken out of the filter for it, and searched.
    pub fn count_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<u64>, Error> {
        if keys.is_empty() || self.items == 0 {
            return Ok(vec![0; keys.len()]);
        }
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let stored = self.extract(&stream)?;
        let mut counts = Vec::with_capacity(keys.len());
        for keys in keys.chunks(CHUNK) {
            let uploaded = Uploaded::new(&stream, &self.layout, keys)?;
            // SAFETY: the keys live until the copies have been waited for.
            let asked = unsafe { fingerprints_of(&stream, &self.layout, uploaded.keys(&self.layout), keys.len())? };
            let mut first = stream.alloc_uninit::<u64>(keys.len())?;
            let mut end = stream.alloc_uninit::<u64>(keys.len())?;
            // SAFETY: there is a place a key in each; all are this call's own, and freed in the order of the stream.
            with_widths!((&stored, &asked), |stored, asked| unsafe {
                let (stored, asked) = (stored.as_slice(), asked.as_slice());
                search::lower_bound_async(&stream, stored, asked, KeyMask::all(), first.as_mut_slice())?;
                search::upper_bound_async(&stream, stored, asked, KeyMask::all(), end.as_mut_slice())?;
            });
            let (mut firsts, mut ends) = (vec![0; keys.len()], vec![0; keys.len()]);
            stream.download(&first, &mut firsts)?;
            stream.download(&end, &mut ends)?;
            counts.extend(firsts.iter().zip(&ends).map(|(first, end)| end - first));
        }
        Ok(counts)
    }

    /// Hashes that have these fingerprints.
    fn hashes_of(&self, fingerprints: &[u64]) -> Result<Vec<Hashed>, Error> {
        check_fingerprints(&self.layout, fingerprints)?;
        let dropped = 64 - self.layout.fingerprint_bits();
        Ok(fingerprints.iter().map(|fingerprint| Hashed(fingerprint << dropped)).collect())
    }
}
