//! Filters built on a device: a function, and then the fingerprint of each key at its number.

use warpset_base::key::Key;
use warpset_gpu::batch::{DeviceKeys128, Hashing, Reply, Staging};
use warpset_gpu::{DeviceVec, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::recsplit::fingerprints::recsplit_fingerprints;

use super::buckets::covering;
use super::source::{HostKeys, KeysThere};
use super::{Builder, RecSplit, StaticFilter};
use crate::Error;
use crate::format::COMMON_WORDS;
use crate::static_filter::{Parameters, fingerprint_words};

impl Builder<crate::StaticFilter> {
    /// Builds the filter of `keys`, which must be distinct. Integers cross the bus as they are, of other keys the hashes, once for the
    /// function and once for the fingerprints.
    ///
    /// # Errors
    /// Those of [`Builder::build_from`](crate::Builder::build_from); [`Error::Gpu`].
    pub fn build_from<K: Key>(&self, keys: &[K]) -> Result<StaticFilter, Error> {
        self.settings.check_width()?;
        self.device.synchronize()?;
        let mut draft = Draft::new(self, self.function(&HostKeys { device: &self.device, keys }, None)?)?;
        Staging::new(&self.device, Hashing::wide(draft.function.seed())).run(
            keys,
            Reply::None,
            // SAFETY: `run` waits for all chunks, on an error too.
            |chunk| unsafe { draft.queue(chunk.stream, chunk.keys, chunk.range.len()) },
            |_, _| {},
        )?;
        draft.finish()
    }

    /// Builds the filter of keys on the device, which must be distinct.
    ///
    /// # Errors
    /// As for [`Builder::build_from`]; [`warpset_gpu::GpuError::OtherDevice`].
    pub fn build_from_device(&self, keys: impl DeviceKeys128) -> Result<StaticFilter, Error> {
        self.settings.check_width()?;
        self.device.expect_same(keys.device(), "building a filter")?;
        self.device.synchronize()?;
        let keys = KeysThere(keys);
        let mut draft = Draft::new(self, self.function(&keys, None)?)?;
        let (stream, seed) = (self.device.new_stream()?, draft.function.seed());
        // SAFETY: the stream is waited for, on an error too.
        let queued = unsafe { keys.each(&stream, seed, NUMBERED, |keys, _, n| draft.queue(&stream, keys, n)) };
        stream.synchronize()?;
        queued?;
        draft.finish()
    }
}

/// Keys whose numbers take scratch memory at a time: 256 MiB.
const NUMBERED: usize = 1 << 25;

/// A filter whose fingerprints are still to come.
struct Draft {
    function: RecSplit,
    words: DeviceVec<u64>,
    parameters: Parameters,
}

impl Draft {
    fn new<S>(builder: &Builder<S>, function: RecSplit) -> Result<Self, Error> {
        let (device, width) = (&builder.device, builder.settings.width());
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

    /// Queues the fingerprints of `n` keys.
    ///
    /// # Safety
    /// The keys are `n`, by their hashes under the function's seed; they and this stay until `stream` has passed this work.
    unsafe fn queue(&mut self, stream: &Stream, keys: KeySlice, n: usize) -> Result<(), Error> {
        let first = COMMON_WORDS + self.parameters.function_words();
        let mut numbers = stream.alloc_uninit(n)?;
        // SAFETY: numbers are below that of the fingerprints, which other keys' are or-ed to; scratch memory is freed in the order of
        // the stream; the rest is the caller's promise.
        unsafe {
            self.function.queue_numbers(stream, keys, n, numbers.global_mut())?;
            let KeySlice { keys, kind, spread: seed } = keys;
            let (numbers, width) = (numbers.global(), self.parameters.width);
            let words = self.words.global_mut().at(first);
            recsplit_fingerprints { keys, kind, seed, n, numbers, width, words }
                .launch(stream, covering(stream.device(), n))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<StaticFilter, Error> {
        let device = self.words.device().clone();
        StaticFilter::from_parts(&device, self.words, self.parameters)
    }
}
