//! Filters built and changed as the paper does, as yardsticks.

use warpset_gpu::{DeviceVec, Stream};

use super::fingerprints::Fingerprints;
use super::launch::zeroed_words;
use super::scan::scan;
use super::{DeviceBuilder, DeviceKeys, DeviceSlotKind, QuotientFilter};
use crate::slot_kind::Change;
use crate::{Error, Key, Layout};

impl<S: DeviceSlotKind> DeviceBuilder<S> {
    /// [`DeviceBuilder::build_from`] by a method of choice; all give the same bytes.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from`].
    pub fn build_from_with<K: Key>(&self, keys: &[K], method: S::BuildMethod) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_keys(&self.device, self.layout()?, keys, &by::<S>(method))
    }

    /// [`DeviceBuilder::build_from_device`] by a method of choice; all give the same bytes.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from_device`].
    pub fn build_from_device_with<K: DeviceKeys>(
        &self,
        keys: K,
        method: S::BuildMethod,
    ) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_device_keys(&self.device, self.layout()?, keys, &by::<S>(method))
    }
}

/// How a method lays out ascending fingerprints.
fn by<S: DeviceSlotKind>(
    method: S::BuildMethod,
) -> impl Fn(&Stream, &Layout, &Fingerprints) -> Result<(DeviceVec<u64>, u64), Error> {
    move |stream, layout, sorted| S::lay_out_by(stream, layout, sorted, method)
}

/// Words in which ascending fingerprints are stored by the paper's insertions into an empty filter, and how many there
/// are.
pub(crate) fn by_insertions<S: DeviceSlotKind>(
    stream: &Stream,
    layout: &Layout,
    sorted: &Fingerprints,
) -> Result<(DeviceVec<u64>, u64), Error> {
    let n = sorted.len();
    if n > 0 && n < u32::MAX as usize && layout.slots() < S::MOST_SLOTS_IN_PLACE {
        let unique;
        let sorted = if n as u64 > layout.limit {
            // The filter is a set, or the caller would have refused them. What does not fit would take a round each.
            unique = sorted.unique(layout, stream)?;
            crate::cpu::rewrite::check_fit(layout, unique.len() as u64, 0)?;
            &unique
        } else {
            sorted
        };
        let mut words = zeroed_words(layout, stream)?;
        let (done, failed) = S::change_as_paper(stream, layout, &mut words, sorted, Change::Insert)?;
        if failed == 0 && done <= layout.limit {
            return Ok((words, done));
        }
    }
    // It says why they do not fit.
    scan::<S>(stream, layout, sorted)
}

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Changes this filter's words as the paper does. Returns by how many fingerprints it changed; `None` if the batch
    /// does not fit. Then, and on an error, part of it may be stored.
    pub(super) fn change_as_paper(
        &mut self,
        stream: &Stream,
        batch: &Fingerprints,
        change: Change,
    ) -> Result<Option<u64>, Error> {
        let (done, failed) = S::change_as_paper(stream, &self.layout, &mut self.words, batch, change)?;
        self.items = if change == Change::Insert { self.items + done } else { self.items - done };
        Ok((failed == 0).then_some(done))
    }
}

#[cfg(test)]
mod tests;
