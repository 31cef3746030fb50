//! Membership of keys, answered in device memory or as one `bool` per key.

use warpset_base::filter::LengthMismatch;
use warpset_gpu::batch::{Answers, Stencil};
use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};

use crate::Error;
use crate::error::one_per_key;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, LookupMethod};

impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Writes the answers of [`Dictionary::contains_bulk`] to a slice of the same length.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn contains_bulk_into(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "places for answers", answers.len())?;
        let found = self.contains_bitmap_bulk(keys)?;
        answers.iter_mut().zip(found.iter()).for_each(|(answer, found)| *answer = found);
        Ok(())
    }

    /// Tests keys on the device: answer `i` becomes 1 if key `i` has a value, otherwise 0. Waits.
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

    /// Queues the work of [`Dictionary::contains_device`].
    ///
    /// # Safety
    /// The contract of [`Dictionary::get_async`].
    ///
    /// # Errors
    /// The errors of [`Dictionary::contains_device`].
    pub unsafe fn contains_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        // SAFETY: the contract of this function.
        unsafe { self.contains_async_with(stream, keys, answers, LookupMethod::Auto) }
    }

    /// Queues the test as [`Dictionary::contains_async`] does, by a given method.
    ///
    /// # Safety
    /// The contract of [`Dictionary::get_async`].
    ///
    /// # Errors
    /// The errors of [`Dictionary::contains_device`].
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
        // SAFETY: there are a bit and a byte per key; the bits are freed in stream order; keys, answers and the
        // dictionary are covered by the contract of this function.
        unsafe {
            self.contains_bitmap_async_with(stream, keys, found.as_mut_slice(), method)?;
            // A byte remains 1 where the key is found.
            stream.fill_bytes(answers.slice_mut(..n), 1)?;
            Ok(Stencil::from(&found).apply(stream, bytes, n)?)
        }
    }

    /// Tests keys on the device: bit `i % 64` of word `i / 64` is set if key `i` has a value; bits past the last key
    /// become zero. Waits.
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

    /// Queues the work of [`Dictionary::contains_bitmap_device`].
    ///
    /// # Safety
    /// The contract of [`Dictionary::get_async`].
    ///
    /// # Errors
    /// The errors of [`Dictionary::contains_bitmap_device`].
    pub unsafe fn contains_bitmap_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: the contract of this function.
        unsafe { self.contains_bitmap_async_with(stream, keys, answers, LookupMethod::Auto) }
    }

    /// Queues the test as [`Dictionary::contains_bitmap_async`] does, by a given method.
    ///
    /// # Safety
    /// The contract of [`Dictionary::get_async`].
    ///
    /// # Errors
    /// The errors of [`Dictionary::contains_bitmap_device`].
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
        // Values of zero words: none is written.
        let values = answers.global_mut().cast();
        // SAFETY: there is a bit per key; the rest is the contract of this function.
        unsafe { self.queue_lookup(stream, method, keys, values, 0, answers.slice_mut(..words)) }
    }
}
