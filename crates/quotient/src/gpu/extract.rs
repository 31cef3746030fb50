//! Stored fingerprints in ascending order (algorithm 8 of the paper).

use warpset_gpu::{DeviceVec, Stream};

use super::fingerprints::Fingerprints;
use super::{DeviceSlotKind, QuotientFilter};
use crate::{Error, Layout};

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Returns the stored fingerprints in ascending order.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn fingerprints(&self) -> Result<Vec<u64>, Error> {
        Ok(self.fingerprints_device()?.to_vec()?)
    }

    /// Returns the stored fingerprints in ascending order, in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn fingerprints_device(&self) -> Result<DeviceVec<u64>, Error> {
        let stream = self.ready_stream()?;
        if self.layout.is_counted() {
            return self.counted_fingerprints(&stream);
        }
        let all = self.extract_wide(&stream)?;
        stream.synchronize()?;
        Ok(all.into_wide())
    }

    /// Queues the extraction of all fingerprints, of a filter without counters.
    pub(crate) fn extract(&self, stream: &Stream) -> Result<Fingerprints, Error> {
        self.extract_for(&self.layout, stream, 0)
    }

    /// Queues the extraction as fingerprints of a layout, `dropped` bits shorter.
    pub(super) fn extract_for(&self, layout: &Layout, stream: &Stream, dropped: u32) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::alloc(layout, stream, self.items as usize)?;
        self.extract_into(stream, dropped, &mut all)?;
        Ok(all)
    }

    /// Queues the extraction in 64-bit words.
    pub(super) fn extract_wide(&self, stream: &Stream) -> Result<Fingerprints, Error> {
        let mut all = Fingerprints::Wide(stream.alloc_uninit(self.items as usize)?);
        self.extract_into(stream, 0, &mut all)?;
        Ok(all)
    }

    /// Queues the extraction of all fingerprints, `dropped` bits shorter, into a vector with a place for each.
    fn extract_into(&self, stream: &Stream, dropped: u32, all: &mut Fingerprints) -> Result<(), Error> {
        if self.items == 0 {
            return Ok(());
        }
        // SAFETY: the filter is sound and borrowed; there is a place for each item, in a vector that is the caller's
        // alone and is freed in the order of the stream.
        unsafe { S::extract(stream, &self.layout, self.words.global(), self.items, dropped, all) }
    }
}
