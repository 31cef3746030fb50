//! Filters built on devices: a function, and then the fingerprint of each key at its number.
//!
//! Each of several devices has a copy of the function and places for all fingerprints, and looks up a part of the keys.
//! The first device unites the fingerprints.

use std::sync::{Mutex, PoisonError};

use warpset_base::key::Key;
use warpset_gpu::batch::{Chunk, DeviceKeys128, Reply, Staging};
use warpset_gpu::{Device, DeviceSliceMut, DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::recsplit::fingerprints::recsplit_fingerprints;

use super::buckets::covering;
use super::join::queue_bits;
use super::plan::part_of;
use super::source::{HostKeys, KeysOnDevice};
use super::{DeviceBuilder, DeviceHashKind, PerfectHash, StaticFilter};
use crate::Error;
use crate::format::COMMON_WORDS;
use crate::static_filter::{Parameters, fingerprint_words};

impl<M: DeviceHashKind> DeviceBuilder<M, crate::StaticFilter<M>> {
    /// Builds the filter of `keys`, which must be distinct. Integers cross the bus unchanged, other keys as hashes,
    /// once for the function and once for the fingerprints.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`](crate::Builder::build_from); [`Error::Gpu`].
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<StaticFilter<M>, Error> {
        let width = self.settings.checked_width()?;
        let mut draft = Draft::new(self.function(&HostKeys(keys))?, width)?;
        let devices = self.devices.at_most(keys.len());
        let several = devices.all().len() as u64;
        let (function, own) = draft.parts();
        let own = Mutex::new(Some(own));
        let parts = devices.each(|place, device| {
            let of = part_of(keys.len() as u64, place as u64, several);
            let keys = &keys[of.start as usize..of.end as usize];
            let staging = Staging::new(device, M::hashing(function.function.seed()));
            let fill = |to: &mut DeviceSliceMut<'_, u64>, by: Fingerprints<'_, M>| {
                // SAFETY: `run` waits for all chunks, also after an error.
                let work = |chunk: &Chunk<'_>| unsafe { by.queue(chunk.stream, chunk.keys, chunk.range.len(), to) };
                staging.run(keys, Reply::NONE, work, |_, _| {})
            };
            match own.lock().unwrap_or_else(PoisonError::into_inner).take_if(|_| place == 0) {
                Some(mut own) => fill(&mut own, function).map(|()| None),
                None => function.elsewhere(device, fill).map(Some),
            }
        });
        let parts = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
        draft.unite(parts.into_iter().flatten())?;
        draft.finish()
    }

    /// Builds the filter of keys on the device, or on one of several, which must be distinct.
    ///
    /// # Errors
    /// The errors of [`DeviceBuilder::build_from`]; [`warpset_gpu::GpuError::OtherDevice`].
    pub fn build_from_device(&self, keys: impl DeviceKeys128) -> Result<StaticFilter<M>, Error> {
        let width = self.settings.checked_width()?;
        self.expect_among(&keys, "building a filter")?;
        let (n, device) = (keys.count(), keys.device().clone());
        let keys = KeysOnDevice(keys);
        let mut draft = Draft::new(self.function(&keys)?, width)?;
        let (function, mut own) = draft.parts();
        let fill = |to: &mut DeviceSliceMut<'_, u64>, by: Fingerprints<'_, M>| {
            let (stream, hashing) = (device.new_stream()?, M::hashing(by.function.seed()));
            // SAFETY: the stream is waited for, also after an error.
            let queued =
                unsafe { keys.each(0..n, &stream, &hashing, NUMBERED, |keys, _, n| by.queue(&stream, keys, n, to)) };
            stream.synchronize()?;
            queued
        };
        if device == *self.devices.first() {
            fill(&mut own, function)?;
        } else {
            let part = function.elsewhere(&device, fill)?;
            draft.unite([part])?;
        }
        draft.finish()
    }
}

/// Keys to number at a time, by the scratch memory for their numbers: 256 MiB.
const NUMBERED: usize = 1 << 25;

/// Function and width for writing fingerprints.
#[derive(Clone, Copy)]
struct Fingerprints<'a, M: DeviceHashKind> {
    function: &'a PerfectHash<M>,
    width: u32,
}

