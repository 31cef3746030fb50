//! Lookups, counts and lists of ranges on the device.

pub(super) mod contains;
pub(super) mod lookup;
pub(super) mod neighbours;
pub(super) mod range_chunks;
pub(super) mod ranges;

use std::ops::RangeBounds;

use warpset_base::filter::LengthMismatch;
use warpset_base::words::in_huge_pages;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, Stream};

use crate::error::one_per_key;
use crate::gpu::wide_values::AnswerBuffer;
use crate::gpu::{DeviceKey, DeviceValue, Dictionary, LookupMethod};
use crate::query::range::ends;
use crate::{Bitmap, Error, Ranges};

/// Elements of several ranges of keys in device memory, one range after the other: the result of
/// [`Dictionary::range_device`].
pub struct DeviceRanges<K: DeviceKey, V: DeviceValue> {
    /// Offset of each range, and the number of all elements at the end.
    pub offsets: DeviceVec<u64>,
    /// Keys, ascending within a range.
    pub keys: DeviceVec<K::Stored>,
    /// Value of each key; empty for values `()`.
    pub values: DeviceVec<V::Stored>,
}

/// Queries from host memory.
impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Returns the values of keys, in the order of the keys.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn get_bulk(&self, keys: &[K]) -> Result<Vec<Option<V>>, Error> {
        let mut values = in_huge_pages(vec![V::NONE; keys.len()]);
        let found = self.get_bulk_into(keys, &mut values)?;
        Ok(found.options(&values))
    }

    /// Writes the values of keys to a slice of the same length, zero for keys without a value, and returns a bit per
    /// key, set if it has a value.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`].
    pub fn get_bulk_into(&self, keys: &[K], values: &mut [V]) -> Result<Bitmap, Error> {
        let mut found = Bitmap::default();
        self.get_bitmap_bulk_into(keys, values, &mut found)?;
        Ok(found)
    }

    /// Writes values as [`get_bulk_into`](Dictionary::get_bulk_into) does, and reuses the memory of an earlier answer:
    /// allocates none on the host if `found` has the same number of keys.
    ///
    /// # Errors
    /// The errors of [`get_bulk_into`](Dictionary::get_bulk_into); then `found` is empty.
    pub fn get_bitmap_bulk_into(&self, keys: &[K], values: &mut [V], found: &mut Bitmap) -> Result<(), Error> {
        one_per_key(keys.len(), "places for values", values.len())?;
        let mut words = std::mem::take(found).into_words();
        words.resize(keys.len().div_ceil(64), 0);
        self.look_up(keys, V::stored_mut(values), &mut words)?;
        *found = Bitmap::from_words(words, keys.len());
        Ok(())
    }

    /// Whether each key has a value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn contains_bulk(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        Ok(self.contains_bitmap_bulk(keys)?.iter().collect())
    }

    /// Returns the answers of [`Dictionary::contains_bulk`] as one bit per key.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn contains_bitmap_bulk(&self, keys: &[K]) -> Result<Bitmap, Error> {
        let mut words = vec![0; keys.len().div_ceil(64)];
        self.look_up(keys, &mut [], &mut words)?;
        Ok(Bitmap::from_words(words, keys.len()))
    }

    /// Counts the keys that have a value.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn count_contained_bulk(&self, keys: &[K]) -> Result<usize, Error> {
        Ok(self.contains_bitmap_bulk(keys)?.count_ones())
    }

    /// Counts the keys of each range that have a value; none if its end is below its start.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn count_range_bulk<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Vec<u64>, Error> {
        let mut counts = in_huge_pages(vec![0; ranges.len()]);
        self.waiting(|stream| {
            let [lows, highs] = upload_ends(stream, ranges)?;
            self.prepare_for_ranges(stream, lows.as_slice(), highs.as_slice())?;
            let mut on_device = stream.alloc_uninit(ranges.len())?;
            // SAFETY: a place for each range; the memory is freed in stream order.
            unsafe {
                let counts = on_device.as_mut_slice();
                self.queue_count(stream, &self.sight(), lows.as_slice(), highs.as_slice(), counts, None)?;
            }
            Ok(stream.download(&on_device, &mut counts)?)
        })?;
        Ok(counts)
    }

    /// Returns the result of [`Dictionary::range_bulk`], with memory for all elements on the device.
    pub(super) fn range_at_once<R: RangeBounds<K> + Sync>(&self, ranges: &[R]) -> Result<Ranges<K, V>, Error> {
        self.waiting(|stream| {
            let [lows, highs] = upload_ends(stream, ranges)?;
            self.prepare_for_ranges(stream, lows.as_slice(), highs.as_slice())?;
            // SAFETY: the memory is freed in stream order.
            let found = unsafe { self.list(stream, lows.as_slice(), highs.as_slice())? };
            let mut offsets = vec![0; found.offsets.len()];
            let (mut keys, mut values) = (vec![K::zeroed(); found.keys.len()], vec![V::NONE; found.keys.len()]);
            stream.download(&found.offsets, &mut offsets)?;
            K::download(stream, found.keys.as_slice(), &mut keys)?;
            stream.download(&found.values, V::stored_mut(&mut values))?;
            Ok(Ranges { offsets, keys, values })
        })
    }
}

