//! Counting: files are parsed into batches, all threads roll the batches into fingerprints by parts, and the parts are counted in
//! rounds.
//!
//! A round ends when the fingerprints since the last one take as much memory as half of what has been counted (at least 512
//! MiB), or what the budget leaves. So fingerprints never take memory for all k-mers of the input, and what has been counted
//! is read again a few times only.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use warpset_core::hash::permute::{permute, spread_of};
use warpset_core::quotient::rank_select::counters;

use crate::parts::{CHUNK, Chunk, Cut, Parts};
use crate::reads::{Records, batches};
use crate::table::{key_bits, smallest};
use crate::{Error, K, Progress, Roll, Table};

/// Memory of a round, at least, if the budget has it.
const LEAST_ROUND: u64 = 512 << 20;
/// Chunks that a thread takes at a time.
const CHUNKS_AT_A_TIME: usize = 32;
/// Batches on their way, per thread.
const BATCHES_PER_THREAD: usize = 2;
/// Memory of a batch and of what else each thread has, about.
const THREAD_BYTES: u64 = 2 << 20;

/// How to count; each setter states its default.
#[derive(Clone, Debug)]
#[must_use = "settings do nothing until something is counted"]
pub struct Settings {
    k: K,
    least: u64,
    memory: Option<u64>,
    threads: usize,
    progress: Progress,
}

impl Settings {
    /// For k-mers of `k` bases.
    pub fn new(k: u32) -> Result<Settings, Error> {
        let threads = thread::available_parallelism().map_or(1, |threads| threads.get());
        Ok(Settings { k: K::new(k)?, least: 1, memory: None, threads, progress: Progress::hidden() })
    }

    /// K-mers of which there are fewer copies are left out. Default: 1.
    pub fn least(mut self, least: u64) -> Self {
        self.least = least;
        self
    }

    /// Bytes of memory that may be used, about. Default: no limit.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Threads. With several, one of them parses; more parse where there are several files. Default: all of the machine.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// Where to show how far reading is. Default: nowhere.
    pub fn progress(mut self, progress: Progress) -> Self {
        self.progress = progress;
        self
    }
}

/// Counts the canonical k-mers of FASTA and FASTQ files, plain or gzip; `-` is the standard input.
pub fn count_files(files: &[PathBuf], settings: &Settings) -> Result<Table, Error> {
    if files.is_empty() {
        return Err(Error::NoInput);
    }
    let sources: Vec<Source<'_>> = files.iter().map(|path| Source::File(path)).collect();
    pool(settings.threads)?.install(|| count(&sources, settings))
}

/// The same of the bytes of one such file.
pub fn count_bytes(bytes: &[u8], settings: &Settings) -> Result<Table, Error> {
    pool(settings.threads)?.install(|| count(&[Source::Bytes(bytes)], settings))
}

/// Threads for parts.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool, Error> {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().map_err(|_| Error::Threads { threads })
}

#[derive(Clone, Copy)]
enum Source<'a> {
    File(&'a Path),
    Bytes(&'a [u8]),
}

impl Source<'_> {
    fn batches(self, settings: &Settings, take: impl FnMut(Vec<u8>) -> Result<(), Error>) -> Result<(), Error> {
        let records = match self {
            Source::File(path) => Records::open(path, &settings.progress)?,
            Source::Bytes(bytes) => Records::read(Path::new("input"), bytes)?,
        };
        batches(records, settings.k, take)
    }
}

/// Chunks that have been counted and can be filled again.
struct Pool {
    free: Mutex<Vec<Chunk>>,
    /// Bytes of chunks that are being filled or are full.
    taken: AtomicU64,
}

impl Pool {
    fn new() -> Pool {
        Pool { free: Mutex::new(Vec::new()), taken: AtomicU64::new(0) }
    }

    fn take(&self) -> Vec<Chunk> {
        self.taken.fetch_add((CHUNKS_AT_A_TIME * CHUNK * 8) as u64, Ordering::Relaxed);
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free.len().saturating_sub(CHUNKS_AT_A_TIME);
        let mut chunks = free.split_off(kept);
        drop(free);
        chunks.resize_with(CHUNKS_AT_A_TIME, || Vec::with_capacity(CHUNK));
        chunks
    }

    fn give(&self, mut chunks: Vec<Chunk>) {
        chunks.iter_mut().for_each(Vec::clear);
        self.free.lock().unwrap_or_else(PoisonError::into_inner).append(&mut chunks);
    }
}

