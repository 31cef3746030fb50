//! Questions to static filters, from host memory and from device memory.

use rayon::prelude::*;
use warpset_base::filter::same_length;
use warpset_gpu::batch::{Answers, Chunk, DeviceKeys128, Reply, Staging, answers_bitmap, expect_room};
use warpset_gpu::{Device, DeviceSliceMut, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::recsplit::lookup::{NO_ANSWERS, NO_NUMBERS, NUMBERS_OR_ONES, recsplit_contains};
use warpset_primitives::lookups;
use warpset_simt::GlobalMut;

use super::tables::{hashing, one_thread_each};
use super::{Number, StaticFilter};
use crate::format::COMMON_WORDS;
use crate::{Bitmap, Error, Key};

/// What the operations here are called in errors.
const LOOKUP: &str = "a lookup in a static filter";

lookups! {
    [] StaticFilter, DeviceKeys128, Error;
}

/// Where numbers go, if they are asked for.
#[derive(Clone, Copy)]
struct Numbers {
    form: u32,
    /// One place per key.
    out: GlobalMut<u64>,
    /// Bytes of a place; 0 if there are none.
    bytes: usize,
}

impl Numbers {
    fn none() -> Self {
        Self { form: NO_NUMBERS, out: GlobalMut::from_raw_parts(std::ptr::null_mut(), 0), bytes: 0 }
    }

    fn at<N: Number>(out: GlobalMut<N>) -> Self {
        let words = (out.len() * size_of::<N>()).div_ceil(8);
        let out = GlobalMut::from_raw_parts(out.as_ptr().cast(), words);
        Self { form: N::FORM, out, bytes: size_of::<N>() }
    }

    /// The same for the keys from `first` on, a multiple of 64.
    fn from(self, first: usize) -> Self {
        Self { out: if self.bytes == 0 { self.out } else { self.out.at(first * self.bytes / 8) }, ..self }
    }
}

/// Questions about keys in host memory: staged through pinned memory in chunks. Keys of any kind; those that are no integers are hashed
/// on the host.
impl StaticFilter {
    fn run<K: Key>(
        &self,
        keys: &[K],
        reply: Reply,
        work: impl FnMut(&Chunk<'_>) -> Result<(), Error>,
        take: impl FnMut(std::ops::Range<usize>, &[u64]),
    ) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        // Work that the caller queued on other streams comes first.
        self.device().synchronize()?;
        let staging = Staging::new(self.device(), hashing(&self.parameters.function)).chunk_keys(self.chunk_keys);
        staging.run(keys, reply, work, take)
    }

    /// Brings one bit per key to `take`, chunk by chunk in any order; `first` is a multiple of 64.
    fn answer<K: Key>(&self, keys: &[K], mut take: impl FnMut(usize, &[u64])) -> Result<(), Error> {
        let work = |chunk: &Chunk<'_>| {
            let answers = Answers::bits_at(chunk.replies);
            // SAFETY: a chunk has room for its replies; the filter is borrowed until `run` has waited.
            unsafe { self.queue(chunk.stream, chunk.keys, chunk.range.len(), answers, Numbers::none()) }
        };
        self.run(keys, Reply::Bits, work, |range, words| take(range.start, words))
    }

    /// The number of each key, below [`StaticFilter::len`], unless it is certain that it is no member.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<Option<u64>>, Error> {
        let mut numbers = vec![0u64; keys.len()];
        let found = self.get_bulk_into(keys, &mut numbers)?;
        Ok(found.iter().zip(numbers).map(|(found, number)| found.then_some(number)).collect())
    }

    /// [`StaticFilter::get_bulk`] into a slice of the same length, of `u64` or of `u32`: which keys have a number; the others get zero.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`]; [`Error::NumbersTooLarge`] for `u32` and a filter of more than 2^32 members; [`Error::Gpu`].
    pub fn get_bulk_into<K: Key, N: Number>(&self, keys: &[K], numbers: &mut [N]) -> Result<Bitmap, Error> {
        same_length(keys.len(), numbers.len())?;
        N::check(self.len())?;
        answers_bitmap(keys.len(), |found| {
            let work = |chunk: &Chunk<'_>| {
                let numbers = Numbers { form: NUMBERS_OR_ONES, out: chunk.replies, bytes: 8 };
                let none = Answers { words: chunk.replies, form: NO_ANSWERS };
                // SAFETY: a chunk has room for its replies; the filter is borrowed until `run` has waited.
                unsafe { self.queue(chunk.stream, chunk.keys, chunk.range.len(), none, numbers) }
            };
            self.run(keys, Reply::Words, work, |range, words| {
                let mut bits = vec![0; range.len().div_ceil(64)];
                let numbers = numbers[range.clone()].par_chunks_mut(64 * TASK);
                let all = numbers.zip(words.par_chunks(64 * TASK)).zip(bits.par_chunks_mut(TASK));
                all.for_each(|((numbers, words), bits)| take_apart(numbers, words, bits));
                found(range.start, &bits);
            })
        })
    }
}

