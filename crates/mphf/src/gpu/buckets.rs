//! Assignment of keys to buckets on a device: hashed, sorted, counted.

use std::ops::Range;

use warpset_gpu::{Device, DeviceVec, LaunchConfig, Stream};
use warpset_kernels::batch::keys::KeySlice;
use warpset_kernels::recsplit::buckets::{self as kernels, BLOCK};
use warpset_primitives::sort::{self, By};

use crate::Error;
use crate::build::Failure;

/// Returns a launch with as many blocks as fit at once, for kernels that loop by grid stride.
pub(crate) fn covering(device: &Device, n: usize) -> LaunchConfig {
    let resident = device.properties().multiprocessors * 8;
    LaunchConfig::new(LaunchConfig::covering(n.max(1), BLOCK).grid.x.min(resident), BLOCK)
}

/// Keys of a range of buckets, as unordered pairs of bucket and low half.
pub(super) struct Hashes {
    bucket_of_key: DeviceVec<u32>,
    lows: DeviceVec<u64>,
    /// Range, and the number of buckets of the function.
    range: Range<u64>,
    all: u64,
    /// Number of keys in the range, if others are skipped.
    taken: Option<DeviceVec<u64>>,
}

impl Hashes {
    /// Allocates places for all `keys` keys if the range is that of all buckets, else for at most `keys`. They are
    /// allocated for every stream.
    pub(super) fn new(stream: &Stream, range: Range<u64>, all: u64, keys: usize) -> Result<Self, Error> {
        let taken = if range == (0..all) { None } else { Some(stream.alloc_zeroed(1)?) };
        let (bucket_of_key, lows) = (stream.alloc_uninit(keys)?, stream.alloc_uninit(keys)?);
        stream.synchronize()?;
        Ok(Self { bucket_of_key, lows, range, all, taken })
    }