/// One thread's fingerprints of a round.
struct Filling {
    pool: Arc<Pool>,
    cut: Cut,
    bits: u32,
    roll: Roll,
    spare: Vec<Chunk>,
    /// The chunk of each part that is being filled.
    open: Vec<Chunk>,
    /// Those that are full, with their part.
    full: Vec<(u32, Chunk)>,
}

impl Filling {
    fn new(pool: &Arc<Pool>, k: K) -> Filling {
        let bits = key_bits(k);
        let cut = Cut::new(bits);
        let open = vec![Vec::new(); cut.parts()];
        Filling { pool: pool.clone(), cut, bits, roll: Roll::new(k), spare: Vec::new(), open, full: Vec::new() }
    }

    fn fill(&mut self, batch: &[u8]) {
        let Filling { pool, cut, bits, roll, spare, open, full } = self;
        let (cut, bits, spread) = (*cut, *bits, spread_of(0));
        roll.restart();
        roll.each(batch, |kmer| {
            // What the filter of the table does with seed 0.
            let fingerprint = permute(kmer, bits, spread);
            let part = cut.part(fingerprint);
            let chunk = &mut open[part];
            if chunk.len() == chunk.capacity() {
                if spare.is_empty() {
                    *spare = pool.take();
                }
                let before = std::mem::replace(chunk, spare.pop().unwrap_or_default());
                if !before.is_empty() {
                    full.push((part as u32, before));
                }
            }
            chunk.push(fingerprint);
        });
    }

    /// Puts all chunks to those of the same part of other threads.
    fn hand_over(self, chunks: &mut [Vec<Chunk>]) {
        self.pool.give(self.spare);
        self.full.into_iter().for_each(|(part, chunk)| chunks[part as usize].push(chunk));
        self.open.into_iter().zip(chunks).filter(|(chunk, _)| !chunk.is_empty()).for_each(|(chunk, of)| of.push(chunk));
    }
}

/// What is shared between rounds.
struct Counter<'s> {
    settings: &'s Settings,
    cut: Cut,
    pool: Arc<Pool>,
    parts: Parts,
}

