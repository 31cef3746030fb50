//! Counting on the CPU: all threads parse letters and roll them into fingerprints, grouped by parts, and the parts are
//! counted in rounds.
//!
//! A round ends when its fingerprints take half the memory of all counts so far (at least 256 MiB), or the rest of the
//! budget. So fingerprints never take memory for all k-mers of the input, and counts are read again only a few times.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use warpset_kernels::kmers::letters::{CLASSES, class_of};

use super::builder_for;
use crate::feed::{Cursor, Feed, feed};
use crate::filling::{CHUNK_BYTES, Filling};
use crate::parts::{Cut, Parts};
use crate::pieces::Text;
use crate::table::key_bits;
use crate::{Error, Settings, Table};

/// Least memory per round, if the budget allows it.
const LEAST_ROUND: u64 = 256 << 20;
/// Memory per thread for a batch and other buffers, about.
const THREAD_BYTES: u64 = 2 << 20;

pub(super) fn count(texts: &[Text<'_>], settings: &Settings) -> Result<Table, Error> {
    let cut = Cut::new(key_bits(settings.k));
    let mut counter = Counter { settings, cut, parts: Parts::new(cut), taken: AtomicU64::new(0) };
    settings.progress.say("reading");
    feed(texts, settings, |feed, threads| match settings.threads {
        1 => counter.count_here(feed),
        _ => counter.count_on(feed, threads),
    })?;
    settings.progress.say("building the table");
    counter.finish()
}

/// State between rounds.
struct Counter<'s> {
    settings: &'s Settings,
    cut: Cut,
    parts: Parts,
    /// Bytes of fingerprints in this round.
    taken: AtomicU64,
}

impl Counter<'_> {
    /// Returns the bytes of fingerprints at which the next round ends, or an error if the budget has no room for a
    /// round.
    fn round(&self) -> Result<u64, Error> {
        let counted = self.parts.bytes();
        let wanted = LEAST_ROUND.max(counted / 2);
        let Some(allowed) = self.settings.memory else { return Ok(wanted) };
        let threads = self.settings.threads;
        // Each thread has batches, and one chunk per part, full or not.
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

    /// Counts the fingerprints of all threads, and clears them.
    fn end_round<'f>(&mut self, fillings: impl Iterator<Item = &'f mut Filling>) {
        let mut fillings: Vec<&mut Filling> = fillings.collect();
        let of_part = |part| fillings.iter().flat_map(|filling| filling.of_part(part)).collect();
        self.parts.count(of_part);
        fillings.iter_mut().for_each(|filling| filling.clear());
        self.taken.store(0, Ordering::Relaxed);
    }

    /// Parses and counts in turns on this thread.
    fn count_here(&mut self, feed: &Feed<'_>) -> Result<(), Error> {
        let (mut round, mut filling) = (self.round()?, Filling::new(self.settings.k));
        feed.each(|letters| {
            filling.fill(letters, &self.taken);
            if self.is_over(round) {
                self.end_round(std::iter::once(&mut filling));
                round = self.round()?;
            }
            Ok(())
        })?;
        self.end_round(std::iter::once(&mut filling));
        Ok(())
    }

    /// Parses and fills on all threads, then counts on all threads, in turns.
    fn count_on<'a>(&mut self, feed: &Feed<'a>, threads: usize) -> Result<(), Error> {
        let k = self.settings.k;
        let mut workers: Vec<(Filling, Cursor<'a>)> =
            (0..threads).map(|_| (Filling::new(k), Cursor::default())).collect();
        loop {
            let (round, counter) = (self.round()?, &*self);
            let at_ends: Vec<Result<bool, Error>> = thread::scope(|scope| {
                let fill = |worker| scope.spawn(move || counter.fill_round(round, worker, feed));
                let threads: Vec<_> = workers.iter_mut().map(fill).collect();
                let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
                };
                threads.into_iter().map(join).collect()
            });
            // At the end no thread finds anything more; at the end of a round, some may just not have looked.
            let at_end = at_ends.into_iter().try_fold(true, |all, at_end| Ok::<bool, Error>(all & at_end?))?;
            self.end_round(workers.iter_mut().map(|(filling, _)| filling));
            if at_end {
                return Ok(());
            }
        }
    }

    /// Fills one thread's share of a round. Returns whether nothing was left for it.
    fn fill_round<'a>(
        &self,
        round: u64,
        (filling, share): &mut (Filling, Cursor<'a>),
        feed: &Feed<'a>,
    ) -> Result<bool, Error> {
        while !self.is_over(round) {
            match feed.step(share, |letters| filling.fill(letters, &self.taken)) {
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

    /// Builds the table of all counts.
    fn finish(self) -> Result<Table, Error> {
        let Counter { settings, mut parts, .. } = self;
        let k = settings.k;
        if parts.len() == 0 {
            return Err(Error::NoKmers { k: k.get() });
        }
        parts.keep(settings.least);
        let builder = builder_for(k, &parts.sum::<CLASSES>(class_of))?;
        let kmers = parts.len();
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
