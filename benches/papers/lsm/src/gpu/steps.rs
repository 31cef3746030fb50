//! Steps of the published structure on a device: primitives of the same names, and kernels between them.

use std::ops::Range;

use bytemuck::Pod;
use papers_kernels::lsm::BLOCK;
use papers_kernels::lsm::lookup::{published_lookup, published_needles, published_resolve};
use papers_kernels::lsm::ranges::{
    published_compact, published_estimate, published_final_count, published_mark_valid, published_store_keys,
    published_store_pairs,
};
use papers_kernels::lsm::updates::{
    MIXED, REGULAR, TOMBSTONES, published_mark_stale, published_pack, published_placebos,
};
use warpset_core::scan::Sum;
use warpset_gpu::{DeviceSlice, DeviceSliceMut, DeviceVec, Stream};
use warpset_primitives::KeyMask;
use warpset_primitives::merge::{Pairs, merge_pairs_async};
use warpset_primitives::scan::exclusive_in_place_async;
use warpset_primitives::search::lower_bound_sorted_async;
use warpset_primitives::segmented_sort;
use warpset_primitives::select::select_async;
use warpset_primitives::sort::{By, sort_pairs_in_place_async};
use warpset_simt::LaunchConfig;

use super::super::element::PairValue;
use super::super::steps::{Batch, Does, Levels, Memory, Pair, PairMut, Sorted, Steps};
use super::DeviceKey;
use crate::Error;

/// Most blocks of a launch; threads continue in strides.
const MOST_BLOCKS: usize = 1 << 16;

fn covering(threads: usize) -> LaunchConfig {
    LaunchConfig::new(threads.div_ceil(BLOCK as usize).clamp(1, MOST_BLOCKS) as u32, BLOCK)
}

/// Returns the order by original keys.
fn by_original<K>() -> By {
    By::ascending().bits(1..8 * size_of::<K>() as u32)
}

/// Device memory, by one stream.
pub(crate) struct OnDevice {
    stream: Stream,
}

impl OnDevice {
    /// Makes steps on this stream.
    ///
    /// # Safety
    /// Until `stream` has passed the steps queued through this value: every slice passed to it stays allocated, and no
    /// work outside of the stream writes memory that they read or accesses memory that they write. Arrays that it
    /// allocates are freed in the order of the stream, so they satisfy this as long as only steps access them.
    pub(super) unsafe fn new(stream: &Stream) -> OnDevice {
        OnDevice { stream: stream.clone() }
    }
}

impl Memory for OnDevice {
    type Array<T: Pod> = DeviceVec<T>;
    type Slice<'a, T: Pod> = DeviceSlice<'a, T>;
    type SliceMut<'a, T: Pod> = DeviceSliceMut<'a, T>;

    fn uninit<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>, Error> {
        Ok(self.stream.alloc_uninit(len)?)
    }

    fn zeroed<T: Pod>(&self, len: usize) -> Result<DeviceVec<T>, Error> {
        Ok(self.stream.alloc_zeroed(len)?)
    }

    fn part<T: Pod>(array: &DeviceVec<T>, places: Range<usize>) -> DeviceSlice<'_, T> {
        array.slice(places)
    }

    fn part_mut<T: Pod>(array: &mut DeviceVec<T>, places: Range<usize>) -> DeviceSliceMut<'_, T> {
        array.slice_mut(places)
    }

    fn reborrow<'a, T: Pod>(slice: &'a mut DeviceSliceMut<'_, T>) -> DeviceSliceMut<'a, T> {
        slice.reborrow()
    }

    fn len<T: Pod>(slice: DeviceSlice<'_, T>) -> usize {
        slice.len()
    }

    fn copy<T: Pod>(&self, from: DeviceSlice<'_, T>, to: DeviceSliceMut<'_, T>) -> Result<(), Error> {
        Ok(self.stream.copy(to, from)?)
    }

    fn clear<T: Pod>(&self, to: DeviceSliceMut<'_, T>) -> Result<(), Error> {
        Ok(self.stream.fill_bytes(to, 0)?)
    }

    fn word(&self, array: &DeviceVec<u64>, place: usize) -> Result<u64, Error> {
        let mut word = [0];
        self.stream.download(array.slice(place..place + 1), &mut word)?;
        Ok(word[0])
    }
}

