//! The same fingerprints in another layout.

use warpset_core::quotient::slots::Container;

use super::{DeviceSlotKind, QuotientFilter, kernels};
use crate::{Error, Layout, Standard};

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// The same fingerprints with quotients of another width: one more quotient bit is one remainder bit less, so that the
    /// rate of false positives stays, and twice as many keys fit.
    pub fn resized(&self, quotient_bits: u32) -> Result<QuotientFilter<S>, Error> {
        self.rewritten(self.layout.with_quotient_bits(quotient_bits)?)
    }

    /// Makes room for twice as many keys: moves one bit from the remainders to the quotients.
    pub fn double(&mut self) -> Result<(), Error> {
        *self = self.resized(self.layout.quotient_bits() + 1)?;
        Ok(())
    }

    /// Halves the number of slots: moves one bit from the quotients to the remainders.
    pub fn halve(&mut self) -> Result<(), Error> {
        *self = self.resized(self.layout.quotient_bits() - 1)?;
        Ok(())
    }

    /// The same fingerprints, of as many bits, in another layout.
    fn rewritten(&self, layout: Layout) -> Result<QuotientFilter<S>, Error> {
        let stream = self.ready_stream()?;
        if layout.is_counted() {
            return QuotientFilter::from_counts(&stream, layout, self.extract_counts(&stream)?);
        }
        self.device.with_kernels(&kernels::of_rewrite::<S>(&layout, self.items), || {
            let all = self.extract(&stream)?;
            QuotientFilter::lay_out(&stream, layout, &all, S::BuildMethod::default())
        })
    }
}

impl QuotientFilter<Standard> {
    /// The same fingerprints in another container.
    pub fn with_container(&self, container: Container) -> Result<QuotientFilter<Standard>, Error> {
        self.rewritten(Layout { container, ..self.layout })
    }
}
