//! Which keys have a value, answered in device memory or as one `bool` per key.

use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};

use super::{DeviceKey, DeviceValue, LookupMethod, Ordered};
use crate::Error;
use crate::error::one_per_key;

impl<K: DeviceKey, V: DeviceValue, F> Ordered<K, V, F> {
    /// [`Ordered::contains_bulk`] into a slice of the same length.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn contains_bulk_into(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "places for answers", answers.len())?;
        let found = self.contains_bitmap_bulk(keys)?;
        answers.iter_mut().zip(found.iter()).for_each(|(answer, found)| *answer = found);
        Ok(())
    }

    /// Whether keys on the device have a value: bit `i % 64` of word `i / 64` of `found` answers for key `i`. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; memory of another device is refused.
    pub fn contains_device(&self, keys: DeviceSlice<'_, K>, found: DeviceSliceMut<'_, u64>) -> Result<(), Error> {
        let method = self.method_for(keys.len(), || self.ascend(keys))?;
        // SAFETY: all memory is borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.contains_async_with(stream, keys, found, method) })
    }

    /// Queues what [`Ordered::contains_device`] does.
    ///
    /// # Safety
    /// As for [`Ordered::get_async`].
    ///
    /// # Errors
    /// As for [`Ordered::contains_device`].
    pub unsafe fn contains_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.contains_async_with(stream, keys, found, LookupMethod::Auto) }
    }

    /// [`Ordered::contains_async`] by a method.
    ///
    /// # Safety
    /// As there.
    ///
    /// # Errors
    /// As there.
    pub unsafe fn contains_async_with(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        mut found: DeviceSliceMut<'_, u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        if found.len() != keys.len().div_ceil(64) {
            return Err(Error::LengthMismatch { keys: keys.len(), what: "words of answers", found: found.len() });
        }
        for device in [keys.device(), found.device(), stream.device()] {
            self.device.expect_same(device, "a lookup in a dictionary")?;
        }
        // Values of no words are not written.
        let values = found.global_mut().cast();
        // SAFETY: lengths were checked; the caller answers for the rest.
        unsafe { self.queue_lookup(stream, method, keys, values, 0, found) }
    }
}
