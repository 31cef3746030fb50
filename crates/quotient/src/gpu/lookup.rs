//! Lookups.

use warpset_base::bitmap::Bitmap;
use warpset_base::filter::same_length;
use warpset_gpu::batch::{Answers, Reply, answers_bitmap, answers_count, answers_into};
use warpset_gpu::{Device, DeviceSliceMut, Stream};

use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact, hashing};
use crate::{Error, Key};

/// What lookups are called in errors.
pub(super) const LOOKUP: &str = "a lookup in a quotient filter";

/// How a batch is looked up. Answers are in the order of the keys either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LookupMethod {
    /// The faster one, from measurements (`docs/performance-log.md`): sorted for large batches in filters so full that clusters
    /// are long, else, and where there is no memory for sorting, unsorted.
    #[default]
    Automatic,
    /// One thread per key, in the order of the keys.
    Unsorted,
    /// As in the paper (section IV-A): fingerprints are sorted first, with the places of their keys, so that neighbouring
    /// threads read neighbouring slots. Takes memory for fingerprints and places, twice. Batches of 2^32 keys and more are
    /// looked up unsorted.
    Sorted,
}

/// Lookups of keys on the host.
impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Brings one bit per key to `take`, chunk by chunk in any order; `first` is a multiple of 64.
    fn answer<K: Key>(&self, keys: &[K], mut take: impl FnMut(usize, &[u64])) -> Result<(), Error> {
        if self.layout.exact {
            let (hashes, places) = exact::some_hashes(&self.layout, keys);
            let Some(places) = places else { return self.answer_hashed(&hashes, take) };
            let mut bits = vec![0; hashes.len().div_ceil(64)];
            self.answer_hashed(&hashes, |first, words| bits[first / 64..][..words.len()].copy_from_slice(words))?;
            let mut all = vec![0u64; keys.len().div_ceil(64)];
            for (i, place) in places.into_iter().enumerate() {
                all[place / 64] |= (bits[i / 64] >> (i % 64) & 1) << (place % 64);
            }
            take(0, &all);
            return Ok(());
        }
        self.answer_hashed(keys, take)
    }

    /// The same; no key is an integer of an exact filter.
    fn answer_hashed<K: Key>(&self, keys: &[K], mut take: impl FnMut(usize, &[u64])) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        // Work that the caller queued on streams of their own comes first.
        self.device.synchronize()?;
        self.staging().run(
            keys,
            Reply::Bits,
            |chunk| {
                let (n, answers) = (chunk.range.len(), Answers::bits_at(chunk.replies));
                // SAFETY: there is room for the answers to a chunk; the filter is borrowed until `run` has waited.
                unsafe { S::look_up(self, chunk.stream, chunk.keys, n, answers, LookupMethod::Automatic) }
            },
            |range, words| take(range.start, words),
        )
    }

    /// One answer per key, in the order of the keys.
    pub fn contains_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let mut answers = vec![false; keys.len()];
        self.contains_bulk_into(keys, &mut answers)?;
        Ok(answers)
    }

    /// [`QuotientFilter::contains_bulk`] into a slice of the same length.
    pub fn contains_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), answers.len())?;
        answers_into(answers, |take| self.answer(keys, take))
    }

    /// [`QuotientFilter::contains_bulk`] as one bit per key.
    pub fn contains_bitmap_bulk<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Error> {
        answers_bitmap(keys.len(), |take| self.answer(keys, take))
    }

    /// How many of the keys may be in the filter.
    pub fn count_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
        answers_count(|take| self.answer(keys, take))
    }
}

