//! Keys on the device under a stencil. (For keys on the host, the traits [`Filter`](crate::Filter),
//! [`Insert`](crate::Insert) and [`Remove`](crate::Remove) have methods of these names.)

use warpset_base::filter::same_length;
use warpset_gpu::batch::{Answers, SelectedKeys, Stencil};
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_primitives::select::select_keys_device;

use super::lookup::LOOKUP;
use super::{DeviceKeys, DeviceSlotKind, LookupMethod, QuotientFilter, hashing};
use crate::Error;

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Looks up `keys` under a stencil, bytes or bits: answer `i` becomes 1 if key `i` may be in the filter and is meant, else 0.
    ///
    /// All keys are looked up, and then the answers masked, which adds a pass over one bit or byte per key. Where a stencil
    /// means few keys of a batch, select those first ([`warpset_primitives::select`]).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one answer per key, or the stencil has fewer places; memory of another device
    /// is refused.
    pub fn contains_if_device<'s, K: DeviceKeys>(
        &self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys, stencil and answers are borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.contains_if_async(stream, keys, stencil, answers) })
    }

    /// Queues [`QuotientFilter::contains_if_device`].
    ///
    /// # Safety
    /// As for [`QuotientFilter::contains_async`]; the stencil stays as the keys do.
    ///
    /// # Errors
    /// As for [`QuotientFilter::contains_if_device`].
    pub unsafe fn contains_if_async<'s, K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        same_length(keys.count(), answers.len())?;
        let device = answers.device();
        let answers = Answers::bytes(answers, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.look_up_all_if(stream, keys, stencil.into(), device, answers) }
    }

    /// [`QuotientFilter::contains_if_device`] as one bit per key: bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    /// As there, if there are fewer bits than keys.
    pub fn contains_if_bitmap_device<'s, K: DeviceKeys>(
        &self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys, stencil and answers are borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.contains_if_bitmap_async(stream, keys, stencil, answers) })
    }

    /// Queues [`QuotientFilter::contains_if_bitmap_device`].
    ///
    /// # Safety
    /// As for [`QuotientFilter::contains_if_async`].
    ///
    /// # Errors
    /// As for [`QuotientFilter::contains_if_bitmap_device`].
    pub unsafe fn contains_if_bitmap_async<'s, K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let device = answers.device();
        let answers = Answers::bits(answers, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.look_up_all_if(stream, keys, stencil.into(), device, answers) }
    }

    /// # Safety
    /// As for [`QuotientFilter::contains_if_async`]; `answers` has room, on the device `there`.
    unsafe fn look_up_all_if<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: Stencil<'_>,
        there: &Device,
        answers: Answers,
    ) -> Result<(), Error> {
        self.expect_stencil(keys, stencil, LOOKUP)?;
        // SAFETY: the caller's promise.
        unsafe {
            self.look_up_all(stream, keys, there, answers, LookupMethod::Automatic)?;
            Ok(stencil.apply(stream, answers, keys.count())?)
        }
    }

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
        self.expect_stencil(keys, stencil, "changing a quotient filter")?;
        if keys.count() == 0 {
            return Ok(None);
        }
        self.device.expect_same(keys.device(), "changing a quotient filter")?;
        Ok(Some(select_keys_device(keys, &hashing(&self.layout), stencil)?))
    }

    fn expect_stencil<K: DeviceKeys>(
        &self,
        keys: K,
        stencil: Stencil<'_>,
        operation: &'static str,
    ) -> Result<(), Error> {
        stencil.expect_for(keys.count())?;
        if keys.count() > 0 {
            self.device.expect_same(stencil.device(), operation)?;
        }
        Ok(())
    }
}
