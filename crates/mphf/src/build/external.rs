//! Builds from keys that need not fit in memory.
//!
//! The keys are read once. Their hashes go to a temporary file, divided into ranges of the hash's high half. The high
//! half picks the bucket by a multiplication that keeps the order, so a range of high halves is a range of buckets for
//! any number of buckets, and the number of keys need not be known beforehand. Then the ranges are read back, as many
//! at a time as memory allows, and all threads build their buckets. The keys of a bucket that continues beyond the end
//! of a range wait for the next range. A range larger than memory is first divided in a temporary file of its own.
//!
//! The keys are read again only after a collision: to name duplicates, or to hash with another seed.

mod key_source;
mod spill;

pub use key_source::{KeyFile, KeySource};

use super::duplicates::Duplicates;
use super::{Construction, Failure, Parts, Settings};
use crate::builder::SEEDS;
use crate::function::PerfectHash;
use crate::progress::{Meter, Stage};
use crate::{Builder, Error, HashKind, RecSplitKind};
use spill::Spill;
use std::path::PathBuf;
use warpset_base::key::Hash128;
use warpset_core::recsplit::hash::bucket_of;
use warpset_core::recsplit::shape::MAX_BUCKET;

/// Memory per key under construction: its hash, its data in a partition, and the threads' own memory.
const BYTES_PER_KEY: u64 = 40;
/// The least memory.
const LEAST_MEMORY: u64 = 1 << 22;
const _: () = assert!(LEAST_MEMORY / BYTES_PER_KEY > MAX_BUCKET as u64);

/// A build from a [`KeySource`] with bounded memory; made by [`Builder::external`].
///
/// The function has the same bits as one that [`Builder::build_from`] builds from the same keys in memory.
///
/// ```
/// use warpset_mphf::RecSplit;
///
/// let builder = RecSplit::builder().leaf_size(8);
/// // A closure gives the keys, again if it must; each of them may fail to be read.
/// let keys = || Ok((0..10_000_u64).map(|i| Ok(i * i)));
/// let function = builder.external().memory(1 << 24).build_from(keys)?;
///
/// let in_memory: Vec<u64> = (0..10_000).map(|i| i * i).collect();
/// assert!(function == builder.build_from(&in_memory)?);
/// # Ok::<(), warpset_mphf::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens until `build`"]
pub struct External<M: HashKind = RecSplitKind> {
    builder: Builder<M>,
    memory: u64,
    folder: PathBuf,
}

impl<M: HashKind> Builder<M> {
    /// Prepares a build with these settings from keys that need not fit in memory.
    pub fn external(&self) -> External<M> {
        External { builder: self.clone(), memory: 1 << 30, folder: std::env::temp_dir() }
    }
}

