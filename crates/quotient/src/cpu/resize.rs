//! Filters rewritten in another layout.

use warpset_core::quotient::slots::Container;

use super::rewrite::lay_out;
use super::{QuotientFilter, fingerprint_source};
use crate::resize::resizes;
use crate::slot_kind::{Copies, SlotKind};
use crate::standard::Standard;
use crate::{Error, Layout};

resizes! { [S: SlotKind] QuotientFilter<S>, S, |filter| filter.layout; }

impl<S: SlotKind> QuotientFilter<S> {
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
