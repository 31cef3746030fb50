//! Merging filters.

use warpset_gpu::Stream;

use super::StandardQuotientFilter;
use super::build::lay_out;
use super::fingerprints::Fingerprints;
use crate::{Error, Layout};

impl StandardQuotientFilter {
    /// Writes the filter anew with these fingerprints besides its own.
    pub(super) fn add(&mut self, stream: &Stream, batch: &Fingerprints) -> Result<u64, Error> {
        let before = self.items;
        let mut all = self.extract(stream)?.joined(batch, &self.layout, stream)?;
        all.sort(&self.layout, stream)?;
        *self = lay_out(&self.device, stream, self.layout, &all)?;
        Ok(self.items - before)
    }

    /// Adds all fingerprints of a filter on the same device, of any number of slots, container and load limit; its
    /// fingerprints must have as many bits.
    pub fn merge(&mut self, other: &StandardQuotientFilter) -> Result<(), Error> {
        let incompatible = |field, left, right| Err(Error::Incompatible { field, left, right });
        let (ours, theirs) = (&self.layout, &other.layout);
        if ours.seed != theirs.seed {
            return incompatible("seed", ours.seed, theirs.seed);
        }
        if ours.duplicates != theirs.duplicates {
            return incompatible("duplicates kept", ours.keeps_duplicates() as u64, theirs.keeps_duplicates() as u64);
        }
        if ours.fingerprint_bits() != theirs.fingerprint_bits() {
            let bits = |layout: &Layout| layout.fingerprint_bits() as u64;
            return incompatible("fingerprint bits", bits(ours), bits(theirs));
        }
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        let theirs = other.extract(&stream)?;
        self.add(&stream, &theirs)?;
        Ok(())
    }
}
