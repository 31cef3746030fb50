//! Where the keys of a build are: in host memory, from which they stream, or on the device.

use warpset_base::key::Key;
use warpset_gpu::batch::{DeviceKeys128, Hashing, Reply, Staging};
use warpset_gpu::{Device, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::recsplit::buckets as kernels;

use super::buckets::{Hashes, covering};
use crate::Error;
use crate::build::duplicates::{check_duplicates, positions_of};
use crate::progress::Meter;

/// Keys that a function is built from.
pub(super) trait Source {
    /// How many.
    fn len(&self) -> usize;

    /// Whether they come over the bus each time.
    const TRAVEL: bool;

    /// Brings the hashes of all keys to `hashes`, counts them, and waits.
    fn hash(&self, stream: &Stream, seed: u64, hashes: &mut Hashes, meter: &Meter) -> Result<(), Error>;

    /// Among the keys with this bucket, of `buckets`, and this low half, equal ones are an error.
    fn check_duplicates(&self, stream: &Stream, seed: u64, place: (u64, u64), buckets: u64) -> Result<(), Error>;
}

/// Keys in host memory, on their way to this device.
pub(super) struct HostKeys<'a, K> {
    pub(super) device: &'a Device,
    pub(super) keys: &'a [K],
}

impl<K: Key> Source for HostKeys<'_, K> {
    const TRAVEL: bool = true;

    fn len(&self) -> usize {
        self.keys.len()
    }

    fn hash(&self, _stream: &Stream, seed: u64, hashes: &mut Hashes, meter: &Meter) -> Result<(), Error> {
        let staging = Staging::new(self.device, Hashing::wide(seed));
        staging.run(
            self.keys,
            Reply::None,
            |chunk| {
                meter.add(chunk.range.len() as u64);
                // SAFETY: chunks have different keys; `run` waits for all of them, on an error too.
                unsafe { hashes.take(chunk.stream, chunk.keys, chunk.range.len(), chunk.range.start) }
            },
            |_, _| {},
        )
    }

    fn check_duplicates(
        &self,
        _stream: &Stream,
        seed: u64,
        (bucket, low): (u64, u64),
        buckets: u64,
    ) -> Result<(), Error> {
        let positions = positions_of(self.keys.iter().map(|key| key.hash128(seed)), bucket, low, buckets);
        check_duplicates(positions.into_iter().map(|at| (at, &self.keys[at as usize])))
    }
}

/// Keys in device memory.
pub(super) struct KeysThere<K>(pub(super) K);

/// Colliding keys that are looked at. Of more keys than these with one hash two are equal, unless someone has made them.
const COLLIDING: usize = 1 << 10;

impl<K: DeviceKeys128> KeysThere<K> {
    /// Runs `work` on the keys as kernels take them, at most `most` at a time, a multiple of 64, with the number of the first of them and
    /// their number.
    ///
    /// # Safety
    /// `work` only queues work on `stream`, which is waited for before the keys go.
    pub(super) unsafe fn each(
        &self,
        stream: &Stream,
        seed: u64,
        most: usize,
        mut work: impl FnMut(KeySlice, usize, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (n, step) = (self.0.count(), self.0.at_a_time().min(most));
        for first in (0..n).step_by(step) {
            let some = first..n.min(first.saturating_add(step));
            // SAFETY: the caller waits for the stream.
            let keys = unsafe { self.0.part(some.clone()).kernel_keys(seed, stream)? };
            work(keys.keys, first, some.len())?;
        }
        Ok(())
    }
}

impl<K: DeviceKeys128> Source for KeysThere<K> {
    const TRAVEL: bool = false;

    fn len(&self) -> usize {
        self.0.count()
    }

    fn hash(&self, stream: &Stream, seed: u64, hashes: &mut Hashes, _meter: &Meter) -> Result<(), Error> {
        // SAFETY: each key comes once, and the stream is waited for.
        let queued =
            unsafe { self.each(stream, seed, usize::MAX, |keys, first, n| hashes.take(stream, keys, n, first)) };
        stream.synchronize()?;
        queued
    }

    fn check_duplicates(
        &self,
        stream: &Stream,
        seed: u64,
        (bucket, low): (u64, u64),
        buckets: u64,
    ) -> Result<(), Error> {
        let mut found = stream.alloc_zeroed::<u64>(1 + COLLIDING)?;
        // SAFETY: there is room for what is found; the download waits.
        let queued = unsafe {
            self.each(stream, seed, usize::MAX, |keys, first, n| {
                let (found, capacity) = (found.global_mut(), COLLIDING as u64);
                let (keys, kind, seed, first) = (keys.keys, keys.kind, keys.spread, first as u64);
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
