//! Dictionaries made at once: sorted by one radix sort, into one level.

use warpset_gpu::{Device, DeviceSlice, Stream};

use super::elements::DeviceElements;
use super::{DeviceKey, DeviceValue, Form, Ordered, batch};
use crate::Error;
use crate::error::one_per_key;

impl<K: DeviceKey, V: DeviceValue, F: Form> Ordered<K, V, F> {
    /// From host memory.
    pub(crate) fn build_from_slices(device: &Device, form: F, keys: &[K], values: &[V]) -> Result<Self, Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let empty = Ordered::empty(device, form)?;
        empty.filled(keys.len(), |stream| {
            let (keys, values) = (stream.from_slice(keys)?, stream.from_slice(V::stored(values))?);
            // SAFETY: the memory is freed in the order of the stream.
            unsafe { batch::insertions::<K, V>(stream, keys.as_slice(), values.as_slice()) }
        })
    }

    /// From device memory.
    pub(crate) fn build_from_device(
        device: &Device,
        form: F,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V::Stored>,
    ) -> Result<Self, Error> {
        let empty = Ordered::empty(device, form)?;
        empty.check_batch(keys, values)?;
        // SAFETY: keys and values are borrowed until the work has been waited for.
        empty.filled(keys.len(), |stream| unsafe { batch::insertions(stream, keys, values) })
    }

    /// An empty dictionary with the `len` elements that `queue` sorts.
    fn filled(
        mut self,
        len: usize,
        queue: impl FnOnce(&Stream) -> Result<DeviceElements<K, V>, Error>,
    ) -> Result<Self, Error> {
        if len > 0 {
            let live = self.waiting(|stream| {
                let sorted = queue(stream)?;
                self.merged_live(stream, Some(&sorted))
            })?;
            self.set_live(live)?;
        }
        Ok(self)
    }
}
