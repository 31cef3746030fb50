//! Building from keys that need not fit in memory.
//!
//! The keys are read once. Their hashes go to a temporary file, spread over ranges ([`spill`]); then shards are built
//! from some neighbouring ranges at a time, on all threads. Hashes are bijections of the words of keys, so an attempt
//! with another seed computes its hashes from those in the file.

mod spill;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use warpset_base::words::AlignedWords;
use warpset_core::fuse::hash::{least_of_shard, mix, unmix};

use super::item::Item;
use super::sharded::{Shards, build_range, split_words};
use super::{Failure, Settings, attempts, word_of};
use crate::width::{Slot, Width};
use crate::{Arity, BinaryFuse, Builder, Error, Form, Key, Layout};
use spill::Spill;

/// Copies of each item in memory: as read, as sorted by parts and by shards, and the threads' own memory.
const COPIES: usize = 4;
/// The least memory that is taken.
const LEAST_MEMORY: u64 = 1 << 22;

/// A build of a sharded filter from keys that need not fit in memory; made by [`Builder::external`].
///
/// The filter has the same bytes as one that [`Builder::build_from`] builds from the same keys with [`Form::Sharded`].
///
/// ```
/// use warpset_fuse::{BinaryFuse8, Form};
///
/// let builder = BinaryFuse8::builder();
/// let keys = (0..100_000u64).map(|i| Ok(i * i)); // lines of a file, say: each may fail to be read
/// let filter = builder.external().memory(1 << 22).build_from(keys)?;
///
/// let in_memory: Vec<u64> = (0..100_000).map(|i| i * i).collect();
/// assert!(filter == builder.form(Form::Sharded).build_from(&in_memory)?);
/// # Ok::<(), warpset_fuse::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "nothing happens until `build_from`"]
pub struct External<F> {
    builder: Builder<F>,
    resources: Resources,
}

/// Memory to use, and the folder of the temporary file.
#[derive(Clone)]
pub(crate) struct Resources {
    pub memory: u64,
    pub folder: PathBuf,
}

impl Default for Resources {
    fn default() -> Resources {
        Resources { memory: 1 << 30, folder: std::env::temp_dir() }
    }
}

impl<F: Width> External<F> {
    pub(crate) fn new(builder: Builder<F>) -> External<F> {
        External { builder: builder.form(Form::Sharded), resources: Resources::default() }
    }

    /// Sets the memory to use, in bytes, beside the filter itself; at least 4 MiB. Default: 1 GiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.resources.memory = bytes;
        self
    }

    /// Sets the folder of the temporary file, which takes 8 bytes per key, and twice that for a time if a seed fails or
    /// keys are equal. The file has no name in the folder where the system allows that, and disappears at the end of
    /// the build, on every exit. Default: [`std::env::temp_dir`].
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.resources.folder = folder.into();
        self
    }

    /// Builds the filter of these keys, which are read once; equal keys count once.
    ///
    /// # Errors
    /// The errors of [`Builder::build_from`]; [`Error::Io`] if the keys or the temporary file cannot be read or
    /// written.
    pub fn build_from<K: Key>(&self, keys: impl IntoIterator<Item = io::Result<K>>) -> Result<BinaryFuse<F>, Error> {
        let words = keys.into_iter().map(|key| key.map(|key| Ok(word_of(&key))));
        let (layout, words) = build::<u64, F>(&self.builder.settings()?, &self.resources, words)?;
        Ok(BinaryFuse::from_parts(layout, words))
    }
}

/// Returns layout and words of the structure of items that have the words of keys in place of hashes.
pub(crate) fn build<T: Item, F: Slot>(
    settings: &Settings,
    resources: &Resources,
    items: impl Iterator<Item = io::Result<Result<T, Error>>>,
) -> Result<(Layout, AlignedWords<u64>), Error> {
    let first = settings.layout(0, 0)?.seed;
    let work = Work { folder: &resources.folder, memory: resources.memory.max(LEAST_MEMORY) };
    let mut spill = work.spill(first)?;
    for item in items {
        let item: T = item??;
        spill.push(item.with_hash(mix(item.hash(), first)))?;
    }
    spill.finish()?;
    let keys = spill.len();
    let spill = std::cell::RefCell::new(spill);
    attempts(
        settings,
        keys,
        |layout, are_distinct| {
            let mut spill = spill.borrow_mut();
            if spill.seed != layout.seed {
                *spill = work.with_seed(&mut spill, layout.seed)?;
            }
            Ok((*layout, work.shards::<T, F>(layout, &mut spill, are_distinct)?))
        },
        || {
            let mut spill = spill.borrow_mut();
            *spill = work.without_repetitions(&mut spill)?;
            Ok(spill.len())
        },
    )
}

/// Resources of a build.
struct Work<'a> {
    folder: &'a Path,
    memory: u64,
}

