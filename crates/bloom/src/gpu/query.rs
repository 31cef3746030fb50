//! Lookups of keys on the host and on the device.

use warpset_base::filter::{Filter, Take};
use warpset_gpu::batch::{Answers, Reply};
use warpset_gpu::{Device, Stream};
use warpset_primitives::DeviceFilter;

use super::kernels::Batch;
use super::{Bloom, DeviceKeys, DeviceLayout};
use crate::{Error, Key};

/// Keys of a batch from which it pays to keep a share of the filter in the L2 cache.
const MANY_KEYS: usize = 1 << 26;

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
            Reply::BITS,
            |chunk| {
                let (stream, keys, string_hashes) = (chunk.stream, chunk.keys, chunk.string_hashes);
                let batch = Batch { stream, keys, string_hashes, n: chunk.range.len() };
                // SAFETY: a part gets hashes of its blocks alone; there is room for the answers to a chunk; nothing
                // writes the filter meanwhile, because it is borrowed until `run` has waited.
                unsafe { self.whole.launch_contains(batch, self.addressed(), Answers::bits_at(chunk.replies))? };
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
        let (bytes, l2_bytes) = (self.memory_bytes(), self.device.properties().l2_bytes as u64);
        if keys.count() >= MANY_KEYS && 4 * bytes > 3 * l2_bytes && 4 * bytes <= 7 * l2_bytes {
            stream.keep_in_l2(self.words());
        }
        // SAFETY: a part gets hashes of its blocks alone, whose words are allocated; scratch is freed in the order of
        // the stream; the rest is the caller's promise.
        unsafe {
            keys.for_each_chunk(&self.layout.hashing(), stream, |first, hashed, n| {
                let batch = Batch { stream, keys: hashed.keys, string_hashes: hashed.string_hashes(), n };
                self.whole.launch_contains(batch, self.addressed(), answers.from(first))?;
                Ok(())
            })
        }
    }
}
