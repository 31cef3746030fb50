//! Questions about keys on the device, with and without waiting.

use warpset_gpu::batch::Answers;
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, Stream};
use warpset_primitives::select;

use super::{Bloom, DeviceKey, DeviceKeys, DeviceLayout};
use crate::Error;

/// What the operations here are called in errors.
pub(super) const LOOKUP: &str = "a lookup in a Bloom filter";

impl<L: DeviceLayout> Bloom<L> {
    /// Whether each key may be in the filter: answer `i` becomes 1 or 0.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer bytes than keys; memory of another device.
    pub fn contains_device<K: DeviceKeys>(&self, keys: K, answers: DeviceSliceMut<'_, u8>) -> Result<(), Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        self.waiting_query(|stream| unsafe { self.contains_async(stream, keys, answers) })
    }

    /// Queues [`Bloom::contains_device`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter, `keys` and `answers` stay allocated;
    /// - nothing writes the filter or the keys, and nothing else accesses the answers.
    pub unsafe fn contains_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Error> {
        let there = answers.device();
        let answers = Answers::bytes(answers, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.answer_async(stream, keys, there, answers) }
    }

    /// Whether each key may be in the filter: answer `i` becomes bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there are fewer bits than keys; memory of another device.
    pub fn contains_bitmap_device<K: DeviceKeys>(
        &self,
        keys: K,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        self.waiting_query(|stream| unsafe { self.contains_bitmap_async(stream, keys, answers) })
    }

    /// Queues [`Bloom::contains_bitmap_device`].
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As for [`Bloom::contains_async`].
    pub unsafe fn contains_bitmap_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let there = answers.device();
        let answers = Answers::bits(answers, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.answer_async(stream, keys, there, answers) }
    }

    /// How many of the keys may be in the filter.
    ///
    /// # Errors
    /// Memory of another device.
    pub fn count_contained_device<K: DeviceKeys>(&self, keys: K) -> Result<usize, Error> {
        self.waiting_query(|stream| {
            let mut count = stream.alloc_zeroed::<u64>(1)?;
            // SAFETY: filter and keys are borrowed until the stream has been waited for, and the count is freed in its order.
            unsafe { self.count_contained_async(stream, keys, count.as_mut_slice())? };
            first_of(stream, count.as_slice())
        })
    }

    /// Queues the count of the keys that may be in the filter: adds it to the first word of `count`.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if `count` is empty and `keys` are not; memory of another device.
    ///
    /// # Safety
    /// As for [`Bloom::contains_async`]; but other such counts may add to the same word at the same time.
    pub unsafe fn count_contained_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        if keys.count() == 0 {
            return Ok(());
        }
        let there = count.device();
        let answers = Answers::count(count, keys.count())?;
        // SAFETY: there is room; the rest is the caller's promise.
        unsafe { self.answer_async(stream, keys, there, answers) }
    }

    /// All three: `answers` are on the device `there`.
    ///
    /// # Safety
    /// As for the three above; `answers` has room.
    pub(super) unsafe fn answer_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        there: &Device,
        answers: Answers,
    ) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        self.expect_here(LOOKUP, [stream.device(), keys.device(), there])?;
        let hashing = self.layout.hashing();
        let at_a_time = keys.at_a_time(&hashing);
        for first in (0..n).step_by(at_a_time) {
            let part = keys.part(first..n.min(first + at_a_time));
            // SAFETY: the words are this layout's; scratch is freed in the order of the stream; `first` is a multiple of
            // 64; the rest is the caller's promise.
            unsafe {
                let hashed = part.kernel_keys(&hashing, stream)?;
                let (words, strings) = (self.words.global(), hashed.string_hashes());
                self.layout.launch_contains(stream, words, hashed.keys, strings, part.count(), answers.from(first))?;
            }
        }
        Ok(())
    }

    /// Selects the keys that may be in the filter: they go to the start of `retained`, in order. Returns their number.
    ///
    /// # Errors
    /// Memory of another device; `retained` shorter than `keys`.
    pub fn retain_contained_device<K: DeviceKey + select::Item>(
        &self,
        keys: DeviceSlice<'_, K>,
        retained: DeviceSliceMut<'_, K>,
    ) -> Result<usize, Error> {
        self.waiting_query(|stream| {
            let mut count = stream.alloc_zeroed::<u64>(1)?;
            // SAFETY: filter, keys and places are borrowed until the stream has been waited for; the borrows do not overlap.
            unsafe { self.retain_contained_async(stream, keys, retained, count.as_mut_slice())? };
            first_of(stream, count.as_slice())
        })
    }

    /// Queues [`Bloom::retain_contained_device`]; the number goes to the first word of `count`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As for [`Bloom::contains_async`], `retained` and `count` being the answers; `keys` and `retained` do not overlap.
    pub unsafe fn retain_contained_async<K: DeviceKey + select::Item>(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        retained: DeviceSliceMut<'_, K>,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        self.expect_here(LOOKUP, [stream.device(), keys.device(), retained.device(), count.device()])?;
        let mut bitmap = stream.alloc_uninit::<u64>(keys.len().div_ceil(64))?;
        // SAFETY: the bitmap is this call's own and freed in the order of the stream; the rest is the caller's promise.
        unsafe {
            self.contains_bitmap_async(stream, keys, bitmap.as_mut_slice())?;
            select::select_async(stream, keys, bitmap.as_slice(), retained, count)?;
        }
        Ok(())
    }

    /// Selects the keys that may be in the filter by number: the places that they have in `keys` go to the start of
    /// `retained`, in order. Returns how many there are. For strings too, which stay where they are.
    ///
    /// # Errors
    /// As for [`Bloom::retain_contained_device`].
    pub fn retain_contained_indices_device<K: DeviceKeys>(
        &self,
        keys: K,
        retained: DeviceSliceMut<'_, u64>,
    ) -> Result<usize, Error> {
        self.waiting_query(|stream| {
            let mut count = stream.alloc_zeroed::<u64>(1)?;
            // SAFETY: filter, keys and places are borrowed until the stream has been waited for.
            unsafe { self.retain_contained_indices_async(stream, keys, retained, count.as_mut_slice())? };
            first_of(stream, count.as_slice())
        })
    }

    /// Queues [`Bloom::retain_contained_indices_device`]; the number goes to the first word of `count`.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As for [`Bloom::contains_async`], `retained` and `count` being the answers.
    pub unsafe fn retain_contained_indices_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        retained: DeviceSliceMut<'_, u64>,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        self.expect_here(LOOKUP, [stream.device(), keys.device(), retained.device(), count.device()])?;
        let n = keys.count();
        let mut bitmap = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        // SAFETY: the bitmap is this call's own and freed in the order of the stream; the rest is the caller's promise.
        unsafe {
            self.contains_bitmap_async(stream, keys, bitmap.as_mut_slice())?;
            select::select_indices_async(stream, n, bitmap.as_slice(), retained, count)?;
        }
        Ok(())
    }
}

/// The first word, when `stream` has passed.
fn first_of(stream: &Stream, words: DeviceSlice<'_, u64>) -> Result<usize, Error> {
    let mut first = [0];
    stream.download(words.slice(..1), &mut first)?;
    Ok(first[0] as usize)
}
