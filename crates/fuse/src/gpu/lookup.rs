//! Lookups of keys on the host and on the device.

use warpset_base::filter::{Filter, Take};
use warpset_gpu::batch::{Answers, Reply, Staging};
use warpset_gpu::{Device, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::fuse::lookup::{BLOCK, fuse_contains};
use warpset_primitives::DeviceFilter;

use super::{BinaryFuse, DeviceKeys, DeviceWidth, HASHING};
use crate::{Error, Key, Layout};

impl<F: DeviceWidth> BinaryFuse<F> {
    /// Queues the answers to `n > 0` keys.
    ///
    /// # Safety
    /// - `keys` are `n`, all of them of the graphs here; `answers` are valid for `n` answers.
    /// - Until `stream` has passed this work, filter, keys and answers stay allocated; nothing writes the filter or
    ///   the keys, and nothing else accesses the answers.
    unsafe fn queue(&self, stream: &Stream, keys: KeySlice, n: usize, answers: Answers) -> Result<(), Error> {
        let Layout { graph, arity, shards, seed, .. } = self.layout;
        let (slots, shard_seeds) = self.of_whole();
        let slots = slots.cast::<F>();
        let (KeySlice { keys, kind, .. }, Answers { words: out, form }) = (keys, answers);
        let config = LaunchConfig::new(n.div_ceil(BLOCK as usize) as u32, BLOCK);
        let arity = arity as u32;
        // SAFETY: the words are those of the graphs of all keys; the rest is this function's contract.
        unsafe {
            fuse_contains { slots, shard_seeds, graph, arity, shards, seed, keys, kind, n, form, out }
                .launch(stream, config)?;
        }
        Ok(())
    }
}

impl<F: DeviceWidth> Filter for BinaryFuse<F> {
    type Error = Error;

    fn answer_bulk<K: Key>(&self, keys: &[K], take: &mut Take<'_>) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        // Work that the caller queued on other streams runs first.
        self.device.synchronize()?;
        Staging::new(&self.device, HASHING).run(
            keys,
            Reply::BITS,
            |chunk| {
                // SAFETY: there is room for the answers to a chunk; the filter is borrowed until `run` has waited.
                unsafe { self.queue(chunk.stream, chunk.keys, chunk.range.len(), Answers::bits_at(chunk.replies)) }
            },
            |range, words| take(range.start, words),
        )
    }

    /// Returns the bytes of the words here: on several devices, those of a part.
    fn memory_bytes(&self) -> u64 {
        8 * self.words.len() as u64
    }
}

impl<F: DeviceWidth, K: DeviceKeys> DeviceFilter<K> for BinaryFuse<F> {
    unsafe fn answer_async(&self, stream: &Stream, keys: K, others: &[&Device], answers: Answers) -> Result<(), Error> {
        if keys.count() == 0 {
            return Ok(());
        }
        let lent = others.iter().copied().chain([keys.device(), stream.device()]);
        self.device.expect_all_here(lent, "a lookup in a binary fuse filter")?;
        // SAFETY: this function's contract; scratch is freed in the order of the stream.
        unsafe {
            keys.for_each_chunk(&HASHING, stream, |first, hashed, n| {
                self.queue(stream, hashed.keys, n, answers.from(first))
            })
        }
    }
}
