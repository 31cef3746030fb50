//! Maplets on several devices: divided as filters with quotients are. Values travel with the keys of a change, and are
//! the answers of lookups.

use std::fmt;

use bytemuck::Pod;
use warpset_base::filter::same_length;
use warpset_base::parallel;
use warpset_base::words::in_huge_pages;
use warpset_gpu::{Device, DeviceSlice, DeviceSliceMut, Devices, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::quotient::rank_select::combine::MapletKernels;
use warpset_primitives::reduce::reduce_async;
use warpset_primitives::sharded::{NO_VALUES, Replies, Sharded};

use super::lookup::put;
use super::{Maplet, MapletBuilder, MapletLayout};
use crate::gpu::sharded::{Division, change_each, same_devices};
use crate::gpu::{DeviceKeys, QuotientFilter, exact};
use crate::{Error, Hashed, Key, Layout, Max};

/// [`Maplet`] divided among devices, as many as the largest power of two allows. For maplets larger than one device's
/// memory and for the bandwidth of all devices.
///
/// Keys come from the host or from any of the devices, values from where their keys are. Methods that end in
/// `_each_device` take a batch on every device. Each part has its share of the load limit, so a maplet close to its
/// limit may be full although another part has free slots. On an error parts of a batch may have been applied.
///
/// ```
/// use warpset_gpu::{Device, Devices};
/// use warpset_quotient::{RankSelectQuotientFilter, Sum};
///
/// let devices = Devices::new([(); 2].map(|()| Device::emulator(Default::default())))?; // or `Devices::cuda_all()?`
/// let builder = RankSelectQuotientFilter::builder(1000).fpr(1e-6).values(20);
/// let mut sold = builder.sharded_on(&devices).build_from(&[7u64, 8], &[3u8, 1])?;
/// sold.upsert_bulk::<Sum<u64>, _, _>(&[7u64, 9], &[4u8, 2])?;
/// assert_eq!(sold.get_bulk(&[7u64, 9, 10])?, [Some(7), Some(2), None]);
/// assert!(sold.to_host()? == builder.build_from(&[7u64, 8, 9], &[7u8, 1, 2])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ShardedMaplet {
    layout: MapletLayout,
    division: Division,
    shards: Sharded<Maplet>,
}

/// Values that a task checks.
const TASK: usize = 1 << 16;

/// [`MapletBuilder`] of maplets divided among devices, made by [`MapletBuilder::sharded_on`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct ShardedMapletBuilder {
    settings: MapletBuilder,
    devices: Devices,
}

impl MapletBuilder {
    /// Makes a builder with these settings of a maplet that is divided among `devices`.
    pub fn sharded_on(&self, devices: &Devices) -> ShardedMapletBuilder {
        ShardedMapletBuilder { settings: *self, devices: devices.clone() }
    }
}

impl ShardedMapletBuilder {
    /// Checks every setting, then allocates an empty maplet.
    ///
    /// # Errors
    /// The errors of [`MapletBuilder::layout`]; [`Error::Gpu`] if a device has too little memory for its part.
    pub fn build(&self) -> Result<ShardedMaplet, Error> {
        ShardedMaplet::with_parts(&self.devices, self.settings.layout()?, |_, layout, _, device| {
            Ok(Maplet { layout, pairs: QuotientFilter::with_layout(device, layout.pairs())? })
        })
    }

    /// Builds a maplet of these keys with `values[i]` for key `i`.
    ///
    /// # Errors
    /// The errors of [`ShardedMapletBuilder::build`] and of an insertion.
    pub fn build_from<K: Key, V: Pod + Into<u64> + Sync>(
        &self,
        keys: &[K],
        values: &[V],
    ) -> Result<ShardedMaplet, Error> {
        let mut maplet = self.build()?;
        maplet.insert_bulk(keys, values)?;
        Ok(maplet)
    }

