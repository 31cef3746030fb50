//! Keys and values on devices: which kernels there are for them, and which forms of the primitives they take.

use std::borrow::Cow;

use bytemuck::Pod;
use warpset_base::parallel;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, GpuError, Stream};
use warpset_kernels::lsm::batch::lsm_gather;
use warpset_kernels::lsm::copies::lsm_copies;
use warpset_kernels::lsm::count::lsm_count;
use warpset_kernels::lsm::derive::{lsm_derive, lsm_index_head};
use warpset_kernels::lsm::flipped::{lsm_descends, lsm_lookup_flipped};
use warpset_kernels::lsm::list::{lsm_list, lsm_list_pieces};
use warpset_kernels::lsm::lookup::{lsm_lookup, lsm_lookup_sorted};
use warpset_kernels::lsm::neighbours::lsm_neighbours;
use warpset_kernels::lsm::order::RangeKey;
use warpset_kernels::lsm::ordering::{lsm_order, lsm_order_queries};
use warpset_kernels::lsm::spans::lsm_spans;
use warpset_kernels::lsm::visible::{lsm_visible_hide, lsm_visible_own};
use warpset_primitives::merge::{
    Marked, Pairs, WithStatus, merge_many_keys_async, merge_many_keys_with_status_async, merge_many_pairs_async,
    merge_many_pairs_with_status_async, merge_newest_keys_async, merge_newest_pairs_async,
};
use warpset_primitives::reduce::TileItem;
use warpset_primitives::sort::{By, Payload, SortKey, sort_keys_async, sort_pairs_async};
use warpset_primitives::{KeyMask, Result, select};
use warpset_simt::EntryOf;

use super::elements::DeviceElements;
use crate::{OrderedKey, Value};

/// Keys from which on several threads restore them, and how many each of them takes at a time.
const LARGE: usize = 1 << 18;

/// Keys of dictionaries in device memory: `u32`, `u64`, `i32` and `i64`, which stand there as unsigned keys. Sealed.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_lsm::gpu::{DeviceKey, DeviceValue, Lsm};
/// use warpset_lsm::{Error, Lsm as HostLsm};
///
/// /// How many of the keys are not there yet, asked and inserted in device memory.
/// fn insert_new<K: DeviceKey, V: DeviceValue>(lsm: &mut Lsm<K, V>, keys: &[K], values: &[V]) -> Result<usize, Error> {
///     let device = lsm.device().clone();
///     let keys = device.from_slice(&K::stored(keys))?;
///     let values = device.from_slice(V::stored(values))?;
///     let mut found = device.alloc_zeroed(keys.len())?;
///     lsm.contains_device(keys.as_slice(), found.as_mut_slice())?;
///     lsm.insert_device(keys.as_slice(), values.as_slice())?;
///     Ok(found.to_vec()?.iter().filter(|&&found| found == 0).count())
/// }
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let mut lsm = HostLsm::<i64, u32>::builder().on(&device).build_from(&[-5], &[1])?;
/// assert_eq!(insert_new(&mut lsm, &[-7, -5, 3], &[2, 3, 4])?, 2);
/// assert_eq!(lsm.first_key_value()?, Some((-7, 2)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait DeviceKey: OrderedKey {
    /// What is stored for a key: an unsigned one itself, a signed one with its highest bit flipped, which keeps the
    /// order.
    type Stored: StoredKey;

    /// The key as it is stored.
    fn to_stored(self) -> Self::Stored {
        Self::Stored::from_u64(self.to_u64())
    }

    /// The keys as they are stored; unsigned ones without a copy.
    fn stored(keys: &[Self]) -> Cow<'_, [Self::Stored]>;

    /// The keys that are stored so.
    fn from_stored(stored: Vec<Self::Stored>) -> Vec<Self> {
        let mut keys: Vec<Self> = bytemuck::cast_vec(stored);
        Self::restore(&mut keys);
        keys
    }

    /// Makes keys of what is stored for them, in the same memory.
    fn restore(stored: &mut [Self]);

    /// Copies stored keys from the device, as many as `to` has, after the stream's work, and waits.
    ///
    /// # Errors
    /// As for [`Stream::download`].
    fn download(
        stream: &Stream,
        from: DeviceSlice<'_, Self::Stored>,
        to: &mut [Self],
    ) -> std::result::Result<(), GpuError> {
        stream.download(from, bytemuck::cast_slice_mut(to))?;
        if to.len() < LARGE {
            Self::restore(to);
        } else {
            parallel::for_each(to.chunks_mut(LARGE), Self::restore);
        }
        Ok(())
    }
}

