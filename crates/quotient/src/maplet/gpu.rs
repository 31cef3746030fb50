//! Maplets in device memory: the words of the host, built, changed and queried by kernels.
//!
//! A batch becomes pairs, which the filter sorts, lays out, inserts and removes as fingerprints. To combine values, the
//! sorted batch is reduced to one value per fingerprint. Fingerprints without a stored value are then inserted, and the
//! values of the others combined in place. If fingerprints of the batch have several stored values, these are merged
//! with the batch, removed, and the results inserted.

use std::fmt;

use warpset_base::filter::same_length;
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Stream};
pub use warpset_kernels::quotient::rank_select::device_query::MapletQuery;

use self::pairs::join_to;
use super::{MapletBuilder, MapletLayout, cpu};
use crate::gpu::fingerprints::{Fingerprints, TooWide};
use crate::gpu::launch::waiting_on_errors;
use crate::gpu::{DeviceKeys, QuotientFilter};
use crate::resize::resizes;
use crate::slot_kind::SlotKind as _;
use crate::{Error, Key, Layout, RankSelect};

mod lookup;
mod pairs;
mod sharded;
mod update;

pub use sharded::{ShardedMaplet, ShardedMapletBuilder};

/// [`crate::Maplet`] in device memory.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_quotient::{RankSelectQuotientFilter, Sum};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let builder = RankSelectQuotientFilter::builder(1000).fpr(1e-6).values(20);
/// let mut sold = builder.on(&device).build_from(&[7u64, 8], &[3u8, 1])?;
/// sold.upsert_bulk::<Sum<u64>, _, _>(&[7u64, 9], &[4u8, 2])?;
/// assert_eq!(sold.get_bulk(&[7u64, 9, 10])?, [Some(7), Some(2), None]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Maplet {
    layout: MapletLayout,
    /// Filter with the pairs.
    pairs: QuotientFilter<RankSelect>,
}

/// [`MapletBuilder`] of maplets on a device, made by [`MapletBuilder::on`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct DeviceMapletBuilder {
    settings: MapletBuilder,
    device: Device,
}

impl MapletBuilder {
    /// Makes a builder with these settings of a maplet in device memory.
    pub fn on(&self, device: &Device) -> DeviceMapletBuilder {
        DeviceMapletBuilder { settings: *self, device: device.clone() }
    }
}

impl DeviceMapletBuilder {
    /// Checks every setting, then allocates an empty maplet.
    ///
    /// # Errors
    /// The errors of [`MapletBuilder::layout`]; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn build(&self) -> Result<Maplet, Error> {
        let layout = self.settings.layout()?;
        Ok(Maplet { layout, pairs: QuotientFilter::with_layout(&self.device, layout.pairs())? })
    }

    /// Builds a maplet like [`MapletBuilder::build_from`].
    ///
    /// # Errors
    /// The errors of [`MapletBuilder::build_from`]; [`Error::Gpu`] if the device fails or has too little memory.
    pub fn build_from<K: Key, V: Copy + Into<u64> + Sync>(&self, keys: &[K], values: &[V]) -> Result<Maplet, Error> {
        let layout = self.settings.layout()?;
        let stream = self.device.new_stream()?;
        let batch = Fingerprints::from_host(&layout.pairs(), &stream, &cpu::pairs(&layout, keys, values)?)?;
        Maplet::of_pairs(&stream, layout, batch)
    }

    /// Builds a maplet of keys and values on the device.
    ///
    /// # Errors
    /// The errors of [`DeviceMapletBuilder::build_from`]; [`Error::Gpu`] for memory of another device.
    pub fn build_from_device<K: DeviceKeys>(&self, keys: K, values: DeviceSlice<'_, u64>) -> Result<Maplet, Error> {
        let layout = self.settings.layout()?;
        let stream = self.device.new_stream()?;
        waiting_on_errors(&stream, || {
            let batch = Maplet::brought(&layout, &stream, keys, values)?;
            Maplet::of_pairs(&stream, layout, batch)
        })
    }
}