impl Work<'_> {
    fn spill<T: Item>(&self, seed: u64) -> Result<Spill<T>, Error> {
        Spill::new(self.folder, self.memory / 4, seed)
    }

    /// Hashes that are in memory at a time.
    fn capacity<T: Item>(&self) -> usize {
        (self.memory / 4 * 3) as usize / (COPIES * size_of::<T>())
    }

    /// Returns the hashes of the keys under another seed.
    fn with_seed<T: Item>(&self, from: &mut Spill<T>, seed: u64) -> Result<Spill<T>, Error> {
        let mut to = self.spill(seed)?;
        let old = from.seed;
        from.read(0, u64::MAX, &mut |hashes| {
            hashes.iter().try_for_each(|&item| to.push(item.with_hash(mix(unmix(item.hash(), old), seed))))?;
            Ok(true)
        })?;
        to.finish()?;
        Ok(to)
    }

    /// Writes each item once.
    fn without_repetitions<T: Item>(&self, from: &mut Spill<T>) -> Result<Spill<T>, Error> {
        let mut to = self.spill(from.seed)?;
        // Ranges of hashes that are not read yet, the last one first.
        let mut ranges = vec![(0, u64::MAX)];
        while let Some((first, last)) = ranges.pop() {
            match self.distinct(from, first, last)? {
                Some(hashes) => hashes.iter().try_for_each(|&hash| to.push(hash))?,
                None => {
                    let middle = first + (last - first) / 2;
                    ranges.extend([(middle + 1, last), (first, middle)]);
                }
            }
        }
        to.finish()?;
        Ok(to)
    }

    /// Returns the different hashes of a range, unless they are too many.
    fn distinct<T: Item>(&self, from: &mut Spill<T>, first: u64, last: u64) -> Result<Option<Vec<T>>, Error> {
        let capacity = self.capacity::<T>();
        let mut some: Vec<T> = Vec::new();
        let mut fits = true;
        from.read(first, last, &mut |hashes| {
            some.extend_from_slice(hashes);
            if some.len() >= capacity {
                some.sort_unstable();
                some.dedup();
                fits = some.len() < capacity / 2 || first == last;
            }
            Ok(fits)
        })?;
        some.sort_unstable();
        some.dedup();
        super::expect_one_value(&some)?;
        Ok(fits.then_some(some))
    }

    /// Returns the words of a filter, some shards after the others.
    fn shards<T: Item, F: Slot>(
        &self,
        layout: &Layout,
        spill: &mut Spill<T>,
        are_distinct: bool,
    ) -> Result<AlignedWords<u64>, Failure> {
        let mut words = AlignedWords::zeroed(layout.words())?;
        if layout.keys == 0 {
            return Ok(words);
        }
        let Shards { numbers, words: mut slots, mut seeds } = split_words(layout, words.as_mut_slice());
        // Fewer keys than slots.
        let together = (self.capacity::<T>() as u64 / layout.graph_slots()).max(1);
        for first in numbers.clone().step_by(together as usize) {
            let end = numbers.end.min(first + together);
            let hashes = self.hashes_of(layout, spill, first, end, are_distinct)?;
            let (these, others) = slots.split_at_mut((end - first) as usize * layout.shard_words() as usize);
            let (those, rest) = seeds.split_at_mut((end - first) as usize);
            (slots, seeds) = (others, rest);
            let copy = |first: usize, to: &mut [T]| to.copy_from_slice(&hashes[first..][..to.len()]);
            let shards = Shards { numbers: first..end, words: these, seeds: those };
            match layout.arity {
                Arity::Three => build_range::<3, T, F>(layout, hashes.len(), &copy, shards, are_distinct)?,
                Arity::Four => build_range::<4, T, F>(layout, hashes.len(), &copy, shards, are_distinct)?,
            }
        }
        Ok(words)
    }

    /// Returns the hashes of some shards.
    fn hashes_of<T: Item>(
        &self,
        layout: &Layout,
        spill: &mut Spill<T>,
        first: u64,
        end: u64,
        are_distinct: bool,
    ) -> Result<Vec<T>, Failure> {
        let begin = least_of_shard(first, layout.shards).unwrap_or(u64::MAX);
        let last = least_of_shard(end, layout.shards).map_or(u64::MAX, |next| next - 1);
        let most = (layout.graph_slots() * (end - first)) as usize;
        let mut hashes = Vec::new();
        spill.read(begin, last, &mut |some| {
            hashes.extend_from_slice(some);
            Ok(hashes.len() <= most)
        })?;
        if hashes.len() <= most {
            return Ok(hashes);
        }
        // More keys than slots: most likely they are equal.
        if !are_distinct {
            super::expect_different(&mut hashes)?;
        }
        Err(Failure::Unlucky)
    }
}

impl<F: Width> fmt::Debug for External<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Resources { memory, folder } = &self.resources;
        let mut f = f.debug_struct("External");
        f.field("builder", &self.builder).field("memory", memory).field("folder", folder).finish()
    }
}
