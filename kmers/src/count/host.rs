//! Counting on the CPU: all threads parse letters and roll them into fingerprints, grouped by parts, and the parts are
//! counted in rounds.
//!
//! A round ends when its fingerprints take the memory of all counts so far (at least 256 MiB, or 512 above 32 bases),
//! or the rest of the budget. So fingerprints never take memory for all k-mers of the input, and counts are read again
//! only a few times.
//!
//! Once k-mers repeat, rounds begin with [super-k-mers](crate::super_kmers), each of which takes the memory of two
//! fingerprints and has some ten k-mers. Their copies are counted bin by bin, and only different k-mers of the round
//! become fingerprints.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use rayon::prelude::*;
use warpset_kernels::kmers::cut::Cut;
use warpset_kernels::kmers::letters::{CLASSES, class_of};

use super::builder_for;
use crate::feed::{Cursor, Feed, feed};
use crate::filling::Filling;
use crate::long::Long;
use crate::parts::Parts;
use crate::pieces::Text;
use crate::super_kmers::{self, BINS, Stretch, SuperKmers, Tally, Wide};
use crate::table::key_bits;
use crate::word::Word;
use crate::{Error, Settings, Table};

/// Least number of fingerprints per round, if the budget allows it; small in tests, so that they have several rounds.
const LEAST_ROUND: u64 = if cfg!(test) { 1 << 15 } else { 32 << 20 };
/// Memory per thread for a batch and other buffers, about.
const THREAD_BYTES: u64 = 2 << 20;
/// Share of k-mers that are known, and copies of each k-mer in a round, that pay for super-k-mers.
const LEAST_KNOWN: f64 = 0.5;
const LEAST_COPIES: f64 = 2.0;

/// Number of k-mers of several genomes.
const SEVERAL: u64 = 1 << 8;

