//! Removal by keys on the device under a stencil. The trait [`Remove`](crate::Remove) has it for keys on the host, and
//! [`DeviceInsert`](warpset_primitives::DeviceInsert) for insertion.

use warpset_gpu::batch::Stencil;
use warpset_primitives::select::select_keys_device;

use super::launch::hashing;
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter};
use crate::Error;

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Removes the fingerprints of the keys on the device that the stencil, bytes or bits, selects, like
    /// [`QuotientFilter::remove_device`]. The keys are selected first, as by
    /// [`DeviceInsert::insert_if_device`](warpset_primitives::DeviceInsert::insert_if_device).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the stencil has fewer places than there are keys; the errors of
    /// [`QuotientFilter::remove_device`]; memory of another device is refused.
    pub fn remove_if_device<'s, K: DeviceKeys>(
        &mut self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
    ) -> Result<u64, Error> {
        let selected = select_keys_device(keys, &hashing(&self.layout), stencil.into())?;
        self.remove_device(selected.as_keys())
    }
}