impl Counter<'_> {
    /// Bytes of fingerprints at which the next round ends, or an error if there is no room for one.
    fn round(&self) -> Result<u64, Error> {
        let counted = self.parts.bytes();
        let wanted = LEAST_ROUND.max(counted / 2);
        let Some(allowed) = self.settings.memory else { return Ok(wanted) };
        let threads = self.settings.threads;
        // Each thread has batches, and a chunk of each part whether full or not.
        let of_threads = threads as u64 * (THREAD_BYTES + (self.cut.parts() * CHUNK * 8) as u64);
        let needed = counted + of_threads + of_threads / 2;
        match allowed.checked_sub(needed) {
            Some(_) => Ok(wanted.min(allowed - counted - of_threads / 2)),
            None if counted == 0 => Err(Error::BudgetTooSmall { asked: allowed, least: needed, threads }),
            None => Err(Error::OverBudget { kmers: self.parts.len(), needed, allowed }),
        }
    }

    fn filling(&self) -> Filling {
        Filling::new(&self.pool, self.settings.k)
    }

    /// Whether the round ends.
    fn is_over(&self, round: u64) -> bool {
        self.pool.taken.load(Ordering::Relaxed) >= round
    }

    /// Counts what the threads have filled.
    fn end_round(&mut self, fillings: Vec<Filling>) {
        let mut chunks: Vec<Vec<Chunk>> = vec![Vec::new(); self.cut.parts()];
        fillings.into_iter().for_each(|filling| filling.hand_over(&mut chunks));
        let pool = &self.pool;
        self.parts.count(chunks, |chunks| pool.give(chunks));
        pool.taken.store(0, Ordering::Relaxed);
    }

    /// Parses and fills by turns.
    fn count_here(&mut self, sources: &[Source<'_>]) -> Result<(), Error> {
        let settings = self.settings;
        let (mut round, mut filling) = (self.round()?, self.filling());
        for source in sources {
            source.batches(settings, |batch| {
                filling.fill(&batch);
                if self.is_over(round) {
                    let full = std::mem::replace(&mut filling, self.filling());
                    self.end_round(vec![full]);
                    round = self.round()?;
                }
                Ok(())
            })?;
        }
        self.end_round(vec![filling]);
        Ok(())
    }

    /// Some threads parse, the others fill what those have parsed.
    fn count_on_threads(&mut self, sources: &[Source<'_>]) -> Result<(), Error> {
        let settings = self.settings;
        let parsers = sources.len().min(settings.threads.div_ceil(2));
        let fillers = (settings.threads - parsers).max(1);
        let next = AtomicUsize::new(0);
        thread::scope(|scope| {
            let (sender, receiver) = sync_channel(BATCHES_PER_THREAD * settings.threads);
            for _ in 0..parsers {
                let (sender, next) = (sender.clone(), &next);
                scope.spawn(move || {
                    while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // Nobody receives after an error, which stops all parsers.
                        let send = |batch| sender.send(Ok(batch)).map_err(|_| Error::NoInput);
                        if let Err(error) = source.batches(settings, send) {
                            let _ = sender.send(Err(error));
                            return;
                        }
                    }
                });
            }
            drop(sender);
            let receiver = Mutex::new(receiver);
            loop {
                let round = self.round()?;
                let (mut fillings, mut all_read) = (Vec::new(), false);
                let counter = &*self;
                let filled: Vec<Result<(Filling, bool), Error>> = thread::scope(|scope| {
                    let fill = || counter.fill_round(round, &receiver);
                    let threads: Vec<_> = (0..fillers).map(|_| scope.spawn(fill)).collect();
                    threads
                        .into_iter()
                        .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                        .collect()
                });
                for result in filled {
                    let (filling, at_end) = result?;
                    fillings.push(filling);
                    all_read |= at_end;
                }
                self.end_round(fillings);
                if all_read {
                    return Ok(());
                }
            }
        })
    }

    /// One thread's part of a round; says whether there was nothing left to receive.
    fn fill_round(&self, round: u64, receiver: &Mutex<Receiver<Batch>>) -> Result<(Filling, bool), Error> {
        let mut filling = self.filling();
        while !self.is_over(round) {
            let batch = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            match batch {
                Ok(Ok(batch)) => filling.fill(&batch),
                Ok(Err(error)) => {
                    // The round is over for all threads.
                    self.pool.taken.store(u64::MAX / 2, Ordering::Relaxed);
                    return Err(error);
                }
                Err(_) => return Ok((filling, true)),
            }
        }
        Ok((filling, false))
    }

    /// The table of what has been counted.
    fn finish(self) -> Result<Table, Error> {
        let Counter { settings, pool, mut parts, .. } = self;
        let k = settings.k;
        drop(pool);
        if parts.len() == 0 {
            return Err(Error::NoKmers { k: k.get() });
        }
        parts.keep(settings.least);
        // By how many bits the digits of their counters have, with a place for those that have none.
        let counters: [u64; 66] = parts.sum(|copies| match copies {
            0 | 1 => 0,
            more => 65 - (more - 2).leading_zeros() as usize,
        });
        let copies_of = |class: usize| match class {
            0 => 1,
            1 => 2,
            class => (1u64 << (class - 2)) + 2,
        };
        let slots = |remainder_bits: u32| {
            let of_class = |(class, kmers): (usize, &u64)| kmers * counters::slots(copies_of(class), remainder_bits);
            counters.iter().enumerate().map(of_class).sum::<u64>()
        };
        let kmers = parts.len();
        let Some(builder) = smallest(k, slots) else { return Err(Error::TooManyKmers { kmers, k: k.get() }) };
        if let Some(allowed) = settings.memory {
            let needed = parts.bytes() + 8 * builder.layout()?.words();
            if needed > allowed {
                return Err(Error::OverBudget { kmers, needed, allowed });
            }
        }
        let filter = builder.build_from_fingerprint_counts(|first| parts.from(first))?;
        Ok(Table::new(k, filter))
    }
}

/// Letters, or why there are none.
type Batch = Result<Vec<u8>, Error>;

fn count(sources: &[Source<'_>], settings: &Settings) -> Result<Table, Error> {
    let cut = Cut::new(key_bits(settings.k));
    let mut counter = Counter { settings, cut, pool: Arc::new(Pool::new()), parts: Parts::new(cut) };
    settings.progress.say("reading");
    if settings.threads == 1 {
        counter.count_here(sources)?
    } else {
        counter.count_on_threads(sources)?
    }
    settings.progress.say("building the table");
    counter.finish()
}