/// In every method the slices stay allocated, by the contract of [`OnDevice::new`]; lengths, contents and order follow
/// from the contract of [`Steps`].
impl<K: DeviceKey<V>, V: PairValue> Steps<K, V> for OnDevice {
    unsafe fn pack(
        &self,
        batch: &Batch<'_, K, V, Self>,
        (mut out_keys, mut out_values): PairMut<'_, K, V, Self>,
        largest: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        let (n, padded) = (batch.keys.len(), out_keys.len());
        if n == 0 {
            return Ok(()); // then nothing is to be padded
        }
        // Kernels do not read values or flags that a batch does not have.
        let nothing = batch.keys.global();
        let (status, values, removed) = match batch.does {
            Does::Insert(values) => (REGULAR, values.global(), nothing.cast()),
            Does::Remove => (TOMBSTONES, nothing.cast(), nothing.cast()),
            Does::Both(values, removed) => (MIXED, values.global(), removed.global()),
        };
        let kernel = published_pack::<K, V> {
            keys: batch.keys.global(),
            values,
            removed,
            status,
            n,
            padded,
            out_keys: out_keys.global_mut(),
            out_values: out_values.global_mut(),
            largest: largest.global_mut(),
        };
        // SAFETY: as many values and flags as keys, where they are read.
        unsafe { kernel.launch(&self.stream, covering(padded))? };
        Ok(())
    }

    unsafe fn sort(&self, (keys, values): PairMut<'_, K, V, Self>) -> Result<(), Error> {
        // SAFETY: lengths and contents by the contract of `Steps`, lifetimes by that of `OnDevice::new`.
        unsafe { Ok(sort_pairs_in_place_async(&self.stream, keys, values, By::ascending())?) }
    }

    unsafe fn merge(
        &self,
        newer: Pair<'_, K, V, Self>,
        older: Pair<'_, K, V, Self>,
        (out_keys, out_values): PairMut<'_, K, V, Self>,
    ) -> Result<(), Error> {
        let (newer, older) = (Pairs::new(newer.0, newer.1), Pairs::new(older.0, older.1));
        // SAFETY: lengths and contents by the contract of `Steps`, lifetimes by that of `OnDevice::new`.
        unsafe { Ok(merge_pairs_async(&self.stream, newer, older, KeyMask::above(1), out_keys, out_values)?) }
    }

    unsafe fn look_up(
        &self,
        levels: &Levels<'_, K, V, Self>,
        queries: DeviceSlice<'_, K>,
        mut values: DeviceSliceMut<'_, V>,
        mut found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // If the last word has at most 32 queries, a warp writes its lower half only.
        let last = found.len().saturating_sub(1);
        self.clear(found.slice_mut(last..))?;
        let kernel = published_lookup::<K, V> {
            keys: levels.elements.0.global(),
            values: levels.elements.1.global(),
            batch: levels.counter.batch,
            batches: levels.counter.batches,
            queries: queries.global(),
            n: queries.len(),
            out_values: values.global_mut(),
            found: found.global_mut().cast(),
        };
        // SAFETY: a place and a bit for each query.
        unsafe { kernel.launch(&self.stream, covering(queries.len()))? };
        Ok(())
    }

    unsafe fn needles(
        &self,
        queries: DeviceSlice<'_, K>,
        mut needles: DeviceSliceMut<'_, K>,
        mut places: DeviceSliceMut<'_, u32>,
    ) -> Result<(), Error> {
        let (needles, places) = (needles.global_mut(), places.global_mut());
        let kernel = published_needles::<K> { queries: queries.global(), n: queries.len(), needles, places };
        // SAFETY: two places for each query.
        unsafe { kernel.launch(&self.stream, covering(queries.len()))? };
        Ok(())
    }

    unsafe fn sort_needles(
        &self,
        needles: DeviceSliceMut<'_, K>,
        places: DeviceSliceMut<'_, u32>,
    ) -> Result<(), Error> {
        // SAFETY: lengths and contents by the contract of `Steps`, lifetimes by that of `OnDevice::new`.
        unsafe { Ok(sort_pairs_in_place_async(&self.stream, needles, places, by_original::<K>())?) }
    }

