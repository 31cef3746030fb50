//! The GPU LSM exactly as published, in device memory; see the [crate's documentation](crate).

use std::fmt;

use papers_kernels::lsm::lookup::{published_lookup, published_needles, published_resolve};
use papers_kernels::lsm::ranges::{
    published_compact, published_estimate, published_final_count, published_mark_valid, published_store_keys,
    published_store_pairs,
};
use papers_kernels::lsm::updates::{published_mark_stale, published_pack, published_placebos};
use warpset_gpu::{Device, DeviceSlice, Stream};
use warpset_simt::EntryOf;

use super::cpu::{self, check_batch};
use super::element::{PackedKey, PairValue};
use super::steps::{Batch, Does, Pairs};
use super::tree::Tree;
use crate::Error;
use crate::error::one_per_key;

mod query;
mod steps;

use steps::OnDevice;

/// Key with kernels for these values: `u32` and `u64`.
pub trait DeviceKey<V>:
    PackedKey
    + EntryOf<published_pack<Self, V>>
    + EntryOf<published_mark_stale<Self>>
    + EntryOf<published_placebos<Self>>
    + EntryOf<published_lookup<Self, V>>
    + EntryOf<published_needles<Self>>
    + EntryOf<published_resolve<Self, V>>
    + EntryOf<published_estimate<Self>>
    + EntryOf<published_store_keys<Self>>
    + EntryOf<published_store_pairs<Self, V>>
    + EntryOf<published_final_count<Self>>
    + EntryOf<published_mark_valid<Self>>
    + EntryOf<published_compact<Self, V>>
{
}
impl DeviceKey<u32> for u32 {}
impl DeviceKey<u64> for u32 {}
impl DeviceKey<u32> for u64 {}
impl DeviceKey<u64> for u64 {}

/// [`crate::Lsm`] in device memory, with the same levels for the same batches.
///
/// ```
/// use warpset_gpu::Device;
/// use papers_lsm::{LookupMethod, Lsm};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let builder = Lsm::<u32, u32>::builder().batch_size(64);
/// let mut lsm = builder.on(&device).build()?;
/// lsm.insert_bulk(&[5, 3, 5], &[50, 30, 55])?;
/// lsm.remove_bulk(&[3])?;
/// assert_eq!(lsm.get_bulk_with(&[3, 5], LookupMethod::Bulk)?, [None, Some(55)]);
/// assert_eq!(lsm.count_range_bulk(&[0..=10])?, [1]);
///
/// let mut on_host = builder.build()?; // the same bytes as if it had been made there
/// on_host.insert_bulk(&[5, 3, 5], &[50, 30, 55])?;
/// on_host.remove_bulk(&[3])?;
/// assert!(lsm.to_host()? == on_host);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Lsm<K: PackedKey, V: PairValue> {
    tree: Tree<K, V, OnDevice>,
    device: Device,
    /// Stream of all work, so that arrays are allocated and freed in its order.
    stream: Stream,
}

impl<K: DeviceKey<V>, V: PairValue> Lsm<K, V> {
    pub(crate) fn empty(device: &Device, batch: usize) -> Result<Self, Error> {
        let stream = device.new_stream()?;
        let tree = waiting(device, &stream, |on| Tree::empty(on, batch))?;
        Ok(Lsm { tree, device: device.clone(), stream })
    }