/// Words of bits that one task makes of replies.
const TASK: usize = 1 << 9;

/// Replies to numbers, and to bits that say which keys have one.
fn take_apart<N: Number>(numbers: &mut [N], words: &[u64], bits: &mut [u64]) {
    for ((numbers, words), bits) in numbers.chunks_mut(64).zip(words.chunks(64)).zip(bits) {
        for (i, (number, &word)) in numbers.iter_mut().zip(words).enumerate() {
            let is_member = word != u64::MAX;
            *bits |= u64::from(is_member) << i;
            *number = N::narrow(if is_member { word } else { 0 });
        }
    }
}

/// Questions about keys in device memory.
impl StaticFilter {
    /// The number of each key, below [`StaticFilter::len`], unless it is certain that it is no member: bit `i % 64` of word `i / 64` of
    /// `found` says whether key `i` has a number, which is place `i` of `numbers` then, of `u64` or `u32`, and zero otherwise.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer places or bits than keys; [`Error::NumbersTooLarge`] for `u32` and a filter of more
    /// than 2^32 members; memory of another device.
    pub fn get_device<K: DeviceKeys128, N: Number>(
        &self,
        keys: K,
        numbers: DeviceSliceMut<'_, N>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        self.device().waiting(|stream| unsafe { self.get_async(stream, keys, numbers, found) })
    }

    /// Queues [`StaticFilter::get_device`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As for [`StaticFilter::contains_async`], `numbers` and `found` being the answers.
    pub unsafe fn get_async<K: DeviceKeys128, N: Number>(
        &self,
        stream: &Stream,
        keys: K,
        mut numbers: DeviceSliceMut<'_, N>,
        found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        expect_room(keys.count(), keys.count(), numbers.len())?;
        N::check(self.len())?;
        let there = [found.device(), numbers.device()];
        let answers = Answers::bits(found, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.look_up_async(stream, keys, &there, answers, Numbers::at(numbers.global_mut())) }
    }

    /// Queues answers to keys on the device without their numbers; `others` are the devices of the answers and of what else the caller
    /// lends.
    ///
    /// # Safety
    /// As for [`StaticFilter::contains_async`]; `answers` has room.
    unsafe fn answer_async<K: DeviceKeys128>(
        &self,
        stream: &Stream,
        keys: K,
        others: &[&Device],
        answers: Answers,
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.look_up_async(stream, keys, others, answers, Numbers::none()) }
    }

    /// Queues answers and numbers; `devices` are those of all that the caller lends besides keys and stream.
    ///
    /// # Safety
    /// As for the others; answers and numbers have room.
    unsafe fn look_up_async<K: DeviceKeys128>(
        &self,
        stream: &Stream,
        keys: K,
        devices: &[&Device],
        answers: Answers,
        numbers: Numbers,
    ) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        for device in devices.iter().copied().chain([stream.device(), keys.device()]) {
            self.device().expect_same(device, LOOKUP)?;
        }
        let at_a_time = keys.at_a_time();
        for first in (0..n).step_by(at_a_time) {
            let part = keys.part(first..n.min(first + at_a_time));
            // SAFETY: scratch is freed in the order of the stream; `first` is a multiple of 64; the rest is the caller's promise.
            unsafe {
                let hashed = part.kernel_keys(self.parameters.function.header.seed, stream)?;
                self.queue(stream, hashed.keys, part.count(), answers.from(first), numbers.from(first))?;
            }
        }
        Ok(())
    }

    /// Queues the lookup of `n > 0` keys.
    ///
    /// # Safety
    /// - `keys` are valid for `n` keys; `answers` and `numbers`, if there are some, have room for as many.
    /// - Until the stream has passed this work, all stay allocated; nothing writes the keys, and nothing else accesses the answers.
    unsafe fn queue(
        &self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        answers: Answers,
        numbers: Numbers,
    ) -> Result<(), Error> {
        let KeySlice { keys, kind, spread: seed } = keys;
        let (words, rows, function) = (self.words.slice(COMMON_WORDS..).global(), self.tables.rows(), self.tables.plan);
        let fingerprints = (self.words.len() - COMMON_WORDS) as u64 - function.words;
        let (found_form, found) = (answers.form, answers.words);
        let (form, numbers) = (numbers.form, numbers.out);
        // SAFETY: words and rows are the filter's own, and the fingerprints follow the function; the rest is the caller's promise.
        unsafe {
            recsplit_contains {
                words,
                rows,
                function,
                fingerprints,
                keys,
                kind,
                seed,
                n,
                found_form,
                found,
                form,
                numbers,
            }
            .launch(stream, one_thread_each(n))?
        };
        Ok(())
    }
}
