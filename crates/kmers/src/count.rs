//! Counting: files are parsed into batches, all threads roll the batches into fingerprints by parts, and the parts are counted in
//! rounds.
//!
//! A round ends when the fingerprints since the last one take as much memory as half of what has been counted (at least 256
//! MiB), or what the budget leaves. So fingerprints never take memory for all k-mers of the input, and what has been counted
//! is read again a few times only.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use warpset_core::quotient::rank_select::counters;

use crate::filling::{CHUNK_BYTES, Filling};
use crate::parts::{Cut, Parts};
use crate::reads::{Records, batches};
use crate::table::{key_bits, smallest};
use crate::{Error, K, Progress, Table};

/// Memory of a round, at least, if the budget has it.
const LEAST_ROUND: u64 = 256 << 20;
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

/// What is shared between rounds.
struct Counter<'s> {
    settings: &'s Settings,
    cut: Cut,
    parts: Parts,
    /// Bytes of fingerprints of this round.
    taken: AtomicU64,
}

impl Counter<'_> {
    /// Bytes of fingerprints at which the next round ends, or an error if there is no room for one.
    fn round(&self) -> Result<u64, Error> {
        let counted = self.parts.bytes();
        let wanted = LEAST_ROUND.max(counted / 2);
        let Some(allowed) = self.settings.memory else { return Ok(wanted) };
        let threads = self.settings.threads;
        // Each thread has batches, and a chunk of each part whether full or not.
        let of_threads = threads as u64 * (THREAD_BYTES + self.cut.parts() as u64 * CHUNK_BYTES);
        let needed = counted + of_threads + of_threads / 2;
        match allowed.checked_sub(needed) {
            Some(_) => Ok(wanted.min(allowed - counted - of_threads / 2)),
            None if counted == 0 => Err(Error::BudgetTooSmall { asked: allowed, least: needed, threads }),
            None => Err(Error::OverBudget { kmers: self.parts.len(), needed, allowed }),
        }
    }

    /// Whether the round ends.
    fn is_over(&self, round: u64) -> bool {
        self.taken.load(Ordering::Relaxed) >= round
    }

    /// Counts what the threads have filled, and empties it.
    fn end_round(&mut self, fillings: &mut [Filling]) {
        let of_part = |part| fillings.iter().flat_map(|filling| filling.of_part(part)).collect();
        self.parts.count(of_part);
        fillings.iter_mut().for_each(Filling::clear);
        self.taken.store(0, Ordering::Relaxed);
    }

    /// Parses and fills by turns.
    fn count_here(&mut self, sources: &[Source<'_>]) -> Result<(), Error> {
        let settings = self.settings;
        let (mut round, mut filling) = (self.round()?, Filling::new(settings.k));
        for source in sources {
            source.batches(settings, |batch| {
                filling.fill(&batch, &self.taken);
                if self.is_over(round) {
                    self.end_round(std::slice::from_mut(&mut filling));
                    round = self.round()?;
                }
                Ok(())
            })?;
        }
        self.end_round(&mut [filling]);
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
            let mut fillings: Vec<Filling> = (0..fillers).map(|_| Filling::new(settings.k)).collect();
            loop {
                let round = self.round()?;
                let (counter, receiver) = (&*self, &receiver);
                let at_ends: Vec<Result<bool, Error>> = thread::scope(|scope| {
                    let fill = |filling| scope.spawn(move || counter.fill_round(round, filling, receiver));
                    let threads: Vec<_> = fillings.iter_mut().map(fill).collect();
                    threads
                        .into_iter()
                        .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
                        .collect()
                });
                let at_end = at_ends.into_iter().try_fold(false, |any, at_end| Ok::<bool, Error>(any | at_end?))?;
                self.end_round(&mut fillings);
                if at_end {
                    return Ok(());
                }
            }
        })
    }

    /// One thread's part of a round; says whether there was nothing left to receive.
    fn fill_round(&self, round: u64, filling: &mut Filling, receiver: &Mutex<Receiver<Batch>>) -> Result<bool, Error> {
        while !self.is_over(round) {
            let batch = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
            match batch {
                Ok(Ok(batch)) => filling.fill(&batch, &self.taken),
                Ok(Err(error)) => {
                    // The round is over for all threads.
                    self.taken.store(u64::MAX / 2, Ordering::Relaxed);
                    return Err(error);
                }
                Err(_) => return Ok(true),
            }
        }
        Ok(false)
    }

    /// The table of what has been counted.
    fn finish(self) -> Result<Table, Error> {
        let Counter { settings, mut parts, .. } = self;
        let k = settings.k;
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
        Ok(Table::new(k, filter, kmers))
    }
}

/// Letters, or why there are none.
type Batch = Result<Vec<u8>, Error>;

fn count(sources: &[Source<'_>], settings: &Settings) -> Result<Table, Error> {
    let cut = Cut::new(key_bits(settings.k));
    let mut counter = Counter { settings, cut, parts: Parts::new(cut), taken: AtomicU64::new(0) };
    settings.progress.say("reading");
    if settings.threads == 1 {
        counter.count_here(sources)?
    } else {
        counter.count_on_threads(sources)?
    }
    settings.progress.say("building the table");
    counter.finish()
}
