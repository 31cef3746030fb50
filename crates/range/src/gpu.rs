//! Range filters in device memory: the words of the host, built and queried by kernels.
//!
//! Methods on host slices copy them to the device first. Methods that end in `_device` take memory of the device; those
//! that end in `_async` also take a stream, and do not wait. Single keys, files and views need a copy on the host:
//! `to_host`.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use bytemuck::Pod;
use warpset_base::filter::same_length;
use warpset_base::words::AlignedWords;
use warpset_core::range::{FLOAT, KeyForm, SIGNED, UNSIGNED};
use warpset_gpu::batch::{Answers, expect_room};
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::range::filter::{BLOCK, range_lookup};
use warpset_simt::Global;

use crate::key::sealed::Ordered;
use crate::{Bitmap, Error, KeyOf, Layout, RangeKey};

mod build;
mod dynamic;

pub use build::DeviceBuilder;
pub use dynamic::DynamicRangeFilter;

/// Type of keys of filters in device memory: integers of 32 and 64 bits, `f32`, `f64`. Sealed, as [`RangeKey`] is.
pub trait DeviceRangeKey: RangeKey + KeyOf<Self> + Ordered<Word = u64> + Pod {
    /// The form of keys in memory.
    #[doc(hidden)]
    const FORM: KeyForm;
}

macro_rules! device_keys {
    ($($key:ty: $order:expr;)*) => {$(
        impl DeviceRangeKey for $key {
            const FORM: KeyForm = KeyForm { bits: 8 * size_of::<$key>() as u32, order: $order };
        }
    )*};
}
device_keys! {
    u32: UNSIGNED;
    u64: UNSIGNED;
    i32: SIGNED;
    i64: SIGNED;
    f32: FLOAT;
    f64: FLOAT;
}

/// Ranges or keys of the host that are looked up at a time.
const CHUNK: usize = 1 << 22;

/// [`crate::RangeFilter`] in device memory.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_range::RangeFilter;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let keys: Vec<u64> = (0..1000).map(|i| i * i * 1_000).collect();
/// let builder = RangeFilter::<u64>::builder().fpr_at(0.01, 100);
/// let filter = builder.on(&device).build_from(&keys)?;
/// assert_eq!(filter.may_contain_bulk(&[8_900..9_100, 7..7])?, [true, false]);
/// assert!(filter.to_host()? == builder.build_from(&keys)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RangeFilter<K> {
    layout: Layout,
    device: Device,
    /// The words of a filter of this layout.
    words: DeviceVec<u64>,
    keys: PhantomData<fn() -> K>,
}

impl<K: DeviceRangeKey> RangeFilter<K> {
    fn from_parts(device: &Device, layout: Layout, words: DeviceVec<u64>) -> RangeFilter<K> {
        RangeFilter { layout, device: device.clone(), words, keys: PhantomData }
    }