    /// Queues the hashing of `n` keys; the first is number `first`.
    ///
    /// # Safety
    /// - `keys` are `n` keys of 128-bit hashes; they stay allocated until `stream` has passed this work, and nothing
    ///   writes them.
    /// - No two calls take the same key.
    /// - Nothing else uses these buffers before `stream` has passed this work, except such calls on other streams.
    pub(super) unsafe fn take(&mut self, stream: &Stream, keys: KeySlice, n: usize, first: usize) -> Result<(), Error> {
        let KeySlice { keys, kind, seed, .. } = keys;
        let (config, buckets) = (covering(stream.device(), n), self.all);
        let (bucket_of_key, lows) = (self.bucket_of_key.global_mut(), self.lows.global_mut());
        // SAFETY: without `taken` each key has a place of its own, and there are places for all keys; with it, places
        // are taken one by one, up to their number. The rest is this function's contract.
        unsafe {
            match &mut self.taken {
                None => {
                    let (bucket_of_key, lows) = (bucket_of_key.at(first), lows.at(first));
                    kernels::recsplit_hash { keys, kind, seed, n, buckets, bucket_of_key, lows }
                        .launch(stream, config)?;
                }
                Some(taken) => {
                    let Range { start: first, end } = self.range;
                    let (count, capacity) = (end - first, self.lows.len() as u64);
                    let taken = taken.global_mut();
                    kernels::recsplit_select {
                        keys,
                        kind,
                        seed,
                        n,
                        buckets,
                        first,
                        count,
                        capacity,
                        taken,
                        bucket_of_key,
                        lows,
                    }
                    .launch(stream, config)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the device.
    pub(super) fn device(&self) -> &Device {
        self.lows.device()
    }

    /// Returns the number of places for keys.
    pub(super) fn room(&self) -> u64 {
        self.lows.len() as u64
    }

    /// Returns the number of keys in the range, which may exceed the places. `stream` follows all hashing, and is
    /// waited for.
    pub(super) fn count(&self, stream: &Stream) -> Result<u64, Error> {
        let Some(taken) = &self.taken else { return Ok(self.room()) };
        let mut count = [0];
        stream.download(taken, &mut count)?;
        Ok(count[0])
    }

    /// Copies keys of one range, from any devices, to that of `stream`: of each part the given number of keys, from its
    /// start. The work of the parts has been waited for.
    pub(super) fn together(stream: &Stream, parts: &[(Self, usize)]) -> Result<Self, Error> {
        let keys = parts.iter().map(|part| part.1).sum();
        let (mut bucket_of_key, mut lows) = (stream.alloc_uninit(keys)?, stream.alloc_uninit(keys)?);
        let mut first = 0;
        for (part, count) in parts {
            let end = first + count;
            stream.copy(bucket_of_key.slice_mut(first..end), part.bucket_of_key.slice(..*count))?;
            stream.copy(lows.slice_mut(first..end), part.lows.slice(..*count))?;
            first = end;
        }
        let (range, all) = parts.first().map_or((0..0, 0), |(part, _)| (part.range.clone(), part.all));
        Ok(Self { bucket_of_key, lows, range, all, taken: None })
    }

    /// Selects the hashes of a range of buckets among all keys, with places for `keys` of them.
    ///
    /// `stream` follows all hashing.
    pub(super) fn part(&self, stream: &Stream, range: Range<u64>, keys: usize) -> Result<Self, Error> {
        let mut part = Self::new(stream, range, self.all, keys)?;
        let Range { start: first, end } = part.range;
        let (n, count, capacity) = (self.lows.len(), end - first, keys as u64);
        let taken = match &mut part.taken {
            Some(taken) => taken,
            none => none.insert(stream.alloc_zeroed(1)?),
        };
        // SAFETY: all pairs are written; places are taken one by one, up to their number; memory is freed in the order
        // of the stream.
        unsafe {
            kernels::recsplit_pick {
                all_buckets: self.bucket_of_key.global(),
                all_lows: self.lows.global(),
                n,
                first,
                count,
                capacity,
                taken: taken.global_mut(),
                bucket_of_key: part.bucket_of_key.global_mut(),
                lows: part.lows.global_mut(),
            }
            .launch(stream, covering(stream.device(), n))?;
        }
        Ok(part)
    }

    /// Sorts the `keys` keys by their buckets.
    ///
    /// `stream` follows all hashing.
    pub(super) fn sorted(self, stream: &Stream, keys: usize) -> Result<Sorted, Error> {
        let Hashes { bucket_of_key, lows, range, .. } = self;
        let buckets = (range.end - range.start) as usize;
        let bits = (usize::BITS - (buckets - 1).leading_zeros()).max(1);
        let mut sorted = (stream.alloc_uninit::<u32>(keys)?, stream.alloc_uninit::<u64>(keys)?);
        // SAFETY: this function owns all of the buffers, and they are freed in the order of the stream.
        unsafe {
            let (from, to) = ((bucket_of_key.slice(..keys), lows.slice(..keys)), &mut sorted);
            let by = By::ascending().bits(0..bits);
            sort::sort_pairs_by_digits_async(stream, from.0, from.1, &mut to.0, &mut to.1, by)?;
        }
        drop((bucket_of_key, lows));
        let (bucket_of_key, lows) = sorted;
        let mut bounds = stream.alloc_uninit(buckets + 1)?;
        // SAFETY: the sorted buckets are below their number, and fewer than 2^32; this function owns the buffers.
        unsafe {
            let (bucket_of_key, bounds) = (bucket_of_key.global(), bounds.global_mut());
            kernels::recsplit_bounds { bucket_of_key, n: keys, buckets, bounds }
                .launch(stream, covering(stream.device(), keys + 1))?;
        }
        Ok(Sorted { lows, bounds, buckets, first: range.start })
    }
}

/// Keys of consecutive buckets.
pub struct Sorted {
    /// Low halves, bucket after bucket.
    pub(crate) lows: DeviceVec<u64>,
    /// Start of each bucket, and the end of the last one.
    pub(crate) bounds: DeviceVec<u32>,
    pub(crate) buckets: usize,
    /// First bucket.
    first: u64,
}

impl Sorted {
    /// Explains why a bucket has no code, or too many keys.
    #[cold]
    pub(crate) fn explain(&self, stream: &Stream, bucket: usize) -> Result<Failure, Error> {
        let mut bounds = [0; 2];
        stream.download(self.bounds.slice(bucket..bucket + 2), &mut bounds)?;
        let [start, end] = bounds.map(|bound| bound as usize);
        let mut keys = vec![0; end - start];
        stream.download(self.lows.slice(start..end), &mut keys)?;
        keys.sort_unstable();
        Ok(match keys.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Failure::Collision { bucket: self.first + bucket as u64, low: pair[0] },
            None => Failure::Unlucky,
        })
    }
}
