//! Quotient filters in device memory, whatever their kind of slots: the same words as on the host, built and queried by
//! kernels.
//!
//! Methods on host slices bring keys to the device in chunks, copies and kernels side by side: integers and hashes as they
//! are, other keys as hashes. Those that end in `_device` take memory of the device; those in `_async` also a stream, and
//! wait for nothing. What needs single keys, files or views needs a copy on the host: [`QuotientFilter::to_host`].

use std::fmt;
use std::marker::PhantomData;

use warpset_base::words::AlignedWords;
use warpset_gpu::batch::{Hashing, Staging, download_large};
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Stream};

use crate::slot_kind::Tally;
use crate::{Error, Layout, OutOfMemory, RankSelect, Standard, cpu};

pub(crate) mod build;
mod count;
pub(crate) mod counted;
pub(crate) mod counts;
mod exact;
mod extract;
mod fingerprint_word;
pub(crate) mod fingerprints;
pub(crate) mod kernels;
mod lookup;
mod parts;
mod rates;
mod resize;
pub(crate) mod scan;
pub(crate) mod slot_kind;
pub(crate) mod sorted;
mod stencil;
mod traits;
mod two_filters;
mod update;

pub use lookup::LookupMethod;
pub use slot_kind::DeviceSlotKind;
pub use warpset_gpu::batch::{DeviceKey, DeviceKeys, DeviceStrings, Stencil};

pub use crate::builder::DeviceBuilder;
pub use crate::rank_select::gpu::RankSelectQuery;
pub use crate::standard::gpu::UpdateMethod;

/// [`crate::QuotientFilter`] in device memory.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_quotient::StandardQuotientFilter;
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
    /// The words of a sound filter of this layout with this many items.
    pub(crate) words: DeviceVec<u64>,
    /// Copies included.
    pub(crate) items: u64,
    /// The slots that they take, of a filter with counters; else not kept.
    counted_slots: u64,
    slots: PhantomData<S>,
}

/// [`crate::StandardQuotientFilter`] in device memory.
pub type StandardQuotientFilter = QuotientFilter<Standard>;
/// [`crate::RankSelectQuotientFilter`] in device memory.
pub type RankSelectQuotientFilter = QuotientFilter<RankSelect>;

/// The words of an empty filter.
pub(crate) fn zeroed_words(layout: &Layout, stream: &Stream) -> Result<DeviceVec<u64>, Error> {
    Ok(stream.alloc_zeroed(word_count(layout)?)?)
}

fn word_count(layout: &Layout) -> Result<usize, OutOfMemory> {
    usize::try_from(layout.words()).map_err(|_| OutOfMemory { bytes: layout.words().saturating_mul(8) })
}

impl<S: DeviceSlotKind> QuotientFilter<S> {
    /// An empty filter with these parameters.
    pub(crate) fn with_layout(device: &Device, layout: Layout) -> Result<QuotientFilter<S>, Error> {
        let words = device.alloc_zeroed(word_count(&layout)?)?;
        Ok(QuotientFilter::from_parts(device, layout, words, 0))
    }

    /// The words hold `items` fingerprints in this layout.
    fn from_parts(device: &Device, layout: Layout, words: DeviceVec<u64>, items: u64) -> QuotientFilter<S> {
        QuotientFilter::from_tally(device, layout, words, items.into())
    }

    /// The words hold this in this layout.
    fn from_tally(device: &Device, layout: Layout, words: DeviceVec<u64>, held: Tally) -> QuotientFilter<S> {
        let Tally { copies: items, slots: counted_slots } = held;
        QuotientFilter { layout, device: device.clone(), words, items, counted_slots, slots: PhantomData }
    }

    /// A copy of a filter in host memory.
    pub fn from_host(device: &Device, filter: &cpu::QuotientFilter<S>) -> Result<QuotientFilter<S>, Error> {
        let mut copy = QuotientFilter::with_layout(device, *filter.layout())?;
        copy.words.copy_from_slice(filter.words())?;
        Tally { copies: copy.items, slots: copy.counted_slots } = filter.tally();
        Ok(copy)
    }

    /// A copy in host memory. Waits for all work on the device.
    pub fn to_host(&self) -> Result<cpu::QuotientFilter<S>, Error> {
        let mut words = AlignedWords::zeroed(self.layout.words())?;
        self.device.synchronize()?;
        download_large(&self.device.new_stream()?, self.words.as_slice(), words.as_mut_slice())?;
        Ok(cpu::QuotientFilter::from_parts(self.layout, words, self.tally()))
    }

    /// A copy on the same device.
    pub fn try_clone(&self) -> Result<QuotientFilter<S>, Error> {
        let stream = self.ready_stream()?;
        let mut words = stream.alloc_uninit(self.words.len())?;
        stream.copy(&mut words, &self.words)?;
        stream.synchronize()?;
        Ok(QuotientFilter::from_tally(&self.device, self.layout, words, self.tally()))
    }

    /// The parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The words on the device: the memory image that every backend shares.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.words.as_slice()
    }

    /// How many fingerprints are stored, copies included.
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether no fingerprint is stored.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Slots in use, as a share of the quotients.
    pub fn load_factor(&self) -> f64 {
        self.slots_used() as f64 / self.layout.quotients() as f64
    }

    /// Bytes of device memory that the slots take.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Bits of device memory per stored fingerprint.
    pub fn bits_per_key(&self) -> f64 {
        8.0 * self.memory_bytes() as f64 / self.items as f64
    }

    /// Removes everything.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.words.fill_bytes(0)?;
        (self.items, self.counted_slots) = (0, 0);
        Ok(())
    }

    /// A stream that starts after everything that was queued on the device.
    fn ready_stream(&self) -> Result<Stream, Error> {
        let stream = self.device.new_stream()?;
        self.device.synchronize()?;
        Ok(stream)
    }

    /// How host keys come to the device.
    fn staging(&self) -> Staging<'_> {
        Staging::new(&self.device, hashing(&self.layout))
    }
}

impl<S: DeviceSlotKind> cpu::QuotientFilter<S> {
    /// A copy in device memory.
    pub fn to_device(&self, device: &Device) -> Result<QuotientFilter<S>, Error> {
        QuotientFilter::from_host(device, self)
    }
}

/// How keys of a filter are hashed.
fn hashing(layout: &Layout) -> Hashing {
    Hashing::seeded(layout.seed())
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

#[cfg(all(test, not(warpset_host_tests)))]
mod api_tests;
#[cfg(all(test, not(warpset_host_tests)))]
mod build_tests;
#[cfg(all(test, not(warpset_host_tests)))]
mod counted_tests;
#[cfg(all(test, not(warpset_host_tests)))]
mod lookup_tests;
#[cfg(all(test, not(warpset_host_tests)))]
mod tests;
