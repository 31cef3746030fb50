//! Builds and updates by methods of other crates, such as the yardsticks in `benches/papers/quotient`. Any release may
//! change this module.

use warpset_gpu::{DeviceVec, Stream};

pub use super::build::LayOut;
pub use super::fingerprints::Fingerprints;
pub use super::launch::{grid, parameters, zeroed_words};
pub use super::scan::scan;
use super::{DeviceBuilder, DeviceKeys, DeviceSlotKind, QuotientFilter, UpdateMethod};
pub use crate::cpu::rewrite::check_fit;
pub use crate::slot_kind::Change;
use crate::{Error, Key, Layout};

/// Method of an update. It changes the words of a filter of this layout, which has no counters, by a batch, and
/// returns two numbers: fingerprints stored or removed, and fingerprints without a slot. It waits.
pub struct Update<'a> {
    /// Whether the batch has to ascend.
    pub sorts: bool,
    /// The method.
    #[expect(clippy::type_complexity, reason = "named by the struct")]
    pub change: &'a dyn Fn(&Stream, &Layout, &mut DeviceVec<u64>, &Fingerprints, Change) -> Result<(u64, u64), Error>,
}

impl<S: DeviceSlotKind> DeviceBuilder<S> {
    /// Builds a filter like [`DeviceBuilder::build_from`], by another method.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from`].
    #[doc(hidden)]
    pub fn build_from_by<K: Key>(&self, keys: &[K], lay_out: LayOut<'_>) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_keys(&self.device, self.layout()?, keys, lay_out)
    }

    /// Builds a filter like [`DeviceBuilder::build_from_device`], by another method.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from_device`].
    #[doc(hidden)]
    pub fn build_from_device_by<K: DeviceKeys>(
        &self,
        keys: K,
        lay_out: LayOut<'_>,
    ) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_device_keys(&self.device, self.layout()?, keys, lay_out)
    }
}

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Inserts or removes keys on the device by another method. Where [`UpdateMethod::InPlace`] cannot be taken, and
    /// where the batch does not fit, the filter is rebuilt.
    ///
    /// # Errors
    /// The errors of [`QuotientFilter::insert_device_with`].
    #[doc(hidden)]
    pub fn change_device_by<K: DeviceKeys>(
        &mut self,
        keys: K,
        change: Change,
        method: Update<'_>,
    ) -> Result<u64, Error> {
        self.change_by_keys(keys, change, |filter, stream, mut batch| {
            if filter.method_for(batch.len(), change, UpdateMethod::InPlace) == UpdateMethod::InPlace {
                if method.sorts {
                    batch = batch.sorted(&filter.layout, stream)?;
                }
                let changed = filter.change_words(stream, batch.len(), change, |filter| {
                    let (done, failed) = (method.change)(stream, &filter.layout, &mut filter.words, &batch, change)?;
                    filter.items = if change == Change::Insert { filter.items + done } else { filter.items - done };
                    Ok((failed == 0).then_some(done))
                })?;
                if let Some(changed) = changed {
                    return Ok(changed);
                }
            }
            filter.update(stream, batch, change, UpdateMethod::Rebuild)
        })
    }
}
