//! Sources of a build's keys: streamed from host memory, or on the device.

use std::ops::Range;

use warpset_base::key::Key;
use warpset_gpu::batch::{DeviceKeys128, Hashing, Reply, Staging};
use warpset_gpu::{Device, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::recsplit::buckets as kernels;

use super::buckets::{Hashes, covering};
use crate::Error;
use crate::build::duplicates::{check_duplicates, positions_of};
use crate::progress::Meter;

/// Keys of a function.
pub(super) trait Source: Sync {
    /// Returns the number of keys.
    fn len(&self) -> usize;

    /// Returns the device that holds the keys; `None` for keys in host memory, which cross the bus each time.
    fn home(&self) -> Option<&Device>;

    /// Adds the hashes of some keys to `hashes`, on the device of `stream`, counts them, and waits.
    fn hash(
        &self,
        which: Range<usize>,
        stream: &Stream,
        hashing: &Hashing,
        hashes: &mut Hashes,
        meter: &Meter,
    ) -> Result<(), Error>;

    /// Fails if keys with this bucket, of `buckets`, and this low half are equal.
    fn check_duplicates(&self, hashing: &Hashing, place: (u64, u64), buckets: u64) -> Result<(), Error>;
}

/// Keys in host memory.
pub(super) struct HostKeys<'a, K>(pub(super) &'a [K]);

impl<K: Key> Source for HostKeys<'_, K> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn home(&self) -> Option<&Device> {
        None
    }

    fn hash(
        &self,
        which: Range<usize>,
        stream: &Stream,
        hashing: &Hashing,
        hashes: &mut Hashes,
        meter: &Meter,
    ) -> Result<(), Error> {
        let staging = Staging::new(stream.device(), *hashing);
        staging.run(
            &self.0[which],
            Reply::NONE,
            |chunk| {
                meter.add(chunk.range.len() as u64)?;
                // SAFETY: chunks have different keys; `run` waits for all of them, also after an error.
                unsafe { hashes.take(chunk.stream, chunk.keys, chunk.range.len(), chunk.range.start) }
            },
            |_, _| {},
        )
    }

    fn check_duplicates(&self, hashing: &Hashing, (bucket, low): (u64, u64), buckets: u64) -> Result<(), Error> {
        let positions = positions_of(self.0.iter().map(|key| hashing.of128(key)), bucket, low, buckets);
        check_duplicates(positions.into_iter().map(|at| (at, &self.0[at as usize])))
    }
}

/// Keys in device memory.
pub(super) struct KeysOnDevice<K>(pub(super) K);

/// The most colliding keys to compare. More keys with one hash contain a duplicate, unless an adversary chose them.
const COLLIDING: usize = 1 << 10;

impl<K: DeviceKeys128> KeysOnDevice<K> {
    /// Runs `work` on the keys of `range`, at most `most` at a time, a multiple of 64. It gets the keys as kernels take
    /// them, the position of the first among all keys, and their number.
    ///
    /// # Safety
    /// `work` only queues work on `stream`, and the caller waits for it before the keys are freed.
    pub(super) unsafe fn each(
        &self,
        which: Range<usize>,
        stream: &Stream,
        hashing: &Hashing,
        most: usize,
        mut work: impl FnMut(KeySlice, usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let step = self.0.at_a_time().min(most);
        for first in which.clone().step_by(step) {
            let some = first..which.end.min(first.saturating_add(step));
            // SAFETY: the caller waits for the stream, by this function's contract.
            let keys = unsafe { self.0.part(some.clone()).kernel_keys(hashing, stream)? };
            work(keys.keys, first, some.len())?;
        }
        Ok(())
    }
}

impl<K: DeviceKeys128> Source for KeysOnDevice<K> {
    fn len(&self) -> usize {
        self.0.count()
    }

    fn home(&self) -> Option<&Device> {
        Some(self.0.device())
    }

    fn hash(
        &self,
        which: Range<usize>,
        stream: &Stream,
        hashing: &Hashing,
        hashes: &mut Hashes,
        meter: &Meter,
    ) -> Result<(), Error> {
        let begin = which.start;
        // SAFETY: each key occurs once, and the stream is waited for.
        let queued = unsafe {
            self.each(which, stream, hashing, usize::MAX, |keys, first, n| {
                meter.add(n as u64)?;
                hashes.take(stream, keys, n, first - begin)
            })
        };
        stream.synchronize()?;
        queued
    }

    fn check_duplicates(&self, hashing: &Hashing, (bucket, low): (u64, u64), buckets: u64) -> Result<(), Error> {
        let stream = &self.0.device().new_stream()?;
        let mut found = stream.alloc_zeroed::<u64>(1 + COLLIDING)?;
        // SAFETY: there are places for all results; the download waits.
        let queued = unsafe {
            self.each(0..self.0.count(), stream, hashing, usize::MAX, |keys, first, n| {
                let (found, capacity) = (found.global_mut(), COLLIDING as u64);
                let (keys, kind, seed, first) = (keys.keys, keys.kind, keys.seed, first as u64);
                kernels::recsplit_positions { keys, kind, seed, n, first, buckets, bucket, low, capacity, found }
                    .launch(stream, covering(stream.device(), n))?;
                Ok(())
            })
        };
        let mut said = vec![0; 1 + COLLIDING];
        stream.download(&found, &mut said)?;
        queued?;
        let (count, positions) = said.split_at_mut(1);
        let positions = &mut positions[..COLLIDING.min(count[0] as usize)];
        positions.sort_unstable();
        let keys = positions.iter().map(|&at| Ok((at, self.0.fetch(at as usize)?)));
        let keys: Vec<_> = keys.collect::<Result<_, Error>>()?;
        check_duplicates(keys.into_iter())
    }
}
