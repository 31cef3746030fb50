//! Which keys have a value, answered in device memory or as one `bool` per key.

use warpset_base::filter::LengthMismatch;
use warpset_gpu::batch::{Answers, Stencil};
use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};

use crate::Error;
use crate::error::one_per_key;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, LookupMethod};

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// [`Dictionary::contains_bulk`] into a slice of the same length.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn contains_bulk_into(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "places for answers", answers.len())?;
        let found = self.contains_bitmap_bulk(keys)?;
        answers.iter_mut().zip(found.iter()).for_each(|(answer, found)| *answer = found);
        Ok(())
    }

    /// Whether each key on the device has a value: answer `i` becomes 1 or 0. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer bytes than keys; memory of another device is refused.
    pub fn contains_device(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let method = self.method_for(keys.len(), || self.ascend(keys))?;
        // SAFETY: all memory is borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.contains_async_with(stream, keys, answers, method) })
    }

    /// Queues what [`Dictionary::contains_device`] does.
    ///
    /// # Safety
    /// As for [`Dictionary::get_async`].
    ///
    /// # Errors
    /// As for [`Dictionary::contains_device`].
    pub unsafe fn contains_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.contains_async_with(stream, keys, answers, LookupMethod::Auto) }
    }

    /// [`Dictionary::contains_async`] by a method.
    ///
    /// # Safety
    /// As for [`Dictionary::get_async`].
    ///
    /// # Errors
    /// As for [`Dictionary::contains_device`].
    pub unsafe fn contains_async_with(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        mut answers: DeviceSliceMut<'_, u8>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let n = keys.len();
        self.device.expect_same(answers.device(), "a lookup in a dictionary")?;
        let bytes = Answers::bytes(answers.reborrow(), n)?;
        let mut found = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        // SAFETY: there is room for a bit and for a byte per key; the bits are freed in the order of the stream; the
        // caller answers for keys, answers and the dictionary.
        unsafe {
            self.contains_bitmap_async_with(stream, keys, found.as_mut_slice(), method)?;
            // A byte of 1 stays where the key was found.
            stream.fill_bytes(answers.slice_mut(..n), 1)?;
            Ok(Stencil::from(&found).apply(stream, bytes, n)?)
        }
    }

    /// Whether keys on the device have a value: bit `i % 64` of word `i / 64` answers for key `i`; bits past the last
    /// key become zero. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer bits than keys; memory of another device is refused.
    pub fn contains_bitmap_device(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let method = self.method_for(keys.len(), || self.ascend(keys))?;
        // SAFETY: all memory is borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.contains_bitmap_async_with(stream, keys, answers, method) })
    }

    /// Queues what [`Dictionary::contains_bitmap_device`] does.
    ///
    /// # Safety
    /// As for [`Dictionary::get_async`].
    ///
    /// # Errors
    /// As for [`Dictionary::contains_bitmap_device`].
    pub unsafe fn contains_bitmap_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.contains_bitmap_async_with(stream, keys, answers, LookupMethod::Auto) }
    }

    /// [`Dictionary::contains_bitmap_async`] by a method.
    ///
    /// # Safety
    /// As for [`Dictionary::get_async`].
    ///
    /// # Errors
    /// As for [`Dictionary::contains_bitmap_device`].
    pub unsafe fn contains_bitmap_async_with(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        mut answers: DeviceSliceMut<'_, u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let words = keys.len().div_ceil(64);
        LengthMismatch::unless_room("words of answers", words, answers.len())?;
        for device in [keys.device(), answers.device(), stream.device()] {
            self.device.expect_same(device, "a lookup in a dictionary")?;
        }
        // Values of no words are not written.
        let values = answers.global_mut().cast();
        // SAFETY: there is room; the caller answers for the rest.
        unsafe { self.queue_lookup(stream, method, keys, values, 0, answers.slice_mut(..words)) }
    }
}
