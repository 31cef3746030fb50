//! Lookups of keys on the host and on the device, and lookups by a method of choice.

use warpset_base::filter::{Filter, Take};
use warpset_gpu::batch::{Answers, Reply};
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_primitives::DeviceFilter;

use super::launch::hashing;
use super::slot_kind::Asked;
use super::{DeviceKeys, DeviceSlotKind, QuotientFilter, exact};
use crate::{Error, Key};

/// Method of lookups of a batch. Answers are in the order of the keys in either case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LookupMethod {
    /// The faster method by measurements (`docs/performance/quotient.md`): sorted for large batches in filters with
    /// long clusters; otherwise, and without memory for sorting, unsorted.
    #[default]
    Auto,
    /// One thread per key, in the order of the keys.
    Unsorted,
    /// Fingerprints are sorted first, as in the paper (section IV-A), with the places of their keys, so that
    /// neighbouring threads read neighbouring slots. Takes memory for fingerprints and places, twice. Batches of 2^32
    /// keys and more are looked up unsorted.
    Sorted,
}

impl<S: DeviceSlotKind> Filter for QuotientFilter<S> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        if self.layout.exact {
            return exact::answer_bulk(&self.layout, keys, take, |words, take| self.answer_any(words, take));
        }
        self.answer_any(keys, take)
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Answers like [`Filter::answer_bulk`], for keys that all have a fingerprint.
    fn answer_any<K: Key>(&self, keys: &[K], mut take: impl FnMut(usize, &[u64])) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        // Work that the caller queued on streams of their own comes first.
        self.device.synchronize()?;
        let method = self.method(LookupMethod::Auto);
        self.staging().run(
            keys,
            Reply::BITS,
            |chunk| {
                let keys = exact::keys_for(&self.layout, chunk.keys);
                let asked = Asked { stream: chunk.stream, keys, n: chunk.range.len() };
                // SAFETY: there is room for the answers to a chunk; the filter is borrowed until `run` has waited.
                unsafe { S::look_up(self, asked, Answers::bits_at(chunk.replies), method) }
            },
            |range, words| take(range.start, words),
        )
    }
}

/// Lookups of keys on the device by a method of choice.
impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Answers like [`DeviceFilter::contains_device`], by a method of choice.
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::contains_device`].
    pub fn contains_device_with<K: DeviceKeys>(
        &self,
        keys: K,
        answers: DeviceSliceMut<'_, u8>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        self.device.waiting(|stream| unsafe { self.contains_async_with(stream, keys, answers, method) })
    }

    /// Counts like [`DeviceFilter::count_contained_device`], by a method of choice.
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::count_contained_device`].
    pub fn count_contained_device_with<K: DeviceKeys>(&self, keys: K, method: LookupMethod) -> Result<usize, Error> {
        self.device.waiting(|stream| {
            let mut count = stream.alloc_zeroed::<u64>(1)?;
            // SAFETY: filter and keys are borrowed until the stream has been waited for, and the count is freed in its
            // order.
            unsafe { self.count_contained_async_with(stream, keys, count.as_mut_slice(), method)? };
            Ok(stream.download_first(&count)? as usize)
        })
    }

    /// Queues lookups like [`DeviceFilter::contains_async`], by a method of choice.
    ///
    /// # Safety
    /// The conditions of [`DeviceFilter::contains_async`].
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::contains_device`].
    pub unsafe fn contains_async_with<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u8>,
        method: LookupMethod,
    ) -> Result<(), Error> {
        let there = answers.device();
        let answers = Answers::bytes(answers, keys.count())?;
        // SAFETY: there is room; the rest is the contract of this function.
        unsafe { self.look_up_async(stream, keys, &[there], answers, method) }
    }

    /// Queues a count like [`DeviceFilter::count_contained_async`], by a method of choice.
    ///
    /// # Safety
    /// The conditions of [`DeviceFilter::count_contained_async`].
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::count_contained_device`].
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
        let answers = Answers::count(count)?;
        // SAFETY: there is room; the rest is the contract of this function.
        unsafe { self.look_up_async(stream, keys, &[there], answers, method) }
    }

    /// Returns the method for this filter: sorted fingerprints have no place for a key without one.
    fn method(&self, method: LookupMethod) -> LookupMethod {
        if self.layout.exact { LookupMethod::Unsorted } else { method }
    }

    /// Queues answers like [`DeviceFilter::answer_async`], by a method of choice.
    ///
    /// # Safety
    /// The conditions of [`DeviceFilter::answer_async`].
    unsafe fn look_up_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        others: &[&Device],
        answers: Answers,
        method: LookupMethod,
    ) -> Result<(), Error> {
        if keys.count() == 0 {
            return Ok(());
        }
        let lent = others.iter().copied().chain([keys.device(), stream.device()]);
        self.device.expect_all_here(lent, "a lookup in a quotient filter")?;
        let method = self.method(method);
        // SAFETY: the contract of this function; scratch is freed in the order of the stream.
        unsafe {
            keys.for_each_chunk(&hashing(&self.layout), stream, |first, hashed, n| {
                let keys = exact::keys_for(&self.layout, hashed.keys);
                S::look_up(self, Asked { stream, keys, n }, answers.from(first), method)
            })
        }
    }
}

impl<S: DeviceSlotKind, K: DeviceKeys> DeviceFilter<K> for QuotientFilter<S> {
    unsafe fn answer_async(&self, stream: &Stream, keys: K, others: &[&Device], answers: Answers) -> Result<(), Error> {
        // SAFETY: the contract is the same.
        unsafe { self.look_up_async(stream, keys, others, answers, LookupMethod::Auto) }
    }
}