impl<M: HashKind> External<M> {
    /// Sets the memory in bytes, besides the function itself: some 3 bits per key and 28 bytes per bucket. At least 4
    /// MiB are used. Default: 1 GiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the folder of the temporary file, which takes 16 bytes per key. If the hashes fit in memory, there is no
    /// file. It has no name in the folder if the system allows that, and disappears with the build in every case.
    /// Default: [`std::env::temp_dir`].
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Builds the function of the keys of `source`, which must be distinct: a [`KeyFile`], a closure that returns an
    /// iterator over the keys, or any other [`KeySource`].
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`]; [`Error::Io`], the errors of the source, and [`Error::InputChanged`].
    pub fn build_from<S: KeySource + Send>(&self, mut source: S) -> Result<PerfectHash<M>, Error> {
        let settings = self.builder.settings()?;
        self.builder.run(u64::MAX, || self.build_here(settings, &mut source))?
    }

    fn build_here<S: KeySource>(&self, settings: Settings<M>, source: &mut S) -> Result<PerfectHash<M>, Error> {
        let (reporter, mut first_count) = (self.builder.reporter(), None);
        for (attempt, seed) in self.builder.seeds() {
            let settings = Settings { seed, ..settings };
            let hashed = self.hash(seed, source, &reporter.meter(Stage::Hashing, 0, attempt))?;
            let keys = hashed.len();
            let first = *first_count.get_or_insert(keys);
            if first != keys {
                return Err(Error::InputChanged { first, later: keys });
            }
            match self.construct(settings, hashed, &reporter.meter(Stage::Building, keys, attempt))? {
                Ok(function) => return Ok(function),
                Err(Failure::Unlucky) => {}
                Err(Failure::Interrupted(at)) => return Err(at.into()),
                Err(Failure::Collision { bucket, low }) => {
                    find_duplicates::<M, _>(source, seed, (bucket, settings.buckets(keys)), low, keys)?;
                }
            }
        }
        Err(Error::HashesCollide { seeds: SEEDS })
    }

    /// Hashes the keys: the only pass over them, unless hashes collide.
    fn hash<S: KeySource>(&self, seed: u64, source: &mut S, meter: &Meter) -> Result<Spill, Error> {
        /// Keys between two calls of the progress callback.
        const REPORT: u64 = 1 << 16;
        let mut spill = Spill::new(&self.folder, self.usable_memory(), 64)?;
        source.pass(&mut |key| {
            spill.push(M::hash(key, seed))?;
            if spill.len() % REPORT == 0 {
                meter.add(REPORT)?;
            }
            Ok(())
        })?;
        meter.add(spill.len() % REPORT)?;
        Ok(spill)
    }

    fn usable_memory(&self) -> u64 {
        self.memory.max(LEAST_MEMORY)
    }

    /// Builds all buckets, range by range.
    fn construct(
        &self,
        settings: Settings<M>,
        hashed: Spill,
        meter: &Meter,
    ) -> Result<Result<PerfectHash<M>, Failure>, Error> {
        let keys = hashed.len();
        let construction = Construction::new(settings, keys);
        let capacity = self.usable_memory() / BYTES_PER_KEY;
        let mut ranges = Ranges {
            construction: &construction,
            meter,
            capacity,
            next: 0,
            loaded: Vec::with_capacity(keys.min(capacity) as usize),
            parts: construction.no_parts(),
        };
        if let Err(stop) = self.drain(hashed, &mut ranges) {
            return match stop {
                Stop::Failure(failure) => Ok(Err(failure)),
                Stop::Error(error) => Err(error),
            };
        }
        Ok(construction.join(ranges.parts))
    }

    /// Loads the ranges of `hashed` in order, each as a whole, and builds when memory is full and at the end.
    fn drain(&self, mut hashed: Spill, ranges: &mut Ranges<M>) -> Result<(), Stop> {
        let all = hashed.is_everything();
        let bytes = hashed.len() * (size_of::<Hash128>() as u64 + BYTES_PER_KEY);
        hashed.finish(all && bytes <= self.usable_memory())?;
        for index in 0..hashed.ranges() {
            let (count, limits) = (hashed.count(index), hashed.limits(index));
            if count > ranges.capacity {
                let bucket = bucket_of(limits.0, ranges.construction.buckets());
                if bucket == bucket_of(limits.1, ranges.construction.buckets()) {
                    return Err(overfull(&mut hashed, index, bucket)?.into());
                }
                let mut finer = hashed.finer(&self.folder, self.usable_memory(), index)?;
                hashed.read(index, |hashes| hashes.iter().try_for_each(|hash| finer.push(*hash)))?;
                self.drain(finer, ranges)?;
            } else {
                if ranges.loaded.len() as u64 + count > ranges.capacity {
                    ranges.build(Some(limits.0))?;
                }
                hashed.read(index, |hashes| {
                    ranges.loaded.extend_from_slice(hashes);
                    Ok(())
                })?;
            }
        }
        if all {
            ranges.build(None)?;
        }
        Ok(())
    }
}

/// Ranges that have been read back and built.
struct Ranges<'a, M: HashKind> {
    construction: &'a Construction<M>,
    meter: &'a Meter<'a>,
    /// Keys in memory at a time.
    capacity: u64,
    /// The first bucket that is not built.
    next: u64,
    /// Hashes that have been read and not built, all of bucket `next` and later ones.
    loaded: Vec<Hash128>,
    parts: Parts,
}

impl<M: HashKind> Ranges<'_, M> {
    /// Builds the buckets that are complete once all hashes with a high half below `end` are loaded; `None` builds all.
    fn build(&mut self, end: Option<u64>) -> Result<(), Failure> {
        let end = end.map_or(self.construction.buckets(), |end| bucket_of(end, self.construction.buckets()));
        if end == self.next {
            return Ok(());
        }
        let mut complete = 0;
        for at in 0..self.loaded.len() {
            if bucket_of(self.loaded[at].high, self.construction.buckets()) < end {
                self.loaded.swap(complete, at);
                complete += 1;
            }
        }
        let hashes = &self.loaded[..complete];
        let all = self.next..end;
        self.construction.build(complete, |at| hashes[at], all, self.meter, &mut self.parts)?;
        self.loaded.drain(..complete);
        self.next = end;
        Ok(())
    }
}

/// Explains why the bucket around a range cannot be built: it has more keys than the reserved memory holds, and so more
/// than a bucket can have.
fn overfull(hashed: &mut Spill, range: usize, bucket: u64) -> Result<Failure, Error> {
    // With so large a bucket, any sample is likely to contain equal hashes.
    let mut sample: Vec<u64> = Vec::new();
    hashed.read(range, |hashes| {
        sample.extend(hashes.iter().map(|hash| hash.low).take((MAX_BUCKET + 1).saturating_sub(sample.len())));
        Ok(())
    })?;
    sample.sort_unstable();
    let equal = sample.windows(2).find(|pair| pair[0] == pair[1]);
    Ok(equal.map_or(Failure::Unlucky, |pair| Failure::Collision { bucket, low: pair[0] }))
}

/// Reason why not all ranges were built.
enum Stop {
    Failure(Failure),
    Error(Error),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

/// Reads the keys again and compares those that collided.
fn find_duplicates<M: HashKind, S: KeySource>(
    source: &mut S,
    seed: u64,
    (bucket, buckets): (u64, u64),
    low: u64,
    keys: u64,
) -> Result<(), Error> {
    let mut duplicates = Duplicates::default();
    let mut position = 0;
    source.pass(&mut |key| {
        let hash = M::hash(key, seed);
        if hash.low == low && bucket_of(hash.high, buckets) == bucket {
            duplicates.see(position, key)?;
        }
        position += 1;
        Ok(())
    })?;
    if position == keys { Ok(()) } else { Err(Error::InputChanged { first: keys, later: position }) }
}