pub(super) fn count(texts: &[Text<'_>], settings: &Settings) -> Result<Table, Error> {
    if settings.k.is_long() { count_in::<u128>(texts, settings) } else { count_in::<u64>(texts, settings) }
}

fn count_in<W: Counts>(texts: &[Text<'_>], settings: &Settings) -> Result<Table, Error> {
    let (mut counter, mut workers) = (Counter::<W>::new(settings), Worker::all(settings));
    settings.progress.say("reading");
    counter.read(texts, &mut workers)?;
    counter.end_round(&mut workers)?;
    drop(workers);
    settings.progress.say("building the table");
    counter.finish()
}

/// Calls `build` with the different k-mers of all genomes, as [`super::label`] does.
pub(super) fn label<W: Counts, T>(
    genomes: &[Text<'_>],
    settings: &Settings,
    build: impl FnOnce(u64, &mut dyn Iterator<Item = (W, u64)>) -> Result<T, Error>,
) -> Result<T, Error> {
    let (mut counter, mut workers) = (Counter::<W>::new(settings), Worker::all(settings));
    settings.progress.say("reading");
    for (number, genome) in (1..).zip(genomes) {
        counter.genome = Some(number);
        counter.read(std::slice::from_ref(genome), &mut workers)?;
    }
    counter.end_round(&mut workers)?;
    drop(workers);
    settings.progress.say("building the labels");
    let bits = key_bits(settings.k);
    let kmer_of = |(fingerprint, genome)| (W::of_fingerprint(fingerprint, bits), genome);
    build(counter.parts.len(), &mut counter.parts.into_all().map(kmer_of))
}

/// State between rounds.
struct Counter<'s, W> {
    settings: &'s Settings,
    cut: Cut<W>,
    parts: Parts<W>,
    /// Bytes of fingerprints or super-k-mers in this round.
    taken: AtomicU64,
    /// Bytes of super-k-mers while they become fingerprints.
    held: u64,
    /// Whether the round has super-k-mers instead of fingerprints.
    by_minimizers: bool,
    /// Number of the genome that is being read, which takes the place of copies; `None` if k-mers are counted.
    genome: Option<u64>,
}

/// State of one thread.
struct Worker<W: Counts> {
    filling: Filling<W>,
    super_kmers: SuperKmers<W::Stretch>,
    tally: Tally<W::Stretch>,
}

impl<W: Counts> Worker<W> {
    /// Returns a worker per thread.
    fn all(settings: &Settings) -> Vec<Worker<W>> {
        let of = |k| Worker { filling: Filling::new(k), super_kmers: SuperKmers::new(k), tally: Tally::default() };
        (0..settings.threads).map(|_| of(settings.k)).collect()
    }
}

impl<'s, W: Counts> Counter<'s, W> {
    /// Least memory per round.
    const LEAST_ROUND: u64 = LEAST_ROUND * size_of::<W>() as u64;

    fn new(settings: &'s Settings) -> Self {
        let cut = Cut::new(key_bits(settings.k));
        let (parts, taken) = (Parts::new(cut), AtomicU64::new(0));
        Counter { settings, cut, parts, taken, held: 0, by_minimizers: false, genome: None }
    }

    /// Adds the k-mers of texts. Those of the last round stay with the workers.
    fn read(&mut self, texts: &[Text<'_>], workers: &mut [Worker<W>]) -> Result<(), Error> {
        let settings = self.settings;
        feed(texts, settings, |feed, threads| match settings.threads {
            1 => self.count_here(feed, workers),
            _ => self.count_on(feed, threads, workers),
        })
    }

    /// Returns the memory of one thread: batches, and one chunk per part, full or not.
    fn of_thread(&self) -> u64 {
        THREAD_BYTES + self.cut.parts() as u64 * Filling::<W>::PART_BYTES
    }

    /// Returns the bytes of fingerprints that are counted at once, or an error if the budget has no room for any.
    fn fingerprints(&self) -> Result<u64, Error> {
        let counted = self.parts.bytes();
        let wanted = Self::LEAST_ROUND.max(counted);
        let Some(allowed) = self.settings.memory else { return Ok(wanted) };
        let threads = self.settings.threads;
        let of_threads = threads as u64 * self.of_thread();
        let taken = counted + self.held;
        let needed = taken + of_threads + of_threads / 2;
        match allowed.checked_sub(needed) {
            Some(_) => Ok(wanted.min(allowed - taken - of_threads / 2)),
            None if taken == 0 => Err(Error::BudgetTooSmall { asked: allowed, least: needed, threads }),
            None => Err(Error::OverBudget { kmers: self.parts.len(), needed, allowed }),
        }
    }

    /// Returns the bytes of super-k-mers in a round that has any. The budget has room for the counts of all of their
    /// k-mers, even if no two are equal.
    fn super_kmers(&self) -> u64 {
        let counted = self.parts.bytes();
        let wanted = Self::LEAST_ROUND.max(2 * counted);
        let Some(allowed) = self.settings.memory else { return wanted };
        let of_threads = self.settings.threads as u64 * (2 * self.of_thread() + super_kmers::OPEN_BYTES);
        wanted.min(
            allowed.saturating_sub(counted + of_threads)
                / (1 + size_of::<W>() as u64 * W::Stretch::MOST as u64 / W::Stretch::BYTES),
        )
    }

    /// Returns the bytes at which the next round ends.
    fn round(&self) -> Result<u64, Error> {
        if self.by_minimizers { Ok(self.super_kmers()) } else { self.fingerprints() }
    }

    /// Whether the round ends.
    fn is_over(&self, round: u64) -> bool {
        self.taken.load(Ordering::Relaxed) >= round
    }

    /// Counts the k-mers of all threads, clears them, and chooses the form of the next round.
    fn end_round(&mut self, workers: &mut [Worker<W>]) -> Result<(), Error> {
        let before = self.parts.len();
        let kmers = if self.by_minimizers {
            self.count_bins(workers)?
        } else {
            let fingerprints = workers.iter().map(|worker| worker.filling.len()).sum();
            self.count_parts(workers);
            fingerprints
        };
        let different = self.parts.len();
        if kmers == 0 {
            return Ok(());
        }
        // The share of k-mers that were not new is about the share of all different k-mers that are known.
        let known = 1.0 - (different - before) as f64 / kmers as f64;
        let next = self.super_kmers() / W::Stretch::BYTES * super_kmers::average(self.settings.k);
        let pays = known >= LEAST_KNOWN && next as f64 * known >= LEAST_COPIES * different as f64;
        self.by_minimizers = pays && super_kmers::suit(self.settings.k) && self.genome.is_none();
        Ok(())
    }

    /// Counts the fingerprints of all threads, and clears them.
    fn count_parts(&mut self, workers: &mut [Worker<W>]) {
        let fillings: Vec<&Filling<W>> = workers.iter().map(|worker| &worker.filling).collect();
        let of_part = |part| fillings.iter().flat_map(|filling| filling.of_part(part)).collect();
        match self.genome {
            None => self.parts.count(of_part, |copies, more| copies + more),
            Some(_) => self.parts.count(of_part, |genome, other| if genome == other { genome } else { SEVERAL }),
        }
        workers.iter_mut().for_each(|worker| worker.filling.clear());
        self.taken.store(0, Ordering::Relaxed);
    }

    /// Counts the super-k-mers of all threads, and clears them. Returns the number of their k-mers.
    fn count_bins(&mut self, workers: &mut [Worker<W>]) -> Result<u64, Error> {
        self.held = std::mem::take(self.taken.get_mut());
        let (next, kmers) = (AtomicUsize::new(0), AtomicU64::new(0));
        while next.load(Ordering::Relaxed) < BINS {
            let (round, counter) = (self.fingerprints()?, &*self);
            let apart =
                workers.iter_mut().map(|Worker { super_kmers, filling, tally, .. }| (&*super_kmers, (filling, tally)));
            let (super_kmers, own): (Vec<&SuperKmers<W::Stretch>>, Vec<_>) = apart.unzip();
            own.into_par_iter().for_each(|(filling, tally)| {
                while !counter.is_over(round) {
                    let bin = next.fetch_add(1, Ordering::Relaxed);
                    if bin >= BINS {
                        return;
                    }
                    let of_bin: Vec<&[u64]> = super_kmers.iter().flat_map(|own| own.of_bin(bin)).collect();
                    let mut all = 0;
                    tally.count(counter.settings.k, &of_bin, |kmer, copies| {
                        filling.add(kmer, copies, &counter.taken);
                        all += copies;
                    });
                    kmers.fetch_add(all, Ordering::Relaxed);
                }
            });
            self.count_parts(workers);
        }
        workers.iter_mut().for_each(|worker| worker.super_kmers.clear());
        self.held = 0;
        Ok(kmers.into_inner())
    }

    /// Adds letters to one thread's share of a round.
    fn fill(&self, worker: &mut Worker<W>, letters: &[u8]) {
        if self.by_minimizers {
            worker.super_kmers.fill(letters, &self.taken);
        } else {
            worker.filling.fill(letters, self.genome.unwrap_or(1), &self.taken);
        }
    }

    /// Parses and counts in turns on this thread.
    fn count_here(&mut self, feed: &Feed<'_>, workers: &mut [Worker<W>]) -> Result<(), Error> {
        let mut round = self.round()?;
        feed.each(|letters| {
            self.fill(&mut workers[0], letters);
            if self.is_over(round) {
                self.end_round(workers)?;
                round = self.round()?;
            }
            Ok(())
        })
    }

    /// Parses and fills on `threads` threads, then counts on all threads, in turns.
    fn count_on(&mut self, feed: &Feed<'_>, threads: usize, workers: &mut [Worker<W>]) -> Result<(), Error> {
        let mut cursors: Vec<Cursor<'_>> = (0..threads).map(|_| Cursor::default()).collect();
        loop {
            let (round, counter) = (self.round()?, &*self);
            let at_ends: Vec<Result<bool, Error>> = thread::scope(|scope| {
                let fill = |(worker, cursor)| scope.spawn(move || counter.fill_round(round, worker, cursor, feed));
                let threads: Vec<_> = workers.iter_mut().zip(&mut cursors).map(fill).collect();
                let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
                };
                threads.into_iter().map(join).collect()
            });
            // At the end no thread finds anything more; at the end of a round, some may just not have looked.
            let at_end = at_ends.into_iter().try_fold(true, |all, at_end| Ok::<bool, Error>(all & at_end?))?;
            if at_end {
                return Ok(());
            }
            self.end_round(workers)?;
        }
    }

    /// Fills one thread's share of a round. Returns whether nothing was left for it.
    fn fill_round<'a>(
        &self,
        round: u64,
        worker: &mut Worker<W>,
        cursor: &mut Cursor<'a>,
        feed: &Feed<'a>,
    ) -> Result<bool, Error> {
        while !self.is_over(round) {
            match feed.step(cursor, |letters| self.fill(worker, letters)) {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(error) => {
                    // Ends the round for all threads.
                    self.taken.store(u64::MAX / 2, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(false)
    }
}

/// K-mers that are counted, and tables of their counts.
pub(crate) trait Counts: Word {
    /// Super-k-mers of these k-mers.
    type Stretch: Stretch<Kmer = Self> + Send + Sync;

    /// Builds a table of all counts.
    fn table(settings: &Settings, parts: Parts<Self>) -> Result<Table, Error>;
}

/// Checks the memory for a table beside its counts.
fn check_budget<W: Word>(settings: &Settings, parts: &Parts<W>, table: u64) -> Result<(), Error> {
    let (kmers, needed) = (parts.len(), parts.bytes() + table);
    match settings.memory {
        Some(allowed) if needed > allowed => Err(Error::OverBudget { kmers, needed, allowed }),
        _ => Ok(()),
    }
}

impl Counts for u64 {
    type Stretch = u128;

    fn table(settings: &Settings, parts: Parts<u64>) -> Result<Table, Error> {
        let builder = builder_for(settings.k, &parts.sum::<CLASSES>(class_of))?;
        check_budget(settings, &parts, 8 * builder.layout()?.words())?;
        let filter = builder.build_from_fingerprint_counts(|first| parts.from(first))?;
        Ok(Table::new(settings.k, filter, parts.len()))
    }
}

impl Counts for u128 {
    type Stretch = Wide;

    fn table(settings: &Settings, parts: Parts<u128>) -> Result<Table, Error> {
        check_budget(settings, &parts, parts.bytes())?;
        Ok(Long::from_parts(settings.k, &parts).map_err(Error::of_table)?.into())
    }
}

impl<W: Counts> Counter<'_, W> {
    fn finish(self) -> Result<Table, Error> {
        let Counter { settings, mut parts, .. } = self;
        if parts.len() == 0 {
            return Err(Error::NoKmers { k: settings.k.get() });
        }
        parts.keep(settings.least);
        W::table(settings, parts)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::{K, Roll};

    /// Returns reads of both strands of a random genome, some with N; among them repeats of one base.
    fn reads(genome: u64, reads: u64) -> String {
        let base = |i| b"ACGT"[(warpset_core::hash::finalise(i) & 3) as usize];
        let genome: Vec<u8> = (0..genome).map(base).collect();
        let read = |i: u64| {
            let hash = warpset_core::hash::finalise((i + 1) << 40);
            let begin = hash as usize % (genome.len() - 150);
            let mut read = genome[begin..begin + 150].to_vec();
            match hash >> 60 {
                0 => read[(hash >> 50) as usize % 150] = b'N',
                1 => read.fill(b'A'),
                2..8 => {
                    read.reverse();
                    read.iter_mut().for_each(|base| *base = b"TGCA"[b"ACGT".iter().position(|b| b == base).unwrap()]);
                }
                _ => {}
            }
            format!("@{i}\n{}\n+\n{}\n", String::from_utf8(read).unwrap(), "I".repeat(150))
        };
        (0..reads).map(read).collect()
    }

    /// Checks all rounds with and without super-k-mers, on one thread and several, for many k, with and without a
    /// budget, on k-mers that repeat and on k-mers that do not.
    #[test]
    fn rounds_count_like_a_map() {
        check::<u64>(&[(1, 1), (13, 2), (14, 1), (15, 3), (17, 2), (21, 2), (31, 1), (31, 3), (32, 2)]);
        check::<u128>(&[(33, 1), (41, 2), (55, 1), (55, 3), (63, 2)]);
    }

    fn check<W: Counts>(cases: &[(u32, usize)]) {
        for (genome, count) in [(3000, 2000), (200_000, 600)] {
            let text = reads(genome, count);
            for &(k, threads) in cases {
                let mut wanted = BTreeMap::<u128, u64>::new();
                for read in text.lines().skip(1).step_by(4) {
                    Roll::of(K::new(k).unwrap())
                        .each(read.as_bytes(), |kmer: W| *wanted.entry(kmer.wide()).or_default() += 1);
                }
                for memory in [None, Some(80 << 20)] {
                    let settings = Settings { memory, threads, seen: Arc::default(), ..Settings::new(k).unwrap() };
                    let mut counter = Counter::<W>::new(&settings);
                    let texts = [Text::Bytes(text.as_bytes())];
                    crate::count::pool(threads).unwrap().install(|| {
                        let mut workers = Worker::all(&settings);
                        counter.read(&texts, &mut workers).unwrap();
                        counter.end_round(&mut workers).unwrap();
                        // On several threads, the last round can be one read of one base, whose k-mers are known.
                        if threads == 1 || genome == 3000 {
                            assert_eq!(
                                counter.by_minimizers,
                                super_kmers::suit(K::new(k).unwrap()) && genome == 3000,
                                "{k} {threads} {memory:?}"
                            );
                        }
                        let table = counter.finish().unwrap();
                        assert_eq!(table.kmers::<u128>().unwrap().collect::<BTreeMap<_, _>>(), wanted);
                    });
                }
            }
        }
    }
}
