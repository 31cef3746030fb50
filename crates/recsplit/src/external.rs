//! Building functions of more keys than fit in memory.
//!
//! Source: section 7.1.3. One pass over the keys writes their hashes to files by the highest bits; since buckets are in the
//! order of these bits, each file then has all keys of a range of buckets, but for the buckets at its ends, whose keys are
//! carried from file to file. Only one file is in memory at a time.

use crate::builder::{Builder, Meter, SEEDS, build_parts, check_duplicates, positions_of, spread};
use crate::engine::{Engine, Settings};
use crate::key::{Bytes, Hash128, Key};
use crate::tree::{Failure, Part};
use crate::{Error, RecSplit};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use warpset_core::recsplit::hash::bucket_of;

/// Files that hashes are spread over.
const FILES: usize = 256;

/// The files of one attempt, which are removed when it ends.
struct Spill {
    paths: Vec<PathBuf>,
}

impl Drop for Spill {
    fn drop(&mut self) {
        for path in &self.paths {
            // Nothing can be done about a file that does not go away.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Spill {
    /// Writes the hashes of all keys; gives their number.
    fn write<K: Key>(
        directory: &Path,
        seed: u64,
        keys: impl IntoIterator<Item = io::Result<K>>,
    ) -> Result<(Self, u64), Error> {
        let name = |file: usize| directory.join(format!("recsplit-{}-{seed:016x}-{file:03}", std::process::id()));
        let mut spill = Self { paths: Vec::with_capacity(FILES) };
        let mut writers = Vec::with_capacity(FILES);
        for file in 0..FILES {
            let path = name(file);
            writers.push(BufWriter::with_capacity(1 << 16, File::create(&path)?));
            spill.paths.push(path);
        }
        let mut count = 0;
        for key in keys {
            let hash = key?.hash128(seed);
            let writer = &mut writers[(hash.high >> 56) as usize];
            writer.write_all(&hash.high.to_le_bytes())?;
            writer.write_all(&hash.low.to_le_bytes())?;
            count += 1;
        }
        for mut writer in writers {
            writer.flush()?;
        }
        Ok((spill, count))
    }

    /// Appends the hashes of one file.
    fn read(&self, file: usize, hashes: &mut Vec<Hash128>) -> Result<(), Error> {
        let mut bytes = Vec::new();
        File::open(&self.paths[file])?.read_to_end(&mut bytes)?;
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        hashes.extend(bytes.chunks_exact(16).map(|b| Hash128 { high: word(&b[..8]), low: word(&b[8..]) }));
        Ok(())
    }
}

impl Builder {
    /// Builds the function of keys that need not fit in memory, nor their hashes: these go to files in `directory`, 16
    /// bytes a key, and take an 1/256 of that in memory.
    ///
    /// `source` gives the keys; it is called again, and must give the same keys in the same order, only if hashes collide.
    /// The function is the same, bit for bit, as [`Builder::build`] gives.
    pub fn build_external<K: Key, I: IntoIterator<Item = io::Result<K>>>(
        &self,
        directory: &Path,
        mut source: impl FnMut() -> io::Result<I>,
    ) -> Result<RecSplit, Error> {
        let settings = self.settings()?;
        let mut seen = None;
        for (attempt, seed) in self.seeds() {
            let settings = Settings { seed, ..settings };
            let (spill, keys) = Spill::write(directory, seed, source()?)?;
            let first = *seen.get_or_insert(keys);
            if first != keys {
                return Err(Error::InputChanged { first, later: keys });
            }
            let meter = self.meter(keys, attempt);
            match self.run(|| build_spilled(settings, keys, &spill, &meter))?? {
                Ok(function) => return Ok(function),
                Err(Failure::Unlucky) => {}
                Err(Failure::Collision { bucket, low }) => {
                    // Collect the colliding keys, then look at them: reading may fail.
                    let mut colliding = Vec::new();
                    for (at, key) in source()?.into_iter().enumerate() {
                        let key = key?;
                        let hash = key.hash128(seed);
                        if !positions_of([hash].into_iter(), bucket, low, settings.buckets(keys)).is_empty() {
                            colliding.push((at as u64, key));
                        }
                    }
                    check_duplicates(colliding.into_iter())?;
                }
            }
        }
        Err(Error::HashesCollide { seeds: SEEDS })
    }

    /// Builds the function of the lines of a file, without their ends, as byte strings. See [`Builder::build_external`]
    /// for `directory`.
    pub fn build_lines(&self, file: &Path, directory: &Path) -> Result<RecSplit, Error> {
        self.build_external(directory, || {
            Ok(BufReader::with_capacity(1 << 20, File::open(file)?).split(b'\n').map(|line| {
                line.map(|mut line| {
                    if line.last() == Some(&b'\r') {
                        line.pop();
                    }
                    Bytes(line)
                })
            }))
        })
    }
}

/// Builds from the files of one attempt.
fn build_spilled(
    settings: Settings,
    keys: u64,
    spill: &Spill,
    meter: &Meter,
) -> Result<Result<RecSplit, Failure>, Error> {
    let buckets = settings.buckets(keys);
    let engine = Engine::new(settings, keys);
    let mut parts: Vec<Part> = Vec::new();
    let mut hashes: Vec<Hash128> = Vec::new();
    let mut next_bucket = 0;
    for file in 0..FILES {
        spill.read(file, &mut hashes)?;
        // Buckets below this one get no more keys from later files.
        let end = if file + 1 == FILES { buckets } else { bucket_of((file as u64 + 1) << 56, buckets) };
        let (range, first) = ((end - next_bucket) as usize, next_bucket);
        if range == 0 {
            continue; // all keys so far are of a bucket that later files add to
        }
        // Some partitions of the range for each thread, and one behind them for the keys to carry.
        let each = range.div_ceil((rayon::current_num_threads() * 8).min(range));
        let count = range.div_ceil(each);
        let partition_of = |hash: &Hash128| match bucket_of(hash.high, buckets) {
            bucket if bucket >= end => count,
            bucket => (bucket - first) as usize / each,
        };
        let (sorted, mut ends) = spread(hashes.len(), |i| hashes[i], partition_of, count + 1);
        ends.pop();
        let ranges = |partition: usize| (first + (partition * each) as u64, each.min(range - partition * each));
        match build_parts(&engine, &sorted, &ends, ranges, buckets, meter) {
            Ok(more) => parts.extend(more),
            Err(failure) => return Ok(Err(failure)),
        }
        hashes.clear();
        hashes.extend_from_slice(&sorted[ends.last().copied().unwrap_or(0)..]);
        next_bucket = end;
    }
    Ok(engine.join(keys, &parts))
}