    unsafe fn sorted_search(
        &self,
        level: DeviceSlice<'_, K>,
        needles: DeviceSlice<'_, K>,
        bounds: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        // SAFETY: lengths and contents by the contract of `Steps`, lifetimes by that of `OnDevice::new`.
        unsafe { Ok(lower_bound_sorted_async(&self.stream, level, needles, KeyMask::above(1), bounds)?) }
    }

    unsafe fn resolve(
        &self,
        (keys, level_values): Pair<'_, K, V, Self>,
        sorted: Sorted<'_, K, Self>,
        queries: DeviceSlice<'_, K>,
        mut values: DeviceSliceMut<'_, V>,
        mut found: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let Sorted { needles, places, bounds, mut decided } = sorted;
        let kernel = published_resolve::<K, V> {
            keys: keys.global(),
            values: level_values.global(),
            len: keys.len(),
            bounds: bounds.global(),
            needles: needles.global(),
            places: places.global(),
            queries: queries.global(),
            n: queries.len(),
            decided: decided.global_mut(),
            out_values: values.global_mut(),
            found: found.global_mut().cast(),
        };
        // SAFETY: needles, places, bounds and flags are as many as queries, and places are those of the queries.
        unsafe { kernel.launch(&self.stream, covering(queries.len()))? };
        Ok(())
    }

    unsafe fn initial_count_estimate(
        &self,
        levels: &Levels<'_, K, V, Self>,
        (lows, highs): (DeviceSlice<'_, K>, DeviceSlice<'_, K>),
        mut lower: DeviceSliceMut<'_, u64>,
        mut counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let kernel = published_estimate::<K> {
            keys: levels.elements.0.global(),
            batch: levels.counter.batch,
            batches: levels.counter.batches,
            lows: lows.global(),
            highs: highs.global(),
            n: lows.len(),
            lower: lower.global_mut(),
            counts: counts.global_mut(),
        };
        // SAFETY: two words for each query and full level.
        unsafe { kernel.launch(&self.stream, covering(lows.len()))? };
        Ok(())
    }

    unsafe fn scanning_stage(&self, counts: DeviceSliceMut<'_, u64>) -> Result<(), Error> {
        // SAFETY: lengths and contents by the contract of `Steps`, lifetimes by that of `OnDevice::new`.
        unsafe { Ok(exclusive_in_place_async::<Sum<u64>>(&self.stream, counts)?) }
    }

    unsafe fn initial_key_storage(
        &self,
        levels: &Levels<'_, K, V, Self>,
        (lower, offsets): (DeviceSlice<'_, u64>, DeviceSlice<'_, u64>),
        mut out: DeviceSliceMut<'_, K>,
        mut segments: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let n = segments.len() - 1;
        let kernel = published_store_keys::<K> {
            keys: levels.elements.0.global(),
            batch: levels.counter.batch,
            batches: levels.counter.batches,
            lower: lower.global(),
            offsets: offsets.global(),
            n,
            out_keys: out.global_mut(),
            segments: segments.global_mut(),
        };
        // SAFETY: `out` is as long as the last offset says.
        unsafe { kernel.launch(&self.stream, covering(n))? };
        Ok(())
    }

    unsafe fn initial_pair_storage(
        &self,
        levels: &Levels<'_, K, V, Self>,
        (lower, offsets): (DeviceSlice<'_, u64>, DeviceSlice<'_, u64>),
        (mut out_keys, mut out_values): PairMut<'_, K, V, Self>,
        mut segments: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let n = segments.len() - 1;
        let kernel = published_store_pairs::<K, V> {
            keys: levels.elements.0.global(),
            values: levels.elements.1.global(),
            batch: levels.counter.batch,
            batches: levels.counter.batches,
            lower: lower.global(),
            offsets: offsets.global(),
            n,
            out_keys: out_keys.global_mut(),
            out_values: out_values.global_mut(),
            segments: segments.global_mut(),
        };
        // SAFETY: the outputs are as long as the last offset says.
        unsafe { kernel.launch(&self.stream, covering(n))? };
        Ok(())
    }

