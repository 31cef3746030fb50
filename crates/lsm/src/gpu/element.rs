//! Keys and values on devices: which kernels there are for them, and which forms of the primitives they take.

use bytemuck::Pod;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::lsm::batch::lsm_gather;
use warpset_kernels::lsm::chunks::RangeKey;
use warpset_kernels::lsm::copies::lsm_copies;
use warpset_kernels::lsm::derive::{lsm_derive, lsm_index_head};
use warpset_kernels::lsm::flipped::{lsm_descends, lsm_lookup_flipped};
use warpset_kernels::lsm::list::{lsm_list, lsm_list_parts};
use warpset_kernels::lsm::lookup::{lsm_lookup, lsm_lookup_sorted};
use warpset_kernels::lsm::neighbours::lsm_neighbours;
use warpset_kernels::lsm::range::{lsm_count, lsm_range};
use warpset_kernels::lsm::run_merge::ListKey;
use warpset_kernels::lsm::spans::lsm_spans;
use warpset_kernels::lsm::visible::{lsm_visible_hide, lsm_visible_own};
use warpset_primitives::merge::{
    Marked, Pairs, WithStatus, merge_many_keys_async, merge_many_keys_with_status_async, merge_many_pairs_async,
    merge_many_pairs_with_status_async, merge_newest_keys_async, merge_newest_pairs_async,
};
use warpset_primitives::sort::{By, Payload, sort_keys_async, sort_pairs_async};
use warpset_primitives::{KeyMask, Result, merge, sort};
use warpset_simt::{EntryOf, KernelInfo};

use super::elements::DeviceElements;
use crate::{OrderedKey, Value};

/// Keys that there are kernels for: `u32` and `u64`.
pub trait DeviceKey:
    OrderedKey
    + EntryOf<lsm_lookup<Self>>
    + EntryOf<lsm_neighbours<Self>>
    + EntryOf<lsm_copies<Self>>
    + EntryOf<lsm_lookup_sorted<Self>>
    + EntryOf<lsm_lookup_flipped<Self>>
    + EntryOf<lsm_descends<Self>>
    + EntryOf<lsm_count<Self>>
    + EntryOf<lsm_range<Self>>
    + EntryOf<lsm_gather<Self>>
    + EntryOf<lsm_index_head<Self>>
    + EntryOf<lsm_derive<Self>>
    + EntryOf<lsm_visible_own<Self>>
    + EntryOf<lsm_visible_hide<Self>>
    + EntryOf<lsm_spans<Self>>
    + EntryOf<lsm_list<Self>>
    + EntryOf<lsm_list_parts<Self>>
    + RangeKey
    + ListKey
{
}
impl DeviceKey for u32 {}
impl DeviceKey for u64 {}

/// Values that there are kernels for: `u32`, `u64` and `()`.
pub trait DeviceValue: Value + primitives::Forms {
    /// What is stored for a value: it itself; of `()` nothing, whatever the type.
    type Stored: Pod + Default + Send + Sync;
}
impl DeviceValue for u32 {
    type Stored = u32;
}
impl DeviceValue for u64 {
    type Stored = u64;
}
impl DeviceValue for () {
    type Stored = u32;
}

pub(crate) mod primitives {
    use super::*;

    /// The primitives for elements with such values.
    pub trait Forms: Sized {
        /// Words of 32 bits in a value.
        const WORDS: u32;

        /// The values as they are stored.
        fn stored<T: Pod>(values: &[Self]) -> &[T];

        /// Values that are stored so; `len` of them.
        fn from_stored<T: Pod>(stored: &[T], len: usize) -> Vec<Self>;

        /// The kernels of [`sort`](Forms::sort) for `n` elements.
        fn sort_kernels<K: DeviceKey>(n: usize) -> Vec<&'static KernelInfo>;

        /// The kernels of [`merge`](Forms::merge).
        fn merge_kernels<K: DeviceKey>() -> Vec<&'static KernelInfo>;

