//! Lookups in static filters, from host memory and from device memory.

use warpset_base::filter::{Filter, Take, same_length};
use warpset_base::words::in_huge_pages;
use warpset_gpu::batch::{Answers, Chunk, DeviceKeys128, Reply, expect_room};
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_primitives::DeviceFilter;

use super::function::Numbers;
use super::{DeviceHashKind, StaticFilter};
use crate::format::COMMON_WORDS;
use crate::{Bitmap, Error, Key, Number};

impl<M: DeviceHashKind> StaticFilter<M> {
    /// Returns the bits of a fingerprint.
    pub fn width(&self) -> u32 {
        self.parameters.width
    }

    /// Returns the probability that a non-member passes: 2^-width, and 0 for an empty filter.
    pub fn fpr(&self) -> f64 {
        self.parameters.fpr()
    }

    /// Returns the theoretical false-positive rate with `keys` keys: 2^-width, or 0 without any.
    pub fn expected_fpr(&self, keys: u64) -> f64 {
        self.parameters.expected_fpr(keys)
    }
}

/// Lookups of keys of any kind in host memory, staged through pinned memory in chunks. The host hashes all but
/// integers.
impl<M: DeviceHashKind> StaticFilter<M> {
    /// Returns the number of each key, below [`len`](Self::len), or `None` if it is certainly no member.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<Option<u64>>, Error> {
        let mut numbers = in_huge_pages(vec![0u64; keys.len()]);
        let found = self.get_bulk_into(keys, &mut numbers)?;
        Ok(found.iter().zip(numbers).map(|(found, number)| found.then_some(number)).collect())
    }

    /// Writes the numbers of [`get_bulk`](Self::get_bulk) to a slice of equal length, of `u64` or of `u32`, and returns
    /// which keys have one; the others get zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::NumbersTooLarge`] for `u32` and a filter of more than 2^32 members;
    /// [`Error::Gpu`].
    pub fn get_bulk_into<K: Key, N: Number>(&self, keys: &[K], numbers: &mut [N]) -> Result<Bitmap, Error> {
        same_length(keys.len(), numbers.len())?;
        N::check(self.len())?;
        let mut found = vec![0; keys.len().div_ceil(64)];
        if !keys.is_empty() {
            self.staging()?.answer(keys, numbers, &mut found, |chunk, found, out| {
                // SAFETY: a chunk has places for its answers; the filter is borrowed until `answer` has waited.
                unsafe { self.queue(chunk.stream, chunk.keys, chunk.range.len(), found, Numbers::at(out)) }
            })?;
        }
        Ok(Bitmap::from_words(found, keys.len()))
    }
}

impl<M: DeviceHashKind> Filter for StaticFilter<M> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let work = |chunk: &Chunk<'_>| {
            let answers = Answers::bits_at(chunk.replies);
            // SAFETY: a chunk has places for its replies; the filter is borrowed until `run` has waited.
            unsafe { self.queue(chunk.stream, chunk.keys, chunk.range.len(), answers, Numbers::none()) }
        };
        self.staging()?.run(keys, Reply::BITS, work, |range, words| take(range.start, words))
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl<M: DeviceHashKind, K: DeviceKeys128> DeviceFilter<K> for StaticFilter<M> {
    unsafe fn answer_async(&self, stream: &Stream, keys: K, others: &[&Device], answers: Answers) -> Result<(), Error> {
        // SAFETY: this function's contract.
        unsafe { self.look_up_async(stream, keys, others, answers, Numbers::none()) }
    }
}

/// Lookups of keys in device memory.
impl<M: DeviceHashKind> StaticFilter<M> {
    /// Looks up the number of each key, below [`len`](Self::len). Bit `i % 64` of word `i / 64` of `found` says whether
    /// key `i` has a number; place `i` of `numbers`, of `u64` or `u32`, gets it, or zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer places or bits than keys; [`Error::NumbersTooLarge`] for `u32` and
    /// a filter of more than 2^32 members; memory of another device.
    pub fn get_device<K: DeviceKeys128, N: Number>(
        &self,
        keys: K,
        numbers: DeviceSliceMut<'_, N>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: `waiting` waits for the stream while filter, keys and answers are borrowed.
        self.device().waiting(|stream| unsafe { self.get_async(stream, keys, numbers, found) })
    }

    /// Queues [`get_device`](Self::get_device).
    ///
    /// # Errors
    /// The errors of [`get_device`](Self::get_device).
    ///
    /// # Safety
    /// The conditions of [`DeviceFilter::contains_async`], `numbers` and `found` being the answers.
    pub unsafe fn get_async<K: DeviceKeys128, N: Number>(
        &self,
        stream: &Stream,
        keys: K,
        mut numbers: DeviceSliceMut<'_, N>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        expect_room(keys.count(), numbers.len())?;
        N::check(self.len())?;
        let there = [found.device(), numbers.device()];
        let answers = Answers::bits(found, keys.count())?;
        // SAFETY: `found` and `numbers` have a place per key; the rest is this function's contract.
        unsafe { self.look_up_async(stream, keys, &there, answers, Numbers::at(numbers.global_mut())) }
    }

    /// Queues answers and numbers; `devices` are those of the arguments besides keys and stream.
    ///
    /// # Safety
    /// The conditions of the other methods; answers and numbers have a place per key.
    unsafe fn look_up_async<K: DeviceKeys128>(
        &self,
        stream: &Stream,
        keys: K,
        devices: &[&Device],
        answers: Answers,
        numbers: Numbers,
    ) -> Result<(), Error> {
        // SAFETY: there is a place per key from each `first` on; the rest is this function's contract.
        unsafe {
            self.in_parts(stream, keys, devices, |keys, first, n| {
                self.queue(stream, keys, n, answers.from(first), numbers.from(first))
            })
        }
    }

    /// Queues the lookup of `n > 0` keys.
    ///
    /// # Safety
    /// - `keys` are valid for `n` keys; `answers` and `numbers`, if requested, have `n` places.
    /// - Until the stream has passed this work, all stay allocated; nothing writes the keys, and nothing else accesses
    ///   the answers.
    unsafe fn queue(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        numbers: Numbers,
    ) -> Result<(), Error> {
        let words = self.words.slice(COMMON_WORDS..).global();
        let fingerprints = (self.words.len() - COMMON_WORDS - self.parameters.function_words()) as u64;
        // SAFETY: the tables were made from these words, and the fingerprints follow them; the rest is this function's
        // contract.
        unsafe { M::queue_answers(&self.tables, stream, words, fingerprints, keys, n, answers, numbers) }
    }
}