/// Queries from device memory.
impl<K: DeviceKey, V: DeviceValue, P> Dictionary<K, V, P> {
    /// Looks up `keys`. Bit `i % 64` of word `i / 64` of `found` is set if key `i` has a value; value `i` is that
    /// value, or zero. For values `()` pass an empty slice.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer places or bits than keys; memory of another device is refused.
    pub fn get_device(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSliceMut<'_, V::Stored>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        self.get_device_with(keys, values, found, LookupMethod::Auto)
    }

    /// Looks up as [`Dictionary::get_device`] does, by a given method.
    ///
    /// # Errors
    /// The errors of [`Dictionary::get_device`].
    pub fn get_device_with(
        &self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSliceMut<'_, V::Stored>,
        found: DeviceSliceMut<'_, u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let method = self.prepare_method(method, keys.len(), || self.ascend(keys))?;
        // SAFETY: all memory is borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.get_async_with(stream, keys, values, found, method) })
    }

    /// Queues the lookup of `keys`, as in [`Dictionary::get_device`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the dictionary is not dropped; it is only queried, or changed by later work on the stream;
    /// - `keys`, `values` and `found` stay allocated, nothing writes the keys, and nothing else accesses the others.
    ///
    /// # Errors
    /// The errors of [`Dictionary::get_device`].
    pub unsafe fn get_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSliceMut<'_, V::Stored>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: the contract of this function.
        unsafe { self.get_async_with(stream, keys, values, found, LookupMethod::Auto) }
    }

    /// Queues the lookup as [`Dictionary::get_async`] does, by a given method.
    ///
    /// # Safety
    /// The contract of [`Dictionary::get_async`].
    ///
    /// # Errors
    /// The errors of [`Dictionary::get_device`].
    pub unsafe fn get_async_with(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
        mut values: DeviceSliceMut<'_, V::Stored>,
        mut found: DeviceSliceMut<'_, u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let words = keys.len().div_ceil(64);
        let needed = if V::WORDS == 0 { 0 } else { keys.len() };
        LengthMismatch::unless_room("places for values", needed, values.len())?;
        LengthMismatch::unless_room("words of answers", words, found.len())?;
        for device in [keys.device(), values.device(), found.device(), stream.device()] {
            self.device.expect_same(device, "a lookup in a dictionary")?;
        }
        let mut answers = AnswerBuffer::<V>::new(stream, values.slice_mut(..needed))?;
        // SAFETY: lengths were checked; the rest is the contract of this function.
        unsafe {
            self.queue_lookup(stream, method, keys, answers.global_mut(), V::WORDS, found.slice_mut(..words))?;
            Ok(answers.finish(stream)?)
        }
    }

    /// Counts the keys that have a value from each of `lows` to the same element of `highs`, both included. Waits.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; memory of another device is refused.
    pub fn count_range_device(
        &self,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
        counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        one_per_key(lows.len(), "ends of ranges", highs.len())?;
        self.waiting(|stream| {
            self.prepare_for_ranges(stream, lows, highs)?;
            // SAFETY: all memory is borrowed until the stream has been waited for.
            unsafe { self.count_range_async(stream, lows, highs, counts) }
        })
    }

    /// Queues the counts of ranges, as in [`Dictionary::count_range_device`].
    ///
    /// # Safety
    /// The contract of [`Dictionary::get_async`].
    ///
    /// # Errors
    /// The errors of [`Dictionary::count_range_device`].
    pub unsafe fn count_range_async(
        &self,
        stream: &Stream,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
        counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        one_per_key(lows.len(), "ends of ranges", highs.len())?;
        LengthMismatch::unless_room("places for counts", lows.len(), counts.len())?;
        for device in [lows.device(), highs.device(), counts.device(), stream.device()] {
            self.device.expect_same(device, "a count in a dictionary")?;
        }
        // SAFETY: lengths were checked; the rest is the contract of this function.
        unsafe { self.queue_count(stream, &self.sight(), lows, highs, counts, None) }
    }

    /// Returns the elements from each of `lows` to the same element of `highs`, both included, in memory of their own.
    /// Waits.
    ///
    /// # Errors
    /// [`Error::RangesTooLarge`]: use [`Dictionary::range_chunks_device`]. [`Error::LengthMismatch`]; memory of another
    /// device is refused.
    pub fn range_device(
        &self,
        lows: DeviceSlice<'_, K::Stored>,
        highs: DeviceSlice<'_, K::Stored>,
    ) -> Result<DeviceRanges<K, V>, Error> {
        one_per_key(lows.len(), "ends of ranges", highs.len())?;
        for device in [lows.device(), highs.device()] {
            self.device.expect_same(device, "a range of a dictionary")?;
        }
        self.waiting(|stream| {
            self.prepare_for_ranges(stream, lows, highs)?;
            // SAFETY: all memory is borrowed until the stream has been waited for.
            unsafe { self.list(stream, lows, highs) }
        })
    }
}

/// Uploads the least and the largest key of each range, in reverse for empty ranges.
pub(super) fn upload_ends<K: DeviceKey>(
    stream: &Stream,
    ranges: &[impl RangeBounds<K>],
) -> Result<[DeviceVec<K::Stored>; 2], Error> {
    let (lows, highs): (Vec<K>, Vec<K>) = ranges.iter().map(|range| ends(range).unwrap_or((K::MAX, K::MIN))).unzip();
    Ok([stream.from_slice(&K::stored(&lows))?, stream.from_slice(&K::stored(&highs))?])
}
