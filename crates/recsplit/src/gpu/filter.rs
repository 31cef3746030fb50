//! The static filter in device memory, and its way from and to the host.

use std::fmt;

use warpset_gpu::batch::{DEFAULT_CHUNK_KEYS, download_large, upload_many};
use warpset_gpu::{Device, DeviceSlice, DeviceVec};

use super::tables::Tables;
use crate::format::{self, COMMON_WORDS};
use crate::static_filter::Parameters;
use crate::{Error, MappedStaticFilter, StaticFilterView};

/// [`crate::StaticFilter`] in device memory: the same words, asked by kernels.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_recsplit::StaticFilter;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let filter = StaticFilter::builder(16).build_from(&["one", "two", "three"])?.to_device(&device)?;
/// assert_eq!(filter.contains_bulk(&["three", "one"])?, [true, true]);
/// assert!(filter.get_bulk(&["two"])?[0].is_some_and(|number| number < 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct StaticFilter {
    device: Device,
    /// All words: header, function, fingerprints.
    pub(super) words: DeviceVec<u64>,
    pub(super) parameters: Parameters,
    pub(super) tables: Tables,
    /// Keys of a host slice that travel at a time.
    pub(super) chunk_keys: usize,
}

impl StaticFilter {
    /// The filter in these words on `device`, which its parameters describe. The checksums in word 15 of the filter and of its function
    /// may be missing: they are computed where the words come to the host.
    pub(crate) fn from_parts(device: &Device, words: DeviceVec<u64>, parameters: Parameters) -> Result<Self, Error> {
        device.expect_same(words.device(), "a filter's words")?;
        let function_words = parameters.function_words() as u64;
        let tables = Tables::new(device, &parameters.function, function_words, parameters.width)?;
        Ok(Self { device: device.clone(), words, parameters, tables, chunk_keys: DEFAULT_CHUNK_KEYS })
    }

    /// A copy of a filter in host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn from_host(device: &Device, filter: &crate::StaticFilter) -> Result<Self, Error> {
        Self::from_view(device, &filter.view())
    }

    fn from_view(device: &Device, view: &StaticFilterView<'_>) -> Result<Self, Error> {
        let mut words = device.alloc_uninit(view.words().len())?;
        upload_many(&device.new_stream()?, vec![(view.words(), words.as_mut_slice())])?;
        Self::from_parts(device, words, view.lookup().parameters.clone())
    }

    /// A copy in host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn to_host(&self) -> Result<crate::StaticFilter, Error> {
        self.device.synchronize()?;
        let mut words = vec![0; self.words.len()];
        download_large(&self.device.new_stream()?, self.words.as_slice(), &mut words)?;
        let function = &mut words[COMMON_WORDS..][..self.parameters.function_words()];
        function[COMMON_WORDS - 1] = format::checksum(function);
        words[COMMON_WORDS - 1] = format::checksum(&words);
        Ok(crate::StaticFilter::trusted(words, self.parameters.clone()))
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The words on the device, in the saved form, but that the checksums, word 15 of the filter and of its function, may be zero.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.words.as_slice()
    }

    /// How many keys one chunk of a host slice carries, see [`RecSplit::set_chunk_keys`](super::RecSplit::set_chunk_keys).
    pub fn set_chunk_keys(&mut self, keys: usize) {
        self.chunk_keys = keys;
    }

    /// Number of members.
    pub fn len(&self) -> u64 {
        self.parameters.keys()
    }

    /// Whether there are no members.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of device memory that the words take.
    pub fn memory_bytes(&self) -> u64 {
        self.words.byte_len() as u64
    }

    /// Bits of the words for each member.
    pub fn bits_per_key(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.len().max(1) as f64
    }

    /// Bits of a fingerprint.
    pub fn width(&self) -> u32 {
        self.parameters.width
    }

    /// The probability that a key that is no member looks like one: 2^-width, and 0 for an empty filter.
    pub fn fpr(&self) -> f64 {
        if self.is_empty() { 0.0 } else { (-f64::from(self.width())).exp2() }
    }
}

impl fmt::Debug for StaticFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("StaticFilter");
        f.field("len", &self.len()).field("width", &self.width()).field("device", &self.device).finish_non_exhaustive()
    }
}

impl crate::StaticFilter {
    /// A copy in device memory; [`StaticFilter::to_host`] is the way back.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn to_device(&self, device: &Device) -> Result<StaticFilter, Error> {
        self.view().to_device(device)
    }
}

impl MappedStaticFilter {
    /// A copy in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn to_device(&self, device: &Device) -> Result<StaticFilter, Error> {
        self.view().to_device(device)
    }
}

impl StaticFilterView<'_> {
    /// A copy in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn to_device(&self, device: &Device) -> Result<StaticFilter, Error> {
        StaticFilter::from_view(device, self)
    }
}