impl Maplet {
    /// Copies a maplet from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn from_host(device: &Device, maplet: &crate::Maplet) -> Result<Maplet, Error> {
        Ok(Maplet { layout: *maplet.layout(), pairs: QuotientFilter::from_host(device, maplet.filter())? })
    }

    /// Copies the maplet to host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory, [`Error::OutOfMemory`] if the host has.
    pub fn to_host(&self) -> Result<crate::Maplet, Error> {
        Ok(crate::Maplet::from_parts(self.layout, self.pairs.to_host()?))
    }

    /// Copies the maplet on the same device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn try_clone(&self) -> Result<Maplet, Error> {
        Ok(Maplet { layout: self.layout, pairs: self.pairs.try_clone()? })
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &MapletLayout {
        &self.layout
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        self.pairs.device()
    }

    /// Returns the words on the device: the memory image that every backend shares.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.pairs.words()
    }

    /// Returns the number of stored values, copies included.
    pub fn len(&self) -> u64 {
        self.pairs.len()
    }

    /// Whether no value is stored.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Returns the bytes of device memory of the slots.
    pub fn memory_bytes(&self) -> u64 {
        self.pairs.memory_bytes()
    }

    /// Returns the slots in use as a share of the quotients.
    pub fn load_factor(&self) -> f64 {
        self.pairs.load_factor()
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.pairs.clear()
    }

    /// Builds a maplet of pairs in any order. Waits.
    fn of_pairs(stream: &Stream, layout: MapletLayout, batch: Fingerprints) -> Result<Maplet, Error> {
        let of_pairs = layout.pairs();
        let pairs = QuotientFilter::lay_out(stream, of_pairs, &batch.sorted(&of_pairs, stream)?)?;
        Ok(Maplet { layout, pairs })
    }

    /// Makes pairs of keys and values on the device. Waits for the check of the values.
    fn brought<K: DeviceKeys>(
        layout: &MapletLayout,
        stream: &Stream,
        keys: K,
        values: DeviceSlice<'_, u64>,
    ) -> Result<Fingerprints, Error> {
        let mut pairs = Fingerprints::alloc(&layout.pairs(), stream, keys.count())?;
        Maplet::bring(layout, stream, keys, values, (&mut pairs, 0))?;
        Ok(pairs)
    }

    /// Makes the pairs of [`brought`](Self::brought) as hashes, of which they are the highest bits.
    fn brought_as_hashes<K: DeviceKeys>(
        layout: &MapletLayout,
        stream: &Stream,
        keys: K,
        values: DeviceSlice<'_, u64>,
    ) -> Result<DeviceVec<u64>, Error> {
        let mut pairs = Fingerprints::Wide(stream.alloc_uninit(keys.count())?);
        let shift = u64::BITS - layout.pairs().fingerprint_bits();
        Maplet::bring(layout, stream, keys, values, (&mut pairs, shift))?;
        Ok(pairs.into_wide())
    }

    /// Makes pairs of keys and values at these places on the device, moved up by some bits. Waits for the check of the
    /// values.
    fn bring<K: DeviceKeys>(
        layout: &MapletLayout,
        stream: &Stream,
        keys: K,
        values: DeviceSlice<'_, u64>,
        to: (&mut Fingerprints, u32),
    ) -> Result<(), Error> {
        same_length(keys.count(), values.len())?;
        if keys.count() == 0 {
            return Ok(());
        }
        stream.device().expect_all_here([keys.device(), values.device()], "filling a maplet")?;
        stream.device().synchronize()?;
        // SAFETY: keys and values are borrowed until the check of the values has been waited for.
        let fingerprints = unsafe { Fingerprints::wide_of_device_keys(&layout.keys, stream, keys, TooWide::Refused)? };
        let (mut first, mut place) = (stream.from_slice(&[u64::MAX])?, [0]);
        join_to(layout, stream, fingerprints.as_slice(), values, Some(&mut first), to)?;
        stream.download(&first, &mut place)?;
        if place[0] != u64::MAX {
            let (at, mut value) = (place[0] as usize, [0]);
            stream.download(values.slice(at..at + 1), &mut value)?;
            layout.check_value(value[0])?;
        }
        Ok(())
    }

    fn rewritten(&self, keys: Layout) -> Result<Maplet, Error> {
        let layout = MapletLayout::new(keys, self.layout.value_bits)?;
        Ok(Maplet { layout, pairs: self.pairs.rewritten(layout.pairs())? })
    }
}

resizes! { [] Maplet, RankSelect, |maplet| maplet.layout.keys; }

impl crate::Maplet {
    /// Copies the maplet to device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn to_device(&self, device: &Device) -> Result<Maplet, Error> {
        Maplet::from_host(device, self)
    }
}

impl fmt::Debug for Maplet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("gpu::Maplet").field("layout", &self.layout).field("len", &self.len()).finish_non_exhaustive()
    }
}
