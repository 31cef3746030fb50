//! Feed of the letters of all inputs to threads that count them.
//!
//! Plain files are cut into pieces, which the counting threads read and parse. Compressed files and pipes can only be
//! read from their start; one further thread per file parses them and sends batches.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::pieces::{Piece, Plain, Text};
use crate::reads::{Records, Seen, batches};
use crate::{Error, K, Progress, Settings};

/// Waiting batches per thread.
const BATCHES_PER_THREAD: usize = 2;

/// Letters, or the error that ends them.
type Batch = Result<Vec<u8>, Error>;

/// Rest of the input.
pub(crate) struct Feed<'a> {
    k: K,
    seen: &'a Mutex<Seen>,
    progress: &'a Progress,
    pieces: Vec<(Plain<'a>, Range<u64>)>,
    next: AtomicUsize,
    /// Texts that are parsed from their start on this thread, if it is the only one.
    here: Vec<Text<'a>>,
    /// Batches that other threads parse.
    receiver: Mutex<Receiver<Batch>>,
}

/// Piece that a thread is reading.
#[derive(Default)]
pub(crate) struct Cursor<'a> {
    piece: Option<(Piece<'a>, u64)>,
}

/// Calls `work` with the letters of all `texts`, and the number of threads for it.
pub(crate) fn feed<T>(
    texts: &[Text<'_>],
    settings: &Settings,
    work: impl FnOnce(&Feed<'_>, usize) -> Result<T, Error>,
) -> Result<T, Error> {
    let Settings { k, threads, progress, seen, .. } = settings;
    let (mut pieces, mut whole) = (Vec::new(), Vec::new());
    for &text in texts {
        match Plain::find(text)? {
            Some(plain) => pieces.extend(plain.cut(*threads).map(|range| (plain, range))),
            None => whole.push(text),
        }
    }
    let here = if *threads == 1 { std::mem::take(&mut whole) } else { Vec::new() };
    let parsers = whole.len().min(threads.div_ceil(2));
    let next_whole = AtomicUsize::new(0);
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(BATCHES_PER_THREAD * threads);
        for _ in 0..parsers {
            let (sender, whole, next) = (sender.clone(), &whole, &next_whole);
            scope.spawn(move || {
                while let Some(&text) = whole.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !parse(text, (*k, progress, seen), &sender) {
                        return;
                    }
                }
            });
        }
        drop(sender);
        let (next, receiver) = (AtomicUsize::new(0), Mutex::new(receiver));
        // Dropping the receiver at the end of the work ends all parsers.
        work(&Feed { k: *k, seen, progress, pieces, next, here, receiver }, (threads - parsers).max(1))
    })
}

/// Sends the batches of a text, or its error. Returns whether to go on with another text.
fn parse(text: Text<'_>, (k, progress, seen): (K, &Progress, &Mutex<Seen>), sender: &SyncSender<Batch>) -> bool {
    // The error only ends the parsing: the receiver is gone after another error, which is reported.
    let send = |batch| sender.send(Ok(batch)).map_err(|_| Error::NoInput);
    match records(text, progress).and_then(|records| batches(records, k, send)) {
        Ok(found) => {
            note(seen, found);
            true
        }
        Err(error) => {
            let _ = sender.send(Err(error));
            false
        }
    }
}

/// Adds statistics of letters.
fn note(seen: &Mutex<Seen>, found: Seen) {
    seen.lock().unwrap_or_else(PoisonError::into_inner).plus(found);
}

fn records<'a>(text: Text<'a>, progress: &Progress) -> Result<Records<'a>, Error> {
    match text {
        Text::File(path) => Records::open(path, progress),
        Text::Bytes(bytes) => Records::read(text.path(), bytes),
    }
}

impl<'a> Feed<'a> {
    /// Visits some more letters, in stretches that contain all windows of the input. Returns whether there may be more.
    /// For one of several threads.
    pub(crate) fn step(&self, share: &mut Cursor<'a>, mut visit: impl FnMut(&[u8])) -> Result<bool, Error> {
        if share.piece.is_none() {
            if let Some((plain, range)) = self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed)) {
                share.piece = Some((plain.piece(range.clone(), self.k)?, range.end - range.start));
            } else {
                return match self.receiver.lock().unwrap_or_else(PoisonError::into_inner).recv() {
                    Ok(batch) => batch.map(|batch| {
                        visit(&batch);
                        true
                    }),
                    Err(_) => Ok(false),
                };
            }
        }
        if let Some((piece, bytes)) = &mut share.piece
            && !piece.step(visit)?
        {
            note(self.seen, piece.seen());
            self.progress.advance(*bytes)?;
            share.piece = None;
        }
        Ok(true)
    }

    /// Visits all letters, a batch at a time. For the only thread.
    pub(crate) fn each(&self, mut visit: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let mut share = Cursor::default();
        loop {
            let mut visited = Ok(());
            let more = self.step(&mut share, |letters| {
                if visited.is_ok() {
                    visited = visit(letters);
                }
            })?;
            visited?;
            if !more {
                break;
            }
        }
        self.here.iter().try_for_each(|&text| {
            note(self.seen, batches(records(text, self.progress)?, self.k, |batch| visit(&batch))?);
            Ok(())
        })
    }
}
