//! The function in device memory, and its way from and to the host.

use std::fmt;

use warpset_gpu::batch::{DEFAULT_CHUNK_KEYS, download_large, upload_many};
use warpset_gpu::{Device, DeviceSlice, DeviceVec};

use super::tables::Tables;
use crate::format::{self, COMMON_WORDS, Header};
use crate::query::Parameters;
use crate::{Error, MappedRecSplit, Space, TreeShape, View};

/// [`crate::RecSplit`] in device memory: the same words, asked by kernels.
///
/// ```
/// use warpset_gpu::Device;
/// use warpset_recsplit::RecSplit;
///
/// let device = Device::emulator(Default::default()); // or `Device::cuda(0)?`
/// let function = RecSplit::builder().build_from(&["one", "two", "three"])?;
/// let on_device = function.to_device(&device)?;
/// assert_eq!((on_device.len(), on_device.values()), (3, 3));
/// assert!(on_device.to_host()? == function);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RecSplit {
    device: Device,
    pub(super) words: DeviceVec<u64>,
    pub(super) parameters: Parameters,
    pub(super) tables: Tables,
    /// Keys of a host slice that travel at a time.
    pub(super) chunk_keys: usize,
}

impl RecSplit {
    /// The function in these words on `device`, which this header describes. The checksum in word 15 may be missing: it is
    /// computed where the words come to the host.
    pub(crate) fn from_parts(device: &Device, words: DeviceVec<u64>, header: Header) -> Result<Self, Error> {
        Self::with_parameters(device, words, Parameters::trusted(header))
    }

    fn with_parameters(device: &Device, words: DeviceVec<u64>, parameters: Parameters) -> Result<Self, Error> {
        device.expect_same(words.device(), "a function's words")?;
        let tables = Tables::new(device, &parameters, words.len() as u64, 0)?;
        Ok(Self { device: device.clone(), words, parameters, tables, chunk_keys: DEFAULT_CHUNK_KEYS })
    }

    /// A copy of a function in host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn from_host(device: &Device, function: &crate::RecSplit) -> Result<Self, Error> {
        Self::from_view(device, &function.view())
    }

    fn from_view(device: &Device, view: &View<'_>) -> Result<Self, Error> {
        let mut words = device.alloc_uninit(view.words().len())?;
        upload_many(&device.new_stream()?, vec![(view.words(), words.as_mut_slice())])?;
        Self::with_parameters(device, words, view.lookup().parameters.clone())
    }

    /// A copy on another device, or on this one.
    pub(super) fn copied_to(&self, device: &Device) -> Result<Self, Error> {
        let mut words = device.alloc_uninit(self.words.len())?;
        let stream = device.new_stream()?;
        stream.copy(&mut words, &self.words)?;
        stream.synchronize()?;
        Self::with_parameters(device, words, self.parameters.clone())
    }

    /// A copy in host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn to_host(&self) -> Result<crate::RecSplit, Error> {
        self.device.synchronize()?;
        let mut words = vec![0; self.words.len()];
        download_large(&self.device.new_stream()?, self.words.as_slice(), &mut words)?;
        words[COMMON_WORDS - 1] = format::checksum(&words);
        Ok(crate::RecSplit::trusted(words, self.parameters.header))
    }

    /// The device that it is on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The words on the device, in the saved form, but that word 15, the checksum, may be zero.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.words.as_slice()
    }

    /// How many keys one chunk of a host slice carries: more hide launch costs, fewer take less memory (16 bytes per integer of 64
    /// bits, of device and pinned memory). Default: 4 Mi keys. Rounded up to a multiple of 64.
    pub fn set_chunk_keys(&mut self, keys: usize) {
        self.chunk_keys = keys;
    }

    /// Number of keys.
    pub fn len(&self) -> u64 {
        self.parameters.keys()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All numbers are below this, see [`crate::RecSplit::values`].
    pub fn values(&self) -> u64 {
        self.parameters.values()
    }

    /// Bytes of device memory that the words take.
    pub fn memory_bytes(&self) -> u64 {
        self.words.byte_len() as u64
    }

    /// Bits of the words for each key.
    pub fn bits_per_key(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.len().max(1) as f64
    }

    /// Bits of the splitting trees and of the lists of bucket positions.
    pub fn space(&self) -> Space {
        self.parameters.space()
    }

    /// The shape of the splitting trees.
    pub fn shape(&self) -> TreeShape {
        self.parameters.header.shape
    }

    /// Seed of the keys' hash.
    pub fn seed(&self) -> u64 {
        self.parameters.header.seed
    }
}

impl fmt::Debug for RecSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("RecSplit");
        f.field("len", &self.len()).field("shape", &self.shape()).field("device", &self.device).finish_non_exhaustive()
    }
}

impl crate::RecSplit {
    /// A copy in device memory; [`RecSplit::to_host`] is the way back.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn to_device(&self, device: &Device) -> Result<RecSplit, Error> {
        self.view().to_device(device)
    }
}

impl MappedRecSplit {
    /// A copy in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn to_device(&self, device: &Device) -> Result<RecSplit, Error> {
        self.view().to_device(device)
    }
}

impl View<'_> {
    /// A copy in device memory.
    ///
    /// # Errors
    /// [`Error::Gpu`]: too little device memory, say.
    pub fn to_device(&self, device: &Device) -> Result<RecSplit, Error> {
        RecSplit::from_view(device, self)
    }
}

#[cfg(all(test, not(warpset_host_tests)))]
mod tests {
    use super::*;

    #[test]
    fn words_without_their_checksum_get_it_on_the_host() {
        let device = Device::emulator(Default::default());
        let keys: Vec<u64> = (0..1_000).collect();
        let function = crate::RecSplit::builder().build_from(&keys).unwrap();
        let mut words = function.words().to_vec();
        words[COMMON_WORDS - 1] = 0;
        let words = device.from_slice(&words).unwrap();
        let header = function.view().lookup().parameters.header;
        let on_device = RecSplit::from_parts(&device, words, header).unwrap();
        assert!(on_device.to_host().unwrap() == function);
        assert_eq!(on_device.space(), function.space());
    }
}
