//! Rates of false positives, and the number of different fingerprints.

use warpset_base::filter::{Filter, share_of_hashes};

use super::{DeviceSlotKind, QuotientFilter};
use crate::{Error, rates};

/// Hashes per lookup.
const SAMPLES: u64 = 1 << 22;

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Counts the different stored fingerprints.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn distinct(&self) -> Result<u64, Error> {
        if !self.layout.keeps_duplicates() || self.items == 0 {
            return Ok(self.items);
        }
        let stream = self.ready_stream()?;
        if self.layout.is_counted() {
            return Ok(self.extract_counts(&stream)?.len as u64);
        }
        Ok(self.extract(&stream)?.unique(&self.layout, &stream)?.len() as u64)
    }

    /// Returns the current rate of false positives: the stored share of all fingerprints. It is exact for uniform
    /// hashes.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn fpr(&self) -> Result<f64, Error> {
        if self.layout.exact {
            return Ok(0.0);
        }
        Ok(rates::of_distinct(self.distinct()?, self.layout.fingerprint_bits()))
    }

    /// Returns the expected rate of false positives with `keys` different keys in the filter.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        if self.layout.exact {
            return 0.0;
        }
        rates::expected(keys, self.layout.fingerprint_bits())
    }

    /// Returns the share of `samples` random hashes, drawn with `seed`, that the filter claims to contain. The hashes
    /// are those of the host.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error> {
        share_of_hashes((samples, seed), SAMPLES, |hashes| self.count_contained_bulk(hashes))
    }
}
