//! Filters rewritten in another layout.

use warpset_core::quotient::slots::Container;

use super::rewrite::lay_out;
use super::{QuotientFilter, fingerprint_source};
use crate::slot_kind::{Copies, SlotKind};
use crate::standard::Standard;
use crate::{Error, Layout};

impl<S: SlotKind> QuotientFilter<S> {
    /// Builds a filter of these fingerprints with quotients of another width. One more quotient bit is one remainder
    /// bit less, so the rate of false positives stays, and twice as many keys fit.
    ///
    /// # Errors
    /// [`Error::InvalidBits`] if there are no fingerprints of that form, [`Error::Full`] or
    /// [`Error::OverflowRegionFull`] if they do not all fit, [`Error::OutOfMemory`].
    pub fn resized(&self, quotient_bits: u32) -> Result<QuotientFilter<S>, Error> {
        self.rewritten(self.layout.with_quotient_bits(quotient_bits, S::MAX_LOAD)?)
    }

    /// Doubles the number of slots: moves one bit from the remainders to the quotients.
    ///
    /// # Errors
    /// [`Error::CannotDouble`] if remainders have one bit, [`Error::OutOfMemory`]; the filter is unchanged then.
    pub fn double(&mut self) -> Result<(), Error> {
        *self = self.rewritten(self.layout.doubled(S::MAX_LOAD)?)?;
        Ok(())
    }

    /// Halves the number of slots: moves one bit from the quotients to the remainders.
    ///
    /// # Errors
    /// [`Error::CannotHalve`] if there are no fingerprints of that form, [`Error::Full`] or
    /// [`Error::OverflowRegionFull`] if they do not all fit, [`Error::OutOfMemory`]; the filter is unchanged then.
    pub fn halve(&mut self) -> Result<(), Error> {
        *self = self.rewritten(self.layout.halved(S::MAX_LOAD)?)?;
        Ok(())
    }

    /// Builds a filter of these fingerprints in another layout with equally long fingerprints.
    pub(crate) fn rewritten(&self, layout: Layout) -> Result<QuotientFilter<S>, Error> {
        if layout.is_counted() {
            lay_out(layout, &fingerprint_source::stored::<S, Copies>(self.view(), 0))
        } else {
            lay_out(layout, &fingerprint_source::stored::<S, u64>(self.view(), 0))
        }
    }
}

impl QuotientFilter<Standard> {
    /// Builds a filter of these fingerprints in another container.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    pub fn with_container(&self, container: Container) -> Result<QuotientFilter<Standard>, Error> {
        self.rewritten(Layout { container, ..self.layout })
    }
}
