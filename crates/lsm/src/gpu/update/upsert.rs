//! Updates that combine with existing values, on the device: one lookup of the keys and one insertion.
//!
//! The batch is sorted, and each of its keys looked up once. The found values are merged with the batch, before values
//! of the same key, and reduced to one element per key. So an operator needs only the kernels of a reduction by key.

use warpset_gpu::{DeviceSlice, DeviceVec, Stream};
use warpset_primitives::KeyMask;
use warpset_primitives::merge::{Pairs, merge_pairs_async};
use warpset_primitives::reduce::{ByKeyKernels, reduce_by_key_async};
use warpset_primitives::select::{partition_async, select_async, unique_async, unique_by_key_async};
use warpset_primitives::sort::{By, sort_pairs_async};

use crate::element::units;
use crate::error::one_per_key;
use crate::gpu::device_run::DeviceElements;
use crate::gpu::host_transfer::Batch;
use crate::gpu::wide_values;
use crate::gpu::{CombinedValue, DeviceKey, DeviceValue, Dictionary};
use crate::policy::MergePolicy;
use crate::{Counter, Error, Operator, Sum};

/// Keys and values in device memory, sorted by key.
struct SortedPairs<K, V> {
    keys: DeviceVec<K>,
    values: DeviceVec<V>,
}