        /// The kernels of [`merge_live`](Forms::merge_live).
        fn live_kernels<K: DeviceKey>() -> Vec<&'static KernelInfo>;

        /// Queues the sort by key, of equal keys the last one first.
        ///
        /// # Safety
        /// As [`sort_pairs_async`].
        unsafe fn sort<K: DeviceKey, T: Pod>(
            stream: &Stream,
            keys: DeviceSlice<'_, K>,
            values: DeviceSlice<'_, T>,
            out_keys: &mut DeviceVec<K>,
            out_values: &mut DeviceVec<T>,
        ) -> Result<()>;

        /// Queues the merge of runs, the newest first, into `out`, which is as long, and has a bitmap if one of them has.
        ///
        /// # Safety
        /// As [`merge_many_pairs_with_status_async`].
        unsafe fn merge<K: DeviceKey>(
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
        unsafe fn merge_live<K: DeviceKey>(
            stream: &Stream,
            runs: &[&DeviceElements<K, Self>],
            out: &mut DeviceElements<K, Self>,
            count: DeviceSliceMut<'_, u64>,
        ) -> Result<()>
        where
            Self: DeviceValue;
    }

    impl Forms for () {
        const WORDS: u32 = 0;

        fn stored<T: Pod>(_: &[()]) -> &[T] {
            &[]
        }

        fn from_stored<T: Pod>(_: &[T], len: usize) -> Vec<()> {
            vec![(); len]
        }

        fn sort_kernels<K: DeviceKey>(n: usize) -> Vec<&'static KernelInfo> {
            sort::kernels_for_keys::<K>(n)
        }

        fn merge_kernels<K: DeviceKey>() -> Vec<&'static KernelInfo> {
            merge::kernels_for_many_keys::<K>()
        }

        fn live_kernels<K: DeviceKey>() -> Vec<&'static KernelInfo> {
            merge::kernels_for_newest_keys::<K>()
        }

        unsafe fn sort<K: DeviceKey, T: Pod>(
            stream: &Stream,
            keys: DeviceSlice<'_, K>,
            _: DeviceSlice<'_, T>,
            out_keys: &mut DeviceVec<K>,
            _: &mut DeviceVec<T>,
        ) -> Result<()> {
            // SAFETY: the caller's promise is the same.
            unsafe { sort_keys_async(stream, keys, out_keys, By::ascending()) }
        }

        unsafe fn merge<K: DeviceKey>(
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

        unsafe fn merge_live<K: DeviceKey>(
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
        ($($value:ty: $words:literal;)*) => {$(
            impl Forms for $value {
                const WORDS: u32 = $words;

                fn stored<T: Pod>(values: &[$value]) -> &[T] {
                    bytemuck::cast_slice(values)
                }

                fn from_stored<T: Pod>(stored: &[T], _: usize) -> Vec<$value> {
                    bytemuck::pod_collect_to_vec(stored)
                }

                fn sort_kernels<K: DeviceKey>(n: usize) -> Vec<&'static KernelInfo> {
                    sort::kernels_for_pairs::<K, $value>(n)
                }

                fn merge_kernels<K: DeviceKey>() -> Vec<&'static KernelInfo> {
                    merge::kernels_for_many_pairs::<K, $value>()
                }

                fn live_kernels<K: DeviceKey>() -> Vec<&'static KernelInfo> {
                    merge::kernels_for_newest_pairs::<K, $value>()
                }

                unsafe fn sort<K: DeviceKey, T: Pod>(
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

                unsafe fn merge<K: DeviceKey>(
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

                unsafe fn merge_live<K: DeviceKey>(
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
    with_values! { u32: 1; u64: 2; }

    /// # Safety
    /// As [`sort_pairs_async`].
    unsafe fn sort_by_key<K: DeviceKey, V: Payload>(
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
