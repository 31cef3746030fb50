//! Keys and values on devices: which kernels there are for them, and which forms of the primitives they take.

use std::borrow::Cow;

use bytemuck::Pod;
use warpset_base::parallel;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, GpuError, Stream};
use warpset_kernels::lsm::batch::lsm_gather;
use warpset_kernels::lsm::copies::lsm_copies;
use warpset_kernels::lsm::count::lsm_count;
use warpset_kernels::lsm::derive::{lsm_derive, lsm_index_head};
use warpset_kernels::lsm::flipped::{lsm_descends, lsm_lookup_flipped};
use warpset_kernels::lsm::list::{lsm_list, lsm_list_located, lsm_list_long, lsm_list_tasks};
use warpset_kernels::lsm::lookup::{lsm_lookup, lsm_lookup_sorted};
use warpset_kernels::lsm::neighbours::lsm_neighbours;
use warpset_kernels::lsm::order::RangeKey;
use warpset_kernels::lsm::ordering::{lsm_order, lsm_order_queries};
use warpset_kernels::lsm::spans::{lsm_locate, lsm_spans};
use warpset_kernels::lsm::visible::{lsm_visible_hide, lsm_visible_own};
use warpset_primitives::merge::{
    Marked, Pairs, WithStatus, merge_many_keys_async, merge_many_keys_with_status_async, merge_many_pairs_async,
    merge_many_pairs_with_status_async, merge_newest_keys_async, merge_newest_pairs_async,
};
use warpset_primitives::reduce::TileItem;
use warpset_primitives::sort::{By, Payload, SortKey, sort_keys_async, sort_pairs_async};
use warpset_primitives::{KeyMask, Result, select};
use warpset_simt::EntryOf;

use crate::gpu::device_run::DeviceElements;
use crate::gpu::wide_values;
use crate::{OrderedKey, Value};

/// Keys from which on several threads restore them, and how many each of them takes at a time.
const LARGE: usize = 1 << 18;

/// Keys of dictionaries in device memory: `u32`, `u64`, `u128`, `i32`, `i64`, `i128`, `[u8; 4]`, `[u8; 8]` and
/// `[u8; 16]`, which stand there as unsigned keys. Sealed.
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the key of a dictionary in device memory",
    note = "use an integer of 4, 8 or 16 bytes, `[u8; 4]`, `[u8; 8]` or `[u8; 16]`; dictionaries on the host have \
            strings of other lengths too"
)]
pub trait DeviceKey: OrderedKey {
    /// What is stored for a key: an unsigned one itself, a signed one with its highest bit flipped, a string of bytes
    /// as the number whose highest byte is its first; so the order is kept.
    type Stored: StoredKey;

    /// The key as it is stored.
    fn to_stored(self) -> Self::Stored {
        Self::Stored::from_u128(self.to_u128())
    }

    /// The keys as they are stored; unsigned ones without a copy.
    fn stored(keys: &[Self]) -> Cow<'_, [Self::Stored]>;

    /// Writes the keys as they are stored, to a place for each.
    fn store(keys: &[Self], to: &mut [Self::Stored]) {
        match Self::stored(&keys[..0]) {
            Cow::Borrowed(_) => to.copy_from_slice(bytemuck::cast_slice(keys)),
            Cow::Owned(_) => to.iter_mut().zip(keys).for_each(|(to, &key)| *to = key.to_stored()),
        }
    }

    /// The keys that are stored so.
    fn from_stored(stored: Vec<Self::Stored>) -> Vec<Self> {
        let mut keys: Vec<Self> =
            bytemuck::try_cast_vec(stored).unwrap_or_else(|(_, stored)| bytemuck::cast_slice(&stored).to_vec());
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
        stream.download(from.cast::<u8>()?, bytemuck::cast_slice_mut(to))?;
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
    u128, u128, |keys| Cow::Borrowed(keys), |_keys| {};
    i128, u128, |keys| keys.iter().map(|key| key.to_stored()).collect(), |keys| keys.iter_mut().for_each(|key| *key ^= Self::MIN);
    [u8; 4], u32, |keys| keys.iter().map(|key| key.to_stored()).collect(), |keys| keys.iter_mut().for_each(|key| key.reverse());
    [u8; 8], u64, |keys| keys.iter().map(|key| key.to_stored()).collect(), |keys| keys.iter_mut().for_each(|key| key.reverse());
    [u8; 16], u128, |keys| keys.iter().map(|key| key.to_stored()).collect(), |keys| keys.iter_mut().for_each(|key| key.reverse());
}

/// Keys that there are kernels for: `u32`, `u64` and `u128`. Sealed.
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
    + EntryOf<lsm_list_located<Self>>
    + EntryOf<lsm_list_long<Self>>
    + EntryOf<lsm_list_tasks<Self>>
    + EntryOf<lsm_locate<Self>>
    + EntryOf<lsm_order<Self>>
    + EntryOf<lsm_order_queries<Self>>
    + RangeKey
    + select::Item
    + TileItem
{
}
impl StoredKey for u32 {}
impl StoredKey for u64 {}
impl StoredKey for u128 {}

/// Values of dictionaries in device memory: numbers, arrays, `()`, and structs by
/// [`device_value!`](crate::device_value). Those of 4 and of 8 bytes lie beside the keys as numbers, which kernels
/// carry; others as rows, of which kernels carry the addresses, so that an element takes 8 bytes more.
///
/// # Safety
/// Unless the type has no size, `Stored` is the type itself, and `stored` and `stored_mut` return their arguments; of
/// no size, they return empty slices. The constants are as provided.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a dictionary in device memory",
    note = "numbers and arrays of numbers can; for a struct of plain old data write `warpset_lsm::device_value!({Self});`"
)]
pub unsafe trait DeviceValue: Value + primitives::Forms {
    /// What is stored for a value: it itself; of `()` nothing, whatever the type.
    type Stored: Pod + Send + Sync;

