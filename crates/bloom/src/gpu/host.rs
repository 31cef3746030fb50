//! Operations on host slices: staged, chunked, waited for.

use warpset_base::filter::same_length;
use warpset_gpu::batch::{Answers, Reply, answers_bitmap, answers_count, answers_into};

use super::{Bloom, DeviceLayout, DeviceOneBlock};
use crate::{Bitmap, Error, Insert, Key};

/// Keys that `any_contained_bulk` asks first.
const FIRST_STEP: usize = 1 << 16;
/// Keys that are gathered from an iterator before they are inserted.
const GATHERED: usize = 1 << 20;

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

    /// One answer per key, in the order of the keys. Keys of any kind; those that are no integers are hashed on the host.
    pub fn contains_bulk<K: Key>(&self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let mut answers = vec![false; keys.len()];
        self.contains_bulk_into(keys, &mut answers)?;
        Ok(answers)
    }

    /// [`Bloom::contains_bulk`] into a slice of the same length.
    pub fn contains_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), answers.len())?;
        answers_into(answers, |take| self.answer(keys, take))
    }

    /// [`Bloom::contains_bulk`] as bytes 0 and 1.
    pub fn contains_bytes_bulk_into<K: Key>(&self, keys: &[K], answers: &mut [u8]) -> Result<(), Error> {
        same_length(keys.len(), answers.len())?;
        answers_into(answers, |take| self.answer(keys, take))
    }

    /// [`Bloom::contains_bulk`] as one bit per key.
    pub fn contains_bitmap_bulk<K: Key>(&self, keys: &[K]) -> Result<Bitmap, Error> {
        answers_bitmap(keys.len(), |take| self.answer(keys, take))
    }

    /// How many of the keys may be in the filter.
    pub fn count_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<usize, Error> {
        answers_count(|take| self.answer(keys, take))
    }

    /// Whether at least one of the keys may be in the filter. Stops early: asks 65,536 keys, then twice as many, and so on.
    pub fn any_contained_bulk<K: Key>(&self, keys: &[K]) -> Result<bool, Error> {
        let (mut rest, mut step) = (keys, FIRST_STEP);
        while !rest.is_empty() {
            let (now, later) = rest.split_at(step.min(rest.len()));
            if self.count_contained_bulk(now)? > 0 {
                return Ok(true);
            }
            (rest, step) = (later, step.saturating_mul(2));
        }
        Ok(false)
    }

    /// Drops the keys that are surely not in the filter; the others keep their order.
    pub fn retain_contained_bulk<K: Key>(&self, keys: &mut Vec<K>) -> Result<(), Error> {
        let answers = self.contains_bitmap_bulk(keys)?;
        let mut answers = answers.iter();
        keys.retain(|_| answers.next() == Some(true));
        Ok(())
    }
}

/// Keys of any kind; those that are no integers are hashed on the host, because 8 bytes per key then cross the bus instead of
/// the whole key.
impl<L: DeviceOneBlock> Bloom<L> {
    /// Inserts all keys.
    ///
    /// On an error for want of memory the filter is as it was.
    pub fn insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<(), Error> {
        if keys.is_empty() {
            return Ok(());
        }
        self.device.synchronize()?;
        self.staging().run(
            keys,
            Reply::None,
            |chunk| {
                // SAFETY: insertions of several chunks are atomic, and the filter is borrowed until `run` has waited. The bus
                // is slower than direct insertion, so nothing is grouped.
                unsafe { self.insert_direct(chunk.stream, chunk.keys, chunk.range.len()) }
            },
            |_, _| {},
        )
    }

    /// Inserts all keys and says which were new; the rule is that of
    /// [`cpu::Bloom::test_and_insert_bulk`](crate::cpu::Bloom::test_and_insert_bulk), with the same answers.
    ///
    /// On an error for want of memory the filter is as it was.
    pub fn test_and_insert_bulk<K: Key>(&mut self, keys: &[K]) -> Result<Vec<bool>, Error> {
        let mut new = vec![false; keys.len()];
        self.test_and_insert_bulk_into(keys, &mut new)?;
        Ok(new)
    }

    /// [`Bloom::test_and_insert_bulk`] into a slice of the same length, which holds nothing of use after an error.
    pub fn test_and_insert_bulk_into<K: Key>(&mut self, keys: &[K], new: &mut [bool]) -> Result<(), Error> {
        same_length(keys.len(), new.len())?;
        self.test_and_insert_host_keys(keys, new)
    }
}

impl<L: DeviceLayout> Bloom<L>
where
    Bloom<L>: Insert<Error = Error>,
{
    /// Inserts the keys of an iterator, a million at a time. (`Extend` would have no way to tell of a failing device.)
    ///
    /// On an error the keys of earlier portions are in the filter. Only the first portion can restart Rao's filter.
    pub fn insert_iter<K: Key>(&mut self, keys: impl IntoIterator<Item = K>) -> Result<(), Error> {
        let mut keys = keys.into_iter();
        let mut gathered = Vec::with_capacity(keys.size_hint().0.min(GATHERED));
        loop {
            gathered.clear();
            gathered.extend(keys.by_ref().take(GATHERED));
            if gathered.is_empty() {
                return Ok(());
            }
            Insert::insert_bulk(self, &gathered)?;
        }
    }
}