macro_rules! device_keys {
    ($($key:ty, $stored:ty, |$keys:ident| $to:expr, |$bits:ident| $from:expr;)*) => {$(
        impl DeviceKey for $key {
            type Stored = $stored;
            fn stored($keys: &[Self]) -> Cow<'_, [$stored]> {
                $to
            }
            fn restore($bits: &mut [Self]) {
                $from
            }
        }
    )*};
}
device_keys! {
    u32, u32, |keys| Cow::Borrowed(keys), |_keys| {};
    u64, u64, |keys| Cow::Borrowed(keys), |_keys| {};
    i32, u32, |keys| keys.iter().map(|key| key.to_stored()).collect(), |keys| keys.iter_mut().for_each(|key| *key ^= Self::MIN);
    i64, u64, |keys| keys.iter().map(|key| key.to_stored()).collect(), |keys| keys.iter_mut().for_each(|key| *key ^= Self::MIN);
}

/// Keys that there are kernels for: `u32` and `u64`. Sealed.
pub trait StoredKey:
    OrderedKey
    + SortKey
    + EntryOf<lsm_lookup<Self>>
    + EntryOf<lsm_neighbours<Self>>
    + EntryOf<lsm_copies<Self>>
    + EntryOf<lsm_lookup_sorted<Self>>
    + EntryOf<lsm_lookup_flipped<Self>>
    + EntryOf<lsm_descends<Self>>
    + EntryOf<lsm_count<Self>>
    + EntryOf<lsm_gather<Self>>
    + EntryOf<lsm_index_head<Self>>
    + EntryOf<lsm_derive<Self>>
    + EntryOf<lsm_visible_own<Self>>
    + EntryOf<lsm_visible_hide<Self>>
    + EntryOf<lsm_spans<Self>>
    + EntryOf<lsm_list<Self>>
    + EntryOf<lsm_list_pieces<Self>>
    + EntryOf<lsm_order<Self>>
    + EntryOf<lsm_order_queries<Self>>
    + RangeKey
    + select::Item
    + TileItem
{
}
impl StoredKey for u32 {}
impl StoredKey for u64 {}

/// Values of dictionaries in device memory: `u32`, `u64` and `()`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a dictionary in device memory",
    note = "use `u32`, `u64` or `()`"
)]
pub trait DeviceValue: Value + primitives::Forms {
    /// What is stored for a value: it itself; of `()` nothing, whatever the type.
    type Stored: Pod + Default + Send + Sync;

    /// Words of 32 bits in a value.
    const WORDS: u32;

    /// The values as they are stored; none for `()`.
    fn stored(values: &[Self]) -> &[Self::Stored];

    /// Where what is stored becomes values: nowhere for `()`.
    fn stored_mut(values: &mut [Self]) -> &mut [Self::Stored];
}

macro_rules! device_values {
    ($($value:ty: $words:literal;)*) => {$(
        impl DeviceValue for $value {
            type Stored = $value;
            const WORDS: u32 = $words;
            fn stored(values: &[$value]) -> &[$value] {
                values
            }
            fn stored_mut(values: &mut [$value]) -> &mut [$value] {
                values
            }
        }
    )*};
}
device_values! {
    u32: 1;
    u64: 2;
}

impl DeviceValue for () {
    type Stored = u32;
    const WORDS: u32 = 0;
    fn stored(_: &[()]) -> &[u32] {
        &[]
    }
    fn stored_mut(_: &mut [()]) -> &mut [u32] {
        &mut []
    }
}

/// Values in device memory that updates can combine: `u32` and `u64`. Sealed.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with values in device memory",
    note = "use `u32` or `u64`"
)]
pub trait CombinedValue: DeviceValue<Stored = Self> + Payload + select::Item + TileItem {}
impl CombinedValue for u32 {}
impl CombinedValue for u64 {}

pub(crate) mod primitives {
    use super::*;

    /// The primitives for elements with such values.
    pub trait Forms: Sized {
        /// Queues the sort by key, of equal keys the last one first.
        ///
        /// # Safety
        /// As [`sort_pairs_async`].
        unsafe fn sort<K: StoredKey, T: Pod>(
            stream: &Stream,
            keys: DeviceSlice<'_, K>,
            values: DeviceSlice<'_, T>,
            out_keys: &mut DeviceVec<K>,
            out_values: &mut DeviceVec<T>,
        ) -> Result<()>;

        /// Queues the merge of runs, the newest first, into `out`, which is as long, and has a bitmap if one of them
        /// has.
        ///
        /// # Safety
        /// As [`merge_many_pairs_with_status_async`].
        unsafe fn merge<K: StoredKey>(
            stream: &Stream,
            runs: &[&DeviceElements<K, Self>],
            out: &mut DeviceElements<K, Self>,
        ) -> Result<()>
        where
            Self: DeviceValue;

        /// Queues the merge of what lives into `out`, which is as long as the runs, and its number into `count`.
        ///
        /// # Safety
        /// As [`merge_newest_pairs_async`].
        unsafe fn merge_live<K: StoredKey>(
            stream: &Stream,
            runs: &[&DeviceElements<K, Self>],
            out: &mut DeviceElements<K, Self>,
            count: DeviceSliceMut<'_, u64>,
        ) -> Result<()>
        where
            Self: DeviceValue;
    }