    /// Words of 32 bits that kernels carry for a value.
    const WORDS: u32 = match size_of::<Self>() {
        0 => 0,
        4 => 1,
        _ => 2,
    };

    /// Whether these words are the address of the value.
    const IN_ROWS: bool = !matches!(size_of::<Self>(), 0 | 4 | 8);

    /// The values as they are stored; none of no size.
    fn stored(values: &[Self]) -> &[Self::Stored];

    /// Where what is stored becomes values: nowhere for those of no size.
    fn stored_mut(values: &mut [Self]) -> &mut [Self::Stored];
}

/// Lets structs of plain old data be values of dictionaries in device memory; on the host they are without it.
///
/// ```
/// use bytemuck::{Pod, Zeroable};
/// use warpset_gpu::Device;
/// use warpset_lsm::Lsm;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
/// #[repr(C)]
/// struct Trade {
///     price: f64,
///     volume: u32,
///     venue: u32,
/// }
/// warpset_lsm::device_value!(Trade);
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let trade = Trade { price: 1.5, volume: 10, venue: 3 };
/// let last = Lsm::<u32, Trade>::builder().on(&device).build_from(&[7], &[trade])?;
/// assert_eq!(last.get_bulk(&[7, 8])?, [Some(trade), None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[macro_export]
macro_rules! device_value {
    ($($value:ty),+ $(,)?) => {$(
        // SAFETY: as the trait asks for.
        unsafe impl $crate::gpu::DeviceValue for $value {
            type Stored = Self;
            fn stored(values: &[Self]) -> &[Self] {
                if size_of::<Self>() == 0 { &[] } else { values }
            }
            fn stored_mut(values: &mut [Self]) -> &mut [Self] {
                if size_of::<Self>() == 0 { &mut [] } else { values }
            }
        }
    )+};
}
device_value!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128, f32, f64);

// SAFETY: as the trait asks for.
unsafe impl<T, const LEN: usize> DeviceValue for [T; LEN]
where
    [T; LEN]: Value,
{
    type Stored = Self;
    fn stored(values: &[Self]) -> &[Self] {
        if size_of::<Self>() == 0 { &[] } else { values }
    }
    fn stored_mut(values: &mut [Self]) -> &mut [Self] {
        if size_of::<Self>() == 0 { &mut [] } else { values }
    }
}

// SAFETY: as the trait asks for.
unsafe impl DeviceValue for () {
    type Stored = u32;
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
        /// Queues the sort by key, of equal keys the last one first, into `out`, which is as long.
        ///
        /// # Safety
        /// As [`sort_pairs_async`].
        unsafe fn sort<K: StoredKey>(
            stream: &Stream,
            keys: DeviceSlice<'_, K>,
            values: DeviceSlice<'_, Self::Stored>,
            out: &mut DeviceElements<K, Self>,
        ) -> Result<()>
        where
            Self: DeviceValue;

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

        /// Queues the merge of what lives into `out`, which is as long as the runs, and its number into `count`. Of
        /// rows it gets the addresses alone: [`DeviceElements::settle`] does the rest, once the number is known.
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

    impl<V: Value> Forms for V {
        unsafe fn sort<K: StoredKey>(
            stream: &Stream,
            keys: DeviceSlice<'_, K>,
            values: DeviceSlice<'_, V::Stored>,
            out: &mut DeviceElements<K, V>,
        ) -> Result<()>
        where
            V: DeviceValue,
        {
            // SAFETY: the caller's promise is the same; addresses are freed in the order of the stream.
            unsafe {
                match size_of::<V>() {
                    0 => sort_keys_async(stream, keys, &mut out.keys, By::ascending()),
                    4 => sort_by_key::<K, V, u32>(stream, keys, values.cast()?, out),
                    8 => sort_by_key::<K, V, u64>(stream, keys, values.cast()?, out),
                    _ => {
                        let addresses = wide_values::addresses(stream, values)?;
                        sort_by_key::<K, V, u64>(stream, keys, addresses.as_slice(), out)?;
                        out.settle(stream, wide_values::address_of(values))
                    }
                }
            }
        }