    /// Builds a maplet of keys and values on one of the devices.
    ///
    /// # Errors
    /// The errors of [`ShardedMapletBuilder::build`] and of an insertion.
    pub fn build_from_device<K: DeviceKeys>(
        &self,
        keys: K,
        values: DeviceSlice<'_, u64>,
    ) -> Result<ShardedMaplet, Error> {
        let mut maplet = self.build()?;
        maplet.insert_each_device(&[keys], &[values])?;
        Ok(maplet)
    }
}

impl ShardedMaplet {
    /// Makes each part, of its layout and place, on its device.
    fn with_parts(
        devices: &Devices,
        layout: MapletLayout,
        make: impl Fn(&Division, MapletLayout, u64, &Device) -> Result<Maplet, Error> + Sync,
    ) -> Result<Self, Error> {
        let division = Division::new(devices, layout.pairs());
        let part = MapletLayout { keys: layout.keys.part(division.prefix_bits), ..layout };
        let shards = division.parts(devices, &layout.keys, |place, device| make(&division, part, place, device))?;
        Ok(Self { layout, division, shards })
    }

    /// Copies a maplet from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if a device fails or has too little memory; [`Error::Full`] if a part of a maplet close to its
    /// limit has too many values.
    pub fn from_host(devices: &Devices, maplet: &crate::Maplet) -> Result<Self, Error> {
        Self::with_parts(devices, *maplet.layout(), |division, layout, place, device| {
            let pairs = division.part_of(maplet.filter(), place)?;
            Ok(Maplet { layout, pairs: QuotientFilter::from_host(device, &pairs)? })
        })
    }

    /// Copies the maplet to host memory: one maplet, to save or to ask. Waits for all work on the devices.
    ///
    /// # Errors
    /// [`Error::Gpu`] if a device fails, [`Error::OutOfMemory`] if the host has too little memory;
    /// [`Error::OverflowRegionFull`] if one maplet has no room for the values of a key.
    pub fn to_host(&self) -> Result<crate::Maplet, Error> {
        let parts = self.shards.each(|_, shard| shard.pairs.to_host())?;
        Ok(crate::Maplet::from_parts(self.layout, self.division.joined(parts)?))
    }

    /// Returns the parameters of the whole maplet.
    pub fn layout(&self) -> &MapletLayout {
        &self.layout
    }

    /// Returns the number of stored values, copies included.
    pub fn len(&self) -> u64 {
        self.shards.parts().iter().map(Maplet::len).sum()
    }

