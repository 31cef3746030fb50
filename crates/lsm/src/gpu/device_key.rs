//! Keys and values on devices: the available kernels, and the forms of the primitives that they use.

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

/// Keys that one thread restores at a time; several threads share larger numbers.
const LARGE: usize = 1 << 18;

/// Keys of dictionaries in device memory: `u32`, `u64`, `u128`, `i32`, `i64`, `i128`, `[u8; 4]`, `[u8; 8]` and `[u8;
/// 16]`, which are stored as unsigned keys. Sealed.
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
    /// Stored form of a key, in the same order: an unsigned key itself, a signed one with its highest bit flipped, a
    /// string of bytes as the number with the first byte highest.
    type Stored: StoredKey;

    /// Returns the stored form of the key.
    fn to_stored(self) -> Self::Stored {
        Self::Stored::from_u128(self.to_u128())
    }

    /// Returns the stored forms of the keys; of unsigned keys without a copy.
    fn stored(keys: &[Self]) -> Cow<'_, [Self::Stored]>;

    /// Writes the stored forms of the keys, one place per key.
    fn store(keys: &[Self], to: &mut [Self::Stored]) {
        match Self::stored(&keys[..0]) {
            Cow::Borrowed(_) => to.copy_from_slice(bytemuck::cast_slice(keys)),
            Cow::Owned(_) => to.iter_mut().zip(keys).for_each(|(to, &key)| *to = key.to_stored()),
        }
    }

    /// Returns the keys of these stored forms.
    fn from_stored(stored: Vec<Self::Stored>) -> Vec<Self> {
        let mut keys: Vec<Self> =
            bytemuck::try_cast_vec(stored).unwrap_or_else(|(_, stored)| bytemuck::cast_slice(&stored).to_vec());
        Self::restore(&mut keys);
        keys
    }

    /// Converts stored forms to keys, in the same memory.
    fn restore(stored: &mut [Self]);

    /// Copies `to.len()` stored keys from the device, after the stream's work, and waits.
    ///
    /// # Errors
    /// The errors of [`Stream::download`].
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

/// Keys with kernels: `u32`, `u64` and `u128`. Sealed.
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
/// [`device_value!`](crate::device_value). Values of 4 and 8 bytes are stored beside the keys as numbers, which kernels
/// carry. Other values are stored as rows, and kernels carry their addresses, which take 8 bytes more per element.
///
/// # Safety
/// Unless the type has size zero, `Stored` is the type itself, and `stored` and `stored_mut` return their arguments.
/// For size zero they return empty slices. The constants are as provided.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the value of a dictionary in device memory",
    note = "numbers and arrays of numbers can; for a struct of plain old data write `warpset_lsm::device_value!({Self});`"
)]
pub unsafe trait DeviceValue: Value + primitives::Forms {
    /// Stored form of a value: the value itself; nothing for `()`.
    type Stored: Pod + Send + Sync;

    /// Words of 32 bits that kernels carry per value.
    const WORDS: u32 = match size_of::<Self>() {
        0 => 0,
        4 => 1,
        _ => 2,
    };

    /// Whether these words are the address of the value.
    const IN_ROWS: bool = !matches!(size_of::<Self>(), 0 | 4 | 8);

    /// Returns the stored forms of the values; none for values of size zero.
    fn stored(values: &[Self]) -> &[Self::Stored];

    /// Returns the places at which stored forms become values; none for values of size zero.
    fn stored_mut(values: &mut [Self]) -> &mut [Self::Stored];
}

/// Lets structs of plain old data be values of dictionaries in device memory; on the host they need no declaration.
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
        // SAFETY: `Stored` is the type itself; the slices are the arguments, or empty for size zero.
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

// SAFETY: `Stored` is the type itself; the slices are the arguments, or empty for size zero.
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

