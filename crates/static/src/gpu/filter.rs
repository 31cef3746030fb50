//! Membership tests by the traits of filters.

use warpset_base::filter::{Filter, Take};
use warpset_base::key::Key;
use warpset_base::key::sealed::Raw;
use warpset_gpu::batch::{Answers, DeviceKey, Hashing, Reply, Staging};
use warpset_gpu::{Device, DeviceSlice, Stream};
use warpset_primitives::DeviceFilter;

use super::StaticMap;
use super::lookup::Wanted;
use crate::{Error, StaticKey, Value};

/// Accepts keys of any type. Integers count by their value in 64 bits, signed ones with their sign. A key that is no
/// integer, or has a value outside the set's type, is not in the set.
impl<K: StaticKey, V: Value> Filter for StaticMap<K, V> {
    type Error = Error;

    fn answer_bulk<Q: Key>(&self, keys: &[Q], take: &mut Take<'_>) -> Result<(), Error> {
        self.answer_any(keys, take)
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }
}

/// Lookups of keys of any type, by those of integers.
pub(super) trait AnswerAny<K: StaticKey> {
    /// Runs [`Filter::answer_bulk`] for integers of 32 or 64 bits.
    fn answer_integers<Q: Key>(&self, keys: &[Q], take: &mut Take<'_>) -> Result<(), Error>;

    /// Runs [`Filter::answer_bulk`].
    fn answer_any<Q: Key>(&self, keys: &[Q], take: &mut Take<'_>) -> Result<(), Error> {
        match Q::raw(keys) {
            Raw::U32(_) | Raw::I32(_) | Raw::U64(_) => self.answer_integers(keys, take),
            Raw::Hashes(_) | Raw::Other => {
                // Keys without such a value are looked up as zero, and their answers dropped.
                let words: Vec<Option<u64>> =
                    keys.iter().map(|key| key.word().filter(|&w| K::of_word(w).is_some())).collect();
                let asked: Vec<u64> = words.iter().map(|word| word.unwrap_or(0)).collect();
                self.answer_integers(&asked, &mut |first, answers| {
                    let mut answers = answers.to_vec();
                    for (word, answers) in words[first..].chunks(64).zip(&mut answers) {
                        *answers &= word.iter().rev().fold(0, |bits, word| bits << 1 | u64::from(word.is_some()));
                    }
                    take(first, &answers);
                })
            }
        }
    }
}

impl<K: StaticKey, V: Value> AnswerAny<K> for StaticMap<K, V> {
    fn answer_integers<Q: Key>(&self, keys: &[Q], take: &mut Take<'_>) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        // Waits for work that the caller queued on other streams.
        self.device.synchronize()?;
        let staging = Staging::new(&self.device, Hashing::seeded(self.seed())).chunk_keys(self.chunk_keys);
        staging.run(
            keys,
            Reply::BITS,
            |chunk| {
                let answers = Answers::bits_at(chunk.replies);
                // SAFETY: a chunk has places for its replies; the set is borrowed until `run` has waited.
                unsafe { self.queue(chunk.stream, chunk.keys, chunk.range.len(), answers, Wanted::Nothing) }
            },
            |range, words| take(range.start, words),
        )
    }
}

/// Accepts integers of 32 and 64 bits on the device; hashes are in no set.
impl<K: StaticKey, V: Value, Q: DeviceKey> DeviceFilter<DeviceSlice<'_, Q>> for StaticMap<K, V> {
    unsafe fn answer_async(
        &self,
        stream: &Stream,
        keys: DeviceSlice<'_, Q>,
        others: &[&Device],
        answers: Answers,
    ) -> Result<(), Error> {
        // SAFETY: this function's contract.
        unsafe { self.look_up_async(stream, keys, others, answers, Wanted::Nothing) }
    }
}