    /// Whether no value is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of device memory of the slots, on all devices together.
    pub fn memory_bytes(&self) -> u64 {
        self.shards.parts().iter().map(Maplet::memory_bytes).sum()
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::Gpu`] if a device fails.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.shards.each_mut(|_, shard| shard.clear()).map(drop)
    }

    /// Changes several parts by hashes of keys of the host, and values.
    fn change_bulk<K: Key, V: Pod + Into<u64> + Sync>(
        &mut self,
        keys: &[K],
        values: &[V],
        change: impl Fn(&mut Maplet, DeviceSlice<'_, Hashed>, DeviceSlice<'_, u64>) -> Result<u64, Error> + Sync,
    ) -> Result<u64, Error> {
        same_length(keys.len(), values.len())?;
        // All bits of a task's values at once: a test of each takes longer than the bus.
        let bits = |values: &[V]| values.iter().fold(0, |bits, &value| bits | value.into());
        let bits = parallel::map(values.chunks(TASK), bits).into_iter().fold(0, |bits, some| bits | some);
        if self.layout.check_value(bits).is_err() {
            values.iter().try_for_each(|&value| self.layout.check_value(value.into()).map(drop))?;
        }
        let change = |part: &mut _, words: DeviceSlice<'_, u64>, values: DeviceSlice<'_, u64>| {
            change(part, words.cast()?, values)
        };
        match self.exact_layout() {
            None => self.shards.change_bulk(keys, values, change),
            Some(layout) => self.shards.change_bulk(&exact::words(&layout, keys)?, values, change),
        }
    }

    /// Returns the layout of the keys if several parts hold exact ones.
    fn exact_layout(&self) -> Option<Layout> {
        let keys = self.layout.keys;
        self.division.is_exact(&keys).then_some(keys)
    }

    /// Stores values, unsigned integers of up to 64 bits, like [`crate::Maplet::insert_bulk`].
    ///
    /// # Errors
    /// The errors of [`crate::Maplet::insert_bulk`]; [`Error::Gpu`] if a device fails or has too little memory.
    pub fn insert_bulk<K: Key, V: Pod + Into<u64> + Sync>(&mut self, keys: &[K], values: &[V]) -> Result<u64, Error> {
        match self.shards.only() {
            Some(only) => only.insert_bulk(keys, values),
            None => self.change_bulk(keys, values, |part, hashes, values| part.insert_device(hashes, values)),
        }
    }

    /// Stores values like [`Maplet::insert_device`], keys and values on one of the devices.
    ///
    /// # Errors
    /// The errors of [`Maplet::insert_device`].
    pub fn insert_device<K: DeviceKeys>(&mut self, keys: K, values: DeviceSlice<'_, u64>) -> Result<u64, Error> {
        self.insert_each_device(&[keys], &[values])
    }

    /// Stores values like [`Maplet::insert_device`]: batches of keys, each on one of the devices with its values.
    /// Several parts get pairs, as hashes of 8 bytes, which the devices of the batches make of all of them first.
    ///
    /// # Errors
    /// The errors of [`Maplet::insert_device`]; [`Error::LengthMismatch`] unless there are values for each batch.
    pub fn insert_each_device<K: DeviceKeys>(
        &mut self,
        batches: &[K],
        values: &[DeviceSlice<'_, u64>],
    ) -> Result<u64, Error> {
        if self.shards.parts().len() == 1 {
            self.check_values(batches, values)?;
            return change_each!(self.shards, batches, values; |part, keys, values| part.insert_device(keys, values));
        }
        same_length(batches.len(), values.len())?;
        self.shards.check_batches(batches, values)?;
        let pairs = self.shards.each(|place, _| {
            let device = &self.devices().all()[place];
            let own = batches.iter().zip(values).filter(|(keys, _)| keys.device() == device);
            let pairs = own.map(|(&keys, &values)| {
                device.waiting(|stream| Maplet::brought_as_hashes(&self.layout, stream, keys, values))
            });
            pairs.collect::<Result<Vec<_>, Error>>()
        })?;
        let hashes = pairs.iter().flatten().map(|pairs| Ok(pairs.as_slice().cast::<Hashed>()?));
        let hashes = hashes.collect::<Result<Vec<_>, Error>>()?;
        self.shards.change_hashes(&hashes, |part, hashes| part.pairs.insert_device(hashes))
    }

    /// Combines values, unsigned integers of up to 64 bits, like [`Maplet::upsert_bulk`].
    ///
    /// # Errors
    /// The errors of [`Maplet::upsert_bulk`].
    pub fn upsert_bulk<O: MapletKernels, K: Key, V: Pod + Into<u64> + Sync>(
        &mut self,
        keys: &[K],
        values: &[V],
    ) -> Result<u64, Error> {
        self.layout.check_combines()?;
        match self.shards.only() {
            Some(only) => only.upsert_bulk::<O, _, _>(keys, values),
            None => self.change_bulk(keys, values, |part, hashes, values| part.upsert_device::<O, _>(hashes, values)),
        }
    }

    /// Combines values like [`Maplet::upsert_device`], keys and values on one of the devices.
    ///
    /// # Errors
    /// The errors of [`Maplet::upsert_device`].
    pub fn upsert_device<O: MapletKernels, K: DeviceKeys>(
        &mut self,
        keys: K,
        values: DeviceSlice<'_, u64>,
    ) -> Result<u64, Error> {
        self.upsert_each_device::<O, _>(&[keys], &[values])
    }

    /// Combines values like [`Maplet::upsert_device`]: batches of keys, each on one of the devices with its values.
    /// Values of a key within a batch are combined in their order; batches longer than a round take turns.
    ///
    /// # Errors
    /// The errors of [`Maplet::upsert_device`]; [`Error::LengthMismatch`] unless there are values for each batch.
    pub fn upsert_each_device<O: MapletKernels, K: DeviceKeys>(
        &mut self,
        batches: &[K],
        values: &[DeviceSlice<'_, u64>],
    ) -> Result<u64, Error> {
        self.layout.check_combines()?;
        self.check_values(batches, values)?;
        change_each!(self.shards, batches, values; |part, keys, values| part.upsert_device::<O, _>(keys, values))
    }

    /// Refuses batches of a change before any of them is applied, too wide values among them.
    fn check_values<K: DeviceKeys>(&self, batches: &[K], values: &[DeviceSlice<'_, u64>]) -> Result<(), Error> {
        same_length(batches.len(), values.len())?;
        self.shards.check_batches(batches, values)?;
        self.division.expect_fits(&self.layout.keys, &self.shards, batches)?;
        for &values in values.iter().filter(|values| !values.is_empty()) {
            let mut most = values.device().alloc_zeroed(1)?;
            values.device().waiting(|stream| {
                // SAFETY: the values are borrowed, and `most` is here, until the stream has been waited for.
                unsafe { reduce_async::<Max<u64>>(stream, values, most.as_mut_slice()) }
            })?;
            self.layout.check_value(most.to_vec()?[0])?;
        }
        Ok(())
    }

    /// Removes all values of keys like [`crate::Maplet::remove_bulk`].
    ///
    /// # Errors
    /// [`Error::Gpu`] if a device fails or has too little memory.
    pub fn remove_bulk<K: Key>(&mut self, keys: &[K]) -> Result<u64, Error> {
        match self.shards.only() {
            Some(only) => only.remove_bulk(keys),
            None => {
                let remove = |part: &mut Maplet, words: DeviceSlice<'_, u64>, _: DeviceSlice<'_, u64>| {
                    part.remove_device(words.cast::<Hashed>()?)
                };
                match self.exact_layout() {
                    None => self.shards.change_bulk(keys, NO_VALUES, remove),
                    Some(layout) => self.shards.change_bulk(&exact::some_words(&layout, keys).0, NO_VALUES, remove),
                }
            }
        }
    }

    /// Removes all values of keys on one of the devices.
    ///
    /// # Errors
    /// The errors of [`Maplet::remove_device`].
    pub fn remove_device<K: DeviceKeys>(&mut self, keys: K) -> Result<u64, Error> {
        self.remove_each_device(&[keys])
    }

    /// Removes all values of batches of keys, each on one of the devices.
    ///
    /// # Errors
    /// The errors of [`Maplet::remove_device`].
    pub fn remove_each_device<K: DeviceKeys>(&mut self, batches: &[K]) -> Result<u64, Error> {
        change_each!(self.shards, batches; |part, keys| part.remove_device(keys))
    }

    /// Adds all values of another maplet on the same devices, like [`crate::Maplet::merge`].
    ///
    /// # Errors
    /// The errors of [`crate::Maplet::merge`]. A maplet of other parameters or devices is refused before anything is
    /// added; on another error, such as a full part, some parts may have been merged.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        self.merge_parts(other, Maplet::merge)
    }

    /// Combines the values of another maplet on the same devices, like [`crate::Maplet::merge_by`].
    ///
    /// # Errors
    /// The errors of [`merge`](Self::merge) and of [`crate::Maplet::merge_by`].
    pub fn merge_by<O: MapletKernels>(&mut self, other: &Self) -> Result<(), Error> {
        self.layout.check_combines()?;
        self.merge_parts(other, Maplet::merge_by::<O>)
    }

    fn merge_parts(
        &mut self,
        other: &Self,
        merge: impl Fn(&mut Maplet, &Maplet) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        self.layout.bits_to_drop(&other.layout)?;
        same_devices(&self.shards, &other.shards, "two maplets")?;
        self.shards.each_mut(|place, part| merge(part, &other.shards.parts()[place])).map(drop)
    }

    /// Returns the value of each key, like [`crate::Maplet::get_bulk`].
    ///
    /// # Errors
    /// [`Error::Gpu`] if a device fails or has too little memory.
    pub fn get_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<Option<u64>>, Error> {
        let mut answers = in_huge_pages(vec![None; keys.len()]);
        self.get_bulk_into(keys, &mut answers)?;
        Ok(answers)
    }

    /// Writes the value of each key, like [`crate::Maplet::get_bulk_into`].
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is one answer per key; [`Error::Gpu`] if a device fails or has too little
    /// memory.
    pub fn get_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [Option<u64>]) -> Result<(), Error> {
        if let [only] = self.shards.parts() {
            return only.get_bulk_into(keys, answers);
        }
        same_length(keys.len(), answers.len())?;
        match self.exact_layout() {
            None => self.get_any(keys, answers),
            Some(layout) => exact::answer(&layout, keys, answers, None, |words, answers| self.get_any(words, answers)),
        }
    }

    /// Looks up keys in several parts that all have a fingerprint.
    fn get_any<K: Key>(&self, keys: &[K], answers: &mut [Option<u64>]) -> Result<(), Error> {
        // SAFETY: `look_up` queues all work on its stream, and writes a word per key.
        unsafe { self.shards.reply_bulk_as(keys, answers, &mut [], Maplet::ABSENT, put, look_up) }
    }

    /// Writes the value of each key, or [`Maplet::ABSENT`]; `values` has one word per key, on the device of the keys.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] if not; memory of a device that has no part.
    pub fn get_device<K: DeviceKeys>(&self, keys: K, values: DeviceSliceMut<'_, u64>) -> Result<(), Error> {
        // SAFETY: maplet, keys and values are borrowed until the stream has been waited for.
        keys.device().waiting(|stream| unsafe { self.get_async(stream, keys, values) })
    }

    /// Queues [`get_device`](Self::get_device). Waits for the grouping of each round.
    ///
    /// # Errors
    /// The errors of [`get_device`](Self::get_device).
    ///
    /// # Safety
    /// The contract of [`Maplet::get_async`].
    pub unsafe fn get_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        mut values: DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        if let [only] = self.shards.parts() {
            // SAFETY: this function's contract.
            return unsafe { only.get_async(stream, keys, values) };
        }
        same_length(keys.count(), values.len())?;
        let to = Replies::values(values.global_mut(), None).absent(Maplet::ABSENT);
        // SAFETY: there is a word per key; the rest is this function's contract.
        unsafe { self.shards.reply_async(stream, keys, &[values.device()], to, look_up) }
    }

    /// Looks up batches that lie on all devices, one batch per device in their order, as
    /// [`get_device`](Self::get_device) does: `values` are on the device of their keys.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`] unless there is a batch per device, with places for values; [`Error::Gpu`].
    pub fn get_each_device<K: DeviceKeys + Sync>(
        &self,
        batches: &[K],
        values: Vec<DeviceSliceMut<'_, u64>>,
    ) -> Result<(), Error> {
        self.shards.ask_each(batches, values, |keys, values| self.get_device(keys, values))
    }
}

/// Queues the lookup of hashes in a part.
fn look_up(part: &Maplet, stream: &Stream, hashes: DeviceSlice<'_, u64>, to: Replies) -> Result<(), Error> {
    // SAFETY: the callers' contract: there is a word per hash, and memory outlives the stream's work.
    unsafe { part.look_up(stream, KeySlice::hashes(hashes.global()), hashes.len(), to.values) }
}

warpset_primitives::divided_structure! { [] ShardedMaplet }

impl fmt::Debug for ShardedMaplet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardedMaplet").field("layout", &self.layout).field("devices", self.devices()).finish()
    }
}

#[cfg(test)]
mod tests;
