//! Lookups: those of every filter ([`lookups!`]), from what brings answers here; and those by a method of choice.

use warpset_gpu::batch::{Answers, Reply};
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_primitives::lookups;

use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact, hashing};
use crate::{Error, Key};

/// What lookups are called in errors.
const LOOKUP: &str = "a lookup in a quotient filter";

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

lookups! {
    [S: DeviceSlotKind] QuotientFilter<S>, DeviceKeys, Error;
}

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
}

/// Lookups of keys on the device by a method of choice.
impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// [`QuotientFilter::contains_device`] by a method of choice.
    pub fn contains_device_with<K: DeviceKeys>(
        &self,
        keys: K,
        answers: DeviceSliceMut<'_, u8>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        self.device.waiting(|stream| unsafe { self.contains_async_with(stream, keys, answers, method) })
    }

    /// [`QuotientFilter::count_contained_device`] by a method of choice.
    pub fn count_contained_device_with<K: DeviceKeys>(&self, keys: K, method: LookupMethod) -> Result<usize, Error> {
        self.device.waiting(|stream| {
            let mut count = stream.alloc_zeroed::<u64>(1)?;
            // SAFETY: filter and keys are borrowed until the stream has been waited for, and the count is freed in its order.
            unsafe { self.count_contained_async_with(stream, keys, count.as_mut_slice(), method)? };
            Ok(stream.download_first(&count)? as usize)
        })
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
        let there = answers.device();
        let answers = Answers::bytes(answers, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.look_up_async(stream, keys, &[there], answers, method) }
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
        if keys.count() == 0 {
            return Ok(());
        }
        let there = count.device();
        let answers = Answers::count(count, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.look_up_async(stream, keys, &[there], answers, method) }
    }

    /// Queues the answers to keys on the device; `others` are the devices of the answers and of what else the caller lends.
    ///
    /// # Safety
    /// As for [`QuotientFilter::contains_async`]; `answers` has room.
    unsafe fn answer_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        others: &[&Device],
        answers: Answers,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.look_up_async(stream, keys, others, answers, LookupMethod::Automatic) }
    }

    /// The same by a method of choice.
    ///
    /// # Safety
    /// As there.
    unsafe fn look_up_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        others: &[&Device],
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        for device in others.iter().copied().chain([keys.device(), stream.device()]) {
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
}
