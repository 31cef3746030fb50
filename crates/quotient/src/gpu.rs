//! Quotient filters in device memory, for every kind of slots: the words of the host, built and queried by kernels.
//!
//! Methods on host slices bring keys to the device in chunks while kernels run: integers and hashes as they are, other
//! keys as hashes. Methods in `_device` take memory of the device; methods in `_async` also take a stream and do not
//! wait. Single keys, files and views need a copy on the host: [`QuotientFilter::to_host`].

use std::fmt;
use std::marker::PhantomData;

use warpset_base::words::AlignedWords;
use warpset_gpu::batch::Staging;
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Stream};

use crate::slot_kind::Counts;
use crate::{Error, Layout, RankSelect, Standard, cpu};

mod build;
mod builder;
mod count;
mod counted;
pub(crate) mod counted_fingerprints;
pub(crate) mod exact;
mod extract;
pub(crate) mod fingerprints;
pub(crate) mod launch;
mod lookup;
#[doc(hidden)]
pub mod methods;
mod part_sort;
mod rates;
mod resize;
pub(crate) mod scan;
mod set_operations;
pub(crate) mod sharded;
pub(crate) mod slot_kind;
pub(crate) mod sorted;
mod stencil;
mod traits;
pub(crate) mod update;

pub use crate::maplet::gpu::{DeviceMapletBuilder, Maplet, MapletQuery, ShardedMaplet, ShardedMapletBuilder};
pub use builder::DeviceBuilder;
use launch::{hashing, word_count};
pub use lookup::LookupMethod;
pub use sharded::{ShardedBuilder, ShardedQuotientFilter};
pub use slot_kind::DeviceSlotKind;
pub use update::UpdateMethod;
pub use warpset_gpu::batch::{DeviceKey, DeviceKeys, DeviceStrings, Stencil};
pub use warpset_primitives::{DeviceFilter, DeviceInsert};

pub use crate::rank_select::gpu::RankSelectQuery;

/// [`crate::QuotientFilter`] in device memory.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_quotient::{Filter, Insert, StandardQuotientFilter};
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let builder = StandardQuotientFilter::builder(100);
/// let mut filter = builder.on(&device).build_from(&[2u64, 3, 5, 7])?;
/// filter.insert_bulk(&[11u64])?;
/// assert_eq!(filter.contains_bulk(&[5u64, 11])?, [true, true]);
///
/// let on_host = filter.to_host()?; // the same bytes as if it had been built there
/// assert!(on_host == builder.build_from(&[2u64, 3, 5, 7, 11])?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct QuotientFilter<S> {
    pub(crate) layout: Layout,
    device: Device,
    /// Words of a sound filter of this layout with this many items.
    pub(crate) words: DeviceVec<u64>,
    /// Fingerprints, copies included.
    pub(crate) items: u64,
    /// Slots in use of a filter with counters; others do not keep the number.
    counted_slots: u64,
    slots: PhantomData<S>,
}

/// [`crate::StandardQuotientFilter`] in device memory.
pub type StandardQuotientFilter = QuotientFilter<Standard>;
/// [`crate::RankSelectQuotientFilter`] in device memory.
pub type RankSelectQuotientFilter = QuotientFilter<RankSelect>;

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// Makes an empty filter with these parameters.
    pub(crate) fn with_layout(device: &Device, layout: Layout) -> Result<QuotientFilter<S>, Error> {
        let words = device.alloc_zeroed(word_count(&layout)?)?;
        Ok(QuotientFilter::from_parts(device, layout, words, 0))
    }

    /// Makes a filter of words that hold `held` in this layout.
    fn from_parts(
        device: &Device,
        layout: Layout,
        words: DeviceVec<u64>,
        held: impl Into<Counts>,
    ) -> QuotientFilter<S> {
        let Counts { copies: items, slots: counted_slots } = held.into();
        QuotientFilter { layout, device: device.clone(), words, items, counted_slots, slots: PhantomData }
    }

    /// Copies a filter from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn from_host(device: &Device, filter: &cpu::QuotientFilter<S>) -> Result<QuotientFilter<S>, Error> {
        let mut copy = QuotientFilter::with_layout(device, *filter.layout())?;
        copy.words.copy_from_slice(filter.words())?;
        Counts { copies: copy.items, slots: copy.counted_slots } = filter.held();
        Ok(copy)
    }

    /// Copies the filter to host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory, [`Error::OutOfMemory`] if the host has.
    pub fn to_host(&self) -> Result<cpu::QuotientFilter<S>, Error> {
        let mut words = AlignedWords::zeroed(self.layout.words())?.in_huge_pages();
        self.device.synchronize()?;
        self.device.new_stream()?.download(&self.words, words.as_mut_slice())?;
        Ok(cpu::QuotientFilter::from_parts(self.layout, words, self.held()))
    }

    /// Copies the filter on the same device.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn try_clone(&self) -> Result<QuotientFilter<S>, Error> {
        let stream = self.ready_stream()?;
        let copy = self.queued_clone(&stream)?;
        stream.synchronize()?;
        Ok(copy)
    }

    /// Queues [`QuotientFilter::try_clone`].
    pub(crate) fn queued_clone(&self, stream: &Stream) -> Result<QuotientFilter<S>, Error> {
        let mut words = stream.alloc_uninit(self.words.len())?;
        stream.copy(&mut words, &self.words)?;
        Ok(QuotientFilter::from_parts(&self.device, self.layout, words, self.held()))
    }

    /// Returns the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the words on the device: the memory image that every backend shares.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.words.as_slice()
    }

    /// Returns the number of stored fingerprints, copies included.
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether no fingerprint is stored.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Returns the slots in use as a share of the quotients.
    pub fn load_factor(&self) -> f64 {
        self.slots_used() as f64 / self.layout.quotients() as f64
    }

    /// Returns the bytes of device memory of the slots.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Returns the bits of device memory per stored fingerprint.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.items as f64
    }

    /// Removes everything.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.words.fill_bytes(0)?;
        (self.items, self.counted_slots) = (0, 0);
        Ok(())
    }

    /// Makes a stream that starts after everything queued on the device.
    pub(crate) fn ready_stream(&self) -> Result<Stream, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        Ok(stream)
    }

    /// Returns the staging of host keys.
    fn staging(&self) -> Staging<'_> {
        Staging::new(&self.device, hashing(&self.layout))
    }
}

impl<S: DeviceSlotKind> cpu::QuotientFilter<S> {
    /// Copies the filter to device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`] if the device fails or has too little memory.
    pub fn to_device(&self, device: &Device) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_host(device, self)
    }
}

impl<S: DeviceSlotKind> fmt::Debug for QuotientFilter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("gpu::QuotientFilter")
            .field("slots", &S::NAME)
            .field("layout", &self.layout)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod api_tests;
#[cfg(test)]
mod build_tests;
#[cfg(test)]
mod counted_tests;
#[cfg(test)]
mod lookup_tests;
#[cfg(test)]
pub(crate) mod tests;