    impl Forms for () {
        unsafe fn sort<K: StoredKey, T: Pod>(
            stream: &Stream,
            keys: DeviceSlice<'_, K>,
            _: DeviceSlice<'_, T>,
            out_keys: &mut DeviceVec<K>,
            _: &mut DeviceVec<T>,
        ) -> Result<()> {
            // SAFETY: the caller's promise is the same.
            unsafe { sort_keys_async(stream, keys, out_keys, By::ascending()) }
        }

        unsafe fn merge<K: StoredKey>(
            stream: &Stream,
            runs: &[&DeviceElements<K, ()>],
            out: &mut DeviceElements<K, ()>,
        ) -> Result<()> {
            // SAFETY: the caller's promise is the same.
            unsafe {
                let DeviceElements { keys, tombstones, .. } = out;
                let Some(tombstones) = tombstones else {
                    let runs: Vec<DeviceSlice<'_, K>> = runs.iter().map(|run| run.keys()).collect();
                    return merge_many_keys_async(stream, &runs, KeyMask::all(), keys);
                };
                let runs: Vec<_> = runs.iter().map(|run| WithStatus::new(run.keys(), run.tombstones())).collect();
                merge_many_keys_with_status_async(stream, &runs, KeyMask::all(), keys, tombstones)
            }
        }

        unsafe fn merge_live<K: StoredKey>(
            stream: &Stream,
            runs: &[&DeviceElements<K, ()>],
            out: &mut DeviceElements<K, ()>,
            count: DeviceSliceMut<'_, u64>,
        ) -> Result<()> {
            let runs: Vec<_> = runs.iter().map(|run| WithStatus::new(run.keys(), run.tombstones())).collect();
            // SAFETY: the caller's promise is the same.
            unsafe { merge_newest_keys_async(stream, &runs, KeyMask::all(), Marked::Dropped, &mut out.keys, count) }
        }
    }

    macro_rules! with_values {
        ($($value:ty),*) => {$(
            impl Forms for $value {
                unsafe fn sort<K: StoredKey, T: Pod>(
                    stream: &Stream,
                    keys: DeviceSlice<'_, K>,
                    values: DeviceSlice<'_, T>,
                    out_keys: &mut DeviceVec<K>,
                    out_values: &mut DeviceVec<T>,
                ) -> Result<()> {
                    let (values, out_values) = (values.cast()?, out_values.as_mut_slice().cast()?);
                    // SAFETY: the caller's promise is the same.
                    unsafe { sort_by_key::<K, $value>(stream, keys, values, out_keys, out_values) }
                }

                unsafe fn merge<K: StoredKey>(
                    stream: &Stream,
                    runs: &[&DeviceElements<K, $value>],
                    out: &mut DeviceElements<K, $value>,
                ) -> Result<()> {
                    // SAFETY: the caller's promise is the same.
                    unsafe {
                        let DeviceElements { keys, values, tombstones, .. } = out;
                        let Some(tombstones) = tombstones else {
                            let runs: Vec<_> = runs.iter().map(|run| Pairs::new(run.keys(), run.values())).collect();
                            return merge_many_pairs_async(stream, &runs, KeyMask::all(), keys, values);
                        };
                        let runs: Vec<_> = runs
                            .iter()
                            .map(|run| WithStatus::new(Pairs::new(run.keys(), run.values()), run.tombstones()))
                            .collect();
                        merge_many_pairs_with_status_async(stream, &runs, KeyMask::all(), keys, values, tombstones)
                    }
                }

                unsafe fn merge_live<K: StoredKey>(
                    stream: &Stream,
                    runs: &[&DeviceElements<K, $value>],
                    out: &mut DeviceElements<K, $value>,
                    count: DeviceSliceMut<'_, u64>,
                ) -> Result<()> {
                    let runs: Vec<_> = runs
                        .iter()
                        .map(|run| WithStatus::new(Pairs::new(run.keys(), run.values()), run.tombstones()))
                        .collect();
                    let DeviceElements { keys, values, .. } = out;
                    // SAFETY: the caller's promise is the same.
                    unsafe { merge_newest_pairs_async(stream, &runs, KeyMask::all(), Marked::Dropped, keys, values, count) }
                }
            }
        )*};
    }
    with_values!(u32, u64);

    /// # Safety
    /// As [`sort_pairs_async`].
    unsafe fn sort_by_key<K: StoredKey, V: Payload>(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
        out_keys: &mut DeviceVec<K>,
        out_values: DeviceSliceMut<'_, V>,
    ) -> Result<()> {
        // SAFETY: the caller's promise is the same.
        unsafe { sort_pairs_async(stream, keys, values, out_keys, out_values, By::ascending().last_first()) }
    }
}