impl<M: DeviceHashKind> Fingerprints<'_, M> {
    /// Queues the fingerprints of `n` keys, to their places in `words`.
    ///
    /// # Safety
    /// `keys` are `n` keys by their hashes under the function's seed. `words` has a place for every key of the
    /// function, zero where no fingerprint was written. Both stay allocated until `stream` has passed this work, and
    /// nothing else accesses the words.
    unsafe fn queue(
        self,
        stream: &Stream,
        keys: KeySlice,
        n: usize,
        words: &mut DeviceSliceMut<'_, u64>,
    ) -> Result<(), Error> {
        let mut numbers = stream.alloc_uninit(n)?;
        // SAFETY: numbers are below that of the fingerprints, and fingerprints of other keys in a word are or-ed;
        // scratch memory is freed in the order of the stream; the rest is this function's contract.
        unsafe {
            self.function.queue_numbers(stream, keys, n, numbers.global_mut())?;
            let KeySlice { keys, kind, seed, .. } = keys;
            let (numbers, width) = (numbers.global(), self.width);
            recsplit_fingerprints { keys, kind, seed, n, numbers, width, words: words.global_mut() }
                .launch(stream, covering(stream.device(), n))?;
        }
        Ok(())
    }

    /// Runs `fill` with a copy of the function on another device, and returns the words that it filled.
    fn elsewhere(
        self,
        device: &Device,
        fill: impl FnOnce(&mut DeviceSliceMut<'_, u64>, Fingerprints<'_, M>) -> Result<(), Error>,
    ) -> Result<DeviceVec<u64>, Error> {
        let function = &self.function.copied_to(device)?;
        let mut words = device.alloc_zeroed(fingerprint_words(function.len(), self.width) as usize)?;
        fill(&mut words.as_mut_slice(), Fingerprints { function, ..self })?;
        Ok(words)
    }
}

/// A filter without its fingerprints.
struct Draft<M: DeviceHashKind> {
    function: PerfectHash<M>,
    words: DeviceVec<u64>,
    parameters: Parameters<M>,
}

impl<M: DeviceHashKind> Draft<M> {
    fn new(function: PerfectHash<M>, width: u32) -> Result<Self, Error> {
        let device = function.device();
        let function_words = function.words().len();
        let parameters = Parameters::new(function.parameters.clone(), function_words, width);
        let fingerprints = fingerprint_words(function.len(), width) as usize;
        let first = COMMON_WORDS + function_words;
        let mut words = device.alloc_uninit::<u64>(first + fingerprints)?;
        let stream = device.new_stream()?;
        stream.upload(words.slice_mut(..COMMON_WORDS), &parameters.header_words())?;
        stream.copy(words.slice_mut(COMMON_WORDS..first), function.words())?;
        stream.fill_bytes(words.slice_mut(first..), 0)?;
        stream.synchronize()?;
        Ok(Self { function, words, parameters })
    }

    /// Returns function and width, and the places of the fingerprints.
    fn parts(&mut self) -> (Fingerprints<'_, M>, DeviceSliceMut<'_, u64>) {
        let first = COMMON_WORDS + self.parameters.function_words();
        let by = Fingerprints { function: &self.function, width: self.parameters.width };
        (by, self.words.slice_mut(first..))
    }

    /// Adds the fingerprints of other devices.
    fn unite(&mut self, others: impl IntoIterator<Item = DeviceVec<u64>>) -> Result<(), Error> {
        let stream = self.function.device().new_stream()?;
        let (_, mut own) = self.parts();
        // SAFETY: all have equal numbers of words; the stream is waited for, also after an error.
        let unite = |part: DeviceVec<u64>| unsafe { queue_bits(&stream, &part, 0, own.global_mut()) };
        let queued = others.into_iter().try_for_each(unite);
        stream.synchronize()?;
        queued
    }

    fn finish(self) -> Result<StaticFilter<M>, Error> {
        let device = self.words.device().clone();
        StaticFilter::from_parts(&device, self.words, self.parameters)
    }
}