        unsafe fn merge<K: StoredKey>(
            stream: &Stream,
            runs: &[&DeviceElements<K, V>],
            out: &mut DeviceElements<K, V>,
        ) -> Result<()>
        where
            V: DeviceValue,
        {
            // SAFETY: the caller's promise is the same; the addresses are those of rows in the runs.
            unsafe {
                match size_of::<V>() {
                    0 => merge_keys(stream, runs, out),
                    4 => merge_with::<K, V, u32>(stream, runs, out),
                    8 => merge_with::<K, V, u64>(stream, runs, out),
                    _ => {
                        merge_with::<K, V, u64>(stream, runs, out)?;
                        out.settle(stream, 0)
                    }
                }
            }
        }

        unsafe fn merge_live<K: StoredKey>(
            stream: &Stream,
            runs: &[&DeviceElements<K, V>],
            out: &mut DeviceElements<K, V>,
            count: DeviceSliceMut<'_, u64>,
        ) -> Result<()>
        where
            V: DeviceValue,
        {
            // SAFETY: the caller's promise is the same.
            unsafe {
                match size_of::<V>() {
                    0 => {
                        let runs: Vec<_> =
                            runs.iter().map(|run| WithStatus::new(run.keys(), run.tombstones())).collect();
                        let (keys, mask) = (&mut out.keys, KeyMask::all());
                        merge_newest_keys_async(stream, &runs, mask, Marked::Dropped, keys, count)
                    }
                    4 => merge_live_with::<K, V, u32>(stream, runs, out, count),
                    _ => merge_live_with::<K, V, u64>(stream, runs, out, count),
                }
            }
        }
    }

    /// # Safety
    /// As [`merge_many_keys_with_status_async`].
    unsafe fn merge_keys<K: StoredKey, V: DeviceValue>(
        stream: &Stream,
        runs: &[&DeviceElements<K, V>],
        out: &mut DeviceElements<K, V>,
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

    /// The runs with what kernels carry for their values, a `T` each.
    fn carried<'a, K: StoredKey, V: DeviceValue, T: Payload>(
        runs: &[&'a DeviceElements<K, V>],
    ) -> Result<Vec<WithStatus<'a, Pairs<'a, K, T>>>> {
        let carried = |run: &&'a DeviceElements<K, V>| {
            Ok(WithStatus::new(Pairs::new(run.keys(), run.carried()?), run.tombstones()))
        };
        runs.iter().map(carried).collect()
    }

    /// # Safety
    /// As [`merge_many_pairs_with_status_async`].
    unsafe fn merge_with<K: StoredKey, V: DeviceValue, T: Payload>(
        stream: &Stream,
        runs: &[&DeviceElements<K, V>],
        out: &mut DeviceElements<K, V>,
    ) -> Result<()> {
        let runs = carried::<K, V, T>(runs)?;
        let (keys, values, tombstones) = out.parts_mut::<T>()?;
        // SAFETY: the caller's promise is the same.
        unsafe {
            match tombstones {
                Some(tombstones) => {
                    merge_many_pairs_with_status_async(stream, &runs, KeyMask::all(), keys, values, tombstones)
                }
                None => {
                    let runs: Vec<_> = runs.iter().map(|run| run.run).collect();
                    merge_many_pairs_async(stream, &runs, KeyMask::all(), keys, values)
                }
            }
        }
    }

    /// # Safety
    /// As [`merge_newest_pairs_async`].
    unsafe fn merge_live_with<K: StoredKey, V: DeviceValue, T: Payload>(
        stream: &Stream,
        runs: &[&DeviceElements<K, V>],
        out: &mut DeviceElements<K, V>,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<()> {
        let runs = carried::<K, V, T>(runs)?;
        let (keys, values, _) = out.parts_mut::<T>()?;
        // SAFETY: the caller's promise is the same.
        unsafe { merge_newest_pairs_async(stream, &runs, KeyMask::all(), Marked::Dropped, keys, values, count) }
    }

    /// # Safety
    /// As [`sort_pairs_async`].
    unsafe fn sort_by_key<K: StoredKey, V: DeviceValue, T: Payload>(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, T>,
        out: &mut DeviceElements<K, V>,
    ) -> Result<()> {
        let (out_keys, out_values, _) = out.parts_mut::<T>()?;
        // SAFETY: the caller's promise is the same.
        unsafe { sort_pairs_async(stream, keys, values, out_keys, out_values, By::ascending().last_first()) }
    }
}