// SAFETY: the type has size zero, and the slices are empty.
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

    /// Primitives for elements with such values.
    pub trait Forms: Sized {
        /// Queues the sort by key into `out`, which has the same length; the last one of equal keys comes first.
        ///
        /// # Safety
        /// The contract of [`sort_pairs_async`].
        unsafe fn sort<K: StoredKey>(
            stream: &Stream,
            keys: DeviceSlice<'_, K>,
            values: DeviceSlice<'_, Self::Stored>,
            out: &mut DeviceElements<K, Self>,
        ) -> Result<()>
        where
            Self: DeviceValue;

        /// Queues the merge of runs, the newest first, into `out`, which has the length of all runs, and a bitmap if
        /// one of them has.
        ///
        /// # Safety
        /// The contract of [`merge_many_pairs_with_status_async`].
        unsafe fn merge<K: StoredKey>(
            stream: &Stream,
            runs: &[&DeviceElements<K, Self>],
            out: &mut DeviceElements<K, Self>,
        ) -> Result<()>
        where
            Self: DeviceValue;

        /// Queues the merge of the live elements into `out`, which has the length of all runs, and their number into
        /// `count`. Values in rows are merged as addresses; [`DeviceElements::settle`] copies the rows once the number
        /// is known.
        ///
        /// # Safety
        /// The contract of [`merge_newest_pairs_async`].
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
            // SAFETY: the contract of this function; addresses are freed in stream order.
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
            // SAFETY: the contract of this function; the addresses are those of rows in the runs.
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
            // SAFETY: the contract of this function.
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

    /// Queues the merge of keys without values.
    ///
    /// # Safety
    /// The contract of [`merge_many_keys_with_status_async`].
    unsafe fn merge_keys<K: StoredKey, V: DeviceValue>(
        stream: &Stream,
        runs: &[&DeviceElements<K, V>],
        out: &mut DeviceElements<K, V>,
    ) -> Result<()> {
        // SAFETY: the contract of this function.
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

    /// Returns the runs with the words that kernels carry for their values, one `T` each.
    fn carried<'a, K: StoredKey, V: DeviceValue, T: Payload>(
        runs: &[&'a DeviceElements<K, V>],
    ) -> Result<Vec<WithStatus<'a, Pairs<'a, K, T>>>> {
        let carried = |run: &&'a DeviceElements<K, V>| {
            Ok(WithStatus::new(Pairs::new(run.keys(), run.carried()?), run.tombstones()))
        };
        runs.iter().map(carried).collect()
    }

    /// Queues the merge of keys with values of type `T`.
    ///
    /// # Safety
    /// The contract of [`merge_many_pairs_with_status_async`].
    unsafe fn merge_with<K: StoredKey, V: DeviceValue, T: Payload>(
        stream: &Stream,
        runs: &[&DeviceElements<K, V>],
        out: &mut DeviceElements<K, V>,
    ) -> Result<()> {
        let runs = carried::<K, V, T>(runs)?;
        let (keys, values, tombstones) = out.parts_mut::<T>()?;
        // SAFETY: the contract of this function.
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

    /// Queues the merge of live elements with values of type `T`.
    ///
    /// # Safety
    /// The contract of [`merge_newest_pairs_async`].
    unsafe fn merge_live_with<K: StoredKey, V: DeviceValue, T: Payload>(
        stream: &Stream,
        runs: &[&DeviceElements<K, V>],
        out: &mut DeviceElements<K, V>,
        count: DeviceSliceMut<'_, u64>,
    ) -> Result<()> {
        let runs = carried::<K, V, T>(runs)?;
        let (keys, values, _) = out.parts_mut::<T>()?;
        // SAFETY: the contract of this function.
        unsafe { merge_newest_pairs_async(stream, &runs, KeyMask::all(), Marked::Dropped, keys, values, count) }
    }

    /// Queues the sort by key of elements with values of type `T`.
    ///
    /// # Safety
    /// The contract of [`sort_pairs_async`].
    unsafe fn sort_by_key<K: StoredKey, V: DeviceValue, T: Payload>(
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, T>,
        out: &mut DeviceElements<K, V>,
    ) -> Result<()> {
        let (out_keys, out_values, _) = out.parts_mut::<T>()?;
        // SAFETY: the contract of this function.
        unsafe { sort_pairs_async(stream, keys, values, out_keys, out_values, By::ascending().last_first()) }
    }
}
