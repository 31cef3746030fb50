//! Threads of a screening.
//!
//! Each thread takes a batch of reads ([`source`](super::source)), decides it ([`decide`](super::decide)), splits its
//! text ([`split`](super::split)), and hands the texts to the sinks ([`sink`](super::sink)), which restore the order of
//! batches.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use warpset_base::parallel::threads_for;

use super::batch::Batch;
use super::decide::{Decider, Decision, Failure};
use super::sink::{Destination, Sink};
use super::source::Source;
use super::split::{OUTPUTS, written};
use super::{Screened, Screening};
use crate::Error;
use crate::count::{pieces_of_work, pool};
use crate::pieces::Text;

/// Bytes of text per batch, about, so that a batch stays in a core's cache until it is decided.
const BATCH: usize = if cfg!(test) { 1 << 12 } else { 1 << 20 };

impl Screening<'_> {
    /// Splits the reads of `files` on several threads.
    pub(super) fn split(&self, files: &[PathBuf], decider: &dyn Decider) -> Result<Screened, Error> {
        let texts: Vec<Text<'_>> = files.iter().map(|path| Text::File(path)).collect();
        let pool = pool(threads_for(self.threads, pieces_of_work(&texts)))?;
        let threads = pool.current_num_threads();
        self.progress.say("screening");
        thread::scope(|scope| {
            let pairing = (self.pairing, self.any_mates);
            let source = Source::new(scope, files, pairing, (BATCH, threads), &self.progress);
            // Read before any output is created, so that input in another format leaves all outputs untouched.
            let mut first = Batch::default();
            let first = Mutex::new(source.next(&mut first)?.map(|number| (number, first)));
            let mut sinks: [Option<Sink>; OUTPUTS] = Default::default();
            let most_waiting = threads * (4 + decider.most_held());
            for (sink, path) in sinks.iter_mut().zip(&self.outputs) {
                *sink = path.as_ref().map(|path| Sink::create(path, self.level, most_waiting)).transpose()?;
            }
            let summary = self.summary.as_ref().map(|(path, _)| Sink::create(path, self.level, 0)).transpose()?;
            let shared = Shared {
                source: &source,
                first,
                sinks: &sinks,
                failure: Mutex::new(None),
                stop: AtomicBool::new(false),
            };
            let counted = pool.broadcast(|_| {
                let mut sum = Screened::default();
                if let Err((number, error)) = shared.work(decider, &mut sum) {
                    shared.fail(number, error);
                }
                sum
            });
            if let Some((_, error)) = shared.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
                // Ends the threads that parse ahead.
                drop(source);
                return Err(error);
            }
            let screened = counted.into_iter().fold(Screened::default(), Screened::plus);
            if let (Some(sink), Some((_, start))) = (&summary, &self.summary) {
                sink.put(0, (self.summary(files, &screened, start.elapsed()) + "\n").into_bytes())?;
            }
            let written = sinks.into_iter().chain([summary]).flatten().map(Sink::end);
            Destination::finish_all(written.collect::<Result<Vec<_>, _>>()?)?;
            Ok(screened)
        })
    }
}

/// State that the threads share.
struct Shared<'a, 's, 'e> {
    source: &'a Source<'s, 'e>,
    first: Mutex<Option<(u64, Batch)>>,
    sinks: &'a [Option<Sink>; OUTPUTS],
    /// Error of the earliest batch that failed.
    failure: Mutex<Option<(u64, Error)>>,
    stop: AtomicBool,
}

impl Shared<'_, '_, '_> {
    /// Decides batches on one thread until the input ends or a thread has failed.
    fn work(&self, decider: &dyn Decider, sum: &mut Screened) -> Result<(), Failure> {
        let _unless_it_panics = Panicking(self);
        // A text that was held back is no longer in the cache.
        let may_move = decider.most_held() > 0;
        let keeps_text = self.sinks.iter().any(Option::is_some);
        let mut worker = decider.worker(keeps_text).map_err(|error| (0, error))?;
        let mut done = |number, batch: &mut Batch, decisions: &[Decision]| {
            sum.add(batch, decisions);
            self.write(number, batch, decisions, may_move).map_err(|error| (number, error))
        };
        while !self.stop.load(Ordering::Relaxed) {
            let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (number, batch) = match first {
                Some(first) => first,
                None => {
                    let mut batch = worker.empty();
                    match self.source.next(&mut batch).map_err(|error| (u64::MAX, error))? {
                        Some(number) => (number, batch),
                        None => return worker.finish(&mut done),
                    }
                }
            };
            worker.decide(number, batch, &mut done)?;
        }
        Ok(())
    }

    /// Hands the texts of a batch to the sinks.
    fn write(&self, number: u64, batch: &mut Batch, decisions: &[Decision], may_move: bool) -> Result<(), Error> {
        let texts = written(batch, decisions, (self.sinks, may_move));
        for (sink, text) in self.sinks.iter().zip(texts) {
            if let Some(sink) = sink {
                sink.put(number, text)?;
            }
        }
        Ok(())
    }

    /// Records the error of a batch and stops all threads.
    fn fail(&self, number: u64, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.as_ref().is_none_or(|(earlier, _)| number < *earlier) {
            *failure = Some((number, error));
        }
        self.stop.store(true, Ordering::Relaxed);
        self.sinks.iter().flatten().for_each(Sink::give_up);
    }
}

/// Guard that stops the other threads if its thread panics, so that the panic is reported.
struct Panicking<'a, 'b, 's, 'e>(&'a Shared<'b, 's, 'e>);

impl Drop for Panicking<'_, '_, '_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop.store(true, Ordering::Relaxed);
            self.0.sinks.iter().flatten().for_each(Sink::give_up);
        }
    }
}
