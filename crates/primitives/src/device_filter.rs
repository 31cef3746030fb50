//! Filters in device memory: all forms of a lookup derived from one method, and changes under a stencil.

use warpset_base::filter::{Filter, Insert};
use warpset_base::key::Hashed;
use warpset_gpu::batch::{Answers, DeviceBatch, DeviceKeys, Hashing, Stencil};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, GpuError, Stream};

use crate::Error;
use crate::select::{Item, select_async, select_indices_async, select_keys_device};

/// Filter in device memory for keys of kind `K` there.
///
/// The trait [`Filter`](warpset_base::filter::Filter) looks up keys on the host, this one keys on the device. Methods
/// that end in `_device` wait; methods that end in `_async` queue their work on a stream and return. Methods with `_if`
/// in their names take a [`Stencil`], bytes or bits, which selects keys.
///
/// Keys are slices of integers or [`DeviceStrings`](warpset_gpu::batch::DeviceStrings); code that is generic over the
/// filter names their type in the bound:
///
/// ```
/// use warpset_gpu::batch::DeviceBatch;
/// use warpset_primitives::DeviceFilter;
///
/// /// How many of the keys both filters may hold.
/// fn in_both<K: DeviceBatch, A: DeviceFilter<K>, B: DeviceFilter<K, Error = A::Error>>(
///     first: &A,
///     second: &B,
///     keys: K,
/// ) -> Result<u32, A::Error> {
///     let mut found = keys.device().alloc_zeroed::<u64>(keys.count().div_ceil(64))?;
///     first.contains_bitmap_device(keys, found.as_mut_slice())?;
///     let mut both = keys.device().alloc_zeroed::<u64>(keys.count().div_ceil(64))?;
///     second.contains_if_bitmap_device(keys, &found, both.as_mut_slice())?;
///     Ok(both.to_vec()?.iter().map(|word| word.count_ones()).sum())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no filter that looks up `{K}` in device memory",
    note = "filters made with `builder.on(&device)` do, for keys in a `DeviceSlice` or `DeviceStrings`"
)]
pub trait DeviceFilter<K: DeviceBatch>: Filter<Error: From<GpuError> + From<Error>> {
    /// Queues the answers for keys on the device in the form of `answers`; all other lookups are derived from this
    /// method. `others` are the devices of the answers and of other arguments.
    ///
    /// # Errors
    /// Keys, `stream` or `others` of another device than the filter's, unless there are no keys; failed allocations and
    /// launches.
    ///
    /// # Safety
    /// - `answers` has room for the answers to all keys.
    /// - Until `stream` has passed this work, the filter, the keys and the answers stay allocated; nothing writes the
    ///   filter or the keys, and nothing else accesses the answers.
    unsafe fn answer_async(
        &self,
        stream: &Stream,
        keys: K,
        others: &[&Device],
        answers: Answers,
    ) -> Result<(), Self::Error>;

    /// Tests keys: answer `i` becomes 1 if key `i` may be in the filter, otherwise 0.
    ///
    /// # Errors
    /// [`LengthMismatch`](warpset_base::filter::LengthMismatch) if there are fewer bytes than keys; memory of another
    /// device.
    fn contains_device(&self, keys: K, answers: DeviceSliceMut<'_, u8>) -> Result<(), Self::Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        keys.device().waiting(|stream| unsafe { self.contains_async(stream, keys, answers) })
    }