    pub(crate) fn build_from_slices(device: &Device, batch: usize, keys: &[K], values: &[V]) -> Result<Self, Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let stream = device.new_stream()?;
        let tree = waiting(device, &stream, |on| {
            let (keys, values) = (stream.from_slice(keys)?, stream.from_slice(values)?);
            // SAFETY: as many values as keys, checked above.
            unsafe { Tree::build(on, batch, &Batch { keys: keys.as_slice(), does: Does::Insert(values.as_slice()) }) }
        })?;
        Ok(Lsm { tree, device: device.clone(), stream })
    }

    /// Copies a dictionary from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn from_host(device: &Device, lsm: &cpu::Lsm<K, V>) -> Result<Self, Error> {
        let counter = lsm.tree.counter;
        let (keys, values) = lsm.tree.elements.part(0..counter.offset(counter.levels()));
        let stream = device.new_stream()?;
        let elements = Pairs { keys: stream.from_slice(keys)?, values: stream.from_slice(values)? };
        stream.synchronize()?;
        Ok(Lsm { tree: Tree::from_levels(counter, elements), device: device.clone(), stream })
    }

    /// Copies the dictionary to host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`], [`Error::OutOfMemory`].
    pub fn to_host(&self) -> Result<cpu::Lsm<K, V>, Error> {
        self.device.synchronize()?;
        let places = 0..self.tree.counter.offset(self.tree.counter.levels());
        let (keys, values) = self.tree.elements.part(places);
        Ok(cpu::Lsm {
            tree: Tree::from_levels(self.tree.counter, Pairs { keys: keys.to_vec()?, values: values.to_vec()? }),
        })
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the stream of all work of this dictionary. Work queued on another stream by `_async` waits for this one,
    /// and the other stream waits for it.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the elements of a batch.
    pub fn batch_size(&self) -> u64 {
        self.tree.counter.batch as u64
    }

    /// Returns the number of resident batches; its set bits are the full levels.
    pub fn batches(&self) -> u64 {
        self.tree.counter.batches
    }

    /// Returns the number of elements of all levels, with tombstones, stale elements, copies that pad a batch, and
    /// placebos.
    pub fn resident_len(&self) -> u64 {
        self.tree.counter.resident() as u64
    }

    /// Returns the bytes of the array of all levels, empty ones included.
    pub fn memory_bytes(&self) -> u64 {
        self.tree.memory_bytes()
    }

    fn waiting<R>(&self, queue: impl FnOnce(&OnDevice) -> Result<R, Error>) -> Result<R, Error> {
        waiting(&self.device, &self.stream, queue)
    }

    fn expect_here<const N: usize>(&self, devices: [&Device; N], what: &'static str) -> Result<(), Error> {
        Ok(devices.into_iter().try_for_each(|device| self.device.expect_same(device, what))?)
    }
}

/// Runs steps after everything queued on the device, and waits.
fn waiting<R>(device: &Device, stream: &Stream, queue: impl FnOnce(&OnDevice) -> Result<R, Error>) -> Result<R, Error> {
    device.synchronize()?;
    // SAFETY: everything that `queue` borrows or allocates stays allocated and is not touched by others until the steps
    // have been waited for, or is freed in the order of the stream.
    let queued = queue(&unsafe { OnDevice::new(stream) });
    stream.synchronize()?;
    queued
}

/// Updates.
impl<K: DeviceKey<V>, V: PairValue> Lsm<K, V> {
    /// Inserts one value per key, in one batch. Of equal keys the last one counts.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::BatchTooLong`], [`Error::KeyTooLarge`], [`Error::Gpu`].
    pub fn insert_bulk(&mut self, keys: &[K], values: &[V]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        check_batch(self.tree.counter, keys.len())?;
        let (keys, values) = (self.stream.from_slice(keys)?, self.stream.from_slice(values)?);
        self.update(keys.as_slice(), Does::Insert(values.as_slice()))
    }

    /// Removes keys, with values or without, in one batch.
    ///
    /// # Errors
    /// The errors of [`Lsm::insert_bulk`].
    pub fn remove_bulk(&mut self, keys: &[K]) -> Result<(), Error> {
        check_batch(self.tree.counter, keys.len())?;
        let keys = self.stream.from_slice(keys)?;
        self.update(keys.as_slice(), Does::Remove)
    }

