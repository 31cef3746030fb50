//! Lookups, counts and ranges of the published structure on a device.

use std::ops::RangeBounds;
use warpset_base::filter::LengthMismatch;

use warpset_gpu::{DeviceSlice, DeviceSliceMut, Stream};

use super::super::cpu::bounds;
use super::super::element::PairValue;
use super::super::query::{Listed, LookupMethod};
use super::{DeviceKey, Lsm, ordered};
use crate::Error;
use crate::error::one_per_key;
use warpset_base::bitmap::Bitmap;
use warpset_lsm::Ranges;
use warpset_lsm::gpu::DeviceRanges;

/// Queries.
impl<K: DeviceKey<V>, V: PairValue> Lsm<K, V> {
    /// Returns the values of keys, by the individual approach.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error> {
        self.get_bulk_with(keys, LookupMethod::Individual)
    }

    /// Returns the values of keys.
    ///
    /// # Errors
    /// [`Error::Gpu`]; the bulk approach takes at most 2^32 keys.
    pub fn get_bulk_with(&self, keys: &[K], method: LookupMethod) -> Result<Vec<Option<V>>, Error> {
        let queries = self.stream.from_slice(keys)?;
        let mut values = self.stream.alloc_uninit::<V>(keys.len())?;
        let mut found = self.stream.alloc_uninit::<u64>(keys.len().div_ceil(64))?;
        self.get_device_with(queries.as_slice(), values.as_mut_slice(), found.as_mut_slice(), method)?;
        let found = Bitmap::from_words(found.to_vec()?, keys.len());
        Ok(found.iter().zip(values.to_vec()?).map(|(found, value)| found.then_some(value)).collect())
    }

    /// Whether each key has a value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        Ok(self.get_bulk(keys)?.iter().map(Option::is_some).collect())
    }

    /// Looks up `keys`: bit `i % 64` of word `i / 64` of `found` says whether key `i` has a value. Value `i` is that
    /// value, or zero. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`]; memory of another device is refused.
    pub fn get_device_with(
        &self,
        keys: DeviceSlice<'_, K>,
        values: DeviceSliceMut<'_, V>,
        found: DeviceSliceMut<'_, u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        self.device.synchronize()?;
        // SAFETY: all memory is borrowed until the stream has been waited for.
        let queued = unsafe { self.get_async_with(&self.stream, keys, values, found, method) };
        self.stream.synchronize()?;
        queued
    }

    /// Queues a lookup like [`Lsm::get_device_with`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the dictionary is not dropped, and is changed only by work that comes after it on the stream;
    /// - `keys`, `values` and `found` stay allocated, nothing writes the keys, and nothing else accesses the others.
    ///
    /// # Errors
    /// The errors of [`Lsm::get_device_with`].
    pub unsafe fn get_async_with(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSliceMut<'_, V>,
        found: DeviceSliceMut<'_, u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        one_per_key(keys.len(), "places for values", values.len())?;
        if found.len() != keys.len().div_ceil(64) {
            return Err(LengthMismatch {
                what: "words of answers",
                needed: keys.len().div_ceil(64),
                found: found.len(),
            }
            .into());
        }
        let devices = [keys.device(), values.device(), found.device(), stream.device()];
        self.expect_here(devices, "a lookup in a dictionary")?;
        if keys.is_empty() {
            return Ok(());
        }
        // SAFETY: the caller keeps what the work uses until `stream` has passed it; lengths were compared above.
        unsafe { ordered(stream, &self.stream, |on| self.tree.look_up(on, keys, values, found, method)) }
    }

    /// Counts the keys of each range that have a value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn count_range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Vec<u64>, Error> {
        let (lows, highs) = bounds(ranges);
        let (lows, highs) = (self.stream.from_slice(&lows)?, self.stream.from_slice(&highs)?);
        let mut counts = self.stream.alloc_uninit(ranges.len())?;
        self.count_range_device(lows.as_slice(), highs.as_slice(), counts.as_mut_slice())?;
        Ok(counts.to_vec()?)
    }

    /// Counts the keys from each of `lows` to that of `highs` that have a value. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`]; memory of another device is refused.
    pub fn count_range_device(
        &self,
        lows: DeviceSlice<'_, K>,
        highs: DeviceSlice<'_, K>,
        counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        one_per_key(lows.len(), "ends of ranges", highs.len())?;
        one_per_key(lows.len(), "places for counts", counts.len())?;
        self.expect_here([lows.device(), highs.device(), counts.device()], "a count in a dictionary")?;
        // SAFETY: one low, one high and one count per range, checked above.
        self.waiting(|on| unsafe { self.tree.count(on, (lows, highs), counts) })
    }

    /// Returns the keys of each range that have a value, with their values.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error> {
        let (lows, highs) = bounds(ranges);
        let (lows, highs) = (self.stream.from_slice(&lows)?, self.stream.from_slice(&highs)?);
        let DeviceRanges { offsets, keys, values } = self.range_device(lows.as_slice(), highs.as_slice())?;
        Ok(Ranges { offsets: offsets.to_vec()?, keys: keys.to_vec()?, values: values.to_vec()? })
    }

    /// Returns the elements from each of `lows` to that of `highs`, in new memory. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`]; memory of another device is refused.
    pub fn range_device(
        &self,
        lows: DeviceSlice<'_, K>,
        highs: DeviceSlice<'_, K>,
    ) -> Result<DeviceRanges<K, V>, Error> {
        one_per_key(lows.len(), "ends of ranges", highs.len())?;
        self.expect_here([lows.device(), highs.device()], "a range of a dictionary")?;
        // SAFETY: one low and one high per range, checked above.
        let Listed { offsets, pairs } = self.waiting(|on| unsafe { self.tree.range(on, (lows, highs)) })?;
        Ok(DeviceRanges { offsets, keys: pairs.keys, values: pairs.values })
    }

    /// Counts the keys that have a value. Each call runs the first three steps of a cleanup.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn len(&self) -> Result<u64, Error> {
        Ok(self.waiting(|on| self.tree.valid_elements(on))?.1 as u64)
    }

    /// Whether no key has a value.
    ///
    /// # Errors
    /// The errors of [`Lsm::len`].
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.len()? == 0)
    }
}
