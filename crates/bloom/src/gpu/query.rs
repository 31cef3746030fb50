//! Lookups: those of every filter ([`lookups!`]), from what brings answers here.

use warpset_gpu::batch::{Answers, Reply};
use warpset_gpu::{Device, Stream};
use warpset_primitives::lookups;

use super::{Bloom, DeviceKeys, DeviceLayout};
use crate::{Error, Key};

/// What the operations here are called in errors.
const LOOKUP: &str = "a lookup in a Bloom filter";

lookups! {
    [L: DeviceLayout] Bloom<L>, DeviceKeys, Error;
}

impl<L: DeviceLayout> Bloom<L> {
    /// Brings one bit per key to `take`, chunk by chunk in any order; `first` is a multiple of 64.
    fn answer<K: Key>(&self, keys: &[K], mut take: impl FnMut(usize, &[u64])) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        // Work that the caller queued on other streams comes first.
        self.device.synchronize()?;
        self.staging().run(
            keys,
            Reply::Bits,
            |chunk| {
                let (words, answers) = (self.words.global(), Answers::bits_at(chunk.replies));
                // SAFETY: there is room for the answers to a chunk; nothing writes the filter meanwhile, because it is
                // borrowed until `run` has waited.
                unsafe {
                    let (n, strings) = (chunk.range.len(), chunk.string_hashes);
                    self.layout.launch_contains(chunk.stream, words, chunk.keys, strings, n, answers)?
                };
                Ok(())
            },
            |range, words| take(range.start, words),
        )
    }

    /// Queues the answers to keys on the device; `others` are the devices of the answers and of what else the caller lends.
    ///
    /// # Safety
    /// As for [`Bloom::contains_async`]; `answers` has room.
    pub(super) unsafe fn answer_async<K: DeviceKeys>(
        &self,
        stream: &Stream,
        keys: K,
        others: &[&Device],
        answers: Answers,
    ) -> Result<(), Error> {
        let n = keys.count();
        if n == 0 {
            return Ok(());
        }
        self.expect_here(LOOKUP, [stream.device(), keys.device()])?;
        others.iter().try_for_each(|other| self.expect_here(LOOKUP, [*other]))?;
        let hashing = self.layout.hashing();
        let at_a_time = keys.at_a_time(&hashing);
        for first in (0..n).step_by(at_a_time) {
            let part = keys.part(first..n.min(first + at_a_time));
            // SAFETY: the words are this layout's; scratch is freed in the order of the stream; `first` is a multiple of
            // 64; the rest is the caller's promise.
            unsafe {
                let hashed = part.kernel_keys(&hashing, stream)?;
                let (words, strings) = (self.words.global(), hashed.string_hashes());
                self.layout.launch_contains(stream, words, hashed.keys, strings, part.count(), answers.from(first))?;
            }
        }
        Ok(())
    }
}