/// Lookups of keys on the device.
impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Looks up `keys`: answer `i` becomes 1 or 0.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is not one answer per key; memory of another device is refused.
    pub fn contains_device<K: DeviceKeys>(&self, keys: K, answers: DeviceSliceMut<'_, u8>) -> Result<(), Error> {
        self.contains_device_with(keys, answers, LookupMethod::Automatic)
    }

    /// [`QuotientFilter::contains_device`] by a method of choice.
    pub fn contains_device_with<K: DeviceKeys>(
        &self,
        keys: K,
        answers: DeviceSliceMut<'_, u8>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.contains_async_with(stream, keys, answers, method) })
    }

    /// Looks up `keys`: bit `i % 64` of word `i / 64` answers for key `i`; bits past the last key become zero.
    ///
    /// # Errors
    /// As for [`QuotientFilter::contains_device`], if there are fewer bits than keys.
    pub fn contains_bitmap_device<K: DeviceKeys>(
        &self,
        keys: K,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        self.waiting(|stream| unsafe { self.contains_bitmap_async(stream, keys, answers) })
    }

    /// How many of `keys` may be in the filter.
    pub fn count_contained_device<K: DeviceKeys>(&self, keys: K) -> Result<usize, Error> {
        self.count_contained_device_with(keys, LookupMethod::Automatic)
    }

    /// [`QuotientFilter::count_contained_device`] by a method of choice.
    pub fn count_contained_device_with<K: DeviceKeys>(&self, keys: K, method: LookupMethod) -> Result<usize, Error> {
        if keys.count() == 0 {
            return Ok(0);
        }
        let mut count = self.device.alloc_zeroed::<u64>(1)?;
        // SAFETY: filter and keys are borrowed, and the count lives, until the stream has been waited for.
        self.waiting(|stream| unsafe { self.count_contained_async_with(stream, keys, count.as_mut_slice(), method) })?;
        Ok(count.to_vec()?[0] as usize)
    }

    /// Queues the lookup of `keys`: answer `i` becomes 1 or 0.
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter, `keys` and `answers` stay allocated;
    /// - nothing writes the filter or the keys;
    /// - nothing else accesses the answers.
    ///
    /// # Errors
    /// As for [`QuotientFilter::contains_device`].
    pub unsafe fn contains_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.contains_async_with(stream, keys, answers, LookupMethod::Automatic) }
    }

    /// [`QuotientFilter::contains_async`] by a method of choice.
    ///
    /// # Safety
    /// As for [`QuotientFilter::contains_async`].
    pub unsafe fn contains_async_with<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u8>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        same_length(keys.count(), answers.len())?;
        let device = answers.device();
        // SAFETY: the caller's promise is the same.
        unsafe { self.look_up_all(stream, keys, device, Answers::bytes(answers, keys.count())?, method) }
    }

    /// Queues the lookup of `keys`: bit `i % 64` of word `i / 64` answers for key `i`; bits past the last key become zero.
    ///
    /// # Safety
    /// As for [`QuotientFilter::contains_async`].
    ///
    /// # Errors
    /// As for [`QuotientFilter::contains_bitmap_device`].
    pub unsafe fn contains_bitmap_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let device = answers.device();
        let answers = Answers::bits(answers, keys.count())?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.look_up_all(stream, keys, device, answers, LookupMethod::Automatic) }
    }

    /// Queues the lookup of `keys`: adds how many of them may be in the filter to the first word of `count`.
    ///
    /// # Safety
    /// As for [`QuotientFilter::contains_async`]; other such counts may be added to the same word at the same time.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `count` is empty; memory of another device is refused.
    pub unsafe fn count_contained_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise is the same.
        unsafe { self.count_contained_async_with(stream, keys, count, LookupMethod::Automatic) }
    }

    /// [`QuotientFilter::count_contained_async`] by a method of choice.
    ///
    /// # Safety
    /// As for [`QuotientFilter::count_contained_async`].
    pub unsafe fn count_contained_async_with<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        count: DeviceSliceMut<'_, u64>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let device = count.device();
        let answers = Answers::count(count, keys.count())?;
        // SAFETY: the caller's promise is the same.
        unsafe { self.look_up_all(stream, keys, device, answers, method) }
    }

    /// Queues the lookup of `keys`; the answers are in memory of `of_answers`.
    ///
    /// # Safety
    /// As for [`QuotientFilter::contains_async`].
    pub(super) unsafe fn look_up_all<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        of_answers: &Device,
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        for device in [keys.device(), of_answers, stream.device()] {
            self.device.expect_same(device, LOOKUP)?;
        }
        // Sorted fingerprints have no place for a key without one.
        let method = if self.layout.exact { LookupMethod::Unsorted } else { method };
        let hashing = hashing(&self.layout);
        let chunk = keys.at_a_time(&hashing);
        for first in (0..n).step_by(chunk) {
            let part = keys.part(first..n.min(first.saturating_add(chunk)));
            // SAFETY: the caller's promise; scratch is freed in the order of the stream.
            unsafe {
                let hashed = part.kernel_keys(&hashing, stream)?;
                let keys = exact::keys_for(&self.layout, hashed.keys);
                S::look_up(self, stream, keys, part.count(), answers.from(first), method)?;
            }
        }
        Ok(())
    }

    /// Runs `queue` on a stream after everything that was queued on the device, and waits.
    pub(super) fn waiting(&self, queue: impl FnOnce(&Stream) -> Result<(), Error>) -> Result<(), Error> {
        let stream = self.ready_stream()?;
        let queued = queue(&stream);
        stream.synchronize()?;
        queued
    }
}
