//! Filters rewritten in another layout.

use warpset_core::quotient::slots::Container;

use super::{DeviceSlotKind, QuotientFilter};
use crate::resize::resizes;
use crate::{Error, Layout, Standard};

resizes! { [S: DeviceSlotKind] QuotientFilter<S>, S, |filter| filter.layout; }

impl<S: DeviceSlotKind> QuotientFilter<S> {
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