    /// Returns a copy of a filter in host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn from_host(device: &Device, filter: &crate::RangeFilter<K>) -> Result<RangeFilter<K>, Error> {
        Ok(RangeFilter::from_parts(device, *filter.layout(), device.from_slice(filter.words())?))
    }

    /// Returns a copy in host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory, [`Error::OutOfMemory`] if the host has.
    pub fn to_host(&self) -> Result<crate::RangeFilter<K>, Error> {
        let mut words = AlignedWords::zeroed(self.layout.words())?;
        self.device.synchronize()?;
        self.device.new_stream()?.download(&self.words, words.as_mut_slice())?;
        crate::RangeFilter::from_parts(self.layout, words)
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the words on the device: the memory image that every backend shares.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.words.as_slice()
    }

    /// Returns the number of different keys that the filter was built from.
    pub fn len(&self) -> u64 {
        self.layout.keys()
    }

    /// Whether the filter was built from no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether no answer is wrong; see [`RangeFilter::is_exact`](crate::RangeFilter::is_exact).
    pub fn is_exact(&self) -> bool {
        self.layout.is_exact()
    }

    /// Returns the size of the words in bytes of device memory.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Returns the bits of device memory per key.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.len().max(1) as f64
    }

    /// Returns the probability that a key gets a wrong "yes".
    pub fn fpr(&self) -> f64 {
        self.fpr_of(1)
    }

    /// Returns a bound of the probability that a range of `length` keys gets a wrong "yes".
    pub fn fpr_of(&self, length: u64) -> f64 {
        self.layout.fpr_of(length)
    }

    /// Queues the lookup of `n > 0` ranges.
    ///
    /// # Safety
    /// - `firsts` and `lasts` are `n` keys of this form; `answers` has places for `n` answers, or with `counted` for
    ///   `n` words.
    /// - Until `stream` has passed this work, all stay allocated; nothing writes the filter or the keys, and nothing
    ///   else accesses the answers.
    unsafe fn queue(
        &self,
        stream: &Stream,
        (firsts, lasts): (Global<u64>, Global<u64>),
        form_of_keys: KeyForm,
        n: usize,
        (counted, answers): (bool, Answers),
    ) -> Result<(), Error> {
        let kernel = range_lookup {
            words: self.words.global(),
            shape: self.layout.shape,
            least: self.layout.ends.0 as u64,
            largest: self.layout.ends.1 as u64,
            firsts,
            lasts,
            form_of_keys,
            n,
            counted: counted.into(),
            form: answers.form,
            answers: answers.words,
        };
        // SAFETY: the words are those of the layout; the rest is this function's contract.
        unsafe { kernel.launch(stream, LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK))? };
        Ok(())
    }

    /// Writes an upper bound of the number of keys in each range from a first to a last key, both inclusive; see
    /// [`RangeFilter::count_at_most`](crate::RangeFilter::count_at_most).
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if there is another number of last keys, or there are fewer places than ranges;
    /// [`Error::Gpu`], for memory of another device.
    pub fn count_at_most_device(
        &self,
        firsts: DeviceSlice<'_, K>,
        lasts: DeviceSlice<'_, K>,
        counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: `waiting` waits for the stream while filter, keys and counts are borrowed.
        self.device.waiting(|stream| unsafe { self.count_at_most_async(stream, firsts, lasts, counts) })
    }

    /// Queues [`count_at_most_device`](Self::count_at_most_device).
    ///
    /// # Errors
    /// The errors of [`count_at_most_device`](Self::count_at_most_device).
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - the filter, `firsts`, `lasts` and `counts` stay allocated;
    /// - nothing writes the keys, and nothing else accesses the counts.
    pub unsafe fn count_at_most_async(
        &self,
        stream: &Stream,
        firsts: DeviceSlice<'_, K>,
        lasts: DeviceSlice<'_, K>,
        mut counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        same_length(firsts.len(), lasts.len())?;
        expect_room(firsts.len(), counts.len())?;
        let answers = Answers::bits_at(counts.global_mut());
        // SAFETY: there are places for all counts; the rest is this function's contract.
        unsafe { self.queue_slices(stream, firsts, lasts, counts.device(), (true, answers)) }
    }

    /// Returns the bound of [`RangeFilter::count_at_most`](crate::RangeFilter::count_at_most) for each range of the
    /// host.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn count_at_most_bulk<Q: KeyOf<K>, R: RangeBounds<Q> + Sync>(&self, ranges: &[R]) -> Result<Vec<u64>, Error> {
        let bounds = |range: &R| numbers_of::<K, Q>(range.start_bound(), range.end_bound());
        self.in_chunks(ranges, bounds, true)
    }
}

