//! Standard quotient filters in device memory: the same words as on the host, built and queried by kernels.
//!
//! Changes of a filter write it anew: fingerprints are extracted, put together with those of the batch, and laid out by
//! one scan (see `warpset_kernels::quotient::build`). Methods on host slices bring keys to the device as they are,
//! where they are integers or hashes, and else as hashes; those that end in `_device` take keys that are there, and those
//! in `_async` also a stream, and wait for nothing.

use std::fmt;

use warpset_gpu::{Device, DeviceSlice, DeviceVec};

use warpset_base::words::Words;

use crate::{Error, Layout, OutOfMemory, StandardQuotientFilter as HostFilter};

mod build;
mod count;
mod crossover;
mod fingerprints;
mod keys;
mod lookup;
mod merge;
mod paper_builds;
mod update;
mod width;

pub use keys::DeviceKey;
pub use lookup::LookupMethod;
pub use update::UpdateMethod;

/// [`StandardQuotientFilter`](crate::StandardQuotientFilter) in device memory.
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
pub struct StandardQuotientFilter {
    layout: Layout,
    device: Device,
    words: DeviceVec<u64>,
    items: u64,
}

impl StandardQuotientFilter {
    /// An empty filter with these parameters.
    pub(crate) fn with_layout(device: &Device, layout: Layout) -> Result<StandardQuotientFilter, Error> {
        let too_large = |_| OutOfMemory { bytes: layout.words().saturating_mul(8) };
        let words = device.alloc_zeroed(usize::try_from(layout.words()).map_err(too_large)?)?;
        Ok(StandardQuotientFilter { layout, device: device.clone(), words, items: 0 })
    }

    /// A copy of a filter in host memory.
    pub fn from_host(device: &Device, filter: &HostFilter) -> Result<StandardQuotientFilter, Error> {
        let mut copy = StandardQuotientFilter::with_layout(device, *filter.layout())?;
        copy.words.copy_from_slice(filter.words())?;
        copy.items = filter.len();
        Ok(copy)
    }

    /// A copy in host memory. Waits for all work on the device.
    pub fn to_host(&self) -> Result<HostFilter, Error> {
        let mut words = Words::zeroed(self.layout.words())?;
        self.words.copy_to_slice(words.as_mut_slice())?;
        Ok(HostFilter::from_parts(self.layout, words, self.items))
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

    /// How many fingerprints are stored, repetitions included.
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether no fingerprint is stored.
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// Fingerprints stored, as a share of the quotients.
    pub fn load_factor(&self) -> f64 {
        self.items as f64 / self.layout.quotients() as f64
    }

    /// Bytes of device memory that the slots take.
    pub fn memory_bytes(&self) -> u64 {
        8 * self.layout.words()
    }

    /// Removes everything.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.words.fill_bytes(0)?;
        self.items = 0;
        Ok(())
    }
}

impl fmt::Debug for StandardQuotientFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("gpu::StandardQuotientFilter")
            .field("layout", &self.layout)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod build_tests;
#[cfg(test)]
mod lookup_tests;
#[cfg(test)]
mod tests;