    /// Removes the keys whose flag in `removed` is set, and inserts the others, in one mixed batch. Where a key is
    /// removed and inserted, it is removed.
    ///
    /// # Errors
    /// The errors of [`Lsm::insert_bulk`].
    pub fn update_bulk(&mut self, keys: &[K], values: &[V], removed: &[bool]) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        one_per_key(keys.len(), "flags", removed.len())?;
        check_batch(self.tree.counter, keys.len())?;
        let (keys, values) = (self.stream.from_slice(keys)?, self.stream.from_slice(values)?);
        let removed = self.stream.from_slice(bytemuck::cast_slice::<bool, u8>(removed))?;
        self.update(keys.as_slice(), Does::Both(values.as_slice(), removed.as_slice()))
    }

    /// Inserts keys and values on the device, like [`Lsm::insert_bulk`].
    ///
    /// # Errors
    /// The errors of [`Lsm::insert_bulk`]; memory of another device is refused.
    pub fn insert_device(&mut self, keys: DeviceSlice<'_, K>, values: DeviceSlice<'_, V>) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        self.expect_here([keys.device(), values.device()], "an insertion into a dictionary")?;
        self.update(keys, Does::Insert(values))
    }

    /// Removes keys on the device, like [`Lsm::remove_bulk`].
    ///
    /// # Errors
    /// The errors of [`Lsm::remove_bulk`]; memory of another device is refused.
    pub fn remove_device(&mut self, keys: DeviceSlice<'_, K>) -> Result<(), Error> {
        self.expect_here([keys.device()], "a removal from a dictionary")?;
        self.update(keys, Does::Remove)
    }

    /// Updates by keys, values and flags on the device, like [`Lsm::update_bulk`]; a flag is set if it is not zero.
    ///
    /// # Errors
    /// The errors of [`Lsm::update_bulk`]; memory of another device is refused.
    pub fn update_device(
        &mut self,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
        removed: DeviceSlice<'_, u8>,
    ) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        one_per_key(keys.len(), "flags", removed.len())?;
        self.expect_here([keys.device(), values.device(), removed.device()], "an update of a dictionary")?;
        self.update(keys, Does::Both(values, removed))
    }

    fn update<'a>(&mut self, keys: DeviceSlice<'a, K>, does: Does<'a, V, OnDevice>) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        let Lsm { tree, device, stream } = self;
        check_batch(tree.counter, keys.len())?;
        // SAFETY: the callers have compared the lengths.
        waiting(device, stream, |on| unsafe { tree.insert(on, &Batch { keys, does }, true) })
    }

    /// Queues the insertion of at most a batch, without waiting. Keys are not checked: the highest bit is dropped.
    ///
    /// # Safety
    /// Until `stream` has passed this work:
    /// - keys and values stay allocated, and nothing writes them;
    /// - the dictionary is neither dropped nor accessed, except by work that comes after it on the stream.
    ///
    /// # Errors
    /// The errors of [`Lsm::insert_device`].
    pub unsafe fn insert_async(
        &mut self,
        stream: &Stream,
        keys: DeviceSlice<'_, K>,
        values: DeviceSlice<'_, V>,
    ) -> Result<(), Error> {
        one_per_key(keys.len(), "values", values.len())?;
        let devices = [keys.device(), values.device(), stream.device()];
        self.expect_here(devices, "an insertion into a dictionary")?;
        check_batch(self.tree.counter, keys.len())?;
        if keys.is_empty() {
            return Ok(());
        }
        let Lsm { tree, stream: own, .. } = self;
        let batch = Batch { keys, does: Does::Insert(values) };
        // SAFETY: the caller keeps what the work uses until `stream` has passed it; lengths were compared above.
        unsafe { ordered(stream, own, |on| tree.insert(on, &batch, false)) }
    }

    /// Drops tombstones and stale elements, pads with placebos to whole batches, and redistributes all to levels.
    /// Waits.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn cleanup(&mut self) -> Result<(), Error> {
        let Lsm { tree, device, stream } = self;
        waiting(device, stream, |on| tree.cleanup(on))
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn clear(&mut self) -> Result<(), Error> {
        self.tree = self.waiting(|on| Tree::empty(on, self.tree.counter.batch))?;
        Ok(())
    }
}

/// Queues steps on a dictionary's own stream, after the present work of another stream; later work there comes after
/// them.
///
/// # Safety
/// The contract of [`OnDevice::new`], for both streams.
unsafe fn ordered(
    stream: &Stream,
    own: &Stream,
    queue: impl FnOnce(&OnDevice) -> Result<(), Error>,
) -> Result<(), Error> {
    if stream != own {
        own.wait_for(stream)?;
    }
    // SAFETY: the contract is the same.
    let queued = queue(&unsafe { OnDevice::new(own) });
    if stream != own {
        stream.wait_for(own)?;
    }
    queued
}

impl<K: PackedKey, V: PairValue> fmt::Debug for Lsm<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("published::gpu::Lsm").field("counter", &self.tree.counter).finish_non_exhaustive()
    }
}
