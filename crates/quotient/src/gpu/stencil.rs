//! Changes by keys on the device under a stencil. (For keys on the host, the traits [`Insert`](crate::Insert) and
//! [`Remove`](crate::Remove) have methods of these names.)

use warpset_gpu::batch::{SelectedKeys, Stencil};
use warpset_primitives::select::select_keys_device;

use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, hashing};
use crate::Error;

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Inserts the keys on the device that the stencil, bytes or bits, means; returns how many more fingerprints are stored
    /// than before.
    ///
    /// They are selected first: that takes memory for all keys, 4 or 8 bytes each (strings: 8), and a pass over keys and
    /// stencil; the insertion is one of as many keys as are meant.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if the stencil has fewer places than there are keys; a stencil of another device; those of
    /// [`QuotientFilter::insert_device`].
    pub fn insert_if_device<'s, K: DeviceKeys>(
        &mut self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
    ) -> Result<u64, Error> {
        match self.meant(keys, stencil.into())? {
            Some(selected) => self.insert_device(selected.as_keys()),
            None => Ok(0),
        }
    }

    /// Removes the fingerprints of the keys on the device that the stencil, bytes or bits, means, as
    /// [`QuotientFilter::remove_device`] does; selects them first, as [`QuotientFilter::insert_if_device`] does.
    ///
    /// # Errors
    /// As for [`QuotientFilter::insert_if_device`].
    pub fn remove_if_device<'s, K: DeviceKeys>(
        &mut self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
    ) -> Result<u64, Error> {
        match self.meant(keys, stencil.into())? {
            Some(selected) => self.remove_device(selected.as_keys()),
            None => Ok(0),
        }
    }

    /// The keys that are meant; `None` if there are no keys.
    fn meant<K: DeviceKeys>(&self, keys: K, stencil: Stencil<'_>) -> Result<Option<SelectedKeys>, Error> {
        stencil.expect_for(keys.count())?;
        if keys.count() == 0 {
            return Ok(None);
        }
        for device in [keys.device(), stencil.device()] {
            self.device.expect_same(device, "changing a quotient filter")?;
        }
        Ok(Some(select_keys_device(keys, &hashing(&self.layout), stencil)?))
    }
}
