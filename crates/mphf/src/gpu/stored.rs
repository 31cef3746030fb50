//! Structures in device memory, and their copies from and to the host.

use std::fmt;

use warpset_gpu::batch::{DEFAULT_CHUNK_KEYS, DeviceKeys128, Hashing, Staging};
use warpset_gpu::{Device, DeviceSlice, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;

use super::DeviceHashKind;
use crate::format::{self, COMMON_WORDS};
use crate::stored::StoredParts;
use crate::{Error, Fingerprints, Function, function, static_filter};

/// [Stored parts](StoredParts) that can be in device memory. Sealed.
pub trait DeviceStoredParts: StoredParts {
    /// Tables for lookups, besides words.
    type Tables: Send + Sync;

    /// Name of its lookups in errors.
    const LOOKUP: &'static str;

    /// Makes the tables for lookups in a structure of this many words.
    ///
    /// # Errors
    /// Memory of the device.
    fn device_tables(device: &Device, parameters: &Self::Parameters, words: usize) -> Result<Self::Tables, Error>;

    /// Returns the hash function of keys.
    fn hashing(seed: u64) -> Hashing;

    /// Computes the checksums in words that came from a device, where they may be missing.
    fn seal(parameters: &Self::Parameters, words: &mut [u64]);
}

impl<M: DeviceHashKind> DeviceStoredParts for Function<M> {
    type Tables = M::DeviceTables;
    const LOOKUP: &'static str = "a lookup in a function";

    fn device_tables(
        device: &Device,
        parameters: &function::Parameters<M>,
        words: usize,
    ) -> Result<M::DeviceTables, Error> {
        M::device_tables(device, parameters, words as u64, 0)
    }

    fn hashing(seed: u64) -> Hashing {
        M::hashing(seed)
    }

    fn seal(_parameters: &function::Parameters<M>, words: &mut [u64]) {
        words[COMMON_WORDS - 1] = format::checksum(words);
    }
}

impl<M: DeviceHashKind> DeviceStoredParts for Fingerprints<M> {
    type Tables = M::DeviceTables;
    const LOOKUP: &'static str = "a lookup in a static filter";

    fn device_tables(
        device: &Device,
        parameters: &static_filter::Parameters<M>,
        _words: usize,
    ) -> Result<M::DeviceTables, Error> {
        M::device_tables(device, &parameters.function, parameters.function_words() as u64, parameters.width)
    }

    fn hashing(seed: u64) -> Hashing {
        M::hashing(seed)
    }

    fn seal(parameters: &static_filter::Parameters<M>, words: &mut [u64]) {
        let function = &mut words[COMMON_WORDS..][..parameters.function_words()];
        function[COMMON_WORDS - 1] = format::checksum(function);
        words[COMMON_WORDS - 1] = format::checksum(words);
    }
}

/// A [`crate::StoredFunction`] in device memory: the same words, looked up by kernels.
///
/// [`PerfectHash`](super::PerfectHash) and [`StaticFilter`](super::StaticFilter) are the structures.
pub struct StoredFunction<S: DeviceStoredParts> {
    device: Device,
    pub(super) words: DeviceVec<u64>,
    pub(super) parameters: S::Parameters,
    pub(super) tables: S::Tables,
    /// Keys of a host slice per chunk.
    chunk_keys: usize,
}

impl<S: DeviceStoredParts> StoredFunction<S> {
    /// Joins words on `device` and the parameters that describe them. The checksums in them may be missing; they are
    /// computed when the words are copied to the host.
    pub(crate) fn from_parts(device: &Device, words: DeviceVec<u64>, parameters: S::Parameters) -> Result<Self, Error> {
        device.expect_same(words.device(), "the words of a structure")?;
        let tables = S::device_tables(device, &parameters, words.len())?;
        Ok(Self { device: device.clone(), words, parameters, tables, chunk_keys: DEFAULT_CHUNK_KEYS })
    }

    /// Copies a structure from host memory.
    ///
    /// # Errors
    /// [`Error::Gpu`], for example if device memory is too small.
    pub fn from_host<W: AsRef<[u64]>>(device: &Device, stored: &crate::StoredFunction<S, W>) -> Result<Self, Error> {
        let mut words = device.alloc_uninit(stored.words().len())?;
        device.new_stream()?.upload(&mut words, stored.words())?;
        Self::from_parts(device, words, stored.parameters().clone())
    }

    /// Copies the structure to another device, or on this one.
    pub(super) fn copied_to(&self, device: &Device) -> Result<Self, Error> {
        let mut words = device.alloc_uninit(self.words.len())?;
        let stream = device.new_stream()?;
        stream.copy(&mut words, &self.words)?;
        stream.synchronize()?;
        Self::from_parts(device, words, self.parameters.clone())
    }

    /// Copies the structure to host memory. Waits for all work on the device.
    ///
    /// # Errors
    /// [`Error::Gpu`].
    pub fn to_host(&self) -> Result<crate::StoredFunction<S>, Error> {
        self.device.synchronize()?;
        let mut words = vec![0; self.words.len()];
        self.device.new_stream()?.download(&self.words, &mut words)?;
        S::seal(&self.parameters, &mut words);
        Ok(crate::StoredFunction::trusted(words, self.parameters.clone()))
    }

    /// Returns its device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the words on the device, in the saved form, except that the checksums, word 15 of a function and of a
    /// filter, may be zero. [`from_words`](crate::StoredFunction::from_words) then rejects copies of them: use those of
    /// [`to_host`](Self::to_host), which computes the checksums.
    pub fn words(&self) -> DeviceSlice<'_, u64> {
        self.words.as_slice()
    }

    /// Sets the number of keys of a host slice per chunk: more hide launch costs, fewer take less memory (16 bytes per
    /// integer of 64 bits, of device and pinned memory). Default: 4 Mi keys. Rounded up to a multiple of 64.
    pub fn set_chunk_keys(&mut self, keys: usize) {
        self.chunk_keys = keys;
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u64 {
        S::keys(&self.parameters)
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the seed of the keys' hash.
    pub fn seed(&self) -> u64 {
        S::seed(&self.parameters)
    }

    /// Returns the bytes of device memory of the words.
    pub fn memory_bytes(&self) -> u64 {
        self.words.byte_len() as u64
    }

    /// Returns the bits of the words per key.
    pub fn bits_per_key(&self) -> f64 {
        self.memory_bytes() as f64 * 8.0 / self.len().max(1) as f64
    }

    /// Prepares the transfer of host keys to the device, after work that the caller queued on other streams.
    pub(super) fn staging(&self) -> Result<Staging<'_>, Error> {
        self.device.synchronize()?;
        Ok(Staging::new(&self.device, S::hashing(self.seed())).chunk_keys(self.chunk_keys))
    }

    /// Calls `queue` for parts of the keys, with the keys, the position of the first among all, a multiple of 64, and
    /// their number, to queue their lookups; `devices` are those of the other arguments.
    ///
    /// # Safety
    /// - `queue` only queues work on `stream`.
    /// - Until `stream` has passed this work, the keys stay allocated, and nothing writes them.
    pub(super) unsafe fn in_parts<K: DeviceKeys128>(
        &self,
        stream: &Stream,
        keys: K,
        devices: &[&Device],
        mut queue: impl FnMut(KeySlice, usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if keys.count() == 0 {
            return Ok(());
        }
        let lent = devices.iter().copied().chain([stream.device(), keys.device()]);
        self.device.expect_all_here(lent, S::LOOKUP)?;
        // SAFETY: scratch is freed in the order of the stream; the rest is this function's contract.
        unsafe {
            keys.for_each_chunk(&S::hashing(self.seed()), stream, |first, hashed, n| queue(hashed.keys, first, n))
        }
    }
}

impl<S: DeviceStoredParts> fmt::Debug for StoredFunction<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct(S::NAME);
        f.field("len", &self.len());
        S::debug(&self.parameters, &mut f);
        f.field("device", &self.device).finish_non_exhaustive()
    }
}

impl<S: DeviceStoredParts, W: AsRef<[u64]>> crate::StoredFunction<S, W> {
    /// Copies the structure to device memory; [`StoredFunction::to_host`] copies it back.
    ///
    /// # Errors
    /// [`Error::Gpu`], for example if device memory is too small.
    pub fn to_device(&self, device: &Device) -> Result<StoredFunction<S>, Error> {
        StoredFunction::from_host(device, self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::RecSplit;

    #[test]
    fn words_without_their_checksum_get_it_on_the_host() {
        let device = Device::emulator(Default::default());
        let keys: Vec<u64> = (0..1_000).collect();
        let function = crate::RecSplit::builder().build_from(&keys).unwrap();
        let mut words = function.words().to_vec();
        words[COMMON_WORDS - 1] = 0;
        let words = device.from_slice(&words).unwrap();
        let on_device = RecSplit::from_parts(&device, words, function.parameters().clone()).unwrap();
        assert!(on_device.to_host().unwrap() == function);
        assert_eq!(on_device.space(), function.space());
    }
}