    /// Queues [`DeviceFilter::contains_device`].
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::contains_device`].
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter, `keys` and `answers` stay allocated;
    /// - nothing writes the filter or the keys, and nothing else accesses the answers.
    unsafe fn contains_async(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Self::Error> {
        let there = answers.device();
        let answers = Answers::bytes(answers, keys.count())?;
        // SAFETY: `answers` is long enough; the rest is the contract of this function.
        unsafe { self.answer_async(stream, keys, &[there], answers) }
    }

    /// Tests keys: bit `i % 64` of word `i / 64` is set if key `i` may be in the filter; bits past the last key become
    /// zero.
    ///
    /// # Errors
    /// [`LengthMismatch`](warpset_base::filter::LengthMismatch) if there are fewer bits than keys; memory of another
    /// device.
    fn contains_bitmap_device(&self, keys: K, answers: DeviceSliceMut<'_, u64>) -> Result<(), Self::Error> {
        // SAFETY: filter, keys and answers are borrowed until the stream has been waited for.
        keys.device().waiting(|stream| unsafe { self.contains_bitmap_async(stream, keys, answers) })
    }

    /// Queues [`DeviceFilter::contains_bitmap_device`].
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::contains_bitmap_device`].
    ///
    /// # Safety
    /// The contract of [`DeviceFilter::contains_async`].
    unsafe fn contains_bitmap_async(
        &self,
        stream: &Stream,
        keys: K,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Self::Error> {
        let there = answers.device();
        let answers = Answers::bits(answers, keys.count())?;
        // SAFETY: `answers` is long enough; the rest is the contract of this function.
        unsafe { self.answer_async(stream, keys, &[there], answers) }
    }

    /// Counts the keys that may be in the filter.
    ///
    /// # Errors
    /// Memory of another device.
    fn count_contained_device(&self, keys: K) -> Result<usize, Self::Error> {
        // SAFETY: filter and keys are borrowed until the count has been waited for.
        counted(keys.device(), |stream, count| unsafe { self.count_contained_async(stream, keys, count) })
    }

    /// Queues the count of the keys that may be in the filter, and adds it to the first word of `count`.
    ///
    /// # Errors
    /// [`LengthMismatch`](warpset_base::filter::LengthMismatch) if `count` is empty but `keys` is not; memory of
    /// another device.
    ///
    /// # Safety
    /// The contract of [`DeviceFilter::contains_async`], except that other counts of this kind may add to the same word
    /// concurrently.
    unsafe fn count_contained_async(
        &self,
        stream: &Stream,
        keys: K,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Self::Error> {
        if keys.count() == 0 {
            return Ok(());
        }
        let there = count.device();
        let answers = Answers::count(count)?;
        // SAFETY: `count` has a word; the rest is the contract of this function.
        unsafe { self.answer_async(stream, keys, &[there], answers) }
    }

    /// Moves copies of the keys that may be in the filter to the start of `retained`, in order. Returns their number.
    ///
    /// # Errors
    /// [`LengthMismatch`](warpset_base::filter::LengthMismatch) if `retained` is shorter than `keys`; memory of another
    /// device.
    fn retain_contained_device<'k, T: Item>(
        &self,
        keys: K,
        retained: DeviceSliceMut<'_, T>,
    ) -> Result<usize, Self::Error>
    where
        K: Into<DeviceSlice<'k, T>>,
    {
        // SAFETY: filter, keys and places are borrowed until the count has been waited for; the borrows do not overlap.
        counted(keys.device(), |stream, count| unsafe { self.retain_contained_async(stream, keys, retained, count) })
    }

    /// Queues [`DeviceFilter::retain_contained_device`]; the number goes to the first word of `count`.
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::retain_contained_device`].
    ///
    /// # Safety
    /// The contract of [`DeviceFilter::contains_async`], `retained` and `count` being the answers; `keys` and
    /// `retained` do not overlap.
    unsafe fn retain_contained_async<'k, T: Item>(
        &self,
        stream: &Stream,
        keys: K,
        retained: DeviceSliceMut<'_, T>,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Self::Error>
    where
        K: Into<DeviceSlice<'k, T>>,
    {
        let n = keys.count();
        let mut bitmap = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        let answers = Answers::bits(bitmap.as_mut_slice(), n)?;
        // SAFETY: the bitmap belongs to this call and is freed in stream order; the rest is the contract of this
        // function.
        unsafe {
            self.answer_async(stream, keys, &[retained.device(), count.device()], answers)?;
            select_async(stream, keys.into(), bitmap.as_slice(), retained, count)?;
        }
        Ok(())
    }

    /// Writes the places in `keys` of the keys that may be in the filter to the start of `retained`, in order. Returns
    /// their number. Also for strings, which are not copied.
    ///
    /// # Errors
    /// [`LengthMismatch`](warpset_base::filter::LengthMismatch) if `retained` is shorter than `keys`; memory of another
    /// device.
    fn retain_contained_indices_device(
        &self,
        keys: K,
        retained: DeviceSliceMut<'_, u64>,
    ) -> Result<usize, Self::Error> {
        counted(keys.device(), |stream, count| {
            // SAFETY: filter, keys and places are borrowed until the count has been waited for.
            unsafe { self.retain_contained_indices_async(stream, keys, retained, count) }
        })
    }

    /// Queues [`DeviceFilter::retain_contained_indices_device`]; the number goes to the first word of `count`.
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::retain_contained_indices_device`].
    ///
    /// # Safety
    /// The contract of [`DeviceFilter::contains_async`], `retained` and `count` being the answers.
    unsafe fn retain_contained_indices_async(
        &self,
        stream: &Stream,
        keys: K,
        retained: DeviceSliceMut<'_, u64>,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Self::Error> {
        let n = keys.count();
        let mut bitmap = stream.alloc_uninit::<u64>(n.div_ceil(64))?;
        let answers = Answers::bits(bitmap.as_mut_slice(), n)?;
        // SAFETY: the bitmap belongs to this call and is freed in stream order; the rest is the contract of this
        // function.
        unsafe {
            self.answer_async(stream, keys, &[retained.device(), count.device()], answers)?;
            select_indices_async(stream, n, bitmap.as_slice(), retained, count)?;
        }
        Ok(())
    }

    /// Tests keys as [`DeviceFilter::contains_device`] does, under a stencil of bytes or bits: 0 for keys that it does
    /// not select.
    ///
    /// All keys are looked up, and then the answers are masked, which adds a pass over one bit or byte per key. If a
    /// stencil selects few keys of a batch, select these first ([`select`](crate::select)).
    ///
    /// # Errors
    /// [`LengthMismatch`](warpset_base::filter::LengthMismatch) if the stencil or the answers are too short; memory of
    /// another device.
    fn contains_if_device<'s>(
        &self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Self::Error> {
        // SAFETY: filter, keys, stencil and answers are borrowed until the stream has been waited for.
        keys.device().waiting(|stream| unsafe { self.contains_if_async(stream, keys, stencil, answers) })
    }

    /// Queues [`DeviceFilter::contains_if_device`].
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::contains_if_device`].
    ///
    /// # Safety
    /// The contract of [`DeviceFilter::contains_async`]; the stencil stays allocated and unchanged like the keys.
    unsafe fn contains_if_async<'s>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u8>,
    ) -> Result<(), Self::Error> {
        let there = answers.device();
        let answers = Answers::bytes(answers, keys.count())?;
        // SAFETY: `answers` is long enough; the rest is the contract of this function.
        unsafe { answer_if_async(self, stream, keys, stencil.into(), there, answers) }
    }

    /// Tests keys as [`DeviceFilter::contains_if_device`] does, with one bit per key: bit `i % 64` of word `i / 64`.
    ///
    /// # Errors
    /// [`LengthMismatch`](warpset_base::filter::LengthMismatch) if the stencil or the answers are too short; memory of
    /// another device.
    fn contains_if_bitmap_device<'s>(
        &self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Self::Error> {
        // SAFETY: filter, keys, stencil and answers are borrowed until the stream has been waited for.
        keys.device().waiting(|stream| unsafe { self.contains_if_bitmap_async(stream, keys, stencil, answers) })
    }

    /// Queues [`DeviceFilter::contains_if_bitmap_device`].
    ///
    /// # Errors
    /// The errors of [`DeviceFilter::contains_if_bitmap_device`].
    ///
    /// # Safety
    /// The contract of [`DeviceFilter::contains_async`]; the stencil stays allocated and unchanged like the keys.
    unsafe fn contains_if_bitmap_async<'s>(
        &self,
        stream: &Stream,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
        answers: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Self::Error> {
        let there = answers.device();
        let answers = Answers::bits(answers, keys.count())?;
        // SAFETY: `answers` is long enough; the rest is the contract of this function.
        unsafe { answer_if_async(self, stream, keys, stencil.into(), there, answers) }
    }
}

/// Returns the count that `queue` adds to zero, after waiting for the stream.
fn counted<E: From<GpuError>>(
    device: &Device,
    queue: impl FnOnce(&Stream, DeviceSliceMut<'_, u64>) -> Result<(), E>,
) -> Result<usize, E> {
    device.waiting(|stream| {
        let mut count = stream.alloc_zeroed::<u64>(1)?;
        queue(stream, count.as_mut_slice())?;
        Ok(stream.download_first(&count)? as usize)
    })
}

/// Queues the answers, bytes or bits on the device `there`, and then clears those of keys that the stencil does not
/// select.
///
/// # Safety
/// The contract of [`DeviceFilter::answer_async`]; the stencil stays allocated and unchanged like the keys.
unsafe fn answer_if_async<K: DeviceBatch, F: DeviceFilter<K> + ?Sized>(
    filter: &F,
    stream: &Stream,
    keys: K,
    stencil: Stencil<'_>,
    there: &Device,
    answers: Answers,
) -> Result<(), F::Error> {
    let n = keys.count();
    stencil.expect_for(n)?;
    // SAFETY: the stencil is for all keys; the rest is the contract of this function.
    unsafe {
        filter.answer_async(stream, keys, &[there, stencil.device()], answers)?;
        Ok(stencil.apply(stream, answers, n)?)
    }
}

/// Filter in device memory that takes keys from device memory.
///
/// ```
/// use warpset_gpu::batch::DeviceKeys;
/// use warpset_primitives::{DeviceFilter, DeviceInsert};
///
/// /// Adds to `second` what `first` has seen already, and to `first` all.
/// fn seen_twice<K: DeviceKeys, F: DeviceInsert + DeviceFilter<K>>(
///     first: &mut F,
///     second: &mut F,
///     keys: K,
/// ) -> Result<(), F::Error> {
///     let mut seen = keys.device().alloc_zeroed::<u64>(keys.count().div_ceil(64))?;
///     first.contains_bitmap_device(keys, seen.as_mut_slice())?;
///     second.insert_if_device(keys, &seen)?;
///     first.insert_device(keys)?;
///     Ok(())
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "keys in device memory cannot be inserted into `{Self}`",
    note = "Bloom filters and quotient filters made with `builder.on(&device)` take them"
)]
pub trait DeviceInsert: Insert<Error: From<GpuError> + From<Error>> {
    /// Returns the hash function of the filter.
    #[doc(hidden)]
    fn hashing(&self) -> Hashing;