    unsafe fn segmented_sort_keys(
        &self,
        from: DeviceSlice<'_, K>,
        segments: DeviceSlice<'_, u64>,
        to: DeviceSliceMut<'_, K>,
    ) -> Result<(), Error> {
        // SAFETY: see above; segments ascend up to the length.
        unsafe { Ok(segmented_sort::sort_keys_async(&self.stream, from, segments, to, by_original::<K>())?) }
    }

    unsafe fn segmented_sort_pairs(
        &self,
        (keys, values): Pair<'_, K, V, Self>,
        segments: DeviceSlice<'_, u64>,
        (to_keys, to_values): PairMut<'_, K, V, Self>,
    ) -> Result<(), Error> {
        let by = by_original::<K>();
        // SAFETY: see above; segments ascend up to the length.
        unsafe { Ok(segmented_sort::sort_pairs_async(&self.stream, keys, values, segments, to_keys, to_values, by)?) }
    }

    unsafe fn final_counting(
        &self,
        keys: DeviceSlice<'_, K>,
        segments: DeviceSlice<'_, u64>,
        mut counts: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let (n, counts) = (counts.len(), counts.global_mut());
        let kernel = published_final_count::<K> { keys: keys.global(), segments: segments.global(), n, counts };
        // SAFETY: one segment and one count for each query.
        unsafe { kernel.launch(&self.stream, covering(n))? };
        Ok(())
    }

    unsafe fn mark_valid(
        &self,
        keys: DeviceSlice<'_, K>,
        segments: DeviceSlice<'_, u64>,
        mut counts: DeviceSliceMut<'_, u64>,
        mut marked: DeviceSliceMut<'_, K>,
    ) -> Result<(), Error> {
        let n = counts.len();
        let kernel = published_mark_valid::<K> {
            keys: keys.global(),
            segments: segments.global(),
            n,
            counts: counts.global_mut(),
            marked: marked.global_mut(),
        };
        // SAFETY: there are a segment and a count per query; `marked` is as long as `keys`.
        unsafe { kernel.launch(&self.stream, covering(n))? };
        Ok(())
    }

    unsafe fn segmented_compaction(
        &self,
        (marked, values): Pair<'_, K, V, Self>,
        segments: DeviceSlice<'_, u64>,
        offsets: DeviceSlice<'_, u64>,
        (mut out_keys, mut out_values): PairMut<'_, K, V, Self>,
    ) -> Result<(), Error> {
        let n = offsets.len();
        let kernel = published_compact::<K, V> {
            marked: marked.global(),
            values: values.global(),
            segments: segments.global(),
            offsets: offsets.global(),
            n,
            out_keys: out_keys.global_mut(),
            out_values: out_values.global_mut(),
        };
        // SAFETY: there are a segment and an offset per query; the outputs have a place per marked element.
        unsafe { kernel.launch(&self.stream, covering(n))? };
        Ok(())
    }

    unsafe fn mark_stale(&self, keys: DeviceSlice<'_, K>, mut valid: DeviceSliceMut<'_, u64>) -> Result<(), Error> {
        let (n, valid) = (keys.len(), valid.global_mut().cast());
        if n != 0 {
            let kernel = published_mark_stale::<K> { keys: keys.global(), n, valid };
            // SAFETY: a bit for each element.
            unsafe { kernel.launch(&self.stream, covering(n))? };
        }
        Ok(())
    }

    unsafe fn compact(
        &self,
        (keys, values): Pair<'_, K, V, Self>,
        valid: DeviceSlice<'_, u64>,
        (out_keys, out_values): PairMut<'_, K, V, Self>,
        count: &mut DeviceVec<u64>,
    ) -> Result<(), Error> {
        // SAFETY: lengths and contents by the contract of `Steps`, lifetimes by that of `OnDevice::new`.
        unsafe {
            select_async(&self.stream, keys, valid, out_keys, count.as_mut_slice())?;
            Ok(select_async(&self.stream, values, valid, out_values, count.as_mut_slice())?)
        }
    }

    unsafe fn placebos(&self, mut out: DeviceSliceMut<'_, K>) -> Result<(), Error> {
        let n = out.len();
        if n != 0 {
            let kernel = published_placebos::<K> { keys: out.global_mut(), n };
            // SAFETY: a place for each.
            unsafe { kernel.launch(&self.stream, covering(n))? };
        }
        Ok(())
    }
}
