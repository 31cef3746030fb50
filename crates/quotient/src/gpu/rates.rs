//! Rates of false positives, and how many different fingerprints there are.

use warpset_base::filter::Filter;
use warpset_core::hash;

use super::{DeviceSlotKind, QuotientFilter};
use crate::{Error, Hashed, rates};

/// Hashes that are asked at a time.
const SAMPLES: u64 = 1 << 22;

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// How many different fingerprints are stored.
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

    /// The rate of false positives of the filter as it is: the share of all fingerprints that are stored. Exact, if the
    /// hashes of the keys asked for are uniform.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn fpr(&self) -> Result<f64, Error> {
        if self.layout.exact {
            return Ok(0.0);
        }
        Ok(rates::of_distinct(self.distinct()?, self.layout.fingerprint_bits()))
    }

    /// The rate of false positives to expect, were `keys` different keys in the filter.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        if self.layout.exact {
            return 0.0;
        }
        rates::expected(keys, self.layout.fingerprint_bits())
    }

    /// The fraction of `samples` random hashes, drawn with `seed`, that the filter claims to contain: the same hashes
    /// as on the host.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn measured_fpr(&self, samples: u64, seed: u64) -> Result<f64, Error> {
        let spread = hash::spread_seed(seed);
        let (mut hits, mut done) = (0, 0);
        while done < samples {
            let n = SAMPLES.min(samples - done);
            let hashes: Vec<Hashed> = (done..done + n).map(|i| Hashed(hash::mix_spread(i, spread))).collect();
            hits += self.count_contained_bulk(&hashes)?;
            done += n;
        }
        Ok(hits as f64 / samples.max(1) as f64)
    }
}
