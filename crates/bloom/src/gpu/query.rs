//! Lookups of keys on the host and on the device.

use warpset_base::filter::{Filter, Take};
use warpset_gpu::batch::{Answers, Reply};
use warpset_gpu::{Device, Stream};
use warpset_primitives::DeviceFilter;

use super::kernels::Batch;
use super::{Bloom, DeviceKeys, DeviceLayout};
use crate::{Error, Key};

impl<L: DeviceLayout> Filter for Bloom<L> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        // Work that the caller queued on other streams runs first.
        self.device.synchronize()?;
        self.staging().run(
            keys,
            Reply::Bits,
            |chunk| {
                let (stream, keys, string_hashes) = (chunk.stream, chunk.keys, chunk.string_hashes);
                let batch = Batch { stream, keys, string_hashes, n: chunk.range.len() };
                // SAFETY: there is room for the answers to a chunk; nothing writes the filter meanwhile, because it is
                // borrowed until `run` has waited.
                unsafe { self.layout.launch_contains(batch, self.words.global(), Answers::bits_at(chunk.replies))? };
                Ok(())
            },
            |range, words| take(range.start, words),
        )
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

impl<L: DeviceLayout, K: DeviceKeys> DeviceFilter<K> for Bloom<L> {
    unsafe fn answer_async(&self, stream: &Stream, keys: K, others: &[&Device], answers: Answers) -> Result<(), Error> {
        if keys.count() == 0 {
            return Ok(());
        }
        let lent = [stream.device(), keys.device()].into_iter().chain(others.iter().copied());
        self.device.expect_all_here(lent, "a lookup in a Bloom filter")?;
        // SAFETY: the words are this layout's; scratch is freed in the order of the stream; the rest is the caller's
        // promise.
        unsafe {
            keys.for_each_chunk(&self.layout.hashing(), stream, |first, hashed, n| {
                let batch = Batch { stream, keys: hashed.keys, string_hashes: hashed.string_hashes(), n };
                self.layout.launch_contains(batch, self.words.global(), answers.from(first))?;
                Ok(())
            })
        }
    }
}