/// Defines lookups of keys and ranges for a filter, by its `device` and its `queue`.
macro_rules! lookups {
    ($filter:ident) => {
        impl<K: DeviceRangeKey> $filter<K> {
            /// Checks the arguments and queues a lookup of ranges in device memory.
            ///
            /// # Safety
            /// The contract of [`may_contain_bitmap_async`](Self::may_contain_bitmap_async); `counted` and `answers` as
            /// for [`queue`](Self::queue).
            unsafe fn queue_slices(
                &self,
                stream: &Stream,
                firsts: DeviceSlice<'_, K>,
                lasts: DeviceSlice<'_, K>,
                out: &Device,
                answers: (bool, Answers),
            ) -> Result<(), Error> {
                if firsts.is_empty() {
                    return Ok(());
                }
                let lent = [firsts.device(), lasts.device(), out, stream.device()];
                self.device().expect_all_here(lent, "a lookup in a range filter")?;
                let words = |keys: DeviceSlice<'_, K>| words_of(keys);
                // SAFETY: the lengths are equal and checked; the rest is this function's contract.
                unsafe { self.queue(stream, (words(firsts), words(lasts)), K::FORM, firsts.len(), answers) }
            }

            /// Whether each key may be in the filter: bit `i % 64` of word `i / 64` of `found` answers for key `i`.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`] if there are fewer bits than keys; [`Error::Gpu`], for memory of another
            /// device.
            pub fn contains_bitmap_device(
                &self,
                keys: DeviceSlice<'_, K>,
                found: DeviceSliceMut<'_, u64>,
            ) -> Result<(), Error> {
                self.may_contain_bitmap_device(keys, keys, found)
            }

            /// Whether any key may lie in each range from a first to a last key, both inclusive: bit `i % 64` of word
            /// `i / 64` of `found` answers for range `i`. A range whose first key is larger than its last one has no
            /// keys.
            ///
            /// # Errors
            /// [`Error::LengthMismatch`] if there is another number of last keys, or there are fewer bits than ranges;
            /// [`Error::Gpu`], for memory of another device.
            pub fn may_contain_bitmap_device(
                &self,
                firsts: DeviceSlice<'_, K>,
                lasts: DeviceSlice<'_, K>,
                found: DeviceSliceMut<'_, u64>,
            ) -> Result<(), Error> {
                // SAFETY: `waiting` waits for the stream while filter, keys and answers are borrowed.
                self.device().waiting(|stream| unsafe { self.may_contain_bitmap_async(stream, firsts, lasts, found) })
            }

            /// Queues [`may_contain_bitmap_device`](Self::may_contain_bitmap_device).
            ///
            /// # Errors
            /// The errors of [`may_contain_bitmap_device`](Self::may_contain_bitmap_device).
            ///
            /// # Safety
            /// Until `stream` has passed this work:
            /// - the filter, `firsts`, `lasts` and `found` stay allocated;
            /// - nothing writes the keys, and nothing else accesses the answers.
            pub unsafe fn may_contain_bitmap_async(
                &self,
                stream: &Stream,
                firsts: DeviceSlice<'_, K>,
                lasts: DeviceSlice<'_, K>,
                found: DeviceSliceMut<'_, u64>,
            ) -> Result<(), Error> {
                same_length(firsts.len(), lasts.len())?;
                let device = found.device().clone();
                let answers = Answers::bits(found, firsts.len())?;
                // SAFETY: there are bits for all ranges; the rest is this function's contract.
                unsafe { self.queue_slices(stream, firsts, lasts, &device, (false, answers)) }
            }

            /// Whether each key of the host may be in the filter.
            ///
            /// # Errors
            /// [`Error::Gpu`].
            pub fn contains_bulk<Q: KeyOf<K>>(&self, keys: &[Q]) -> Result<Vec<bool>, Error> {
                Ok(self.contains_bitmap_bulk(keys)?.iter().collect())
            }

            /// Does the work of [`contains_bulk`](Self::contains_bulk) and returns one bit per key.
            ///
            /// # Errors
            /// [`Error::Gpu`].
            pub fn contains_bitmap_bulk<Q: KeyOf<K>>(&self, keys: &[Q]) -> Result<Bitmap, Error> {
                self.answer(keys, |key| (Bound::Included(key), Bound::Included(key)))
            }

            /// Whether any key of the filter may lie in each range of the host.
            ///
            /// # Errors
            /// [`Error::Gpu`].
            pub fn may_contain_bulk<Q: KeyOf<K>, R: RangeBounds<Q> + Sync>(
                &self,
                ranges: &[R],
            ) -> Result<Vec<bool>, Error> {
                Ok(self.may_contain_bitmap_bulk(ranges)?.iter().collect())
            }

            /// Does the work of [`may_contain_bulk`](Self::may_contain_bulk) and returns one bit per range.
            ///
            /// # Errors
            /// [`Error::Gpu`].
            pub fn may_contain_bitmap_bulk<Q: KeyOf<K>, R: RangeBounds<Q> + Sync>(
                &self,
                ranges: &[R],
            ) -> Result<Bitmap, Error> {
                self.answer(ranges, |range| (range.start_bound(), range.end_bound()))
            }

            /// Answers items of the host, each a range.
            fn answer<T, Q: KeyOf<K>>(
                &self,
                items: &[T],
                bounds: impl Fn(&T) -> (Bound<&Q>, Bound<&Q>),
            ) -> Result<Bitmap, Error> {
                let bounds = |item: &T| {
                    let (start, end) = bounds(item);
                    numbers_of::<K, Q>(start, end)
                };
                Ok(Bitmap::from_words(self.in_chunks(items, bounds, false)?, items.len()))
            }

            /// Copies numbers of the host to the device, chunk by chunk, and the words of answers or counts back.
            fn in_chunks<T>(
                &self,
                items: &[T],
                numbers: impl Fn(&T) -> (u64, u64),
                counted: bool,
            ) -> Result<Vec<u64>, Error> {
                // Work that the caller queued on other streams runs first.
                self.device().synchronize()?;
                let stream = self.device().new_stream()?;
                let mut words = Vec::new();
                for items in items.chunks(CHUNK) {
                    let (firsts, lasts): (Vec<u64>, Vec<u64>) = items.iter().map(&numbers).unzip();
                    let (firsts, lasts) = (self.device().from_slice(&firsts)?, self.device().from_slice(&lasts)?);
                    let len = if counted { items.len() } else { items.len().div_ceil(64) };
                    let mut out = self.device().alloc_uninit::<u64>(len)?;
                    let keys = (firsts.global(), lasts.global());
                    let answers = (counted, Answers::bits_at(out.global_mut()));
                    // SAFETY: there is a place per answer; all memory lives until the stream has been waited for.
                    unsafe { self.queue(&stream, keys, <u64 as DeviceRangeKey>::FORM, items.len(), answers)? };
                    stream.synchronize()?;
                    words.extend(out.to_vec()?);
                }
                Ok(words)
            }
        }
    };
}
lookups!(RangeFilter);
lookups!(DynamicRangeFilter);

/// Returns the numbers of the first and the last key within bounds; of an empty range the first is the larger one.
fn numbers_of<K: DeviceRangeKey, Q: KeyOf<K>>(start: Bound<&Q>, end: Bound<&Q>) -> (u64, u64) {
    crate::key::words_of::<K, Q>(start, end).unwrap_or((1, 0))
}

/// Returns keys as words, of which a kernel reads the parts that the form of keys names.
fn words_of<K: DeviceRangeKey>(keys: DeviceSlice<'_, K>) -> Global<u64> {
    Global::from_raw_parts(keys.global().as_ptr().cast(), (keys.len() * size_of::<K>()).div_ceil(8))
}

impl<K: DeviceRangeKey> crate::RangeFilter<K> {
    /// Returns a copy in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn to_device(&self, device: &Device) -> Result<RangeFilter<K>, Error> {
        RangeFilter::from_host(device, self)
    }
}

impl<K> fmt::Debug for RangeFilter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("gpu::RangeFilter").field("layout", &self.layout).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
