//! Filters rewritten in another layout.

use warpset_core::quotient::slots::Container;

use super::{DeviceSlotKind, QuotientFilter};
use crate::{Error, Layout, Standard};

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Builds a filter of these fingerprints with quotients of another width. One more quotient bit is one remainder
    /// bit less, so the rate of false positives stays, and twice as many keys fit.
    ///
    /// # Errors
    /// [`Error::InvalidBits`] if there are no fingerprints of that form, [`Error::Full`] or
    /// [`Error::OverflowRegionFull`] if they do not all fit; [`Error::Gpu`] if the device fails or has too little
    /// memory.
    pub fn resized(&self, quotient_bits: u32) -> Result<QuotientFilter<S>, Error> {
        self.rewritten(self.layout.with_quotient_bits(quotient_bits, S::MAX_LOAD)?)
    }

    /// Doubles the number of slots: moves one bit from the remainders to the quotients.
    ///
    /// # Errors
    /// [`Error::CannotDouble`] if remainders have one bit; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn double(&mut self) -> Result<(), Error> {
        *self = self.rewritten(self.layout.doubled(S::MAX_LOAD)?)?;
        Ok(())
    }

    /// Halves the number of slots: moves one bit from the quotients to the remainders.
    ///
    /// # Errors
    /// [`Error::CannotHalve`] if there are no fingerprints of that form, and the errors of [`QuotientFilter::resized`];
    /// the filter is unchanged then.
    pub fn halve(&mut self) -> Result<(), Error> {
        *self = self.rewritten(self.layout.halved(S::MAX_LOAD)?)?;
        Ok(())
    }

    /// Builds a filter of these fingerprints in another layout with equally long fingerprints.
    pub(crate) fn rewritten(&self, layout: Layout) -> Result<QuotientFilter<S>, Error> {
        let stream = self.ready_stream()?;
        if layout.is_counted() {
            return QuotientFilter::from_counts(&stream, layout, self.extract_counts(&stream)?);
        }
        QuotientFilter::lay_out(&stream, layout, &self.extract(&stream)?)
    }
}

impl QuotientFilter<Standard> {
    /// Builds a filter of these fingerprints in another container.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn with_container(&self, container: Container) -> Result<QuotientFilter<Standard>, Error> {
        self.rewritten(Layout { container, ..self.layout })
    }
}