    /// Returns the number of highest bits, at most 8, by which hashes are best grouped for an insertion of `n` of them;
    /// none: in any order. Then the words of the structure's route are its hashes.
    #[doc(hidden)]
    fn region_bits(&self, _n: usize) -> Option<u32> {
        None
    }

    /// Inserts hashes that are grouped so, without a wait for earlier work on the device.
    #[doc(hidden)]
    fn insert_regions_device(&mut self, hashes: DeviceSlice<'_, Hashed>) -> Result<Self::Inserted, Self::Error> {
        DeviceInsert::insert_device(self, hashes)
    }

    /// Inserts keys on the device.
    ///
    /// # Errors
    /// Memory of another device, and errors of the filter.
    fn insert_device<K: DeviceKeys>(&mut self, keys: K) -> Result<Self::Inserted, Self::Error>;

    /// Inserts the keys on the device that the stencil, bytes or bits, selects.
    ///
    /// The keys are selected first, which takes memory for all keys, 4 or 8 bytes each (strings: 8), and a pass over
    /// keys and stencil; then the selected keys are inserted.
    ///
    /// # Errors
    /// [`LengthMismatch`](warpset_base::filter::LengthMismatch) if the stencil is shorter than the keys; memory of
    /// another device; those of the insertion.
    fn insert_if_device<'s, K: DeviceKeys>(
        &mut self,
        keys: K,
        stencil: impl Into<Stencil<'s>>,
    ) -> Result<Self::Inserted, Self::Error> {
        let selected = select_keys_device(keys, &self.hashing(), stencil.into())?;
        DeviceInsert::insert_device(self, selected.as_keys())
    }
}