/// Updates that combine with existing values.
impl<K: DeviceKey, V: CombinedValue, P: MergePolicy> Dictionary<K, V, P> {
    /// Combines values with the stored ones, by an associative operator. A key without a value gets the combination of
    /// its values in the batch, in their order; the others get their value combined with that. `Sum`, `Min`, `Max` and
    /// `BitOr` have kernels; programs compile kernels of other operators by `by_key_kernels!` of `warpset-kernels`.
    ///
    /// ```
    /// use warpset_gpu::Device;
    /// use warpset_lsm::{Lsm, Sum};
    ///
    /// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
    /// let mut counts = Lsm::<u32, u32>::builder().on(&device).build_from(&[7], &[1])?;
    /// counts.upsert_bulk::<Sum<u32>>(&[8, 7, 8], &[1, 1, 1])?;
    /// assert_eq!(counts.get_bulk(&[7, 8])?, [Some(2), Some(2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::Gpu`]; then nothing is changed.
    pub fn upsert_bulk<O: Operator<Value = V> + ByKeyKernels<K::Stored>>(
        &mut self,
        keys: &[K],
        values: &[V],
    ) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let (stream, mut brought) = (self.ready_stream()?, Batch::default());
        let (keys, values) = brought.bring::<K, V>(&stream, keys, values)?;
        self.upsert_device::<O>(keys, values)
    }

    /// Inserts the keys that have no value; values of the others are unchanged. The first one of equal keys counts.
    ///
    /// # Errors
    /// The errors of [`Dictionary::upsert_bulk`].
    pub fn insert_new_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let (stream, mut brought) = (self.ready_stream()?, Batch::default());
        let (keys, values) = brought.bring::<K, V>(&stream, keys, values)?;
        self.insert_new_device(keys, values)
    }

    /// Adds one to the value of each key per occurrence, wrapping; keys without a value start at zero.
    ///
    /// ```
    /// use warpset_gpu::Device;
    /// use warpset_lsm::Lsm;
    ///
    /// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
    /// let mut counts = Lsm::<u64, u32>::builder().on(&device).build()?;
    /// counts.increment_bulk(&[3, 1, 3])?;
    /// counts.increment_bulk(&[3])?;
    /// assert_eq!(counts.get_bulk(&[1, 2, 3])?, [Some(1), None, Some(3)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Gpu`]; then nothing is changed.
    pub fn increment_bulk(&mut self, keys: &[K]) -> Result<(), Error>
    where
        V: Counter,
        Sum<V>: Operator<Value = V> + ByKeyKernels<K::Stored>,
    {
        let (stream, mut brought) = (self.ready_stream()?, Batch::default());
        let (keys, _) = brought.bring::<K, ()>(&stream, keys, units(0))?;
        self.increment_device(keys)
    }

    /// Increments as [`Dictionary::increment_bulk`] does, keys on the device.
    ///
    /// # Errors
    /// The errors of [`Dictionary::increment_bulk`]; memory of another device is refused.
    pub fn increment_device(&mut self, keys: DeviceSlice<'_, K::Stored>) -> Result<(), Error>
    where
        V: Counter,
        Sum<V>: Operator<Value = V> + ByKeyKernels<K::Stored>,
    {
        let ones = self.waiting(|stream| {
            let mut ones = stream.alloc_uninit::<V>(keys.len())?;
            // SAFETY: the memory is new, and this call waits.
            unsafe { wide_values::write_ones(stream, ones.as_mut_slice())? };
            Ok::<_, Error>(ones)
        })?;
        self.upsert_device::<Sum<V>>(keys, ones.as_slice())
    }

    /// Combines as [`Dictionary::upsert_bulk`] does, keys and values on the device.
    ///
    /// # Errors
    /// The errors of [`Dictionary::upsert_bulk`]; memory of another device is refused.
    pub fn upsert_device<O: Operator<Value = V> + ByKeyKernels<K::Stored>>(
        &mut self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V>,
    ) -> Result<(), Error> {
        self.resolve(keys, values, Self::combined::<O>)
    }

    /// Inserts as [`Dictionary::insert_new_bulk`] does, keys and values on the device.
    ///
    /// # Errors
    /// The errors of [`Dictionary::insert_new_bulk`]; memory of another device is refused.
    pub fn insert_new_device(
        &mut self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V>,
    ) -> Result<(), Error> {
        self.resolve(keys, values, Self::without_value)
    }

    /// Sorts a batch on the device, and inserts the result of `resolve`.
    fn resolve(
        &mut self,
        keys: DeviceSlice<'_, K::Stored>,
        values: DeviceSlice<'_, V>,
        resolve: impl FnOnce(&Self, &Stream, SortedPairs<K::Stored, V>) -> Result<SortedPairs<K::Stored, V>, Error>,
    ) -> Result<(), Error> {
        self.check_batch(keys, values)?;
        self.update(keys.len(), |this, stream| {
            let mut sorted = SortedPairs::uninit(stream, keys.len())?;
            // SAFETY: the batch is borrowed until the stream has been waited for; the rest is freed in stream order.
            unsafe { sort_pairs_async(stream, keys, values, &mut sorted.keys, &mut sorted.values, By::ascending())? };
            let SortedPairs { keys, values } = resolve(this, stream, sorted)?;
            Ok(DeviceElements::of_distinct(keys, values))
        })
    }

    /// Combines a sorted batch with the stored values of its keys: one pair per key. Waits for the stream.
    fn combined<O: Operator<Value = V> + ByKeyKernels<K::Stored>>(
        &self,
        stream: &Stream,
        batch: SortedPairs<K::Stored, V>,
    ) -> Result<SortedPairs<K::Stored, V>, Error> {
        let mut count = stream.alloc_uninit::<u64>(1)?;
        let mut different = stream.alloc_uninit::<K::Stored>(batch.keys.len())?;
        // SAFETY: all memory is freed in stream order.
        unsafe { unique_async(stream, batch.keys.as_slice(), different.as_mut_slice(), count.as_mut_slice())? };
        let n = stream.download_first(&count)? as usize;
        let (found, answers) = self.look_up_ascending(stream, different.slice(..n))?;
        let mut there = SortedPairs::<K::Stored, V>::uninit(stream, n)?;
        // SAFETY: all memory is freed in stream order.
        unsafe {
            let (asked, found) = (different.slice(..n), found.as_slice());
            select_async(stream, asked, found, there.keys.as_mut_slice(), count.as_mut_slice())?;
            select_async(stream, answers.as_slice(), found, there.values.as_mut_slice(), count.as_mut_slice())?;
        }
        drop((different, found, answers));
        let there = there.pairs(stream.download_first(&count)? as usize);
        let mut all = SortedPairs::uninit(stream, there.keys.len() + batch.keys.len())?;
        // SAFETY: all memory is freed in stream order.
        unsafe {
            let (keys, values) = (&mut all.keys, &mut all.values);
            merge_pairs_async(stream, there, batch.pairs(batch.keys.len()), KeyMask::all(), keys, values)?;
        }
        drop(batch);
        let mut out = SortedPairs::uninit(stream, all.keys.len())?;
        // SAFETY: all memory is freed in stream order.
        unsafe {
            let (keys, values) = (all.keys.as_slice(), all.values.as_slice());
            let (out_keys, out_values) = (out.keys.as_mut_slice(), out.values.as_mut_slice());
            reduce_by_key_async::<O, K::Stored>(stream, keys, values, out_keys, out_values, count.as_mut_slice())?;
        }
        out.shortened(stream, n)
    }

    /// Returns the first pair of each key of a sorted batch that has no value. Waits for the stream.
    fn without_value(
        &self,
        stream: &Stream,
        batch: SortedPairs<K::Stored, V>,
    ) -> Result<SortedPairs<K::Stored, V>, Error> {
        let len = batch.keys.len();
        let mut count = stream.alloc_uninit::<u64>(1)?;
        let mut first = SortedPairs::<K::Stored, V>::uninit(stream, len)?;
        // SAFETY: all memory is freed in stream order.
        unsafe {
            let (keys, values) = (batch.keys.as_slice(), batch.values.as_slice());
            let (out_keys, out_values) = (first.keys.as_mut_slice(), first.values.as_mut_slice());
            unique_by_key_async(stream, keys, values, out_keys, out_values, count.as_mut_slice())?;
        }
        let n = stream.download_first(&count)? as usize;
        let first = first.pairs(n);
        let (found, _) = self.look_up_ascending(stream, first.keys)?;
        let (mut old, mut new) = (batch, SortedPairs::uninit(stream, n)?);
        // SAFETY: all memory is freed in stream order.
        unsafe {
            let (found, count) = (found.as_slice(), &mut count);
            let (old_keys, new_keys) = (old.keys.slice_mut(..n), new.keys.as_mut_slice());
            partition_async(stream, first.keys, found, old_keys, new_keys, count.as_mut_slice())?;
            let (old_values, new_values) = (old.values.slice_mut(..n), new.values.as_mut_slice());
            partition_async(stream, first.values, found, old_values, new_values, count.as_mut_slice())?;
        }
        let found = stream.download_first(&count)? as usize;
        new.shortened(stream, n - found)
    }

    /// Queues the lookup of ascending keys: a bit and a value per key.
    fn look_up_ascending(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, K::Stored>,
    ) -> Result<(DeviceVec<u64>, DeviceVec<V>), Error> {
        let method = self.method_for(keys.len(), || Ok(true))?;
        let mut found = stream.alloc_uninit::<u64>(keys.len().div_ceil(64))?;
        let mut values = stream.alloc_uninit::<V>(keys.len())?;
        // SAFETY: a bit and a place for each key; the callers free the keys in stream order.
        unsafe {
            let out = values.global_mut().cast();
            self.queue_lookup(stream, method, keys, out, <V as DeviceValue>::WORDS, found.as_mut_slice())?;
        }
        Ok((found, values))
    }
}

impl<K: bytemuck::Pod, V: bytemuck::Pod> SortedPairs<K, V> {
    fn uninit(stream: &Stream, len: usize) -> Result<Self, Error> {
        Ok(SortedPairs { keys: stream.alloc_uninit(len)?, values: stream.alloc_uninit(len)? })
    }

    /// Returns the first `len` pairs.
    fn pairs(&self, len: usize) -> Pairs<'_, K, V> {
        Pairs { keys: self.keys.slice(..len), values: self.values.slice(..len) }
    }

    /// Copies the first `len` pairs to memory of their size.
    fn shortened(self, stream: &Stream, len: usize) -> Result<Self, Error> {
        if len == self.keys.len() {
            return Ok(self);
        }
        let mut short = SortedPairs::uninit(stream, len)?;
        stream.copy(&mut short.keys, self.keys.slice(..len))?;
        stream.copy(&mut short.values, self.values.slice(..len))?;
        Ok(short)
    }
}
